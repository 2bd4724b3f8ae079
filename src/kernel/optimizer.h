/* Optimizer kernels: one pass over parameters, gradients and state. */
#ifndef MICA_SRC_KERNEL_OPTIMIZER_H
#define MICA_SRC_KERNEL_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>

/* The numbers of one update, worked out once a step. */
typedef struct mica_update {
    float lr;
    float gradient_scale;              /* from clipping by norm; 1: none */
    float clip_value;                  /* infinity: none */
    float weight_decay;                /* added to the gradient */
    float keep;                        /* decoupled decay: parameters are multiplied by this first; 1: none */
    float momentum, nesterov_momentum; /* the second is 0 without Nesterov */
    float beta1, beta2, eps;
    float step_size;  /* Adam: lr / (1 - beta1^t) */
    float root_scale; /* Adam: 1 / sqrt(1 - beta2^t) */
#if !defined(MICA_SMALL)
    bool near; /* the third cache may hold all parameters and gradients of this step */
#endif
} mica_update;

/* p, g and the state the kind has (unused ones are NULL), n elements each, not overlapping. */
typedef void mica_update_fn(float *p, const float *g, float *s0, float *s1, size_t n, const mica_update *u);

typedef struct mica_optimizer_kernels {
    mica_update_fn *sgd;              /* no state */
    mica_update_fn *sgd_momentum;     /* s0: velocity */
    mica_update_fn *adam;             /* s0, s1: first and second moment; AdamW too */
    mica_update_fn *rmsprop;          /* s0: mean square */
    mica_update_fn *rmsprop_momentum; /* s1: velocity */
    mica_update_fn *adagrad;          /* s0: sum of squares */
} mica_optimizer_kernels;

#endif
