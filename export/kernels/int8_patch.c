/* What the taps of one place of a convolution meet, in a row. */
#ifndef KERNEL_INT8_PATCH
#define KERNEL_INT8_PATCH

#include <stdint.h>

#include "int8_inline.c"
#include "unroll.c"

static INT8_PART int8_t *int8_patch(int8_t *patch /* [channels, rows, columns] */, const int8_t *x,
                                    int stride, int plane, int channels, int rows, int columns)
{
    for (int c = 0; c < channels; c++, x += plane) {
        const int8_t *row = x;
        for (int r = 0; r < rows; r++, row += stride)
            UNROLL
        for (int q = 0; q < columns; q++)
            *patch++ = row[q];
    }
    return patch;
}

#endif /* KERNEL_INT8_PATCH */
