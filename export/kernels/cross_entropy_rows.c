/* The sum of scale times the cross-entropy of each row's softmax with a distribution, and the gradient, which may lie
 * over the logits. */
#include "exp.c"
#include "log.c"

static float cross_entropy_rows(float *grad /* [rows, classes] */, const float *logits, const float *target,
                                int rows, int classes, float scale)
{
    float loss = 0.0f;
    for (int r = 0; r < rows; r++, logits += classes, grad += classes, target += classes) {
        float most = logits[0], sum = 0.0f, total = 0.0f;
        for (int i = 1; i < classes; i++)
            most = logits[i] > most ? logits[i] : most;
        for (int i = 0; i < classes; i++) {
            total += target[i];
            loss -= target[i] != 0.0f ? target[i] * (logits[i] - most) : 0.0f;
            sum += grad[i] = exp_f(logits[i] - most);
        }
        for (int i = 0; i < classes; i++)
            grad[i] = scale * (grad[i] * (total / sum) - target[i]);
        loss += total * log_f(sum);
    }
    return scale * loss;
}
