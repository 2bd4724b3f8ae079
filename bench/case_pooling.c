/* Pooling by 2 x 2, stride 2. size: { batch, channels, height and width } */
#include "bench/bench.h"

enum { Y, X, INDICES }; /* forward: Y from X. backward: X, its gradient, from Y */

static const mica_pooling_opts halved = {.kernel = {2, 2}};

static mica_status average_setup(bench_state *s)
{
    mica_index n = s->row->size[0], c = s->row->size[1], side = s->row->size[2];
    BENCH_TRY(BENCH_TENSOR(s, n, c, side / 2, side / 2));
    return BENCH_TENSOR(s, n, c, side, side);
}

static mica_status average_forward(bench_state *s)
{
    return mica_avg_pool2d(s->ctx, &s->t[Y], &s->t[X], &halved);
}

static mica_status average_backward(bench_state *s)
{
    return mica_avg_pool2d_backward(s->ctx, &s->t[X], &s->t[Y], &halved);
}

static mica_status max_forward(bench_state *s)
{
    return mica_max_pool2d(s->ctx, &s->t[Y], &s->t[INDICES], &s->t[X], &halved);
}

static mica_status max_setup(bench_state *s)
{
    BENCH_TRY(average_setup(s));
    return bench_tensor(s, MICA_I32, 4, s->t[Y].dim);
}

static mica_status max_backward_setup(bench_state *s)
{
    BENCH_TRY(max_setup(s));
    return max_forward(s); /* the indices that backward reads */
}

static mica_status max_backward(bench_state *s)
{
    return mica_max_pool2d_backward(s->ctx, &s->t[X], &s->t[Y], &s->t[INDICES]);
}

static const bench_case cases[] = {
    {"max_pool2d_4x32x16x16_fwd", max_setup, max_forward, {4, 32, 16}},
    {"max_pool2d_4x32x16x16_bwd", max_backward_setup, max_backward, {4, 32, 16}},
    {"max_pool2d_8x64x32x32_fwd", max_setup, max_forward, {8, 64, 32}},
    {"max_pool2d_8x64x32x32_bwd", max_backward_setup, max_backward, {8, 64, 32}},
    {"avg_pool2d_4x32x16x16_fwd", average_setup, average_forward, {4, 32, 16}},
    {"avg_pool2d_4x32x16x16_bwd", average_setup, average_backward, {4, 32, 16}},
    {"avg_pool2d_8x64x32x32_fwd", average_setup, average_forward, {8, 64, 32}},
    {"avg_pool2d_8x64x32x32_bwd", average_setup, average_backward, {8, 64, 32}},
};

BENCH_FAMILY(pooling, cases);
