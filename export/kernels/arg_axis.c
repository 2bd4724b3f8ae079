/* Where the largest (or smallest) along an axis lies: the first of equal ones. NaN wins. */
#ifndef KERNEL_ARG_AXIS
#define KERNEL_ARG_AXIS

#include <stdint.h>

static void arg_axis(int32_t *y /* [outer, inner] */, const float *x /* [outer, count, inner] */, int outer,
                     int count, int inner, int largest)
{
    for (int o = 0; o < outer; o++, x += count * inner)
        for (int i = 0; i < inner; i++) {
            int best = 0;
            for (int k = 1; k < count; k++) {
                float a = x[k * inner + i], b = x[best * inner + i];
                if ((largest ? a > b : a < b) || (a != a && b == b))
                    best = k;
            }
            *y++ = best;
        }
}

#endif /* KERNEL_ARG_AXIS */
