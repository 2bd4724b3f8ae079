/* Normalization: layer, RMS, group, instance and batch norm, each with its gradients.
 *
 * Tensors are f32 of any layout; one that is not contiguous is copied through the workspace. gamma and beta
 * may be NULL (1 and 0). y may be exactly x, and dx exactly dy or x; nothing else may overlap.
 *
 * What backward needs is x, gamma, and the mean and rstd = 1 / sqrt(variance + eps) that forward writes where
 * it is asked to. */
#ifndef MICA_OPS_NORM_H
#define MICA_OPS_NORM_H

#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mica_norm_opts {
    float eps;  /* added to the variance; 0: 1e-5 */
    int axes;   /* layer and RMS norm: number of trailing axes to normalize over; 0: 1 */
    int groups; /* group norm: number of channel groups; 0: 1 */

    /* Outputs, for backward; NULL: not kept. Layer and RMS norm: x's leading axes, those not normalized over.
     * Group norm: [N, groups]. Instance norm: [N, C]. Batch norm: [C]. */
    const mica_tensor *mean, *rstd;

    /* Layer and RMS norm of x + residual, of x's shape. The sum goes to `sum` if that is given; y may be
     * exactly residual, sum exactly x or residual. */
    const mica_tensor *residual;
    const mica_tensor *sum;

    /* Batch norm: [C] each. In training they move by `momentum` towards the batch's mean and (unbiased)
     * variance, and may be NULL; in inference they are used to normalize. */
    const mica_tensor *running_mean, *running_var;
    float momentum; /* 0: 0.1 */
    bool inference;
} mica_norm_opts;

/* Destinations of the gradients, which are overwritten, not added to. NULL: not wanted. */
typedef struct mica_norm_grads {
    const mica_tensor *x, *gamma, *beta;
} mica_norm_grads;

/* What the forward pass saved. */
typedef struct mica_norm_saved {
    const mica_tensor *mean, *rstd;
    bool inference; /* batch norm: mean and rstd were constants, not the batch's */
} mica_norm_saved;

/* y = (x - mean) rstd gamma + beta over the last axes of x; gamma and beta have the shape of those axes. */
MICA_API mica_status mica_layer_norm(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                     const mica_tensor *gamma, const mica_tensor *beta,
                                     const mica_norm_opts *opts);
/* With a residual, x is the sum and dx the gradient of both. */
MICA_API mica_status mica_layer_norm_backward(mica_context *ctx, const mica_norm_grads *grads,
                                              const mica_tensor *dy, const mica_tensor *x,
                                              const mica_tensor *gamma, const mica_norm_saved *saved);

/* y = x rstd gamma, where rstd = 1 / sqrt(mean of x^2 + eps). There is no mean and no beta. */
MICA_API mica_status mica_rms_norm(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                   const mica_tensor *gamma, const mica_norm_opts *opts);
MICA_API mica_status mica_rms_norm_backward(mica_context *ctx, const mica_norm_grads *grads,
                                            const mica_tensor *dy, const mica_tensor *x,
                                            const mica_tensor *gamma, const mica_norm_saved *saved);

/* x [N, C, ...]: each group of C / groups channels of each sample has a mean and variance; gamma and beta
 * [C]. */
MICA_API mica_status mica_group_norm(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                     const mica_tensor *gamma, const mica_tensor *beta,
                                     const mica_norm_opts *opts);
/* The number of groups is that of saved->mean [N, groups]. */
MICA_API mica_status mica_group_norm_backward(mica_context *ctx, const mica_norm_grads *grads,
                                              const mica_tensor *dy, const mica_tensor *x,
                                              const mica_tensor *gamma, const mica_norm_saved *saved);

/* Group norm with one channel in each group. */
MICA_API mica_status mica_instance_norm(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                        const mica_tensor *gamma, const mica_tensor *beta,
                                        const mica_norm_opts *opts);
MICA_API mica_status mica_instance_norm_backward(mica_context *ctx, const mica_norm_grads *grads,
                                                 const mica_tensor *dy, const mica_tensor *x,
                                                 const mica_tensor *gamma, const mica_norm_saved *saved);

/* x [N, C, ...]: each channel has a mean and variance over all else; gamma and beta [C]. Training needs more
 * than one value in each channel if running_var is given. */
MICA_API mica_status mica_batch_norm(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                     const mica_tensor *gamma, const mica_tensor *beta,
                                     const mica_norm_opts *opts);
MICA_API mica_status mica_batch_norm_backward(mica_context *ctx, const mica_norm_grads *grads,
                                              const mica_tensor *dy, const mica_tensor *x,
                                              const mica_tensor *gamma, const mica_norm_saved *saved);

#ifdef __cplusplus
}
#endif
#endif
