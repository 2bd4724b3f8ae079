/* Moving elements between any two layouts, with conversion: what copies, fills and shape operations run on. */
#ifndef MICA_SRC_OPS_MOVE_H
#define MICA_SRC_OPS_MOVE_H

#include <mica/tensor.h>

#include "base/context.h"
#include "kernel/kernels.h"

/* One line of elements: where it starts, and how far apart its elements lie. */
typedef struct mica_line {
    void *data;
    mica_dtype dtype;
    mica_index stride; /* in elements */
} mica_line;

/* dst = src, both of n elements. They may be the same line, and share nothing otherwise. */
void mica_move_line(const mica_convert_kernels *convert, mica_line dst, mica_line src, mica_index n);

/* dst = src broadcast to dst's shape, with all threads. Arguments were checked before; dst may be exactly
 * src. */
void mica_move(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src);

/* The same where dst, src or both have blocks, which mica_move does not take. */
void mica_move_blocks(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src);

/* dst = src, both in row-major order: as many elements, any two shapes, sharing nothing. */
void mica_move_in_order(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src);

/* The same elements in the same row-major order, on as few axes as the strides allow, but on one at least. */
mica_tensor mica_join_axes(const mica_tensor *t);

/* Writes n values to the elements of dst from row-major position `position` on. dst has rank 1 at least. */
void mica_move_run(const mica_convert_kernels *convert, const mica_tensor *dst, mica_index position,
                   mica_line values, mica_index n);

/* The other way: n elements of src from `position` on. */
void mica_fetch_run(const mica_convert_kernels *convert, mica_line values, const mica_tensor *src,
                    mica_index position, mica_index n);

#endif
