/* Cross-entropies: of labels and of distributions, of logits and of probabilities, with smoothing, weights of
 * classes and rows that are ignored. The usual one, of labels alone, has a kernel of its own. */
#include <string.h>

#include "export/emit.h"

static double weight_of(const call *c)
{
    double weight = call_number(c, "weight", 0);
    return weight != 0.0 ? weight : 1.0;
}

static bool has_weights(const call *c) { return c->ins > 2 && c->in[2] != NONE; }

static bool is_plain(const call *c)
{
    return strcmp(c->name, "cross_entropy") == 0 && call_number(c, "smoothing", 0) == 0.0 &&
           !call_int(c, "ignore", 0) && !has_weights(c);
}

static void emit_class_loss(emitter *e, const call *c)
{
    const value *pred = in_value(e, 0);
    int rows = rows_of(pred), classes = columns_of(pred);
    bool labels = in_value(e, 1)->dtype == MICA_I32, mean = call_int(c, "reduction", 0) == MICA_LOSS_MEAN;
    bool counts = labels && mean && (has_weights(c) || call_int(c, "ignore", 0));
    double scale = weight_of(c) * (mean && !counts ? (double)e->g->share / rows : 1.0);
    if (is_plain(c)) {
        const char *kernel = labels ? "cross_entropy" : "cross_entropy_rows";
        use_kernel(e, kernel);
        emit(e, "loss += %s(%s, %s, %s, %d, %d, %s);", kernel, out_name(e, 1), in_name(e, 0), in_name(e, 1),
             rows, classes, float_text(scale));
        return;
    }
    use_kernel(e, "class_loss");
    emit(e, "loss += class_loss(%s, %s, %s, %s, %s, %d, %d, %s, %s, %d, %d, %d, %d);", out_name(e, 1),
         in_name(e, 0), labels ? in_name(e, 1) : "0", labels ? "0" : in_name(e, 1), in_name(e, 2), rows,
         classes, float_text(scale), float_text(call_number(c, "smoothing", 0)), call_int(c, "ignore", 0),
         call_int(c, "ignore_index", 0), counts, strcmp(c->name, "cross_entropy_probs") == 0);
}

const export_op export_class_ops[] = {
    {.name = "cross_entropy", .emit = emit_class_loss, .refuse = refuse_loss},
    {.name = "cross_entropy_probs", .emit = emit_class_loss, .refuse = refuse_loss},
    {.name = NULL},
};
