/* Files of one image: what their readers share. */
#ifndef MICA_SRC_DATA_IMAGE_FILE_H
#define MICA_SRC_DATA_IMAGE_FILE_H

#include "data/load.h"

/* Fails unless an image of `kind`, as its header up to byte `at` has it, has pixels, and no more than the limit. */
mica_status mica_image_check_size(mica_context *ctx, const mica_stream *stream, uint64_t at, const char *kind,
                                  uint64_t width, uint64_t height);

/* Takes the block of an image [1, channels, height, width] of bytes, whose size was checked. */
mica_status mica_image_take(mica_context *ctx, mica_loaded *out, int channels, size_t height, size_t width);

/* Each kind, and any of them by its first bytes. */
mica_read_fn mica_png_read, mica_netpbm_read, mica_jpeg_read, mica_image_read;

#endif
