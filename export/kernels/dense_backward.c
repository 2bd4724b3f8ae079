/* All gradients of dense, in one pass over the weights: dw += dyT x, db += the sum of dy's rows, dx += dy w. */
#include <stddef.h>

static void dense_backward(float *dw /* [outputs, inputs] */, float *db /* [outputs] or NULL */,
                           float *dx /* [rows, inputs] or NULL */, const float *dy /* [rows, outputs] */,
                           const float *x /* [rows, inputs] */, const float *w /* [outputs, inputs] */,
                           int rows, int outputs, int inputs)
{
    for (int r = 0; r < rows; r++, x += inputs) {
        float *to = dw;
        const float *from = w;
        for (int o = 0; o < outputs; o++, from += inputs) {
            float d = *dy++;
            if (db != NULL)
                db[o] += d;
            for (int i = 0; i < inputs; i++) {
                *to++ += d * x[i];
                if (dx != NULL)
                    dx[i] += d * from[i];
            }
        }
        if (dx != NULL)
            dx += inputs;
    }
}
