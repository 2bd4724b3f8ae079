/* Elements and slices by index: scatter, gather_nd and scatter_nd; indices that count from the end. */
#include "node/check.h"
#include "ops/combine.h"
#include "tensor/tensor.h"

/* An operation with indices moves samples among each other unless it is told otherwise. */
static bool mixes(const mica_infer *i)
{
    (void)i;
    return true;
}

/* ---- Indices that count from the end ---- */

static mica_status wrap_infer(mica_infer *i)
{
    const mica_wrap_opts *o = i->opts;
    int axis;
    MICA_TRY(mica_infer_indices(i, 0));
    if (!o->tuples)
        MICA_TRY(mica_infer_axis(i, 1, o->axis, &axis));
    else if (i->in[0]->rank == 0 || o->batch < 0 ||
             i->in[0]->dim[i->in[0]->rank - 1] > i->in[1]->rank - o->batch)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "indices %s do not fit it, with %d batch axes",
                               MICA_SHAPE(i->in[0]), o->batch);
    return mica_infer_like(i, 0, 0);
}

static mica_status wrap_run(const mica_call *c)
{
    return mica_wrap_indices(c->ctx, c->out[0], c->in[0], c->in[1], c->opts);
}

static void wrap_sample(mica_op_sample *s)
{
    mica_index like[] = {mica_op_sample_int(s, 1, 5), mica_op_sample_int(s, 1, 5)};
    mica_wrap_opts *o = s->opts;
    o->tuples = mica_sample_chance(s);
    o->axis = o->tuples ? 0 : (int)mica_op_sample_int(s, -2, 1);
    mica_op_sample_shape(s, 1, 2, like);
    mica_sample_indices(s, 0, 2, (mica_index[]){mica_op_sample_int(s, 1, 5), 2}, 1);
    s->low[0] = -1.0;
}

static const mica_field wrap_fields[] = {
    MICA_FIELD(mica_wrap_opts, axis, INT, "of `like`, whose size is added"),
    MICA_FIELD(mica_wrap_opts, tuples, BOOL, "indices come in tuples, one for each axis"),
    MICA_FIELD(mica_wrap_opts, batch, INT, "axes before those of the tuples")};

const mica_op mica_op_wrap_indices = {.name = "wrap_indices",
                                      .family = "index",
                                      .about = "indices, where negative ones count from the end of an axis",
                                      .flags = MICA_OP_CHEAP,
                                      .ins = 2,
                                      .outs = 1,
                                      .names = (const char *const[]){"index", "like", "y"},
                                      .opts_bytes = sizeof(mica_wrap_opts),
                                      MICA_FIELD_LIST(wrap_fields),
                                      .in_place = {1},
                                      .infer = wrap_infer,
                                      .run = wrap_run,
                                      .mixes = mixes,
                                      .sample = MICA_SAMPLE(wrap_sample)};

/* ---- Slices by tuples ---- */

typedef struct batch_opts {
    int batch;
} batch_opts;

static int batch_of(const void *opts) { return ((const batch_opts *)opts)->batch; }

/* The shape of the slices of input 0 that the tuples of input `number` name. */
static mica_status slices(mica_infer *i, int number, int batch, int *rank, mica_index *dims)
{
    const mica_tensor *whole = i->in[0], *index = i->in[number];
    MICA_TRY(mica_infer_indices(i, number));
    bool fits = index->rank > 0 && batch >= 0 && batch < index->rank && batch <= whole->rank &&
                index->dim[index->rank - 1] <= whole->rank - batch;
    for (int k = 0; fits && k < batch; k++)
        fits = index->dim[k] == whole->dim[k];
    *rank = fits ? index->rank - 1 + whole->rank - batch - (int)index->dim[index->rank - 1] : 0;
    if (!fits || *rank > MICA_MAX_RANK)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "indices %s do not fit it, with %d batch axes",
                               MICA_SHAPE(index), batch);
    for (int k = 0; k < *rank; k++)
        dims[k] = k < index->rank - 1 ? index->dim[k] : whole->dim[whole->rank - *rank + k];
    return MICA_OK;
}

static mica_status gather_infer(mica_infer *i)
{
    int rank;
    mica_index dims[MICA_MAX_RANK];
    MICA_TRY(slices(i, 1, batch_of(i->opts), &rank, dims));
    return mica_infer_out(i, 0, i->in[0]->dtype, rank, dims);
}

static mica_status gather_run(const mica_call *c)
{
    return mica_gather_nd(c->ctx, c->out[0], c->in[0], c->in[1], batch_of(c->opts));
}

static mica_status gather_backward_run(const mica_call *c)
{
    return mica_gather_nd_backward(c->ctx, c->out[0], c->in[0], c->in[1], batch_of(c->opts));
}

static void gather_gradient(mica_grad *g)
{
    mica_grad_give(g, 0, &mica_op_gather_nd_backward, (mica_value[]){g->dout[0], g->in[1]}, 2, g->opts);
}

static bool gather_mixes(const mica_infer *i) { return batch_of(i->opts) == 0; }

/* Input 0, and tuples into it; the shape of what they name. All axes are of one size: tuples have one range. */
static int sample_tuples(mica_op_sample *s, int index, int batch, int tuples, mica_index *dims)
{
    mica_index size = mica_op_sample_int(s, 1, 4);
    int rank = (int)mica_op_sample_int(s, batch + 1, 3), depth = (int)mica_op_sample_int(s, 1, rank - batch),
        n = 0;
    mica_op_sample_shape(s, 0, rank, (mica_index[]){size, size, size});
    for (int k = 0; k < batch; k++)
        dims[n++] = size;
    dims[n++] = tuples;
    dims[n] = depth;
    mica_sample_indices(s, index, n + 1, dims, size);
    for (int k = batch + depth; k < rank; k++)
        dims[n++] = size;
    return n;
}

static void gather_sample(mica_op_sample *s)
{
    mica_index dims[MICA_MAX_RANK];
    batch_opts *o = s->opts;
    o->batch = (int)mica_op_sample_int(s, 0, 1);
    (void)sample_tuples(s, 1, o->batch, (int)mica_op_sample_int(s, 1, 4), dims);
}

static const mica_field batch_fields[] = {
    MICA_FIELD(batch_opts, batch, INT, "leading axes that x and the indices have in common")};

const mica_op mica_op_gather_nd = {.name = "gather_nd",
                                   .family = "index",
                                   .about = "slices of x by tuples of indices",
                                   .ins = 2,
                                   .outs = 1,
                                   .names = (const char *const[]){"x", "index", "y"},
                                   .opts_bytes = sizeof(batch_opts),
                                   MICA_FIELD_LIST(batch_fields),
                                   .infer = gather_infer,
                                   .run = gather_run,
                                   .gradient = MICA_GRADIENT(gather_gradient),
                                   .mixes = gather_mixes,
                                   .sample = MICA_SAMPLE(gather_sample)};

const mica_op mica_op_gather_nd_backward = {.name = "gather_nd_backward",
                                            .family = "index",
                                            .about = "the gradient of gather_nd",
                                            .ins = 2,
                                            .outs = 1,
                                            .names = (const char *const[]){"dy", "index", "dx"},
                                            .opts_bytes = sizeof(batch_opts),
                                            MICA_FIELD_LIST(batch_fields),
                                            .run = gather_backward_run};

/* ---- Scatter: y = a, then y[index[i]] = src[i], or what the kind says ---- */

static mica_status infer_kind(mica_infer *i, mica_scatter_kind kind)
{
    if ((unsigned)kind > MICA_SCATTER_MAX)
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "unknown kind %d", (int)kind);
    MICA_TRY(mica_infer_dtype(i, 1, i->in[0]->dtype));
    if (mica_combine_for(kind, i->in[0]->dtype) == NULL)
        return mica_infer_fail(i, MICA_ERR_DTYPE, "expected f32, f64 or an integer type, got %s",
                               mica_dtype_name(i->in[0]->dtype));
    return mica_infer_like(i, 0, 0);
}

static mica_status scatter_infer(mica_infer *i)
{
    const mica_scatter_opts *o = i->opts;
    const mica_tensor *whole = i->in[0], *index = i->in[2];
    int axis;
    MICA_TRY(mica_infer_indices(i, 2));
    MICA_TRY(mica_infer_axis(i, 0, o->axis, &axis));
    bool fits = index->rank == whole->rank;
    for (int k = 0; fits && k < index->rank; k++)
        fits = k == axis || index->dim[k] <= whole->dim[k];
    if (!fits)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "indices %s do not fit into it along axes other than %d",
                               MICA_SHAPE(index), axis);
    if (!mica_tensor_same_shape(i->in[1], index))
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected as many values as indices");
    return infer_kind(i, o->kind);
}

static mica_status scatter_nd_infer(mica_infer *i)
{
    int rank;
    mica_tensor want = *i->in[1];
    MICA_TRY(slices(i, 2, 0, &rank, want.dim));
    want.rank = rank;
    if (!mica_tensor_same_shape(i->in[1], &want))
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected values %s, got %s", MICA_SHAPE(&want),
                               MICA_SHAPE(i->in[1]));
    return infer_kind(i, ((const mica_scatter_opts *)i->opts)->kind);
}

static mica_status start(const mica_call *c)
{
    bool there = !mica_call_measuring(c) && c->out[0]->data == c->in[0]->data;
    return there ? MICA_OK : mica_copy(c->ctx, c->out[0], c->in[0]);
}

static mica_status scatter_run(const mica_call *c)
{
    MICA_TRY(start(c));
    return mica_scatter(c->ctx, c->out[0], c->in[1], c->in[2], c->opts);
}

static mica_status scatter_nd_run(const mica_call *c)
{
    MICA_TRY(start(c));
    return mica_scatter_nd(c->ctx, c->out[0], c->in[1], c->in[2], ((const mica_scatter_opts *)c->opts)->kind);
}

/* set: da = dy, and 0 where it was written; dsrc = dy[index] (of indices that are named once)
 * add: da = dy; dsrc = dy[index]
 * mul: da = dy times the src that were multiplied; dsrc = (dy y)[index] / src
 * min, max: da = dy where y = a; dsrc = dy[index] where y[index] = src */
static void scatter_gradient_by(mica_grad *g, const mica_op *gather, const void *gather_opts)
{
    const mica_scatter_opts *o = g->opts;
    mica_value dy = g->dout[0], index = g->in[2], there = dy, part;
    switch (o->kind) {
    case MICA_SCATTER_SET:
        part = mica_grad_value(g, &mica_op_zeros, &g->in[1], 1, NULL);
        mica_grad_give(g, 0, g->op, (mica_value[]){dy, part, index}, 3, g->opts);
        break;
    case MICA_SCATTER_ADD:
        mica_grad_pass(g, 0, dy);
        break;
    case MICA_SCATTER_MUL:
        mica_grad_give(g, 0, g->op, (mica_value[]){dy, g->in[1], index}, 3, g->opts);
        there = mica_grad_value(g, &mica_op_mul, (mica_value[]){dy, g->out[0]}, 2, NULL);
        break;
    default:
        part = mica_grad_value(g, &mica_op_eq, (mica_value[]){g->out[0], g->in[0]}, 2, NULL);
        mica_grad_give(g, 0, &mica_op_mul, (mica_value[]){dy, part}, 2, NULL);
    }
    if (o->kind <= MICA_SCATTER_ADD) {
        mica_grad_give(g, 1, gather, (mica_value[]){dy, index}, 2, gather_opts);
        return;
    }
    if (!mica_grad_wants(g, 1))
        return;
    mica_value each = mica_grad_value(g, gather, (mica_value[]){there, index}, 2, gather_opts);
    if (o->kind == MICA_SCATTER_MUL) {
        mica_grad_give(g, 1, &mica_op_div, (mica_value[]){each, g->in[1]}, 2, NULL);
        return;
    }
    mica_value y = mica_grad_value(g, gather, (mica_value[]){g->out[0], index}, 2, gather_opts);
    part = mica_grad_value(g, &mica_op_eq, (mica_value[]){y, g->in[1]}, 2, NULL);
    mica_grad_give(g, 1, &mica_op_mul, (mica_value[]){each, part}, 2, NULL);
}

static void scatter_gradient(mica_grad *g)
{
    const mica_scatter_opts *o = g->opts;
    scatter_gradient_by(g, &mica_op_gather, &(mica_axis_opts){.axis = o->axis});
}

static void scatter_nd_gradient(mica_grad *g)
{
    scatter_gradient_by(g, &mica_op_gather_nd, &(batch_opts){0});
}

/* Of the smaller or larger of two numbers, it is always clear which that is. */
static mica_scatter_kind sample_kind(mica_op_sample *s)
{
    mica_scatter_kind kind = (mica_scatter_kind)mica_op_sample_int(s, 0, MICA_SCATTER_MAX);
    if (kind == MICA_SCATTER_MIN || kind == MICA_SCATTER_MAX)
        mica_sample_range(s, 0, -9.0, -8.0);
    if (kind != MICA_SCATTER_SET && kind != MICA_SCATTER_ADD)
        mica_sample_range(s, 1, 0.5, 20.0);
    return kind;
}

static void scatter_sample(mica_op_sample *s)
{
    mica_scatter_opts *o = s->opts;
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 1, 4, dims);
    o->kind = sample_kind(s);
    o->axis = (int)mica_op_sample_int(s, -rank, rank - 1);
    int axis = o->axis < 0 ? o->axis + rank : o->axis;
    mica_index size = dims[axis];
    mica_op_sample_shape(s, 0, rank, dims);
    for (int k = 0; k < rank; k++)
        dims[k] = k != axis ? mica_op_sample_int(s, 1, dims[k]) : o->kind == MICA_SCATTER_ADD ? 4 : 1;
    mica_op_sample_shape(s, 1, rank, dims);
    mica_sample_indices(s, 2, rank, dims, size);
}

static void scatter_nd_sample(mica_op_sample *s)
{
    mica_scatter_opts *o = s->opts;
    mica_index dims[MICA_MAX_RANK];
    o->kind = sample_kind(s);
    int rank = sample_tuples(s, 2, 0, o->kind == MICA_SCATTER_ADD ? 4 : 1, dims);
    mica_op_sample_shape(s, 1, rank, dims);
}

static const mica_field scatter_fields[] = {
    MICA_FIELD(mica_scatter_opts, axis, INT, "the indexed axis; negative counts from the end"),
    MICA_FIELD(mica_scatter_opts, kind, CHOICE, "set|add|mul|min|max")};
static const mica_field scatter_nd_fields[] = {
    MICA_FIELD(mica_scatter_opts, kind, CHOICE, "set|add|mul|min|max")};

#define ENTRY(op, words, list)                                                              \
    const mica_op mica_op_##op = {.name = #op,                                              \
                                  .family = "index",                                        \
                                  .about = words,                                           \
                                  .ins = 3,                                                 \
                                  .outs = 1,                                                \
                                  .names = (const char *const[]){"a", "src", "index", "y"}, \
                                  .opts_bytes = sizeof(mica_scatter_opts),                  \
                                  MICA_FIELD_LIST(list),                                    \
                                  .in_place = {1},                                          \
                                  .infer = op##_infer,                                      \
                                  .run = op##_run,                                          \
                                  .gradient = MICA_GRADIENT(op##_gradient),                 \
                                  .mixes = mixes,                                           \
                                  .sample = MICA_SAMPLE(op##_sample)};
ENTRY(scatter, "a, with values written to its elements along an axis, by index", scatter_fields)
ENTRY(scatter_nd, "a, with values written to slices of it, by tuples of indices", scatter_nd_fields)
