/* Linear algebra: matrix products. All tensors are f32, of any layout. dst must not overlap an input. A matmul without
 * further options takes f64 and integers of eight bits and more as well, all of one dtype; integers wrap around. */
#ifndef MICA_OPS_LINALG_H
#define MICA_OPS_LINALG_H

#include <mica/ops/activation.h>
#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mica_matmul_opts {
    bool transpose_a;            /* a is given as [..., K, M] */
    bool transpose_b;            /* b is given as [..., N, K] */
    float alpha;                 /* 0: 1 */
    float beta;                  /* dst is only read if this is not 0 */
    const mica_tensor *bias;     /* [N], contiguous, added to every row; or NULL */
    const mica_tensor *residual; /* added too, broadcast to dst; may be exactly dst; or NULL. Not with beta */
    mica_activation activation;
    float slope; /* of leaky_relu, and elu's alpha, as it is: 0 is 0 */
} mica_matmul_opts;

/* dst = activation(alpha * a b + beta * dst + bias + residual)
 *
 * a [..., M, K], b [..., K, N], dst [..., M, N]. The leading axes of a and b broadcast to those of dst, so a
 * 2-D matrix serves a whole batch. The gradients are products again: da = dc bT, db = aT dc. Takes scratch. */
MICA_API mica_status mica_matmul(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                 const mica_tensor *b, const mica_matmul_opts *opts);

/* dst [M] = a [M, K] x [K]. Takes scratch. */
MICA_API mica_status mica_matvec(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                 const mica_tensor *x);

/* dst [M, N] = a [M] times b [N] */
MICA_API mica_status mica_outer(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                const mica_tensor *b);

#ifdef __cplusplus
}
#endif
#endif
