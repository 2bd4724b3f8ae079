/* Steps that continue one another: a net over the tokens of a sequence is changed so that a step needs only those that
 * are new. Attention that looks back keeps keys and values, recurrent layers their states, and positions follow a size
 * of the step. All other calls must work on each token alone: a list says which ones do.
 *
 * This is part of building: what comes out is a net as any other. */
#include <string.h>

#include "net/net.h"
#include "node/entry.h"

/* How a value depends on the tokens. */
typedef enum flow {
    FREE,  /* not at all */
    ROWS,  /* [1, T, ...]: each row on its token, and on those before it */
    LAST,  /* on the last token, and on those before it */
    MIXED, /* in another way, or in another layout */
} flow;

typedef struct continuing {
    mica_net *net;
    mica_index length; /* T, as built */
    flow *flow;        /* of each value */
    int position;      /* as operations want it: 1 + the number of the size */
} continuing;

/* ---- Which calls work on each token alone ---- */

static const mica_tensor *shape_of(const continuing *c, int value) { return &c->net->values[value].tensor; }

static bool is_rows(const continuing *c, const mica_node *node, int in)
{
    return in < node->ins && node->in[in] != NONE && c->flow[node->in[in]] == ROWS;
}

/* Whether input `in` alone has rows, of features: what is done along the last axis leaves tokens apart. */
static bool only_rows_of_features(const continuing *c, const mica_node *node, int in)
{
    for (int i = 0; i < node->ins; i++)
        if (is_rows(c, node, i) != (i == in))
            return false;
    return shape_of(c, node->in[in])->rank >= 3;
}

/* Element by element: nothing is repeated along the tokens, and nothing free has a row for each of them. */
static bool element_wise(const continuing *c, const mica_node *node)
{
    int rank = shape_of(c, node->out[0])->rank;
    for (int i = 0; i < node->ins; i++) {
        if (node->in[i] == NONE)
            continue;
        const mica_tensor *t = shape_of(c, node->in[i]);
        int axis = t->rank - (rank - 1); /* that of tokens */
        if (is_rows(c, node, i) ? t->rank != rank : axis >= 0 && t->dim[axis] != 1)
            return false;
    }
    return true;
}

static bool along_last_axis(const continuing *c, const mica_node *node)
{
    int axis = ((const mica_axis_opts *)node->opts)->axis, rank = shape_of(c, node->in[0])->rank;
    return only_rows_of_features(c, node, 0) && (axis < 0 ? axis + rank : axis) == rank - 1;
}

static bool has_family(const mica_op *op, const char *family)
{
    return op->family != NULL && strcmp(op->family, family) == 0;
}

static bool is_recurrent(const mica_op *op)
{
    return op == &mica_op_lstm || op == &mica_op_gru || op == &mica_op_rnn;
}

/* add_positions, rotary and rotary_packed, whose options begin with the position. */
static bool has_position(const mica_op *op)
{
    return op == &mica_op_add_positions || op == &mica_op_rotary || op == &mica_op_rotary_packed;
}

/* Whether rows stay rows. */
static bool keeps_rows(const continuing *c, const mica_node *node)
{
    const mica_op *op = node->op;
    if (op == &mica_op_embedding)
        return is_rows(c, node, 1) && !is_rows(c, node, 0);
    if (op == &mica_op_linear || op == &mica_op_swiglu)
        return only_rows_of_features(c, node, 0);
    if (op == &mica_op_softmax || op == &mica_op_log_softmax)
        return along_last_axis(c, node);
    if (op == &mica_op_layer_norm || op == &mica_op_rms_norm)
        return only_rows_of_features(c, node, 0) &&
               shape_of(c, node->in[0])->rank - 2 >= ((const mica_norm_opts *)node->opts)->axes;
    if (has_position(op))
        return only_rows_of_features(c, node, 0) && shape_of(c, node->in[0])->rank == 3 &&
               ((const mica_positions_opts *)node->opts)->position == 0;
    if (op == &mica_op_attention_packed)
        return only_rows_of_features(c, node, 0) && node->in[1] == NONE &&
               ((const mica_attention_packed_opts *)node->opts)->causal;
    if (is_recurrent(op))
        return only_rows_of_features(c, node, 0);
    return (has_family(op, "elementwise") || has_family(op, "activation") || has_family(op, "compare") ||
            op == &mica_op_dropout || op == &mica_op_copy || op == &mica_op_squared_relu) &&
           element_wise(c, node);
}

/* Notes how the outputs of a call depend on the tokens; false if they do in a way that steps cannot continue. */
static bool follow(continuing *c, const mica_node *node)
{
    bool seen[MIXED + 1] = {false};
    for (int i = 0; i < node->ins; i++)
        if (node->in[i] != NONE)
            seen[c->flow[node->in[i]]] = true;
    flow out = seen[LAST] ? LAST : FREE;
    if (seen[MIXED] || (seen[ROWS] && seen[LAST]) || (seen[ROWS] && !keeps_rows(c, node)))
        return false;
    if (seen[ROWS])
        out = is_recurrent(node->op) && ((const mica_sequence_opts *)node->opts)->last ? LAST : ROWS;
    for (int k = 0; k < node->outs; k++)
        if (node->out[k] != NONE)
            c->flow[node->out[k]] = k == 0 ? out : out == FREE ? FREE : MIXED;
    const mica_tensor *y = shape_of(c, node->out[0]);
    return out != ROWS || (y->rank >= 2 && y->dim[0] == 1 && y->dim[1] == c->length);
}

/* ---- What changes ---- */

static mica_value keep(continuing *c, const mica_node *node, const char *name, mica_kept_kind kind, int rank,
                       const mica_index *dims)
{
    mica_net *net = c->net;
    const char *layer = node->layer != NONE ? net->layers[node->layer].name : node->op->name;
    const char *full = mica_net_text(net, "%s.%s", layer, name);
    mica_value value = full != NULL ? mica_net_kept(net, full, kind, MICA_F32, rank, dims, 0.0f) : 0;
    if (value != 0)
        net->values[value - 1].layer = node->layer;
    return value;
}

static mica_status keep_attention(continuing *c, mica_node *node)
{
    const mica_attention_packed_opts *packed = node->opts;
    mica_index heads = packed->heads != 0 ? packed->heads : 1,
               kv = packed->kv_heads != 0 ? packed->kv_heads : heads;
    mica_index features = shape_of(c, node->in[0])->dim[2] / (heads + 2 * kv);
    mica_value cache = keep(c, node, "cache", MICA_KEPT_PRIVATE, 3,
                            (mica_index[]){1, c->length, 2 * kv * features});
    mica_attention_cached_opts *opts = mica_net_memory(c->net, sizeof *opts);
    if (cache == 0 || opts == NULL)
        return c->net->status;
    *opts = (mica_attention_cached_opts){.packed = *packed, .position = c->position};
    node->op = &mica_op_attention_cached;
    node->opts = opts;
    node->in[1] = cache - 1;
    return MICA_OK;
}

static mica_status keep_states(continuing *c, mica_node *node)
{
    enum { W_HH = 2, H = 5 };
    static const char *const names[] = {"h", "h_before", "c", "c_before"};
    mica_index units = shape_of(c, node->in[W_HH])->dim[1];
    int states = node->op == &mica_op_lstm ? 4 : 2;
    for (int i = 0; i < states && node->in[H + i] == NONE; i++) {
        mica_value state = keep(c, node, names[i], MICA_KEPT_STATE, 2, (mica_index[]){1, units});
        if (state == 0)
            return c->net->status;
        node->in[H + i] = state - 1;
    }
    return MICA_OK;
}

/* Changes the calls that depend on tokens before. */
static mica_status change(continuing *c)
{
    mica_net *net = c->net;
    bool placed = false;
    for (int n = 0; n < net->node_count; n++) {
        const mica_op *op = net->nodes[n].op;
        bool rows = is_rows(c, &net->nodes[n], 0);
        placed = placed || (rows && (has_position(op) || op == &mica_op_attention_packed));
    }
    if (placed)
        c->position = mica_net_size_number(net, mica_net_size(net, "position", c->length - 1)) + 1;
    for (int n = 0; n < net->node_count && net->status == MICA_OK; n++) {
        mica_node node = net->nodes[n];
        if (!is_rows(c, &node, 0))
            continue;
        if (has_position(node.op))
            ((mica_positions_opts *)node.opts)->position = c->position;
        else if (node.op == &mica_op_attention_packed)
            MICA_TRY(keep_attention(c, &node));
        else if (is_recurrent(node.op))
            MICA_TRY(keep_states(c, &node));
        net->nodes[n] = node;
    }
    net->continues = net->status == MICA_OK;
    return net->status;
}

/* ---- Forgetting the first tokens ---- */

/* The call of rotary_packed whose keys an attention keeps; NULL: it is none. */
static const mica_node *turner_of(const mica_net *net, const mica_node *attention)
{
    int maker = net->values[attention->in[0]].maker;
    return maker != NONE && net->nodes[maker].op == &mica_op_rotary_packed ? &net->nodes[maker] : NULL;
}

bool mica_net_can_drop(const mica_net *net)
{
    for (int n = 0; n < net->node_count; n++) {
        const mica_node *node = &net->nodes[n];
        if (node->op == &mica_op_add_positions || node->op == &mica_op_rotary)
            return false;
        if (node->op != &mica_op_attention_cached)
            continue;
        const mica_attention_packed_opts *packed = &((const mica_attention_cached_opts *)node->opts)->packed;
        const mica_node *turner = turner_of(net, node);
        int heads = packed->heads != 0 ? packed->heads : 1,
            kv = packed->kv_heads != 0 ? packed->kv_heads : heads;
        const mica_turn_opts *turn = turner != NULL ? turner->opts : NULL;
        if (turn != NULL && (turn->heads != heads + 2 * kv || turn->turned != heads + kv))
            return false;
    }
    return net->continues;
}

/* Of one attention: its rows move to the front, and their keys turn back by as many positions. */
static mica_status drop_rows(mica_net *net, const mica_node *node, mica_index count, mica_index dropped)
{
    const mica_attention_packed_opts *packed = &((const mica_attention_cached_opts *)node->opts)->packed;
    const mica_node *turner = turner_of(net, node);
    const mica_tensor *rows = &net->values[node->in[1]].tensor;
    mica_index heads = packed->heads != 0 ? packed->heads : 1,
               kv = packed->kv_heads != 0 ? packed->kv_heads : heads, width = rows->dim[2];
    float *data = rows->data;
    memmove(data, data + dropped * width, (size_t)((count - dropped) * width) * sizeof *data);
    if (turner == NULL)
        return MICA_OK;
    mica_tensor keys = mica_4d(data, count - dropped, kv, 1, width / (2 * kv));
    keys.stride[0] = width;
    return mica_rotary_backward(
        net->ctx, &keys, &keys, &net->values[turner->in[1]].tensor,
        &(mica_rotary_opts){.offset = dropped,
                            .interleaved = ((const mica_turn_opts *)turner->opts)->interleaved});
}

mica_status mica_net_drop(mica_net *net, mica_index count, mica_index dropped)
{
    for (int n = 0; n < net->node_count; n++)
        if (net->nodes[n].op == &mica_op_attention_cached)
            MICA_TRY(drop_rows(net, &net->nodes[n], count, dropped));
    return MICA_OK;
}

/* ---- The call ---- */

/* Why the input does not do; NULL: it does. *value is its number. */
static const char *check_input(const mica_net *net, int *value)
{
    int inputs = 0;
    for (int i = 0; i < net->built_values; i++)
        if (net->values[i].kind == MICA_BUFFER_INPUT && inputs++ == 0)
            *value = i;
    const mica_value_info *v = inputs == 1 ? &net->values[*value] : NULL;
    if (v == NULL || v->tensor.rank != 2 || v->tensor.dim[0] != 1 || v->tensor.dim[1] < 1 ||
        v->source[1] == 0)
        return "the net has no single input [1, T] whose length can be less in a step";
    for (int i = 0; i < net->size_count; i++)
        if (strcmp(net->size[i].name, "position") == 0)
            return "the net has a size \"position\" of its own";
    return NULL;
}

mica_status mica_net_continue(mica_net *net, const char **reason)
{
    int input = 0;
    if (reason == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net_continue: reason is NULL");
    *reason = NULL;
    if (!mica_net_building(net) || net->continues)
        return net->status;
    *reason = check_input(net, &input);
    if (*reason != NULL)
        return MICA_OK;
    size_t bytes = (size_t)net->value_count * sizeof(flow);
    continuing c = {.net = net, .length = net->values[input].tensor.dim[1]};
    c.flow = mica_allocate(net->ctx, bytes);
    if (c.flow == NULL)
        return net->ctx->status;
    memset(c.flow, 0, bytes);
    c.flow[input] = ROWS;
    mica_status status = MICA_OK;
    for (int n = 0; n < net->node_count && *reason == NULL; n++) {
        const mica_node *node = &net->nodes[n];
        if (follow(&c, node))
            continue;
        *reason = mica_net_text(net, "%s in layer \"%s\" may mix tokens", node->op->name,
                                node->layer != NONE ? net->layers[node->layer].name : "");
        status = *reason == NULL ? net->status : MICA_OK;
        break;
    }
    if (status == MICA_OK && *reason == NULL)
        status = change(&c);
    mica_release(net->ctx, c.flow, bytes);
    return status;
}
