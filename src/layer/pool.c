/* Pooling of images and signals. */
#include <mica/layer.h>
#include <mica/layers.h>

#include "base/context.h"
#include "layer/planes.h"
#include "layer/pool.h"

typedef struct pool_opts {
    mica_net_pool_opts given; /* first: it starts with the name */
    bool flat;                /* one dimension */
} pool_opts;

mica_pooling_opts mica_pool_how(const void *opts)
{
    const pool_opts *o = opts;
    mica_pooling_opts op = {.ceil_mode = o->given.ceil_mode, .exclude_pad = o->given.exclude_pad};
    mica_plane_sizes(op.kernel, o->given.kernel, o->flat, 1, 0);
    mica_plane_sizes(op.stride, o->given.stride, o->flat, 0, 0);
    mica_plane_sizes(op.pad, o->given.pad, o->flat, 0, 0);
    mica_plane_sizes(op.dilation, o->given.dilation, o->flat, 1, 1);
    return op;
}

static mica_status infer_sizes(mica_infer *infer, mica_index size[2])
{
    const pool_opts *o = infer->opts;
    MICA_TRY(mica_infer_planes(infer, o->flat));
    mica_tensor x = mica_planes(infer->in[0]);
    mica_pooling_opts op = mica_pool_how(o);
    for (int axis = 0; axis < 2; axis++) {
        size[axis] = mica_pooling_size(x.dim[2 + axis], axis, &op);
        if (size[axis] < 1)
            return mica_infer_fail(infer, MICA_ERR_SHAPE,
                                   "a window of %td (dilation %td) does not fit %s %td padded by %td",
                                   op.kernel[axis], op.dilation[axis], mica_plane_axis(o->flat, axis),
                                   x.dim[2 + axis], op.pad[axis]);
    }
    return MICA_OK;
}

/* ---- Maximum: keeps where each lay ---- */

static mica_status max_infer(mica_infer *infer)
{
    const pool_opts *o = infer->opts;
    mica_index size[2] = {0};
    MICA_TRY(infer_sizes(infer, size));
    const mica_tensor *x = infer->in[0];
    MICA_TRY(mica_infer_saved(infer, MICA_I32, 4, (mica_index[]){x->dim[0], x->dim[1], size[0], size[1]}));
    return mica_infer_planes_output(infer, o->flat, x->dim[1], size);
}

static mica_status max_forward(const mica_step *s)
{
    mica_tensor x = mica_planes(s->in[0]), y = mica_planes(s->out);
    mica_pooling_opts op = mica_pool_how(s->opts);
    return mica_max_pool2d(s->ctx, &y, s->saved[0], &x, &op);
}

static mica_status max_backward(const mica_step *s)
{
    mica_tensor dx = mica_planes(s->din[0]), dy = mica_planes(s->dout);
    return mica_max_pool2d_backward(s->ctx, &dx, &dy, s->saved[0]);
}

/* ---- Average ---- */

static mica_status avg_infer(mica_infer *infer)
{
    const pool_opts *o = infer->opts;
    mica_index size[2];
    if (o->given.dilation[0] > 1 || o->given.dilation[1] > 1)
        return mica_infer_fail(infer, MICA_ERR_ARGUMENT, "an average takes no dilation");
    MICA_TRY(infer_sizes(infer, size));
    return mica_infer_planes_output(infer, o->flat, infer->in[0]->dim[1], size);
}

static mica_status avg_forward(const mica_step *s)
{
    mica_tensor x = mica_planes(s->in[0]), y = mica_planes(s->out);
    mica_pooling_opts op = mica_pool_how(s->opts);
    return mica_avg_pool2d(s->ctx, &y, &x, &op);
}

static mica_status avg_backward(const mica_step *s)
{
    mica_tensor dx = mica_planes(s->din[0]), dy = mica_planes(s->dout);
    mica_pooling_opts op = mica_pool_how(s->opts);
    return mica_avg_pool2d_backward(s->ctx, &dx, &dy, &op);
}

#define POOL(kind, which, flags)                                                         \
    {                                                                                    \
        kind, flags, sizeof(pool_opts), which##_infer, which##_forward, which##_backward \
    }
enum { MAX = MICA_LAYER_BACKWARD_SAVED | MICA_LAYER_PICKS | MICA_LAYER_MAX_POOL };
static const mica_layer max1d = POOL("max_pool1d", max, MAX), max2d = POOL("max_pool2d", max, MAX),
                        avg1d = POOL("avg_pool1d", avg, 0), avg2d = POOL("avg_pool2d", avg, 0);

static mica_value add(mica_net *net, const mica_layer *layer, mica_value x, const mica_net_pool_opts *opts,
                      bool flat)
{
    pool_opts full = {.flat = flat};
    if (opts != NULL)
        full.given = *opts;
    return mica_net_add(net, layer, &full, &x, 1);
}

mica_value mica_net_max_pool1d(mica_net *net, mica_value x, const mica_net_pool_opts *opts)
{
    return add(net, &max1d, x, opts, true);
}

mica_value mica_net_max_pool2d(mica_net *net, mica_value x, const mica_net_pool_opts *opts)
{
    return add(net, &max2d, x, opts, false);
}

mica_value mica_net_avg_pool1d(mica_net *net, mica_value x, const mica_net_pool_opts *opts)
{
    return add(net, &avg1d, x, opts, true);
}

mica_value mica_net_avg_pool2d(mica_net *net, mica_value x, const mica_net_pool_opts *opts)
{
    return add(net, &avg2d, x, opts, false);
}

/* ---- Adaptive average: to a given size ---- */

typedef struct adaptive_opts {
    mica_net_adaptive_pool_opts given; /* first: it starts with the name */
    bool flat;
} adaptive_opts;

static mica_status adaptive_infer(mica_infer *infer)
{
    const adaptive_opts *o = infer->opts;
    MICA_TRY(mica_infer_planes(infer, o->flat));
    mica_index size[2];
    mica_plane_sizes(size, o->given.size, o->flat, 1, 1);
    mica_tensor x = mica_planes(infer->in[0]);
    for (int axis = 0; axis < 2; axis++)
        if (size[axis] < 1 || x.dim[2 + axis] < 1)
            return mica_infer_fail(infer, MICA_ERR_SHAPE, "cannot average %s %td to %td",
                                   mica_plane_axis(o->flat, axis), x.dim[2 + axis], size[axis]);
    return mica_infer_planes_output(infer, o->flat, x.dim[1], size);
}

static mica_status adaptive_forward(const mica_step *s)
{
    mica_tensor x = mica_planes(s->in[0]), y = mica_planes(s->out);
    return mica_adaptive_avg_pool2d(s->ctx, &y, &x);
}

static mica_status adaptive_backward(const mica_step *s)
{
    mica_tensor dx = mica_planes(s->din[0]), dy = mica_planes(s->dout);
    return mica_adaptive_avg_pool2d_backward(s->ctx, &dx, &dy);
}

#define ADAPTIVE(kind)                                                                      \
    {                                                                                       \
        kind, 0, sizeof(adaptive_opts), adaptive_infer, adaptive_forward, adaptive_backward \
    }
static const mica_layer adaptive1d = ADAPTIVE("adaptive_avg_pool1d"),
                        adaptive2d = ADAPTIVE("adaptive_avg_pool2d");

mica_value mica_net_adaptive_avg_pool1d(mica_net *net, mica_value x, const mica_net_adaptive_pool_opts *opts)
{
    adaptive_opts full = {.flat = true};
    if (opts != NULL)
        full.given = *opts;
    return mica_net_add(net, &adaptive1d, &full, &x, 1);
}

mica_value mica_net_adaptive_avg_pool2d(mica_net *net, mica_value x, const mica_net_adaptive_pool_opts *opts)
{
    adaptive_opts full = {.flat = false};
    if (opts != NULL)
        full.given = *opts;
    return mica_net_add(net, &adaptive2d, &full, &x, 1);
}

/* ---- Global average ---- */

static mica_status global_infer(mica_infer *infer)
{
    const mica_net_global_pool_opts *opts = infer->opts;
    const mica_tensor *x = infer->in[0];
    if (x->dtype != MICA_F32 || x->rank < 3)
        return mica_infer_fail(infer, MICA_ERR_SHAPE, "expected f32 [N, C, ...] of rank 3 or more");
    mica_index dims[MICA_MAX_RANK] = {x->dim[0], x->dim[1], 1, 1, 1, 1, 1, 1};
    return mica_infer_output(infer, MICA_F32, opts->keep ? x->rank : 2, dims);
}

static mica_status global_forward(const mica_step *s)
{
    return mica_global_avg_pool(s->ctx, s->out, s->in[0]);
}

static mica_status global_backward(const mica_step *s)
{
    return mica_global_avg_pool_backward(s->ctx, s->din[0], s->dout);
}

static const mica_layer global = {"global_avg_pool", MICA_LAYER_MEAN, sizeof(mica_net_global_pool_opts),
                                  global_infer,      global_forward,  global_backward};

mica_value mica_net_global_avg_pool(mica_net *net, mica_value x, const mica_net_global_pool_opts *opts)
{
    return mica_net_add(net, &global, opts, &x, 1);
}
