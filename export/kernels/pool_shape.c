/* The sizes of pooling: planes in and out. */
#ifndef KERNEL_POOL_SHAPE
#define KERNEL_POOL_SHAPE

struct pool_shape {
    int planes, rows, columns, out_rows, out_columns;
    int kernel_rows, kernel_columns, stride_rows, stride_columns, pad_rows, pad_columns, dilation_rows,
        dilation_columns;
};

#endif /* KERNEL_POOL_SHAPE */
