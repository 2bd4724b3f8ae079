/* The largest elements along an axis, sums along one, and vectors that are hot in one place. */
#include "node/check.h"
#include "ops/combine.h"
#include "tensor/tensor.h"

/* The axis is the batch. */
static bool along_batch(const mica_infer *i, int axis) { return axis == 0 || axis == -i->in[0]->rank; }

/* Input 0 of a random shape; one of its axes. */
static int sample_axis(mica_op_sample *s, mica_index *dims, int *rank)
{
    *rank = mica_sample_dims(s, 1, 4, dims);
    mica_op_sample_shape(s, 0, *rank, dims);
    return (int)mica_op_sample_int(s, -*rank, *rank - 1);
}

/* ---- top_k ---- */

static mica_status top_k_infer(mica_infer *i)
{
    const mica_top_k_opts *o = i->opts;
    mica_tensor out = *i->in[0];
    int axis;
    MICA_TRY(mica_infer_axis(i, 0, o->axis, &axis));
    mica_index k = o->k != 0 ? o->k : 1;
    if (k < 0 || k > out.dim[axis])
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected at least %td elements along axis %d", k, axis);
    out.dim[axis] = k;
    MICA_TRY(mica_infer_out(i, 0, out.dtype, out.rank, out.dim));
    return mica_infer_out(i, 1, MICA_I64, out.rank, out.dim);
}

static mica_status top_k_run(const mica_call *c)
{
    return mica_top_k(c->ctx, c->out[0], c->out[1], c->in[0], c->opts);
}

/* dx = 0, but dvalues where they came from */
static void top_k_gradient(mica_grad *g)
{
    const mica_top_k_opts *o = g->opts;
    mica_grad_give(g, 0, &mica_op_gather_backward, (mica_value[]){g->dout[0], g->out[1]}, 2,
                   &(mica_axis_opts){.axis = o->axis});
}

static bool top_k_mixes(const mica_infer *i)
{
    return along_batch(i, ((const mica_top_k_opts *)i->opts)->axis);
}

static void top_k_sample(mica_op_sample *s)
{
    mica_top_k_opts *o = s->opts;
    mica_index dims[MICA_MAX_RANK];
    int rank;
    o->axis = sample_axis(s, dims, &rank);
    o->k = mica_op_sample_int(s, 1, dims[o->axis < 0 ? o->axis + rank : o->axis]);
    o->smallest = mica_sample_chance(s);
    mica_sample_range(s, 0, -50.0, 50.0);
}

static const mica_field top_k_fields[] = {
    MICA_FIELD(mica_top_k_opts, axis, INT, "along which they are; negative counts from the end"),
    MICA_FIELD(mica_top_k_opts, k, INDEX, "how many; 0: 1"),
    MICA_FIELD(mica_top_k_opts, smallest, BOOL, "the smallest instead"),
    MICA_FIELD(mica_top_k_opts, last, BOOL, "of equal ones the last comes first")};

const mica_op mica_op_top_k = {.name = "top_k",
                               .family = "index",
                               .about = "the largest elements along an axis, and where they are",
                               .ins = 1,
                               .outs = 2,
                               .names = (const char *const[]){"x", "values", "places"},
                               .opts_bytes = sizeof(mica_top_k_opts),
                               MICA_FIELD_LIST(top_k_fields),
                               .infer = top_k_infer,
                               .run = top_k_run,
                               .gradient = MICA_GRADIENT(top_k_gradient),
                               .mixes = top_k_mixes,
                               .sample = MICA_SAMPLE(top_k_sample)};

/* ---- one_hot ---- */

typedef struct one_hot_opts {
    int axis; /* of y */
    mica_index depth;
} one_hot_opts;

static mica_status one_hot_infer(mica_infer *i)
{
    const one_hot_opts *o = i->opts;
    const mica_tensor *index = i->in[0];
    int axis = o->axis;
    mica_index dims[MICA_MAX_RANK];
    MICA_TRY(mica_infer_indices(i, 0));
    if (index->rank == MICA_MAX_RANK || !mica_axis_resolve(&axis, index->rank + 1))
        return mica_infer_fail(i, MICA_ERR_AXIS, "axis %d of a result of rank %d", o->axis, index->rank + 1);
    if (i->in[1]->rank != 1 || i->in[1]->dim[0] != 2)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected values [2], got %s", MICA_SHAPE(i->in[1]));
    for (int k = 0; k <= index->rank; k++)
        dims[k] = k < axis ? index->dim[k] : k == axis ? o->depth : index->dim[k - 1];
    return mica_infer_out(i, 0, i->in[1]->dtype, index->rank + 1, dims);
}

static mica_status one_hot_run(const mica_call *c)
{
    return mica_one_hot(c->ctx, c->out[0], c->in[0], c->in[1], ((const one_hot_opts *)c->opts)->axis);
}

static bool one_hot_mixes(const mica_infer *i)
{
    int axis = ((const one_hot_opts *)i->opts)->axis;
    return axis == 0 || axis == -i->in[0]->rank - 1;
}

static void one_hot_sample(mica_op_sample *s)
{
    one_hot_opts *o = s->opts;
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 1, 3, dims);
    o->depth = mica_op_sample_int(s, 1, 6);
    o->axis = (int)mica_op_sample_int(s, -rank - 1, rank);
    mica_sample_indices(s, 0, rank, dims, o->depth);
    mica_op_sample_shape(s, 1, 1, (mica_index[]){2});
}

static const mica_field one_hot_fields[] = {MICA_FIELD(one_hot_opts, axis, INT, "the new axis of the result"),
                                            MICA_FIELD(one_hot_opts, depth, INDEX, "its size")};

const mica_op mica_op_one_hot = {
    .name = "one_hot",
    .family = "index",
    .about = "the second of two values at an index along a new axis, the first elsewhere",
    .ins = 2,
    .outs = 1,
    .names = (const char *const[]){"index", "values", "y"},
    .opts_bytes = sizeof(one_hot_opts),
    MICA_FIELD_LIST(one_hot_fields),
    .fixed_ins = 2,
    .infer = one_hot_infer,
    .run = one_hot_run,
    .mixes = one_hot_mixes,
    .sample = MICA_SAMPLE(one_hot_sample)};

/* ---- cumsum ---- */

static mica_status cumsum_infer(mica_infer *i)
{
    int axis;
    MICA_TRY(mica_infer_axis(i, 0, ((const mica_cumsum_opts *)i->opts)->axis, &axis));
    if (mica_combine_for(MICA_SCATTER_ADD, i->in[0]->dtype) == NULL)
        return mica_infer_fail(i, MICA_ERR_DTYPE, "expected f32, f64 or an integer type, got %s",
                               mica_dtype_name(i->in[0]->dtype));
    return mica_infer_like(i, 0, 0);
}

static mica_status cumsum_run(const mica_call *c)
{
    return mica_cumsum(c->ctx, c->out[0], c->in[0], c->opts);
}

/* dx[i] = the sum of dy from i on */
static void cumsum_gradient(mica_grad *g)
{
    mica_cumsum_opts back = *(const mica_cumsum_opts *)g->opts;
    back.reverse = !back.reverse;
    mica_grad_give(g, 0, &mica_op_cumsum, &g->dout[0], 1, &back);
}

static bool cumsum_mixes(const mica_infer *i)
{
    return along_batch(i, ((const mica_cumsum_opts *)i->opts)->axis);
}

static void cumsum_sample(mica_op_sample *s)
{
    mica_cumsum_opts *o = s->opts;
    mica_index dims[MICA_MAX_RANK];
    int rank;
    o->axis = sample_axis(s, dims, &rank);
    o->exclusive = mica_sample_chance(s);
    o->reverse = mica_sample_chance(s);
}

static const mica_field cumsum_fields[] = {
    MICA_FIELD(mica_cumsum_opts, axis, INT, "along which elements are added; negative counts from the end"),
    MICA_FIELD(mica_cumsum_opts, exclusive, BOOL, "without the element itself"),
    MICA_FIELD(mica_cumsum_opts, reverse, BOOL, "from the end")};

const mica_op mica_op_cumsum = {.name = "cumsum",
                                .family = "index",
                                .about = "sums of the elements up to each, along an axis",
                                .ins = 1,
                                .outs = 1,
                                .opts_bytes = sizeof(mica_cumsum_opts),
                                MICA_FIELD_LIST(cumsum_fields),
                                .in_place = {1},
                                .infer = cumsum_infer,
                                .run = cumsum_run,
                                .gradient = MICA_GRADIENT(cumsum_gradient),
                                .mixes = cumsum_mixes,
                                .sample = MICA_SAMPLE(cumsum_sample)};
