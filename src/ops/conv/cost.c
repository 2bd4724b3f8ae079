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
             .out = 0.21,
             .staged_out = 0.30,
             .staged_run = 6.2},
    .single = {.sum = 0.0174,
               .read = 0.16,
               .pack = 0.5,
               .turn = 0.2,
               .patch = 0.49,
               .patch_run = 5.3,
               .out = 0.24,
               .staged_out = 0.7,
               .staged_run = 5.7},
    .winograd = {.sum = 0.0125, .begin = 0.642, .weight = 1.7, .in = 102.0, .out = 50.5},
    .deep = {.sum = 0.0119, .begin = 0.717, .weight = 1.7, .in = 94.8, .out = 54.4},
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
    .taps = {.sum = 0.0192,
             .read = 0.07,
             .pack = 0.5,
             .turn = 0.53,
             .patch = 0.365,
             .patch_run = 0.3,
             .out = 0.045,
             .staged_out = 0.31,
             .staged_run = 0.0},
    .single = {.sum = 0.0211,
               .read = 0.1,
               .pack = 0.1,
               .turn = 0.07,
               .patch = 0.42,
               .patch_run = 9.7,
               .out = 0.0,
               .staged_out = 0.2,
               .staged_run = 5.7},
    .winograd = {.sum = 0.0006, .begin = 0.663, .weight = 3.0, .in = 89.8, .out = 15.3},
    .deep = {.sum = 0.0105, .begin = 0.379, .weight = 11.0, .in = 100.0, .out = 21.0},
    .columns = {.sum = 0.0187, .begin = 0.037, .weight = 3.4, .in = 4.7, .out = 0.0},
    .tiles = {.sum = 0.0199, .in = 0.634, .weight = 0.706, .out = 0.0},
    .weight_taps = {.sum = 0.02, .narrow = 0.339, .wide = 0.251, .wide_run = 1.8, .back = 0.08},
    .weight_single = {.sum = 0.0196, .narrow = 0.16, .wide = 0.484, .wide_run = 4.7, .back = 0.0},
    .weight_winograd = {.sum = 0.0147, .in = 97.5, .pack = 0.79, .add = 0.0, .back = 0.0},
    .weight_tiles = {.sum = 0.0269, .in = 0.0, .back = 0.0},
    .weight_columns = {.sum = 0.0, .in = 10.6, .back = 22.7},
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
