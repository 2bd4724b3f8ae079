/* Pooling by two by two takes whole vectors also where rows are narrower: every width, in memory that ends with the
 * last element (which the address sanitizer guards), and indices that no such pooling gives. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { PLANES = 3 };

typedef struct pooled {
    mica_index height, width; /* of the results */
    float *x, *y, *dx, *want;
    int32_t *index;
} pooled;

static void *exactly(size_t count) { return aligned_alloc(4, count * 4); }

static pooled make(mica_index height, mica_index width, test_random *r)
{
    size_t out = (size_t)(PLANES * height * width);
    pooled p = {height,           width,       exactly(4 * out), exactly(out), exactly(4 * out),
                exactly(4 * out), exactly(out)};
    for (size_t i = 0; i < 4 * out; i++)
        p.x[i] = (float)test_int(r, -4, 4);
    return p;
}

static void release(pooled *p)
{
    free(p->x);
    free(p->y);
    free(p->dx);
    free(p->want);
    free(p->index);
}

/* Of equal ones the first. */
static bool is_largest(const pooled *p, mica_index plane, mica_index oy, mica_index ox)
{
    mica_index in = 2 * p->width, at = (plane * p->height + oy) * p->width + ox;
    const float *x = p->x + plane * 4 * p->height * p->width;
    mica_index best = 2 * (oy * in + ox);
    const mica_index others[] = {best + 1, best + in, best + in + 1};
    for (int i = 0; i < 3; i++)
        best = x[others[i]] > x[best] ? others[i] : best;
    return p->index[at] == best && p->y[at] == x[best];
}

static void check_backward(mica_context *ctx, const pooled *p)
{
    size_t out = (size_t)(p->height * p->width);
    mica_tensor dx = mica_4d(p->dx, 1, PLANES, 2 * p->height, 2 * p->width);
    mica_tensor dy = mica_4d(p->y, 1, PLANES, p->height, p->width), index = dy;
    index.data = p->index;
    index.dtype = MICA_I32;
    memset(p->want, 0, PLANES * 4 * out * sizeof *p->want);
    for (size_t i = 0; i < PLANES * out; i++)
        p->want[i / out * 4 * out + (size_t)p->index[i]] += p->y[i];
    CHECK_OK(ctx, mica_max_pool2d_backward(ctx, &dx, &dy, &index));
    CHECK_MSG(memcmp(p->dx, p->want, PLANES * 4 * out * sizeof *p->want) == 0, "%td x %td", p->height,
              p->width);
}

/* Rows that fill vectors, in planes that threads divide. */
TEST(ops_max_pool_by_two_divides_planes)
{
    test_random r = test_seed(6);
    mica_pooling_opts opts = {.kernel = {2, 2}, .stride = {2, 2}};
    for (int threads = 1; threads <= 3; threads++) {
        mica_context *ctx = test_context(threads);
        for (mica_index width = 8; width <= 64; width += 8) {
            mica_index height = 4096 / width + 1;
            pooled p = make(height, width, &r);
            mica_tensor x = mica_4d(p.x, 1, PLANES, 2 * height, 2 * width),
                        y = mica_4d(p.y, 1, PLANES, height, width), index = y;
            index.data = p.index;
            index.dtype = MICA_I32;
            CHECK_OK(ctx, mica_max_pool2d(ctx, &y, &index, &x, &opts));
            int wrong = 0;
            for (mica_index i = 0; i < PLANES * height * width; i++)
                wrong += !is_largest(&p, i / (height * width), i / width % height, i % width);
            CHECK_MSG(wrong == 0, "%td x %td, %d threads: %d windows", height, width, threads, wrong);
            release(&p);
        }
    }
}

TEST(ops_max_pool_by_two_takes_any_width)
{
    mica_context *ctx = test_context(2);
    test_random r = test_seed(5);
    for (mica_index height = 1; height <= 4; height++) {
        for (mica_index width = 1; width <= 35; width++) {
            pooled p = make(height, width, &r);
            mica_tensor x = mica_4d(p.x, 1, PLANES, 2 * height, 2 * width),
                        y = mica_4d(p.y, 1, PLANES, height, width);
            mica_tensor index = y;
            index.data = p.index;
            index.dtype = MICA_I32;
            mica_pooling_opts opts = {.kernel = {2, 2}, .stride = {2, 2}};
            CHECK_OK(ctx, mica_max_pool2d(ctx, &y, &index, &x, &opts));
            int wrong = 0;
            for (mica_index i = 0; i < PLANES * height * width; i++)
                wrong += !is_largest(&p, i / (height * width), i / width % height, i % width);
            CHECK_MSG(wrong == 0, "%td x %td: %d windows", height, width, wrong);
            check_backward(ctx, &p);
            mica_index odd = test_int(&r, 0, (int)(PLANES * height * width) - 1);
            p.index[odd] = test_int(&r, 0, (int)(4 * height * width) - 1);
            check_backward(ctx, &p);
            CHECK_OK(ctx, mica_max_pool2d(ctx, &y, NULL, &x, &opts));
            release(&p);
        }
    }
}

/* The values alone, which have loops of their own, are those that come with indices: NaNs, borders, rows of every
 * length. */
TEST(ops_max_pool_gives_the_same_values_without_indices)
{
    mica_context *ctx = test_context(2);
    test_random r = test_seed(7);
    for (int number = 0; number < test_effort(3000); number++) {
        mica_pooling_opts opts = {.kernel = {test_int(&r, 1, 4), test_int(&r, 1, 4)},
                                  .stride = {test_int(&r, 1, 3), test_int(&r, 1, 2)}};
        mica_index in[2], out[2];
        for (int d = 0; d < 2; d++) {
            opts.pad[d] = test_int(&r, 0, (int)opts.kernel[d] / 2);
            opts.dilation[d] = test_chance(&r, 85) ? 1 : 2;
            in[d] = test_int(&r, 8, d == 0 ? 12 : 90);
            out[d] =
                (in[d] + 2 * opts.pad[d] - (opts.kernel[d] - 1) * opts.dilation[d] - 1) / opts.stride[d] + 1;
        }
        size_t from = (size_t)(PLANES * in[0] * in[1]), to = (size_t)(PLANES * out[0] * out[1]);
        float *data = exactly(from), *values = exactly(to), *alone = exactly(to);
        int32_t *picks = exactly(to);
        int rarely = test_int(&r, 0, 2);
        for (size_t i = 0; i < from; i++)
            data[i] = test_int(&r, 0, 99) < rarely ? NAN : (float)test_int(&r, -9, 9);
        mica_tensor x = mica_4d(data, 1, PLANES, in[0], in[1]),
                    y = mica_4d(values, 1, PLANES, out[0], out[1]);
        mica_tensor index = y, only = y;
        index.data = picks;
        index.dtype = MICA_I32;
        only.data = alone;
        CHECK_OK(ctx, mica_max_pool2d(ctx, &y, &index, &x, &opts));
        CHECK_OK(ctx, mica_max_pool2d(ctx, &only, NULL, &x, &opts));
        size_t wrong = 0;
        for (size_t i = 0; i < to; i++)
            wrong += (isnan(values[i]) ? !isnan(alone[i]) : alone[i] != values[i]) ? 1 : 0;
        CHECK_MSG(wrong == 0, "%td x %td to %td x %td: %zu of %zu differ", in[0], in[1], out[0], out[1],
                  wrong, to);
        free(data);
        free(values);
        free(alone);
        free(picks);
    }
}

/* The sums are small integers, and exact. */
TEST(ops_avg_pool_by_two_takes_any_width)
{
    mica_context *ctx = test_context(2);
    test_random r = test_seed(6);
    for (mica_index height = 1; height <= 4; height++) {
        for (mica_index width = 1; width <= 35; width++) {
            pooled p = make(height, width, &r);
            mica_tensor x = mica_4d(p.x, 1, PLANES, 2 * height, 2 * width),
                        y = mica_4d(p.y, 1, PLANES, height, width);
            CHECK_OK(ctx, mica_avg_pool2d(ctx, &y, &x, &(mica_pooling_opts){.kernel = {2, 2}}));
            int wrong = 0;
            for (mica_index row = 0; row < PLANES * height; row++)
                for (mica_index i = 0; i < width; i++) {
                    const float *upper = p.x + 4 * row * width + 2 * i, *lower = upper + 2 * width;
                    wrong += p.y[row * width + i] != (upper[0] + upper[1] + lower[0] + lower[1]) / 4.0f;
                }
            CHECK_MSG(wrong == 0, "%td x %td: %d wrong", height, width, wrong);
            release(&p);
        }
    }
}
