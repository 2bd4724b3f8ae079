/* Kernels along an axis on every instruction set that runs here: lines against the scalar ones, panels
 * against lines, at all sizes around a vector's, with nothing written outside. */
#include <math.h>
#include <string.h>

#include "base/context.h"
#include "kernel/kernels.h"
#include "test.h"

static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};
static const size_t sizes[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 130, 1500};
enum { LONGEST = 1500, COLUMNS = 70, ROWS = 130, GUARD = 16 };
static const float guard = -12345.0f, least = 1e-3f;

typedef struct entry {
    const char *name;
    size_t offset;
    int sources;
} entry;

static const entry entries[] = {
#define ENTRY(name, sources) {#name, offsetof(mica_axis_kernels, name), sources},
    MICA_AXIS_KERNELS(ENTRY)};

static const mica_axis_kernel *kernel_of(const mica_kernels *kernels, const entry *e)
{
    return (const void *)((const char *)kernels->axis + e->offset);
}

/* Source 1 is what a forward gave: of log_softmax, logarithms of probabilities, whose exponentials must not blow
 * the rounding of a sum up. */
static float drawn(test_random *r, int source)
{
    float value = (float)test_normal(r);
    return source == 1 ? -fabsf(value) : value;
}

/* Sums of some hundred products of normal numbers, in different orders. */
static bool near(float got, float want) { return fabsf(got - want) <= 2e-5f * fmaxf(fabsf(want), 1.0f); }

static void check_lines(const entry *e, const mica_axis_kernel *kernel, const mica_axis_kernel *scalar,
                        const char *isa)
{
    static float source[2][LONGEST + 4], dst[LONGEST + 2 * GUARD], want[LONGEST];
    test_random r = test_seed(1);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < LONGEST + 4; i++)
            source[k][i] = drawn(&r, k);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t n = sizes[s];
        const float *at[2] = {source[0] + s % 3, source[1] + s % 2};
        for (size_t i = 0; i < LONGEST + 2 * GUARD; i++)
            dst[i] = guard;
        float *out = dst + GUARD - s % 4;
        kernel->line(out, at, n, least);
        scalar->line(want, at, n, least);
        for (size_t i = 0; i < n; i++)
            CHECK_MSG(near(out[i], want[i]), "%s %s, n %zu: element %zu is %g, scalar gives %g", isa, e->name,
                      n, i, (double)out[i], (double)want[i]);
        CHECK_MSG(out[-1] == guard && out[n] == guard, "%s %s, n %zu: wrote outside", isa, e->name, n);
        memcpy(want, at[0], n * sizeof(float));
        kernel->line(want, (const float *[]){want, at[1]}, n, least);
        CHECK_MSG(memcmp(want, out, n * sizeof(float)) == 0, "%s %s, n %zu: differs in place", isa, e->name,
                  n);
    }
}

/* Panels of every width, compared column by column. */
static void check_panels(const entry *e, const mica_axis_kernel *kernel, const char *isa)
{
    static float source[2][ROWS * COLUMNS], dst[ROWS * COLUMNS];
    const ptrdiff_t stride[3] = {COLUMNS, COLUMNS, COLUMNS};
    test_random r = test_seed(2);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < ROWS * COLUMNS; i++)
            source[k][i] = drawn(&r, k);
    for (size_t columns = 1; columns < COLUMNS; columns += columns < 20 ? 1 : 7)
        for (size_t rows = 1; rows <= ROWS; rows = rows * 3 + 1) {
            for (int i = 0; i < ROWS * COLUMNS; i++)
                dst[i] = guard;
            kernel->panel(dst, (const float *[]){source[0], source[1]}, stride, rows, columns, least);
            for (size_t j = 0; j < COLUMNS; j++) {
                float line[2][ROWS], want[ROWS];
                for (size_t i = 0; i < rows; i++)
                    for (int k = 0; k < 2; k++)
                        line[k][i] = source[k][i * COLUMNS + j];
                kernel->line(want, (const float *[]){line[0], line[1]}, rows, least);
                for (size_t i = 0; i < rows; i++) {
                    float got = dst[i * COLUMNS + j];
                    CHECK_MSG(j < columns ? near(got, want[i]) : got == guard,
                              "%s %s: row %zu, column %zu of %zu x %zu is %g", isa, e->name, i, j, rows,
                              columns, (double)got);
                }
            }
        }
}

TEST(kernel_axis_lines_and_panels)
{
    const mica_kernels *scalar = mica_kernels_choose("scalar");
    REQUIRE(scalar != NULL);
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        const mica_kernels *kernels = mica_kernels_choose(isas[i]);
        if (kernels == NULL)
            continue;
        for (size_t e = 0; e < sizeof entries / sizeof *entries; e++) {
            check_lines(&entries[e], kernel_of(kernels, &entries[e]), kernel_of(scalar, &entries[e]),
                        isas[i]);
            check_panels(&entries[e], kernel_of(kernels, &entries[e]), isas[i]);
        }
    }
}
