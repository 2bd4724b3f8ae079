/* Element-wise kernels; compiled once per instruction set. */
#include "kernel/map.h"
#include "kernel/vmath.h"

/* The loops that all of them share. `f` is a constant, so it is inlined. */
VF_INLINE void map1(float *dst, const float *const *src, size_t n, vf (*f)(vf))
{
    const float *a = src[0];
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_store(dst + i, f(vf_load(a + i)));
    if (i < n)
        vf_store_tail(dst + i, f(vf_load_tail(a + i, n - i)), n - i);
}

VF_INLINE void map2(float *dst, const float *const *src, size_t n, vf (*f)(vf, vf))
{
    const float *a = src[0], *b = src[1];
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_store(dst + i, f(vf_load(a + i), vf_load(b + i)));
    if (i < n)
        vf_store_tail(dst + i, f(vf_load_tail(a + i, n - i), vf_load_tail(b + i, n - i)), n - i);
}

#define UNARY(name, f)                                                                        \
    static void map_##name(float *dst, const float *const *src, size_t n, const void *params) \
    {                                                                                         \
        (void)params;                                                                         \
        map1(dst, src, n, f);                                                                 \
    }

#define BINARY(name, f)                                                                       \
    static void map_##name(float *dst, const float *const *src, size_t n, const void *params) \
    {                                                                                         \
        (void)params;                                                                         \
        map2(dst, src, n, f);                                                                 \
    }

BINARY(add, vf_add)
BINARY(sub, vf_sub)
BINARY(mul, vf_mul)
BINARY(div, vf_div)
BINARY(pow, vf_pow)

UNARY(exp, vf_exp)
UNARY(expm1, vf_expm1)
UNARY(log, vf_log)
UNARY(log1p, vf_log1p)
UNARY(tanh, vf_tanh)
UNARY(sigmoid, vf_sigmoid)
UNARY(silu, vf_silu)
UNARY(softplus, vf_softplus)
UNARY(erf, vf_erf)
UNARY(gelu, vf_gelu)
UNARY(gelu_tanh, vf_gelu_tanh)
UNARY(sin, vf_sin)
UNARY(cos, vf_cos)

const mica_map_kernels VF_SYMBOL(mica_map_kernels) = {
#define FIELD(name, sources) .name = map_##name,
    MICA_MAP_KERNELS(FIELD)};
