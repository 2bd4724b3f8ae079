/* Constants that lie in flash in another order than in the net. */
#include "export/emit_int8.h"

static int number_at(const mica_tensor *t, size_t i)
{
    if (t->dtype == MICA_I32)
        return ((const int32_t *)t->data)[i];
    if (t->dtype == MICA_U8)
        return ((const uint8_t *)t->data)[i];
    const int8_t *weights = t->data;
    return weights[i] < -127 ? -127 : weights[i]; /* as the library's products have it */
}

/* Byte i of [outputs, channels, threes, rows, 4]. The last three of a row may begin inside the one before: zeros
 * there. */
static int of_threes(const mica_tensor *t, size_t i)
{
    size_t columns = (size_t)t->dim[t->rank - 1], rows = t->rank > 3 ? (size_t)t->dim[2] : 1;
    size_t threes = (columns + 2) / 3, byte = i % 4, row = i / 4 % rows, three = i / 4 / rows % threes,
           kernel = i / 4 / rows / threes;
    size_t first = 3 * three + 3 <= columns ? 3 * three : columns - 3;
    if (byte == 3 || first + byte < 3 * three)
        return 0;
    return number_at(t, (kernel * rows + row) * columns + first + byte);
}

int packed_number(const value *v, const mica_tensor *t, size_t i)
{
    return v->packed == PACK_THREES ? of_threes(t, i) : number_at(t, v->packed == PACK_EACH ? 0 : i);
}
