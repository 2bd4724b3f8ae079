/* Cases of the activations. Gradients are checked against differences of the forward function. */
#include "ops/map_case.h"

static double relu(double x, double p) { return (void)p, isnan(x) ? x : fmax(x, 0.0); }
static double relu6(double x, double p) { return isnan(x) ? x : fmin(relu(x, p), 6.0); }
static double leaky_relu(double x, double slope) { return x > 0.0 ? x : slope * x; }
static double elu(double x, double alpha) { return x > 0.0 ? x : alpha * expm1(x); }
static double sigmoid(double x, double p) { return (void)p, 1.0 / (1.0 + exp(-x)); }
static double hyperbolic(double x, double p) { return (void)p, tanh(x); }
static double softplus(double x, double p) { return (void)p, fmax(x, 0.0) + log1p(exp(-fabs(x))); }
static double silu(double x, double p) { return x * sigmoid(x, p); }
static double gelu(double x, double p) { return (void)p, x * 0.5 * erfc(-x * 0.70710678118654752440); }
static double gelu_tanh(double x, double p)
{
    return x * sigmoid(2.0 * 0.79788456080286535588 * (x + 0.044715 * x * x * x), p);
}
static double hard_swish(double x, double p) { return x * relu6(x + 3.0, p) / 6.0; }

/* Away from the kinks at 0, 6 and 3, where a difference means nothing. */
static void fill_smooth(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    (void)c, (void)tensor;
    static const double kinks[] = {0.0, 6.0, -3.0, 3.0};
    for (size_t i = 0; i < count; i++) {
        value[i] = 4.0 * test_normal(r);
        for (size_t k = 0; k < sizeof kinks / sizeof *kinks; k++)
            if (fabs(value[i] - kinks[k]) < 1e-3)
                value[i] = kinks[k] + 1e-2;
    }
}

static void fill_finite(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    map_fill_wild(c, r, tensor, value, count);
    for (size_t i = 0; i < count; i++)
        if (isinf(value[i]))
            value[i] = value[i] > 0.0 ? 50.0 : -50.0;
}

static void draw_forward(op_call *c, test_random *r)
{
    map_draw(c, r, 1);
    c->f[0] = (double)(float)fabs(c->f[0]);
    c->scale = 1e-6; /* below it, errors are those of subnormal and vanishing results */
}

static void draw_backward(op_call *c, test_random *r)
{
    map_draw(c, r, 2);
    c->f[0] = (double)(float)fabs(c->f[0]);
    c->scale = 1.0;
}

/* The saved value y, where a gradient is taken from it, is given as f(x) rounded; `at` says which x it has. */
static double gradient(double (*f)(double, double), double x, double param)
{
    double step = 1e-5 * (1.0 + fabs(x));
    return (f(x + step, param) - f(x - step, param)) / (2.0 * step);
}

#define PARAM_0(s)
#define PARAM_1(s) , s

#define FORWARD(op, params, f)                                                             \
    MAP_CASE(op, 1, fill_finite, 4e-7, mica_##op(ctx, dst, x PARAM_##params(s)), f(a, s)); \
    __attribute__((constructor)) static void adapt_##op(void)                              \
    {                                                                                      \
        op_case_##op.draw = draw_forward;                                                  \
        op_case_##op.names[0] = "y";                                                       \
        op_case_##op.names[1] = "x";                                                       \
    }

/* In a backward case a is dy and b the saved value. */
#define BACKWARD(op, params, saved, fill_function, expression)                                              \
    MAP_CASE(op##_backward, 2, fill_function, 2e-6, mica_##op##_backward(ctx, dst, x, y PARAM_##params(s)), \
             a *(expression));                                                                              \
    __attribute__((constructor)) static void adapt_##op##_backward(void)                                    \
    {                                                                                                       \
        op_case_##op##_backward.draw = draw_backward;                                                       \
        op_case_##op##_backward.names[0] = "dx";                                                            \
        op_case_##op##_backward.names[1] = "dy";                                                            \
        op_case_##op##_backward.names[2] = saved;                                                           \
    }

FORWARD(relu, 0, relu)
FORWARD(relu6, 0, relu6)
FORWARD(leaky_relu, 1, leaky_relu)
FORWARD(elu, 1, elu)
FORWARD(sigmoid, 0, sigmoid)
FORWARD(tanh, 0, hyperbolic)
FORWARD(softplus, 0, softplus)
FORWARD(silu, 0, silu)
FORWARD(gelu, 0, gelu)
FORWARD(gelu_tanh, 0, gelu_tanh)
FORWARD(hard_swish, 0, hard_swish)

BACKWARD(softplus, 0, "x", fill_smooth, gradient(softplus, b, s))
BACKWARD(silu, 0, "x", fill_smooth, gradient(silu, b, s))
BACKWARD(gelu, 0, "x", fill_smooth, gradient(gelu, b, s))
BACKWARD(gelu_tanh, 0, "x", fill_smooth, gradient(gelu_tanh, b, s))
BACKWARD(hard_swish, 0, "x", fill_smooth, gradient(hard_swish, b, s))

/* Gradients from y: the x that has this y, by the inverse of the forward function. */

static double elu_inverse(double y, double alpha) { return y > 0.0 ? y : log1p(y / alpha); }

/* y of relu: never below 0. */
static void fill_relu(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    fill_smooth(c, r, tensor, value, count);
    for (size_t i = 0; tensor == 2 && i < count; i++)
        value[i] = fmax(value[i], 0.0);
}
static void fill_relu6(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    fill_relu(c, r, tensor, value, count);
    for (size_t i = 0; tensor == 2 && i < count; i++)
        value[i] = fmin(value[i], 6.0);
}
/* y of elu: above -alpha. */
static void fill_elu(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    fill_smooth(c, r, tensor, value, count);
    for (size_t i = 0; tensor == 2 && i < count; i++)
        if (value[i] < 0.0)
            value[i] = -c->f[0] * test_uniform(r, 0.01, 0.9);
}
static void fill_sigmoid(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    fill_smooth(c, r, tensor, value, count);
    for (size_t i = 0; tensor == 2 && i < count; i++)
        value[i] = test_uniform(r, 0.001, 0.999);
}
static void fill_tanh(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    fill_smooth(c, r, tensor, value, count);
    for (size_t i = 0; tensor == 2 && i < count; i++)
        value[i] = test_uniform(r, -0.999, 0.999);
}

/* Where y is at a bound, x is anywhere beyond it. */
BACKWARD(relu, 0, "y", fill_relu, b <= 0.0 ? 0.0 : gradient(relu, b, s))
BACKWARD(relu6, 0, "y", fill_relu6, b <= 0.0 || b >= 6.0 ? 0.0 : gradient(relu6, b, s))
BACKWARD(leaky_relu, 1, "y", fill_smooth, gradient(leaky_relu, b, s)) /* y and x have one sign */
BACKWARD(elu, 1, "y", fill_elu, gradient(elu, elu_inverse(b, s), s))
BACKWARD(sigmoid, 0, "y", fill_sigmoid, gradient(sigmoid, log(b / (1.0 - b)), s))
BACKWARD(tanh, 0, "y", fill_tanh, gradient(hyperbolic, atanh(b), s))

TEST(activations_refuse_negative_params)
{
    mica_context *ctx = test_context(1);
    float data[2] = {1.0f, 2.0f};
    mica_tensor x = mica_1d(data, 2);
    CHECK_ERROR(ctx, mica_leaky_relu(ctx, &x, &x, -0.1f), MICA_ERR_ARGUMENT,
                "argument error: leaky_relu: slope is -0.1, expected 0 or more");
    CHECK_ERROR(ctx, mica_elu_backward(ctx, &x, &x, &x, NAN), MICA_ERR_ARGUMENT,
                "argument error: elu_backward: alpha is nan, expected 0 or more");
    CHECK(data[0] == 1.0f && data[1] == 2.0f);
}
