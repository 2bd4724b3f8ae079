/* Products of rows with a matrix of weights. */
#include "export/emit.h"

static void emit_linear(emitter *e, const call *c)
{
    const value *x = in_value(e, 0), *y = out_value(e, 0);
    (void)c;
    use_kernel(e, "dense");
    emit(e, "dense(%s, %s, %s, %s, %d, %d, %d);", out_name(e, 0), in_name(e, 0), in_name(e, 1), in_name(e, 2),
         rows_of(x), columns_of(y), columns_of(x));
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

/* All of them: dw, db, dx from dy, x, w (rewrite_dense.c). */
static void emit_backward(emitter *e, const call *c)
{
    const value *dy = in_value(e, 0), *x = in_value(e, 1);
    (void)c;
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
    {.name = "linear_backward", .emit = emit_backward, .only_adds = 7},
    {0},
};
