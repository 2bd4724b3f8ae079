/* Softmax and log-softmax along an axis. Both gradients follow from the output. */
#include <mica/layer.h>
#include <mica/layers.h>

#include "base/context.h"

static int axis_of(const void *opts)
{
    int axis = ((const mica_net_softmax_opts *)opts)->axis;
    return axis != 0 ? axis : -1;
}

static mica_status infer(mica_infer *infer)
{
    const mica_tensor *x = infer->in[0];
    int axis = axis_of(infer->opts);
    if (x->dtype != MICA_F32)
        return mica_infer_fail(infer, MICA_ERR_DTYPE, "expected f32, got %s", mica_dtype_name(x->dtype));
    if (axis < -x->rank || axis >= x->rank)
        return mica_infer_fail(infer, MICA_ERR_AXIS, "axis %d of a tensor of rank %d", axis, x->rank);
    return mica_infer_output(infer, MICA_F32, x->rank, x->dim);
}

#define SOFTMAX(layer)                                                                          \
    static mica_status layer##_forward(const mica_step *s)                                      \
    {                                                                                           \
        return mica_##layer(s->ctx, s->out, s->in[0], axis_of(s->opts));                        \
    }                                                                                           \
    static mica_status layer##_backward(const mica_step *s)                                     \
    {                                                                                           \
        return mica_##layer##_backward(s->ctx, s->din[0], s->dout, s->out, axis_of(s->opts));   \
    }                                                                                           \
    static const mica_layer layer##_layer = {#layer,                                            \
                                             MICA_LAYER_READS_OUTPUT | MICA_LAYER_IN_PLACE |    \
                                                 MICA_LAYER_BACKWARD_IN_PLACE,                  \
                                             sizeof(mica_net_softmax_opts),                     \
                                             infer,                                             \
                                             layer##_forward,                                   \
                                             layer##_backward};                                 \
    mica_value mica_net_##layer(mica_net *net, mica_value x, const mica_net_softmax_opts *opts) \
    {                                                                                           \
        return mica_net_add(net, &layer##_layer, opts, &x, 1);                                  \
    }

SOFTMAX(softmax)
SOFTMAX(log_softmax)
