/* Convolution: the gradient by the weights, by matrix products.
 *
 * One for each group, whose k runs over all pixels of all images; both sides are packed from the images. The result
 * is small and k is long, so a single group is cut along k into parts that threads make one by one, added in
 * order afterwards.
 *
 *   scratch:  [ for each thread, or part if there are fewer: the product's panels | parts x m x n, if there are
 * several ]
 */
#include "base/parallel.h"
#include "ops/conv/cost.h"
#include "ops/conv/weight.h"
#include "ops/gemm.h"

/* The most parts of one product, and floats in all of them. */
#define MOST_PARTS  8
#define PART_FLOATS ((size_t)262144)

/* The narrow image as the left side. */
typedef struct pixels {
    mica_conv_planes planes; /* of one group; column_stride is that of all pixels of an image */
    size_t count;            /* of an image */
    size_t first;            /* where k begins */
    const mica_gemm_kernels *gemm;
} pixels;

typedef struct job {
    const mica_context *ctx;
    const mica_kernels *kernels;
    const mica_conv *conv;
    mica_conv_patches wide;
    size_t m, n, k;
    size_t columns; /* of the kernel's taps that lie at one stride: a product makes so many at a time */
    ptrdiff_t column_stride;
    size_t parts, part_k;
    size_t gemm_bytes;
    char *scratch;
    float *partial; /* [parts, m, n] */
} job;

/* A mica_gemm_pack_fn: rows are channels, k runs over (image, pixel). */
static void pack_pixels(const void *source, float *panel, size_t width, size_t first, size_t count, size_t k0,
                        size_t k)
{
    const pixels *from = source;
    k0 += from->first;
    size_t image = k0 / from->count, pixel = k0 % from->count;
    for (size_t p = 0, n; p < k; p += n, pixel = 0, image++) {
        n = mica_least(from->count - pixel, k - p);
        from->gemm->pack(panel + p * width, width,
                         from->planes.data + (ptrdiff_t)image * from->planes.image_stride +
                             (ptrdiff_t)first * from->planes.channel_stride +
                             (ptrdiff_t)pixel * from->planes.column_stride,
                         from->planes.channel_stride, from->planes.column_stride, count, n);
    }
}

/* The narrow image of a group as patches of one pixel, for layouts whose rows do not join. */
static mica_conv_patches narrow_patches(const mica_conv *c, const float *data, const mica_kernels *kernels)
{
    return (mica_conv_patches){.data = data,
                               .image_stride = c->narrow.image_stride,
                               .channel_stride = c->narrow.channel_stride,
                               .row_stride = c->narrow.row_stride,
                               .column_stride = c->narrow.column_stride,
                               .rows = {c->rows.narrow, c->rows.narrow, 1, 1, 0, 1},
                               .columns = {c->columns.narrow, c->columns.narrow, 1, 1, 0, 1},
                               .gemm = MICA_FAMILY(kernels, gemm)};
}

/* Both sides of a group's product. */
typedef struct sides {
    mica_conv_patches wide, singles;
    pixels joined;
} sides;

/* Group `group` from pixel `first` on. The product points into *s. */
static mica_gemm group_gemm(const job *j, size_t group, size_t first, sides *s)
{
    const mica_conv *c = j->conv;
    float *narrow = c->narrow.data + (ptrdiff_t)(group * j->m) * c->narrow.channel_stride;
    s->wide = j->wide;
    s->wide.data += (ptrdiff_t)(group * c->wide_channels) * s->wide.channel_stride;
    s->wide.first_pixel = first;
    s->singles = narrow_patches(c, narrow, j->kernels);
    s->singles.first_pixel = first;
    s->joined = (pixels){c->narrow, c->rows.narrow * c->columns.narrow, first, MICA_FAMILY(j->kernels, gemm)};
    s->joined.planes.data = narrow;
    mica_gemm g = {.m = j->m,
                   .a = {.pack = pack_pixels, .source = &s->joined},
                   .b = {.pack = MICA_KERNEL(j->kernels, conv, pack_transposed), .source = &s->wide},
                   .alpha = 1.0f};
    if (!mica_conv_pixel_stride(&s->joined.planes.column_stride, c->rows.narrow, c->columns.narrow,
                                c->narrow.row_stride, c->narrow.column_stride))
        g.a = (mica_gemm_operand){.pack = MICA_KERNEL(j->kernels, conv, pack_transposed),
                                  .source = &s->singles};
    return g;
}

/* One group, with all threads (ctx) or on this one (NULL). */
static void run_group(mica_context *ctx, const job *j, size_t group, void *scratch)
{
    const mica_conv *c = j->conv;
    sides s;
    mica_gemm g = group_gemm(j, group, 0, &s);
    g.n = j->columns;
    g.k = j->k;
    g.row_stride = c->weight_stride;
    g.column_stride = j->column_stride;
    g.beta = c->accumulate ? 1.0f : 0.0f;
    for (size_t tap = 0; tap < j->n; tap += j->columns) {
        s.wide.first_tap = tap;
        g.c = mica_conv_tap_place(c, group * j->m, tap);
        if (ctx != NULL)
            mica_gemm_run(ctx, &g, scratch);
        else
            mica_gemm_run_serial(j->ctx, &g, scratch);
    }
}

static void part_block(void *work, size_t part, int thread)
{
    const job *j = work;
    sides s;
    mica_gemm g = group_gemm(j, 0, part * j->part_k, &s);
    g.n = j->n;
    g.k = mica_least(j->part_k, j->k - part * j->part_k);
    g.c = j->partial + part * j->m * j->n;
    g.row_stride = (ptrdiff_t)j->n;
    g.column_stride = 1;
    size_t room = mica_conv_part(j->ctx, j->parts, part, thread);
    mica_gemm_run_serial(j->ctx, &g, j->scratch + room * j->gemm_bytes);
}

/* Adds the parts of one narrow channel. */
static void add_parts(void *work, size_t channel, int thread)
{
    (void)thread;
    const job *j = work;
    float *sum = j->partial + channel * j->n;
    for (size_t part = 1; part < j->parts; part++)
        MICA_KERNEL(j->kernels, conv, add)(sum, 1, sum + part * j->m * j->n, 1, j->n);
    for (size_t tap = 0; tap < j->n; tap += j->columns) {
        float *place = mica_conv_tap_place(j->conv, channel, tap);
        for (size_t i = 0; i < j->columns; i++) {
            float *to = place + (ptrdiff_t)i * j->column_stride;
            *to = j->conv->accumulate ? *to + sum[tap + i] : sum[tap + i];
        }
    }
}

static void group_block(void *work, size_t block, int thread)
{
    const job *j = work;
    run_group(NULL, j, block, j->scratch + (size_t)thread * j->gemm_bytes);
}

/* How many taps lie at one stride: those of all channels, of one, of a row. */
static void join_columns(job *j)
{
    const mica_conv_taps *w = &j->conv->weight;
    size_t rows = j->conv->rows.taps, columns = j->conv->columns.taps;
    ptrdiff_t stride;
    j->columns = columns;
    j->column_stride = w->column_stride;
    if (!mica_conv_pixel_stride(&stride, rows, columns, w->row_stride, w->column_stride))
        return;
    j->columns = rows * columns;
    j->column_stride = stride;
    if (mica_conv_pixel_stride(&stride, w->channels, j->columns, w->channel_stride, stride)) {
        j->columns *= w->channels;
        j->column_stride = stride;
    }
}

/* ---- The plan ---- */

static void begin(const mica_context *ctx, job *j, const mica_conv *c)
{
    *j = (job){.ctx = ctx,
               .kernels = ctx->kernels,
               .conv = c,
               .wide = mica_conv_patches_of(c, ctx->kernels),
               .m = c->narrow_channels,
               .n = c->wide_channels * c->rows.taps * c->columns.taps};
    join_columns(j);
}

/* Into how many parts k is cut: as many as are worth a thread each, a power of two. */
static size_t parts_of(const job *j, size_t k)
{
    size_t products = j->m * j->n * k, parts = 1;
    while (j->conv->groups == 1 && 2 * parts <= MOST_PARTS && products / (2 * parts) >= MICA_GEMM_SMALL / 2 &&
           2 * parts * j->m * j->n <= PART_FLOATS)
        parts *= 2;
    return parts;
}

static bool fits(const mica_context *ctx, const mica_conv *c)
{
    (void)ctx;
    (void)c;
    return true;
}

/* A group's product over k pixels, as far as its scratch goes: both sides are packed by functions of their own. */
static mica_gemm packed_gemm(const job *j, size_t k)
{
    mica_gemm_operand packed = {.pack = MICA_KERNEL(j->kernels, conv, pack_transposed)};
    return (mica_gemm){.m = j->m,
                       .n = j->columns,
                       .k = k,
                       .a = packed,
                       .b = packed,
                       .row_stride = j->conv->weight_stride,
                       .column_stride = j->column_stride};
}

/* The same of a part, whose result is contiguous. */
static mica_gemm part_gemm(const job *j, size_t k)
{
    mica_gemm g = packed_gemm(j, k);
    g.n = j->n;
    g.row_stride = (ptrdiff_t)j->n;
    g.column_stride = 1;
    return g;
}

static size_t scratch(const mica_context *ctx, const mica_conv *c, mica_conv_extent *up_to)
{
    job j;
    begin(ctx, &j, c);
    size_t k = mica_conv_extent_pixels(up_to), parts = parts_of(&j, k);
    mica_conv_extent_clear(up_to);
    mica_gemm whole = packed_gemm(&j, k), part = part_gemm(&j, k);
    size_t bytes = mica_gemm_batch_scratch(ctx, &whole, c->groups);
    if (parts == 1)
        return bytes;
    /* Of up to the whole k: a call with fewer parts may have longer ones. */
    size_t panels = mica_gemm_serial_scratch(ctx, &part) * mica_conv_parts(ctx, parts);
    return mica_most(bytes, panels + parts * j.m * j.n * sizeof(float));
}

/* ---- The run ---- */

static void run(mica_context *ctx, const mica_conv *c, void *scratch)
{
    job j;
    begin(ctx, &j, c);
    j.k = c->batch * c->rows.narrow * c->columns.narrow;
    j.parts = parts_of(&j, j.k);
    j.part_k = mica_div_up(j.k, j.parts);
    j.scratch = scratch;
    mica_gemm whole = packed_gemm(&j, j.k), part = part_gemm(&j, j.part_k);
    if (j.parts > 1) {
        j.gemm_bytes = mica_gemm_serial_scratch(ctx, &part);
        j.partial = (float *)(void *)(j.scratch + j.gemm_bytes * mica_conv_parts(ctx, j.parts));
        mica_parallel(ctx, j.parts, part_block, &j);
        mica_parallel(ctx, j.m, add_parts, &j);
    } else if (mica_gemm_many(c->groups, j.m, j.n, j.k)) {
        j.gemm_bytes = mica_gemm_each_scratch(ctx, &whole);
        mica_parallel(ctx, c->groups, group_block, &j);
    } else {
        for (size_t group = 0; group < c->groups; group++)
            run_group(ctx, &j, group, scratch);
    }
}

/* Columns of a product for which the narrow side is packed once. */
#define PRODUCT_COLUMNS 2048

static double cost(const mica_context *ctx, const mica_conv *c)
{
    const mica_conv_costs *all = mica_conv_costs_of(ctx->kernels);
    size_t taps = c->rows.taps * c->columns.taps, n = c->wide_channels * taps;
    double count = (double)(c->batch * c->rows.narrow * c->columns.narrow), m = (double)c->narrow_channels;
    double sum = all->weight_taps.sum, narrow = all->weight_taps.narrow, wide = all->weight_taps.wide,
           run = all->weight_taps.wide_run, back = all->weight_taps.back;
    if (taps == 1) {
        sum = all->weight_single.sum;
        narrow = all->weight_single.narrow;
        wide = all->weight_single.wide;
        run = all->weight_single.wide_run;
        back = all->weight_single.back;
    }
    double each = m * (double)n * sum + m * (double)mica_div_up(n, PRODUCT_COLUMNS) * narrow +
                  (double)n * (wide + run / (double)mica_most(1, c->columns.narrow));
    return (double)c->groups * (count * each + m * (double)n * back);
}

const mica_conv_weight_path mica_conv_weight_products_path = {"products", fits, cost, scratch, run};
