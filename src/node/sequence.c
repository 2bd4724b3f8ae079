/* Triangles of matrices, sequences in reverse, writing to a cache, determinants. */
#include "node/check.h"
#include "tensor/tensor.h"

/* ---- trilu ---- */

static mica_status infer_matrices(mica_infer *i)
{
    if (i->in[0]->rank >= 2)
        return MICA_OK;
    return mica_infer_fail(i, MICA_ERR_SHAPE, "expected matrices: rank 2 or more");
}

static mica_status trilu_infer(mica_infer *i)
{
    MICA_TRY(infer_matrices(i));
    return mica_infer_like(i, 0, 0);
}

static mica_status trilu_run(const mica_call *c) { return mica_trilu(c->ctx, c->out[0], c->in[0], c->opts); }

/* dx is the same part of dy */
static void trilu_gradient(mica_grad *g) { mica_grad_give(g, 0, &mica_op_trilu, &g->dout[0], 1, g->opts); }

/* In matrices without a batch, rows differ. */
static bool trilu_mixes(const mica_infer *i) { return i->in[0]->rank < 3; }

static void trilu_sample(mica_op_sample *s)
{
    mica_trilu_opts *o = s->opts;
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 2, 4, dims);
    o->k = mica_op_sample_int(s, -4, 4);
    o->lower = mica_sample_chance(s);
    mica_op_sample_shape(s, 0, rank, dims);
}

static const mica_field trilu_fields[] = {
    MICA_FIELD(mica_trilu_opts, k, INDEX, "the diagonal: 0 the main one, positive above it"),
    MICA_FIELD(mica_trilu_opts, lower, BOOL, "the part on and below it; otherwise on and above")};

const mica_op mica_op_trilu = {.name = "trilu",
                               .family = "index",
                               .about = "the upper or lower triangle of matrices, 0 elsewhere",
                               .flags = MICA_OP_CHEAP,
                               .ins = 1,
                               .outs = 1,
                               .opts_bytes = sizeof(mica_trilu_opts),
                               MICA_FIELD_LIST(trilu_fields),
                               .in_place = {1},
                               .infer = trilu_infer,
                               .run = trilu_run,
                               .gradient = MICA_GRADIENT(trilu_gradient),
                               .mixes = trilu_mixes,
                               .sample = MICA_SAMPLE(trilu_sample)};

/* ---- reverse_sequence ---- */

static mica_reverse_sequence_opts axes_of(const void *opts)
{
    mica_reverse_sequence_opts o = *(const mica_reverse_sequence_opts *)opts;
    return o.time == 0 && o.batch == 0 ? (mica_reverse_sequence_opts){.time = 1} : o;
}

static mica_status reverse_infer(mica_infer *i)
{
    mica_reverse_sequence_opts o = axes_of(i->opts);
    int time, batch;
    MICA_TRY(mica_infer_indices(i, 1));
    MICA_TRY(mica_infer_axis(i, 0, o.time, &time));
    MICA_TRY(mica_infer_axis(i, 0, o.batch, &batch));
    if (time == batch)
        return mica_infer_fail(i, MICA_ERR_AXIS, "axis %d is both time and batch", time);
    if (i->in[1]->rank != 1 || i->in[1]->dim[0] != i->in[0]->dim[batch])
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected %td lengths, got %s", i->in[0]->dim[batch],
                               MICA_SHAPE(i->in[1]));
    return mica_infer_like(i, 0, 0);
}

static mica_status reverse_run(const mica_call *c)
{
    return mica_reverse_sequence(c->ctx, c->out[0], c->in[0], c->in[1], c->opts);
}

/* what was reversed is reversed back */
static void reverse_gradient(mica_grad *g)
{
    mica_grad_give(g, 0, &mica_op_reverse_sequence, (mica_value[]){g->dout[0], g->in[1]}, 2, g->opts);
}

static bool reverse_mixes(const mica_infer *i)
{
    int batch = axes_of(i->opts).batch;
    return batch != 0 && batch != -i->in[0]->rank;
}

static void reverse_sample(mica_op_sample *s)
{
    mica_reverse_sequence_opts *o = s->opts;
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 2, 4, dims);
    o->time = (int)mica_op_sample_int(s, 0, 1);
    o->batch = 1 - o->time;
    mica_op_sample_shape(s, 0, rank, dims);
    mica_sample_indices(s, 1, 1, &dims[o->batch], dims[o->time] + 1);
}

static const mica_field reverse_fields[] = {
    MICA_FIELD(mica_reverse_sequence_opts, time, INT, "the axis that is reversed; 0 and 0: 1"),
    MICA_FIELD(mica_reverse_sequence_opts, batch, INT, "the axis of the lengths")};

const mica_op mica_op_reverse_sequence = {
    .name = "reverse_sequence",
    .family = "index",
    .about = "x, whose first elements along an axis are reversed, as many as given",
    .ins = 2,
    .outs = 1,
    .names = (const char *const[]){"x", "lengths", "y"},
    .opts_bytes = sizeof(mica_reverse_sequence_opts),
    MICA_FIELD_LIST(reverse_fields),
    .infer = reverse_infer,
    .run = reverse_run,
    .gradient = MICA_GRADIENT(reverse_gradient),
    .mixes = reverse_mixes,
    .sample = MICA_SAMPLE(reverse_sample)};

/* ---- tensor_scatter ---- */

static mica_status cache_infer(mica_infer *i)
{
    const mica_tensor_scatter_opts *o = i->opts;
    const mica_tensor *cache = i->in[0], *src = i->in[1], *start = i->ins > 2 ? i->in[2] : NULL;
    int axis;
    MICA_TRY(mica_infer_dtype(i, 1, cache->dtype));
    MICA_TRY(mica_infer_axis(i, 0, o->axis != 0 ? o->axis : -2, &axis));
    bool fits = src->rank == cache->rank && axis > 0;
    for (int k = 0; fits && k < src->rank; k++)
        fits = k == axis ? src->dim[k] <= cache->dim[k] : src->dim[k] == cache->dim[k];
    if (!fits)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "%s cannot be written along axis %d", MICA_SHAPE(src),
                               axis);
    if (start != NULL) {
        MICA_TRY(mica_infer_indices(i, 2));
        if (start->rank != 1 || start->dim[0] != cache->dim[0])
            return mica_infer_fail(i, MICA_ERR_SHAPE, "expected %td positions, got %s", cache->dim[0],
                                   MICA_SHAPE(start));
    }
    return mica_infer_like(i, 0, 0);
}

static mica_status cache_run(const mica_call *c)
{
    if (mica_call_measuring(c) || c->out[0]->data != c->in[0]->data)
        MICA_TRY(mica_copy(c->ctx, c->out[0], c->in[0]));
    return mica_tensor_scatter(c->ctx, c->out[0], c->in[1], c->ins > 2 ? c->in[2] : NULL, c->opts);
}

static void cache_sample(mica_op_sample *s)
{
    mica_tensor_scatter_opts *o = s->opts;
    mica_index dims[] = {mica_op_sample_int(s, 1, 3), mica_op_sample_int(s, 1, 6),
                         mica_op_sample_int(s, 1, 4)};
    mica_index size = dims[1];
    o->circular = mica_sample_chance(s);
    mica_op_sample_shape(s, 0, 3, dims);
    dims[1] = mica_op_sample_int(s, 1, size);
    mica_op_sample_shape(s, 1, 3, dims);
    s->ins = 3;
    mica_sample_indices(s, 2, 1, dims, o->circular ? size : size - dims[1] + 1);
}

static const mica_field cache_fields[] = {
    MICA_FIELD(mica_tensor_scatter_opts, axis, INT, "of the positions; 0: the last but one"),
    MICA_FIELD(mica_tensor_scatter_opts, circular, BOOL, "beyond the end it goes on at the beginning")};

const mica_op mica_op_tensor_scatter = {
    .name = "tensor_scatter",
    .family = "index",
    .about = "a cache, with src written from a position on, for each sample",
    .ins = 2,
    .optional_ins = 1,
    .outs = 1,
    .names = (const char *const[]){"cache", "src", "start", "y"},
    .opts_bytes = sizeof(mica_tensor_scatter_opts),
    MICA_FIELD_LIST(cache_fields),
    .in_place = {1},
    .fixed_ins = 3,
    .infer = cache_infer,
    .run = cache_run,
    .sample = MICA_SAMPLE(cache_sample)};

/* ---- det ---- */

static mica_status det_infer(mica_infer *i)
{
    const mica_tensor *x = i->in[0];
    MICA_TRY(mica_infer_dtype(i, 0, MICA_F32));
    MICA_TRY(infer_matrices(i));
    if (x->dim[x->rank - 2] != x->dim[x->rank - 1])
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected square matrices");
    return mica_infer_out(i, 0, MICA_F32, x->rank - 2, x->dim);
}

static mica_status det_run(const mica_call *c) { return mica_det(c->ctx, c->out[0], c->in[0]); }

static mica_status det_backward_run(const mica_call *c)
{
    return mica_det_backward(c->ctx, c->out[0], c->in[0], c->in[1]);
}

static void det_gradient(mica_grad *g)
{
    mica_grad_give(g, 0, &mica_op_det_backward, (mica_value[]){g->dout[0], g->in[0]}, 2, NULL);
}

static void det_sample(mica_op_sample *s)
{
    mica_index n = mica_op_sample_int(s, 1, 4), dims[] = {mica_op_sample_int(s, 1, 3), n, n};
    mica_op_sample_shape(s, 0, 3, dims);
}

const mica_op mica_op_det = {.name = "det",
                             .family = "index",
                             .about = "determinants of matrices",
                             .ins = 1,
                             .outs = 1,
                             .infer = det_infer,
                             .run = det_run,
                             .gradient = MICA_GRADIENT(det_gradient),
                             .mixes = trilu_mixes,
                             .sample = MICA_SAMPLE(det_sample)};

const mica_op mica_op_det_backward = {.name = "det_backward",
                                      .family = "index",
                                      .about = "the gradient of det",
                                      .ins = 2,
                                      .outs = 1,
                                      .names = (const char *const[]){"dy", "x", "dx"},
                                      .run = det_backward_run};
