/* Depthwise convolutions: every pixel of shapes that go every way, against sums in double precision, with the kernels
 * of every instruction set that runs here; and the same bits for any number of threads. */
#include <mica/ops/conv.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

typedef struct shape {
    mica_index batch, channels, multiple, height, width, kernel[2], stride[2], pad[2], dilation[2];
} shape;

/* Planes narrower and wider than each vector, and of one pixel; fewer channels than lanes, and more. */
static const shape shapes[] = {
    {2, 32, 1, 7, 7, {3, 3}, {1, 1}, {1, 1}, {1, 1}},    {3, 37, 1, 3, 3, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {1, 16, 1, 6, 6, {3, 3}, {2, 2}, {1, 1}, {1, 1}},    {2, 20, 1, 1, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {2, 20, 1, 1, 1, {1, 1}, {1, 1}, {0, 0}, {1, 1}},    {1, 33, 1, 25, 5, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {2, 5, 1, 14, 14, {3, 3}, {1, 1}, {1, 1}, {1, 1}},   {2, 9, 1, 14, 14, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {1, 3, 1, 31, 33, {3, 3}, {1, 1}, {1, 1}, {1, 1}},   {1, 4, 1, 33, 57, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {1, 6, 1, 20, 28, {5, 5}, {1, 1}, {2, 2}, {1, 1}},   {2, 18, 1, 21, 29, {5, 5}, {2, 2}, {2, 2}, {1, 1}},
    {2, 17, 1, 7, 8, {5, 5}, {1, 1}, {2, 2}, {1, 1}},    {2, 17, 1, 8, 7, {5, 5}, {2, 2}, {2, 2}, {1, 1}},
    {1, 24, 1, 10, 9, {3, 3}, {3, 3}, {1, 1}, {1, 1}},   {1, 24, 1, 12, 11, {3, 3}, {1, 1}, {2, 2}, {2, 2}},
    {2, 19, 1, 12, 8, {3, 3}, {2, 2}, {3, 2}, {2, 2}},   {1, 21, 1, 9, 8, {3, 5}, {1, 1}, {1, 2}, {1, 1}},
    {1, 21, 1, 9, 20, {5, 3}, {1, 2}, {0, 1}, {1, 1}},   {1, 18, 1, 8, 8, {7, 7}, {1, 1}, {3, 3}, {1, 1}},
    {1, 18, 1, 8, 30, {3, 3}, {1, 1}, {0, 0}, {1, 1}},   {1, 18, 1, 3, 30, {3, 3}, {2, 2}, {0, 0}, {1, 1}},
    {1, 8, 1, 40, 70, {3, 3}, {1, 1}, {2, 0}, {1, 1}},   {1, 8, 1, 9, 6, {5, 5}, {1, 1}, {4, 4}, {1, 1}},
    {1, 16, 2, 7, 7, {3, 3}, {1, 1}, {1, 1}, {1, 1}},    {1, 6, 3, 9, 20, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {1, 16, 1, 90, 100, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, {3, 16, 1, 60, 5, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {3, 4, 1, 70, 61, {5, 5}, {2, 2}, {2, 2}, {1, 1}},   {1, 16, 1, 4, 130, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {1, 16, 1, 1, 40, {1, 5}, {1, 1}, {0, 2}, {1, 1}},   {2, 16, 1, 5, 5, {2, 2}, {2, 2}, {0, 0}, {1, 1}},
};

/* How tensors lie: one behind the other; with gaps after rows and planes; channels last. */
enum { DENSE, GAPS, CHANNELS_LAST, LAYOUTS };

typedef struct image {
    mica_tensor t;
    size_t floats;
} image;

static image image_of(test_random *r, mica_index n, mica_index c, mica_index h, mica_index w, int layout)
{
    mica_index row = layout == GAPS ? w + 3 : w, plane = layout == GAPS ? h * row + 5 : h * row;
    image i = {.floats = (size_t)(n * c * plane)};
    float *data = malloc(i.floats * sizeof *data);
    for (size_t k = 0; k < i.floats; k++)
        data[k] = (float)test_normal(r);
    i.t = mica_4d(data, n, c, h, w);
    mica_index strides[LAYOUTS][4] = {
        {c * h * w, h * w, w, 1}, {c * plane, plane, row, 1}, {c * h * w, 1, w * c, c}};
    for (int d = 0; d < 4; d++)
        i.t.stride[d] = strides[layout][d];
    return i;
}

static float *at(const mica_tensor *t, mica_index a, mica_index b, mica_index c, mica_index d)
{
    return (float *)t->data + a * t->stride[0] + b * t->stride[1] + c * t->stride[2] + d * t->stride[3];
}

/* ---- The definition ---- */

typedef struct sums {
    double *y, *dx, *dw;
    size_t y_count, x_count, w_count;
} sums;

static mica_index out_size(const shape *s, int d)
{
    mica_index size = d == 0 ? s->height : s->width;
    return (size + 2 * s->pad[d] - s->dilation[d] * (s->kernel[d] - 1) - 1) / s->stride[d] + 1;
}

static sums sums_of(const shape *s, const mica_tensor *x, const mica_tensor *dy, const mica_tensor *w)
{
    mica_index oh = out_size(s, 0), ow = out_size(s, 1), out = s->channels * s->multiple;
    sums m = {.y_count = (size_t)(s->batch * out * oh * ow),
              .x_count = (size_t)(s->batch * s->channels * s->height * s->width),
              .w_count = (size_t)(out * s->kernel[0] * s->kernel[1])};
    m.y = calloc(m.y_count, sizeof *m.y);
    m.dx = calloc(m.x_count, sizeof *m.dx);
    m.dw = calloc(m.w_count, sizeof *m.dw);
    for (mica_index k = 0; k < (mica_index)m.y_count; k++) {
        mica_index j = k % ow, i = k / ow % oh, o = k / (ow * oh) % out, n = k / (ow * oh * out);
        mica_index c = o / s->multiple;
        for (mica_index tap = 0; tap < s->kernel[0] * s->kernel[1]; tap++) {
            mica_index t = tap / s->kernel[1], u = tap % s->kernel[1];
            mica_index h = i * s->stride[0] - s->pad[0] + t * s->dilation[0];
            mica_index v = j * s->stride[1] - s->pad[1] + u * s->dilation[1];
            if (h < 0 || h >= s->height || v < 0 || v >= s->width)
                continue;
            double weight = (double)*at(w, o, 0, t, u), g = (double)*at(dy, n, o, i, j);
            m.y[k] += weight * (double)*at(x, n, c, h, v);
            m.dx[((n * s->channels + c) * s->height + h) * s->width + v] += weight * g;
            m.dw[o * s->kernel[0] * s->kernel[1] + tap] += g * (double)*at(x, n, c, h, v);
        }
    }
    return m;
}

/* ---- Comparing ---- */

/* All elements of a tensor, whose sums have so many terms. */
static void compare(const char *what, const char *isa, size_t number, int layout, const mica_tensor *t,
                    const double *want, size_t count, double terms)
{
    double allowed = 4e-6 * sqrt(terms) + 4e-6;
    for (size_t k = 0; k < count; k++) {
        mica_index i = (mica_index)k, d[4];
        for (int axis = 3; axis >= 0; axis--) {
            d[axis] = i % t->dim[axis];
            i /= t->dim[axis];
        }
        double got = (double)*at(t, d[0], d[1], d[2], d[3]);
        if (!CHECK_MSG(fabs(got - want[k]) <= allowed * 4.0,
                       "%s, %s, shape %zu, layout %d: (%td, %td, %td, %td) is %.9g, wanted %.9g", what, isa,
                       number, layout, d[0], d[1], d[2], d[3], got, want[k]))
            return;
    }
}

/* Adds what a tensor holds, and a bias of channel c of c / 8. */
static void add(double *want, const mica_tensor *t, size_t count, bool biased)
{
    for (size_t k = 0; k < count; k++) {
        mica_index w = t->dim[3], h = t->dim[2], c = t->dim[1], i = (mica_index)k;
        mica_index channel = i / (w * h) % c;
        want[k] += biased ? (double)((float)channel / 8.0f)
                          : (double)*at(t, i / (w * h * c), channel, i / w % h, i % w);
    }
}

static double bounded(double x) { return x < 0.0 ? 0.0 : (x > 6.0 ? 6.0 : x); }

/* What a run leaves: bits that must not depend on the threads. */
typedef struct run {
    image y, x, w, dy, dx, dw;
} run;

typedef struct trial {
    mica_context *ctx;
    const shape *s;
    size_t number;
    int layout;
    mica_conv2d_opts opts;
} trial;

static void check(const trial *t, const char *what, const image *got, const double *want, size_t count,
                  double terms)
{
    compare(what, mica_context_isa(t->ctx), t->number, t->layout, &got->t, want, count, terms);
}

static void check_gradients(const trial *t, run *n, sums *m)
{
    mica_conv2d_opts more = t->opts;
    more.accumulate = true;
    double taps = (double)(t->s->kernel[0] * t->s->kernel[1] * t->s->multiple);
    double pixels = (double)(t->s->batch * out_size(t->s, 0) * out_size(t->s, 1));
    CHECK_OK(t->ctx, mica_conv2d_backward_input(t->ctx, &n->dx.t, &n->dy.t, &n->w.t, &t->opts));
    check(t, "dx", &n->dx, m->dx, m->x_count, taps);
    add(m->dx, &n->dx.t, m->x_count, false);
    CHECK_OK(t->ctx, mica_conv2d_backward_input(t->ctx, &n->dx.t, &n->dy.t, &n->w.t, &more));
    check(t, "dx, added", &n->dx, m->dx, m->x_count, 4.0 * taps);
    CHECK_OK(t->ctx, mica_conv2d_backward_weight(t->ctx, &n->dw.t, &n->dy.t, &n->x.t, &t->opts));
    check(t, "dw", &n->dw, m->dw, m->w_count, pixels);
    add(m->dw, &n->dw.t, m->w_count, false);
    CHECK_OK(t->ctx, mica_conv2d_backward_weight(t->ctx, &n->dw.t, &n->dy.t, &n->x.t, &more));
    check(t, "dw, added", &n->dw, m->dw, m->w_count, 4.0 * pixels);
}

static void check_forward(const trial *t, run *n, sums *m)
{
    float bias[64];
    for (int i = 0; i < 64; i++)
        bias[i] = (float)i / 8.0f;
    mica_tensor b = mica_1d(bias, n->y.t.dim[1]);
    mica_conv2d_opts ending = t->opts;
    ending.activation = MICA_RELU6;
    double taps = (double)(t->s->kernel[0] * t->s->kernel[1]), *sum = calloc(m->y_count, sizeof *sum);
    CHECK_OK(t->ctx, mica_conv2d(t->ctx, &n->y.t, &n->x.t, &n->w.t, NULL, &t->opts));
    check(t, "y", &n->y, m->y, m->y_count, taps);
    add(m->y, &n->y.t, m->y_count, true);
    for (size_t k = 0; k < m->y_count; k++)
        sum[k] = bounded(m->y[k]);
    CHECK_OK(t->ctx, mica_conv2d(t->ctx, &n->y.t, &n->x.t, &n->w.t, &b, &ending));
    check(t, "y, with an end", &n->y, sum, m->y_count, taps);
    add(m->y, &n->y.t, m->y_count, false);
    for (size_t k = 0; k < m->y_count; k++)
        m->y[k] = bounded(m->y[k]);
    ending.accumulate = true;
    CHECK_OK(t->ctx, mica_conv2d(t->ctx, &n->y.t, &n->x.t, &n->w.t, &b, &ending));
    check(t, "y, added, with an end", &n->y, m->y, m->y_count, 4.0 * taps);
    free(sum);
}

static run run_shape(mica_context *ctx, const shape *s, size_t number, int layout)
{
    test_random r = test_seed(number + 100);
    mica_index out = s->channels * s->multiple, oh = out_size(s, 0), ow = out_size(s, 1);
    run n = {.x = image_of(&r, s->batch, s->channels, s->height, s->width, layout),
             .dx = image_of(&r, s->batch, s->channels, s->height, s->width, layout),
             .y = image_of(&r, s->batch, out, oh, ow, layout),
             .dy = image_of(&r, s->batch, out, oh, ow, layout),
             .w = image_of(&r, out, 1, s->kernel[0], s->kernel[1], layout),
             .dw = image_of(&r, out, 1, s->kernel[0], s->kernel[1], layout)};
    trial t = {ctx, s, number, layout, {.groups = s->channels}};
    memcpy(t.opts.stride, s->stride, sizeof t.opts.stride);
    memcpy(t.opts.pad, s->pad, sizeof t.opts.pad);
    memcpy(t.opts.dilation, s->dilation, sizeof t.opts.dilation);
    sums m = sums_of(s, &n.x.t, &n.dy.t, &n.w.t);
    check_gradients(&t, &n, &m);
    check_forward(&t, &n, &m);
    free(m.y);
    free(m.dx);
    free(m.dw);
    return n;
}

static void free_run(run *n)
{
    image *all[] = {&n->y, &n->x, &n->w, &n->dy, &n->dx, &n->dw};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]->t.data);
}

static bool same(const image *a, const image *b)
{
    return memcmp(a->t.data, b->t.data, a->floats * sizeof(float)) == 0;
}

#if defined(MICA_NO_THREADS)
#define MORE_THREADS 1
#else
#define MORE_THREADS 3
#endif

TEST(depthwise_shapes_of_all_kinds)
{
    static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
        mica_context *one, *more;
        if (mica_context_create(&one, &(mica_context_opts){.threads = 1, .isa = isas[i]}) != MICA_OK)
            continue;
        REQUIRE(mica_context_create(&more, &(mica_context_opts){.threads = MORE_THREADS, .isa = isas[i]}) ==
                MICA_OK);
        CHECK_OK(one, mica_workspace_reserve(one, (size_t)4 << 20));
        CHECK_OK(more, mica_workspace_reserve(more, (size_t)4 << 20));
        for (size_t number = 0; number < sizeof shapes / sizeof shapes[0]; number++)
            for (int layout = 0; layout < LAYOUTS; layout++) {
                run a = run_shape(one, &shapes[number], number, layout);
                run b = run_shape(more, &shapes[number], number, layout);
                CHECK_MSG(same(&a.y, &b.y) && same(&a.dx, &b.dx) && same(&a.dw, &b.dw),
                          "%s, shape %zu, layout %d: other bits with more threads", isas[i], number, layout);
                free_run(&a);
                free_run(&b);
            }
        mica_context_destroy(one);
        mica_context_destroy(more);
    }
}

/* What lies beside a plane, and where a row of dy ends, must not get into sums: not even what is no number. */
TEST(depthwise_reads_nothing_beside_its_planes)
{
    enum { CHANNELS = 20, HEIGHT = 6, WIDTH = 22, GAP = 9, ROW = WIDTH + GAP, PLANE = HEIGHT * ROW };
    static float x[CHANNELS * PLANE], y[CHANNELS * PLANE], w[CHANNELS * 9], dw[CHANNELS * 9];
    mica_context *ctx = test_context(1);
    for (mica_index stride = 1; stride <= 2; stride++)
        for (mica_index width = 3; width <= WIDTH; width++) {
            for (int i = 0; i < CHANNELS * PLANE; i++)
                x[i] = y[i] = i % ROW < width ? 1.0f : NAN;
            for (int i = 0; i < CHANNELS * 9; i++)
                w[i] = 1.0f;
            mica_index out = (width - 3) / stride + 1, down = (HEIGHT - 3) / stride + 1;
            mica_tensor wide = mica_4d(x, 1, CHANNELS, HEIGHT, width), taps = mica_4d(w, CHANNELS, 1, 3, 3);
            mica_tensor narrow = mica_4d(y, 1, CHANNELS, down, out),
                        gradient = mica_4d(dw, CHANNELS, 1, 3, 3);
            wide.stride[0] = narrow.stride[0] = (mica_index)CHANNELS * PLANE;
            wide.stride[1] = narrow.stride[1] = PLANE;
            wide.stride[2] = narrow.stride[2] = ROW;
            mica_conv2d_opts opts = {.stride = {stride, stride}, .groups = CHANNELS};
            CHECK_OK(ctx, mica_conv2d(ctx, &narrow, &wide, &taps, NULL, &opts));
            for (mica_index i = 0; i < down * out; i++)
                CHECK(y[i / out * ROW + i % out] == 9.0f);
            CHECK_OK(ctx, mica_conv2d_backward_weight(ctx, &gradient, &narrow, &wide, &opts));
            for (int i = 0; i < CHANNELS * 9; i++)
                CHECK(dw[i] == (float)(9 * down * out));
            /* dy must not be read beyond its rows, either. */
            for (mica_index i = 0; i < CHANNELS * PLANE; i++)
                y[i] = i % ROW < out ? 1.0f : INFINITY;
            CHECK_OK(ctx, mica_conv2d_backward_input(ctx, &wide, &narrow, &taps, &opts));
            for (int i = 0; i < CHANNELS * PLANE; i++)
                CHECK(i % ROW >= width || i % PLANE / ROW >= HEIGHT || (isfinite(x[i]) && x[i] >= 0.0f));
        }
}
