/* Convolutions, plain and transposed, of images and signals. */
#include <math.h>

#include <mica/layers.h>

#include "node/entry.h"
#include "node/planes.h"

typedef struct conv_kind {
    const char *name;
    const mica_op *op; /* by symbol, so that a net without the other links it not */
    bool flat;         /* one dimension */
    bool transposed;
    bool depthwise;
} conv_kind;

/* The options as the operations want them, for images of one row where `flat`. */
static mica_conv2d_opts how(const mica_net_conv_opts *o, const conv_kind *kind, mica_index channels)
{
    mica_conv2d_opts op = {.groups = o->groups};
    if (op.groups == 0)
        op.groups = kind->depthwise ? channels : 1;
    mica_plane_sizes(op.stride, o->stride, kind->flat, 1, 1);
    mica_plane_sizes(op.pad, o->pad, kind->flat, 0, 0);
    mica_plane_sizes(op.dilation, o->dilation, kind->flat, 1, 1);
    mica_plane_sizes(op.output_pad, o->output_pad, kind->flat, 0, 0);
    return op;
}

/* Whether the layer can be: fails the build if not. */
static bool check_channels(mica_net *net, const mica_net_conv_opts *o, mica_index in, mica_index out,
                           mica_index groups)
{
    if (o->in_channels != 0 && in != o->in_channels)
        mica_net_layer_fail(net, MICA_ERR_SHAPE, "expected %td channels in dimension 1, got %td",
                            o->in_channels, in);
    else if (in < 1)
        mica_net_layer_fail(net, MICA_ERR_SHAPE, "expected at least one channel in dimension 1, got 0");
    else if (out < 1)
        mica_net_layer_fail(net, MICA_ERR_ARGUMENT, "out_channels is %td: expected 1 or more", out);
    else if (groups < 1 || in % groups != 0)
        mica_net_layer_fail(net, MICA_ERR_SHAPE, "expected a multiple of %td groups in dimension 1, got %td",
                            groups, in);
    else if (out % groups != 0)
        mica_net_layer_fail(net, MICA_ERR_ARGUMENT, "out_channels is %td: expected a multiple of %td groups",
                            out, groups);
    else
        return true;
    return false;
}

/* The layer without its activation. */
static mica_value add_conv(mica_net *net, mica_value x, const mica_net_conv_opts *o, const conv_kind *kind)
{
    mica_tensor t;
    mica_net_layer_begin(net, kind->name, o->name, x);
    if (mica_net_shape(net, &t, x) != MICA_OK)
        return mica_net_layer_end(net, 0);
    if (t.dtype != MICA_F32 || t.rank != (kind->flat ? 3 : 4))
        return mica_net_layer_fail(net, MICA_ERR_SHAPE, "expected f32 [N, C, %s]", kind->flat ? "L" : "H, W");
    mica_index in = t.dim[1], out = o->out_channels == 0 && kind->depthwise ? in : o->out_channels;
    mica_conv2d_opts op = how(o, kind, in);
    if (!check_channels(net, o, in, out, op.groups))
        return 0;
    mica_index kernel[2], sizes[2];
    char reason[MICA_REASON];
    mica_plane_sizes(kernel, o->kernel, kind->flat, 1, 0);
    mica_status status = mica_conv_sizes(sizes, reason, &t, kernel, &op, kind->transposed);
    if (status != MICA_OK) /* before such a kernel is made */
        return mica_net_layer_fail(net, status, "%s", reason);

    mica_index weight[4] = {kind->transposed ? in : out, (kind->transposed ? out : in) / op.groups,
                            kind->flat ? kernel[1] : kernel[0], kernel[1]};
    double taps = (double)weight[1] * (double)kernel[0] * (double)kernel[1];
    mica_init uniform = {MICA_INIT_UNIFORM, 1.0f / sqrtf((float)taps)};
    mica_value ins[3] = {x};
    ins[1] = mica_net_learned(net, "weight", t.rank, weight,
                              o->weight_init.kind != MICA_INIT_DEFAULT ? o->weight_init : uniform);
    if (!o->no_bias)
        ins[2] = mica_net_learned(net, "bias", 1, &out, uniform);
    return mica_net_layer_end(net, mica_net_call(net, NULL, kind->op, ins, 3, &op));
}

static mica_value add(mica_net *net, mica_value x, const mica_net_conv_opts *opts, const conv_kind *kind)
{
    static const mica_net_conv_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    mica_value y = add_conv(net, x, opts, kind);
    if (opts->activation == MICA_NO_ACTIVATION)
        return y;
    return mica_net_activation(net, y, &(mica_net_activation_opts){.kind = opts->activation});
}

mica_value mica_net_conv1d(mica_net *net, mica_value x, const mica_net_conv_opts *opts)
{
    return add(net, x, opts, &(conv_kind){.name = "conv1d", .op = &mica_op_conv2d, .flat = true});
}

mica_value mica_net_conv2d(mica_net *net, mica_value x, const mica_net_conv_opts *opts)
{
    return add(net, x, opts, &(conv_kind){.name = "conv2d", .op = &mica_op_conv2d});
}

mica_value mica_net_conv_transpose1d(mica_net *net, mica_value x, const mica_net_conv_opts *opts)
{
    return add(
        net, x, opts,
        &(conv_kind){
            .name = "conv_transpose1d", .op = &mica_op_conv_transpose2d, .flat = true, .transposed = true});
}

mica_value mica_net_conv_transpose2d(mica_net *net, mica_value x, const mica_net_conv_opts *opts)
{
    return add(net, x, opts,
               &(conv_kind){.name = "conv_transpose2d", .op = &mica_op_conv_transpose2d, .transposed = true});
}

mica_value mica_net_depthwise_conv2d(mica_net *net, mica_value x, const mica_net_conv_opts *opts)
{
    return add(net, x, opts,
               &(conv_kind){.name = "depthwise_conv2d", .op = &mica_op_conv2d, .depthwise = true});
}
