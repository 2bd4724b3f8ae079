/* Rows times rows of f32, f16 and bf16 weights: the same bits for a row alone, among others and by any number of
 * threads, on every instruction set that runs here; sums within a bound of the exact ones; any layout. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};
static const mica_dtype dtypes[] = {MICA_F32, MICA_F16, MICA_BF16};

typedef struct shape {
    mica_index rows, weights, k;
} shape;

static const shape shapes[] = {
    {1, 1, 1},    {2, 9, 15},  {3, 8, 17},   {5, 31, 16},  {7, 33, 64},   {12, 1, 100},  {13, 70, 31},
    {25, 40, 70}, {40, 5, 33}, {100, 3, 20}, {201, 65, 9}, {300, 17, 40}, {2, 700, 100}, {19, 45, 2100},
};

/* The tensors of a call: y and x as columns of wider rows. */
typedef struct call {
    float *x, *w, *bias, *y, *alone;
    uint16_t *packed; /* one element into its memory: aligned to two bytes only */
    mica_tensor x_at, w_at, bias_at, y_at;
} call;

static float *random_floats(test_random *r, mica_index count)
{
    float *f = malloc((size_t)(count + 1) * sizeof *f);
    for (mica_index i = 0; f != NULL && i < count; i++)
        f[i] = (float)test_normal(r);
    return f;
}

static void release(call *c)
{
    void *all[] = {c->x, c->w, c->bias, c->y, c->alone, c->packed};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static bool draw(call *c, mica_context *ctx, const shape *s, mica_dtype dtype)
{
    test_random r = test_seed((uint64_t)(s->rows * 1000 + s->weights * 10 + s->k));
    *c = (call){.x = random_floats(&r, s->rows * (s->k + 5)),
                .w = random_floats(&r, s->weights * s->k),
                .bias = random_floats(&r, s->weights),
                .y = random_floats(&r, s->rows * (s->weights + 3)),
                .alone = random_floats(&r, s->rows * (s->weights + 3)),
                .packed = malloc((size_t)(s->weights * s->k + 1) * sizeof(uint16_t))};
    if (!CHECK(c->x && c->w && c->bias && c->y && c->alone && c->packed))
        return false;
    c->x_at = mica_2d(c->x + 2, s->rows, s->k);
    c->x_at.stride[0] = s->k + 5;
    c->y_at = mica_2d(c->y + 1, s->rows, s->weights);
    c->y_at.stride[0] = s->weights + 3;
    c->bias_at = mica_1d(c->bias, s->weights);
    mica_tensor floats = c->w_at = mica_2d(c->w, s->weights, s->k);
    if (dtype == MICA_F32)
        return true;
    return CHECK_OK(ctx, mica_tensor_init(ctx, &c->w_at, c->packed + 1, dtype, 2,
                                          (mica_index[]){s->weights, s->k})) &&
           CHECK_OK(ctx, mica_copy(ctx, &c->w_at, &floats)) &&
           CHECK_OK(ctx, mica_copy(ctx, &floats, &c->w_at));
}

static void check_exact(const call *c, const shape *s, const char *isa)
{
    /* A lane of sixteen has k / 16 products, then its sums and the bias: one rounding each, two without fused ones. */
    double lanes = strcmp(isa, "scalar") == 0 ? 1.0
                   : strcmp(isa, "neon") == 0 ? 4.0
                   : strcmp(isa, "avx2") == 0 ? 8.0
                                              : 16.0;
    double bound = ((double)s->k / lanes + 7.0) * 0x1p-24;
    for (mica_index i = 0; i < s->rows; i++)
        for (mica_index j = 0; j < s->weights; j++) {
            double sum = (double)c->bias[j], size = fabs(sum);
            for (mica_index q = 0; q < s->k; q++) {
                double product = (double)c->x[2 + i * (s->k + 5) + q] * (double)c->w[j * s->k + q];
                sum += product;
                size += fabs(product);
            }
            double got = (double)c->y[1 + i * (s->weights + 3) + j];
            CHECK_MSG(fabs(got - sum) <= bound * size,
                      "%s: row %td, weight %td of [%td, %td, %td] is %.9g, expected %.9g", isa, i, j, s->rows,
                      s->weights, s->k, got, sum);
        }
}

/* Each row by itself. */
static void run_alone(mica_context *ctx, const call *c, const shape *s)
{
    for (mica_index i = 0; i < s->rows; i++) {
        mica_tensor x = c->x_at, y = c->y_at;
        x.dim[0] = y.dim[0] = 1;
        x.data = c->x + 2 + i * (s->k + 5);
        y.data = c->alone + 1 + i * (s->weights + 3);
        CHECK_OK(ctx, mica_linear_rows(ctx, &y, &x, &c->w_at, &c->bias_at));
    }
}

static void check_shape(mica_context *const ctx[3], const shape *s, mica_dtype dtype)
{
    call c;
    const char *isa = mica_context_isa(ctx[0]);
    if (draw(&c, ctx[0], s, dtype)) {
        size_t bytes = (size_t)(s->rows * (s->weights + 3)) * sizeof(float);
        memcpy(c.alone, c.y, bytes);
        run_alone(ctx[0], &c, s);
        for (int t = 0; t < 3; t++) {
            for (mica_index i = 0; i < s->rows; i++)
                memset((float *)c.y_at.data + i * c.y_at.stride[0], 0x7f, (size_t)s->weights * sizeof(float));
            CHECK_OK(ctx[t], mica_linear_rows(ctx[t], &c.y_at, &c.x_at, &c.w_at, &c.bias_at));
            CHECK_MSG(memcmp(c.y, c.alone, bytes) == 0,
                      "%s, %s, %d threads: rows of [%td, %td, %td] differ from those alone", isa,
                      mica_dtype_name(dtype), t + 1, s->rows, s->weights, s->k);
        }
        check_exact(&c, s, isa);
    }
    release(&c);
}

TEST(linear_rows_of_floats_do_not_depend_on_each_other)
{
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        mica_context *ctx[3] = {NULL};
        bool there = true;
        for (int t = 0; t < 3 && there; t++)
            there = mica_context_create(&ctx[t], &(mica_context_opts){.threads = t + 1, .isa = isas[i]}) ==
                    MICA_OK;
        for (size_t s = 0; there && s < sizeof shapes / sizeof *shapes; s++)
            for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
                check_shape(ctx, &shapes[s], dtypes[d]);
        for (int t = 0; t < 3; t++)
            mica_context_destroy(ctx[t]);
    }
}

/* Columns that are not side by side are copied, and what lies between them stays. */
TEST(linear_rows_of_floats_take_any_strides)
{
    enum { ROWS = 20, WEIGHTS = 11, K = 37 };
    static float x[K * ROWS * 2], y[WEIGHTS * ROWS * 2], w[WEIGHTS * K], plain_x[ROWS * K],
        plain_y[ROWS * WEIGHTS];
    mica_context *ctx = test_context(1);
    test_random r = test_seed(5);
    for (size_t i = 0; i < WEIGHTS * K; i++)
        w[i] = (float)test_normal(&r);
    for (size_t i = 0; i < ROWS; i++)
        for (size_t q = 0; q < K; q++)
            x[q * ROWS * 2 + 2 * i] = plain_x[i * K + q] = (float)test_normal(&r);
    mica_tensor x_at = mica_2d(x, ROWS, K), y_at = mica_2d(y, ROWS, WEIGHTS), w_at = mica_2d(w, WEIGHTS, K);
    mica_tensor plain_x_at = mica_2d(plain_x, ROWS, K), plain_y_at = mica_2d(plain_y, ROWS, WEIGHTS);
    x_at.stride[0] = y_at.stride[0] = 2;
    x_at.stride[1] = y_at.stride[1] = 2 * ROWS;
    CHECK_OK(ctx, mica_linear_rows(ctx, &plain_y_at, &plain_x_at, &w_at, NULL));
    CHECK_OK(ctx, mica_linear_rows(ctx, &y_at, &x_at, &w_at, NULL));
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < WEIGHTS; j++) {
            float got = y[j * ROWS * 2 + 2 * i];
            CHECK(memcmp(&got, &plain_y[i * WEIGHTS + j], sizeof got) == 0);
            CHECK(y[j * ROWS * 2 + 2 * i + 1] == 0.0f);
        }
}
