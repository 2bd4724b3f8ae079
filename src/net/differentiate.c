/* Differentiation: behind the forward calls, the backward calls that their operations write down.
 *
 * The first addend of a gradient is written, later ones are added. A gradient that is passed on as it is (through an
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
static mica_entry *new_call(mica_grad *g, const mica_op *op, const mica_value *ins, int count,
                            const void *opts)
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
    return c->add & 1u ? mica_add(c->ctx, c->out[0], c->out[0], c->in[0])
                       : mica_copy(c->ctx, c->out[0], c->in[0]);
}
static const mica_op put_op = {.name = "put", .ins = 1, .outs = 1, .adds = 1, .in_place = {1}, .run = put};

/* gradient of `of` = what it was + addend */
static void add_addend(mica_grad *g, int of, int addend)
{
    mica_net *net = g->net;
    int before = net->values[of].gradient;
    mica_entry *entry = new_call(g, &mica_op_add, (mica_value[]){before + 1, addend + 1}, 2, NULL);
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

/* Lets output k of the call `number` be an addend of the gradient of value `of`. */
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
        int addend = new_like(net, of, MICA_HOME_PLANNED, MICA_BUFFER_BACK, "addend of a gradient");
        if (addend == NONE)
            return;
        net->entries[number].node.out[k] = addend;
        add_addend(g, of, addend);
        return;
    }
    mica_entry *entry = &net->entries[number];
    entry->node.out[k] = gradient;
    entry->add |= first ? 0u : 1u << k;
    entry->learned |= learned ? 1u << k : 0u;
    if (can_add || (first && !learned))
        return;
    int addend = new_like(net, of, MICA_HOME_PLANNED, MICA_BUFFER_SCRATCH, "addend of a gradient");
    net->entries[number].addend[k] = addend;
}

/* An output that the operation must have, though it is no wanted gradient, is like the input whose gradient it would
 * be, or that it may lie over. */
static void lay_over(const mica_grad *g, int number, int k, mica_value of)
{
    mica_net *net = g->net;
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
    (void)mica_net_refuse(net, MICA_ERR_ARGUMENT,
                          "the gradient of %s: output %d of %s must be there, of no known shape", g->op->name,
                          k, node->op->name);
}

/* ---- What an operation's gradient calls ---- */

bool mica_grad_wants(const mica_grad *g, int in)
{
    return in >= 0 && in < g->ins && g->in[in] != 0 && g->net->values[g->in[in] - 1].wanted &&
           g->net->status == MICA_OK;
}

void mica_grad_give(mica_grad *g, int in, const mica_op *op, const mica_value *ins, int count,
                    const void *opts)
{
    mica_grad_give_all(g, &in, 1, op, ins, count, opts);
}

void mica_grad_give_all(mica_grad *g, const int *which, int outs, const mica_op *op, const mica_value *ins,
                        int count, const void *opts)
{
    bool any = false;
    for (int k = 0; k < outs && which != NULL; k++)
        any = any || mica_grad_wants(g, which[k]);
    if (any && op != NULL &&
        (op->flags & MICA_OP_VIEW)) { /* nothing runs: the value is there under another shape */
        mica_grad_pass(g, which[0], mica_grad_value(g, op, ins, count, opts));
        return;
    }
    if (!any || new_call(g, op, ins, count, opts) == NULL)
        return;
    if (outs > op->outs || (~op->optional_outs & ((1u << op->outs) - 1u)) >> outs != 0) {
        (void)mica_net_refuse(g->net, MICA_ERR_ARGUMENT,
                              "the gradient of %s takes %d outputs of %s, which has %d", g->op->name, outs,
                              op->name, op->outs);
        return;
    }
    int number = g->net->entry_count - 1;
    for (int k = 0; k < outs; k++) {
        if (mica_grad_wants(g, which[k]))
            direct(g, number, k, g->in[which[k]] - 1);
        else if (!(op->optional_outs >> k & 1u))
            lay_over(g, number, k, which[k] >= 0 && which[k] < g->ins ? g->in[which[k]] : 0);
    }
}

/* Whether a value can be the gradient of input `in`: f32, and of its shape. Fails the plan otherwise. */
static bool fits(mica_grad *g, int in, mica_value value)
{
    mica_net *net = g->net;
    if (mica_net_check_value(net, value, "a gradient") != MICA_OK)
        return false;
    const mica_tensor *want = &net->values[g->in[in] - 1].tensor, *have = &net->values[value - 1].tensor;
    if (have->dtype != MICA_F32 || !mica_tensor_same_shape(want, have))
        (void)mica_net_refuse(net, MICA_ERR_SHAPE, "the gradient of %s gives %s %s for input %d, which is %s",
                              g->op->name, mica_dtype_name(have->dtype), MICA_SHAPE(have), in,
                              MICA_SHAPE(want));
    return net->status == MICA_OK;
}

void mica_grad_pass(mica_grad *g, int in, mica_value value)
{
    if (!mica_grad_wants(g, in) || value == 0 || !fits(g, in, value))
        return;
    int of = g->in[in] - 1;
    if (g->net->values[of].home == MICA_HOME_LEARNED) {
        mica_grad_give(g, in, &put_op, &value, 1, NULL);
    } else if (g->net->values[of].gradient == NONE) {
        g->net->values[of].gradient = value - 1;
        g->net->values[value - 1].owned = false;
    } else {
        add_addend(g, of, value - 1);
    }
}

void mica_grad_pass_summed(mica_grad *g, int in, mica_value value)
{
    if (!mica_grad_wants(g, in) || value == 0 || mica_net_check_value(g->net, value, "a gradient") != MICA_OK)
        return;
    if (mica_tensor_same_shape(&g->net->values[g->in[in] - 1].tensor, &g->net->values[value - 1].tensor))
        mica_grad_pass(g, in, value);
    else
        mica_grad_give(g, in, &mica_op_sum_to, &value, 1, NULL);
}

mica_value mica_grad_value(mica_grad *g, const mica_op *op, const mica_value *ins, int count,
                           const void *opts)
{
    mica_net *net = g->net;
    mica_entry *entry = new_call(g, op, ins, count, opts);
    if (entry == NULL)
        return 0;
    mica_infer infer;
    mica_status status = mica_net_infer_node(net, &entry->node, &infer);
    if (status == MICA_OK)
        status = mica_net_check_outputs(net, &entry->node, &infer.out[0]);
    if (status == MICA_OK)
        status = mica_net_grow(net, &net->makers, net->maker_count, &net->maker_room, sizeof *net->makers);
    if (status != MICA_OK) {
        (void)mica_net_failed(net, status);
        return 0;
    }
    entry = &net->entries[net->entry_count - 1];
    for (int k = 0; k < op->outs; k++) {
        if (k > 0 && (op->optional_outs >> k & 1u))
            continue;
        int value = mica_net_new_value(net, NULL, MICA_HOME_PLANNED, MICA_BUFFER_BACK, &infer.out[k]);
        if (value == NONE)
            return 0;
        entry->node.out[k] = value;
        net->values[value].maker = net->maker_count;
        net->values[value].number = k;
        net->values[value].layer = entry->node.layer;
        net->values[value].name = "on the way to a gradient";
    }
    int value = entry->node.out[0];
    if (op->flags & MICA_OP_VIEW)
        net->values[value].root = net->values[entry->node.in[0]].root;
    net->makers[net->maker_count++] = entry->node;
    return value + 1;
}

mica_tensor mica_grad_shape(const mica_grad *g, mica_value value)
{
    if (value < 1 || value > g->net->value_count)
        return mica_0d(NULL); /* a failure that was recorded, or a value that is not there */
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

/* Gradients are not left out in silence: false, with an error recorded, where one would have to be. */
static bool check_fixed(const mica_grad *g)
{
    for (int i = 0; i < g->ins; i++)
        if ((g->op->fixed_ins >> i & 1u) && mica_grad_wants(g, i))
            (void)mica_net_refuse(
                g->net, MICA_ERR_ARGUMENT,
                "\"%s\" is learned, or made of something learned, but %s has no gradient by its input %d",
                mica_net_value_name(g->net, g->in[i] - 1), g->op->name, i);
    for (int k = 0; k < g->outs; k++)
        if ((g->op->fixed_outs >> k & 1u) && g->dout[k] != 0)
            (void)mica_net_refuse(g->net, MICA_ERR_ARGUMENT,
                                  "a loss depends on output %d of %s, which has no gradient", k, g->op->name);
    return g->net->status == MICA_OK;
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
    if ((!any && !loss) || !check_fixed(&g))
        return;
    if (node->op->flags & MICA_OP_VIEW)
        pass_through_view(&g);
    else if (g.op->gradient != NULL)
        g.op->gradient(&g);
}

/* A backward call reads what its forward read: not so of a kept value that was changed in between. */
static mica_status check_kept(mica_net *net)
{
    for (int e = net->forward_count; e < net->entry_count && net->status == MICA_OK; e++) {
        const mica_entry *entry = &net->entries[e];
        for (int i = 0; i < entry->node.ins; i++) {
            int in = entry->node.in[i];
            if (in != NONE && mica_net_changes_later(net, in, entry->origin))
                (void)mica_net_refuse(
                    net, MICA_ERR_STATE,
                    "the gradient of %s in layer \"%s\" reads \"%s\", which a later layer writes to: "
                    "let it read a copy",
                    net->nodes[entry->origin].op->name, net->layers[entry->node.layer].name,
                    mica_net_value_text(net, net->values[in].root).text);
        }
    }
    return net->status;
}

mica_status mica_net_differentiate(mica_net *net)
{
    mark_wanted(net);
    for (int e = net->forward_count - 1; e >= 0 && net->status == MICA_OK; e--)
        differentiate_call(net, e);
    return net->status == MICA_OK ? check_kept(net) : net->status;
}
