/* Permute, transpose, slice, pad, concat: elements to other places. No backward reads anything but the gradient. */
#include <string.h>

#include <mica/layer.h>
#include <mica/layers.h>

#include "base/context.h"
#include "layer/reason.h"

/* dst = src, or dst += src. */
static mica_status put(const mica_step *s, const mica_tensor *dst, const mica_tensor *src, bool add)
{
    return add ? mica_add(s->ctx, dst, dst, src) : mica_copy(s->ctx, dst, src);
}

/* An axis that may count from the end. */
static mica_status infer_axis(mica_infer *infer, int axis, int *out)
{
    int rank = infer->in[0]->rank;
    *out = axis < 0 ? axis + rank : axis;
    if (*out < 0 || *out >= rank)
        return mica_infer_fail(infer, MICA_ERR_AXIS, "axis %d of a tensor of rank %d", axis, rank);
    return MICA_OK;
}

/* ---- Permute and transpose ---- */

typedef struct permute_opts {
    const char *name;
    int axes[MICA_MAX_RANK];
    bool swap; /* of axes[0] and axes[1] only */
} permute_opts;

/* out's axes as a view of t; or, the other way round, t's as a view of out. */
static mica_status permuted(mica_context *ctx, mica_tensor *view, const mica_tensor *t,
                            const permute_opts *opts, bool back)
{
    if (opts->swap)
        return mica_view_transpose(ctx, view, t, opts->axes[0], opts->axes[1]);
    int inverse[MICA_MAX_RANK] = {0};
    for (int k = 0; back && k < t->rank; k++)
        inverse[opts->axes[k] < 0 ? opts->axes[k] + t->rank : opts->axes[k]] = k;
    return mica_view_permute(ctx, view, t, back ? inverse : opts->axes);
}

static mica_status permute_infer(mica_infer *infer)
{
    mica_tensor view;
    mica_status status = permuted(infer->ctx, &view, infer->in[0], infer->opts, false);
    if (status != MICA_OK)
        return mica_infer_pass_on(infer, status);
    return mica_infer_output(infer, view.dtype, view.rank, view.dim);
}

static mica_status permute_forward(const mica_step *s)
{
    mica_tensor view;
    MICA_TRY(permuted(s->ctx, &view, s->in[0], s->opts, false));
    return mica_copy(s->ctx, s->out, &view);
}

static mica_status permute_backward(const mica_step *s)
{
    mica_tensor view;
    MICA_TRY(permuted(s->ctx, &view, s->dout, s->opts, true));
    return put(s, s->din[0], &view, s->add_din[0]);
}

#define PERMUTE(kind)                                                                                        \
    {                                                                                                        \
        kind, MICA_LAYER_ADDS_INPUTS, sizeof(permute_opts), permute_infer, permute_forward, permute_backward \
    }
static const mica_layer permute = PERMUTE("permute"), transpose = PERMUTE("transpose");

mica_value mica_net_permute(mica_net *net, mica_value x, const mica_net_permute_opts *opts)
{
    permute_opts full = {.name = opts != NULL ? opts->name : NULL};
    if (opts != NULL)
        memcpy(full.axes, opts->axes, sizeof full.axes);
    return mica_net_add(net, &permute, &full, &x, 1);
}

mica_value mica_net_transpose(mica_net *net, mica_value x, const mica_net_transpose_opts *opts)
{
    bool usual = opts == NULL || (opts->a == 0 && opts->b == 0);
    permute_opts full = {.name = opts != NULL ? opts->name : NULL, .swap = true};
    full.axes[0] = usual ? -2 : opts->a;
    full.axes[1] = usual ? -1 : opts->b;
    return mica_net_add(net, &transpose, &full, &x, 1);
}

/* ---- Slice ---- */

static mica_status sliced(mica_context *ctx, mica_tensor *view, const mica_tensor *t,
                          const mica_net_slice_opts *opts)
{
    return mica_view_slice(ctx, view, t, opts->axis, opts->start, opts->stop != 0 ? opts->stop : MICA_END,
                           opts->step != 0 ? opts->step : 1);
}

static mica_status slice_infer(mica_infer *infer)
{
    mica_tensor view;
    mica_status status = sliced(infer->ctx, &view, infer->in[0], infer->opts);
    if (status != MICA_OK)
        return mica_infer_pass_on(infer, status);
    return mica_infer_output(infer, view.dtype, view.rank, view.dim);
}

static mica_status slice_forward(const mica_step *s)
{
    mica_tensor view;
    MICA_TRY(sliced(s->ctx, &view, s->in[0], s->opts));
    return mica_copy(s->ctx, s->out, &view);
}

static mica_status slice_backward(const mica_step *s)
{
    mica_tensor view;
    MICA_TRY(sliced(s->ctx, &view, s->din[0], s->opts));
    if (!s->add_din[0])
        MICA_TRY(mica_zeros(s->ctx, s->din[0]));
    return put(s, &view, s->dout, s->add_din[0]);
}

static const mica_layer slice = {"slice",     MICA_LAYER_ADDS_INPUTS, sizeof(mica_net_slice_opts),
                                 slice_infer, slice_forward,          slice_backward};

mica_value mica_net_slice(mica_net *net, mica_value x, const mica_net_slice_opts *opts)
{
    return mica_net_add(net, &slice, opts, &x, 1);
}

/* ---- Pad ---- */

static mica_status pad_infer(mica_infer *infer)
{
    const mica_pad_opts *pad = &((const mica_net_pad_opts *)infer->opts)->pad;
    const mica_tensor *x = infer->in[0];
    mica_index dims[MICA_MAX_RANK] = {0};
    if (x->dtype != MICA_F32)
        return mica_infer_fail(infer, MICA_ERR_DTYPE, "expected f32, got %s", mica_dtype_name(x->dtype));
    for (int i = 0; i < x->rank; i++) {
        mica_index most = pad->mode == MICA_PAD_REFLECT ? x->dim[i] - 1 : PTRDIFF_MAX / 4;
        if (pad->before[i] < 0 || pad->after[i] < 0 || pad->before[i] > most || pad->after[i] > most)
            return mica_infer_fail(infer, MICA_ERR_ARGUMENT,
                                   "axis %d of size %td cannot be padded by %td before and %td after", i,
                                   x->dim[i], pad->before[i], pad->after[i]);
        dims[i] = x->dim[i] + pad->before[i] + pad->after[i];
    }
    return mica_infer_output(infer, MICA_F32, x->rank, dims);
}

static mica_status pad_forward(const mica_step *s)
{
    return mica_pad(s->ctx, s->out, s->in[0], &((const mica_net_pad_opts *)s->opts)->pad);
}

static mica_status pad_backward(const mica_step *s)
{
    return mica_pad_backward(s->ctx, s->din[0], s->dout, &((const mica_net_pad_opts *)s->opts)->pad);
}

static const mica_layer pad_layer = {"pad",     0,           sizeof(mica_net_pad_opts),
                                     pad_infer, pad_forward, pad_backward};

mica_value mica_net_pad(mica_net *net, mica_value x, const mica_net_pad_opts *opts)
{
    return mica_net_add(net, &pad_layer, opts, &x, 1);
}

/* ---- Concat ---- */

static mica_status concat_infer(mica_infer *infer)
{
    const mica_net_axis_opts *opts = infer->opts;
    const mica_tensor *first = infer->in[0];
    mica_index dims[MICA_MAX_RANK];
    int axis;
    MICA_TRY(infer_axis(infer, opts->axis, &axis));
    memcpy(dims, first->dim, sizeof dims);
    for (int i = 1; i < infer->inputs; i++) {
        const mica_tensor *t = infer->in[i];
        if (t->rank != first->rank || t->dtype != first->dtype)
            return mica_infer_fail(
                infer, MICA_ERR_SHAPE, "expected %s of rank %d in input %d, got %s of rank %d",
                mica_dtype_name(first->dtype), first->rank, i, mica_dtype_name(t->dtype), t->rank);
        for (int k = 0; k < t->rank; k++)
            if (k != axis && t->dim[k] != first->dim[k])
                return mica_infer_fail(infer, MICA_ERR_SHAPE,
                                       "expected %td in dimension %d of input %d, got %td", first->dim[k], k,
                                       i, t->dim[k]);
        dims[axis] += t->dim[axis];
    }
    return mica_infer_output(infer, first->dtype, first->rank, dims);
}

static mica_status concat_forward(const mica_step *s)
{
    return mica_concat(s->ctx, s->out, s->in, s->inputs, ((const mica_net_axis_opts *)s->opts)->axis);
}

/* din[i] is the part of dout where in[i] went */
static mica_status concat_backward(const mica_step *s)
{
    const mica_net_axis_opts *opts = s->opts;
    int axis = opts->axis < 0 ? opts->axis + s->dout->rank : opts->axis;
    mica_index start = 0;
    for (int i = 0; i < s->inputs; i++) {
        mica_index size = s->in[i]->dim[axis]; /* its shape is known, whatever became of its data */
        mica_tensor part;
        if (s->din[i] != NULL) {
            MICA_TRY(mica_view_slice(s->ctx, &part, s->dout, axis, start, start + size, 1));
            MICA_TRY(put(s, s->din[i], &part, s->add_din[i]));
        }
        start += size;
    }
    return MICA_OK;
}

static const mica_layer concat = {"concat",     MICA_LAYER_ADDS_INPUTS, sizeof(mica_net_axis_opts),
                                  concat_infer, concat_forward,         concat_backward};

mica_value mica_net_concat(mica_net *net, const mica_value *values, int count, const mica_net_axis_opts *opts)
{
    if (count < 1)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "concat of %d values", count);
    return mica_net_add(net, &concat, opts, values, count);
}
