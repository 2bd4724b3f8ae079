/* From the columns of a table to the elements of a net's inputs and targets.
 *
 * Rows are kept in a short form, their cells: a number as it will be, a category as its index, a date as its three or
 * five elements. What is missing is NaN where an element of its own says so. Only a batch has them in full. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "data/table/table.h"
#include "io/quote.h"

static double deviation_of(const mica_column *c) { return c->deviation > 0 ? c->deviation : 1; }

static mica_index cells_of(const mica_column *c)
{
    return c->kind != MICA_COLUMN_DATE ? 1 : c->times ? 5 : 3;
}

static mica_index inputs_of(const mica_column *c)
{
    return c->kind == MICA_COLUMN_CATEGORY ? c->value_count + 1 : cells_of(c);
}

static void place_column(mica_table *t, mica_own_column *own)
{
    mica_column *c = &own->column;
    bool fills = t->encode.missing == MICA_MISSING_MEAN || t->encode.missing == MICA_MISSING_MEDIAN;
    c->first_input = c->inputs = c->first_target = c->targets = 0;
    own->first_cell = own->cells = 0;
    own->indicator = false;
    own->fill = t->encode.missing == MICA_MISSING_MEDIAN && c->kind != MICA_COLUMN_CATEGORY
                    ? (float)((c->median - c->mean) / deviation_of(c))
                    : 0;
    if ((c->role & MICA_ROLE_INPUT) != 0) {
        own->indicator = fills && c->missing > 0;
        own->first_cell = t->cells;
        own->cells = cells_of(c);
        c->first_input = t->inputs;
        c->inputs = inputs_of(c) + own->indicator;
        t->cells += own->cells;
        t->inputs += c->inputs;
    }
    if ((c->role & MICA_ROLE_TARGET) != 0) {
        c->first_target = t->targets++;
        c->targets = 1;
    }
}

/* A target in its own unit is a float. */
static bool fits_float(const mica_column *c)
{
    const double most = (double)FLT_MAX;
    return c->targets == 0 || c->kind != MICA_COLUMN_NUMBER ||
           (c->most <= most && c->least >= -most && fabs(c->mean) <= most && c->deviation <= most);
}

mica_status mica_table_encode(mica_context *ctx, mica_table *table, const mica_table_encode_opts *opts)
{
    if (table == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "table_encode: table is NULL");
    mica_table_encode_opts chosen = opts != NULL ? *opts : (mica_table_encode_opts){0};
    if ((unsigned)chosen.missing > (unsigned)MICA_MISSING_REFUSE)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "table_encode: missing is %d", (int)chosen.missing);
    table->encode = chosen;
    table->cells = table->inputs = table->targets = 0;
    table->encoded = false;
    for (int i = 0; i < table->count; i++) {
        place_column(table, &table->columns[i]);
        if (!isfinite(table->columns[i].fill))
            return mica_fail(ctx, MICA_ERR_ARGUMENT,
                             "table_encode: column %s: its median is too far from its mean",
                             MICA_QUOTE(table->columns[i].column.name));
        if (!fits_float(&table->columns[i].column))
            return mica_fail(ctx, MICA_ERR_ARGUMENT,
                             "table_encode: column %s: its numbers are too large to predict",
                             MICA_QUOTE(table->columns[i].column.name));
    }
    if (table->inputs == 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "table_encode: no column is an input");
    table->encoded = true;
    return MICA_OK;
}

mica_index mica_table_inputs(const mica_table *table) { return table->encoded ? table->inputs : 0; }
mica_index mica_table_targets(const mica_table *table) { return table->encoded ? table->targets : 0; }

void mica_table_target_unit(float *mean, float *deviation, const mica_table *table, mica_index element)
{
    *mean = 0;
    *deviation = 1;
    for (int i = 0; table->encoded && !table->encode.raw_targets && i < table->count; i++) {
        const mica_column *c = &table->columns[i].column;
        if (c->targets > 0 && c->first_target == element && c->kind == MICA_COLUMN_NUMBER) {
            *mean = (float)c->mean;
            *deviation = (float)deviation_of(c);
        }
    }
}

/* ---- Cells to inputs ---- */

static void expand_category(const mica_own_column *own, float *out, float cell)
{
    mica_index values = own->column.value_count;
    memset(out, 0, (size_t)own->column.inputs * sizeof *out);
    if (isnan(cell))
        out[values + own->indicator] = 1; /* there is an indicator, or the cell would be -1 */
    else
        out[cell >= 0 && cell < (float)values ? (mica_index)cell : values] = 1;
}

void mica_table_expand_row(const void *user, float *out, const float *cells, mica_random random)
{
    const mica_table *t = user;
    (void)random;
    for (int i = 0; i < t->count; i++) {
        const mica_own_column *own = &t->columns[i];
        const mica_column *c = &own->column;
        if (own->cells == 0)
            continue;
        const float *cell = cells + own->first_cell;
        float *to = out + c->first_input;
        if (c->kind == MICA_COLUMN_CATEGORY) {
            expand_category(own, to, cell[0]);
            continue;
        }
        bool missing = isnan(cell[0]);
        for (mica_index k = 0; k < own->cells; k++)
            to[k] = !missing ? cell[k] : k == 0 ? own->fill : 0;
        if (own->indicator)
            to[own->cells] = missing ? 1 : 0;
    }
}

mica_transform mica_table_transform(const mica_table *table)
{
    if (table->cells == table->inputs) /* numbers and dates, none of which is ever missing */
        return (mica_transform){.run = NULL};
    return (mica_transform){
        .run = mica_table_expand_row, .user = table, .elements = table->inputs, .takes = table->cells};
}

mica_status mica_table_expand(mica_context *ctx, mica_dataset *out, const mica_table *table,
                              const mica_dataset *set)
{
    if (out == NULL || table == NULL || set == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "table_expand: an argument is NULL");
    if (!table->encoded || set->inputs.rank != 2 || set->inputs.dim[1] != table->cells ||
        set->inputs.dtype != MICA_F32 || !mica_tensor_contiguous(&set->inputs))
        return mica_fail(ctx, MICA_ERR_SHAPE, "table_expand: the set is not one of this table's");
    size_t rows = (size_t)set->count, row = (size_t)table->inputs * sizeof(float), bytes = rows * row;
    if (rows > SIZE_MAX / row)
        return mica_fail(ctx, MICA_ERR_MEMORY, "table_expand: %zu rows of %zu bytes are too many", rows, row);
    float *inputs = mica_allocate(ctx, bytes > 0 ? bytes : 1);
    if (inputs == NULL)
        return ctx->status;
    const float *cells = set->inputs.data;
    for (size_t i = 0; i < rows; i++)
        mica_table_expand_row(table, inputs + i * (size_t)table->inputs, cells + i * (size_t)table->cells,
                              (mica_random){0});
    *out = *set;
    out->inputs = mica_2d(inputs, set->count, table->inputs);
    memset(out->owned, 0, sizeof out->owned);
    out->owned[0] = bytes > 0 ? bytes : 1;
    return MICA_OK;
}

/* ---- Windows ---- */

/* [N, E...] as [n, length, E...]: rows first + i to first + i + length - 1 for each i. */
static mica_tensor windows_of(const mica_tensor *rows, mica_index first, mica_index count, mica_index length)
{
    mica_tensor out = *rows;
    out.data = (char *)rows->data + (size_t)(first * rows->stride[0]) * mica_dtype_bytes(rows->dtype);
    for (int k = rows->rank; k > 0; k--) {
        out.dim[k] = rows->dim[k - 1];
        out.stride[k] = rows->stride[k - 1];
    }
    out.rank = rows->rank + 1;
    out.dim[0] = count;
    out.dim[1] = length;
    out.stride[0] = out.stride[1] = rows->stride[0];
    return out;
}

mica_status mica_dataset_windows(mica_context *ctx, mica_dataset *out, const mica_dataset *set,
                                 mica_index window, mica_index horizon)
{
    static const char op[] = "dataset_windows";
    if (out == NULL || set == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: %s is NULL", op, out == NULL ? "out" : "set");
    if (window < 1 || horizon < 1)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: window is %td, horizon is %td: expected at least 1", op,
                         window, horizon);
    if (!set->has_targets)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: the set has no targets", op);
    if (set->inputs.rank >= MICA_MAX_RANK || set->targets.rank >= MICA_MAX_RANK)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: the set has no axis to spare", op);
    if (window > set->count || horizon > set->count - window)
        return mica_fail(ctx, MICA_ERR_SHAPE,
                         "%s: %td rows are too few for a window of %td and a horizon of %td", op, set->count,
                         window, horizon);
    mica_index count = set->count - window - horizon + 1;
    *out = (mica_dataset){.count = count,
                          .inputs = windows_of(&set->inputs, 0, count, window),
                          .targets = windows_of(&set->targets, window, count, horizon),
                          .has_targets = true};
    return MICA_OK;
}
