/* What a scatter does with the elements that are there, for every dtype that it takes. */
#ifndef MICA_SRC_OPS_COMBINE_H
#define MICA_SRC_OPS_COMBINE_H

#include <mica/ops/index.h>

#include "ops/check.h"

/* The types with an arithmetic of their own in C: f32, f64 and integers. */
#define MICA_INTEGER_LIST(X) \
    X(I64, int64_t)          \
    X(I32, int32_t)          \
    X(I16, int16_t)          \
    X(I8, int8_t)            \
    X(U8, uint8_t)           \
    X(U16, uint16_t)         \
    X(U32, uint32_t)         \
    X(U64, uint64_t)
#define MICA_NUMBER_LIST(X) \
    X(F32, float)           \
    X(F64, double)          \
    MICA_INTEGER_LIST(X)
#define MICA_NUMBER_BIT(code, type) | MICA_DTYPE_BIT(MICA_##code)
#define MICA_DTYPES_NUMBER          (0u MICA_NUMBER_LIST(MICA_NUMBER_BIT))

/* to[i] = to[i] op from[i], n elements of one dtype. */
typedef void mica_combine_fn(void *to, mica_index to_stride, const void *from, mica_index from_stride,
                             mica_index n);

/* NULL: the dtype has no such arithmetic. */
mica_combine_fn *mica_combine_for(mica_scatter_kind kind, mica_dtype dtype);

/* dst and src have one dtype, which this kind takes. */
mica_status mica_check_combine(mica_context *ctx, const char *op, mica_scatter_kind kind,
                               const mica_tensor *dst, const mica_tensor *src);

#endif
