/* Convolutions, plain and transposed, of images and signals. */
#include <math.h>

#include <mica/layer.h>
#include <mica/layers.h>

#include "base/context.h"
#include "layer/planes.h"
#include "layer/pool.h"
#include "ops/conv/conv.h"

typedef struct conv_opts {
    mica_net_conv_opts given; /* first: it starts with the name */
    bool flat;                /* one dimension */
    bool transposed;
    bool depthwise;
} conv_opts;

/* The same options as the operations want them. */
static mica_conv2d_opts how(const conv_opts *o, mica_index channels, bool add)
{
    mica_conv2d_opts op = {.groups = o->given.groups, .accumulate = add};
    if (op.groups == 0)
        op.groups = o->depthwise ? channels : 1;
    mica_plane_sizes(op.stride, o->given.stride, o->flat, 1, 1);
    mica_plane_sizes(op.pad, o->given.pad, o->flat, 0, 0);
    mica_plane_sizes(op.dilation, o->given.dilation, o->flat, 1, 1);
    mica_plane_sizes(op.output_pad, o->given.output_pad, o->flat, 0, 0);
    return op;
}

/* ---- Infer ---- */

static mica_status check_channels(mica_infer *infer, const conv_opts *o, mica_index out, mica_index groups)
{
    mica_index in = infer->in[0]->dim[1];
    if (o->given.in_channels != 0 && in != o->given.in_channels)
        return mica_infer_fail(infer, MICA_ERR_SHAPE, "expected %td channels in dimension 1, got %td",
                               o->given.in_channels, in);
    if (in < 1)
        return mica_infer_fail(infer, MICA_ERR_SHAPE, "expected channels in dimension 1, got none");
    if (out < 1)
        return mica_infer_fail(infer, MICA_ERR_ARGUMENT, "out_channels is %td: expected 1 or more", out);
    if (groups < 1 || in % groups != 0)
        return mica_infer_fail(infer, MICA_ERR_SHAPE,
                               "expected channels for %td groups in dimension 1, got %td", groups, in);
    if (out % groups != 0)
        return mica_infer_fail(infer, MICA_ERR_ARGUMENT,
                               "out_channels is %td: expected channels for %td groups", out, groups);
    return MICA_OK;
}

/* No product of two sizes up to this overflows. */
#define MOST ((mica_index)INT32_MAX)

/* The size of the result along an axis of the planes. */
static mica_status out_size(mica_infer *infer, const conv_opts *o, const mica_conv2d_opts *op, int axis,
                            mica_index kernel, mica_index *out)
{
    mica_tensor x = mica_planes(infer->in[0]);
    const char *name = mica_plane_axis(o->flat, axis);
    mica_index size = x.dim[2 + axis], stride = op->stride[axis], pad = op->pad[axis];
    mica_index dilation = op->dilation[axis], extra = op->output_pad[axis];
    if (kernel < 1 || stride < 1 || pad < 0 || dilation < 1)
        return mica_infer_fail(
            infer, MICA_ERR_ARGUMENT,
            "along the %s kernel is %td, stride %td, pad %td, dilation %td: expected 1, 1, 0, 1 or more",
            name, kernel, stride, pad, dilation);
    if (kernel > MOST || stride > MOST || pad > MOST || dilation > MOST || extra > MOST ||
        size > PTRDIFF_MAX / 4 / stride)
        return mica_infer_fail(infer, MICA_ERR_ARGUMENT,
                               "along the %s kernel is %td, stride %td, pad %td, dilation %td: too large",
                               name, kernel, stride, pad, dilation);
    mica_index reach = dilation * (kernel - 1) + 1;
    if (o->transposed) {
        if (extra < 0 || (extra > 0 && extra >= stride && extra >= dilation))
            return mica_infer_fail(infer, MICA_ERR_ARGUMENT,
                                   "along the %s output_pad is %td: expected less than stride or dilation",
                                   name, extra);
        *out = (size - 1) * stride - 2 * pad + reach + extra;
    } else {
        *out = size + 2 * pad >= reach ? (size + 2 * pad - reach) / stride + 1 : 0;
    }
    if (*out < 1)
        return mica_infer_fail(infer, MICA_ERR_SHAPE,
                               "a kernel that spans %td does not fit %s %td padded by %td", reach, name, size,
                               pad);
    return MICA_OK;
}

static mica_status infer(mica_infer *infer)
{
    const conv_opts *o = infer->opts;
    MICA_TRY(mica_infer_planes(infer, o->flat));
    mica_index in = infer->in[0]->dim[1], kernel[2], size[2];
    mica_conv2d_opts op = how(o, in, false);
    mica_index out = o->given.out_channels == 0 && o->depthwise ? in : o->given.out_channels;
    MICA_TRY(check_channels(infer, o, out, op.groups));
    mica_plane_sizes(kernel, o->given.kernel, o->flat, 1, 0);
    for (int axis = 0; axis < 2; axis++)
        MICA_TRY(out_size(infer, o, &op, axis, kernel[axis], &size[axis]));

    mica_index weight[4] = {o->transposed ? in : out, (o->transposed ? out : in) / op.groups,
                            o->flat ? kernel[1] : kernel[0], kernel[1]};
    mica_init init = {MICA_INIT_UNIFORM, 1.0f / sqrtf((float)(weight[1] * kernel[0] * kernel[1]))};
    MICA_TRY(
        mica_infer_parameter(infer, "weight", o->flat ? 3 : 4, weight,
                             o->given.weight_init.kind != MICA_INIT_DEFAULT ? o->given.weight_init : init));
    if (!o->given.no_bias)
        MICA_TRY(mica_infer_parameter(infer, "bias", 1, &out, init));
    return mica_infer_planes_output(infer, o->flat, out, size);
}

/* ---- Step ---- */

static mica_status forward(const mica_step *s)
{
    const conv_opts *o = s->opts;
    mica_tensor x = mica_planes(s->in[0]), w = mica_planes(s->param[0]);
    mica_conv2d_opts op = how(o, x.dim[1], false);
    op.activation = s->activation;
    op.slope = s->slope;
    if (s->mean) {
        mica_tensor mean = *s->out;
        mean.rank = 2; /* the others are 1 */
        return mica_conv2d_mean(s->ctx, &mean, &x, &w, s->param[1], &op);
    }
    mica_tensor y = mica_planes(s->out);
    if (s->pool != NULL) {
        mica_pooling_opts pool = mica_pool_how(s->pool);
        return mica_conv2d_max_pool(s->ctx, &y, s->picks,
                                    &(mica_conv_pool_args){&x, &w, s->param[1], &op, &pool});
    }
    return o->transposed ? mica_conv_transpose2d(s->ctx, &y, &x, &w, s->param[1], &op)
                         : mica_conv2d(s->ctx, &y, &x, &w, s->param[1], &op);
}

/* dw = x correlated with dy, db = sum of dy over batch and pixels, dx = dy convolved with w */
static mica_status backward(const mica_step *s)
{
    const conv_opts *o = s->opts;
    mica_tensor x = mica_planes(s->in[0]), dy = mica_planes(s->dout), w = mica_planes(s->param[0]);
    if (s->dparam[0] != NULL) {
        mica_tensor dw = mica_planes(s->dparam[0]);
        mica_conv2d_opts op = how(o, x.dim[1], s->add_dparam[0]);
        MICA_TRY(o->transposed ? mica_conv_transpose2d_backward_weight(s->ctx, &dw, &dy, &x, &op)
                               : mica_conv2d_backward_weight(s->ctx, &dw, &dy, &x, &op));
    }
    if (s->dparam[1] != NULL)
        MICA_TRY(mica_conv2d_backward_bias(s->ctx, s->dparam[1], &dy,
                                           &(mica_conv2d_opts){.accumulate = s->add_dparam[1]}));
    if (s->din[0] == NULL)
        return MICA_OK;
    mica_tensor dx = mica_planes(s->din[0]);
    mica_conv2d_opts op = how(o, x.dim[1], s->add_din[0]);
    return o->transposed ? mica_conv_transpose2d_backward_input(s->ctx, &dx, &dy, &w, &op)
                         : mica_conv2d_backward_input(s->ctx, &dx, &dy, &w, &op);
}

/* ---- Builders ---- */

#define CONV(kind, ends)                                                                         \
    {                                                                                            \
        kind,                                                                                    \
            MICA_LAYER_READS_INPUTS | MICA_LAYER_ADDS_INPUTS | MICA_LAYER_ENDS_WITH_ACTIVATION | \
                MICA_LAYER_ADDS_PARAMETERS | (ends),                                             \
            sizeof(conv_opts), infer, forward, backward                                          \
    }

enum { ENDS = MICA_LAYER_ENDS_WITH_POOL | MICA_LAYER_ENDS_WITH_MEAN };
static const mica_layer conv1d = CONV("conv1d", ENDS), conv2d = CONV("conv2d", ENDS),
                        depthwise = CONV("depthwise_conv2d", ENDS), transpose1d = CONV("conv_transpose1d", 0),
                        transpose2d = CONV("conv_transpose2d", 0);

static mica_value add(mica_net *net, const mica_layer *layer, mica_value x, const mica_net_conv_opts *opts,
                      conv_opts full)
{
    if (opts != NULL)
        full.given = *opts;
    mica_value y = mica_net_add(net, layer, &full, &x, 1);
    if (full.given.activation == MICA_NO_ACTIVATION)
        return y;
    return mica_net_activation(net, y, &(mica_net_activation_opts){.kind = full.given.activation});
}

mica_value mica_net_conv1d(mica_net *net, mica_value x, const mica_net_conv_opts *opts)
{
    return add(net, &conv1d, x, opts, (conv_opts){.flat = true});
}

mica_value mica_net_conv2d(mica_net *net, mica_value x, const mica_net_conv_opts *opts)
{
    return add(net, &conv2d, x, opts, (conv_opts){.flat = false});
}

mica_value mica_net_conv_transpose1d(mica_net *net, mica_value x, const mica_net_conv_opts *opts)
{
    return add(net, &transpose1d, x, opts, (conv_opts){.flat = true, .transposed = true});
}

mica_value mica_net_conv_transpose2d(mica_net *net, mica_value x, const mica_net_conv_opts *opts)
{
    return add(net, &transpose2d, x, opts, (conv_opts){.transposed = true});
}

mica_value mica_net_depthwise_conv2d(mica_net *net, mica_value x, const mica_net_conv_opts *opts)
{
    return add(net, &depthwise, x, opts, (conv_opts){.depthwise = true});
}
