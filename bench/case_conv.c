/* Convolutions. size: { batch, in channels, out channels, image height and width (or length), kernel } at stride 1
 * with the padding that keeps the size. */
#include "bench/bench.h"

enum { DST, X, W, BIAS };              /* forward */
enum { DX = 4, DW, DB, DY };           /* backward, besides X and W; DST and BIAS are not used then */
enum { BATCH, IN, OUT, SIDE, KERNEL }; /* size */

static double size_of(const bench_state *s, int which) { return (double)s->row->size[which]; }

/* Two for each multiply-add of each output value. */
static double conv_flops(const bench_state *s, int axes)
{
    double flops = 2.0 * size_of(s, BATCH) * size_of(s, IN) * size_of(s, OUT);
    for (int i = 0; i < axes; i++)
        flops *= size_of(s, SIDE) * size_of(s, KERNEL);
    return flops;
}

/* A tensor of [first, second, length x axes]. */
static mica_status make(bench_state *s, int axes, mica_index first, mica_index second, mica_index length)
{
    return bench_tensor(s, MICA_F32, 2 + axes, (mica_index[]){first, second, length, length});
}

/* What is read, after what is written. */
static mica_status inputs_setup(bench_state *s, int axes)
{
    const mica_index *size = s->row->size;
    BENCH_TRY(make(s, axes, size[BATCH], size[IN], size[SIDE]));
    BENCH_TRY(make(s, axes, size[OUT], size[IN], size[KERNEL]));
    BENCH_TRY(BENCH_TENSOR(s, size[OUT]));
    s->flops = conv_flops(s, axes);
    return MICA_OK;
}

static mica_status forward_setup(bench_state *s, int axes)
{
    const mica_index *size = s->row->size;
    BENCH_TRY(make(s, axes, size[BATCH], size[OUT], size[SIDE]));
    return inputs_setup(s, axes);
}

static mica_status backward_setup(bench_state *s, int axes)
{
    const mica_index *size = s->row->size;
    BENCH_TRY(forward_setup(s, axes));
    double unused = (double)(mica_tensor_bytes(&s->t[DST]) + mica_tensor_bytes(&s->t[BIAS]));
    BENCH_TRY(make(s, axes, size[BATCH], size[IN], size[SIDE]));
    BENCH_TRY(make(s, axes, size[OUT], size[IN], size[KERNEL]));
    BENCH_TRY(BENCH_TENSOR(s, size[OUT]));
    BENCH_TRY(make(s, axes, size[BATCH], size[OUT], size[SIDE]));
    s->bytes -= unused;
    s->flops = 2.0 * conv_flops(s, axes);
    return MICA_OK;
}

/* ---- Two dimensions ---- */

static mica_conv2d_opts same2d(const bench_state *s)
{
    mica_index pad = s->row->size[KERNEL] / 2;
    return (mica_conv2d_opts){.pad = {pad, pad}};
}

static mica_status conv2d_setup(bench_state *s) { return forward_setup(s, 2); }
static mica_status conv2d_backward_setup(bench_state *s) { return backward_setup(s, 2); }

static mica_status conv2d_forward(bench_state *s)
{
    mica_conv2d_opts opts = same2d(s);
    return mica_conv2d(s->ctx, &s->t[DST], &s->t[X], &s->t[W], &s->t[BIAS], &opts);
}

static mica_status conv2d_backward(bench_state *s)
{
    mica_conv2d_opts opts = same2d(s);
    BENCH_TRY(mica_conv2d_backward_input(s->ctx, &s->t[DX], &s->t[DY], &s->t[W], &opts));
    BENCH_TRY(mica_conv2d_backward_weight(s->ctx, &s->t[DW], &s->t[DY], &s->t[X], &opts));
    return mica_conv2d_backward_bias(s->ctx, &s->t[DB], &s->t[DY], &opts);
}

/* ---- One dimension ---- */

static mica_conv1d_opts same1d(const bench_state *s)
{
    return (mica_conv1d_opts){.pad = s->row->size[KERNEL] / 2};
}

static mica_status conv1d_setup(bench_state *s) { return forward_setup(s, 1); }
static mica_status conv1d_backward_setup(bench_state *s) { return backward_setup(s, 1); }

static mica_status conv1d_forward(bench_state *s)
{
    mica_conv1d_opts opts = same1d(s);
    return mica_conv1d(s->ctx, &s->t[DST], &s->t[X], &s->t[W], &s->t[BIAS], &opts);
}

static mica_status conv1d_backward(bench_state *s)
{
    mica_conv1d_opts opts = same1d(s);
    BENCH_TRY(mica_conv1d_backward_input(s->ctx, &s->t[DX], &s->t[DY], &s->t[W], &opts));
    BENCH_TRY(mica_conv1d_backward_weight(s->ctx, &s->t[DW], &s->t[DY], &s->t[X], &opts));
    return mica_conv1d_backward_bias(s->ctx, &s->t[DB], &s->t[DY], &opts);
}

/* ---- Matched: the convolution, then the mean of each channel, which is all that is asked for ---- */

static mica_status add_mean(bench_state *s)
{
    return BENCH_TENSOR(s, s->row->size[BATCH], s->row->size[OUT]);
}

static mica_status matched2d_setup(bench_state *s)
{
    BENCH_TRY(add_mean(s));
    return inputs_setup(s, 2);
}

static mica_status matched1d_setup(bench_state *s)
{
    BENCH_TRY(add_mean(s));
    return inputs_setup(s, 1);
}

static mica_status matched2d_forward(bench_state *s)
{
    mica_conv2d_opts opts = same2d(s);
    return mica_conv2d_mean(s->ctx, &s->t[DST], &s->t[X], &s->t[W], &s->t[BIAS], &opts);
}

static mica_status matched1d_forward(bench_state *s)
{
    mica_conv1d_opts opts = same1d(s);
    return mica_conv1d_mean(s->ctx, &s->t[DST], &s->t[X], &s->t[W], &s->t[BIAS], &opts);
}

/* Backward begins with the gradient of the mean, which makes DY. */
enum { DMEAN = 8 };

static mica_status matched2d_backward_setup(bench_state *s)
{
    BENCH_TRY(conv2d_backward_setup(s));
    return add_mean(s);
}

static mica_status matched1d_backward_setup(bench_state *s)
{
    BENCH_TRY(conv1d_backward_setup(s));
    return add_mean(s);
}

static mica_status matched2d_backward(bench_state *s)
{
    BENCH_TRY(mica_global_avg_pool_backward(s->ctx, &s->t[DY], &s->t[DMEAN]));
    return conv2d_backward(s);
}

static mica_status matched1d_backward(bench_state *s)
{
    BENCH_TRY(mica_global_avg_pool_backward(s->ctx, &s->t[DY], &s->t[DMEAN]));
    return conv1d_backward(s);
}

/* ---- One dimension as a column: [N, C, L, 1] and taps [K, 1] ---- */

static mica_status column_setup(bench_state *s)
{
    BENCH_TRY(conv1d_setup(s));
    for (int i = DST; i <= W; i++)
        s->t[i] = mica_4d(s->t[i].data, s->t[i].dim[0], s->t[i].dim[1], s->t[i].dim[2], 1);
    return MICA_OK;
}

static mica_status column_forward(bench_state *s)
{
    mica_conv2d_opts opts = {.pad = {s->row->size[KERNEL] / 2, 0}};
    return mica_conv2d(s->ctx, &s->t[DST], &s->t[X], &s->t[W], &s->t[BIAS], &opts);
}

static const bench_case cases[] = {
    {"conv2d_8x64x32x32_to_128_3x3_fwd", conv2d_setup, conv2d_forward, {8, 64, 128, 32, 3}},
    {"conv2d_8x64x32x32_to_128_3x3_bwd", conv2d_backward_setup, conv2d_backward, {8, 64, 128, 32, 3}},
    {"conv2d_matched_3x3_fwd", matched2d_setup, matched2d_forward, {1, 1, 32, 32, 3}},
    {"conv2d_matched_3x3_bwd", matched2d_backward_setup, matched2d_backward, {1, 1, 32, 32, 3}},
    {"conv2d_matched_5x5_fwd", matched2d_setup, matched2d_forward, {1, 1, 32, 32, 5}},
    {"conv2d_matched_5x5_bwd", matched2d_backward_setup, matched2d_backward, {1, 1, 32, 32, 5}},
    {"conv2d_matched_7x7_fwd", matched2d_setup, matched2d_forward, {1, 1, 32, 32, 7}},
    {"conv2d_matched_7x7_bwd", matched2d_backward_setup, matched2d_backward, {1, 1, 32, 32, 7}},
    {"conv1d_8x64x256_to_128_3_fwd", conv1d_setup, conv1d_forward, {8, 64, 128, 256, 3}},
    {"conv1d_8x64x256_to_128_3_bwd", conv1d_backward_setup, conv1d_backward, {8, 64, 128, 256, 3}},
    {"conv1d_40x128x4_to_128_3_fwd", conv1d_setup, conv1d_forward, {40, 128, 128, 4, 3}},
    {"conv2d_1x256x512x1_to_512_5x1_fwd", column_setup, column_forward, {1, 256, 512, 512, 5}},
    {"conv1d_matched_3_fwd", matched1d_setup, matched1d_forward, {1, 1, 32, 1024, 3}},
    {"conv1d_matched_3_bwd", matched1d_backward_setup, matched1d_backward, {1, 1, 32, 1024, 3}},
    {"conv1d_matched_5_fwd", matched1d_setup, matched1d_forward, {1, 1, 32, 1024, 5}},
    {"conv1d_matched_5_bwd", matched1d_backward_setup, matched1d_backward, {1, 1, 32, 1024, 5}},
    {"conv1d_matched_7_fwd", matched1d_setup, matched1d_forward, {1, 1, 32, 1024, 7}},
    {"conv1d_matched_7_bwd", matched1d_backward_setup, matched1d_backward, {1, 1, 32, 1024, 7}},
};

BENCH_FAMILY(conv, cases);
