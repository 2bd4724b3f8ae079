/* sin(x + quadrant pi/2), so that quadrant 1 is the cosine: an absolute error of 1e-7 up to |x| = 1000, and of 1e-6 up
 * to 30,000. NaN beyond 1e9, where a float has no phase left. */
#ifndef KERNEL_SIN
#define KERNEL_SIN

#include <stdint.h>

static float sin_from(float x, int quadrant)
{
    if (!(x < 1e9f && x > -1e9f))
        return (x - x) / 0x1p-149f * 0.0f;
    int32_t n = (int32_t)(x * 0x1.45f306p-1f + (x < 0.0f ? -0.5f : 0.5f));
    float count = (float)n;
    /* pi/2 in four parts: the products with the first three are exact for n up to 2^13 */
    float r = x - count * 0x1.92p+0f;
    r -= count * 0x1.fb4p-12f;
    r -= count * 0x1.444p-24f;
    r -= count * 0x1.68c234p-39f;
    float square = r * r, y;
    n += quadrant;
    if (n & 1) {
        y = 0x1.99e41p-16f;
        y = y * square - 0x1.6c0c2p-10f;
        y = y * square + 0x1.55554ap-5f;
        y = square * square * y - 0.5f * square + 1.0f;
    } else {
        y = -0x1.994c2ap-13f;
        y = y * square + 0x1.11076ap-7f;
        y = y * square - 0x1.555546p-3f;
        y = r * square * y + r;
    }
    return n & 2 ? -y : y;
}

#endif /* KERNEL_SIN */
