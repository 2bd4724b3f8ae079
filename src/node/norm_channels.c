/* Group, instance and batch norm: x [N, C, ...], with a gamma and a beta for each channel. */
#include "node/norm.h"

static mica_status check_channels(mica_infer *i)
{
    const mica_tensor *x = i->in[X];
    if (x->dtype == MICA_F32 && x->rank >= 2)
        return MICA_OK;
    return mica_infer_fail(i, MICA_ERR_SHAPE, "expected f32 [N, C, ...] of rank 2 or more");
}

static mica_status infer_back(mica_infer *i) { return infer_norm_back(i, 1, &i->in[BACK_X]->dim[1]); }

/* Random x with more than one value in each channel of a sample, gamma and beta. */
static void sample_channels(mica_op_sample *s, mica_index channels)
{
    mica_index dims[] = {mica_op_sample_int(s, 2, 5), channels, mica_op_sample_int(s, 2, 4),
                         mica_op_sample_int(s, 1, 3)};
    mica_op_sample_shape(s, X, (int)mica_op_sample_int(s, 3, 4), dims);
    mica_op_sample_shape(s, GAMMA, 1, &channels);
    mica_op_sample_shape(s, BETA, 1, &channels);
    ((mica_norm_opts *)s->opts)->eps = 0.1f; /* else steep where all values happen to be close */
}

#define EPS_FIELD MICA_FIELD(mica_norm_opts, eps, FLOAT, "added to the variance; 0: 1e-5")

#define BACKWARD(op, options)                                                       \
    const mica_op mica_op_##op##_backward = {.name = #op "_backward",               \
                                             .family = "norm",                      \
                                             .about = "the gradients of " #op,      \
                                             .ins = 4,                              \
                                             .optional_ins = 1,                     \
                                             .outs = 3,                             \
                                             .optional_outs = 7,                    \
                                             .names = NORM_BACK_NAMES,              \
                                             .opts_bytes = options,                 \
                                             .in_place = {1u << DY | 1u << BACK_X}, \
                                             .infer = infer_back,                   \
                                             .run = op##_run_back};

/* ---- Group norm ---- */

static mica_status group_norm_infer(mica_infer *i)
{
    const mica_norm_opts *opts = i->opts;
    MICA_TRY(check_channels(i));
    const mica_tensor *x = i->in[X];
    mica_index groups = opts->groups != 0 ? opts->groups : 1;
    if (groups < 1 || x->dim[1] % groups != 0)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected a multiple of %td groups in dimension 1, got %td",
                               groups, x->dim[1]);
    return infer_norm(i, 1, &x->dim[1], 2, (mica_index[]){x->dim[0], groups});
}

static mica_status group_norm_run(const mica_call *c)
{
    mica_norm_opts opts = *(const mica_norm_opts *)c->opts;
    opts.mean = c->out[MEAN];
    opts.rstd = c->out[RSTD];
    return mica_group_norm(c->ctx, c->out[Y], c->in[X], c->in[GAMMA], c->in[BETA], &opts);
}

static mica_status group_norm_run_back(const mica_call *c)
{
    return run_norm_back(c, mica_group_norm_backward, false);
}

static void group_norm_gradient(mica_grad *g) { give_norm(g, &mica_op_group_norm_backward, NULL); }

static void group_norm_sample(mica_op_sample *s)
{
    mica_norm_opts *opts = s->opts;
    opts->groups = (int)mica_op_sample_int(s, 1, 3);
    sample_channels(s, opts->groups * mica_op_sample_int(s, 1, 3));
    s->ins = (int)mica_op_sample_int(s, 1, 3);
}

static const mica_field group_fields[] = {
    EPS_FIELD, MICA_FIELD(mica_norm_opts, groups, INT, "number of channel groups; 0: 1")};

const mica_op mica_op_group_norm = {.name = "group_norm",
                                    .family = "norm",
                                    .about = "normalizes each group of channels of each sample",
                                    .flags = MICA_OP_CHEAP,
                                    .ins = 1,
                                    .optional_ins = 2,
                                    .outs = 3,
                                    .optional_outs = 1u << MEAN | 1u << RSTD,
                                    .fixed_outs = 1u << MEAN | 1u << RSTD,
                                    .names = NORM_NAMES,
                                    .opts_bytes = sizeof(mica_norm_opts),
                                    MICA_FIELD_LIST(group_fields),
                                    .in_place = {1u << X},
                                    .infer = group_norm_infer,
                                    .run = group_norm_run,
                                    .gradient = MICA_GRADIENT(group_norm_gradient),
                                    .sample = MICA_SAMPLE(group_norm_sample)};
BACKWARD(group_norm, 0)

/* ---- Instance norm ---- */

static mica_status instance_norm_infer(mica_infer *i)
{
    MICA_TRY(check_channels(i));
    return infer_norm(i, 1, &i->in[X]->dim[1], 2, i->in[X]->dim);
}

static mica_status instance_norm_run(const mica_call *c)
{
    mica_norm_opts opts = *(const mica_norm_opts *)c->opts;
    opts.mean = c->out[MEAN];
    opts.rstd = c->out[RSTD];
    return mica_instance_norm(c->ctx, c->out[Y], c->in[X], c->in[GAMMA], c->in[BETA], &opts);
}

static mica_status instance_norm_run_back(const mica_call *c)
{
    return run_norm_back(c, mica_instance_norm_backward, false);
}

static void instance_norm_gradient(mica_grad *g) { give_norm(g, &mica_op_instance_norm_backward, NULL); }

static void instance_norm_sample(mica_op_sample *s)
{
    sample_channels(s, mica_op_sample_int(s, 1, 4));
    s->ins = (int)mica_op_sample_int(s, 1, 3);
}

static const mica_field instance_fields[] = {EPS_FIELD};

const mica_op mica_op_instance_norm = {.name = "instance_norm",
                                       .family = "norm",
                                       .about = "normalizes each channel of each sample",
                                       .flags = MICA_OP_CHEAP,
                                       .ins = 1,
                                       .optional_ins = 2,
                                       .outs = 3,
                                       .optional_outs = 1u << MEAN | 1u << RSTD,
                                       .fixed_outs = 1u << MEAN | 1u << RSTD,
                                       .names = NORM_NAMES,
                                       .opts_bytes = sizeof(mica_norm_opts),
                                       MICA_FIELD_LIST(instance_fields),
                                       .in_place = {1u << X},
                                       .infer = instance_norm_infer,
                                       .run = instance_norm_run,
                                       .gradient = MICA_GRADIENT(instance_norm_gradient),
                                       .sample = MICA_SAMPLE(instance_norm_sample)};
BACKWARD(instance_norm, 0)

/* ---- Batch norm ---- */

static mica_status batch_norm_infer(mica_infer *i)
{
    const mica_norm_opts *opts = i->opts;
    MICA_TRY(check_channels(i));
    const mica_index *channels = &i->in[X]->dim[1];
    if (!(opts->momentum >= 0.0f && opts->momentum <= 1.0f))
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "momentum is %g: expected 0 to 1",
                               (double)opts->momentum);
    if (opts->inference && (i->in[RUNNING_MEAN] == NULL || i->in[RUNNING_VAR] == NULL))
        return mica_infer_fail(i, MICA_ERR_ARGUMENT,
                               "expected running_mean and running_var, which inference uses to normalize");
    MICA_TRY(mica_infer_expect(i, RUNNING_MEAN, 1, channels));
    MICA_TRY(mica_infer_expect(i, RUNNING_VAR, 1, channels));
    return infer_norm(i, 1, channels, 1, channels);
}

/* Whether running statistics are normalised with, as constants. */
static bool by_constants(const mica_call *c)
{
    return ((const mica_norm_opts *)c->opts)->inference || !c->training;
}

static mica_status batch_norm_run(const mica_call *c)
{
    mica_norm_opts opts = *(const mica_norm_opts *)c->opts;
    opts.inference = by_constants(c);
    /* A call that only recomputes leaves the statistics as they are; with the batch's own it does not need them. */
    bool running = opts.inference || !c->again;
    opts.mean = c->out[MEAN];
    opts.rstd = c->out[RSTD];
    opts.running_mean = running ? c->in[RUNNING_MEAN] : NULL;
    opts.running_var = running ? c->in[RUNNING_VAR] : NULL;
    return mica_batch_norm(c->ctx, c->out[Y], c->in[X], c->in[GAMMA], c->in[BETA], &opts);
}

static mica_status batch_norm_run_back(const mica_call *c)
{
    return run_norm_back(c, mica_batch_norm_backward, by_constants(c));
}

static void batch_norm_gradient(mica_grad *g) { give_norm(g, &mica_op_batch_norm_backward, g->opts); }

static void batch_norm_sample(mica_op_sample *s)
{
    mica_index channels = mica_op_sample_int(s, 1, 4);
    sample_channels(s, channels);
    mica_op_sample_shape(s, RUNNING_MEAN, 1, &channels);
    mica_op_sample_shape(s, RUNNING_VAR, 1, &channels);
    s->low[RUNNING_VAR] = 0.5;
    s->high[RUNNING_VAR] = 2.0;
    s->ins = 5;
}

static const mica_field batch_fields[] = {
    EPS_FIELD, MICA_FIELD(mica_norm_opts, momentum, FLOAT, "momentum of the running statistics; 0: 0.1"),
    MICA_FIELD(mica_norm_opts, inference, BOOL, "use the running statistics in training too")};

/* It mixes the samples of a batch; yet a batch may be run in parts, each of which then has its own statistics. */
const mica_op mica_op_batch_norm = {
    .name = "batch_norm",
    .family = "norm",
    .about = "normalizes each channel over all samples; in inference by running statistics",
    .flags = MICA_OP_CHEAP,
    .ins = 1,
    .optional_ins = 4,
    .outs = 3,
    .optional_outs = 1u << MEAN | 1u << RSTD,
    .fixed_outs = 1u << MEAN | 1u << RSTD,
    .names = (const char *const[]){"x", "gamma", "beta", "running_mean", "running_var", "y", "mean", "rstd"},
    .opts_bytes = sizeof(mica_norm_opts),
    MICA_FIELD_LIST(batch_fields),
    .in_place = {1u << X},
    .writes = 1u << RUNNING_MEAN | 1u << RUNNING_VAR,
    .infer = batch_norm_infer,
    .run = batch_norm_run,
    .gradient = MICA_GRADIENT(batch_norm_gradient),
    .sample = MICA_SAMPLE(batch_norm_sample)};
BACKWARD(batch_norm, sizeof(mica_norm_opts))
