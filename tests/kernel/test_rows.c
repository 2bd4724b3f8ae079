/* Rows times rows of weights on every instruction set that runs here: sums against double, and each way through the
 * kernels against a single row with weights of f32, to the last bit, with nothing written outside. */
#include <math.h>
#include <string.h>

#include "base/context.h"
#include "kernel/kernels.h"
#include "test.h"

static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};
static const mica_dtype dtypes[] = {MICA_F32, MICA_F16, MICA_BF16};
static const size_t lengths[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 130, 300};
enum { LONGEST = 300, ROWS = 14, UNITS = 24, STRIDE = LONGEST + 3, Y_STRIDE = UNITS + 5 };
static const float guard = -12345.0f;

static float x[ROWS * STRIDE], w[UNITS * STRIDE], bias[UNITS];
static uint16_t packed[UNITS * STRIDE];
static float y[(ROWS + 1) * Y_STRIDE], want[ROWS * UNITS];
static float panels[UNITS * (LONGEST + 16)];

/* Weights that the type has exactly, as it and as floats; returns those of the type. */
static const void *draw(mica_context *ctx, mica_dtype dtype)
{
    test_random r = test_seed((uint64_t)dtype + 1);
    for (size_t i = 0; i < ROWS * STRIDE; i++)
        x[i] = (float)test_normal(&r);
    for (size_t i = 0; i < UNITS * STRIDE; i++)
        w[i] = (float)test_normal(&r);
    for (size_t i = 0; i < UNITS; i++)
        bias[i] = (float)test_normal(&r);
    if (dtype == MICA_F32)
        return w;
    mica_index count = UNITS * STRIDE;
    mica_tensor floats = mica_1d(w, count), typed;
    CHECK_OK(ctx, mica_tensor_init(ctx, &typed, packed, dtype, 1, &count));
    CHECK_OK(ctx, mica_copy(ctx, &typed, &floats));
    CHECK_OK(ctx, mica_copy(ctx, &floats, &typed));
    return packed;
}

static mica_rows_product whole(size_t rows, size_t units, size_t k)
{
    return (mica_rows_product){.rows = rows,
                               .units = units,
                               .k = k,
                               .y = y,
                               .y_stride = Y_STRIDE,
                               .x = x,
                               .x_stride = STRIDE,
                               .w = w,
                               .w_stride = STRIDE,
                               .bias = k % 3 != 0 ? bias : NULL};
}

/* Every output by itself, and what it may be off: a rounding of each product and of each sum of its lane, of the sums
 * of lanes, and of the bias. */
static void compute_wanted(const mica_rows_kernels *kernels, size_t k, const char *isa)
{
    double roundings = 1.0 + floor((double)k / (double)kernels->lanes) + 1.0 + 4.0 + 1.0;
    for (size_t i = 0; i < ROWS; i++) {
        mica_rows_product p = whole(1, UNITS, k);
        p.x += i * STRIDE;
        p.y = want + i * UNITS;
        kernels->direct[MICA_F32](&p);
        for (size_t j = 0; j < UNITS; j++) {
            double sum = p.bias != NULL ? (double)bias[j] : 0.0, size = fabs(sum);
            for (size_t q = 0; q < k; q++) {
                double product = (double)x[i * STRIDE + q] * (double)w[j * STRIDE + q];
                sum += product;
                size += fabs(product);
            }
            CHECK_MSG(fabs((double)p.y[j] - sum) <= roundings * 0x1p-24 * size,
                      "%s: row %zu, unit %zu, k %zu is %.9g, expected %.9g", isa, i, j, k, (double)p.y[j],
                      sum);
        }
    }
}

static void check_outputs(const char *isa, const char *way, mica_dtype dtype, const mica_rows_product *p)
{
    for (size_t i = 0; i <= ROWS; i++)
        for (size_t j = 0; j < Y_STRIDE; j++) {
            bool inside = i < p->rows && j < p->units;
            float expected = inside ? want[i * UNITS + j] : guard, got = y[i * Y_STRIDE + j];
            CHECK_MSG(memcmp(&got, &expected, sizeof got) == 0,
                      "%s, %s, %s: row %zu of %zu, unit %zu of %zu, k %zu is %.9g, expected %.9g", isa, way,
                      mica_dtype_name(dtype), i, p->rows, j, p->units, p->k, (double)got, (double)expected);
        }
}

static void clear(void)
{
    for (size_t i = 0; i < sizeof y / sizeof *y; i++)
        y[i] = guard;
}

static void check_ways(const mica_rows_kernels *kernels, const char *isa, mica_dtype dtype, const void *typed,
                       size_t k)
{
    for (size_t rows = 1; rows <= ROWS; rows++)
        for (size_t units = 1; units <= UNITS; units += 1 + rows % 3) {
            mica_rows_product p = whole(rows, units, k);
            p.w = typed;
            if (units % kernels->group_units == 0) {
                clear();
                kernels->direct[dtype](&p);
                check_outputs(isa, "as they lie", dtype, &p);
            }
            clear();
            kernels->unpack[dtype](panels, typed, STRIDE, units, k);
            p.w = panels;
            kernels->panels(&p);
            check_outputs(isa, "in panels", dtype, &p);
        }
}

TEST(kernel_rows_give_the_same_bits_every_way)
{
    mica_context *ctx = test_context(1);
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        const mica_kernels *kernels = mica_kernels_choose(isas[i]);
        if (kernels == NULL)
            continue;
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
            const void *typed = draw(ctx, dtypes[d]);
            for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
                compute_wanted(kernels->rows, lengths[l], isas[i]);
                check_ways(kernels->rows, isas[i], dtypes[d], typed, lengths[l]);
            }
        }
    }
}
