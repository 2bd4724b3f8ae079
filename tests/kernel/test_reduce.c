/* Reduction kernels on every instruction set that runs here, against plain loops in double. */
#include <math.h>

#include "base/context.h"
#include "kernel/kernels.h"
#include "test.h"

static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};
static const size_t sizes[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 100, 1025, 4099};
enum { ROOM = 40000 };
static float data[ROOM], other[ROOM];

/* One step of each kernel, in double. */
static double step_sum(double r, double x, double s) { return (void)s, r + x; }
static double step_sum_abs(double r, double x, double s) { return (void)s, r + fabs(x); }
static double step_sum_squares(double r, double x, double s) { return (void)s, r + x * x; }
static double step_sum_deviations(double r, double x, double s) { return r + (x - s); }
static double step_sum_square_deviations(double r, double x, double s) { return r + (x - s) * (x - s); }
static double step_max(double r, double x, double s) { return (void)s, isnan(r) || r > x ? r : x; }
static double step_min(double r, double x, double s) { return (void)s, isnan(r) || r < x ? r : x; }
static double step_max_abs(double r, double x, double s) { return step_max(r, fabs(x), s); }
static double step_prod(double r, double x, double s) { return (void)s, r * x; }

typedef struct entry {
    const char *name;
    size_t offset;
    double (*step)(double, double, double);
} entry;

static const entry entries[] = {
#define ENTRY(name, fold, start) {#name, offsetof(mica_reduce_kernels, name), step_##name},
    MICA_REDUCE_KERNELS(ENTRY)};

static void fill(bool nans)
{
    test_random r = test_seed(11);
    for (int i = 0; i < ROOM; i++) {
        data[i] = nans && test_chance(&r, 1) ? NAN : (float)test_uniform(&r, 0.9, 1.1);
        data[i] = test_chance(&r, 50) ? data[i] : -data[i];
        other[i] = (float)test_normal(&r);
    }
}

static bool near(double got, double want, double magnitude)
{
    return (isnan(got) && isnan(want)) || got == want || fabs(got - want) <= 40 * 0x1p-24 * magnitude;
}

static void check_rows(const entry *e, const mica_reduce_kernel *kernel, const char *isa)
{
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t shift = 0; shift < 3; shift++) {
            double want = 5.0, got = 5.0, magnitude = 5.0;
            for (size_t i = 0; i < sizes[s]; i++) {
                want = e->step(want, (double)data[shift + i], 0.5);
                magnitude += 3.0;
            }
            kernel->row(&got, data + shift, sizes[s], 0.5f);
            CHECK_MSG(near(got, want, fmax(magnitude, fabs(want))), "%s %s: a row of %zu gives %g, not %g",
                      isa, e->name, sizes[s], got, want);
        }
}

static void check_columns(const entry *e, const mica_reduce_kernel *kernel, const char *isa)
{
    float shift[101];
    for (size_t j = 0; j < 101; j++)
        shift[j] = 0.25f * (float)j;
    for (size_t columns = 0; columns <= 99; columns = columns * 2 + 1)
        for (size_t rows = 0; rows <= 100; rows = rows * 3 + 1) {
            double acc[101];
            for (size_t j = 0; j < 101; j++)
                acc[j] = 2.0;
            kernel->columns(acc, data + 1, 101, rows, columns, shift);
            CHECK_MSG(acc[columns] == 2.0, "%s %s: %zu columns: wrote beyond", isa, e->name, columns);
            for (size_t j = 0; j < columns; j++) {
                double want = 2.0;
                for (size_t i = 0; i < rows; i++)
                    want = e->step(want, (double)data[1 + i * 101 + j], (double)shift[j]);
                CHECK_MSG(near(acc[j], want, fmax(fabs(want), 30.0 * (double)rows)),
                          "%s %s: column %zu of %zu x %zu gives %g, not %g", isa, e->name, j, rows, columns,
                          acc[j], want);
            }
        }
}

static void check_others(const mica_reduce_kernels *kernels, const char *isa)
{
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t n = sizes[s];
        double want = 0.0, magnitude = 0.0;
        for (size_t i = 0; i < n; i++) {
            want += (double)data[i + 1] * (double)other[i];
            magnitude += fabs((double)data[i + 1] * (double)other[i]);
        }
        CHECK_MSG(near(kernels->dot(data + 1, other, n), want, magnitude), "%s dot of %zu", isa, n);
        float line[64];
        for (size_t i = 0; i < 64; i++) {
            size_t pair = i / 2;
            line[i] = i == n % 64 ? NAN : (float)pair;
        }
        CHECK_MSG(kernels->find(line, 64, NAN) == n % 64, "%s find NaN at %zu", isa, n % 64);
        CHECK_MSG(kernels->find(line, 64, 100.0f) == 64, "%s find nothing", isa);
        size_t place = 0;
        while (place < 64 && line[place] != 9.0f)
            place++;
        CHECK_MSG(kernels->find(line, 64, 9.0f) == place, "%s find the first of two", isa);
    }
}

static void check_arg(const mica_reduce_kernels *kernels, const char *isa)
{
    enum { ROWS = 40, MOST = 37 };
    static float x[ROWS][MOST];
    test_random r = test_seed(3);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < MOST; j++)
            x[i][j] = test_chance(&r, 1) ? NAN : (float)test_int(&r, -3, 3);
    for (size_t columns = 1; columns < MOST; columns += 3)
        for (int largest = 0; largest < 2; largest++) {
            float best[MOST];
            int32_t index[MOST];
            for (size_t j = 0; j < MOST; j++) {
                best[j] = x[0][j];
                index[j] = 0;
            }
            (largest ? kernels->argmax_columns : kernels->argmin_columns)(best, index, x[1], MOST, ROWS - 1,
                                                                          columns, 1);
            for (size_t j = 0; j < columns; j++) {
                int32_t want = 0;
                for (int i = 1; i < ROWS; i++) {
                    float top = x[want][j], v = x[i][j];
                    if (!isnan(top) && (isnan(v) || (largest ? v > top : v < top)))
                        want = i;
                }
                CHECK_MSG(index[j] == want, "%s arg: column %zu of %zu is at %d, not %d", isa, j, columns,
                          (int)index[j], (int)want);
            }
            CHECK_MSG(index[columns] == 0, "%s arg: %zu columns: wrote beyond", isa, columns);
        }
}

TEST(kernel_reduce_matches_double)
{
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        const mica_kernels *kernels = mica_kernels_choose(isas[i]);
        if (kernels == NULL)
            continue;
        for (size_t e = 0; e < sizeof entries / sizeof *entries; e++) {
            const mica_reduce_kernel *kernel = (const void *)((const char *)kernels->reduce +
                                                              entries[e].offset);
            for (int nans = 0; nans < 2; nans++) {
                fill(nans);
                check_rows(&entries[e], kernel, isas[i]);
                check_columns(&entries[e], kernel, isas[i]);
            }
        }
        fill(false);
        check_others(kernels->reduce, isas[i]);
        check_arg(kernels->reduce, isas[i]);
    }
}
