/* Activations: as layers of their own, and as the end of Dense and convolutions. */
#ifndef MICA_LAYERS_ACTIVATION_H
#define MICA_LAYERS_ACTIVATION_H

#include <mica/net.h>
#include <mica/ops/activation.h>

#ifdef __cplusplus
extern "C" {
#endif

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
