/* The gradient by the kernel: what its ways share. */
#ifndef MICA_SRC_OPS_CONV_WEIGHT_H
#define MICA_SRC_OPS_CONV_WEIGHT_H

#include "ops/conv/conv.h"
#include "ops/conv/grid.h"

/* Where tap number `tap`, of (wide channel, t, u), of a narrow channel lies in the kernel. */
float *mica_conv_tap_place(const mica_conv *c, size_t channel, size_t tap);

/* In register tiles.
 *
 *   scratch:  [ sums: parts x groups x m x k x lanes, by tiles | offsets of taps | for each thread: a window,
 *             some channels of the narrow image ] */
typedef struct mica_conv_kernel_tiles {
    const mica_conv *conv;
    mica_conv_patches wide;
    mica_conv_grid grid;               /* windows have all channels */
    size_t k;                          /* taps of them */
    size_t parts, part_images;         /* images are cut into parts */
    size_t chunks, chunk;              /* and narrow channels into chunks, of whole tiles */
    size_t chunk_floats, group_floats; /* of sums */
    float *sums;
    ptrdiff_t *offset;
    char *windows;
    size_t thread_bytes;
    const mica_tiles_kernels *kernels;
} mica_conv_kernel_tiles;

/* False where the matrix product, or sums of one plane at a time, are the better way. */
bool mica_conv_kernel_tiles_plan(const mica_context *ctx, mica_conv_kernel_tiles *t, const mica_conv *c);
mica_status mica_conv_kernel_tiles_run(mica_context *ctx, mica_conv_kernel_tiles *t);

/* By Winograd's transforms. False where that is not the better way; otherwise runs, or is measured. */
bool mica_conv_kernel_winograd(mica_context *ctx, const mica_conv *c, mica_status *status);

/* The same down the columns alone. */
bool mica_conv_kernel_columns(mica_context *ctx, const mica_conv *c, mica_status *status);

#endif
