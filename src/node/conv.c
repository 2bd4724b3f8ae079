/* Convolutions, plain and transposed: dx = dy convolved with w the other way, dw = x correlated with dy, db = the
 * sum of dy over batch and pixels.
 *
 * Those of two dimensions also take signals, [N, C, L], as images of one row: then the width's options count. Those of
 * one dimension run as these. */
#include <string.h>

#include "net/net.h"
#include "node/finish.h"
#include "node/planes.h"
#include "ops/conv/last.h"

/* ---- Options ---- */

/* As images of one row. */
static mica_conv2d_opts how1d(const void *opts)
{
    const mica_conv1d_opts *o = opts;
    return (mica_conv2d_opts){.stride = {0, o->stride},
                              .pad = {0, o->pad},
                              .dilation = {0, o->dilation},
                              .groups = o->groups,
                              .output_pad = {0, o->output_pad},
                              .activation = o->activation,
                              .slope = o->slope};
}

static mica_conv2d_opts how2d(const void *opts) { return *(const mica_conv2d_opts *)opts; }

#define FIELDS(type, SIZES)                                                                       \
    {                                                                                             \
        SIZES(type, stride, INDEX, "0: 1"), SIZES(type, pad, INDEX, "zero padding on each side"), \
            SIZES(type, dilation, INDEX, "0: 1"), MICA_FIELD(type, groups, INDEX, "0: 1"),        \
            SIZES(type, output_pad, INDEX, "transposed convolution only"),                        \
            MICA_FIELD(type, activation, ACTIVATION, "fused activation"),                         \
            MICA_FIELD(type, slope, FLOAT, "slope of leaky_relu, alpha of elu"),                  \
    }
static const mica_field fields1d[] = FIELDS(mica_conv1d_opts, MICA_FIELD);
static const mica_field fields2d[] = FIELDS(mica_conv2d_opts, MICA_FIELDS);

/* ---- Infer ---- */

typedef struct conv_ins {
    const mica_tensor *x, *w, *bias;
    bool flat; /* signals only */
    bool transposed;
} conv_ins;

/* Channels of the result. */
static mica_status infer_channels(mica_infer *i, const conv_ins *in, const mica_conv2d_opts *o,
                                  mica_index *out)
{
    mica_index groups = o->groups != 0 ? o->groups : 1, channels = in->x->dim[1];
    if (groups < 1 || in->w->dim[0] % groups != 0)
        return mica_infer_fail(i, MICA_ERR_SHAPE,
                               "expected a multiple of %td groups in dimension 0 of the weights, got %td",
                               groups, in->w->dim[0]);
    bool fits = in->transposed ? channels == in->w->dim[0]
                               : channels % groups == 0 && channels / groups == in->w->dim[1];
    if (!fits)
        return mica_infer_fail(i, MICA_ERR_SHAPE,
                               "%td channels in dimension 1 do not match weights [%td, %td, ...]", channels,
                               in->w->dim[0], in->w->dim[1]);
    *out = in->w->dim[0];
    if (in->transposed && __builtin_mul_overflow(in->w->dim[1], groups, out))
        return mica_infer_fail(i, MICA_ERR_SHAPE, "%td channels for each of %td groups overflow",
                               in->w->dim[1], groups);
    if (in->bias != NULL && (in->bias->dtype != MICA_F32 || in->bias->rank != 1 || in->bias->dim[0] != *out))
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected an f32 bias [%td]", *out);
    return MICA_OK;
}

/* Output 0: the image, or with `mean` the means of its channels. */
static mica_status infer_image(mica_infer *i, const conv_ins *in, const mica_conv2d_opts *o, bool mean)
{
    const mica_tensor *x = in->x, *w = in->w;
    if (x->dtype != MICA_F32 || (x->rank != 3 && (x->rank != 4 || in->flat)))
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected f32 [N, C, L]%s",
                               in->flat ? "" : " or [N, C, H, W]");
    if (w->dtype != MICA_F32 || w->rank != x->rank)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected f32 weights of rank %d, got %s of rank %d",
                               x->rank, mica_dtype_name(w->dtype), w->rank);
    if ((unsigned)o->activation >= MICA_ACTIVATION_COUNT)
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "unknown activation %d", (int)o->activation);
    mica_index out = 0, sizes[2] = {0};
    MICA_TRY(infer_channels(i, in, o, &out));
    char reason[MICA_REASON];
    mica_tensor taps = mica_planes(w);
    mica_status status = mica_conv_sizes(sizes, reason, x, &taps.dim[2], o, in->transposed);
    if (status != MICA_OK)
        return mica_infer_fail(i, status, "%s", reason);
    bool flat = x->rank == 3;
    mica_index dims[] = {x->dim[0], out, flat ? sizes[1] : sizes[0], sizes[1]};
    return mica_infer_out(i, 0, MICA_F32, mean ? 2 : x->rank, dims);
}

/* ---- Run ---- */

typedef mica_status forward_fn(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x,
                               const mica_tensor *w, const mica_tensor *bias, const mica_conv2d_opts *opts);
typedef mica_status backward_fn(mica_context *ctx, const mica_tensor *dst, const mica_tensor *dy,
                                const mica_tensor *other, const mica_conv2d_opts *opts);

static mica_status forward(const mica_call *c, mica_conv2d_opts how, forward_fn *fn, bool mean)
{
    mica_tensor x = mica_planes(c->in[0]), w = mica_planes(c->in[1]);
    mica_tensor y = mean ? *c->out[0] : mica_planes(c->out[0]);
    if (mean)
        y.rank = 2; /* in place of a global_avg_pool that keeps its axes, it is [N, C, 1, ...] */
    how.accumulate = false;
    return fn(c->ctx, &y, &x, &w, c->in[2], &how);
}

/* dx of dy and w, or dw of dy and x */
static mica_status backward(const mica_call *c, mica_conv2d_opts how, backward_fn *fn)
{
    mica_tensor out = mica_planes(c->out[0]), dy = mica_planes(c->in[0]), other = mica_planes(c->in[1]);
    how.accumulate = (c->add & 1u) != 0;
    return fn(c->ctx, &out, &dy, &other, &how);
}

static mica_status backward_bias(const mica_call *c)
{
    mica_tensor dy = mica_planes(c->in[0]);
    return mica_conv2d_backward_bias(c->ctx, c->out[0], &dy,
                                     &(mica_conv2d_opts){.accumulate = (c->add & 1u) != 0});
}

/* ---- Gradient ---- */

/* The gradient of an image whose means have dy's: ins dy, and x and w, from which its size follows. */
static mica_status spread_infer(mica_infer *i)
{
    return infer_image(i, &(conv_ins){.x = i->in[1], .w = i->in[2]}, i->opts, false);
}

static mica_status spread_run(const mica_call *c)
{
    return mica_global_avg_pool_backward(c->ctx, c->out[0], c->in[0]);
}

static const mica_op spread = {.name = "conv2d_mean_backward",
                               .ins = 3,
                               .outs = 1,
                               .opts_bytes = sizeof(mica_conv2d_opts),
                               .infer = spread_infer,
                               .run = spread_run};

static void gradient(mica_grad *g, mica_conv2d_opts how, bool transposed, bool mean)
{
    mica_conv2d_opts plain = how;
    plain.activation = MICA_NO_ACTIVATION;
    mica_value x = g->in[0], w = g->in[1], dy = g->dout[0];
    if (mean)
        dy = mica_grad_value(g, &spread, (mica_value[]){dy, x, w}, 3, &plain);
    const mica_op *image = transposed ? &mica_op_conv_transpose2d : &mica_op_conv2d;
    mica_finish finish = {how.activation, how.slope, image, &how, &plain};
    dy = mica_grad_finish(g, &finish, dy, mean ? 0 : g->out[0]);
    mica_grad_give(g, 1,
                   transposed ? &mica_op_conv_transpose2d_backward_weight : &mica_op_conv2d_backward_weight,
                   (mica_value[]){dy, x}, 2, &plain);
    mica_grad_give(g, 2, &mica_op_conv2d_backward_bias, &dy, 1, &plain);
    mica_grad_give(g, 0,
                   transposed ? &mica_op_conv_transpose2d_backward_input : &mica_op_conv2d_backward_input,
                   (mica_value[]){dy, w}, 2, &plain);
}

/* ---- Samples ---- */

static void sample(mica_op_sample *s, mica_conv2d_opts *o, bool flat, bool transposed)
{
    static const mica_activation smooth[] = {MICA_NO_ACTIVATION, MICA_NO_ACTIVATION, MICA_TANH, MICA_SILU};
    mica_index groups = mica_op_sample_int(s, 1, 2), in = mica_op_sample_int(s, 1, 3),
               out = mica_op_sample_int(s, 1, 3);
    mica_index x[4] = {mica_op_sample_int(s, 1, 2), groups * in};
    mica_index w[4] = {groups * (transposed ? in : out), transposed ? out : in};
    *o = (mica_conv2d_opts){.groups = groups, .activation = smooth[mica_op_sample_int(s, 0, 3)]};
    for (int axis = flat ? 1 : 0; axis < 2; axis++) {
        int k = flat ? 2 : 2 + axis;
        w[k] = mica_op_sample_int(s, 1, 4);
        o->stride[axis] = mica_op_sample_int(s, 1, 3);
        o->dilation[axis] = mica_op_sample_int(s, 1, 2);
        mica_index reach = o->dilation[axis] * (w[k] - 1) + 1;
        o->pad[axis] = mica_op_sample_int(s, 0, (reach - 1) / 2);
        x[k] = mica_op_sample_int(s, 0, 4) + (transposed ? 1 : reach - 2 * o->pad[axis]);
        if (transposed)
            o->output_pad[axis] = mica_op_sample_int(s, 0, o->stride[axis] - 1);
    }
    mica_op_sample_shape(s, 0, flat ? 3 : 4, x);
    mica_op_sample_shape(s, 1, flat ? 3 : 4, w);
    if (mica_op_sample_int(s, 0, 1) == 0)
        return;
    s->ins = 3;
    mica_index channels = groups * out;
    mica_op_sample_shape(s, 2, 1, &channels);
}

/* Images, and at times signals as images of one row. */
static void sample2d(mica_op_sample *s, bool transposed)
{
    sample(s, s->opts, mica_op_sample_int(s, 0, 3) == 0, transposed);
}

static void sample1d(mica_op_sample *s, bool transposed)
{
    mica_conv2d_opts wide;
    sample(s, &wide, true, transposed);
    *(mica_conv1d_opts *)s->opts = (mica_conv1d_opts){.stride = wide.stride[1],
                                                      .pad = wide.pad[1],
                                                      .dilation = wide.dilation[1],
                                                      .groups = wide.groups,
                                                      .output_pad = wide.output_pad[1],
                                                      .activation = wide.activation};
}

/* ---- Fusion ---- */

static bool end_with_activation(mica_net *net, mica_node *node, const mica_node *then)
{
    (void)net;
    mica_conv2d_opts *opts = node->opts;
    return mica_net_fuse_activation(then, &opts->activation, &opts->slope);
}

/* The largest of windows, an activation, or (where sums of planes have a path of their own) the mean. */
static bool take_in(mica_net *net, mica_node *node, const mica_node *then)
{
    const mica_conv2d_opts *conv = node->opts;
    if (then->op != &mica_op_max_pool2d || conv->activation != MICA_NO_ACTIVATION) {
#if !defined(MICA_SMALL)
        if (then->op == &mica_op_global_avg_pool) {
            node->op = &mica_op_conv2d_mean;
            return true;
        }
#endif
        return end_with_activation(net, node, then);
    }
    mica_conv_max_pool_opts both = {*conv, *(const mica_pooling_opts *)then->opts};
    _Static_assert(sizeof both <= sizeof(mica_fused_options), "the options of both fit");
    memcpy(node->opts, &both, sizeof both);
    node->op = &mica_op_conv2d_max_pool;
    node->outs = 2;
    node->out[1] = then->out[1];
    return true;
}

/* ---- Layouts ---- */

#if !defined(MICA_SMALL)
/* Layouts that no path is made for are read and written across. */
#define ACROSS_TIMES 4.0

mica_tensor mica_conv_image_of_means(const mica_tensor *x, const mica_tensor *w, const mica_conv2d_opts *how)
{
    char reason[MICA_REASON];
    mica_tensor y = *x;
    (void)mica_conv_sizes(&y.dim[2], reason, x, &w->dim[2], how, false); /* inferred before */
    y.dim[1] = w->dim[0];
    if (mica_channels_last(x))
        mica_tensor_set_channels_last(&y);
    else
        mica_tensor_set_strides(&y);
    return y;
}

static double time_of(const mica_call *c, mica_conv2d_opts how, bool mean)
{
    mica_tensor x = mica_planes(c->in[0]), w = mica_planes(c->in[1]);
    mica_tensor y = mean ? mica_conv_image_of_means(&x, &w, &how) : mica_planes(c->out[0]);
    how.accumulate = false;
    double time;
    if (mica_conv2d_cost(c->ctx, &time, &y, &x, &w, &how) != MICA_OK)
        return 0.0; /* it says so when it runs */
    bool reads = mica_channels_last(&x), writes = mica_channels_last(&y);
    return reads != writes && (reads || how.groups > 1) ? ACROSS_TIMES * time : time;
}

static bool folds1d(const mica_net *net, const mica_node *node)
{
    (void)net;
    return ((const mica_conv1d_opts *)node->opts)->activation == MICA_NO_ACTIVATION;
}

static bool folds2d(const mica_net *net, const mica_node *node)
{
    (void)net;
    return ((const mica_conv2d_opts *)node->opts)->activation == MICA_NO_ACTIVATION;
}

static double conv1d_time(const mica_call *c) { return time_of(c, how1d(c->opts), false); }
static double conv2d_time(const mica_call *c) { return time_of(c, how2d(c->opts), false); }
static double mean_time(const mica_call *c) { return time_of(c, how2d(c->opts), true); }

static const mica_op_passes conv1d_passes = {.folds = folds1d, .time = conv1d_time},
                            conv2d_passes = {.fuse = take_in,
                                             .folds = folds2d,
                                             .prepare = mica_conv2d_prepare,
                                             .time = conv2d_time},
                            mean_passes = {.prepare = mica_conv2d_mean_prepare, .time = mean_time};
#else
static const mica_op_passes conv2d_passes = {.fuse = take_in};
#endif
static const mica_op_passes transposed_passes = {.fuse = end_with_activation};

/* ---- Entries ---- */

/* `d` is 1d or 2d; fn is the operation in two dimensions. */
enum { flat1d = 1, flat2d = 0 };
#define FORWARD(op, d, fn, transposed, mean, asks, words)                                                  \
    static mica_status op##_infer(mica_infer *i)                                                           \
    {                                                                                                      \
        mica_conv2d_opts how = how##d(i->opts);                                                            \
        return infer_image(i, &(conv_ins){i->in[0], i->in[1], i->in[2], flat##d, transposed}, &how, mean); \
    }                                                                                                      \
    static mica_status op##_run(const mica_call *c) { return forward(c, how##d(c->opts), fn, mean); }      \
    static void op##_gradient(mica_grad *g) { gradient(g, how##d(g->opts), transposed, mean); }            \
    static void op##_sample(mica_op_sample *s) { sample##d(s, transposed); }                               \
    const mica_op mica_op_##op = {.name = #op,                                                             \
                                  .family = "conv",                                                        \
                                  .about = words,                                                          \
                                  .ins = 2,                                                                \
                                  .optional_ins = 1,                                                       \
                                  .outs = 1,                                                               \
                                  .names = (const char *const[]){"x", "w", "bias", "y"},                   \
                                  .opts_bytes = sizeof(mica_conv##d##_opts),                               \
                                  MICA_FIELD_LIST(fields##d),                                              \
                                  .infer = op##_infer,                                                     \
                                  .run = op##_run,                                                         \
                                  .gradient = MICA_GRADIENT(op##_gradient),                                \
                                  .passes = asks,                                                          \
                                  .sample = MICA_SAMPLE(op##_sample)};

FORWARD(conv1d, 1d, mica_conv2d, false, false, MICA_LAYOUTS(conv1d_passes), "convolution of signals")
FORWARD(conv2d, 2d, mica_conv2d, false, false, &conv2d_passes, "convolution of images")
FORWARD(conv1d_mean, 1d, mica_conv2d_mean, false, true, NULL,
        "the mean of each channel of a convolution of signals")
FORWARD(conv2d_mean, 2d, mica_conv2d_mean, false, true, MICA_LAYOUTS(mean_passes),
        "the mean of each channel of a convolution of images")
FORWARD(conv_transpose1d, 1d, mica_conv_transpose2d, true, false, NULL, "transposed convolution of signals")
FORWARD(conv_transpose2d, 2d, mica_conv_transpose2d, true, false, &transposed_passes,
        "transposed convolution of images")

#define BACKWARD_ENTRY(op, d, count, words, run_fn, ...)                       \
    const mica_op mica_op_##op = {.name = #op,                                 \
                                  .family = "conv",                            \
                                  .about = words,                              \
                                  .ins = count,                                \
                                  .outs = 1,                                   \
                                  .names = (const char *const[]){__VA_ARGS__}, \
                                  .opts_bytes = sizeof(mica_conv##d##_opts),   \
                                  MICA_FIELD_LIST(fields##d),                  \
                                  .adds = 1,                                   \
                                  .run = run_fn};

#define BACKWARD(op, d, fn, words, ...)                                                          \
    static mica_status op##_run(const mica_call *c) { return backward(c, how##d(c->opts), fn); } \
    BACKWARD_ENTRY(op, d, 2, words, op##_run, __VA_ARGS__)

#define BY_INPUT(op, d, fn)  BACKWARD(op, d, fn, "the gradient by x", "dy", "w", "dx")
#define BY_WEIGHT(op, d, fn) BACKWARD(op, d, fn, "the gradient by w", "dy", "x", "dw")
#define BY_BIAS(op, d)       BACKWARD_ENTRY(op, d, 1, "the gradient by bias", backward_bias, "dy", "db")

BY_INPUT(conv1d_backward_input, 1d, mica_conv2d_backward_input)
BY_WEIGHT(conv1d_backward_weight, 1d, mica_conv2d_backward_weight)
BY_BIAS(conv1d_backward_bias, 1d)
BY_INPUT(conv2d_backward_input, 2d, mica_conv2d_backward_input)
BY_WEIGHT(conv2d_backward_weight, 2d, mica_conv2d_backward_weight)
BY_BIAS(conv2d_backward_bias, 2d)
BY_INPUT(conv_transpose1d_backward_input, 1d, mica_conv_transpose2d_backward_input)
BY_WEIGHT(conv_transpose1d_backward_weight, 1d, mica_conv_transpose2d_backward_weight)
BY_INPUT(conv_transpose2d_backward_input, 2d, mica_conv_transpose2d_backward_input)
BY_WEIGHT(conv_transpose2d_backward_weight, 2d, mica_conv_transpose2d_backward_weight)
