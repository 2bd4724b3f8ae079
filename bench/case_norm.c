/* Layer norm, fused. size: { rows, columns } */
#include "bench/bench.h"

enum { Y, X, GAMMA, BETA, MEAN, RSTD }; /* forward */
enum { DY = 6, DX, DGAMMA, DBETA };     /* backward, besides X, GAMMA, MEAN and RSTD */

static mica_status forward_setup(bench_state *s)
{
    mica_index rows = s->row->size[0], columns = s->row->size[1];
    BENCH_TRY(BENCH_TENSOR(s, rows, columns));
    BENCH_TRY(BENCH_TENSOR(s, rows, columns));
    BENCH_TRY(BENCH_TENSOR(s, columns));
    BENCH_TRY(BENCH_TENSOR(s, columns));
    BENCH_TRY(BENCH_TENSOR(s, rows));
    return BENCH_TENSOR(s, rows);
}

static mica_status forward(bench_state *s)
{
    return mica_layer_norm(s->ctx, &s->t[Y], &s->t[X], &s->t[GAMMA], &s->t[BETA],
                           &(mica_norm_opts){.mean = &s->t[MEAN], .rstd = &s->t[RSTD]});
}

static mica_status backward_setup(bench_state *s)
{
    mica_index rows = s->row->size[0], columns = s->row->size[1];
    BENCH_TRY(forward_setup(s));
    BENCH_TRY(forward(s)); /* the mean and rstd that backward reads */
    double unused = (double)(mica_tensor_bytes(&s->t[Y]) + mica_tensor_bytes(&s->t[BETA]));
    BENCH_TRY(BENCH_TENSOR(s, rows, columns));
    BENCH_TRY(BENCH_TENSOR(s, rows, columns));
    BENCH_TRY(BENCH_TENSOR(s, columns));
    BENCH_TRY(BENCH_TENSOR(s, columns));
    s->bytes -= unused;
    return MICA_OK;
}

static mica_status backward(bench_state *s)
{
    mica_norm_grads grads = {.x = &s->t[DX], .gamma = &s->t[DGAMMA], .beta = &s->t[DBETA]};
    mica_norm_saved saved = {.mean = &s->t[MEAN], .rstd = &s->t[RSTD]};
    return mica_layer_norm_backward(s->ctx, &grads, &s->t[DY], &s->t[X], &s->t[GAMMA], &saved);
}

static const bench_case cases[] = {
    {"layer_norm_32x512_fwd", forward_setup, forward, {32, 512}},
    {"layer_norm_32x512_bwd", backward_setup, backward, {32, 512}},
    {"layer_norm_4x512_fwd", forward_setup, forward, {4, 512}},
    {"layer_norm_4x512_bwd", backward_setup, backward, {4, 512}},
    {"layer_norm_4096x512_fwd", forward_setup, forward, {4096, 512}},
    {"layer_norm_4096x512_bwd", backward_setup, backward, {4096, 512}},
};

BENCH_FAMILY(norm, cases);
