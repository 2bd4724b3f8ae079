/* dx[index] += dy, where one element along an axis was taken: the gradient of an extreme. */
#ifndef KERNEL_PUT_ALONG_AXIS
#define KERNEL_PUT_ALONG_AXIS

#include <stdint.h>

static void put_along_axis(float *dx /* [outer, count, inner] */, const float *dy /* [outer, inner] */,
                           const int32_t *index /* the same */, int outer, int count, int inner)
{
    for (int o = 0; o < outer; o++, dx += count * inner)
        for (int i = 0; i < inner; i++)
            dx[*index++ * inner + i] += *dy++;
}

#endif /* KERNEL_PUT_ALONG_AXIS */
