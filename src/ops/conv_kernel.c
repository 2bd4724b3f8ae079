/* Convolution: the gradient by the kernel.
 *
 *   dw[o, (c, t, u)] = sum over images and narrow pixels of narrow[o, pixel] * patch[(c, t, u), pixel]
 *
 * One matrix product for each group, whose k runs over all pixels of all images; both sides are packed from
 * the images. A group with very few narrow channels (depthwise) is summed directly instead. */
#include "base/parallel.h"
#include "ops/conv.h"
#include "ops/gemm.h"

#define DIRECT_CHANNELS 2

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* The narrow image as the left side. */
typedef struct pixels {
    mica_conv_planes planes; /* of one group; column_stride is that of all pixels of an image */
    size_t count;            /* of an image */
    const mica_gemm_kernels *gemm;
} pixels;

typedef struct job {
    const mica_kernels *kernels;
    const mica_conv *conv;
    mica_conv_patches wide;
    size_t m, n, k;
    size_t columns; /* of the kernel's taps that lie at one stride: a product makes so many at a time */
    ptrdiff_t column_stride;
    size_t gemm_bytes;
    char *scratch;
} job;

/* A mica_gemm_pack_fn: rows are channels, k runs over (image, pixel). */
static void pack_pixels(const void *source, float *panel, size_t width, size_t first, size_t count, size_t k0,
                        size_t k)
{
    const pixels *from = source;
    size_t image = k0 / from->count, pixel = k0 % from->count;
    for (size_t p = 0, n; p < k; p += n, pixel = 0, image++) {
        n = least(from->count - pixel, k - p);
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
                               .gemm = kernels->gemm};
}

/* One group, with all threads (ctx) or on this one (NULL). */
static void run_group(mica_context *ctx, const job *j, size_t group, void *scratch)
{
    const mica_conv *c = j->conv;
    float *narrow = c->narrow.data + (ptrdiff_t)(group * j->m) * c->narrow.channel_stride;
    mica_conv_patches wide = j->wide, singles = narrow_patches(c, narrow, j->kernels);
    wide.data += (ptrdiff_t)(group * c->wide_channels) * wide.channel_stride;
    pixels joined = {c->narrow, c->rows.narrow * c->columns.narrow, j->kernels->gemm};
    joined.planes.data = narrow;
    mica_gemm g = {.m = j->m,
                   .n = j->columns,
                   .k = j->k,
                   .a = {.pack = pack_pixels, .source = &joined},
                   .b = {.pack = j->kernels->conv->pack_transposed, .source = &wide},
                   .row_stride = c->kernel_stride,
                   .column_stride = j->column_stride,
                   .alpha = 1.0f,
                   .beta = c->accumulate ? 1.0f : 0.0f};
    if (!mica_conv_pixel_stride(&joined.planes.column_stride, c->rows.narrow, c->columns.narrow,
                                c->narrow.row_stride, c->narrow.column_stride))
        g.a = (mica_gemm_operand){.pack = j->kernels->conv->pack_transposed, .source = &singles};
    for (size_t tap = 0; tap < j->n; tap += j->columns) {
        size_t u = tap % c->columns.taps, t = tap / c->columns.taps % c->rows.taps;
        size_t channel = tap / c->columns.taps / c->rows.taps;
        wide.first_tap = tap;
        g.c = c->kernel.data + (ptrdiff_t)(group * j->m) * c->kernel_stride +
              (ptrdiff_t)channel * c->kernel.channel_stride + (ptrdiff_t)t * c->kernel.row_stride +
              (ptrdiff_t)u * c->kernel.column_stride;
        if (ctx != NULL)
            mica_gemm_run(ctx, &g, scratch);
        else
            mica_gemm_run_serial(j->kernels, &g, scratch);
    }
}

static void group_block(void *work, size_t block, int thread)
{
    const job *j = work;
    run_group(NULL, j, block, j->scratch + (size_t)thread * j->gemm_bytes);
}

/* The taps between one narrow and one wide channel. */
static void direct_block(void *work, size_t block, int thread)
{
    (void)thread;
    const job *j = work;
    const mica_conv *c = j->conv;
    size_t wide = block % c->wide_channels, narrow = block / c->wide_channels, group = narrow / j->m;
    mica_conv_patches in = j->wide;
    in.data += (ptrdiff_t)(group * c->wide_channels + wide) * in.channel_stride;
    mica_conv_planes dy = c->narrow;
    dy.data += (ptrdiff_t)narrow * dy.channel_stride;
    mica_conv_taps taps = c->kernel;
    taps.data += (ptrdiff_t)narrow * c->kernel_stride + (ptrdiff_t)wide * taps.channel_stride;
    j->kernels->taps->gradient(&taps, &in, &dy, c->batch, c->accumulate);
}

/* How many taps lie at one stride: those of all channels, of one, of a row. */
static void join_columns(job *j)
{
    const mica_conv_taps *w = &j->conv->kernel;
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

mica_status mica_conv_kernel(mica_context *ctx, const mica_conv *c)
{
    size_t taps = c->rows.taps * c->columns.taps;
    job j = {.kernels = ctx->kernels,
             .conv = c,
             .wide = mica_conv_patches_of(c, ctx->kernels),
             .m = c->narrow_channels,
             .n = c->wide_channels * taps,
             .k = c->batch * c->rows.narrow * c->columns.narrow};
    bool direct = j.m <= DIRECT_CHANNELS;
    bool small = c->groups > 1 && j.m * j.n * j.k < MICA_GEMM_SMALL;
    join_columns(&j);
    if (!direct)
        j.gemm_bytes = mica_gemm_scratch(ctx, j.m, j.columns, j.k);
    void *scratch;
    MICA_START(ctx, c->op, small ? j.gemm_bytes * (size_t)ctx->threads : j.gemm_bytes, &scratch);
    j.scratch = scratch;
    if (j.m == 0 || j.n == 0)
        return MICA_OK;
    if (direct)
        mica_parallel(ctx, c->groups * j.m * c->wide_channels, direct_block, &j);
    else if (small)
        mica_parallel(ctx, c->groups, group_block, &j);
    else
        for (size_t group = 0; group < c->groups; group++)
            run_group(ctx, &j, group, scratch);
    return MICA_OK;
}
