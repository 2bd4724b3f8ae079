/* Matrix products, and the dense layer that they make. size: { M, N, K } */
#include "bench/bench.h"

static double product_flops(const bench_state *s)
{
    const mica_index *size = s->row->size;
    return 2.0 * (double)size[0] * (double)size[1] * (double)size[2];
}

/* ---- C [M, N] = A [M, K] B [K, N] ---- */

static mica_status product_setup(bench_state *s)
{
    mica_index m = s->row->size[0], n = s->row->size[1], k = s->row->size[2];
    BENCH_TRY(BENCH_TENSOR(s, m, n));
    BENCH_TRY(BENCH_TENSOR(s, m, k));
    BENCH_TRY(BENCH_TENSOR(s, k, n));
    s->flops = product_flops(s);
    return MICA_OK;
}

static mica_status product_run(bench_state *s)
{
    return mica_matmul(s->ctx, &s->t[0], &s->t[1], &s->t[2], NULL);
}

/* ---- Dense: y [M, N] = x [M, K] w [K, N] + b [N] ---- */

enum { Y, X, W, B, DY, DX, DW, DB };

/* As every peer, in the layout that suits the row: a batch likes the weights as the dense layer has them, column by
 * column; a single sample row by row. */
static mica_status lay_weights(bench_state *s, int weights)
{
    return s->row->size[0] > 1 ? bench_turn(s, weights) : MICA_OK;
}

static mica_status dense_forward_setup(bench_state *s)
{
    BENCH_TRY(product_setup(s));
    BENCH_TRY(lay_weights(s, W));
    return BENCH_TENSOR(s, s->row->size[1]);
}

static mica_status dense_forward(bench_state *s)
{
    return mica_matmul(s->ctx, &s->t[Y], &s->t[X], &s->t[W], &(mica_matmul_opts){.bias = &s->t[B]});
}

static mica_status dense_backward_setup(bench_state *s)
{
    BENCH_TRY(dense_forward_setup(s));
    double unused = (double)(mica_tensor_bytes(&s->t[Y]) + mica_tensor_bytes(&s->t[B]));
    BENCH_TRY(BENCH_TENSOR(s, s->row->size[0], s->row->size[1]));
    BENCH_TRY(BENCH_TENSOR(s, s->row->size[0], s->row->size[2]));
    BENCH_TRY(BENCH_TENSOR(s, s->row->size[2], s->row->size[1]));
    BENCH_TRY(lay_weights(s, DW));
    BENCH_TRY(BENCH_TENSOR(s, s->row->size[1]));
    s->bytes -= unused;
    s->flops = 2.0 * product_flops(s);
    return MICA_OK;
}

/* dx = dy wT, dw = xT dy, db = the sum of dy's rows */
static mica_status dense_backward(bench_state *s)
{
    mica_matmul_opts by_w = {.transpose_b = true}, by_x = {.transpose_a = true};
    BENCH_TRY(mica_matmul(s->ctx, &s->t[DX], &s->t[DY], &s->t[W], &by_w));
    BENCH_TRY(mica_matmul(s->ctx, &s->t[DW], &s->t[X], &s->t[DY], &by_x));
    return mica_sum(s->ctx, &s->t[DB], &s->t[DY], &(mica_reduce_opts){.axes = {0}, .count = 1});
}

static const bench_case cases[] = {
    {"sgemm_64", product_setup, product_run, {64, 64, 64}},
    {"sgemm_128", product_setup, product_run, {128, 128, 128}},
    {"sgemm_256", product_setup, product_run, {256, 256, 256}},
    {"sgemm_512", product_setup, product_run, {512, 512, 512}},
    {"sgemm_1024", product_setup, product_run, {1024, 1024, 1024}},
    {"sgemm_2048", product_setup, product_run, {2048, 2048, 2048}},
    {"sgemm_512x2048x512", product_setup, product_run, {512, 512, 2048}},
    {"dense_32x256x512_fwd", dense_forward_setup, dense_forward, {32, 512, 256}},
    {"dense_32x256x512_bwd", dense_backward_setup, dense_backward, {32, 512, 256}},
    {"dense_1x1024x32_fwd", dense_forward_setup, dense_forward, {1, 32, 1024}},
    {"dense_1x1024x32_bwd", dense_backward_setup, dense_backward, {1, 32, 1024}},
};

BENCH_FAMILY(linalg, cases);
