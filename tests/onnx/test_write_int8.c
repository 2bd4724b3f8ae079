/* Nets of bytes as ONNX files: read again they give the same bits, and are packed again. */
#include <stdio.h>
#include <string.h>

#include <mica/int8.h>
#include <mica/netfile.h>

#include "io/scratch.h"
#include "net/net.h"
#include "onnx/quantized.h"
#include "onnx/round_trip.h"
#include "ops/isa_context.h"

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

/* ---- Quantized models ---- */

/* The net of a model whose size of this name is 3, with inputs; NULL: it failed. */
static mica_net *net_of(mica_context *ctx, mica_onnx *model, const char *size)
{
    mica_net *net = NULL;
    mica_tensor x;
    mica_onnx_set set = {.name = size, .size = 3};
    test_random random = test_seed(5);
    bool made = CHECK_OK(ctx, mica_net_create(ctx, &net)) &&
                CHECK_OK(ctx, mica_onnx_build(model, net, &(mica_onnx_opts){.sets = &set, .count = 1})) &&
                CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){0})) &&
                CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) && CHECK_OK(ctx, mica_net_tensor(net, &x, "x"));
    for (size_t i = 0; made && i < mica_tensor_count(&x); i++)
        ((float *)x.data)[i] = (float)test_uniform(&random, -2, 2);
    if (!made)
        mica_net_destroy(net);
    return made ? net : NULL;
}

/* Without functions, so that its nodes are found and joined as those of any other file. */
static void check_plain(mica_context *ctx, mica_net *net, const quantized_ran *want, const char *calls,
                        const char *name)
{
    static quantized_ran got;
    scratch s = scratch_make();
    char path[300];
    size_t size = 0;
    snprintf(path, sizeof path, "%s", scratch_path(&s, "plain.onnx"));
    if (CHECK_OK(ctx, mica_onnx_write(net, path, &(mica_onnx_write_opts){.plain = true}))) {
        proto bytes = {.bytes = scratch_read(path, &size)};
        bytes.size = size;
        if (quantized_run_sized(ctx, &got, &bytes, false, "batch", 3, 3)) {
            CHECK_MSG(got.count == want->count && memcmp(got.y, want->y, got.count * sizeof *got.y) == 0,
                      "%s: other numbers without functions", name);
            CHECK_MSG(calls == NULL || strcmp(got.calls, calls) == 0, "%s: %s", name, got.calls);
        }
        proto_free(&bytes);
    }
    scratch_remove(&s);
}

/* `calls`: those that are left without functions; NULL: any. */
static void write_again(mica_context *ctx, proto bytes, const char *calls, const char *name)
{
    static quantized_ran want;
    mica_onnx *model = NULL;
    if (quantized_run(ctx, &want, &bytes, false, 3, 3) &&
        CHECK_OK(ctx, mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test"))) {
        mica_net *net = net_of(ctx, model, "n");
        if (net != NULL && CHECK_MSG(round_trip(net, name), "%s: %s", name, mica_error(ctx)))
            check_plain(ctx, net, &want, calls, name);
        mica_net_destroy(net);
    }
    mica_onnx_close(model);
    proto_free(&bytes);
}

TEST(onnx_write_quantized_models)
{
    mica_context *ctx = test_context(2);
    write_again(ctx, quantized_net_model(), NULL, "int8_qdq_net");
    write_again(ctx, quantized_moves_model(true), "affine_quantize permute concat affine_dequantize",
                "int8_qdq_moves");
    write_again(ctx, quantized_moves_model(false), NULL, "int8_qdq_other_moves");
    write_again(ctx, quantized_integer_model("QLinearConv", false),
                "affine_quantize pad affine_conv2d affine_flip", "int8_qlinear_conv");
    write_again(ctx, quantized_integer_model("QLinearMatMul", false), NULL, "int8_qlinear_matmul");
    write_again(ctx, quantized_integer_model("ConvInteger", false), NULL, "int8_conv_integer");
    write_again(ctx, quantized_integer_model("MatMulInteger", false), NULL, "int8_matmul_integer");
    test_random r = test_seed(77);
    for (int seed = 0; seed < test_effort(30); seed++) {
        char name[64];
        float scale;
        quantized_conv c = quantized_draw_conv(&r);
        snprintf(name, sizeof name, "int8_qdq_conv_%d", seed);
        write_again(ctx, quantized_conv_model(&c, (uint64_t)seed, &scale), NULL, name);
    }
}

/* ---- Tiles ---- */

static int tiled_weights(const mica_net *net)
{
    int count = 0;
    for (int d = 0; d < net->derivation_count; d++)
        count += strcmp(net->derivations[d].op->name, "int8_pack") == 0 &&
                 ((const mica_int8_pack_opts *)net->derivations[d].opts)->tiled;
    return count;
}

/* The net, written and read again, has as many weights that are packed for tiles. Returns how many. */
static int same_tiles(mica_context *ctx, mica_net *net)
{
    scratch s = scratch_make();
    mica_onnx *model = NULL;
    int count = tiled_weights(net);
    const char *path = scratch_path(&s, "tiled.onnx");
    if (CHECK_OK(ctx, mica_onnx_write(net, path, NULL)) && CHECK_OK(ctx, mica_onnx_open(ctx, &model, path))) {
        mica_net *again = net_of(ctx, model, "batch");
        CHECK_MSG(again != NULL && tiled_weights(again) == count, "%d weights for tiles, read again %d",
                  count, again != NULL ? tiled_weights(again) : 0);
        mica_net_destroy(again);
    }
    mica_onnx_close(model);
    scratch_remove(&s);
    return count;
}

TEST(onnx_write_keeps_tiles)
{
    static const char *const sets[] = {"avx2-plain", "avx512-vnni", "scalar"};
    const quantized_conv c = {1, 32, 32, {3, 3}, {1, 1}, {1, 1, 1, 1}, {28, 28}, ONNX_UINT8, true, true};
    float scale;
    proto bytes = quantized_conv_model(&c, 3, &scale);
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        mica_context *ctx = isa_context(sets[i], 2);
        mica_onnx *model = NULL;
        if (ctx == NULL)
            continue;
        mica_net *net = CHECK_OK(ctx, mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test"))
                            ? net_of(ctx, model, "n")
                            : NULL;
        if (net != NULL) {
            int tiled = same_tiles(ctx, net);
            CHECK_MSG(tiled == 1 || strncmp(sets[i], "avx2", 4) != 0, "%s: no tiles", sets[i]);
            CHECK_MSG(round_trip(net, "int8_tiled"), "%s: %s", sets[i], mica_error(ctx));
        }
        mica_net_destroy(net);
        mica_onnx_close(model);
        mica_context_destroy(ctx);
    }
    proto_free(&bytes);
}

/* ---- Extreme sums ---- */

enum { SHIFTS = 62, SUMS = 6 };

/* Products of 0 by 0: what is converted is the bias. Every shift that there is. */
static mica_net *extreme_net(mica_context *ctx)
{
    static const int32_t sums[SUMS] = {INT32_MAX, INT32_MIN, 1 << 30, -(1 << 30), -1, 12345};
    const mica_index rows = SHIFTS * SUMS;
    mica_net *net;
    mica_tensor t;
    if (!CHECK_OK(ctx, mica_net_create(ctx, &net)))
        return NULL;
    mica_value ins[] = {mica_net_input(net, "x", MICA_I8, 2, (mica_index[]){1, 1}),
                        mica_net_input(net, "w", MICA_I8, 2, (mica_index[]){rows, 1}),
                        mica_net_input(net, "bias", MICA_I32, 1, &rows),
                        mica_net_input(net, "multiplier", MICA_I32, 1, &rows),
                        mica_net_input(net, "shift", MICA_U8, 1, &rows)};
    (void)mica_net_output(net, "y", mica_net_op(net, NULL, "int8_linear", ins, 5, NULL));
    if (!CHECK_OK(ctx, mica_net_compile(net, NULL)) || !CHECK_OK(ctx, mica_net_bind(net, NULL, 0)))
        return net;
    for (int i = 0; i < 2; i++) /* a net's memory is what it was before */
        if (CHECK_OK(ctx, mica_net_tensor(net, &t, i == 0 ? "x" : "w")))
            CHECK_OK(ctx, mica_fill(ctx, &t, 0.0));
    for (mica_index i = 0; i < rows; i++) {
        CHECK_OK(ctx, mica_net_tensor(net, &t, "bias"));
        ((int32_t *)t.data)[i] = sums[i % SUMS];
        CHECK_OK(ctx, mica_net_tensor(net, &t, "multiplier"));
        ((int32_t *)t.data)[i] = INT32_MAX;
        CHECK_OK(ctx, mica_net_tensor(net, &t, "shift"));
        ((uint8_t *)t.data)[i] = (uint8_t)(1 + i / SUMS);
    }
    return net;
}

/* Also without functions: then Mica computes what other programs do, in 64 bits. */
TEST(onnx_write_int8_extreme_sums)
{
    mica_context *ctx = test_context(1);
    mica_net *net = extreme_net(ctx);
    REQUIRE(net != NULL);
    CHECK_MSG(round_trip(net, "int8_extreme_sums"), "%s", mica_error(ctx));
    CHECK_MSG(round_trip_plain(net, "int8_extreme_sums_plain"), "%s", mica_error(ctx));
    mica_net_destroy(net);
}
