/* Convolution fused with the mean of each channel, whose image is never stored as a whole.
 *
 * Tiles add their sums up as they come out of the registers: what is left of a block is a total for each channel, and
 * these are added in the order of the blocks. The other ways make some images at a time, and their planes are then
 * added up; where the image that is read lies channels last, so do these.
 *
 *   tiles:    [ bias, if it is strided | totals | the product's ]
 *   others:   [ bias, if it is strided | some images | the largest product's ]
 */
#include <math.h>

#include "base/parallel.h"
#include "base/size.h"
#include "ops/conv/product.h"

typedef struct job {
    const mica_conv *c;
    const mica_kernels *kernels;
    size_t channels, pixels; /* of all groups; of an image */
    size_t first;            /* plane */
    const float *images;     /* [.., pixels] from `first` on */
    const double *totals;    /* [images, groups, blocks, channels of a group] */
    size_t blocks;
} job;

/* ---- Means ---- */

static void put_mean(const job *j, size_t image, size_t channel, double total)
{
    const mica_conv_planes *out = &j->c->narrow;
    float *to = out->data + (ptrdiff_t)image * out->image_stride + (ptrdiff_t)channel * out->channel_stride;
    float mean = (float)(total / (double)j->pixels);
    *to = j->c->accumulate ? *to + mean : mean;
}

static void plane_mean(void *work, size_t plane, int thread)
{
    (void)thread;
    const job *j = work;
    double total = 0.0;
    MICA_KERNEL(j->kernels, reduce, sum).row(&total, j->images + plane * j->pixels, j->pixels, 0.0f);
    put_mean(j, (j->first + plane) / j->channels, (j->first + plane) % j->channels, total);
}

static void block_means(const job *j, size_t image)
{
    size_t m = j->c->narrow_channels;
    for (size_t channel = 0; channel < j->channels; channel++) {
        const double *from = j->totals + ((image * j->c->groups + channel / m) * j->blocks * m + channel % m);
        double total = 0.0;
        for (size_t block = 0; block < j->blocks; block++)
            total += from[block * m];
        put_mean(j, image, channel, total);
    }
}

/* ---- The two ways ---- */

/* Activations that do no more than hold values within bounds need not leave the registers. */
static mica_conv_finish ending_of(const mica_conv *c)
{
    switch (c->activation) {
    case MICA_RELU:
        return (mica_conv_finish){.low = 0.0f, .high = INFINITY};
    case MICA_RELU6:
        return (mica_conv_finish){.low = 0.0f, .high = 6.0f};
    default:
        return (mica_conv_finish){c->finish, c->slope, -INFINITY, INFINITY};
    }
}

static size_t totals_bytes(const mica_conv *c, size_t blocks)
{
    return mica_align_up(blocks * c->groups * c->narrow_channels * sizeof(double));
}

static void by_totals(mica_context *ctx, job *j, mica_conv_product *p, void *scratch)
{
    const mica_conv *c = j->c;
    j->blocks = p->grid.down * p->grid.across;
    size_t bias = mica_conv_bias_bytes(c, j->channels), totals = totals_bytes(c, p->images * j->blocks);
    p->bias = mica_conv_load_bias(c, j->channels, scratch);
    p->ending = ending_of(c);
    p->totals = (double *)(void *)((char *)scratch + bias);
    p->scratch = (char *)scratch + bias + totals;
    mica_conv_product_run(ctx, p);
    j->totals = p->totals;
    for (size_t image = 0; image < p->images; image++)
        block_means(j, image);
}

/* A mica_conv_planes_fn */
static void planes_means(mica_context *ctx, void *user, const float *planes, size_t first, size_t count)
{
    job *j = user;
    j->images = planes;
    j->first = first;
    mica_parallel_sums(ctx, 8.0 * (double)(count * j->pixels), count, plane_mean, j);
}

/* Channels of an image at a time. */
#define TOTALS ((size_t)128)

static void pixels_mean(void *work, size_t block, int thread)
{
    (void)thread;
    const job *j = work;
    size_t across = mica_div_up(j->channels, TOTALS), image = block / across, first = block % across * TOTALS;
    double totals[TOTALS];
    mica_last_window w = {.in = j->images + image * j->pixels * j->channels + first,
                          .column_stride = (ptrdiff_t)j->channels,
                          .rows = 1,
                          .columns = j->pixels,
                          .channels = mica_least(TOTALS, j->channels - first)};
    MICA_FAMILY(j->kernels, last_pool)->totals(totals, &w);
    for (size_t c = 0; c < w.channels; c++)
        put_mean(j, j->first / j->channels + image, first + c, totals[c]);
}

/* A mica_conv_planes_fn, of images that lie channels last. */
static void pixels_means(mica_context *ctx, void *user, const float *planes, size_t first, size_t count)
{
    job *j = user;
    j->images = planes;
    j->first = first;
    mica_parallel_sums(ctx, 8.0 * (double)(count * j->pixels),
                       count / j->channels * mica_div_up(j->channels, TOTALS), pixels_mean, j);
}

/* The most of both ways, for this size or a smaller one that can follow. */
static size_t scratch_bytes(const mica_context *ctx, const mica_conv *c, const mica_conv_product *p)
{
    mica_conv_extent left = mica_conv_extent_of(c->batch, c->rows.narrow, c->columns.narrow), all = left;
    if (all.pixels == 0 || p->m == 0)
        return 0;
    size_t bias = mica_conv_bias_bytes(c, p->groups * p->m), totals = 0;
    if (ctx->one_size && mica_conv_tiles_total(p))
        return bias + totals_bytes(c, p->images * p->grid.down * p->grid.across) +
               mica_conv_product_bytes(ctx, p);
    if (ctx->one_size)
        return mica_conv_by_images_bytes(ctx, c);
    if (mica_conv_means_last(c)) {
        size_t some = mica_conv_some_bytes(c, &all, &left);
        return bias + some + mica_conv_product_most(ctx, p, &left);
    }
    mica_conv_grid tiles = {0};
    size_t before = mica_conv_columns_path.scratch(ctx, p, &left) +
                    mica_conv_winograd_path.scratch(ctx, p, &left);
    if (mica_conv_by_cost(p->channels, p->m))
        left = all;
    if (mica_conv_tiles_most(ctx, p, &tiles, &left))
        totals = totals_bytes(c, all.images * tiles.down * tiles.across) +
                 mica_conv_tiles_bytes(ctx, p, &tiles);
    if (before == 0 && left.pixels == 0 && !mica_conv_by_cost(p->channels, p->m) &&
        tiles.window.channels == p->channels) /* always by tiles */
        return bias + totals;
    mica_conv_product image = *p;
    image.means = false;
    size_t images = mica_conv_some_bytes(c, &all, &left);
    return bias + mica_most(totals, images + mica_conv_product_most(ctx, &image, &left));
}

mica_status mica_conv_mean(mica_context *ctx, const mica_conv *c)
{
    job j = {.c = c,
             .kernels = ctx->kernels,
             .channels = c->groups * c->narrow_channels,
             .pixels = c->rows.narrow * c->columns.narrow};
    mica_conv_product p = mica_conv_images_product(ctx, c, 0, c->batch);
    p.means = !mica_conv_means_last(c);
    mica_conv_product_plan(ctx, &p);
    void *scratch;
    MICA_START(ctx, c->op, scratch_bytes(ctx, c, &p), &scratch);
    if (!mica_conv_means_last(c) && mica_conv_tiles_total(&p))
        by_totals(ctx, &j, &p, scratch);
    else
        mica_conv_by_images(ctx, c, mica_conv_means_last(c) ? pixels_means : planes_means, &j, scratch);
    return MICA_OK;
}
