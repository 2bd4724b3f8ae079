/* Losses: the mean alone, and the mean with its gradient in one call. size: { rows, columns } */
#include "bench/bench.h"

enum { LOSS, PRED, TARGET, GRAD };

static mica_status loss_and_pred(bench_state *s)
{
    BENCH_TRY(BENCH_TENSOR(s, 1));
    return BENCH_TENSOR(s, s->row->size[0], s->row->size[1]);
}

static mica_status gradient(bench_state *s) { return BENCH_TENSOR(s, s->row->size[0], s->row->size[1]); }

/* ---- Squared error: the target is of the prediction's shape ---- */

static mica_status mse_setup(bench_state *s)
{
    BENCH_TRY(loss_and_pred(s));
    return BENCH_TENSOR(s, s->row->size[0], s->row->size[1]);
}

static mica_status mse_grad_setup(bench_state *s)
{
    BENCH_TRY(mse_setup(s));
    return gradient(s);
}

static mica_status mse(bench_state *s)
{
    return mica_mse_loss(s->ctx, &s->t[LOSS], NULL, &s->t[PRED], &s->t[TARGET], NULL);
}

static mica_status mse_grad(bench_state *s)
{
    return mica_mse_loss(s->ctx, &s->t[LOSS], &s->t[GRAD], &s->t[PRED], &s->t[TARGET], NULL);
}

/* ---- Cross-entropy from logits: the target is a class for each row ---- */

static mica_status cross_setup(bench_state *s)
{
    const mica_index *size = s->row->size;
    BENCH_TRY(loss_and_pred(s));
    BENCH_TRY(bench_tensor(s, MICA_I32, 1, size));
    int32_t *classes = s->t[TARGET].data;
    for (mica_index i = 0; i < size[0]; i++)
        classes[i] = (int32_t)(i * 7 % size[1]);
    return MICA_OK;
}

static mica_status cross_grad_setup(bench_state *s)
{
    BENCH_TRY(cross_setup(s));
    return gradient(s);
}

static mica_status cross(bench_state *s)
{
    return mica_cross_entropy(s->ctx, &s->t[LOSS], NULL, &s->t[PRED], &s->t[TARGET], NULL);
}

static mica_status cross_grad(bench_state *s)
{
    return mica_cross_entropy(s->ctx, &s->t[LOSS], &s->t[GRAD], &s->t[PRED], &s->t[TARGET], NULL);
}

static const bench_case cases[] = {
    {"mse_32x512_fwd", mse_setup, mse, {32, 512}},
    {"mse_32x512_fwd_bwd", mse_grad_setup, mse_grad, {32, 512}},
    {"cross_entropy_32x10_fwd", cross_setup, cross, {32, 10}},
    {"cross_entropy_32x10_fwd_bwd", cross_grad_setup, cross_grad, {32, 10}},
    {"cross_entropy_256x1000_fwd", cross_setup, cross, {256, 1000}},
    {"cross_entropy_256x1000_fwd_bwd", cross_grad_setup, cross_grad, {256, 1000}},
};

BENCH_FAMILY(loss, cases);
