/* Cases of layers that rearrange and join. Views stand between layers that compute, since a view alone does
 * nothing. */
#include "layer/layer_case.h"

static mica_value activate(mica_net *net, mica_value x)
{
    return mica_net_activation(net, x, &(mica_net_activation_opts){.kind = MICA_TANH});
}

static mica_value build_view(mica_net *net, test_random *r)
{
    mica_index n = test_int(r, 1, 3);
    mica_value x = activate(net, layer_leaf(net, "x", 4, (mica_index[]){n, 2, 1, 3}));
    mica_value flat = mica_net_flatten(net, x, NULL);
    mica_value squeezed = mica_net_squeeze(net, x, &(mica_net_axis_opts){.axis = 2});
    mica_value taller = mica_net_unsqueeze(net, squeezed, &(mica_net_axis_opts){.axis = -1});
    mica_value back = mica_net_reshape(net, taller, &(mica_net_reshape_opts){.rank = 2, .dims = {0, -1}});
    switch (test_int(r, 0, 3)) {
    case 0: /* one root, two of whose views are used */
        return mica_net_times(net, flat, back, NULL);
    case 1: /* in place over a view */
        return mica_net_flatten(net, activate(net, taller), &(mica_net_flatten_opts){.first = 0, .last = 1});
    case 2:
        return mica_net_dense(net, flat, &(mica_net_dense_opts){.units = 3});
    default: /* the root and its view */
        return mica_net_plus(net, activate(net, squeezed),
                             mica_net_reshape(net, x, &(mica_net_reshape_opts){.rank = 3, .dims = {0, 2, 3}}),
                             NULL);
    }
}

static mica_value build_permute(mica_net *net, test_random *r)
{
    mica_index dims[] = {test_int(r, 1, 3), test_int(r, 1, 3), test_int(r, 1, 4)};
    mica_value x = layer_leaf(net, "x", 3, dims);
    mica_net_permute_opts o = {.axes = {1, -1, 0}};
    if (test_chance(r, 50))
        return LAYER_MAYBE_TWICE(net, r, mica_net_permute(net, x, &o));
    return LAYER_MAYBE_TWICE(net, r, mica_net_transpose(net, x, NULL));
}

static mica_value build_pad(mica_net *net, test_random *r)
{
    mica_net_pad_opts o = {.pad = {.before = {0, 0, test_int(r, 0, 2)},
                                   .after = {0, test_int(r, 0, 1), test_int(r, 0, 2)},
                                   .mode = test_chance(r, 50) ? MICA_PAD_REFLECT : MICA_PAD_CONSTANT,
                                   .value = 0.5}};
    mica_value x = layer_leaf(net, "x", 3, (mica_index[]){test_int(r, 1, 2), 3, test_int(r, 3, 5)});
    return LAYER_MAYBE_TWICE(net, r, mica_net_pad(net, x, &o));
}

static mica_value build_slice(mica_net *net, test_random *r)
{
    mica_net_slice_opts o = {
        .axis = test_int(r, -1, 1), .start = test_int(r, 0, 2), .step = test_int(r, 0, 2)};
    if (test_chance(r, 30))
        o = (mica_net_slice_opts){.axis = 1, .start = -1, .step = -1};
    mica_value x = layer_leaf(net, "x", 3, (mica_index[]){3, test_int(r, 3, 5), 4});
    return LAYER_MAYBE_TWICE(net, r, mica_net_slice(net, x, &o));
}

static mica_value build_concat(mica_net *net, test_random *r)
{
    int axis = test_int(r, 0, 2), count = test_int(r, 1, 4);
    mica_value parts[4];
    for (int i = 0; i < count; i++) {
        char name[] = {'x', (char)('0' + i), '\0'};
        mica_index dims[] = {2, 3, 2};
        dims[axis] = test_int(r, 1, 3);
        parts[i] = i > 0 && test_chance(r, 30) ? parts[i - 1] : layer_leaf(net, name, 3, dims);
    }
    mica_net_axis_opts o = {.axis = test_chance(r, 50) ? axis : axis - 3};
    return LAYER_MAYBE_TWICE(net, r, mica_net_concat(net, parts, count, &o));
}

LAYER_CASE(view) = {.build = build_view, .draws = 12};
LAYER_CASE(permute) = {.build = build_permute};
LAYER_CASE(pad) = {.build = build_pad, .draws = 8};
LAYER_CASE(slice) = {.build = build_slice, .draws = 10};
LAYER_CASE(concat) = {.build = build_concat, .draws = 10};

/* Two shapes that fit each other, [1, 3] and [4, 3] among them: the same bytes once rounded up. */
static mica_value build_pair(mica_net *net, test_random *r, bool product)
{
    mica_index full[] = {test_int(r, 1, 4), 3, test_int(r, 1, 4)}, a[3], b[3];
    for (int k = 0; k < 3; k++) {
        a[k] = test_chance(r, 30) ? 1 : full[k];
        b[k] = test_chance(r, 30) ? 1 : full[k];
    }
    int skip = test_chance(r, 30) ? 1 : 0;
    mica_value x = activate(net, layer_leaf(net, "x", 3, a));
    mica_value y = test_chance(r, 20) ? x : layer_leaf(net, "b", 3 - skip, b + skip);
    if (product)
        return activate(net, LAYER_MAYBE_TWICE(net, r, mica_net_times(net, x, y, NULL)));
    return activate(net, LAYER_MAYBE_TWICE(net, r, mica_net_plus(net, x, y, NULL)));
}

static mica_value build_plus(mica_net *net, test_random *r) { return build_pair(net, r, false); }
static mica_value build_times(mica_net *net, test_random *r) { return build_pair(net, r, true); }

LAYER_CASE(plus) = {.build = build_plus, .draws = 24};
LAYER_CASE(times) = {.build = build_times, .draws = 24};
