/* A convolution's image by products of pixels with weights that were packed before: product.h, prepare.h.
 *
 * Pixels are the rows of a product and channels its columns, the other way round than without: the panels of weights
 * then fill whole vectors, and a few pixels are no waste. The same sums, in the same order. */
#include "base/parallel.h"
#include "ops/conv/cost.h"
#include "ops/conv/operands.h"
#include "ops/conv/prepare.h"

#if !defined(MICA_SMALL)

size_t mica_conv_packed_floats(const mica_context *ctx, const mica_conv_product *p)
{
    return p->groups * mica_gemm_packed_floats(ctx, p->m, p->k, false);
}

void mica_conv_packed_prepare(mica_context *ctx, const mica_conv_product *p, float *to)
{
    size_t floats = mica_gemm_packed_floats(ctx, p->m, p->k, false);
    for (size_t group = 0; group < p->groups; group++) {
        mica_conv_weights w = p->w;
        mica_conv_join_taps(&w);
        w.taps.data += (ptrdiff_t)group * w.group_stride;
        mica_gemm_operand from = mica_conv_weights_operand(&w);
        mica_gemm_pack(ctx, to + group * floats, &from, p->m, p->k, false);
    }
}

/* ---- The plan ---- */

typedef size_t gemm_bytes_fn(const mica_context *ctx, const mica_gemm *g);

/* The most for products of up to so many pixels: at some sizes these lie at one stride, at others they do not. */
static size_t most_bytes(const mica_context *ctx, const mica_conv_product *p, size_t pixels,
                         gemm_bytes_fn *bytes)
{
    mica_gemm g = {.m = pixels,
                   .n = p->m,
                   .k = p->k,
                   .a = mica_conv_packed_operand(&p->in, p->kernels->conv),
                   .b = {.packed = p->prepared},
                   .row_stride = 1,
                   .column_stride = p->out.channel_stride};
    size_t most = bytes(ctx, &g);
    if (mica_conv_single_pixels(&p->in)) {
        g.a = mica_conv_plain_operand(&p->in);
        most = mica_most(most, bytes(ctx, &g));
    }
    return most;
}

static bool fits(const mica_context *ctx, mica_conv_product *p)
{
    ptrdiff_t stride;
    if (p->prepared == NULL || !mica_conv_pixel_stride(&stride, p->in.rows.count, p->in.columns.count,
                                                       p->out.row_stride, p->out.column_stride))
        return false;
    p->thread_bytes = most_bytes(ctx, p, p->pixels, mica_gemm_each_scratch);
    return true;
}

static size_t scratch(const mica_context *ctx, const mica_conv_product *p, mica_conv_extent *up_to)
{
    size_t n = mica_conv_extent_image(up_to), small = MICA_GEMM_SMALL / mica_most(1, p->m * p->k);
    size_t shared = most_bytes(ctx, p, n, mica_gemm_scratch);
    if (up_to->images * p->groups == 1)
        return shared;
    size_t each = most_bytes(ctx, p, mica_least(n, small), mica_gemm_each_scratch);
    return mica_most(shared, each * mica_conv_parts(ctx, up_to->images * p->groups));
}

static size_t taken(const mica_context *ctx, const mica_conv_product *p)
{
    size_t units = p->images * p->groups;
    return mica_gemm_many(units, p->m, p->pixels, p->k) ? p->thread_bytes * mica_conv_parts(ctx, units)
                                                        : most_bytes(ctx, p, p->pixels, mica_gemm_scratch);
}

static double cost(const mica_context *ctx, const mica_conv_product *p)
{
    const mica_conv_costs *all = mica_conv_costs_of(ctx->kernels);
    const mica_conv_packed_costs *c = &all->packed;
    double products = (double)(p->images * p->groups), weights = (double)(p->m * p->k);
    size_t rows = mica_round_up(p->pixels, MICA_FAMILY(ctx->kernels, gemm)->tile_rows / 2);
    size_t runs = mica_div_up(p->k, MICA_GEMM_RUN);
    double patches = (double)(p->k * p->pixels);
    return products * (weights * ((double)rows * c->sum + c->read) + patches * c->patch +
                       patches / (double)p->in.columns.count * c->patch_run +
                       (double)(p->pixels * p->m * runs) * c->out);
}

/* ---- The run ---- */

/* One image and group, with all threads (ctx) or on this one (NULL). */
static void run_product(mica_context *ctx, const mica_conv_product *p, size_t unit, void *scratch)
{
    size_t image = unit / p->groups, group = unit % p->groups;
    mica_conv_weights w = p->w;
    w.taps.data += (ptrdiff_t)group * w.group_stride;
    mica_conv_patches in = p->in;
    in.data += (ptrdiff_t)image * in.image_stride + (ptrdiff_t)(group * p->channels) * in.channel_stride;
    mica_gemm g = {.m = p->pixels,
                   .n = p->m,
                   .k = p->k,
                   .a = mica_conv_plain_pixels(&in) ? mica_conv_plain_operand(&in)
                                                    : mica_conv_packed_operand(&in, p->kernels->conv),
                   .b = mica_conv_weights_operand(&w),
                   .c = p->out.data + (ptrdiff_t)image * p->out.image_stride +
                        (ptrdiff_t)(group * p->m) * p->out.channel_stride,
                   .column_stride = p->out.channel_stride,
                   .alpha = 1.0f,
                   .beta = p->accumulate ? 1.0f : 0.0f,
                   .column_bias = p->bias != NULL ? p->bias + group * p->m : NULL};
    g.b.packed = p->prepared + group * mica_gemm_packed_floats(p->ctx, p->m, p->k, false);
    mica_conv_pixel_stride(&g.row_stride, in.rows.count, in.columns.count, p->out.row_stride,
                           p->out.column_stride);
    if (ctx != NULL)
        mica_gemm_run(ctx, &g, scratch);
    else
        mica_gemm_run_serial(p->ctx, &g, scratch);
}

static void product_block(void *work, size_t block, int thread)
{
    const mica_conv_product *p = work;
    size_t part = mica_conv_part(p->ctx, p->images * p->groups, block, thread);
    run_product(NULL, p, block, p->scratch + part * p->thread_bytes);
}

static void run(mica_context *ctx, mica_conv_product *p)
{
    size_t units = p->images * p->groups;
    mica_conv_join_taps(&p->w);
    if (mica_gemm_many(units, p->m, p->pixels, p->k)) {
        mica_parallel(ctx, units, product_block, p);
        return;
    }
    for (size_t unit = 0; unit < units; unit++)
        run_product(ctx, p, unit, p->scratch);
}

const mica_conv_path mica_conv_packed_path = {"packed", fits, cost, scratch, taken, run, false, NULL};

#endif
