/* dw += x correlated with dy. */
#ifndef KERNEL_CONV_GENERAL_BACKWARD_WEIGHT
#define KERNEL_CONV_GENERAL_BACKWARD_WEIGHT

#include "conv_range.c"
#include "conv_shape.c"

static void
conv_general_backward_weight(float *dw /* [groups outputs, channels, kernel_rows, kernel_columns] */,
                             const float *dy /* [batch, groups outputs, out_rows, out_columns] */,
                             const float *x /* [batch, groups channels, rows, columns] */,
                             const struct conv_shape *s)
{
    int plane = s->rows * s->columns, out_plane = s->out_rows * s->out_columns;
    for (int o = 0; o < s->groups * s->outputs; o++)
        for (int c = 0; c < s->channels; c++)
            for (int ky = 0; ky < s->kernel_rows; ky++)
                for (int kx = 0; kx < s->kernel_columns; kx++, dw++) {
                    int top = ky * s->dilation_rows - s->pad_rows,
                        left = kx * s->dilation_columns - s->pad_columns;
                    int oy0, oy_end, ox0, ox_end;
                    float sum = 0.0f;
                    conv_range(&oy0, &oy_end, top, s->stride_rows, s->out_rows, s->rows);
                    conv_range(&ox0, &ox_end, left, s->stride_columns, s->out_columns, s->columns);
                    for (int n = 0; n < s->batch; n++) {
                        const float *from = x + ((n * s->groups + o / s->outputs) * s->channels + c) * plane;
                        const float *d = dy + (n * s->groups * s->outputs + o) * out_plane;
                        for (int oy = oy0; oy < oy_end; oy++)
                            for (int ox = ox0; ox < ox_end; ox++)
                                sum += d[oy * s->out_columns + ox] *
                                       from[(top + oy * s->stride_rows) * s->columns + left +
                                            ox * s->stride_columns];
                    }
                    *dw += sum;
                }
}

#endif /* KERNEL_CONV_GENERAL_BACKWARD_WEIGHT */
