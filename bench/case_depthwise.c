/* Depthwise convolutions, with the padding that keeps the size at stride 1.
 * size: { batch, channels, height, width, kernel, stride } */
#include "bench/bench.h"

enum { DST, X, W, BIAS };         /* forward */
enum { DY, IMAGE, TAPS, DX, DW }; /* backward */
enum { BATCH, CHANNELS, HEIGHT, WIDTH, KERNEL, STRIDE };

static mica_conv2d_opts options(const bench_state *s)
{
    const mica_index *size = s->row->size;
    mica_index pad = size[KERNEL] / 2;
    return (mica_conv2d_opts){
        .stride = {size[STRIDE], size[STRIDE]}, .pad = {pad, pad}, .groups = size[CHANNELS]};
}

static mica_status setup(bench_state *s, bool backward)
{
    const mica_index *size = s->row->size;
    mica_index n = size[BATCH], c = size[CHANNELS], kernel = size[KERNEL];
    mica_index height = (size[HEIGHT] - 1) / size[STRIDE] + 1, width = (size[WIDTH] - 1) / size[STRIDE] + 1;
    BENCH_TRY(BENCH_TENSOR(s, n, c, height, width));
    BENCH_TRY(BENCH_TENSOR(s, n, c, size[HEIGHT], size[WIDTH]));
    BENCH_TRY(BENCH_TENSOR(s, c, 1, kernel, kernel));
    s->flops = (backward ? 4.0 : 2.0) * (double)(n * c * height * width * kernel * kernel);
    if (!backward)
        return BENCH_TENSOR(s, c);
    BENCH_TRY(BENCH_TENSOR(s, n, c, size[HEIGHT], size[WIDTH]));
    return BENCH_TENSOR(s, c, 1, kernel, kernel);
}

static mica_status forward_setup(bench_state *s) { return setup(s, false); }
static mica_status backward_setup(bench_state *s) { return setup(s, true); }

static mica_status forward(bench_state *s)
{
    mica_conv2d_opts opts = options(s);
    opts.activation = MICA_RELU6;
    return mica_conv2d(s->ctx, &s->t[DST], &s->t[X], &s->t[W], &s->t[BIAS], &opts);
}

static mica_status backward(bench_state *s)
{
    mica_conv2d_opts opts = options(s);
    BENCH_TRY(mica_conv2d_backward_input(s->ctx, &s->t[DX], &s->t[DY], &s->t[TAPS], &opts));
    return mica_conv2d_backward_weight(s->ctx, &s->t[DW], &s->t[DY], &s->t[IMAGE], &opts);
}

/* Forward with a bias and relu6; backward by the input and by the weights. */
#define ROWS(name, ...)                                                     \
    {"depthwise_" name "_fwd", forward_setup, forward, {__VA_ARGS__}},      \
    {                                                                       \
        "depthwise_" name "_bwd", backward_setup, backward, { __VA_ARGS__ } \
    }

static const bench_case cases[] = {
    ROWS("32x112x112_3x3", 1, 32, 112, 112, 3, 1),    ROWS("96x112x112_3x3_by_2", 1, 96, 112, 112, 3, 2),
    ROWS("144x56x56_3x3", 1, 144, 56, 56, 3, 1),      ROWS("192x28x28_3x3", 1, 192, 28, 28, 3, 1),
    ROWS("384x14x14_3x3", 1, 384, 14, 14, 3, 1),      ROWS("576x14x14_3x3", 1, 576, 14, 14, 3, 1),
    ROWS("576x14x14_3x3_by_2", 1, 576, 14, 14, 3, 2), ROWS("8x576x6x6_3x3", 8, 576, 6, 6, 3, 1),
    ROWS("8x576x6x6_3x3_by_2", 8, 576, 6, 6, 3, 2),   ROWS("960x7x7_3x3", 1, 960, 7, 7, 3, 1),
    ROWS("8x960x3x3_3x3", 8, 960, 3, 3, 3, 1),        ROWS("64x25x5_3x3", 1, 64, 25, 5, 3, 1),
    ROWS("240x28x28_5x5", 1, 240, 28, 28, 5, 1),
};

BENCH_FAMILY(depthwise, cases);
