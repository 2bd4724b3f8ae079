/* Convolution: shape checks and their error messages. */
#include "base/format.h"
#include "ops/conv/conv.h"

mica_status mica_conv_check_option(mica_context *ctx, const char *op, const char *name, mica_index value)
{
    if (value >= 0 && value <= MICA_CONV_MOST_OPTION)
        return MICA_OK;
    return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: %s is %td, expected 0 to %td", op, name, value,
                     MICA_CONV_MOST_OPTION);
}

static mica_status check_options(mica_context *ctx, const mica_conv_call *call)
{
    const mica_conv2d_opts *o = call->opts;
    MICA_TRY(mica_conv_check_option(ctx, call->op, "groups", o->groups));
    for (int d = 2 - call->dims; d < 2; d++) {
        MICA_TRY(mica_conv_check_option(ctx, call->op, "stride", o->stride[d]));
        MICA_TRY(mica_conv_check_option(ctx, call->op, "pad", o->pad[d]));
        MICA_TRY(mica_conv_check_option(ctx, call->op, "dilation", o->dilation[d]));
        mica_index stride = o->stride[d] > 0 ? o->stride[d] : 1;
        mica_index dilation = o->dilation[d] > 0 ? o->dilation[d] : 1;
        mica_index limit = stride > dilation ? stride : dilation;
        if (o->output_pad[d] < 0 || o->output_pad[d] >= limit)
            return mica_fail(ctx, MICA_ERR_ARGUMENT,
                             "%s: output_pad is %td, expected less than the stride %td or the dilation %td",
                             call->op, o->output_pad[d], stride, dilation);
    }
    return MICA_OK;
}

/* One axis, from the sizes that are there; the image that does not count (the output's) is filled in from the
 * other. `axis` is of the tensors. */
static mica_status infer_dim(mica_context *ctx, mica_conv_dim *dim, const mica_conv_call *call, int axis)
{
    const mica_arg *wide = &call->args[call->wide], *narrow = &call->args[call->narrow],
                   *weight = &call->args[call->weight];
    int d = axis - call->dims; /* of the options: 2-D has axes 2 and 3, 1-D has axis 2 */
    if (call->dims == 1)
        d = 1;
    const mica_conv2d_opts *o = call->opts;
    mica_index taps = weight->tensor->dim[axis];
    if (taps < 1 || taps > MICA_CONV_MOST_OPTION)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: %s is %s: dimension %d has %td taps, expected 1 to %td",
                         call->op, weight->name, MICA_SHAPE(weight->tensor), axis, taps,
                         MICA_CONV_MOST_OPTION);
    *dim = (mica_conv_dim){.taps = (size_t)taps,
                           .stride = o->stride[d] > 0 ? o->stride[d] : 1,
                           .pad = o->pad[d],
                           .dilation = o->dilation[d] > 0 ? o->dilation[d] : 1};
    mica_index span = dim->dilation * (taps - 1) + 1;
    if (call->transposed) {
        mica_index size = narrow->tensor->dim[axis];
        if (size > PTRDIFF_MAX / 4 / dim->stride)
            return mica_fail(ctx, MICA_ERR_SHAPE,
                             "%s: %s is %s: dimension %d is too large for a stride of %td", call->op,
                             narrow->name, MICA_SHAPE(narrow->tensor), axis, dim->stride);
        mica_index made = (size - 1) * dim->stride - 2 * dim->pad + span + o->output_pad[d];
        if (size < 1 || made < 1)
            return mica_fail(ctx, MICA_ERR_SHAPE,
                             "%s: %s is %s, %s is %s: dimension %d of the output would be empty", call->op,
                             narrow->name, MICA_SHAPE(narrow->tensor), weight->name,
                             MICA_SHAPE(weight->tensor), axis);
        dim->narrow = (size_t)size;
        dim->wide = (size_t)made;
        return MICA_OK;
    }
    mica_index size = wide->tensor->dim[axis], padded = size + 2 * dim->pad;
    if (padded < span)
        return mica_fail(ctx, MICA_ERR_SHAPE,
                         "%s: %s is %s, %s is %s: the kernel spans %td in dimension %d, expected at most %td",
                         call->op, wide->name, MICA_SHAPE(wide->tensor), weight->name,
                         MICA_SHAPE(weight->tensor), span, axis, padded);
    dim->wide = (size_t)size;
    dim->narrow = (size_t)((padded - span) / dim->stride) + 1;
    return MICA_OK;
}

/* The image that decides has as many channels as the kernel says. */
static mica_status check_channels(mica_context *ctx, const mica_conv_call *call, const mica_arg *image,
                                  mica_index channels)
{
    const mica_arg *weight = &call->args[call->weight];
    if (image->tensor->dim[1] == channels)
        return MICA_OK;
    char groups[48] = "";
    if (call->opts->groups > 1)
        mica_format(groups, sizeof groups, " for %td groups", call->opts->groups);
    return mica_fail(ctx, MICA_ERR_SHAPE,
                     "%s: %s is %s, %s is %s: expected %td channels in dimension 1%s, got %td", call->op,
                     image->name, MICA_SHAPE(image->tensor), weight->name, MICA_SHAPE(weight->tensor),
                     channels, groups, image->tensor->dim[1]);
}

static mica_status check_shapes(mica_context *ctx, mica_conv *out, const mica_conv_call *call)
{
    const mica_arg *wide = &call->args[call->wide], *narrow = &call->args[call->narrow];
    const mica_arg *weight = &call->args[call->weight];
    const mica_arg *from = call->transposed ? narrow : wide, *to = call->transposed ? wide : narrow;
    mica_index groups = call->opts->groups > 0 ? call->opts->groups : 1;
    mica_index wide_channels, narrow_channels = weight->tensor->dim[0];
    if (__builtin_mul_overflow(weight->tensor->dim[1], groups, &wide_channels))
        wide_channels = PTRDIFF_MAX;
    MICA_TRY(check_channels(ctx, call, from, call->transposed ? narrow_channels : wide_channels));

    out->rows = (mica_conv_dim){.wide = 1, .narrow = 1, .taps = 1, .stride = 1, .dilation = 1};
    if (call->dims == 2)
        MICA_TRY(infer_dim(ctx, &out->rows, call, 2));
    MICA_TRY(infer_dim(ctx, &out->columns, call, call->dims + 1));

    mica_index want[4] = {from->tensor->dim[0], call->transposed ? wide_channels : narrow_channels};
    const mica_conv_dim *dims[2] = {&out->rows, &out->columns};
    for (int d = 0; d < call->dims; d++) {
        const mica_conv_dim *dim = dims[2 - call->dims + d];
        want[2 + d] = call->mean ? 1 : (mica_index)(call->transposed ? dim->wide : dim->narrow);
        if (call->pool != NULL)
            want[2 + d] = mica_pooling_size(want[2 + d], d, call->pool);
    }
    int rank = call->mean && to->tensor->rank == 2 ? 2 : call->dims + 2;
    MICA_TRY(mica_check_shape(ctx, call->op, to->name, to->tensor, rank, want, from->name, from->tensor));
    if (narrow_channels % groups != 0)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: %s is %s: dimension 0 does not divide into %td groups",
                         call->op, weight->name, MICA_SHAPE(weight->tensor), groups);
    out->batch = (size_t)wide->tensor->dim[0];
    out->groups = (size_t)groups;
    out->wide_channels = (size_t)weight->tensor->dim[1];
    out->narrow_channels = (size_t)(narrow_channels / groups);
    return MICA_OK;
}

static mica_conv_planes planes_of(const mica_tensor *t)
{
    int last = t->rank - 1;
    return (mica_conv_planes){.data = t->data,
                              .image_stride = t->stride[0],
                              .channel_stride = t->stride[1],
                              .row_stride = last == 3 ? t->stride[2] : 0,
                              .column_stride = t->stride[last]};
}

mica_status mica_conv_check(mica_context *ctx, mica_conv *out, const mica_conv_call *call)
{
    MICA_TRY(mica_check_args(ctx, call->op, call->args, call->count));
    const int tensors[3] = {call->wide, call->narrow, call->weight};
    for (int i = 0; i < 3; i++)
        if (tensors[i] != call->narrow || !call->mean)
            MICA_TRY(mica_check_rank(ctx, call->op, call->args[tensors[i]].name,
                                     call->args[tensors[i]].tensor, call->dims + 2, call->dims + 2));
    MICA_TRY(check_options(ctx, call));
    *out = (mica_conv){.op = call->op, .accumulate = call->opts->accumulate};
    MICA_TRY(check_shapes(ctx, out, call));
    if (call->bias != 0) {
        const mica_tensor *bias = call->args[call->bias].tensor, *made = call->args[0].tensor;
        MICA_TRY(mica_check_shape(ctx, call->op, call->args[call->bias].name, bias, 1, &made->dim[1],
                                  call->args[0].name, made));
        out->biased = true;
        out->bias = bias->data;
        out->bias_stride = bias->stride[0];
    }
    const mica_tensor *weight = call->args[call->weight].tensor;
    out->wide = planes_of(call->args[call->wide].tensor);
    out->narrow = planes_of(call->args[call->narrow].tensor);
    mica_conv_planes taps = planes_of(weight);
    out->weight = (mica_conv_taps){taps.data, out->wide_channels, taps.channel_stride, taps.row_stride,
                                   taps.column_stride};
    out->weight_stride = taps.image_stride;
    double pixels = (double)(out->batch * out->rows.narrow * out->columns.narrow);
    mica_count_flops(ctx, 2.0 * pixels * (double)mica_tensor_count(weight));
    return MICA_OK;
}
