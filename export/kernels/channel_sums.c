/* sums[c] += x over the batch and all pixels: the gradient of a bias of channels. */
#ifndef KERNEL_CHANNEL_SUMS
#define KERNEL_CHANNEL_SUMS

static void channel_sums(float *sums /* [channels] */, const float *x /* [batch, channels, inner] */,
                         int batch, int channels, int inner)
{
    for (int n = 0; n < batch; n++)
        for (int c = 0; c < channels; c++, x += inner) {
            float sum = 0.0f;
            for (int i = 0; i < inner; i++)
                sum += x[i];
            sums[c] += sum;
        }
}

#endif /* KERNEL_CHANNEL_SUMS */
