/* dw += dyT x */
static void dense_backward_weight(float *dw /* [outputs, inputs] */, const float *dy /* [rows, outputs] */,
                                  const float *x /* [rows, inputs] */, int rows, int outputs, int inputs)
{
    for (int r = 0; r < rows; r++, x += inputs) {
        float *to = dw;
        for (int o = 0; o < outputs; o++, to += inputs) {
            float d = *dy++;
            for (int i = 0; i < inputs; i++)
                to[i] += d * x[i];
        }
    }
}
