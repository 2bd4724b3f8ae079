/* The gradients of gru, back through time. dgates may be gates. dy has the layout of the steps, or with last_only it is
 * [batch, hidden], of the last time alone. */
#ifndef KERNEL_GRU_BACKWARD
#define KERNEL_GRU_BACKWARD

#include "recurrent_back.c"

static void gru_backward(const struct recurrent_grads *g, float *dgates /* [time, batch, 4 hidden] */,
                         const float *dy, const float *x, const float *steps, const float *gates,
                         const struct recurrent_weights *w, const float *h_0 /* [batch, hidden] or NULL */,
                         const struct recurrent_shape *s, int last_only, float *dh /* [hidden], scratch */)
{
    int hidden = s->hidden;
    for (int n = 0; n < s->batch; n++) {
        recurrent_take(dh, g->dh_n, n, hidden);
        for (int t = s->time - 1; t >= 0; t--) {
            int row = t * s->batch + n, step = t * s->steps_time + n * s->steps_batch;
            const float *a = gates + row * 4 * hidden;
            const float *h_before = t > 0         ? steps + step - s->steps_time
                                    : h_0 != NULL ? h_0 + n * hidden
                                                  : NULL;
            float *d = dgates + row * 4 * hidden;
            for (int j = 0; j < hidden; j++) {
                float r = a[j], z = a[hidden + j], u = a[2 * hidden + j], m = a[3 * hidden + j];
                float dy_j = last_only ? (t == s->time - 1 ? dy[n * hidden + j] : 0.0f) : dy[step + j];
                float dh_j = dh[j] + dy_j, du = dh_j * (1.0f - z) * (1.0f - u) * (1.0f + u);
                d[j] = du * m * r * (1.0f - r);
                d[hidden + j] = dh_j * ((h_before != NULL ? h_before[j] : 0.0f) - u) * z * (1.0f - z);
                d[2 * hidden + j] = du;
                d[3 * hidden + j] = du * r;
                dh[j] = dh_j * z;
            }
            recurrent_back(g, w, dh, d, x, h_before, t * s->x_time + n * s->x_batch, 3, s->inputs, hidden);
        }
        recurrent_leave(g->dh_0, dh, n, hidden);
    }
}

#endif /* KERNEL_GRU_BACKWARD */
