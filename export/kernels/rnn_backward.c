/* The gradients of rnn, back through time. dy has the layout of the steps, or with last_only it is [batch, hidden],
 * of the last time alone. */
#ifndef KERNEL_RNN_BACKWARD
#define KERNEL_RNN_BACKWARD

#include "recurrent_back.c"

static void rnn_backward(const struct recurrent_grads *g, const float *dy, const float *x, const float *steps,
                         const struct recurrent_weights *w, const float *h_0 /* [batch, hidden] or NULL */,
                         const struct recurrent_shape *s, int relu, int last_only,
                         float *scratch /* [2, hidden] */)
{
    int hidden = s->hidden;
    float *dh = scratch, *d = scratch + hidden;
    for (int n = 0; n < s->batch; n++) {
        recurrent_take(dh, g->dh_n, n, hidden);
        for (int t = s->time - 1; t >= 0; t--) {
            int step = t * s->steps_time + n * s->steps_batch;
            const float *h = steps + step;
            const float *h_before = t > 0 ? h - s->steps_time : h_0 != NULL ? h_0 + n * hidden : NULL;
            for (int j = 0; j < hidden; j++) {
                float dy_j = last_only ? (t == s->time - 1 ? dy[n * hidden + j] : 0.0f) : dy[step + j];
                float dh_j = dh[j] + dy_j;
                d[j] = relu ? (h[j] <= 0.0f ? 0.0f : dh_j) : dh_j * (1.0f - h[j]) * (1.0f + h[j]);
                dh[j] = 0.0f;
            }
            recurrent_back(g, w, dh, d, x, h_before, t * s->x_time + n * s->x_batch, 1, s->inputs, hidden);
        }
        recurrent_leave(g->dh_0, dh, n, hidden);
    }
}

#endif /* KERNEL_RNN_BACKWARD */
