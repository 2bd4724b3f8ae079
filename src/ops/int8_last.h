/* Images with channels last: [N, C, H, W] with the strides [H * W * C, 1, W * C, C]. */
#ifndef MICA_SRC_OPS_INT8_LAST_H
#define MICA_SRC_OPS_INT8_LAST_H

#include <mica/tensor.h>
#include <stdbool.h>

static inline bool mica_is_channels_last(const mica_tensor *t)
{
    if (t == NULL || t->rank != 4)
        return false;
    mica_index c = t->dim[1], want[4] = {t->dim[2] * t->dim[3] * c, 1, t->dim[3] * c, c};
    for (int k = 0; k < 4; k++)
        if (t->dim[k] > 1 && t->stride[k] != want[k])
            return false;
    return true;
}

#endif
