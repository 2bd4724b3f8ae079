/* The sum of scale times the cross-entropy of each row's softmax with its label, and the gradient, which may lie over
 * the logits. */
#include <stdint.h>

#include "exp.c"
#include "log.c"

static float cross_entropy(float *grad /* [rows, classes] */, const float *logits,
                           const int32_t *label /* [rows] */, int rows, int classes, float scale)
{
    float loss = 0.0f;
    for (int r = 0; r < rows; r++, logits += classes, grad += classes) {
        float most = logits[0], sum = 0.0f, own = logits[label[r]];
        for (int i = 1; i < classes; i++)
            most = logits[i] > most ? logits[i] : most;
        for (int i = 0; i < classes; i++)
            sum += grad[i] = exp_f(logits[i] - most);
        for (int i = 0; i < classes; i++)
            grad[i] *= scale / sum;
        grad[label[r]] -= scale;
        loss += log_f(sum) + most - own;
    }
    return scale * loss;
}
