/* y = x / the larger of |x| and `least`, along an axis. y may be x. */
#ifndef KERNEL_L2_NORMALIZE
#define KERNEL_L2_NORMALIZE

#include "sqrt.c"

static void l2_normalize(float *y /* [outer, count, inner] */, const float *x, int outer, int count,
                         int inner, float least)
{
    for (int o = 0; o < outer; o++, x += count * inner, y += count * inner)
        for (int i = 0; i < inner; i++) {
            float sum = 0.0f;
            for (int k = 0; k < count; k++)
                sum += x[k * inner + i] * x[k * inner + i];
            sum = sqrt_f(sum);
            sum = 1.0f / (sum < least ? least : sum);
            for (int k = 0; k < count; k++)
                y[k * inner + i] = x[k * inner + i] * sum;
        }
}

#endif /* KERNEL_L2_NORMALIZE */
