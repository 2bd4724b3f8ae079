/* Steps in parts: the program is run several times, each time for some rows of the batch, and gradients are added up.
 * Inputs, outputs and states of each sample hold the whole batch; everything between has room for one part only. */
#include "net/net.h"
#include "node/entry.h"

#if defined(MICA_SMALL)
#define LOOKS_UP(net, node) false
#else
/* Whether a value lasts: it is the same for every sample. */
static bool lasts(const mica_net *net, int value)
{
    return value != NONE && net->values[net->values[value].root].home != MICA_HOME_PLANNED;
}

/* Whether a node looks up rows of a table that lasts, or counts its indices from the end of one: what a sample's
 * indices find comes from no other sample. */
static bool looks_up(const mica_net *net, const mica_node *node)
{
    if (node->op == &mica_op_wrap_indices)
        return lasts(net, node->in[1]);
    return node->op == &mica_op_take && lasts(net, node->in[0]) &&
           ((const mica_axis_opts *)node->opts)->axis == 0;
}
#define LOOKS_UP(net, node) looks_up(net, node)
#endif

/* Whether a node mixes samples, or moves the batch to another axis. */
static bool mixes(mica_net *net, const mica_node *node)
{
    mica_tensor shapes[MICA_OP_INS];
    mica_infer infer = {.ctx = net->ctx, .op = node->op, .opts = node->opts, .ins = node->ins};
    bool of_samples = false;
    for (int i = 0; i < node->ins; i++) {
        if (node->in[i] == NONE)
            continue;
        const mica_value_info *v = &net->values[node->in[i]];
        shapes[i] = v->tensor;
        infer.in[i] = &shapes[i];
        of_samples = of_samples || v->home == MICA_HOME_PLANNED;
    }
    return of_samples && node->op->mixes != NULL && !LOOKS_UP(net, node) && node->op->mixes(&infer);
}

/* Whether a value that follows the batch does so along its first axis alone. */
static bool follows_first(const mica_value_info *v, mica_index rows, mica_index most)
{
    const mica_tensor *t = &v->tensor;
    for (int k = 0; k < t->rank; k++)
        if (t->dim[k] != v->built[k] &&
            (k > 0 || t->dim[k] / rows != v->built[k] / most || t->dim[k] % rows != 0))
            return false;
    return true;
}

/* Whether a node's result follows the batch where one of its inputs does, rather than that input being broadcast to
 * what another one is. A loss is one number. Right after the batch was made smaller. */
static bool carries_on(const mica_net *net, const mica_node *node)
{
    bool follows = false;
    for (int i = 0; i < node->ins; i++)
        follows = follows || (node->in[i] != NONE && net->values[node->in[i]].changed);
    return !follows || (node->op->flags & MICA_OP_LOSS) || net->values[node->out[0]].changed;
}

/* Whether a node reads a loss: what is made of that needs the loss of the whole batch. */
static bool reads_loss(const mica_net *net, const mica_node *node)
{
    for (int i = 0; i < node->ins; i++) {
        int maker = node->in[i] != NONE ? net->values[node->in[i]].maker : NONE;
        if (maker != NONE && net->values[node->in[i]].number == 0 &&
            (net->nodes[maker].op->flags & MICA_OP_LOSS))
            return true;
    }
    return false;
}

#if defined(MICA_SMALL)
/* There is no room for what is rare: of a call's outputs, the first is looked at. */
#define IS_FIXED(net)          ((net)->sizes_fixed != NULL)
#define IS_APART(net, node)    true
#define IS_BESIDES(net, value) ((net)->values[value].number > 0)
#else
/* Whether the inputs of a call belong to one sample each: also those that are not the first output of another call. And
 * in a batch of two, whose half is one row, none may be repeated to the shape of an input of more axes. */
static bool is_apart(const mica_net *net, const mica_node *node)
{
    mica_index most = net->size[0].most, rows = net->size[0].now;
    int rank = NONE;
    for (int i = 0; i < node->ins; i++) {
        const mica_value_info *v = node->in[i] != NONE ? &net->values[node->in[i]] : NULL;
        if (v == NULL || v->home != MICA_HOME_PLANNED)
            continue;
        if (v->number > 0 && (!follows_first(v, rows, most) || !(v->changed || v->tensor.rank == 0)))
            return false;
        if (v->changed && rows == 1 && rank != NONE && rank != v->tensor.rank)
            return false;
        rank = v->changed ? v->tensor.rank : rank;
    }
    return true;
}
#define IS_APART(net, node)    is_apart(net, node)
#define IS_FIXED(net)          ((net)->sizes_fixed != NULL || (net)->size[0].fixed != NULL)
/* What an operation makes besides is its own affair, until somebody looks at it. */
#define IS_BESIDES(net, value) ((net)->values[value].number > 0 && !(net)->values[value].output)
#endif

bool mica_net_can_part(mica_net *net)
{
    mica_index most = net->size[0].most, rows = (most + 1) / 2;
    if (most < 2)
        return false;
    bool can = !IS_FIXED(net);
    for (int n = 0; n < net->node_count && can; n++)
        can = !mixes(net, &net->nodes[n]) && !reads_loss(net, &net->nodes[n]);
    net->size[0].now = rows;
    can = can && mica_net_infer_shapes(net) == MICA_OK; /* which notes what has changed, as rules do not */
    for (int i = 0; i < net->built_values && can; i++)
        can = IS_BESIDES(net, i) || follows_first(&net->values[i], rows, most);
    for (int n = 0; n < net->node_count && can; n++)
        can = carries_on(net, &net->nodes[n]) && IS_APART(net, &net->nodes[n]);
    net->size[0].now = most;
    return mica_net_infer_shapes(net) == MICA_OK && can;
}

mica_index mica_net_fewest_rows(mica_net *net)
{
    mica_index rows = 1;
    for (; rows < net->size[0].most; rows++) {
        net->size[0].now = rows;
        mica_status status = mica_net_update_shapes(net);
        for (int e = 0; status == MICA_OK && e < net->entry_count; e++) {
            mica_measure_begin(net->ctx);
            status = mica_net_run_entry(net, &net->entries[e],
                                        &(mica_mode){.training = net->train, .scale = 1.0f});
            (void)mica_measure_end(net->ctx);
        }
        if (status == MICA_OK)
            break;
    }
    net->size[0].now = net->size[0].most;
    (void)mica_net_update_shapes(net);
    return rows;
}

bool mica_net_parts_fit(mica_index most, mica_index part_rows, mica_index fewest)
{
    return part_rows >= most || (part_rows + 1) / 2 >= fewest; /* smallest of all: half of part_rows + 1 */
}

mica_status mica_net_plan_parts(mica_net *net, mica_index part_rows)
{
    net->part_rows = part_rows;
    for (int i = 0; i < net->value_count; i++) { /* room for any shape, while shapes are inferred */
        net->values[i].bytes = net->values[i].built_bytes;
        net->values[i].whole = false;
    }
    net->size[0].now = part_rows;
    MICA_TRY(mica_net_update_shapes(net));
    for (int i = 0; i < net->built_values; i++) {
        const mica_value_info *v = &net->values[i];
        mica_value_info *root = &net->values[v->root];
        bool seen = v->kind == MICA_BUFFER_INPUT || v->output || v->home == MICA_HOME_KEPT;
        if (seen && v->home != MICA_HOME_LENT && mica_tensor_bytes(&root->tensor) < root->built_bytes)
            root->whole = true;
    }
    for (int i = 0; i < net->built_values; i++)
        if (!net->values[i].whole)
            net->values[i].bytes = mica_tensor_bytes(&net->values[i].tensor);
    return MICA_OK;
}

/* Where the memory of a value that holds the whole batch begins. */
static char *whole_data(const mica_net *net, const mica_value_info *root)
{
    if (root->home == MICA_HOME_KEPT)
        return net->block + root->flat;
    return net->block + net->groups[root->group].span.offset;
}

/* The same of row number `first`. */
static char *rows_data(const mica_net *net, const mica_value_info *root, mica_index first)
{
    mica_index rows = net->size[0].now;
    size_t row_bytes = mica_tensor_bytes(&root->tensor) / (size_t)(rows > 0 ? rows : 1);
    return whole_data(net, root) + (size_t)first * row_bytes;
}

mica_status mica_net_select_part(mica_net *net, mica_index first, mica_index rows)
{
    if (net->size[0].now != rows)
        MICA_TRY(mica_net_set_rows(net, rows));
    for (int i = 0; i < net->built_values; i++) {
        const mica_value_info *root = &net->values[net->values[i].root];
        if (root->whole)
            net->values[i].tensor.data = rows_data(net, root, first);
    }
    return MICA_OK;
}

#if !defined(MICA_SMALL)
void mica_net_select_rows(const mica_net *net, mica_tensor *tensors, mica_index first)
{
    for (int i = 0; i < net->built_values; i++) {
        const mica_value_info *root = &net->values[net->values[i].root];
        if (root->whole)
            tensors[i].data = rows_data(net, root, first);
    }
}
#endif

mica_tensor mica_net_whole(const mica_net *net, int number)
{
    const mica_value_info *v = &net->values[number], *root = &net->values[v->root];
    mica_tensor t = v->tensor;
    if (!root->whole)
        return t;
    /* The first axis holds the batch, alone or with others folded into it: it grows as the batch does. */
    if (net->size[0].now > 0)
        t.dim[0] = t.dim[0] / net->size[0].now * net->rows;
    t.data = whole_data(net, root);
    return t;
}
