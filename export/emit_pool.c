/* Pooling of images. */
#include <stdio.h>

#include "export/emit.h"

/* The sizes of pooling as a struct of C: for kernels/max_pool_general.c and its like. */
void emit_pool_shape(emitter *e, image x, image y, const char *prefix)
{
    char field[32];
    int number[4][2];
    static const char *const names[] = {"kernel", "stride", "pad", "dilation"};
    for (int f = 0; f < 4; f++)
        for (int k = 0; k < 2; k++) {
            snprintf(field, sizeof field, "%s%s", prefix, names[f]);
            number[f][k] = f == 2 ? call_int(e->c, field, k) : call_size(e->c, field, k);
            if (f == 1 && call_int(e->c, field, k) == 0)
                number[f][k] = number[0][k];
        }
    emit(e, "static const struct pool_shape windows = {");
    emit(e,
         "    .planes = %d, .rows = %d, .columns = %d, .out_rows = %d, .out_columns = %d, .kernel_rows = %d,",
         x.count * x.channels, x.rows, x.columns, y.rows, y.columns, number[0][0]);
    emit(
        e,
        "    .kernel_columns = %d, .stride_rows = %d, .stride_columns = %d, .pad_rows = %d, .pad_columns = %d,",
        number[0][1], number[1][0], number[1][1], number[2][0], number[2][1]);
    emit(e, "    .dilation_rows = %d, .dilation_columns = %d,", number[3][0], number[3][1]);
    emit(e, "};");
}

static void emit_max_pool(emitter *e, const call *c)
{
    use_kernel(e, "max_pool_general");
    emit_pool_shape(e, image_of(e->g, c->in[0]), image_of(e->g, c->out[0]), "");
    emit(e, "max_pool_general(%s, %s, %s, &windows);", out_name(e, 0), out_name(e, 1), in_name(e, 0));
}

static void emit_max_pool_backward(emitter *e, const call *c)
{
    image dx = image_of(e->g, c->out[0]), dy = image_of(e->g, c->in[0]);
    use_kernel(e, "max_pool_general_backward");
    emit(e, "max_pool_general_backward(%s, %s, %s, %d, %d, %d);", out_name(e, 0), in_name(e, 0),
         in_name(e, 1), dx.count * dx.channels, dx.rows * dx.columns, dy.rows * dy.columns);
}

const export_op export_pool_ops[] = {
    {.name = "max_pool2d", .emit = emit_max_pool},
    {.name = "max_pool2d_backward", .emit = emit_max_pool_backward, .only_adds = 1},
    {0},
};
