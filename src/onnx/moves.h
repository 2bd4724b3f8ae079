/* What several families of operators do to tensors without computing: constants that are filled in, slices, joins, axes
 * that come and go. compose.h has the arithmetic. */
#ifndef MICA_SRC_ONNX_MOVES_H
#define MICA_SRC_ONNX_MOVES_H

#include "onnx/import.h"

/* A constant whose elements are yet to be written: *data is not NULL unless the node has failed. */
mica_onnx_ref mica_onnx_fresh(mica_onnx_importing *n, mica_dtype dtype, int rank, const mica_index *dims,
                              void **data);
/* A constant of this shape that holds 0, or nothing. */
mica_onnx_ref mica_onnx_zeros(mica_onnx_importing *n, mica_dtype dtype, int rank, const mica_index *dims);
/* Memory that lasts as long as the model; NULL, having failed the node, if there is none left. */
void *mica_onnx_room(mica_onnx_importing *n, size_t count, size_t size);

/* Elements from start to before stop along an axis, as in Python. */
mica_onnx_ref mica_onnx_slice(mica_onnx_importing *n, mica_onnx_ref x, int axis, int64_t start, int64_t stop,
                              int64_t step);
/* The same one by one; all of them: as it is. */
mica_onnx_ref mica_onnx_part(mica_onnx_importing *n, mica_onnx_ref x, int axis, mica_index start,
                             mica_index stop);
/* Any number of them joined along an axis, by several calls where one cannot take them all. Uses refs as its own. */
mica_onnx_ref mica_onnx_join(mica_onnx_importing *n, mica_onnx_ref *refs, int count, int axis);
/* With another axis of size 1; without one; without those of the mask. */
mica_onnx_ref mica_onnx_add_axis(mica_onnx_importing *n, mica_onnx_ref x, int axis);
mica_onnx_ref mica_onnx_drop_axis(mica_onnx_importing *n, mica_onnx_ref x, int axis);
mica_onnx_ref mica_onnx_drop_axes(mica_onnx_importing *n, mica_onnx_ref x, unsigned mask);
/* [C] in a shape that broadcasts along axis 1 of a tensor of this rank. */
mica_onnx_ref mica_onnx_by_channel(mica_onnx_importing *n, mica_onnx_ref x, int rank);
/* Whether it has exactly this shape. */
bool mica_onnx_has_shape(mica_onnx_importing *n, mica_onnx_ref x, int rank, const mica_index *dims);
/* In this shape, which its own broadcasts to; sizes that are its own follow those of the step. */
mica_onnx_ref mica_onnx_expand(mica_onnx_importing *n, mica_onnx_ref x, int rank, const mica_index *dims);

/* Axes that are an attribute, or input `number` (where there is one), as a mask of those of x. -1: neither is there. */
int mica_onnx_axes(mica_onnx_importing *n, const char *name, int number, mica_onnx_ref x, unsigned *mask);
/* Indices of x along an axis as Mica takes them: not negative. */
mica_onnx_ref mica_onnx_indices(mica_onnx_importing *n, mica_onnx_ref index, mica_onnx_ref x,
                                const mica_wrap_opts *opts);

static inline bool mica_onnx_is_float(mica_dtype dtype)
{
    return dtype == MICA_F32 || dtype == MICA_F64 || dtype == MICA_F16 || dtype == MICA_BF16;
}
/* A float type that is computed in f32. */
static inline bool mica_onnx_is_half(mica_dtype dtype) { return dtype == MICA_F16 || dtype == MICA_BF16; }

#endif
