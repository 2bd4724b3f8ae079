/* The numbers of both nets, layer by layer. */
#include "int8/convert.h"

mica_status mica_int8_observe(mica_int8 *q)
{
    if (q->out == NULL || q->out->compiled || q->out->entry_count > 0)
        return mica_fail(q->ctx, MICA_ERR_STATE,
                         "int8_observe: expected a net that is built and not compiled");
    for (int i = 0; i < q->out->built_values; i++) {
        mica_value_info *v = &q->out->values[i];
        v->output = v->output || (v->home == MICA_HOME_PLANNED && v->root == i);
    }
    return MICA_OK;
}

static double value_at(const mica_tensor *t, size_t i, double scale)
{
    return t->dtype == MICA_I8 ? scale * ((const int8_t *)t->data)[i] : (double)((const float *)t->data)[i];
}

static mica_status compare_row(mica_int8 *q, mica_net *out, mica_int8_compared *row)
{
    mica_tensor a, b;
    mica_value now = q->as_bytes[row->value] != 0 ? q->as_bytes[row->value] : q->as_floats[row->value];
    MICA_TRY(mica_net_value_tensor(q->net, &a, row->value + 1));
    MICA_TRY(mica_net_value_tensor(out, &b, now));
    if (mica_tensor_count(&a) != mica_tensor_count(&b))
        return mica_fail(q->ctx, MICA_ERR_STATE, "int8_compare: the nets run batches of different sizes");
    for (size_t i = 0; i < mica_tensor_count(&a); i++) {
        double x = (double)((const float *)a.data)[i], d = value_at(&b, i, (double)q->used[row->value]) - x;
        row->signal += x * x;
        row->noise += d * d;
    }
    return MICA_OK;
}

mica_status mica_int8_compare(mica_int8 *q, mica_net *out)
{
    if (out == NULL || out != q->out || out->block == NULL || q->net->block == NULL || !q->observed)
        return mica_fail(q->ctx, MICA_ERR_STATE, "int8_compare: expected both nets bound, and observed");
    for (int i = 0; i < q->rows; i++)
        MICA_TRY(compare_row(q, out, &q->row[i]));
    return MICA_OK;
}

int mica_int8_rows(const mica_int8 *q) { return q->rows; }

mica_status mica_int8_row_at(const mica_int8 *q, mica_int8_row *row, int number)
{
    if (row == NULL || number < 0 || number >= q->rows)
        return mica_fail(q->ctx, MICA_ERR_ARGUMENT, "int8_row_at: row %d of %d", number, q->rows);
    const mica_int8_compared *from = &q->row[number];
    *row = (mica_int8_row){.name = from->name,
                           .op = from->op->name,
                           .scale = q->as_bytes[from->value] != 0 ? q->used[from->value] : 0.0f,
                           .signal = from->signal,
                           .noise = from->noise};
    return MICA_OK;
}
