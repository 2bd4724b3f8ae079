/* LSTM, GRU and RNN over weights that were packed when the net was bound, two directions over the same x in one call:
 * created by compiling for inference alone, so it has no gradient. */
#include <string.h>

#include "net/net.h"
#include "node/entry.h"
#include "ops/recurrent.h"

#if !defined(MICA_SMALL)

/* As in recurrent.c; of what is not here, nothing is wanted. */
enum { X, W_IH, W_HH, B_IH, B_HH, H, H_0 = 9, C_0 };
enum { Y, STEPS, GATES, CELLS, H_N, C_N };

/* Of a direction, behind x: where its inputs begin, and its outputs. */
enum { WAY_W_IH, WAY_W_HH, WAY_PREPARED, WAY_H_0, WAY_C_0, WAY_INS };
enum { WAY_Y, WAY_H_N, WAY_C_N, WAY_OUTS };

enum { JOINED_RANK = 4 };

typedef struct prepared_opts {
    mica_sequence_opts how; /* but for `reverse` */
    mica_cell cell;
    int ways;
    bool reverse[MICA_RECURRENT_WAYS];
    /* The y of both may be one output, the first: joined along an axis, where they are [T, N, H] with one more axis if
     * the rank is 4. Axis k of the output is axis axes[k] of what is joined. */
    int rank, axis; /* rank 0: each has its own */
    int axes[JOINED_RANK];
} prepared_opts;

/* ---- Run ---- */

/* The y of one direction in the output that both share. */
static mica_tensor part_of(const mica_tensor *all, const prepared_opts *o, int way)
{
    mica_tensor part = *all;
    for (int k = 0; k < o->rank; k++) {
        part.dim[o->axes[k]] = all->dim[k];
        part.stride[o->axes[k]] = all->stride[k];
    }
    part.dim[o->axis] /= MICA_RECURRENT_WAYS;
    if (part.data != NULL)
        part.data = (float *)part.data + way * part.dim[o->axis] * part.stride[o->axis];
    for (int k = o->axis; part.rank > 3 && k < 3; k++) {
        part.dim[k] = part.dim[k + 1];
        part.stride[k] = part.stride[k + 1];
    }
    part.rank = 3;
    return part;
}

static mica_status run(const mica_call *c)
{
    const prepared_opts *o = c->opts;
    mica_recurrent_way way[MICA_RECURRENT_WAYS];
    mica_tensor part[MICA_RECURRENT_WAYS];
    for (int k = 0; k < o->ways; k++) {
        const mica_tensor *const *in = c->in + 1 + k * WAY_INS, *const *out = c->out + k * WAY_OUTS;
        way[k] = (mica_recurrent_way){.w_ih = in[WAY_W_IH],
                                      .w_hh = in[WAY_W_HH],
                                      .prepared = in[WAY_PREPARED],
                                      .h_0 = in[WAY_H_0],
                                      .c_0 = in[WAY_C_0],
                                      .y = o->how.last ? NULL : out[WAY_Y],
                                      .h_n = o->how.last ? out[WAY_Y] : out[WAY_H_N],
                                      .c_n = out[WAY_C_N],
                                      .reverse = o->reverse[k]};
        if (o->rank > 0) {
            part[k] = part_of(c->out[0], o, k);
            way[k].y = &part[k];
        }
    }
    mica_recurrent_prepared_opts how = {
        .cell = o->cell, .relu = o->how.relu, .time_first = o->how.time_first};
    MICA_TRY(mica_recurrent_prepared(c->ctx, c->in[X], way, o->ways, &how));
    for (int k = 0; o->how.last && k < o->ways; k++)
        if (c->out[k * WAY_OUTS + WAY_H_N] != NULL)
            MICA_TRY(mica_copy(c->ctx, c->out[k * WAY_OUTS + WAY_H_N], way[k].h_n));
    return MICA_OK;
}

static const mica_field fields[] = {
    MICA_FIELD(prepared_opts, how.last, BOOL, "only the last step's output"),
    MICA_FIELD(prepared_opts, how.time_first, BOOL, "x and y are [T, N, ...], not [N, T, ...]"),
    MICA_FIELD(prepared_opts, how.relu, BOOL, "rnn: relu instead of tanh"),
    MICA_FIELD(prepared_opts, cell, CHOICE, "lstm|gru|rnn"),
    MICA_FIELD(prepared_opts, ways, INT, "directions"),
    MICA_FIELDS(prepared_opts, reverse, BOOL, "of each direction: from the last time step to the first"),
    MICA_FIELD(prepared_opts, rank, INT, "of the output that joins both directions; 0: they are not joined"),
    MICA_FIELD(prepared_opts, axis, INT, "along which they are joined"),
    MICA_FIELDS(prepared_opts, axes, INT, "order of the axes of the joined output"),
};

static const mica_op op = {
    .name = "recurrent_prepared",
    .about = "lstm, gru or rnn, in one direction or two, with weights packed in advance",
    .ins = 1 + MICA_RECURRENT_WAYS * WAY_INS,
    .outs = MICA_RECURRENT_WAYS * WAY_OUTS,
    .optional_outs = (1u << MICA_RECURRENT_WAYS * WAY_OUTS) - 1,
    .names = (const char *const[]){"x", "w_ih", "w_hh", "prepared", "h_0", "c_0", "w_ih", "w_hh", "prepared",
                                   "h_0", "c_0", "y", "h_n", "c_n", "y", "h_n", "c_n"},
    .opts_bytes = sizeof(prepared_opts),
    MICA_FIELD_LIST(fields),
    .run = run};

/* ---- Packing ---- */

typedef struct pack_opts {
    mica_cell cell;
} pack_opts;

static mica_status run_pack(const mica_call *c)
{
    return mica_recurrent_prepare(c->ctx, c->out[0], ((const pack_opts *)c->opts)->cell,
                                  &(mica_recurrent_weights){c->in[0], c->in[1], c->in[2], c->in[3]});
}

static const mica_op pack = {.name = "recurrent_pack",
                             .about = "weights and biases as recurrent_prepared reads them",
                             .ins = 4,
                             .outs = 1,
                             .opts_bytes = sizeof(pack_opts),
                             .run = run_pack};

/* Packed weights of this call, which another may have had made. NONE, with an error recorded, when refused. */
static int packed_weights(mica_net *net, const mica_node *node, mica_cell cell)
{
    mica_node maker = {.op = &pack, .layer = node->layer, .ins = 4, .outs = 1};
    for (int i = 0; i < 4; i++)
        maker.in[i] = W_IH + i < node->ins ? node->in[W_IH + i] : NONE;
    for (int d = net->built_derivations; d < net->derivation_count; d++) {
        const mica_node *made = &net->derivations[d];
        if (made->op == &pack && memcmp(made->in, maker.in, 4 * sizeof *maker.in) == 0 &&
            ((const pack_opts *)made->opts)->cell == cell)
            return made->out[0];
    }
    pack_opts *opts = mica_net_memory(net, sizeof *opts);
    if (opts == NULL)
        return NONE;
    opts->cell = cell;
    maker.opts = opts;
    const mica_tensor *w_ih = &net->values[node->in[W_IH]].tensor;
    const mica_tensor *w_hh = &net->values[node->in[W_HH]].tensor;
    size_t floats = mica_recurrent_prepared_floats(net->ctx, cell, (size_t)w_ih->dim[1],
                                                   (size_t)w_hh->dim[1]);
    mica_tensor shape = mica_1d(NULL, (mica_index)floats);
    return mica_net_prepared_value(net, &maker, &shape, node->in[W_HH], "packed");
}

/* ---- The pass ---- */

/* Time steps of all sequences up to which weights are best read as they lie. */
#define FEW_STEPS 4

static bool cell_of(const mica_op *of, mica_cell *cell)
{
    static const mica_op *const ops[] = {&mica_op_lstm, &mica_op_gru, &mica_op_rnn};
    for (int k = 0; k < 3; k++)
        if (of == ops[k]) {
            *cell = (mica_cell)k;
            return true;
        }
    return false;
}

static int input_of(const mica_node *node, int i) { return i < node->ins ? node->in[i] : NONE; }

/* Whether somebody reads output k, in the program or from outside. */
static bool is_read(const mica_net *net, const mica_node *node, int k)
{
    int out = k < node->outs ? node->out[k] : NONE;
    if (out == NONE)
        return false;
    for (int i = 0; i < net->built_values; i++)
        if (net->values[i].root == out && net->values[i].output)
            return true;
    for (int e = 0; e < net->entry_count; e++)
        for (int i = 0; i < net->entries[e].node.ins; i++)
            if (net->entries[e].node.in[i] == out)
                return true;
    return false;
}

/* Whether input i is contiguous, or missing: what is lent need not be. */
static bool is_contiguous(const mica_net *net, const mica_node *node, int i)
{
    int in = input_of(node, i);
    return in == NONE || mica_tensor_contiguous(&net->values[in].tensor);
}

/* Whether a call can be one of prepared weights: they do not change, and nothing is kept for a backward, or from step
 * to step. */
static bool can_prepare(const mica_net *net, const mica_node *node)
{
    const mica_sequence_opts *opts = node->opts;
    const mica_tensor *x = &net->values[node->in[X]].tensor;
    mica_index steps = x->dim[opts->time_first ? 0 : 1];
    if (input_of(node, H) != NONE || steps < 2 || x->dim[0] * x->dim[1] < FEW_STEPS)
        return false;
    for (int i = W_IH; i <= B_HH; i++)
        if (input_of(node, i) != NONE && !mica_net_is_constant(net, node->in[i]))
            return false;
    if (!is_contiguous(net, node, X) || !is_contiguous(net, node, H_0) || !is_contiguous(net, node, C_0))
        return false;
    bool gated = node->op != &mica_op_rnn;
    return !(opts->last && is_read(net, node, STEPS)) && !(gated && is_read(net, node, GATES)) &&
           !(node->op == &mica_op_lstm && is_read(net, node, CELLS));
}

/* Whether a call reads something that another makes. */
static bool reads_from(const mica_net *net, const mica_node *node, const mica_node *maker)
{
    for (int i = 0; i < node->ins; i++)
        for (int k = 0; node->in[i] != NONE && k < maker->outs; k++)
            if (maker->out[k] != NONE && net->values[node->in[i]].root == net->values[maker->out[k]].root)
                return true;
    return false;
}

static bool fits(const mica_net *net, const mica_node *a, const mica_node *b)
{
    if (a->op != b->op) /* then its options are others, or none */
        return false;
    const mica_sequence_opts *one = a->opts, *other = b->opts;
    return a->in[X] == b->in[X] && one->last == other->last && one->relu == other->relu &&
           one->time_first == other->time_first &&
           net->values[a->in[W_HH]].tensor.dim[1] == net->values[b->in[W_HH]].tensor.dim[1] &&
           can_prepare(net, b);
}

/* The call behind entry e that can run along with it: in its place, since until then nobody reads what e makes. NONE if
 * there is none. */
static int partner(const mica_net *net, int e)
{
    const mica_node *node = &net->entries[e].node;
    for (int next = e + 1; next < net->forward_count; next++) {
        const mica_node *then = &net->entries[next].node;
        if (then->op == NULL || (then->op->flags & MICA_OP_VIEW))
            continue; /* a view runs nothing */
        if (reads_from(net, then, node))
            return NONE;
        if (fits(net, node, then))
            return next;
    }
    return NONE;
}

/* Adds a direction to a call. */
static mica_status add_way(mica_net *net, mica_node *to, const mica_node *from, mica_cell cell)
{
    prepared_opts *opts = to->opts;
    int way = opts->ways++, packed = packed_weights(net, from, cell);
    int *in = to->in + 1 + way * WAY_INS, *out = to->out + way * WAY_OUTS;
    if (packed == NONE)
        return net->ctx->status;
    bool cells = cell == MICA_CELL_LSTM;
    opts->reverse[way] = ((const mica_sequence_opts *)from->opts)->reverse;
    in[WAY_W_IH] = from->in[W_IH];
    in[WAY_W_HH] = from->in[W_HH];
    in[WAY_PREPARED] = packed;
    in[WAY_H_0] = input_of(from, H_0);
    in[WAY_C_0] = cells ? input_of(from, C_0) : NONE;
    out[WAY_Y] = from->out[Y];
    out[WAY_H_N] = from->out[H_N];
    out[WAY_C_N] = cells ? from->out[C_N] : NONE;
    return MICA_OK;
}

/* ---- Both directions in one output ---- */

/* The only call that reads a value, or a view of it; NONE where there are others, or it is looked at from outside. */
static int only_reader(const mica_net *net, int value)
{
    int reader = NONE;
    for (int i = 0; i < net->built_values; i++)
        if (net->values[i].root == value && net->values[i].output)
            return NONE;
    for (int e = 0; e < net->entry_count; e++) {
        const mica_node *node = &net->entries[e].node;
        for (int i = 0; node->op != NULL && !(node->op->flags & MICA_OP_VIEW) && i < node->ins; i++) {
            if (node->in[i] == NONE || net->values[node->in[i]].root != value)
                continue;
            if (reader != NONE && reader != e)
                return NONE;
            reader = e;
        }
    }
    return reader;
}

/* Whether a value is y, or y with one more axis of size 1 there, which is not the last: rows stay contiguous. */
static bool is_y(const mica_net *net, int value, int y, int axis)
{
    if (value == NONE || net->values[value].root != y)
        return false;
    const mica_tensor *v = &net->values[value].tensor, *t = &net->values[y].tensor;
    if (v->rank < t->rank || v->rank > JOINED_RANK)
        return false;
    bool more = v->rank > t->rank;
    if (more && (v->dim[axis] != 1 || axis == v->rank - 1))
        return false;
    for (int k = 0; k < t->rank; k++)
        if (v->dim[more && k >= axis ? k + 1 : k] != t->dim[k])
            return false;
    return true;
}

/* Takes in a concat of what both directions give. */
static bool take_concat(mica_net *net, mica_node *node)
{
    prepared_opts *opts = node->opts;
    int y[] = {node->out[WAY_Y], node->out[WAY_OUTS + WAY_Y]}, reader = only_reader(net, y[0]);
    if (opts->ways < 2 || opts->how.last || reader == NONE || reader != only_reader(net, y[1]))
        return false;
    mica_node *join = &net->entries[reader].node;
    if (join->op != &mica_op_concat || join->in[0] == NONE)
        return false;
    for (int i = 2; i < join->ins; i++)
        if (join->in[i] != NONE)
            return false;
    int rank = net->values[join->in[0]].tensor.rank, axis = ((const mica_axis_opts *)join->opts)->axis;
    axis += axis < 0 ? rank : 0;
    if (!is_y(net, join->in[0], y[0], axis) || !is_y(net, input_of(join, 1), y[1], axis))
        return false;
    opts->rank = rank;
    opts->axis = axis;
    for (int k = 0; k < rank; k++)
        opts->axes[k] = k;
    node->out[WAY_Y] = join->out[0];
    node->out[WAY_OUTS + WAY_Y] = NONE;
    join->op = NULL; /* done here now */
    join->ins = join->outs = 0;
    return true;
}

/* Takes in a permutation of that, as long as rows stay rows. */
static void take_permute(mica_net *net, mica_node *node)
{
    prepared_opts *opts = node->opts;
    int reader = only_reader(net, node->out[WAY_Y]), last = opts->rank - 1;
    mica_node *permute = reader != NONE ? &net->entries[reader].node : NULL;
    if (permute == NULL || permute->op != &mica_op_permute || permute->in[0] != node->out[WAY_Y])
        return;
    const int *axes = ((const mica_permute_opts *)permute->opts)->axes;
    if (axes[last] != last && axes[last] != -1)
        return;
    for (int k = 0; k < opts->rank; k++)
        opts->axes[k] = axes[k] < 0 ? axes[k] + opts->rank : axes[k];
    node->out[WAY_Y] = permute->out[0];
    permute->op = NULL;
    permute->ins = permute->outs = 0;
}

mica_status mica_recurrent_pair(mica_net *net, int e)
{
    mica_node *first = &net->entries[e].node;
    mica_cell cell;
    if (!cell_of(first->op, &cell) || !can_prepare(net, first))
        return MICA_OK;
    int second = partner(net, e), place = second != NONE ? second : e;
    mica_node node = {.op = &op, .layer = first->layer, .ins = op.ins, .outs = op.outs};
    for (int i = 0; i < node.ins; i++)
        node.in[i] = NONE;
    for (int k = 0; k < node.outs; k++)
        node.out[k] = NONE;
    prepared_opts *opts = mica_net_memory(net, sizeof *opts);
    if (opts == NULL)
        return net->ctx->status;
    memset(opts, 0, sizeof *opts);
    opts->how = *(const mica_sequence_opts *)first->opts;
    opts->how.reverse = false;
    opts->cell = cell;
    node.opts = opts;
    node.in[X] = first->in[X];
    MICA_TRY(add_way(net, &node, first, cell));
    if (second != NONE)
        MICA_TRY(add_way(net, &node, &net->entries[second].node, cell));
    first->op = NULL; /* done there now */
    first->ins = first->outs = 0;
    net->entries[place].node = node;
    if (take_concat(net, &node)) {
        take_permute(net, &node);
        net->entries[place].node = node;
    }
    return MICA_OK;
}

#endif
