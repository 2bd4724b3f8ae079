/* The sum of scale times the binary cross-entropy of sigmoid(logits), and its gradient, which may lie over the
 * logits. */
#include "exp.c"
#include "log.c"

static float bce_logits_loss(float *grad, const float *logits, const float *target, int count, float scale)
{
    float sum = 0.0f;
    for (int i = 0; i < count; i++) {
        float z = logits[i], t = target[i], far = z < 0.0f ? -z : z, e = exp_f(-far), p = 1.0f / (1.0f + e);
        sum += far * (z > 0.0f ? 1.0f - t : t) + log_f(1.0f + e);
        grad[i] = scale * ((z < 0.0f ? e * p : p) - t);
    }
    return scale * sum;
}
