/* The sizes of a convolution of bytes with stride 1 over planes that have their padding around them. With pooling,
 * rows and columns are those of the result. */
#ifndef KERNEL_INT8_SHAPE
#define KERNEL_INT8_SHAPE

struct int8_shape {
    int groups, channels, outputs; /* of one group */
    int kernel_rows, kernel_columns;
    int rows, columns;         /* of y */
    int stride, plane;         /* bytes of x from row to row and from plane to plane, with the border */
    int out_stride, out_plane; /* of y */
    int low, high;
};

#endif /* KERNEL_INT8_SHAPE */
