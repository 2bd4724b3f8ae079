/* What the library's own files ask of tensors besides mica/tensor.h. */
#ifndef MICA_SRC_TENSOR_TENSOR_H
#define MICA_SRC_TENSOR_TENSOR_H

#include <mica/tensor.h>

#include "base/context.h"

/* Room for the text of any shape in a message: eight sizes of up to twenty characters. */
#if defined(MICA_SMALL)
#define MICA_SHAPE_TEXT 112
#else
#define MICA_SHAPE_TEXT 184
#endif

/* "[2, 3]" as a value, for use as an argument of mica_fail: MICA_SHAPE(t). */
typedef struct mica_shape_text {
    char text[MICA_SHAPE_TEXT];
} mica_shape_text;

mica_shape_text mica_shape_text_of(int rank, const mica_index *dims);
#define MICA_SHAPE(t) (mica_shape_text_of((t)->rank, (t)->dim).text)

/* What is wrong with a tensor as such: "is NULL", "has rank 9 (0 to 8 can be)"; NULL if nothing is. Its data
 * may be NULL here. A sound tensor's elements can be counted, and its positions computed in bytes, without
 * overflow. `text` holds the words where they have numbers in them. */
const char *mica_tensor_flaw(const mica_tensor *t, char text[MICA_SHAPE_TEXT]);

/* Fails with the flaw: "argument error: add: a has rank 9 (0 to 8 can be)". */
mica_status mica_tensor_check(mica_context *ctx, const char *op, const char *name, const mica_tensor *t);

/* Strides of a contiguous tensor of t's shape. */
void mica_tensor_set_strides(mica_tensor *t);
/* The same of an image [N, C, ...] whose channels lie last. */
void mica_tensor_set_channels_last(mica_tensor *t);
/* Whether the channels of an image [N, C, ...] lie last, where there are several: strides tell it of one pixel, too. */
bool mica_channels_last(const mica_tensor *t);

/* t's elements in another shape of as many elements, sharing memory; false where strides do not allow it. */
bool mica_tensor_refit(mica_tensor *out, const mica_tensor *t, int rank, const mica_index *dims);

/* An axis counted from the end made one counted from the start; false if there is none such. */
static inline bool mica_axis_resolve(int *axis, int rank)
{
    if (*axis < -rank || *axis >= rank)
        return false;
    if (*axis < 0)
        *axis += rank;
    return true;
}

/* Whether values of this dtype lie in blocks. */
static inline bool mica_in_blocks(mica_dtype dtype) { return mica_dtype_block(dtype) > 1; }

/* Kinds of plain types; a bool is neither a float nor an integer. */
static inline bool mica_is_small_float(mica_dtype dtype)
{
    return dtype >= MICA_F8E4M3FN && dtype <= MICA_F4E2M1;
}
static inline bool mica_is_float(mica_dtype dtype)
{
    return dtype <= MICA_BF16 || mica_is_small_float(dtype);
}
static inline bool mica_is_integer(mica_dtype dtype) { return dtype >= MICA_I64 && dtype <= MICA_U2; }

/* What every call looks up of its tensors' dtypes, once these are known to be valid. */
typedef struct mica_dtype_kind {
    const char *name;
    size_t bytes, block;
} mica_dtype_kind;
extern const mica_dtype_kind mica_dtype_kinds[MICA_DTYPE_COUNT];

/* Bytes from one element to another `offset` elements on; where there are blocks, between the blocks they lie in,
 * counted from the start of a block. */
static inline mica_index mica_offset_bytes(mica_dtype dtype, mica_index offset)
{
    mica_index block = (mica_index)mica_dtype_kinds[dtype].block,
               bytes = (mica_index)mica_dtype_kinds[dtype].bytes;
    if (block == 1)
        return offset * bytes;
    mica_index inside = offset % block;
    return (offset - (inside < 0 ? inside + block : inside)) / block * bytes;
}

/* The element at an offset; where there are blocks, the block that holds it. */
static inline char *mica_element(const mica_tensor *t, mica_index offset)
{
    return (char *)t->data + mica_offset_bytes(t->dtype, offset);
}

#endif
