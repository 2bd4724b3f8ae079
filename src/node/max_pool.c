/* The largest of windows of one to three axes, and what undoes it. */
#include "node/check.h"

/* ---- max_pool ---- */

static mica_status max_pool_infer(mica_infer *i)
{
    const mica_max_pool_opts *o = i->opts;
    const mica_tensor *x = i->in[0];
    mica_index dims[MICA_MAX_RANK];
    if (o->axes < 1 || o->axes > 3)
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "axes is %d: expected 1 to 3", o->axes);
    if (x->dtype != MICA_F32 || x->rank < o->axes)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected f32 of rank %d or more", o->axes);
    for (int k = 0; k < x->rank; k++) {
        int axis = k - (x->rank - o->axes);
        dims[k] = axis < 0 ? x->dim[k] : mica_max_pool_size(x->dim[k], axis, o);
        if (dims[k] < 0)
            return mica_infer_fail(
                i, MICA_ERR_SHAPE,
                "a window of %td (dilation %td) does not fit into dimension %d padded by %td and %td",
                o->kernel[axis], o->dilation[axis] != 0 ? o->dilation[axis] : 1, k, o->before[axis],
                o->after[axis]);
    }
    MICA_TRY(mica_infer_out(i, 0, MICA_F32, x->rank, dims));
    return mica_infer_out(i, 1, MICA_I64, x->rank, dims);
}

static mica_status max_pool_run(const mica_call *c)
{
    return mica_max_pool(c->ctx, c->out[0], c->out[1], c->in[0], c->opts);
}

static mica_status max_pool_backward_run(const mica_call *c)
{
    return mica_max_pool_backward(c->ctx, c->out[0], c->in[0], c->in[1], c->opts);
}

static void max_pool_gradient(mica_grad *g)
{
    mica_grad_give(g, 0, &mica_op_max_pool_backward, (mica_value[]){g->dout[0], g->out[1]}, 2, g->opts);
}

/* Indices in the whole tensor depend on where a sample stands in the batch. */
static bool max_pool_mixes(const mica_infer *i)
{
    const mica_max_pool_opts *o = i->opts;
    return o->flat || i->in[0]->rank <= o->axes;
}

static void max_pool_sample(mica_op_sample *s)
{
    mica_max_pool_opts *o = s->opts;
    mica_index dims[5] = {mica_op_sample_int(s, 1, 2), mica_op_sample_int(s, 1, 3)};
    o->axes = (int)mica_op_sample_int(s, 1, 3);
    o->ceil_mode = mica_sample_chance(s);
    o->column_major = mica_sample_chance(s);
    for (int k = 0; k < o->axes; k++) {
        o->kernel[k] = mica_op_sample_int(s, 1, 3);
        o->stride[k] = mica_op_sample_int(s, 0, 3);
        o->dilation[k] = mica_op_sample_int(s, 0, 2);
        mica_index reach = (o->kernel[k] - 1) * (o->dilation[k] > 1 ? o->dilation[k] : 1) + 1;
        o->before[k] = mica_op_sample_int(s, 0, reach / 2);
        o->after[k] = mica_op_sample_int(s, 0, reach / 2);
        dims[2 + k] = reach + mica_op_sample_int(s, 0, 3);
    }
    mica_op_sample_shape(s, 0, 2 + o->axes, dims);
    mica_sample_range(s, 0, -100.0, 100.0); /* so that no two of a window are nearly the same */
}

static const mica_field max_pool_fields[] = {
    MICA_FIELD(mica_max_pool_opts, axes, LENGTH, "how many of the last axes: 1 to 3"),
    MICA_FIELDS(mica_max_pool_opts, kernel, INDEX, "window size"),
    MICA_FIELDS(mica_max_pool_opts, stride, INDEX, "0: 1"),
    MICA_FIELDS(mica_max_pool_opts, before, INDEX, "padding in front; less than the dilated kernel"),
    MICA_FIELDS(mica_max_pool_opts, after, INDEX, "padding behind"),
    MICA_FIELDS(mica_max_pool_opts, dilation, INDEX, "0: 1"),
    MICA_FIELD(mica_max_pool_opts, ceil_mode, BOOL, "a last window may extend past the end"),
    MICA_FIELD(mica_max_pool_opts, flat, BOOL, "indices count in the whole tensor, not in each plane"),
    MICA_FIELD(mica_max_pool_opts, column_major, BOOL, "indices count with the first axis fastest"),
};

const mica_op mica_op_max_pool = {
    .name = "max_pool",
    .family = "pool",
    .about = "max pooling over the last one to three axes, with unequal padding",
    .flags = MICA_OP_CHEAP,
    .ins = 1,
    .outs = 2,
    .optional_outs = 2,
    .names = (const char *const[]){"x", "y", "indices"},
    .opts_bytes = sizeof(mica_max_pool_opts),
    MICA_FIELD_LIST(max_pool_fields),
    .infer = max_pool_infer,
    .run = max_pool_run,
    .gradient = MICA_GRADIENT(max_pool_gradient),
    .mixes = max_pool_mixes,
    .sample = MICA_SAMPLE(max_pool_sample)};

const mica_op mica_op_max_pool_backward = {.name = "max_pool_backward",
                                           .family = "pool",
                                           .about = "the gradient of max_pool",
                                           .ins = 2,
                                           .outs = 1,
                                           .names = (const char *const[]){"dy", "indices", "dx"},
                                           .opts_bytes = sizeof(mica_max_pool_opts),
                                           MICA_FIELD_LIST(max_pool_fields),
                                           .run = max_pool_backward_run};

/* ---- max_unpool ---- */

static mica_status max_unpool_infer(mica_infer *i)
{
    const mica_unpool_opts *o = i->opts;
    const mica_tensor *x = i->in[0];
    mica_index dims[MICA_MAX_RANK];
    MICA_TRY(mica_infer_indices(i, 1));
    if (o->axes < 1 || o->axes > 3 || x->dtype != MICA_F32 || x->rank < o->axes)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "axes is %d: expected 1 to 3, and f32 of as many axes",
                               o->axes);
    if (!mica_tensor_same_shape(x, i->in[1]))
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected indices of the same shape");
    for (int k = 0; k < x->rank; k++)
        dims[k] = k < x->rank - o->axes ? x->dim[k] : o->size[k - (x->rank - o->axes)];
    return mica_infer_out(i, 0, MICA_F32, x->rank, dims);
}

static mica_status max_unpool_run(const mica_call *c)
{
    return mica_max_unpool(c->ctx, c->out[0], c->in[0], c->in[1]);
}

/* dx = dy[indices], both as one row */
static void max_unpool_gradient(mica_grad *g)
{
    mica_tensor x = mica_grad_shape(g, g->in[0]);
    mica_shape_opts row = {.rank = 1, .dims = {-1}}, back = {.rank = x.rank};
    for (int k = 0; k < x.rank; k++)
        back.dims[k] = k == 0 ? -1 : x.dim[k];
    mica_value dy = mica_grad_value(g, &mica_op_reshape, &g->dout[0], 1, &row);
    mica_value indices = mica_grad_value(g, &mica_op_reshape, &g->in[1], 1, &row);
    mica_value dx = mica_grad_value(g, &mica_op_gather, (mica_value[]){dy, indices}, 2, &(mica_axis_opts){0});
    mica_grad_give(g, 0, &mica_op_reshape, &dx, 1, &back);
}

static bool max_unpool_mixes(const mica_infer *i)
{
    (void)i;
    return true;
}

/* One element: of two at the same place, only the last would count. */
static void max_unpool_sample(mica_op_sample *s)
{
    mica_unpool_opts *o = s->opts;
    mica_index one[4] = {1, 1, 1, 1}, all = 1;
    o->axes = (int)mica_op_sample_int(s, 1, 3);
    for (int k = 0; k < o->axes; k++) {
        o->size[k] = mica_op_sample_int(s, 1, 4);
        all *= o->size[k];
    }
    mica_op_sample_shape(s, 0, 1 + o->axes, one);
    mica_sample_indices(s, 1, 1 + o->axes, one, all);
}

static const mica_field max_unpool_fields[] = {
    MICA_FIELD(mica_unpool_opts, axes, LENGTH, "how many of the last axes grow: 1 to 3"),
    MICA_FIELDS(mica_unpool_opts, size, INDEX, "what they grow to"),
};

const mica_op mica_op_max_unpool = {.name = "max_unpool",
                                    .family = "pool",
                                    .about = "zeros, but for x at indices that count in the whole result",
                                    .ins = 2,
                                    .outs = 1,
                                    .names = (const char *const[]){"x", "indices", "y"},
                                    .opts_bytes = sizeof(mica_unpool_opts),
                                    MICA_FIELD_LIST(max_unpool_fields),
                                    .infer = max_unpool_infer,
                                    .run = max_unpool_run,
                                    .gradient = MICA_GRADIENT(max_unpool_gradient),
                                    .mixes = max_unpool_mixes,
                                    .sample = MICA_SAMPLE(max_unpool_sample)};
