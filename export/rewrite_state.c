/* What is kept from step to step: the count of steps, where random numbers follow it; not which rows of an embedding
 * were used, as gradients are always added to what is there. */
#include <string.h>

#include "export/rewrite.h"

static bool is_random(const call *c) { return c->op != NULL && (c->op->flags & MICA_OP_RANDOM); }

static bool count_steps(graph *g)
{
    bool any = false;
    for (int n = 0; n < g->call_count; n++)
        any = any || is_random(&g->calls[n]);
    if (!any || !g->train)
        return true;
    value v = {.name = "steps_taken",
               .home = VALUE_KEPT,
               .dtype = MICA_F32,
               .rank = 1,
               .dim = {1},
               .count = 1,
               .root = g->value_count,
               .of = NONE,
               .group = NONE,
               .kept = MICA_KEPT_STATE};
    int steps = graph_add_value(g, &v);
    if (steps == NONE)
        return false;
    for (int n = 0; n < g->call_count; n++)
        if (is_random(&g->calls[n]))
            g->calls[n].steps = steps;
    call c = {.name = "count_step",
              .phase = MICA_PHASE_BACKWARD,
              .layer = "",
              .kind = "random",
              .scratch = NONE,
              .steps = steps};
    return graph_add_call(g, g->call_count, &c) != NULL;
}

static void drop_marks(graph *g)
{
    for (int n = 0; n < g->call_count; n++) {
        call *c = &g->calls[n];
        if (strncmp(c->name, "embedding", 9) != 0 || c->ins < 3 || c->in[2] == NONE)
            continue;
        g->values[g->values[c->in[2]].root].home = VALUE_CONST; /* and read by nothing: not written out */
        c->in[2] = NONE;
    }
}

bool rewrite_state(graph *g)
{
    drop_marks(g);
    return count_steps(g);
}
