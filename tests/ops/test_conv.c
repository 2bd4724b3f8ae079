/* Convolutions: the exact text of every error, and sizes beyond those of the random cases. */
#include <math.h>
#include <stdlib.h>

#include "test.h"

static float memory[4][70000];

static mica_tensor image(int n, mica_index d0, mica_index d1, mica_index d2, mica_index d3)
{
    return mica_4d(memory[n], d0, d1, d2, d3);
}

TEST(conv_error_texts)
{
    mica_context *ctx = test_context(1);
    mica_tensor x = image(0, 2, 16, 14, 14), w = image(1, 64, 32, 3, 3), y = image(2, 2, 64, 12, 12);
    CHECK_ERROR(ctx, mica_conv2d(ctx, &y, &x, &w, NULL, NULL), MICA_ERR_SHAPE,
                "shape error: conv2d: x is [2, 16, 14, 14], w is [64, 32, 3, 3]: expected 32 channels in "
                "dimension 1, got 16");
    CHECK_ERROR(ctx, mica_conv2d(ctx, &y, &x, &w, NULL, &(mica_conv2d_opts){.groups = 4}), MICA_ERR_SHAPE,
                "shape error: conv2d: x is [2, 16, 14, 14], w is [64, 32, 3, 3]: expected 128 channels in "
                "dimension 1 for 4 groups, got 16");
    w = image(1, 64, 16, 3, 3);
    CHECK_ERROR(
        ctx, mica_conv2d(ctx, &y, &x, &w, NULL, &(mica_conv2d_opts){.pad = {1, 1}}), MICA_ERR_SHAPE,
        "shape error: conv2d: dst is [2, 64, 12, 12], expected [2, 64, 14, 14] for x [2, 16, 14, 14]");
    CHECK_ERROR(ctx, mica_conv2d_backward_input(ctx, &x, &y, &w, &(mica_conv2d_opts){.pad = {1, 1}}),
                MICA_ERR_SHAPE,
                "shape error: conv2d_backward_input: dy is [2, 64, 12, 12], expected [2, 64, 14, 14] for dx "
                "[2, 16, 14, 14]");
    CHECK_ERROR(ctx, mica_conv2d_backward_weight(ctx, &w, &y, &x, &(mica_conv2d_opts){.stride = {2, 1}}),
                MICA_ERR_SHAPE,
                "shape error: conv2d_backward_weight: dy is [2, 64, 12, 12], expected [2, 64, 6, 12] for x "
                "[2, 16, 14, 14]");
    CHECK_ERROR(ctx, mica_conv2d(ctx, &y, &x, &w, NULL, &(mica_conv2d_opts){.dilation = {8, 1}}),
                MICA_ERR_SHAPE,
                "shape error: conv2d: x is [2, 16, 14, 14], w is [64, 16, 3, 3]: the kernel spans 17 in "
                "dimension 2, expected at most 14");
    CHECK_ERROR(ctx, mica_conv2d(ctx, &y, &x, &w, NULL, &(mica_conv2d_opts){.stride = {1, -2}}),
                MICA_ERR_ARGUMENT, "argument error: conv2d: stride is -2, expected 0 to 2147483647");
    CHECK_ERROR(ctx, mica_conv2d(ctx, &y, &x, &w, NULL, &(mica_conv2d_opts){.pad = {-1, 0}}),
                MICA_ERR_ARGUMENT, "argument error: conv2d: pad is -1, expected 0 to 2147483647");
    CHECK_ERROR(ctx, mica_conv2d(ctx, &y, &x, &w, NULL, &(mica_conv2d_opts){.groups = -1}), MICA_ERR_ARGUMENT,
                "argument error: conv2d: groups is -1, expected 0 to 2147483647");
    mica_conv2d_opts wrong = {.pad = {0, 0}, .activation = (mica_activation)99};
    CHECK_ERROR(ctx, mica_conv2d(ctx, &y, &x, &w, NULL, &wrong), MICA_ERR_ARGUMENT,
                "argument error: conv2d: unknown activation 99");
    mica_tensor bias = mica_1d(memory[3], 16);
    CHECK_ERROR(ctx, mica_conv2d(ctx, &y, &x, &w, &bias, NULL), MICA_ERR_SHAPE,
                "shape error: conv2d: bias is [16], expected [64] for dst [2, 64, 12, 12]");
    w = image(1, 63, 8, 3, 3);
    y = image(2, 2, 63, 12, 12);
    CHECK_ERROR(ctx, mica_conv2d(ctx, &y, &x, &w, NULL, &(mica_conv2d_opts){.groups = 2}), MICA_ERR_SHAPE,
                "shape error: conv2d: w is [63, 8, 3, 3]: dimension 0 does not divide into 2 groups");
    w = image(1, 64, 16, 0, 3);
    CHECK_ERROR(ctx, mica_conv2d(ctx, &y, &x, &w, NULL, NULL), MICA_ERR_SHAPE,
                "shape error: conv2d: w is [64, 16, 0, 3]: dimension 2 has 0 taps, expected 1 to 2147483647");
    mica_tensor line = mica_3d(memory[0], 2, 16, 14);
    CHECK_ERROR(ctx, mica_conv2d(ctx, &y, &line, &w, NULL, NULL), MICA_ERR_SHAPE,
                "shape error: conv2d: x is [2, 16, 14] of rank 3, expected rank 4");
}

TEST(conv_mean_error_texts)
{
    mica_context *ctx = test_context(1);
    mica_tensor x = image(0, 2, 16, 14, 14), w = image(1, 64, 16, 3, 3), y = mica_2d(memory[2], 2, 63);
    CHECK_ERROR(ctx, mica_conv2d_mean(ctx, &y, &x, &w, NULL, NULL), MICA_ERR_SHAPE,
                "shape error: conv2d_mean: dst is [2, 63], expected [2, 64] for x [2, 16, 14, 14]");
    y = image(2, 2, 64, 12, 12);
    CHECK_ERROR(ctx, mica_conv2d_mean(ctx, &y, &x, &w, NULL, NULL), MICA_ERR_SHAPE,
                "shape error: conv2d_mean: dst is [2, 64, 12, 12], expected [2, 64, 1, 1] for x [2, 16, 14, "
                "14]");
    y = mica_3d(memory[2], 2, 64, 1);
    CHECK_ERROR(ctx, mica_conv2d_mean(ctx, &y, &x, &w, NULL, NULL), MICA_ERR_SHAPE,
                "shape error: conv2d_mean: dst is [2, 64, 1], expected [2, 64, 1, 1] for x [2, 16, 14, 14]");
    y = mica_2d(memory[2], 2, 64);
    CHECK_ERROR(ctx, mica_conv2d_mean(ctx, &y, &x, &w, NULL, &(mica_conv2d_opts){.dilation = {8, 1}}),
                MICA_ERR_SHAPE,
                "shape error: conv2d_mean: x is [2, 16, 14, 14], w is [64, 16, 3, 3]: the kernel spans 17 in "
                "dimension 2, expected at most 14");
    mica_tensor bias = mica_1d(memory[3], 16);
    CHECK_ERROR(ctx, mica_conv2d_mean(ctx, &y, &x, &w, &bias, NULL), MICA_ERR_SHAPE,
                "shape error: conv2d_mean: bias is [16], expected [64] for dst [2, 64]");
    mica_tensor line = mica_3d(memory[0], 2, 16, 14), taps = mica_3d(memory[1], 64, 16, 3);
    y = mica_3d(memory[2], 2, 64, 12);
    CHECK_ERROR(ctx, mica_conv1d_mean(ctx, &y, &line, &taps, NULL, NULL), MICA_ERR_SHAPE,
                "shape error: conv1d_mean: dst is [2, 64, 12], expected [2, 64, 1] for x [2, 16, 14]");
}

TEST(conv_transpose_error_texts)
{
    mica_context *ctx = test_context(1);
    mica_tensor x = image(0, 2, 8, 5, 5), w = image(1, 8, 4, 3, 3), y = image(2, 2, 4, 7, 7);
    CHECK_ERROR(ctx, mica_conv_transpose2d(ctx, &y, &x, &w, NULL, &(mica_conv2d_opts){.stride = {2, 2}}),
                MICA_ERR_SHAPE,
                "shape error: conv_transpose2d: dst is [2, 4, 7, 7], expected [2, 4, 11, 11] for x [2, 8, 5, "
                "5]");
    CHECK_ERROR(
        ctx,
        mica_conv_transpose2d(ctx, &y, &x, &w, NULL,
                              &(mica_conv2d_opts){.stride = {2, 2}, .output_pad = {1, 2}}),
        MICA_ERR_ARGUMENT,
        "argument error: conv_transpose2d: output_pad is 2, expected less than the stride 2 or the dilation 1");
    CHECK_ERROR(
        ctx, mica_conv_transpose2d(ctx, &y, &x, &w, NULL, &(mica_conv2d_opts){.pad = {4, 0}}), MICA_ERR_SHAPE,
        "shape error: conv_transpose2d: x is [2, 8, 5, 5], w is [8, 4, 3, 3]: dimension 2 of the output would be empty");
    w = image(1, 6, 4, 3, 3);
    CHECK_ERROR(ctx, mica_conv_transpose2d_backward_input(ctx, &x, &y, &w, NULL), MICA_ERR_SHAPE,
                "shape error: conv_transpose2d_backward_input: dx is [2, 8, 5, 5], w is [6, 4, 3, 3]: "
                "expected 6 channels in dimension 1, got 8");
    mica_tensor db = mica_1d(memory[3], 5);
    CHECK_ERROR(ctx, mica_conv2d_backward_bias(ctx, &db, &y, NULL), MICA_ERR_SHAPE,
                "shape error: conv2d_backward_bias: db is [5], expected [4] for dy [2, 4, 7, 7]");
    mica_tensor columns = mica_3d(memory[3], 2, 72, 25);
    CHECK_ERROR(ctx, mica_im2col(ctx, &columns, &x, &(mica_im2col_opts){.kernel = {3, 3}}), MICA_ERR_SHAPE,
                "shape error: im2col: dst is [2, 72, 25], expected [2, 72, 9] for x [2, 8, 5, 5]");
    CHECK_ERROR(ctx, mica_col2im(ctx, &x, &columns, &(mica_im2col_opts){.kernel = {7, 3}}), MICA_ERR_SHAPE,
                "shape error: col2im: dst is [2, 8, 5, 5]: the kernel spans 7 in dimension 2, expected at "
                "most 5");
}

/* ---- Large shapes, at some places ---- */

typedef struct shape {
    const char *what;
    mica_index batch, in, height, width, out, kernel[2];
    mica_conv2d_opts opts;
} shape;

/* Each takes another way through the planner than the random cases do. */
static const shape shapes[] = {
    {"long k", 1, 64, 9, 9, 12, {3, 3}, {.pad = {1, 1}}},
    {"small images share products", 9, 24, 5, 6, 40, {3, 3}, {.pad = {1, 1}}},
    {"strided, several bands", 2, 8, 60, 50, 16, {3, 3}, {.stride = {2, 2}, .pad = {1, 1}}},
    {"pointwise", 2, 48, 20, 20, 33, {1, 1}, {.stride = {1, 1}}},
    {"many groups", 2, 64, 14, 14, 64, {3, 3}, {.pad = {1, 1}, .groups = 16}},
    {"depthwise", 2, 20, 37, 41, 20, {3, 5}, {.pad = {1, 2}, .groups = 20}},
    {"depthwise, large steps",
     1,
     3,
     150,
     140,
     3,
     {3, 3},
     {.pad = {60, 60}, .dilation = {64, 65}, .groups = 3}},
    {"one output channel", 1, 30, 33, 32, 1, {7, 7}, {.pad = {3, 3}}},
    {"winograd, many images", 21, 24, 30, 28, 32, {3, 3}, {.pad = {1, 1}}},
    {"pointwise, many images", 37, 40, 14, 14, 24, {1, 1}, {.stride = {1, 1}}},
};

/* A million pixels of 0.1, which is none of float's numbers: a chain of additions would lose three digits. */
TEST(conv_mean_of_a_large_plane)
{
    enum { SIDE = 1024, OUT = 5 };
    mica_context *ctx = test_context(2);
    float *pixels = malloc((size_t)SIDE * SIDE * sizeof *pixels), taps[2][OUT * 9], means[OUT];
    for (size_t i = 0; i < (size_t)SIDE * SIDE; i++)
        pixels[i] = 0.1f;
    for (int i = 0; i < OUT * 9; i++) {
        taps[0][i] = i % 9 == 4 ? 1.0f : 0.0f;
        taps[1][i] = 1.0f;
    }
    mica_tensor x = mica_4d(pixels, 1, 1, SIDE, SIDE), dst = mica_2d(means, 1, OUT);
    for (int way = 0; way < 2; way++) { /* tiles, and products of a pointwise kernel */
        mica_tensor w = mica_4d(taps[way], OUT, 1, way == 0 ? 3 : 1, way == 0 ? 3 : 1);
        mica_conv2d_opts opts = {.pad = {way == 0, way == 0}};
        CHECK_OK(ctx, mica_workspace_reserve(ctx, (size_t)64 << 20));
        CHECK_OK(ctx, mica_conv2d_mean(ctx, &dst, &x, &w, NULL, &opts));
        for (int i = 0; i < OUT; i++)
            CHECK_MSG(fabs((double)means[i] - (double)0.1f) < 3e-7, "mean is %.9g", (double)means[i]);
    }
    free(pixels);
}

typedef struct net {
    const shape *s;
    mica_index oh, ow, group_in, group_out;
    float *x, *w, *b, *y, *dx, *dw;
} net;

static float *random_floats(test_random *r, mica_index count)
{
    float *p = malloc((size_t)count * sizeof *p);
    for (mica_index i = 0; i < count; i++)
        p[i] = (float)test_normal(r);
    return p;
}

static mica_index either(mica_index option) { return option > 0 ? option : 1; }

static mica_index output_size(const shape *s, int d)
{
    mica_index size = d == 0 ? s->height : s->width;
    return (size + 2 * s->opts.pad[d] - either(s->opts.dilation[d]) * (s->kernel[d] - 1) - 1) /
               either(s->opts.stride[d]) +
           1;
}

/* x at the pixel that tap (t, u) meets at (i, j); NULL outside. */
static float *meets(const net *n, float *x, mica_index image_number, mica_index channel,
                    const mica_index at[4])
{
    const shape *s = n->s;
    mica_index h = at[0] * either(s->opts.stride[0]) - s->opts.pad[0] + at[2] * either(s->opts.dilation[0]);
    mica_index v = at[1] * either(s->opts.stride[1]) - s->opts.pad[1] + at[3] * either(s->opts.dilation[1]);
    if (h < 0 || h >= s->height || v < 0 || v >= s->width)
        return NULL;
    return x + ((image_number * s->in + channel) * s->height + h) * s->width + v;
}

static double output_at(const net *n, mica_index image_number, mica_index o, mica_index i, mica_index j)
{
    const shape *s = n->s;
    double sum = (double)n->b[o];
    for (mica_index c = 0; c < n->group_in; c++)
        for (mica_index t = 0; t < s->kernel[0]; t++)
            for (mica_index u = 0; u < s->kernel[1]; u++) {
                const float *x = meets(n, n->x, image_number, o / n->group_out * n->group_in + c,
                                       (mica_index[]){i, j, t, u});
                mica_index tap = ((o * n->group_in + c) * s->kernel[0] + t) * s->kernel[1] + u;
                sum += x != NULL ? (double)*x * (double)n->w[tap] : 0.0;
            }
    return sum;
}

static void check_forward(const net *n)
{
    const shape *s = n->s;
    double allowed = 1e-5 * sqrt((double)(n->group_in * s->kernel[0] * s->kernel[1]));
    test_random r = test_seed(5);
    for (int trial = 0; trial < 300; trial++) {
        mica_index image_number = test_int(&r, 0, (int)s->batch - 1), o = test_int(&r, 0, (int)s->out - 1);
        mica_index i = test_int(&r, 0, (int)n->oh - 1), j = test_int(&r, 0, (int)n->ow - 1);
        double want = output_at(n, image_number, o, i, j);
        double got = (double)n->y[((image_number * s->out + o) * n->oh + i) * n->ow + j];
        CHECK_MSG(fabs(got - want) <= allowed, "%s: y is %g, wanted %g", s->what, got, want);
    }
}

/* Means, with y as it is and with what is negative left out, from y itself. */
static void check_means(mica_context *ctx, const net *n, const mica_tensor *x, const mica_tensor *w,
                        const mica_tensor *b)
{
    const shape *s = n->s;
    static float means[1024];
    mica_index pixels = n->oh * n->ow, planes = s->batch * s->out;
    if (!CHECK(planes <= 1024))
        return;
    mica_tensor dst = mica_2d(means, s->batch, s->out);
    double allowed = 1e-5 * sqrt((double)(n->group_in * s->kernel[0] * s->kernel[1]));
    for (int relu = 0; relu < 2; relu++) {
        mica_conv2d_opts opts = s->opts;
        opts.activation = relu ? MICA_RELU : MICA_NO_ACTIVATION;
        CHECK_OK(ctx, mica_conv2d_mean(ctx, &dst, x, w, b, &opts));
        for (mica_index plane = 0; plane < planes; plane++) {
            double sum = 0.0;
            for (mica_index i = 0; i < pixels; i++) {
                double y = (double)n->y[plane * pixels + i];
                sum += relu && y < 0.0 ? 0.0 : y;
            }
            double got = (double)means[plane], want = sum / (double)pixels;
            CHECK_MSG(fabs(got - want) <= allowed, "%s: mean is %g, wanted %g", s->what, got, want);
        }
    }
}

/* y is linear in x and w: <y, conv(x, w)> = <x, dx(y)> = <w, dw(y)>, for any y. */
static void check_backward(const net *n, double forward)
{
    const shape *s = n->s;
    double input = 0.0, kernel = 0.0;
    for (mica_index i = 0; i < s->batch * s->in * s->height * s->width; i++)
        input += (double)n->x[i] * (double)n->dx[i];
    for (mica_index i = 0; i < s->out * n->group_in * s->kernel[0] * s->kernel[1]; i++)
        kernel += (double)n->w[i] * (double)n->dw[i];
    mica_index products = s->batch * s->out * n->oh * n->ow * n->group_in * s->kernel[0] * s->kernel[1];
    double allowed = 1e-5 * sqrt((double)products); /* about that is the size of their sum */
    CHECK_MSG(fabs(input - forward) <= allowed, "%s: <x, dx> is %.9g, wanted %.9g", s->what, input, forward);
    CHECK_MSG(fabs(kernel - forward) <= allowed, "%s: <w, dw> is %.9g, wanted %.9g", s->what, kernel,
              forward);
}

static void check_shape(mica_context *ctx, const shape *s)
{
    test_random r = test_seed(6);
    net n = {.s = s, .oh = output_size(s, 0), .ow = output_size(s, 1)};
    mica_index groups = either(s->opts.groups), outputs = s->batch * s->out * n.oh * n.ow;
    n.group_in = s->in / groups;
    n.group_out = s->out / groups;
    n.x = random_floats(&r, s->batch * s->in * s->height * s->width);
    n.dx = random_floats(&r, s->batch * s->in * s->height * s->width);
    n.w = random_floats(&r, s->out * n.group_in * s->kernel[0] * s->kernel[1]);
    n.dw = random_floats(&r, s->out * n.group_in * s->kernel[0] * s->kernel[1]);
    n.b = random_floats(&r, s->out);
    n.y = random_floats(&r, outputs);
    float *dy = random_floats(&r, outputs);
    mica_tensor x = mica_4d(n.x, s->batch, s->in, s->height, s->width), dx = mica_tensor_like(&x, n.dx);
    mica_tensor w = mica_4d(n.w, s->out, n.group_in, s->kernel[0], s->kernel[1]), b = mica_1d(n.b, s->out);
    mica_tensor dw = mica_tensor_like(&w, n.dw), y = mica_4d(n.y, s->batch, s->out, n.oh, n.ow);
    mica_tensor dy_tensor = mica_tensor_like(&y, dy);
    CHECK_OK(ctx, mica_conv2d(ctx, &y, &x, &w, &b, &s->opts));
    check_forward(&n);
    check_means(ctx, &n, &x, &w, &b);
    CHECK_OK(ctx, mica_conv2d(ctx, &y, &x, &w, NULL, &s->opts));
    CHECK_OK(ctx, mica_conv2d_backward_input(ctx, &dx, &dy_tensor, &w, &s->opts));
    CHECK_OK(ctx, mica_conv2d_backward_weight(ctx, &dw, &dy_tensor, &x, &s->opts));
    double forward = 0.0;
    for (mica_index i = 0; i < outputs; i++)
        forward += (double)n.y[i] * (double)dy[i];
    check_backward(&n, forward);
    float *all[] = {n.x, n.dx, n.w, n.dw, n.b, n.y, dy};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

TEST(conv_large_shapes)
{
    for (int threads = 1; threads <= 3; threads += 2) {
        mica_context *ctx = test_context(threads);
        CHECK_OK(ctx, mica_workspace_reserve(ctx, (size_t)32 << 20));
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            check_shape(ctx, &shapes[i]);
    }
}
