/* A convolution's image by matrix products, each straight into the output or by way of a stage: product.h. */
#include <string.h>

#include "base/parallel.h"
#include "ops/conv/cost.h"
#include "ops/conv/operands.h"

/* Images with fewer pixels share products. */
#define SMALL_IMAGE 192
/* Pixels of a staged band, the least and the most, and floats in its stage. */
#define LEAST_BAND   64
#define BAND_PIXELS  1024
#define STAGE_FLOATS ((size_t)131072)
/* Bands that there should be, as long as they have so many pixels, a multiple of these, and multiply-adds: more pixels
 * where several taps do not lie in rows, which each band packs again. */
#define LEAST_BANDS 4
#define SMALL_BAND  32
#define PACKED_BAND 64
#define LEAST_SUMS  ((size_t)1 << 19)
/* Pixels of a row from which a call that copies them is worth it. */
#define LONG_RUN 16

/* ---- Scratch ---- */

typedef size_t gemm_bytes_fn(const mica_context *ctx, const mica_gemm *g);

/* The most for products of up to n pixels: at some sizes pixels lie at one stride, at others they do not. */
static size_t most_bytes(const mica_context *ctx, const mica_conv_product *p, size_t n, gemm_bytes_fn *bytes)
{
    mica_conv_weights w = p->w;
    mica_conv_join_taps(&w);
    mica_gemm g = {.m = p->m,
                   .n = n,
                   .k = p->k,
                   .a = mica_conv_weights_operand(&w),
                   .b = mica_conv_packed_operand(&p->in, p->kernels->conv),
                   .row_stride = p->out.channel_stride,
                   .column_stride = 1};
    size_t most = bytes(ctx, &g);
    if (p->out.column_stride != 1) {
        g.column_stride = p->out.column_stride;
        most = mica_most(most, bytes(ctx, &g));
    }
    if (mica_conv_single_pixels(&p->in)) {
        g.b = mica_conv_plain_operand(&p->in);
        most = mica_most(most, bytes(ctx, &g));
    }
    return most;
}

/* ---- The cost ---- */

/* Columns of products up to which weights whose rows are contiguous are read as they lie: gemm.c. */
#define READ_COLUMNS 384

static bool weights_in_rows(const mica_conv_product *p)
{
    return p->w.vector_stride > p->w.taps.channel_stride;
}

/* Pixels of a band at most. */
static size_t most_band(const mica_conv_product *p)
{
    return mica_most(LEAST_BAND, mica_least(BAND_PIXELS, STAGE_FLOATS / p->m));
}

static size_t small_band(const mica_conv_product *p)
{
    bool single = p->in.rows.taps * p->in.columns.taps == 1; /* these turn the product instead */
    return single || weights_in_rows(p) ? SMALL_BAND : PACKED_BAND;
}

/* Of so many pixels those of a band, by sizes alone. Patches are packed once however they are cut, and weights in rows
 * are read as they lie for so few columns. */
static size_t band_of(const mica_conv_product *p, size_t pixels)
{
    size_t bands = mica_least(mica_div_up(LEAST_BANDS, p->groups), pixels * p->m * p->k / LEAST_SUMS);
    size_t small = mica_round_up(mica_div_up(pixels, mica_most(1, bands)), small_band(p));
    return mica_least(pixels, mica_least(small, most_band(p)));
}

/* Of `count` products of n pixels each, up to the results. */
static double gemm_cost(const mica_conv_product *p, const mica_conv_gemm_costs *c, size_t count, size_t n,
                        bool packed)
{
    size_t lanes = mica_conv_cost_lanes(p->kernels);
    double weights = (double)(p->m * p->k) * (double)(count * p->groups), pixels = (double)count * (double)n;
    bool rows = weights_in_rows(p);
    double patches = !packed ? 0.0
                     : mica_conv_short_rows(&p->in.columns)
                         ? c->patch_short
                         : c->patch + c->patch_run / (double)p->in.columns.count;
    /* Rows that lie the other way, of single taps, turn the product: pixels are then no vectors. */
    bool turned = !rows && p->in.rows.taps * p->in.columns.taps == 1;
    return weights *
               ((double)(turned ? n : mica_round_up(n, lanes)) * c->sum + (!rows               ? c->turn
                                                                           : n <= READ_COLUMNS ? c->read
                                                                                               : c->pack)) +
           (double)(p->groups * p->k) * pixels * patches;
}

static const mica_conv_gemm_costs *gemm_costs(const mica_conv_product *p)
{
    const mica_conv_costs *all = mica_conv_costs_of(p->kernels);
    return p->in.rows.taps * p->in.columns.taps == 1 ? &all->single : &all->taps;
}

static double products_cost(const mica_context *ctx, const mica_conv_product *p)
{
    (void)ctx;
    const mica_conv_gemm_costs *c = gemm_costs(p);
    return gemm_cost(p, c, p->images, p->pixels, !mica_conv_plain_pixels(&p->in)) +
           (double)(p->images * p->pixels) * (double)(p->groups * p->m) * c->out;
}

/* As many pixels in a band as sizes alone tell: the same path for any number of threads. */
static size_t cost_band(const mica_conv_product *p)
{
#if !defined(MICA_SMALL)
    if (p->m > 0)
        return band_of(p, p->images * p->pixels);
#endif
    return p->band;
}

static double staged_cost(const mica_context *ctx, const mica_conv_product *p)
{
    (void)ctx;
    const mica_conv_gemm_costs *c = gemm_costs(p);
    size_t all = p->images * p->pixels, band = cost_band(p), rest = band > 0 ? all % band : 0;
    double run = mica_conv_short_rows(&p->in.columns) ? c->staged_short : c->staged_run;
    double cost = band > 0 ? gemm_cost(p, c, all / band, band, true) : 0.0;
    if (rest > 0)
        cost += gemm_cost(p, c, 1, rest, true);
    return cost +
           (double)all * (double)(p->groups * p->m) * (c->staged_out + run / (double)p->in.columns.count);
}

/* ---- Straight into the output ---- */

static bool products_fit(const mica_context *ctx, mica_conv_product *p)
{
    ptrdiff_t stride;
    if ((!mica_conv_by_cost(p->channels, p->m) && p->pixels < SMALL_IMAGE && p->images > 1) ||
        !mica_conv_pixel_stride(&stride, p->in.rows.count, p->in.columns.count, p->out.row_stride,
                                p->out.column_stride))
        return false;
    p->thread_bytes = most_bytes(ctx, p, p->pixels, mica_gemm_each_scratch);
    return true;
}

static size_t products_scratch(const mica_context *ctx, const mica_conv_product *p, mica_conv_extent *up_to)
{
    size_t n = mica_conv_extent_image(up_to), small = MICA_GEMM_SMALL / mica_most(1, p->m * p->k);
    size_t shared = most_bytes(ctx, p, n, mica_gemm_scratch);
    if (up_to->images * p->groups == 1)
        return shared;
    size_t each = most_bytes(ctx, p, mica_least(n, small), mica_gemm_each_scratch);
    return mica_most(shared, each * mica_conv_parts(ctx, up_to->images * p->groups));
}

static size_t products_taken(const mica_context *ctx, const mica_conv_product *p)
{
    size_t units = p->images * p->groups;
    return mica_gemm_many(units, p->m, p->pixels, p->k) ? p->thread_bytes * mica_conv_parts(ctx, units)
                                                        : most_bytes(ctx, p, p->pixels, mica_gemm_scratch);
}

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
                       .a = mica_conv_weights_operand(w),
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
    g.b = mica_conv_plain_pixels(&in) ? mica_conv_plain_operand(&in)
                                      : mica_conv_packed_operand(&in, p->kernels->conv);
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
    size_t part = mica_conv_part(p->ctx, p->images * p->groups, block, thread);
    run_product(NULL, p, block, p->scratch + part * p->thread_bytes);
}

static void products_run(mica_context *ctx, mica_conv_product *p)
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

const mica_conv_path mica_conv_products_path = {"products",     products_fit, products_cost, products_scratch,
                                                products_taken, products_run, false,         NULL};

/* ---- By way of a stage ---- */

/* Bands of up to so many pixels. */
static size_t most_bands(const mica_conv_product *p, size_t pixels)
{
    return mica_most(mica_least(mica_div_up(pixels, mica_least(small_band(p), most_band(p))), LEAST_BANDS),
                     mica_div_up(pixels, most_band(p)));
}

/* Pixels of a band that is run: no sum changes with them, so few threads have fewer and larger ones. */
static size_t run_band(const mica_context *ctx, const mica_conv_product *p, size_t pixels)
{
    size_t band = band_of(p, pixels);
#if !defined(MICA_SMALL)
    size_t bands = mica_div_up(mica_least(LEAST_BANDS, (size_t)ctx->threads), p->groups);
    bands = mica_most(1, mica_least(bands, pixels * p->m * p->k / LEAST_SUMS));
    size_t large = mica_round_up(mica_div_up(pixels, bands), mica_conv_cost_lanes(p->kernels));
    if (large <= mica_least(READ_COLUMNS, most_band(p)))
        band = mica_least(pixels, mica_most(band, large));
#endif
    (void)ctx;
    return band;
}

static size_t stage_bytes(size_t m, size_t band) { return mica_align_up(m * band * sizeof(float)); }

static bool staged_fits(const mica_context *ctx, mica_conv_product *p)
{
    if (p->m == 0) /* nothing to do */
        return true;
    p->band = run_band(ctx, p, p->images * p->pixels);
    p->gemm_bytes = most_bytes(ctx, p, p->band, mica_gemm_serial_scratch);
    p->thread_bytes = p->gemm_bytes + stage_bytes(p->m, p->band);
    return true;
}

static size_t staged_scratch(const mica_context *ctx, const mica_conv_product *p, mica_conv_extent *up_to)
{
    size_t pixels = mica_conv_extent_pixels(up_to), band = mica_least(pixels, most_band(p));
    size_t each = most_bytes(ctx, p, band, mica_gemm_serial_scratch) + stage_bytes(p->m, band);
    mica_conv_extent_clear(up_to);
    return each * mica_conv_parts(ctx, most_bands(p, pixels) * p->groups);
}

static size_t staged_blocks(const mica_conv_product *p)
{
    return mica_div_up(p->images * p->pixels, p->band) * p->groups;
}

static size_t staged_taken(const mica_context *ctx, const mica_conv_product *p)
{
    return p->m == 0 ? 0 : p->thread_bytes * mica_conv_parts(ctx, staged_blocks(p));
}

#if !defined(MICA_SMALL)
/* `count` runs of n floats, half <= n <= 2 half, to places a stride apart: each is two copies, which may overlap.
 * `half` is a constant where this is inlined. */
static inline void copy_runs(float *to, ptrdiff_t stride, const float *from, size_t n, size_t half,
                             size_t count)
{
    for (; count > 0; count--, to += stride, from += n) {
        memcpy(to, from, half * sizeof *to);
        memcpy(to + (n - half), from + (n - half), half * sizeof *to);
    }
}

/* Whole planes of few pixels, which follow one another in the stage. */
static void copy_planes(float *to, ptrdiff_t stride, const float *from, size_t n, size_t count)
{
    if (n >= 8)
        copy_runs(to, stride, from, n, 8, count);
    else if (n >= 4)
        copy_runs(to, stride, from, n, 4, count);
    else if (n >= 2)
        copy_runs(to, stride, from, n, 2, count);
    else
        copy_runs(to, stride, from, n, 1, count);
}

/* The whole planes of one channel among pixels first .. first + n - 1, if they are contiguous and small. Pixels that
 * are left: *before of them at the beginning, and those from the number on that is returned. */
static size_t unstage_planes(const mica_conv_product *p, float *channel, const float *stage, size_t first,
                             size_t n, size_t *before)
{
    size_t pixels = p->pixels, image = mica_div_up(first, pixels), end = (first + n) / pixels;
    bool small = pixels <= LONG_RUN && p->out.column_stride == 1 && !p->accumulate &&
                 (p->in.rows.count == 1 || p->out.row_stride == (ptrdiff_t)p->in.columns.count);
    *before = n;
    if (!small || image >= end)
        return n;
    *before = image * pixels - first;
    copy_planes(channel + (ptrdiff_t)image * p->out.image_stride, p->out.image_stride, stage + *before,
                pixels, end - image);
    return end * pixels - first;
}
#endif

/* Pixels first .. first + n - 1 of one channel from the stage to their places. */
static void unstage(const mica_conv_product *p, float *channel, const float *stage, size_t first, size_t n)
{
    size_t columns = p->in.columns.count, rows = p->in.rows.count;
    size_t j = first % columns, i = first / columns % rows;
    float *image = channel + (ptrdiff_t)(first / columns / rows) * p->out.image_stride;
    for (size_t done = 0, run; done < n; done += run, j = 0) {
        run = mica_least(columns - j, n - done);
        float *to = image + (ptrdiff_t)i * p->out.row_stride + (ptrdiff_t)j * p->out.column_stride;
        if (p->accumulate)
            MICA_KERNEL(p->kernels, conv, add)(to, p->out.column_stride, stage + done, 1, run);
        else if (p->out.column_stride == 1 && run >= LONG_RUN)
            memcpy(to, stage + done, run * sizeof *to);
        else
            for (size_t x = 0; x < run; x++)
                to[(ptrdiff_t)x * p->out.column_stride] = stage[done + x];
        if (++i == rows) {
            i = 0;
            image += p->out.image_stride;
        }
    }
}

static void staged_block(void *work, size_t block, int thread)
{
    const mica_conv_product *p = work;
    size_t group = block % p->groups, first = block / p->groups * p->band;
    char *scratch = p->scratch + mica_conv_part(p->ctx, staged_blocks(p), block, thread) * p->thread_bytes;
    mica_conv_weights w;
    mica_conv_patches in;
    mica_gemm g = group_gemm(p, group, &w, &in);
    in.first_pixel = first;
    g.b = mica_conv_packed_operand(&in, p->kernels->conv);
    g.n = mica_least(p->band, p->images * p->pixels - first);
    g.c = (float *)(void *)(scratch + p->gemm_bytes);
    g.row_stride = (ptrdiff_t)p->band;
    g.column_stride = 1;
    mica_gemm_run_serial(p->ctx, &g, scratch);
    for (size_t i = 0; i < p->m; i++) {
        float *channel = p->out.data + (ptrdiff_t)(group * p->m + i) * p->out.channel_stride;
        const float *from = g.c + i * p->band;
        size_t before = g.n;
#if !defined(MICA_SMALL)
        size_t behind = unstage_planes(p, channel, from, first, g.n, &before);
        unstage(p, channel, from + behind, first + behind, g.n - behind);
#endif
        unstage(p, channel, from, first, before);
    }
}

static void staged_run(mica_context *ctx, mica_conv_product *p)
{
    mica_conv_join_taps(&p->w);
    mica_parallel_sums(ctx, (double)(p->images * p->pixels * p->groups) * (double)(p->m * p->k),
                       staged_blocks(p), staged_block, p);
}

const mica_conv_path mica_conv_staged_path = {"staged",     staged_fits, staged_cost, staged_scratch,
                                              staged_taken, staged_run,  false,       NULL};
