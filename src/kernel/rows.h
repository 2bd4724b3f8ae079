/* Products of rows with rows of weights: y = x wT + bias, for weights of f32, f16 or bf16 as they lie in a file.
 *
 * Each output has one vector of sums: lane l adds up the products at l, l + lanes, l + 2 lanes, ... in that order, what
 * is missing in the last step being zeros; vf_sum adds its lanes, and the bias comes last. Every way through here keeps
 * to that order, so an output depends on nothing but its own row of x, row of weights and bias. */
#ifndef MICA_SRC_KERNEL_ROWS_H
#define MICA_SRC_KERNEL_ROWS_H

#include <stddef.h>

#include <mica/tensor.h>

typedef struct mica_rows_product {
    size_t rows, units, k;
    float *y; /* [rows][units] */
    ptrdiff_t y_stride;
    const float *x; /* [rows][k] */
    ptrdiff_t x_stride;
    const void *w; /* [units][k], or panels */
    ptrdiff_t w_stride;
    const float *bias; /* [units], or NULL */
} mica_rows_product;

typedef struct mica_rows_kernels {
    size_t lanes;
    size_t tile_rows;   /* rows of x that a tile has at most */
    size_t direct_rows; /* up to so many, `direct` is faster than panels, which have to be made first */
    size_t panel_units; /* of a panel: panel_units * (k rounded up to lanes) floats */
    size_t group_units; /* what `direct` takes at once; a multiple of panel_units */

    /* Weights as they lie, multiplied with few rows of x: their number is a multiple of group_units. NULL for other
     * types. */
    void (*direct[MICA_DTYPE_COUNT])(const mica_rows_product *p);

    /* `units` rows, one after the other in panels; the last one's missing rows are zeros. */
    void (*unpack[MICA_DTYPE_COUNT])(float *panels, const void *w, ptrdiff_t stride, size_t units, size_t k);

    /* Weights in panels, multiplied with any number of rows. */
    void (*panels)(const mica_rows_product *p);
} mica_rows_kernels;

#endif
