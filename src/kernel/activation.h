/* Kernels of the activations, forward and backward, as element-wise kernels (see map.h). */
#ifndef MICA_SRC_KERNEL_ACTIVATION_H
#define MICA_SRC_KERNEL_ACTIVATION_H

#include "kernel/map.h"

/* Every activation: name, params, and what its gradient reads besides dy: x (its input) or y (its output). */
#define MICA_ACTIVATIONS(X) \
    X(relu, 0, y)           \
    X(relu6, 0, y)          \
    X(leaky_relu, 1, y)     \
    X(elu, 1, y)            \
    X(sigmoid, 0, y)        \
    X(tanh, 0, y)           \
    X(softplus, 0, x)       \
    X(silu, 0, x)           \
    X(gelu, 0, x)           \
    X(gelu_tanh, 0, x)      \
    X(hard_swish, 0, x)

/* name(x) and name_backward(dy, x or y), each with the params. */
typedef struct mica_activation_kernels {
#define MICA_ACTIVATION_FIELD(name, params, reads) mica_map_fn *name, *name##_backward;
    MICA_ACTIVATIONS(MICA_ACTIVATION_FIELD)
#undef MICA_ACTIVATION_FIELD
} mica_activation_kernels;

#endif
