/* Random kernels: fills from a position in a stream, and dropout. base/philox.h defines the numbers. */
#ifndef MICA_SRC_KERNEL_RANDOM_H
#define MICA_SRC_KERNEL_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#include <mica/random.h>

/* What an element's chance to stay is counted in: sixteen bits decide. */
#define MICA_DROPOUT_CHANCES 65536

/* Element i is of position from->position + i: a fill may be cut anywhere and gives the same. */
typedef struct mica_random_kernels {
    /* [0, 1), a multiple of 2^-24: the same bits on every instruction set, and as mica_random_uniform. */
    void (*uniform)(float *dst, size_t n, const mica_random *from);

    /* Mean 0, variance 1: as mica_random_normal within rounding. */
    void (*normal)(float *dst, size_t n, const mica_random *from);

    /* x = start + factor x, but never past `end`: an upper bound with `up`, else a lower one. */
    void (*spread)(float *x, size_t n, float start, float factor, float end, bool up);

    /* mask[i] = bits16[i] < kept;  dst[i] = mask[i] ? x[i] * (65,536 / kept) : 0, 0 <= kept <= 65,536. dst may be x;
     * mask may be NULL. The same bits on every instruction set. */
    void (*dropout)(float *dst, uint8_t *mask, const float *x, size_t n, int32_t kept,
                    const mica_random *from);

    /* dx[i] = mask[i] ? dy[i] * (65,536 / kept) : 0. dx may be dy. */
    void (*dropout_backward)(float *dx, const float *dy, const uint8_t *mask, size_t n, int32_t kept);
} mica_random_kernels;

#endif
