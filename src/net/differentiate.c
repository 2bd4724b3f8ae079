/* Differentiation: behind the forward calls, the backward calls that their operations write down.
 *
 * The first part of a gradient is written, later ones are added. A gradient that is passed on as it is (through an
 * addition, a view) is the same value under another name: it is not owned, and adding to it makes a new value. */
#include <string.h>

#include "net/net.h"
#include "node/entry.h"

/* ---- Where gradients flow ---- */

static bool is_real(mica_dtype dtype)
{
    return dtype == MICA_F32 || dtype == MICA_F64 || dtype == MICA_F16 || dtype == MICA_BF16;
}

/* A value's gradient is wanted if something that is learned lies behind it. */
static void mark_wanted(mica_net *net)
{
    for (int i = 0; i < net->value_count; i++)
        net->values[i].wanted = net->values[i].home == MICA_HOME_LEARNED && !net->values[i].frozen;
    for (int e = 0; e < net->forward_count; e++) {
        const mica_node *node = &net->entries[e].node;
        bool wanted = false;
        for (int i = 0; i < node->ins; i++)
            wanted = wanted || (node->in[i] != NONE && net->values[node->in[i]].wanted);
        wanted = wanted && (node->op->gradient != NULL || (node->op->flags & MICA_OP_VIEW));
        for (int k = 0; k < node->outs; k++)
            if (node->out[k] != NONE)
                net->values[node->out[k]].wanted = wanted && is_real(net->values[node->out[k]].tensor.dtype);
    }
}

/* ---- Values and calls ---- */

/* A value of the shape of another, f32. */
static int new_like(mica_net *net, int like, mica_home home, mica_buffer_kind kind, const char *name)
{
    mica_tensor shape = net->values[like].tensor;
    shape.dtype = MICA_F32;
    shape = mica_tensor_like(&shape, NULL);
    int value = mica_net_new_value(net, NULL, home, kind, &shape);
    if (value == NONE)
        return NONE;
    mica_value_info *v = &net->values[value];
    v->name = name; /* for people: it is not found by it */
    v->like = like;
    v->layer = net->values[like].layer;
    memcpy(v->built, net->values[like].built, sizeof v->built);
    return value;
}

static int new_gradient(mica_net *net, int of)
{
    bool learned = net->values[of].home == MICA_HOME_LEARNED;
    const char *name = mica_net_text(net, "d %s", mica_net_value_name(net, of));
    if (name == NULL)
        return NONE;
    int value = new_like(net, of, learned ? MICA_HOME_LEARNED : MICA_HOME_PLANNED,
                         learned ? MICA_BUFFER_GRADIENT : MICA_BUFFER_BACK, name);
    if (value == NONE)
        return NONE;
    net->values[value].owned = true;
    net->values[value].wanted = false;
    net->values[of].gradient = value;
    return value;
}

/* A backward call of the same node as the one whose gradient is written down; outputs are to be filled in. */
static mica_entry *new_call(mica_grad *g, const mica_op *op, const mica_value *ins, int count, const void *opts)
{
    mica_net *net = g->net;
    if (net->status != MICA_OK)
        return NULL;
    mica_node node;
    int origin = net->entries[g->call].origin, layer = net->entries[g->call].node.layer;
    if (mica_net_make_node(net, &node, op, ins, count, opts) != MICA_OK)
        return NULL;
    node.layer = layer;
    for (int k = 0; k < MICA_OP_OUTS; k++)
        node.out[k] = NONE;
    return mica_net_new_entry(net, &node, MICA_PHASE_BACKWARD, origin);
}

/* out = in, or out += in: how a parameter gets a gradient that is another value's as well. */
static mica_status put(const mica_call *c)
{
    return c->add & 1u ? mica_add(c->ctx, c->out[0], c->out[0], c->in[0]) : mica_copy(c->ctx, c->out[0], c->in[0]);
}
static const mica_op put_op = {.name = "put", .ins = 1, .outs = 1, .adds = 1, .in_place = {1}, .run = put};

/* gradient of `of` = what it was + part */
static void add_part(mica_grad *g, int of, int part)
{
    mica_net *net = g->net;
    int before = net->values[of].gradient;
    mica_entry *entry = new_call(g, &mica_op_add, (mica_value[]){before + 1, part + 1}, 2, NULL);
    int entry_number = net->entry_count - 1, sum = entry != NULL ? new_gradient(net, of) : NONE;
    if (sum != NONE)
        net->entries[entry_number].node.out[0] = sum;
}

/* Whether a sum behind the call `number` makes a gradient: the call runs before, so it cannot add to it. */
static bool is_made_behind(const mica_net *net, int gradient, int number)
{
    for (int e = number + 1; e < net->entry_count; e++)
        if (net->entries[e].node.out[0] == gradient)
            return true;
    return false;
}

/* Lets output k of the call `number` be a part of the gradient of value `of`. */
static void direct(mica_grad *g, int number, int k, int of)
{
    mica_net *net = g->net;
    const mica_op *op = net->entries[number].node.op;
    bool can_add = (op->adds >> k & 1u) != 0;
    bool learned = net->values[of].home == MICA_HOME_LEARNED;
    bool first = net->values[of].gradient == NONE;
    int gradient = first ? new_gradient(net, of) : net->values[of].gradient;
    if (gradient == NONE)
        return;
    for (int other = 0; other < k; other++) /* one call cannot write and add to the same */
        can_add = can_add && net->entries[number].node.out[other] != gradient;
    if (!first && (!net->values[gradient].owned || is_made_behind(net, gradient, number))) {
        int part = new_like(net, of, MICA_HOME_PLANNED, MICA_BUFFER_BACK, "part of a gradient");
        if (part == NONE)
            return;
        net->entries[number].node.out[k] = part;
        add_part(g, of, part);
        return;
    }
    mica_entry *entry = &net->entries[number];
    entry->node.out[k] = gradient;
    entry->add |= first ? 0u : 1u << k;
    entry->learned |= learned ? 1u << k : 0u;
    if (can_add || (first && !learned))
        return;
    int part = new_like(net, of, MICA_HOME_PLANNED, MICA_BUFFER_SCRATCH, "part of a gradient");
    net->entries[number].part[k] = part;
}

/* An output that the operation must have, though it is no wanted gradient, is like the input whose gradient it would
 * be, or that it may lie over. */
static void lay_over(mica_net *net, int number, int k, mica_value of)
{
    const mica_node *node = &net->entries[number].node;
    if (of != 0) {
        int value = new_like(net, of - 1, MICA_HOME_PLANNED, MICA_BUFFER_SCRATCH, "of a backward");
        net->entries[number].node.out[k] = value;
        return;
    }
    for (int i = 0; i < node->ins; i++)
        if ((node->op->in_place[k] >> i & 1u) && node->in[i] != NONE) {
            int value = new_like(net, node->in[i], MICA_HOME_PLANNED, MICA_BUFFER_SCRATCH, "of a backward");
            net->entries[number].node.out[k] = value;
            return;
        }
}

/* ---- What an operation's gradient calls ---- */

bool mica_grad_wants(const mica_grad *g, int in)
{
    return in >= 0 && in < g->ins && g->in[in] != 0 && g->net->values[g->in[in] - 1].wanted &&
           g->net->status == MICA_OK;
}

void mica_grad_give(mica_grad *g, int in, const mica_op *op, const mica_value *ins, int count, const void *opts)
{
    mica_grad_give_all(g, &in, 1, op, ins, count, opts);
}

void mica_grad_give_all(mica_grad *g, const int *which, int outs, const mica_op *op, const mica_value *ins,
                        int count, const void *opts)
{
    bool any = false;
    for (int k = 0; k < outs; k++)
        any = any || mica_grad_wants(g, which[k]);
    if (!any || new_call(g, op, ins, count, opts) == NULL)
        return;
    int number = g->net->entry_count - 1;
    for (int k = 0; k < outs; k++) {
        if (mica_grad_wants(g, which[k]))
            direct(g, number, k, g->in[which[k]] - 1);
        else if (!(op->optional_outs >> k & 1u))
            lay_over(g->net, number, k, which[k] >= 0 ? g->in[which[k]] : 0);
    }
}

void mica_grad_pass(mica_grad *g, int in, mica_value value)
{
    if (!mica_grad_wants(g, in) || value == 0)
        return;
    int of = g->in[in] - 1;
    const mica_tensor *x = &g->net->values[of].tensor, *dx = &g->net->values[value - 1].tensor;
    if (!mica_tensor_same_shape(x, dx)) {
        (void)mica_net_refuse(g->net, MICA_ERR_SHAPE,
                              "%s passes %s on as the gradient of its input %d, which is %s", g->op->name,
                              MICA_SHAPE(dx), in, MICA_SHAPE(x));
    } else if (g->net->values[of].home == MICA_HOME_LEARNED) {
        mica_grad_give(g, in, &put_op, &value, 1, NULL);
    } else if (g->net->values[of].gradient == NONE) {
        g->net->values[of].gradient = value - 1;
        g->net->values[value - 1].owned = false;
    } else {
        add_part(g, of, value - 1);
    }
}

void mica_grad_pass_summed(mica_grad *g, int in, mica_value value)
{
    if (!mica_grad_wants(g, in) || value == 0)
        return;
    if (mica_tensor_same_shape(&g->net->values[g->in[in] - 1].tensor, &g->net->values[value - 1].tensor))
        mica_grad_pass(g, in, value);
    else
        mica_grad_give(g, in, &mica_op_sum_to, &value, 1, NULL);
}

mica_value mica_grad_value(mica_grad *g, const mica_op *op, const mica_value *ins, int count, const void *opts)
{
    mica_net *net = g->net;
    mica_entry *entry = new_call(g, op, ins, count, opts);
    if (entry == NULL)
        return 0;
    mica_infer infer;
    mica_status status = mica_net_infer_node(net, &entry->node, &infer);
    if (status == MICA_OK)
        status = mica_net_grow(net, &net->makers, net->maker_count, &net->maker_room, sizeof *net->makers);
    if (status != MICA_OK) {
        (void)mica_net_failed(net, status);
        return 0;
    }
    int value = mica_net_new_value(net, NULL, MICA_HOME_PLANNED, MICA_BUFFER_BACK, &infer.out[0]);
    if (value == NONE)
        return 0;
    entry = &net->entries[net->entry_count - 1];
    entry->node.out[0] = value;
    net->values[value].maker = net->maker_count;
    net->values[value].layer = entry->node.layer;
    net->values[value].name = "on the way to a gradient";
    net->makers[net->maker_count] = entry->node;
    net->makers[net->maker_count++].outs = 1;
    return value + 1;
}

mica_tensor mica_grad_shape(const mica_grad *g, mica_value value)
{
    return mica_tensor_like(&g->net->values[value - 1].tensor, NULL);
}

/* ---- The pass ---- */

/* A view's gradient is its output's, under its input's shape. */
static void pass_through_view(mica_grad *g)
{
    mica_net *net = g->net;
    if (!mica_grad_wants(g, 0))
        return;
    int dout = g->dout[0] - 1, view = new_like(net, g->in[0] - 1, MICA_HOME_PLANNED, MICA_BUFFER_BACK, NULL);
    if (view == NONE)
        return;
    net->values[view].root = net->values[dout].root;
    net->values[view].name = net->values[dout].name;
    mica_grad_pass(g, 0, view + 1);
}

/* Every output that a call of a gradient cannot do without goes somewhere. */
static void check_outputs(mica_net *net, const mica_op *of, int first)
{
    for (int e = first; e < net->entry_count; e++) {
        const mica_node *node = &net->entries[e].node;
        for (int k = 0; k < node->outs; k++)
            if (node->out[k] == NONE && !(node->op->optional_outs >> k & 1u))
                (void)mica_net_refuse(
                    net, MICA_ERR_ARGUMENT,
                    "the gradient of %s calls %s, whose output %d is not optional and goes nowhere", of->name,
                    node->op->name, k);
    }
}

static void differentiate_call(mica_net *net, int number)
{
    const mica_node *node = &net->entries[number].node;
    mica_grad g = {
        .net = net, .op = node->op, .opts = node->opts, .ins = node->ins, .outs = node->outs, .call = number};
    bool any = false, loss = (node->op->flags & MICA_OP_LOSS) != 0;
    for (int i = 0; i < node->ins; i++)
        g.in[i] = node->in[i] + 1;
    for (int k = 0; k < node->outs; k++) {
        g.out[k] = node->out[k] + 1;
        int gradient = node->out[k] != NONE ? net->values[node->out[k]].gradient : NONE;
        g.dout[k] = gradient + 1;
        any = any || gradient != NONE;
    }
    if (!any && !loss)
        return;
    if (node->op->flags & MICA_OP_VIEW)
        pass_through_view(&g);
    else if (g.op->gradient != NULL) {
        int first = net->entry_count;
        g.op->gradient(&g);
        check_outputs(net, g.op, first);
    }
}

mica_status mica_net_differentiate(mica_net *net)
{
    mark_wanted(net);
    for (int e = net->forward_count - 1; e >= 0 && net->status == MICA_OK; e--)
        differentiate_call(net, e);
    return net->status;
}
