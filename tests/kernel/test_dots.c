/* Rows times rows, against plain loops in double; and the same bits for a product alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "kernel/kernels.h"
#include "test.h"

typedef struct side {
    float *data;
    ptrdiff_t stride;
} side;

static float *floats(test_random *r, size_t count)
{
    float *p = malloc((count + 1) * sizeof *p);
    for (size_t i = 0; i < count; i++)
        p[i] = (float)test_normal(r);
    return p;
}

/* Rows of k elements, a little apart; what lies between them is no number. */
static side draw_side(test_random *r, size_t rows, size_t k)
{
    side s = {NULL, (ptrdiff_t)k + test_int(r, 0, 9)};
    s.data = floats(r, rows * (size_t)s.stride);
    for (size_t i = 0; i < rows * (size_t)s.stride; i++)
        if (i % (size_t)s.stride >= k)
            s.data[i] = NAN;
    return s;
}

static double reference(const mica_gemm_dots *d, const float *before, size_t i, size_t j, double *magnitude)
{
    size_t at = i * (size_t)d->stride + j;
    double sum = d->adds ? (double)before[at] : d->bias != NULL ? (double)d->bias[j] : 0.0;
    *magnitude = fabs(sum);
    for (int part = 0; part < 2; part++) {
        const mica_gemm_dots_part *p = &d->part[part];
        for (size_t k = 0; k < p->k; k++) {
            double term = (double)p->a[(ptrdiff_t)i * p->a_stride + (ptrdiff_t)k] *
                          (double)p->b[(ptrdiff_t)j * p->b_stride + (ptrdiff_t)k];
            sum += term;
            *magnitude += fabs(term);
        }
    }
    return sum;
}

/* Element (i, j) as a product of its own. */
static float alone(const mica_gemm_kernels *kernels, const mica_gemm_dots *d, const float *before, size_t i,
                   size_t j)
{
    mica_gemm_dots one = *d;
    float c = before[i * (size_t)d->stride + j];
    one.rows = one.columns = 1;
    one.c = &c;
    one.bias = d->bias != NULL ? d->bias + j : NULL;
    for (int part = 0; part < 2; part++) {
        one.part[part].a += (ptrdiff_t)i * d->part[part].a_stride;
        one.part[part].b += (ptrdiff_t)j * d->part[part].b_stride;
    }
    kernels->dots(&one);
    return c;
}

static void compare(const mica_gemm_kernels *kernels, const mica_gemm_dots *d, const float *before)
{
    for (size_t i = 0; i < d->rows; i++)
        for (size_t j = 0; j < (size_t)d->stride; j++) {
            float got = d->c[i * (size_t)d->stride + j];
            if (j >= d->columns) {
                CHECK_MSG(got == before[i * (size_t)d->stride + j], "row %zu: wrote beyond column %zu", i,
                          d->columns);
                continue;
            }
            double magnitude, want = reference(d, before, i, j, &magnitude);
            CHECK_MSG(fabs((double)got - want) <= 0x1p-20 * magnitude + 1e-30,
                      "%zu x %zu, k %zu + %zu: (%zu, %zu) is %g, not %g", d->rows, d->columns, d->part[0].k,
                      d->part[1].k, i, j, (double)got, want);
            float one = alone(kernels, d, before, i, j);
            CHECK_MSG(memcmp(&one, &got, sizeof got) == 0, "%zu x %zu: (%zu, %zu) has other bits alone",
                      d->rows, d->columns, i, j);
        }
}

static void check(const mica_gemm_kernels *kernels, test_random *r)
{
    mica_gemm_dots d = {.rows = (size_t)test_int(r, 1, 18), .columns = (size_t)test_int(r, 1, 37)};
    side a[2], b[2];
    for (int part = 0; part < 2; part++) {
        size_t k = (size_t)(test_chance(r, 20) ? 0 : test_int(r, 1, 100));
        a[part] = draw_side(r, d.rows, k);
        b[part] = draw_side(r, d.columns, k);
        d.part[part] = (mica_gemm_dots_part){a[part].data, b[part].data, a[part].stride, b[part].stride, k};
    }
    d.stride = (ptrdiff_t)d.columns + test_int(r, 0, 5);
    size_t count = d.rows * (size_t)d.stride;
    float *bias = floats(r, d.columns), *before = floats(r, count);
    d.c = floats(r, count);
    memcpy(d.c, before, count * sizeof *before);
    d.adds = test_chance(r, 50);
    d.bias = test_chance(r, 50) ? bias : NULL;
    kernels->dots(&d);
    compare(kernels, &d, before);
    float *all[] = {a[0].data, a[1].data, b[0].data, b[1].data, bias, before, d.c};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

TEST(gemm_dots_of_rows)
{
    static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
        mica_context *ctx;
        if (mica_context_create(&ctx, &(mica_context_opts){.isa = isas[i]}) != MICA_OK)
            continue;
        const mica_gemm_kernels *kernels = MICA_FAMILY(ctx->kernels, gemm);
        test_random r = test_seed(80 + i);
        for (int k = 0; kernels->dots != NULL && k < test_effort(200); k++)
            check(kernels, &r);
        mica_context_destroy(ctx);
    }
}
