/* Optimizers; compiled once per instruction set. The formulas are PyTorch's. */
#include "kernel/optimizer.h"
#include "kernel/vec.h"

/* What an update does to one vector of parameters, given its clipped gradient with decay. Changes the state
 * in place. */
typedef vf update_rule(vf p, vf g, vf *s0, vf *s1, const mica_update *u);

VF_INLINE vf clipped_gradient(vf p, vf g, const mica_update *u)
{
    g = vf_mul(g, vf_set1(u->gradient_scale));
    vf limit = vf_set1(u->clip_value);
    g = vf_min(limit, vf_max(vf_neg(limit), g));
    return vf_fma(vf_set1(u->weight_decay), p, g);
}

/* The loop that all of them share; `rule` is a constant, so it is inlined. */
VF_INLINE void update(float *p, const float *g, float *s0, float *s1, size_t n, const mica_update *given,
                      update_rule *rule)
{
    const mica_update copy = *given, *u = &copy; /* a store cannot change it: its numbers stay in registers */
    vf unused = vf_zero();
    vf keep = vf_set1(u->keep);
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) {
        vf a = s0 != NULL ? vf_load(s0 + i) : unused, b = s1 != NULL ? vf_load(s1 + i) : unused;
        vf x = vf_load(p + i);
        vf_store(p + i, rule(vf_mul(x, keep), clipped_gradient(x, vf_load(g + i), u), &a, &b, u));
        if (s0 != NULL)
            vf_store(s0 + i, a);
        if (s1 != NULL)
            vf_store(s1 + i, b);
    }
    size_t rest = n - i;
    if (rest == 0)
        return;
    vf a = s0 != NULL ? vf_load_tail(s0 + i, rest) : unused,
       b = s1 != NULL ? vf_load_tail(s1 + i, rest) : unused;
    vf x = vf_load_tail(p + i, rest);
    x = rule(vf_mul(x, keep), clipped_gradient(x, vf_load_tail(g + i, rest), u), &a, &b, u);
    vf_store_tail(p + i, x, rest);
    if (s0 != NULL)
        vf_store_tail(s0 + i, a, rest);
    if (s1 != NULL)
        vf_store_tail(s1 + i, b, rest);
}

/* p -= lr g */
VF_INLINE vf sgd_rule(vf p, vf g, vf *s0, vf *s1, const mica_update *u)
{
    (void)s0, (void)s1;
    return vf_fnma(vf_set1(u->lr), g, p);
}

/* v = momentum v + g;  p -= lr v, or with Nesterov lr (g + momentum v) */
VF_INLINE vf momentum_rule(vf p, vf g, vf *s0, vf *s1, const mica_update *u)
{
    (void)s1;
    *s0 = vf_fma(vf_set1(u->momentum), *s0, g);
    vf step = u->nesterov_momentum != 0.0f ? vf_fma(vf_set1(u->nesterov_momentum), *s0, g) : *s0;
    return vf_fnma(vf_set1(u->lr), step, p);
}

/* m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;  p -= step_size m / (sqrt(v) root_scale + eps) */
VF_INLINE vf adam_rule(vf p, vf g, vf *s0, vf *s1, const mica_update *u)
{
    *s0 = vf_fma(vf_set1(u->beta1), *s0, vf_mul(vf_set1(1.0f - u->beta1), g));
    *s1 = vf_fma(vf_set1(u->beta2), *s1, vf_mul(vf_mul(vf_set1(1.0f - u->beta2), g), g));
    vf root = vf_fma(vf_sqrt(*s1), vf_set1(u->root_scale), vf_set1(u->eps));
    return vf_fnma(vf_set1(u->step_size), vf_div(*s0, root), p);
}

/* v = beta2 v + (1 - beta2) g^2, here with alpha for beta2; the scaled gradient is g / (sqrt(v) + eps) */
VF_INLINE vf scaled_by_mean_square(vf g, vf *s0, const mica_update *u)
{
    *s0 = vf_fma(vf_set1(u->beta2), *s0, vf_mul(vf_mul(vf_set1(1.0f - u->beta2), g), g));
    return vf_div(g, vf_add(vf_sqrt(*s0), vf_set1(u->eps)));
}

VF_INLINE vf rmsprop_rule(vf p, vf g, vf *s0, vf *s1, const mica_update *u)
{
    (void)s1;
    return vf_fnma(vf_set1(u->lr), scaled_by_mean_square(g, s0, u), p);
}

VF_INLINE vf rmsprop_momentum_rule(vf p, vf g, vf *s0, vf *s1, const mica_update *u)
{
    *s1 = vf_fma(vf_set1(u->momentum), *s1, scaled_by_mean_square(g, s0, u));
    return vf_fnma(vf_set1(u->lr), *s1, p);
}

/* v += g^2;  p -= lr g / (sqrt(v) + eps) */
VF_INLINE vf adagrad_rule(vf p, vf g, vf *s0, vf *s1, const mica_update *u)
{
    (void)s1;
    *s0 = vf_fma(g, g, *s0);
    return vf_fnma(vf_set1(u->lr), vf_div(g, vf_add(vf_sqrt(*s0), vf_set1(u->eps))), p);
}

#define KERNEL(name, s0, s1)                                                                                 \
    static void name(float *p, const float *g, float *state0, float *state1, size_t n, const mica_update *u) \
    {                                                                                                        \
        (void)state0, (void)state1;                                                                          \
        update(p, g, s0, s1, n, u, name##_rule);                                                             \
    }

KERNEL(sgd, NULL, NULL)
KERNEL(momentum, state0, NULL)
KERNEL(adam, state0, state1)
KERNEL(rmsprop, state0, NULL)
KERNEL(rmsprop_momentum, state0, state1)
KERNEL(adagrad, state0, NULL)

const mica_optimizer_kernels VF_SYMBOL(mica_optimizer_kernels) = {
    .sgd = sgd,
    .sgd_momentum = momentum,
    .adam = adam,
    .rmsprop = rmsprop,
    .rmsprop_momentum = rmsprop_momentum,
    .adagrad = adagrad,
};
