/* Layers of MobileNetV2 and ResNet-18 as inference runs them, in planes and channels last: conv2d with a bias and
 * relu6; channels last with weights that are prepared.
 * size: { batch, in channels, out channels, side, kernel, stride, groups } */
#include "bench/bench.h"

#include <stdlib.h>

#include "ops/conv/prepare.h"

enum { DST, X, W, BIAS, PREPARED };
enum { BATCH, IN, OUT, SIDE, KERNEL, STRIDE, GROUPS };

static mica_conv2d_opts options(const bench_state *s)
{
    const mica_index *size = s->row->size;
    mica_index pad = size[KERNEL] / 2;
    return (mica_conv2d_opts){.stride = {size[STRIDE], size[STRIDE]},
                              .pad = {pad, pad},
                              .groups = size[GROUPS],
                              .activation = MICA_RELU6};
}

static mica_status setup(bench_state *s)
{
    const mica_index *size = s->row->size;
    mica_index side = (size[SIDE] - 1) / size[STRIDE] + 1, in = size[IN] / size[GROUPS], k = size[KERNEL];
    BENCH_TRY(BENCH_TENSOR(s, size[BATCH], size[OUT], side, side));
    BENCH_TRY(BENCH_TENSOR(s, size[BATCH], size[IN], size[SIDE], size[SIDE]));
    BENCH_TRY(BENCH_TENSOR(s, size[OUT], in, k, k));
    BENCH_TRY(BENCH_TENSOR(s, size[OUT]));
    s->flops = 2.0 * (double)(size[BATCH] * size[OUT] * side * side) * (double)(in * k * k);
    return MICA_OK;
}

static void lay_last(mica_tensor *t)
{
    const mica_index *d = t->dim;
    mica_index strides[4] = {d[1] * d[2] * d[3], 1, d[1] * d[3], d[1]};
    for (int i = 0; i < 4; i++)
        t->stride[i] = strides[i];
}

/* The image of a net comes in planes. */
static mica_status last_setup(bench_state *s)
{
    BENCH_TRY(setup(s));
    lay_last(&s->t[DST]);
    if (s->row->size[IN] > 3)
        lay_last(&s->t[X]);
    mica_conv2d_opts opts = options(s);
    mica_conv_tensors t = {&s->t[DST], &s->t[X], &s->t[W], NULL};
    size_t floats = 0;
    int *row = s->scratch = malloc(sizeof *row);
    if (row == NULL)
        return MICA_ERR_MEMORY;
    BENCH_TRY(mica_conv_prepare_choose(s->ctx, row, &floats, &t, &opts));
    double bytes = s->bytes;
    BENCH_TRY(BENCH_TENSOR(s, (mica_index)floats));
    s->bytes = bytes; /* instead of the weights */
    return mica_conv_prepare(s->ctx, &s->t[PREPARED], *row, &t, &opts);
}

static mica_status forward(bench_state *s)
{
    mica_conv2d_opts opts = options(s);
    return mica_conv2d(s->ctx, &s->t[DST], &s->t[X], &s->t[W], &s->t[BIAS], &opts);
}

static mica_status last_forward(bench_state *s)
{
    mica_conv2d_opts opts = options(s);
    mica_conv_tensors t = {&s->t[DST], &s->t[X], &s->t[W], &s->t[BIAS]};
    return mica_conv_prepared(s->ctx, &t, &s->t[PREPARED], *(const int *)s->scratch, &opts);
}

#define ROWS(name, ...)                                                   \
    {"layout_" name "_planar", setup, forward, {__VA_ARGS__}},            \
    {                                                                     \
        "layout_" name "_last", last_setup, last_forward, { __VA_ARGS__ } \
    }

static const bench_case cases[] = {
    ROWS("3x224x224_to_32_3x3_by_2", 1, 3, 32, 224, 3, 2, 1),
    ROWS("32x112x112_depthwise", 1, 32, 32, 112, 3, 1, 32),
    ROWS("32x112x112_to_16", 1, 32, 16, 112, 1, 1, 1),
    ROWS("16x112x112_to_96", 1, 16, 96, 112, 1, 1, 1),
    ROWS("96x112x112_depthwise_by_2", 1, 96, 96, 112, 3, 2, 96),
    ROWS("96x56x56_to_24", 1, 96, 24, 56, 1, 1, 1),
    ROWS("24x56x56_to_144", 1, 24, 144, 56, 1, 1, 1),
    ROWS("144x56x56_depthwise", 1, 144, 144, 56, 3, 1, 144),
    ROWS("32x28x28_to_192", 1, 32, 192, 28, 1, 1, 1),
    ROWS("192x28x28_depthwise", 1, 192, 192, 28, 3, 1, 192),
    ROWS("64x14x14_to_384", 1, 64, 384, 14, 1, 1, 1),
    ROWS("384x14x14_depthwise", 1, 384, 384, 14, 3, 1, 384),
    ROWS("384x14x14_to_64", 1, 384, 64, 14, 1, 1, 1),
    ROWS("576x14x14_depthwise_by_2", 1, 576, 576, 14, 3, 2, 576),
    ROWS("160x7x7_to_960", 1, 160, 960, 7, 1, 1, 1),
    ROWS("960x7x7_depthwise", 1, 960, 960, 7, 3, 1, 960),
    ROWS("960x7x7_to_160", 1, 960, 160, 7, 1, 1, 1),
    ROWS("8x160x7x7_to_960", 8, 160, 960, 7, 1, 1, 1),
    ROWS("64x56x56_to_64_3x3", 1, 64, 64, 56, 3, 1, 1),
    ROWS("64x56x56_to_128_3x3_by_2", 1, 64, 128, 56, 3, 2, 1),
    ROWS("256x14x14_to_512_3x3_by_2", 1, 256, 512, 14, 3, 2, 1),
};

BENCH_FAMILY(layout, cases);
