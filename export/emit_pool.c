/* The sizes of pooling as a struct of C: for kernels/max_pool_general.c. */
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
