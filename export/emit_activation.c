/* Activations at the end of other operations: those on their own are among the formulas of emit_elementwise.c. */
#include <stdio.h>

#include "export/formula.h"

void emit_activation(emitter *e, const char *name, size_t count, const char *prefix)
{
    char field[64];
    snprintf(field, sizeof field, "%sslope", prefix);
    double slope = call_number(e->c, field, 0);
    snprintf(field, sizeof field, "%sactivation", prefix);
    emit_finish(e, name, count, (mica_activation)call_int(e->c, field, 0), slope);
}

/* All can. */
const char *refuse_activation(const call *c, const char *prefix)
{
    (void)c;
    (void)prefix;
    return NULL;
}

const export_op export_activation_ops[] = {{0}};
