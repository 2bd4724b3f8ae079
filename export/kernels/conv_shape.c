/* The sizes of a convolution, images in and out. */
#ifndef KERNEL_CONV_SHAPE
#define KERNEL_CONV_SHAPE

struct conv_shape {
    int batch, groups;
    int channels, rows, columns;        /* of x; channels of one group */
    int outputs, out_rows, out_columns; /* of y; outputs of one group */
    int kernel_rows, kernel_columns;
    int stride_rows, stride_columns, pad_rows, pad_columns, dilation_rows, dilation_columns;
};

#endif /* KERNEL_CONV_SHAPE */
