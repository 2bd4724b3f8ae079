/* Every path of a convolution: the same numbers, up to rounding, and the same bits for any number of threads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "ops/conv/conv.h"
#include "ops/conv/probe.h"
#include "test.h"

typedef struct shape {
    mica_index batch, in, out, rows, columns, kernel, stride;
} shape;

static const shape shapes[] = {
    {3, 24, 40, 9, 7, 3, 1},
    {1, 32, 48, 4, 4, 3, 1},
    {5, 40, 70, 2, 2, 3, 1},
    {2, 17, 33, 18, 20, 3, 1},
    {4, 64, 96, 3, 3, 1, 1},
    {2, 48, 24, 13, 11, 1, 1},
    {2, 20, 30, 15, 14, 3, 2},
    {1, 16, 36, 21, 19, 5, 1},
    {9, 130, 64, 5, 6, 3, 1},
    {2, 3, 16, 20, 24, 3, 1},
    {3, 64, 64, 1, 40, 1, 2},
    /* many images of few pixels, which bands cut anywhere */
    {61, 33, 40, 1, 5, 3, 1},
    {75, 40, 34, 1, 1, 1, 1},
    {57, 36, 33, 1, 2, 3, 1},
    {23, 40, 40, 3, 3, 3, 1},
    {26, 32, 48, 1, 16, 3, 1},
    {35, 32, 40, 1, 9, 3, 2},
    {21, 32, 40, 2, 8, 1, 1},
    {19, 48, 65, 1, 17, 3, 1},
};

enum { FORWARD, INPUT, WEIGHT, KINDS };

/* The two images and the weights. */
typedef struct data {
    const shape *s;
    mica_tensor x, y, w;
    size_t bytes[KINDS]; /* of what each makes: y, x, w */
} data;

static mica_index narrow(mica_index wide, const shape *s)
{
    return (wide + s->kernel / 2 * 2 - s->kernel) / s->stride + 1;
}

static float *floats(test_random *r, const mica_tensor *t)
{
    size_t count = (size_t)mica_tensor_count(t);
    float *p = malloc(count * sizeof *p);
    for (size_t i = 0; i < count; i++)
        p[i] = (float)test_normal(r);
    return p;
}

static data make(const shape *s)
{
    test_random r = test_seed(5);
    data d = {.s = s};
    d.x = mica_4d(NULL, s->batch, s->in, s->rows, s->columns);
    d.y = mica_4d(NULL, s->batch, s->out, narrow(s->rows, s), narrow(s->columns, s));
    d.w = mica_4d(NULL, s->out, s->in, s->kernel, s->kernel);
    d.x.data = floats(&r, &d.x);
    d.y.data = floats(&r, &d.y);
    d.w.data = floats(&r, &d.w);
    d.bytes[FORWARD] = mica_tensor_bytes(&d.y);
    d.bytes[INPUT] = mica_tensor_bytes(&d.x);
    d.bytes[WEIGHT] = mica_tensor_bytes(&d.w);
    return d;
}

static mica_status call(mica_context *ctx, const data *d, int kind, float *out)
{
    mica_conv2d_opts opts = {.pad = {d->s->kernel / 2, d->s->kernel / 2},
                             .stride = {d->s->stride, d->s->stride}};
    mica_tensor made = kind == FORWARD ? d->y : kind == INPUT ? d->x : d->w;
    made.data = out;
    return kind == FORWARD ? mica_conv2d(ctx, &made, &d->x, &d->w, NULL, &opts)
           : kind == INPUT ? mica_conv2d_backward_input(ctx, &made, &d->y, &d->w, &opts)
                           : mica_conv2d_backward_weight(ctx, &made, &d->y, &d->x, &opts);
}

/* With scratch for it, by the path that the probe wants. */
static void run(mica_context *ctx, const data *d, int kind, float *out, mica_conv_probe *probe)
{
    ctx->conv_probe = probe;
    mica_measure_begin(ctx);
    CHECK_OK(ctx, call(ctx, d, kind, out));
    size_t bytes = mica_measure_end(ctx);
    CHECK_OK(ctx, mica_workspace_reserve(ctx, bytes));
    CHECK_OK(ctx, call(ctx, d, kind, out));
    ctx->conv_probe = NULL;
}

/* The largest difference, in units of the square root of the products of a sum. */
static double difference(const float *a, const float *b, size_t bytes, double products)
{
    double most = 0.0;
    for (size_t i = 0; i < bytes / sizeof *a; i++)
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most / sqrt(products);
}

static void check_kind(mica_context *const *ctx, const data *d, int kind)
{
    const shape *s = d->s;
    size_t pixels = d->bytes[FORWARD] / sizeof(float);
    double products = kind == WEIGHT ? (double)pixels / (double)s->out
                                     : (double)((kind == INPUT ? s->out : s->in) * s->kernel * s->kernel);
    float *want = malloc(d->bytes[kind]), *got[2] = {malloc(d->bytes[kind]), malloc(d->bytes[kind])};
    mica_conv_probe chosen[2] = {{0}};
    for (int i = 0; i < 2; i++)
        run(ctx[i], d, kind, want, &chosen[i]);
    CHECK(chosen[0].fitting > 0 && chosen[0].fitting == chosen[1].fitting);
    CHECK_MSG(strcmp(chosen[0].taken, chosen[1].taken) == 0, "threads choose %s and %s", chosen[0].taken,
              chosen[1].taken);
    for (int k = 0; k < chosen[0].fitting; k++) {
        const char *name = chosen[0].name[k];
        for (int i = 0; i < 2; i++) {
            mica_conv_probe forced = {.forced = name};
            run(ctx[i], d, kind, got[i], &forced);
            CHECK_MSG(strcmp(forced.taken, name) == 0, "%s is asked for, %s taken", name, forced.taken);
        }
        CHECK_MSG(memcmp(got[0], got[1], d->bytes[kind]) == 0,
                  "%td images of %td x %td, %td to %td channels, kind %d: threads matter for %s", s->batch,
                  s->rows, s->columns, s->in, s->out, kind, name);
        double off = difference(want, got[0], d->bytes[kind], products);
        CHECK_MSG(off <= 4e-5, "%td images of %td x %td, %td to %td channels, kind %d: %s differs by %g",
                  s->batch, s->rows, s->columns, s->in, s->out, kind, name, off);
    }
    free(want);
    free(got[0]);
    free(got[1]);
}

TEST(conv_paths_give_the_same)
{
    mica_context *ctx[2] = {test_context(1), test_context(3)};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        data d = make(&shapes[i]);
        for (int kind = 0; kind < KINDS; kind++)
            check_kind(ctx, &d, kind);
        free(d.x.data);
        free(d.y.data);
        free(d.w.data);
    }
}

/* ---- Rows of few pixels, whose vectors may lie across channels ---- */

static shape draw_narrow(test_random *r)
{
    shape s = {.batch = test_int(r, 1, 4),
               .in = test_int(r, 1, 24),
               .rows = test_int(r, 3, 13),
               .columns = test_int(r, 3, 13),
               .kernel = 3 + 2 * test_int(r, 0, 1),
               .stride = test_int(r, 1, 2)};
    s.out = test_int(r, 3, (int)(511 / s.in < 48 ? 511 / s.in : 48));
    return s;
}

TEST(conv_paths_of_narrow_images)
{
    mica_context *ctx[2] = {test_context(1), test_context(3)};
    test_random r = test_seed(71);
    for (int i = 0; i < test_effort(40); i++) {
        shape s = draw_narrow(&r);
        data d = make(&s);
        check_kind(ctx, &d, FORWARD);
        check_kind(ctx, &d, INPUT);
        free(d.x.data);
        free(d.y.data);
        free(d.w.data);
    }
}

/* Pooled by two by two, at once and one after the other. */
static void check_pooled(mica_context *const *ctx, const data *d)
{
    mica_conv2d_opts opts = {.pad = {d->s->kernel / 2, d->s->kernel / 2},
                             .stride = {d->s->stride, d->s->stride},
                             .activation = MICA_RELU};
    mica_pooling_opts pool = {.kernel = {2, 2}};
    mica_tensor y = mica_4d(NULL, d->y.dim[0], d->y.dim[1], d->y.dim[2] / 2, d->y.dim[3] / 2);
    size_t bytes = mica_tensor_bytes(&y), count = (size_t)mica_tensor_count(&y);
    float *want = malloc(bytes + 1), *got[2] = {malloc(bytes + 1), malloc(bytes + 1)};
    REQUIRE(want != NULL && got[0] != NULL && got[1] != NULL);
    CHECK_OK(ctx[0], mica_conv2d(ctx[0], &d->y, &d->x, &d->w, NULL, &opts));
    y.data = want;
    CHECK_OK(ctx[0], mica_max_pool2d(ctx[0], &y, NULL, &d->y, &pool));
    for (int i = 0; i < 2; i++) {
        y.data = got[i];
        mica_conv_pool_args args = {&d->x, &d->w, NULL, &opts, &pool};
        CHECK_OK(ctx[i], mica_conv2d_max_pool(ctx[i], &y, NULL, &args));
    }
    CHECK(memcmp(got[0], got[1], bytes) == 0);
    if (count > 0)
        CHECK(difference(want, got[0], bytes, (double)(d->s->in * d->s->kernel * d->s->kernel)) <= 4e-5);
    free(want);
    free(got[0]);
    free(got[1]);
}

TEST(conv_paths_of_narrow_images_that_are_pooled)
{
    mica_context *ctx[2] = {test_context(1), test_context(3)};
    for (int i = 0; i < 2; i++)
        CHECK_OK(ctx[i], mica_workspace_reserve(ctx[i], (size_t)1 << 23));
    test_random r = test_seed(72);
    for (int i = 0; i < test_effort(60); i++) {
        shape s = draw_narrow(&r);
        s.rows += 2 * s.stride; /* a window at least */
        s.columns += 2 * s.stride;
        data d = make(&s);
        check_pooled(ctx, &d);
        free(d.x.data);
        free(d.y.data);
        free(d.w.data);
    }
}
