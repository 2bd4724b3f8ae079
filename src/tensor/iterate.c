/* The iterator over the elements of any layout. */
#include "tensor/tensor.h"

static void place(mica_iter *it)
{
    mica_index offset = 0;
    for (int k = 0; k < it->tensor.rank; k++)
        offset += it->index[k] * it->tensor.stride[k];
    it->element = mica_element(&it->tensor, offset);
}

mica_iter mica_iter_begin(const mica_tensor *t, unsigned fixed, const mica_index *start)
{
    mica_iter it = {.fixed = fixed};
    char text[MICA_SHAPE_TEXT];
    if (mica_tensor_flaw(t, text) != NULL || t->data == NULL)
        return it;
    it.tensor = *t;
    it.valid = mica_tensor_count(t) > 0;
    for (int k = 0; k < t->rank; k++) {
        if (!(fixed >> k & 1u) || start == NULL)
            continue;
        it.index[k] = start[k] < 0 ? start[k] + t->dim[k] : start[k];
        if (it.index[k] < 0 || it.index[k] >= t->dim[k])
            it.valid = false;
    }
    if (it.valid)
        place(&it);
    return it;
}

void mica_iter_next(mica_iter *it)
{
    if (!it->valid)
        return;
    mica_index offset = 0;
    for (int k = it->tensor.rank - 1; k >= 0; k--) {
        if (it->fixed >> k & 1u)
            continue;
        if (++it->index[k] < it->tensor.dim[k]) {
            offset += it->tensor.stride[k];
            if (mica_in_blocks(it->tensor.dtype)) /* a block's address does not say which value it was */
                place(it);
            else
                it->element = (char *)it->element + offset * (mica_index)mica_dtype_bytes(it->tensor.dtype);
            return;
        }
        offset -= (it->tensor.dim[k] - 1) * it->tensor.stride[k];
        it->index[k] = 0;
    }
    it->valid = false;
}
