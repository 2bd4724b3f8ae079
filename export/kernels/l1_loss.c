/* The sum of scale |pred - target|, and its gradient, which may lie over pred: 0 where they are equal. */
static float l1_loss(float *grad, const float *pred, const float *target, int count, float scale)
{
    float sum = 0.0f;
    for (int i = 0; i < count; i++) {
        float d = pred[i] - target[i];
        sum += d < 0.0f ? -d : d;
        grad[i] = d > 0.0f ? scale : d < 0.0f ? -scale : 0.0f;
    }
    return scale * sum;
}
