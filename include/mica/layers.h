/* The layers: one builder each. All take options whose zeros are the usual choice, and NULL for all of them.
 *
 * Shapes: N is the batch, C channels, H and W height and width, L length, T time, F features. A layer's
 * parameters are named after it: "conv1.weight", "conv1.bias". Where PyTorch has the same layer, shapes and
 * defaults are its own. */
#ifndef MICA_LAYERS_H
#define MICA_LAYERS_H

#include <mica/layers/activation.h>
#include <mica/layers/block.h>
#include <mica/layers/conv.h>
#include <mica/layers/norm.h>
#include <mica/layers/pool.h>
#include <mica/layers/recurrent.h>
#include <mica/layers/shape.h>
#include <mica/layers/text.h>
#include <mica/net.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Dense ---- */

/* x [..., F] to [..., units]: x weightT + bias, weight [units, F]. */
typedef struct mica_net_dense_opts {
    const char *name;
    mica_index units;
    bool no_bias;
    mica_activation activation; /* a layer of its own behind this one, fused into it when compiled */
    mica_init weight_init;      /* default: uniform in +-1 / sqrt(F) */
    mica_init bias_init;        /* the same */
    const char *share_weight;   /* the full name of a parameter [units, F] to use instead of a new one */
} mica_net_dense_opts;
MICA_API mica_value mica_net_dense(mica_net *net, mica_value x, const mica_net_dense_opts *opts);

/* ---- Losses: one number each, the mean over the batch, whose gradient starts the backward. Targets are constants: no
 * gradient flows to what they are made of. ---- */

typedef struct mica_net_loss_opts {
    const char *name;
    float weight;    /* of this loss where there are several; 0: 1 */
    float delta;     /* Huber: where the parabola ends; 0: 1 */
    float smoothing; /* cross-entropies: this share of each target is spread over all classes */
    bool ignore;     /* cross-entropies by class index: rows labelled ignore_index count for nothing */
    int64_t ignore_index;
    /* Cross-entropies: a weight above 0 for each class, [class_weight_count], which is copied; NULL: none. They weigh
     * what a training step learns, as mica_loss_opts says; the loss of mica_net_forward, which scores, is the plain
     * one. A batch with weights cannot be run in parts, and shares of ranks are weighed each by itself. */
    const float *class_weights;
    mica_index class_weight_count;
} mica_net_loss_opts;

/* Prediction and target of one shape. */
MICA_API mica_value mica_net_mse(mica_net *net, mica_value x, mica_value target,
                                 const mica_net_loss_opts *opts);
MICA_API mica_value mica_net_l1(mica_net *net, mica_value x, mica_value target,
                                const mica_net_loss_opts *opts);
MICA_API mica_value mica_net_huber(mica_net *net, mica_value x, mica_value target,
                                   const mica_net_loss_opts *opts);
/* Probabilities in [0, 1]; or, better, logits. */
MICA_API mica_value mica_net_bce(mica_net *net, mica_value x, mica_value target,
                                 const mica_net_loss_opts *opts);
MICA_API mica_value mica_net_bce_logits(mica_net *net, mica_value x, mica_value target,
                                        const mica_net_loss_opts *opts);
/* x [..., classes]; target [...] of class numbers (i32 or i64), or [..., classes] of probabilities. From
 * logits; or from probabilities. */
MICA_API mica_value mica_net_cross_entropy(mica_net *net, mica_value x, mica_value target,
                                           const mica_net_loss_opts *opts);
MICA_API mica_value mica_net_cross_entropy_probs(mica_net *net, mica_value x, mica_value target,
                                                 const mica_net_loss_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
