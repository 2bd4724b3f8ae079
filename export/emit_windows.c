/* Convolutions in one dimension, transposed ones, their means, columns of patches, and all pooling but the maximum of
 * images. Signals are images of one row. */
#include <stdio.h>
#include <string.h>

#include "export/formula.h"

typedef struct windows {
    int stride[2], pad[2], dilation[2], kernel[2], groups;
} windows;

static bool is_flat(const call *c) { return strstr(c->name, "1d") != NULL; }

/* Of operations in one dimension the first number is that of the columns. */
static int number_of(const call *c, const char *field, int axis, int otherwise)
{
    if (is_flat(c) && axis == 0)
        return otherwise;
    int number = call_int(c, field, is_flat(c) ? 0 : axis);
    return number != 0 ? number : otherwise;
}

static windows windows_of(const call *c)
{
    windows w = {.groups = call_size(c, "groups", 0)};
    for (int k = 0; k < 2; k++) {
        w.kernel[k] = number_of(c, "kernel", k, 1);
        w.stride[k] = number_of(c, "stride", k, strstr(c->name, "pool") != NULL ? w.kernel[k] : 1);
        w.pad[k] = number_of(c, "pad", k, 0);
        w.dilation[k] = number_of(c, "dilation", k, 1);
    }
    return w;
}

/* ---- Convolutions ---- */

/* `x` is the image that a plain convolution reads, `y` the one that it makes: the other way round in a transposed
 * one. */
static void emit_shape(emitter *e, const call *c, image x, image y, const value *weights)
{
    windows w = windows_of(c);
    emit(e, "static const struct conv_shape shape = {");
    emit(e, "    .batch = %d, .groups = %d, .channels = %d, .rows = %d, .columns = %d, .outputs = %d,",
         x.count, w.groups, x.channels / w.groups, x.rows, x.columns, y.channels / w.groups);
    emit(e,
         "    .out_rows = %d, .out_columns = %d, .kernel_rows = %d, .kernel_columns = %d, .stride_rows = %d,",
         y.rows, y.columns, weights->rank > 3 ? (int)weights->dim[2] : 1,
         (int)weights->dim[weights->rank - 1], w.stride[0]);
    emit(
        e,
        "    .stride_columns = %d, .pad_rows = %d, .pad_columns = %d, .dilation_rows = %d, .dilation_columns = %d,",
        w.stride[1], w.pad[0], w.pad[1], w.dilation[0], w.dilation[1]);
    emit(e, "};");
}

static void finish(emitter *e, const call *c, const char *name, size_t count)
{
    emit_finish(e, name, count, (mica_activation)call_int(c, "activation", 0), call_number(c, "slope", 0));
}

static void emit_conv(emitter *e, const call *c)
{
    use_kernel(e, "conv_general");
    emit_shape(e, c, image_of(e->g, c->in[0]), image_of(e->g, c->out[0]), in_value(e, 1));
    emit(e, "conv_general(%s, %s, %s, %s, &shape, 0);", out_name(e, 0), in_name(e, 0), in_name(e, 1),
         in_name(e, 2));
    finish(e, c, out_name(e, 0), out_value(e, 0)->count);
}

/* The image whose means are wanted is scratch. */
static image image_between(const graph *g, const call *c)
{
    image x = image_of(g, c->in[0]), m = x;
    const value *weights = &g->values[c->in[1]];
    windows w = windows_of(c);
    int kernel[2] = {weights->rank > 3 ? (int)weights->dim[2] : 1, (int)weights->dim[weights->rank - 1]};
    m.rows = (x.rows + 2 * w.pad[0] - w.dilation[0] * (kernel[0] - 1) - 1) / w.stride[0] + 1;
    m.columns = (x.columns + 2 * w.pad[1] - w.dilation[1] * (kernel[1] - 1) - 1) / w.stride[1] + 1;
    m.channels = (int)weights->dim[0];
    m.stride = m.columns;
    m.plane = m.rows * m.columns;
    return m;
}

static size_t between_count(const graph *g, const call *c)
{
    image m = image_between(g, c);
    return (size_t)m.count * (size_t)m.channels * (size_t)m.plane;
}

static void emit_conv_mean(emitter *e, const call *c)
{
    image m = image_between(e->g, c);
    use_kernel(e, "conv_general");
    use_kernel(e, "row_means");
    emit_shape(e, c, image_of(e->g, c->in[0]), m, in_value(e, 1));
    emit(e, "conv_general(%s, %s, %s, %s, &shape, 0);", scratch_name(e), in_name(e, 0), in_name(e, 1),
         in_name(e, 2));
    finish(e, c, scratch_name(e), between_count(e->g, c));
    emit(e, "row_means(%s, %s, %d, %d);", out_name(e, 0), scratch_name(e), m.count * m.channels, m.plane);
}

static void emit_backward_input(emitter *e, const call *c)
{
    use_kernel(e, "conv_general_backward_input");
    emit_shape(e, c, image_of(e->g, c->out[0]), image_of(e->g, c->in[0]), in_value(e, 1));
    emit(e, "conv_general_backward_input(%s, %s, %s, &shape);", out_name(e, 0), in_name(e, 0), in_name(e, 1));
}

static void emit_backward_weight(emitter *e, const call *c)
{
    use_kernel(e, "conv_general_backward_weight");
    emit_shape(e, c, image_of(e->g, c->in[1]), image_of(e->g, c->in[0]), out_value(e, 0));
    emit(e, "conv_general_backward_weight(%s, %s, %s, &shape);", out_name(e, 0), in_name(e, 0),
         in_name(e, 1));
}

static void emit_backward_bias(emitter *e, const call *c)
{
    image dy = image_of(e->g, c->in[0]);
    use_kernel(e, "channel_sums");
    emit(e, "channel_sums(%s, %s, %d, %d, %d);", out_name(e, 0), in_name(e, 0), dy.count, dy.channels,
         dy.rows * dy.columns);
}

/* A transposed convolution is the gradient of a plain one by its input, and the other way round. */
static void emit_transposed(emitter *e, const call *c)
{
    image y = image_of(e->g, c->out[0]);
    use_kernel(e, "channel_fill");
    use_kernel(e, "conv_general_backward_input");
    emit_shape(e, c, y, image_of(e->g, c->in[0]), in_value(e, 1));
    emit(e, "channel_fill(%s, %s, %d, %d, %d);", out_name(e, 0), in_name(e, 2), y.count, y.channels,
         y.rows * y.columns);
    emit(e, "conv_general_backward_input(%s, %s, %s, &shape);", out_name(e, 0), in_name(e, 0), in_name(e, 1));
    finish(e, c, out_name(e, 0), out_value(e, 0)->count);
}

static void emit_transposed_backward_input(emitter *e, const call *c)
{
    use_kernel(e, "conv_general");
    emit_shape(e, c, image_of(e->g, c->in[0]), image_of(e->g, c->out[0]), in_value(e, 1));
    emit(e, "conv_general(%s, %s, %s, 0, &shape, %d);", out_name(e, 0), in_name(e, 0), in_name(e, 1),
         (int)(c->add & 1u));
}

static void emit_transposed_backward_weight(emitter *e, const call *c)
{
    use_kernel(e, "conv_general_backward_weight");
    emit_shape(e, c, image_of(e->g, c->in[0]), image_of(e->g, c->in[1]), out_value(e, 0));
    emit(e, "conv_general_backward_weight(%s, %s, %s, &shape);", out_name(e, 0), in_name(e, 1),
         in_name(e, 0));
}

/* ---- Columns of patches ---- */

static void emit_columns(emitter *e, const call *c)
{
    bool back = strcmp(c->name, "col2im") == 0;
    image x = image_of(e->g, back ? c->out[0] : c->in[0]);
    windows w = windows_of(c);
    int out[2], size[2] = {x.rows, x.columns};
    for (int k = 0; k < 2; k++)
        out[k] = (size[k] + 2 * w.pad[k] - w.dilation[k] * (w.kernel[k] - 1) - 1) / w.stride[k] + 1;
    use_kernel(e, back ? "col2im" : "im2col");
    emit(e, "static const struct pool_shape shape = {");
    emit(e,
         "    .planes = %d, .rows = %d, .columns = %d, .out_rows = %d, .out_columns = %d, .kernel_rows = %d,",
         x.count * x.channels, x.rows, x.columns, out[0], out[1], w.kernel[0]);
    emit(
        e,
        "    .kernel_columns = %d, .stride_rows = %d, .stride_columns = %d, .pad_rows = %d, .pad_columns = %d,",
        w.kernel[1], w.stride[0], w.stride[1], w.pad[0], w.pad[1]);
    emit(e, "    .dilation_rows = %d, .dilation_columns = %d,", w.dilation[0], w.dilation[1]);
    emit(e, "};");
    emit(e, "%s(%s, %s, &shape);", c->name, out_name(e, 0), in_name(e, 0));
}

/* ---- Pooling ---- */

/* Leading axes are planes. */
static void plane_of(const value *v, bool flat, int *planes, int *rows, int *columns)
{
    *columns = (int)v->dim[v->rank - 1];
    *rows = flat ? 1 : (int)v->dim[v->rank - 2];
    *planes = (int)v->count / (*rows * *columns);
}

static void emit_pool_sizes(emitter *e, const call *c, const value *x, const value *y)
{
    windows w = windows_of(c);
    int planes, rows, columns, out_planes, out_rows, out_columns;
    bool flat = is_flat(c) || (x->rank == 3 && w.kernel[0] == 1 && strncmp(c->name, "max_pool2d", 10) == 0);
    plane_of(x, flat, &planes, &rows, &columns);
    plane_of(y, flat, &out_planes, &out_rows, &out_columns);
    emit(e, "static const struct pool_shape shape = {");
    emit(e,
         "    .planes = %d, .rows = %d, .columns = %d, .out_rows = %d, .out_columns = %d, .kernel_rows = %d,",
         planes, rows, columns, out_rows, out_columns, w.kernel[0]);
    emit(
        e,
        "    .kernel_columns = %d, .stride_rows = %d, .stride_columns = %d, .pad_rows = %d, .pad_columns = %d,",
        w.kernel[1], w.stride[0], w.stride[1], w.pad[0], w.pad[1]);
    emit(e, "    .dilation_rows = %d, .dilation_columns = %d,", w.dilation[0], w.dilation[1]);
    emit(e, "};");
}

static void emit_max_pool(emitter *e, const call *c)
{
    use_kernel(e, "max_pool_general");
    emit_pool_sizes(e, c, in_value(e, 0), out_value(e, 0));
    emit(e, "max_pool_general(%s, %s, %s, &shape);", out_name(e, 0), out_name(e, 1), in_name(e, 0));
}

static void emit_max_pool_backward(emitter *e, const call *c)
{
    int planes, rows, columns, out_planes, out_rows, out_columns;
    bool flat = is_flat(c) || (out_value(e, 0)->rank == 3 && number_of(c, "kernel", 0, 1) == 1);
    plane_of(out_value(e, 0), flat, &planes, &rows, &columns);
    plane_of(in_value(e, 0), flat, &out_planes, &out_rows, &out_columns);
    use_kernel(e, "max_pool_general_backward");
    emit(e, "max_pool_general_backward(%s, %s, %s, %d, %d, %d);", out_name(e, 0), in_name(e, 0),
         in_name(e, 1), planes, rows * columns, out_rows * out_columns);
}

static void emit_avg_pool(emitter *e, const call *c)
{
    bool back = strstr(c->name, "backward") != NULL;
    const char *kernel = back ? "avg_pool_backward" : "avg_pool";
    use_kernel(e, kernel);
    emit_pool_sizes(e, c, back ? out_value(e, 0) : in_value(e, 0), back ? in_value(e, 0) : out_value(e, 0));
    emit(e, "%s(%s, %s, &shape, %d);", kernel, out_name(e, 0), in_name(e, 0), call_int(c, "exclude_pad", 0));
}

static void emit_adaptive(emitter *e, const call *c)
{
    bool back = strstr(c->name, "backward") != NULL;
    const char *kernel = back ? "adaptive_pool_backward" : "adaptive_pool";
    int planes, rows, columns, out_planes, out_rows, out_columns;
    plane_of(back ? out_value(e, 0) : in_value(e, 0), is_flat(c), &planes, &rows, &columns);
    plane_of(back ? in_value(e, 0) : out_value(e, 0), is_flat(c), &out_planes, &out_rows, &out_columns);
    use_kernel(e, kernel);
    emit(e, "%s(%s, %s, %d, %d, %d, %d, %d);", kernel, out_name(e, 0), in_name(e, 0), planes, rows, columns,
         out_rows, out_columns);
}

static void emit_global(emitter *e, const call *c)
{
    const value *x = in_value(e, 0);
    int planes = (int)(x->dim[0] * x->dim[1]);
    (void)c;
    use_kernel(e, "row_means");
    emit(e, "row_means(%s, %s, %d, %d);", out_name(e, 0), in_name(e, 0), planes, (int)x->count / planes);
}

/* dy / n to each of n pixels: of global_avg_pool, and of a convolution whose means were taken */
static void emit_global_backward(emitter *e, const call *c)
{
    const value *dx = out_value(e, 0);
    int plane = (int)dx->count / (int)(dx->dim[0] * dx->dim[1]);
    emit(e, "for (int i = 0; i < %zu; i++)", dx->count);
    emit(e, "    %s[i] %s %s[i / %d] / %d.0f;", out_name(e, 0), c->add & 1u ? "+=" : "=", in_name(e, 0),
         plane, plane);
}

#define CONV(d)                                                                                            \
    {.name = "conv" d, .emit = emit_conv},                                                                 \
        {.name = "conv" d "_mean", .emit = emit_conv_mean, .scratch = between_count},                      \
        {.name = "conv" d "_backward_input", .emit = emit_backward_input, .only_adds = 1},                 \
        {.name = "conv" d "_backward_weight", .emit = emit_backward_weight, .only_adds = 1},               \
        {.name = "conv" d "_backward_bias", .emit = emit_backward_bias, .only_adds = 1},                   \
        {.name = "conv_transpose" d, .emit = emit_transposed},                                             \
        {.name = "conv_transpose" d "_backward_input", .emit = emit_transposed_backward_input, .adds = 1}, \
    {                                                                                                      \
        .name = "conv_transpose" d "_backward_weight", .emit = emit_transposed_backward_weight,            \
        .only_adds = 1                                                                                     \
    }

#define POOL(d)                                                                             \
    {.name = "max_pool" d, .emit = emit_max_pool},                                          \
        {.name = "max_pool" d "_backward", .emit = emit_max_pool_backward, .only_adds = 1}, \
        {.name = "avg_pool" d, .emit = emit_avg_pool},                                      \
        {.name = "avg_pool" d "_backward", .emit = emit_avg_pool, .only_adds = 1},          \
        {.name = "adaptive_avg_pool" d, .emit = emit_adaptive},                             \
    {                                                                                       \
        .name = "adaptive_avg_pool" d "_backward", .emit = emit_adaptive, .only_adds = 1    \
    }

const export_op export_window_ops[] = {
    CONV("1d"),
    CONV("2d"),
    {.name = "conv2d_mean_backward", .emit = emit_global_backward, .adds = 1},
    {.name = "im2col", .emit = emit_columns},
    {.name = "col2im", .emit = emit_columns, .only_adds = 1},
    POOL("1d"),
    POOL("2d"),
    {.name = "global_avg_pool", .emit = emit_global},
    {.name = "global_avg_pool_backward", .emit = emit_global_backward, .adds = 1},
    {.name = NULL},
};
