/* Loss kernels: a loss and its gradient in one pass. */
#ifndef MICA_SRC_KERNEL_LOSS_H
#define MICA_SRC_KERNEL_LOSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the sum of the losses of n elements. loss gets each of them, grad its derivative times `scale`;
 * either may be NULL, and either may be pred or target. param: Huber's delta. */
typedef float mica_loss_fn(float *loss, float *grad, const float *pred, const float *target, size_t n,
                           float scale, float param);

/* Rows of n classes each. One of the targets is given; or labels, for what is ignored, and the target made of them. */
typedef struct mica_class_rows {
    float *loss;             /* [rows] */
    float *grad;             /* [rows, n] or NULL; may be pred */
    const float *pred;       /* [rows, n] */
    const int32_t *labels32; /* [rows] */
    const int64_t *labels64; /* [rows] */
    const float *target;     /* [rows, n] */
    size_t n;
    float scale; /* of the gradient */
    float smoothing;
    bool ignore;
    int64_t ignore_index;
} mica_class_rows;

typedef struct mica_loss_kernels {
    mica_loss_fn *mse, *l1, *huber, *bce, *bce_logits;
    void (*cross_entropy)(const mica_class_rows *a, size_t begin, size_t end);
    void (*cross_entropy_probs)(const mica_class_rows *a, size_t begin, size_t end);
} mica_loss_kernels;

#endif
