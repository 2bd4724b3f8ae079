/* One row of one time, back: from d, the gradients by what went into the gates, those of the weights and biases are
 * added up, dx is written and dh, the gradient of the state before, added to. The GRU's third block is d's third as
 * seen from the input, its fourth as seen from the state. */
#ifndef KERNEL_RECURRENT_BACK
#define KERNEL_RECURRENT_BACK

#include <stddef.h>

#include "recurrent_shape.c"

/* Destinations of the gradients; each may be NULL. */
struct recurrent_grads {
    float *dx /* as x */, *dw_ih, *dw_hh, *db_ih, *db_hh;
    float *dh_0, *dc_0;       /* [batch, hidden] */
    const float *dh_n, *dc_n; /* the same; NULL: zeros */
};

/* Row n of the gradient of a final state, and of an initial one. */
static void recurrent_take(float *row /* [hidden] */, const float *from, int n, int hidden)
{
    for (int i = 0; i < hidden; i++)
        row[i] = from != NULL ? from[n * hidden + i] : 0.0f;
}

static void recurrent_leave(float *to, const float *row /* [hidden] */, int n, int hidden)
{
    for (int i = 0; to != NULL && i < hidden; i++)
        to[n * hidden + i] = row[i];
}

static void recurrent_back(const struct recurrent_grads *g, const struct recurrent_weights *w,
                           float *dh /* [hidden] */,
                           const float *d /* [blocks hidden], of the GRU one block more */, const float *x,
                           const float *h /* [hidden] or NULL */, int at /* in x and dx */, int blocks,
                           int inputs, int hidden)
{
    float *dx = g->dx != NULL ? g->dx + at : NULL;
    for (int i = 0; dx != NULL && i < inputs; i++)
        dx[i] = 0.0f;
    for (int r = 0; r < blocks * hidden; r++) {
        float by_x = d[r], by_h = d[blocks == 3 && r >= 2 * hidden ? r + hidden : r];
        const float *w_ih = w->w_ih + r * inputs, *w_hh = w->w_hh + r * hidden;
        for (int i = 0; dx != NULL && i < inputs; i++)
            dx[i] += by_x * w_ih[i];
        for (int i = 0; g->dw_ih != NULL && i < inputs; i++)
            g->dw_ih[r * inputs + i] += by_x * x[at + i];
        for (int i = 0; i < hidden; i++)
            dh[i] += by_h * w_hh[i];
        for (int i = 0; g->dw_hh != NULL && h != NULL && i < hidden; i++)
            g->dw_hh[r * hidden + i] += by_h * h[i];
        if (g->db_ih != NULL)
            g->db_ih[r] += by_x;
        if (g->db_hh != NULL)
            g->db_hh[r] += by_h;
    }
}

#endif /* KERNEL_RECURRENT_BACK */
