/* Cases of normalization, softmax and dropout. */
#include "layer/layer_case.h"

/* Small drawn shapes [N, C, ...]. */
static mica_value draw_x(mica_net *net, test_random *r, int low_rank, int high_rank, mica_index channels)
{
    mica_index dims[] = {test_int(r, 4, 5), channels, test_int(r, 4, 5), test_int(r, 1, 3)};
    return layer_leaf(net, "x", test_int(r, low_rank, high_rank), dims);
}

static mica_value build_batch(mica_net *net, test_random *r)
{
    mica_net_batch_norm_opts o = {.eps = test_chance(r, 50) ? 0.1f : 0.0f, .no_affine = test_chance(r, 30)};
    mica_value x = draw_x(net, r, 2, 4, test_int(r, 1, 5));
    return LAYER_MAYBE_TWICE(net, r, mica_net_batch_norm(net, x, &o));
}

static mica_value build_layer(mica_net *net, test_random *r)
{
    mica_net_layer_norm_opts o = {
        .axes = test_int(r, 0, 2), .no_affine = test_chance(r, 20), .no_bias = test_chance(r, 30)};
    mica_index dims[] = {test_int(r, 1, 3), test_int(r, 1, 3), test_int(r, 4, 9)};
    mica_value x = layer_leaf(net, "x", 3, dims);
    return LAYER_MAYBE_TWICE(net, r, mica_net_layer_norm(net, x, &o));
}

static mica_value build_rms(mica_net *net, test_random *r)
{
    mica_net_layer_norm_opts o = {.axes = test_int(r, 0, 2), .no_affine = test_chance(r, 20)};
    mica_index dims[] = {test_int(r, 1, 3), test_int(r, 1, 3), test_int(r, 4, 9)};
    mica_value x = layer_leaf(net, "x", 3, dims);
    return LAYER_MAYBE_TWICE(net, r, mica_net_rms_norm(net, x, &o));
}

static mica_value build_group(mica_net *net, test_random *r)
{
    mica_net_group_norm_opts o = {.groups = test_int(r, 0, 3), .no_affine = test_chance(r, 20)};
    mica_value x = draw_x(net, r, 3, 4, (o.groups > 0 ? o.groups : 1) * test_int(r, 1, 3));
    return LAYER_MAYBE_TWICE(net, r, mica_net_group_norm(net, x, &o));
}

static mica_value build_instance(mica_net *net, test_random *r)
{
    mica_net_group_norm_opts o = {.affine = test_chance(r, 50), .eps = 0.1f};
    mica_value x = draw_x(net, r, 4, 4, test_int(r, 1, 4));
    return LAYER_MAYBE_TWICE(net, r, mica_net_instance_norm(net, x, &o));
}

LAYER_CASE(batch_norm) = {.build = build_batch, .draws = 10, .step = 2e-3};
LAYER_CASE(layer_norm) = {.build = build_layer, .draws = 10, .step = 2e-3};
LAYER_CASE(rms_norm) = {.build = build_rms, .draws = 10, .step = 2e-3};
LAYER_CASE(group_norm) = {.build = build_group, .draws = 10, .step = 2e-3};
LAYER_CASE(instance_norm) = {.build = build_instance, .draws = 8, .step = 2e-3};

static mica_value build_softmax(mica_net *net, test_random *r)
{
    mica_value x = draw_x(net, r, 2, 4, test_int(r, 1, 6));
    mica_net_softmax_opts o = {.axis = test_int(r, -2, 1)};
    if (test_chance(r, 50))
        return LAYER_MAYBE_TWICE(net, r, mica_net_softmax(net, x, &o));
    return LAYER_MAYBE_TWICE(net, r, mica_net_log_softmax(net, x, &o));
}

/* Every forward of the harness is of the same step, so it drops the same elements. */
static mica_value build_dropout(mica_net *net, test_random *r)
{
    mica_net_dropout_opts o = {.rate = (float)test_int(r, 0, 3) * 0.3f};
    mica_value x = draw_x(net, r, 2, 4, test_int(r, 1, 6));
    return LAYER_MAYBE_TWICE(net, r, mica_net_dropout(net, x, &o));
}

LAYER_CASE(softmax) = {.build = build_softmax, .draws = 12};
LAYER_CASE(dropout) = {.build = build_dropout, .draws = 8};
