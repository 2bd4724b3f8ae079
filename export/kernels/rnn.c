/* A plain recurrent network over sequences: h = tanh(..), or relu. */
#ifndef KERNEL_RNN
#define KERNEL_RNN

#include <string.h>

#include "recurrent_state.c"
#include "recurrent_sum.c"
#include "tanh.c"

static void rnn(float *steps /* or NULL */, float *h_n /* [batch, hidden] or NULL */, const float *x,
                const struct recurrent_weights *w, const float *h_0 /* [batch, hidden] or NULL */,
                const struct recurrent_shape *s, int relu, float *scratch /* [2, hidden] */)
{
    int hidden = s->hidden;
    for (int n = 0; n < s->batch; n++) {
        const float *h = h_0 != NULL ? h_0 + n * hidden : NULL;
        for (int t = 0; t < s->time; t++) {
            const float *in = x + t * s->x_time + n * s->x_batch;
            float *h_now = recurrent_state(steps, scratch, s, t, n);
            for (int j = 0; j < hidden; j++) {
                float a = (w->b_ih != NULL ? w->b_ih[j] : 0.0f) + (w->b_hh != NULL ? w->b_hh[j] : 0.0f);
                a = recurrent_sum(in, h, w->w_ih + j * s->inputs, w->w_hh + j * hidden, s->inputs, hidden, a);
                h_now[j] = relu ? (a > 0.0f ? a : 0.0f) : tanh_f(a);
            }
            h = h_now;
        }
        if (h_n != NULL)
            memcpy(h_n + n * hidden, h, (size_t)hidden * sizeof *h);
    }
}

#endif /* KERNEL_RNN */
