/* The elementary functions of every instruction set against the C library's in double precision.
 *
 * A normal run takes every 2003rd float and those around the special ones; MICA_EXHAUSTIVE=1 takes all 2^32
 * of them, which needs about an hour. MICA_VERBOSE=1 prints the largest error of each function. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/isa/probe.h"
#include "test.h"

/* ---- References ---- */

#define SQRT_HALF      0.70710678118654752440
#define INV_SQRT_2PI   0.39894228040143267794
#define SQRT_2_OVER_PI 0.79788456080286535588

static double ref_rsqrt(double x) { return 1.0 / sqrt(x); }
static double ref_sigmoid(double x) { return x < 0 ? exp(x) / (1.0 + exp(x)) : 1.0 / (1.0 + exp(-x)); }
static double ref_softplus(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }
static double ref_phi(double x) { return exp(-0.5 * x * x) * INV_SQRT_2PI; }
/* x f(x) where f vanishes at -infinity faster than x grows. */
static double times(double x, double f) { return isinf(x) && x < 0 ? -0.0 : x * f; }
static double ref_silu(double x) { return times(x, ref_sigmoid(x)); }
static double ref_gelu(double x) { return times(x, 0.5 * erfc(-x * SQRT_HALF)); }
static double tanh_form(double x) { return 2.0 * SQRT_2_OVER_PI * (x + 0.044715 * x * x * x); }
static double ref_gelu_tanh(double x) { return times(x, ref_sigmoid(tanh_form(x))); }
/* 0 where it would be, or nearly be, subnormal */
static double ref_exp_below_1(double x)
{
    return x < -126.5 * 0.69314718055994531 ? 0.0 : exp(x > 1.0 ? 1.0 : x);
}
static double ref_silu_grad(double x)
{
    double s = ref_sigmoid(x);
    return isinf(x) ? s : s + x * s * ref_sigmoid(-x);
}
static double ref_gelu_grad(double x)
{
    double change = isinf(x) ? 0.0 : x * ref_phi(x);
    return 0.5 * erfc(-x * SQRT_HALF) + change;
}
static double ref_gelu_tanh_grad(double x)
{
    double s = ref_sigmoid(tanh_form(x)), slope = 2.0 * SQRT_2_OVER_PI * (1.0 + 3.0 * 0.044715 * x * x);
    return fabs(x) > 100.0 ? s : s + x * s * ref_sigmoid(-tanh_form(x)) * slope;
}

typedef struct vmath_case {
    const char *name;
    double (*reference)(double);
    double bound;  /* what vmath.h states, in ulp */
    bool absolute; /* bound is an absolute error instead */
} vmath_case;

static const vmath_case cases[] = {
    {"exp", exp, 1.5, false},
    {"exp_below_1", ref_exp_below_1, 1.5, false},
    {"expm1", expm1, 2.0, false},
    {"log", log, 1.0, false},
    {"log1p", log1p, 2.0, false},
    {"rsqrt", ref_rsqrt, 1.5, false},
    {"tanh", tanh, 3.0, false},
    {"sigmoid", ref_sigmoid, 3.0, false},
    {"silu", ref_silu, 3.0, false},
    {"softplus", ref_softplus, 2.5, false},
    {"erf", erf, 1.5, false},
    {"phi", ref_phi, 1.5, false},
    {"gelu", ref_gelu, 4.5, false},
    {"gelu_tanh", ref_gelu_tanh, 3.0, false},
    {"sin", sin, 2.0, false},
    {"cos", cos, 2.0, false},
    {"tan", tan, 4.0, false},
    {"asin", asin, 4.0, false},
    {"acos", acos, 4.0, false},
    {"atan", atan, 2.0, false},
    {"sinh", sinh, 4.0, false},
    {"cosh", cosh, 4.0, false},
    {"asinh", asinh, 4.0, false},
    {"acosh", acosh, 4.0, false},
    {"atanh", atanh, 4.0, false},
    {"silu_grad", ref_silu_grad, 0x1p-22, true},
    {"gelu_grad", ref_gelu_grad, 0x1p-22, true},
    {"gelu_tanh_grad", ref_gelu_tanh_grad, 0x1p-22, true},
};

/* ---- Errors ---- */

/* The distance in units of the last place that a float has at `want`; infinite where the kind is wrong. */
static double ulps(float got, double want)
{
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want) ? 0.0 : INFINITY;
    if (isinf(want) || (isinf(got) && isinf((float)want)))
        return (double)got == (double)(float)want ? 0.0 : INFINITY;
    if (got == 0.0f && !signbit(got) != !signbit(want))
        return INFINITY;
    /* Overflow is a rounding like others: to the next after FLT_MAX. */
    double value = isinf(got) ? copysign(0x1p128, (double)got) : (double)got;
    uint64_t bits;
    memcpy(&bits, &want, sizeof bits);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023 - 23;
    exponent = exponent < -149 ? -149 : exponent > 104 ? 104 : exponent;
    uint64_t inverse_bits = (uint64_t)(1023 - exponent) << 52; /* 2^-exponent */
    double inverse;
    memcpy(&inverse, &inverse_bits, sizeof inverse);
    return fabs(value - want) * inverse;
}

static double error_of(const vmath_case *c, float got, double want)
{
    if (!c->absolute)
        return ulps(got, want);
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want) ? 0.0 : INFINITY;
    return fabs((double)got - want);
}

typedef struct worst {
    double error;
    float x, y, got;
    double want;
} worst;

static void note(worst *w, double error, float x, float y, float got, double want)
{
    if (error > w->error)
        *w = (worst){error, x, y, got, want};
}

static void report(const char *isa, const char *name, const worst *w, double bound)
{
    if (getenv("MICA_VERBOSE") != NULL)
        printf("     %-6s %-14s %.4g\n", isa, name, w->error);
    CHECK_MSG(w->error <= bound, "%s %s(%a, %a): %a, not %a: off by %.3g, the bound is %.3g", isa, name,
              (double)w->x, (double)w->y, (double)w->got, w->want, w->error, bound);
}

/* ---- Sweeps ---- */

#define BLOCK 4096

static float of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void check_block(const vmath_case *c, size_t index, const probe_table *const *tables, size_t count,
                        const float *x, size_t n, worst *worsts)
{
    static double want[BLOCK];
    static float got[BLOCK];
    for (size_t i = 0; i < n; i++)
        want[i] = c->reference((double)x[i]);
    for (size_t t = 0; t < count; t++) {
        tables[t]->functions[index].run(got, x, n);
        for (size_t i = 0; i < n; i++)
            note(&worsts[t], error_of(c, got[i], want[i]), x[i], 0.0f, got[i], want[i]);
    }
}

/* Runs of floats around zeros, powers of two, infinities and the first NaNs, of both signs. */
static size_t awkward_floats(float *x)
{
    size_t n = 0;
    for (uint32_t exponent = 0; exponent <= 255; exponent++)
        for (int32_t step = -3; step <= 3; step++) {
            uint32_t bits = (exponent << 23) + (uint32_t)step;
            x[n++] = of_bits(bits & 0x7fffffffu);
            x[n++] = of_bits(bits | 0x80000000u);
        }
    return n;
}

static void sweep(const vmath_case *c, size_t index, const probe_table *const *tables, size_t count)
{
    static float x[BLOCK];
    const char *all = getenv("MICA_EXHAUSTIVE");
    uint64_t stride = all != NULL && strcmp(all, "0") != 0 ? 1 : 2003;
    worst worsts[PROBE_MAX] = {{0}};
    check_block(c, index, tables, count, x, awkward_floats(x), worsts);
    for (uint64_t bits = 0; bits <= UINT32_MAX;) {
        size_t n = 0;
        for (; n < BLOCK && bits <= UINT32_MAX; bits += stride)
            x[n++] = of_bits((uint32_t)bits);
        check_block(c, index, tables, count, x, n, worsts);
    }
    for (size_t t = 0; t < count; t++)
        report(tables[t]->isa, c->name, &worsts[t], c->bound);
}

TEST(vmath_is_within_its_bounds)
{
    const probe_table *tables[PROBE_MAX];
    size_t count = probe_tables(tables), tested = 0;
    for (size_t i = 0; i < tables[0]->function_count; i++)
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
            if (strcmp(cases[k].name, tables[0]->functions[i].name) == 0) {
                sweep(&cases[k], i, tables, count);
                tested++;
            }
    CHECK(tested == tables[0]->function_count);
}

/* ---- Powers ---- */

#define POW_BOUND 1.5

static void check_pow(const probe_table *const *tables, size_t count, const float *x, const float *y,
                      size_t n, worst *worsts)
{
    static float got[BLOCK];
    for (size_t t = 0; t < count; t++) {
        tables[t]->pow(got, x, y, n);
        for (size_t i = 0; i < n; i++) {
            double want = pow((double)x[i], (double)y[i]);
            note(&worsts[t], ulps(got[i], want), x[i], y[i], got[i], want);
        }
    }
}

/* Whatever lies beside it: results must not depend on the batch, or on where threads divide. */
TEST(vmath_of_a_lane_does_not_depend_on_the_others)
{
    const probe_table *tables[PROBE_MAX];
    size_t count = probe_tables(tables);
    enum { LANES = 64 };
    float x[LANES], y[LANES], same[LANES], alone[LANES];
    for (size_t i = 0; i < LANES; i++)
        x[i] = (float)(i * 37 % LANES) * 0.3125f - 10.0f;
    for (size_t t = 0; t < count; t++)
        for (size_t f = 0; f < tables[t]->function_count; f++) {
            tables[t]->functions[f].run(y, x, LANES);
            for (size_t i = 0; i < LANES; i++) {
                for (size_t k = 0; k < LANES; k++)
                    same[k] = x[i];
                tables[t]->functions[f].run(alone, same, LANES);
                CHECK_MSG(memcmp(&alone[i], &y[i], sizeof y[i]) == 0, "%s %s(%a): %a, among others %a",
                          tables[t]->isa, tables[t]->functions[f].name, (double)x[i], (double)alone[i],
                          (double)y[i]);
            }
        }
}

TEST(vmath_pow_special_cases)
{
    static const float values[] = {
        0.0f,
        1.0f,
        2.0f,
        0.5f,
        3.0f,
        2.5f,
        0.33f,
        1e-45f,
        1e-39f,
        3e38f,
        16777215.0f,
        16777216.0f,
        16777214.0f,
        1e30f,
        1e-30f,
        FLT_MIN,
        1.0f + FLT_EPSILON,
        0.99999994f,
        1e9f,
        INFINITY,
        NAN,
        127.0f,
        128.0f,
        149.0f,
        150.0f,
        7.0f,
    };
    enum { COUNT = sizeof values / sizeof *values };
    static float x[4 * COUNT * COUNT], y[4 * COUNT * COUNT];
    _Static_assert(4 * COUNT * COUNT <= BLOCK, "one block");
    size_t n = 0;
    for (int i = 0; i < 2 * COUNT; i++)
        for (int k = 0; k < 2 * COUNT; k++, n++) {
            x[n] = i % 2 ? -values[i / 2] : values[i / 2];
            y[n] = k % 2 ? -values[k / 2] : values[k / 2];
        }
    const probe_table *tables[PROBE_MAX];
    size_t count = probe_tables(tables);
    worst worsts[PROBE_MAX] = {{0}};
    check_pow(tables, count, x, y, n, worsts);
    for (size_t t = 0; t < count; t++)
        report(tables[t]->isa, "pow", &worsts[t], POW_BOUND);
}

TEST(vmath_pow_is_within_its_bound)
{
    static float x[BLOCK], y[BLOCK];
    const probe_table *tables[PROBE_MAX];
    size_t count = probe_tables(tables);
    worst worsts[PROBE_MAX] = {{0}};
    test_random r = test_seed(11);
    const int blocks = getenv("MICA_EXHAUSTIVE") != NULL ? 50000 : 250;
    for (int block = 0; block < blocks; block++) {
        for (size_t i = 0; i < BLOCK; i++) {
            x[i] = of_bits((uint32_t)(test_next(&r) >> 20));
            y[i] = of_bits((uint32_t)(test_next(&r) >> 20));
            if (i % 4 == 0) /* near 1, where the logarithm needs all its bits */
                x[i] = 1.0f + (float)(test_uniform(&r, -0.5, 0.5) * ldexp(1.0, -test_int(&r, 0, 22)));
            if (i % 4 != 3) { /* a result that is finite, most of the time */
                x[i] = i % 4 == 2 ? fabsf(x[i]) : x[i];
                y[i] = (float)(test_uniform(&r, -105.0, 90.0) / log(fabs((double)x[i])));
            }
            if (i % 16 == 1)
                y[i] = rintf(y[i]);
        }
        check_pow(tables, count, x, y, BLOCK, worsts);
    }
    for (size_t t = 0; t < count; t++)
        report(tables[t]->isa, "pow", &worsts[t], POW_BOUND);
}
