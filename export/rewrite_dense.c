/* The gradients of a dense layer, by weights, bias and input, in one pass over its weights. */
#include <string.h>

#include "export/emit.h"
#include "export/rewrite.h"

/* The call of this name behind number `at` that reads the same gradient; NONE: there is none. */
static int find_with(const graph *g, int at, const char *name)
{
    const call *weight = &g->calls[at];
    for (int n = at + 1; n < g->call_count; n++)
        if (strcmp(g->calls[n].name, name) == 0 && g->calls[n].in[0] == weight->in[0])
            return n;
    return NONE;
}

/* The weights of a linear call whose gradient this is. */
static int weights_of(const graph *g, int gradient)
{
    return g->values[gradient].home == VALUE_GRADIENT ? g->values[g->values[gradient].root].of : NONE;
}

static bool join(graph *g, int at)
{
    int bias = find_with(g, at, "linear_backward_bias"), input = find_with(g, at, "linear_backward_input");
    int w = weights_of(g, g->calls[at].out[0]);
    if (w == NONE || (bias == NONE && input == NONE))
        return false;
    if (input != NONE && g->values[g->calls[input].in[1]].root != g->values[w].root)
        return false; /* of another layer that shares its gradient */
    call c = g->calls[at];
    c.name = "linear_backward";
    c.ins = c.outs = 3;
    c.in[2] = input != NONE ? g->calls[input].in[1] : w;
    c.out[1] = bias != NONE ? g->calls[bias].out[0] : NONE;
    c.out[2] = input != NONE ? g->calls[input].out[0] : NONE;
    c.add = (c.add & 1u) | (bias != NONE ? (g->calls[bias].add & 1u) << 1 : 0u) |
            (input != NONE ? (g->calls[input].add & 1u) << 2 : 0u);
    memset(c.in_place, 0, sizeof c.in_place);
    int last = input > bias ? input : bias, other = input > bias ? bias : input;
    g->calls[last] = c;
    if (other != NONE)
        graph_drop_call(g, other);
    graph_drop_call(g, at);
    return true;
}

/* Gradients of activations that are made of the result alone, y, which the next layer reads too. */
static bool is_gradient_by_result(const char *name)
{
    static const char *const names[] = {"relu_backward", "relu6_backward",   "leaky_relu_backward",
                                        "elu_backward",  "sigmoid_backward", "tanh_backward"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* The gradient of the activation before a small layer is made in the same loop, and so may lie over what it is read
 * from. */
static void join_activation(graph *g, int at)
{
    call *c = &g->calls[at];
    if (c->out[2] == NONE || (c->add & 4u) || !is_small_dense(&g->values[c->in[1]], &g->values[c->in[0]]))
        return;
    int reader = graph_only_reader(g, c->out[2]);
    if (reader == NONE || (g->calls[reader].add & 1u))
        return;
    const call *next = &g->calls[reader];
    if (!is_gradient_by_result(next->name) || g->values[next->in[1]].root != g->values[c->in[1]].root)
        return;
    c->out[2] = next->out[0];
    c->also = next->name;
    c->slope = (float)call_number(next, "s", 0);
    c->in_place[2] = 2;
    graph_drop_call(g, reader);
}

bool rewrite_dense(graph *g)
{
    for (int n = 0; n < g->call_count; n++)
        if (strcmp(g->calls[n].name, "linear_backward_weight") == 0 && join(g, n))
            n--;
    for (int n = 0; n < g->call_count; n++)
        if (strcmp(g->calls[n].name, "linear_backward") == 0)
            join_activation(g, n);
    return true;
}
