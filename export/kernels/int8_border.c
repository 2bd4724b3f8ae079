/* y = x with a border of zeros around each plane. */
#ifndef KERNEL_INT8_BORDER
#define KERNEL_INT8_BORDER

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static void int8_border(int8_t *y /* [planes, rows + 2 width, columns + 2 width] */,
                        const int8_t *x /* [planes, rows, columns] */, int planes, int rows, int columns,
                        int width)
{
    int stride = columns + 2 * width;
    memset(y, 0, (size_t)(planes * (rows + 2 * width) * stride));
    y += width;
    for (int p = 0; p < planes; p++) {
        y += width * stride;
        for (int i = 0; i < rows; i++, y += stride, x += columns)
            memcpy(y, x, (size_t)columns);
        y += width * stride;
    }
}

#endif /* KERNEL_INT8_BORDER */
