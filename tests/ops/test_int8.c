/* Int8 operations: factors, the limits of their numbers, the same bits on every instruction set. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/isa_context.h"

TEST(int8_factors)
{
    int32_t m = -1;
    int shift = -1;
    CHECK(!mica_int8_factor(-1.0, &m, &shift) && !mica_int8_factor((double)NAN, &m, &shift));
    CHECK(!mica_int8_factor(0x1p29, &m, &shift) && !mica_int8_factor((double)INFINITY, &m, &shift));
    CHECK(m == -1 && shift == -1);
    CHECK(mica_int8_factor(0.0, &m, &shift) && m == 0 && shift >= 1 && shift <= 62);
    CHECK(mica_int8_factor(1.0, &m, &shift) && m == 1 << 30 && shift == 30);
    CHECK(mica_int8_factor(0.25, &m, &shift) && m == 1 << 30 && shift == 32);
    CHECK(mica_int8_factor(nextafter(1.0, 0.0), &m, &shift) && m == 1 << 30 && shift == 30);
    CHECK(mica_int8_factor(0x1p-40, &m, &shift) && shift == 62 && m == 1 << 22);
    CHECK(mica_int8_factor(0x1p-80, &m, &shift) && shift == 62 && m == 0);
    test_random r = test_seed(1);
    for (int i = 0; i < 1000; i++) {
        double ratio = exp(test_uniform(&r, -20.0, 19.0));
        CHECK(mica_int8_factor(ratio, &m, &shift) && shift >= 1 && shift <= 62);
        CHECK(fabs(ldexp((double)m, -shift) / ratio - 1.0) < 0x1p-30);
    }
}

enum { ROWS = 9, UNITS = 70, VALUES = 333, SIDE = 13, CHANNELS = 5 };

typedef struct numbers {
    int8_t x[ROWS * VALUES], w[UNITS * VALUES], y[ROWS * UNITS], image[2 * CHANNELS * SIDE * SIDE],
        made[2 * UNITS * SIDE * SIDE];
    int32_t bias[UNITS], multiplier[UNITS];
    uint8_t shift[UNITS];
} numbers;

/* All bytes, -128 too; biases that make sums wrap; all factors. */
static void draw(numbers *n, uint64_t seed)
{
    test_random r = test_seed(seed);
    for (size_t i = 0; i < sizeof n->x; i++)
        n->x[i] = (int8_t)test_int(&r, -128, 127);
    for (size_t i = 0; i < sizeof n->w; i++)
        n->w[i] = (int8_t)(test_chance(&r, 20) ? -128 : test_int(&r, -128, 127));
    for (size_t i = 0; i < sizeof n->image; i++)
        n->image[i] = (int8_t)(test_chance(&r, 20) ? -128 : test_int(&r, -128, 127));
    for (int i = 0; i < UNITS; i++) {
        n->bias[i] = test_chance(&r, 50) ? (int32_t)test_next(&r) : test_int(&r, -1000, 1000);
        n->multiplier[i] = (int32_t)(test_next(&r) >> 33);
        n->shift[i] = (uint8_t)test_int(&r, 1, 62);
    }
}

static mica_tensor tensor_of(void *data, mica_dtype dtype, int rank, const mica_index *dims)
{
    mica_tensor t = {0};
    (void)mica_tensor_init(NULL, &t, data, dtype, rank, dims);
    return t;
}

static void run(mica_context *ctx, numbers *n, mica_index rows, mica_index groups)
{
    mica_tensor x = tensor_of(n->x, MICA_I8, 2, (mica_index[]){rows, VALUES}),
                y = tensor_of(n->y, MICA_I8, 2, (mica_index[]){rows, UNITS}),
                w = tensor_of(n->w, MICA_I8, 2, (mica_index[]){UNITS, VALUES}),
                bias = tensor_of(n->bias, MICA_I32, 1, (mica_index[]){UNITS}),
                multiplier = tensor_of(n->multiplier, MICA_I32, 1, (mica_index[]){UNITS}),
                shift = tensor_of(n->shift, MICA_U8, 1, (mica_index[]){UNITS});
    mica_int8_weights weights = {&w, &bias, &multiplier, &shift, NULL};
    CHECK_OK(ctx, mica_int8_linear(ctx, &y, &x, &weights, NULL));
    x = tensor_of(n->image, MICA_I8, 4, (mica_index[]){2, CHANNELS, SIDE, SIDE});
    y = tensor_of(n->made, MICA_I8, 4, (mica_index[]){2, UNITS, SIDE, SIDE});
    w = tensor_of(n->w, MICA_I8, 4, (mica_index[]){UNITS, CHANNELS / groups, 3, 3});
    CHECK_OK(ctx, mica_int8_conv2d(ctx, &y, &x, &weights,
                                   &(mica_int8_conv_opts){.pad = {1, 1}, .groups = groups}));
}

TEST(int8_same_bits_on_every_instruction_set)
{
    static const char *const sets[] = {"avx2-plain", "avx2-vnni", "avx512-plain", "avx512-vnni",
                                       "neon-plain", "neon-dot",  "scalar"};
    numbers *n = calloc(1, sizeof *n), *plain = calloc(1, sizeof *plain);
    mica_context *scalar = isa_context("scalar", 1);
    REQUIRE(scalar != NULL && n != NULL && plain != NULL);
    for (uint64_t seed = 0; seed < 6; seed++) {
        mica_index rows = seed % 2 == 0 ? ROWS : 2, groups = seed % 3 == 0 ? CHANNELS : 1;
        draw(plain, seed);
        run(scalar, plain, rows, groups);
        for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
            mica_context *ctx = isa_context(sets[i], 1 + (int)(seed % 3));
            if (ctx == NULL)
                continue; /* not on this machine */
            draw(n, seed);
            run(ctx, n, rows, groups);
            CHECK_MSG(memcmp(n->y, plain->y, (size_t)rows * UNITS) == 0, "linear: %s", sets[i]);
            CHECK_MSG(memcmp(n->made, plain->made, sizeof n->made) == 0, "conv2d: %s", sets[i]);
            mica_context_destroy(ctx);
        }
    }
    mica_context_destroy(scalar);
    free(n);
    free(plain);
}

/* Packed weights, and max pooling in the same call, give the bits of two calls. */
TEST(int8_conv_packed_and_pooled)
{
    static const char *const sets[] = {"avx2-plain", "avx2-vnni", "avx512-plain", "avx512-vnni",
                                       "neon-plain", "neon-dot",  "scalar"};
    numbers *n = calloc(1, sizeof *n);
    static int8_t whole[2 * UNITS * SIDE * SIDE], two[2 * UNITS * SIDE * SIDE];
    static _Alignas(64) uint8_t room[1 << 16];
    REQUIRE(n != NULL);
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        mica_context *ctx = isa_context(sets[i], 2);
        test_random r = test_seed(i);
        for (int trial = 0; trial < 40 && ctx != NULL; trial++) {
            draw(n, (uint64_t)trial);
            bool depthwise = trial % 4 == 0;
            mica_index units = depthwise ? CHANNELS : test_int(&r, 1, 22), groups = depthwise ? CHANNELS : 1;
            mica_index taps = test_int(&r, 1, 5), high = test_int(&r, 7, SIDE), wide = test_int(&r, 7, SIDE);
            mica_int8_conv_opts o = {.stride = {test_int(&r, 1, 2), test_int(&r, 1, 2)},
                                     .pad = {test_int(&r, 0, 2), test_int(&r, 0, 2)},
                                     .dilation = {1, 1},
                                     .groups = groups};
            mica_index out[2] = {(high + 2 * o.pad[0] - taps) / o.stride[0] + 1,
                                 (wide + 2 * o.pad[1] - taps) / o.stride[1] + 1};
            if (out[0] < 2 || out[1] < 2)
                continue;
            mica_tensor x = tensor_of(n->image, MICA_I8, 4, (mica_index[]){2, CHANNELS, high, wide}),
                        w = tensor_of(n->w, MICA_I8, 4, (mica_index[]){units, CHANNELS / groups, taps, taps}),
                        y = tensor_of(whole, MICA_I8, 4, (mica_index[]){2, units, out[0], out[1]}),
                        pooled = tensor_of(two, MICA_I8, 4, (mica_index[]){2, units, out[0] / 2, out[1] / 2}),
                        made = tensor_of(n->made, MICA_I8, 4, pooled.dim),
                        bias = tensor_of(n->bias, MICA_I32, 1, &units),
                        multiplier = tensor_of(n->multiplier, MICA_I32, 1, &units),
                        shift = tensor_of(n->shift, MICA_U8, 1, &units);
            mica_int8_pack_opts pack = {.groups = groups};
            mica_index bytes = mica_int8_packed_bytes(ctx, &w, &pack);
            REQUIRE(bytes > 0 && bytes <= (mica_index)sizeof room);
            mica_tensor packed = tensor_of(room, MICA_U8, 1, &bytes);
            mica_int8_weights weights = {&w, &bias, &multiplier, &shift, NULL};
            CHECK_OK(ctx, mica_int8_conv2d(ctx, &y, &x, &weights, &o));
            CHECK_OK(ctx, mica_int8_max_pool2d(ctx, &pooled, &y, &(mica_pooling_opts){.kernel = {2, 2}}));
            CHECK_OK(ctx, mica_int8_pack(ctx, &packed, &w, &bias, &pack));
            weights.packed = &packed;
            o.pool = 2;
            CHECK_OK(ctx, mica_int8_conv2d(ctx, &made, &x, &weights, &o));
            CHECK_MSG(memcmp(n->made, two, mica_tensor_count(&made)) == 0, "%s, trial %d", sets[i], trial);
        }
        mica_context_destroy(ctx);
    }
    free(n);
}

TEST(int8_refuses_factors_out_of_range)
{
    mica_context *ctx = test_context(1);
    numbers *n = calloc(1, sizeof *n);
    REQUIRE(n != NULL);
    draw(n, 1);
    mica_tensor x = tensor_of(n->x, MICA_I8, 2, (mica_index[]){1, VALUES}),
                y = tensor_of(n->y, MICA_I8, 2, (mica_index[]){1, UNITS}),
                w = tensor_of(n->w, MICA_I8, 2, (mica_index[]){UNITS, VALUES}),
                bias = tensor_of(n->bias, MICA_I32, 1, (mica_index[]){UNITS}),
                multiplier = tensor_of(n->multiplier, MICA_I32, 1, (mica_index[]){UNITS}),
                shift = tensor_of(n->shift, MICA_U8, 1, (mica_index[]){UNITS});
    mica_int8_weights weights = {&w, &bias, &multiplier, &shift, NULL};
    CHECK_OK(ctx, mica_int8_linear(ctx, &y, &x, &weights, NULL));
    CHECK(mica_int8_linear(ctx, &y, &x, &weights, &(mica_int8_limits){-128, 0}) == MICA_ERR_ARGUMENT);
    CHECK(mica_int8_linear(ctx, &y, &x, &weights, &(mica_int8_limits){5, 4}) == MICA_ERR_ARGUMENT);
    CHECK(mica_int8_linear(ctx, &y, &x, NULL, NULL) == MICA_ERR_ARGUMENT);
    n->shift[7] = 63;
    CHECK(mica_int8_linear(ctx, &y, &x, &weights, NULL) == MICA_ERR_ARGUMENT);
    n->shift[7] = 0;
    CHECK(mica_int8_linear(ctx, &y, &x, &weights, NULL) == MICA_ERR_ARGUMENT);
    n->shift[7] = 1;
    n->multiplier[UNITS - 1] = -1;
    CHECK(mica_int8_linear(ctx, &y, &x, &weights, NULL) == MICA_ERR_ARGUMENT);
    CHECK(mica_quantize(ctx, &y, &x, NULL) == MICA_ERR_DTYPE);
    free(n);
}

TEST(affine_matmul_refuses_other_types)
{
    mica_context *ctx = test_context(1);
    int8_t data[4] = {1, 2, 3, 4};
    mica_tensor a = {.data = data, .dtype = MICA_I8, .rank = 2, .dim = {2, 2}, .stride = {2, 1}};
    const mica_dtype types[] = {MICA_I32, MICA_U8, (mica_dtype)99, (mica_dtype)-1};
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
        CHECK(mica_affine_matmul(ctx, &a, &a, &a,
                                 &(mica_affine_matmul_opts){.factor = 1.0f, .dtype = types[k]}) ==
              MICA_ERR_DTYPE);
}
