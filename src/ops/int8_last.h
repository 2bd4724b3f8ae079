/* Images with channels last: [N, C, H, W] with the strides [H * W * C, 1, W * C, C], and nothing between them. */
#ifndef MICA_SRC_OPS_INT8_LAST_H
#define MICA_SRC_OPS_INT8_LAST_H

#include <mica/tensor.h>
#include <stdbool.h>

static inline bool mica_is_dense_channels_last(const mica_tensor *t)
{
    if (t == NULL || t->rank < 3)
        return false;
    mica_index stride = t->dim[1];
    for (int k = t->rank - 1; k >= 0; k--) {
        if (t->dim[k] > 1 && t->stride[k] != (k == 1 ? 1 : stride))
            return false;
        stride *= k == 1 ? 1 : t->dim[k];
    }
    return true;
}

#endif
