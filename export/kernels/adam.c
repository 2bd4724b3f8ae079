/* Adam over `count` parameters; with keep below 1 they shrink first (AdamW), with decay it is part of the gradient. */
#include "sqrt.c"

static void adam(float *w, const float *gradient, float *mean, float *square, int count, float step,
                 float root_scale, float beta1, float beta2, float eps, float decay, float keep)
{
    for (int i = 0; i < count; i++) {
        float g = gradient[i] + decay * w[i];
        mean[i] = beta1 * mean[i] + (1.0f - beta1) * g;
        square[i] = beta2 * square[i] + (1.0f - beta2) * g * g;
        w[i] = keep * w[i] - step * mean[i] / (sqrt_f(square[i]) * root_scale + eps);
    }
}
