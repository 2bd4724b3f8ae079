/* Whole slices by index: take and index_add. */
#include "node/check.h"
#include "tensor/tensor.h"

static int axis_of(const void *opts) { return ((const mica_axis_opts *)opts)->axis; }

static const mica_field fields[] = {
    MICA_FIELD(mica_axis_opts, axis, INT, "the indexed axis; negative counts from the end")};

/* The shape of slices of `table` by `index`, whose axes stand in place of `axis`. */
static mica_status slices(mica_infer *i, const mica_tensor *table, const mica_tensor *index, int axis,
                          int *rank, mica_index *dims)
{
    *rank = table->rank - 1 + index->rank;
    if (*rank > MICA_MAX_RANK)
        return mica_infer_fail(i, MICA_ERR_SHAPE,
                               "slices with indices of rank %d would have rank %d: expected at most %d",
                               index->rank, *rank, MICA_MAX_RANK);
    for (int k = 0; k < *rank; k++)
        dims[k] = k < axis                 ? table->dim[k]
                  : k < axis + index->rank ? index->dim[k - axis]
                                           : table->dim[k - index->rank + 1];
    return MICA_OK;
}

/* Along the batch, or by indices that may be the batch's own: what is taken comes from other samples. */
static bool mixes_by(const mica_infer *i, const mica_tensor *table, const mica_tensor *index)
{
    int axis = axis_of(i->opts);
    return axis == 0 || axis == -table->rank || (index->rank > 0 && index->dim[0] == table->dim[0]);
}

/* A random table, indices into it, and the shape of the slices they name. */
static int sample_slices(mica_op_sample *s, int table, int index, mica_index *dims)
{
    mica_index of_table[] = {mica_op_sample_int(s, 1, 5), mica_op_sample_int(s, 1, 5),
                             mica_op_sample_int(s, 1, 4)};
    mica_index of_index[] = {mica_op_sample_int(s, 1, 4), mica_op_sample_int(s, 1, 3)};
    int axis = (int)mica_op_sample_int(s, 0, 2), rank = (int)mica_op_sample_int(s, 1, 2), n = 0;
    ((mica_axis_opts *)s->opts)->axis = mica_sample_chance(s) ? axis : axis - 3;
    mica_op_sample_shape(s, table, 3, of_table);
    mica_sample_indices(s, index, rank, of_index, of_table[axis]);
    for (int k = 0; k < 3; k++) {
        if (k != axis)
            dims[n++] = of_table[k];
        for (int j = 0; k == axis && j < rank; j++)
            dims[n++] = of_index[j];
    }
    return n;
}

/* ---- take ---- */

static mica_status take_infer(mica_infer *i)
{
    int axis, rank;
    mica_index dims[MICA_MAX_RANK];
    MICA_TRY(mica_infer_indices(i, 1));
    MICA_TRY(mica_infer_axis(i, 0, axis_of(i->opts), &axis));
    MICA_TRY(slices(i, i->in[0], i->in[1], axis, &rank, dims));
    mica_dtype dtype = mica_in_blocks(i->in[0]->dtype) ? MICA_F32 : i->in[0]->dtype;
    return mica_infer_out(i, 0, dtype, rank, dims);
}

static mica_status take_run(const mica_call *c)
{
    return mica_take(c->ctx, c->out[0], c->in[0], c->in[1], axis_of(c->opts));
}

static void take_gradient(mica_grad *g)
{
    mica_grad_give(g, 0, &mica_op_take_backward, (mica_value[]){g->dout[0], g->in[1]}, 2, g->opts);
}

static bool take_mixes(const mica_infer *i) { return mixes_by(i, i->in[0], i->in[1]); }

static void take_sample(mica_op_sample *s)
{
    mica_index dims[MICA_MAX_RANK];
    (void)sample_slices(s, 0, 1, dims);
}

const mica_op mica_op_take = {.name = "take",
                              .family = "shape",
                              .about = "slices of x along an axis, by index",
                              .flags = MICA_OP_CHEAP | MICA_OP_PICKS,
                              .ins = 2,
                              .outs = 1,
                              .names = (const char *const[]){"x", "index", "y"},
                              .opts_bytes = sizeof(mica_axis_opts),
                              MICA_FIELD_LIST(fields),
                              .infer = take_infer,
                              .run = take_run,
                              .gradient = MICA_GRADIENT(take_gradient),
                              .mixes = take_mixes,
                              .sample = MICA_SAMPLE(take_sample)};

/* ---- take_backward: its output has the shape of what was taken from ---- */

static mica_status take_run_back(const mica_call *c)
{
    return (c->add & 1u) ? mica_index_add(c->ctx, c->out[0], c->in[0], c->in[1], axis_of(c->opts))
                         : mica_take_backward(c->ctx, c->out[0], c->in[0], c->in[1], axis_of(c->opts));
}

const mica_op mica_op_take_backward = {
    .name = "take_backward",
    .family = "shape",
    .about = "the gradient of take: the slices of dy added to their source",
    .ins = 2,
    .outs = 1,
    .names = (const char *const[]){"dy", "index", "dx"},
    .opts_bytes = sizeof(mica_axis_opts),
    MICA_FIELD_LIST(fields),
    .adds = 1,
    .run = take_run_back};

/* ---- index_add ---- */

static mica_status add_infer(mica_infer *i)
{
    int axis, rank;
    mica_index dims[MICA_MAX_RANK];
    MICA_TRY(mica_infer_dtype(i, 0, MICA_F32));
    MICA_TRY(mica_infer_indices(i, 2));
    MICA_TRY(mica_infer_axis(i, 0, axis_of(i->opts), &axis));
    MICA_TRY(slices(i, i->in[0], i->in[2], axis, &rank, dims));
    MICA_TRY(mica_infer_expect(i, 1, rank, dims));
    return mica_infer_like(i, 0, 0);
}

static mica_status add_run(const mica_call *c)
{
    if (mica_call_measuring(c) || c->out[0]->data != c->in[0]->data)
        MICA_TRY(mica_copy(c->ctx, c->out[0], c->in[0]));
    return mica_index_add(c->ctx, c->out[0], c->in[1], c->in[2], axis_of(c->opts));
}

static void add_gradient(mica_grad *g)
{
    mica_grad_give(g, 1, &mica_op_take, (mica_value[]){g->dout[0], g->in[2]}, 2, g->opts);
    mica_grad_pass(g, 0, g->dout[0]);
}

static bool add_mixes(const mica_infer *i) { return mixes_by(i, i->in[0], i->in[2]); }

static void add_sample(mica_op_sample *s)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = sample_slices(s, 0, 2, dims);
    mica_op_sample_shape(s, 1, rank, dims);
}

const mica_op mica_op_index_add = {.name = "index_add",
                                   .family = "shape",
                                   .about = "x with the slices of src added along an axis, by index",
                                   .flags = MICA_OP_CHEAP,
                                   .ins = 3,
                                   .outs = 1,
                                   .names = (const char *const[]){"x", "src", "index", "y"},
                                   .opts_bytes = sizeof(mica_axis_opts),
                                   MICA_FIELD_LIST(fields),
                                   .in_place = {1},
                                   .infer = add_infer,
                                   .run = add_run,
                                   .gradient = MICA_GRADIENT(add_gradient),
                                   .mixes = add_mixes,
                                   .sample = MICA_SAMPLE(add_sample)};
