/* Element-wise kernels: dst[i] = f(src[0][i], src[1][i], ...) over contiguous runs.
 *
 * src/ops/walk.h brings any layout down to such runs. dst may be one of the sources. */
#ifndef MICA_SRC_KERNEL_MAP_H
#define MICA_SRC_KERNEL_MAP_H

#include <stddef.h>

/* `params`: what the list below says the operation takes, as floats. */
typedef void mica_map_fn(float *dst, const float *const *src, size_t n, const void *params);

/* Every element-wise kernel by name and number of sources. */
#define MICA_MAP_KERNELS(X) \
    X(add, 2)               \
    X(sub, 2)               \
    X(mul, 2)               \
    X(div, 2)               \
    X(exp, 1)               \
    X(expm1, 1)             \
    X(log, 1)               \
    X(log1p, 1)             \
    X(tanh, 1)              \
    X(sigmoid, 1)           \
    X(silu, 1)              \
    X(softplus, 1)          \
    X(erf, 1)               \
    X(gelu, 1)              \
    X(gelu_tanh, 1)         \
    X(sin, 1)               \
    X(cos, 1)               \
    X(pow, 2)

typedef struct mica_map_kernels {
#define MICA_MAP_FIELD(name, sources) mica_map_fn *name;
    MICA_MAP_KERNELS(MICA_MAP_FIELD)
#undef MICA_MAP_FIELD
} mica_map_kernels;

#endif
