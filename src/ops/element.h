/* One element of a tensor, whatever its dtype. */
#ifndef MICA_SRC_OPS_ELEMENT_H
#define MICA_SRC_OPS_ELEMENT_H

#include <mica/tensor.h>

#include "kernel/convert.h"

/* The value of the element at an offset. */
double mica_element_value(const mica_convert_kernels *convert, const mica_tensor *t, mica_index offset);

#endif
