/* Values made from nothing, or from random numbers that both sides can count. */
#include <math.h>
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

/* ---- Tables by position: computed here, in double precision ---- */

static double table_number(const call *c, mica_index row, mica_index column, mica_index columns)
{
    double base = call_number(c, "base", 0);
    base = base != 0.0 ? base : 10000.0;
    if (strcmp(c->name, "rotary_table") == 0) { /* cosines, then sines */
        mica_index half = columns / 2, pair = column < half ? column : column - half;
        double angle = (double)row * pow(base, -2.0 * (double)pair / (double)columns);
        return column < half ? cos(angle) : sin(angle);
    }
    double angle = (double)row * pow(base, -(double)(column - column % 2) / (double)columns);
    return column % 2 == 0 ? sin(angle) : cos(angle);
}

static void emit_table(emitter *e, const call *c)
{
    const value *y = out_value(e, 0);
    emit(e, "static const float table[%zu] = {", y->count);
    for (mica_index row = 0; row < y->dim[0]; row++) {
        text line = {0};
        for (mica_index column = 0; column < y->dim[1]; column++)
            text_put(&line, "%s,%s", float_text(table_number(c, row, column, y->dim[1])),
                     column + 1 < y->dim[1] ? " " : "");
        emit(e, "    %s", line.bytes != NULL ? line.bytes : "");
        e->out->failed |= line.failed;
        text_free(&line);
    }
    emit(e, "};");
    emit(e, "memcpy(%s, table, sizeof table);", out_name(e, 0));
}

const export_op export_make_ops[] = {
    {.name = "rotary_table", .emit = emit_table},
    {.name = "sinusoidal_table", .emit = emit_table},
    {.name = "zeros", .emit = emit_fill},
    {.name = "ones", .emit = emit_fill},
    {.name = "fill", .emit = emit_fill},
    {.name = "range", .emit = emit_range},
    {.name = NULL},
};
