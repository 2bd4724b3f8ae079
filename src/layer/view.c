/* Flatten, reshape, squeeze, unsqueeze: another shape for the same elements. Nothing runs. */
#include <mica/layer.h>
#include <mica/layers.h>

#include "base/context.h"
#include "layer/reason.h"

/* The view's shape, made by mica_view_* without data. */
static mica_status infer_as(mica_infer *infer, mica_status status, const mica_tensor *view)
{
    if (status != MICA_OK)
        return mica_infer_pass_on(infer, status);
    return mica_infer_output(infer, view->dtype, view->rank, view->dim);
}

static mica_status flatten_infer(mica_infer *infer)
{
    const mica_net_flatten_opts *opts = infer->opts;
    bool usual = opts->first == 0 && opts->last == 0;
    mica_tensor view;
    if (usual && infer->in[0]->rank < 2) {
        mica_index dims[] = {infer->in[0]->rank == 1 ? infer->in[0]->dim[0] : 1, 1};
        return mica_infer_output(infer, infer->in[0]->dtype, 2, dims);
    }
    mica_status status = mica_view_flatten(infer->ctx, &view, infer->in[0], usual ? 1 : opts->first,
                                           usual ? -1 : opts->last);
    return infer_as(infer, status, &view);
}

static mica_status reshape_infer(mica_infer *infer)
{
    const mica_net_reshape_opts *opts = infer->opts;
    const mica_tensor *x = infer->in[0];
    mica_index dims[MICA_MAX_RANK];
    if (opts->rank < 0 || opts->rank > MICA_MAX_RANK)
        return mica_infer_fail(infer, MICA_ERR_ARGUMENT, "rank is %d: expected 0 to %d", opts->rank,
                               MICA_MAX_RANK);
    for (int i = 0; i < opts->rank; i++)
        dims[i] = i < x->rank && opts->dims[i] == 0 ? x->dim[i] : opts->dims[i];
    mica_tensor view;
    mica_status status = mica_view_reshape(infer->ctx, &view, x, opts->rank, dims);
    return infer_as(infer, status, &view);
}

static mica_status squeeze_infer(mica_infer *infer)
{
    const mica_net_axis_opts *opts = infer->opts;
    mica_tensor view;
    mica_status status = mica_view_squeeze(infer->ctx, &view, infer->in[0], opts->axis);
    return infer_as(infer, status, &view);
}

static mica_status unsqueeze_infer(mica_infer *infer)
{
    const mica_net_axis_opts *opts = infer->opts;
    mica_tensor view;
    mica_status status = mica_view_unsqueeze(infer->ctx, &view, infer->in[0], opts->axis);
    return infer_as(infer, status, &view);
}

#define VIEW(layer, options)                                                                               \
    static const mica_layer layer = {#layer, MICA_LAYER_VIEW, sizeof(options), layer##_infer, NULL, NULL}; \
    mica_value mica_net_##layer(mica_net *net, mica_value x, const options *opts)                          \
    {                                                                                                      \
        return mica_net_add(net, &layer, opts, &x, 1);                                                     \
    }

VIEW(flatten, mica_net_flatten_opts)
VIEW(reshape, mica_net_reshape_opts)
VIEW(squeeze, mica_net_axis_opts)
VIEW(unsqueeze, mica_net_axis_opts)
