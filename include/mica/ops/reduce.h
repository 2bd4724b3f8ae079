/* Reductions: over all elements, or over any set of axes.
 *
 * Inputs are f32, of any layout. The order of additions depends on shapes and layouts only, never on the
 * number of threads. */
#ifndef MICA_OPS_REDUCE_H
#define MICA_OPS_REDUCE_H

#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- L2 normalize ---------------------------------------------------------------------------------------
 */

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
