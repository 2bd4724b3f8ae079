/* Images of one column: the same sums, and so the same bits, as images of one row; and no more scratch than wider
 * images were planned with. */
#include <stdlib.h>
#include <string.h>

#include "test.h"

typedef struct shape {
    mica_index batch, in, out, groups, length, kernel, stride, pad, dilation;
} shape;

static shape draw(test_random *r)
{
    shape s = {.batch = test_int(r, 1, 4), .groups = test_int(r, 1, 2), .length = test_int(r, 1, 90)};
    s.in = s.groups * test_int(r, 1, 40);
    s.out = s.groups * test_int(r, 1, 50);
    s.stride = test_int(r, 1, 3);
    s.pad = test_int(r, 0, 3);
    s.dilation = test_int(r, 1, 2);
    mica_index most = (s.length + 2 * s.pad - 1) / s.dilation + 1;
    s.kernel = test_int(r, 1, (int)(most < 7 ? most : 7));
    return s;
}

static mica_index made(const shape *s)
{
    return (s->length + 2 * s->pad - s->dilation * (s->kernel - 1) - 1) / s->stride + 1;
}

static float *floats(test_random *r, mica_index count)
{
    float *p = malloc((size_t)count * sizeof *p);
    for (mica_index i = 0; i < count; i++)
        p[i] = (float)test_normal(r);
    return p;
}

/* As one column, of width `width`, or as one row. */
typedef struct images {
    mica_tensor x, y, w, bias;
    mica_conv2d_opts opts;
} images;

static images images_of(const shape *s, bool column, mica_index width)
{
    mica_index k = s->kernel, l = s->length, m = made(s), c = s->in / s->groups;
    images i = {.bias = mica_1d(NULL, s->out),
                .opts = {.stride = {column ? s->stride : 1, s->stride},
                         .pad = {column ? s->pad : 0, column ? 0 : s->pad},
                         .dilation = {s->dilation, s->dilation},
                         .groups = s->groups,
                         .activation = MICA_RELU}};
    i.x = column ? mica_4d(NULL, s->batch, s->in, l, width) : mica_4d(NULL, s->batch, s->in, 1, l);
    i.y = column ? mica_4d(NULL, s->batch, s->out, m, (width - 1) / s->stride + 1)
                 : mica_4d(NULL, s->batch, s->out, 1, m);
    i.w = column ? mica_4d(NULL, s->out, c, k, 1) : mica_4d(NULL, s->out, c, 1, k);
    return i;
}

static mica_status call(mica_context *ctx, const images *i, bool by_input)
{
    mica_conv2d_opts opts = i->opts;
    if (!by_input)
        return mica_conv2d(ctx, &i->y, &i->x, &i->w, &i->bias, &opts);
    opts.activation = MICA_NO_ACTIVATION;
    return mica_conv2d_backward_input(ctx, &i->x, &i->y, &i->w, &opts);
}

static size_t measured(mica_context *ctx, const images *i, bool by_input)
{
    mica_measure_begin(ctx);
    CHECK_OK(ctx, call(ctx, i, by_input));
    return mica_measure_end(ctx);
}

static void check(mica_context *ctx, const shape *s, test_random *r, bool by_input)
{
    images column = images_of(s, true, 1), row = images_of(s, false, 1);
    float *x = floats(r, (mica_index)mica_tensor_count(&column.x)),
          *y = floats(r, (mica_index)mica_tensor_count(&column.y));
    float *w = floats(r, (mica_index)mica_tensor_count(&column.w)), *bias = floats(r, s->out);
    size_t bytes = mica_tensor_bytes(by_input ? &column.x : &column.y);
    float *got[2] = {malloc(bytes), malloc(bytes)};
    for (int k = 0; k < 2; k++) {
        images *i = k == 0 ? &column : &row;
        i->x.data = by_input ? got[k] : x;
        i->y.data = by_input ? y : got[k];
        i->w.data = w;
        i->bias.data = bias;
        CHECK_OK(ctx, mica_workspace_reserve(ctx, measured(ctx, i, by_input)));
        CHECK_OK(ctx, call(ctx, i, by_input));
    }
    CHECK_MSG(memcmp(got[0], got[1], bytes) == 0,
              "%td images of %td, %td to %td channels, %td taps, stride %td, by_input %d: they differ",
              s->batch, s->length, s->in, s->out, s->kernel, s->stride, by_input);
    free(x);
    free(y);
    free(w);
    free(bias);
    free(got[0]);
    free(got[1]);
}

TEST(conv_of_a_column_is_that_of_a_row)
{
    static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
        mica_context *ctx;
        mica_context_opts opts = {.threads = 2, .isa = isas[i]};
        if (mica_context_create(&ctx, &opts) != MICA_OK)
            continue;
        test_random r = test_seed(i);
        for (int k = 0; k < test_effort(200); k++) {
            shape s = draw(&r);
            if (s.in / s.groups * (s.out / s.groups) == 1) /* depthwise ones are planned as they lie */
                continue;
            check(ctx, &s, &r, k % 2 == 1);
        }
        mica_context_destroy(ctx);
    }
}

TEST(conv_of_a_column_needs_no_more_scratch_than_wider_images)
{
    for (int threads = 1; threads <= 3; threads += 2) {
        mica_context *ctx = test_context(threads);
        test_random r = test_seed((uint64_t)threads);
        for (int k = 0; k < test_effort(2000); k++) {
            shape large = draw(&r), small = large;
            small.batch = test_int(&r, 1, (int)large.batch);
            mica_index least = large.dilation * (large.kernel - 1) + 1 - 2 * large.pad;
            small.length = test_int(&r, least > 1 ? (int)least : 1, (int)large.length);
            images wide = images_of(&large, true, test_int(&r, 1, 9)), column = images_of(&small, true, 1);
            size_t planned = measured(ctx, &wide, k % 2 == 1), needed = measured(ctx, &column, k % 2 == 1);
            CHECK_MSG(needed <= planned, "%zu bytes were planned, %zu are needed", planned, needed);
        }
    }
}
