/* y = x wT + bias, two outputs at a time: each element of x is read once for both. */
#include <stddef.h>

static void dense(float *y /* [rows, outputs] */, const float *x /* [rows, inputs] */,
                  const float *w /* [outputs, inputs] */, const float *bias /* [outputs] or NULL */, int rows,
                  int outputs, int inputs)
{
    for (int r = 0; r < rows; r++, x += inputs) {
        const float *u = w;
        for (int o = 0; o < outputs; o += 2, u += 2 * inputs) {
            const float *v = o + 1 < outputs ? u + inputs : u; /* the last one alone is made twice */
            float s = 0.0f, t = 0.0f;
            for (int i = 0; i < inputs; i++) {
                s += u[i] * x[i];
                t += v[i] * x[i];
            }
            *y++ = s + (bias != NULL ? bias[o] : 0.0f);
            if (o + 1 < outputs)
                *y++ = t + (bias != NULL ? bias[o + 1] : 0.0f);
        }
    }
}
