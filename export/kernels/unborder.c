/* y = x without its border, or with add, y += x. */
#include "plane.c"

static void unborder(float *y /* [channels, rows, columns] */, const float *x, struct plane p, int channels,
                     int add)
{
    for (int c = 0; c < channels; c++, x += p.plane)
        for (int i = 0; i < p.rows; i++)
            for (int j = 0; j < p.columns; j++, y++)
                *y = x[i * p.stride + j] + (add ? *y : 0.0f);
}
