/* Normalization, softmax and dropout: layers that keep the shape. Their parameters are "weight" (1 at first)
 * and "bias" (0). */
#ifndef MICA_LAYERS_NORM_H
#define MICA_LAYERS_NORM_H

#include <mica/net.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Batch norm: x [N, C, ...] ---- */

/* In training by the mean and variance of the batch, which move the states "running_mean" and "running_var"
 * [C]; in inference by those. */
typedef struct mica_net_batch_norm_opts {
    const char *name;
    float eps;      /* 0: 1e-5 */
    float momentum; /* 0: 0.1 */
    bool no_affine; /* no weight and bias */
} mica_net_batch_norm_opts;
MICA_API mica_value mica_net_batch_norm(mica_net *net, mica_value x, const mica_net_batch_norm_opts *opts);

/* ---- Layer and RMS norm: over the last axes ---- */

typedef struct mica_net_layer_norm_opts {
    const char *name;
    int axes;       /* how many; 0: 1 */
    float eps;      /* 0: 1e-5; RMS norm: 1.19e-7 */
    bool no_affine; /* no weight and bias */
    bool no_bias;   /* RMS norm has none anyway */
} mica_net_layer_norm_opts;
MICA_API mica_value mica_net_layer_norm(mica_net *net, mica_value x, const mica_net_layer_norm_opts *opts);
MICA_API mica_value mica_net_rms_norm(mica_net *net, mica_value x, const mica_net_layer_norm_opts *opts);

/* ---- Group and instance norm: x [N, C, ...], each sample by itself ---- */

typedef struct mica_net_group_norm_opts {
    const char *name;
    int groups; /* 0: 1. Instance norm has as many as channels */
    float eps;  /* 0: 1e-5 */
    bool no_affine;
    bool affine; /* instance norm, which has no weight and bias otherwise */
} mica_net_group_norm_opts;
MICA_API mica_value mica_net_group_norm(mica_net *net, mica_value x, const mica_net_group_norm_opts *opts);
MICA_API mica_value mica_net_instance_norm(mica_net *net, mica_value x, const mica_net_group_norm_opts *opts);

/* ---- Softmax ---- */

typedef struct mica_net_softmax_opts {
    const char *name;
    int axis; /* may count from the end; 0, which is the batch: the last */
} mica_net_softmax_opts;
MICA_API mica_value mica_net_softmax(mica_net *net, mica_value x, const mica_net_softmax_opts *opts);
MICA_API mica_value mica_net_log_softmax(mica_net *net, mica_value x, const mica_net_softmax_opts *opts);

/* ---- Dropout ---- */

/* In training, zeroes elements by chance and scales the others by 1 / (1 - rate), the rate taken to a 65,536th (see
 * ops/dropout.h). The chances are those of the step and the node: backward draws them again, so nothing is kept. */
typedef struct mica_net_dropout_opts {
    const char *name;
    float rate; /* 0 to 1. 0 drops nothing. */
} mica_net_dropout_opts;
MICA_API mica_value mica_net_dropout(mica_net *net, mica_value x, const mica_net_dropout_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
