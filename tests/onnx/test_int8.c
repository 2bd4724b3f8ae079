/* Quantized models: their products are of bytes, and within a step of what floats between roundings give. */
#include <math.h>
#include <string.h>

#include "onnx/quantized.h"
#include "ops/isa_context.h"

static const char *const sets[] = {"avx2-plain", "avx512-vnni", "neon-plain", "neon-dot", "scalar"};

/* The largest difference in steps. Of a single product, few numbers differ at all: those on an edge. */
static void check_steps(const quantized_ran *got, const quantized_ran *want, double scale, double most,
                        const char *what)
{
    double worst = 0;
    size_t others = 0;
    CHECK_MSG(got->count == want->count, "%s: %zu numbers, expected %zu", what, got->count, want->count);
    for (size_t i = 0; i < got->count && i < want->count; i++) {
        double off = fabs(got->y[i] - want->y[i]) / scale;
        worst = fmax(worst, off);
        others += off > 0.5;
    }
    CHECK_MSG(worst < most + 0.01, "%s: off by %g steps", what, worst);
    CHECK_MSG(most > 1.0 || others * 20 <= got->count + 20, "%s: %zu of %zu differ", what, others,
              got->count);
}

TEST(onnx_int8_convolutions)
{
    static quantized_ran got, want;
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        mica_context *ctx = isa_context(sets[s], 1 + (int)(s % 2));
        test_random r = test_seed(s);
        for (int trial = 0; trial < 25 && ctx != NULL; trial++) {
            quantized_conv c = quantized_draw_conv(&r);
            float scale;
            proto bytes = quantized_conv_model(&c, (uint64_t)trial, &scale);
            mica_index rows = test_int(&r, 1, 3);
            if (quantized_run(ctx, &got, &bytes, false, 3, rows) &&
                quantized_run(ctx, &want, &bytes, true, 3, rows)) {
                check_steps(&got, &want, (double)scale, c.quantized ? 1.0 : 0.02, sets[s]);
                CHECK_MSG(strstr(got.calls, "affine_conv2d") != NULL && strstr(want.calls, "affine") == NULL,
                          "%s; with roundings %s", got.calls, want.calls);
                CHECK_MSG(strcmp(got.calls, "affine_quantize affine_conv2d affine_dequantize") == 0 ||
                              !c.quantized || memcmp(c.pads, c.pads + 2, sizeof c.pads / 2) != 0,
                          "%s", got.calls);
                CHECK_MSG(got.heap == 0, "%d heap calls", (int)got.heap);
            }
            proto_free(&bytes);
        }
        mica_context_destroy(ctx);
    }
}

TEST(onnx_int8_rows)
{
    static quantized_ran got, want;
    mica_context *ctx = test_context(1);
    for (int k = 0; k < 6; k++) {
        bool gemm = k < 4, turned = k % 2 == 1 && gemm, quantized = k / 2 % 2 == 0;
        float scale;
        proto bytes = quantized_rows_model(gemm, turned, quantized, &scale);
        if (quantized_run(ctx, &got, &bytes, false, 40, k + 1) &&
            quantized_run(ctx, &want, &bytes, true, 40, k + 1)) {
            check_steps(&got, &want, (double)scale, quantized ? 1.0 : 0.02, gemm ? "Gemm" : "MatMul");
            CHECK_MSG(strcmp(got.calls, quantized ? "affine_quantize affine_linear affine_dequantize"
                                                  : "affine_quantize affine_linear") == 0,
                      "%s", got.calls);
            CHECK_MSG(got.heap == 0, "%d heap calls", (int)got.heap);
        }
        proto_free(&bytes);
    }
}

TEST(onnx_int8_net_stays_in_bytes)
{
    static quantized_ran got, want, exact;
    mica_context *ctx = test_context(2);
    proto bytes = quantized_net_model();
    for (mica_index rows = 1; rows <= 4; rows++) {
        if (!quantized_run(ctx, &got, &bytes, false, 4, rows) ||
            !quantized_run(ctx, &want, &bytes, true, 4, rows) ||
            !quantized_run(ctx, &exact, &bytes, false, rows, rows))
            break;
        check_steps(&got, &want, 0.06, 2.0, "a net");
        CHECK_MSG(memcmp(got.y, exact.y, got.count * sizeof *got.y) == 0, "%d rows of 4", (int)rows);
        CHECK_MSG(strcmp(got.calls,
                         "affine_quantize affine_conv2d int8_max_pool2d affine_conv2d affine_add "
                         "affine_global_avg_pool affine_linear affine_dequantize") == 0,
                  "%s", got.calls);
        CHECK_MSG(got.heap == 0, "%d heap calls", (int)got.heap);
    }
    proto_free(&bytes);
}

TEST(onnx_int8_moves)
{
    static quantized_ran got, want;
    mica_context *ctx = test_context(1);
    for (int same = 0; same < 2; same++) {
        proto bytes = quantized_moves_model(same == 1);
        if (quantized_run(ctx, &got, &bytes, false, 4, 3) && quantized_run(ctx, &want, &bytes, true, 4, 3)) {
            check_steps(&got, &want, 4.0 / 255.0, 0.0, "moves");
            CHECK_MSG((strcmp(got.calls, "affine_quantize permute concat affine_dequantize") == 0) ==
                          (same == 1),
                      "%s", got.calls);
        }
        proto_free(&bytes);
    }
}

TEST(onnx_int8_products_of_two)
{
    static quantized_ran got, want, exact;
    for (size_t k = 0; k < 4 * sizeof sets / sizeof *sets; k++) {
        mica_context *ctx = isa_context(sets[k / 4], 1 + (int)k % 3);
        if (ctx == NULL)
            continue;
        proto bytes = quantized_two_model(k % 2 == 0 ? ONNX_UINT8 : ONNX_INT8, k / 2 % 2 == 0);
        if (quantized_run(ctx, &got, &bytes, false, 4, 3) && quantized_run(ctx, &want, &bytes, true, 4, 3) &&
            quantized_run(ctx, &exact, &bytes, false, 3, 3)) {
            check_steps(&got, &want, k / 2 % 2 == 0 ? 0.12 : 1e-4, 1.0, sets[k / 4]);
            CHECK_MSG(memcmp(got.y, exact.y, got.count * sizeof *got.y) == 0, "%s: 3 rows of 4", sets[k / 4]);
            CHECK_MSG(strstr(got.calls, "affine_matmul") != NULL && strstr(got.calls, " matmul") == NULL,
                      "%s", got.calls);
            CHECK_MSG(got.heap == 0, "%d heap calls", (int)got.heap);
        }
        proto_free(&bytes);
        mica_context_destroy(ctx);
    }
}

static void check_integers(mica_context *ctx, const char *set)
{
    static const char *const types[] = {"QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger",
                                        "MatMulInteger"};
    static quantized_ran got, want;
    for (int k = 0; k < 5; k++) {
        proto bytes = quantized_integer_model(types[k], k == 4);
        if (quantized_run(ctx, &got, &bytes, false, 3, 2) && quantized_run(ctx, &want, &bytes, true, 3, 2)) {
            check_steps(&got, &want, 1.0, types[k][0] == 'Q' ? 1.0 : 0.0, types[k]);
            CHECK_MSG(strstr(got.calls, k == 0 || k == 2 ? "affine_conv2d" : "affine_linear") != NULL &&
                          strstr(want.calls, "affine") == NULL,
                      "%s, %s: %s; with roundings %s", set, types[k], got.calls, want.calls);
        }
        proto_free(&bytes);
    }
}

TEST(onnx_int8_operators_of_integers)
{
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        mica_context *ctx = isa_context(sets[s], 1);
        if (ctx != NULL)
            check_integers(ctx, sets[s]);
        mica_context_destroy(ctx);
    }
}

/* ---- Training ---- */

TEST(onnx_int8_trains_as_floats_with_roundings)
{
    mica_context *ctx = test_context(1);
    static quantized_ran got, want;
    proto bytes = quantized_net_model();
    mica_onnx *model = NULL;
    mica_net *net = NULL;
    mica_onnx_set set = {.name = "n", .size = 2};
    got = (quantized_ran){.count = 0};
    if (CHECK_OK(ctx, mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test")) &&
        CHECK_OK(ctx, mica_net_create(ctx, &net)) &&
        CHECK_OK(ctx,
                 mica_onnx_build(model, net, &(mica_onnx_opts){.sets = &set, .count = 1, .train = true})) &&
        CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){0})) &&
        CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) && CHECK_OK(ctx, mica_onnx_load(model, net)) &&
        quantized_run(ctx, &want, &bytes, true, 2, 2)) {
        quantized_list_calls(&got, net);
        quantized_step(ctx, net, &got);
        CHECK_MSG(strstr(got.calls, "affine") == NULL, "%s", got.calls);
        check_steps(&got, &want, 0.06, 1.0, "for training");
    }
    mica_net_destroy(net);
    mica_onnx_close(model);
    proto_free(&bytes);
}
