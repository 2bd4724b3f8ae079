/* Convolution kernels of every instruction set against the definition in kernel/conv.h, pixel by pixel. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "base/cpu.h"
#include "kernel/kernels.h"
#include "ops/conv/grid.h"
#include "test.h"

static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};

/* The kernels of every set that runs here. */
#define EACH_KERNELS(k)                                                \
    for (size_t isa_ = 0; isa_ < sizeof isas / sizeof isas[0]; isa_++) \
        for (const mica_kernels *k = mica_kernels_choose(isas[isa_]); k != NULL; k = NULL)

#define CHANNELS 3
#define IMAGES   2

/* A random image in memory of exactly its size, so that a sanitizer sees every read beyond it. */
typedef struct scene {
    mica_conv_patches in;
    float *memory;
} scene;

static mica_conv_axis random_axis(test_random *r, int longest)
{
    mica_conv_axis a = {.image = (size_t)test_int(r, 1, longest),
                        .count = (size_t)test_int(r, 1, longest),
                        .taps = (size_t)test_int(r, 1, 5),
                        .scale = test_chance(r, 60) ? 1 : test_int(r, 2, 3),
                        .base = test_int(r, -6, 6),
                        .step = test_int(r, -3, 3)};
    if (test_chance(r, 3))
        a.step *= 3000; /* no window holds these taps at once */
    if (a.step == 0)
        a.step = 1;
    return a;
}

static scene random_scene(test_random *r)
{
    scene s = {.in = {.rows = random_axis(r, 12), .columns = random_axis(r, test_chance(r, 20) ? 200 : 20)}};
    mica_conv_patches *in = &s.in;
    in->column_stride = test_chance(r, 30) ? 2 : 1;
    in->row_stride = (ptrdiff_t)in->columns.image * in->column_stride;
    in->channel_stride = (ptrdiff_t)in->rows.image * in->row_stride;
    in->image_stride = CHANNELS * in->channel_stride;
    size_t count = (size_t)(IMAGES * in->image_stride);
    s.memory = malloc(count * sizeof *s.memory);
    for (size_t i = 0; i < count; i++)
        s.memory[i] = (float)test_normal(r);
    in->data = s.memory;
    return s;
}

static float pixel(const mica_conv_patches *in, size_t image, size_t channel, ptrdiff_t row, ptrdiff_t column)
{
    if (row < 0 || row >= (ptrdiff_t)in->rows.image || column < 0 || column >= (ptrdiff_t)in->columns.image)
        return 0.0f;
    return in->data[(ptrdiff_t)image * in->image_stride + (ptrdiff_t)channel * in->channel_stride +
                    row * in->row_stride + column * in->column_stride];
}

static ptrdiff_t meets(const mica_conv_axis *a, size_t at, size_t tap)
{
    return (ptrdiff_t)at * a->scale + a->base + (ptrdiff_t)tap * a->step;
}

/* What tap (t, u) of a channel meets at (i, j). */
static float met(const mica_conv_patches *in, size_t image, size_t channel, const size_t at[2],
                 const size_t tap[2])
{
    return pixel(in, image, channel, meets(&in->rows, at[0], tap[0]), meets(&in->columns, at[1], tap[1]));
}

/* Element (tap, pixel) of the matrix of patches. */
static float patch(const mica_conv_patches *in, size_t tap, size_t number)
{
    tap += in->first_tap;
    number += in->first_pixel;
    size_t taps = in->rows.taps * in->columns.taps, pixels = in->rows.count * in->columns.count;
    return met(in, number / pixels, tap / taps,
               (size_t[]){number % pixels / in->columns.count, number % in->columns.count},
               (size_t[]){tap % taps / in->columns.taps, tap % in->columns.taps});
}

TEST(kernel_conv_packs_patches)
{
    enum { WIDTH = 24, DEPTH = 40 };
    EACH_KERNELS(k)
    {
        test_random r = test_seed(1);
        for (int n = 0; n < 300; n++) {
            scene s = random_scene(&r);
            mica_conv_patches *in = &s.in;
            in->gemm = k->gemm;
            int taps = (int)(CHANNELS * in->rows.taps * in->columns.taps);
            int pixels = (int)(IMAGES * in->rows.count * in->columns.count);
            in->first_tap = (size_t)test_int(&r, 0, taps / 3);
            in->first_pixel = (size_t)test_int(&r, 0, pixels / 3);
            taps -= (int)in->first_tap;
            pixels -= (int)in->first_pixel;
            /* Pixels as vectors, then taps. */
            for (int transposed = 0; transposed < 2; transposed++) {
                int vectors = transposed ? taps : pixels, depth = transposed ? pixels : taps;
                size_t first = (size_t)test_int(&r, 0, vectors - 1), k0 = (size_t)test_int(&r, 0, depth - 1);
                int left = vectors - (int)first, deep = depth - (int)k0;
                size_t count = (size_t)test_int(&r, 1, left < WIDTH ? left : WIDTH);
                size_t kk = (size_t)test_int(&r, 1, deep < DEPTH ? deep : DEPTH);
                float panel[DEPTH * WIDTH + 1];
                panel[kk * WIDTH] = -7.0f;
                (transposed ? k->conv->pack_transposed : k->conv->pack)(in, panel, WIDTH, first, count, k0,
                                                                        kk);
                CHECK(panel[kk * WIDTH] == -7.0f);
                for (size_t p = 0; p < kk; p++)
                    for (size_t i = 0; i < WIDTH; i++) {
                        size_t tap = transposed ? first + i : k0 + p, at = transposed ? k0 + p : first + i;
                        float want = i < count ? patch(in, tap, at) : 0.0f;
                        CHECK_MSG(panel[p * WIDTH + i] == want, "%s: scene %d: (%zu, %zu) is %g, wanted %g",
                                  k->isa, n, p, i, (double)panel[p * WIDTH + i], (double)want);
                    }
            }
            free(s.memory);
        }
    }
}

/* The sum over channels and taps at one output pixel. */
static double direct_sum(const mica_conv_patches *in, const mica_conv_taps *w, const size_t at[2])
{
    double sum = 0.0;
    for (size_t c = 0; c < w->channels; c++)
        for (size_t t = 0; t < in->rows.taps; t++)
            for (size_t u = 0; u < in->columns.taps; u++)
                sum += (double)met(in, 0, c, at, (size_t[]){t, u}) *
                       (double)w->data[(ptrdiff_t)c * w->channel_stride + (ptrdiff_t)t * w->row_stride +
                                       (ptrdiff_t)u * w->column_stride];
    return sum;
}

static mica_conv_taps random_taps(const mica_conv_patches *in, float *memory, test_random *r)
{
    size_t all = CHANNELS * in->rows.taps * in->columns.taps;
    for (size_t i = 0; i < all; i++)
        memory[i] = (float)test_normal(r);
    return (mica_conv_taps){.data = memory,
                            .channels = CHANNELS,
                            .channel_stride = (ptrdiff_t)(in->rows.taps * in->columns.taps),
                            .row_stride = (ptrdiff_t)in->columns.taps,
                            .column_stride = 1};
}

TEST(kernel_taps_make_images)
{
    EACH_KERNELS(k)
    {
        test_random r = test_seed(2);
        for (int n = 0; n < 300; n++) {
            scene s = random_scene(&r);
            const mica_conv_patches *in = &s.in;
            float weights[CHANNELS * 25];
            mica_conv_taps w = random_taps(in, weights, &r);
            ptrdiff_t step = test_chance(&r, 30) ? 2 : 1;
            size_t rows = in->rows.count, columns = in->columns.count, size = rows * columns * (size_t)step;
            float *y = malloc(size * sizeof *y), *before = malloc(size * sizeof *y);
            for (size_t i = 0; i < size; i++)
                before[i] = (float)test_normal(&r);
            memcpy(y, before, size * sizeof *y);
            mica_conv_planes out = {
                .data = y, .row_stride = (ptrdiff_t)columns * step, .column_stride = step};
            size_t first = (size_t)test_int(&r, 0, (int)rows - 1);
            size_t count = (size_t)test_int(&r, 1, (int)(rows - first));
            bool accumulate = test_chance(&r, 40);
            float bias = test_chance(&r, 30) ? 0.0f : 0.75f;
            k->taps->image(&out, in, &w, first, count, bias, accumulate);
            for (size_t i = 0; i < size; i++) {
                size_t at[2] = {i / (columns * (size_t)step), i / (size_t)step % columns};
                double want = (double)before[i];
                if (i % (size_t)step == 0 && at[0] >= first && at[0] < first + count)
                    want = (accumulate ? want : 0.0) + (double)bias + direct_sum(in, &w, at);
                CHECK_MSG(fabs((double)y[i] - want) <= 2e-5, "%s: scene %d: element %zu is %g, wanted %g",
                          k->isa, n, i, (double)y[i], want);
            }
            free(y);
            free(before);
            free(s.memory);
        }
    }
}

/* Tiles of several channels: window by window, as the planner cuts them. */
enum { MOST_OUTPUTS = 11 };

static void make_tiles(const mica_kernels *k, const mica_conv_patches *in, const mica_conv_grid *g, float *y,
                       const float *panels, const float *bias, size_t m)
{
    float *window = malloc(g->window_bytes);
    ptrdiff_t *offset = malloc(g->offset_bytes);
    size_t columns = in->columns.count, plane = in->rows.count * columns, tile = k->tiles->channels;
    mica_conv_grid_offsets(offset, g, in);
    for (size_t number = 0; number < g->down * g->across; number++) {
        mica_conv_patches some = *in;
        const float *from = panels;
        for (size_t c = 0; c < g->channels; c += g->window.channels) {
            mica_conv_block b = mica_conv_grid_block(g, in, number, c, window, offset);
            mica_conv_planes out = {y + b.i * columns + b.j, 0, (ptrdiff_t)plane, (ptrdiff_t)columns, 1};
            k->tiles->load(window, &g->window, &some, &b);
            k->tiles->image(&out, &b, from, tile * g->channels * g->taps, c == 0 ? bias : NULL, m, c > 0);
            some.data += (ptrdiff_t)b.channels * in->channel_stride;
            from += b.channels * b.taps * tile;
        }
    }
    free(window);
    free(offset);
}

/* Twice, and a third of it where it is negative. */
static void bend(float *dst, const float *const *src, size_t n, const void *params)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = src[0][i] * (src[0][i] < 0.0f ? *(const float *)params : 2.0f);
}

/* Totals of each block, as it comes, within bounds and through a map, against the image y. */
static void check_totals(const mica_kernels *k, const mica_conv_patches *in, const mica_conv_grid *g,
                         const float *y, const float *panels, const float *bias, size_t m)
{
    static const mica_conv_finish ways[] = {{NULL, 0.0f, -INFINITY, INFINITY},
                                            {NULL, 0.0f, 0.0f, INFINITY},
                                            {NULL, 0.0f, -0.5f, 1.0f},
                                            {bend, 0.5f, -INFINITY, INFINITY}};
    if (g->window.channels < g->channels)
        return;
    float *window = malloc(g->window_bytes);
    ptrdiff_t *offset = malloc(g->offset_bytes);
    size_t columns = in->columns.count, plane = in->rows.count * columns;
    mica_conv_grid_offsets(offset, g, in);
    for (size_t number = 0; number < g->down * g->across; number++)
        for (size_t way = 0; way < sizeof ways / sizeof ways[0]; way++) {
            const mica_conv_finish *f = &ways[way];
            mica_conv_block b = mica_conv_grid_block(g, in, number, 0, window, offset);
            double totals[MOST_OUTPUTS];
            k->tiles->load(window, &g->window, in, &b);
            k->tiles->totals(totals, &b, panels, k->tiles->channels * g->channels * g->taps, bias, m, f);
            for (size_t o = 0; o < m; o++) {
                double want = 0.0;
                for (size_t i = 0; i < b.rows * b.columns; i++) {
                    float x = y[o * plane + (b.i + i / b.columns) * columns + b.j + i % b.columns];
                    if (f->map != NULL)
                        f->map(&x, (const float *const[]){&x}, 1, &f->slope);
                    want += (double)fminf(f->high, fmaxf(f->low, x));
                }
                CHECK_MSG(fabs(totals[o] - want) <= 1e-5 * (double)(b.rows * b.columns),
                          "%s: way %zu: total %zu is %g, wanted %g", k->isa, way, o, totals[o], want);
            }
        }
    free(window);
    free(offset);
}

TEST(kernel_tiles_make_images)
{
    EACH_KERNELS(k)
    {
        test_random r = test_seed(12);
        for (int n = 0; n < 200; n++) {
            scene s = random_scene(&r);
            const mica_conv_patches *in = &s.in;
            size_t taps = CHANNELS * in->rows.taps * in->columns.taps, tile = k->tiles->channels;
            size_t m = (size_t)test_int(&r, 1, MOST_OUTPUTS), pixels = in->rows.count * in->columns.count;
            mica_conv_grid g;
            mica_conv_grid_aim aim = {.channels = CHANNELS, .m = m, .any_columns = test_chance(&r, 30)};
            aim.deep = (size_t)test_int(&r, 1, 80);
            aim.work = (size_t)test_int(&r, 1, 50000);
            if (!mica_conv_grid_plan(&g, in, &aim, k->tiles)) {
                free(s.memory);
                continue;
            }
            float weights[MOST_OUTPUTS][CHANNELS * 25], bias[MOST_OUTPUTS];
            float *panels = calloc((m + tile) * taps, sizeof *panels), *y = malloc(m * pixels * sizeof *y);
            mica_conv_taps w = {0};
            for (size_t o = 0; o < m; o++) {
                w = random_taps(in, weights[o], &r);
                bias[o] = (float)test_normal(&r);
                for (size_t p = 0; p < taps; p++)
                    panels[(o / tile * taps + p) * tile + o % tile] = weights[o][p];
            }
            make_tiles(k, in, &g, y, panels, bias, m);
            check_totals(k, in, &g, y, panels, bias, m);
            for (size_t i = 0; i < m * pixels; i++) {
                size_t o = i / pixels, at[2] = {i % pixels / in->columns.count, i % in->columns.count};
                w.data = weights[o];
                double want = (double)bias[o] + direct_sum(in, &w, at);
                CHECK_MSG(fabs((double)y[i] - want) <= 2e-5, "%s: scene %d: element %zu is %g, wanted %g",
                          k->isa, n, i, (double)y[i], want);
            }
            free(panels);
            free(y);
            free(s.memory);
        }
    }
}

/* dw(t, u) = sum over images and pixels of dy * what the tap meets. */
static double gradient_of(const mica_conv_patches *in, const mica_conv_planes *dy, const size_t tap[2])
{
    double sum = 0.0;
    for (size_t n = 0; n < IMAGES; n++)
        for (size_t i = 0; i < in->rows.count; i++)
            for (size_t j = 0; j < in->columns.count; j++)
                sum += (double)met(in, n, 0, (size_t[]){i, j}, tap) *
                       (double)dy->data[(ptrdiff_t)n * dy->image_stride + (ptrdiff_t)i * dy->row_stride +
                                        (ptrdiff_t)j * dy->column_stride];
    return sum;
}

TEST(kernel_taps_gradient)
{
    EACH_KERNELS(k)
    {
        test_random r = test_seed(3);
        for (int n = 0; n < 200; n++) {
            scene s = random_scene(&r);
            const mica_conv_patches *in = &s.in;
            float weights[CHANNELS * 25], before[CHANNELS * 25];
            mica_conv_taps w = random_taps(in, weights, &r);
            memcpy(before, weights, sizeof before);
            ptrdiff_t step = test_chance(&r, 30) ? 2 : 1;
            size_t pixels = in->rows.count * in->columns.count, size = IMAGES * pixels * (size_t)step;
            float *memory = malloc(size * sizeof *memory);
            for (size_t i = 0; i < size; i++)
                memory[i] = (float)test_normal(&r);
            mica_conv_planes dy = {.data = memory,
                                   .image_stride = (ptrdiff_t)pixels * step,
                                   .row_stride = (ptrdiff_t)in->columns.count * step,
                                   .column_stride = step};
            bool accumulate = test_chance(&r, 40);
            k->taps->gradient(&w, in, &dy, IMAGES, accumulate);
            for (size_t i = 0; i < in->rows.taps * in->columns.taps; i++) {
                size_t tap[2] = {i / in->columns.taps, i % in->columns.taps};
                double want = (accumulate ? (double)before[i] : 0.0) + gradient_of(in, &dy, tap);
                CHECK_MSG(fabs((double)weights[i] - want) <= 3e-6 * (20.0 + sqrt((double)(IMAGES * pixels))),
                          "%s: scene %d: tap %zu is %g, wanted %g", k->isa, n, i, (double)weights[i], want);
            }
            free(memory);
            free(s.memory);
        }
    }
}

TEST(kernel_conv_sum_and_add)
{
    static const size_t sizes[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 1023, 1024, 1025, 3000};
    EACH_KERNELS(k)
    {
        test_random r = test_seed(4);
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            for (size_t stride = 1; stride <= 2; stride++) {
                size_t n = sizes[s];
                float *a = malloc((n * stride + 1) * sizeof *a), *b = malloc((n * stride + 1) * sizeof *b);
                float *c = malloc((n * stride + 1) * sizeof *c);
                double want = 0.0;
                for (size_t i = 0; i < n * stride + 1; i++) {
                    c[i] = a[i] = (float)test_normal(&r);
                    b[i] = (float)test_normal(&r);
                    want += i % stride == 0 && i < n * stride ? (double)a[i] : 0.0;
                }
                double got = k->conv->sum(a, (ptrdiff_t)stride, n);
                CHECK_MSG(fabs(got - want) <= 1e-5 * (1.0 + sqrt((double)n)), "%s: %zu: %g, wanted %g",
                          k->isa, n, got, want);
                k->conv->add(c, (ptrdiff_t)stride, b, (ptrdiff_t)stride, n);
                for (size_t i = 0; i < n * stride + 1; i++)
                    CHECK(c[i] == (i % stride == 0 && i < n * stride ? a[i] + b[i] : a[i]));
                free(a);
                free(b);
                free(c);
            }
        }
    }
}
