/* Every path through the matrix product: sizes around tiles, blocks and panels, each operand and dst both ways round,
 * against a plain sum, and the same bits from three threads as from one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

typedef struct shape {
    mica_index m, n, k;
} shape;

static const shape shapes[] = {
    {1, 1, 1},     {2, 3, 4},       {7, 16, 5},      {11, 40, 70},    {13, 17, 64},
    {32, 96, 300}, {150, 70, 40},   {300, 33, 260},  {16, 300, 130},  {5, 200, 64},
    {40, 500, 20}, {170, 400, 100}, {400, 400, 270}, {64, 1, 90},     {1, 64, 90},
    {90, 200, 1},  {19, 900, 33},   {1600, 20, 17},  {30, 2100, 9},   {20, 40, 1000},
    {9, 33, 1601}, {350, 40, 800},  {60, 450, 300},  {45, 1100, 780}, {37, 70, 1024},
};

typedef struct product {
    float *a, *b, *bias, *start, *residual; /* start: what dst holds before, as m rows of n */
    double *want;
    float *got[2]; /* by one thread, and by three */
} product;

static float *random_floats(test_random *r, size_t count)
{
    float *f = malloc((count + 1) * sizeof *f);
    for (size_t i = 0; f != NULL && i < count; i++)
        f[i] = (float)test_uniform(r, -1.0, 1.0);
    return f;
}

static void release(product *p)
{
    float *all[] = {p->a, p->b, p->bias, p->start, p->residual, p->got[0], p->got[1]};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    free(p->want);
}

static product draw(const shape *s, test_random *r)
{
    size_t m = (size_t)s->m, n = (size_t)s->n, k = (size_t)s->k;
    return (product){.a = random_floats(r, m * k),
                     .b = random_floats(r, k * n),
                     .bias = random_floats(r, n),
                     .start = random_floats(r, m * n),
                     .residual = random_floats(r, m * n),
                     .want = malloc(m * n * sizeof(double)),
                     .got = {random_floats(r, m * n), random_floats(r, m * n)}};
}

/* The plain sum of a (m x k) and b (k x n), as they lie without transposing. */
static void multiply(double *want, const shape *s, const product *p)
{
    for (mica_index i = 0; i < s->m; i++) {
        double *row = want + i * s->n;
        memset(row, 0, (size_t)s->n * sizeof *row);
        for (mica_index q = 0; q < s->k; q++)
            for (mica_index j = 0; j < s->n; j++)
                row[j] += (double)p->a[i * s->k + q] * (double)p->b[q * s->n + j];
    }
}

/* A rows x columns matrix as the tensor of its transpose: the same elements, read the other way round. */
static float *turned(const float *from, mica_index rows, mica_index columns)
{
    float *to = malloc(((size_t)(rows * columns) + 1) * sizeof *to);
    for (mica_index i = 0; to != NULL && i < rows; i++)
        for (mica_index j = 0; j < columns; j++)
            to[j * rows + i] = from[i * columns + j];
    return to;
}

enum { TURN_A = 1, TURN_B = 2, TURN_DST = 4, WITH_BETA = 8, WITH_BIAS = 16, WITH_RESIDUAL = 32, WAYS = 64 };

static void check_way(mica_context *const ctx[2], const shape *s, product *p, int way)
{
    float *a = way & TURN_A ? turned(p->a, s->m, s->k) : p->a,
          *b = way & TURN_B ? turned(p->b, s->k, s->n) : p->b;
    mica_tensor ta = way & TURN_A ? mica_2d(a, s->k, s->m) : mica_2d(a, s->m, s->k);
    mica_tensor tb = way & TURN_B ? mica_2d(b, s->n, s->k) : mica_2d(b, s->k, s->n);
    mica_tensor bias = mica_1d(p->bias, s->n), residual = mica_2d(p->residual, s->m, s->n);
    bool adds = (way & WITH_RESIDUAL) && !(way & WITH_BETA);
    mica_matmul_opts opts = {.transpose_a = (way & TURN_A) != 0,
                             .transpose_b = (way & TURN_B) != 0,
                             .alpha = 0.5f,
                             .beta = way & WITH_BETA ? 2.0f : 0.0f,
                             .bias = way & WITH_BIAS ? &bias : NULL,
                             .residual = adds ? &residual : NULL};
    ptrdiff_t row = way & TURN_DST ? 1 : s->n, column = way & TURN_DST ? s->m : 1;
    for (int t = 0; t < 2; t++) {
        mica_tensor dst = mica_2d(p->got[t], s->m, s->n);
        dst.stride[0] = row;
        dst.stride[1] = column;
        for (mica_index i = 0; i < s->m; i++)
            for (mica_index j = 0; j < s->n; j++)
                p->got[t][i * row + j * column] = way & WITH_BETA ? p->start[i * s->n + j] : NAN;
        CHECK_OK(ctx[t], mica_matmul(ctx[t], &dst, &ta, &tb, &opts));
    }
    double worst = 0.0;
    for (mica_index i = 0; i < s->m; i++) {
        for (mica_index j = 0; j < s->n; j++) {
            double want = 0.5 * p->want[i * s->n + j] + (way & WITH_BIAS ? (double)p->bias[j] : 0.0) +
                          (way & WITH_BETA ? 2.0 * (double)p->start[i * s->n + j] : 0.0) +
                          (adds ? (double)p->residual[i * s->n + j] : 0.0);
            double off = fabs(want - (double)p->got[0][i * row + j * column]);
            worst = off > worst || isnan(off) ? off : worst;
        }
    }
    CHECK_MSG(worst <= 1e-6 * (4.0 + (double)s->k), "matmul %td x %td x %td, way %d: off by %g", s->m, s->n,
              s->k, way, worst);
    CHECK_MSG(memcmp(p->got[0], p->got[1], (size_t)(s->m * s->n) * sizeof(float)) == 0,
              "matmul %td x %td x %td, way %d: other bits from three threads", s->m, s->n, s->k, way);
    if (way & TURN_A)
        free(a);
    if (way & TURN_B)
        free(b);
}

TEST(matmul_every_path)
{
    mica_context *const ctx[] = {test_context(1), test_context(3)};
    test_random r = test_seed(41);
    int count = test_effort((int)(sizeof shapes / sizeof shapes[0]) * 5);
    for (int c = 0; c < count; c++) {
        const shape *s = &shapes[(size_t)c % (sizeof shapes / sizeof shapes[0])];
        product p = draw(s, &r);
        multiply(p.want, s, &p);
        for (int way = c % 5; way < WAYS; way += 5)
            check_way(ctx, s, &p, way);
        release(&p);
    }
}

/* Rows that meet in one set of the cache go in other tiles: the same bits as of rows side by side. */
TEST(matmul_of_rows_far_apart)
{
    mica_context *const ctx[] = {test_context(1), test_context(3)};
    test_random r = test_seed(43);
    for (int c = 0; c < test_effort(60); c++) {
        shape s = {test_int(&r, 1, 64), test_int(&r, 1, 80), test_int(&r, 1, 300)};
        product p = draw(&s, &r);
        mica_index stride = 1024 * test_int(&r, 1, 3);
        float *apart = random_floats(&r, (size_t)(s.m * stride));
        REQUIRE(apart != NULL && p.got[1] != NULL);
        for (mica_index i = 0; i < s.m; i++)
            memcpy(apart + i * stride, p.a + i * s.k, (size_t)s.k * sizeof(float));
        mica_tensor near = mica_2d(p.a, s.m, s.k), far = mica_2d(apart, s.m, s.k);
        far.stride[0] = stride;
        mica_tensor b = mica_2d(p.b, s.k, s.n);
        for (int t = 0; t < 2; t++) {
            mica_tensor dst[2] = {mica_2d(p.got[0], s.m, s.n), mica_2d(p.got[1], s.m, s.n)};
            CHECK_OK(ctx[t], mica_matmul(ctx[t], &dst[0], &near, &b, &(mica_matmul_opts){0}));
            CHECK_OK(ctx[t], mica_matmul(ctx[t], &dst[1], &far, &b, &(mica_matmul_opts){0}));
            CHECK_MSG(memcmp(p.got[0], p.got[1], (size_t)(s.m * s.n) * sizeof(float)) == 0,
                      "matmul %td x %td x %td: other bits of rows %td apart", s.m, s.n, s.k, stride);
        }
        free(apart);
        release(&p);
    }
}

TEST(matmul_residual)
{
    mica_context *ctx = test_context(1);
    float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 1, 1}, c[4] = {1, 1, 1, 1}, one[2] = {-20, 1};
    mica_tensor ta = mica_2d(a, 2, 3), tb = mica_2d(b, 3, 2), dst = mica_2d(c, 2, 2),
                row = mica_2d(one, 1, 2);
    /* dst itself; a row for all rows, before the activation */
    CHECK_OK(ctx, mica_matmul(ctx, &dst, &ta, &tb, &(mica_matmul_opts){.residual = &dst}));
    CHECK(c[0] == 5.0f && c[1] == 6.0f && c[2] == 11.0f && c[3] == 12.0f);
    CHECK_OK(ctx, mica_matmul(ctx, &dst, &ta, &tb,
                              &(mica_matmul_opts){.residual = &row, .activation = MICA_RELU}));
    CHECK(c[0] == 0.0f && c[1] == 6.0f && c[2] == 0.0f && c[3] == 12.0f);
    CHECK_ERROR(ctx, mica_matmul(ctx, &dst, &ta, &tb, &(mica_matmul_opts){.residual = &ta}), MICA_ERR_SHAPE,
                "shape error: matmul: residual is [2, 3], which does not broadcast to dst [2, 2]");
    CHECK_ERROR(ctx, mica_matmul(ctx, &dst, &ta, &tb, &(mica_matmul_opts){.residual = &row, .beta = 1.0f}),
                MICA_ERR_ARGUMENT,
                "argument error: matmul: beta is 1 with a residual: only one of them can be used");
}

/* A product's tensors, one behind the other in data; with NULL without any. */
static void operands(mica_context *ctx, mica_tensor *dst, mica_tensor *a, mica_tensor *b, float *data,
                     const mica_index size[3], const mica_matmul_opts *opts)
{
    mica_index m = size[0], n = size[1], k = size[2];
    float *at_a = data != NULL ? data + m * n : NULL, *at_b = data != NULL ? at_a + m * k : NULL;
    mica_index rows_a[] = {m, k}, columns_a[] = {k, m}, rows_b[] = {k, n}, columns_b[] = {n, k};
    CHECK_OK(ctx, mica_tensor_init(ctx, dst, data, MICA_F32, 2, (mica_index[]){m, n}));
    CHECK_OK(ctx, mica_tensor_init(ctx, a, at_a, MICA_F32, 2, opts->transpose_a ? columns_a : rows_a));
    CHECK_OK(ctx, mica_tensor_init(ctx, b, at_b, MICA_F32, 2, opts->transpose_b ? columns_b : rows_b));
}

static size_t scratch_of(mica_context *ctx, const mica_index size[3], const mica_matmul_opts *opts)
{
    mica_tensor dst, a, b;
    operands(ctx, &dst, &a, &b, NULL, size, opts);
    mica_measure_begin(ctx);
    CHECK_OK(ctx, mica_matmul(ctx, &dst, &a, &b, opts));
    return mica_measure_end(ctx);
}

/* A net is planned for its largest batch: what that takes must be enough for every smaller one. */
TEST(matmul_scratch_grows_with_each_size)
{
    test_random r = test_seed(11);
    for (int threads = 1; threads <= 3; threads += 2) {
        mica_context *ctx = test_context(threads);
        for (int layout = 0; layout < 4; layout++) {
            mica_matmul_opts opts = {.transpose_a = layout & 1, .transpose_b = layout & 2};
            for (int i = 0; i < 200; i++) {
                mica_index size[3], less[3];
                for (int d = 0; d < 3; d++) {
                    size[d] = test_int(&r, 1, d == 2 ? 2000 : 2500);
                    less[d] = test_int(&r, 1, (int)size[d]);
                }
                CHECK(scratch_of(ctx, less, &opts) <= scratch_of(ctx, size, &opts));
            }
        }
    }
}

/* A gradient is planned as the first of a batch, and may be added to others; rows may be one, or none in a step. */
TEST(matmul_scratch_does_not_grow_with_beta)
{
    test_random r = test_seed(13);
    for (int threads = 1; threads <= 3; threads += 2) {
        mica_context *ctx = test_context(threads);
        for (int i = 0; i < 800; i++) {
            mica_matmul_opts opts = {.transpose_a = i & 1, .transpose_b = i & 2};
            mica_index size[3], less[3];
            for (int d = 0; d < 3; d++) {
                size[d] = test_chance(&r, 50) ? 1 : test_int(&r, 1, 300);
                less[d] = test_int(&r, 0, (int)size[d]);
            }
            size_t planned = scratch_of(ctx, size, &opts);
            CHECK(scratch_of(ctx, less, &opts) <= planned);
            opts.beta = 1.0f;
            CHECK(scratch_of(ctx, size, &opts) <= planned && scratch_of(ctx, less, &opts) <= planned);
        }
    }
}

/* Exactly the bytes that were measured, and what lies behind them: one to four threads cut a product in many ways. */
TEST(matmul_stays_within_its_scratch)
{
    enum { GUARD = 4096, MARK = 0xa5 };
    test_random r = test_seed(12);
    mica_context *by_threads[4];
    for (int i = 0; i < 4; i++)
        by_threads[i] = test_context(i + 1);
    for (int i = 0; i < 400; i++) {
        bool large = i % 40 < 4; /* several runs of k, and blocks of a */
        mica_index size[3] = {i % 3 == 0 ? 1 : test_int(&r, 1, large ? 700 : 300), test_int(&r, 1, 130),
                              test_int(&r, 1, large ? 1700 : 300)};
        mica_context *ctx = by_threads[i % 4];
        int layout = i / 4 % 4;
        mica_matmul_opts opts = {.transpose_a = layout & 1, .transpose_b = layout & 2};
        size_t bytes = scratch_of(ctx, size, &opts);
        opts.beta = (float)(i / 16 % 2); /* a step adds where the plan's measurement did not */
        unsigned char *room = aligned_alloc(64, (bytes + GUARD + 63) / 64 * 64);
        float *data = calloc((size_t)(size[0] * size[1] + size[0] * size[2] + size[1] * size[2]),
                             sizeof *data);
        REQUIRE(room != NULL && data != NULL);
        memset(room, MARK, bytes + GUARD);
        CHECK_OK(ctx, mica_workspace_give(ctx, room, bytes));
        mica_tensor dst, a, b;
        operands(ctx, &dst, &a, &b, data, size, &opts);
        CHECK_OK(ctx, mica_matmul(ctx, &dst, &a, &b, &opts));
        bool kept = true;
        for (size_t g = 0; g < GUARD; g++)
            kept = kept && room[bytes + g] == MARK;
        CHECK(kept);
        CHECK_OK(ctx, mica_workspace_give(ctx, NULL, 0));
        free(room);
        free(data);
    }
}
