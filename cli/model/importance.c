/* Shuffled columns. */
#include "cli/model/importance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/measure.h"
#include "cli/model/take.h"

/* Samples as the net gets them, and what it takes to run them again. */
typedef struct table {
    mica_net *net;
    const mica_netfile_info *info;
    const importance_opts *opts;
    float *inputs;       /* [count, elements] */
    char *targets;       /* [count] of target_bytes */
    size_t target_bytes; /* of a sample */
    mica_index count, elements;
    measure measure;
} table;

/* ---- Collecting ---- */

/* The net's two inputs with room for `rows` samples. */
static mica_status inputs_for(const table *t, mica_index rows, mica_tensor *x, mica_tensor *y)
{
    mica_status status = mica_net_resize(t->net, rows);
    if (status == MICA_OK)
        status = mica_net_tensor(t->net, x, t->info->input);
    return status == MICA_OK ? mica_net_tensor(t->net, y, t->info->target) : status;
}

static mica_status collect(table *t)
{
    mica_context *ctx = mica_net_context(t->net);
    const mica_source *source = &t->opts->feed->source;
    mica_tensor x, y;
    mica_status status = MICA_OK;
    for (mica_index number = 0; status == MICA_OK; number++) {
        mica_index rows = 0;
        status = inputs_for(t, t->opts->batch, &x, &y);
        if (status == MICA_OK)
            status = source->begin(ctx, &x, t->opts->batch, &rows, source->user);
        if (status != MICA_OK || rows == 0 || number == t->opts->feed->steps)
            break; /* to the end of the part, so that the next one who reads it begins at its start */
        mica_index room = IMPORTANCE_SAMPLES - t->count;
        if (room == 0)
            continue;
        x.dim[0] = y.dim[0] = rows < room ? rows : room;
        status = source->rows(ctx, &x, &y, 0, source->user);
        if (status != MICA_OK)
            break;
        memcpy(t->inputs + t->count * t->elements, x.data,
               (size_t)(x.dim[0] * t->elements) * sizeof *t->inputs);
        memcpy(t->targets + (size_t)t->count * t->target_bytes, y.data, (size_t)x.dim[0] * t->target_bytes);
        t->count += x.dim[0];
    }
    return status;
}

/* ---- Running ---- */

/* All samples, where those elements of each come from the sample that `from` names. */
static mica_status run_table(table *t, double *metric, const column_span *span, const mica_index *from)
{
    mica_tensor x, y;
    mica_status status = MICA_OK;
    for (mica_index at = 0; at < t->count && status == MICA_OK; at += t->opts->batch) {
        mica_index rows = t->count - at < t->opts->batch ? t->count - at : t->opts->batch;
        status = inputs_for(t, rows, &x, &y);
        if (status != MICA_OK)
            break;
        float *to = x.data;
        memcpy(to, t->inputs + at * t->elements, (size_t)(rows * t->elements) * sizeof *to);
        for (mica_index r = 0; r < rows && span != NULL; r++)
            memcpy(to + r * t->elements + span->first, t->inputs + from[at + r] * t->elements + span->first,
                   (size_t)span->count * sizeof *to);
        memcpy(y.data, t->targets + (size_t)at * t->target_bytes, (size_t)rows * t->target_bytes);
        measure_targets(&t->measure, &y, rows);
        status = mica_net_forward(t->net);
        if (status == MICA_OK)
            measure_outputs(&t->measure, t->net);
    }
    *metric = measure_take(&t->measure);
    return status;
}

static void shuffle(mica_index *order, mica_index count, mica_random *dice)
{
    for (mica_index i = 0; i < count; i++)
        order[i] = i;
    for (mica_index i = count - 1; i > 0; i--) {
        mica_index k = (mica_index)(((uint64_t)mica_random_bits(dice) * (uint64_t)(i + 1)) >> 32);
        mica_index kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
}

static mica_status shuffle_columns(table *t, importance *out, const column_span *spans)
{
    mica_index *order = take((size_t)t->count, sizeof *order);
    mica_status status = run_table(t, &out->before, NULL, NULL);
    for (size_t c = 0; c < out->count && status == MICA_OK; c++) {
        mica_random dice = mica_random_stream(t->opts->seed,
                                              c); /* a column's own, whatever others there are */
        double sum = 0, after = 0;
        for (int i = 0; i < IMPORTANCE_TIMES && status == MICA_OK; i++) {
            shuffle(order, t->count, &dice);
            status = run_table(t, &after, &spans[c], order);
            sum += t->measure.kind == MEASURE_RMSE ? after - out->before : out->before - after;
        }
        out->columns[c].drop = sum / IMPORTANCE_TIMES;
        if (t->opts->stop != NULL && *t->opts->stop)
            out->count = 0;
    }
    free(order);
    return status;
}

/* ---- Columns ---- */

static int by_drop(const void *a, const void *b)
{
    double x = ((const report_column *)a)->drop, y = ((const report_column *)b)->drop;
    return (x < y) - (x > y);
}

/* Those of the table; without a table's names, each element of a sample that is a row. NULL: none. */
static column_span *spans_of(importance *out, const meaning *m, mica_index elements)
{
    bool named = m->columns.count > 0, rows = m->sample.rank == 1;
    size_t count = named ? m->columns.count : rows ? (size_t)elements : 0;
    if (count < 1 || count > IMPORTANCE_COLUMNS)
        return NULL;
    for (size_t i = 0; i < count && named; i++) {
        const column_span *s = &m->columns.list[i];
        if (s->first < 0 || s->count < 1 || s->first > elements - s->count)
            return NULL;
    }
    column_span *spans = take(count, sizeof *spans);
    out->columns = take(count, sizeof *out->columns);
    out->numbers = take(count, sizeof *out->numbers);
    out->count = count;
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(out->numbers[i], sizeof out->numbers[i], "column %zu", i + 1);
        spans[i] = named ? m->columns.list[i] : (column_span){NULL, (mica_index)i, 1};
        out->columns[i].name = spans[i].name != NULL ? spans[i].name : out->numbers[i];
    }
    return spans;
}

mica_status importance_find(importance *out, mica_net *net, scored_net what, const importance_opts *opts)
{
    *out = (importance){.before = (double)NAN};
    table t = {.net = net, .info = what.info, .opts = opts};
    net_ends ends = {.has_target = true};
    mica_status status = inputs_for(&t, opts->batch, &ends.input, &ends.target);
    if (status == MICA_OK)
        status = mica_net_tensor(net, &ends.output, what.info->output);
    const mica_tensor *x = &ends.input, *y = &ends.target;
    if (status != MICA_OK || x->dtype != MICA_F32 || mica_net_keeps_states(net) ||
        !mica_tensor_contiguous(x) || !mica_tensor_contiguous(y))
        return status;
    t.elements = (mica_index)mica_tensor_count(x) / x->dim[0];
    column_span *spans = spans_of(out, what.meaning, t.elements);
    measure_open(&t.measure, what.info, &ends, &what.meaning->units);
    if (spans != NULL && t.measure.kind != MEASURE_NOTHING) {
        t.target_bytes = mica_tensor_count(y) / (size_t)y->dim[0] * mica_dtype_bytes(y->dtype);
        t.inputs = take((size_t)IMPORTANCE_SAMPLES * (size_t)t.elements, sizeof *t.inputs);
        t.targets = take(IMPORTANCE_SAMPLES, t.target_bytes);
        status = collect(&t);
        if (status == MICA_OK)
            status = shuffle_columns(&t, out, spans);
    }
    if (t.measure.kind == MEASURE_NOTHING || status != MICA_OK || isnan(out->before))
        out->count = 0;
    if (out->count > 0)
        qsort(out->columns, out->count, sizeof *out->columns, by_drop);
    measure_close(&t.measure);
    free(t.inputs);
    free(t.targets);
    free(spans);
    return status;
}

void importance_free(importance *i)
{
    free(i->columns);
    free(i->numbers);
    *i = (importance){0};
}
