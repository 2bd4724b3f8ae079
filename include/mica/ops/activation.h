/* Activations, forward and backward.
 *
 * Tensors are f32, of any layout and of one shape (x may also broadcast to y). Each backward gives
 * dx = dy * f'(x), from dy and either the input x or the output y of the forward call: from y wherever that
 * is enough, so that x need not be kept. y may be exactly x, and dx exactly any of its inputs. */
#ifndef MICA_OPS_ACTIVATION_H
#define MICA_OPS_ACTIVATION_H

#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Activations by name: as layers, and as the end of other operations, which then apply them to their result
 * while it is still in the cache. */
#define MICA_ACTIVATION_LIST(X) \
    X(RELU, relu)               \
    X(RELU6, relu6)             \
    X(LEAKY_RELU, leaky_relu)   \
    X(ELU, elu)                 \
    X(SIGMOID, sigmoid)         \
    X(TANH, tanh)               \
    X(SOFTPLUS, softplus)       \
    X(SILU, silu)               \
    X(GELU, gelu)               \
    X(GELU_TANH, gelu_tanh)     \
    X(HARD_SWISH, hard_swish)

typedef enum mica_activation {
    MICA_NO_ACTIVATION,
#define MICA_ACTIVATION_ENUM(CODE, name) MICA_##CODE,
    MICA_ACTIVATION_LIST(MICA_ACTIVATION_ENUM)
#undef MICA_ACTIVATION_ENUM
        MICA_ACTIVATION_COUNT
} mica_activation;

/* max(x, 0) */
MICA_API mica_status mica_relu(mica_context *ctx, const mica_tensor *y, const mica_tensor *x);
/* dy where y > 0, else 0 */
MICA_API mica_status mica_relu_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                        const mica_tensor *y);

/* min(max(x, 0), 6) */
MICA_API mica_status mica_relu6(mica_context *ctx, const mica_tensor *y, const mica_tensor *x);
/* dy where 0 < y < 6, else 0 */
MICA_API mica_status mica_relu6_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                         const mica_tensor *y);

/* x where x > 0, else slope * x. The slope must not be negative. */
MICA_API mica_status mica_leaky_relu(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                     float slope);
/* dy where y > 0, else slope * dy */
MICA_API mica_status mica_leaky_relu_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                              const mica_tensor *y, float slope);

/* x where x > 0, else alpha * (exp(x) - 1). alpha must not be negative. */
MICA_API mica_status mica_elu(mica_context *ctx, const mica_tensor *y, const mica_tensor *x, float alpha);
/* dy where y > 0, else (y + alpha) * dy */
MICA_API mica_status mica_elu_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                       const mica_tensor *y, float alpha);

/* 1 / (1 + exp(-x)) */
MICA_API mica_status mica_sigmoid(mica_context *ctx, const mica_tensor *y, const mica_tensor *x);
/* dy * y * (1 - y) */
MICA_API mica_status mica_sigmoid_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                           const mica_tensor *y);

/* The hyperbolic tangent */
MICA_API mica_status mica_tanh(mica_context *ctx, const mica_tensor *y, const mica_tensor *x);
/* dy * (1 - y * y) */
MICA_API mica_status mica_tanh_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                        const mica_tensor *y);

/* log(1 + exp(x)), for any x */
MICA_API mica_status mica_softplus(mica_context *ctx, const mica_tensor *y, const mica_tensor *x);
/* dy * sigmoid(x) */
MICA_API mica_status mica_softplus_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                            const mica_tensor *x);

/* x * sigmoid(x), also called swish */
MICA_API mica_status mica_silu(mica_context *ctx, const mica_tensor *y, const mica_tensor *x);
/* dy * s * (1 + x * (1 - s)), s = sigmoid(x) */
MICA_API mica_status mica_silu_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                        const mica_tensor *x);

/* x / 2 * (1 + erf(x / sqrt(2))) */
MICA_API mica_status mica_gelu(mica_context *ctx, const mica_tensor *y, const mica_tensor *x);
/* dy * (Phi(x) + x * phi(x)), the normal distribution and its density */
MICA_API mica_status mica_gelu_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                        const mica_tensor *x);

/* x / 2 * (1 + tanh(u)), u = sqrt(2 / pi) * (x + 0.044715 * x^3): an approximation of gelu */
MICA_API mica_status mica_gelu_tanh(mica_context *ctx, const mica_tensor *y, const mica_tensor *x);
/* The gradient of that approximation, exactly */
MICA_API mica_status mica_gelu_tanh_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                             const mica_tensor *x);

/* x * relu6(x + 3) / 6 */
MICA_API mica_status mica_hard_swish(mica_context *ctx, const mica_tensor *y, const mica_tensor *x);
/* dy * (0 for x <= -3, 1 for x >= 3, else x / 3 + 1 / 2) */
MICA_API mica_status mica_hard_swish_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                              const mica_tensor *x);

/* ---- Softmax --------------------------------------------------------------------------------------------
 */

/* All tensors have one shape; the axis may count from the end. Stable for any finite x. y may be exactly x,
 * and dx exactly any of its inputs. Layouts in which neither the axis nor the last other axis is contiguous
 * take scratch: a line along the axis of each tensor, per thread. */

/* exp(x) / sum(exp(x)) along an axis */
MICA_API mica_status mica_softmax(mica_context *ctx, const mica_tensor *y, const mica_tensor *x, int axis);
/* y * (dy - sum(y * dy)) */
MICA_API mica_status mica_softmax_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                           const mica_tensor *y, int axis);

/* x - log(sum(exp(x))) along an axis */
MICA_API mica_status mica_log_softmax(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                      int axis);
/* dy - exp(y) * sum(dy) */
MICA_API mica_status mica_log_softmax_backward(mica_context *ctx, const mica_tensor *dx,
                                               const mica_tensor *dy, const mica_tensor *y, int axis);

/* ---- Without a backward of their own: gradients are made of other operations ---------------------------- */

/* x tanh(softplus(x)) */
MICA_API mica_status mica_mish(mica_context *ctx, const mica_tensor *y, const mica_tensor *x);
/* x / (1 + |x|) */
MICA_API mica_status mica_softsign(mica_context *ctx, const mica_tensor *y, const mica_tensor *x);
/* x where x > 0, else alpha * (exp(x / alpha) - 1) */
MICA_API mica_status mica_celu(mica_context *ctx, const mica_tensor *y, const mica_tensor *x, float alpha);
/* gamma * x where x > 0, else gamma * alpha * (exp(x) - 1) */
MICA_API mica_status mica_selu(mica_context *ctx, const mica_tensor *y, const mica_tensor *x, float alpha,
                               float gamma);
/* alpha * x + beta, clamped to [0, 1] */
MICA_API mica_status mica_hard_sigmoid(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                       float alpha, float beta);
/* x where x > alpha, else 0 */
MICA_API mica_status mica_thresholded_relu(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                           float alpha);
/* x + bias where x < -from, x - bias where x > from, else 0 */
MICA_API mica_status mica_shrink(mica_context *ctx, const mica_tensor *y, const mica_tensor *x, float bias,
                                 float from);
/* x sigmoid(alpha * x) */
MICA_API mica_status mica_swish(mica_context *ctx, const mica_tensor *y, const mica_tensor *x, float alpha);
/* x where x > 0, else x * slope, which broadcasts to y */
MICA_API mica_status mica_prelu(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                const mica_tensor *slope);

#ifdef __cplusplus
}
#endif
#endif
