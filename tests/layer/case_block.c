/* Cases of blocks. */
#include "layer/layer_case.h"

typedef struct body_opts {
    mica_index channels, stride;
} body_opts;

static mica_value conv_body(mica_net *net, mica_value x, void *user)
{
    const body_opts *o = user;
    mica_value y = mica_net_conv2d(net, x,
                                   &(mica_net_conv_opts){.name = "conv1",
                                                         .out_channels = o->channels,
                                                         .kernel = {3, 3},
                                                         .pad = {1, 1},
                                                         .stride = {o->stride, o->stride},
                                                         .activation = MICA_TANH});
    return mica_net_batch_norm(net, y, &(mica_net_batch_norm_opts){.name = "norm"});
}

static mica_value dense_body(mica_net *net, mica_value x, void *user)
{
    const body_opts *o = user;
    return mica_net_dense(net, x, &(mica_net_dense_opts){.units = o->channels, .activation = MICA_TANH});
}

static mica_value build_residual(mica_net *net, test_random *r)
{
    body_opts body = {test_int(r, 2, 3), test_int(r, 1, 2)};
    mica_net_residual_opts o = {.name = "block",
                                .body = conv_body,
                                .user = &body,
                                .project = true,
                                .activation = test_chance(r, 50) ? MICA_SIGMOID : MICA_NO_ACTIVATION};
    if (test_chance(r, 60)) {
        mica_value x = layer_leaf(net, "x", 4, (mica_index[]){2, 2, test_int(r, 4, 5), 4});
        return mica_net_residual(net, x, &o);
    }
    o.body = dense_body;
    mica_value x = layer_leaf(net, "x", 2, (mica_index[]){3, 3});
    return mica_net_residual(net, x, &o);
}

static mica_value build_squeeze_excite(mica_net *net, test_random *r)
{
    mica_net_squeeze_excite_opts o = {.name = "se", .reduction = test_int(r, 0, 2), .activation = MICA_TANH};
    mica_index dims[] = {test_int(r, 1, 3), test_int(r, 2, 4), test_int(r, 1, 4), 3};
    mica_value x = layer_leaf(net, "x", test_int(r, 3, 4), dims);
    return mica_net_squeeze_excite(net, x, &o);
}

LAYER_CASE(residual) = {.build = build_residual, .draws = 8, .step = 3e-3};
LAYER_CASE(squeeze_excite) = {.build = build_squeeze_excite};
