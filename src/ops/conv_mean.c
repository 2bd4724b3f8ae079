/* Convolution that ends with the mean of each channel, whose image is never there as a whole.
 *
 * Tiles add their sums up as they come out of the registers: what is left of a block is a total for each channel, and
 * these are added in the order of the blocks. The other ways make some images at a time, and their planes are then
 * added up.
 *
 *   tiles:    [ bias, if it is strided | totals | the product's ]
 *   others:   [ bias, if it is strided | some images | the largest product's ]
 */
#include <math.h>

#include "base/parallel.h"
#include "base/size.h"
#include "ops/conv_product.h"

/* Pixels, and floats, of "some images": enough that what is done once for all of them, such as packing weights, does
 * not count. */
#define SOME_PIXELS 1024
#define SOME_FLOATS ((size_t)65536)

typedef struct job {
    const mica_conv *c;
    const mica_kernels *kernels;
    size_t channels, pixels; /* of all groups; of an image */
    size_t first;            /* image */
    const float *images;     /* [.., channels, pixels] from `first` on */
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
    j->kernels->reduce->sum.row(&total, j->images + plane * j->pixels, j->pixels, 0.0f);
    put_mean(j, j->first + plane / j->channels, plane % j->channels, total);
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

/* A planned product for `count` images from `first` on, whose image is contiguous. */
static mica_conv_product plan(const mica_context *ctx, const mica_conv *c, size_t first, size_t count)
{
    mica_conv_product p = mica_conv_narrow_product(ctx, c);
    size_t columns = p.in.columns.count, pixels = p.in.rows.count * columns;
    p.images = count;
    p.accumulate = false;
    p.out = (mica_conv_planes){.image_stride = (ptrdiff_t)(p.groups * p.m * pixels),
                               .channel_stride = (ptrdiff_t)pixels,
                               .row_stride = (ptrdiff_t)columns,
                               .column_stride = 1};
    if (!ctx->measuring)
        p.in.data += (ptrdiff_t)first * p.in.image_stride;
    mica_conv_product_plan(ctx, &p);
    return p;
}

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

static mica_status by_totals(mica_context *ctx, job *j, mica_conv_product *p)
{
    const mica_conv *c = j->c;
    j->blocks = p->grid.down * p->grid.across;
    size_t bias = mica_conv_bias_bytes(c, j->channels);
    size_t totals = mica_align_up(p->images * j->blocks * j->channels * sizeof(double));
    void *scratch;
    MICA_START(ctx, c->op, bias + totals + mica_conv_product_bytes(ctx, p), &scratch);
    p->bias = mica_conv_load_bias(c, j->channels, scratch);
    p->ending = ending_of(c);
    p->totals = (double *)(void *)((char *)scratch + bias);
    p->scratch = (char *)scratch + bias + totals;
    mica_conv_product_run(ctx, p);
    j->totals = p->totals;
    for (size_t image = 0; image < p->images; image++)
        block_means(j, image);
    return MICA_OK;
}

static mica_status by_images(mica_context *ctx, job *j)
{
    const mica_conv *c = j->c;
    size_t image = j->channels * j->pixels, all = c->batch;
    size_t some = mica_most(mica_div_up(SOME_PIXELS, j->pixels), SOME_FLOATS / mica_most(1, image));
    some = mica_most(1, mica_least(some, all));
    size_t rest = all % some != 0 ? all % some : some;
    mica_conv_product p = plan(ctx, c, 0, some), last = plan(ctx, c, 0, rest);
    size_t bias = mica_conv_bias_bytes(c, j->channels), images = mica_align_up(some * image * sizeof(float));
    size_t product = mica_most(mica_conv_product_bytes(ctx, &p), mica_conv_product_bytes(ctx, &last));
    void *scratch;
    MICA_START(ctx, c->op, bias + images + product, &scratch);
    const float *bias_values = mica_conv_load_bias(c, j->channels, scratch);
    float *made = (float *)(void *)((char *)scratch + bias);
    j->images = made;
    for (; j->first < all; j->first += some) {
        size_t count = mica_least(some, all - j->first);
        p = plan(ctx, c, j->first, count);
        p.bias = bias_values;
        p.out.data = made;
        p.scratch = (char *)scratch + bias + images;
        mica_conv_product_run(ctx, &p);
        mica_parallel_sums(ctx, 8.0 * (double)(count * image), count * j->channels, plane_mean, j);
    }
    return MICA_OK;
}

mica_status mica_conv_mean(mica_context *ctx, const mica_conv *c)
{
    job j = {.c = c,
             .kernels = ctx->kernels,
             .channels = c->groups * c->narrow_channels,
             .pixels = c->rows.narrow * c->columns.narrow};
    mica_conv_product p = plan(ctx, c, 0, c->batch);
    return mica_conv_tiles_total(&p) ? by_totals(ctx, &j, &p) : by_images(ctx, &j);
}
