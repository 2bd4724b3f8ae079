/* dx[indices] += dy, plane by plane. */
#ifndef KERNEL_MAX_POOL_GENERAL_BACKWARD
#define KERNEL_MAX_POOL_GENERAL_BACKWARD

#include <stdint.h>

static void max_pool_general_backward(float *dx /* [planes, plane] */,
                                      const float *dy /* [planes, windows] */,
                                      const int32_t *indices /* the same */, int planes, int plane,
                                      int windows)
{
    for (int p = 0; p < planes; p++, dx += plane)
        for (int i = 0; i < windows; i++)
            dx[*indices++] += *dy++;
}

#endif /* KERNEL_MAX_POOL_GENERAL_BACKWARD */
