/* Calls that move or add memory as it is. */
#include "export/emit.h"

static void emit_add_to(emitter *e, const call *c)
{
    (void)c;
    use_kernel(e, "add_to");
    emit(e, "add_to(%s, %s, %zu);", out_name(e, 0), in_name(e, 0), in_value(e, 0)->count);
}

/* A gradient that is passed on: moved, unless it already lies there. */
static void emit_put(emitter *e, const call *c)
{
    if (c->add & 1u)
        emit_add_to(e, c);
    else if (root_of(e->g, c->in[0])->offset != root_of(e->g, c->out[0])->offset)
        emit(e, "memcpy(%s, %s, %zu * sizeof *%s);", out_name(e, 0), in_name(e, 0), in_value(e, 0)->count,
             out_name(e, 0));
}

const export_op export_memory_ops[] = {
    {.name = "add_to", .emit = emit_add_to, .only_adds = 1},
    {.name = "put", .emit = emit_put, .adds = 1},
    {.name = "loss_gradient", .emit = emit_put, .adds = 1}, /* losses have scaled it already */
    {0},
};
