/* Normalization kernels.
 *
 * Rows are normalized over their own n elements, with gamma and beta along them (layer and RMS norm). A
 * segment is a run of elements that share one mean, scale and shift (a channel of one sample in batch, group
 * and instance norm). */
#ifndef MICA_SRC_KERNEL_NORM_H
#define MICA_SRC_KERNEL_NORM_H

#include <stdbool.h>
#include <stddef.h>

/* How many elements, their mean, and the sum of the squares of their distances from it. */
typedef struct mica_moments {
    float count, mean, m2;
} mica_moments;

/* Forward over rows [rows, n]. Each pointer but y and x may be NULL. y may be x, residual or sum. */
typedef struct mica_norm_rows {
    float *y;
    float *sum;                /* gets x + residual */
    float *mean, *rstd;        /* [rows] */
    const float *x;            /* [rows, n] */
    const float *residual;     /* added to x before all else */
    const float *gamma, *beta; /* [n] */
    size_t n;
    float eps;
    bool centred; /* false: RMS norm */
} mica_norm_rows;

/* Backward over rows. dx may be dy or x. dgamma and dbeta [n] are added to. */
typedef struct mica_norm_rows_backward {
    float *dx, *dgamma, *dbeta; /* each may be NULL */
    const float *dy, *x;        /* [rows, n] */
    const float *mean, *rstd;   /* [rows]; mean NULL: RMS norm */
    const float *gamma;         /* [n] or NULL */
    size_t n;
} mica_norm_rows_backward;

typedef struct mica_norm_kernels {
    void (*rows)(const mica_norm_rows *a, size_t begin, size_t end);
    void (*rows_backward)(const mica_norm_rows_backward *a, size_t begin, size_t end);

    /* Joins the moments of x[0 .. n) to *all. */
    void (*moments)(mica_moments *all, const float *x, size_t n);
    /* y = (x - mean) * scale + shift */
    void (*apply)(float *y, const float *x, size_t n, float mean, float scale, float shift);
    /* sums[0] += sum of dy, sums[1] += sum of dy * (x - mean) */
    void (*sums)(float sums[2], const float *dy, const float *x, size_t n, float mean);
    /* dx = by_dy * dy + by_x * (x - mean) + constant */
    void (*apply_backward)(float *dx, const float *dy, const float *x, size_t n, float mean, float by_dy,
                           float by_x, float constant);

    /* The same four where each element of a row has a mean, scale, ... of its own: batch norm of [rows, n]
     * along the rows. */
    void (*column_moments)(float *mean, float *m2, const float *x, size_t rows, size_t stride, size_t n);
    void (*column_apply)(float *y, const float *x, size_t n, const float *mean, const float *scale,
                         const float *shift);
    void (*column_sums)(float *sum_dy, float *sum_dy_x, const float *dy, const float *x, size_t rows,
                        size_t stride, size_t n, const float *mean);
    void (*column_apply_backward)(float *dx, const float *dy, const float *x, size_t n, const float *mean,
                                  const float *by_dy, const float *by_x, const float *constant);

    /* dst += src */
    void (*add)(float *dst, const float *src, size_t n);
} mica_norm_kernels;

#endif
