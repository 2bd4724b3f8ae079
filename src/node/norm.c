/* Layer and RMS norm: over the last axes. */
#include "node/norm.h"

/* RMS norm has no mean and no beta. */
enum { RMS_RSTD = 1, RMS_SAVED_RSTD, RMS_BACK_GAMMA };

/* ---- Layer norm ---- */

static mica_status check_rows(mica_infer *i, int *leading)
{
    const mica_norm_opts *opts = i->opts;
    const mica_tensor *x = i->in[X];
    int axes = opts->axes != 0 ? opts->axes : 1;
    if (x->dtype != MICA_F32 || axes < 1 || axes > x->rank)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected f32 with at least %d axes to normalize over",
                               axes);
    *leading = x->rank - axes;
    return MICA_OK;
}

static mica_status layer_infer(mica_infer *i)
{
    int leading = 0;
    MICA_TRY(check_rows(i, &leading));
    const mica_tensor *x = i->in[X];
    return infer_norm(i, x->rank - leading, x->dim + leading, leading, x->dim);
}

static mica_status layer_infer_back(mica_infer *i)
{
    const mica_tensor *x = i->in[BACK_X];
    int leading = i->in[SAVED_RSTD]->rank;
    return infer_norm_back(i, x->rank - leading, x->dim + leading);
}

static mica_status layer_run(const mica_call *c)
{
    mica_norm_opts opts = *(const mica_norm_opts *)c->opts;
    opts.mean = c->out[MEAN];
    opts.rstd = c->out[RSTD];
    return mica_layer_norm(c->ctx, c->out[Y], c->in[X], c->in[GAMMA], c->in[BETA], &opts);
}

static mica_status layer_run_back(const mica_call *c)
{
    return run_norm_back(c, mica_layer_norm_backward, false);
}

static void layer_gradient(mica_grad *g) { give_norm(g, &mica_op_layer_norm_backward, NULL); }

static bool rows_mix(const mica_infer *i)
{
    const mica_norm_opts *opts = i->opts;
    return (opts->axes != 0 ? opts->axes : 1) >= i->in[X]->rank;
}

static void rows_sample(mica_op_sample *s)
{
    mica_norm_opts *opts = s->opts;
    mica_index dims[] = {mica_op_sample_int(s, 1, 5), mica_op_sample_int(s, 1, 4),
                         mica_op_sample_int(s, 2, 6)};
    opts->axes = (int)mica_op_sample_int(s, 1, 2);
    opts->eps = 0.1f;
    mica_op_sample_shape(s, X, 3, dims);
    mica_op_sample_shape(s, GAMMA, opts->axes, dims + 3 - opts->axes);
}

static void layer_sample(mica_op_sample *s)
{
    rows_sample(s);
    s->in[BETA] = s->in[GAMMA];
    s->ins = (int)mica_op_sample_int(s, 1, 3);
}

static const mica_field row_fields[] = {
    MICA_FIELD(mica_norm_opts, eps, FLOAT, "added to the variance; 0: 1e-5"),
    MICA_FIELD(mica_norm_opts, axes, INT, "number of trailing axes to normalize over; 0: 1")};

const mica_op mica_op_layer_norm = {.name = "layer_norm",
                                    .family = "norm",
                                    .about = "(x - mean) rstd gamma + beta over the last axes",
                                    .flags = MICA_OP_CHEAP,
                                    .ins = 1,
                                    .optional_ins = 2,
                                    .outs = 3,
                                    .optional_outs = 1u << MEAN | 1u << RSTD,
                                    .fixed_outs = 1u << MEAN | 1u << RSTD,
                                    .names = NORM_NAMES,
                                    .opts_bytes = sizeof(mica_norm_opts),
                                    MICA_FIELD_LIST(row_fields),
                                    .in_place = {1u << X},
                                    .infer = layer_infer,
                                    .run = layer_run,
                                    .gradient = MICA_GRADIENT(layer_gradient),
                                    .mixes = rows_mix,
                                    .sample = MICA_SAMPLE(layer_sample)};
const mica_op mica_op_layer_norm_backward = {.name = "layer_norm_backward",
                                             .family = "norm",
                                             .about = "the gradients of layer_norm",
                                             .ins = 4,
                                             .optional_ins = 1,
                                             .outs = 3,
                                             .optional_outs = 7,
                                             .names = NORM_BACK_NAMES,
                                             .in_place = {1u << DY | 1u << BACK_X},
                                             .infer = layer_infer_back,
                                             .run = layer_run_back};

/* ---- RMS norm ---- */

static mica_status rms_infer(mica_infer *i)
{
    int leading = 0;
    MICA_TRY(check_rows(i, &leading));
    const mica_tensor *x = i->in[X];
    MICA_TRY(mica_infer_expect(i, GAMMA, x->rank - leading, x->dim + leading));
    MICA_TRY(mica_infer_like(i, Y, X));
    return mica_infer_out(i, RMS_RSTD, MICA_F32, leading, x->dim);
}

static mica_status rms_infer_back(mica_infer *i)
{
    const mica_tensor *x = i->in[BACK_X];
    int leading = i->in[RMS_SAVED_RSTD]->rank;
    MICA_TRY(mica_infer_like(i, DX, BACK_X));
    return mica_infer_out(i, DGAMMA, MICA_F32, x->rank - leading, x->dim + leading);
}

static mica_status rms_run(const mica_call *c)
{
    mica_norm_opts opts = *(const mica_norm_opts *)c->opts;
    opts.rstd = c->out[RMS_RSTD];
    return mica_rms_norm(c->ctx, c->out[Y], c->in[X], c->in[GAMMA], &opts);
}

static mica_status rms_run_back(const mica_call *c)
{
    return mica_rms_norm_backward(c->ctx, &(mica_norm_grads){.x = c->out[DX], .gamma = c->out[DGAMMA]},
                                  c->in[DY], c->in[BACK_X], c->in[RMS_BACK_GAMMA],
                                  &(mica_norm_saved){.rstd = c->in[RMS_SAVED_RSTD]});
}

static void rms_gradient(mica_grad *g)
{
    mica_value in[] = {g->dout[Y], g->in[X], g->out[RMS_RSTD], g->in[GAMMA]};
    if (g->dout[Y] != 0)
        mica_grad_give_all(g, (int[]){X, GAMMA}, 2, &mica_op_rms_norm_backward, in, 4, NULL);
}

static void rms_sample(mica_op_sample *s)
{
    rows_sample(s);
    s->ins = (int)mica_op_sample_int(s, 1, 2);
}

const mica_op mica_op_rms_norm = {
    .name = "rms_norm",
    .family = "norm",
    .about = "x rstd gamma over the last axes; rstd is 1 / sqrt(mean of x^2 + eps)",
    .flags = MICA_OP_CHEAP,
    .ins = 1,
    .optional_ins = 1,
    .outs = 2,
    .optional_outs = 1u << RMS_RSTD,
    .fixed_outs = 1u << RMS_RSTD,
    .names = (const char *const[]){"x", "gamma", "y", "rstd"},
    .opts_bytes = sizeof(mica_norm_opts),
    MICA_FIELD_LIST(row_fields),
    .in_place = {1u << X},
    .infer = rms_infer,
    .run = rms_run,
    .gradient = MICA_GRADIENT(rms_gradient),
    .mixes = rows_mix,
    .sample = MICA_SAMPLE(rms_sample)};
const mica_op mica_op_rms_norm_backward = {
    .name = "rms_norm_backward",
    .family = "norm",
    .about = "the gradients of rms_norm",
    .ins = 3,
    .optional_ins = 1,
    .outs = 2,
    .optional_outs = 3,
    .names = (const char *const[]){"dy", "x", "rstd", "gamma", "dx", "dgamma"},
    .in_place = {1u << DY | 1u << BACK_X},
    .infer = rms_infer_back,
    .run = rms_run_back};
