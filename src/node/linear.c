/* Linear: y = x WT + b over the last axis, of any number of leading axes. */
#include <string.h>

#include "net/net.h"
#include "node/entry.h"
#include "tensor/tensor.h"

/* [..., F] as rows [R, F]; false if they do not follow one another at equal distances. */
static bool find_rows(mica_tensor *rows, const mica_tensor *t)
{
    mica_index count = 1; /* of rows: there are some even if they have no elements */
    for (int k = 0; k + 1 < t->rank; k++)
        count *= t->dim[k];
    return mica_tensor_refit(rows, t, 2, (mica_index[]){count, t->dim[t->rank - 1]});
}

/* The same, of tensors that infer looked at, or of those that a net lays out. */
static mica_tensor as_rows(const mica_tensor *t)
{
    mica_tensor rows = *t;
    if (t->rank != 2)
        (void)find_rows(&rows, t);
    return rows;
}

static mica_status infer(mica_infer *i)
{
    const mica_tensor *x = i->in[0], *w = i->in[1];
    if (x->dtype != MICA_F32 || x->rank < 1)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected f32 of rank 1 or more");
    if (w->dtype != MICA_F32 || w->rank != 2 || w->dim[1] != x->dim[x->rank - 1])
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected f32 weights [units, %td]", x->dim[x->rank - 1]);
    mica_tensor rows;
    if (!find_rows(&rows, x))
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected rows at equal distances, got %s with strides %s",
                               MICA_SHAPE(x), mica_shape_text_of(x->rank, x->stride).text);
    mica_index dims[MICA_MAX_RANK];
    memcpy(dims, x->dim, sizeof dims);
    dims[x->rank - 1] = w->dim[0];
    return mica_infer_out(i, 0, MICA_F32, x->rank, dims);
}

static mica_status run(const mica_call *c)
{
    const mica_matmul_opts *opts = c->opts; /* activation and slope, if something was fused */
    mica_tensor x = as_rows(c->in[0]), y = as_rows(c->out[0]);
    return mica_matmul(
        c->ctx, &y, &x, c->in[1],
        &(mica_matmul_opts){
            .transpose_b = true, .bias = c->in[2], .activation = opts->activation, .slope = opts->slope});
}

/* dx = dy W */
static mica_status run_backward_input(const mica_call *c)
{
    mica_tensor dx = as_rows(c->out[0]), dy = as_rows(c->in[0]);
    return mica_matmul(c->ctx, &dx, &dy, c->in[1], &(mica_matmul_opts){.beta = (c->add & 1u) ? 1.0f : 0.0f});
}

/* dW = dyT x */
static mica_status run_backward_weight(const mica_call *c)
{
    mica_tensor dy = as_rows(c->in[0]), x = as_rows(c->in[1]);
    return mica_matmul(c->ctx, c->out[0], &dy, &x,
                       &(mica_matmul_opts){.transpose_a = true, .beta = (c->add & 1u) ? 1.0f : 0.0f});
}

/* db = the sum of dy's rows */
static mica_status run_backward_bias(const mica_call *c)
{
    mica_tensor dy = as_rows(c->in[0]);
    return mica_sum(c->ctx, c->out[0], &dy, &(mica_reduce_opts){.axes = {0}, .count = 1});
}

static const mica_op backward_input = {
    .name = "linear_backward_input", .ins = 2, .outs = 1, .adds = 1, .run = run_backward_input};
static const mica_op backward_weight = {
    .name = "linear_backward_weight", .ins = 2, .outs = 1, .adds = 1, .run = run_backward_weight};
static const mica_op backward_bias = {
    .name = "linear_backward_bias", .ins = 1, .outs = 1, .run = run_backward_bias};

static void gradient(mica_grad *g)
{
    mica_value dy = g->dout[0], x = g->in[0], w = g->in[1];
    mica_grad_give(g, 1, &backward_weight, (mica_value[]){dy, x}, 2, NULL);
    mica_grad_give(g, 2, &backward_bias, &dy, 1, NULL);
    mica_grad_give(g, 0, &backward_input, (mica_value[]){dy, w}, 2, NULL);
}

static const mica_field fields[] = {
    MICA_FIELD(mica_matmul_opts, activation, ACTIVATION, "fused activation"),
    MICA_FIELD(mica_matmul_opts, slope, FLOAT, "slope of leaky_relu, alpha of elu"),
};

static bool end_with_activation(mica_net *net, mica_node *node, const mica_node *then)
{
    (void)net;
    mica_matmul_opts *opts = node->opts;
    return mica_net_fuse_activation(then, &opts->activation, &opts->slope);
}

#if !defined(MICA_SMALL)
/* The channels of a batch norm are the second axis. */
static bool folds(const mica_net *net, const mica_node *node)
{
    return net->values[node->out[0]].tensor.rank == 2 &&
           ((const mica_matmul_opts *)node->opts)->activation == MICA_NO_ACTIVATION;
}
#endif

const mica_op mica_op_linear = {.name = "linear",
                                .family = "linalg",
                                .about = "x wT + bias over the last axis",
                                .ins = 2,
                                .optional_ins = 1,
                                .outs = 1,
                                .names = (const char *const[]){"x", "w", "bias", "y"},
                                .opts_bytes = sizeof(mica_matmul_opts),
                                MICA_FIELD_LIST(fields),
                                .infer = infer,
                                .run = run,
                                .gradient = MICA_GRADIENT(gradient),
#if defined(MICA_SMALL)
                                .passes = &(const mica_op_passes){.fuse = end_with_activation}};
#else
                                .passes = &(const mica_op_passes){.fuse = end_with_activation,
                                                                  .folds = folds,
                                                                  .prepare = mica_linear_prepare}};
#endif
