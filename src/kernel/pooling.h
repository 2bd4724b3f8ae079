/* Pooling kernels over contiguous planes [planes, height, width].
 *
 * One-dimensional pooling is pooling of planes of height 1. */
#ifndef MICA_SRC_KERNEL_POOLING_H
#define MICA_SRC_KERNEL_POOLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sizes along height [0] and width [1]. */
typedef struct mica_pool_shape {
    ptrdiff_t in[2], out[2], kernel[2], stride[2], pad[2], dilation[2];
    bool exclude_pad; /* an average divides by the elements inside the plane */
} mica_pool_shape;

typedef struct mica_pool_kernels {
    /* Output rows `begin` to `end` of all planes' rows [planes * out[0]]. indices (where each maximum lies in
     * its plane; -1 where a window has no element) may be NULL. */
    void (*max)(float *y, int32_t *indices, const float *x, size_t begin, size_t end,
                const mica_pool_shape *s);
    void (*average)(float *y, const float *x, size_t begin, size_t end, const mica_pool_shape *s);

    /* Whole planes: dx is written, not added to. */
    void (*max_backward)(float *dx, const float *dy, const int32_t *indices, size_t planes,
                         const mica_pool_shape *s);
    void (*average_backward)(float *dx, const float *dy, size_t planes, const mica_pool_shape *s);

    /* The mean of each of out[0] x out[1] nearly equal parts; only in and out of s count. */
    void (*adaptive)(float *y, const float *x, size_t planes, const mica_pool_shape *s);
    void (*adaptive_backward)(float *dx, const float *dy, size_t planes, const mica_pool_shape *s);
} mica_pool_kernels;

#endif
