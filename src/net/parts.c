/* Steps in parts: the program is run several times, each time for some rows of the batch, and the gradients are added
 * up. Inputs, outputs and states of each sample hold the whole batch; everything between has room for one part only. */
#include "net/net.h"

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
    return of_samples && node->op->mixes != NULL && node->op->mixes(&infer);
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

bool mica_net_can_part(mica_net *net)
{
    mica_index most = net->size[0].most, rows = (most + 1) / 2;
    if (most < 2)
        return false;
    bool can = net->sizes_fixed == NULL;
    for (int n = 0; n < net->node_count && can; n++)
        can = !mixes(net, &net->nodes[n]) && !reads_loss(net, &net->nodes[n]);
    net->size[0].now = rows;
    can = can && mica_net_update_shapes(net) == MICA_OK;
    for (int i = 0; i < net->built_values && can; i++) /* what an operation makes besides is its own affair */
        can = net->values[i].number > 0 || follows_first(&net->values[i], rows, most);
    for (int n = 0; n < net->node_count && can; n++)
        can = carries_on(net, &net->nodes[n]);
    net->size[0].now = most;
    return mica_net_update_shapes(net) == MICA_OK && can;
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

mica_status mica_net_select_part(mica_net *net, mica_index first, mica_index rows)
{
    if (net->size[0].now != rows)
        MICA_TRY(mica_net_set_rows(net, rows));
    for (int i = 0; i < net->built_values; i++) {
        mica_value_info *v = &net->values[i];
        const mica_value_info *root = &net->values[v->root];
        if (root->whole)
            v->tensor.data = whole_data(net, root) + (size_t)first * (mica_tensor_bytes(&root->tensor) /
                                                                      (size_t)(rows > 0 ? rows : 1));
    }
    return MICA_OK;
}

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
