/* The sum of scale (pred - target)^2, and its gradient, which may lie over pred. */
static float mse_loss(float *grad, const float *pred, const float *target, int count, float scale)
{
    float sum = 0.0f;
    for (int i = 0; i < count; i++) {
        float d = pred[i] - target[i];
        sum += d * d;
        grad[i] = scale * (d + d);
    }
    return scale * sum;
}
