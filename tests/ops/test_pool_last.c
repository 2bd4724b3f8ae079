/* Pooling, means and sums of images that lie channels last: random shapes against what the same gives of planes, with
 * the kernels of every instruction set that runs here, and the same bits for any number of threads. */
#include <mica/ops/conv.h>
#include <mica/ops/pool.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "isa_context.h"
#include "ops/conv/prepare.h"
#include "test.h"

typedef struct image {
    mica_tensor t;
    size_t floats;
} image;

/* Channels last, at times as some of more channels, with gaps between rows and images; or in planes. */
static image image_of(test_random *r, const mica_index *dim, bool last, bool gaps)
{
    mica_index more = last && gaps ? test_int(r, 0, 5) : 0,
               between = last && gaps ? test_int(r, 0, 1) * 3 : 0;
    mica_index pixel = dim[1] + more, row = dim[3] * pixel + between, all = dim[2] * row + between;
    image i = {.floats = (size_t)(dim[0] * all)};
    float *data = calloc(i.floats + 1, sizeof *data);
    i.t = mica_4d(data, dim[0], dim[1], dim[2], dim[3]);
    if (last) {
        mica_index strides[4] = {all, 1, row, pixel};
        memcpy(i.t.stride, strides, sizeof strides);
    }
    return i;
}

static float *at(const mica_tensor *t, mica_index a, mica_index b, mica_index c, mica_index d)
{
    return (float *)t->data + a * t->stride[0] + b * t->stride[1] + c * t->stride[2] + d * t->stride[3];
}

/* The largest difference of two tensors of one shape; infinite where one of them alone is NaN. */
static double difference(const mica_tensor *a, const mica_tensor *b)
{
    double most = 0.0;
    for (mica_index n = 0; n < a->dim[0]; n++)
        for (mica_index c = 0; c < a->dim[1]; c++)
            for (mica_index i = 0; i < a->dim[2]; i++)
                for (mica_index j = 0; j < a->dim[3]; j++) {
                    double x = (double)*at(a, n, c, i, j), y = (double)*at(b, n, c, i, j);
                    if (isnan(x) != isnan(y))
                        return INFINITY;
                    if (x != y && !isnan(x))
                        most = fmax(most, fabs(x - y));
                }
    return most;
}

/* Both with the same numbers, NaNs and infinities among them at times. */
static void fill(test_random *r, const mica_tensor *a, const mica_tensor *b)
{
    bool special = test_chance(r, 20);
    for (mica_index n = 0; n < a->dim[0]; n++)
        for (mica_index c = 0; c < a->dim[1]; c++)
            for (mica_index i = 0; i < a->dim[2]; i++)
                for (mica_index j = 0; j < a->dim[3]; j++) {
                    float v = (float)test_normal(r);
                    if (special && test_chance(r, 3))
                        v = test_chance(r, 50) ? NAN : -INFINITY;
                    *at(a, n, c, i, j) = *at(b, n, c, i, j) = v;
                }
}

/* ---- Windows ---- */

static mica_pooling_opts draw_windows(test_random *r, const mica_index *dim, bool largest)
{
    for (;;) {
        mica_pooling_opts o = {.ceil_mode = test_chance(r, 30), .exclude_pad = test_chance(r, 50)};
        for (int d = 0; d < 2; d++) {
            o.kernel[d] = test_int(r, 1, 4);
            o.stride[d] = test_int(r, 1, 3);
            o.dilation[d] = largest ? test_int(r, 1, 2) : 1;
            o.pad[d] = test_int(r, 0, (int)((o.kernel[d] - 1) * o.dilation[d] + 1) / 2);
        }
        if (mica_pooling_size(dim[2], 0, &o) > 0 && mica_pooling_size(dim[3], 1, &o) > 0)
            return o;
    }
}

static mica_status pool(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                        const mica_pooling_opts *o, bool largest)
{
    return largest ? mica_max_pool2d(ctx, y, NULL, x, o) : mica_avg_pool2d(ctx, y, x, o);
}

static void check_windows(mica_context *const *ctx, test_random *r, int number)
{
    bool largest = test_chance(r, 50), gaps = test_chance(r, 50);
    mica_index dim[4] = {test_int(r, 0, 3), test_int(r, 2, 80), test_int(r, 1, 15), test_int(r, 1, 15)};
    mica_pooling_opts o = draw_windows(r, dim, largest);
    mica_index made[4] = {dim[0], dim[1], mica_pooling_size(dim[2], 0, &o), mica_pooling_size(dim[3], 1, &o)};
    image planes = image_of(r, dim, false, false), last = image_of(r, dim, true, gaps);
    image want = image_of(r, made, false, false), got[2];
    fill(r, &planes.t, &last.t);
    CHECK_OK(ctx[0], pool(ctx[0], &want.t, &planes.t, &o, largest));
    got[0] = image_of(r, made, true, false);
    got[1] = image_of(r, made, true, false);
    for (int k = 0; k < 2; k++) {
        mica_measure_begin(ctx[k]);
        CHECK_OK(ctx[k], pool(ctx[k], &got[k].t, &last.t, &o, largest));
        CHECK_MSG(mica_measure_end(ctx[k]) == 0, "call %d takes scratch", number);
        CHECK_OK(ctx[k], pool(ctx[k], &got[k].t, &last.t, &o, largest));
    }
    double off = difference(&want.t, &got[0].t);
    CHECK_MSG(off <= (largest ? 0.0 : 1e-6), "call %d, %s: off by %g", number, largest ? "max" : "average",
              off);
    CHECK_MSG(memcmp(got[0].t.data, got[1].t.data, got[0].floats * sizeof(float)) == 0,
              "call %d: threads matter", number);
    image *all[] = {&planes, &last, &want, &got[0], &got[1]};
    for (int k = 0; k < 5; k++)
        free(all[k]->t.data);
}

/* ---- Means, alone and of a convolution ---- */

static void check_means(mica_context *const *ctx, test_random *r, int number)
{
    mica_index dim[4] = {test_int(r, 0, 3), test_int(r, 2, 300), test_int(r, 1, 15), test_int(r, 1, 15)};
    image planes = image_of(r, dim, false, false), last = image_of(r, dim, true, test_chance(r, 50));
    fill(r, &planes.t, &last.t);
    mica_index made[4] = {dim[0], dim[1], 1, 1};
    image want = image_of(r, made, false, false),
          got[2] = {image_of(r, made, false, false), image_of(r, made, false, false)};
    CHECK_OK(ctx[0], mica_global_avg_pool(ctx[0], &want.t, &planes.t));
    for (int k = 0; k < 2; k++)
        CHECK_OK(ctx[k], mica_global_avg_pool(ctx[k], &got[k].t, &last.t));
    double off = difference(&want.t, &got[0].t);
    CHECK_MSG(off <= 1e-6, "call %d, [%td, %td, %td, %td]: means off by %g", number, dim[0], dim[1], dim[2],
              dim[3], off);
    CHECK_MSG(memcmp(got[0].t.data, got[1].t.data, got[0].floats * sizeof(float)) == 0,
              "call %d: threads matter", number);
    image *all[] = {&planes, &last, &want, &got[0], &got[1]};
    for (int k = 0; k < 5; k++)
        free(all[k]->t.data);
}

/* Of a convolution of x: with weights as they lie, and prepared. */
static void conv_means(mica_context *ctx, const mica_tensor *y, const mica_tensor *x, const mica_tensor *w,
                       int row, const mica_tensor *prepared, const mica_conv2d_opts *o)
{
    mica_conv_tensors t = {y, x, w, NULL};
    mica_measure_begin(ctx);
    CHECK_OK(ctx, prepared == NULL ? mica_conv2d_mean(ctx, y, x, w, NULL, o)
                                   : mica_conv_prepared_mean(ctx, &t, prepared, row, o));
    size_t bytes = mica_measure_end(ctx);
    void *block = aligned_alloc(64, (bytes + 64) / 64 * 64);
    CHECK_OK(ctx, mica_workspace_give(ctx, block, bytes));
    CHECK_OK(ctx, prepared == NULL ? mica_conv2d_mean(ctx, y, x, w, NULL, o)
                                   : mica_conv_prepared_mean(ctx, &t, prepared, row, o));
    CHECK_OK(ctx, mica_workspace_give(ctx, NULL, 0));
    free(block);
}

static void check_conv_means(mica_context *const *ctx, test_random *r, int number)
{
    mica_index dim[4] = {test_int(r, 0, 3), test_int(r, 2, 60), test_int(r, 3, 12), test_int(r, 3, 12)};
    mica_index k = test_int(r, 0, 1) * 2 + 1, m = test_int(r, 1, 150);
    mica_conv2d_opts o = {.pad = {k / 2, k / 2}, .activation = test_chance(r, 50) ? MICA_RELU6 : MICA_SILU};
    image planes = image_of(r, dim, false, false), last = image_of(r, dim, true, test_chance(r, 30));
    mica_index taps[4] = {m, dim[1], k, k}, made[4] = {dim[0], m, 1, 1},
               whole[4] = {dim[0], m, dim[2], dim[3]};
    image w = image_of(r, taps, false, false);
    for (size_t i = 0; i < planes.floats; i++)
        ((float *)planes.t.data)[i] = (float)test_normal(r);
    for (mica_index n = 0; n < dim[0] * dim[1] * dim[2] * dim[3]; n++) {
        mica_index j = n % dim[3], i = n / dim[3] % dim[2], c = n / dim[3] / dim[2] % dim[1];
        mica_index of = n / dim[3] / dim[2] / dim[1];
        *at(&last.t, of, c, i, j) = *at(&planes.t, of, c, i, j);
    }
    for (size_t i = 0; i < w.floats; i++)
        ((float *)w.t.data)[i] = (float)test_normal(r);
    image want = image_of(r, made, false, false), got[3];
    conv_means(ctx[0], &want.t, &planes.t, &w.t, 0, NULL, &o);
    image all_of = image_of(r, whole, true, false);
    mica_conv_tensors t = {&all_of.t, &last.t, &w.t, NULL};
    size_t floats = 0;
    int row;
    CHECK_OK(ctx[0], mica_conv_prepare_choose(ctx[0], &row, &floats, &t, &o));
    float *prepared = aligned_alloc(64, (floats * sizeof *prepared + 64) / 64 * 64);
    mica_tensor panels = mica_1d(prepared, (mica_index)floats);
    if (row >= 0)
        CHECK_OK(ctx[0], mica_conv_prepare(ctx[0], &panels, row, &t, &o));
    for (int i = 0; i < 3; i++) {
        got[i] = image_of(r, made, false, false);
        conv_means(ctx[i % 2], &got[i].t, &last.t, &w.t, row, i == 2 && row >= 0 ? &panels : NULL, &o);
    }
    double off = difference(&want.t, &got[0].t), products = (double)(dim[1] * k * k);
    CHECK_MSG(off <= 1e-5 * sqrt(products), "call %d: means of a convolution off by %g", number, off);
    CHECK_MSG(memcmp(got[0].t.data, got[1].t.data, got[0].floats * sizeof(float)) == 0,
              "call %d: threads matter", number);
    CHECK_MSG(memcmp(got[0].t.data, got[2].t.data, got[0].floats * sizeof(float)) == 0,
              "call %d: prepared weights matter", number);
    free(prepared);
    image *all[] = {&planes, &last, &w, &want, &all_of, &got[0], &got[1], &got[2]};
    for (int i = 0; i < 8; i++)
        free(all[i]->t.data);
}

TEST(pool_channels_last)
{
    static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
        mica_context *ctx[2] = {isa_context(isas[i], 1), isa_context(isas[i], 3)};
        test_random r = test_seed(21);
        for (int number = 0; ctx[0] != NULL && number < test_effort(150); number++) {
            check_windows(ctx, &r, number);
            check_means(ctx, &r, number);
        }
        for (int number = 0; ctx[0] != NULL && number < test_effort(60); number++)
            check_conv_means(ctx, &r, number);
        for (int k = 0; k < 2; k++)
            mica_context_destroy(ctx[k]);
    }
}
