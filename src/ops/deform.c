/* Patches as columns whose taps are moved: what a deformable convolution multiplies its weights with. */
#include <mica/ops/vision.h>

#include <string.h>

#include "base/parallel.h"
#include "ops/contiguous.h"
#include "ops/points.h"

typedef struct job {
    mica_index kernel[2], stride[2], pad[2], dilation[2];
    mica_index size[3]; /* of the image: 1, height, width */
    mica_index out[2];
    size_t images, groups, channels; /* channels of a group */
    size_t taps, pixels, points;
    float *y, *dx, *doffset, *dmask;
    const float *x, *offset, *mask, *dy;
} job;

/* Tap `tap` of group `group` (of all images) at output point `at`. */
static void locate(const job *j, mica_point *p, size_t group, size_t tap, size_t at, bool slopes)
{
    const float *offset = j->offset + (group * j->taps + tap) * 2 * j->points + at;
    mica_index place[2] = {(mica_index)at / j->out[1], (mica_index)at % j->out[1]};
    mica_index number[2] = {(mica_index)tap / j->kernel[1], (mica_index)tap % j->kernel[1]};
    mica_taps t[3] = {{.count = 1, .weight = {1.0f}}};
    for (int k = 0; k < 2; k++) {
        mica_index plain = place[k] * j->stride[k] - j->pad[k] + number[k] * j->dilation[k];
        t[1 + k] = mica_taps_linear((float)plain + offset[(size_t)k * j->points], j->size[1 + k]);
    }
    mica_point_set(p, t, j->size, slopes);
}

/* One tap of one group of one image. */
static void forward_block(void *work, size_t block, int thread)
{
    (void)thread;
    const job *j = work;
    size_t group = block / j->taps, tap = block % j->taps;
    mica_point p;
    for (size_t at = 0; at < j->points; at++) {
        locate(j, &p, group, tap, at, false);
        float mask = j->mask != NULL ? j->mask[block * j->points + at] : 1.0f;
        for (size_t c = group * j->channels; c < (group + 1) * j->channels; c++)
            j->y[(c * j->taps + tap) * j->points + at] = mask * mica_point_value(&p, j->x + c * j->pixels);
    }
}

static void backward_point(const job *j, size_t group, size_t tap, size_t at)
{
    mica_point p;
    size_t moved = group * j->taps + tap;
    float mask = j->mask != NULL ? j->mask[moved * j->points + at] : 1.0f, dmask = 0.0f,
          slope[2] = {0.0f, 0.0f};
    locate(j, &p, group, tap, at, j->doffset != NULL);
    for (size_t c = group * j->channels; c < (group + 1) * j->channels; c++) {
        float dy = j->dy[(c * j->taps + tap) * j->points + at];
        if (j->dx != NULL)
            mica_point_add(&p, j->dx + c * j->pixels, mask * dy);
        if (j->dmask != NULL)
            dmask += dy * mica_point_value(&p, j->x + c * j->pixels);
        for (int k = 0; j->doffset != NULL && k < 2; k++)
            slope[k] += mask * dy * mica_point_slope(&p, 1 + k, j->x + c * j->pixels);
    }
    if (j->dmask != NULL)
        j->dmask[moved * j->points + at] = dmask;
    for (size_t k = 0; j->doffset != NULL && k < 2; k++)
        j->doffset[(moved * 2 + k) * j->points + at] = slope[k];
}

/* One group of one image. */
static void backward_block(void *work, size_t group, int thread)
{
    (void)thread;
    const job *j = work;
    size_t image = j->channels * j->pixels;
    if (j->dx != NULL && image > 0)
        memset(j->dx + group * image, 0, image * sizeof *j->dx);
    for (size_t tap = 0; tap < j->taps; tap++)
        for (size_t at = 0; at < j->points; at++)
            backward_point(j, group, tap, at);
}

/* ---- Operations ---- */

/* Options, checked. */
static mica_status set_options(mica_context *ctx, const char *op, job *j, const mica_deform_opts *opts)
{
    static const mica_deform_opts defaults;
    const mica_deform_opts *o = opts != NULL ? opts : &defaults;
    const mica_index most = INT32_MAX;
    for (int k = 0; k < 2; k++) {
        j->kernel[k] = o->kernel[k] != 0 ? o->kernel[k] : 1;
        j->stride[k] = o->stride[k] != 0 ? o->stride[k] : 1;
        j->dilation[k] = o->dilation[k] != 0 ? o->dilation[k] : 1;
        j->pad[k] = o->pad[k];
        if (j->kernel[k] < 1 || j->stride[k] < 1 || j->dilation[k] < 1 || j->pad[k] < 0 ||
            j->kernel[k] > most || j->stride[k] > most || j->dilation[k] > most || j->pad[k] > most)
            return mica_fail(
                ctx, MICA_ERR_ARGUMENT,
                "%s: kernel is %td, stride %td, pad %td, dilation %td: expected 1, 1, 0, 1 or more", op,
                j->kernel[k], j->stride[k], j->pad[k], j->dilation[k]);
    }
    j->groups = o->groups != 0 ? (size_t)o->groups : 1;
    if (o->groups < 0 || o->groups > most)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: groups is %td: expected 1 or more", op, o->groups);
    return MICA_OK;
}

static mica_status check(mica_context *ctx, const char *op, job *j, const mica_arg *y, const mica_tensor *x,
                         const mica_tensor *offset, const mica_tensor *mask, const mica_deform_opts *opts)
{
    *j = (job){.images = 0};
    MICA_TRY(set_options(ctx, op, j, opts));
    MICA_TRY(mica_check_rank(ctx, op, "x", x, 4, 4));
    MICA_TRY(mica_check_rank(ctx, op, "offset", offset, 4, 4));
    mica_index groups = (mica_index)j->groups, taps = 0, rows = 0, all = 0, twice = 0;
    if (groups < 1 || x->dim[1] % groups != 0)
        return mica_fail(ctx, MICA_ERR_SHAPE,
                         "%s: x is %s: expected a multiple of %td channels for offset %s", op, MICA_SHAPE(x),
                         groups, MICA_SHAPE(offset));
    if (__builtin_mul_overflow(j->kernel[0], j->kernel[1], &taps) ||
        __builtin_mul_overflow(taps, groups, &all) || __builtin_mul_overflow(all, 2, &twice) ||
        __builtin_mul_overflow(taps, x->dim[1], &rows))
        rows = all = twice = PTRDIFF_MAX; /* which no tensor has */
    mica_index points = offset->dim[2] * offset->dim[3];
    mica_index dims[4] = {x->dim[0], twice, offset->dim[2], offset->dim[3]};
    MICA_TRY(mica_check_shape(ctx, op, "offset", offset, 4, dims, "x", x));
    dims[1] = all;
    if (mask != NULL)
        MICA_TRY(mica_check_shape(ctx, op, "mask", mask, 4, dims, "offset", offset));
    MICA_TRY(
        mica_check_shape(ctx, op, y->name, y->tensor, 3, (mica_index[]){x->dim[0], rows, points}, "x", x));
    j->images = (size_t)x->dim[0];
    j->channels = (size_t)(x->dim[1] / groups);
    j->taps = (size_t)taps;
    j->pixels = (size_t)(x->dim[2] * x->dim[3]);
    j->points = (size_t)points;
    j->size[0] = 1;
    for (int k = 0; k < 2; k++) {
        j->size[1 + k] = x->dim[2 + k];
        j->out[k] = offset->dim[2 + k];
    }
    return MICA_OK;
}

mica_status mica_deform_columns(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x,
                                const mica_tensor *offset, const mica_tensor *mask,
                                const mica_deform_opts *opts)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, 0},
                       {"x", x, 0, 0},
                       {"offset", offset, 0, 0},
                       {"mask", mask, MICA_ARG_OPTIONAL, 0}};
    MICA_TRY(mica_check_args(ctx, "deform_columns", args, 4));
    job j;
    MICA_TRY(check(ctx, "deform_columns", &j, &args[0], x, offset, mask, opts));
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 4);
    MICA_START(ctx, "deform_columns", dense.bytes, &scratch);
    mica_contiguous_load(&dense, scratch);
    j.y = dense.data[0];
    j.x = dense.data[1];
    j.offset = dense.data[2];
    j.mask = dense.data[3];
    mica_parallel(ctx, j.images * j.groups * j.taps, forward_block, &j);
    mica_contiguous_store(&dense);
    return MICA_OK;
}

mica_status mica_deform_columns_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *doffset,
                                         const mica_tensor *dmask, const mica_tensor *dy,
                                         const mica_tensor *x, const mica_tensor *offset,
                                         const mica_tensor *mask, const mica_deform_opts *opts)
{
    const char *op = "deform_columns_backward";
    mica_arg args[] = {{"dx", dx, MICA_ARG_OUT | MICA_ARG_OPTIONAL, 0},
                       {"doffset", doffset, MICA_ARG_OUT | MICA_ARG_OPTIONAL, 0},
                       {"dmask", dmask, MICA_ARG_OUT | MICA_ARG_OPTIONAL, 0},
                       {"dy", dy, 0, 0},
                       {"x", x, 0, 0},
                       {"offset", offset, 0, 0},
                       {"mask", mask, MICA_ARG_OPTIONAL, 0}};
    MICA_TRY(mica_check_args(ctx, op, args, 7));
    job j;
    MICA_TRY(check(ctx, op, &j, &args[3], x, offset, mask, opts));
    if (dx != NULL)
        MICA_TRY(mica_check_same_shape(ctx, op, "dx", dx, "x", x));
    if (doffset != NULL)
        MICA_TRY(mica_check_same_shape(ctx, op, "doffset", doffset, "offset", offset));
    if (dmask != NULL) {
        mica_index dims[4] = {offset->dim[0], offset->dim[1] / 2, offset->dim[2], offset->dim[3]};
        MICA_TRY(mica_check_shape(ctx, op, "dmask", dmask, 4, dims, "offset", offset));
    }
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 7);
    MICA_START(ctx, op, dense.bytes, &scratch);
    mica_contiguous_load(&dense, scratch);
    j.dx = dense.data[0];
    j.doffset = dense.data[1];
    j.dmask = dense.data[2];
    j.dy = dense.data[3];
    j.x = dense.data[4];
    j.offset = dense.data[5];
    j.mask = dense.data[6];
    mica_parallel(ctx, j.images * j.groups, backward_block, &j);
    mica_contiguous_store(&dense);
    return MICA_OK;
}
