/* Rotary positions, for one head and for packed heads. The gradient rotates back. */
#include "node/position.h"

static const mica_field fields[] = {
    MICA_FIELD(mica_turn_opts, position, INT, "1 + the step size that is the first row's position; 0: 0"),
    MICA_FIELD(mica_turn_opts, interleaved, BOOL, "pair adjacent features, not halves of the head"),
    MICA_FIELD(mica_turn_opts, heads, INT, "packed: number of heads in x; 0: 1"),
    MICA_FIELD(mica_turn_opts, turned, INT, "packed: number of heads to rotate, from the first; 0: all"),
};
enum { PLAIN_FIELDS = 2, PACKED_FIELDS = 4 };

/* The table turns an even number of each head's features. */
static mica_status check_width(mica_infer *i, mica_index features)
{
    const mica_tensor *table = i->in[1];
    if (table->dim[1] % 2 != 0 || table->dim[1] > features)
        return mica_infer_fail(
            i, MICA_ERR_SHAPE,
            "%td features of each head are to be rotated: expected an even number, at most %td",
            table->dim[1], features);
    return MICA_OK;
}

typedef mica_status rotary_fn(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                              const mica_tensor *table, const mica_rotary_opts *opts);

static mica_status how(const mica_call *c, mica_rotary_opts *out)
{
    const mica_turn_opts *opts = c->opts;
    *out = (mica_rotary_opts){.interleaved = opts->interleaved};
    return mica_call_position(c, &out->offset, opts->position);
}

static bool mixes(const mica_infer *i) { return i->in[0]->rank == 2; } /* axis 0 is time */

/* ---- The table ---- */

static mica_status table_infer(mica_infer *i)
{
    const mica_table_opts *opts = i->opts;
    if (opts->columns % 2 != 0)
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "columns is %td: expected an even number",
                               opts->columns);
    return mica_infer_out(i, 0, MICA_F32, 2, (mica_index[]){opts->rows, opts->columns});
}

static mica_status table_run(const mica_call *c)
{
    return mica_rotary_table(c->ctx, c->out[0], ((const mica_table_opts *)c->opts)->base);
}

static void table_sample(mica_op_sample *s)
{
    mica_table_opts *opts = s->opts;
    opts->rows = mica_op_sample_int(s, 1, 6);
    opts->columns = 2 * mica_op_sample_int(s, 1, 4);
}

static const mica_field table_fields[] = {
    MICA_FIELD(mica_table_opts, rows, INDEX, "positions"),
    MICA_FIELD(mica_table_opts, columns, INDEX, "number of features to rotate, even"),
    MICA_FIELD(mica_table_opts, base, DOUBLE, "base of the wavelengths; 0: 10000"),
};

const mica_op mica_op_rotary_table = {.name = "rotary_table",
                                      .family = "rotary",
                                      .about = "cosines, then sines, of the rotation angles of each position",
                                      .outs = 1,
                                      .names = (const char *const[]){"table"},
                                      .opts_bytes = sizeof(mica_table_opts),
                                      MICA_FIELD_LIST(table_fields),
                                      .infer = table_infer,
                                      .run = table_run,
                                      .sample = MICA_SAMPLE(table_sample)};

/* ---- One head ---- */

static mica_status infer(mica_infer *i)
{
    const mica_tensor *x = i->in[0];
    MICA_TRY(mica_infer_sequence(i));
    MICA_TRY(check_width(i, x->dim[x->rank - 1]));
    return mica_infer_like(i, 0, 0);
}

static mica_status run(const mica_call *c)
{
    mica_rotary_opts opts;
    MICA_TRY(how(c, &opts));
    return mica_rotary(c->ctx, c->out[0], c->in[0], c->in[1], &opts);
}

static mica_status run_back(const mica_call *c)
{
    mica_rotary_opts opts;
    MICA_TRY(how(c, &opts));
    return mica_rotary_backward(c->ctx, c->out[0], c->in[0], c->in[1], &opts);
}

static void gradient(mica_grad *g)
{
    mica_grad_give(g, 0, &mica_op_rotary_backward, (mica_value[]){g->dout[0], g->in[1]}, 2, g->opts);
}

static void sample(mica_op_sample *s)
{
    mica_index dims[] = {mica_op_sample_int(s, 1, 3), mica_op_sample_int(s, 1, 4),
                         mica_op_sample_int(s, 2, 7)};
    ((mica_turn_opts *)s->opts)->interleaved = mica_sample_chance(s);
    mica_op_sample_shape(s, 0, 3, dims);
    mica_index width = 2 * mica_op_sample_int(s, 1, dims[2] / 2);
    mica_op_sample_shape(s, 1, 2, (mica_index[]){dims[1] + mica_op_sample_int(s, 0, 2), width});
}

const mica_op mica_op_rotary = {.name = "rotary",
                                .family = "rotary",
                                .about = "pairs of features rotated by an angle proportional to the position",
                                .flags = MICA_OP_CHEAP,
                                .ins = 2,
                                .outs = 1,
                                .names = (const char *const[]){"x", "table", "y"},
                                .opts_bytes = sizeof(mica_turn_opts),
                                .fields = fields,
                                .field_count = PLAIN_FIELDS,
                                .in_place = {1},
                                .infer = infer,
                                .run = run,
                                .gradient = MICA_GRADIENT(gradient),
                                .mixes = mixes,
                                .sample = MICA_SAMPLE(sample)};
const mica_op mica_op_rotary_backward = {.name = "rotary_backward",
                                         .family = "rotary",
                                         .about = "the gradient of rotary: the inverse rotation",
                                         .ins = 2,
                                         .outs = 1,
                                         .names = (const char *const[]){"dy", "table", "dx"},
                                         .opts_bytes = sizeof(mica_turn_opts),
                                         .fields = fields,
                                         .field_count = PLAIN_FIELDS,
                                         .in_place = {1},
                                         .infer = infer,
                                         .run = run_back,
                                         .mixes = mixes};

/* ---- Heads side by side ---- */

/* How x [..., T, heads * D] falls into heads. */
typedef struct head_shape {
    mica_index heads, turned, features;
} head_shape;

static head_shape heads_of(const mica_turn_opts *opts, const mica_tensor *x)
{
    head_shape h = {.heads = opts->heads != 0 ? opts->heads : 1};
    h.turned = opts->turned != 0 ? opts->turned : h.heads;
    h.features = h.heads > 0 ? x->dim[x->rank - 1] / h.heads : 0;
    return h;
}

static mica_status packed_infer(mica_infer *i)
{
    const mica_tensor *x = i->in[0];
    MICA_TRY(mica_infer_sequence(i));
    head_shape h = heads_of(i->opts, x);
    if (h.heads < 1 || h.turned < 1 || h.turned > h.heads || x->dim[x->rank - 1] % h.heads != 0 ||
        x->rank >= MICA_MAX_RANK)
        return mica_infer_fail(
            i, MICA_ERR_SHAPE,
            "expected features that divide evenly among %td heads, of which %td are rotated", h.heads,
            h.turned);
    MICA_TRY(check_width(i, h.features));
    return mica_infer_like(i, 0, 0);
}

/* Heads from `first` on of t [..., T, heads * D], as a view [..., count, T, D]. */
static mica_tensor some_heads(const mica_tensor *t, const head_shape *h, mica_index first, mica_index count)
{
    mica_tensor view = *t;
    int last = t->rank; /* the view's last axis */
    view.rank = t->rank + 1;
    view.dim[last] = h->features;
    view.stride[last] = t->stride[last - 1];
    view.dim[last - 1] = t->dim[last - 2];
    view.stride[last - 1] = t->stride[last - 2];
    view.dim[last - 2] = count;
    view.stride[last - 2] = h->features * view.stride[last];
    if (t->data != NULL)
        view.data = (float *)t->data + first * view.stride[last - 2];
    return view;
}

static mica_status turn(const mica_call *c, rotary_fn *op)
{
    const mica_tensor *to = c->out[0], *from = c->in[0];
    mica_rotary_opts opts;
    MICA_TRY(how(c, &opts));
    head_shape h = heads_of(c->opts, from);
    mica_tensor y = some_heads(to, &h, 0, h.turned), x = some_heads(from, &h, 0, h.turned);
    MICA_TRY(op(c->ctx, &y, &x, c->in[1], &opts));
    if (h.turned == h.heads || (to->data == from->data && !mica_call_measuring(c)))
        return MICA_OK;
    y = some_heads(to, &h, h.turned, h.heads - h.turned);
    x = some_heads(from, &h, h.turned, h.heads - h.turned);
    return mica_copy(c->ctx, &y, &x);
}

static mica_status packed_run(const mica_call *c) { return turn(c, mica_rotary); }
static mica_status packed_run_back(const mica_call *c) { return turn(c, mica_rotary_backward); }

static const mica_op packed_backward = {.name = "rotary_packed_backward",
                                        .about = "the gradient of rotary_packed: the inverse rotation",
                                        .ins = 2,
                                        .outs = 1,
                                        .names = (const char *const[]){"dy", "table", "dx"},
                                        .opts_bytes = sizeof(mica_turn_opts),
                                        .fields = fields,
                                        .field_count = PACKED_FIELDS,
                                        .in_place = {1},
                                        .run = packed_run_back,
                                        .mixes = mixes};

static void packed_gradient(mica_grad *g)
{
    mica_grad_give(g, 0, &packed_backward, (mica_value[]){g->dout[0], g->in[1]}, 2, g->opts);
}

static void packed_sample(mica_op_sample *s)
{
    mica_turn_opts *opts = s->opts;
    mica_index features = mica_op_sample_int(s, 2, 5);
    mica_index dims[] = {mica_op_sample_int(s, 1, 3), mica_op_sample_int(s, 1, 4), 0};
    opts->heads = (int)mica_op_sample_int(s, 1, 4);
    opts->turned = (int)mica_op_sample_int(s, 1, opts->heads);
    opts->interleaved = mica_sample_chance(s);
    dims[2] = opts->heads * features;
    mica_op_sample_shape(s, 0, 3, dims);
    mica_op_sample_shape(s, 1, 2, (mica_index[]){dims[1], features - features % 2});
}

const mica_op mica_op_rotary_packed = {.name = "rotary_packed",
                                       .family = "rotary",
                                       .about = "rotary of the first of several packed heads",
                                       .flags = MICA_OP_CHEAP,
                                       .ins = 2,
                                       .outs = 1,
                                       .names = (const char *const[]){"x", "table", "y"},
                                       .opts_bytes = sizeof(mica_turn_opts),
                                       .fields = fields,
                                       .field_count = PACKED_FIELDS,
                                       .in_place = {1},
                                       .infer = packed_infer,
                                       .run = packed_run,
                                       .gradient = MICA_GRADIENT(packed_gradient),
                                       .mixes = mixes,
                                       .sample = MICA_SAMPLE(packed_sample)};
