/* Cases of the convolutions, by direct sums. */
#include "ops/op_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    STRIDE = 0,
    PAD = 2,
    DILATION = 4,
    OUTPUT_PAD = 6,
    GROUPS = 8,
    ACCUMULATE = 9,
    ACTIVATION = 11,
    SIZE = 12
};

#define SLOPE 0.125f

/* Which tensor of a call is which: 0 is the output. */
typedef struct roles {
    int dims;
    bool transposed;
    int x, y, w; /* of the convolution as such: y is made from x and w, or these are gradients */
    int bias;    /* 0: none */
} roles;

/* ---- Drawing ---- */

static void draw_axis(op_call *c, test_random *r, int d, const roles *k, mica_index *x, mica_index *y,
                      mica_index *taps, mica_index square)
{
    long stride = test_chance(r, 50) ? 1 : test_int(r, 1, 4),
         dilation = test_chance(r, 60) ? 1 : test_int(r, 1, 3);
    long pad = test_int(r, 0, 3), output_pad = 0;
    mica_index size;
    do {
        *taps = square > 0 ? square : test_int(r, 1, test_chance(r, 20) ? 7 : 4);
        size = c->large ? test_int(r, 14, 40) : test_int(r, 1, test_chance(r, 20) ? 40 : 9);
        if (k->transposed) {
            output_pad = test_int(r, 0, (int)(stride > dilation ? stride : dilation) - 1);
            *x = size;
            *y = (size - 1) * stride - 2 * pad + dilation * (*taps - 1) + 1 + output_pad;
        } else {
            *x = size;
            *y = size + 2 * pad < dilation * (*taps - 1) + 1
                     ? 0
                     : (size + 2 * pad - dilation * (*taps - 1) - 1) / stride + 1;
        }
    } while (*y < 1);
    /* Zeros are the defaults. */
    c->i[STRIDE + d] = stride == 1 && test_chance(r, 50) ? 0 : stride;
    c->i[DILATION + d] = dilation == 1 && test_chance(r, 50) ? 0 : dilation;
    c->i[PAD + d] = pad;
    c->i[OUTPUT_PAD + d] = output_pad;
}

static void draw_conv(op_call *c, test_random *r, const roles *k)
{
    mica_index groups = test_chance(r, 50) ? 1 : test_int(r, 1, 4);
    bool depthwise = test_chance(r, 25);
    mica_index square = 0; /* so many taps each way, if not 0 */
    if (depthwise && test_chance(r, 60)) {
        groups = test_int(r, 2, 36);
        square = test_chance(r, 60) ? 2 * test_int(r, 1, 2) + 1 : 0;
    }
    mica_index in = depthwise ? 1 : test_int(r, 1, test_chance(r, 20) ? 20 : 5);
    mica_index out = depthwise ? test_int(r, 1, 2) : test_int(r, 1, test_chance(r, 20) ? 20 : 5);
    if (c->large) {
        in *= 6;
        out *= 6;
    }
    mica_index batch = test_chance(r, 5) ? 0 : test_int(r, 1, c->large ? 5 : 3);
    mica_index x[4] = {batch, in * groups}, y[4] = {batch, out * groups};
    mica_index w[4] = {(k->transposed ? in : out) * groups, k->transposed ? out : in};
    for (int d = 0; d < k->dims; d++)
        draw_axis(c, r, 2 - k->dims + d, k, &x[2 + d], &y[2 + d], &w[2 + d], square);
    c->i[GROUPS] = groups == 1 ? 0 : groups;
    c->i[ACCUMULATE] = test_chance(r, 30);
    c->i[ACTIVATION] = k->bias != 0 && test_chance(r, 30) ? MICA_LEAKY_RELU : MICA_NO_ACTIVATION;
    op_tensor(c, k->x, MICA_F32, k->dims + 2, x);
    op_tensor(c, k->y, MICA_F32, k->dims + 2, y);
    op_tensor(c, k->w, MICA_F32, k->dims + 2, w);
    if (k->bias != 0) {
        op_tensor(c, k->bias, MICA_F32, 1, &y[1]);
        c->absent[k->bias] = test_chance(r, 40);
    }
    /* Sums of as many products as a result has, each about 1 in size. */
    double terms = k->w == 0 ? (double)(batch * y[2] * (k->dims == 2 ? y[3] : 1))
                             : (double)((in + out) * w[2] * (k->dims == 2 ? w[3] : 1));
    c->scale = fmax(1.0, sqrt(terms));
    /* Winograd's transforms are allowed more: <mica/ops/conv.h>. */
    bool rows = k->dims == 2 && w[2] == 3, columns = w[k->dims + 1] == 3 && in >= 16 && out >= 16;
    if (groups == 1 && (rows || columns))
        c->scale *= 4.0;
}

/* A size up to this, more often a large one; or one from this on. */
static mica_index draw_size(test_random *r, mica_index size, bool larger)
{
    if (size < 1 || test_chance(r, 30))
        return size;
    if (larger)
        return size * test_int(r, 1, 4) + test_int(r, 0, 3);
    return test_int(r, test_chance(r, 50) ? (int)(size + 1) / 2 : 1, (int)size);
}

/* Fewer or more images, rows and columns. */
static void resize_conv(op_call *c, test_random *r, bool larger, const roles *k)
{
    mica_index x[4], y[4], batch = draw_size(r, c->tensor[k->x].dim[0], larger);
    const mica_tensor *w = &c->tensor[k->w];
    memcpy(x, c->tensor[k->x].dim, sizeof x);
    memcpy(y, c->tensor[k->y].dim, sizeof y);
    x[0] = y[0] = batch > 0 ? batch : c->tensor[k->x].dim[0];
    for (int i = 2; i < k->dims + 2; i++) {
        int d = i - k->dims;
        if (k->dims == 1)
            d = 1;
        long stride = c->i[STRIDE + d] > 0 ? c->i[STRIDE + d] : 1,
             dilation = c->i[DILATION + d] > 0 ? c->i[DILATION + d] : 1;
        mica_index size = draw_size(r, x[i], larger), span = dilation * (w->dim[i] - 1) + 1, made;
        if (size < 1)
            continue;
        if (k->transposed)
            made = (size - 1) * stride - 2 * c->i[PAD + d] + span + c->i[OUTPUT_PAD + d];
        else
            made = size + 2 * c->i[PAD + d] < span ? 0 : (size + 2 * c->i[PAD + d] - span) / stride + 1;
        if (made < 1)
            continue;
        x[i] = size;
        y[i] = made;
    }
    bool image = c->tensor[k->y].rank == k->dims + 2 && c->i[SIZE] == 0; /* and not its means */
    op_tensor(c, k->x, MICA_F32, k->dims + 2, x);
    op_tensor(c, k->y, MICA_F32, c->tensor[k->y].rank, image ? y : (mica_index[]){x[0], y[1], 1, 1});
}

/* What is overwritten must not be read: it holds NaN. */
static void fill_conv(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        value[i] = tensor == 0 && !c->i[ACCUMULATE] ? NAN : (double)(float)test_normal(r);
}

/* ---- References ---- */

/* Calls visit(wide, narrow, w) for every product of a convolution, as row-major positions. */
typedef void visit_fn(double *const *v, const roles *k, size_t wide, size_t narrow, size_t w);

static long option(const op_call *c, int which, int d) { return c->i[which + d] > 0 ? c->i[which + d] : 1; }

/* One image, group and pair of channels. */
static void visit_plane(const op_call *c, double *const *v, const roles *k, size_t wide, size_t narrow,
                        size_t w, visit_fn *visit)
{
    const mica_tensor *wt = &c->tensor[k->transposed ? k->y : k->x],
                      *nt = &c->tensor[k->transposed ? k->x : k->y];
    const mica_tensor *kt = &c->tensor[k->w];
    bool two = k->dims == 2;
    mica_index wh = two ? wt->dim[2] : 1, ww = wt->dim[k->dims + 1], nh = two ? nt->dim[2] : 1;
    mica_index nw = nt->dim[k->dims + 1], kh = two ? kt->dim[2] : 1, kw = kt->dim[k->dims + 1];
    long sh = two ? option(c, STRIDE, 0) : 1, dh = two ? option(c, DILATION, 0) : 1, ph = two ? c->i[PAD] : 0;
    long sw = option(c, STRIDE, 1), dw = option(c, DILATION, 1), pw = c->i[PAD + 1];
    for (mica_index i = 0; i < nh; i++)
        for (mica_index j = 0; j < nw; j++)
            for (mica_index t = 0; t < kh; t++)
                for (mica_index u = 0; u < kw; u++) {
                    mica_index h = i * sh - ph + t * dh, x = j * sw - pw + u * dw;
                    if (h >= 0 && h < wh && x >= 0 && x < ww)
                        visit(v, k, wide + (size_t)(h * ww + x), narrow + (size_t)(i * nw + j),
                              w + (size_t)(t * kw + u));
                }
}

static size_t plane(const mica_tensor *t)
{
    return (size_t)(t->rank == 4 ? t->dim[2] * t->dim[3] : t->dim[2]);
}

static void visit_all(const op_call *c, double *const *v, const roles *k, visit_fn *visit)
{
    const mica_tensor *wt = &c->tensor[k->transposed ? k->y : k->x],
                      *nt = &c->tensor[k->transposed ? k->x : k->y];
    const mica_tensor *kt = &c->tensor[k->w];
    size_t groups = (size_t)(c->i[GROUPS] > 0 ? c->i[GROUPS] : 1), batch = (size_t)wt->dim[0];
    size_t narrow_channels = (size_t)kt->dim[0], wide_channels = (size_t)kt->dim[1];
    for (size_t n = 0; n < batch; n++)
        for (size_t o = 0; o < narrow_channels; o++)
            for (size_t ch = 0; ch < wide_channels; ch++) {
                size_t group = o / (narrow_channels / groups), wide = group * wide_channels + ch;
                visit_plane(c, v, k, (n * wide_channels * groups + wide) * plane(wt),
                            (n * narrow_channels + o) * plane(nt), (o * wide_channels + ch) * plane(kt),
                            visit);
            }
}

static void begin(const op_call *c, double *const *v, const roles *k)
{
    for (size_t i = 0; i < op_count(c, 0); i++) {
        if (!c->i[ACCUMULATE])
            v[0][i] = 0.0;
        if (k->bias != 0 && !c->absent[k->bias])
            v[0][i] += v[k->bias][i / plane(&c->tensor[0]) % (size_t)c->tensor[0].dim[1]];
    }
}

static void visit_forward(double *const *v, const roles *k, size_t wide, size_t narrow, size_t w)
{
    v[k->y][k->transposed ? wide : narrow] += v[k->w][w] * v[k->x][k->transposed ? narrow : wide];
}

static void visit_input(double *const *v, const roles *k, size_t wide, size_t narrow, size_t w)
{
    v[k->x][k->transposed ? narrow : wide] += v[k->w][w] * v[k->y][k->transposed ? wide : narrow];
}

static void visit_kernel(double *const *v, const roles *k, size_t wide, size_t narrow, size_t w)
{
    v[k->w][w] += v[k->x][k->transposed ? narrow : wide] * v[k->y][k->transposed ? wide : narrow];
}

/* ---- Calls ---- */

static mica_conv2d_opts opts_2(const op_call *c)
{
    return (mica_conv2d_opts){.stride = {c->i[STRIDE], c->i[STRIDE + 1]},
                              .pad = {c->i[PAD], c->i[PAD + 1]},
                              .dilation = {c->i[DILATION], c->i[DILATION + 1]},
                              .groups = c->i[GROUPS],
                              .output_pad = {c->i[OUTPUT_PAD], c->i[OUTPUT_PAD + 1]},
                              .accumulate = c->i[ACCUMULATE] != 0,
                              .activation = (mica_activation)c->i[ACTIVATION],
                              .slope = SLOPE};
}

static mica_conv1d_opts opts_1(const op_call *c)
{
    return (mica_conv1d_opts){.stride = c->i[STRIDE + 1],
                              .pad = c->i[PAD + 1],
                              .dilation = c->i[DILATION + 1],
                              .groups = c->i[GROUPS],
                              .output_pad = c->i[OUTPUT_PAD + 1],
                              .accumulate = c->i[ACCUMULATE] != 0,
                              .activation = (mica_activation)c->i[ACTIVATION],
                              .slope = SLOPE};
}

/* ---- The cases ---- */

static const struct {
    const char *op;
    roles roles;
    visit_fn *visit;
} table[] = {
    {"conv1d", {1, false, 1, 0, 2, 3}, visit_forward},
    {"conv2d", {2, false, 1, 0, 2, 3}, visit_forward},
    {"conv_transpose1d", {1, true, 1, 0, 2, 3}, visit_forward},
    {"conv_transpose2d", {2, true, 1, 0, 2, 3}, visit_forward},
    {"conv1d_backward_input", {1, false, 0, 1, 2, 0}, visit_input},
    {"conv2d_backward_input", {2, false, 0, 1, 2, 0}, visit_input},
    {"conv_transpose1d_backward_input", {1, true, 0, 1, 2, 0}, visit_input},
    {"conv_transpose2d_backward_input", {2, true, 0, 1, 2, 0}, visit_input},
    {"conv1d_backward_weight", {1, false, 2, 1, 0, 0}, visit_kernel},
    {"conv2d_backward_weight", {2, false, 2, 1, 0, 0}, visit_kernel},
    {"conv_transpose1d_backward_weight", {1, true, 2, 1, 0, 0}, visit_kernel},
    {"conv_transpose2d_backward_weight", {2, true, 2, 1, 0, 0}, visit_kernel},
};

static size_t row_of(const op_call *c)
{
    size_t row = 0;
    while (strcmp(table[row].op, c->op->name) != 0)
        row++;
    return row;
}

static void draw_any(op_call *c, test_random *r) { draw_conv(c, r, &table[row_of(c)].roles); }
static void resize_any(op_call *c, test_random *r, bool larger)
{
    resize_conv(c, r, larger, &table[row_of(c)].roles);
}

static void reference_any(const op_call *c, double *const *v)
{
    const roles *k = &table[row_of(c)].roles;
    begin(c, v, k);
    visit_all(c, v, k, table[row_of(c)].visit);
    for (size_t i = 0; c->i[ACTIVATION] == MICA_LEAKY_RELU && i < op_count(c, 0); i++)
        v[0][i] *= v[0][i] < 0.0 ? (double)SLOPE : 1.0;
}

#define COMMON                                                                             \
    .outs = 1, .reads_outs = OP_BIT(0), .draws = 300, .draw = draw_any, .fill = fill_conv, \
    .resize = resize_any, .reference = reference_any, .tolerance = 3e-6

#define FORWARD(name, number)                                                                     \
    static mica_status run_##name(mica_context *ctx, const op_call *c)                            \
    {                                                                                             \
        mica_conv##number##d_opts opts = opts_##number(c);                                        \
        return mica_##name(ctx, OP(c, 0), OP(c, 1), OP(c, 2), OP(c, 3), &opts);                   \
    }                                                                                             \
    OP_CASE(name) = {COMMON, .names = {"dst", "x", "w", "bias"}, .ins = 3, .optional = OP_BIT(3), \
                     .run = run_##name}

#define BACKWARD(name, number, out, other)                             \
    static mica_status run_##name(mica_context *ctx, const op_call *c) \
    {                                                                  \
        mica_conv##number##d_opts opts = opts_##number(c);             \
        return mica_##name(ctx, OP(c, 0), OP(c, 1), OP(c, 2), &opts);  \
    }                                                                  \
    OP_CASE(name) = {COMMON, .names = {out, "dy", other}, .ins = 2, .run = run_##name}

FORWARD(conv1d, 1);
FORWARD(conv2d, 2);
FORWARD(conv_transpose1d, 1);
FORWARD(conv_transpose2d, 2);
BACKWARD(conv1d_backward_input, 1, "dx", "w");
BACKWARD(conv2d_backward_input, 2, "dx", "w");
BACKWARD(conv_transpose1d_backward_input, 1, "dx", "w");
BACKWARD(conv_transpose2d_backward_input, 2, "dx", "w");
BACKWARD(conv1d_backward_weight, 1, "dw", "x");
BACKWARD(conv2d_backward_weight, 2, "dw", "x");
BACKWARD(conv_transpose1d_backward_weight, 1, "dw", "x");
BACKWARD(conv_transpose2d_backward_weight, 2, "dw", "x");

/* ---- Means: of the image that the convolution makes ---- */

static void draw_mean(op_call *c, test_random *r, const roles *k)
{
    static const mica_activation kinds[] = {MICA_NO_ACTIVATION, MICA_RELU, MICA_RELU6, MICA_LEAKY_RELU};
    draw_conv(c, r, k);
    c->i[ACTIVATION] = kinds[test_int(r, 0, 3)];
    mica_index dims[4] = {c->tensor[0].dim[0], c->tensor[0].dim[1], 1, 1};
    for (int d = 0; d < k->dims; d++)
        c->i[SIZE + d] = c->tensor[0].dim[2 + d];
    op_tensor(c, 0, MICA_F32, test_chance(r, 70) ? 2 : k->dims + 2, dims);
}

static double activated(const op_call *c, double x)
{
    switch (c->i[ACTIVATION]) {
    case MICA_LEAKY_RELU:
        return x < 0.0 ? (double)SLOPE * x : x;
    case MICA_RELU:
        return fmax(x, 0.0);
    case MICA_RELU6:
        return fmin(fmax(x, 0.0), 6.0);
    default:
        return x;
    }
}

static void reference_mean(const op_call *c, double *const *v, const roles *k)
{
    op_call image = *c;
    mica_index dims[4] = {c->tensor[0].dim[0], c->tensor[0].dim[1], c->i[SIZE], c->i[SIZE + 1]};
    op_tensor(&image, 0, MICA_F32, k->dims + 2, dims);
    size_t count = op_count(&image, 0), pixels = plane(&image.tensor[0]);
    double *values[] = {malloc((count + 1) * sizeof(double)), v[1], v[2], v[3]};
    image.i[ACCUMULATE] = 0;
    begin(&image, values, k);
    visit_all(&image, values, k, visit_forward);
    for (size_t i = 0; i < op_count(c, 0); i++) {
        double sum = 0.0;
        for (size_t x = 0; x < pixels; x++) {
            sum += activated(c, values[0][i * pixels + x]);
        }
        v[0][i] = (c->i[ACCUMULATE] ? v[0][i] : 0.0) + sum / (double)pixels;
    }
    free(values[0]);
}

#define MEAN(op, number)                                                                    \
    static const roles roles_##number = {number, false, 1, 0, 2, 3};                        \
    static void draw_##op(op_call *c, test_random *r) { draw_mean(c, r, &roles_##number); } \
    static void resize_##op(op_call *c, test_random *r, bool larger)                        \
    {                                                                                       \
        resize_conv(c, r, larger, &roles_##number);                                         \
    }                                                                                       \
    static void reference_##op(const op_call *c, double *const *v)                          \
    {                                                                                       \
        reference_mean(c, v, &roles_##number);                                              \
    }                                                                                       \
    static mica_status run_##op(mica_context *ctx, const op_call *c)                        \
    {                                                                                       \
        mica_conv##number##d_opts opts = opts_##number(c);                                  \
        return mica_##op(ctx, OP(c, 0), OP(c, 1), OP(c, 2), OP(c, 3), &opts);               \
    }                                                                                       \
    OP_CASE(op) = {.names = {"dst", "x", "w", "bias"},                                      \
                   .outs = 1,                                                               \
                   .ins = 3,                                                                \
                   .optional = OP_BIT(3),                                                   \
                   .any_shape = OP_BIT(1) | OP_BIT(2),                                      \
                   .reads_outs = OP_BIT(0),                                                 \
                   .draws = 300,                                                            \
                   .draw = draw_##op,                                                       \
                   .resize = resize_##op,                                                   \
                   .fill = fill_conv,                                                       \
                   .run = run_##op,                                                         \
                   .reference = reference_##op,                                             \
                   .tolerance = 3e-6}
MEAN(conv1d_mean, 1);
MEAN(conv2d_mean, 2);

/* ---- Gradient by bias ---- */

static void draw_bias(op_call *c, test_random *r, int dims)
{
    mica_index dy[MICA_MAX_RANK];
    op_random_shape(c, r, dims + 2, dims + 2, dy);
    op_tensor(c, 0, MICA_F32, 1, &dy[1]);
    op_tensor(c, 1, MICA_F32, dims + 2, dy);
    c->i[ACCUMULATE] = test_chance(r, 30);
    c->scale = fmax(1.0, sqrt((double)mica_tensor_count(&c->tensor[1])));
}

static void draw_bias_1(op_call *c, test_random *r) { draw_bias(c, r, 1); }
static void draw_bias_2(op_call *c, test_random *r) { draw_bias(c, r, 2); }

static mica_status run_bias_1(mica_context *ctx, const op_call *c)
{
    return mica_conv1d_backward_bias(ctx, OP(c, 0), OP(c, 1),
                                     &(mica_conv1d_opts){.accumulate = c->i[ACCUMULATE] != 0});
}

static mica_status run_bias_2(mica_context *ctx, const op_call *c)
{
    return mica_conv2d_backward_bias(ctx, OP(c, 0), OP(c, 1),
                                     &(mica_conv2d_opts){.accumulate = c->i[ACCUMULATE] != 0});
}

static void reference_bias(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0) && !c->i[ACCUMULATE]; i++)
        v[0][i] = 0.0;
    for (size_t i = 0; i < op_count(c, 1); i++)
        v[0][i / plane(&c->tensor[1]) % op_count(c, 0)] += v[1][i];
}

#define BIAS(op, number)                        \
    OP_CASE(op) = {.names = {"db", "dy"},       \
                   .outs = 1,                   \
                   .ins = 1,                    \
                   .reads_outs = OP_BIT(0),     \
                   .any_shape = OP_BIT(1),      \
                   .draw = draw_bias_##number,  \
                   .fill = fill_conv,           \
                   .run = run_bias_##number,    \
                   .reference = reference_bias, \
                   .tolerance = 3e-6}
BIAS(conv1d_backward_bias, 1);
BIAS(conv2d_backward_bias, 2);

/* ---- Patches as columns: a depthwise convolution whose kernels have one 1 each ---- */

enum { KERNEL_SIZE = 10 };

static void draw_columns(op_call *c, test_random *r, int image, int matrix)
{
    static const roles k = {.dims = 2};
    mica_index batch = test_chance(r, 5) ? 0 : test_int(r, 1, 3),
               channels = test_int(r, 1, c->large ? 20 : 4);
    mica_index x[4] = {batch, channels}, y[2], taps[2];
    for (int d = 0; d < 2; d++) {
        draw_axis(c, r, d, &k, &x[2 + d], &y[d], &taps[d], 0);
        c->i[KERNEL_SIZE + d] = taps[d];
    }
    mica_index m[3] = {batch, channels * taps[0] * taps[1], y[0] * y[1]};
    op_tensor(c, image, MICA_F32, 4, x);
    op_tensor(c, matrix, MICA_F32, 3, m);
    c->i[ACCUMULATE] = 0;
}

/* The pixel of the image, row-major, that an entry of the matrix is; -1 outside. */
static ptrdiff_t pixel_of(const op_call *c, const mica_tensor *x, size_t entry)
{
    mica_index size[2], at[2], pixels = 1, tap[2], place[2];
    for (int d = 0; d < 2; d++) {
        mica_index span = option(c, DILATION, d) * (c->i[KERNEL_SIZE + d] - 1) + 1;
        size[d] = (x->dim[2 + d] + 2 * c->i[PAD + d] - span) / option(c, STRIDE, d) + 1;
        pixels *= size[d];
    }
    mica_index pixel = (mica_index)entry % pixels, row = (mica_index)entry / pixels;
    at[0] = pixel / size[1];
    at[1] = pixel % size[1];
    tap[1] = row % c->i[KERNEL_SIZE + 1];
    tap[0] = row / c->i[KERNEL_SIZE + 1] % c->i[KERNEL_SIZE];
    mica_index plane_number = row / c->i[KERNEL_SIZE + 1] / c->i[KERNEL_SIZE];
    for (int d = 0; d < 2; d++) {
        place[d] = at[d] * option(c, STRIDE, d) - c->i[PAD + d] + tap[d] * option(c, DILATION, d);
        if (place[d] < 0 || place[d] >= x->dim[2 + d])
            return -1;
    }
    return (plane_number * x->dim[2] + place[0]) * x->dim[3] + place[1];
}

static mica_im2col_opts opts_columns(const op_call *c)
{
    return (mica_im2col_opts){.kernel = {c->i[KERNEL_SIZE], c->i[KERNEL_SIZE + 1]},
                              .stride = {c->i[STRIDE], c->i[STRIDE + 1]},
                              .pad = {c->i[PAD], c->i[PAD + 1]},
                              .dilation = {c->i[DILATION], c->i[DILATION + 1]}};
}

static void draw_im2col(op_call *c, test_random *r) { draw_columns(c, r, 1, 0); }
static void draw_col2im(op_call *c, test_random *r) { draw_columns(c, r, 0, 1); }

static mica_status run_im2col(mica_context *ctx, const op_call *c)
{
    mica_im2col_opts opts = opts_columns(c);
    return mica_im2col(ctx, OP(c, 0), OP(c, 1), &opts);
}

static mica_status run_col2im(mica_context *ctx, const op_call *c)
{
    mica_im2col_opts opts = opts_columns(c);
    return mica_col2im(ctx, OP(c, 0), OP(c, 1), &opts);
}

static void reference_im2col(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++) {
        ptrdiff_t from = pixel_of(c, &c->tensor[1], i);
        v[0][i] = from >= 0 ? v[1][from] : 0.0;
    }
}

static void reference_col2im(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = 0.0;
    for (size_t i = 0; i < op_count(c, 1); i++) {
        ptrdiff_t to = pixel_of(c, &c->tensor[0], i);
        if (to >= 0)
            v[0][to] += v[1][i];
    }
}

OP_CASE(im2col) = {.names = {"dst", "x"},
                   .outs = 1,
                   .ins = 1,
                   .draw = draw_im2col,
                   .run = run_im2col,
                   .reference = reference_im2col,
                   .tolerance = 0.0};
OP_CASE(col2im) = {.names = {"dst", "columns"},
                   .outs = 1,
                   .ins = 1,
                   .draw = draw_col2im,
                   .run = run_col2im,
                   .reference = reference_col2im,
                   .tolerance = 3e-6};
