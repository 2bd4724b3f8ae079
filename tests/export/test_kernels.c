/* The elementary functions of exported programs, against the C library in double precision. */
#include <math.h>
#include <stdio.h>

/* NOLINTBEGIN(bugprone-suspicious-include): kernels are pieces of a program, included whole. */
#include "export/kernels/erf.c"
#include "export/kernels/exp.c"
#include "export/kernels/expm1.c"
#include "export/kernels/floor.c"
#include "export/kernels/gelu.c"
#include "export/kernels/gelu_grad.c"
#include "export/kernels/gelu_tanh.c"
#include "export/kernels/gelu_tanh_grad.c"
#include "export/kernels/log.c"
#include "export/kernels/log1p.c"
#include "export/kernels/pow.c"
#include "export/kernels/round.c"
#include "export/kernels/sigmoid.c"
#include "export/kernels/silu_grad.c"
#include "export/kernels/sin.c"
#include "export/kernels/softplus.c"
#include "export/kernels/sqrt.c"
#include "export/kernels/tanh.c"
/* NOLINTEND(bugprone-suspicious-include) */
#include "test.h"

static float sin_f(float x) { return sin_from(x, 0); }
static float cos_f(float x) { return sin_from(x, 1); }
static float cube_root(float x) { return pow_f(x, 1.0f / 3.0f); }
static float inverse_cube(float x) { return pow_f(x, -3.0f); }

static double sigmoid_d(double x) { return 1.0 / (1.0 + exp(-x)); }
static double silu_grad_d(double x) { return sigmoid_d(x) * (1.0 + x * (1.0 - sigmoid_d(x))); }
static double softplus_d(double x) { return x > 0.0 ? x + log1p(exp(-x)) : log1p(exp(x)); }
static double phi(double x) { return exp(-0.5 * x * x) / sqrt(6.283185307179586); }
static double gelu_d(double x) { return 0.5 * x * erfc(-x / sqrt(2.0)); }
static double gelu_grad_d(double x) { return 0.5 * erfc(-x / sqrt(2.0)) + x * phi(x); }
static double inner(double x) { return sqrt(8.0 / 3.141592653589793) * (x + 0.044715 * x * x * x); }
static double gelu_tanh_d(double x) { return x * sigmoid_d(inner(x)); }
static double gelu_tanh_grad_d(double x)
{
    double s = sigmoid_d(inner(x));
    return s + x * s * (1.0 - s) * sqrt(8.0 / 3.141592653589793) * (1.0 + 3.0 * 0.044715 * x * x);
}
static double cube_root_d(double x) { return pow(x, (double)(1.0f / 3.0f)); }
static double inverse_cube_d(double x) { return pow(x, -3.0); }

/* The error is at most `relative` of the result, or `absolute` where that is more. */
static const struct {
    const char *name;
    float (*f)(float);
    double (*reference)(double);
    double low, high, relative, absolute;
} functions[] = {
    {"exp", exp_f, exp, -87.0, 88.0, 2.5e-7, 0.0},
    {"expm1", expm1_f, expm1, -20.0, 20.0, 5e-7, 0.0},
    {"log", log_f, log, 1e-30, 1e30, 2e-7, 0.0},
    {"log near 1", log_f, log, 0.5, 2.0, 2e-7, 0.0},
    {"log1p", log1p_f, log1p, -0.99, 10.0, 5e-7, 0.0},
    {"tanh", tanh_f, tanh, -10.0, 10.0, 6e-7, 0.0},
    {"tanh near 0", tanh_f, tanh, -0.01, 0.01, 6e-7, 0.0},
    {"sigmoid", sigmoid_f, sigmoid_d, -80.0, 80.0, 5e-7, 0.0},
    {"erf", erf_f, erf, -5.0, 5.0, 3e-7, 0.0},
    {"sin", sin_f, sin, -30.0, 30.0, 3e-7, 1.5e-7},
    {"sin far out", sin_f, sin, -1000.0, 1000.0, 0.0, 3e-7},
    {"cos", cos_f, cos, -30.0, 30.0, 3e-7, 1.5e-7},
    {"sqrt", sqrt_f, sqrt, 0.0, 1e6, 1.5e-7, 0.0},
    {"sqrt, tiny", sqrt_f, sqrt, 0.0, 1e-37, 1.5e-7, 0.0},
    {"x^(1/3)", cube_root, cube_root_d, 0.01, 100.0, 1e-6, 0.0},
    {"x^-3", inverse_cube, inverse_cube_d, -4.0, 4.0, 4e-7, 0.0},
    {"round", round_f, rint, -1000.0, 1000.0, 0.0, 0.0},
    {"floor", floor_f, floor, -1000.0, 1000.0, 0.0, 0.0},
    {"silu's slope", silu_grad, silu_grad_d, -20.0, 20.0, 0.0, 4e-7},
    {"softplus", softplus, softplus_d, -40.0, 40.0, 5e-7, 0.0},
    {"gelu", gelu, gelu_d, -6.0, 6.0, 3e-7, 4e-7},
    {"gelu's slope", gelu_grad, gelu_grad_d, -6.0, 6.0, 0.0, 4e-7},
    {"gelu_tanh", gelu_tanh, gelu_tanh_d, -6.0, 6.0, 3e-7, 5e-7},
    {"gelu_tanh's slope", gelu_tanh_grad, gelu_tanh_grad_d, -6.0, 6.0, 0.0, 8e-7},
};

TEST(export_kernels_functions)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        double worst = 0.0, at = 0.0;
        test_random r = test_seed(i);
        for (int k = 0; k < 20000; k++) {
            float x = (float)test_uniform(&r, functions[i].low, functions[i].high);
            double want = functions[i].reference((double)x), got = (double)functions[i].f(x);
            double allowed = fmax(functions[i].relative * fabs(want), functions[i].absolute);
            double off = fabs(got - want) - allowed;
            if (!(off <= worst)) {
                worst = off;
                at = (double)x;
            }
        }
        CHECK_MSG(worst <= 0.0, "%s: off by %g too much at %g: %.9g, not %.9g", functions[i].name, worst, at,
                  (double)functions[i].f((float)at), functions[i].reference(at));
    }
}

TEST(export_kernels_limits)
{
    float inf = INFINITY, nan = NAN;
    CHECK(exp_f(-200.0f) == 0.0f && exp_f(200.0f) == inf && exp_f(inf) == inf && isnan(exp_f(nan)));
    CHECK(log_f(0.0f) == -inf && isnan(log_f(-1.0f)) && log_f(inf) == inf && isnan(log_f(nan)));
    CHECK(fabsf(log_f(0x1p-140f) + 97.0406053f) < 1e-4f);
    CHECK(sqrt_f(0.0f) == 0.0f && sqrt_f(inf) == inf && isnan(sqrt_f(-1.0f)) &&
          sqrt_f(0x1p-140f) == 0x1p-70f);
    CHECK(tanh_f(100.0f) == 1.0f && tanh_f(-100.0f) == -1.0f && isnan(tanh_f(nan)));
    CHECK(sigmoid_f(-200.0f) == 0.0f && sigmoid_f(200.0f) == 1.0f && erf_f(10.0f) == 1.0f);
    CHECK(round_f(0.5f) == 0.0f && round_f(1.5f) == 2.0f && round_f(2.5f) == 2.0f && round_f(-1.5f) == -2.0f);
    CHECK(floor_f(-0.5f) == -1.0f && floor_f(3.0f) == 3.0f && floor_f(1e30f) == 1e30f);
    CHECK(pow_f(2.0f, 10.0f) == 1024.0f && pow_f(0.0f, 0.0f) == 1.0f && pow_f(-2.0f, 3.0f) == -8.0f);
    CHECK(isnan(pow_f(-2.0f, 0.5f)) && pow_f(1.0f, 1e30f) == 1.0f && pow_f(0.0f, 2.5f) == 0.0f);
}
