/* Cases of the losses; gradients by finite differences. */
#include "ops/op_case.h"

#include <math.h>
#include <string.h>

enum { LOSS, GRAD, PRED, TARGET, WEIGHTS };

/* Options: i[0] reduction, i[1] ignore, i[2] ignore_index; f[0] delta, f[1] smoothing. */
static mica_loss_opts options(const op_call *c)
{
    return (mica_loss_opts){.reduction = (mica_loss_reduction)c->i[0],
                            .ignore = c->i[1] != 0,
                            .ignore_index = c->i[2],
                            .delta = (float)c->f[0],
                            .smoothing = (float)c->f[1]};
}

static void draw_common(op_call *c, test_random *r)
{
    c->i[0] = test_int(r, MICA_LOSS_MEAN, MICA_LOSS_NONE);
    c->f[0] = test_chance(r, 50) ? 0.0 : test_uniform(r, 0.2, 2.0);
    c->f[1] = test_chance(r, 50) ? 0.0 : (double)(float)test_uniform(r, 0.0, 0.5);
    c->absent[LOSS] = test_chance(r, 10);
    c->absent[GRAD] = test_chance(r, 20);
}

/* ---- Element by element ---- */

static void draw_point(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 0, 4, dims);
    draw_common(c, r);
    if (c->i[0] == MICA_LOSS_NONE)
        op_tensor(c, LOSS, MICA_F32, rank, dims);
    else
        op_tensor(c, LOSS, MICA_F32, test_chance(r, 30), (mica_index[]){1});
    for (int k = GRAD; k <= TARGET; k++)
        op_tensor(c, k, MICA_F32, rank, dims);
}

/* Probabilities for what takes them. */
static void fill_chances(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    bool logits = strcmp(c->op->name, "bce_logits_loss") == 0 && tensor == PRED, far = test_chance(r, 20);
    for (size_t i = 0; i < count; i++)
        value[i] = logits                                   ? test_normal(r) * (far ? 60.0 : 2.0)
                   : tensor == TARGET && test_chance(r, 40) ? test_int(r, 0, 1)
                                                            : test_uniform(r, 0.02, 0.98);
}

typedef struct point {
    double p, t, delta;
    double (*loss)(const struct point *at);
} point;

static double mse(const point *a) { return (a->p - a->t) * (a->p - a->t); }
static double l1(const point *a) { return fabs(a->p - a->t); }
static double huber(const point *a)
{
    double d = fabs(a->p - a->t);
    return d <= a->delta ? d * d / 2.0 : a->delta * (d - a->delta / 2.0);
}
static double bce(const point *a) { return -(a->t * log(a->p) + (1.0 - a->t) * log1p(-a->p)); }
static double bce_logits(const point *a) { return fmax(a->p, 0.0) - a->p * a->t + log1p(exp(-fabs(a->p))); }

static double point_loss(void *user)
{
    const point *at = user;
    return at->loss(at);
}

static void reference_point(const op_call *c, double *const *v, double (*loss)(const point *at))
{
    size_t count = op_count(c, PRED);
    double sum = 0.0, share = c->i[0] == MICA_LOSS_MEAN ? 1.0 / (double)count : 1.0;
    for (size_t i = 0; i < count; i++) {
        point at = {v[PRED][i], v[TARGET][i], c->f[0] != 0.0 ? (double)(float)c->f[0] : 1.0, loss};
        double value = loss(&at), slope;
        op_numeric_gradient(&slope, &at.p, 1, point_loss, &at);
        sum += value;
        if (!c->absent[LOSS] && c->i[0] == MICA_LOSS_NONE)
            v[LOSS][i] = value;
        if (!c->absent[GRAD])
            v[GRAD][i] = slope * share;
    }
    if (!c->absent[LOSS] && c->i[0] != MICA_LOSS_NONE)
        v[LOSS][0] = c->i[0] == MICA_LOSS_MEAN ? sum / (double)count : sum;
}

#define POINT_CASE(fn, pred, fill_fn)                                                             \
    static void reference_##fn(const op_call *c, double *const *v) { reference_point(c, v, fn); } \
    static mica_status run_##fn(mica_context *ctx, const op_call *c)                              \
    {                                                                                             \
        mica_loss_opts o = options(c);                                                            \
        return mica_##fn##_loss(ctx, OP(c, LOSS), OP(c, GRAD), OP(c, PRED), OP(c, TARGET), &o);   \
    }                                                                                             \
    OP_CASE(fn##_loss) = {.names = {"loss", "grad", pred, "target"},                              \
                          .outs = 2,                                                              \
                          .ins = 2,                                                               \
                          .in_place = OP_BIT(PRED) | OP_BIT(TARGET),                              \
                          .optional = OP_BIT(LOSS) | OP_BIT(GRAD),                                \
                          .draw = draw_point,                                                     \
                          .fill = fill_fn,                                                        \
                          .run = run_##fn,                                                        \
                          .reference = reference_##fn,                                            \
                          .tolerance = 3e-6}
POINT_CASE(mse, "pred", NULL);
POINT_CASE(l1, "pred", NULL);
POINT_CASE(huber, "pred", NULL);
POINT_CASE(bce, "pred", fill_chances);
POINT_CASE(bce_logits, "logits", fill_chances);

/* ---- Row by row ---- */

static void draw_classes(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = test_int(r, 1, 3);
    for (int i = 0; i < rank; i++)
        dims[i] = test_int(r, test_chance(r, 5) ? 0 : 1, 5);
    dims[rank - 1] = c->large ? 300 : test_chance(r, 20) ? test_int(r, 10, 40) : test_int(r, 1, 9);
    if (c->large && rank > 1)
        dims[0] = 200;
    draw_common(c, r);
    if (c->i[0] == MICA_LOSS_NONE)
        op_tensor(c, LOSS, MICA_F32, rank - 1, dims);
    else
        op_tensor(c, LOSS, MICA_F32, test_chance(r, 30), (mica_index[]){1});
    op_tensor(c, GRAD, MICA_F32, rank, dims);
    op_tensor(c, PRED, MICA_F32, rank, dims);
    bool soft = test_chance(r, 40);
    op_tensor(c, TARGET,
              soft                 ? MICA_F32
              : test_chance(r, 50) ? MICA_I32
                                   : MICA_I64,
              soft ? rank : rank - 1, dims);
    op_tensor(c, WEIGHTS, MICA_F32, 1, &dims[rank - 1]);
    c->absent[WEIGHTS] = test_chance(r, 50);
    c->i[1] = test_chance(r, 40);
    c->i[2] = test_chance(r, 50) ? -100 : 0;
    c->scale = 3.0;
}

static void fill_classes(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    const mica_tensor *pred = &c->tensor[PRED];
    int classes = (int)pred->dim[pred->rank - 1];
    bool chances = strcmp(c->op->name, "cross_entropy_probs") == 0, far = test_chance(r, 20);
    for (size_t i = 0; i < count; i++) {
        if (tensor == WEIGHTS)
            value[i] = test_uniform(r, 0.1, 3.0);
        else if (tensor == PRED)
            value[i] = chances ? test_uniform(r, 0.02, 1.0) : test_normal(r) * (far ? 100.0 : 2.0);
        else if (c->tensor[TARGET].dtype == MICA_F32)
            value[i] = test_chance(r, 40) ? 0.0 : test_uniform(r, 0.0, 1.0);
        else
            value[i] = c->i[1] != 0 && test_chance(r, 25) ? (double)c->i[2] : test_int(r, 0, classes - 1);
    }
}

typedef struct class_row {
    double *pred;
    const double *target;  /* or NULL */
    const double *weights; /* of the classes, or NULL */
    size_t n, label;
    double smoothing;
    bool chances;
} class_row;

static double row_loss(void *user)
{
    const class_row *a = user;
    double most = -HUGE_VAL, sum = 0.0, loss = 0.0;
    for (size_t j = 0; j < a->n; j++)
        most = fmax(most, a->pred[j]);
    for (size_t j = 0; j < a->n; j++)
        sum += exp(a->pred[j] - most);
    for (size_t j = 0; j < a->n; j++) {
        double t = a->target != NULL ? a->target[j] : j == a->label ? 1.0 : 0.0;
        t = t * (1.0 - a->smoothing) + a->smoothing / (double)a->n;
        t *= a->weights != NULL ? a->weights[j] : 1.0;
        loss -= t * (a->chances ? log(a->pred[j]) : a->pred[j] - most - log(sum));
    }
    return loss;
}

static void reference_classes(const op_call *c, double *const *v)
{
    const mica_tensor *pred = &c->tensor[PRED];
    class_row a = {.n = (size_t)pred->dim[pred->rank - 1],
                   .smoothing = (double)(float)c->f[1],
                   .weights = c->absent[WEIGHTS] ? NULL : v[WEIGHTS],
                   .chances = strcmp(c->op->name, "cross_entropy_probs") == 0};
    bool soft = c->tensor[TARGET].dtype == MICA_F32;
    size_t rows = op_count(c, PRED) / a.n;
    double sum = 0.0, counted = 0.0;          /* rows, or the weights of their classes */
    for (size_t pass = 0; pass < 2; pass++) { /* the second knows how many count */
        for (size_t row = 0; row < rows; row++) {
            bool ignored = !soft && c->i[1] != 0 && (long)v[TARGET][row] == c->i[2];
            if (pass == 0) {
                bool weighs = a.weights != NULL && !soft && !ignored;
                counted += weighs ? a.weights[(size_t)v[TARGET][row]] : ignored ? 0.0 : 1.0;
                continue;
            }
            a.pred = v[PRED] + row * a.n;
            a.target = soft ? v[TARGET] + row * a.n : NULL;
            a.label = soft || ignored ? 0 : (size_t)v[TARGET][row];
            double loss = ignored ? 0.0 : row_loss(&a);
            sum += loss;
            if (!c->absent[LOSS] && c->i[0] == MICA_LOSS_NONE)
                v[LOSS][row] = loss;
            if (c->absent[GRAD])
                continue;
            double *grad = v[GRAD] + row * a.n;
            op_numeric_gradient(grad, a.pred, a.n, row_loss, &a);
            for (size_t j = 0; j < a.n; j++)
                grad[j] = ignored ? 0.0 : c->i[0] == MICA_LOSS_MEAN ? grad[j] / counted : grad[j];
        }
    }
    if (!c->absent[LOSS] && c->i[0] != MICA_LOSS_NONE)
        v[LOSS][0] = c->i[0] == MICA_LOSS_MEAN ? sum / counted : sum;
}

#define CLASS_CASE(fn, pred)                                                             \
    static mica_status run_##fn(mica_context *ctx, const op_call *c)                     \
    {                                                                                    \
        mica_loss_opts o = options(c);                                                   \
        o.class_weights = OP(c, WEIGHTS);                                                \
        return mica_##fn(ctx, OP(c, LOSS), OP(c, GRAD), OP(c, PRED), OP(c, TARGET), &o); \
    }                                                                                    \
    OP_CASE(fn) = {.names = {"loss", "grad", pred, "target", "class_weights"},           \
                   .outs = 2,                                                            \
                   .ins = 3,                                                             \
                   .optional = OP_BIT(LOSS) | OP_BIT(GRAD) | OP_BIT(WEIGHTS),            \
                   .any_shape = OP_BIT(PRED),                                            \
                   .in_place = OP_BIT(PRED),                                             \
                   .draws = 400,                                                         \
                   .draw = draw_classes,                                                 \
                   .fill = fill_classes,                                                 \
                   .run = run_##fn,                                                      \
                   .reference = reference_classes,                                       \
                   .tolerance = 1e-5}
CLASS_CASE(cross_entropy, "logits");
CLASS_CASE(cross_entropy_probs, "pred");
