/* The sum of scale times the binary cross-entropy of probabilities, and its gradient, which may lie over them.
 * Logarithms are no less than -100. */
#include "log.c"

static float bce_loss(float *grad, const float *pred, const float *target, int count, float scale)
{
    float sum = 0.0f;
    for (int i = 0; i < count; i++) {
        float p = pred[i], t = target[i], yes = log_f(p), no = log_f(1.0f - p), slope = p * (1.0f - p);
        sum -= t * (yes > -100.0f ? yes : -100.0f) + (1.0f - t) * (no > -100.0f ? no : -100.0f);
        grad[i] = scale * (p - t) / (slope > 1e-12f ? slope : 1e-12f);
    }
    return scale * sum;
}
