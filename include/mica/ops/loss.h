/* Losses: each call computes the loss and, where `grad` is given, its gradient in the same pass.
 *
 * Predictions are f32 of any layout; an argument that is not contiguous is copied through the workspace.
 * `loss` is a tensor of one element (rank 0 or [1]) for a mean or a sum; with MICA_LOSS_NONE it has one
 * element for each that the loss is computed of, and grad is the gradient of their sum. Either of loss and
 * grad may be NULL. Sums are the same bits for any number of threads. The mean of nothing is NaN. */
#ifndef MICA_OPS_LOSS_H
#define MICA_OPS_LOSS_H

#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mica_loss_reduction {
    MICA_LOSS_MEAN,
    MICA_LOSS_SUM,
    MICA_LOSS_NONE,
} mica_loss_reduction;

typedef struct mica_loss_opts {
    mica_loss_reduction reduction;
    float delta;          /* Huber: where the parabola ends; 0: 1 */
    float smoothing;      /* cross-entropies: this share of each target is spread over all classes, 0 to 1 */
    bool ignore;          /* cross-entropies by class index: rows labelled ignore_index count for nothing */
    int64_t ignore_index; /* may be negative */
    /* Cross-entropies: [C] f32, a factor for what is summed of each class; NULL: all 1. As in PyTorch, the mean over
     * rows with a class index is then the sum over rows divided by the sum of their classes' weights; with
     * distributions it is divided by the number of rows. */
    const mica_tensor *class_weights;
} mica_loss_opts;

/* ---- Element by element: pred, target and grad of one shape; loss too with MICA_LOSS_NONE. grad, or such a
 * loss, may be exactly pred or target. ---- */

/* (pred - target)^2 */
MICA_API mica_status mica_mse_loss(mica_context *ctx, const mica_tensor *loss, const mica_tensor *grad,
                                   const mica_tensor *pred, const mica_tensor *target,
                                   const mica_loss_opts *opts);
/* |pred - target|; its gradient is 0 where they are equal. */
MICA_API mica_status mica_l1_loss(mica_context *ctx, const mica_tensor *loss, const mica_tensor *grad,
                                  const mica_tensor *pred, const mica_tensor *target,
                                  const mica_loss_opts *opts);
/* d^2 / 2 for d = |pred - target| up to delta, delta (d - delta / 2) beyond. */
MICA_API mica_status mica_huber_loss(mica_context *ctx, const mica_tensor *loss, const mica_tensor *grad,
                                     const mica_tensor *pred, const mica_tensor *target,
                                     const mica_loss_opts *opts);
/* -(target log(pred) + (1 - target) log(1 - pred)), pred in [0, 1]. As in PyTorch, logarithms are no less
 * than -100, and the gradient divides by no less than 1e-12. */
MICA_API mica_status mica_bce_loss(mica_context *ctx, const mica_tensor *loss, const mica_tensor *grad,
                                   const mica_tensor *pred, const mica_tensor *target,
                                   const mica_loss_opts *opts);
/* The same of pred = sigmoid(logits), for any logits. */
MICA_API mica_status mica_bce_logits_loss(mica_context *ctx, const mica_tensor *loss, const mica_tensor *grad,
                                          const mica_tensor *logits, const mica_tensor *target,
                                          const mica_loss_opts *opts);

/* ---- Row by row: [..., C], one distribution over C classes in each row. target is a class index for each
 * row ([...], i32 or i64) or a distribution ([..., C], f32: one-hot or soft). The mean is over rows (those
 * not ignored); with MICA_LOSS_NONE loss is [...]. grad [..., C] may be exactly logits (pred). ---- */

/* -sum of target log softmax(logits) */
MICA_API mica_status mica_cross_entropy(mica_context *ctx, const mica_tensor *loss, const mica_tensor *grad,
                                        const mica_tensor *logits, const mica_tensor *target,
                                        const mica_loss_opts *opts);
/* -sum of target log(pred), of probabilities. Logarithms are no less than -100, and the gradient divides by
 * no less than 1e-12. */
MICA_API mica_status mica_cross_entropy_probs(mica_context *ctx, const mica_tensor *loss,
                                              const mica_tensor *grad, const mica_tensor *pred,
                                              const mica_tensor *target, const mica_loss_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
