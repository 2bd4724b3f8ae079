/* dx = y (dy - the sum of dy y) along an axis, from softmax's output y. dx may be dy or y. */
#ifndef KERNEL_SOFTMAX_AXIS_BACKWARD
#define KERNEL_SOFTMAX_AXIS_BACKWARD

static void softmax_axis_backward(float *dx /* [outer, count, inner] */, const float *dy, const float *y,
                                  int outer, int count, int inner)
{
    for (int o = 0; o < outer; o++, dx += count * inner, dy += count * inner, y += count * inner)
        for (int i = 0; i < inner; i++) {
            float sum = 0.0f;
            for (int k = 0; k < count; k++)
                sum += dy[k * inner + i] * y[k * inner + i];
            for (int k = 0; k < count; k++)
                dx[k * inner + i] = y[k * inner + i] * (dy[k * inner + i] - sum);
        }
}

#endif /* KERNEL_SOFTMAX_AXIS_BACKWARD */
