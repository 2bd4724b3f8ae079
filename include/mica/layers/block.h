/* Blocks: builders over other builders. The nodes of a block named "block1" are
 * "block1.conv" and so on; a block without a name gets one of its own. */
#ifndef MICA_LAYERS_BLOCK_H
#define MICA_LAYERS_BLOCK_H

#include <mica/layers/activation.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Residual: activation(x + f(x)) ---- */

typedef mica_value mica_net_body(mica_net *net, mica_value x, void *user);

typedef struct mica_net_residual_opts {
    const char *name;
    mica_net_body *body; /* builds f */
    void *user;          /* for it */
    /* Where f's result has another shape than x, x goes through a layer "project" without bias: a convolution
     * of size 1 from [N, C, ...] with the stride that fits, a dense layer from [..., F] of rank 2. Otherwise
     * that is an error. */
    bool project;
    mica_activation activation;
} mica_net_residual_opts;
MICA_API mica_value mica_net_residual(mica_net *net, mica_value x, const mica_net_residual_opts *opts);

/* ---- Squeeze and excitation: channels of x [N, C, ...] weighed by what all of them hold ---- */

/* x * sigmoid(fc2(activation(fc1(mean of each channel)))), fc1 with C / reduction units. */
typedef struct mica_net_squeeze_excite_opts {
    const char *name;
    mica_index reduction;       /* 0: 16 */
    mica_activation activation; /* none: relu */
} mica_net_squeeze_excite_opts;
MICA_API mica_value mica_net_squeeze_excite(mica_net *net, mica_value x,
                                            const mica_net_squeeze_excite_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
