/* Convolution and pooling. */
#include "onnx/write.h"

/* ---- Convolution ---- */

/* In one dimension, and of signals in two, the options of the width are those of the length. */
static mica_conv2d_opts conv_opts(const mica_onnx_writing *c)
{
    const mica_op *op = c->node->op;
    if (op != &mica_op_conv1d && op != &mica_op_conv1d_mean && op != &mica_op_conv_transpose1d)
        return *(const mica_conv2d_opts *)c->opts;
    const mica_conv1d_opts *o = c->opts;
    return (mica_conv2d_opts){.stride = {0, o->stride},
                              .pad = {0, o->pad},
                              .dilation = {0, o->dilation},
                              .groups = o->groups,
                              .output_pad = {0, o->output_pad},
                              .activation = o->activation,
                              .slope = o->slope};
}

static bool is_conv(mica_onnx_writing *c) { return conv_opts(c).activation == MICA_NO_ACTIVATION; }

mica_onnx_window mica_onnx_conv_window(const mica_onnx_writing *c, const mica_conv2d_opts *o)
{
    mica_onnx_window w = {.axes = c->in[0]->rank - 2};
    for (int i = 0; i < w.axes; i++) {
        int from = w.axes == 1 ? 1 : i;
        w.kernel[i] = c->in[1]->dim[2 + i];
        w.strides[i] = o->stride[from] != 0 ? o->stride[from] : 1;
        w.dilations[i] = o->dilation[from] != 0 ? o->dilation[from] : 1;
        w.pads[i] = w.pads[w.axes + i] = o->pad[from];
        w.output_pad[i] = o->output_pad[from];
    }
    return w;
}

static mica_onnx_term put_conv(mica_onnx_writing *c, mica_onnx_term out, const mica_conv2d_opts *o,
                               bool transposed)
{
    mica_onnx_window w = mica_onnx_conv_window(c, o);
    mica_onnx_attr attrs[] = {mica_onnx_ints_attr("kernel_shape", w.kernel, w.axes),
                              mica_onnx_ints_attr("strides", w.strides, w.axes),
                              mica_onnx_ints_attr("pads", w.pads, 2 * w.axes),
                              mica_onnx_ints_attr("dilations", w.dilations, w.axes),
                              mica_onnx_int_attr("group", o->groups != 0 ? o->groups : 1),
                              mica_onnx_ints_attr("output_padding", w.output_pad, w.axes)};
    mica_onnx_term bias = c->node->in[2] != NONE ? IN(2) : 0;
    return mica_onnx_put(c, out, transposed ? "ConvTranspose" : "Conv", TERMS(IN(0), IN(1), bias), attrs,
                         transposed ? 6 : 5);
}

static void convolve(mica_onnx_writing *c, bool transposed, bool mean)
{
    static const int64_t planes[] = {2, 3};
    mica_conv2d_opts o = conv_opts(c);
    bool acts = o.activation != MICA_NO_ACTIVATION;
    mica_onnx_term y = put_conv(c, acts || mean ? NEW : OUT(0), &o, transposed);
    if (acts)
        y = mica_onnx_put_activation(c, mean ? NEW : OUT(0), y, o.activation, o.slope);
    if (mean)
        mica_onnx_put_reduce(c, OUT(0), "ReduceMean", y, planes, c->in[0]->rank - 2, false);
}

static void conv(mica_onnx_writing *c) { convolve(c, false, false); }
static void conv_mean(mica_onnx_writing *c) { convolve(c, false, true); }
static void conv_transpose(mica_onnx_writing *c) { convolve(c, true, false); }

/* Of volumes. An option of 0 stands for 1. */
static void convolve3d(mica_onnx_writing *c, bool transposed)
{
    const mica_conv3d_opts *o = c->opts;
    int64_t strides[3], dilations[3], pads[6], output_pad[3];
    for (int i = 0; i < 3; i++) {
        strides[i] = o->stride[i] != 0 ? o->stride[i] : 1;
        dilations[i] = o->dilation[i] != 0 ? o->dilation[i] : 1;
        pads[i] = pads[3 + i] = o->pad[i];
        output_pad[i] = o->output_pad[i];
    }
    mica_onnx_attr attrs[] = {mica_onnx_ints_attr("strides", strides, 3),
                              mica_onnx_ints_attr("pads", pads, 6),
                              mica_onnx_ints_attr("dilations", dilations, 3),
                              mica_onnx_int_attr("group", o->groups != 0 ? o->groups : 1),
                              mica_onnx_ints_attr("output_padding", output_pad, 3)};
    mica_onnx_term bias = c->node->in[2] != NONE ? IN(2) : 0;
    mica_onnx_put(c, OUT(0), transposed ? "ConvTranspose" : "Conv", TERMS(IN(0), IN(1), bias), attrs,
                  transposed ? 5 : 4);
}

static void conv3d(mica_onnx_writing *c) { convolve3d(c, false); }
static void conv_transpose3d(mica_onnx_writing *c) { convolve3d(c, true); }

/* ---- Pooling ---- */

mica_onnx_window mica_onnx_pool_window(mica_onnx_writing *c, const mica_pooling_opts *o, int axes, bool *over)
{
    const mica_tensor *x = c->in[0], *y = c->out[0];
    mica_onnx_window w = {.axes = x->rank - 2};
    bool signals = axes == 2 && w.axes == 1;
    *over = false;
    if (w.axes != axes && !signals)
        mica_onnx_refuse(c, "pools what is not [N, C, ...]");
    for (int i = 0; i < w.axes && i < 2; i++) {
        int from = signals ? 1 : i;
        w.kernel[i] = o->kernel[from];
        w.strides[i] = o->stride[from] != 0 ? o->stride[from] : o->kernel[from];
        w.dilations[i] = o->dilation[from] != 0 ? o->dilation[from] : 1;
        w.pads[i] = w.pads[w.axes + i] = o->pad[from];
        int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
        int64_t end = (y->dim[2 + i] - 1) * w.strides[i] + reach - x->dim[2 + i] - w.pads[i];
        if (!o->ceil_mode)
            continue;
        if (mica_onnx_varies(c, c->node->in[0], 2 + i))
            mica_onnx_refuse(c, "ceil_mode where a size is not fixed");
        *over = *over || end > w.pads[w.axes + i];
        w.pads[w.axes + i] = end > w.pads[w.axes + i] ? end : w.pads[w.axes + i];
    }
    return w;
}

static int axes_of_pool(const mica_op *op)
{
    return op == &mica_op_max_pool1d || op == &mica_op_avg_pool1d ? 1 : 2;
}

/* Windows beyond the padding are had by more padding at the end: what ceil_mode means has changed with time. */
static bool is_pool(mica_onnx_writing *c)
{
    bool over;
    (void)mica_onnx_pool_window(c, c->opts, axes_of_pool(c->node->op), &over);
    return !over;
}

static void max_pool(mica_onnx_writing *c)
{
    bool over;
    mica_onnx_window w = mica_onnx_pool_window(c, c->opts, axes_of_pool(c->node->op), &over);
    mica_onnx_node1(c, OUT(0), "MaxPool", IN(0),
                    ATTRS(mica_onnx_ints_attr("kernel_shape", w.kernel, w.axes),
                          mica_onnx_ints_attr("strides", w.strides, w.axes),
                          mica_onnx_ints_attr("pads", w.pads, 2 * w.axes),
                          mica_onnx_ints_attr("dilations", w.dilations, w.axes)));
}

/* Of windows that extend beyond the padding, averages divide by what lies within it: then the padding is made
 * first, and only what lies beyond is left out. */
static void avg_pool(mica_onnx_writing *c)
{
    bool over, outside = ((const mica_pooling_opts *)c->opts)->exclude_pad;
    mica_onnx_window w = mica_onnx_pool_window(c, c->opts, axes_of_pool(c->node->op), &over);
    mica_onnx_term x = IN(0);
    if (over && !outside) {
        int64_t pads[2 * MICA_MAX_RANK] = {0};
        for (int i = 0; i < w.axes && i < 2; i++) {
            pads[2 + i] = pads[w.axes + 4 + i] = w.pads[i];
            w.pads[w.axes + i] -= w.pads[i];
            w.pads[i] = 0;
        }
        x = mica_onnx_node2(c, NEW, "Pad", x, mica_onnx_put_ints(c, pads, 2 * (w.axes + 2)));
    }
    mica_onnx_node1(c, OUT(0), "AveragePool", x,
                    ATTRS(mica_onnx_ints_attr("kernel_shape", w.kernel, w.axes),
                          mica_onnx_ints_attr("strides", w.strides, w.axes),
                          mica_onnx_ints_attr("pads", w.pads, 2 * w.axes),
                          mica_onnx_int_attr("count_include_pad", !outside && !over)));
}

/* The means of windows of unequal size are a product: [from, to], column j the mean of j's window. With `transpose`
 * [to, from]. */
static mica_onnx_term averaging(mica_onnx_writing *c, mica_index from, mica_index to, bool transpose)
{
    size_t bytes = (size_t)(from * to) * sizeof(float);
    float *means = mica_allocate(c->w->ctx, bytes);
    if (means == NULL) {
        c->to->status = mica_context_status(c->w->ctx);
        return 0;
    }
    for (mica_index j = 0; j < to; j++) {
        mica_index first = j * from / to, end = ((j + 1) * from + to - 1) / to;
        for (mica_index i = 0; i < from; i++)
            means[transpose ? j * from + i : i * to + j] = i >= first && i < end ? 1.0f / (float)(end - first)
                                                                                 : 0.0f;
    }
    mica_tensor t = transpose ? mica_2d(means, to, from) : mica_2d(means, from, to);
    mica_onnx_term term = mica_onnx_put_constant(c, &t);
    mica_release(c->w->ctx, means, bytes);
    return term;
}

static void adaptive_pool(mica_onnx_writing *c)
{
    const mica_tensor *x = c->in[0], *y = c->out[0];
    int axes = c->node->op == &mica_op_adaptive_avg_pool1d ? 1 : 2, last = x->rank - 1;
    for (int i = last - axes + 1; i <= last; i++)
        if (mica_onnx_varies(c, c->node->in[0], i)) {
            mica_onnx_refuse(c, "the size of what is pooled is not fixed");
            return;
        }
    mica_onnx_term across = averaging(c, x->dim[last], y->dim[last], false);
    mica_onnx_term t = mica_onnx_node2(c, axes == 2 ? NEW : OUT(0), "MatMul", IN(0), across);
    if (axes == 2)
        mica_onnx_node2(c, OUT(0), "MatMul", averaging(c, x->dim[last - 1], y->dim[last - 1], true), t);
}

static bool is_global_pool(mica_onnx_writing *c) { return c->in[0]->rank > 2; }

static void global_pool(mica_onnx_writing *c)
{
    bool keep = ((const mica_global_pool_opts *)c->opts)->keep;
    if (!is_global_pool(c)) {
        mica_onnx_node1(c, OUT(0), "Identity", IN(0), NO_ATTRS);
        return;
    }
    mica_onnx_term y = mica_onnx_node1(c, keep ? OUT(0) : NEW, "GlobalAveragePool", IN(0), NO_ATTRS);
    if (!keep)
        mica_onnx_node1(c, OUT(0), "Flatten", y, NO_ATTRS);
}

#define CONV(op, write)                            \
    {                                              \
        &mica_op_##op, write, is_conv, true, false \
    }
#define POOL(op, write)                            \
    {                                              \
        &mica_op_##op, write, is_pool, true, false \
    }

const mica_onnx_row mica_onnx_write_conv[] = {
    CONV(conv1d, conv),
    CONV(conv2d, conv),
    CONV(conv_transpose1d, conv_transpose),
    CONV(conv_transpose2d, conv_transpose),
    OWN(conv3d, conv3d),
    OWN(conv_transpose3d, conv_transpose3d),
    OWN(conv1d_mean, conv_mean),
    OWN(conv2d_mean, conv_mean),
    POOL(max_pool1d, max_pool),
    POOL(max_pool2d, max_pool),
    OWN(int8_max_pool2d, max_pool),
    POOL(avg_pool1d, avg_pool),
    POOL(avg_pool2d, avg_pool),
    OWN(adaptive_avg_pool1d, adaptive_pool),
    OWN(adaptive_avg_pool2d, adaptive_pool),
    {&mica_op_global_avg_pool, global_pool, is_global_pool, true, false},
    END_OF_ROWS};
