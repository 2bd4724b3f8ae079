/* Element-wise kernels: dst[i] = f(src[0][i], src[1][i], ...) over contiguous runs.
 *
 * src/ops/walk.h reduces any layout to such runs. dst may be one of the sources. */
#ifndef MICA_SRC_KERNEL_MAP_H
#define MICA_SRC_KERNEL_MAP_H

#include <stddef.h>

/* `params`: as many floats as the list says the kernel takes. */
typedef void mica_map_fn(float *dst, const float *const *src, size_t n, const void *params);

/* One list per form of kernel; the operations, and the tests of the kernels, are made from the same lists. */

/* f(a), which src/ops/typed.h has for other types too */
#define MICA_MAP_UNARY_TYPED(X) \
    X(neg)                      \
    X(abs)                      \
    X(sign)                     \
    X(square)                   \
    X(sqrt)                     \
    X(floor)                    \
    X(ceil)                     \
    X(round)

/* f(a) */
#define MICA_MAP_UNARY(X) \
    X(rsqrt)              \
    X(reciprocal)         \
    X(exp)                \
    X(expm1)              \
    X(log)                \
    X(log1p)              \
    X(sin)                \
    X(cos)                \
    X(erf)                \
    X(tan)                \
    X(asin)               \
    X(acos)               \
    X(atan)               \
    X(sinh)               \
    X(cosh)               \
    X(asinh)              \
    X(acosh)              \
    X(atanh)

/* f(a, b) */
#define MICA_MAP_BINARY(X) \
    X(add)                 \
    X(sub)                 \
    X(mul)                 \
    X(div)                 \
    X(min)                 \
    X(max)                 \
    X(pow)

/* Activations that only nets of other frameworks have; the others are in activation.h */
#define MICA_MAP_CURVES(X)                                                           \
    X(mish, 1, 0)             /* a tanh(softplus(a)) */                              \
    X(softsign, 1, 0)         /* a / (1 + |a|) */                                    \
    X(celu, 1, 1)             /* a where a > 0, else p[0] (exp(a / p[0]) - 1) */     \
    X(selu, 1, 2)             /* p[1] times a where a > 0, else p[0] (exp(a) - 1) */ \
    X(hard_sigmoid, 1, 2)     /* p[0] a + p[1] held within 0 to 1 */                 \
    X(thresholded_relu, 1, 1) /* a where a > p[0], else 0 */                         \
    X(shrink, 1, 2)           /* p[0] nearer to 0 where |a| > p[1], else 0 */        \
    X(swish, 1, 1)            /* a sigmoid(p[0] a) */                                \
    X(prelu, 2, 0)            /* a where a > 0, else a * b */

/* f(a), with one number s */
#define MICA_MAP_SCALAR(X) \
    X(add_scalar)          \
    X(sub_scalar)          \
    X(rsub_scalar)         \
    X(scale)               \
    X(div_scalar)          \
    X(rdiv_scalar)         \
    X(min_scalar)          \
    X(max_scalar)          \
    X(pow_scalar)

/* f(a, b) is 1 or 0 */
#define MICA_MAP_COMPARE(X) \
    X(eq)                   \
    X(ne)                   \
    X(lt)                   \
    X(le)                   \
    X(gt)                   \
    X(ge)

/* f(a) is 1 or 0 */
#define MICA_MAP_CLASSIFY(X) \
    X(isnan)                 \
    X(isfinite)

/* Forms of their own: name, sources, params. */
#define MICA_MAP_OTHER(X)                                      \
    X(clamp, 1, 2)       /* a held within p[0] to p[1] */      \
    X(add_scaled, 2, 1)  /* a + p[0] * b */                    \
    X(lerp, 2, 1)        /* a + p[0] * (b - a) */              \
    X(where, 3, 0)       /* a != 0 ? b : c */                  \
    X(where_true, 2, 0)  /* b != 0 ? a : 0: where, backward */ \
    X(where_false, 2, 0) /* b == 0 ? a : 0 */

typedef struct mica_map_kernels {
#define MICA_MAP_FIELD(name)                    mica_map_fn *name;
#define MICA_MAP_FIELD_3(name, sources, params) mica_map_fn *name;
    MICA_MAP_UNARY_TYPED(MICA_MAP_FIELD)
    MICA_MAP_UNARY(MICA_MAP_FIELD)
    MICA_MAP_BINARY(MICA_MAP_FIELD)
    MICA_MAP_SCALAR(MICA_MAP_FIELD)
    MICA_MAP_COMPARE(MICA_MAP_FIELD)
    MICA_MAP_CLASSIFY(MICA_MAP_FIELD)
    MICA_MAP_OTHER(MICA_MAP_FIELD_3)
    MICA_MAP_CURVES(MICA_MAP_FIELD_3)
#undef MICA_MAP_FIELD
#undef MICA_MAP_FIELD_3
} mica_map_kernels;

#endif
