/* Goertzel's algorithm: a resonator for each band. Bands lie equally far apart in pitch, from 300 to 3000 Hz. */
#include "features.h"

#include <math.h>
#include <string.h>

/* 2 cos(2 pi f / rate) for f = 300 * 10^(band / 15) Hz at 8 kHz. */
static const float resonators[band_count] = {
    1.94474f, 1.92501f, 1.89829f, 1.86216f, 1.81341f, 1.74780f,  1.65982f,  1.54243f,
    1.38689f, 1.18278f, 0.91849f, 0.58281f, 0.16808f, -0.32361f, -0.87011f, -1.41421f,
};

/* The exponent of a float is a logarithm; the fraction, linear between powers of two, is close enough for features. */
static float log2_of(float x)
{
    int bits;
    memcpy(&bits, &x, sizeof bits);
    return (float)bits * (1.0f / 8388608.0f) - 127.0f;
}

void features_of(float *features /* [frame_count, band_count] */,
                 const float *sound /* [frame_count * frame_length] */)
{
    for (int frame = 0; frame < frame_count; frame++, sound += frame_length)
        for (int band = 0; band < band_count; band++) {
            float a = 0, b = 0, r = resonators[band];
            for (int i = 0; i < frame_length; i++) {
                float next = sound[i] + r * a - b;
                b = a;
                a = next;
            }
            *features++ = log2_of(a * a + b * b - r * a * b + 1e-3f);
        }
}
