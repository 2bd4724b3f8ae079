/* Convolutions of images that lie channels last: random shapes and layouts against sums in double precision, with the
 * kernels of every instruction set that runs here, within the scratch that was measured; the same bits for any number
 * of threads, and with weights that are prepared. */
#include <mica/ops/conv.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "isa_context.h"
#include "ops/conv/prepare.h"
#include "ops/conv/probe.h"
#include "test.h"

/* How an image lies: channels first; channels last; the same as some channels of more, with gaps between rows and
 * images. */
enum { PLANAR, LAST, SLICE, LAYOUTS };

typedef struct image {
    mica_tensor t;
    float *data;
    size_t floats;
} image;

static image image_of(test_random *r, const mica_index *dim, int layout)
{
    mica_index n = dim[0], c = dim[1], h = dim[2], w = dim[3];
    mica_index pixel = layout == SLICE ? c + test_int(r, 0, 9) : c;
    mica_index row = w * pixel + (layout == SLICE ? test_int(r, 0, 1) * 5 : 0);
    mica_index all = h * row + (layout == SLICE ? test_int(r, 0, 1) * 3 : 0);
    image i = {.floats = (size_t)(n * all)};
    i.data = malloc((i.floats + 1) * sizeof *i.data);
    for (size_t k = 0; k < i.floats; k++)
        i.data[k] = (float)test_normal(r);
    i.t = mica_4d(i.data, n, c, h, w);
    if (layout != PLANAR) {
        mica_index strides[4] = {all, 1, row, pixel};
        memcpy(i.t.stride, strides, sizeof strides);
    }
    return i;
}

static float *at(const mica_tensor *t, mica_index a, mica_index b, mica_index c, mica_index d)
{
    return (float *)t->data + a * t->stride[0] + b * t->stride[1] + c * t->stride[2] + d * t->stride[3];
}

typedef struct call {
    image x, y, w;
    mica_tensor bias;
    bool biased;
    mica_conv2d_opts o;
} call;

static mica_index narrow(mica_index wide, mica_index taps, mica_index stride, mica_index pad,
                         mica_index dilation)
{
    return (wide + 2 * pad - (taps - 1) * dilation - 1) / stride + 1;
}

/* Sizes are drawn so that rows of taps lie beyond the borders at times, and single pixels and taps are common. */
static call draw(test_random *r)
{
    static const mica_activation ends[] = {0, MICA_RELU, MICA_RELU6, MICA_SILU, MICA_HARD_SWISH};
    call c = {.biased = test_chance(r, 70)};
    bool depthwise = test_chance(r, 40), single = test_chance(r, 50);
    mica_index groups = depthwise ? test_int(r, 2, 70) : test_chance(r, 20) ? test_int(r, 2, 3) : 1;
    mica_index in = depthwise ? 1 : test_int(r, 1, groups > 1 ? 20 : 70);
    mica_index out = depthwise ? (test_chance(r, 10) ? 2 : 1) : test_int(r, 1, groups > 1 ? 40 : 70);
    mica_index taps[2], wide[2], made[2];
    for (int d = 0; d < 2; d++) {
        taps[d] = single && !depthwise ? 1
                  : test_chance(r, 70) ? (test_chance(r, 60) ? 3 : 5)
                                       : test_int(r, 1, 6);
        if (d == 1 && test_chance(r, 80))
            taps[1] = taps[0];
        c.o.stride[d] = test_chance(r, 60) ? 1 : test_int(r, 2, 3);
        c.o.dilation[d] = test_chance(r, 80) ? 1 : test_int(r, 2, 3);
        c.o.pad[d] = single && !depthwise && test_chance(r, 80) ? 0 : test_int(r, 0, (int)taps[d]);
        mica_index span = (taps[d] - 1) * c.o.dilation[d] + 1 - 2 * c.o.pad[d];
        wide[d] = test_int(r, 1, 19);
        wide[d] = wide[d] < span ? span : wide[d];
        made[d] = narrow(wide[d], taps[d], c.o.stride[d], c.o.pad[d], c.o.dilation[d]);
    }
    c.o.groups = groups;
    c.o.activation = ends[test_int(r, 0, 4)];
    c.o.accumulate = test_chance(r, 20);
    mica_index batch = test_int(r, 0, 3);
    int from = test_int(r, 0, LAYOUTS - 1), to = test_chance(r, 85) ? test_int(r, 1, 2) : PLANAR;
    c.x = image_of(r, (mica_index[]){batch, in * groups, wide[0], wide[1]}, from);
    c.y = image_of(r, (mica_index[]){batch, out * groups, made[0], made[1]}, to);
    c.w = image_of(r, (mica_index[]){out * groups, in, taps[0], taps[1]},
                   test_chance(r, 80) ? PLANAR : SLICE);
    c.bias = mica_1d(c.w.data, out * groups);
    c.bias.stride[0] = test_chance(r, 80) ? 1 : (mica_index)c.w.floats / (out * groups);
    return c;
}

static void release(call *c)
{
    free(c->x.data);
    free(c->y.data);
    free(c->w.data);
}

static double finished(double v, mica_activation activation)
{
    switch (activation) {
    case MICA_RELU:
        return fmax(v, 0.0);
    case MICA_RELU6:
        return fmin(6.0, fmax(v, 0.0));
    case MICA_SILU:
        return v / (1.0 + exp(-v));
    case MICA_HARD_SWISH:
        return v * fmin(6.0, fmax(v + 3.0, 0.0)) / 6.0;
    default:
        return v;
    }
}

static double reference(const call *c, mica_index n, mica_index o, mica_index i, mica_index j, float before)
{
    const mica_index *w = c->w.t.dim;
    mica_index group = o / (w[0] / c->o.groups);
    double sum = c->biased ? (double)((const float *)c->bias.data)[o * c->bias.stride[0]] : 0.0;
    for (mica_index k = 0; k < w[1] * w[2] * w[3]; k++) {
        mica_index channel = k / w[3] / w[2], t = k / w[3] % w[2], u = k % w[3];
        mica_index row = i * c->o.stride[0] - c->o.pad[0] + t * c->o.dilation[0];
        mica_index column = j * c->o.stride[1] - c->o.pad[1] + u * c->o.dilation[1];
        if (row >= 0 && row < c->x.t.dim[2] && column >= 0 && column < c->x.t.dim[3])
            sum += (double)*at(&c->w.t, o, channel, t, u) *
                   (double)*at(&c->x.t, n, group * w[1] + channel, row, column);
    }
    return finished(sum + (c->o.accumulate ? (double)before : 0.0), c->o.activation);
}

/* Runs into a copy of y, with just the scratch that was measured. */
static mica_status convolve(mica_context *ctx, const call *c, const mica_tensor *y, int row,
                            const mica_tensor *prepared)
{
    const mica_tensor *bias = c->biased ? &c->bias : NULL;
    return prepared == NULL ? mica_conv2d(ctx, y, &c->x.t, &c->w.t, bias, &c->o)
                            : mica_conv_prepared(ctx, &(mica_conv_tensors){y, &c->x.t, &c->w.t, bias},
                                                 prepared, row, &c->o);
}

static float *run(mica_context *ctx, const call *c, int row, const mica_tensor *prepared)
{
    enum { GUARD = 64 };
    mica_tensor y = c->y.t;
    y.data = malloc((c->y.floats + 1) * sizeof(float));
    memcpy(y.data, c->y.data, c->y.floats * sizeof(float));
    mica_measure_begin(ctx);
    CHECK_OK(ctx, convolve(ctx, c, &y, row, prepared));
    size_t bytes = mica_measure_end(ctx);
    unsigned char *block = aligned_alloc(64, (bytes + GUARD + 63) / 64 * 64);
    memset(block, 0x5a, bytes + GUARD);
    CHECK_OK(ctx, mica_workspace_give(ctx, block, bytes));
    CHECK_OK(ctx, convolve(ctx, c, &y, row, prepared));
    bool untouched = true;
    for (size_t k = bytes; k < bytes + GUARD; k++)
        untouched = untouched && block[k] == 0x5a;
    CHECK_MSG(untouched, "wrote beyond %zu bytes of scratch", bytes);
    CHECK_OK(ctx, mica_workspace_give(ctx, NULL, 0));
    free(block);
    return y.data;
}

/* Every pixel, and that nothing between them is written. */
static void check_pixels(const call *c, const float *got, int number)
{
    const mica_index *d = c->y.t.dim;
    bool *made = calloc(c->y.floats + 1, sizeof *made);
    double most = 0.0, products = (double)(c->w.t.dim[1] * c->w.t.dim[2] * c->w.t.dim[3]);
    for (mica_index n = 0; n < d[0]; n++)
        for (mica_index o = 0; o < d[1]; o++)
            for (mica_index i = 0; i < d[2]; i++)
                for (mica_index j = 0; j < d[3]; j++) {
                    ptrdiff_t place = at(&c->y.t, n, o, i, j) - c->y.data;
                    double want = reference(c, n, o, i, j, c->y.data[place]);
                    most = fmax(most, fabs(want - (double)got[place]) / (1.0 + sqrt(products)));
                    made[place] = true;
                }
    CHECK_MSG(most <= 1e-5, "call %d, [%td, %td, %td, %td]: off by %g", number, d[0], d[1], d[2], d[3], most);
    bool kept = true;
    for (size_t k = 0; k < c->y.floats; k++)
        kept = kept && (made[k] || memcmp(&got[k], &c->y.data[k], sizeof *got) == 0);
    CHECK_MSG(kept, "call %d: wrote between pixels", number);
    free(made);
}

static void check_call(mica_context *const *ctx, const call *c, int number)
{
    float *got = run(ctx[0], c, 0, NULL);
    check_pixels(c, got, number);
    size_t bytes = c->y.floats * sizeof(float), floats = 0;
    for (int i = 1; i < 3; i++) {
        float *other = run(ctx[i], c, 0, NULL);
        CHECK_MSG(memcmp(got, other, bytes) == 0, "call %d: threads matter", number);
        free(other);
    }
    mica_conv_tensors t = {&c->y.t, &c->x.t, &c->w.t, NULL};
    int row;
    CHECK_OK(ctx[0], mica_conv_prepare_choose(ctx[0], &row, &floats, &t, &c->o));
    if (row >= 0) {
        float *prepared = aligned_alloc(64, (floats * sizeof *prepared + 64) / 64 * 64);
        mica_tensor panels = mica_1d(prepared, (mica_index)floats);
        CHECK_OK(ctx[0], mica_conv_prepare(ctx[0], &panels, row, &t, &c->o));
        float *other = run(ctx[1], c, row, &panels);
        CHECK_MSG(memcmp(got, other, bytes) == 0, "call %d: prepared weights matter", number);
        free(other);
        free(prepared);
    }
    free(got);
}

TEST(conv_channels_last)
{
    static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
        mica_context *ctx[3] = {isa_context(isas[i], 1), isa_context(isas[i], 2), isa_context(isas[i], 3)};
        test_random r = test_seed(11);
        for (int number = 0; ctx[0] != NULL && number < test_effort(200); number++) {
            call c = draw(&r);
            check_call(ctx, &c, number);
            release(&c);
        }
        for (int k = 0; k < 3; k++)
            mica_context_destroy(ctx[k]);
    }
}

/* The layers of nets, larger than those drawn: many blocks of pixels and of channels, strides that want patches. */
TEST(conv_channels_last_of_nets)
{
    static const mica_index shapes[][7] = {
        {1, 3, 32, 41, 3, 2, PLANAR},  {2, 16, 96, 28, 1, 1, LAST},    {1, 576, 160, 7, 1, 1, LAST},
        {1, 320, 300, 7, 1, 1, LAST},  {1, 1024, 70, 5, 1, 1, LAST},   {3, 64, 65, 9, 3, 2, LAST},
        {1, 24, 40, 20, 5, 1, LAST},   {2, 512, 33, 3, 1, 2, LAST},    {1, 128, 128, 9, 3, 1, LAST},
        {40, 130, 140, 1, 1, 1, LAST}, {1, 96, 256, 14, 3, 2, PLANAR}, {1, 256, 512, 13, 1, 2, PLANAR},
        {2, 70, 300, 6, 3, 1, PLANAR}, {3, 96, 200, 7, 3, 2, LAST},    {1, 200, 700, 2, 2, 1, PLANAR},
        {3, 1, 64, 11, 5, 2, PLANAR},  {2, 1, 70, 25, 3, 2, PLANAR},   {2, 1, 64, 24, 3, 2, PLANAR},
        {2, 3, 32, 41, 3, 2, LAST},    {2, 2, 40, 9, 7, 2, LAST},      {2, 5, 48, 12, 3, 1, LAST}};
    mica_context *ctx[3] = {isa_context(NULL, 1), isa_context(NULL, 2), isa_context(NULL, 3)};
    test_random r = test_seed(12);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const mica_index *s = shapes[i];
        mica_index pad = s[4] / 2, made = narrow(s[3], s[4], s[5], pad, 1);
        call c = {.biased = true,
                  .o = {.stride = {s[5], s[5]}, .pad = {pad, pad}, .dilation = {1, 1}, .groups = 1}};
        c.x = image_of(&r, (mica_index[]){s[0], s[1], s[3], s[3]}, (int)s[6]);
        c.y = image_of(&r, (mica_index[]){s[0], s[2], made, made}, LAST);
        c.w = image_of(&r, (mica_index[]){s[2], s[1], s[4], s[4]}, PLANAR);
        c.bias = mica_1d(c.w.data, s[2]);
        check_call(ctx, &c, (int)i);
        release(&c);
    }
    for (int k = 0; k < 3; k++)
        mica_context_destroy(ctx[k]);
}

/* ---- Paths and scratch ---- */

static mica_tensor last_of(mica_index n, mica_index c, mica_index h, mica_index w)
{
    mica_tensor t = mica_4d(NULL, n, c, h, w);
    mica_index strides[4] = {h * w * c, 1, w * c, c};
    memcpy(t.stride, strides, sizeof strides);
    return t;
}

static size_t measured(mica_context *ctx, const mica_tensor *y, const mica_tensor *x, const mica_tensor *w,
                       const mica_conv2d_opts *o)
{
    mica_measure_begin(ctx);
    CHECK_OK(ctx, mica_conv2d(ctx, y, x, w, NULL, o));
    return mica_measure_end(ctx);
}

/* No smaller batch or image needs more, images of one pixel included; and the path is the same for all of them. */
TEST(conv_channels_last_needs_no_more_scratch_for_smaller_sizes)
{
    test_random r = test_seed(13);
    for (int threads = 1; threads <= 8; threads += threads == 1 ? 1 : 6) {
        mica_context *ctx = test_context(threads);
        for (int number = 0; number < test_effort(2000); number++) {
            bool depthwise = test_chance(&r, 30), planar = !depthwise && test_chance(&r, 30);
            mica_index in = test_int(&r, 2, 200), out = depthwise ? in : test_int(&r, 2, 200);
            if (planar && test_chance(&r, 20))
                in = 1;
            mica_index k = test_int(&r, 0, 2) * 2 + 1, s = test_int(&r, 1, 2);
            mica_conv2d_opts o = {.stride = {s, s}, .pad = {k / 2, k / 2}, .groups = depthwise ? in : 1};
            mica_tensor w = mica_4d(NULL, out, depthwise ? 1 : in, k, k);
            mica_index size[3] = {40, 60, 60};
            size_t bytes = SIZE_MAX;
            for (int step = 0; step < 4; step++) {
                mica_index h = narrow(size[1], k, s, k / 2, 1), v = narrow(size[2], k, s, k / 2, 1);
                mica_tensor y = last_of(size[0], out, h, v);
                mica_tensor x = planar ? mica_4d(NULL, size[0], in, size[1], size[2])
                                       : last_of(size[0], in, size[1], size[2]);
                mica_conv_probe probe = {0};
                ctx->conv_probe = &probe;
                size_t now = measured(ctx, &y, &x, &w, &o);
                ctx->conv_probe = NULL;
                CHECK_MSG(strcmp(probe.taken, depthwise ? "last taps" : "last") == 0, "%s is taken",
                          probe.taken);
                now = measured(ctx, &y, &x, &w, &o);
                CHECK_MSG(now <= bytes, "%td to %td channels, %td x %td taps: %zu bytes, but %zu for more",
                          in, out, k, k, now, bytes);
                bytes = now;
                for (int d = 0; d < 3; d++)
                    size[d] = test_int(&r, 1, (int)size[d]);
            }
        }
    }
}

/* ---- The choice between layouts ---- */

/* Without data: what costs say is what was measured, that Winograd in planes wins and the others channels last. */
TEST(conv_costs_tell_layouts_apart)
{
    static const struct {
        mica_index in, out, side, kernel, stride, groups;
        bool last;
    } layers[] = {{16, 96, 112, 1, 1, 1, true},    {32, 16, 112, 1, 1, 1, true},
                  {160, 960, 7, 1, 1, 1, true},    {960, 320, 7, 1, 1, 1, true},
                  {384, 384, 14, 3, 1, 384, true}, {960, 960, 7, 3, 1, 960, true},
                  {96, 96, 112, 3, 2, 96, true},   {64, 128, 56, 3, 2, 1, true},
                  {64, 64, 56, 3, 1, 1, false},    {128, 128, 28, 3, 1, 1, false}};
    mica_context *ctx = test_context(1);
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        for (mica_index batch = 1; batch <= 8; batch += 7) {
            mica_index k = layers[i].kernel, s = layers[i].stride, side = layers[i].side, pad = k / 2;
            mica_index made = narrow(side, k, s, pad, 1);
            mica_conv2d_opts o = {.stride = {s, s}, .pad = {pad, pad}, .groups = layers[i].groups};
            mica_tensor w = mica_4d(NULL, layers[i].out, layers[i].in / layers[i].groups, k, k);
            mica_tensor x = mica_4d(NULL, batch, layers[i].in, side, side),
                        x_last = last_of(batch, layers[i].in, side, side);
            mica_tensor y = mica_4d(NULL, batch, layers[i].out, made, made),
                        y_last = last_of(batch, layers[i].out, made, made);
            double planes = 0.0, last = 0.0;
            CHECK_OK(ctx, mica_conv2d_cost(ctx, &planes, &y, &x, &w, &o));
            CHECK_OK(ctx, mica_conv2d_cost(ctx, &last, &y_last, &x_last, &w, &o));
            bool wide = strcmp(mica_context_isa(ctx), "avx512") == 0 ||
                        strcmp(mica_context_isa(ctx), "avx2") == 0;
            CHECK_MSG(planes > 0.0 && last > 0.0 && (!wide || (last < planes) == layers[i].last),
                      "layer %zu, batch %td: planes cost %g, channels last %g", i, batch, planes, last);
        }
    mica_tensor y = mica_4d(NULL, 1, 4, 5, 5), x = mica_4d(NULL, 1, 3, 5, 5), w = mica_4d(NULL, 4, 2, 1, 1);
    double cost;
    CHECK(mica_conv2d_cost(ctx, &cost, &y, &x, &w, NULL) == MICA_ERR_SHAPE);
}
