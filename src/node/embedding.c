/* Embedding: rows of a learned table by index. */
#include "node/check.h"
#include "tensor/tensor.h"

enum { WEIGHT, INDICES, USED }; /* used [rows]: which rows of the weight's gradient may be other than 0 */

static mica_status infer(mica_infer *i)
{
    const mica_tensor *weight = i->in[WEIGHT], *indices = i->in[INDICES], *used = i->in[USED];
    MICA_TRY(mica_infer_indices(i, INDICES));
    bool floats = weight->dtype == MICA_F32 || weight->dtype == MICA_F16 || weight->dtype == MICA_BF16;
    if ((!floats && !mica_in_blocks(weight->dtype)) || weight->rank != 2)
        return mica_infer_fail(i, MICA_ERR_SHAPE,
                               "expected weights [rows, width] of f32, f16, bf16 or a block-quantized type");
    if (used != NULL && (used->dtype != MICA_U8 || used->rank != 1 || used->dim[0] != weight->dim[0]))
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected marks u8 [%td], one for each row",
                               weight->dim[0]);
    if (used != NULL && !mica_tensor_contiguous(indices)) /* they are marked one by one */
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected contiguous indices");
    if (indices->rank >= MICA_MAX_RANK)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected indices of rank %d or less, got rank %d",
                               MICA_MAX_RANK - 1, indices->rank);
    mica_index dims[MICA_MAX_RANK];
    memcpy(dims, indices->dim, sizeof dims);
    dims[indices->rank] = weight->dim[1];
    return mica_infer_out(i, 0, MICA_F32, indices->rank + 1, dims);
}

static mica_status run(const mica_call *c)
{
    return mica_take(c->ctx, c->out[0], c->in[WEIGHT], c->in[INDICES], 0);
}

/* ---- Gradient ---- */

enum { DY, BACK_INDICES, BACK_USED };

/* Zeroes the gradient's used rows, so that all of it is 0. */
static mica_status clear_used(const mica_call *c)
{
    unsigned char *used = c->in[BACK_USED]->data;
    for (mica_index row = 0; row < c->in[BACK_USED]->dim[0]; row++) {
        if (!used[row])
            continue;
        mica_tensor gradient;
        MICA_TRY(mica_view_select(c->ctx, &gradient, c->out[0], 0, row));
        MICA_TRY(mica_zeros(c->ctx, &gradient));
        used[row] = 0;
    }
    return MICA_OK;
}

static void mark_used(const mica_call *c)
{
    const mica_tensor *indices = c->in[BACK_INDICES];
    unsigned char *used = c->in[BACK_USED]->data;
    size_t count = mica_tensor_count(indices);
    if (indices->dtype == MICA_I32) {
        for (size_t i = 0; i < count; i++)
            used[((const int32_t *)indices->data)[i]] = 1;
    } else {
        for (size_t i = 0; i < count; i++)
            used[((const int64_t *)indices->data)[i]] = 1;
    }
}

/* dweight[index[t]] += dy[t], after the rows that a step before used were zeroed: of a large table a step touches
 * those rows alone. So dweight must lie in memory of its own from step to step, as the gradients of what is learned
 * do. */
static mica_status run_back(const mica_call *c)
{
    bool measuring = mica_call_measuring(c);
    if (!measuring && !(c->add & 1u))
        MICA_TRY(clear_used(c));
    MICA_TRY(mica_index_add(c->ctx, c->out[0], c->in[DY], c->in[BACK_INDICES], 0));
    if (!measuring)
        mark_used(c);
    return MICA_OK;
}

static const mica_op backward = {.name = "embedding_backward",
                                 .about = "the gradient of embedding, for the rows that were used",
                                 .ins = 3,
                                 .outs = 1,
                                 .names = (const char *const[]){"dy", "indices", "used", "dweight"},
                                 .adds = 1,
                                 .writes = 1u << BACK_USED,
                                 .run = run_back};

static void gradient(mica_grad *g)
{
    mica_value in[] = {g->dout[0], g->in[INDICES], g->in[USED]};
    if (g->in[USED] != 0)
        mica_grad_give(g, WEIGHT, &backward, in, 3, NULL);
    else
        mica_grad_give(g, WEIGHT, &mica_op_take_backward, in, 2, &(mica_axis_opts){0});
}

static void sample(mica_op_sample *s)
{
    mica_index rows = mica_op_sample_int(s, 1, 6);
    mica_index dims[] = {mica_op_sample_int(s, 1, 4), mica_op_sample_int(s, 1, 4)};
    mica_op_sample_shape(s, WEIGHT, 2, (mica_index[]){rows, mica_op_sample_int(s, 1, 5)});
    mica_sample_indices(s, INDICES, (int)mica_op_sample_int(s, 1, 2), dims, rows);
}

const mica_op mica_op_embedding = {.name = "embedding",
                                   .family = "shape",
                                   .about = "rows of a learned table, by index",
                                   .flags = MICA_OP_CHEAP | MICA_OP_PICKS,
                                   .ins = 2,
                                   .optional_ins = 1,
                                   .outs = 1,
                                   .names = (const char *const[]){"weight", "indices", "used", "y"},
                                   .infer = infer,
                                   .run = run,
                                   .gradient = MICA_GRADIENT(gradient),
                                   .sample = MICA_SAMPLE(sample)};
