/* Cases of Dense and the activations. */
#include "layer/layer_case.h"

static mica_value build_dense(mica_net *net, test_random *r)
{
    mica_index dims[3] = {test_int(r, 1, 4), test_int(r, 1, 3), test_int(r, 1, 7)};
    mica_value x = layer_leaf(net, "x", test_int(r, 1, 3), dims);
    return mica_net_dense(
        net, x,
        &(mica_net_dense_opts){.name = "fc", .units = test_int(r, 1, 6), .no_bias = test_chance(r, 30)});
}

LAYER_CASE(dense) = {.build = build_dense};

static mica_value build_activation(mica_net *net, test_random *r)
{
    static int kind;
    kind = kind % (MICA_ACTIVATION_COUNT - 1) + 1;
    mica_value x = layer_leaf(net, "x", 2, (mica_index[]){test_int(r, 1, 4), 5});
    mica_value h = mica_net_dense(net, x, &(mica_net_dense_opts){.units = 4});
    return mica_net_activation(net, h, &(mica_net_activation_opts){.kind = (mica_activation)kind});
}

LAYER_CASE(activation) = {.build = build_activation, .draws = 22, .step = 2e-3};
