/* y = softmax(scale q kT + mask) v for every head, key by key: sums are rescaled when a larger score comes, so that
 * there is no matrix of scores. A query that sees no key gives zeros. y may be q. */
#ifndef KERNEL_ATTENTION
#define KERNEL_ATTENTION

#include <string.h>

#include "attention_score.c"
#include "exp.c"
#include "log.c"

static void attention(float *y, float *lse /* [batch, heads, queries] or NULL */, const float *q,
                      const float *k, const float *v, const float *mask, const uint8_t *hide,
                      const struct attention_shape *s, float *row /* [features], scratch */)
{
    int rows = s->batch * s->heads * s->queries;
    for (int r = 0; r < rows; r++) {
        int t = r % s->queries, head = r / s->queries % s->heads, n = r / s->queries / s->heads;
        int kv = n * s->k[0] + head / (s->heads / s->kv_heads) * s->k[1];
        int at = n * s->mask[0] + head * s->mask[1] + t * s->mask[2];
        int keys = s->causal ? s->keys - s->queries + t + 1 : s->keys;
        float *out = y + n * s->y[0] + head * s->y[1] + t * s->y[2], most = 0.0f, sum = 0.0f;
        memcpy(row, q + n * s->q[0] + head * s->q[1] + t * s->q[2], (size_t)s->features * sizeof *row);
        memset(out, 0, (size_t)s->features * sizeof *out);
        for (int j = 0; j < keys; j++) {
            int seen;
            float score = attention_score(row, k + kv + j * s->k[2], mask, hide, s, at + j * s->mask[3],
                                          &seen);
            if (!seen)
                continue;
            if (sum == 0.0f || score > most) {
                float less = sum == 0.0f ? 0.0f : exp_f(most - score);
                for (int i = 0; i < s->features; i++)
                    out[i] *= less;
                sum *= less;
                most = score;
            }
            float p = exp_f(score - most);
            for (int i = 0; i < s->features; i++)
                out[i] += p * v[kv + j * s->k[2] + i];
            sum += p;
        }
        for (int i = 0; sum > 0.0f && i < s->features; i++)
            out[i] /= sum;
        if (lse != NULL)
            lse[r] = sum > 0.0f ? most + log_f(sum) : log_f(0.0f);
    }
}

#endif /* KERNEL_ATTENTION */
