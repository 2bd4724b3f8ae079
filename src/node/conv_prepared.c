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
    int row; /* which path reads them: ops/conv/prepare.h */
} prepared_opts;

static mica_status infer(mica_infer *i)
{
    mica_infer plain = *i;
    plain.op = &mica_op_conv2d;
    plain.opts = &((const prepared_opts *)i->opts)->conv;
    MICA_TRY(mica_op_conv2d.infer(&plain));
    i->out[0] = plain.out[0];
    return MICA_OK;
}

static mica_status run(const mica_call *c)
{
    const prepared_opts *o = c->opts;
    mica_tensor x = mica_planes(c->in[X]), w = mica_planes(c->in[W]), y = mica_planes(c->out[0]);
    return mica_conv_prepared(c->ctx, &(mica_conv_tensors){&y, &x, &w, c->in[BIAS]}, c->in[PREPARED], o->row,
                              &o->conv);
}

static const mica_field fields[] = {
    MICA_FIELDS(prepared_opts, conv.stride, INDEX, "0: 1"),
    MICA_FIELDS(prepared_opts, conv.pad, INDEX, "zero padding on each side"),
    MICA_FIELDS(prepared_opts, conv.dilation, INDEX, "0: 1"),
    MICA_FIELD(prepared_opts, conv.groups, INDEX, "0: 1"),
    MICA_FIELD(prepared_opts, conv.activation, ACTIVATION, "fused activation"),
    MICA_FIELD(prepared_opts, conv.slope, FLOAT, "slope of leaky_relu, alpha of elu"),
    MICA_FIELD(prepared_opts, row, INT, "which path reads the prepared weights"),
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

/* The images only lend their shapes. */
typedef struct prepare_opts {
    mica_conv2d_opts conv;
    mica_index x[4], y[4];
    int row;
} prepare_opts;

static mica_tensor image_of(const mica_index *dims)
{
    mica_tensor t = {.dtype = MICA_F32, .rank = 4};
    memcpy(t.dim, dims, 4 * sizeof *dims);
    return mica_tensor_like(&t, NULL);
}

static mica_status run_prepare(const mica_call *c)
{
    const prepare_opts *o = c->opts;
    mica_tensor x = image_of(o->x), y = image_of(o->y), w = mica_planes(c->in[0]);
    return mica_conv_prepare(c->ctx, c->out[0], o->row, &(mica_conv_tensors){&y, &x, &w, NULL}, &o->conv);
}

static const mica_op prepare = {.name = "conv2d_prepare",
                                .about = "weights as conv2d_prepared reads them",
                                .ins = 1,
                                .outs = 1,
                                .opts_bytes = sizeof(prepare_opts),
                                .run = run_prepare};

bool mica_conv2d_prepare(const mica_net *net, const mica_node *node, mica_preparation *how)
{
    mica_tensor x = mica_planes(&net->values[node->in[X]].tensor),
                w = mica_planes(&net->values[node->in[W]].tensor),
                y = mica_planes(&net->values[node->out[0]].tensor);
    prepared_opts opts = {.conv = *(const mica_conv2d_opts *)node->opts};
    prepare_opts making = {.conv = opts.conv};
    size_t floats = 0;
    opts.conv.accumulate = false;
    mica_measure_begin(net->ctx);
    mica_status status = mica_conv_prepare_choose(net->ctx, &opts.row, &floats,
                                                  &(mica_conv_tensors){&y, &x, &w, NULL}, &opts.conv);
    (void)mica_measure_end(net->ctx);
    if (status != MICA_OK || opts.row < 0)
        return false;
    making.row = opts.row;
    memcpy(making.x, x.dim, sizeof making.x);
    memcpy(making.y, y.dim, sizeof making.y);
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

#endif
