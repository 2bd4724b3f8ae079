/* The cross-entropy of each row with its label or its distribution, smoothed and weighed by class, and the gradient,
 * which may lie over pred. Of probabilities, logarithms are no less than -100 and divisors no less than 1e-12. With
 * `counts` the mean is over the weights of the classes of rows that are not ignored. */
#ifndef KERNEL_CLASS_LOSS
#define KERNEL_CLASS_LOSS

#include <stddef.h>
#include <stdint.h>

#include "exp.c"
#include "log.c"

static float class_loss(float *grad /* [rows, classes] */, const float *pred,
                        const int32_t *label /* [rows] or NULL */,
                        const float *target /* [rows, classes] or NULL */,
                        const float *weights /* [classes] or NULL */, int rows, int classes, float scale,
                        float smoothing, int ignore, int ignored, int counts, int probabilities)
{
    float loss = 0.0f, counted = 0.0f;
    for (int r = 0; counts && r < rows; r++)
        if (!ignore || label[r] != ignored)
            counted += weights != NULL ? weights[label[r]] : 1.0f;
    if (counts && counted > 0.0f)
        scale /= counted;
    for (int r = 0; r < rows; r++, pred += classes, grad += classes) {
        float most = pred[0], sum = 0.0f, total = 0.0f, dot = 0.0f;
        for (int i = 1; i < classes; i++)
            most = pred[i] > most ? pred[i] : most;
        for (int i = 0; !probabilities && i < classes; i++)
            sum += exp_f(pred[i] - most);
        for (int pass = 0; pass < 2; pass++) /* sums, then the gradient */
            for (int i = 0; i < classes; i++) {
                float t = target != NULL ? target[r * classes + i] : label[r] == i ? 1.0f : 0.0f;
                t = t * (1.0f - smoothing) + smoothing / (float)classes;
                t = weights != NULL ? t * weights[i] : t;
                if (label != NULL && ignore && label[r] == ignored)
                    t = 0.0f;
                if (pass == 1 && probabilities) {
                    grad[i] = -scale * t / (pred[i] < 1e-12f ? 1e-12f : pred[i]);
                } else if (pass == 1) {
                    grad[i] = scale * (total * exp_f(pred[i] - most) / sum - t);
                } else if (t != 0.0f && probabilities) {
                    float least = log_f(pred[i]);
                    dot += t * (least < -100.0f ? -100.0f : least);
                } else if (t != 0.0f) {
                    total += t;
                    dot += t * (pred[i] - most);
                }
            }
        loss += (probabilities || total == 0.0f ? 0.0f : total * log_f(sum)) - dot;
    }
    return scale * loss;
}

#endif /* KERNEL_CLASS_LOSS */
