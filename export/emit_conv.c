/* Convolutions of images that end in max pooling; those on their own are in emit_windows.c. */
#include <stdio.h>

#include "export/emit.h"

/* The sizes of a convolution as a struct of C: for kernels/conv_general*.c. `prefix` is that of its options. */
void emit_conv_shape(emitter *e, image x, image y, const value *w, const char *prefix)
{
    char field[32];
    int number[4][2];
    static const char *const names[] = {"stride", "pad", "dilation", "groups"};
    for (int f = 0; f < 4; f++)
        for (int k = 0; k < 2; k++) {
            snprintf(field, sizeof field, "%s%s", prefix, names[f]);
            number[f][k] = f == 1 ? call_int(e->c, field, k) : call_size(e->c, field, k);
        }
    int groups = number[3][0];
    emit(e, "static const struct conv_shape shape = {");
    emit(e, "    .batch = %d, .groups = %d, .channels = %d, .rows = %d, .columns = %d, .outputs = %d,",
         x.count, groups, x.channels / groups, x.rows, x.columns, y.channels / groups);
    emit(e,
         "    .out_rows = %d, .out_columns = %d, .kernel_rows = %d, .kernel_columns = %d, .stride_rows = %d,",
         y.rows, y.columns, w->rank > 3 ? (int)w->dim[2] : 1, (int)w->dim[w->rank - 1], number[0][0]);
    emit(
        e,
        "    .stride_columns = %d, .pad_rows = %d, .pad_columns = %d, .dilation_rows = %d, .dilation_columns = %d,",
        number[0][1], number[1][0], number[1][1], number[2][0], number[2][1]);
    emit(e, "};");
}

/* ---- With max pooling behind: the image between is scratch ---- */

/* The image that the convolution makes, before the windows. */
static image image_between(const graph *g, const call *c)
{
    image x = image_of(g, c->in[0]), m = x;
    const value *w = &g->values[c->in[1]];
    int size[2] = {x.rows, x.columns},
        kernel[2] = {w->rank > 3 ? (int)w->dim[2] : 1, (int)w->dim[w->rank - 1]};
    for (int k = 0; k < 2; k++) {
        int reach = call_size(c, "conv.dilation", k) * (kernel[k] - 1) + 1;
        size[k] = (size[k] + 2 * call_int(c, "conv.pad", k) - reach) / call_size(c, "conv.stride", k) + 1;
    }
    m.rows = m.stride = size[0];
    m.columns = m.stride = size[1];
    m.channels = (int)w->dim[0];
    m.plane = m.rows * m.columns;
    return m;
}

static size_t scratch_between(const graph *g, const call *c)
{
    image m = image_between(g, c);
    return (size_t)m.count * (size_t)m.channels * (size_t)m.plane;
}

static void emit_conv_pool(emitter *e, const call *c)
{
    image m = image_between(e->g, c), y = image_of(e->g, c->out[0]);
    use_kernel(e, "conv_general");
    use_kernel(e, "max_pool_general");
    emit_conv_shape(e, image_of(e->g, c->in[0]), m, in_value(e, 1), "conv.");
    emit_pool_shape(e, m, y, "pool.");
    emit(e, "conv_general(%s, %s, %s, %s, &shape, 0);", scratch_name(e), in_name(e, 0), in_name(e, 1),
         in_name(e, 2));
    emit(e, "max_pool_general(%s, %s, %s, &windows);", out_name(e, 0), out_name(e, 1), scratch_name(e));
    emit_activation(e, out_name(e, 0), out_value(e, 0)->count, "conv.");
}

static const char *refuse_conv_pool(const graph *g, const call *c)
{
    (void)g;
    return refuse_activation(c, "conv.");
}

const export_op export_conv_ops[] = {
    {.name = "conv2d_max_pool",
     .title = "convolution, max pooling",
     .emit = emit_conv_pool,
     .refuse = refuse_conv_pool,
     .scratch = scratch_between},
    {0},
};
