/* Which calls become which int8 operation, and which go into another: in the order of the calls, as what a call can be
 * depends on what its inputs are. */
#include <math.h>
#include <string.h>

#include "int8/convert.h"
#include "node/entry.h"

/* ---- Who reads what ---- */

bool mica_int8_is_output(const mica_int8 *q, int value)
{
    return q->net->values[value].output && !q->net->values[value].observed;
}

static void find_readers(mica_int8 *q)
{
    for (int i = 0; i < q->values; i++) {
        q->readers[i] = mica_int8_is_output(q, i) ? 2 : 0;
        q->last_reader[i] = NONE;
    }
    for (int n = 0; n < q->nodes; n++)
        for (int i = 0; i < q->net->nodes[n].ins; i++) {
            int value = q->net->nodes[n].in[i];
            if (value == NONE)
                continue;
            q->readers[value]++;
            q->last_reader[value] = n;
        }
}

/* The only call that reads a value, as its first input; NONE: there is none. */
static int follower(const mica_int8 *q, int value)
{
    int n = q->readers[value] == 1 ? q->last_reader[value] : NONE;
    return n != NONE && q->net->nodes[n].in[0] == value ? n : NONE;
}

static const mica_tensor *shape_of(const mica_int8 *q, int value) { return &q->net->values[value].tensor; }

/* Floats of this step, whose range is known. */
static bool can_be_bytes(const mica_int8 *q, int value)
{
    const mica_value_info *v = &q->net->values[value];
    return v->home == MICA_HOME_PLANNED && v->tensor.dtype == MICA_F32 && q->scale[v->root] > 0.0f;
}

static bool lasts(const mica_int8 *q, int value)
{
    return value != NONE && q->net->values[value].home != MICA_HOME_PLANNED &&
           q->net->values[value].tensor.dtype == MICA_F32;
}

static bool unread(const mica_int8 *q, const mica_node *node, int out)
{
    return out >= node->outs || node->out[out] == NONE || q->readers[node->out[out]] == 0;
}

/* ---- Activations ---- */

static bool limits(mica_activation a) { return a == MICA_NO_ACTIVATION || a == MICA_RELU || a == MICA_RELU6; }

static mica_activation limit_of(const mica_op *op)
{
    return op == &mica_op_relu ? MICA_RELU : op == &mica_op_relu6 ? MICA_RELU6 : MICA_NO_ACTIVATION;
}

void mica_int8_limits_of(mica_activation activation, float scale, int *low, int *high)
{
    *low = activation == MICA_NO_ACTIVATION ? -127 : 0;
    *high = 127;
    if (activation == MICA_RELU6)
        *high = (int)fmax(1.0, fmin(127.0, floor(6.0 / (double)scale + 0.5)));
}

/* Takes in relu or relu6 behind what a step makes, if nothing else reads that. */
static void take_activation(mica_int8 *q, mica_int8_step *s)
{
    int n = follower(q, s->end);
    mica_activation a = n != NONE ? limit_of(q->net->nodes[n].op) : MICA_NO_ACTIVATION;
    if (s->activation != MICA_NO_ACTIVATION || a == MICA_NO_ACTIVATION ||
        !can_be_bytes(q, q->net->nodes[n].out[0]))
        return;
    s->activation = a;
    s->end = q->net->nodes[n].out[0];
    q->step[n].kind = MICA_INT8_TAKEN;
}

/* ---- Products ---- */

static bool is_dense(const mica_node *node)
{
    return node->op == &mica_op_linear || node->op == &mica_op_matmul;
}

bool mica_int8_turned(const mica_node *node)
{
    return node->op == &mica_op_matmul && !((const mica_matmul_opts *)node->opts)->transpose_b;
}

mica_tensor mica_int8_weights_of(const mica_int8 *q, const mica_node *node)
{
    mica_tensor w = *shape_of(q, node->in[1]);
    w.data = NULL;
    if (mica_int8_turned(node)) {
        const mica_tensor from = w;
        w.dim[0] = from.dim[1], w.dim[1] = from.dim[0];
        w.stride[0] = from.stride[1], w.stride[1] = from.stride[0];
    }
    return w;
}

/* A product of rows with one matrix of weights, which is what linear computes. */
static bool is_plain_matmul(const mica_int8 *q, const mica_node *node)
{
    const mica_matmul_opts *o = node->opts;
    return node->op == &mica_op_matmul && !o->transpose_a && (o->alpha == 0.0f || o->alpha == 1.0f) &&
           shape_of(q, node->in[1])->rank == 2;
}

static mica_activation own_activation(const mica_node *node)
{
    if (is_dense(node))
        return ((const mica_matmul_opts *)node->opts)->activation;
    if (node->op == &mica_op_conv1d)
        return ((const mica_conv1d_opts *)node->opts)->activation;
    return ((const mica_conv2d_opts *)node->opts)->activation;
}

/* Takes in a batch norm by running statistics. */
static void take_norm(mica_int8 *q, mica_int8_step *s)
{
    int n = follower(q, s->end);
    if (n == NONE || s->activation != MICA_NO_ACTIVATION)
        return;
    const mica_node *node = &q->net->nodes[n];
    bool fits = node->op == &mica_op_batch_norm && lasts(q, node->in[3]) && lasts(q, node->in[4]) &&
                (node->in[1] == NONE || lasts(q, node->in[1])) &&
                (node->in[2] == NONE || lasts(q, node->in[2])) && unread(q, node, 1) && unread(q, node, 2);
    const mica_node *product = &q->net->nodes[q->net->values[s->end].maker];
    if (!fits || !can_be_bytes(q, node->out[0]) || (is_dense(product) && shape_of(q, s->end)->rank != 2))
        return;
    s->norm = n;
    s->end = node->out[0];
    q->step[n].kind = MICA_INT8_TAKEN;
}

static bool is_product(const mica_int8 *q, const mica_node *node)
{
    if (node->op != &mica_op_linear && node->op != &mica_op_conv2d && node->op != &mica_op_conv1d &&
        !is_plain_matmul(q, node))
        return false;
    if (!can_be_bytes(q, node->in[0]) || !lasts(q, node->in[1]) ||
        (node->in[2] != NONE && !lasts(q, node->in[2])))
        return false;
    mica_tensor w = mica_int8_weights_of(q, node);
    double products = 1.0;
    for (int k = 1; k < w.rank; k++)
        products *= (double)w.dim[k];
    return products <= MICA_INT8_PRODUCTS && limits(own_activation(node)) && can_be_bytes(q, node->out[0]);
}

/* The scale of what a step makes: that of the joined values, if it goes nowhere else. */
static float scale_of_end(const mica_int8 *q, int end)
{
    int n = q->readers[end] == 1 ? q->last_reader[end] : NONE;
    bool joins = n != NONE && q->net->nodes[n].op == &mica_op_concat &&
                 can_be_bytes(q, q->net->nodes[n].out[0]);
    return q->scale[joins ? q->net->nodes[n].out[0] : end];
}

/* ---- What works on bytes if its inputs are bytes ---- */

static bool only_moves(const mica_op *op)
{
    return (op->flags & MICA_OP_VIEW) || op == &mica_op_transpose || op == &mica_op_permute ||
           op == &mica_op_slice || op == &mica_op_flip;
}

static bool is_average(const mica_int8 *q, const mica_node *node)
{
    bool flat = node->op == &mica_op_avg_pool1d;
    if (!flat && node->op != &mica_op_avg_pool2d)
        return false;
    const mica_pooling_opts *o = node->opts;
    bool padded = o->pad[0] > 0 || (!flat && o->pad[1] > 0);
    double window = (double)o->kernel[0] * (flat ? 1.0 : (double)o->kernel[1]);
    return !o->ceil_mode && !(padded && o->exclude_pad) && window <= MICA_INT8_PRODUCTS &&
           (!flat || shape_of(q, node->in[0])->rank == 3);
}

static bool is_global(const mica_int8 *q, const mica_node *node)
{
    const mica_tensor *x = shape_of(q, node->in[0]);
    double count = 1.0;
    for (int k = 2; k < x->rank; k++)
        count *= (double)x->dim[k];
    return node->op == &mica_op_global_avg_pool && count <= MICA_INT8_PRODUCTS;
}

static bool is_maximum(const mica_int8 *q, const mica_node *node)
{
    bool flat = node->op == &mica_op_max_pool1d;
    return (node->op == &mica_op_max_pool2d || (flat && shape_of(q, node->in[0])->rank == 3)) &&
           unread(q, node, 1);
}

static bool is_sum(const mica_int8 *q, const mica_node *node)
{
    return node->op == &mica_op_add && can_be_bytes(q, node->in[0]) && can_be_bytes(q, node->in[1]) &&
           (q->bytes[node->in[0]] || q->bytes[node->in[1]]) &&
           mica_tensor_same_shape(shape_of(q, node->in[0]), shape_of(q, node->in[1]));
}

static bool is_join(const mica_int8 *q, const mica_node *node)
{
    bool bytes = false;
    if (node->op != &mica_op_concat)
        return false;
    for (int i = 0; i < node->ins; i++) {
        if (node->in[i] == NONE)
            continue;
        if (!can_be_bytes(q, node->in[i]))
            return false;
        bytes = bytes || q->bytes[node->in[i]];
    }
    return bytes;
}

static mica_int8_kind kind_of(const mica_int8 *q, const mica_node *node)
{
    if (is_product(q, node))
        return MICA_INT8_PRODUCT;
    if (node->op == &mica_op_dropout && unread(q, node, 1))
        return MICA_INT8_SAME;
    if (node->ins < 1 || node->in[0] == NONE || !can_be_bytes(q, node->out[0]))
        return MICA_INT8_STAYS;
    if (is_sum(q, node))
        return MICA_INT8_SUM;
    if (is_join(q, node))
        return MICA_INT8_JOIN;
    if (!q->bytes[node->in[0]])
        return MICA_INT8_STAYS;
    if (only_moves(node->op))
        return MICA_INT8_MOVES;
    if (limit_of(node->op) != MICA_NO_ACTIVATION)
        return MICA_INT8_LIMIT;
    if (is_maximum(q, node))
        return MICA_INT8_MAXIMUM;
    if (is_average(q, node))
        return MICA_INT8_AVERAGE;
    return is_global(q, node) ? MICA_INT8_GLOBAL : MICA_INT8_STAYS;
}

static void find_step(mica_int8 *q, int n)
{
    const mica_node *node = &q->net->nodes[n];
    mica_int8_step *s = &q->step[n];
    if (s->kind == MICA_INT8_TAKEN)
        return;
    *s = (mica_int8_step){.kind = kind_of(q, node), .norm = NONE, .end = node->out[0]};
    switch (s->kind) {
    case MICA_INT8_PRODUCT:
        s->activation = own_activation(node);
        take_norm(q, s);
        take_activation(q, s);
        break;
    case MICA_INT8_SUM:
        take_activation(q, s);
        break;
    case MICA_INT8_LIMIT:
        s->activation = limit_of(node->op);
        break;
    default:
        break;
    }
    if (s->kind == MICA_INT8_STAYS)
        return;
    bool shares = s->kind == MICA_INT8_SAME || s->kind == MICA_INT8_MOVES || s->kind == MICA_INT8_MAXIMUM;
    q->bytes[s->end] = s->kind != MICA_INT8_SAME || q->bytes[node->in[0]];
    q->used[s->end] = shares ? q->used[node->in[0]] : scale_of_end(q, s->end);
}

mica_status mica_int8_find(mica_int8 *q)
{
    find_readers(q);
    for (int i = 0; i < q->values; i++) {
        q->bytes[i] = false;
        q->used[i] = q->scale[q->net->values[i].root];
    }
    memset(q->step, 0, (size_t)q->nodes * sizeof *q->step);
    for (int n = 0; n < q->nodes; n++)
        find_step(q, n);
    for (int n = 0; n < q->nodes; n++)
        if (q->step[n].kind == MICA_INT8_PRODUCT)
            return MICA_OK;
    return mica_fail(q->ctx, MICA_ERR_STATE,
                     "int8: the net has no dense layer or convolution whose range is known");
}
