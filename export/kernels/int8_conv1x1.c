/* Convolution of bytes, 1 x 1: four pixels (there are at least as many) of two channels at a time. The last four
 * may be done twice. */
#ifndef KERNEL_INT8_CONV1X1
#define KERNEL_INT8_CONV1X1

#include <stdint.h>

#include "int8_finish.c"
#include "int8_pairs.c"

/* The lower halves of two pairs, and their upper halves, as pairs. */
static inline int32_t lower_halves(int32_t a, int32_t b)
{
    return (int32_t)(((uint32_t)a & 0xffffu) | (uint32_t)b << 16);
}
static inline int32_t upper_halves(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a >> 16 | ((uint32_t)b & 0xffff0000u));
}

static void int8_conv1x1(int8_t *y /* [groups outputs, pixels] */,
                         const int8_t *x /* [groups channels, pixels] */,
                         const int8_t *w /* [groups outputs, channels] */,
                         const int32_t *bias /* [groups outputs] */, const int32_t *multiplier /* the same */,
                         const uint8_t *shift /* the same */, int groups, int channels, int outputs,
                         int pixels, int low, int high)
{
    for (int k = 0; k < groups * outputs; k++, y += pixels, w += channels) {
        const int8_t *from = x + k / outputs * channels * pixels;
        for (int pixel = 0; pixel < pixels; pixel += 4) {
            int at = pixel + 4 <= pixels ? pixel : pixels - 4;
            const int8_t *four = from + at;
            int32_t sum[4] = {bias[k], bias[k], bias[k], bias[k]};
            for (int c = 0; c < channels; c += 2, four += 2 * pixels) {
                int pair = c + 1 < channels;
                int32_t a = load4(four), b = pair ? load4(four + pixels) : 0;
                int32_t weights = (int32_t)(((uint32_t)w[c] & 0xffffu) |
                                            (pair ? (uint32_t)w[c + 1] << 16 : 0u));
                int32_t even_a = even_pair(a), odd_a = odd_pair(a), even_b = even_pair(b),
                        odd_b = odd_pair(b);
                sum[0] = add_both(sum[0], lower_halves(even_a, even_b), weights);
                sum[1] = add_both(sum[1], lower_halves(odd_a, odd_b), weights);
                sum[2] = add_both(sum[2], upper_halves(even_a, even_b), weights);
                sum[3] = add_both(sum[3], upper_halves(odd_a, odd_b), weights);
            }
            for (int n = 0; n < 4; n++)
                y[at + n] = int8_finish(sum[n], multiplier[k], shift[k], low, high);
        }
    }
}

#endif /* KERNEL_INT8_CONV1X1 */
