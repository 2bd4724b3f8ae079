/* An image of any kind, told by its first bytes. */
#include "data/image_file.h"

#include "io/quote.h"
#include "tensor/tensor.h"

mica_status mica_image_check_size(mica_context *ctx, const mica_stream *stream, uint64_t at, const char *kind,
                                  uint64_t width, uint64_t height)
{
    const char *path = stream->file.path;
    if (width == 0 || height == 0 || width > INT32_MAX || height > INT32_MAX)
        return mica_fail(ctx, MICA_ERR_FORMAT, "%s: byte %llu: %s: invalid width or height", MICA_QUOTE(path),
                         (unsigned long long)at, kind);
    if (width * height > (uint64_t)MICA_IMAGE_MOST_PIXELS)
        return mica_fail(
            ctx, MICA_ERR_FORMAT,
            "%s: byte %llu: %s: an image of %llu by %llu pixels: expected at most %lld pixels in all",
            MICA_QUOTE(path), (unsigned long long)at, kind, (unsigned long long)width,
            (unsigned long long)height, (long long)MICA_IMAGE_MOST_PIXELS);
    return MICA_OK;
}

mica_status mica_image_take(mica_context *ctx, mica_loaded *out, int channels, size_t height, size_t width)
{
    mica_index dim[] = {1, channels, (mica_index)height, (mica_index)width};
    mica_loaded image = {.bytes = (size_t)channels * height * width};
    image.tensor.data = mica_allocate(ctx, image.bytes);
    if (image.tensor.data == NULL)
        return ctx->status;
    mica_status status = mica_tensor_init(ctx, &image.tensor, image.tensor.data, MICA_U8, 4, dim);
    if (status != MICA_OK) {
        mica_release(ctx, image.tensor.data, image.bytes);
        return status;
    }
    *out = image;
    return MICA_OK;
}

mica_status mica_image_read(mica_context *ctx, mica_loaded *out, mica_stream *stream)
{
    unsigned char head[4] = {0};
    size_t got;
    MICA_TRY(mica_stream_read(ctx, head, &got, stream, sizeof head));
    MICA_TRY(mica_stream_rewind(ctx, stream));
    if (head[0] == 0x89 && head[1] == 'P' && head[2] == 'N')
        return mica_png_read(ctx, out, stream);
    if (head[0] == 0xff && head[1] == 0xd8)
        return mica_jpeg_read(ctx, out, stream);
    if (head[0] == 'P' && head[1] >= '1' && head[1] <= '7')
        return mica_netpbm_read(ctx, out, stream);
    return mica_fail(ctx, MICA_ERR_FORMAT, "%s: byte 0: not an image: expected PNG, JPEG, PPM or PGM",
                     MICA_QUOTE(stream->file.path));
}
