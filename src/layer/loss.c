/* Losses as layers. The operation gives loss and gradient in one pass, so there is no backward: in training,
 * forward writes the gradient where it belongs. */
#include <mica/layer.h>
#include <mica/layers.h>

#include "base/context.h"
#include "layer/reason.h"

typedef mica_status loss_fn(mica_context *ctx, const mica_tensor *loss, const mica_tensor *grad,
                            const mica_tensor *x, const mica_tensor *target, const mica_loss_opts *opts);

/* The same options as the operations want them. */
static mica_loss_opts how(const mica_net_loss_opts *opts)
{
    return (mica_loss_opts){.delta = opts->delta,
                            .smoothing = opts->smoothing,
                            .ignore = opts->ignore,
                            .ignore_index = opts->ignore_index};
}

/* Shapes and options are checked by the operation itself, while the net is built. */
static mica_status infer_with(mica_infer *infer, loss_fn *loss)
{
    mica_loss_opts opts = how(infer->opts);
    mica_tensor out = mica_0d(NULL);
    mica_measure_begin(infer->ctx);
    mica_status status = loss(infer->ctx, &out, infer->in[0], infer->in[0], infer->in[1], &opts);
    (void)mica_measure_end(infer->ctx);
    if (status != MICA_OK)
        return mica_infer_pass_on(infer, status);
    return mica_infer_output(infer, MICA_F32, 0, NULL);
}

static mica_status forward_with(const mica_step *s, loss_fn *loss)
{
    const mica_net_loss_opts *opts = s->opts;
    mica_loss_opts op = how(opts);
    MICA_TRY(loss(s->ctx, s->out, s->din[0], s->in[0], s->in[1], &op));
    float weight = opts->weight != 0.0f ? opts->weight : 1.0f;
    if (weight != 1.0f)
        MICA_TRY(mica_scale(s->ctx, s->out, s->out, weight));
    if (s->din[0] != NULL && weight * s->loss_scale != 1.0f)
        MICA_TRY(mica_scale(s->ctx, s->din[0], s->din[0], weight * s->loss_scale));
    return MICA_OK;
}

/* A layer and its builder for one operation. */
#define LOSS(layer, op)                                                                                  \
    static mica_status layer##_infer(mica_infer *infer) { return infer_with(infer, op); }                \
    static mica_status layer##_forward(const mica_step *s) { return forward_with(s, op); }               \
    static const mica_layer layer##_layer = {#layer,        MICA_LAYER_LOSS, sizeof(mica_net_loss_opts), \
                                             layer##_infer, layer##_forward, NULL};                      \
    mica_value mica_net_##layer(mica_net *net, mica_value x, mica_value target,                          \
                                const mica_net_loss_opts *opts)                                          \
    {                                                                                                    \
        return mica_net_add(net, &layer##_layer, opts, (mica_value[]){x, target}, 2);                    \
    }

LOSS(mse, mica_mse_loss)
LOSS(l1, mica_l1_loss)
LOSS(huber, mica_huber_loss)
LOSS(bce, mica_bce_loss)
LOSS(bce_logits, mica_bce_logits_loss)
LOSS(cross_entropy, mica_cross_entropy)
LOSS(cross_entropy_probs, mica_cross_entropy_probs)
