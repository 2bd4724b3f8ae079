/* Cases of the operations along one axis: softmaxes and L2 normalize. */
#include <math.h>
#include <stdlib.h>

#include "ops/op_case.h"

/* A line of n elements, `step` apart. */
typedef void line_fn(double *y, const double *x, size_t n, size_t step, double eps);

static void softmax(double *y, const double *x, size_t n, size_t step, double eps)
{
    (void)eps;
    double max = -INFINITY, sum = 0.0;
    for (size_t i = 0; i < n; i++)
        max = fmax(max, x[i * step]);
    for (size_t i = 0; i < n; i++)
        sum += exp(x[i * step] - max);
    for (size_t i = 0; i < n; i++)
        y[i * step] = exp(x[i * step] - max) / sum;
}

static void log_softmax(double *y, const double *x, size_t n, size_t step, double eps)
{
    softmax(y, x, n, step, eps);
    for (size_t i = 0; i < n; i++)
        y[i * step] = log(y[i * step]);
}

static void l2_normalize(double *y, const double *x, size_t n, size_t step, double eps)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += x[i * step] * x[i * step];
    for (size_t i = 0; i < n; i++)
        y[i * step] = x[i * step] / fmax(sqrt(sum), eps);
}

/* i[0]: the axis, perhaps counted from the end. f[0]: eps, sometimes large enough to matter. */
static void draw(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 1, 4, dims);
    for (int k = 0; k < c->op->outs + c->op->ins; k++)
        op_tensor(c, k, MICA_F32, rank, dims);
    c->i[0] = test_int(r, -rank, rank - 1);
    c->f[0] = test_chance(r, 20) ? 2.0 : 0.0;
}

static mica_l2_normalize_opts opts_of(const op_call *c)
{
    return (mica_l2_normalize_opts){.axis = (int)c->i[0], .eps = (float)c->f[0]};
}

static int axis_of(const op_call *c) { return (int)c->i[0] + (c->i[0] < 0 ? c->tensor[0].rank : 0); }

static size_t step_of(const op_call *c)
{
    size_t step = 1;
    for (int i = axis_of(c) + 1; i < c->tensor[0].rank; i++)
        step *= (size_t)c->tensor[0].dim[i];
    return step;
}

/* Calls `visit` with the first element of every line. */
static void each_line(const op_call *c, double *const *v, line_fn *f,
                      void (*visit)(const op_call *, double *const *, line_fn *, size_t, size_t, size_t))
{
    size_t n = (size_t)c->tensor[0].dim[axis_of(c)], step = step_of(c);
    for (size_t i = 0; n > 0 && i < op_count(c, 0); i++)
        if (i / step % n == 0)
            visit(c, v, f, i, n, step);
}

static void forward_line(const op_call *c, double *const *v, line_fn *f, size_t at, size_t n, size_t step)
{
    f(v[0] + at, v[1] + at, n, step, c->f[0] > 0.0 ? c->f[0] : 1e-12);
}

typedef struct loss {
    line_fn *f;
    double *x, *y;
    const double *dy;
    size_t n, step;
    double eps;
} loss;

static double loss_of(void *user)
{
    loss *l = user;
    double sum = 0.0;
    l->f(l->y, l->x, l->n, 1, l->eps);
    for (size_t i = 0; i < l->n; i++)
        sum += l->y[i] * l->dy[i * l->step];
    return sum;
}

/* dx by differences. The saved value v[2] is x for l2_normalize. For the softmaxes it is y, made log y to get
 * an x that has this y: fill_saved gives a y whose softmax lines do sum to 1. */
static void backward_line(const op_call *c, double *const *v, line_fn *f, size_t at, size_t n, size_t step)
{
    double *work = calloc(3 * n, sizeof *work);
    loss l = {f, work, work + n, v[1] + at, n, step, c->f[0] > 0.0 ? c->f[0] : 1e-12};
    for (size_t i = 0; i < n; i++)
        l.x[i] = f == softmax ? log(v[2][at + i * step]) : v[2][at + i * step];
    op_numeric_gradient(work + 2 * n, l.x, n, loss_of, &l);
    for (size_t i = 0; i < n; i++)
        v[0][at + i * step] = work[2 * n + i];
    free(work);
}

/* The saved output of a softmax (tensor 2) must be one. */
static void fill_saved(const op_call *c, test_random *r, int tensor, double *value, size_t count, line_fn *f)
{
    for (size_t i = 0; i < count; i++)
        value[i] = test_normal(r);
    if (tensor != 2)
        return;
    size_t n = (size_t)c->tensor[0].dim[axis_of(c)], step = step_of(c);
    for (size_t i = 0; n > 0 && i < count; i++)
        if (i / step % n == 0)
            f(value + i, value + i, n, step, 0.0);
}
static void fill_softmax(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    fill_saved(c, r, tensor, value, count, softmax);
}
static void fill_log_softmax(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    fill_saved(c, r, tensor, value, count, log_softmax);
}
/* Logits of any size, sometimes all shifted far away. */
static void fill_logits(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    (void)c, (void)tensor;
    double shift = test_chance(r, 30) ? test_uniform(r, -1000.0, 1000.0) : 0.0;
    for (size_t i = 0; i < count; i++)
        value[i] = shift + 3.0 * test_normal(r);
}

/* Away from 0, where the gradient of a line of one element has no bound. */
static void fill_away(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    (void)c, (void)tensor;
    for (size_t i = 0; i < count; i++) {
        value[i] = test_normal(r);
        value[i] += value[i] < 0.0 ? -0.5 : 0.5;
    }
}

#define AXIS_CASE(op, one, two, three, inputs, visit_line, f, fill_function, allowed, call)            \
    static mica_status run_##op(mica_context *ctx, const op_call *c)                                   \
    {                                                                                                  \
        mica_l2_normalize_opts opts = opts_of(c);                                                      \
        (void)opts;                                                                                    \
        return call;                                                                                   \
    }                                                                                                  \
    static void reference_##op(const op_call *c, double *const *v) { each_line(c, v, f, visit_line); } \
    OP_CASE(op) = {.names = {one, two, three},                                                         \
                   .outs = 1,                                                                          \
                   .ins = inputs,                                                                      \
                   .in_place = OP_BIT(1) | OP_BIT(2),                                                  \
                   .axis_option = 1,                                                                   \
                   .draw = draw,                                                                       \
                   .fill = fill_function,                                                              \
                   .run = run_##op,                                                                    \
                   .reference = reference_##op,                                                        \
                   .tolerance = allowed}

AXIS_CASE(softmax, "y", "x", NULL, 1, forward_line, softmax, fill_logits, 1e-6,
          mica_softmax(ctx, OP(c, 0), OP(c, 1), (int)c->i[0]));
AXIS_CASE(log_softmax, "y", "x", NULL, 1, forward_line, log_softmax, fill_logits, 1e-6,
          mica_log_softmax(ctx, OP(c, 0), OP(c, 1), (int)c->i[0]));
AXIS_CASE(softmax_backward, "dx", "dy", "y", 2, backward_line, softmax, fill_softmax, 4e-6,
          mica_softmax_backward(ctx, OP(c, 0), OP(c, 1), OP(c, 2), (int)c->i[0]));
AXIS_CASE(log_softmax_backward, "dx", "dy", "y", 2, backward_line, log_softmax, fill_log_softmax, 4e-6,
          mica_log_softmax_backward(ctx, OP(c, 0), OP(c, 1), OP(c, 2), (int)c->i[0]));
AXIS_CASE(l2_normalize, "y", "x", NULL, 1, forward_line, l2_normalize, NULL, 1e-6,
          mica_l2_normalize(ctx, OP(c, 0), OP(c, 1), &opts));
AXIS_CASE(l2_normalize_backward, "dx", "dy", "x", 2, backward_line, l2_normalize, fill_away, 1e-5,
          mica_l2_normalize_backward(ctx, OP(c, 0), OP(c, 1), OP(c, 2), &opts));

TEST(softmax_of_masked_and_extreme_logits)
{
    mica_context *ctx = test_context(1);
    float data[4] = {-INFINITY, 1000.0f, 1000.0f, -INFINITY};
    mica_tensor x = mica_1d(data, 4);
    CHECK_OK(ctx, mica_softmax(ctx, &x, &x, 0));
    CHECK(data[0] == 0.0f && data[1] == 0.5f && data[2] == 0.5f && data[3] == 0.0f);
    for (int i = 0; i < 4; i++)
        data[i] = i == 2 ? NAN : 1.0f;
    CHECK_OK(ctx, mica_softmax(ctx, &x, &x, -1));
    for (int i = 0; i < 4; i++)
        CHECK(isnan(data[i]));
}

TEST(l2_normalize_refuses_a_negative_eps)
{
    mica_context *ctx = test_context(1);
    float data[2] = {3.0f, 4.0f};
    mica_tensor x = mica_1d(data, 2);
    CHECK_ERROR(ctx, mica_l2_normalize(ctx, &x, &x, &(mica_l2_normalize_opts){.eps = -1.0f}),
                MICA_ERR_ARGUMENT, "argument error: l2_normalize: eps is -1, expected 0 or more");
    CHECK_OK(ctx, mica_l2_normalize(ctx, &x, &x, NULL));
    CHECK(data[0] == 0.6f && data[1] == 0.8f);
}
