/* y = x with a border of zeros around each plane. */
#include <string.h>

#include "plane.c"

static void border(float *y /* the first element inside */, struct plane p,
                   const float *x /* [channels, rows, columns] */, int channels, int width)
{
    memset(y - width * (p.stride + 1), 0, (size_t)(channels * p.plane) * sizeof *y);
    for (int c = 0; c < channels; c++, y += p.plane)
        for (int i = 0; i < p.rows; i++, x += p.columns)
            memcpy(y + i * p.stride, x, (size_t)p.columns * sizeof *y);
}
