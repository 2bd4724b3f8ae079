/* Rows times block-quantized weights: against sums in double precision, and the same bits on every instruction set,
 * with any number of threads, and for a row alone as for one among many. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

static const char *const isas[] = {"avx2-plain",  "avx2-vnni",  "avx512-plain",
                                   "avx512-vnni", "neon-plain", "neon-dot"};

typedef struct product {
    mica_index rows, units, width;
    mica_dtype dtype;
    uint8_t *w; /* units x width in blocks */
    float *x, *bias, *y;
} product;

/* Where the f16 scales of a block lie; the second is at 0 where there is but one. */
static void scales_at(mica_dtype dtype, size_t place[2])
{
    place[0] = dtype == MICA_Q2_K ? 80 : dtype == MICA_Q3_K ? 108 : dtype == MICA_Q6_K ? 208 : 0;
    bool second = dtype == MICA_Q4_1 || dtype == MICA_Q5_1 || dtype == MICA_Q2_K || dtype == MICA_Q4_K ||
                  dtype == MICA_Q5_K;
    place[1] = second ? place[0] + 2 : 0;
}

/* Random bytes are blocks of every type, but for their scales: these are from 2^-6 to 2^-5, of either sign. */
static void fill_blocks(uint8_t *blocks, mica_dtype dtype, size_t count, test_random *r)
{
    size_t bytes = mica_dtype_bytes(dtype), place[2];
    scales_at(dtype, place);
    for (size_t i = 0; i < count * bytes; i++)
        blocks[i] = (uint8_t)test_next(r);
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < 2; k++)
            if (k == 0 || place[k] > 0)
                blocks[i * bytes + place[k] + 1] = (uint8_t)((test_next(r) & 0x83) | 0x24);
}

static product make(mica_dtype dtype, mica_index rows, mica_index units, mica_index blocks, test_random *r)
{
    mica_index width = blocks * (mica_index)mica_dtype_block(dtype);
    product p = {.rows = rows, .units = units, .width = width, .dtype = dtype};
    size_t count = (size_t)(units * blocks);
    /* To the byte, so that the sanitizers see what is read past the end. */
    p.w = malloc(count * mica_dtype_bytes(dtype) + 1);
    fill_blocks(p.w, dtype, count, r);
    p.x = malloc((size_t)(rows * width + 1) * sizeof *p.x);
    p.bias = malloc((size_t)(units + 1) * sizeof *p.bias);
    p.y = malloc((size_t)(rows * units + 1) * sizeof *p.y);
    for (mica_index i = 0; i < rows * width; i++)
        p.x[i] = (float)test_uniform(r, -1.0, 1.0) * (test_chance(r, 5) ? 10.0f : 1.0f);
    for (mica_index i = 0; i < rows && width > 0; i++) /* a block of zeros, one of numbers that vanish */
        for (mica_index j = 0; j < 32; j++)
            p.x[i * width + test_int(r, 0, (int)(width / 32) - 1) * 32 + j] *= i % 3 == 0   ? 0.0f
                                                                               : i % 3 == 1 ? 1e-35f
                                                                                            : 1.0f;
    for (mica_index i = 0; i < units; i++)
        p.bias[i] = (float)test_uniform(r, -1.0, 1.0);
    return p;
}

static void release(product *p)
{
    free(p->w);
    free(p->x);
    free(p->bias);
    free(p->y);
}

static mica_tensor weights(mica_context *ctx, const product *p)
{
    mica_tensor w;
    CHECK_OK(ctx, mica_tensor_init(ctx, &w, p->w, p->dtype, 2, (mica_index[]){p->units, p->width}));
    return w;
}

/* Rows first to first + count - 1 into y, with as much scratch as was measured. */
static bool run(mica_context *ctx, const product *p, mica_index first, mica_index count, bool bias, float *y)
{
    mica_tensor w = weights(ctx, p), out = mica_2d(y, count, p->units),
                x = mica_2d(p->x + first * p->width, count, p->width), b = mica_1d(p->bias, p->units);
    mica_measure_begin(ctx);
    bool ok = CHECK_OK(ctx, mica_linear_rows(ctx, &out, &x, &w, bias ? &b : NULL));
    size_t bytes = mica_measure_end(ctx);
    ok = ok && CHECK_OK(ctx, mica_workspace_reserve(ctx, bytes));
    test_heap heap = test_heap_now();
    ok = ok && CHECK_OK(ctx, mica_linear_rows(ctx, &out, &x, &w, bias ? &b : NULL));
    return CHECK(test_heap_now().calls == heap.calls) && ok;
}

/* The rounded row of x, in double. */
static void round_row(double *rounded, const float *x, mica_index width)
{
    for (mica_index b = 0; b < width; b += 32) {
        float most = 0.0f;
        for (int j = 0; j < 32; j++)
            most = fmaxf(most, fabsf(x[b + j]));
        for (int j = 0; j < 32; j++)
            rounded[b + j] = most < 0x1p-100f
                                 ? 0.0
                                 : (double)(most / 127.0f) * nearbyint((double)(x[b + j] * (127.0f / most)));
    }
}

static void check_values(mica_context *ctx, const product *p)
{
    size_t count = (size_t)(p->units * p->width);
    float *values = malloc((count + 1) * sizeof *values);
    double *x = malloc((size_t)(p->width + 1) * sizeof *x);
    mica_tensor w = weights(ctx, p), plain = mica_2d(values, p->units, p->width);
    CHECK_OK(ctx, mica_copy(ctx, &plain, &w));
    for (mica_index t = 0; t < p->rows; t++) {
        round_row(x, p->x + t * p->width, p->width);
        for (mica_index n = 0; n < p->units; n++) {
            double sum = (double)p->bias[n], size = fabs(sum), y = (double)p->y[t * p->units + n];
            for (mica_index k = 0; k < p->width; k++) {
                double term = x[k] * (double)values[n * p->width + k];
                sum += term;
                size += fabs(term) + fabs(x[k]); /* the least value and the rest of a weight may cancel */
            }
            CHECK_MSG(fabs(y - sum) <= 1e-6 * size, "%s [%td, %td] x %td: y[%td, %td] is %.9g, expected %.9g",
                      mica_dtype_name(p->dtype), p->units, p->width, p->rows, t, n, y, sum);
        }
    }
    free(values);
    free(x);
}

static mica_context *context(const char *isa, int threads)
{
    mica_context *ctx;
    return mica_context_create(&ctx, &(mica_context_opts){.isa = isa, .threads = threads}) == MICA_OK ? ctx
                                                                                                      : NULL;
}

static product draw(mica_dtype dtype, int n, test_random *r)
{
    bool wide = test_chance(r, 20);
    mica_index blocks = test_int(r, n == 0 ? 0 : 1, wide ? 9 : 3);
    return make(dtype, test_chance(r, 30) ? 1 : test_int(r, 1, 40), test_int(r, 1, 40), blocks, r);
}

TEST(linear_rows_match_sums_in_double)
{
    mica_context *ctx = context("scalar", 1);
    test_random r = test_seed(31);
    for (mica_dtype d = MICA_Q4_0; d < MICA_DTYPE_COUNT; d++) {
        for (int n = 0; n < test_effort(20); n++) {
            product p = draw(d, n, &r);
            if (run(ctx, &p, 0, p.rows, true, p.y))
                check_values(ctx, &p);
            release(&p);
        }
    }
    mica_context_destroy(ctx);
}

TEST(linear_rows_have_the_same_bits_everywhere)
{
    mica_context *plain = context("scalar", 1);
    test_random r = test_seed(32);
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        mica_context *ctx = context(isas[i], 1);
        for (mica_dtype d = MICA_Q4_0; ctx != NULL && d < MICA_DTYPE_COUNT; d++) {
            for (int n = 0; n < test_effort(40); n++) {
                product p = draw(d, n, &r);
                bool bias = test_chance(&r, 50);
                size_t bytes = (size_t)(p.rows * p.units) * sizeof *p.y;
                float *y = malloc(bytes + 1);
                if (run(plain, &p, 0, p.rows, bias, p.y) && run(ctx, &p, 0, p.rows, bias, y))
                    CHECK_MSG(memcmp(y, p.y, bytes) == 0, "%s, %s [%td, %td] x %td: not what scalar gives",
                              isas[i], mica_dtype_name(d), p.units, p.width, p.rows);
                free(y);
                release(&p);
            }
        }
        if (ctx != NULL)
            mica_context_destroy(ctx);
    }
    mica_context_destroy(plain);
}

TEST(linear_rows_do_not_depend_on_other_rows_or_threads)
{
    mica_context *ctx[] = {test_context(1), test_context(2), test_context(3)};
    test_random r = test_seed(33);
    for (mica_dtype d = MICA_Q4_0; d < MICA_DTYPE_COUNT; d++) {
        product p = make(d, 37, 300, 1024 / (mica_index)mica_dtype_block(d), &r);
        size_t bytes = (size_t)(p.rows * p.units) * sizeof *p.y;
        float *y = malloc(bytes);
        bool ok = run(ctx[0], &p, 0, p.rows, false, p.y);
        for (int k = 1; k < 3 && ok; k++) {
            ok = run(ctx[k], &p, 0, p.rows, false, y);
            CHECK_MSG(memcmp(y, p.y, bytes) == 0, "%s: %d threads", mica_dtype_name(d), k + 1);
        }
        for (mica_index first = 0, count; first < p.rows && ok; first += count) {
            count = test_int(&r, 1, 14);
            count = count < p.rows - first ? count : p.rows - first;
            ok = run(ctx[test_int(&r, 0, 2)], &p, first, count, false, y + first * p.units);
        }
        CHECK_MSG(memcmp(y, p.y, bytes) == 0, "%s: split rows", mica_dtype_name(d));
        free(y);
        release(&p);
    }
}

TEST(linear_rows_spoil_only_rows_that_are_spoiled)
{
    mica_context *ctx = test_context(1);
    test_random r = test_seed(34);
    for (mica_dtype d = MICA_Q4_0; d < MICA_DTYPE_COUNT; d++) {
        product p = make(d, 5, 20, 2, &r), fine = make(d, 5, 20, 2, &r);
        memcpy(fine.x, p.x, (size_t)(p.rows * p.width) * sizeof *p.x);
        memcpy(fine.w, p.w, (size_t)(p.units * 2) * mica_dtype_bytes(d));
        p.x[1 * p.width + 3] = NAN;
        p.x[3 * p.width + p.width - 1] = -INFINITY;
        if (run(ctx, &p, 0, p.rows, false, p.y) && run(ctx, &fine, 0, p.rows, false, fine.y))
            for (mica_index i = 0; i < p.rows * p.units; i++)
                CHECK(i / p.units % 2 == 1 ? isnan(p.y[i]) : p.y[i] == fine.y[i]);
        release(&p);
        release(&fine);
    }
}

/* Weights may be every second row of a wider matrix, backwards; x and y columns of wider rows. */
TEST(linear_rows_take_views)
{
    mica_context *ctx = test_context(1);
    test_random r = test_seed(35);
    for (mica_dtype d = MICA_Q4_0; d < MICA_DTYPE_COUNT; d++) {
        mica_index block = (mica_index)mica_dtype_block(d);
        product p = make(d, 3, 40, 3, &r), dense = make(d, 3, 20, 2, &r);
        mica_tensor w = weights(ctx, &p), x = mica_2d(p.x, 3, p.width), y = mica_2d(p.y, 3, 40), kept;
        CHECK_OK(ctx, mica_view_slice(ctx, &w, &w, 0, -1, MICA_END, -2));
        CHECK_OK(ctx, mica_view_slice(ctx, &w, &w, 1, block, MICA_END, 1));
        CHECK_OK(ctx, mica_view_slice(ctx, &x, &x, 1, block, MICA_END, 1));
        CHECK_OK(ctx, mica_view_slice(ctx, &y, &y, 1, 7, 27, 1));
        kept = weights(ctx, &dense);
        CHECK_OK(ctx, mica_workspace_reserve(ctx, (size_t)1 << 20));
        size_t row = 2 * mica_dtype_bytes(d);
        for (mica_index n = 0; n < 20; n++)
            memcpy(dense.w + (size_t)n * row, p.w + (size_t)(39 - 2 * n) * row / 2 * 3 + row / 2, row);
        mica_tensor own = mica_2d(dense.x, 3, dense.width), out = mica_2d(dense.y, 3, 20);
        CHECK_OK(ctx, mica_copy(ctx, &own, &x));
        if (CHECK_OK(ctx, mica_linear_rows(ctx, &y, &x, &w, NULL)) &&
            CHECK_OK(ctx, mica_linear_rows(ctx, &out, &own, &kept, NULL)))
            for (mica_index i = 0; i < 60; i++)
                CHECK(dense.y[i] == p.y[i / 20 * 40 + 7 + i % 20]);
        release(&p);
        release(&dense);
    }
}
