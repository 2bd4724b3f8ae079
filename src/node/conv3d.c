/* Convolutions of volumes, plain and transposed, as sums of convolutions of images: one for each tap along the
 * depth, over all slices of a sample at once.
 *
 * Of the two volumes the narrow one is the result of a plain convolution, and what a transposed one starts from.
 * Slice i of the narrow one meets slice i stride - pad + tap dilation of the wide one:
 *
 *     conv3d            narrow y += wide x  * w[tap]        conv_transpose3d   wide y   += narrow x * w[tap]
 *     its dx            wide dx  += narrow dy * w[tap]      its dx             narrow dx += wide dy * w[tap] */
#include "node/check.h"
#include "node/planes.h"
#include "tensor/tensor.h"

/* ---- Slices ---- */

/* Options along height and width. */
static mica_conv2d_opts flat(const mica_conv3d_opts *o)
{
    return (mica_conv2d_opts){.stride = {o->stride[1], o->stride[2]},
                              .pad = {o->pad[1], o->pad[2]},
                              .dilation = {o->dilation[1], o->dilation[2]},
                              .groups = o->groups,
                              .output_pad = {o->output_pad[1], o->output_pad[2]}};
}

/* `count` slices [count, C, H, W] of sample n of t [N, C, D, H, W]. */
static mica_tensor slices(const mica_tensor *t, mica_index n, mica_index first, mica_index step,
                          mica_index count)
{
    mica_tensor s = {.dtype = t->dtype,
                     .rank = 4,
                     .dim = {count, t->dim[1], t->dim[3], t->dim[4]},
                     .stride = {step * t->stride[2], t->stride[1], t->stride[3], t->stride[4]}};
    if (t->data != NULL)
        s.data = mica_element(t, n * t->stride[0] + first * t->stride[2]);
    return s;
}

/* The weights of a tap along the depth. */
static mica_tensor weights(const mica_tensor *w, mica_index tap)
{
    mica_tensor s = {.dtype = w->dtype,
                     .rank = 4,
                     .dim = {w->dim[0], w->dim[1], w->dim[3], w->dim[4]},
                     .stride = {w->stride[0], w->stride[1], w->stride[3], w->stride[4]}};
    if (w->data != NULL)
        s.data = mica_element(w, tap * w->stride[2]);
    return s;
}

typedef struct pair {
    mica_tensor narrow, wide;
} pair;

/* The slices of sample n that meet at this tap; false if there are none. */
static bool meet(pair *p, const mica_conv3d_opts *o, const mica_tensor *narrow, const mica_tensor *wide,
                 mica_index n, mica_index tap)
{
    mica_index stride = o->stride[0] != 0 ? o->stride[0] : 1,
               dilation = o->dilation[0] != 0 ? o->dilation[0] : 1;
    mica_index at = tap * dilation - o->pad[0], last = wide->dim[2] - 1 - at;
    mica_index first = at >= 0 ? 0 : (-at + stride - 1) / stride;
    mica_index end = last < 0 ? 0 : last / stride + 1;
    if (end > narrow->dim[2])
        end = narrow->dim[2];
    if (first >= end)
        return false;
    p->narrow = slices(narrow, n, first, 1, end - first);
    p->wide = slices(wide, n, first * stride + at, stride, end - first);
    return true;
}

/* ---- Infer ---- */

static mica_status infer(mica_infer *i, bool transposed)
{
    const mica_conv3d_opts *o = i->opts;
    const mica_tensor *x = i->in[0], *w = i->in[1], *bias = i->in[2];
    mica_index groups = o->groups != 0 ? o->groups : 1, dims[5] = {0}, sizes[2];
    if (x->dtype != MICA_F32 || w->dtype != MICA_F32 || x->rank != 5 || w->rank != 5)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected f32 [N, C, D, H, W] and weights of rank 5");
    bool fits = groups >= 1 && w->dim[0] % groups == 0;
    if (fits)
        fits = transposed ? x->dim[1] == w->dim[0]
                          : x->dim[1] % groups == 0 && x->dim[1] / groups == w->dim[1];
    if (!fits)
        return mica_infer_fail(i, MICA_ERR_SHAPE,
                               "%td channels do not match weights [%td, %td, ...] in %td groups", x->dim[1],
                               w->dim[0], w->dim[1], groups);
    dims[0] = x->dim[0];
    dims[1] = w->dim[0];
    if (transposed && __builtin_mul_overflow(w->dim[1], groups, &dims[1]))
        return mica_infer_fail(i, MICA_ERR_SHAPE, "%td channels for each of %td groups overflow", w->dim[1],
                               groups);
    if (bias != NULL && (bias->dtype != MICA_F32 || bias->rank != 1 || bias->dim[0] != dims[1]))
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected an f32 bias [%td]", dims[1]);
    for (int k = 0; k < 2; k++) { /* depth and height, height and width */
        mica_tensor plane = {.rank = 4, .dim = {x->dim[0], x->dim[1], x->dim[2 + k], x->dim[3 + k]}};
        mica_conv2d_opts along = {.stride = {o->stride[k], o->stride[k + 1]},
                                  .pad = {o->pad[k], o->pad[k + 1]},
                                  .dilation = {o->dilation[k], o->dilation[k + 1]},
                                  .output_pad = {o->output_pad[k], o->output_pad[k + 1]}};
        char reason[MICA_REASON];
        mica_status status = mica_conv_sizes(sizes, reason, &plane, &w->dim[2 + k], &along, transposed);
        if (status != MICA_OK)
            return mica_infer_fail(i, status, "dimensions %d and %d: %s", 2 + k, 3 + k, reason);
        dims[2 + k] = sizes[0];
        dims[3 + k] = sizes[1];
    }
    return mica_infer_out(i, 0, MICA_F32, 5, dims);
}

/* ---- Run ---- */

/* y is the bias, or 0, before anything is added. */
static mica_status begin(mica_context *ctx, const mica_tensor *y, const mica_tensor *bias)
{
    if (bias == NULL)
        return mica_fill(ctx, y, 0.0);
    mica_tensor everywhere = *y;
    everywhere.data = bias->data;
    for (int k = 0; k < 5; k++)
        everywhere.stride[k] = k == 1 ? bias->stride[0] : 0;
    return mica_copy(ctx, y, &everywhere);
}

static mica_status forward(const mica_call *c, bool transposed)
{
    const mica_tensor *x = c->in[0], *w = c->in[1], *y = c->out[0];
    mica_conv2d_opts how = flat(c->opts);
    how.accumulate = true;
    MICA_TRY(begin(c->ctx, y, c->in[2]));
    for (mica_index n = 0; n < x->dim[0]; n++)
        for (mica_index tap = 0; tap < w->dim[2]; tap++) {
            pair p;
            if (!meet(&p, c->opts, transposed ? x : y, transposed ? y : x, n, tap))
                continue;
            mica_tensor of_tap = weights(w, tap);
            MICA_TRY(transposed ? mica_conv_transpose2d(c->ctx, &p.wide, &p.narrow, &of_tap, NULL, &how)
                                : mica_conv2d(c->ctx, &p.narrow, &p.wide, &of_tap, NULL, &how));
        }
    return MICA_OK;
}

/* dx of dy and w */
static mica_status backward_input(const mica_call *c, bool transposed)
{
    const mica_tensor *dx = c->out[0], *dy = c->in[0], *w = c->in[1];
    mica_conv2d_opts how = flat(c->opts);
    how.accumulate = true;
    if ((c->add & 1u) == 0)
        MICA_TRY(mica_fill(c->ctx, dx, 0.0));
    for (mica_index n = 0; n < dx->dim[0]; n++)
        for (mica_index tap = 0; tap < w->dim[2]; tap++) {
            pair p;
            if (!meet(&p, c->opts, transposed ? dx : dy, transposed ? dy : dx, n, tap))
                continue;
            mica_tensor of_tap = weights(w, tap);
            MICA_TRY(transposed
                         ? mica_conv_transpose2d_backward_input(c->ctx, &p.narrow, &p.wide, &of_tap, &how)
                         : mica_conv2d_backward_input(c->ctx, &p.wide, &p.narrow, &of_tap, &how));
        }
    return MICA_OK;
}

/* dw of dy and x */
static mica_status backward_weight(const mica_call *c, bool transposed)
{
    const mica_tensor *dw = c->out[0], *dy = c->in[0], *x = c->in[1];
    mica_conv2d_opts how = flat(c->opts);
    how.accumulate = true;
    if ((c->add & 1u) == 0)
        MICA_TRY(mica_fill(c->ctx, dw, 0.0));
    for (mica_index n = 0; n < x->dim[0]; n++)
        for (mica_index tap = 0; tap < dw->dim[2]; tap++) {
            pair p;
            if (!meet(&p, c->opts, transposed ? x : dy, transposed ? dy : x, n, tap))
                continue;
            mica_tensor of_tap = weights(dw, tap);
            MICA_TRY(transposed
                         ? mica_conv_transpose2d_backward_weight(c->ctx, &of_tap, &p.wide, &p.narrow, &how)
                         : mica_conv2d_backward_weight(c->ctx, &of_tap, &p.narrow, &p.wide, &how));
        }
    return MICA_OK;
}

/* ---- Gradient ---- */

#define BACKWARD(op, fn, transposed)                                              \
    static mica_status op##_run(const mica_call *c) { return fn(c, transposed); } \
    static const mica_op op = {.name = #op,                                       \
                               .ins = 2,                                          \
                               .outs = 1,                                         \
                               .opts_bytes = sizeof(mica_conv3d_opts),            \
                               .adds = 1,                                         \
                               .run = op##_run};
BACKWARD(conv3d_backward_input, backward_input, false)
BACKWARD(conv3d_backward_weight, backward_weight, false)
BACKWARD(conv_transpose3d_backward_input, backward_input, true)
BACKWARD(conv_transpose3d_backward_weight, backward_weight, true)

static void gradient(mica_grad *g, const mica_op *input, const mica_op *weight)
{
    static const mica_reduction_opts all_but_channels = {.axes = {0, 2, 3, 4}, .count = 4};
    mica_grad_give(g, 1, weight, (mica_value[]){g->dout[0], g->in[0]}, 2, g->opts);
    mica_grad_give(g, 2, &mica_op_sum, &g->dout[0], 1, &all_but_channels);
    mica_grad_give(g, 0, input, (mica_value[]){g->dout[0], g->in[1]}, 2, g->opts);
}

static void conv3d_gradient(mica_grad *g) { gradient(g, &conv3d_backward_input, &conv3d_backward_weight); }
static void conv_transpose3d_gradient(mica_grad *g)
{
    gradient(g, &conv_transpose3d_backward_input, &conv_transpose3d_backward_weight);
}

/* ---- Samples and entries ---- */

static void sample(mica_op_sample *s, bool transposed)
{
    mica_conv3d_opts *o = s->opts;
    mica_index groups = mica_op_sample_int(s, 1, 2), in = mica_op_sample_int(s, 1, 2),
               out = mica_op_sample_int(s, 1, 2);
    mica_index x[5] = {mica_op_sample_int(s, 1, 2), groups * in};
    mica_index w[5] = {groups * (transposed ? in : out), transposed ? out : in}, channels = groups * out;
    o->groups = groups;
    for (int k = 0; k < 3; k++) {
        w[2 + k] = mica_op_sample_int(s, 1, 3);
        o->stride[k] = mica_op_sample_int(s, 1, 2);
        o->dilation[k] = mica_op_sample_int(s, 1, 2);
        mica_index reach = o->dilation[k] * (w[2 + k] - 1) + 1;
        o->pad[k] = mica_op_sample_int(s, 0, (reach - 1) / 2);
        x[2 + k] = mica_op_sample_int(s, 0, 2) + (transposed ? 1 : reach - 2 * o->pad[k]);
        if (transposed)
            o->output_pad[k] = mica_op_sample_int(s, 0, o->stride[k] - 1);
    }
    mica_op_sample_shape(s, 0, 5, x);
    mica_op_sample_shape(s, 1, 5, w);
    if (!mica_sample_chance(s))
        return;
    s->ins = 3;
    mica_op_sample_shape(s, 2, 1, &channels);
}

static const mica_field fields[] = {
    MICA_FIELDS(mica_conv3d_opts, stride, INDEX, "along depth, height and width; 0: 1"),
    MICA_FIELDS(mica_conv3d_opts, pad, INDEX, "zero padding on each side"),
    MICA_FIELDS(mica_conv3d_opts, dilation, INDEX, "0: 1"),
    MICA_FIELD(mica_conv3d_opts, groups, INDEX, "0: 1"),
    MICA_FIELDS(mica_conv3d_opts, output_pad, INDEX, "transposed convolution only"),
};

#define FORWARD(op, transposed, words)                                                   \
    static mica_status op##_infer(mica_infer *i) { return infer(i, transposed); }        \
    static mica_status op##_run(const mica_call *c) { return forward(c, transposed); }   \
    static void op##_sample(mica_op_sample *s) { sample(s, transposed); }                \
    const mica_op mica_op_##op = {.name = #op,                                           \
                                  .family = "composed",                                  \
                                  .about = words,                                        \
                                  .ins = 2,                                              \
                                  .optional_ins = 1,                                     \
                                  .outs = 1,                                             \
                                  .names = (const char *const[]){"x", "w", "bias", "y"}, \
                                  .opts_bytes = sizeof(mica_conv3d_opts),                \
                                  MICA_FIELD_LIST(fields),                               \
                                  .infer = op##_infer,                                   \
                                  .run = op##_run,                                       \
                                  .gradient = MICA_GRADIENT(op##_gradient),              \
                                  .sample = MICA_SAMPLE(op##_sample)};
FORWARD(conv3d, false, "convolution of volumes")
FORWARD(conv_transpose3d, true, "transposed convolution of volumes")
