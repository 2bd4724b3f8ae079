/* The scratch of convolutions: every smaller batch, and many smaller images, of shapes that go every path. */
#include "ops/conv/conv.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

typedef struct shape {
    mica_index in, out, groups;
    mica_index kernel[2], stride, pad, dilation;
} shape;

static const shape shapes[] = {
    {1, 6, 1, {5, 5}, 1, 2, 1},    {1, 8, 1, {3, 3}, 1, 1, 1},    {3, 16, 1, {3, 3}, 1, 1, 1},
    {8, 16, 1, {3, 3}, 1, 1, 1},   {6, 16, 1, {5, 5}, 1, 0, 1},   {16, 16, 1, {3, 3}, 1, 1, 1},
    {16, 32, 1, {3, 3}, 2, 1, 1},  {32, 32, 1, {3, 3}, 1, 1, 1},  {32, 64, 1, {3, 3}, 2, 1, 1},
    {64, 64, 1, {3, 3}, 1, 1, 1},  {64, 128, 1, {3, 3}, 1, 1, 1}, {128, 256, 1, {3, 3}, 1, 1, 1},
    {16, 32, 1, {1, 1}, 2, 0, 1},  {32, 64, 1, {1, 1}, 1, 0, 1},  {256, 64, 1, {1, 1}, 1, 0, 1},
    {64, 256, 1, {1, 1}, 1, 0, 1}, {3, 64, 1, {7, 7}, 2, 3, 1},   {32, 32, 32, {3, 3}, 1, 1, 1},
    {32, 64, 32, {3, 3}, 1, 1, 1}, {32, 64, 4, {3, 3}, 1, 1, 1},  {128, 128, 8, {3, 3}, 1, 1, 1},
    {24, 40, 2, {5, 3}, 2, 1, 1},  {16, 16, 1, {3, 3}, 1, 2, 2},  {64, 64, 1, {1, 3}, 1, 0, 1},
    {20, 30, 1, {3, 5}, 1, 1, 1},  {2, 2, 1, {3, 3}, 1, 1, 1},    {16, 700, 1, {1, 1}, 1, 0, 1},
    {700, 16, 1, {3, 3}, 1, 1, 1}, {48, 48, 48, {3, 3}, 2, 1, 1}, {40, 40, 40, {5, 5}, 1, 2, 1},
    {24, 24, 24, {5, 5}, 2, 2, 1}, {32, 32, 32, {3, 3}, 1, 2, 2}, {20, 20, 20, {7, 7}, 1, 3, 1},
};

/* ---- The operations ---- */

typedef struct images {
    mica_tensor x, y, w, bias;
    mica_conv2d_opts opts;
    float *other; /* for what else is made; NULL while measuring */
} images;

static mica_index made(const shape *s, int axis, mica_index size)
{
    return (size + 2 * s->pad - s->dilation * (s->kernel[axis] - 1) - 1) / s->stride + 1;
}

static images images_of(const shape *s, mica_index batch, mica_index height, mica_index width)
{
    return (images){.x = mica_4d(NULL, batch, s->in, height, width),
                    .y = mica_4d(NULL, batch, s->out, made(s, 0, height), made(s, 1, width)),
                    .w = mica_4d(NULL, s->out, s->in / s->groups, s->kernel[0], s->kernel[1]),
                    .bias = mica_1d(NULL, s->out),
                    .opts = {.stride = {s->stride, s->stride},
                             .pad = {s->pad, s->pad},
                             .dilation = {s->dilation, s->dilation},
                             .groups = s->groups}};
}

static mica_status forward(mica_context *ctx, const images *i)
{
    return mica_conv2d(ctx, &i->y, &i->x, &i->w, &i->bias, &i->opts);
}
static mica_status by_input(mica_context *ctx, const images *i)
{
    return mica_conv2d_backward_input(ctx, &i->x, &i->y, &i->w, &i->opts);
}
static mica_status by_weight(mica_context *ctx, const images *i)
{
    return mica_conv2d_backward_weight(ctx, &i->w, &i->y, &i->x, &i->opts);
}
static mica_status mean(mica_context *ctx, const images *i)
{
    mica_tensor dst = mica_2d(i->other, i->y.dim[0], i->y.dim[1]);
    return mica_conv2d_mean(ctx, &dst, &i->x, &i->w, &i->bias, &i->opts);
}
static mica_status max_pool(mica_context *ctx, const images *i)
{
    mica_pooling_opts pool = {.kernel = {2, 2}};
    mica_tensor dst = mica_4d(i->other, i->y.dim[0], i->y.dim[1], i->y.dim[2] / 2, i->y.dim[3] / 2);
    mica_conv_pool_args args = {&i->x, &i->w, &i->bias, &i->opts, &pool};
    return mica_conv2d_max_pool(ctx, &dst, NULL, &args);
}
/* The image that a convolution reads is what its transposed one makes, but for what a stride leaves over. */
static mica_status transposed(mica_context *ctx, const images *i)
{
    mica_tensor made = i->x;
    for (int d = 2; d < 4; d++) {
        mica_index span = i->opts.dilation[d - 2] * (i->w.dim[d] - 1) + 1;
        made.dim[d] = (i->y.dim[d] - 1) * i->opts.stride[d - 2] - 2 * i->opts.pad[d - 2] + span;
    }
    made = mica_4d(i->other, made.dim[0], made.dim[1], made.dim[2], made.dim[3]);
    return mica_conv_transpose2d(ctx, &made, &i->y, &i->w, NULL, &i->opts);
}

/* Rows become images: one dimension. */
static void flatten(mica_tensor *t3, const mica_tensor *t)
{
    *t3 = mica_3d(t->data, t->dim[0], t->dim[1], t->dim[3]);
}
static mica_status in_a_row(mica_context *ctx, const images *i, int which)
{
    mica_tensor x, y, w = mica_3d(i->w.data, i->w.dim[0], i->w.dim[1], i->w.dim[3]);
    mica_conv1d_opts opts = {.stride = i->opts.stride[1],
                             .pad = i->opts.pad[1],
                             .dilation = i->opts.dilation[1],
                             .groups = i->opts.groups};
    flatten(&x, &i->x);
    flatten(&y, &i->y);
    return which == 0   ? mica_conv1d(ctx, &y, &x, &w, NULL, &opts)
           : which == 1 ? mica_conv1d_backward_input(ctx, &x, &y, &w, &opts)
                        : mica_conv1d_backward_weight(ctx, &w, &y, &x, &opts);
}
static mica_status row_forward(mica_context *ctx, const images *i) { return in_a_row(ctx, i, 0); }
static mica_status row_by_input(mica_context *ctx, const images *i) { return in_a_row(ctx, i, 1); }
static mica_status row_by_weight(mica_context *ctx, const images *i) { return in_a_row(ctx, i, 2); }

static const struct {
    const char *name;
    mica_status (*measure)(mica_context *ctx, const images *i);
} ops[] = {
    {"conv2d", forward},
    {"conv2d_backward_input", by_input},
    {"conv2d_backward_weight", by_weight},
    {"conv2d_mean", mean},
    {"conv2d_max_pool", max_pool},
    {"conv_transpose2d", transposed},
    {"conv1d", row_forward},
    {"conv1d_backward_input", row_by_input},
    {"conv1d_backward_weight", row_by_weight},
};

enum { OPS = sizeof ops / sizeof ops[0], SHAPES = sizeof shapes / sizeof shapes[0] };

static size_t measured(mica_context *ctx, size_t op, const shape *s, mica_index batch, mica_index height,
                       mica_index width)
{
    images i = images_of(s, batch, height, width);
    mica_measure_begin(ctx);
    CHECK_OK(ctx, ops[op].measure(ctx, &i));
    return mica_measure_end(ctx);
}

/* ---- Smaller ones ---- */

static bool compare(mica_context *ctx, size_t op, size_t number, const mica_index large[3],
                    const mica_index less[3])
{
    const shape *s = &shapes[number];
    size_t planned = measured(ctx, op, s, large[0], large[1], large[2]);
    size_t needed = measured(ctx, op, s, less[0], less[1], less[2]);
    return CHECK_MSG(
        needed <= planned,
        "%s, shape %zu, %s, %d threads: %zu bytes for %td images of %td x %td, but %zu for %td of "
        "%td x %td",
        ops[op].name, number, mica_context_isa(ctx), mica_context_threads(ctx), planned, large[0], large[1],
        large[2], needed, less[0], less[1], less[2]);
}

/* Every smaller batch of some sizes; smaller images, too, of some of them. */
static void check_shape(mica_context *ctx, size_t op, size_t number)
{
    static const mica_index sizes[][2] = {{8, 8}, {14, 14}, {16, 16}, {28, 28}, {32, 32}, {9, 40}, {50, 11}};
    test_random r = test_seed(number);
    bool good = true;
    for (size_t i = 0; good && i < sizeof sizes / sizeof sizes[0]; i++) {
        mica_index large[3] = {33, sizes[i][0], sizes[i][1]};
        for (mica_index batch = 1; good && batch <= large[0]; batch++)
            good = compare(ctx, op, number, large, (mica_index[]){batch, large[1], large[2]});
        for (int k = 0; good && k < test_effort(60); k++) {
            mica_index sub[3] = {test_int(&r, 1, 33), test_int(&r, 7, (int)large[1]),
                                 test_int(&r, 7, (int)large[2])};
            mica_index most[3] = {test_int(&r, (int)sub[0], 200), test_int(&r, (int)sub[1], 120),
                                  test_int(&r, (int)sub[2], 300)};
            good = compare(ctx, op, number, large, sub) && compare(ctx, op, number, most, sub);
        }
    }
}

TEST(conv_needs_no_more_scratch_for_smaller_sizes)
{
    static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};
    static const int threads[] = {1, 2, 3, 8};
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
        for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
            mica_context *ctx;
            mica_context_opts opts = {.threads = threads[t], .isa = isas[i]};
            if (mica_context_create(&ctx, &opts) != MICA_OK)
                continue;
            for (size_t op = 0; op < OPS; op++)
                for (size_t number = 0; number < SHAPES; number++)
                    check_shape(ctx, op, number);
            mica_context_destroy(ctx);
        }
    }
}

/* ---- Runs ---- */

/* Calls with exactly what was measured, in memory that ends with it (which the address sanitizer guards). */
static void run_measured(mica_context *ctx, size_t op, size_t number, const mica_index size[3])
{
    enum { GUARD = 64 };
    size_t bytes = measured(ctx, op, &shapes[number], size[0], size[1], size[2]);
    unsigned char *block = aligned_alloc(64, (bytes + 63) / 64 * 64 + GUARD);
    images i = images_of(&shapes[number], size[0], size[1], size[2]);
    mica_tensor *tensors[] = {&i.x, &i.y, &i.w, &i.bias};
    for (int k = 0; k < 4; k++)
        tensors[k]->data = calloc(mica_tensor_count(tensors[k]), sizeof(float));
    i.other = calloc(mica_tensor_count(&i.x) + mica_tensor_count(&i.y), sizeof(float));
    memset(block, 0x5a, bytes + GUARD);
    CHECK_OK(ctx, mica_workspace_give(ctx, block, bytes));
    CHECK_OK(ctx, ops[op].measure(ctx, &i));
    bool untouched = true;
    for (size_t k = bytes; k < bytes + GUARD; k++)
        untouched = untouched && block[k] == 0x5a;
    CHECK_MSG(untouched,
              "%s, shape %zu, %td images of %td x %td, %d threads: wrote beyond %zu bytes of scratch",
              ops[op].name, number, size[0], size[1], size[2], mica_context_threads(ctx), bytes);
    CHECK_OK(ctx, mica_workspace_give(ctx, NULL, 0));
    for (int k = 0; k < 4; k++)
        free(tensors[k]->data);
    free(i.other);
    free(block);
}

TEST(conv_stays_within_its_scratch)
{
    static const mica_index sizes[][3] = {{1, 8, 8},  {2, 14, 14}, {5, 7, 7},
                                          {3, 9, 19}, {1, 30, 31}, {9, 8, 12}};
    for (int threads = 1; threads <= 8; threads += threads == 1 ? 2 : 5) {
        mica_context *ctx = test_context(threads);
        for (size_t op = 0; op < OPS; op++)
            for (size_t number = 0; number < SHAPES; number++)
                for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
                    if ((i + number + op) % (test_effort(100) == 100 ? 3 : 12) == 0)
                        run_measured(ctx, op, number, sizes[i]);
    }
}

/* Where nothing smaller can follow, a call asks for what it takes itself: never more than for all smaller ones, and
 * enough. */
TEST(conv_of_one_size_asks_for_no_more)
{
    static const mica_index sizes[][3] = {{1, 8, 8},  {1, 14, 14}, {1, 28, 28},
                                          {1, 9, 40}, {3, 16, 16}, {1, 32, 32}};
    for (int threads = 1; threads <= 8; threads += threads == 1 ? 1 : 6) {
        mica_context *ctx = test_context(threads);
        for (size_t op = 0; op < OPS; op++)
            for (size_t number = 0; number < SHAPES; number++)
                for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
                    const mica_index *size = sizes[i];
                    size_t most = measured(ctx, op, &shapes[number], size[0], size[1], size[2]);
                    ctx->one_size = true;
                    size_t own = measured(ctx, op, &shapes[number], size[0], size[1], size[2]);
                    CHECK_MSG(own <= most, "%s, shape %zu, size %zu: %zu bytes, but %zu with smaller sizes",
                              ops[op].name, number, i, own, most);
                    if ((i + number + op) % (test_effort(100) == 100 ? 3 : 12) == 0)
                        run_measured(ctx, op, number, size);
                    ctx->one_size = false;
                }
    }
}

/* ---- Threads ---- */

/* Products that threads make one by one once took the scratch of all threads for each of them. */
TEST(conv_scratch_grows_slowly_with_threads)
{
    mica_context *one = test_context(1), *eight = test_context(8);
    if (mica_context_threads(eight) == 1) {
        test_skip("a build without threads");
        return;
    }
    for (size_t op = 0; op < OPS; op++) {
        for (size_t number = 0; number < SHAPES; number++) {
            size_t alone = measured(one, op, &shapes[number], 32, 28, 28);
            size_t shared = measured(eight, op, &shapes[number], 32, 28, 28);
            CHECK_MSG(shared <= 8 * alone, "%s, shape %zu: %zu bytes for one thread, %zu for eight",
                      ops[op].name, number, alone, shared);
        }
    }
}
