/* Convolutions by Winograd's transforms: how far they are from sums in double precision, and that they can be
 * switched off. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "ops/conv/probe.h"
#include "test.h"

typedef struct shape {
    const char *what;
    mica_index batch, in, height, width, out, pad[2];
    mica_index rows; /* of taps */
} shape;

static const shape shapes[] = {
    {"whole tiles", 1, 16, 24, 32, 32, {1, 1}, 3},
    {"parts of tiles", 3, 20, 17, 30, 37, {1, 1}, 3},
    {"no padding", 2, 33, 25, 19, 18, {0, 0}, 3},
    {"more padding than taps reach", 1, 16, 22, 21, 40, {3, 2}, 3},
    {"weights in chunks", 2, 160, 16, 18, 90, {1, 1}, 3},
    {"many channels, transformed once for all chunks", 8, 200, 5, 5, 165, {1, 1}, 3},
    {"many channels, in several blocks", 33, 196, 5, 5, 40, {1, 1}, 3},
    {"a row of tiles longer than a run", 1, 16, 5, 301, 33, {1, 1}, 3},
    {"in one dimension", 2, 40, 1, 97, 33, {0, 1}, 1},
    {"in one dimension, several rows", 2, 17, 9, 37, 32, {0, 0}, 1},
};

/* Down the columns alone. */
static const shape few_channels[] = {
    {"a small net's", 3, 8, 14, 14, 16, {1, 1}, 3},
    {"small images", 7, 9, 4, 5, 10, {1, 1}, 3},
    {"no padding", 2, 4, 11, 12, 6, {0, 0}, 3},
    {"more padding than taps reach", 6, 5, 6, 4, 130, {4, 3}, 3},
    {"wide rows", 1, 6, 5, 301, 7, {1, 1}, 3},
    {"wide rows of several lines", 2, 4, 17, 131, 7, {1, 1}, 3},
    {"wide rows whose last vector is nearly empty", 1, 4, 9, 103, 6, {1, 1}, 3},
};

/* What is stated in <mica/ops/conv.h>: in units of the square root of the number of products of a sum. */
#define BOUND 2e-5

typedef struct data {
    const shape *s;
    mica_index oh, ow, kh;
    float *x, *w, *dy;           /* given */
    float *y[2], *dx[2], *dw[2]; /* by transforms, and by plain sums */
    double *want_y, *want_dx, *want_dw;
} data;

static float *floats(test_random *r, mica_index count)
{
    float *p = malloc((size_t)count * sizeof *p);
    for (mica_index i = 0; i < count; i++)
        p[i] = (float)test_normal(r);
    return p;
}

/* All three by their definition. */
static void reference(data *d)
{
    const shape *s = d->s;
    for (mica_index n = 0; n < s->batch; n++)
        for (mica_index o = 0; o < s->out; o++)
            for (mica_index c = 0; c < s->in; c++)
                for (mica_index i = 0; i < d->oh; i++)
                    for (mica_index j = 0; j < d->ow; j++)
                        for (mica_index tap = 0; tap < 3 * d->kh; tap++) {
                            mica_index h = i + tap / 3 - s->pad[0], v = j + tap % 3 - s->pad[1];
                            if (h < 0 || h >= s->height || v < 0 || v >= s->width)
                                continue;
                            mica_index y = ((n * s->out + o) * d->oh + i) * d->ow + j;
                            mica_index x = ((n * s->in + c) * s->height + h) * s->width + v;
                            mica_index w = (o * s->in + c) * 3 * d->kh + tap;
                            d->want_y[y] += (double)d->x[x] * (double)d->w[w];
                            d->want_dx[x] += (double)d->dy[y] * (double)d->w[w];
                            d->want_dw[w] += (double)d->dy[y] * (double)d->x[x];
                        }
}

/* The largest error, in units of the square root of `products`. */
static double error_of(const float *got, const double *want, mica_index count, double products)
{
    double most = 0.0;
    for (mica_index i = 0; i < count; i++)
        most = fmax(most, fabs((double)got[i] - want[i]));
    return most / sqrt(products);
}

/* By this path, where it fits, or the one that is chosen. */
static void run(mica_context *ctx, const data *d, int way, const char *forced)
{
    const shape *s = d->s;
    mica_conv_probe probe = {.forced = forced};
    ctx->conv_probe = &probe;
    mica_tensor x = mica_4d(d->x, s->batch, s->in, s->height, s->width),
                dx = mica_tensor_like(&x, d->dx[way]);
    mica_tensor w = mica_4d(d->w, s->out, s->in, d->kh, 3), dw = mica_tensor_like(&w, d->dw[way]);
    mica_tensor y = mica_4d(d->y[way], s->batch, s->out, d->oh, d->ow), dy = mica_tensor_like(&y, d->dy);
    mica_conv2d_opts opts = {.pad = {s->pad[0], s->pad[1]}};
    CHECK_OK(ctx, mica_workspace_reserve(ctx, (size_t)16 << 20));
    CHECK_OK(ctx, mica_conv2d(ctx, &y, &x, &w, NULL, &opts));
    CHECK_OK(ctx, mica_conv2d_backward_input(ctx, &dx, &dy, &w, &opts));
    CHECK_OK(ctx, mica_conv2d_backward_weight(ctx, &dw, &dy, &x, &opts));
    ctx->conv_probe = NULL;
}

/* With three threads and with one. */
static void check(mica_context *const *ctx, const shape *s, const char *forced)
{
    test_random r = test_seed(11);
    data d = {.s = s, .kh = s->rows, .ow = s->width + 2 * s->pad[1] - 2};
    d.oh = s->height + 2 * s->pad[0] - (d.kh - 1);
    mica_index nx = s->batch * s->in * s->height * s->width, nw = s->out * s->in * 3 * d.kh;
    mica_index ny = s->batch * s->out * d.oh * d.ow;
    d.x = floats(&r, nx);
    d.w = floats(&r, nw);
    d.dy = floats(&r, ny);
    for (int way = 0; way < 2; way++) {
        d.y[way] = floats(&r, ny);
        d.dx[way] = floats(&r, nx);
        d.dw[way] = floats(&r, nw);
    }
    d.want_y = calloc((size_t)ny, sizeof(double));
    d.want_dx = calloc((size_t)nx, sizeof(double));
    d.want_dw = calloc((size_t)nw, sizeof(double));
    reference(&d);
    mica_context *plain = NULL;
    CHECK(mica_context_create(&plain, &(mica_context_opts){.no_winograd = true}) == MICA_OK);
    run(ctx[0], &d, 0, forced);
    run(plain, &d, 1, NULL);
    for (int way = 0; way < 2; way++) {
        double ey = error_of(d.y[way], d.want_y, ny, (double)(3 * d.kh * s->in));
        double ex = error_of(d.dx[way], d.want_dx, nx, (double)(3 * d.kh * s->out));
        double ew = error_of(d.dw[way], d.want_dw, nw, (double)(s->batch * d.oh * d.ow));
        CHECK_MSG(ey <= BOUND && ex <= BOUND && ew <= BOUND, "%s: errors of y, dx, dw are %.2g, %.2g, %.2g%s",
                  s->what, ey, ex, ew, way == 0 ? "" : " by plain sums");
    }
    /* Both ways were gone, and neither depends on the number of threads. */
    CHECK_MSG(memcmp(d.y[0], d.y[1], (size_t)ny * sizeof(float)) != 0, "%s: no transforms", s->what);
    CHECK_MSG(memcmp(d.dx[0], d.dx[1], (size_t)nx * sizeof(float)) != 0, "%s: no transforms for dx", s->what);
    bool weights = strcmp(forced, "deep") != 0; /* those have no such path */
    CHECK_MSG(!weights || memcmp(d.dw[0], d.dw[1], (size_t)nw * sizeof(float)) != 0,
              "%s: no transforms for dw", s->what);
    run(ctx[1], &d, 1, forced);
    CHECK_MSG(memcmp(d.y[0], d.y[1], (size_t)ny * sizeof(float)) == 0, "%s: threads matter for y", s->what);
    CHECK_MSG(memcmp(d.dx[0], d.dx[1], (size_t)nx * sizeof(float)) == 0, "%s: threads matter for dx",
              s->what);
    CHECK_MSG(memcmp(d.dw[0], d.dw[1], (size_t)nw * sizeof(float)) == 0, "%s: threads matter for dw",
              s->what);
    mica_context_destroy(plain);
    void *all[] = {d.x,     d.w,     d.dy,    d.y[0],   d.y[1],    d.dx[0],
                   d.dx[1], d.dw[0], d.dw[1], d.want_y, d.want_dx, d.want_dw};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

TEST(winograd_errors_are_within_the_bound)
{
    mica_context *ctx[2] = {test_context(3), test_context(1)};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        check(ctx, &shapes[i], "winograd");
        check(ctx, &shapes[i], "deep");
    }
}

TEST(winograd_errors_of_few_channels_are_within_the_bound)
{
    mica_context *ctx[2] = {test_context(3), test_context(1)};
    for (size_t i = 0; i < sizeof few_channels / sizeof few_channels[0]; i++)
        check(ctx, &few_channels[i], "columns");
}

/* A plan has scratch for its batch and for half of it again and again: what lies between must not take more. */
TEST(convolutions_of_fewer_images_take_no_more_scratch)
{
    static const mica_index sizes[][3] = {{8, 14, 16}, {16, 7, 32},   {20, 16, 32},
                                          {5, 4, 9},   {200, 8, 260}, {512, 4, 512}};
    mica_context *ctx = test_context(2);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        mica_index in = sizes[i][0], side = sizes[i][1], out = sizes[i][2];
        size_t most[3] = {0};
        for (mica_index batch = 40; batch > 0 && batch * side * side >= 128; batch--) {
            mica_tensor x = mica_4d(NULL, batch, in, side, side), y = mica_4d(NULL, batch, out, side, side);
            mica_tensor w = mica_4d(NULL, out, in, 3, 3);
            mica_conv2d_opts opts = {.pad = {1, 1}};
            for (int way = 0; way < 3; way++) {
                mica_measure_begin(ctx);
                CHECK_OK(ctx, way == 0   ? mica_conv2d(ctx, &y, &x, &w, NULL, &opts)
                              : way == 1 ? mica_conv2d_backward_input(ctx, &x, &y, &w, &opts)
                                         : mica_conv2d_backward_weight(ctx, &w, &y, &x, &opts));
                size_t bytes = mica_measure_end(ctx);
                CHECK_MSG(most[way] == 0 || bytes <= most[way], "way %d: %td images take %zu bytes, more %zu",
                          way, batch, bytes, most[way]);
                most[way] = bytes;
            }
        }
    }
}
