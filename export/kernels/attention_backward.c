/* The gradients of attention, added to dq, dk and dv: p = e^(score - lse), dv += p dy, ds = p (dy . v - dy . y) scale,
 * dq += ds k, dk += ds q. Scores are computed again. */
#ifndef KERNEL_ATTENTION_BACKWARD
#define KERNEL_ATTENTION_BACKWARD

#include "attention_score.c"
#include "exp.c"

static void attention_backward(float *dq, float *dk, float *dv, const float *dy, const float *q,
                               const float *k, const float *v, const float *y,
                               const float *lse /* [batch, heads, queries] */, const float *mask,
                               const uint8_t *hide, const struct attention_shape *s)
{
    int rows = s->batch * s->heads * s->queries;
    for (int r = 0; r < rows; r++) {
        int t = r % s->queries, head = r / s->queries % s->heads, n = r / s->queries / s->heads;
        int kv = n * s->k[0] + head / (s->heads / s->kv_heads) * s->k[1];
        int to = n * s->q[0] + head * s->q[1] + t * s->q[2],
            from = n * s->y[0] + head * s->y[1] + t * s->y[2];
        int at = n * s->mask[0] + head * s->mask[1] + t * s->mask[2];
        int keys = s->causal ? s->keys - s->queries + t + 1 : s->keys;
        float delta = 0.0f;
        for (int i = 0; i < s->features; i++)
            delta += dy[from + i] * y[from + i];
        for (int j = 0; j < keys; j++) {
            int seen, key = kv + j * s->k[2];
            float score = attention_score(q + to, k + key, mask, hide, s, at + j * s->mask[3], &seen),
                  dp = 0.0f;
            if (!seen)
                continue;
            float p = exp_f(score - lse[r]);
            for (int i = 0; i < s->features; i++) {
                dp += dy[from + i] * v[key + i];
                dv[key + i] += p * dy[from + i];
            }
            dp = p * (dp - delta) * s->scale;
            for (int i = 0; i < s->features; i++) {
                dq[to + i] += dp * k[key + i];
                dk[key + i] += dp * q[to + i];
            }
        }
    }
}

#endif /* KERNEL_ATTENTION_BACKWARD */
