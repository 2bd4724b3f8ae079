/* Values made from nothing, or from random numbers that both sides can count. */
#include <string.h>

#include "export/nest.h"

static void emit_fill(emitter *e, const call *c)
{
    const mica_make_opts *o = c->opts;
    double number = strcmp(c->name, "fill") == 0 && o != NULL ? o->value
                    : strcmp(c->name, "ones") == 0            ? 1.0
                                                              : 0.0;
    const value *y = out_value(e, 0);
    emit(e, "for (int i = 0; i < %zu; i++)", y->count);
    if (y->dtype == MICA_F32)
        emit(e, "    %s[i] = %s;", out_name(e, 0), float_text(number));
    else
        emit(e, "    %s[i] = %d;", out_name(e, 0), (int)number);
}

static void emit_range(emitter *e, const call *c)
{
    const mica_make_opts *o = c->opts;
    const value *y = out_value(e, 0);
    emit(e, "for (int i = 0; i < %zu; i++)", y->count);
    emit(e, "    %s[i] = %s(%s + %s * (float)i);", out_name(e, 0), y->dtype == MICA_F32 ? "" : "(int32_t)",
         float_text(o->start), float_text(o->step != 0.0 ? o->step : 1.0));
}

const export_op export_make_ops[] = {
    {.name = "zeros", .emit = emit_fill},
    {.name = "ones", .emit = emit_fill},
    {.name = "fill", .emit = emit_fill},
    {.name = "range", .emit = emit_range},
    {.name = NULL},
};
