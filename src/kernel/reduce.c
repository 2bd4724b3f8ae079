/* Reduction kernels; compiled once per instruction set. */
#include "kernel/kernels.h"
#include "kernel/reduce.h"
#include "kernel/sum_loop.h"

/* ---- Folds ---- */

static double fold_add(double a, double b) { return a + b; }
static double fold_mul(double a, double b) { return a * b; }
static double fold_max(double a, double b) { return a > b || a != a ? a : b; }
static double fold_min(double a, double b) { return a < b || a != a ? a : b; }

/* ---- Rows ---- */

#define SUM_ROW(name, term)                                                    \
    static void row_##name(double *acc, const float *x, size_t n, float shift) \
    {                                                                          \
        (void)shift;                                                           \
        *acc += sum_run(x, x, n, shift, term);                                 \
    }
SUM_ROW(sum, term_value)
SUM_ROW(sum_abs, term_abs)
SUM_ROW(sum_squares, term_square)
SUM_ROW(sum_deviations, term_deviation)
SUM_ROW(sum_square_deviations, term_square_deviation)

typedef vf fold_fn(vf a, vf b);

/* The extreme of f(x): `fold` keeps one of two vectors, NaN before all. */
VF_INLINE vf extreme_run(const float *x, size_t n, float start, sum_term *f, fold_fn *fold)
{
    vf m[4];
    for (int w = 0; w < 4; w++)
        m[w] = vf_set1(start);
    size_t i = 0;
    for (; i + 4 * VF_LANES <= n; i += 4 * VF_LANES)
        for (size_t w = 0; w < 4; w++) {
            vf v = vf_load(x + i + w * VF_LANES);
            m[w] = fold(m[w], f(v, v, v));
        }
    for (; i < n; i += VF_LANES) {
        size_t lanes = n - i < VF_LANES ? n - i : VF_LANES;
        vf v = vf_load_tail(x + i, lanes);
        m[0] = vf_select(vm_first(lanes), fold(m[0], f(v, v, v)), m[0]);
    }
    return fold(fold(m[0], m[1]), fold(m[2], m[3]));
}

static void row_max(double *acc, const float *x, size_t n, float shift)
{
    (void)shift;
    *acc = fold_max(*acc, (double)vf_hmax(extreme_run(x, n, -INFINITY, term_value, vf_max_nan)));
}

static void row_min(double *acc, const float *x, size_t n, float shift)
{
    (void)shift;
    *acc = fold_min(*acc, (double)vf_hmin(extreme_run(x, n, INFINITY, term_value, vf_min_nan)));
}

static void row_max_abs(double *acc, const float *x, size_t n, float shift)
{
    (void)shift;
    *acc = fold_max(*acc, (double)vf_hmax(extreme_run(x, n, 0.0f, term_abs, vf_max_nan)));
}

/* In double: products leave the range of floats soon. */
static void row_prod(double *acc, const float *x, size_t n, float shift)
{
    (void)shift;
    double p[4] = {1.0, 1.0, 1.0, 1.0};
    for (size_t i = 0; i < n; i++)
        p[i % 4] *= (double)x[i];
    *acc *= (p[0] * p[1]) * (p[2] * p[3]);
}

/* ---- Columns ---- */

#define COLUMN_VECTORS 4

/* acc of a group of columns, `vectors` vectors of `lanes` lanes: chunks of SUM_STEPS rows in float, those
 * folded in double. */
VF_INLINE void columns_group(double *acc, const float *x, ptrdiff_t stride, size_t rows, const float *shift,
                             size_t vectors, size_t lanes, float start, sum_term *f, fold_fn *fold,
                             double (*fold_double)(double, double))
{
    vf k[COLUMN_VECTORS], part[COLUMN_VECTORS];
    for (size_t v = 0; v < vectors; v++)
        k[v] = shift != NULL ? vf_load_tail(shift + v * VF_LANES, lanes) : vf_zero();
    for (size_t base = 0; base < rows; base += SUM_STEPS) {
        size_t end = rows - base < SUM_STEPS ? rows : base + SUM_STEPS;
        for (size_t v = 0; v < vectors; v++)
            part[v] = vf_set1(start);
        for (size_t i = base; i < end; i++)
            for (size_t v = 0; v < vectors; v++) {
                const float *p = x + (ptrdiff_t)i * stride + v * VF_LANES;
                vf value = lanes == VF_LANES ? vf_load(p) : vf_load_tail(p, lanes);
                part[v] = fold(part[v], f(value, value, k[v]));
            }
        float result[COLUMN_VECTORS * VF_LANES];
        for (size_t v = 0; v < vectors; v++)
            vf_store(result + v * VF_LANES, part[v]);
        for (size_t j = 0; j < (vectors - 1) * VF_LANES + lanes; j++)
            acc[j] = fold_double(acc[j], (double)result[j]);
    }
}

#define COLUMNS(name, start, f, fold, fold_double)                                                         \
    static void columns_##name(double *acc, const float *x, ptrdiff_t stride, size_t rows, size_t columns, \
                               const float *shift)                                                         \
    {                                                                                                      \
        const size_t wide = COLUMN_VECTORS * VF_LANES;                                                     \
        size_t c = 0;                                                                                      \
        for (; c + wide <= columns; c += wide)                                                             \
            columns_group(acc + c, x + c, stride, rows, shift != NULL ? shift + c : NULL, COLUMN_VECTORS,  \
                          VF_LANES, start, f, fold, fold_double);                                          \
        for (; c < columns; c += VF_LANES)                                                                 \
            columns_group(acc + c, x + c, stride, rows, shift != NULL ? shift + c : NULL, 1,               \
                          columns - c < VF_LANES ? columns - c : VF_LANES, start, f, fold, fold_double);   \
    }
COLUMNS(sum, 0.0f, term_value, vf_add, fold_add)
COLUMNS(sum_abs, 0.0f, term_abs, vf_add, fold_add)
COLUMNS(sum_squares, 0.0f, term_square, vf_add, fold_add)
COLUMNS(sum_deviations, 0.0f, term_deviation, vf_add, fold_add)
COLUMNS(sum_square_deviations, 0.0f, term_square_deviation, vf_add, fold_add)
COLUMNS(max, -INFINITY, term_value, vf_max_nan, fold_max)
COLUMNS(min, INFINITY, term_value, vf_min_nan, fold_min)
COLUMNS(max_abs, 0.0f, term_abs, vf_max_nan, fold_max)

static void columns_prod(double *acc, const float *x, ptrdiff_t stride, size_t rows, size_t columns,
                         const float *shift)
{
    (void)shift;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            acc[j] *= (double)x[(ptrdiff_t)i * stride + (ptrdiff_t)j];
}

/* ---- Others ---- */

static double dot(const float *a, const float *b, size_t n) { return sum_run(a, b, n, 0.0f, term_product); }

static size_t find(const float *x, size_t n, float value)
{
    vf wanted = vf_set1(value);
    bool nan = value != value;
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) {
        vf v = vf_load(x + i);
        if (vm_any(nan ? vf_isnan(v) : vf_eq(v, wanted)))
            break;
    }
    while (i < n && !(nan ? x[i] != x[i] : x[i] == value))
        i++;
    return i;
}

VF_INLINE void arg_columns(float *best, int32_t *index, const float *x, ptrdiff_t stride, size_t rows,
                           size_t columns, int32_t first, bool largest)
{
    for (size_t c = 0; c < columns; c += VF_LANES) {
        size_t lanes = columns - c < VF_LANES ? columns - c : VF_LANES;
        vf top = vf_load_tail(best + c, lanes);
        vi where = vi_load_tail(index + c, lanes);
        for (size_t i = 0; i < rows; i++) {
            vf v = vf_load_tail(x + c + (ptrdiff_t)i * stride, lanes);
            vm better = largest ? vf_gt(v, top) : vf_lt(v, top);
            better = vm_and(vm_or(better, vf_isnan(v)), vm_not(vf_isnan(top)));
            top = vf_select(better, v, top);
            where = vi_select(better, vi_set1(first + (int32_t)i), where);
        }
        vf_store_tail(best + c, top, lanes);
        vi_store_tail(index + c, where, lanes);
    }
}

static void argmax_columns(float *best, int32_t *index, const float *x, ptrdiff_t stride, size_t rows,
                           size_t columns, int32_t first)
{
    arg_columns(best, index, x, stride, rows, columns, first, true);
}

static void argmin_columns(float *best, int32_t *index, const float *x, ptrdiff_t stride, size_t rows,
                           size_t columns, int32_t first)
{
    arg_columns(best, index, x, stride, rows, columns, first, false);
}

const mica_reduce_kernels VF_SYMBOL(mica_reduce_kernels) = {
#define FIELD(name, how, first) .name = {row_##name, columns_##name, first, fold_##how},
    MICA_REDUCE_KERNELS(FIELD).dot = dot, .find = find, .argmax_columns = argmax_columns,
    .argmin_columns = argmin_columns};

MICA_KERNEL_SYMBOL(reduce, dot, dot)
MICA_KERNEL_SYMBOL(reduce, find, find)
MICA_KERNEL_SYMBOL(reduce, argmax_columns, argmax_columns)
MICA_KERNEL_SYMBOL(reduce, argmin_columns, argmin_columns)
#if defined(MICA_ONE_ISA)
#define SYMBOL(name, how, first) \
    const mica_reduce_kernel mica_reduce_##name##_kernel = {row_##name, columns_##name, first, fold_##how};
MICA_REDUCE_KERNELS(SYMBOL)
#endif
