/* Losses: each adds to the step's loss, and makes the gradient at once, already scaled. */
#include <string.h>

#include "export/emit.h"

/* What the sum over a sample's elements, or rows, is multiplied by. */
static double scale_of(const emitter *e, const call *c, int elements)
{
    double weight = call_number(c, "weight", 0);
    bool mean = call_int(c, "reduction", 0) == MICA_LOSS_MEAN;
    return (weight != 0.0 ? weight : 1.0) * (mean ? (double)e->g->share / elements : 1.0);
}

static void emit_points(emitter *e, const call *c)
{
    int count = (int)in_value(e, 0)->count;
    use_kernel(e, c->name);
    if (strcmp(c->name, "huber_loss") == 0) {
        double delta = call_number(c, "delta", 0);
        emit(e, "loss += huber_loss(%s, %s, %s, %d, %s, %s);", out_name(e, 1), in_name(e, 0), in_name(e, 1),
             count, float_text(scale_of(e, c, count)), float_text(delta != 0.0 ? delta : 1.0));
        return;
    }
    emit(e, "loss += %s(%s, %s, %s, %d, %s);", c->name, out_name(e, 1), in_name(e, 0), in_name(e, 1), count,
         float_text(scale_of(e, c, count)));
}

static void emit_cross_entropy(emitter *e, const call *c)
{
    const value *logits = in_value(e, 0);
    const char *kernel = in_value(e, 1)->dtype == MICA_I32 ? "cross_entropy" : "cross_entropy_rows";
    use_kernel(e, kernel);
    emit(e, "loss += %s(%s, %s, %s, %d, %d, %s);", kernel, out_name(e, 1), in_name(e, 0), in_name(e, 1),
         rows_of(logits), columns_of(logits), float_text(scale_of(e, c, rows_of(logits))));
}

const char *refuse_loss(const graph *g, const call *c)
{
    (void)g;
    if (c->out[1] == NONE)
        return "a loss without a gradient";
    return c->out[0] != NONE ? "a loss that another operation reads" : NULL;
}

static const char *refuse_classes(const graph *g, const call *c)
{
    if (call_number(c, "smoothing", 0) != 0.0)
        return "label smoothing";
    if (call_int(c, "ignore", 0))
        return "rows that are ignored";
    if (c->ins > 2 && c->in[2] != NONE)
        return "class weights";
    return refuse_loss(g, c);
}

const export_op export_loss_ops[] = {
    {.name = "mse_loss", .emit = emit_points, .refuse = refuse_loss},
    {.name = "l1_loss", .emit = emit_points, .refuse = refuse_loss},
    {.name = "huber_loss", .emit = emit_points, .refuse = refuse_loss},
    {.name = "bce_loss", .emit = emit_points, .refuse = refuse_loss},
    {.name = "bce_logits_loss", .emit = emit_points, .refuse = refuse_loss},
    {.name = "cross_entropy", .emit = emit_cross_entropy, .refuse = refuse_classes},
    {0},
};
