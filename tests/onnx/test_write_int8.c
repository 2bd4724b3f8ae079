/* Nets of bytes as ONNX files: read again they give the same bits, and are packed again. */
#include <stdio.h>
#include <string.h>

#include <mica/int8.h>
#include <mica/netfile.h>

#include "net/net.h"
#include "onnx/round_trip.h"

static void fill_floats(mica_net *net, uint64_t seed)
{
    test_random r = test_seed(seed);
    for (int i = 0; i < mica_net_inputs(net); i++) {
        mica_tensor t;
        if (mica_net_input_tensor(net, NULL, &t, i) != MICA_OK || t.dtype != MICA_F32)
            continue;
        for (size_t j = 0; j < mica_tensor_count(&t); j++)
            ((float *)t.data)[j] = (float)test_normal(&r);
    }
}

static bool ready(mica_context *ctx, mica_net *net)
{
    return mica_net_compile(net, NULL) == MICA_OK && mica_net_bind(net, NULL, 0) == MICA_OK &&
           CHECK_OK(ctx, mica_net_initialize(net, 5));
}

/* The int8 form of a net that is built and not compiled; NULL: nothing in it can be int8. */
static mica_net *bytes_of(mica_context *ctx, mica_net *net, bool per_tensor, bool pack)
{
    mica_int8 *q = NULL;
    mica_net *bytes = NULL;
    bool made = CHECK_OK(ctx, mica_int8_create(net, &q)) && ready(ctx, net);
    if (made)
        fill_floats(net, 1);
    made = made && CHECK_OK(ctx, mica_net_forward(net)) && CHECK_OK(ctx, mica_int8_collect(q)) &&
           CHECK_OK(ctx, mica_int8_choose(q, NULL)) && CHECK_OK(ctx, mica_net_create(ctx, &bytes));
    mica_int8_per_tensor(q, per_tensor);
    mica_int8_pack_weights(q, pack);
    made = made && mica_int8_build(q, bytes) == MICA_OK && ready(ctx, bytes) &&
           CHECK_OK(ctx, mica_int8_weights_set(q, bytes));
    mica_int8_destroy(q);
    if (made)
        fill_floats(bytes, 2);
    else
        mica_net_destroy(bytes);
    return made ? bytes : NULL;
}

TEST(onnx_write_int8_builtin_nets)
{
    static const char *const names[] = {"mlp", "lenet", "resnet-small", "keywords"};
    mica_context *ctx = test_context(2);
    for (int i = 0; i < 16; i++) {
        bool per_tensor = i & 1, pack = i & 2;
        mica_net *net;
        char file[64];
        snprintf(file, sizeof file, "int8_%s_%d", names[i / 4], i % 4);
        REQUIRE(CHECK_OK(ctx, mica_net_create(ctx, &net)));
        if (CHECK_OK(ctx, mica_netfile_build(net, NULL, mica_netfile_builtin(names[i / 4]),
                                             &(mica_netfile_opts){.batch = 3, .inference = true}))) {
            mica_net *bytes = bytes_of(ctx, net, per_tensor, pack);
            if (CHECK_MSG(bytes != NULL, "%s: %s", file, mica_error(ctx)))
                CHECK_MSG(round_trip(bytes, file), "%s: %s", file, mica_error(ctx));
            mica_net_destroy(bytes);
        }
        mica_net_destroy(net);
    }
}

/* Layers of every kind that bytes have: grouped and depthwise convolutions, signals, means, sums, joins. */
static mica_net *all_kinds(mica_context *ctx, test_random *r)
{
    mica_net *net;
    if (!CHECK_OK(ctx, mica_net_create(ctx, &net)))
        return NULL;
    mica_index side = test_int(r, 6, 13);
    mica_value x = mica_net_input(net, "x", MICA_F32, 4, (mica_index[]){3, 3, side, test_int(r, 6, 13)});
    mica_net_conv_opts conv = {.out_channels = 8, .kernel = {3, 3}, .pad = {1, 1}, .activation = MICA_RELU};
    mica_value h = mica_net_conv2d(net, x, &conv);
    conv = (mica_net_conv_opts){.kernel = {3, test_int(r, 1, 3)},
                                .pad = {1, 1},
                                .stride = {test_int(r, 1, 2), 1},
                                .activation = MICA_RELU6};
    h = mica_net_depthwise_conv2d(net, h, &conv);
    conv = (mica_net_conv_opts){.out_channels = 8, .kernel = {1, 1}, .groups = test_chance(r, 50) ? 4 : 1};
    mica_value side_way = mica_net_conv2d(net, h, &conv);
    h = mica_net_plus(net, h, side_way, NULL);
    h = mica_net_concat(net, (mica_value[]){h, side_way}, 2, &(mica_net_axis_opts){.axis = 1});
    mica_net_pool_opts pool = {.kernel = {2, 2}, .stride = {test_int(r, 1, 2), 2}};
    h = test_chance(r, 50) ? mica_net_avg_pool2d(net, h, &pool) : mica_net_max_pool2d(net, h, &pool);
    h = test_chance(r, 50) ? mica_net_global_avg_pool(net, h, NULL) : mica_net_flatten(net, h, NULL);
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 9, .activation = MICA_TANH});
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 5});
    (void)mica_net_output(net, "y", h);
    return net;
}

TEST(onnx_write_int8_layers)
{
    mica_context *ctx = test_context(2);
    test_random r = test_seed(3);
    for (int i = 0; i < test_effort(24); i++) {
        mica_net *net = all_kinds(ctx, &r), *bytes;
        char file[64];
        snprintf(file, sizeof file, "int8_layers_%d", i);
        REQUIRE(net != NULL);
        bytes = bytes_of(ctx, net, test_chance(&r, 50), test_chance(&r, 50));
        if (CHECK_MSG(bytes != NULL, "%s: %s", file, mica_error(ctx)))
            CHECK_MSG(round_trip(bytes, file), "%s: %s", file, mica_error(ctx));
        mica_net_destroy(bytes);
        mica_net_destroy(net);
    }
}
