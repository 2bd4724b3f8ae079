/* Positions added to a sequence: rows of a table, learned or sinusoidal. */
#include <math.h>

#include "node/position.h"

/* ---- x + table ---- */

static mica_status infer(mica_infer *i)
{
    const mica_tensor *x = i->in[0], *table = i->in[1];
    MICA_TRY(mica_infer_sequence(i));
    if (table->dim[1] != x->dim[x->rank - 1])
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected %td features in a table of positions, got %td",
                               x->dim[x->rank - 1], table->dim[1]);
    return mica_infer_like(i, 0, 0);
}

/* The rows of `table` that belong to a sequence of `length`, and where they begin. */
static mica_status rows_of(const mica_call *c, mica_tensor *rows, mica_index *first, const mica_tensor *table,
                           mica_index length)
{
    MICA_TRY(mica_call_position(c, first, ((const mica_positions_opts *)c->opts)->position));
    if (*first < 0 || length > table->dim[0] || *first > table->dim[0] - length)
        return mica_fail(c->ctx, MICA_ERR_SHAPE,
                         "%s: %td rows starting at position %td, but the table has %td", c->op->name, length,
                         *first, table->dim[0]);
    *rows = *table;
    rows->dim[0] = length;
    if (table->data != NULL)
        rows->data = (float *)table->data + *first * table->stride[0];
    return MICA_OK;
}

static mica_status run(const mica_call *c)
{
    mica_tensor rows;
    mica_index first = 0;
    const mica_tensor *x = c->in[0];
    MICA_TRY(rows_of(c, &rows, &first, c->in[1], x->dim[x->rank - 2]));
    return mica_add(c->ctx, c->out[0], x, &rows);
}

/* dtable[t] = sum of dy over all sequences at t, and 0 for positions that are not there */
static mica_status run_back(const mica_call *c)
{
    const mica_tensor *dy = c->in[0], *dtable = c->out[0];
    int leading = dy->rank - 2;
    mica_index length = dy->dim[leading], first = 0;
    mica_tensor rows, rest;
    MICA_TRY(rows_of(c, &rows, &first, dtable, length));
    MICA_TRY(mica_view_slice(c->ctx, &rest, dtable, 0, first + length, MICA_END, 1));
    MICA_TRY(mica_zeros(c->ctx, &rest));
    if (first > 0) {
        MICA_TRY(mica_view_slice(c->ctx, &rest, dtable, 0, 0, first, 1));
        MICA_TRY(mica_zeros(c->ctx, &rest));
    }
    mica_reduce_opts axes = {.count = leading, .axes = {0, 1, 2, 3, 4, 5}};
    return leading > 0 ? mica_sum(c->ctx, &rows, dy, &axes) : mica_copy(c->ctx, &rows, dy);
}

static const mica_field fields[] = {MICA_FIELD(mica_positions_opts, position, INT,
                                               "1 + the step size that is the first row's position; 0: 0")};

static const mica_op backward = {.name = "add_positions_backward",
                                 .about = "the gradient of add_positions by the table",
                                 .ins = 1,
                                 .outs = 1,
                                 .names = (const char *const[]){"dy", "dtable"},
                                 .opts_bytes = sizeof(mica_positions_opts),
                                 MICA_FIELD_LIST(fields),
                                 .run = run_back};

static void gradient(mica_grad *g)
{
    mica_grad_give(g, 1, &backward, &g->dout[0], 1, g->opts);
    mica_grad_pass(g, 0, g->dout[0]);
}

static bool mixes(const mica_infer *i) { return i->in[0]->rank == 2; } /* axis 0 is time */

static void sample(mica_op_sample *s)
{
    mica_index dims[] = {mica_op_sample_int(s, 1, 3), mica_op_sample_int(s, 1, 4),
                         mica_op_sample_int(s, 1, 5)};
    int leading = (int)mica_op_sample_int(s, 0, 1);
    mica_op_sample_shape(s, 0, 2 + leading, dims + 1 - leading);
    mica_op_sample_shape(s, 1, 2, (mica_index[]){dims[1] + mica_op_sample_int(s, 0, 2), dims[2]});
}

const mica_op mica_op_add_positions = {.name = "add_positions",
                                       .family = "elementwise",
                                       .about = "x [..., T, C] plus rows of a table [positions, C]",
                                       .flags = MICA_OP_CHEAP,
                                       .ins = 2,
                                       .outs = 1,
                                       .names = (const char *const[]){"x", "table", "y"},
                                       .opts_bytes = sizeof(mica_positions_opts),
                                       MICA_FIELD_LIST(fields),
                                       .in_place = {1},
                                       .infer = infer,
                                       .run = run,
                                       .gradient = MICA_GRADIENT(gradient),
                                       .mixes = mixes,
                                       .sample = MICA_SAMPLE(sample)};

/* ---- Waves ---- */

static mica_status table_infer(mica_infer *i)
{
    const mica_table_opts *opts = i->opts;
    if (!(opts->base >= 0.0))
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "base is %g: expected more than 0", opts->base);
    return mica_infer_out(i, 0, MICA_F32, 2, (mica_index[]){opts->rows, opts->columns});
}

typedef struct waves {
    double base, features;
} waves;

static double wave(const mica_index *index, void *user)
{
    const waves *w = user;
    mica_index even = index[1] - index[1] % 2; /* sine and cosine share a frequency */
    double angle = (double)index[0] * pow(w->base, -(double)even / w->features);
    return index[1] % 2 == 0 ? sin(angle) : cos(angle);
}

static mica_status table_run(const mica_call *c)
{
    const mica_table_opts *opts = c->opts;
    waves w = {opts->base != 0.0 ? opts->base : 10000.0, (double)c->out[0]->dim[1]};
    return mica_generate(c->ctx, c->out[0], wave, &w);
}

static void table_sample(mica_op_sample *s)
{
    mica_table_opts *opts = s->opts;
    opts->rows = mica_op_sample_int(s, 1, 6);
    opts->columns = mica_op_sample_int(s, 1, 6);
}

static const mica_field table_fields[] = {
    MICA_FIELD(mica_table_opts, rows, INDEX, "positions"),
    MICA_FIELD(mica_table_opts, columns, INDEX, "features"),
    MICA_FIELD(mica_table_opts, base, DOUBLE, "base of the wavelengths; 0: 10000"),
};

const mica_op mica_op_sinusoidal_table = {
    .name = "sinusoidal_table",
    .family = "make",
    .about = "sines and cosines of positions, of wavelengths from 2 pi up",
    .outs = 1,
    .names = (const char *const[]){"table"},
    .opts_bytes = sizeof(mica_table_opts),
    MICA_FIELD_LIST(table_fields),
    .infer = table_infer,
    .run = table_run,
    .sample = MICA_SAMPLE(table_sample)};
