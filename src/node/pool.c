/* Pooling: windows of the last two axes, or of the last.
 *
 * max_pool2d takes signals, [N, C, L], as images of one row where its window is one row high (as conv2d does, so that
 * both can run as one). Indices then count along L. */
#include "node/entry.h"
#include "node/planes.h"

static const mica_field fields[] = {
    MICA_FIELDS(mica_pooling_opts, kernel, INDEX, "window size; in one dimension only the first is used"),
    MICA_FIELDS(mica_pooling_opts, stride, INDEX, "0: the kernel size"),
    MICA_FIELDS(mica_pooling_opts, pad, INDEX, "padding on each side; at most half of the dilated kernel"),
    MICA_FIELDS(mica_pooling_opts, dilation, INDEX, "0: 1. Max pooling only"),
    MICA_FIELD(mica_pooling_opts, ceil_mode, BOOL, "a last window may extend past the end"),
    MICA_FIELD(mica_pooling_opts, exclude_pad, BOOL, "exclude padding from averages"),
};

/* Whether pooling in two dimensions is of signals. */
static bool is_flat(const mica_tensor *t, const mica_pooling_opts *o)
{
    return t->rank == 3 && o->kernel[0] == 1 && o->stride[0] <= 1 && mica_pooling_size(1, 0, o) == 1;
}

/* The output's shape: x's, but for the `axes` last ones. */
static mica_status infer_windows(mica_infer *i, int axes, mica_index dims[MICA_MAX_RANK])
{
    const mica_pooling_opts *o = i->opts;
    const mica_tensor *x = i->in[0];
    bool flat = axes == 1 || is_flat(x, o);
    if (x->dtype != MICA_F32 || x->rank < axes)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected f32 of rank %d or more", axes);
    for (int k = 0; k < x->rank; k++)
        dims[k] = x->dim[k];
    for (int axis = flat && axes == 2 ? 1 : 0; axis < axes; axis++) {
        mica_index *dim = &dims[x->rank - axes + axis], size = *dim;
        *dim = mica_pooling_size(size, axis, o);
        if (*dim < 1)
            return mica_infer_fail(i, MICA_ERR_SHAPE,
                                   "a window of %td (dilation %td) does not fit into %s %td padded by %td",
                                   o->kernel[axis], o->dilation[axis] != 0 ? o->dilation[axis] : 1,
                                   mica_plane_axis(flat, axis), size, o->pad[axis]);
    }
    return MICA_OK;
}

/* Pooled axes are the last ones: of a tensor that has no others, the first is among them. */
static bool mixes1d(const mica_infer *i) { return i->in[0]->rank < 2; }
static bool mixes2d(const mica_infer *i) { return i->in[0]->rank < 3; }

/* ---- Maximum: keeps where each lay ---- */

static mica_status infer_max(mica_infer *i, int axes)
{
    mica_index dims[MICA_MAX_RANK];
    MICA_TRY(infer_windows(i, axes, dims));
    MICA_TRY(mica_infer_out(i, 0, MICA_F32, i->in[0]->rank, dims));
    return mica_infer_out(i, 1, MICA_I32, i->in[0]->rank, dims);
}

static mica_status max_pool1d_infer(mica_infer *i) { return infer_max(i, 1); }
static mica_status max_pool2d_infer(mica_infer *i) { return infer_max(i, 2); }

static mica_status max_pool1d_run(const mica_call *c)
{
    return mica_max_pool1d(c->ctx, c->out[0], c->out[1], c->in[0], c->opts);
}

static mica_status max_pool1d_run_back(const mica_call *c)
{
    return mica_max_pool1d_backward(c->ctx, c->out[0], c->in[0], c->in[1]);
}

static mica_status max_pool2d_run(const mica_call *c)
{
    if (!is_flat(c->in[0], c->opts))
        return mica_max_pool2d(c->ctx, c->out[0], c->out[1], c->in[0], c->opts);
    mica_tensor x = mica_planes(c->in[0]), y = mica_planes(c->out[0]), indices;
    if (c->out[1] != NULL)
        indices = mica_planes(c->out[1]);
    return mica_max_pool2d(c->ctx, &y, c->out[1] != NULL ? &indices : NULL, &x, c->opts);
}

static mica_status max_pool2d_run_back(const mica_call *c)
{
    if (!is_flat(c->in[0], c->opts))
        return mica_max_pool2d_backward(c->ctx, c->out[0], c->in[0], c->in[1]);
    mica_tensor dx = mica_planes(c->out[0]), dy = mica_planes(c->in[0]), indices = mica_planes(c->in[1]);
    return mica_max_pool2d_backward(c->ctx, &dx, &dy, &indices);
}

/* ---- Average ---- */

static mica_status infer_average(mica_infer *i, int axes)
{
    const mica_pooling_opts *o = i->opts;
    mica_index dims[MICA_MAX_RANK];
    if (o->dilation[0] > 1 || (axes == 2 && o->dilation[1] > 1))
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "average pooling has no dilation");
    MICA_TRY(infer_windows(i, axes, dims));
    return mica_infer_out(i, 0, MICA_F32, i->in[0]->rank, dims);
}

static mica_status avg_pool1d_infer(mica_infer *i) { return infer_average(i, 1); }
static mica_status avg_pool2d_infer(mica_infer *i) { return infer_average(i, 2); }

#define AVERAGE_RUN(op)                                                    \
    static mica_status op##_run(const mica_call *c)                        \
    {                                                                      \
        return mica_##op(c->ctx, c->out[0], c->in[0], c->opts);            \
    }                                                                      \
    static mica_status op##_run_back(const mica_call *c)                   \
    {                                                                      \
        return mica_##op##_backward(c->ctx, c->out[0], c->in[0], c->opts); \
    }
AVERAGE_RUN(avg_pool1d)
AVERAGE_RUN(avg_pool2d)

/* ---- Windows: samples and entries ---- */

static void sample_windows(mica_op_sample *s, int axes, bool maximum)
{
    mica_pooling_opts *o = s->opts;
    mica_index dims[4] = {mica_op_sample_int(s, 1, 2), mica_op_sample_int(s, 1, 3)};
    o->ceil_mode = mica_op_sample_int(s, 0, 1) != 0;
    o->exclude_pad = !maximum && mica_op_sample_int(s, 0, 1) != 0;
    for (int k = 0; k < axes; k++) {
        o->kernel[k] = mica_op_sample_int(s, 1, 3);
        o->stride[k] = mica_op_sample_int(s, 0, 3);
        o->dilation[k] = maximum ? mica_op_sample_int(s, 0, 2) : 0;
        mica_index reach = (o->kernel[k] - 1) * (o->dilation[k] > 1 ? o->dilation[k] : 1) + 1;
        o->pad[k] = mica_op_sample_int(s, 0, reach / 2);
        dims[2 + k] = reach + mica_op_sample_int(s, 0, 4);
    }
    mica_op_sample_shape(s, 0, 2 + axes, dims);
    if (!maximum)
        return;
    s->low[0] = -100.0; /* so that no two of a window are nearly the same */
    s->high[0] = 100.0;
}

static void max_pool1d_sample(mica_op_sample *s) { sample_windows(s, 1, true); }
static void max_pool2d_sample(mica_op_sample *s) { sample_windows(s, 2, true); }
static void avg_pool1d_sample(mica_op_sample *s) { sample_windows(s, 1, false); }
static void avg_pool2d_sample(mica_op_sample *s) { sample_windows(s, 2, false); }

/* What follows `count` are the values that the backward reads. */
#define GRADIENT(op, count, ...)                                                                     \
    static void op##_gradient(mica_grad *g)                                                          \
    {                                                                                                \
        mica_grad_give(g, 0, &mica_op_##op##_backward, (mica_value[]){__VA_ARGS__}, count, g->opts); \
    }

#define FORWARD_ENTRY(op, mixing, number, options, list, words, ...)                            \
    const mica_op mica_op_##op = {.name = #op,                                                  \
                                  .family = "pool",                                             \
                                  .about = words,                                               \
                                  .ins = 1,                                                     \
                                  .outs = number,                                               \
                                  .optional_outs = number == 2 ? 2 : 0,                         \
                                  .flags = MICA_OP_CHEAP | (number == 2 ? MICA_OP_LARGEST : 0), \
                                  .names = (const char *const[]){__VA_ARGS__},                  \
                                  .opts_bytes = sizeof(options),                                \
                                  MICA_FIELD_LIST(list),                                        \
                                  .infer = op##_infer,                                          \
                                  .run = op##_run,                                              \
                                  .gradient = MICA_GRADIENT(op##_gradient),                     \
                                  .passes = MICA_LAYOUTS(mica_gathering_passes),                \
                                  .mixes = mixing,                                              \
                                  .sample = MICA_SAMPLE(op##_sample)};

#define BACKWARD_ENTRY(op, count, options, list, ...)                                     \
    const mica_op mica_op_##op##_backward = {.name = #op "_backward",                     \
                                             .family = "pool",                            \
                                             .about = "the gradient of " #op,             \
                                             .ins = count,                                \
                                             .outs = 1,                                   \
                                             .names = (const char *const[]){__VA_ARGS__}, \
                                             .opts_bytes = sizeof(options),               \
                                             MICA_FIELD_LIST(list),                       \
                                             .run = op##_run_back};

#define MAXIMUM(op, d, words)                                                             \
    GRADIENT(op, 2, g->dout[0], g->out[1])                                                \
    FORWARD_ENTRY(op, mixes##d, 2, mica_pooling_opts, fields, words, "x", "y", "indices") \
    BACKWARD_ENTRY(op, 2, mica_pooling_opts, fields, "dy", "indices", "dx")

#define AVERAGE(op, d, words)                                                  \
    GRADIENT(op, 1, g->dout[0])                                                \
    FORWARD_ENTRY(op, mixes##d, 1, mica_pooling_opts, fields, words, "x", "y") \
    BACKWARD_ENTRY(op, 1, mica_pooling_opts, fields, "dy", "dx")

MAXIMUM(max_pool1d, 1d, "max pooling over the last axis")
MAXIMUM(max_pool2d, 2d, "max pooling over the last two axes")
AVERAGE(avg_pool1d, 1d, "average pooling over the last axis")
AVERAGE(avg_pool2d, 2d, "average pooling over the last two axes")

/* ---- Adaptive average: to a given size ---- */

static mica_status infer_adaptive(mica_infer *i, int axes)
{
    const mica_adaptive_pool_opts *o = i->opts;
    const mica_tensor *x = i->in[0];
    mica_index dims[MICA_MAX_RANK];
    if (x->dtype != MICA_F32 || x->rank < axes)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected f32 of rank %d or more", axes);
    for (int k = 0; k < x->rank; k++)
        dims[k] = x->dim[k];
    for (int axis = 0; axis < axes; axis++) {
        mica_index *dim = &dims[x->rank - axes + axis], size = *dim;
        *dim = o->size[axis] != 0 ? o->size[axis] : 1;
        if (*dim < 1 || size < 1)
            return mica_infer_fail(i, MICA_ERR_SHAPE, "cannot average %s %td to %td",
                                   mica_plane_axis(axes == 1, axis), size, *dim);
    }
    return mica_infer_out(i, 0, MICA_F32, x->rank, dims);
}

static mica_status adaptive_avg_pool1d_infer(mica_infer *i) { return infer_adaptive(i, 1); }
static mica_status adaptive_avg_pool2d_infer(mica_infer *i) { return infer_adaptive(i, 2); }

#define PLAIN_RUN(op)                                                                                  \
    static mica_status op##_run(const mica_call *c) { return mica_##op(c->ctx, c->out[0], c->in[0]); } \
    static mica_status op##_run_back(const mica_call *c)                                               \
    {                                                                                                  \
        return mica_##op##_backward(c->ctx, c->out[0], c->in[0]);                                      \
    }
PLAIN_RUN(adaptive_avg_pool1d)
PLAIN_RUN(adaptive_avg_pool2d)

static void sample_adaptive(mica_op_sample *s, int axes)
{
    mica_adaptive_pool_opts *o = s->opts;
    mica_index dims[4] = {mica_op_sample_int(s, 1, 2), mica_op_sample_int(s, 1, 3)};
    for (int k = 0; k < axes; k++) {
        o->size[k] = mica_op_sample_int(s, 0, 5);
        dims[2 + k] = mica_op_sample_int(s, 1, 6);
    }
    mica_op_sample_shape(s, 0, 2 + axes, dims);
}

static void adaptive_avg_pool1d_sample(mica_op_sample *s) { sample_adaptive(s, 1); }
static void adaptive_avg_pool2d_sample(mica_op_sample *s) { sample_adaptive(s, 2); }

static const mica_field adaptive_fields[] = {MICA_FIELDS(
    mica_adaptive_pool_opts, size, INDEX, "output size; 0: 1. In one dimension only the first is used")};

#define ADAPTIVE(op, d, words)                                                                \
    GRADIENT(op, 1, g->dout[0])                                                               \
    FORWARD_ENTRY(op, mixes##d, 1, mica_adaptive_pool_opts, adaptive_fields, words, "x", "y") \
    BACKWARD_ENTRY(op, 1, mica_adaptive_pool_opts, adaptive_fields, "dy", "dx")

ADAPTIVE(adaptive_avg_pool1d, 1d, "adaptive average pooling over the last axis")
ADAPTIVE(adaptive_avg_pool2d, 2d, "adaptive average pooling over the last two axes")

/* ---- Global average ---- */

static mica_status global_avg_pool_infer(mica_infer *i)
{
    const mica_global_pool_opts *o = i->opts;
    const mica_tensor *x = i->in[0];
    if (x->dtype != MICA_F32 || x->rank < 2)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected f32 [N, C, ...] of rank 2 or more");
    for (int k = 2; k < x->rank; k++)
        if (x->dim[k] < 1)
            return mica_infer_fail(i, MICA_ERR_SHAPE, "dimension %d is empty, cannot be averaged", k);
    mica_index dims[MICA_MAX_RANK] = {x->dim[0], x->dim[1], 1, 1, 1, 1, 1, 1};
    return mica_infer_out(i, 0, MICA_F32, o->keep ? x->rank : 2, dims);
}

PLAIN_RUN(global_avg_pool)

static void global_avg_pool_sample(mica_op_sample *s)
{
    mica_index dims[5];
    for (int k = 0; k < 5; k++)
        dims[k] = mica_op_sample_int(s, 1, 4);
    ((mica_global_pool_opts *)s->opts)->keep = mica_op_sample_int(s, 0, 1) != 0;
    mica_op_sample_shape(s, 0, (int)mica_op_sample_int(s, 3, 5), dims);
}

static const mica_field global_fields[] = {
    MICA_FIELD(mica_global_pool_opts, keep, BOOL, "[N, C, 1, ...] instead of [N, C]")};

GRADIENT(global_avg_pool, 1, g->dout[0])
FORWARD_ENTRY(global_avg_pool, NULL, 1, mica_global_pool_opts, global_fields,
              "the mean of each channel of [N, C, ...]", "x", "y")
BACKWARD_ENTRY(global_avg_pool, 1, mica_global_pool_opts, global_fields, "dy", "dx")
