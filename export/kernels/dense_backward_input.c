/* dx += dy w */
static void dense_backward_input(float *dx /* [rows, inputs] */, const float *dy /* [rows, outputs] */,
                                 const float *w /* [outputs, inputs] */, int rows, int outputs, int inputs)
{
    for (int r = 0; r < rows; r++, dx += inputs) {
        const float *from = w;
        for (int o = 0; o < outputs; o++, from += inputs) {
            float d = *dy++;
            for (int i = 0; i < inputs; i++)
                dx[i] += d * from[i];
        }
    }
}
