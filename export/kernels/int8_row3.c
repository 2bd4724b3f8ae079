/* Three taps of a row at two neighbouring places, from four bytes x0 to x3 and weights w0 to w2: the first is x0 w0 +
 * x2 w2 and x1 w1, the second x1 w0 + x3 w2 and x2 w1. */
#ifndef KERNEL_INT8_ROW3
#define KERNEL_INT8_ROW3

#include <stdint.h>

#include "int8_halves.c"
#include "int8_inline.c"
#include "int8_pairs.c"

static INT8_PART void int8_row3(int32_t *left, int32_t *right, int32_t x02, int32_t x13, int32_t w02,
                                int32_t w1)
{
    *left = add_first(add_both(*left, x02, w02), x13, w1);
    *right = add_second(add_both(*right, x13, w02), x02, w1);
}

#endif /* KERNEL_INT8_ROW3 */
