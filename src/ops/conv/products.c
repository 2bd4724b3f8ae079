/* Planning and running the product behind a convolution. */
#include "ops/conv/product.h"

#include <string.h>

#include "base/parallel.h"
#include "ops/gemm.h"

/* Taps of a window, for tiles of many and of few output channels: these want little copied. */
#define DEEP     128
#define DEEP_FEW 32
/* Multiply-adds of a block of tiles: half of all, within these. */
#define PARTS      2
#define LEAST_WORK ((size_t)1 << 16)
#define MOST_WORK  ((size_t)1 << 20)
/* Multiply-adds in one block of direct work. */
#define DIRECT_WORK ((size_t)262144)
/* Images with fewer pixels share products. */
#define SMALL_IMAGE 192
/* Pixels of a staged band, and floats in its stage. */
#define BAND_PIXELS  1024
#define STAGE_FLOATS ((size_t)131072)

bool mica_conv_pixel_stride(ptrdiff_t *stride, size_t rows, size_t columns, ptrdiff_t row_stride,
                            ptrdiff_t column_stride)
{
    *stride = columns == 1 ? row_stride : column_stride;
    return rows == 1 || columns == 1 || row_stride == (ptrdiff_t)columns * column_stride;
}

/* ---- The planner ---- */

void mica_conv_product_plan(const mica_context *ctx, mica_conv_product *p)
{
    size_t rows = p->in.rows.count, columns = p->in.columns.count;
    ptrdiff_t stride;
    p->ctx = ctx;
    p->kernels = ctx->kernels;
    p->k = p->channels * p->in.rows.taps * p->in.columns.taps;
    p->pixels = rows * columns;
    p->gemm_bytes = p->thread_bytes = 0;
    if (mica_conv_columns_plan(ctx, p)) {
        p->path = MICA_CONV_COLUMNS;
        return;
    }
    if (mica_conv_winograd_plan(ctx, p)) {
        p->path = MICA_CONV_WINOGRAD;
        return;
    }
    size_t work = p->images * p->groups * p->m * p->k * p->pixels / PARTS;
    work = mica_least(mica_most(work, LEAST_WORK), MOST_WORK);
    if (mica_conv_grid_plan(&p->grid, &p->in, p->channels, p->m, p->m > 2 ? DEEP : DEEP_FEW, work,
                            ctx->kernels->tiles)) {
        p->path = MICA_CONV_TILES;
        return;
    }
    if (p->m <= MICA_CONV_DIRECT_CHANNELS) {
        p->path = MICA_CONV_DIRECT;
        /* A block reads as many rows more as there are taps: that must stay the smaller part. */
        p->band = mica_most(4 * p->in.rows.taps + 1, DIRECT_WORK / (columns * p->k + 1));
        p->band = mica_most(1, mica_least(rows, p->band));
        return;
    }
    bool joined = mica_conv_pixel_stride(&stride, rows, columns, p->out.row_stride, p->out.column_stride);
    p->path = joined && (p->pixels >= SMALL_IMAGE || p->images == 1) ? MICA_CONV_PRODUCTS : MICA_CONV_STAGED;
    p->band = p->pixels;
    if (p->path == MICA_CONV_STAGED) {
        p->band = mica_least(p->images * p->pixels,
                             mica_most(64, mica_least(BAND_PIXELS, STAGE_FLOATS / p->m)));
        p->thread_bytes = mica_align_up(p->m * p->band * sizeof(float));
    }
    p->gemm_bytes = mica_gemm_most_scratch(ctx, p->m, p->band, p->k);
    p->thread_bytes += p->gemm_bytes;
}

/* Whether units of work are too small to be shared by threads one by one. */
static bool units_are_small(const mica_conv_product *p)
{
    return p->path != MICA_CONV_PRODUCTS ||
           (p->images * p->groups > 1 && p->m * p->pixels * p->k < MICA_GEMM_SMALL);
}

size_t mica_conv_product_bytes(const mica_context *ctx, const mica_conv_product *p)
{
    if (p->path == MICA_CONV_TILES)
        return mica_conv_tiles_bytes(ctx, p);
    if (p->path == MICA_CONV_WINOGRAD)
        return mica_conv_winograd_bytes(ctx, p);
    if (p->path == MICA_CONV_COLUMNS)
        return mica_conv_columns_bytes(ctx, p);
    return units_are_small(p) ? p->thread_bytes * (size_t)ctx->threads : p->thread_bytes;
}

/* ---- Operands ---- */

/* A mica_gemm_pack_fn: rows are output channels, k runs over (channel, tap row, tap column). */
void mica_conv_pack_weights(const void *source, float *panel, size_t width, size_t first, size_t count,
                            size_t k0, size_t k)
{
    const mica_conv_weights *w = source;
    size_t u = k0 % w->columns, t = k0 / w->columns % w->rows, c = k0 / w->columns / w->rows;
    for (size_t p = 0, n; p < k; p += n) {
        n = mica_least(w->columns - u, k - p);
        const float *from = w->taps.data + (ptrdiff_t)first * w->vector_stride +
                            (ptrdiff_t)c * w->taps.channel_stride + (ptrdiff_t)t * w->taps.row_stride +
                            (ptrdiff_t)u * w->taps.column_stride;
        w->gemm->pack(panel + p * width, width, from, w->vector_stride, w->taps.column_stride, count, n);
        u = 0;
        if (++t == w->rows) {
            t = 0;
            c++;
        }
    }
}

/* Joins taps that lie at one stride, so that packing sees long runs. */
static void join_taps(mica_conv_weights *w)
{
    ptrdiff_t stride;
    if (mica_conv_pixel_stride(&stride, w->rows, w->columns, w->taps.row_stride, w->taps.column_stride)) {
        w->columns *= w->rows;
        w->rows = 1;
        w->taps.column_stride = stride;
    }
}

static mica_gemm_operand weights_operand(const mica_conv_weights *w)
{
    ptrdiff_t stride;
    if (w->rows == 1 && mica_conv_pixel_stride(&stride, w->taps.channels, w->columns, w->taps.channel_stride,
                                               w->taps.column_stride))
        return (mica_gemm_operand){
            .data = w->taps.data, .vector_stride = w->vector_stride, .k_stride = stride};
    return (mica_gemm_operand){.pack = mica_conv_pack_weights, .source = w};
}

/* Patches of one pixel each, as they lie: a 1x1 convolution needs no packing of its own. */
static bool plain_pixels(const mica_conv_patches *in, ptrdiff_t *stride)
{
    const mica_conv_axis *r = &in->rows, *c = &in->columns;
    return r->taps == 1 && c->taps == 1 && r->scale == 1 && c->scale == 1 && r->base == 0 && c->base == 0 &&
           r->count <= r->image && c->count <= c->image &&
           mica_conv_pixel_stride(stride, r->count, c->count, in->row_stride, in->column_stride);
}

static mica_gemm_operand patches_operand(const mica_conv_patches *in, const mica_conv_kernels *kernels)
{
    ptrdiff_t stride;
    if (in->first_pixel == 0 && plain_pixels(in, &stride))
        return (mica_gemm_operand){.data = in->data, .vector_stride = stride, .k_stride = in->channel_stride};
    return (mica_gemm_operand){.pack = kernels->pack, .source = in};
}

/* ---- Running ---- */

/* Group `group` of the product: sets its weights and patches, and what of the product they give. */
static mica_gemm group_gemm(const mica_conv_product *p, size_t group, mica_conv_weights *w,
                            mica_conv_patches *in)
{
    *w = p->w;
    w->taps.data += (ptrdiff_t)group * w->group_stride;
    *in = p->in;
    in->data += (ptrdiff_t)(group * p->channels) * in->channel_stride;
    return (mica_gemm){.m = p->m,
                       .k = p->k,
                       .a = weights_operand(w),
                       .alpha = 1.0f,
                       .row_bias = p->bias != NULL ? p->bias + group * p->m : NULL};
}

/* One image and group, with all threads (ctx) or on this one (NULL). */
static void run_product(mica_context *ctx, const mica_conv_product *p, size_t unit, void *scratch)
{
    size_t image = unit / p->groups, group = unit % p->groups;
    mica_conv_weights w;
    mica_conv_patches in;
    mica_gemm g = group_gemm(p, group, &w, &in);
    in.data += (ptrdiff_t)image * in.image_stride;
    g.b = patches_operand(&in, p->kernels->conv);
    g.n = p->pixels;
    g.c = p->out.data + (ptrdiff_t)image * p->out.image_stride +
          (ptrdiff_t)(group * p->m) * p->out.channel_stride;
    g.row_stride = p->out.channel_stride;
    mica_conv_pixel_stride(&g.column_stride, in.rows.count, in.columns.count, p->out.row_stride,
                           p->out.column_stride);
    g.beta = p->accumulate ? 1.0f : 0.0f;
    if (ctx != NULL)
        mica_gemm_run(ctx, &g, scratch);
    else
        mica_gemm_run_serial(p->ctx, &g, scratch);
}

static void product_block(void *work, size_t block, int thread)
{
    const mica_conv_product *p = work;
    run_product(NULL, p, block, p->scratch + (size_t)thread * p->thread_bytes);
}

/* Pixels first .. first + n - 1 of one channel from the stage to their places. */
static void unstage(const mica_conv_product *p, float *channel, const float *stage, size_t first, size_t n)
{
    size_t columns = p->in.columns.count;
    size_t j = first % columns, row = first / columns;
    for (size_t done = 0, run; done < n; done += run, j = 0, row++) {
        run = mica_least(columns - j, n - done);
        float *to = channel + (ptrdiff_t)(row / p->in.rows.count) * p->out.image_stride +
                    (ptrdiff_t)(row % p->in.rows.count) * p->out.row_stride +
                    (ptrdiff_t)j * p->out.column_stride;
        if (p->accumulate)
            p->kernels->conv->add(to, p->out.column_stride, stage + done, 1, run);
        else if (p->out.column_stride == 1)
            memcpy(to, stage + done, run * sizeof *to);
        else
            for (size_t x = 0; x < run; x++)
                to[(ptrdiff_t)x * p->out.column_stride] = stage[done + x];
    }
}

static void staged_block(void *work, size_t block, int thread)
{
    const mica_conv_product *p = work;
    size_t group = block % p->groups, first = block / p->groups * p->band;
    char *scratch = p->scratch + (size_t)thread * p->thread_bytes;
    mica_conv_weights w;
    mica_conv_patches in;
    mica_gemm g = group_gemm(p, group, &w, &in);
    in.first_pixel = first;
    g.b = (mica_gemm_operand){.pack = p->kernels->conv->pack, .source = &in};
    g.n = mica_least(p->band, p->images * p->pixels - first);
    g.c = (float *)(void *)(scratch + p->gemm_bytes);
    g.row_stride = (ptrdiff_t)p->band;
    g.column_stride = 1;
    mica_gemm_run_serial(p->ctx, &g, scratch);
    for (size_t i = 0; i < p->m; i++)
        unstage(p, p->out.data + (ptrdiff_t)(group * p->m + i) * p->out.channel_stride, g.c + i * p->band,
                first, g.n);
}

static void direct_block(void *work, size_t block, int thread)
{
    (void)thread;
    const mica_conv_product *p = work;
    size_t bands = mica_div_up(p->in.rows.count, p->band);
    size_t first = block % bands * p->band, plane = block / bands;
    size_t channel = plane % (p->groups * p->m), image = plane / (p->groups * p->m);
    size_t group = channel / p->m;
    mica_conv_planes out = p->out;
    out.data += (ptrdiff_t)image * out.image_stride + (ptrdiff_t)channel * out.channel_stride;
    mica_conv_patches in = p->in;
    in.data += (ptrdiff_t)image * in.image_stride + (ptrdiff_t)(group * p->channels) * in.channel_stride;
    mica_conv_taps taps = p->w.taps;
    taps.data += (ptrdiff_t)group * p->w.group_stride + (ptrdiff_t)(channel % p->m) * p->w.vector_stride;
    p->kernels->taps->image(&out, &in, &taps, first, mica_least(p->band, in.rows.count - first),
                            p->bias != NULL ? p->bias[channel] : 0.0f, p->accumulate);
}

/* ---- The end ---- */

void mica_conv_finish_plane(const mica_conv_product *p, float *at, size_t rows, size_t columns)
{
    if (p->finish == NULL)
        return;
    ptrdiff_t stride = p->out.column_stride;
    if (stride == 1 && p->out.row_stride == (ptrdiff_t)columns) { /* rows are one run */
        columns *= rows;
        rows = mica_least(rows, 1);
    }
    for (size_t i = 0; i < rows; i++, at += p->out.row_stride) {
        if (stride == 1) {
            p->finish(at, (const float *const[]){at}, columns, &p->slope);
            continue;
        }
        float some[64];
        for (size_t j = 0, n; j < columns; j += n) {
            n = mica_least(columns - j, sizeof some / sizeof some[0]);
            for (size_t x = 0; x < n; x++)
                some[x] = at[(ptrdiff_t)(j + x) * stride];
            p->finish(some, (const float *const[]){some}, n, &p->slope);
            for (size_t x = 0; x < n; x++)
                at[(ptrdiff_t)(j + x) * stride] = some[x];
        }
    }
}

static void finish_block(void *work, size_t plane, int thread)
{
    (void)thread;
    const mica_conv_product *p = work;
    size_t channels = p->groups * p->m;
    mica_conv_finish_plane(p,
                           p->out.data + (ptrdiff_t)(plane / channels) * p->out.image_stride +
                               (ptrdiff_t)(plane % channels) * p->out.channel_stride,
                           p->in.rows.count, p->in.columns.count);
}

static void run_path(mica_context *ctx, mica_conv_product *p)
{
    size_t units = p->images * p->groups;
    if (p->path == MICA_CONV_DIRECT) {
        mica_parallel(ctx, units * p->m * mica_div_up(p->in.rows.count, p->band), direct_block, p);
        return;
    }
    join_taps(&p->w);
    if (p->path == MICA_CONV_STAGED)
        mica_parallel(ctx, mica_div_up(p->images * p->pixels, p->band) * p->groups, staged_block, p);
    else if (units_are_small(p))
        mica_parallel(ctx, units, product_block, p);
    else
        for (size_t unit = 0; unit < units; unit++)
            run_product(ctx, p, unit, p->scratch);
}

void mica_conv_product_run(mica_context *ctx, mica_conv_product *p)
{
    if (p->images * p->pixels * p->m == 0)
        return;
    if (p->path == MICA_CONV_WINOGRAD) {
        mica_conv_winograd_run(ctx, p);
    } else if (p->path == MICA_CONV_COLUMNS) {
        mica_conv_columns_run(ctx, p);
    } else if (p->path == MICA_CONV_TILES) {
        join_taps(&p->w);
        mica_conv_tiles_run(ctx, p);
    } else {
        run_path(ctx, p);
        if (p->finish != NULL)
            mica_parallel(ctx, p->images * p->groups * p->m, finish_block, p);
    }
}
