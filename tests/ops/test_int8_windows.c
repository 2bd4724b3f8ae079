/* Int8 convolutions whose windows are as large as they get: many pixels of few channels, and none at all. */
#include <stdlib.h>
#include <string.h>

#include "ops/isa_context.h"

enum { SIDE = 110, MOST_IN = 4, OUT = 9 };

typedef struct images {
    int8_t x[MOST_IN * SIDE * SIDE], w[OUT * MOST_IN * 25];
    int32_t bias[OUT], multiplier[OUT], y[2][OUT * SIDE * SIDE];
    float factor[OUT];
    uint8_t shift[OUT];
} images;

typedef struct window_case {
    mica_index in, side, taps;
    bool floats; /* results of four bytes */
} window_case;

static mica_tensor tensor_of(void *data, mica_dtype dtype, int rank, const mica_index *dims)
{
    mica_tensor t = {0};
    (void)mica_tensor_init(NULL, &t, data, dtype, rank, dims);
    return t;
}

static void draw(images *n)
{
    test_random r = test_seed(1);
    for (size_t i = 0; i < sizeof n->x; i++)
        n->x[i] = (int8_t)test_int(&r, -128, 127);
    for (size_t i = 0; i < sizeof n->w; i++)
        n->w[i] = (int8_t)test_int(&r, -127, 127);
    for (int i = 0; i < OUT; i++) {
        n->bias[i] = test_int(&r, -1000, 1000);
        n->multiplier[i] = (1 << 30) + i;
        n->shift[i] = (uint8_t)(38 + i % 3);
        n->factor[i] = 0.01f * (float)(i + 1);
    }
}

static mica_status convolve(mica_context *ctx, images *n, const window_case *c, void *made)
{
    const mica_index out = OUT;
    mica_tensor x = tensor_of(n->x, MICA_I8, 4, (mica_index[]){1, c->in, c->side, c->side}),
                w = tensor_of(n->w, MICA_I8, 4, (mica_index[]){OUT, c->in, c->taps, c->taps}),
                bias = tensor_of(n->bias, MICA_I32, 1, &out),
                multiplier = tensor_of(n->multiplier, MICA_I32, 1, &out),
                shift = tensor_of(n->shift, MICA_U8, 1, &out),
                factor = tensor_of(n->factor, MICA_F32, 1, &out),
                y = tensor_of(made, c->floats ? MICA_F32 : MICA_I8, 4,
                              (mica_index[]){1, OUT, c->side, c->side});
    const mica_index pad = c->taps / 2;
    if (!c->floats)
        return mica_int8_conv2d(ctx, &y, &x, &(mica_int8_weights){&w, &bias, &multiplier, &shift, NULL},
                                &(mica_int8_conv_opts){.pad = {pad, pad}});
    return mica_affine_conv2d(ctx, &y, &x, &(mica_affine_weights){.w = &w, .bias = &bias, .factor = &factor},
                              &(mica_affine_conv_opts){.pad = {pad, pad}, .dtype = MICA_F32});
}

/* With a workspace of just what a call says that it needs. */
static void check(const char *isa, int threads, images *n, const window_case *c)
{
    mica_context *scalar = isa_context("scalar", 1), *ctx = NULL;
#if defined(MICA_NO_THREADS)
    threads = 1;
#endif
    if (scalar != NULL &&
        mica_context_create(&ctx, &(mica_context_opts){.threads = threads, .isa = isa}) == MICA_OK) {
        mica_measure_begin(ctx);
        CHECK_OK(ctx, convolve(ctx, n, c, n->y[1]));
        CHECK_OK(ctx, mica_workspace_reserve(ctx, mica_measure_end(ctx)));
        CHECK_OK(scalar, convolve(scalar, n, c, n->y[0]));
        CHECK_OK(ctx, convolve(ctx, n, c, n->y[1]));
        size_t bytes = (size_t)(OUT * c->side * c->side) * (c->floats ? 4 : 1);
        CHECK_MSG(memcmp(n->y[0], n->y[1], bytes) == 0, "%s, %d threads: %d channels of %d x %d, %d taps",
                  isa, threads, (int)c->in, (int)c->side, (int)c->side, (int)c->taps);
    }
    mica_context_destroy(ctx);
    mica_context_destroy(scalar);
}

TEST(int8_conv_large_windows)
{
    static const char *const sets[] = {"avx2-plain",  "avx2-vnni",  "avx512-plain",
                                       "avx512-vnni", "neon-plain", "neon-dot"};
    static const window_case cases[] = {{1, 108, 3, false}, {3, 108, 3, false}, {4, 110, 1, false},
                                        {4, 77, 5, false},  {3, 108, 3, true},  {4, 110, 1, true}};
    images *n = malloc(sizeof *n);
    REQUIRE(n != NULL);
    draw(n);
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
        for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
            check(sets[i], 1 + (int)(k % 2), n, &cases[k]);
    free(n);
}

/* Results are what sums start at. */
TEST(int8_conv_no_channels)
{
    mica_context *ctx = isa_context(NULL, 1);
    int32_t bias[2] = {100, -300}, multiplier[2] = {1 << 30, 1 << 30};
    uint8_t shift[2] = {30, 31};
    int8_t made[2 * 25], none[1];
    const mica_index out = 2;
    mica_tensor x = tensor_of(none, MICA_I8, 4, (mica_index[]){1, 0, 5, 5}),
                w = tensor_of(none, MICA_I8, 4, (mica_index[]){2, 0, 3, 3}),
                b = tensor_of(bias, MICA_I32, 1, &out), m = tensor_of(multiplier, MICA_I32, 1, &out),
                s = tensor_of(shift, MICA_U8, 1, &out),
                y = tensor_of(made, MICA_I8, 4, (mica_index[]){1, 2, 5, 5});
    REQUIRE(ctx != NULL);
    CHECK_OK(ctx, mica_int8_conv2d(ctx, &y, &x, &(mica_int8_weights){&w, &b, &m, &s, NULL},
                                   &(mica_int8_conv_opts){.pad = {1, 1}}));
    for (int i = 0; i < 50; i++)
        CHECK(made[i] == (i < 25 ? 100 : -127));
    mica_context_destroy(ctx);
}

/* Quads of a row alone would be 2^64 bytes. */
TEST(int8_conv_rows_that_are_too_long)
{
    mica_context *ctx = isa_context(NULL, 1);
    int32_t bias[1] = {0}, multiplier[1] = {1};
    uint8_t shift[1] = {40};
    int8_t data[3][4] = {{0}};
    const mica_index one = 1, far = ((mica_index)1 << 31) - 1;
    mica_tensor x = tensor_of(data[0], MICA_I8, 4, (mica_index[]){1, 1, 1, 1}),
                w = tensor_of(data[1], MICA_I8, 4, (mica_index[]){1, 1, 2, 2}),
                b = tensor_of(bias, MICA_I32, 1, &one), m = tensor_of(multiplier, MICA_I32, 1, &one),
                s = tensor_of(shift, MICA_U8, 1, &one),
                y = tensor_of(data[2], MICA_I8, 4, (mica_index[]){1, 1, 1, 1});
    REQUIRE(ctx != NULL);
    CHECK_ERROR(ctx,
                mica_int8_conv2d(ctx, &y, &x, &(mica_int8_weights){&w, &b, &m, &s, NULL},
                                 &(mica_int8_conv_opts){
                                     .pad = {1 << 30, 1 << 30}, .stride = {2, 2}, .dilation = {far, far}}),
                MICA_ERR_SHAPE, "shape error: int8_conv2d: x is [1, 1, 1, 1]: a row that is too long");
    mica_context_destroy(ctx);
}
