/* Dropout. The random numbers of a node and step can be drawn again at any time, so backward drops the same
 * elements of the gradient and nothing is kept in between. */
#include <mica/layer.h>
#include <mica/layers.h>

#include "base/context.h"

static mica_status infer(mica_infer *infer)
{
    const mica_net_dropout_opts *opts = infer->opts;
    const mica_tensor *x = infer->in[0];
    if (x->dtype != MICA_F32)
        return mica_infer_fail(infer, MICA_ERR_DTYPE, "expected f32, got %s", mica_dtype_name(x->dtype));
    if (!(opts->rate >= 0.0f && opts->rate <= 1.0f))
        return mica_infer_fail(infer, MICA_ERR_ARGUMENT, "rate is %g: expected 0 to 1", (double)opts->rate);
    return mica_infer_output(infer, MICA_F32, x->rank, x->dim);
}

/* y = x of the elements that stay, times 1 / (1 - rate), else 0 */
static mica_status drop(const mica_step *s, const mica_tensor *y, const mica_tensor *x)
{
    const mica_net_dropout_opts *opts = s->opts;
    return mica_dropout(
        s->ctx, y, NULL, x,
        &(mica_dropout_opts){.rate = opts->rate, .random = mica_random_stream(s->seed, s->stream)});
}

static mica_status forward(const mica_step *s)
{
    return s->training ? drop(s, s->out, s->in[0]) : mica_copy(s->ctx, s->out, s->in[0]);
}

static mica_status backward(const mica_step *s) { return drop(s, s->din[0], s->dout); }

static const mica_layer dropout = {"dropout",
                                   MICA_LAYER_IN_PLACE | MICA_LAYER_BACKWARD_IN_PLACE,
                                   sizeof(mica_net_dropout_opts),
                                   infer,
                                   forward,
                                   backward};

mica_value mica_net_dropout(mica_net *net, mica_value x, const mica_net_dropout_opts *opts)
{
    return mica_net_add(net, &dropout, opts, &x, 1);
}
