/* Rotary kernels: rotate n pairs of one row. y may be x. */
#ifndef MICA_SRC_KERNEL_ROTARY_H
#define MICA_SRC_KERNEL_ROTARY_H

#include <stddef.h>

/* turn[n] cosines, then n sines; the sines are multiplied by `sign`. */
typedef void mica_rotary_fn(float *y, const float *x, const float *turn, size_t n, float sign);

typedef struct mica_rotary_kernels {
    mica_rotary_fn *halves; /* (x[i], x[i + n]) */
    mica_rotary_fn *pairs;  /* (x[2i], x[2i + 1]) */
} mica_rotary_kernels;

#endif
