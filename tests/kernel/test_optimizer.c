/* Optimizer kernels of every instruction set against the formulas in double, at every kind of size. */
#include <math.h>

#include "base/context.h"
#include "kernel/kernels.h"
#include "test.h"

enum { MOST = 200, STEPS = 3 };

static const size_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 65, 127, MOST};

/* What a kernel changes. Memory behind the end must stay as it is. */
typedef struct state {
    float p[MOST + 1], s0[MOST + 1], s1[MOST + 1];
} state;

typedef struct reference {
    double p, s0, s1;
} reference;

/* One element of one step; g already has its scale, limits and decay. */
typedef void formula(reference *r, double g, const mica_update *u);

static void sgd(reference *r, double g, const mica_update *u) { r->p -= u->lr * g; }

static void sgd_momentum(reference *r, double g, const mica_update *u)
{
    r->s0 = u->momentum * r->s0 + g;
    r->p -= u->lr * (u->nesterov_momentum != 0.0f ? g + u->nesterov_momentum * r->s0 : r->s0);
}

static void adam(reference *r, double g, const mica_update *u)
{
    r->s0 = u->beta1 * r->s0 + (1.0 - u->beta1) * g;
    r->s1 = u->beta2 * r->s1 + (1.0 - u->beta2) * g * g;
    r->p -= u->step_size * r->s0 / (sqrt(r->s1) * u->root_scale + u->eps);
}

static void rmsprop(reference *r, double g, const mica_update *u)
{
    r->s0 = u->beta2 * r->s0 + (1.0 - u->beta2) * g * g;
    r->p -= u->lr * g / (sqrt(r->s0) + u->eps);
}

static void rmsprop_momentum(reference *r, double g, const mica_update *u)
{
    r->s0 = u->beta2 * r->s0 + (1.0 - u->beta2) * g * g;
    r->s1 = u->momentum * r->s1 + g / (sqrt(r->s0) + u->eps);
    r->p -= u->lr * r->s1;
}

static void adagrad(reference *r, double g, const mica_update *u)
{
    r->s0 += g * g;
    r->p -= u->lr * g / (sqrt(r->s0) + u->eps);
}

static double gradient(double p, double g, const mica_update *u)
{
    g = fmax(-u->clip_value, fmin(u->clip_value, g * u->gradient_scale));
    return g + u->weight_decay * p;
}

static void check_close(float got, double want, const char *what, const char *isa, size_t n, size_t i)
{
    CHECK_MSG(fabs(got - want) <= 2e-6 * fmax(1.0, fabs(want)), "%s %s: [%zu] of %zu is %.9g, not %.9g", isa,
              what, i, n, (double)got, want);
}

/* Runs `fn` a few times over n elements from `offset` on, which is no multiple of anything. */
static void check_kernel(const char *isa, mica_update_fn *fn, formula *rule, int slots, size_t n,
                         const mica_update *u)
{
    static state s;
    static reference want[MOST];
    static float g[MOST + 1];
    test_random r = test_seed(n + 1);
    for (size_t i = 0; i < n; i++) {
        s.p[i] = (float)test_normal(&r);
        s.s0[i] = s.s1[i] = 0.0f;
        want[i] = (reference){.p = (double)s.p[i]};
    }
    s.p[n] = s.s0[n] = s.s1[n] = -7.0f;
    for (int step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < n; i++) {
            g[i] = (float)test_normal(&r);
            double decayed = gradient(want[i].p, (double)g[i], u);
            want[i].p *= (double)u->keep;
            rule(&want[i], decayed, u);
        }
        fn(s.p, g, slots > 0 ? s.s0 : NULL, slots > 1 ? s.s1 : NULL, n, u);
    }
    CHECK(s.p[n] == -7.0f && s.s0[n] == -7.0f && s.s1[n] == -7.0f);
    for (size_t i = 0; i < n; i++) {
        check_close(s.p[i], want[i].p, "p", isa, n, i);
        if (slots > 0)
            check_close(s.s0[i], want[i].s0, "state 0", isa, n, i);
        if (slots > 1)
            check_close(s.s1[i], want[i].s1, "state 1", isa, n, i);
    }
}

static void check_set(const char *isa, const mica_optimizer_kernels *k, const mica_update *u)
{
    const struct {
        mica_update_fn *fn;
        formula *rule;
        int slots;
    } kinds[] = {{k->sgd, sgd, 0},         {k->sgd_momentum, sgd_momentum, 1},
                 {k->adam, adam, 2},       {k->rmsprop, rmsprop, 1},
                 {k->adagrad, adagrad, 1}, {k->rmsprop_momentum, rmsprop_momentum, 2}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (size_t j = 0; j < sizeof sizes / sizeof sizes[0]; j++)
            check_kernel(isa, kinds[i].fn, kinds[i].rule, kinds[i].slots, sizes[j], u);
}

TEST(kernel_optimizer)
{
    static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};
    mica_update plain = {.lr = 0.05f,
                         .gradient_scale = 1.0f,
                         .clip_value = INFINITY,
                         .keep = 1.0f,
                         .momentum = 0.9f,
                         .beta1 = 0.9f,
                         .beta2 = 0.99f,
                         .eps = 1e-6f,
                         .step_size = 0.1f,
                         .root_scale = 2.0f};
    mica_update all = plain;
    all.gradient_scale = 0.6f;
    all.clip_value = 0.5f;
    all.weight_decay = 0.1f;
    all.keep = 0.97f;
    all.nesterov_momentum = 0.9f;
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
        const mica_kernels *kernels = mica_kernels_choose(isas[i]);
        if (kernels == NULL)
            continue;
        check_set(isas[i], kernels->optimizer, &plain);
        check_set(isas[i], kernels->optimizer, &all);
    }
}

/* NaN in a gradient must reach the parameter, so that a training that went wrong is seen. */
TEST(kernel_optimizer_passes_nan_through)
{
    const mica_kernels *kernels = mica_kernels_choose(NULL);
    mica_update u = {.lr = 0.1f, .gradient_scale = 1.0f, .clip_value = 0.5f, .keep = 1.0f};
    float p[9] = {0}, g[9] = {0};
    g[2] = g[8] = NAN;
    kernels->optimizer->sgd(p, g, NULL, NULL, 9, &u);
    for (int i = 0; i < 9; i++)
        CHECK(isnan(p[i]) == (i == 2 || i == 8));
}
