/* Losses: the operation gives loss and gradient in one pass, so the gradient is an output that only the backward
 * reads. It is computed in training, and scaled there. */
#include "node/entry.h"
#include "node/sample.h"

typedef mica_status loss_fn(mica_context *ctx, const mica_tensor *loss, const mica_tensor *grad,
                            const mica_tensor *x, const mica_tensor *target, const mica_loss_opts *opts);

static float weight_of(const void *opts)
{
    float weight = ((const mica_weighted_loss_opts *)opts)->weight;
    return weight != 0.0f ? weight : 1.0f;
}

/* The operation's own options, with the class weights, if there are any. */
static mica_loss_opts own_opts(const void *opts, const mica_tensor *class_weights)
{
    mica_loss_opts own = ((const mica_weighted_loss_opts *)opts)->loss;
    own.class_weights = class_weights;
    return own;
}

/* Shapes and options are checked by the operation itself. */
static mica_status infer_with(mica_infer *i, loss_fn *loss)
{
    mica_loss_opts opts = own_opts(i->opts, i->ins > 2 ? i->in[2] : NULL);
    if (opts.reduction == MICA_LOSS_NONE)
        return mica_infer_fail(i, MICA_ERR_ARGUMENT,
                               "reduction is none: expected mean or sum, since a loss is one number");
    mica_tensor out = mica_0d(NULL);
    mica_measure_begin(i->ctx);
    mica_status status = loss(i->ctx, &out, i->in[0], i->in[0], i->in[1], &opts);
    (void)mica_measure_end(i->ctx);
    if (status != MICA_OK)
        return mica_infer_pass_on(i, status);
    MICA_TRY(mica_infer_out(i, 0, MICA_F32, 0, NULL));
    return mica_infer_like(i, 1, 0);
}

static mica_status run_with(const mica_call *c, loss_fn *loss)
{
    float weight = weight_of(c->opts);
    bool plain = ((const mica_weighted_loss_opts *)c->opts)->plain_scores && !c->training &&
                 !mica_call_measuring(c);
    mica_loss_opts opts = own_opts(c->opts, c->ins > 2 && !plain ? c->in[2] : NULL);
    MICA_TRY(loss(c->ctx, c->out[0], c->training ? c->out[1] : NULL, c->in[0], c->in[1], &opts));
    return weight != 1.0f ? mica_scale(c->ctx, c->out[0], c->out[0], weight) : MICA_OK;
}

/* Parts of a batch have their shares of a mean over it. They do not of a sum, nor of a mean over some rows or with
 * weights. */
static bool mixes(const mica_infer *i)
{
    const mica_loss_opts *opts = &((const mica_weighted_loss_opts *)i->opts)->loss;
    return opts->reduction != MICA_LOSS_MEAN || opts->ignore || (i->ins > 2 && i->in[2] != NULL);
}

/* ---- Gradient ---- */

static mica_status infer_gradient(mica_infer *i) { return mica_infer_like(i, 0, 0); }

static mica_status run_gradient(const mica_call *c)
{
    float factor = weight_of(c->opts) * c->scale;
    if (factor != 1.0f || mica_call_measuring(c))
        return mica_scale(c->ctx, c->out[0], c->in[0], factor);
    return c->out[0]->data != c->in[0]->data ? mica_copy(c->ctx, c->out[0], c->in[0]) : MICA_OK;
}

static void gradient(mica_grad *g)
{
    mica_grad_give(g, 0, &mica_op_loss_gradient, &g->out[1], 1, g->opts);
    if (g->dout[0] == 0)
        return;
    /* Another loss depends on this one. */
    mica_value product = mica_grad_value(g, &mica_op_mul, (mica_value[]){g->out[1], g->dout[0]}, 2, NULL);
    mica_grad_give(g, 0, &mica_op_scale, &product, 1, &(mica_scalar_opts){weight_of(g->opts)});
}

/* clang-format off */
#define IN_LOSS(member, kind, about) \
    {#member, about, offsetof(mica_weighted_loss_opts, loss.member), MICA_FIELD_##kind, 0}
/* clang-format on */
#define COMMON                              \
    IN_LOSS(reduction, CHOICE, "mean|sum"), \
        MICA_FIELD(mica_weighted_loss_opts, weight, FLOAT, "weight of this loss if there are several; 0: 1")

static const mica_field plain_fields[] = {COMMON};
static const mica_field huber_fields[] = {COMMON, IN_LOSS(delta, FLOAT, "where the loss turns linear; 0: 1")};
static const mica_field class_fields[] = {
    COMMON, IN_LOSS(smoothing, FLOAT, "label smoothing"),
    IN_LOSS(ignore, BOOL, "ignore rows of the class ignore_index"),
    IN_LOSS(ignore_index, INDEX, "may be negative"),
    MICA_FIELD(mica_weighted_loss_opts, plain_scores, BOOL, "class weights are for training mode alone")};

const mica_op mica_op_loss_gradient = {.name = "loss_gradient",
                                       .about = "a * the loss's weight * the step's scale",
                                       .flags = MICA_OP_CHEAP,
                                       .ins = 1,
                                       .outs = 1,
                                       .opts_bytes = sizeof(mica_weighted_loss_opts),
                                       MICA_FIELD_LIST(plain_fields),
                                       .in_place = {1},
                                       .infer = infer_gradient,
                                       .run = run_gradient};

/* ---- Samples ---- */

static void sample_options(mica_op_sample *s)
{
    mica_weighted_loss_opts *opts = s->opts;
    opts->loss.reduction = mica_sample_chance(s) ? MICA_LOSS_MEAN : MICA_LOSS_SUM;
    opts->weight = mica_sample_chance(s) ? 0.5f : 0.0f;
}

/* Predictions in one range, targets in another: apart, or they would meet at the corner of l1. */
static void sample_points(mica_op_sample *s, double low, double high, double target_low, double target_high)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 1, 3, dims);
    for (int k = 0; k < 2; k++)
        mica_op_sample_shape(s, k, rank, dims);
    mica_sample_range(s, 0, low, high);
    mica_sample_range(s, 1, target_low, target_high);
    sample_options(s);
}

static void sample_any(mica_op_sample *s) { sample_points(s, -1.0, 1.0, -1.0, 1.0); }
static void sample_apart(mica_op_sample *s) { sample_points(s, -1.0, 0.0, 0.2, 0.8); }
static void sample_unit(mica_op_sample *s) { sample_points(s, 0.2, 0.8, 0.0, 1.0); }
static void sample_logits(mica_op_sample *s) { sample_points(s, -2.0, 2.0, 0.0, 1.0); }

/* Targets are classes of either width, or distributions. */
static void sample_classes(mica_op_sample *s, double low, double high)
{
    mica_weighted_loss_opts *opts = s->opts;
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 1, 3, dims);
    mica_index classes = dims[rank - 1];
    mica_op_sample_shape(s, 0, rank, dims);
    mica_sample_range(s, 0, low, high);
    int kind = (int)mica_op_sample_int(s, 0, 2);
    mica_op_sample_shape(s, 1, kind == 0 ? rank : rank - 1, dims);
    s->in[1].dtype = (mica_dtype[]){MICA_F32, MICA_I32, MICA_I64}[kind];
    mica_sample_range(s, 1, 0.0, kind == 0 ? 1.0 : (double)classes);
    sample_options(s);
    opts->loss.smoothing = mica_sample_chance(s) ? 0.1f : 0.0f;
    opts->loss.ignore = kind != 0 && mica_op_sample_int(s, 0, 3) == 0;
    opts->loss.ignore_index = classes - 1;
    if (opts->loss.ignore)
        opts->loss.reduction = MICA_LOSS_SUM; /* the mean of nothing would be NaN */
    if (mica_op_sample_int(s, 0, 2) > 0)
        return;
    s->ins = 3;
    mica_op_sample_shape(s, 2, 1, &classes);
    mica_sample_range(s, 2, 0.5, 2.0);
}

static void sample_class_logits(mica_op_sample *s) { sample_classes(s, -2.0, 2.0); }
static void sample_class_probs(mica_op_sample *s) { sample_classes(s, 0.2, 0.8); }

/* ---- Entries ---- */

static const char *const plain_names[] = {"pred", "target", "loss", "grad"};
static const char *const class_names[] = {"pred", "target", "class_weights", "loss", "grad"};

#define LOSS(op, optional, words, list, samples)                                       \
    static mica_status op##_infer(mica_infer *i) { return infer_with(i, mica_##op); }  \
    static mica_status op##_run(const mica_call *c) { return run_with(c, mica_##op); } \
    const mica_op mica_op_##op = {.name = #op,                                         \
                                  .family = "loss",                                    \
                                  .about = words,                                      \
                                  .flags = MICA_OP_LOSS,                               \
                                  .ins = 2,                                            \
                                  .optional_ins = optional,                            \
                                  .outs = 2,                                           \
                                  .optional_outs = 2,                                  \
                                  .fixed_ins = optional ? 6 : 2,                       \
                                  .fixed_outs = 2,                                     \
                                  .names = optional ? class_names : plain_names,       \
                                  .opts_bytes = sizeof(mica_weighted_loss_opts),       \
                                  MICA_FIELD_LIST(list),                               \
                                  .in_place = {0, 1},                                  \
                                  .infer = op##_infer,                                 \
                                  .run = op##_run,                                     \
                                  .gradient = MICA_GRADIENT(gradient),                 \
                                  .mixes = mixes,                                      \
                                  .sample = MICA_SAMPLE(samples)};

/* clang-format off */
LOSS(mse_loss, 0, "(pred - target)^2, mean or sum", plain_fields, sample_any)
LOSS(l1_loss, 0, "|pred - target|, mean or sum", plain_fields, sample_apart)
LOSS(huber_loss, 0, "quadratic near the target, linear beyond, mean or sum", huber_fields, sample_any)
LOSS(bce_loss, 0, "binary cross-entropy of probabilities, mean or sum", plain_fields, sample_unit)
LOSS(bce_logits_loss, 0, "binary cross-entropy of logits, mean or sum", plain_fields, sample_logits)
LOSS(cross_entropy, 1, "cross-entropy of logits over classes, mean or sum", class_fields, sample_class_logits)
LOSS(cross_entropy_probs, 1, "cross-entropy of probabilities over classes, mean or sum", class_fields,
     sample_class_probs)
/* clang-format on */
