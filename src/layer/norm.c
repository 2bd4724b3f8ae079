/* Batch, layer, RMS, group and instance norm. Backward reads x and the mean and rstd that forward saved. */
#include <mica/layer.h>
#include <mica/layers.h>

#include "base/context.h"

enum {
    NORM = MICA_LAYER_READS_INPUTS | MICA_LAYER_IN_PLACE | MICA_LAYER_BACKWARD_IN_PLACE |
           MICA_LAYER_BACKWARD_SAVED,
    MEAN = 0, /* of what is saved; where there is no mean, it is unused */
    RSTD = 1,
};

static mica_status ask_affine(mica_infer *infer, int rank, const mica_index *dims, bool bias)
{
    MICA_TRY(mica_infer_parameter(infer, "weight", rank, dims, (mica_init){MICA_INIT_CONSTANT, 1.0f}));
    return bias ? mica_infer_parameter(infer, "bias", rank, dims, (mica_init){MICA_INIT_CONSTANT, 0.0f})
                : MICA_OK;
}

static mica_status ask_saved(mica_infer *infer, int rank, const mica_index *dims)
{
    MICA_TRY(mica_infer_saved(infer, MICA_F32, rank, dims));
    return mica_infer_saved(infer, MICA_F32, rank, dims);
}

/* x is [N, C, ...] of f32. */
static mica_status check_channels(mica_infer *infer)
{
    const mica_tensor *x = infer->in[0];
    if (x->dtype != MICA_F32 || x->rank < 2)
        return mica_infer_fail(infer, MICA_ERR_SHAPE, "expected f32 [N, C, ...] of rank 2 or more");
    return MICA_OK;
}

typedef mica_status norm_backward_fn(mica_context *ctx, const mica_norm_grads *grads, const mica_tensor *dy,
                                     const mica_tensor *x, const mica_tensor *gamma,
                                     const mica_norm_saved *saved);

static mica_status backward_with(const mica_step *s, norm_backward_fn *op)
{
    return op(s->ctx, &(mica_norm_grads){s->din[0], s->dparam[0], s->dparam[1]}, s->dout, s->in[0],
              s->param[0], &(mica_norm_saved){.mean = s->saved[MEAN], .rstd = s->saved[RSTD]});
}

/* ---- Batch norm ---- */

static mica_status batch_infer(mica_infer *infer)
{
    const mica_net_batch_norm_opts *opts = infer->opts;
    MICA_TRY(check_channels(infer));
    const mica_tensor *x = infer->in[0];
    const mica_index *channels = &x->dim[1];
    if (opts->momentum < 0.0f || opts->momentum > 1.0f)
        return mica_infer_fail(infer, MICA_ERR_ARGUMENT, "momentum is %g: expected 0 to 1",
                               (double)opts->momentum);
    if (!opts->no_affine)
        MICA_TRY(ask_affine(infer, 1, channels, true));
    MICA_TRY(mica_infer_state(infer, "running_mean", MICA_F32, 1, channels, 0.0f));
    MICA_TRY(mica_infer_state(infer, "running_var", MICA_F32, 1, channels, 1.0f));
    MICA_TRY(ask_saved(infer, 1, channels));
    return mica_infer_output(infer, MICA_F32, x->rank, x->dim);
}

static mica_status batch_forward(const mica_step *s)
{
    const mica_net_batch_norm_opts *opts = s->opts;
    /* A forward that only recomputes leaves the statistics as they are; with training's batch it does not
     * need them. */
    bool running = !s->training || !s->again;
    mica_norm_opts op = {.eps = opts->eps,
                         .mean = s->saved[MEAN],
                         .rstd = s->saved[RSTD],
                         .running_mean = running ? s->state[0] : NULL,
                         .running_var = running ? s->state[1] : NULL,
                         .momentum = opts->momentum,
                         .inference = !s->training};
    return mica_batch_norm(s->ctx, s->out, s->in[0], s->param[0], s->param[1], &op);
}

static mica_status batch_backward(const mica_step *s) { return backward_with(s, mica_batch_norm_backward); }

static const mica_layer batch_norm = {"batch_norm",
                                      NORM | MICA_LAYER_STATES_LEARNED,
                                      sizeof(mica_net_batch_norm_opts),
                                      batch_infer,
                                      batch_forward,
                                      batch_backward};

mica_value mica_net_batch_norm(mica_net *net, mica_value x, const mica_net_batch_norm_opts *opts)
{
    return mica_net_add(net, &batch_norm, opts, &x, 1);
}

/* ---- Layer and RMS norm ---- */

static mica_status rows_infer(mica_infer *infer, bool centred)
{
    const mica_net_layer_norm_opts *opts = infer->opts;
    const mica_tensor *x = infer->in[0];
    int axes = opts->axes != 0 ? opts->axes : 1;
    if (x->dtype != MICA_F32 || axes < 1 || axes > x->rank)
        return mica_infer_fail(infer, MICA_ERR_SHAPE, "expected f32 with %d axes to normalise over, or more",
                               axes);
    int leading = x->rank - axes;
    if (!opts->no_affine)
        MICA_TRY(ask_affine(infer, axes, x->dim + leading, centred && !opts->no_bias));
    if (centred)
        MICA_TRY(ask_saved(infer, leading, x->dim));
    else
        MICA_TRY(mica_infer_saved(infer, MICA_F32, leading, x->dim));
    return mica_infer_output(infer, MICA_F32, x->rank, x->dim);
}

static mica_status layer_infer(mica_infer *infer) { return rows_infer(infer, true); }
static mica_status rms_infer(mica_infer *infer) { return rows_infer(infer, false); }

static mica_status layer_forward(const mica_step *s)
{
    const mica_net_layer_norm_opts *opts = s->opts;
    mica_norm_opts op = {
        .eps = opts->eps, .axes = opts->axes, .mean = s->saved[MEAN], .rstd = s->saved[RSTD]};
    return mica_layer_norm(s->ctx, s->out, s->in[0], s->param[0], s->param[1], &op);
}

static mica_status layer_backward(const mica_step *s) { return backward_with(s, mica_layer_norm_backward); }

static mica_status rms_forward(const mica_step *s)
{
    const mica_net_layer_norm_opts *opts = s->opts;
    float eps = opts->eps != 0.0f ? opts->eps : 1.1920929e-7f;
    return mica_rms_norm(s->ctx, s->out, s->in[0], s->param[0],
                         &(mica_norm_opts){.eps = eps, .axes = opts->axes, .rstd = s->saved[0]});
}

static mica_status rms_backward(const mica_step *s)
{
    return mica_rms_norm_backward(s->ctx, &(mica_norm_grads){.x = s->din[0], .gamma = s->dparam[0]}, s->dout,
                                  s->in[0], s->param[0], &(mica_norm_saved){.rstd = s->saved[0]});
}

static const mica_layer layer_norm = {"layer_norm", NORM,          sizeof(mica_net_layer_norm_opts),
                                      layer_infer,  layer_forward, layer_backward};
static const mica_layer rms_norm = {"rms_norm", NORM,        sizeof(mica_net_layer_norm_opts),
                                    rms_infer,  rms_forward, rms_backward};

mica_value mica_net_layer_norm(mica_net *net, mica_value x, const mica_net_layer_norm_opts *opts)
{
    return mica_net_add(net, &layer_norm, opts, &x, 1);
}

mica_value mica_net_rms_norm(mica_net *net, mica_value x, const mica_net_layer_norm_opts *opts)
{
    return mica_net_add(net, &rms_norm, opts, &x, 1);
}

/* ---- Group and instance norm ---- */

static mica_status group_infer(mica_infer *infer)
{
    const mica_net_group_norm_opts *opts = infer->opts;
    MICA_TRY(check_channels(infer));
    const mica_tensor *x = infer->in[0];
    mica_index groups = opts->groups != 0 ? opts->groups : 1;
    if (groups < 1 || x->dim[1] % groups != 0)
        return mica_infer_fail(infer, MICA_ERR_SHAPE,
                               "expected channels for %td groups in dimension 1, got %td", groups, x->dim[1]);
    if (!opts->no_affine)
        MICA_TRY(ask_affine(infer, 1, &x->dim[1], true));
    MICA_TRY(ask_saved(infer, 2, (mica_index[]){x->dim[0], groups}));
    return mica_infer_output(infer, MICA_F32, x->rank, x->dim);
}

static mica_status group_forward(const mica_step *s)
{
    const mica_net_group_norm_opts *opts = s->opts;
    mica_norm_opts op = {
        .eps = opts->eps, .groups = opts->groups, .mean = s->saved[MEAN], .rstd = s->saved[RSTD]};
    return mica_group_norm(s->ctx, s->out, s->in[0], s->param[0], s->param[1], &op);
}

static mica_status group_backward(const mica_step *s) { return backward_with(s, mica_group_norm_backward); }

static mica_status instance_infer(mica_infer *infer)
{
    const mica_net_group_norm_opts *opts = infer->opts;
    MICA_TRY(check_channels(infer));
    const mica_tensor *x = infer->in[0];
    if (opts->affine)
        MICA_TRY(ask_affine(infer, 1, &x->dim[1], true));
    MICA_TRY(ask_saved(infer, 2, x->dim));
    return mica_infer_output(infer, MICA_F32, x->rank, x->dim);
}

static mica_status instance_forward(const mica_step *s)
{
    const mica_net_group_norm_opts *opts = s->opts;
    mica_norm_opts op = {.eps = opts->eps, .mean = s->saved[MEAN], .rstd = s->saved[RSTD]};
    return mica_instance_norm(s->ctx, s->out, s->in[0], s->param[0], s->param[1], &op);
}

static mica_status instance_backward(const mica_step *s)
{
    return backward_with(s, mica_instance_norm_backward);
}

static const mica_layer group_norm = {"group_norm", NORM,          sizeof(mica_net_group_norm_opts),
                                      group_infer,  group_forward, group_backward};
static const mica_layer instance_norm = {
    "instance_norm",  NORM, sizeof(mica_net_group_norm_opts), instance_infer, instance_forward,
    instance_backward};

mica_value mica_net_group_norm(mica_net *net, mica_value x, const mica_net_group_norm_opts *opts)
{
    return mica_net_add(net, &group_norm, opts, &x, 1);
}

mica_value mica_net_instance_norm(mica_net *net, mica_value x, const mica_net_group_norm_opts *opts)
{
    return mica_net_add(net, &instance_norm, opts, &x, 1);
}
