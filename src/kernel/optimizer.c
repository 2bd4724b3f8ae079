/* Optimizers; compiled once per instruction set. The formulas are PyTorch's. */
#include "kernel/kernels.h"
#include "kernel/optimizer.h"
#include "kernel/vec_run.h"

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

/* Whether gradients are taken as they are, and parameters kept whole. */
static bool is_plain(const mica_update *u)
{
    return u->gradient_scale == 1.0f && u->clip_value == INFINITY && u->weight_decay == 0.0f &&
           u->keep == 1.0f;
}

VF_INLINE vf load(const float *p, size_t lanes)
{
    return lanes == VF_LANES ? run_load(p) : vf_load_tail(p, lanes);
}

VF_INLINE void store(float *p, vf v, size_t lanes)
{
    if (VF_LANES > 1 && lanes == VF_LANES)
        run_store(p, v);
    else
        vf_store_tail(p, v, lanes);
}

/* The first `lanes` of a vector. `rule`, `plain` and which state there is are constants, so all of it is inlined. */
VF_INLINE void update_lanes(float *p, const float *g, float *s0, float *s1, size_t lanes,
                            const mica_update *u, update_rule *rule, bool plain)
{
    vf a = s0 != NULL ? load(s0, lanes) : vf_zero(), b = s1 != NULL ? load(s1, lanes) : vf_zero();
    vf x = load(p, lanes), gradient = load(g, lanes);
    vf y = plain ? rule(x, gradient, &a, &b, u)
                 : rule(vf_mul(x, vf_set1(u->keep)), clipped_gradient(x, gradient, u), &a, &b, u);
    store(p, y, lanes);
    if (s0 != NULL)
        store(s0, a, lanes);
    if (s1 != NULL)
        store(s1, b, lanes);
}

#define AT_ONCE ((size_t)4) /* vectors in one turn of the loop */

/* Where a vector is a line, SGD asks for parameters some turns before if the third cache has them. Otherwise it takes
 * the same time or a quarter more, by where a process has its memory and by what else uses that cache. From memory, or
 * with a state, asking takes longer. */
static bool sgd_asks(const mica_update *u)
{
#if defined(MICA_SMALL)
    (void)u;
    return false;
#else
    return VF_LANES * sizeof(float) >= 64 && u->near && is_plain(u);
#endif
}

VF_INLINE void ask(const float *p)
{
    const size_t ahead = 512;
    for (size_t v = 0; v < AT_ONCE; v++)
        __builtin_prefetch(p + ahead + v * VF_LANES);
}

/* The loop that all of them share. `asks`, too, is a constant. */
VF_INLINE void update(float *p, const float *g, float *s0, float *s1, size_t n, const mica_update *given,
                      update_rule *rule, bool plain, bool asks)
{
    const mica_update copy = *given, *u = &copy; /* a store cannot change it: its numbers stay in registers */
    size_t i = 0;
#define AT(state) ((state) != NULL ? (state) + i : NULL)
    while (i + AT_ONCE * VF_LANES <= n) {
        if (asks)
            ask(p + i);
        for (size_t v = 0; v < AT_ONCE; v++, i += VF_LANES)
            update_lanes(p + i, g + i, AT(s0), AT(s1), VF_LANES, u, rule, plain);
    }
    for (; i + VF_LANES <= n; i += VF_LANES)
        update_lanes(p + i, g + i, AT(s0), AT(s1), VF_LANES, u, rule, plain);
    if (i < n)
        update_lanes(p + i, g + i, AT(s0), AT(s1), n - i, u, rule, plain);
#undef AT
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

#define KERNEL(name, s0, s1, asks)                                                                           \
    static void name(float *p, const float *g, float *state0, float *state1, size_t n, const mica_update *u) \
    {                                                                                                        \
        (void)state0, (void)state1;                                                                          \
        if (asks)                                                                                            \
            update(p, g, s0, s1, n, u, name##_rule, true, true);                                             \
        else if (is_plain(u))                                                                                \
            update(p, g, s0, s1, n, u, name##_rule, true, false);                                            \
        else                                                                                                 \
            update(p, g, s0, s1, n, u, name##_rule, false, false);                                           \
    }

KERNEL(sgd, NULL, NULL, sgd_asks(u))
KERNEL(momentum, state0, NULL, false)
KERNEL(adam, state0, state1, false)
KERNEL(rmsprop, state0, NULL, false)
KERNEL(rmsprop_momentum, state0, state1, false)
KERNEL(adagrad, state0, NULL, false)

const mica_optimizer_kernels VF_SYMBOL(mica_optimizer_kernels) = {
    .sgd = sgd,
    .sgd_momentum = momentum,
    .adam = adam,
    .rmsprop = rmsprop,
    .rmsprop_momentum = rmsprop_momentum,
    .adagrad = adagrad,
};

MICA_KERNEL_SYMBOL(optimizer, sgd, sgd)
MICA_KERNEL_SYMBOL(optimizer, sgd_momentum, momentum)
MICA_KERNEL_SYMBOL(optimizer, adam, adam)
MICA_KERNEL_SYMBOL(optimizer, rmsprop, rmsprop)
MICA_KERNEL_SYMBOL(optimizer, rmsprop_momentum, rmsprop_momentum)
MICA_KERNEL_SYMBOL(optimizer, adagrad, adagrad)
