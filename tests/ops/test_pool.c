/* Pooling by two by two takes whole vectors also where rows are narrower: every width, in memory that ends with the
 * last element (which the address sanitizer guards), and indices that no such pooling gives. */
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
