/* Conversion of byte images to the channels and size of a net's input. */
#include <math.h>

#include <mica/data.h>

#include "ops/check.h"
#include "tensor/tensor.h"

/* Element [c, y, x] of an image. */
static float byte_at(const mica_tensor *t, mica_index c, mica_index y, mica_index x)
{
    return (float)*((const uint8_t *)t->data + c * t->stride[0] + y * t->stride[1] + x * t->stride[2]);
}

/* Channel `channel` of `channels` (1: grey, 3: RGB) at a pixel, with what is transparent on white. */
static float colour_at(const mica_tensor *image, mica_index channels, mica_index channel, mica_index y,
                       mica_index x)
{
    mica_index own = image->dim[0];
    bool colours = own >= 3, alpha = own == 2 || own == 4;
    float value;
    if (colours && channels == 1)
        value = 0.299f * byte_at(image, 0, y, x) + 0.587f * byte_at(image, 1, y, x) +
                0.114f * byte_at(image, 2, y, x);
    else
        value = byte_at(image, colours ? channel : 0, y, x);
    if (!alpha)
        return value;
    float opaque = byte_at(image, own - 1, y, x) / 255.0f;
    return value * opaque + 255.0f * (1.0f - opaque);
}

/* The source pixels that one pixel of an axis is made of: a tent around its middle, as wide as the pixel where
 * the image shrinks, and one source pixel each way where it grows. */
typedef struct tent {
    mica_index first, last;
    float middle, reach;
} tent;

static tent tent_at(mica_index at, mica_index size, mica_index source)
{
    float scale = (float)source / (float)size;
    tent t = {.middle = ((float)at + 0.5f) * scale - 0.5f, .reach = scale > 1.0f ? scale : 1.0f};
    float low = ceilf(t.middle - t.reach), high = floorf(t.middle + t.reach);
    t.first = low > 0.0f ? (mica_index)low : 0;
    t.last = high < (float)(source - 1) ? (mica_index)high : source - 1;
    return t;
}

static float weight(const tent *t, mica_index at)
{
    float w = 1.0f - fabsf((float)at - t->middle) / t->reach;
    return w > 0.0f ? w : 0.0f;
}

static float pixel(const mica_tensor *image, mica_index channels, mica_index channel, const tent *ty,
                   const tent *tx)
{
    float sum = 0.0f, weights = 0.0f;
    for (mica_index y = ty->first; y <= ty->last; y++) {
        for (mica_index x = tx->first; x <= tx->last; x++) {
            float w = weight(ty, y) * weight(tx, x);
            sum += w * colour_at(image, channels, channel, y, x);
            weights += w;
        }
    }
    return sum / weights;
}

static mica_status check(mica_context *ctx, const char *op, const mica_tensor *dst, const mica_tensor *image)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, 0}, {"image", image, 0, MICA_DTYPE_BIT(MICA_U8)}};
    MICA_TRY(mica_check_args(ctx, op, args, 2));
    MICA_TRY(mica_check_rank(ctx, op, "dst", dst, 3, 3));
    MICA_TRY(mica_check_rank(ctx, op, "image", image, 3, 3));
    if (image->dim[0] < 1 || image->dim[0] > 4 || image->dim[1] < 1 || image->dim[2] < 1)
        return mica_fail(ctx, MICA_ERR_SHAPE,
                         "%s: image is %s: expected 1 to 4 channels and at least one pixel", op,
                         MICA_SHAPE(image));
    if (dst->dim[0] != 1 && dst->dim[0] != 3)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: dst is %s: expected 1 channel (greyscale) or 3 (RGB)", op,
                         MICA_SHAPE(dst));
    return MICA_OK;
}

mica_status mica_image_fit(mica_context *ctx, const mica_tensor *dst, const mica_tensor *image)
{
    static const char op[] = "image_fit";
    MICA_TRY(check(ctx, op, dst, image));
    MICA_START(ctx, op, 0, NULL);
    for (mica_index c = 0; c < dst->dim[0]; c++) {
        for (mica_index y = 0; y < dst->dim[1]; y++) {
            tent ty = tent_at(y, dst->dim[1], image->dim[1]);
            float *row = (float *)dst->data + c * dst->stride[0] + y * dst->stride[1];
            for (mica_index x = 0; x < dst->dim[2]; x++) {
                tent tx = tent_at(x, dst->dim[2], image->dim[2]);
                row[x * dst->stride[2]] = pixel(image, dst->dim[0], c, &ty, &tx);
            }
        }
    }
    return MICA_OK;
}
