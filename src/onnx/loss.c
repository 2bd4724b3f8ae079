/* Losses by class, dropout, and the optimizers of the preview domain. */
#include <string.h>

#include "onnx/compose.h"

/* ---- Losses by class: scores [N, C, d1, ...], targets [N, d1, ...] ---- */

/* Classes last, as rows [M, C]. */
static mica_onnx_ref rows_of(mica_onnx_importing *n, mica_onnx_ref x)
{
    int axes[MICA_MAX_RANK];
    mica_tensor shape = *mica_onnx_shape(n, x);
    for (int k = 0; k < shape.rank; k++)
        axes[k] = k == 0 ? 0 : k < shape.rank - 1 ? k + 1 : 1;
    x = shape.rank > 2 ? mica_onnx_permute(n, x, axes) : x;
    return mica_onnx_reshape(n, x, 2, (mica_index[]){-1, shape.dim[1]});
}

/* What the losses of a node share: rows of scores, the class of each, and what each row counts for. */
typedef struct by_class {
    mica_onnx_ref rows;    /* [M, C] f32 */
    mica_onnx_ref classes; /* [M] i32; of rows that are ignored, 0 */
    mica_onnx_ref counts;  /* [M] f32: 0 of rows that are ignored; 0: none is */
    mica_onnx_ref weights; /* [C] f32; 0: none */
    const char *reduction;
} by_class;

static bool read_classes(mica_onnx_importing *n, by_class *c)
{
    mica_tensor x = *mica_onnx_shape(n, n->in[0]), target = *mica_onnx_shape(n, n->ins > 1 ? n->in[1] : 0);
    bool fits = n->ins > 1 && x.rank >= 2 && target.rank == x.rank - 1 && x.dim[0] == target.dim[0];
    for (int k = 1; fits && k < target.rank; k++)
        fits = target.dim[k] == x.dim[k + 1];
    c->reduction = mica_onnx_text(n, "reduction", "mean");
    if (!fits) {
        (void)mica_onnx_bad(n, "scores %s and targets %s: expected [N, C, ...] and [N, ...]", MICA_SHAPE(&x),
                            MICA_SHAPE(&target));
        return false;
    }
    const mica_index all = -1;
    c->classes = mica_onnx_reshape(n, n->in[1], 1, &all);
    c->weights = mica_onnx_f32(n, 2);
    if (mica_onnx_find(n, "ignore_index") != NULL) {
        mica_onnx_ref ignored = mica_onnx_scalar(n, MICA_F32, (double)mica_onnx_int(n, "ignore_index", 0));
        mica_onnx_ref number = mica_onnx_cast(n, c->classes, MICA_F32);
        c->counts = mica_onnx_op2(n, "ne", number, ignored, NULL);
        c->classes = mica_onnx_cast(n, mica_onnx_mul(n, number, c->counts), MICA_I32);
    }
    return !n->failed;
}

/* The factor of each row [M]; 0: 1. */
static mica_onnx_ref factors(mica_onnx_importing *n, const by_class *c)
{
    if (c->weights == 0)
        return c->counts;
    mica_onnx_ref weight = mica_onnx_op2(n, "take", c->weights, c->classes, &(mica_axis_opts){0});
    return c->counts != 0 ? mica_onnx_mul(n, weight, c->counts) : weight;
}

/* - factor log p(class) of each row, reduced as the node wants it. */
static void give_loss(mica_onnx_importing *n, const by_class *c)
{
    mica_tensor target = *mica_onnx_shape(n, n->in[1]);
    mica_reduction_opts all = {.count = 0};
    mica_onnx_ref index = mica_onnx_add_axis(n, c->classes, 1), factor = factors(n, c);
    mica_onnx_ref each = mica_onnx_op2(n, "gather", c->rows, index, &(mica_axis_opts){1});
    each = mica_onnx_op1(n, "neg", mica_onnx_drop_axis(n, each, 1), NULL);
    each = factor != 0 ? mica_onnx_mul(n, each, factor) : each;
    if (strcmp(c->reduction, "none") == 0)
        each = mica_onnx_reshape(n, each, target.rank, target.dim);
    else if (strcmp(c->reduction, "sum") == 0)
        each = mica_onnx_op1(n, "sum", each, &all);
    else if (strcmp(c->reduction, "mean") == 0 && factor == 0)
        each = mica_onnx_op1(n, "mean", each, &all);
    else if (strcmp(c->reduction, "mean") == 0)
        each = mica_onnx_div(n, mica_onnx_op1(n, "sum", each, &all), mica_onnx_op1(n, "sum", factor, &all));
    else
        (void)mica_onnx_bad(n, "reduction is \"%s\": expected none, sum or mean", c->reduction);
    mica_onnx_give_like(n, 0, each, n->in[0]);
}

static void negative_log_likelihood(mica_onnx_importing *n)
{
    by_class c = {0};
    if (!read_classes(n, &c))
        return;
    c.rows = rows_of(n, mica_onnx_f32(n, 0));
    give_loss(n, &c);
}

/* In a net that is trained, where its backward starts. */
static void learned_loss(mica_onnx_importing *n, const by_class *c, mica_onnx_ref rows)
{
    mica_weighted_loss_opts opts = {.loss = {.ignore = mica_onnx_find(n, "ignore_index") != NULL,
                                             .ignore_index = mica_onnx_int(n, "ignore_index", 0)}};
    opts.loss.reduction = strcmp(c->reduction, "sum") == 0 ? MICA_LOSS_SUM : MICA_LOSS_MEAN;
    mica_onnx_ref target = mica_onnx_reshape(n, n->in[1], 1, (mica_index[]){-1});
    mica_onnx_ref in[] = {rows, target, c->weights};
    mica_onnx_give(n, 0, mica_onnx_op(n, "cross_entropy", in, 3, &opts));
}

static void softmax_cross_entropy(mica_onnx_importing *n)
{
    by_class c = {0};
    if (!read_classes(n, &c))
        return;
    mica_onnx_ref x = mica_onnx_f32(n, 0), log_prob = 0;
    bool root = mica_onnx_training(n) && mica_onnx_shape(n, n->in[0])->dtype == MICA_F32 &&
                strcmp(c.reduction, "none") != 0;
    if (!root || mica_onnx_wants(n, 1))
        log_prob = mica_onnx_op1(n, "log_softmax", x, &(mica_axis_opts){1});
    if (root) {
        learned_loss(n, &c, rows_of(n, x));
    } else {
        c.rows = rows_of(n, log_prob);
        give_loss(n, &c);
    }
    if (mica_onnx_wants(n, 1))
        mica_onnx_give_like(n, 1, log_prob, n->in[0]);
}

/* ---- Dropout ---- */

enum { MASK = 1, BOOL = 9 }; /* an output; a type of ONNX */

/* Drops nothing: all ones, of the type that the mask has in this opset. */
static void give_whole(mica_onnx_importing *n)
{
    mica_onnx_give(n, 0, n->in[0]);
    if (!mica_onnx_wants(n, MASK))
        return;
    mica_dtype dtype = n->opset < 10 ? mica_onnx_shape(n, n->in[0])->dtype : mica_onnx_dtype_of(n, BOOL);
    mica_make_opts opts = {.dtype = dtype, .value = 1.0};
    if (!n->failed)
        mica_onnx_give(n, MASK, mica_onnx_op1(n, "fill", n->in[0], &opts));
}

static void dropout(mica_onnx_importing *n)
{
    bool training = n->ins > 2 && n->in[2] != 0 &&
                    mica_onnx_known_number(n, n->in[2], "training_mode") != 0.0;
    double ratio = training && n->in[1] != 0 ? mica_onnx_known_number(n, n->in[1], "ratio") : 0.5;
    if (!training || ratio == 0.0) {
        give_whole(n);
        return;
    }
    if (!mica_onnx_training(n)) {
        (void)mica_onnx_unsupported(n, "training_mode: the net is not built for training");
        return;
    }
    mica_onnx_ref y = mica_onnx_op1(n, "dropout", mica_onnx_f32(n, 0),
                                    &(mica_dropout_opts){.rate = (float)ratio});
    mica_onnx_give_like(n, 0, y, n->in[0]);
    if (mica_onnx_wants(n, MASK))
        mica_onnx_give(n, MASK, mica_onnx_cast(n, mica_onnx_result(n, y, MASK), mica_onnx_dtype_of(n, BOOL)));
}

static void dropout_before_12(mica_onnx_importing *n) { give_whole(n); }

/* ---- Optimizers: R, T, then all X, all gradients, all of each state ---- */

typedef struct updates {
    int count, states;
    mica_onnx_ref rate, step; /* f32 of one element each */
} updates;

static bool read_updates(mica_onnx_importing *n, updates *u, int states)
{
    u->states = states;
    u->count = (n->ins - 2) / (2 + states);
    if (n->ins < 4 + states || n->ins != 2 + u->count * (2 + states) || n->outs != u->count * (1 + states))
        return mica_onnx_bad(n, "%d inputs and %d outputs", n->ins, n->outs) != 0;
    u->rate = mica_onnx_f32(n, 0);
    u->step = mica_onnx_cast(n, n->in[1], MICA_F32);
    return !n->failed;
}

/* Tensor i of a kind: 0 is X, 1 its gradient, then states. */
static mica_onnx_ref tensor_of(mica_onnx_importing *n, const updates *u, int kind, int i)
{
    return mica_onnx_f32(n, 2 + kind * u->count + i);
}

/* The gradient with that of the regularization: norm_coefficient X + G */
static mica_onnx_ref regularized(mica_onnx_importing *n, const updates *u, int i)
{
    mica_onnx_ref x = mica_onnx_scale(n, tensor_of(n, u, 0, i), mica_onnx_float(n, "norm_coefficient", 0.0f));
    return mica_onnx_add(n, x, tensor_of(n, u, 1, i));
}

/* `then` where the step is past the first, else `first`. */
static mica_onnx_ref after_first(mica_onnx_importing *n, const updates *u, mica_onnx_ref then,
                                 mica_onnx_ref first)
{
    mica_onnx_ref past = mica_onnx_op2(n, "gt", u->step, mica_onnx_scalar(n, MICA_F32, 0.0), NULL);
    return mica_onnx_choose(n, past, then, first);
}

static void give_updated(mica_onnx_importing *n, const updates *u, int kind, int i, mica_onnx_ref ref)
{
    mica_onnx_give_like(n, (kind > 0 ? kind - 1 : 0) * u->count + i, ref, n->in[2 + kind * u->count + i]);
}

static void adagrad(mica_onnx_importing *n)
{
    updates u = {0};
    float eps = mica_onnx_float(n, "epsilon", 1e-6f), decay = mica_onnx_float(n, "decay_factor", 0.0f);
    if (!read_updates(n, &u, 1))
        return;
    mica_onnx_ref rate = mica_onnx_div(n, u.rate, mica_onnx_plus(n, mica_onnx_scale(n, u.step, decay), 1.0f));
    for (int i = 0; i < u.count; i++) {
        mica_onnx_ref g = regularized(n, &u, i);
        mica_onnx_ref h = mica_onnx_add(n, tensor_of(n, &u, 2, i), mica_onnx_op1(n, "square", g, NULL));
        mica_onnx_ref root = mica_onnx_plus(n, mica_onnx_op1(n, "sqrt", h, NULL), eps);
        mica_onnx_ref change = mica_onnx_div(n, mica_onnx_mul(n, g, rate), root);
        give_updated(n, &u, 0, i, mica_onnx_sub(n, tensor_of(n, &u, 0, i), change));
        give_updated(n, &u, 2, i, h);
    }
}

/* a state + b g */
static mica_onnx_ref moved(mica_onnx_importing *n, mica_onnx_ref state, float a, mica_onnx_ref g, float b)
{
    return mica_onnx_add(n, mica_onnx_scale(n, state, a), mica_onnx_scale(n, g, b));
}

/* 1 - base^step */
static mica_onnx_ref correction(mica_onnx_importing *n, const updates *u, float base)
{
    mica_onnx_ref power = mica_onnx_op2(n, "pow", mica_onnx_scalar(n, MICA_F32, (double)base), u->step, NULL);
    return mica_onnx_minus_from(n, power, 1.0f);
}

static void adam(mica_onnx_importing *n)
{
    updates u = {0};
    float alpha = mica_onnx_float(n, "alpha", 0.9f), beta = mica_onnx_float(n, "beta", 0.999f);
    float eps = mica_onnx_float(n, "epsilon", 1e-6f),
          post = mica_onnx_float(n, "norm_coefficient_post", 0.0f);
    if (!read_updates(n, &u, 2))
        return;
    mica_onnx_ref factor = mica_onnx_op1(n, "sqrt", correction(n, &u, beta), NULL);
    mica_onnx_ref corrected = mica_onnx_div(n, mica_onnx_mul(n, u.rate, factor), correction(n, &u, alpha));
    mica_onnx_ref rate = after_first(n, &u, corrected, u.rate);
    for (int i = 0; i < u.count; i++) {
        mica_onnx_ref g = regularized(n, &u, i);
        mica_onnx_ref v = moved(n, tensor_of(n, &u, 2, i), alpha, g, 1.0f - alpha);
        mica_onnx_ref h = moved(n, tensor_of(n, &u, 3, i), beta, mica_onnx_op1(n, "square", g, NULL),
                                1.0f - beta);
        mica_onnx_ref root = mica_onnx_plus(n, mica_onnx_op1(n, "sqrt", h, NULL), eps);
        mica_onnx_ref change = mica_onnx_mul(n, mica_onnx_div(n, v, root), rate);
        mica_onnx_ref x = mica_onnx_sub(n, tensor_of(n, &u, 0, i), change);
        give_updated(n, &u, 0, i, mica_onnx_scale(n, x, 1.0f - post));
        give_updated(n, &u, 2, i, v);
        give_updated(n, &u, 3, i, h);
    }
}

static void momentum(mica_onnx_importing *n)
{
    updates u = {0};
    float alpha = mica_onnx_float(n, "alpha", 0.0f), beta = mica_onnx_float(n, "beta", 0.0f);
    bool nesterov = strcmp(mica_onnx_text(n, "mode", "standard"), "nesterov") == 0;
    if (!read_updates(n, &u, 1))
        return;
    mica_onnx_ref one = mica_onnx_scalar(n, MICA_F32, 1.0);
    mica_onnx_ref share = after_first(n, &u, mica_onnx_scalar(n, MICA_F32, (double)beta), one);
    for (int i = 0; i < u.count; i++) {
        mica_onnx_ref g = regularized(n, &u, i);
        mica_onnx_ref v = mica_onnx_add(n, mica_onnx_scale(n, tensor_of(n, &u, 2, i), alpha),
                                        mica_onnx_mul(n, g, share));
        mica_onnx_ref way = nesterov ? mica_onnx_add(n, g, mica_onnx_scale(n, v, alpha)) : v;
        give_updated(n, &u, 0, i, mica_onnx_sub(n, tensor_of(n, &u, 0, i), mica_onnx_mul(n, way, u.rate)));
        give_updated(n, &u, 2, i, v);
    }
}

const mica_onnx_operator mica_onnx_loss_operators[] = {
    {"NegativeLogLikelihoodLoss", 12, negative_log_likelihood},
    {"SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy},
    {"Dropout", 12, dropout},
    {"Dropout", 7, dropout_before_12},
    {"ai.onnx.preview.training:Adagrad", 1, adagrad},
    {"ai.onnx.preview.training:Adam", 1, adam},
    {"ai.onnx.preview.training:Momentum", 1, momentum},
    {NULL, 0, NULL}};
