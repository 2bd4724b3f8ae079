/* Activations as layers: one table entry each. Those whose gradient follows from the output keep only that,
 * and so can be laid over their input. */
#include <mica/layer.h>
#include <mica/layers.h>

#include "base/context.h"
#include "layer/activation.h"

float mica_activation_slope(const mica_net_activation_opts *opts)
{
    return opts->slope != 0.0f ? opts->slope : opts->kind == MICA_LEAKY_RELU ? 0.01f : 1.0f;
}

static float slope_of(const mica_step *s) { return mica_activation_slope(s->opts); }

static mica_status infer(mica_infer *infer)
{
    const mica_tensor *x = infer->in[0];
    if (x->dtype != MICA_F32)
        return mica_infer_fail(infer, MICA_ERR_DTYPE, "expected f32, got %s", mica_dtype_name(x->dtype));
    return mica_infer_output(infer, MICA_F32, x->rank, x->dim);
}

/* From the operations' signatures to a layer's. `kept` is what backward reads: the input or the output. */
#define PLAIN(name, kept)                                                                                   \
    static mica_status name##_forward(const mica_step *s) { return mica_##name(s->ctx, s->out, s->in[0]); } \
    static mica_status name##_backward(const mica_step *s)                                                  \
    {                                                                                                       \
        return mica_##name##_backward(s->ctx, s->din[0], s->dout, s->kept);                                 \
    }
#define SLOPED(name, kept)                                                               \
    static mica_status name##_forward(const mica_step *s)                                \
    {                                                                                    \
        return mica_##name(s->ctx, s->out, s->in[0], slope_of(s));                       \
    }                                                                                    \
    static mica_status name##_backward(const mica_step *s)                               \
    {                                                                                    \
        return mica_##name##_backward(s->ctx, s->din[0], s->dout, s->kept, slope_of(s)); \
    }

PLAIN(relu, out)
PLAIN(relu6, out)
SLOPED(leaky_relu, out)
SLOPED(elu, out)
PLAIN(sigmoid, out)
PLAIN(tanh, out)
PLAIN(softplus, in[0])
PLAIN(silu, in[0])
PLAIN(gelu, in[0])
PLAIN(gelu_tanh, in[0])
PLAIN(hard_swish, in[0])

enum {
    FROM_OUTPUT = MICA_LAYER_ACTIVATION | MICA_LAYER_READS_OUTPUT | MICA_LAYER_IN_PLACE |
                  MICA_LAYER_BACKWARD_IN_PLACE,
    FROM_INPUT = MICA_LAYER_ACTIVATION | MICA_LAYER_READS_INPUTS | MICA_LAYER_IN_PLACE |
                 MICA_LAYER_BACKWARD_IN_PLACE,
};

#define ENTRY(CODE, op, reads) \
    [MICA_##CODE] = {#op, reads, sizeof(mica_net_activation_opts), infer, op##_forward, op##_backward}

static const mica_layer activations[MICA_ACTIVATION_COUNT] = {
    ENTRY(RELU, relu, FROM_OUTPUT | MICA_LAYER_RISING),
    ENTRY(RELU6, relu6, FROM_OUTPUT | MICA_LAYER_RISING),
    ENTRY(LEAKY_RELU, leaky_relu, FROM_OUTPUT),
    ENTRY(ELU, elu, FROM_OUTPUT),
    ENTRY(SIGMOID, sigmoid, FROM_OUTPUT),
    ENTRY(TANH, tanh, FROM_OUTPUT),
    ENTRY(SOFTPLUS, softplus, FROM_INPUT),
    ENTRY(SILU, silu, FROM_INPUT),
    ENTRY(GELU, gelu, FROM_INPUT),
    ENTRY(GELU_TANH, gelu_tanh, FROM_INPUT),
    ENTRY(HARD_SWISH, hard_swish, FROM_INPUT),
};

mica_value mica_net_activation(mica_net *net, mica_value x, const mica_net_activation_opts *opts)
{
    int kind = opts != NULL ? (int)opts->kind : 0;
    if (kind <= MICA_NO_ACTIVATION || kind >= MICA_ACTIVATION_COUNT)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "activation number %d, which is none", kind);
    return mica_net_add(net, &activations[kind], opts, &x, 1);
}
