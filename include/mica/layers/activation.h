/* Activations: as layers of their own, and as the end of Dense and convolutions. */
#ifndef MICA_LAYERS_ACTIVATION_H
#define MICA_LAYERS_ACTIVATION_H

#include <mica/net.h>

#ifdef __cplusplus
extern "C" {
#endif

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

typedef struct mica_net_activation_opts {
    const char *name;
    mica_activation kind;
    float slope; /* leaky_relu: 0 means 0.01; elu's alpha: 0 means 1 */
} mica_net_activation_opts;
MICA_API mica_value mica_net_activation(mica_net *net, mica_value x, const mica_net_activation_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
