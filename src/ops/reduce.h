/* The engine of reductions: any layout, any set of axes, brought down to rows and columns.
 *
 *     axes of a = kept (one output each position) + reduced
 *
 * Where the axis with the smallest step is a reduced one, outputs are made one by one from rows; where it is
 * a kept one, up to REDUCE_WIDTH outputs side by side from columns. Few outputs of many elements are cut
 * along the reduced axes too, and the parts folded in order. */
#ifndef MICA_SRC_OPS_REDUCE_H
#define MICA_SRC_OPS_REDUCE_H

#include "ops/check.h"
#include "ops/walk.h"

#define MICA_REDUCE_PHASES 3

/* What is computed: kernels run one after the other over the same elements, then a last step per output.
 * After the first of several, shift becomes the mean. */
typedef struct mica_reduce_program {
    const mica_reduce_kernel *kernel[MICA_REDUCE_PHASES];
    int phases;
    double (*finish)(const double *acc, double n, double param); /* acc[phase]; NULL: acc[0] as it is */
    double param;
    bool chooses; /* one of the elements: of none there is no result */
} mica_reduce_program;

/* Axes as a mask; fails on an axis out of range or named twice. count 0: all axes. */
mica_status mica_reduce_axes(mica_context *ctx, const char *op, const mica_tensor *a, const int *axes,
                             int count, unsigned *mask);

/* dst is a's shape with the axes of `mask` dropped, or of size 1. On success *kept is dst without those axes. */
mica_status mica_reduce_shape(mica_context *ctx, const char *op, const char *dst_name, const mica_tensor *dst,
                              const char *a_name, const mica_tensor *a, unsigned mask, mica_tensor *kept);

/* The part of a along the axes in `mask`, from a's first element on. */
mica_tensor mica_reduce_part(const mica_tensor *a, unsigned mask);

/* Takes its scratch and runs; arguments have been checked. `kept` is from mica_reduce_shape. */
mica_status mica_reduce_run(mica_context *ctx, const char *op, const mica_reduce_program *program,
                            const mica_tensor *kept, const mica_tensor *a, unsigned mask);

#endif
