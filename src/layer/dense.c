/* Dense: y = x WT + b over the last axis. */
#include <math.h>
#include <string.h>

#include <mica/layer.h>
#include <mica/layers.h>

#include "base/context.h"

/* x and y as matrices: all leading axes are rows. */
static mica_tensor as_rows(const mica_tensor *t)
{
    mica_index columns = t->dim[t->rank - 1];
    mica_index rows = columns > 0 ? (mica_index)mica_tensor_count(t) / columns : 0;
    return mica_2d(t->data, rows, columns);
}

static mica_status infer(mica_infer *infer)
{
    const mica_net_dense_opts *opts = infer->opts;
    const mica_tensor *x = infer->in[0];
    if (x->rank < 1 || x->dtype != MICA_F32)
        return mica_infer_fail(infer, MICA_ERR_SHAPE, "expected f32 of rank 1 or more");
    if (opts->units < 1)
        return mica_infer_fail(infer, MICA_ERR_ARGUMENT, "units is %td: expected 1 or more", opts->units);
    mica_index features = x->dim[x->rank - 1], weight[] = {opts->units, features};
    mica_init init = opts->weight_init;
    mica_init uniform = {MICA_INIT_UNIFORM, features > 0 ? 1.0f / sqrtf((float)features) : 0.0f};
    if (opts->share_weight != NULL)
        MICA_TRY(mica_infer_shared(infer, opts->share_weight, 2, weight));
    else
        MICA_TRY(mica_infer_parameter(infer, "weight", 2, weight,
                                      init.kind != MICA_INIT_DEFAULT ? init : uniform));
    if (!opts->no_bias) {
        MICA_TRY(mica_infer_parameter(infer, "bias", 1, &opts->units,
                                      opts->bias_init.kind != MICA_INIT_DEFAULT ? opts->bias_init : uniform));
        MICA_TRY(mica_infer_temporary(infer, MICA_F32, 1, &opts->units));
    }
    mica_index dims[MICA_MAX_RANK];
    memcpy(dims, x->dim, sizeof dims);
    dims[x->rank - 1] = opts->units;
    return mica_infer_output(infer, MICA_F32, x->rank, dims);
}

static mica_status forward(const mica_step *s)
{
    mica_tensor x = as_rows(s->in[0]), y = as_rows(s->out);
    return mica_matmul(
        s->ctx, &y, &x, s->param[0],
        &(mica_matmul_opts){
            .transpose_b = true, .bias = s->param[1], .activation = s->activation, .slope = s->slope});
}

/* dx = dy W, dW = dyT x, db = sum of dy's rows */
static mica_status backward(const mica_step *s)
{
    mica_tensor x = as_rows(s->in[0]), dy = as_rows(s->dout);
    if (s->dparam[0] != NULL)
        MICA_TRY(
            mica_matmul(s->ctx, s->dparam[0], &dy, &x,
                        &(mica_matmul_opts){.transpose_a = true, .beta = s->add_dparam[0] ? 1.0f : 0.0f}));
    if (s->dparam[1] != NULL) {
        const mica_tensor *sum = s->add_dparam[1] ? s->temp[0] : s->dparam[1];
        MICA_TRY(mica_sum(s->ctx, sum, &dy, &(mica_reduce_opts){.axes = {0}, .count = 1}));
        if (s->add_dparam[1])
            MICA_TRY(mica_add(s->ctx, s->dparam[1], s->dparam[1], sum));
    }
    if (s->din[0] == NULL)
        return MICA_OK;
    mica_tensor dx = as_rows(s->din[0]);
    return mica_matmul(s->ctx, &dx, &dy, s->param[0],
                       &(mica_matmul_opts){.beta = s->add_din[0] ? 1.0f : 0.0f});
}

static const mica_layer dense = {.name = "dense",
                                 .flags = MICA_LAYER_READS_INPUTS | MICA_LAYER_ADDS_INPUTS |
                                          MICA_LAYER_ENDS_WITH_ACTIVATION | MICA_LAYER_ADDS_PARAMETERS |
                                          MICA_LAYER_BACKWARD_TEMPORARIES,
                                 .opts_bytes = sizeof(mica_net_dense_opts),
                                 .infer = infer,
                                 .forward = forward,
                                 .backward = backward};

mica_value mica_net_dense(mica_net *net, mica_value x, const mica_net_dense_opts *opts)
{
    static const mica_net_dense_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    mica_value y = mica_net_add(net, &dense, opts, &x, 1);
    if (opts->activation == MICA_NO_ACTIVATION)
        return y;
    return mica_net_activation(net, y, &(mica_net_activation_opts){.kind = opts->activation});
}
