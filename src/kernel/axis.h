/* Kernels along one axis: every element of the result depends on a whole line of the input.
 *
 * Each comes in two forms: for contiguous lines, and for a panel of adjacent lines, whose
 * steps along the axis are rows. src/ops/axis.h reduces any layout to one of them. dst may be one of the
 * sources. */
#ifndef MICA_SRC_KERNEL_AXIS_H
#define MICA_SRC_KERNEL_AXIS_H

#include <stddef.h>

typedef void mica_line_fn(float *dst, const float *const *src, size_t n, float param);

/* Row i of operand k (dst, src[0], ...) starts stride[k] * i elements on. */
typedef void mica_panel_fn(float *dst, const float *const *src, const ptrdiff_t *stride, size_t n,
                           size_t columns, float param);

typedef struct mica_axis_kernel {
    mica_line_fn *line;
    mica_panel_fn *panel;
} mica_axis_kernel;

/* Name and number of sources. The backward ones take dy, then y (softmaxes) or x (l2_normalize, whose param
 * is the smallest norm). */
#define MICA_AXIS_KERNELS(X)   \
    X(softmax, 1)              \
    X(softmax_backward, 2)     \
    X(log_softmax, 1)          \
    X(log_softmax_backward, 2) \
    X(l2_normalize, 1)         \
    X(l2_normalize_backward, 2)

typedef struct mica_axis_kernels {
#define MICA_AXIS_FIELD(name, sources) mica_axis_kernel name;
    MICA_AXIS_KERNELS(MICA_AXIS_FIELD)
#undef MICA_AXIS_FIELD
} mica_axis_kernels;

#endif
