/* Activations; compiled once per instruction set. In a backward kernel a is dy, and b is x or y. */
#include "kernel/activation.h"
#include "kernel/kernels.h"
#include "kernel/map_loop.h"
#include "kernel/vmath.h"

VF_INLINE vf one(void) { return vf_set1(1.0f); }

/* vf_min and vf_max let a NaN in their second argument through. */
VF_INLINE vf relu(vf x) { return vf_max(vf_zero(), x); }
VF_INLINE vf relu6(vf x) { return vf_min(vf_set1(6.0f), relu(x)); }

MAP1_LIGHT(relu, 0, relu(a))
/* dx = dy where y > 0 */
MAP2_LIGHT(relu_backward, 0, vf_select(vf_le(b, vf_zero()), vf_zero(), a))

MAP1_LIGHT(relu6, 0, relu6(a))
/* dx = dy where 0 < y < 6 */
MAP2_LIGHT(relu6_backward, 0, vf_select(vm_or(vf_le(b, vf_zero()), vf_ge(b, vf_set1(6.0f))), vf_zero(), a))

MAP1_LIGHT(leaky_relu, 1, vf_select(vf_le(a, vf_zero()), vf_mul(a, p[0]), a))
/* dx = dy, times the slope where y <= 0 */
MAP2_LIGHT(leaky_relu_backward, 1, vf_select(vf_le(b, vf_zero()), vf_mul(a, p[0]), a))

MAP1(elu, 1, vf_select(vf_le(a, vf_zero()), vf_mul(p[0], vf_expm1(a)), a))
/* dx = dy, times alpha e^x = y + alpha where y <= 0 */
MAP2(elu_backward, 1, vf_select(vf_le(b, vf_zero()), vf_mul(a, vf_add(b, p[0])), a))

MAP1(sigmoid, 0, vf_sigmoid(a))
/* dx = dy y (1 - y) */
MAP2(sigmoid_backward, 0, vf_mul(a, vf_mul(b, vf_sub(one(), b))))

MAP1(tanh, 0, vf_tanh(a))
/* dx = dy (1 - y^2), without cancellation near 1 */
MAP2(tanh_backward, 0, vf_mul(a, vf_mul(vf_sub(one(), b), vf_add(one(), b))))

MAP1(softplus, 0, vf_softplus(a))
/* dx = dy sigmoid(x) */
MAP2(softplus_backward, 0, vf_mul(a, vf_sigmoid(b)))

MAP1(silu, 0, vf_silu(a))
MAP2(silu_backward, 0, vf_mul(a, vf_silu_grad(b)))

MAP1(gelu, 0, vf_gelu(a))
MAP2(gelu_backward, 0, vf_mul(a, vf_gelu_grad(b)))

MAP1(gelu_tanh, 0, vf_gelu_tanh(a))
MAP2(gelu_tanh_backward, 0, vf_mul(a, vf_gelu_tanh_grad(b)))

/* 1/2 + x/3 between -3 and 3, 0 below, 1 above */
VF_INLINE vf hard_swish_grad(vf x)
{
    vf inside = vf_fma(x, vf_set1(1.0f / 3.0f), vf_set1(0.5f));
    inside = vf_select(vf_le(x, vf_set1(-3.0f)), vf_zero(), inside);
    return vf_select(vf_ge(x, vf_set1(3.0f)), one(), inside);
}

MAP1(hard_swish, 0, vf_mul(a, vf_mul(relu6(vf_add(a, vf_set1(3.0f))), vf_set1(1.0f / 6.0f))))
MAP2(hard_swish_backward, 0, vf_mul(a, hard_swish_grad(b)))

const mica_activation_kernels VF_SYMBOL(mica_activation_kernels) = {
#define FIELDS(name, params, reads) .name = map_##name, .name##_backward = map_##name##_backward,
    MICA_ACTIVATIONS(FIELDS)};

#define SYMBOLS(name, params, reads)                 \
    MICA_KERNEL_SYMBOL(activation, name, map_##name) \
    MICA_KERNEL_SYMBOL(activation, name##_backward, map_##name##_backward)
MICA_ACTIVATIONS(SYMBOLS)
