/* The sum of scale d^2 / 2 for d = |pred - target| up to delta, scale delta (d - delta / 2) beyond; and its gradient,
 * which may lie over pred. */
static float huber_loss(float *grad, const float *pred, const float *target, int count, float scale,
                        float delta)
{
    float sum = 0.0f;
    for (int i = 0; i < count; i++) {
        float d = pred[i] - target[i], far = d < 0.0f ? -d : d;
        sum += far > delta ? delta * (far - 0.5f * delta) : 0.5f * d * d;
        grad[i] = scale * (d > delta ? delta : d < -delta ? -delta : d);
    }
    return scale * sum;
}
