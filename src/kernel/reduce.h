/* Reduction kernels: many elements into one, along a contiguous row or down the columns of a matrix.
 *
 * Results accumulate in double: `acc` holds the kernel's initial value, or the result of earlier
 * elements. Sums are exact to (SUM_STEPS + 8) half-ulps of the sum of magnitudes (sum_loop.h); NaN is the extreme
 * of max and min. */
#ifndef MICA_SRC_KERNEL_REDUCE_H
#define MICA_SRC_KERNEL_REDUCE_H

#include <stddef.h>
#include <stdint.h>

/* What the deviations are taken from is `shift`; the other kernels do not look at it. */
typedef void mica_reduce_row_fn(double *acc, const float *x, size_t n, float shift);

/* acc[j] of column j; row i starts at x + i * stride. */
typedef void mica_reduce_columns_fn(double *acc, const float *x, ptrdiff_t stride, size_t rows,
                                    size_t columns, const float *shift);

typedef struct mica_reduce_kernel {
    mica_reduce_row_fn *row;
    mica_reduce_columns_fn *columns;
    double start;
    double (*fold)(double a, double b); /* two running results into one */
} mica_reduce_kernel;

/* Name, how results fold, start. */
#define MICA_REDUCE_KERNELS(X)         \
    X(sum, add, 0.0)                   \
    X(sum_abs, add, 0.0)               \
    X(sum_squares, add, 0.0)           \
    X(sum_deviations, add, 0.0)        \
    X(sum_square_deviations, add, 0.0) \
    X(max, max, -INFINITY)             \
    X(min, min, INFINITY)              \
    X(max_abs, max, 0.0)               \
    X(prod, mul, 1.0)

typedef struct mica_reduce_kernels {
#define MICA_REDUCE_FIELD(name, fold, start) mica_reduce_kernel name;
    MICA_REDUCE_KERNELS(MICA_REDUCE_FIELD)
#undef MICA_REDUCE_FIELD

    double (*dot)(const float *a, const float *b, size_t n);

    /* Where x first is `value`, which may be NaN; n if nowhere. */
    size_t (*find)(const float *x, size_t n, float value);

    /* best[j] and its row in index[j], for rows that start at number `first`. Rows take the place of the best
     * so far only where they are larger (smaller for min), or the first NaN. */
    void (*argmax_columns)(float *best, int32_t *index, const float *x, ptrdiff_t stride, size_t rows,
                           size_t columns, int32_t first);
    void (*argmin_columns)(float *best, int32_t *index, const float *x, ptrdiff_t stride, size_t rows,
                           size_t columns, int32_t first);
} mica_reduce_kernels;

#endif
