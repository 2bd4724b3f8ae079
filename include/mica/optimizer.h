/* Optimizers: what they are told. They run inside a training step (mica/train.h). */
#ifndef MICA_OPTIMIZER_H
#define MICA_OPTIMIZER_H

#include <mica/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mica_optimizer_kind {
    MICA_SGD,
    MICA_ADAM,
    MICA_ADAMW,
    MICA_RMSPROP,
    MICA_ADAGRAD,
    MICA_OPTIMIZER_COUNT
} mica_optimizer_kind;

/* Zeros mean PyTorch's defaults, where it has one. */
typedef struct mica_optimizer {
    mica_optimizer_kind kind;
    float lr;           /* 0: 0.01 for SGD, RMSprop and Adagrad, 0.001 for Adam and AdamW */
    float momentum;     /* SGD, RMSprop */
    bool nesterov;      /* SGD */
    float weight_decay; /* added to the gradient; AdamW: decoupled. 0: none (AdamW too) */
    float beta1, beta2; /* Adam, AdamW; 0: 0.9, 0.999 */
    float alpha;        /* RMSprop; 0: 0.99 */
    float eps;          /* 0: 1e-8; Adagrad 1e-10 */
    bool decay_all;  /* also biases and norms, i.e. parameters of rank 1 and 0, which AdamW skips otherwise */
    float clip_norm; /* gradients are scaled down to this norm; 0: not */
    float clip_value; /* gradients are clamped to [-clip_value, clip_value]; 0: not */
} mica_optimizer;

/* Floats of state that an optimizer keeps for each parameter: 0 to 2. */
MICA_API int mica_optimizer_states(const mica_optimizer *optimizer);

#ifdef __cplusplus
}
#endif
#endif
