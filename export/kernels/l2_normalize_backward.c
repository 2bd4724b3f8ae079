/* dx = (dy - x (x . dy) / |x|^2) / |x|, or dy / least where |x| is smaller. dx may be dy or x. */
#ifndef KERNEL_L2_NORMALIZE_BACKWARD
#define KERNEL_L2_NORMALIZE_BACKWARD

#include "sqrt.c"

static void l2_normalize_backward(float *dx /* [outer, count, inner] */, const float *dy, const float *x,
                                  int outer, int count, int inner, float least)
{
    for (int o = 0; o < outer; o++, dx += count * inner, dy += count * inner, x += count * inner)
        for (int i = 0; i < inner; i++) {
            float square = 0.0f, product = 0.0f;
            for (int k = 0; k < count; k++) {
                square += x[k * inner + i] * x[k * inner + i];
                product += x[k * inner + i] * dy[k * inner + i];
            }
            float norm = sqrt_f(square), scale = 1.0f / (norm < least ? least : norm);
            float back = norm < least ? 0.0f : product / square * scale;
            for (int k = 0; k < count; k++)
                dx[k * inner + i] = dy[k * inner + i] * scale - x[k * inner + i] * back;
        }
}

#endif /* KERNEL_L2_NORMALIZE_BACKWARD */
