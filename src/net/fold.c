/* Folding, with prepared weights: a batch norm that normalizes by constants, behind a call that is linear in its
 * weights, goes into these. y = scale (w x + bias - mean) + beta, with scale = gamma / sqrt(var + eps), is a call with
 * the weights scale w and the bias beta + scale (bias - mean), which are derived when the net is bound.
 *
 * A convolution's weights, and linear's, have their output channels along the first axis, and so has a bias. */
#include <math.h>
#include <string.h>

#include <mica/ops/elementwise.h>

#include "net/net.h"
#include "node/entry.h"

#if !defined(MICA_SMALL)

/* Inputs of a batch norm, of a call that it is folded into, and of the derivations. */
enum { X, GAMMA, BETA, MEAN, VAR };
enum { W = 1, BIAS = 2 };
enum { OF_GAMMA = 1, OF_VAR = 2, OF_BETA = 3, OF_MEAN = 4 };

typedef struct fold_opts {
    float eps;
} fold_opts;

/* ---- What is derived ---- */

static float element(const mica_tensor *t, mica_index i, float otherwise)
{
    return t != NULL ? ((const float *)t->data)[i * t->stride[0]] : otherwise;
}

/* Of an output channel, as mica_batch_norm has it. */
static float scale_of(const mica_call *c, mica_index channel)
{
    double variance = (double)element(c->in[OF_VAR], channel, 1.0f);
    double eps = (double)((const fold_opts *)c->opts)->eps;
    return (float)((double)element(c->in[OF_GAMMA], channel, 1.0f) / sqrt(variance + eps));
}

/* In: the weights, gamma, var. */
static mica_status run_weights(const mica_call *c)
{
    mica_tensor to, from;
    if (mica_call_measuring(c))
        return mica_scale(c->ctx, c->out[0], c->in[0], 1.0f);
    for (mica_index o = 0; o < c->out[0]->dim[0]; o++) {
        MICA_TRY(mica_view_select(c->ctx, &to, c->out[0], 0, o));
        MICA_TRY(mica_view_select(c->ctx, &from, c->in[0], 0, o));
        MICA_TRY(mica_scale(c->ctx, &to, &from, scale_of(c, o)));
    }
    return MICA_OK;
}

/* In: the bias, gamma, var, beta, mean. */
static mica_status run_bias(const mica_call *c)
{
    if (mica_call_measuring(c))
        return MICA_OK;
    for (mica_index o = 0; o < c->out[0]->dim[0]; o++)
        ((float *)c->out[0]->data)[o] = element(c->in[OF_BETA], o, 0.0f) +
                                        scale_of(c, o) *
                                            (element(c->in[0], o, 0.0f) - element(c->in[OF_MEAN], o, 0.0f));
    return MICA_OK;
}

static const mica_op fold_weights = {.name = "fold_weights",
                                     .about = "weights by the scale of a batch norm behind them",
                                     .ins = 3,
                                     .outs = 1,
                                     .opts_bytes = sizeof(fold_opts),
                                     .run = run_weights};
static const mica_op fold_bias = {.name = "fold_bias",
                                  .about = "a bias by the scale of a batch norm behind it, and its shift",
                                  .ins = 5,
                                  .outs = 1,
                                  .opts_bytes = sizeof(fold_opts),
                                  .run = run_bias};

/* ---- The pass ---- */

/* By value: how often it is read, or seen from outside. */
static void count_readers(const mica_net *net, int *readers)
{
    for (int i = 0; i < net->value_count; i++)
        readers[i] = 0;
    for (int e = 0; e < net->entry_count; e++)
        for (int i = 0; i < net->entries[e].node.ins; i++)
            if (net->entries[e].node.in[i] != NONE)
                readers[net->values[net->entries[e].node.in[i]].root]++;
    for (int i = 0; i < net->built_values; i++)
        readers[net->values[i].root] += net->values[i].output ? 2 : 0;
}

static bool is_constant(const mica_net *net, int value)
{
    return value == NONE || mica_net_is_constant(net, value);
}

/* A batch norm writes to its statistics, but not where nothing is trained. */
static bool is_statistic(const mica_net *net, int value)
{
    const mica_value_info *root = &net->values[net->values[value].root];
    return mica_net_is_constant(net, value) ||
           (root->home == MICA_HOME_KEPT && root->kept == MICA_KEPT_STATISTICS);
}

/* Whether a batch norm's call can go into that of its maker. */
static bool folds(const mica_net *net, const int *readers, const mica_node *maker, const mica_node *norm)
{
    if (maker->op == NULL || maker->op->passes == NULL || maker->op->passes->folds == NULL ||
        !maker->op->passes->folds(net, maker) || maker->out[0] != norm->in[X] || readers[norm->in[X]] != 1 ||
        net->values[norm->in[X]].root != norm->in[X] || norm->ins <= VAR || norm->in[MEAN] == NONE ||
        norm->in[VAR] == NONE || !is_constant(net, maker->in[W]) ||
        (maker->ins > BIAS && !is_constant(net, maker->in[BIAS])) || !is_constant(net, norm->in[GAMMA]) ||
        !is_constant(net, norm->in[BETA]) || !is_statistic(net, norm->in[MEAN]) ||
        !is_statistic(net, norm->in[VAR]))
        return false;
    for (int k = 1; k < norm->outs; k++)
        if (norm->out[k] != NONE && readers[norm->out[k]] != 0)
            return false;
    return true;
}

static mica_status fold(mica_net *net, mica_entry *entry, mica_entry *norm)
{
    mica_node *node = &entry->node;
    const mica_norm_opts *how = norm->node.opts;
    fold_opts *opts = mica_net_memory(net, sizeof *opts);
    if (opts == NULL)
        return net->ctx->status;
    opts->eps = how->eps != 0.0f ? how->eps : 1e-5f;
    const int *in = norm->node.in;
    int bias = node->ins > BIAS ? node->in[BIAS] : NONE;
    mica_tensor weights = net->values[node->in[W]].tensor, shift = mica_1d(NULL, weights.dim[0]);
    mica_node by = {.op = &fold_weights, .opts = opts, .layer = node->layer, .ins = 3, .outs = 1};
    by.in[0] = node->in[W];
    by.in[OF_GAMMA] = in[GAMMA];
    by.in[OF_VAR] = in[VAR];
    weights = mica_tensor_like(&weights, NULL);
    int folded = mica_net_prepared_value(net, &by, &weights, node->in[W], "folded");
    by.op = &fold_bias;
    by.ins = 5;
    by.in[0] = bias;
    by.in[OF_BETA] = in[BETA];
    by.in[OF_MEAN] = in[MEAN];
    int shifted = folded != NONE ? mica_net_prepared_value(net, &by, &shift, in[MEAN], "folded") : NONE;
    if (shifted == NONE)
        return net->ctx->status;
    for (; node->ins <= BIAS; node->ins++)
        node->in[node->ins] = NONE;
    node->in[W] = folded;
    node->in[BIAS] = shifted;
    node->out[0] = norm->node.out[0];
    void *own = mica_net_memory(net, node->op->opts_bytes + 1); /* which fusion may then change */
    if (own == NULL)
        return net->ctx->status;
    memcpy(own, node->opts, node->op->opts_bytes);
    node->opts = own;
    entry->fused = norm->node.op->name;
    norm->node = (mica_node){.op = NULL}; /* done here now */
    return net->status;
}

mica_status mica_net_fold(mica_net *net)
{
    int values = net->value_count;
    size_t bytes = (size_t)values * 2 * sizeof(int);
    int *readers = mica_allocate(net->ctx, bytes + 1);
    if (readers == NULL)
        return net->ctx->status;
    int *maker = readers + values;
    count_readers(net, readers);
    for (int i = 0; i < values; i++)
        maker[i] = NONE;
    mica_status status = MICA_OK;
    for (int e = 0; e < net->forward_count && status == MICA_OK; e++) {
        const mica_node *node = &net->entries[e].node;
        if (node->outs > 0 && node->out[0] != NONE)
            maker[node->out[0]] = e;
        if (node->op == &mica_op_batch_norm && maker[node->in[X]] != NONE &&
            folds(net, readers, &net->entries[maker[node->in[X]]].node, node))
            status = fold(net, &net->entries[maker[node->in[X]]], &net->entries[e]);
    }
    mica_release(net->ctx, readers, bytes + 1);
    return status;
}

#endif
