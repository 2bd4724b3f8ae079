/* A gated recurrent unit over sequences, gates r, z, n and m = W_hn h' + b_hn: n = tanh(.. + r m), h = n + z (h' -
 * n). */
#ifndef KERNEL_GRU
#define KERNEL_GRU

#include <string.h>

#include "recurrent_state.c"
#include "recurrent_sum.c"
#include "sigmoid.c"
#include "tanh.c"

static void gru(float *steps /* or NULL */, float *gates /* [time, batch, 4 hidden] or NULL */,
                float *h_n /* [batch, hidden] or NULL */, const float *x, const struct recurrent_weights *w,
                const float *h_0 /* [batch, hidden] or NULL */, const struct recurrent_shape *s,
                float *scratch /* [2, hidden] */)
{
    int hidden = s->hidden;
    for (int n = 0; n < s->batch; n++) {
        const float *h = h_0 != NULL ? h_0 + n * hidden : NULL;
        for (int t = 0; t < s->time; t++) {
            const float *in = x + t * s->x_time + n * s->x_batch;
            float *h_now = recurrent_state(steps, scratch, s, t, n);
            for (int j = 0; j < hidden; j++) {
                float a[4];
                for (int k = 0, r = j; k < 3; k++, r += hidden) {
                    float from_x = w->b_ih != NULL ? w->b_ih[r] : 0.0f,
                          from_h = w->b_hh != NULL ? w->b_hh[r] : 0.0f;
                    from_x = recurrent_sum(in, NULL, w->w_ih + r * s->inputs, NULL, s->inputs, 0, from_x);
                    from_h = recurrent_sum(NULL, h, NULL, w->w_hh + r * hidden, 0, hidden, from_h);
                    a[k] = k < 2 ? sigmoid_f(from_x + from_h) : tanh_f(from_x + a[0] * from_h);
                    a[3] = from_h;
                }
                h_now[j] = a[2] + a[1] * ((h != NULL ? h[j] : 0.0f) - a[2]);
                for (int k = 0; gates != NULL && k < 4; k++)
                    gates[((t * s->batch + n) * 4 + k) * hidden + j] = a[k];
            }
            h = h_now;
        }
        if (h_n != NULL)
            memcpy(h_n + n * hidden, h, (size_t)hidden * sizeof *h);
    }
}

#endif /* KERNEL_GRU */
