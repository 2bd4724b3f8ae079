/* Images: sums of few elements along an axis, values at points, regions of interest, deformable patches. */
#include "node/check.h"

/* ---- sum_taps ---- */

static mica_status sum_taps_infer(mica_infer *i)
{
    const mica_axis_opts *o = i->opts;
    const mica_tensor *x = i->in[0], *index = i->in[1], *weight = i->in[2];
    mica_index dims[MICA_MAX_RANK];
    int axis = 0;
    MICA_TRY(mica_infer_dtype(i, 0, MICA_F32));
    MICA_TRY(mica_infer_axis(i, 0, o->axis, &axis));
    if (index->dtype != MICA_I32 || index->rank != 2)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected i32 indices [out, taps]");
    if (weight->dtype != MICA_F32 || !mica_tensor_same_shape(index, weight))
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected f32 weights [%td, %td], as the indices",
                               index->dim[0], index->dim[1]);
    for (int k = 0; k < x->rank; k++)
        dims[k] = k == axis ? index->dim[0] : x->dim[k];
    return mica_infer_out(i, 0, MICA_F32, x->rank, dims);
}

static mica_status sum_taps_run(const mica_call *c)
{
    return mica_sum_taps(c->ctx, c->out[0], c->in[0], c->in[1], c->in[2],
                         ((const mica_axis_opts *)c->opts)->axis);
}

static mica_status sum_taps_backward_run(const mica_call *c)
{
    return mica_sum_taps_backward(c->ctx, c->out[0], c->in[0], c->in[1], c->in[2],
                                  ((const mica_axis_opts *)c->opts)->axis);
}

static void sum_taps_gradient(mica_grad *g)
{
    mica_grad_give(g, 0, &mica_op_sum_taps_backward, (mica_value[]){g->dout[0], g->in[1], g->in[2]}, 3,
                   g->opts);
}

static bool sum_taps_mixes(const mica_infer *i)
{
    int axis = ((const mica_axis_opts *)i->opts)->axis;
    return axis == 0 || axis == -i->in[0]->rank;
}

static void sum_taps_sample(mica_op_sample *s)
{
    mica_index dims[4], table[2] = {mica_op_sample_int(s, 1, 6), mica_op_sample_int(s, 1, 4)};
    int rank = mica_sample_dims(s, 2, 4, dims), axis = (int)mica_op_sample_int(s, 1, rank - 1);
    ((mica_axis_opts *)s->opts)->axis = mica_sample_chance(s) ? axis : axis - rank;
    mica_op_sample_shape(s, 0, rank, dims);
    mica_sample_indices(s, 1, 2, table, dims[axis]);
    mica_op_sample_shape(s, 2, 2, table);
}

static const mica_field sum_taps_fields[] = {
    MICA_FIELD(mica_axis_opts, axis, INT, "axis; negative counts from the end")};

/* ---- grid_sample ---- */

static mica_status grid_sample_infer(mica_infer *i)
{
    const mica_tensor *x = i->in[0], *grid = i->in[1];
    MICA_TRY(mica_infer_dtype(i, 0, MICA_F32));
    MICA_TRY(mica_infer_dtype(i, 1, MICA_F32));
    if (x->rank != 4 && x->rank != 5)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected [N, C, H, W] or [N, C, D, H, W]");
    if (grid->rank != x->rank || grid->dim[0] != x->dim[0] || grid->dim[grid->rank - 1] != x->rank - 2)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected a grid [%td, ..., %d] of rank %d", x->dim[0],
                               x->rank - 2, x->rank);
    mica_index dims[MICA_MAX_RANK] = {x->dim[0], x->dim[1]};
    for (int k = 2; k < x->rank; k++)
        dims[k] = grid->dim[k - 1];
    return mica_infer_out(i, 0, MICA_F32, x->rank, dims);
}

static mica_status grid_sample_run(const mica_call *c)
{
    return mica_grid_sample(c->ctx, c->out[0], c->in[0], c->in[1], c->opts);
}

static mica_status grid_sample_backward_run(const mica_call *c)
{
    return mica_grid_sample_backward(c->ctx, c->out[0], c->out[1], c->in[0], c->in[1], c->in[2], c->opts);
}

static void grid_sample_gradient(mica_grad *g)
{
    mica_grad_give_all(g, (int[]){0, 1}, 2, &mica_op_grid_sample_backward,
                       (mica_value[]){g->dout[0], g->in[0], g->in[1]}, 3, g->opts);
}

/* Points stay between two pixels, where the derivative of a linear function jumps. */
static void grid_sample_sample(mica_op_sample *s)
{
    mica_grid_sample_opts *o = s->opts;
    int axes = (int)mica_op_sample_int(s, 2, 3);
    mica_index x[5] = {mica_op_sample_int(s, 1, 2), mica_op_sample_int(s, 1, 3)}, grid[5] = {x[0]};
    for (int k = 0; k < axes; k++) {
        x[2 + k] = mica_op_sample_int(s, 3, 5);
        grid[1 + k] = mica_op_sample_int(s, 1, 3);
    }
    grid[1 + axes] = axes;
    o->mode = (mica_interpolation)mica_op_sample_int(s, 0, 2);
    o->outside = (mica_outside)mica_op_sample_int(s, 0, 2);
    o->align_corners = mica_sample_chance(s);
    mica_op_sample_shape(s, 0, 2 + axes, x);
    mica_op_sample_shape(s, 1, 2 + axes, grid);
    mica_sample_range(s, 1, 0.08, 0.18);
}

static const mica_field grid_sample_fields[] = {
    MICA_FIELD(mica_grid_sample_opts, mode, CHOICE, "linear|nearest|cubic"),
    MICA_FIELD(mica_grid_sample_opts, outside, CHOICE, "zeros|border|reflection"),
    MICA_FIELD(mica_grid_sample_opts, align_corners, BOOL,
               "-1 and 1 are centres of pixels, not their outer edges"),
};

/* ---- roi_align ---- */

static mica_status roi_align_infer(mica_infer *i)
{
    const mica_roi_align_opts *o = i->opts;
    const mica_tensor *x = i->in[0], *rois = i->in[1];
    MICA_TRY(mica_infer_dtype(i, 0, MICA_F32));
    MICA_TRY(mica_infer_dtype(i, 1, MICA_F32));
    MICA_TRY(mica_infer_indices(i, 2));
    if (x->rank != 4 || x->dim[2] < 1 || x->dim[3] < 1)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected [N, C, H, W] with pixels");
    if (rois->rank != 2 || rois->dim[1] != 4 || i->in[2]->rank != 1 || i->in[2]->dim[0] != rois->dim[0])
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected regions [R, 4] and numbers of images [R]");
    mica_index dims[4] = {rois->dim[0], x->dim[1], o->size[0] != 0 ? o->size[0] : 1,
                          o->size[1] != 0 ? o->size[1] : 1};
    return mica_infer_out(i, 0, MICA_F32, 4, dims);
}

static mica_status roi_align_run(const mica_call *c)
{
    return mica_roi_align(c->ctx, c->out[0], c->in[0], c->in[1], c->in[2], c->opts);
}

static mica_status roi_align_backward_run(const mica_call *c)
{
    return mica_roi_align_backward(c->ctx, c->out[0], c->in[0], c->in[1], c->in[2], c->in[3], c->opts);
}

static void roi_align_gradient(mica_grad *g)
{
    mica_grad_give(g, 0, &mica_op_roi_align_backward,
                   (mica_value[]){g->dout[0], g->in[0], g->in[1], g->in[2]}, 4, g->opts);
}

static bool roi_align_mixes(const mica_infer *i)
{
    (void)i;
    return true;
}

static void roi_align_sample(mica_op_sample *s)
{
    mica_roi_align_opts *o = s->opts;
    mica_index images = mica_op_sample_int(s, 1, 2), regions = mica_op_sample_int(s, 1, 3);
    mica_index x[4] = {images, mica_op_sample_int(s, 1, 3), mica_op_sample_int(s, 1, 5),
                       mica_op_sample_int(s, 1, 5)};
    o->size[0] = mica_op_sample_int(s, 0, 3);
    o->size[1] = mica_op_sample_int(s, 0, 3);
    o->samples = (int)mica_op_sample_int(s, 0, 2);
    o->scale = mica_sample_chance(s) ? 0.5f : 0.0f;
    o->corner = mica_sample_chance(s);
    mica_op_sample_shape(s, 0, 4, x);
    mica_op_sample_shape(s, 1, 2, (mica_index[]){regions, 4});
    mica_sample_range(s, 1, -1.0, 6.0);
    mica_sample_indices(s, 2, 1, &regions, images);
}

static const mica_field roi_align_fields[] = {
    MICA_FIELDS(mica_roi_align_opts, size, INDEX, "cells along height and width; 0: 1"),
    MICA_FIELD(mica_roi_align_opts, scale, FLOAT, "of the regions' coordinates; 0: 1"),
    MICA_FIELD(mica_roi_align_opts, samples, INT, "in each direction of a cell; 0: one for each pixel"),
    MICA_FIELD(mica_roi_align_opts, max, BOOL, "the largest weighted pixel instead of the mean"),
    MICA_FIELD(mica_roi_align_opts, corner, BOOL, "coordinates count from the first pixel's corner"),
};

/* ---- deform_columns ---- */

static mica_status deform_columns_infer(mica_infer *i)
{
    const mica_deform_opts *o = i->opts;
    const mica_tensor *x = i->in[0], *offset = i->in[1];
    mica_index kh = o->kernel[0] != 0 ? o->kernel[0] : 1, kw = o->kernel[1] != 0 ? o->kernel[1] : 1;
    mica_index groups = o->groups != 0 ? o->groups : 1, taps = 0, all = 0, twice = 0, rows = 0;
    MICA_TRY(mica_infer_dtype(i, 0, MICA_F32));
    MICA_TRY(mica_infer_dtype(i, 1, MICA_F32));
    if (x->rank != 4 || offset->rank != 4)
        return mica_infer_fail(i, MICA_ERR_SHAPE,
                               "expected [N, C, H, W] and offsets [N, groups KH KW 2, OH, OW]");
    if (kh < 1 || kw < 1 || groups < 1 || x->dim[1] % groups != 0)
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "kernel is %td x %td, groups %td of %td channels", kh,
                               kw, groups, x->dim[1]);
    if (__builtin_mul_overflow(kh, kw, &taps) || __builtin_mul_overflow(taps, groups, &all) ||
        __builtin_mul_overflow(all, 2, &twice) || __builtin_mul_overflow(taps, x->dim[1], &rows))
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "a kernel of %td x %td is too large", kh, kw);
    mica_index dims[4] = {x->dim[0], twice, offset->dim[2], offset->dim[3]};
    MICA_TRY(mica_infer_expect(i, 1, 4, dims));
    dims[1] = all;
    MICA_TRY(mica_infer_expect(i, 2, 4, dims));
    return mica_infer_out(i, 0, MICA_F32, 3, (mica_index[]){x->dim[0], rows, dims[2] * dims[3]});
}

static mica_status deform_columns_run(const mica_call *c)
{
    return mica_deform_columns(c->ctx, c->out[0], c->in[0], c->in[1], c->in[2], c->opts);
}

static mica_status deform_columns_backward_run(const mica_call *c)
{
    return mica_deform_columns_backward(c->ctx, c->out[0], c->out[1], c->out[2], c->in[0], c->in[1], c->in[2],
                                        c->in[3], c->opts);
}

static void deform_columns_gradient(mica_grad *g)
{
    mica_grad_give_all(g, (int[]){0, 1, 2}, 3, &mica_op_deform_columns_backward,
                       (mica_value[]){g->dout[0], g->in[0], g->in[1], g->in[2]}, 4, g->opts);
}

/* Taps stay between two pixels. */
static void deform_columns_sample(mica_op_sample *s)
{
    mica_deform_opts *o = s->opts;
    mica_index groups = mica_op_sample_int(s, 1, 2), channels = groups * mica_op_sample_int(s, 1, 2);
    mica_index x[4] = {mica_op_sample_int(s, 1, 2), channels}, offset[4] = {x[0]};
    o->groups = groups;
    for (int k = 0; k < 2; k++) {
        o->kernel[k] = mica_op_sample_int(s, 1, 3);
        o->stride[k] = mica_op_sample_int(s, 0, 2);
        o->pad[k] = mica_op_sample_int(s, 0, 1);
        o->dilation[k] = mica_op_sample_int(s, 0, 2);
        x[2 + k] = mica_op_sample_int(s, 2, 5);
        offset[2 + k] = mica_op_sample_int(s, 1, 3);
    }
    offset[1] = groups * o->kernel[0] * o->kernel[1] * 2;
    mica_op_sample_shape(s, 0, 4, x);
    mica_op_sample_shape(s, 1, 4, offset);
    mica_sample_range(s, 1, 0.2, 0.8);
    if (!mica_sample_chance(s))
        return;
    s->ins = 3;
    offset[1] /= 2;
    mica_op_sample_shape(s, 2, 4, offset);
}

static const mica_field deform_columns_fields[] = {
    MICA_FIELDS(mica_deform_opts, kernel, INDEX, "0: 1"),
    MICA_FIELDS(mica_deform_opts, stride, INDEX, "0: 1"),
    MICA_FIELDS(mica_deform_opts, pad, INDEX, "zero padding in front"),
    MICA_FIELDS(mica_deform_opts, dilation, INDEX, "0: 1"),
    MICA_FIELD(mica_deform_opts, groups, INDEX, "of channels that share offsets; 0: 1"),
};

/* ---- Entries ---- */

#define FORWARD(op, options, count, optional, fixed, mixing, words, ...)       \
    const mica_op mica_op_##op = {.name = #op,                                 \
                                  .family = "vision",                          \
                                  .about = words,                              \
                                  .ins = count,                                \
                                  .optional_ins = optional,                    \
                                  .outs = 1,                                   \
                                  .names = (const char *const[]){__VA_ARGS__}, \
                                  .opts_bytes = sizeof(options),               \
                                  MICA_FIELD_LIST(op##_fields),                \
                                  .fixed_ins = fixed,                          \
                                  .infer = op##_infer,                         \
                                  .run = op##_run,                             \
                                  .gradient = MICA_GRADIENT(op##_gradient),    \
                                  .mixes = mixing,                             \
                                  .sample = MICA_SAMPLE(op##_sample)};

#define BACKWARD(op, options, count, optional, number, missing, ...)                      \
    const mica_op mica_op_##op##_backward = {.name = #op "_backward",                     \
                                             .family = "vision",                          \
                                             .about = "the gradient of " #op,             \
                                             .ins = count,                                \
                                             .optional_ins = optional,                    \
                                             .outs = number,                              \
                                             .optional_outs = missing,                    \
                                             .names = (const char *const[]){__VA_ARGS__}, \
                                             .opts_bytes = sizeof(options),               \
                                             MICA_FIELD_LIST(op##_fields),                \
                                             .run = op##_backward_run};

FORWARD(sum_taps, mica_axis_opts, 3, 0, 1u << 2, sum_taps_mixes,
        "along an axis, sums of weight[i, k] x[index[i, k]]; an index of -1 is no element", "x", "index",
        "weight", "y")
BACKWARD(sum_taps, mica_axis_opts, 3, 0, 1, 0, "dy", "index", "weight", "dx")
FORWARD(grid_sample, mica_grid_sample_opts, 2, 0, 0, NULL, "images at the points of a grid, from -1 to 1",
        "x", "grid", "y")
BACKWARD(grid_sample, mica_grid_sample_opts, 3, 0, 2, 3, "dy", "x", "grid", "dx", "dgrid")
FORWARD(roi_align, mica_roi_align_opts, 3, 0, 1u << 1, roi_align_mixes,
        "regions of images, in cells of one size", "x", "rois", "image", "y")
BACKWARD(roi_align, mica_roi_align_opts, 4, 0, 1, 0, "dy", "x", "rois", "image", "dx")
FORWARD(deform_columns, mica_deform_opts, 2, 1, 0, NULL,
        "the patches of a deformable convolution, as columns", "x", "offset", "mask", "y")
BACKWARD(deform_columns, mica_deform_opts, 3, 1, 3, 7, "dy", "x", "offset", "mask", "dx", "doffset", "dmask")
