/* y = a number for each channel, or 0. */
#ifndef KERNEL_CHANNEL_FILL
#define KERNEL_CHANNEL_FILL

#include <stddef.h>

static void channel_fill(float *y /* [batch, channels, inner] */, const float *bias /* [channels] or NULL */,
                         int batch, int channels, int inner)
{
    for (int n = 0; n < batch; n++)
        for (int c = 0; c < channels; c++)
            for (int i = 0; i < inner; i++)
                *y++ = bias != NULL ? bias[c] : 0.0f;
}

#endif /* KERNEL_CHANNEL_FILL */
