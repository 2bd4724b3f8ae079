/* Products of rows with block-quantized weights, in integers.
 *
 * Rows of x are rounded to bytes, 32 values at a time with a scale of their own. Weights are unpacked to unsigned
 * bytes u = q + offset, in groups of 32 (16 where the type's scales go by 16) with a scale d and perhaps a least
 * value m. Then for each weight row, group after group, in this order on every instruction set:
 *
 *     y = fma(sum of q a, d d_x, y)                   q a = u a - offset a: an exact integer
 *     y = fma(m, d_x * sum of a, y)                   where the type has least values
 *
 * Rows of x lie in tiles of up to `tile` rows. For each 32 values a tile of R rows has
 *
 *     R x 32 bytes        a
 *     R floats            d_x
 *     R x 32 / group      for each group: -offset * sum of a, an int32_t; with least values d_x * sum of a, a float
 *
 * A panel is `width` weight rows: for each 32 values
 *
 *     8 x width x 4 bytes    u, four values of each row at a time
 *
 * and beside it, for each group, `width` floats d and as many floats m. */
#ifndef MICA_SRC_KERNEL_QUANT_H
#define MICA_SRC_KERNEL_QUANT_H

#include <mica/tensor.h>

#define MICA_QUANT_BLOCK 32 /* values of x with one scale */

/* What a type's weights look like once unpacked. */
typedef struct mica_quant_type {
    int group;  /* values with one scale: 32 or 16 */
    int offset; /* of u */
    bool least; /* there are least values; then offset is 0 */
    bool wide;  /* values have eight bits */
} mica_quant_type;

/* Bytes of 32 values of a tile. */
static inline size_t mica_quant_tile_bytes(size_t rows, int group)
{
    return rows * (MICA_QUANT_BLOCK + sizeof(float) + sizeof(float) * (size_t)(MICA_QUANT_BLOCK / group));
}

typedef struct mica_quant_panel {
    uint8_t *u;
    float *scale, *least;
} mica_quant_panel;

/* A tile of rows times a panel. */
typedef struct mica_quant_product {
    mica_quant_panel panel;
    const uint8_t *tile;
    size_t rows, blocks; /* rows of the tile, blocks of 32 values */
    size_t skip;         /* columns, from the panel's first on, that are not written */
    const float *bias;   /* of the panel's first column on; NULL: none */
    float *y;
    ptrdiff_t y_stride;
} mica_quant_product;

typedef struct mica_quant_kernels {
    size_t width;                /* weight rows of a panel */
    size_t tile;                 /* rows of x that a full tile has */
    const mica_quant_type *type; /* [MICA_DTYPE_COUNT]; group 0: no type with blocks */

    /* Rows of x to a tile. A row with a NaN or an infinity gets a scale that is NaN in that block, so all its results
     * are NaN; values below 2^-100 in size that are the largest of their block count as 0. */
    void (*round)(uint8_t *tile, const float *x, ptrdiff_t x_stride, size_t rows, size_t blocks,
                  const mica_quant_type *type);

    /* `width` weight rows, row_bytes apart, to a panel; `blocks` as above. NULL for plain types. */
    void (*unpack[MICA_DTYPE_COUNT])(const mica_quant_panel *panel, const uint8_t *w, ptrdiff_t row_bytes,
                                     size_t blocks);

    void (*product)(const mica_quant_product *p, const mica_quant_type *type);

    /* A tile of one row times `panels` times `width` weight rows as they lie; p's panel and skip are not looked at.
     * NULL: there is no better way than a panel. */
    void (*vector[MICA_DTYPE_COUNT])(const mica_quant_product *p, const uint8_t *w, ptrdiff_t row_bytes,
                                     size_t panels);
} mica_quant_kernels;

#endif
