/* Convolution: making an image, narrow or wide.
 *
 * The narrow image is one product (product.h). The wide image is one for each residue of its positions
 * by the stride ("phase"): pixels of one phase meet the same taps, and their patches are again plain ones,
 * read backwards, so that no multiplication by a zero between pixels is ever made.
 *
 *   stride 2, 3 taps, no padding:   wide position   0 1 2 3 4 5 6 ...
 *                                   phase           0 1 0 1 0 1 0       phase 0 meets taps 0 and 2, phase 1 tap 1
 *
 *   scratch:  [ bias, if it is strided | the largest product's ]
 */
#include "ops/conv/depthwise.h"
#include "ops/conv/product.h"

#include "base/size.h"

/* ---- Bias ---- */

size_t mica_conv_bias_bytes(const mica_conv *c, size_t channels)
{
    return c->biased && c->bias_stride != 1 ? mica_align_up(channels * sizeof(float)) : 0;
}

const float *mica_conv_load_bias(const mica_conv *c, size_t channels, float *scratch)
{
    if (mica_conv_bias_bytes(c, channels) == 0)
        return c->bias;
    for (size_t i = 0; i < channels; i++)
        scratch[i] = c->bias[(ptrdiff_t)i * c->bias_stride];
    return scratch;
}

/* ---- The narrow image ---- */

static mica_conv_axis narrow_axis(const mica_conv_dim *d)
{
    return (mica_conv_axis){.image = d->wide,
                            .count = d->narrow,
                            .taps = d->taps,
                            .scale = d->stride,
                            .base = -d->pad,
                            .step = d->dilation};
}

mica_conv_patches mica_conv_patches_of(const mica_conv *c, const mica_kernels *kernels)
{
    return (mica_conv_patches){.data = c->wide.data,
                               .image_stride = c->wide.image_stride,
                               .channel_stride = c->wide.channel_stride,
                               .row_stride = c->wide.row_stride,
                               .column_stride = c->wide.column_stride,
                               .rows = narrow_axis(&c->rows),
                               .columns = narrow_axis(&c->columns),
                               .gemm = MICA_FAMILY(kernels, gemm)};
}

mica_conv_product mica_conv_narrow_product(const mica_context *ctx, const mica_conv *c)
{
    return (mica_conv_product){.images = c->batch,
                               .groups = c->groups,
                               .m = c->narrow_channels,
                               .channels = c->wide_channels,
                               .out = c->narrow,
                               .in = mica_conv_patches_of(c, ctx->kernels),
                               .w = {c->weight, c->weight_stride,
                                     c->weight_stride * (ptrdiff_t)c->narrow_channels, c->rows.taps,
                                     c->columns.taps, MICA_FAMILY(ctx->kernels, gemm)},
                               .narrow = true,
                               .prepared = c->prepared,
                               .wanted = c->wanted,
                               .accumulate = c->accumulate,
                               .finish = c->finish,
                               .slope = c->slope};
}

mica_status mica_conv_narrow(mica_context *ctx, const mica_conv *c)
{
    mica_conv_product p = mica_conv_narrow_product(ctx, c);
    mica_conv_product_plan(ctx, &p);
    size_t bias = mica_conv_bias_bytes(c, p.groups * p.m);
    void *scratch;
    MICA_START(ctx, c->op, bias + mica_conv_product_bytes(ctx, &p), &scratch);
    p.bias = mica_conv_load_bias(c, p.groups * p.m, scratch);
    p.scratch = scratch != NULL ? (char *)scratch + bias : NULL;
    mica_conv_product_run(ctx, &p);
    return MICA_OK;
}

/* ---- The wide image ---- */

static ptrdiff_t common_divisor(ptrdiff_t a, ptrdiff_t b)
{
    while (b != 0) {
        ptrdiff_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Wide positions f, f + stride, ...: tap t meets narrow position (f + i stride + pad - t dilation) / stride
 * where that is whole, which it is for every (stride / gcd)th tap from the first on. */
static mica_conv_axis phase_axis(const mica_conv_dim *d, size_t f, size_t *first_tap, size_t *tap_step)
{
    size_t step = (size_t)(d->stride / common_divisor(d->stride, d->dilation)), t = 0;
    ptrdiff_t from = (ptrdiff_t)f + d->pad;
    while (t < mica_least(step, d->taps) && (from - (ptrdiff_t)t * d->dilation) % d->stride != 0)
        t++;
    bool any = t < mica_least(step, d->taps);
    *first_tap = any ? t : 0;
    *tap_step = step;
    return (mica_conv_axis){.image = d->narrow,
                            .count = (d->wide - f + (size_t)d->stride - 1) / (size_t)d->stride,
                            .taps = any ? (d->taps - 1 - t) / step + 1 : 0,
                            .scale = 1,
                            .base = any ? (from - (ptrdiff_t)t * d->dilation) / d->stride : 0,
                            .step = -((ptrdiff_t)step * d->dilation / d->stride)};
}

static mica_conv_product wide_phase(const mica_context *ctx, const mica_conv *c, size_t row, size_t column)
{
    size_t first_row, row_step, first_column, column_step;
    mica_conv_axis rows = phase_axis(&c->rows, row, &first_row, &row_step);
    mica_conv_axis columns = phase_axis(&c->columns, column, &first_column, &column_step);
    mica_conv_taps taps = {.data = c->weight.data,
                           .channels = c->narrow_channels,
                           .channel_stride = c->weight_stride,
                           .row_stride = c->weight.row_stride * (ptrdiff_t)row_step,
                           .column_stride = c->weight.column_stride * (ptrdiff_t)column_step};
    mica_conv_planes out = c->wide;
    out.row_stride *= c->rows.stride;
    out.column_stride *= c->columns.stride;
    if (!ctx->measuring) {
        taps.data += (ptrdiff_t)first_row * c->weight.row_stride +
                     (ptrdiff_t)first_column * c->weight.column_stride;
        out.data += (ptrdiff_t)row * c->wide.row_stride + (ptrdiff_t)column * c->wide.column_stride;
    }
    mica_conv_product p = {.images = c->batch,
                           .groups = c->groups,
                           .m = c->wide_channels,
                           .channels = c->narrow_channels,
                           .out = out,
                           .in = {.data = c->narrow.data,
                                  .image_stride = c->narrow.image_stride,
                                  .channel_stride = c->narrow.channel_stride,
                                  .row_stride = c->narrow.row_stride,
                                  .column_stride = c->narrow.column_stride,
                                  .rows = rows,
                                  .columns = columns,
                                  .gemm = MICA_FAMILY(ctx->kernels, gemm)},
                           .w = {taps, c->weight.channel_stride,
                                 c->weight_stride * (ptrdiff_t)c->narrow_channels, rows.taps, columns.taps,
                                 MICA_FAMILY(ctx->kernels, gemm)},
                           .accumulate = c->accumulate,
                           .finish = c->finish,
                           .slope = c->slope};
    mica_conv_product_plan(ctx, &p);
    return p;
}

#if !defined(MICA_SMALL)
/* All phases of a depthwise one at a time, while what they read is in the cache. */
static bool wide_by_lanes(mica_context *ctx, const mica_conv *c, const float *bias)
{
    mica_conv_lanes l;
    size_t rows = (size_t)c->rows.stride, columns = (size_t)c->columns.stride;
    size_t lanes = MICA_FAMILY(ctx->kernels, lanes)->lanes;
    if (c->narrow_channels != 1 || c->wide_channels != 1 || rows * columns == 1 || lanes == 1 ||
        4 * c->groups < lanes || rows * columns > MICA_LANES_PHASES)
        return false;
    for (size_t phase = 0; phase < rows * columns; phase++) {
        size_t row = phase / columns, column = phase % columns;
        if (row >= c->rows.wide || column >= c->columns.wide)
            continue;
        mica_conv_product p = wide_phase(ctx, c, row, column);
        if (phase == 0 &&
            !mica_conv_lanes_begin(&l, &p.in, &c->wide, c->batch, c->rows.wide, c->columns.wide))
            return false;
        if (!mica_conv_lanes_add(&l, &p.in, row, column, &p.w.taps, p.w.taps.data - c->weight.data))
            return false;
    }
    l.plan.spread[0] = rows;
    l.plan.spread[1] = columns;
    l.plan.tap_channel = c->weight_stride;
    l.plan.accumulate = c->accumulate;
    l.plan.finish = c->finish;
    l.plan.slope = c->slope;
    if (!mica_conv_lanes_end(&l))
        return false;
    mica_conv_lanes_image image = {ctx->kernels,   c->wide.data, c->narrow.data,
                                   c->weight.data, bias,         c->groups};
    mica_conv_lanes_run(ctx, &l.plan, &image);
    return true;
}
#endif

mica_status mica_conv_wide(mica_context *ctx, const mica_conv *c)
{
    size_t rows = mica_least((size_t)c->rows.stride, c->rows.wide);
    size_t columns = mica_least((size_t)c->columns.stride, c->columns.wide);
    size_t channels = c->groups * c->wide_channels, bias = mica_conv_bias_bytes(c, channels), bytes = 0;
    for (size_t phase = 0; phase < rows * columns; phase++) {
        mica_conv_product p = wide_phase(ctx, c, phase / columns, phase % columns);
        bytes = mica_most(bytes, mica_conv_product_bytes(ctx, &p));
    }
    void *scratch;
    MICA_START(ctx, c->op, bias + bytes, &scratch);
    const float *bias_values = mica_conv_load_bias(c, channels, scratch);
#if !defined(MICA_SMALL)
    if (wide_by_lanes(ctx, c, bias_values))
        return MICA_OK;
#endif
    for (size_t phase = 0; phase < rows * columns; phase++) {
        mica_conv_product p = wide_phase(ctx, c, phase / columns, phase % columns);
        p.bias = bias_values;
        p.scratch = scratch != NULL ? (char *)scratch + bias : NULL;
        mica_conv_product_run(ctx, &p);
    }
    return MICA_OK;
}
