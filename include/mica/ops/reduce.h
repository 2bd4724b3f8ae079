/* Reductions: over all elements, or over any set of axes.
 *
 * Inputs are f32, of any layout. dst is f32 and has the input's shape either without the reduced axes, or
 * with size 1 along them: its own shape says which. It must not overlap an input. The order of
 * additions depends on shapes and layouts only, never on the number of threads, and sums accumulate short runs in
 * double: their error is at most some 40 half-ulps of the sum of magnitudes, whatever the length.
 * sum, mean, prod, amax, amin, argmax and argmin also take f64 and integers of eight bits and more, dst but for the
 * last two being of the same dtype: integers wrap around, and their mean is rounded toward 0.
 * Reductions to few results take up to 352 KiB of scratch. */
#ifndef MICA_OPS_REDUCE_H
#define MICA_OPS_REDUCE_H

#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NULL: over all axes. */
typedef struct mica_reduce_opts {
    int axes[MICA_MAX_RANK]; /* may count from the end; none twice */
    int count;               /* how many axes; 0: all */
    int correction;          /* variance only: it divides by n - correction */
} mica_reduce_opts;

/* The sum; 0 if empty. Its gradient is dy, broadcast to a's shape. */
MICA_API mica_status mica_sum(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                              const mica_reduce_opts *opts);
/* The mean; NaN if empty. */
MICA_API mica_status mica_mean(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                               const mica_reduce_opts *opts);
/* The product, computed in double; 1 if empty. */
MICA_API mica_status mica_prod(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                               const mica_reduce_opts *opts);
/* The maximum, NaN if there is one. Fails on an empty reduction. */
MICA_API mica_status mica_amax(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                               const mica_reduce_opts *opts);
/* The minimum, NaN if there is one. Fails on an empty reduction. */
MICA_API mica_status mica_amin(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                               const mica_reduce_opts *opts);
/* sum((a - mean)^2) / (n - correction), by deviations from the mean: correction 1 is the unbiased estimate
 * of a sample. NaN where n <= correction. */
MICA_API mica_status mica_variance(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                   const mica_reduce_opts *opts);

typedef enum mica_norm_kind {
    MICA_NORM_L2,  /* root of the sum of squares; squares beyond the range of f32 overflow */
    MICA_NORM_L1,  /* sum of magnitudes */
    MICA_NORM_INF, /* largest magnitude */
} mica_norm_kind;

/* A norm of the elements; 0 if empty. */
MICA_API mica_status mica_norm(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                               mica_norm_kind kind, const mica_reduce_opts *opts);

/* sum(a * b) of two tensors of one shape; dst has one element. */
MICA_API mica_status mica_dot(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                              const mica_tensor *b);

/* *out: whether no element of a is infinite or NaN; true for an empty tensor. */
MICA_API mica_status mica_all_finite(mica_context *ctx, bool *out, const mica_tensor *a);

/* ---- Argmax and argmin --------------------------------------------------------------------------------- */

/* dst is i32 or i64. Of equal elements the first counts, and NaN is more extreme than any number. With
 * MICA_ALL_AXES as the axis the position is the one in row-major order. Fails on an empty
 * axis. */

/* Where along the axis the largest element is. */
MICA_API mica_status mica_argmax(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a, int axis);
/* Where along the axis the smallest element is. */
MICA_API mica_status mica_argmin(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a, int axis);
/* The gradient of amax or amin along one axis: dx is dy where `index`, from argmax or argmin, says the extreme
 * was, and 0 elsewhere. dy and index have dx's shape without the axis, or with size 1 along it. An index
 * outside the axis is an error, and nothing is written then. */
MICA_API mica_status mica_amax_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                        const mica_tensor *index, int axis);

/* ---- L2 normalize --------------------------------------------------------------------------------------- */

typedef struct mica_l2_normalize_opts {
    int axis;  /* may count from the end */
    float eps; /* the smallest norm to divide by; 0: 1e-12 */
} mica_l2_normalize_opts;

/* x / max(|x|, eps), |x| the root of the sum of squares along the axis. y may be exactly x. */
MICA_API mica_status mica_l2_normalize(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                       const mica_l2_normalize_opts *opts);
/* (dy - x (x.dy) / |x|^2) / |x|, or dy / eps where |x| < eps. dx may be exactly dy or x. */
MICA_API mica_status mica_l2_normalize_backward(mica_context *ctx, const mica_tensor *dx,
                                                const mica_tensor *dy, const mica_tensor *x,
                                                const mica_l2_normalize_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
