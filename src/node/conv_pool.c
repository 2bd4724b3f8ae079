/* Convolution fused with max pooling: created by fusion after differentiation, so it has no gradient. */
#include "net/net.h"
#include "node/entry.h"
#include "node/planes.h"
#include "ops/conv/conv.h"

/* The convolution's own output is that of conv2d; windows of it follow. */
static mica_status infer(mica_infer *i)
{
    const mica_conv_max_pool_opts *o = i->opts;
    mica_infer image = *i;
    image.op = &mica_op_conv2d;
    image.opts = &o->conv;
    MICA_TRY(mica_op_conv2d.infer(&image));
    mica_infer windows = *i;
    windows.op = &mica_op_max_pool2d;
    windows.opts = &o->pool;
    windows.in[0] = &image.out[0];
    MICA_TRY(mica_op_max_pool2d.infer(&windows));
    i->out[0] = windows.out[0];
    i->out[1] = windows.out[1];
    return MICA_OK;
}

static mica_status run(const mica_call *c)
{
    const mica_conv_max_pool_opts *o = c->opts;
    mica_conv2d_opts conv = o->conv;
    conv.accumulate = false;
    mica_tensor x = mica_planes(c->in[0]), w = mica_planes(c->in[1]), y = mica_planes(c->out[0]), picks;
    if (c->out[1] != NULL)
        picks = mica_planes(c->out[1]);
    return mica_conv2d_max_pool(c->ctx, &y, c->out[1] != NULL ? &picks : NULL,
                                &(mica_conv_pool_args){&x, &w, c->in[2], &conv, &o->pool});
}

static bool end_with_activation(mica_net *net, mica_node *node, const mica_node *then)
{
    (void)net;
    mica_conv_max_pool_opts *opts = node->opts;
    return mica_net_fuse_activation(then, &opts->conv.activation, &opts->conv.slope);
}

static const mica_field fields[] = {
    MICA_FIELDS(mica_conv_max_pool_opts, conv.stride, INDEX, "0: 1"),
    MICA_FIELDS(mica_conv_max_pool_opts, conv.pad, INDEX, "zero padding on each side"),
    MICA_FIELDS(mica_conv_max_pool_opts, conv.dilation, INDEX, "0: 1"),
    MICA_FIELD(mica_conv_max_pool_opts, conv.groups, INDEX, "0: 1"),
    MICA_FIELD(mica_conv_max_pool_opts, conv.activation, ACTIVATION, "activation after the pooling"),
    MICA_FIELD(mica_conv_max_pool_opts, conv.slope, FLOAT, "slope of leaky_relu, alpha of elu"),
    MICA_FIELDS(mica_conv_max_pool_opts, pool.kernel, INDEX, "window size"),
    MICA_FIELDS(mica_conv_max_pool_opts, pool.stride, INDEX, "0: the kernel size"),
    MICA_FIELDS(mica_conv_max_pool_opts, pool.pad, INDEX, "at most half of the dilated kernel"),
    MICA_FIELDS(mica_conv_max_pool_opts, pool.dilation, INDEX, "0: 1"),
    MICA_FIELD(mica_conv_max_pool_opts, pool.ceil_mode, BOOL, "a last window may extend past the end"),
};

const mica_op mica_op_conv2d_max_pool = {.name = "conv2d_max_pool",
                                         .about = "convolution followed by max pooling",
                                         .ins = 2,
                                         .optional_ins = 1,
                                         .outs = 2,
                                         .optional_outs = 2,
                                         .names = (const char *const[]){"x", "w", "bias", "y", "indices"},
                                         .opts_bytes = sizeof(mica_conv_max_pool_opts),
                                         MICA_FIELD_LIST(fields),
                                         .infer = infer,
                                         .run = run,
                                         .passes = &(const mica_op_passes){.fuse = end_with_activation}};
