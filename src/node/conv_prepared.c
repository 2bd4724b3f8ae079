/* Convolution with weights that were prepared when the net was bound: created by compiling for inference alone, so it
 * has no gradient. */
#include <string.h>

#include "net/net.h"
#include "node/entry.h"
#include "node/planes.h"
#include "ops/conv/prepare.h"

#if !defined(MICA_SMALL)

enum { X, W, BIAS, PREPARED };

typedef struct prepared_opts {
    mica_conv2d_opts conv;
    int row;   /* which path reads them: ops/conv/prepare.h */
    bool mean; /* of each channel alone */
} prepared_opts;

static mica_status infer(mica_infer *i)
{
    const prepared_opts *o = i->opts;
    mica_infer plain = *i;
    plain.op = o->mean ? &mica_op_conv2d_mean : &mica_op_conv2d;
    plain.opts = &o->conv;
    MICA_TRY(plain.op->infer(&plain));
    i->out[0] = plain.out[0];
    return MICA_OK;
}

static mica_status run(const mica_call *c)
{
    const prepared_opts *o = c->opts;
    mica_tensor x = mica_planes(c->in[X]), w = mica_planes(c->in[W]);
    mica_tensor y = o->mean ? *c->out[0] : mica_planes(c->out[0]);
    if (o->mean)
        y.rank = 2; /* in place of a global_avg_pool that keeps its axes, it is [N, C, 1, ...] */
    mica_conv_tensors t = {&y, &x, &w, c->in[BIAS]};
    return o->mean ? mica_conv_prepared_mean(c->ctx, &t, c->in[PREPARED], o->row, &o->conv)
                   : mica_conv_prepared(c->ctx, &t, c->in[PREPARED], o->row, &o->conv);
}

static const mica_field fields[] = {
    MICA_FIELDS(prepared_opts, conv.stride, INDEX, "0: 1"),
    MICA_FIELDS(prepared_opts, conv.pad, INDEX, "zero padding on each side"),
    MICA_FIELDS(prepared_opts, conv.dilation, INDEX, "0: 1"),
    MICA_FIELD(prepared_opts, conv.groups, INDEX, "0: 1"),
    MICA_FIELD(prepared_opts, conv.activation, ACTIVATION, "fused activation"),
    MICA_FIELD(prepared_opts, conv.slope, FLOAT, "slope of leaky_relu, alpha of elu"),
    MICA_FIELD(prepared_opts, row, INT, "which path reads the prepared weights"),
    MICA_FIELD(prepared_opts, mean, BOOL, "of each channel alone"),
};

const mica_op mica_op_conv2d_prepared = {.name = "conv2d_prepared",
                                         .about = "convolution with weights that were prepared before",
                                         .ins = 4,
                                         .outs = 1,
                                         .names = (const char *const[]){"x", "w", "bias", "prepared", "y"},
                                         .opts_bytes = sizeof(prepared_opts),
                                         MICA_FIELD_LIST(fields),
                                         .infer = infer,
                                         .run = run};

/* ---- Preparing ---- */

/* The images only lend their shapes, and how they lie. */
typedef struct image {
    mica_index dim[4];
    bool channels_last;
} image;

typedef struct prepare_opts {
    mica_conv2d_opts conv;
    image x, y;
    int row;
} prepare_opts;

static void set_image(image *i, const mica_tensor *t)
{
    i->channels_last = mica_channels_last(t);
    memcpy(i->dim, t->dim, sizeof i->dim);
}

static mica_tensor image_of(const image *i)
{
    mica_tensor t = {.dtype = MICA_F32, .rank = 4};
    memcpy(t.dim, i->dim, sizeof i->dim);
    if (i->channels_last)
        mica_tensor_set_channels_last(&t);
    else
        mica_tensor_set_strides(&t);
    return t;
}

static mica_status run_prepare(const mica_call *c)
{
    const prepare_opts *o = c->opts;
    mica_tensor x = image_of(&o->x), y = image_of(&o->y), w = mica_planes(c->in[0]);
    return mica_conv_prepare(c->ctx, c->out[0], o->row, &(mica_conv_tensors){&y, &x, &w, NULL}, &o->conv);
}

static const mica_op prepare = {.name = "conv2d_prepare",
                                .about = "weights as conv2d_prepared reads them",
                                .ins = 1,
                                .outs = 1,
                                .opts_bytes = sizeof(prepare_opts),
                                .run = run_prepare};

static bool prepare_call(const mica_net *net, const mica_node *node, bool mean, mica_preparation *how)
{
    mica_tensor x = mica_planes(&net->values[node->in[X]].tensor),
                w = mica_planes(&net->values[node->in[W]].tensor);
    prepared_opts opts = {.conv = *(const mica_conv2d_opts *)node->opts, .mean = mean};
    mica_tensor y = mean ? mica_conv_image_of_means(&x, &w, &opts.conv)
                         : mica_planes(&net->values[node->out[0]].tensor);
    if (mean && !mica_channels_last(&x))
        return false;
    prepare_opts making; /* compared byte by byte, to share what is made of the same weights */
    memset(&making, 0, sizeof making);
    memcpy(making.conv.stride, opts.conv.stride, sizeof making.conv.stride);
    memcpy(making.conv.pad, opts.conv.pad, sizeof making.conv.pad);
    memcpy(making.conv.dilation, opts.conv.dilation, sizeof making.conv.dilation);
    making.conv.groups = opts.conv.groups;
    size_t floats = 0;
    opts.conv.accumulate = false;
    mica_measure_begin(net->ctx);
    mica_status status = mica_conv_prepare_choose(net->ctx, &opts.row, &floats,
                                                  &(mica_conv_tensors){&y, &x, &w, NULL}, &opts.conv);
    (void)mica_measure_end(net->ctx);
    if (status != MICA_OK || opts.row < 0)
        return false;
    making.row = opts.row;
    set_image(&making.x, &x);
    set_image(&making.y, &y);
    _Static_assert(sizeof opts <= sizeof how->opts && sizeof making <= sizeof how->maker_opts, "they fit");
    how->input = W;
    how->place = PREPARED;
    how->op = &mica_op_conv2d_prepared;
    memcpy(&how->opts, &opts, sizeof opts);
    how->maker = &prepare;
    memcpy(&how->maker_opts, &making, sizeof making);
    how->shape = mica_1d(NULL, (mica_index)floats);
    return true;
}

bool mica_conv2d_prepare(const mica_net *net, const mica_node *node, mica_preparation *how)
{
    return prepare_call(net, node, false, how);
}

bool mica_conv2d_mean_prepare(const mica_net *net, const mica_node *node, mica_preparation *how)
{
    return prepare_call(net, node, true, how);
}

#endif
