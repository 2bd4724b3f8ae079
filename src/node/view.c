/* Reshape, flatten, squeeze, unsqueeze: the same elements in another shape. In a net nothing runs, and gradients
 * are views as well. */
#include "node/shape.h"

static mica_status reshape_infer(mica_infer *i)
{
    const mica_shape_opts *o = i->opts;
    const mica_tensor *x = i->in[0];
    mica_index dims[MICA_MAX_RANK];
    if (o->rank < 0 || o->rank > MICA_MAX_RANK)
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "rank is %d: expected 0 to %d", o->rank, MICA_MAX_RANK);
    for (int k = 0; k < o->rank; k++)
        dims[k] = k < x->rank && o->dims[k] == 0 ? x->dim[k] : o->dims[k];
    mica_tensor view;
    mica_status status = mica_view_reshape(i->ctx, &view, x, o->rank, dims);
    return mica_infer_as(i, status, &view);
}

static mica_status flatten_infer(mica_infer *i)
{
    const mica_flatten_opts *o = i->opts;
    const mica_tensor *x = i->in[0];
    bool usual = o->first == 0 && o->last == 0;
    if (usual && x->rank < 2)
        return mica_infer_out(i, 0, x->dtype, 2, (mica_index[]){x->rank == 1 ? x->dim[0] : 1, 1});
    mica_tensor view;
    mica_status status = mica_view_flatten(i->ctx, &view, x, usual ? 1 : o->first, usual ? -1 : o->last);
    return mica_infer_as(i, status, &view);
}

static mica_status squeeze_infer(mica_infer *i)
{
    mica_tensor view;
    mica_status status = mica_view_squeeze(i->ctx, &view, i->in[0], ((const mica_axis_opts *)i->opts)->axis);
    return mica_infer_as(i, status, &view);
}

static mica_status unsqueeze_infer(mica_infer *i)
{
    mica_tensor view;
    mica_status status = mica_view_unsqueeze(i->ctx, &view, i->in[0],
                                             ((const mica_axis_opts *)i->opts)->axis);
    return mica_infer_as(i, status, &view);
}

/* On tensors of a caller's own, which may lie anywhere. */
static mica_status run(const mica_call *c) { return mica_reshape(c->ctx, c->out[0], c->in[0]); }

/* Elements keep their order, so samples stay apart as long as the first axis is the batch, alone or with axes folded
 * into it: the first sizes are multiples of one another. */
static bool mixes(const mica_infer *i)
{
    mica_infer shape = *i;
    if (i->op->infer(&shape) != MICA_OK || i->in[0]->rank < 1 || shape.out[0].rank < 1)
        return true;
    mica_index from = i->in[0]->dim[0], to = shape.out[0].dim[0];
    bool folds = from > 0 && to % from == 0, unfolds = to > 1 && from % to == 0;
    return !folds && !unfolds;
}

/* ---- Samples ---- */

static void reshape_sample(mica_op_sample *s)
{
    static const mica_shape_opts others[] = {
        {3, {0, -1, 1}}, {2, {0, 24}}, {1, {-1}}, {4, {0, 3, 2, 4}}, {2, {-1, 6}}};
    *(mica_shape_opts *)s->opts = others[mica_op_sample_int(s, 0, 4)];
    mica_op_sample_shape(s, 0, 4, (mica_index[]){mica_op_sample_int(s, 1, 3), 2, 3, 4});
}

static void flatten_sample(mica_op_sample *s)
{
    mica_flatten_opts *o = s->opts;
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 1, 5, dims);
    o->first = (int)mica_op_sample_int(s, 0, rank - 1);
    o->last = (int)mica_op_sample_int(s, o->first, rank - 1);
    mica_op_sample_shape(s, 0, rank, dims);
}

static void squeeze_sample(mica_op_sample *s)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 1, 5, dims), axis = mica_sample_axis(s, rank);
    dims[mica_axis_of(axis, rank)] = 1;
    ((mica_axis_opts *)s->opts)->axis = axis;
    mica_op_sample_shape(s, 0, rank, dims);
}

static void unsqueeze_sample(mica_op_sample *s)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 1, 5, dims);
    ((mica_axis_opts *)s->opts)->axis = mica_sample_axis(s, rank + 1);
    mica_op_sample_shape(s, 0, rank, dims);
}

/* ---- Entries ---- */

static const mica_field reshape_fields[] = {
    MICA_FIELD(mica_shape_opts, rank, LENGTH, "of the result"),
    MICA_FIELDS(mica_shape_opts, dims, INDEX, "0: as in x; one may be -1: inferred")};
static const mica_field flatten_fields[] = {
    MICA_FIELD(mica_flatten_opts, first, INT, "first axis to merge; 0, 0: all but the first"),
    MICA_FIELD(mica_flatten_opts, last, INT, "last axis to merge")};
static const mica_field squeeze_fields[] = {MICA_FIELD(mica_axis_opts, axis, INT, "axis of size 1")};
static const mica_field unsqueeze_fields[] = {MICA_FIELD(mica_axis_opts, axis, INT, "of the result")};

#define VIEW(op, options, words)                                            \
    const mica_op mica_op_##op = {.name = #op,                              \
                                  .family = "shape",                        \
                                  .about = words,                           \
                                  .flags = MICA_OP_VIEW,                    \
                                  .ins = 1,                                 \
                                  .outs = 1,                                \
                                  .names = (const char *const[]){"x", "y"}, \
                                  .opts_bytes = sizeof(options),            \
                                  MICA_FIELD_LIST(op##_fields),             \
                                  .infer = op##_infer,                      \
                                  .run = MICA_RUN_ALONE(run),               \
                                  .mixes = mixes,                           \
                                  .sample = MICA_SAMPLE(op##_sample)};

VIEW(reshape, mica_shape_opts, "the same elements in another shape")
VIEW(flatten, mica_flatten_opts, "some axes merged into one")
VIEW(squeeze, mica_axis_opts, "without an axis of size 1")
VIEW(unsqueeze, mica_axis_opts, "with another axis of size 1")
