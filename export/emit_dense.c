/* Products of rows with a matrix of weights. */
#include <stdio.h>

#include "export/formula.h"

/* Layers of no more weights than this are written out as loops over constants, which the compiler unrolls. */
#define SMALL 64

bool is_small_dense(const value *x, const value *y)
{
    return rows_of(x) == 1 && columns_of(x) * columns_of(y) <= SMALL;
}

static void emit_small(emitter *e, int outputs, int inputs)
{
    emit(e, "for (int o = 0; o < %d; o++) {", outputs);
    if (e->c->ins > 2 && e->c->in[2] != NONE)
        emit(e, "    float sum = %s[o];", in_name(e, 2));
    else
        emit(e, "    float sum = 0.0f;");
    emit(e, "    for (int i = 0; i < %d; i++)", inputs);
    emit(e, "        sum += %s[%d * o + i] * %s[i];", in_name(e, 1), inputs, in_name(e, 0));
    emit(e, "    %s[o] = sum;", out_name(e, 0));
    emit(e, "}");
}

static void emit_linear(emitter *e, const call *c)
{
    const value *x = in_value(e, 0), *y = out_value(e, 0);
    (void)c;
    if (is_small_dense(x, y))
        emit_small(e, columns_of(y), columns_of(x));
    else {
        use_kernel(e, "dense");
        emit(e, "dense(%s, %s, %s, %s, %d, %d, %d);", out_name(e, 0), in_name(e, 0), in_name(e, 1),
             in_name(e, 2), rows_of(x), columns_of(y), columns_of(x));
    }
    emit_activation(e, out_name(e, 0), y->count, "");
}

static const char *refuse_linear(const graph *g, const call *c)
{
    (void)g;
    return refuse_activation(c, "");
}

static void emit_backward_weight(emitter *e, const call *c)
{
    const value *dy = in_value(e, 0), *x = in_value(e, 1);
    (void)c;
    use_kernel(e, "dense_backward_weight");
    emit(e, "dense_backward_weight(%s, %s, %s, %d, %d, %d);", out_name(e, 0), in_name(e, 0), in_name(e, 1),
         rows_of(dy), columns_of(dy), columns_of(x));
}

static void emit_backward_bias(emitter *e, const call *c)
{
    const value *dy = in_value(e, 0);
    (void)c;
    if (rows_of(dy) == 1) {
        use_kernel(e, "add_to");
        emit(e, "add_to(%s, %s, %d);", out_name(e, 0), in_name(e, 0), columns_of(dy));
        return;
    }
    use_kernel(e, "channel_sums");
    emit(e, "channel_sums(%s, %s, %d, %d, 1);", out_name(e, 0), in_name(e, 0), rows_of(dy), columns_of(dy));
}

static void emit_backward_input(emitter *e, const call *c)
{
    const value *dy = in_value(e, 0), *dx = out_value(e, 0);
    (void)c;
    use_kernel(e, "dense_backward_input");
    emit(e, "dense_backward_input(%s, %s, %s, %d, %d, %d);", out_name(e, 0), in_name(e, 0), in_name(e, 1),
         rows_of(dy), columns_of(dy), columns_of(dx));
}

/* The gradient by x, or with c->also by what an activation made x of; it may lie over x, which has been read by
 * then. */
static void emit_small_input(emitter *e, const call *c, int outputs, int inputs)
{
    emit(e, "for (int i = 0; i < %d; i++) {", inputs);
    emit(e, "    float sum = %s[0] * %s[i];", in_name(e, 0), in_name(e, 2));
    if (outputs > 1) {
        emit(e, "    for (int o = 1; o < %d; o++)", outputs);
        emit(e, "        sum += %s[o] * %s[%d * o + i];", in_name(e, 0), in_name(e, 2), inputs);
    }
    formula_text result = {"sum"};
    if (c->also != NULL) {
        char x[80];
        snprintf(x, sizeof x, "%s[i]", in_name(e, 1));
        result = expand_formula(e, find_formula(c->also), (const char *const[]){"sum", x, ""},
                                (double[]){(double)c->slope, 0.0});
    }
    emit(e, "    %s[i] %s %s;", out_name(e, 2), c->add & 4u ? "+=" : "=", result.text);
    emit(e, "}");
}

static void emit_small_backward(emitter *e, const call *c, int outputs, int inputs)
{
    emit(e, "for (int o = 0; o < %d; o++) {", outputs);
    if (c->out[1] != NONE)
        emit(e, "    %s[o] += %s[o];", out_name(e, 1), in_name(e, 0));
    emit(e, "    for (int i = 0; i < %d; i++)", inputs);
    emit(e, "        %s[%d * o + i] += %s[o] * %s[i];", out_name(e, 0), inputs, in_name(e, 0), in_name(e, 1));
    emit(e, "}");
    if (c->out[2] != NONE)
        emit_small_input(e, c, outputs, inputs);
}

/* All of them: dw, db, dx from dy, x, w (rewrite_dense.c). */
static void emit_backward(emitter *e, const call *c)
{
    const value *dy = in_value(e, 0), *x = in_value(e, 1);
    if (is_small_dense(x, dy)) {
        emit_small_backward(e, c, columns_of(dy), columns_of(x));
        return;
    }
    if (c->out[2] != NONE && !(c->add & 4u))
        emit(e, "memset(%s, 0, %zu * sizeof *%s);", out_name(e, 2), x->count, out_name(e, 2));
    use_kernel(e, "dense_backward");
    emit(e, "dense_backward(%s, %s, %s, %s, %s, %s, %d, %d, %d);", out_name(e, 0), out_name(e, 1),
         out_name(e, 2), in_name(e, 0), in_name(e, 1), in_name(e, 2), rows_of(dy), columns_of(dy),
         columns_of(x));
}

const export_op export_dense_ops[] = {
    {.name = "linear", .emit = emit_linear, .refuse = refuse_linear},
    {.name = "linear_backward_weight", .emit = emit_backward_weight, .only_adds = 1},
    {.name = "linear_backward_bias", .emit = emit_backward_bias, .only_adds = 1},
    {.name = "linear_backward_input", .emit = emit_backward_input, .only_adds = 1},
    {.name = "linear_backward", .emit = emit_backward, .adds = 4, .only_adds = 3},
    {0},
};
