/* The gradients of lstm, back through time. dgates may be gates. dy has the layout of the steps, or with last_only
 * it is [batch, hidden], of the last time alone. */
#ifndef KERNEL_LSTM_BACKWARD
#define KERNEL_LSTM_BACKWARD

#include "recurrent_back.c"
#include "tanh.c"

static void lstm_backward(const struct recurrent_grads *g, float *dgates /* [time, batch, 4 hidden] */,
                          const float *dy, const float *x, const float *steps, const float *gates,
                          const float *cells /* [time, batch, hidden] */, const struct recurrent_weights *w,
                          const float *h_0 /* [batch, hidden] or NULL */, const float *c_0 /* the same */,
                          const struct recurrent_shape *s, int last_only, float *scratch /* [2, hidden] */)
{
    int hidden = s->hidden;
    float *dh = scratch, *dc = scratch + hidden;
    for (int n = 0; n < s->batch; n++) {
        recurrent_take(dh, g->dh_n, n, hidden);
        recurrent_take(dc, g->dc_n, n, hidden);
        for (int t = s->time - 1; t >= 0; t--) {
            int row = t * s->batch + n, step = t * s->steps_time + n * s->steps_batch;
            const float *a = gates + row * 4 * hidden, *c = cells + row * hidden;
            const float *h_before = t > 0         ? steps + step - s->steps_time
                                    : h_0 != NULL ? h_0 + n * hidden
                                                  : NULL;
            const float *c_before = t > 0 ? c - s->batch * hidden : c_0 != NULL ? c_0 + n * hidden : NULL;
            float *d = dgates + row * 4 * hidden;
            for (int j = 0; j < hidden; j++) {
                float i = a[j], f = a[hidden + j], u = a[2 * hidden + j], o = a[3 * hidden + j];
                float squashed = tanh_f(c[j]),
                      dy_j = last_only ? (t == s->time - 1 ? dy[n * hidden + j] : 0.0f) : dy[step + j];
                float dh_j = dh[j] + dy_j, dc_j = dc[j] + dh_j * o * (1.0f - squashed) * (1.0f + squashed);
                d[j] = dc_j * u * i * (1.0f - i);
                d[hidden + j] = c_before != NULL ? dc_j * c_before[j] * f * (1.0f - f) : 0.0f;
                d[2 * hidden + j] = dc_j * i * (1.0f - u) * (1.0f + u);
                d[3 * hidden + j] = dh_j * squashed * o * (1.0f - o);
                dc[j] = dc_j * f;
                dh[j] = 0.0f;
            }
            recurrent_back(g, w, dh, d, x, h_before, t * s->x_time + n * s->x_batch, 4, s->inputs, hidden);
        }
        recurrent_leave(g->dh_0, dh, n, hidden);
        recurrent_leave(g->dc_0, dc, n, hidden);
    }
}

#endif /* KERNEL_LSTM_BACKWARD */
