/* Shapes as text. */
#include "base/format.h"
#include "tensor/tensor.h"

mica_shape_text mica_shape_text_of(int rank, const mica_index *dims)
{
    mica_shape_text shape = {"["};
    size_t at = 1;
    for (int k = 0; k < rank && k < MICA_MAX_RANK; k++)
        at += (size_t)mica_format(shape.text + at, MICA_SHAPE_TEXT - at, k > 0 ? ", %td" : "%td", dims[k]);
    mica_format(shape.text + at, MICA_SHAPE_TEXT - at, "]");
    return shape;
}

size_t mica_tensor_print_shape(char *text, size_t size, const mica_tensor *t)
{
    mica_shape_text shape = mica_shape_text_of(t->rank, t->dim);
    return (size_t)mica_format(text, size, "%s", shape.text);
}
