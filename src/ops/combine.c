/* Elements that are replaced, added to, multiplied or compared, one line at a time. */
#include "ops/combine.h"

#include <stddef.h>

/* ---- Set: by the size of an element ---- */

#define SET(bits)                                                                                    \
    static void set_##bits(void *to, mica_index to_stride, const void *from, mica_index from_stride, \
                           mica_index n)                                                             \
    {                                                                                                \
        for (mica_index i = 0; i < n; i++)                                                           \
            ((uint##bits##_t *)to)[i * to_stride] = ((const uint##bits##_t *)from)[i * from_stride]; \
    }
SET(8)
SET(16)
SET(32)
SET(64)

static mica_combine_fn *set_for(mica_dtype dtype)
{
    switch (mica_dtype_bytes(dtype)) {
    case 1:
        return set_8;
    case 2:
        return set_16;
    case 4:
        return set_32;
    default:
        return set_64;
    }
}

/* ---- Arithmetic. Integers wrap around; a NaN stays ---- */

#define LINE(name, code, type, statement)                                                               \
    static void name##_##code(void *to, mica_index to_stride, const void *from, mica_index from_stride, \
                              mica_index n)                                                             \
    {                                                                                                   \
        for (mica_index i = 0; i < n; i++) {                                                            \
            type *a = (type *)to + i * to_stride, b = ((const type *)from)[i * from_stride];            \
            statement;                                                                                  \
        }                                                                                               \
    }
#define INTEGER(code, type)                                       \
    LINE(add, code, type, (void)__builtin_add_overflow(*a, b, a)) \
    LINE(mul, code, type, (void)__builtin_mul_overflow(*a, b, a)) \
    LINE(min, code, type, *a = b < *a ? b : *a)                   \
    LINE(max, code, type, *a = b > *a ? b : *a)
#define FLOATING(code, type)                              \
    LINE(add, code, type, *a += b)                        \
    LINE(mul, code, type, *a *= b)                        \
    LINE(min, code, type, *a = b < *a || b != b ? b : *a) \
    LINE(max, code, type, *a = b > *a || b != b ? b : *a)
MICA_INTEGER_LIST(INTEGER)
FLOATING(F32, float)
FLOATING(F64, double)

static mica_combine_fn *const table[][MICA_DTYPE_COUNT] = {
#define ADD(code, type) [MICA_##code] = add_##code,
#define MUL(code, type) [MICA_##code] = mul_##code,
#define MIN(code, type) [MICA_##code] = min_##code,
#define MAX(code, type) [MICA_##code] = max_##code,
    [MICA_SCATTER_ADD] = {MICA_NUMBER_LIST(ADD)},
    [MICA_SCATTER_MUL] = {MICA_NUMBER_LIST(MUL)},
    [MICA_SCATTER_MIN] = {MICA_NUMBER_LIST(MIN)},
    [MICA_SCATTER_MAX] = {MICA_NUMBER_LIST(MAX)},
};

mica_combine_fn *mica_combine_for(mica_scatter_kind kind, mica_dtype dtype)
{
    if ((unsigned)kind > MICA_SCATTER_MAX || (unsigned)dtype >= MICA_DTYPE_COUNT)
        return NULL;
    return kind == MICA_SCATTER_SET ? set_for(dtype) : table[kind][dtype];
}

mica_status mica_check_combine(mica_context *ctx, const char *op, mica_scatter_kind kind,
                               const mica_tensor *dst, const mica_tensor *src)
{
    if ((unsigned)kind > MICA_SCATTER_MAX)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: unknown kind %d", op, (int)kind);
    if (dst->dtype != src->dtype)
        return mica_fail(ctx, MICA_ERR_DTYPE, "%s: dst %s is %s, src %s is %s: expected the same", op,
                         MICA_SHAPE(dst), mica_dtype_name(dst->dtype), MICA_SHAPE(src),
                         mica_dtype_name(src->dtype));
    if (mica_combine_for(kind, dst->dtype) == NULL)
        return mica_fail(ctx, MICA_ERR_DTYPE,
                         "%s: dst %s is %s, which can be set alone: expected f32, f64 or an integer type", op,
                         MICA_SHAPE(dst), mica_dtype_name(dst->dtype));
    return MICA_OK;
}
