/* Images: sums of few elements along an axis, values at given points, regions of interest, deformable patches.
 *
 * Tensors are f32 of any layout unless said otherwise; one that is not contiguous is copied through the workspace. An
 * output must not overlap any other argument. Coordinates count pixels: the centre of the first is 0. */
#ifndef MICA_OPS_VISION_H
#define MICA_OPS_VISION_H

#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Sums of few elements along an axis ---------------------------------------------------------------- */

/* Along `axis`, dst[i] = sum over k of weight[i][k] x[index[i][k]]: dst is [..., O, ...], x [..., I, ...], index
 * (i32) and weight [O, K]. An index of -1 is no element. Resizing in any mode is this along one axis after the
 * other, and so are averages of windows and the sums of windows over channels; tables of a few numbers say which. */
MICA_API mica_status mica_sum_taps(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x,
                                   const mica_tensor *index, const mica_tensor *weight, int axis);
/* dx[index[i][k]] = sum of weight[i][k] dy[i]. */
MICA_API mica_status mica_sum_taps_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                            const mica_tensor *index, const mica_tensor *weight, int axis);

/* ---- Values at points ---------------------------------------------------------------------------------- */

typedef enum mica_interpolation {
    MICA_LINEAR,
    MICA_NEAREST, /* halves go to the even pixel */
    MICA_CUBIC,   /* Keys' kernel with a = -0.75 */
} mica_interpolation;

typedef enum mica_outside {
    MICA_OUTSIDE_ZEROS,
    MICA_OUTSIDE_BORDER,     /* the nearest pixel, for each of those that a value is made of */
    MICA_OUTSIDE_REFLECTION, /* at the border: its edge, or with align_corners the centre of the last pixel */
} mica_outside;

typedef struct mica_grid_sample_opts {
    mica_interpolation mode;
    mica_outside outside;
    bool align_corners; /* -1 and 1 are the centres of the first and last pixel, not their outer edges */
} mica_grid_sample_opts;

/* dst [N, C, OH, OW] = x [N, C, H, W] at the points grid [N, OH, OW, 2], whose coordinates (x, then y) go from -1
 * to 1; in three dimensions [N, C, OD, OH, OW] = [N, C, D, H, W] at [N, OD, OH, OW, 3]. NaN is outside. */
MICA_API mica_status mica_grid_sample(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x,
                                      const mica_tensor *grid, const mica_grid_sample_opts *opts);
/* dx and dgrid; either may be NULL. */
MICA_API mica_status mica_grid_sample_backward(mica_context *ctx, const mica_tensor *dx,
                                               const mica_tensor *dgrid, const mica_tensor *dy,
                                               const mica_tensor *x, const mica_tensor *grid,
                                               const mica_grid_sample_opts *opts);

/* ---- Regions of interest ------------------------------------------------------------------------------- */

typedef struct mica_roi_align_opts {
    mica_index size[2]; /* height and width of the result; 0: 1 */
    float scale;        /* of the regions' coordinates; 0: 1 */
    int samples;        /* in each direction of a cell; 0: one for each pixel of it */
    bool max; /* the largest of the samples' four weighted pixels, instead of the mean of their sums */
    bool
        corner; /* coordinates count from the first pixel's corner (as of old), and regions are at least 1 x 1 */
} mica_roi_align_opts;

/* dst [R, C, OH, OW] = cells of the regions rois [R, 4], each x1, y1, x2, y2, of the images x [N, C, H, W] whose
 * numbers are image [R] (i32 or i64). A region has at most 4,096 samples in each direction of a cell. */
MICA_API mica_status mica_roi_align(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x,
                                    const mica_tensor *rois, const mica_tensor *image,
                                    const mica_roi_align_opts *opts);
/* Reads x only where `max` is set. */
MICA_API mica_status mica_roi_align_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                             const mica_tensor *x, const mica_tensor *rois,
                                             const mica_tensor *image, const mica_roi_align_opts *opts);

/* ---- Deformable convolution ---------------------------------------------------------------------------- */

typedef struct mica_deform_opts {
    mica_index kernel[2];   /* 0: 1 */
    mica_index stride[2];   /* 0: 1 */
    mica_index pad[2];      /* in front; what is behind follows from the offsets' shape */
    mica_index dilation[2]; /* 0: 1 */
    mica_index groups;      /* of channels that share offsets; 0: 1 */
} mica_deform_opts;

/* Patches as columns, as im2col gives them, but for taps that are moved: dst [N, C KH KW, OH OW] from x [N, C, H,
 * W], with offset [N, groups KH KW 2, OH, OW] (along the height, then the width), each times mask [N, groups KH KW,
 * OH, OW], which may be NULL. Between pixels, and around the image, where it is 0, values are linear. A product
 * with the weights makes a deformable convolution of it. */
MICA_API mica_status mica_deform_columns(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x,
                                         const mica_tensor *offset, const mica_tensor *mask,
                                         const mica_deform_opts *opts);
/* dx, doffset and dmask: any may be NULL. */
MICA_API mica_status mica_deform_columns_backward(mica_context *ctx, const mica_tensor *dx,
                                                  const mica_tensor *doffset, const mica_tensor *dmask,
                                                  const mica_tensor *dy, const mica_tensor *x,
                                                  const mica_tensor *offset, const mica_tensor *mask,
                                                  const mica_deform_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
