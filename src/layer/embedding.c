/* Embedding: rows of a table by index. */
#include <string.h>

#include <mica/layer.h>
#include <mica/layers.h>

#include "base/context.h"

static mica_status infer(mica_infer *infer)
{
    const mica_net_embedding_opts *opts = infer->opts;
    const mica_tensor *index = infer->in[0];
    if (index->dtype != MICA_I32 && index->dtype != MICA_I64)
        return mica_infer_fail(infer, MICA_ERR_DTYPE, "expected indices of i32 or i64, got %s",
                               mica_dtype_name(index->dtype));
    if (index->rank >= MICA_MAX_RANK)
        return mica_infer_fail(infer, MICA_ERR_SHAPE, "expected indices of rank %d or less, got rank %d",
                               MICA_MAX_RANK - 1, index->rank);
    if (opts->rows < 1 || opts->width < 1)
        return mica_infer_fail(infer, MICA_ERR_ARGUMENT, "rows is %td, width is %td: expected 1 or more",
                               opts->rows, opts->width);
    mica_init init = opts->weight_init.kind != MICA_INIT_DEFAULT ? opts->weight_init
                                                                 : (mica_init){MICA_INIT_NORMAL, 1.0f};
    MICA_TRY(mica_infer_parameter(infer, "weight", 2, (mica_index[]){opts->rows, opts->width}, init));
    /* At first every row counts as used, whatever the gradient holds. */
    MICA_TRY(mica_infer_state(infer, "used", MICA_U8, 1, &opts->rows, 1.0f));
    mica_index dims[MICA_MAX_RANK];
    memcpy(dims, index->dim, sizeof dims);
    dims[index->rank] = opts->width;
    return mica_infer_output(infer, MICA_F32, index->rank + 1, dims);
}

static mica_status forward(const mica_step *s) { return mica_take(s->ctx, s->out, s->param[0], s->in[0], 0); }

/* Zeroes the gradient's used rows, so that all of it is 0. */
static mica_status clear_used(const mica_step *s)
{
    unsigned char *used = s->state[0]->data;
    for (mica_index row = 0; row < s->state[0]->dim[0]; row++) {
        if (!used[row])
            continue;
        mica_tensor gradient;
        MICA_TRY(mica_view_select(s->ctx, &gradient, s->dparam[0], 0, row));
        MICA_TRY(mica_zeros(s->ctx, &gradient));
        used[row] = 0;
    }
    return MICA_OK;
}

static void mark_used(const mica_step *s)
{
    unsigned char *used = s->state[0]->data;
    size_t count = mica_tensor_count(s->in[0]);
    if (s->in[0]->dtype == MICA_I32) {
        for (size_t i = 0; i < count; i++)
            used[((const int32_t *)s->in[0]->data)[i]] = 1;
    } else {
        for (size_t i = 0; i < count; i++)
            used[((const int64_t *)s->in[0]->data)[i]] = 1;
    }
}

/* dweight[index[t]] += dy[t] */
static mica_status backward(const mica_step *s)
{
    if (s->dparam[0] == NULL)
        return MICA_OK;
    bool measuring = mica_step_measuring(s);
    if (!measuring && !s->add_dparam[0])
        MICA_TRY(clear_used(s));
    MICA_TRY(mica_index_add(s->ctx, s->dparam[0], s->dout, s->in[0], 0));
    if (!measuring)
        mark_used(s);
    return MICA_OK;
}

static const mica_layer embedding = {.name = "embedding",
                                     .flags = MICA_LAYER_READS_INPUTS | MICA_LAYER_NO_INPUT_GRADIENT |
                                              MICA_LAYER_ADDS_PARAMETERS,
                                     .opts_bytes = sizeof(mica_net_embedding_opts),
                                     .infer = infer,
                                     .forward = forward,
                                     .backward = backward};

mica_value mica_net_embedding(mica_net *net, mica_value indices, const mica_net_embedding_opts *opts)
{
    return mica_net_add(net, &embedding, opts, &indices, 1);
}
