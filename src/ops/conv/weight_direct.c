/* Convolution: the gradient by weights of very few narrow channels in a group, one plane at a time. */
#include "base/parallel.h"
#include "ops/conv/weight.h"

float *mica_conv_tap_place(const mica_conv *c, size_t channel, size_t tap)
{
    size_t u = tap % c->columns.taps, t = tap / c->columns.taps % c->rows.taps;
    size_t wide = tap / c->columns.taps / c->rows.taps;
    return c->weight.data + (ptrdiff_t)channel * c->weight_stride +
           (ptrdiff_t)wide * c->weight.channel_stride + (ptrdiff_t)t * c->weight.row_stride +
           (ptrdiff_t)u * c->weight.column_stride;
}

static bool fits(const mica_context *ctx, const mica_conv *c)
{
    (void)ctx;
    return c->narrow_channels <= MICA_CONV_DIRECT_CHANNELS;
}

static size_t scratch(const mica_context *ctx, const mica_conv *c, mica_conv_extent *up_to)
{
    if (fits(ctx, c))
        mica_conv_extent_clear(up_to);
    return 0;
}

typedef struct job {
    const mica_taps_kernels *kernels;
    const mica_conv *conv;
    mica_conv_patches wide;
} job;

/* The taps between one narrow and one wide channel. */
static void direct_block(void *work, size_t block, int thread)
{
    (void)thread;
    const job *j = work;
    const mica_conv *c = j->conv;
    size_t wide = block % c->wide_channels, narrow = block / c->wide_channels,
           group = narrow / c->narrow_channels;
    mica_conv_patches in = j->wide;
    in.data += (ptrdiff_t)(group * c->wide_channels + wide) * in.channel_stride;
    mica_conv_planes dy = c->narrow;
    dy.data += (ptrdiff_t)narrow * dy.channel_stride;
    mica_conv_taps taps = c->weight;
    taps.data += (ptrdiff_t)narrow * c->weight_stride + (ptrdiff_t)wide * taps.channel_stride;
    MICA_KERNEL_OF(j->kernels, taps, gradient)(&taps, &in, &dy, c->batch, c->accumulate);
}

static void run(mica_context *ctx, const mica_conv *c, void *scratch)
{
    (void)scratch;
    job j = {.kernels = ctx->kernels->taps, .conv = c, .wide = mica_conv_patches_of(c, ctx->kernels)};
    mica_parallel(ctx, c->groups * c->narrow_channels * c->wide_channels, direct_block, &j);
}

const mica_conv_weight_path mica_conv_weight_direct_path = {"direct", fits, NULL, scratch, run};
