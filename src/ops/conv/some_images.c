/* Convolutions whose image is never stored as a whole: a few images at a time.
 *
 *   scratch:  [ bias, if it is strided | some images | the largest product's ]
 */
#include "base/size.h"
#include "ops/conv/product.h"

/* Pixels, and floats, of "some images": enough that what is done once for all of them, such as packing weights, does
 * not count. */
#define SOME_PIXELS 1024
#define SOME_FLOATS ((size_t)16384)

mica_conv_product mica_conv_images_product(const mica_context *ctx, const mica_conv *c, size_t first,
                                           size_t count)
{
    mica_conv_product p = mica_conv_narrow_product(ctx, c);
    size_t columns = p.in.columns.count, pixels = p.in.rows.count * columns;
    p.images = count;
    p.accumulate = false;
    p.out = (mica_conv_planes){.image_stride = (ptrdiff_t)(p.groups * p.m * pixels),
                               .channel_stride = (ptrdiff_t)pixels,
                               .row_stride = (ptrdiff_t)columns,
                               .column_stride = 1};
    if (mica_conv_means_last(c)) {
        ptrdiff_t channels = (ptrdiff_t)(p.groups * p.m);
        p.out.channel_stride = 1;
        p.out.row_stride = (ptrdiff_t)columns * channels;
        p.out.column_stride = channels;
    }
    if (!ctx->measuring)
        p.in.data += (ptrdiff_t)first * p.in.image_stride;
    return p;
}

size_t mica_conv_some_bytes(const mica_conv *c, const mica_conv_extent *most, mica_conv_extent *some)
{
    /* Images are taken until they have that many pixels, or as many as fit so many floats, or one: pixels of all of
     * them at most. */
    size_t channels = mica_most(1, c->groups * c->narrow_channels), image = mica_conv_extent_image(most);
    size_t pixels = mica_most(SOME_PIXELS - 1 + image, SOME_FLOATS / channels);
    *some = *most;
    some->pixels = mica_least(some->pixels, pixels);
    some->images = mica_least(some->images, pixels);
    return mica_align_up(channels * mica_conv_extent_pixels(some) * sizeof(float));
}

/* Images at a time. */
static size_t some_of(const mica_conv *c)
{
    size_t pixels = c->rows.narrow * c->columns.narrow, image = c->groups * c->narrow_channels * pixels;
    size_t some = mica_most(mica_div_up(SOME_PIXELS, mica_most(1, pixels)),
                            SOME_FLOATS / mica_most(1, image));
    return mica_most(1, mica_least(some, c->batch));
}

static size_t images_bytes(const mica_conv *c, size_t some)
{
    return mica_align_up(some * c->groups * c->narrow_channels * c->rows.narrow * c->columns.narrow *
                         sizeof(float));
}

size_t mica_conv_by_images_bytes(const mica_context *ctx, const mica_conv *c)
{
    size_t some = some_of(c), counts[2] = {some, c->batch % some}, bytes = 0;
    for (int i = 0; i < 2; i++) {
        mica_conv_product p = mica_conv_images_product(ctx, c, 0, counts[i]);
        mica_conv_product_plan(ctx, &p);
        bytes = mica_most(bytes, mica_conv_product_bytes(ctx, &p));
    }
    return mica_conv_bias_bytes(c, c->groups * c->narrow_channels) + images_bytes(c, some) + bytes;
}

void mica_conv_by_images(mica_context *ctx, const mica_conv *c, mica_conv_planes_fn *then, void *user,
                         void *scratch)
{
    size_t channels = c->groups * c->narrow_channels, all = c->batch, some = some_of(c);
    size_t bias = mica_conv_bias_bytes(c, channels), images = images_bytes(c, some);
    const float *bias_values = mica_conv_load_bias(c, channels, scratch);
    float *made = (float *)(void *)((char *)scratch + bias);
    for (size_t first = 0; first < all; first += some) {
        size_t count = mica_least(some, all - first);
        mica_conv_product p = mica_conv_images_product(ctx, c, first, count);
        mica_conv_product_plan(ctx, &p);
        p.bias = bias_values;
        p.out.data = made;
        p.scratch = (char *)scratch + bias + images;
        if (c->pool != NULL)
            p.finish = NULL; /* comes after it */
        mica_conv_product_run(ctx, &p);
        then(ctx, user, made, first * channels, count * channels);
    }
}
