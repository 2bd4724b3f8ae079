/* Gather and scatter_add, element-wise: each is the other's gradient. */
#include "node/shape.h"

static int axis_in(const void *opts) { return ((const mica_axis_opts *)opts)->axis; }

/* Indices of `whole` along an axis: of its rank, and along the others no larger. */
static mica_status infer_index(mica_infer *i, const mica_tensor *whole, int index_number)
{
    const mica_tensor *index = i->in[index_number];
    int axis;
    MICA_TRY(mica_infer_axis(i, 0, axis_in(i->opts), &axis));
    if (index->dtype != MICA_I32 && index->dtype != MICA_I64)
        return mica_infer_fail(i, MICA_ERR_DTYPE, "expected i32 or i64 indices, got %s",
                               mica_dtype_name(index->dtype));
    bool fits = index->rank == whole->rank;
    for (int k = 0; fits && k < index->rank; k++)
        fits = k == axis || index->dim[k] <= whole->dim[k];
    if (fits)
        return MICA_OK;
    char shape[128];
    (void)mica_tensor_print_shape(shape, sizeof shape, index);
    return mica_infer_fail(i, MICA_ERR_SHAPE, "indices %s do not fit into it along axes other than %d", shape,
                           axis);
}

/* Samples stay apart where the batch is not what is indexed, and the indices are of the same batch. */
static bool mixes_by(const mica_infer *i, int index_number)
{
    const mica_tensor *whole = i->in[0], *index = i->in[index_number];
    return mica_axis_of(axis_in(i->opts), whole->rank) == 0 || index->dim[0] != whole->dim[0];
}

/* Input 0 and indices of it. */
static void sample_index(mica_op_sample *s, int index_number, mica_index dims[MICA_MAX_RANK], int *rank)
{
    *rank = mica_sample_dims(s, 1, 4, dims);
    int axis = mica_sample_axis(s, *rank);
    ((mica_axis_opts *)s->opts)->axis = axis;
    mica_op_sample_shape(s, 0, *rank, dims);
    s->high[index_number] = (double)dims[mica_axis_of(axis, *rank)];
    for (int k = 0; k < *rank; k++)
        dims[k] = k == mica_axis_of(axis, *rank) ? mica_op_sample_int(s, 1, 5)
                                                 : mica_op_sample_int(s, 1, dims[k]);
    mica_op_sample_shape(s, index_number, *rank, dims);
    s->in[index_number].dtype = MICA_I32;
    s->low[index_number] = 0.0;
}

/* ---- Gather: y[i][j] = x[index[i][j]][j] along axis 0, and so on ---- */

static mica_status gather_infer(mica_infer *i)
{
    MICA_TRY(infer_index(i, i->in[0], 1));
    return mica_infer_out(i, 0, i->in[0]->dtype, i->in[1]->rank, i->in[1]->dim);
}

static mica_status gather_run(const mica_call *c)
{
    return mica_gather(c->ctx, c->out[0], c->in[0], c->in[1], axis_in(c->opts));
}

/* dx = 0, then dx[index[i][j]][j] += dy[i][j]; or added to what is there */
static mica_status gather_backward_run(const mica_call *c)
{
    return c->add & 1u ? mica_scatter_add(c->ctx, c->out[0], c->in[0], c->in[1], axis_in(c->opts))
                       : mica_gather_backward(c->ctx, c->out[0], c->in[0], c->in[1], axis_in(c->opts));
}

static void gather_gradient(mica_grad *g)
{
    mica_grad_give(g, 0, &mica_op_gather_backward, (mica_value[]){g->dout[0], g->in[1]}, 2, g->opts);
}

static bool gather_mixes(const mica_infer *i) { return mixes_by(i, 1); }

static void gather_sample(mica_op_sample *s)
{
    mica_index dims[MICA_MAX_RANK];
    int rank;
    sample_index(s, 1, dims, &rank);
}

/* ---- Scatter: y = a, then y[index[i][j]][j] += src[i][j] ---- */

static mica_status scatter_add_infer(mica_infer *i)
{
    MICA_TRY(mica_infer_dtype(i, 0, MICA_F32));
    MICA_TRY(mica_infer_dtype(i, 1, MICA_F32));
    MICA_TRY(infer_index(i, i->in[0], 2));
    if (!mica_tensor_same_shape(i->in[1], i->in[2]))
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected as many values as indices");
    return mica_infer_like(i, 0, 0);
}

static mica_status scatter_add_run(const mica_call *c)
{
    MICA_TRY(mica_copy(c->ctx, c->out[0], c->in[0]));
    return mica_scatter_add(c->ctx, c->out[0], c->in[1], c->in[2], axis_in(c->opts));
}

/* da = dy, dsrc[i][j] = dy[index[i][j]][j] */
static void scatter_add_gradient(mica_grad *g)
{
    mica_grad_pass(g, 0, g->dout[0]);
    mica_grad_give(g, 1, &mica_op_gather, (mica_value[]){g->dout[0], g->in[2]}, 2, g->opts);
}

static bool scatter_add_mixes(const mica_infer *i) { return mixes_by(i, 2); }

static void scatter_add_sample(mica_op_sample *s)
{
    mica_index dims[MICA_MAX_RANK];
    int rank;
    sample_index(s, 2, dims, &rank);
    mica_op_sample_shape(s, 1, rank, dims);
}

/* ---- Entries ---- */

static const mica_field fields[] = {
    MICA_FIELD(mica_axis_opts, axis, INT, "the indexed axis; negative counts from the end")};

const mica_op mica_op_gather = {.name = "gather",
                                .family = "shape",
                                .about = "elements of x along an axis, by index",
                                .ins = 2,
                                .outs = 1,
                                .names = (const char *const[]){"x", "index", "y"},
                                .opts_bytes = sizeof(mica_axis_opts),
                                MICA_FIELD_LIST(fields),
                                .infer = gather_infer,
                                .run = gather_run,
                                .gradient = MICA_GRADIENT(gather_gradient),
                                .mixes = gather_mixes,
                                .sample = MICA_SAMPLE(gather_sample)};

const mica_op mica_op_gather_backward = {.name = "gather_backward",
                                         .family = "shape",
                                         .about = "the gradient of gather",
                                         .ins = 2,
                                         .outs = 1,
                                         .names = (const char *const[]){"dy", "index", "dx"},
                                         .opts_bytes = sizeof(mica_axis_opts),
                                         MICA_FIELD_LIST(fields),
                                         .adds = 1,
                                         .run = gather_backward_run};

const mica_op mica_op_scatter_add = {.name = "scatter_add",
                                     .family = "shape",
                                     .about = "a, with values added to its elements along an axis, by index",
                                     .ins = 3,
                                     .outs = 1,
                                     .names = (const char *const[]){"a", "src", "index", "y"},
                                     .opts_bytes = sizeof(mica_axis_opts),
                                     MICA_FIELD_LIST(fields),
                                     .in_place = {1},
                                     .infer = scatter_add_infer,
                                     .run = scatter_add_run,
                                     .gradient = MICA_GRADIENT(scatter_add_gradient),
                                     .mixes = scatter_add_mixes,
                                     .sample = MICA_SAMPLE(scatter_add_sample)};
