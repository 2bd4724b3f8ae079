/* Cases of convolutions: groups, strides, padding, dilation, with and without bias. */
#include "layer/layer_case.h"

/* x [N, groups * a, ...] and options that fit it. */
static mica_net_conv_opts draw(test_random *r, mica_index dims[4], bool transposed)
{
    mica_net_conv_opts o = {.groups = test_int(r, 1, 2), .no_bias = test_chance(r, 30)};
    dims[0] = test_int(r, 1, 3);
    dims[1] = o.groups * test_int(r, 1, 3);
    o.out_channels = o.groups * test_int(r, 1, 3);
    for (int k = 0; k < 2; k++) {
        o.kernel[k] = test_int(r, 1, 3);
        o.stride[k] = test_int(r, 0, 2);
        o.dilation[k] = test_int(r, 0, 2);
        o.pad[k] = test_int(r, 0, o.kernel[k] > 1 ? 1 : 0);
        o.output_pad[k] = transposed && o.stride[k] == 2 ? test_int(r, 0, 1) : 0;
        dims[2 + k] = test_int(r, 5, 7) - (transposed ? 2 : 0);
    }
    o.activation = test_chance(r, 30) ? MICA_TANH : MICA_NO_ACTIVATION;
    return o;
}

static mica_value build_conv1d(mica_net *net, test_random *r)
{
    mica_index dims[4];
    mica_net_conv_opts o = draw(r, dims, false);
    mica_value x = layer_leaf(net, "x", 3, dims);
    return LAYER_MAYBE_TWICE(net, r, mica_net_conv1d(net, x, &o));
}

static mica_value build_conv2d(mica_net *net, test_random *r)
{
    mica_index dims[4];
    mica_net_conv_opts o = draw(r, dims, false);
    o.in_channels = dims[1];
    mica_value x = layer_leaf(net, "x", 4, dims);
    return LAYER_MAYBE_TWICE(net, r, mica_net_conv2d(net, x, &o));
}

static mica_value build_depthwise(mica_net *net, test_random *r)
{
    mica_index dims[4];
    mica_net_conv_opts o = draw(r, dims, false);
    o.groups = 0;
    o.out_channels = dims[1] * test_int(r, 0, 2);
    mica_value x = layer_leaf(net, "x", 4, dims);
    return LAYER_MAYBE_TWICE(net, r, mica_net_depthwise_conv2d(net, x, &o));
}

static mica_value build_transpose1d(mica_net *net, test_random *r)
{
    mica_index dims[4];
    mica_net_conv_opts o = draw(r, dims, true);
    mica_value x = layer_leaf(net, "x", 3, dims);
    return LAYER_MAYBE_TWICE(net, r, mica_net_conv_transpose1d(net, x, &o));
}

static mica_value build_transpose2d(mica_net *net, test_random *r)
{
    mica_index dims[4];
    mica_net_conv_opts o = draw(r, dims, true);
    mica_value x = layer_leaf(net, "x", 4, dims);
    return LAYER_MAYBE_TWICE(net, r, mica_net_conv_transpose2d(net, x, &o));
}

LAYER_CASE(conv1d) = {.build = build_conv1d, .draws = 12};
LAYER_CASE(conv2d) = {.build = build_conv2d, .draws = 12};
LAYER_CASE(depthwise_conv2d) = {.build = build_depthwise, .draws = 8};
LAYER_CASE(conv_transpose1d) = {.build = build_transpose1d, .draws = 8};
LAYER_CASE(conv_transpose2d) = {.build = build_transpose2d, .draws = 12};
