/* Arithmetic in dtypes other than f32, which has vector kernels: integers, exact and wrapping, f64 in double, and bool.
 *
 * Plain loops, one set for each type (typed_type.h). The operations that everybody calls, mica_add and so on, come here
 * by the dtype of their input. */
#ifndef MICA_SRC_OPS_TYPED_H
#define MICA_SRC_OPS_TYPED_H

#include "ops/check.h"

/* Of all types that are computed in; of integers, and for the last of bool; of floats. */
#define MICA_TYPED_ANY(X) \
    X(add)                \
    X(sub)                \
    X(mul)                \
    X(div)                \
    X(min) X(max) X(pow) X(mod) X(fmod) X(eq) X(ne) X(lt) X(le) X(gt) X(ge) X(neg) X(abs) X(sign) X(square)
#define MICA_TYPED_INTEGERS(X) X(shift_left) X(shift_right) X(bit_and) X(bit_or) X(bit_xor) X(bit_not)
#define MICA_TYPED_FLOATS(X)   X(sqrt) X(floor) X(ceil) X(round)

typedef enum mica_typed_code {
#define MICA_TYPED_CODE(name) MICA_TYPED_##name,
    MICA_TYPED_ANY(MICA_TYPED_CODE) MICA_TYPED_INTEGERS(MICA_TYPED_CODE) MICA_TYPED_FLOATS(MICA_TYPED_CODE)
#undef MICA_TYPED_CODE
        MICA_TYPED_CODES
} mica_typed_code;

/* The dtypes that the operation has loops for, as MICA_DTYPE_BITs. f32 is among them, for those without a vector
 * kernel. */
uint64_t mica_typed_dtypes(mica_typed_code code);

/* Whether an operation on this input is for mica_typed_op: not for f32, and not for what must be refused. */
static inline bool mica_typed_takes(mica_typed_code code, const mica_tensor *a)
{
#if defined(MICA_SMALL) /* which leaves them out */
    return (void)code, (void)a, false;
#else
    return a != NULL && a->dtype != MICA_F32 && (unsigned)a->dtype < MICA_DTYPE_COUNT &&
           (mica_typed_dtypes(code) & MICA_DTYPE_BIT(a->dtype));
#endif
}

/* The whole operation: args[0] is the destination, the others are sources that broadcast to it, all of one dtype, that
 * of args[1]. The destination of a comparison is bool or u8. */
mica_status mica_typed_op(mica_context *ctx, const char *op, mica_typed_code code, mica_arg *args, int count);

/* Whether a choice of this input is for mica_typed_where. */
static inline bool mica_typed_chooses(const mica_tensor *a)
{
#if defined(MICA_SMALL)
    return (void)a, false;
#else
    return a != NULL && a->dtype != MICA_F32 && (unsigned)a->dtype < MICA_Q4_0;
#endif
}

/* cond ? a : b of any plain dtype; cond is bool, u8 or f32. */
mica_status mica_typed_where(mica_context *ctx, const char *op, mica_arg *args);

/* ---- Reductions ---- */

typedef enum mica_typed_fold {
    MICA_FOLD_SUM,
    MICA_FOLD_PROD,
    MICA_FOLD_MAX,
    MICA_FOLD_MIN,
    MICA_FOLD_MEAN
} mica_typed_fold;

#define MICA_DTYPES_TYPED                                                             \
    (MICA_DTYPE_BIT(MICA_F64) | MICA_DTYPE_BIT(MICA_I64) | MICA_DTYPE_BIT(MICA_I32) | \
     MICA_DTYPE_BIT(MICA_I16) | MICA_DTYPE_BIT(MICA_I8) | MICA_DTYPE_BIT(MICA_U8) |   \
     MICA_DTYPE_BIT(MICA_U16) | MICA_DTYPE_BIT(MICA_U32) | MICA_DTYPE_BIT(MICA_U64))

static inline bool mica_typed_folds(const mica_tensor *a)
{
#if defined(MICA_SMALL)
    return (void)a, false;
#else
    return a != NULL && (unsigned)a->dtype < MICA_DTYPE_COUNT &&
           (MICA_DTYPES_TYPED & MICA_DTYPE_BIT(a->dtype));
#endif
}

/* kept = a, reduced over the axes of `mask`; both of one dtype, checked before. An empty sum is 0, an empty product
 * is 1. */
void mica_typed_reduce(mica_context *ctx, mica_typed_fold fold, const mica_tensor *kept, const mica_tensor *a,
                       unsigned mask);
/* kept (i32 or i64) = where along the axis the extreme of a is. */
void mica_typed_arg(mica_context *ctx, bool largest, const mica_tensor *kept, const mica_tensor *a, int axis);

/* dst [..., M, N] = a [..., M, K] b [..., K, N], whose leading axes are dst's, or were broadcast to them. */
void mica_typed_matmul(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a, const mica_tensor *b);

#endif
