/* Rotary positions of rows of tokens. No gradients. */
#include "node/check.h"

/* ---- Angles ---- */

static mica_status angles_infer(mica_infer *i)
{
    const mica_tensor *positions = i->in[0], *frequency = i->in[1];
    MICA_TRY(mica_infer_dtype(i, 0, MICA_I32));
    MICA_TRY(mica_infer_dtype(i, 1, MICA_F32));
    if (positions->rank != 1 || frequency->rank != 1)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected positions [T] and frequency [R / 2]");
    return mica_infer_out(i, 0, MICA_F32, 2, (mica_index[]){positions->dim[0], 2 * frequency->dim[0]});
}

static mica_status angles_run(const mica_call *c)
{
    return mica_rotary_angles(c->ctx, c->out[0], c->in[0], c->in[1], c->opts);
}

static void angles_sample(mica_op_sample *s)
{
    mica_sample_indices(s, 0, 1, (mica_index[]){mica_op_sample_int(s, 1, 6)}, 100000);
    mica_op_sample_shape(s, 1, 1, (mica_index[]){mica_op_sample_int(s, 1, 5)});
    ((mica_rotary_angles_opts *)s->opts)->magnitude = mica_sample_chance(s) ? 1.25f : 0.0f;
}

static const mica_field angles_fields[] = {
    MICA_FIELD(mica_rotary_angles_opts, magnitude, FLOAT, "factor of cosines and sines; 0: 1"),
};

const mica_op mica_op_rotary_angles = {
    .name = "rotary_angles",
    .family = "text",
    .about = "cosines, then sines, of each row's position times the frequencies",
    .ins = 2,
    .outs = 1,
    .fixed_ins = 1u << 1,
    .names = (const char *const[]){"positions", "frequency", "table"},
    .opts_bytes = sizeof(mica_rotary_angles_opts),
    MICA_FIELD_LIST(angles_fields),
    .infer = angles_infer,
    .run = angles_run,
    .sample = MICA_SAMPLE(angles_sample)};

/* ---- Turning ---- */

static mica_status rows_infer(mica_infer *i)
{
    const mica_rotary_rows_opts *opts = i->opts;
    const mica_tensor *x = i->in[0], *table = i->in[1];
    mica_index heads = opts->heads != 0 ? opts->heads : 1;
    for (int n = 0; n < 2; n++)
        if (i->in[n]->dtype != MICA_F32 || i->in[n]->rank != 2)
            return mica_infer_fail(i, MICA_ERR_SHAPE, "expected x f32 [T, heads * D] and a table f32 [T, R]");
    if (heads < 1 || x->dim[1] % heads != 0)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected features that divide evenly among %td heads",
                               heads);
    if (table->dim[0] != x->dim[0] || table->dim[1] % 2 != 0 || table->dim[1] > x->dim[1] / heads)
        return mica_infer_fail(i, MICA_ERR_SHAPE,
                               "expected a table [%td, an even number, at most %td], got [%td, %td]",
                               x->dim[0], x->dim[1] / heads, table->dim[0], table->dim[1]);
    return mica_infer_like(i, 0, 0);
}

static mica_status rows_run(const mica_call *c)
{
    return mica_rotary_rows(c->ctx, c->out[0], c->in[0], c->in[1], c->opts);
}

static void rows_sample(mica_op_sample *s)
{
    mica_rotary_rows_opts *opts = s->opts;
    mica_index rows = mica_op_sample_int(s, 1, 5), width = mica_op_sample_int(s, 2, 7);
    opts->heads = (int)mica_op_sample_int(s, 1, 3);
    opts->interleaved = mica_sample_chance(s);
    mica_op_sample_shape(s, 0, 2, (mica_index[]){rows, opts->heads * width});
    mica_op_sample_shape(s, 1, 2, (mica_index[]){rows, 2 * mica_op_sample_int(s, 1, width / 2)});
}

static const mica_field rows_fields[] = {
    MICA_FIELD(mica_rotary_rows_opts, heads, INT, "heads side by side in x; 0: 1"),
    MICA_FIELD(mica_rotary_rows_opts, interleaved, BOOL,
               "pair adjacent features, not halves of what is rotated"),
};

const mica_op mica_op_rotary_rows = {
    .name = "rotary_rows",
    .family = "text",
    .about = "pairs of each head's features rotated by the angles of their row",
    .flags = MICA_OP_CHEAP,
    .ins = 2,
    .outs = 1,
    .fixed_ins = 1u << 0 | 1u << 1,
    .names = (const char *const[]){"x", "table", "y"},
    .opts_bytes = sizeof(mica_rotary_rows_opts),
    MICA_FIELD_LIST(rows_fields),
    .in_place = {1},
    .infer = rows_infer,
    .run = rows_run,
    .sample = MICA_SAMPLE(rows_sample)};
