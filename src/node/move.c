/* Slice, transpose, permute, flip, broadcast_to: a view of the input, copied. Gradients go back the same way. */
#include <string.h>

#include "node/shape.h"

/* ---- Slice ---- */

static mica_status slice_view(mica_context *ctx, mica_tensor *view, const mica_tensor *t, const void *opts)
{
    const mica_slice_range_opts *o = opts;
    return mica_view_slice(ctx, view, t, o->axis, o->start, o->stop != 0 ? o->stop : MICA_END,
                           o->step != 0 ? o->step : 1);
}

/* dx = 0, but dy where y came from */
static mica_status slice_backward(const mica_call *c)
{
    mica_tensor part;
    MICA_TRY(slice_view(c->ctx, &part, c->out[0], c->opts));
    if (!(c->add & 1u))
        MICA_TRY(mica_zeros(c->ctx, c->out[0]));
    return mica_put(c, 0, &part, c->in[0]);
}

static const mica_op slice_back = {.name = "slice_backward",
                                   .ins = 1,
                                   .outs = 1,
                                   .opts_bytes = sizeof(mica_slice_range_opts),
                                   .adds = 1,
                                   .run = slice_backward};

static void slice_gradient(mica_grad *g) { mica_grad_give(g, 0, &slice_back, &g->dout[0], 1, g->opts); }

static bool slice_mixes(const mica_infer *i)
{
    return mica_axis_of(((const mica_slice_range_opts *)i->opts)->axis, i->in[0]->rank) == 0;
}

static void slice_sample(mica_op_sample *s)
{
    mica_slice_range_opts *o = s->opts;
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 1, 4, dims);
    o->axis = mica_sample_axis(s, rank);
    mica_index size = dims[mica_axis_of(o->axis, rank)];
    o->start = mica_op_sample_int(s, -size, size - 1);
    o->step = mica_op_sample_int(s, -2, 3);
    if (o->step >= 0 && mica_op_sample_int(s, 0, 1) == 0)
        o->stop = mica_op_sample_int(s, 1, 5) + (o->start < 0 ? o->start + size : o->start);
    mica_op_sample_shape(s, 0, rank, dims);
}

static const mica_field slice_fields[] = {
    MICA_FIELD(mica_slice_range_opts, axis, INT, "the axis; negative counts from the end"),
    MICA_FIELD(mica_slice_range_opts, start, INDEX, "the first element; negative counts from the end"),
    MICA_FIELD(mica_slice_range_opts, stop, INDEX, "one past the last element; 0: through the end"),
    MICA_FIELD(mica_slice_range_opts, step, INDEX, "0: 1. Negative: backwards")};

/* ---- Transpose ---- */

static mica_transpose_opts axes_of(const mica_transpose_opts *o)
{
    return o->a == 0 && o->b == 0 ? (mica_transpose_opts){-2, -1} : *o;
}

static mica_status transpose_view(mica_context *ctx, mica_tensor *view, const mica_tensor *t,
                                  const void *opts)
{
    mica_transpose_opts o = axes_of(opts);
    return mica_view_transpose(ctx, view, t, o.a, o.b);
}

static void transpose_gradient(mica_grad *g)
{
    mica_grad_give(g, 0, &mica_op_transpose, &g->dout[0], 1, g->opts);
}

static bool transpose_mixes(const mica_infer *i)
{
    mica_transpose_opts o = axes_of(i->opts);
    int a = mica_axis_of(o.a, i->in[0]->rank), b = mica_axis_of(o.b, i->in[0]->rank);
    return a != b && (a == 0 || b == 0);
}

static void transpose_sample(mica_op_sample *s)
{
    mica_transpose_opts *o = s->opts;
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 2, 5, dims);
    o->a = mica_sample_axis(s, rank);
    o->b = mica_sample_axis(s, rank);
    mica_op_sample_shape(s, 0, rank, dims);
}

static const mica_field transpose_fields[] = {
    MICA_FIELD(mica_transpose_opts, a, INT, "first axis; 0, 0: the last two"),
    MICA_FIELD(mica_transpose_opts, b, INT, "second axis")};

/* ---- Permute ---- */

static mica_status permute_view(mica_context *ctx, mica_tensor *view, const mica_tensor *t, const void *opts)
{
    return mica_view_permute(ctx, view, t, ((const mica_permute_opts *)opts)->axes);
}

static void permute_gradient(mica_grad *g)
{
    const mica_permute_opts *o = g->opts;
    mica_permute_opts inverse = {{0}};
    int rank = mica_grad_shape(g, g->in[0]).rank;
    for (int k = 0; k < rank; k++)
        inverse.axes[mica_axis_of(o->axes[k], rank)] = k;
    mica_grad_give(g, 0, &mica_op_permute, &g->dout[0], 1, &inverse);
}

static bool permute_mixes(const mica_infer *i)
{
    int rank = i->in[0]->rank;
    return rank > 0 && mica_axis_of(((const mica_permute_opts *)i->opts)->axes[0], rank) != 0;
}

static void permute_sample(mica_op_sample *s)
{
    mica_permute_opts *o = s->opts;
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 1, 5, dims);
    for (int k = 0; k < rank; k++) { /* each new one changes places with any */
        int other = (int)mica_op_sample_int(s, 0, k);
        o->axes[k] = o->axes[other];
        o->axes[other] = k;
    }
    mica_op_sample_shape(s, 0, rank, dims);
}

static const mica_field permute_fields[] = {
    MICA_FIELDS(mica_permute_opts, axes, INT, "axis k of the result is axis axes[k] of x")};

/* ---- Flip ---- */

static mica_status flip_view(mica_context *ctx, mica_tensor *view, const mica_tensor *t, const void *opts)
{
    return mica_view_flip(ctx, view, t, ((const mica_axis_opts *)opts)->axis);
}

static void flip_gradient(mica_grad *g) { mica_grad_give(g, 0, &mica_op_flip, &g->dout[0], 1, g->opts); }

static bool flip_mixes(const mica_infer *i)
{
    return mica_axis_of(((const mica_axis_opts *)i->opts)->axis, i->in[0]->rank) == 0;
}

static void flip_sample(mica_op_sample *s)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 1, 4, dims);
    ((mica_axis_opts *)s->opts)->axis = mica_sample_axis(s, rank);
    mica_op_sample_shape(s, 0, rank, dims);
}

static const mica_field flip_fields[] = {
    MICA_FIELD(mica_axis_opts, axis, INT, "the axis; negative counts from the end")};

/* ---- Entries ---- */

#define MOVE(op, options, words)                                            \
    static mica_status op##_infer(mica_infer *i)                            \
    {                                                                       \
        mica_tensor view;                                                   \
        mica_status status = op##_view(i->ctx, &view, i->in[0], i->opts);   \
        return mica_infer_as(i, status, &view);                             \
    }                                                                       \
    static mica_status op##_run(const mica_call *c)                         \
    {                                                                       \
        mica_tensor view;                                                   \
        MICA_TRY(op##_view(c->ctx, &view, c->in[0], c->opts));              \
        return mica_put(c, 0, c->out[0], &view);                            \
    }                                                                       \
    const mica_op mica_op_##op = {.name = #op,                              \
                                  .family = "shape",                        \
                                  .about = words,                           \
                                  .flags = MICA_OP_CHEAP,                   \
                                  .ins = 1,                                 \
                                  .outs = 1,                                \
                                  .names = (const char *const[]){"x", "y"}, \
                                  .opts_bytes = sizeof(options),            \
                                  MICA_FIELD_LIST(op##_fields),             \
                                  .adds = 1,                                \
                                  .infer = op##_infer,                      \
                                  .run = op##_run,                          \
                                  .gradient = MICA_GRADIENT(op##_gradient), \
                                  .mixes = op##_mixes,                      \
                                  .sample = MICA_SAMPLE(op##_sample)};

MOVE(slice, mica_slice_range_opts, "elements start, start + step, ... before stop along an axis")
MOVE(transpose, mica_transpose_opts, "two axes in each other's place")
MOVE(permute, mica_permute_opts, "the axes reordered")
MOVE(flip, mica_axis_opts, "reversed along an axis")

/* ---- Broadcast ---- */

/* The shape of `like`, if that is there; else that of the options, whose axes stand over x's last ones. */
static mica_status broadcast_to_infer(mica_infer *i)
{
    const mica_shape_opts *o = i->opts;
    const mica_tensor *x = i->in[0], *like = i->in[1];
    mica_shape_opts to = like != NULL ? (mica_shape_opts){.rank = like->rank} : *o;
    if (to.rank < 0 || to.rank > MICA_MAX_RANK)
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "rank is %d: expected 0 to %d", to.rank, MICA_MAX_RANK);
    if (like != NULL)
        memcpy(to.dims, like->dim, sizeof to.dims);
    for (int k = 0; like == NULL && k < to.rank; k++)
        if (to.dims[k] == 0 && k >= to.rank - x->rank)
            to.dims[k] = x->dim[k - (to.rank - x->rank)];
    mica_tensor view;
    mica_status status = mica_view_broadcast(i->ctx, &view, x, to.rank, to.dims);
    return mica_infer_as(i, status, &view);
}

static mica_status broadcast_to_run(const mica_call *c)
{
    return mica_broadcast_to(c->ctx, c->out[0], c->in[0]);
}

/* dx = dy, summed over the axes along which x was repeated */
static void broadcast_to_gradient(mica_grad *g) { mica_grad_pass_summed(g, 0, g->dout[0]); }

/* A batch that the options give does not follow that of a step. */
static bool broadcast_to_mixes(const mica_infer *i)
{
    const mica_shape_opts *o = i->opts;
    return i->in[1] == NULL && (o->rank != i->in[0]->rank || o->rank < 1 || o->dims[0] != 0);
}

static void broadcast_to_sample(mica_op_sample *s)
{
    mica_shape_opts *o = s->opts;
    mica_index dims[MICA_MAX_RANK];
    o->rank = mica_sample_dims(s, 1, 4, o->dims);
    int rank = (int)mica_op_sample_int(s, 0, o->rank);
    for (int k = 0; k < rank; k++)
        dims[k] = mica_op_sample_int(s, 0, 1) == 0 ? 1 : o->dims[o->rank - rank + k];
    mica_op_sample_shape(s, 0, rank, dims);
    if (mica_op_sample_int(s, 0, 1) == 0)
        return;
    s->ins = 2;
    mica_op_sample_shape(s, 1, o->rank, o->dims);
    *o = (mica_shape_opts){.rank = 0};
}

static const mica_field broadcast_to_fields[] = {
    MICA_FIELD(mica_shape_opts, rank, LENGTH, "of the result"),
    MICA_FIELDS(mica_shape_opts, dims, INDEX, "0: as in x, aligned at the last axis")};

const mica_op mica_op_broadcast_to = {.name = "broadcast_to",
                                      .family = "shape",
                                      .about = "x broadcast to a shape",
                                      .flags = MICA_OP_CHEAP,
                                      .ins = 1,
                                      .optional_ins = 1,
                                      .outs = 1,
                                      .names = (const char *const[]){"x", "like", "y"},
                                      .opts_bytes = sizeof(mica_shape_opts),
                                      MICA_FIELD_LIST(broadcast_to_fields),
                                      .infer = broadcast_to_infer,
                                      .run = broadcast_to_run,
                                      .gradient = MICA_GRADIENT(broadcast_to_gradient),
                                      .mixes = broadcast_to_mixes,
                                      .sample = MICA_SAMPLE(broadcast_to_sample)};
