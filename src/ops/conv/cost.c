/* What the paths of a convolution cost: figures. */
#include "ops/conv/cost.h"

/* AVX-512 */
static const mica_conv_costs wide = {
    .taps = {.sum = 0.0172,
             .read = 0.13,
             .pack = 1.2,
             .turn = 0.73,
             .patch = 0.228,
             .patch_run = 3.4,
             .patch_short = 0.55,
             .out = 0.21,
             .staged_out = 0.30,
             .staged_run = 6.2,
             .staged_short = 1.0},
    .single = {.sum = 0.0174,
               .read = 0.16,
               .pack = 0.5,
               .turn = 0.2,
               .patch = 0.49,
               .patch_run = 5.3,
               .patch_short = 0.5,
               .out = 0.24,
               .staged_out = 0.7,
               .staged_run = 5.7,
               .staged_short = 1.0},
    .packed = {.sum = 0.0172, .read = 0.115, .patch = 0.3, .patch_run = 3.4, .out = 0.2},
    .winograd = {.sum = 0.0125, .begin = 0.642, .weight = 1.7, .in = 102.0, .out = 50.5},
    .deep = {.sum = 0.0119, .begin = 0.717, .weight = 1.7, .in = 94.8, .out = 54.4},
    .deep_prepared = {.sum = 0.0119, .begin = 0.45, .weight = 0.6, .in = 94.8, .out = 54.4},
    .columns = {.sum = 0.0107, .begin = 0.384, .weight = 3.55, .in = 1.55, .out = 1.11},
    .tiles = {.sum = 0.0201, .in = 0.54, .weight = 0.48, .out = 0.03},
    .weight_taps = {.sum = 0.0184, .narrow = 0.722, .wide = 0.21, .wide_run = 4.9, .back = 0.157},
    .weight_single = {.sum = 0.0188, .narrow = 0.419, .wide = 0.503, .wide_run = 5.1, .back = 0.053},
    .weight_winograd = {.sum = 0.017, .in = 84.8, .pack = 0.67, .add = 0.14, .back = 3.9},
    .weight_tiles = {.sum = 0.0219, .in = 1.37, .back = 4.1},
    .weight_columns = {.sum = 0.0, .in = 10.6, .back = 22.7},
};

/* AVX2 */
static const mica_conv_costs narrow = {
    .taps = {.sum = 0.0182,
             .read = 0.06,
             .pack = 0.2,
             .turn = 0.51,
             .patch = 0.355,
             .patch_run = 3.0,
             .patch_short = 0.45,
             .out = 0.18,
             .staged_out = 0.30,
             .staged_run = 6.3,
             .staged_short = 0.9},
    .single = {.sum = 0.0213,
               .read = 0.05,
               .pack = 0.1,
               .turn = 0.1,
               .patch = 0.53,
               .patch_run = 3.7,
               .patch_short = 0.45,
               .out = 0.08,
               .staged_out = 0.5,
               .staged_run = 4.1,
               .staged_short = 0.9},
    .packed = {.sum = 0.0182, .read = 0.1, .patch = 0.3, .patch_run = 3.4, .out = 0.2},
    .winograd = {.sum = 0.027, .begin = 0.0, .weight = 14.0, .in = 90.6, .out = 34.8},
    .deep = {.sum = 0.0194, .begin = 0.134, .weight = 16.0, .in = 85.0, .out = 62.0},
    .deep_prepared = {.sum = 0.0194, .begin = 0.134, .weight = 0.6, .in = 85.0, .out = 62.0},
    .columns = {.sum = 0.0205, .begin = 0.059, .weight = 2.7, .in = 0.31, .out = 0.30},
    .tiles = {.sum = 0.0201, .in = 0.53, .weight = 0.73, .out = 0.037},
    .weight_taps = {.sum = 0.0187, .narrow = 0.454, .wide = 0.237, .wide_run = 4.8, .back = 0.071},
    .weight_single = {.sum = 0.019, .narrow = 0.259, .wide = 0.521, .wide_run = 3.5, .back = 0.054},
    .weight_winograd = {.sum = 0.0217, .in = 61.5, .pack = 0.39, .add = 0.066, .back = 10.0},
    .weight_tiles = {.sum = 0.0241, .in = 2.05, .back = 4.8},
    .weight_columns = {.sum = 0.023, .in = 2.0, .back = 14.0},
};

enum { WIDE_LANES = 16, NARROW_LANES = 8 };

size_t mica_conv_cost_lanes(const mica_kernels *kernels)
{
    return MICA_FAMILY(kernels, tiles)->lanes >= WIDE_LANES ? WIDE_LANES : NARROW_LANES;
}

const mica_conv_costs *mica_conv_costs_of(const mica_kernels *kernels)
{
    return mica_conv_cost_lanes(kernels) == WIDE_LANES ? &wide : &narrow;
}
