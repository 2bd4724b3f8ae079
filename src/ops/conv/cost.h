/* What the paths of a convolution cost, for the choice between them: nanoseconds of one thread, by sizes alone, so that
 * the choice, and with it the bits, are the same for any number of threads. Only ratios count: they were fitted to the
 * times of all paths for the shapes of bench/case_paths.c on a Zen 4. `mica bench --paths` shows how far the choice is
 * from the best. */
#ifndef MICA_SRC_OPS_CONV_COST_H
#define MICA_SRC_OPS_CONV_COST_H

#include "kernel/kernels.h"

/* Of matrix products: a multiply-add, pixels rounded up to whole vectors; a weight of each product, read as it lies,
 * packed from rows, and packed from taps that lie another way; a number of the patches, and of each run of them in a
 * row of the image, or a number where rows are short; a result, and what it takes by way of a stage, and each run of
 * it, and of a short one. */
typedef struct mica_conv_gemm_costs {
    double sum;
    double read, pack, turn;
    double patch, patch_run, patch_short;
    double out, staged_out, staged_run, staged_short;
} mica_conv_gemm_costs;

/* Of transforms: a multiply-add; one that begins a register tile's sum, for each block; a weight; a vector of tiles (a
 * pixel, down the columns alone) on its way in, and out. */
typedef struct mica_conv_transform_costs {
    double sum, begin, weight, in, out;
} mica_conv_transform_costs;

/* Of products of pixels with packed weights: a multiply-add, pixels rounded up to half a register tile; a weight; a
 * number of the patches, and of each run of them; a result, for each run of a sum. */
typedef struct mica_conv_packed_costs {
    double sum, read, patch, patch_run, out;
} mica_conv_packed_costs;

typedef struct mica_conv_costs {
    mica_conv_gemm_costs taps, single; /* of several taps, of one */
    mica_conv_packed_costs packed;
    mica_conv_transform_costs winograd, deep, columns;
    mica_conv_transform_costs deep_prepared; /* of weights that are prepared */
    struct {
        double sum, in, weight, out;
    } tiles;
    /* The gradient by the weights. `add` is for a sum that is read again, `back` for a weight at the end. */
    struct {
        double sum, narrow, wide, wide_run, back;
    } weight_taps, weight_single;
    struct {
        double sum, in, pack, add, back;
    } weight_winograd;
    struct {
        double sum, in, back;
    } weight_tiles, weight_columns;
} mica_conv_costs;

/* Lanes of a vector, as far as costs go: vectors narrower than those that were measured make everything slower by the
 * same. */
size_t mica_conv_cost_lanes(const mica_kernels *kernels);
const mica_conv_costs *mica_conv_costs_of(const mica_kernels *kernels);

#endif
