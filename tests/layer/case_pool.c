/* Cases of pooling. */
#include "layer/layer_case.h"

static mica_net_pool_opts draw(test_random *r, mica_index dims[4])
{
    mica_net_pool_opts o = {.ceil_mode = test_chance(r, 50), .exclude_pad = test_chance(r, 50)};
    dims[0] = test_int(r, 1, 3);
    dims[1] = test_int(r, 1, 3);
    for (int k = 0; k < 2; k++) {
        dims[2 + k] = test_int(r, 4, 7);
        o.kernel[k] = test_int(r, 1, 3);
        o.stride[k] = test_int(r, 0, 2);
        o.pad[k] = test_int(r, 0, o.kernel[k] > 1 ? 1 : 0);
    }
    return o;
}

#define POOL_CASE(layer, rank)                                          \
    static mica_value build_##layer(mica_net *net, test_random *r)      \
    {                                                                   \
        mica_index dims[4];                                             \
        mica_net_pool_opts o = draw(r, dims);                           \
        mica_value x = layer_leaf(net, "x", rank, dims);                \
        return LAYER_MAYBE_TWICE(net, r, mica_net_##layer(net, x, &o)); \
    }                                                                   \
    LAYER_CASE(layer) = {.build = build_##layer, .draws = 8, .step = 1e-3}

POOL_CASE(max_pool1d, 3);
POOL_CASE(max_pool2d, 4);
POOL_CASE(avg_pool1d, 3);
POOL_CASE(avg_pool2d, 4);

static mica_value build_adaptive(mica_net *net, test_random *r)
{
    mica_net_adaptive_pool_opts o = {.size = {test_int(r, 0, 4), test_int(r, 0, 4)}};
    mica_value x = layer_leaf(net, "x", 4, (mica_index[]){2, test_int(r, 1, 3), test_int(r, 3, 6), 5});
    if (test_chance(r, 60))
        return LAYER_MAYBE_TWICE(net, r, mica_net_adaptive_avg_pool2d(net, x, &o));
    x = mica_net_flatten(net, x, &(mica_net_flatten_opts){.first = 2, .last = 3});
    return LAYER_MAYBE_TWICE(net, r, mica_net_adaptive_avg_pool1d(net, x, &o));
}

static mica_value build_global(mica_net *net, test_random *r)
{
    mica_net_global_pool_opts o = {.keep = test_chance(r, 50)};
    mica_index dims[] = {test_int(r, 1, 3), test_int(r, 1, 4), test_int(r, 1, 5), 3};
    mica_value x = layer_leaf(net, "x", test_int(r, 3, 4), dims);
    return LAYER_MAYBE_TWICE(net, r, mica_net_global_avg_pool(net, x, &o));
}

LAYER_CASE(adaptive_avg_pool) = {.build = build_adaptive, .draws = 8};
LAYER_CASE(global_avg_pool) = {.build = build_global};
