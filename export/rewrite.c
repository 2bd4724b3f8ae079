/* A few calls into one that suits a small device better. */
#include <string.h>

#include "export/rewrite.h"

/* From here on, `to` stands wherever `from` did. */
static void replace(graph *g, int from, int to)
{
    for (int n = 0; n < g->call_count; n++) {
        call *c = &g->calls[n];
        for (int i = 0; i < c->ins; i++)
            if (c->in[i] == from)
                c->in[i] = to;
        for (int k = 0; k < c->outs; k++)
            if (c->out[k] == from)
                c->out[k] = to;
    }
    for (int i = 0; i < g->value_count; i++)
        if (g->values[i].root == from)
            g->values[i].root = g->values[to].root;
}

/* A loss has scaled its gradient already: the call that would is dropped. */
static void drop_loss_gradients(graph *g)
{
    for (int n = g->call_count - 1; n >= 0; n--) {
        call c = g->calls[n];
        if (strcmp(c.name, "loss_gradient") == 0 && graph_only_reader(g, c.in[0]) == n && !(c.add & 1u) &&
            root_of(g, c.out[0])->home != VALUE_GRADIENT) {
            graph_drop_call(g, n);
            replace(g, c.out[0], c.in[0]);
        }
    }
}

/* The loss itself is a variable of the step. */
static void drop_loss_values(graph *g)
{
    for (int n = 0; n < g->call_count; n++) {
        call *c = &g->calls[n];
        if (c->op != NULL && (c->op->flags & MICA_OP_LOSS) && graph_only_reader(g, c->out[0]) == NONE)
            c->out[0] = NONE;
    }
}

bool graph_rewrite(graph *g)
{
    drop_loss_gradients(g);
    drop_loss_values(g);
    return rewrite_state(g) && rewrite_conv_pool(g) && rewrite_dense(g) && rewrite_int8(g);
}
