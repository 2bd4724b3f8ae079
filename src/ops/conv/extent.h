/* The sizes up to which scratch must be enough: those of a call, and every smaller step of the same net. */
#ifndef MICA_SRC_OPS_CONV_EXTENT_H
#define MICA_SRC_OPS_CONV_EXTENT_H

#include "base/context.h"
#include "base/size.h"

/* Output sizes, each up to these, with at most so many pixels in all images together. What does not change with the
 * step (channels, taps, strides, layout) is not among them. */
typedef struct mica_conv_extent {
    size_t images, rows, columns;
    size_t pixels;
} mica_conv_extent;

static inline mica_conv_extent mica_conv_extent_of(size_t images, size_t rows, size_t columns)
{
    return (mica_conv_extent){images, rows, columns, images * rows * columns};
}

/* The most pixels of all images, and of one. */
static inline size_t mica_conv_extent_pixels(const mica_conv_extent *e)
{
    return mica_least(e->pixels, e->images * e->rows * e->columns);
}
static inline size_t mica_conv_extent_image(const mica_conv_extent *e)
{
    return mica_least(e->pixels, e->rows * e->columns);
}

/* No sizes at all. */
static inline void mica_conv_extent_clear(mica_conv_extent *e) { e->images = e->pixels = 0; }

/* Scratch of which each thread that works at a time has a part, for so many blocks of work: where there are fewer of
 * these than threads, each block has a part of its own. */
static inline size_t mica_conv_parts(const mica_context *ctx, size_t blocks)
{
    return mica_least(blocks, (size_t)ctx->threads);
}
static inline size_t mica_conv_part(const mica_context *ctx, size_t blocks, size_t block, int thread)
{
    return blocks <= (size_t)ctx->threads ? block : (size_t)thread;
}

#endif
