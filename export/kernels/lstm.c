/* A long short-term memory over sequences, gates i, f, g, o: c = f c' + i g, h = o tanh(c). */
#ifndef KERNEL_LSTM
#define KERNEL_LSTM

#include <string.h>

#include "recurrent_state.c"
#include "recurrent_sum.c"
#include "sigmoid.c"
#include "tanh.c"

static void lstm(float *steps /* or NULL */, float *gates /* [time, batch, 4 hidden] or NULL */,
                 float *cells /* [time, batch, hidden] or NULL */, float *h_n /* [batch, hidden] or NULL */,
                 float *c_n /* the same */, const float *x, const struct recurrent_weights *w,
                 const float *h_0 /* [batch, hidden] or NULL */, const float *c_0 /* the same */,
                 const struct recurrent_shape *s, float *scratch /* [3, hidden] */)
{
    int hidden = s->hidden;
    for (int n = 0; n < s->batch; n++) {
        const float *h = h_0 != NULL ? h_0 + n * hidden : NULL, *c = c_0 != NULL ? c_0 + n * hidden : NULL;
        for (int t = 0; t < s->time; t++) {
            const float *in = x + t * s->x_time + n * s->x_batch;
            float *h_now = recurrent_state(steps, scratch, s, t, n), *kept = NULL;
            float *c_now = cells != NULL ? cells + (t * s->batch + n) * hidden : scratch + 2 * hidden;
            if (gates != NULL)
                kept = gates + (t * s->batch + n) * 4 * hidden;
            for (int j = 0; j < hidden; j++) {
                float a[4];
                for (int k = 0, r = j; k < 4; k++, r += hidden) {
                    float bias = (w->b_ih != NULL ? w->b_ih[r] : 0.0f) +
                                 (w->b_hh != NULL ? w->b_hh[r] : 0.0f);
                    a[k] = recurrent_sum(in, h, w->w_ih + r * s->inputs, w->w_hh + r * hidden, s->inputs,
                                         hidden, bias);
                    a[k] = k == 2 ? tanh_f(a[k]) : sigmoid_f(a[k]);
                    if (kept != NULL)
                        kept[r] = a[k];
                }
                c_now[j] = (c != NULL ? a[1] * c[j] : 0.0f) + a[0] * a[2];
                h_now[j] = a[3] * tanh_f(c_now[j]);
            }
            h = h_now;
            c = c_now;
        }
        if (h_n != NULL)
            memcpy(h_n + n * hidden, h, (size_t)hidden * sizeof *h);
        if (c_n != NULL)
            memcpy(c_n + n * hidden, c, (size_t)hidden * sizeof *c);
    }
}

#endif /* KERNEL_LSTM */
