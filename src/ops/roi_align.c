/* Regions of interest in cells of one size, by samples between pixels. */
#include <mica/ops/vision.h>

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "ops/contiguous.h"
#include "ops/index.h"

#define MOST_SAMPLES 4096.0f

typedef struct job {
    mica_roi_align_opts how;
    mica_index height, width;
    mica_index size[2];
    size_t regions, channels;
    float *y, *dx;
    const float *x, *dy, *rois;
    const void *image;
    bool wide; /* numbers of images are i64 */
} job;

/* Where cells of a region lie, and how many samples they have, along the height and the width. */
typedef struct region {
    float start[2], cell[2];
    mica_index samples[2];
    float share; /* of a sample in the mean */
} region;

/* A sample's four pixels, also where some are the same or weigh nothing: the largest of them counts those too. */
typedef struct corners {
    mica_index at[4];
    float weight[4];
} corners;

static size_t image_of(const job *j, size_t r)
{
    return (size_t)(j->wide ? ((const int64_t *)j->image)[r] : ((const int32_t *)j->image)[r]);
}

static region region_of(const job *j, size_t r)
{
    const float *roi = j->rois + 4 * r; /* x1, y1, x2, y2 */
    float scale = j->how.scale != 0.0f ? j->how.scale : 1.0f, shift = j->how.corner ? 0.0f : 0.5f;
    region g;
    for (int k = 0; k < 2; k++) {
        float start = roi[1 - k] * scale - shift, extent = roi[3 - k] * scale - shift - start;
        if (j->how.corner && !(extent >= 1.0f))
            extent = 1.0f;
        g.start[k] = start;
        g.cell[k] = extent / (float)j->size[k];
        float count = j->how.samples > 0 ? (float)j->how.samples : ceilf(g.cell[k]);
        g.samples[k] = count > 0.0f ? (mica_index)fminf(count, MOST_SAMPLES) : 0;
    }
    mica_index count = g.samples[0] * g.samples[1];
    g.share = 1.0f / (float)(count > 0 ? count : 1);
    return g;
}

/* The two pixels around a coordinate, and the weight of the second; false if it is more than one pixel outside. */
static bool around(float at, mica_index size, mica_index pixel[2], float *second)
{
    if (!(at >= -1.0f && at <= (float)size))
        return false;
    at = at > 0.0f ? at : 0.0f;
    mica_index low = (mica_index)at;
    bool last = low >= size - 1;
    pixel[0] = last ? size - 1 : low;
    pixel[1] = last ? size - 1 : low + 1;
    *second = last ? 0.0f : at - (float)low;
    return true;
}

static corners sample_of(const job *j, const region *g, const mica_index cell[2], mica_index iy,
                         mica_index ix)
{
    mica_index y[2], x[2], number[2] = {iy, ix};
    float at[2], ly, lx;
    for (int k = 0; k < 2; k++)
        at[k] = g->start[k] + (float)cell[k] * g->cell[k] +
                ((float)number[k] + 0.5f) * g->cell[k] / (float)g->samples[k];
    if (!around(at[0], j->height, y, &ly) || !around(at[1], j->width, x, &lx))
        return (corners){.at = {0}};
    return (corners){
        {y[0] * j->width + x[0], y[0] * j->width + x[1], y[1] * j->width + x[0], y[1] * j->width + x[1]},
        {(1.0f - ly) * (1.0f - lx), (1.0f - ly) * lx, ly * (1.0f - lx), ly * lx}};
}

/* ---- Forward: one region ---- */

static void forward_block(void *work, size_t r, int thread)
{
    (void)thread;
    const job *j = work;
    region g = region_of(j, r);
    size_t cells = (size_t)(j->size[0] * j->size[1]), pixels = (size_t)(j->height * j->width);
    const float *x = j->x + image_of(j, r) * j->channels * pixels;
    float *y = j->y + r * j->channels * cells;
    memset(y, 0, j->channels * cells * sizeof *y);
    for (size_t cell = 0; cell < cells; cell++) {
        mica_index at[2] = {(mica_index)cell / j->size[1], (mica_index)cell % j->size[1]};
        for (mica_index s = 0; s < g.samples[0] * g.samples[1]; s++) {
            corners q = sample_of(j, &g, at, s / g.samples[1], s % g.samples[1]);
            for (size_t c = 0; c < j->channels; c++) {
                const float *plane = x + c * pixels;
                float *out = &y[c * cells + cell];
                for (int k = 0; k < 4; k++) {
                    float value = q.weight[k] * plane[q.at[k]];
                    if (!j->how.max)
                        *out += value * g.share;
                    else if ((s == 0 && k == 0) || value > *out)
                        *out = value;
                }
            }
        }
    }
}

/* ---- Backward: one channel of all images ---- */

/* Which pixel the largest value of a cell came from, and its weight. */
static float largest(const job *j, const region *g, const mica_index cell[2], const float *plane,
                     mica_index *at)
{
    float best = 0.0f, weight = 0.0f;
    for (mica_index s = 0; s < g->samples[0] * g->samples[1]; s++) {
        corners q = sample_of(j, g, cell, s / g->samples[1], s % g->samples[1]);
        for (int k = 0; k < 4; k++) {
            float value = q.weight[k] * plane[q.at[k]];
            if ((s == 0 && k == 0) || value > best) {
                best = value;
                weight = q.weight[k];
                *at = q.at[k];
            }
        }
    }
    return weight;
}

static void backward_cell(const job *j, const region *g, const mica_index cell[2], size_t plane, float dy)
{
    size_t pixels = (size_t)(j->height * j->width);
    float *dx = j->dx + plane * pixels;
    if (j->how.max) {
        mica_index at = 0;
        float weight = largest(j, g, cell, j->x + plane * pixels, &at);
        dx[at] += weight * dy;
        return;
    }
    for (mica_index s = 0; s < g->samples[0] * g->samples[1]; s++) {
        corners q = sample_of(j, g, cell, s / g->samples[1], s % g->samples[1]);
        for (int k = 0; k < 4; k++)
            dx[q.at[k]] += q.weight[k] * dy * g->share;
    }
}

static void backward_block(void *work, size_t channel, int thread)
{
    (void)thread;
    const job *j = work;
    size_t cells = (size_t)(j->size[0] * j->size[1]);
    for (size_t r = 0; r < j->regions; r++) {
        region g = region_of(j, r);
        size_t plane = image_of(j, r) * j->channels + channel;
        for (size_t cell = 0; cell < cells; cell++) {
            mica_index at[2] = {(mica_index)cell / j->size[1], (mica_index)cell % j->size[1]};
            backward_cell(j, &g, at, plane, j->dy[(r * j->channels + channel) * cells + cell]);
        }
    }
}

/* ---- Operations ---- */

static mica_status check(mica_context *ctx, const char *op, job *j, const mica_arg *y, const mica_arg *x,
                         const mica_tensor *rois, const mica_tensor *image, const mica_roi_align_opts *opts)
{
    static const mica_roi_align_opts defaults;
    *j = (job){.how = opts != NULL ? *opts : defaults, .wide = image->dtype == MICA_I64};
    for (int k = 0; k < 2; k++)
        j->size[k] = j->how.size[k] != 0 ? j->how.size[k] : 1;
    const mica_tensor *t = x->tensor;
    MICA_TRY(mica_check_rank(ctx, op, x->name, t, 4, 4));
    MICA_TRY(mica_check_rank(ctx, op, "rois", rois, 2, 2));
    MICA_TRY(mica_check_shape(ctx, op, "rois", rois, 2, (mica_index[]){rois->dim[0], 4}, "rois", rois));
    MICA_TRY(mica_check_shape(ctx, op, "image", image, 1, rois->dim, "rois", rois));
    MICA_TRY(mica_check_shape(ctx, op, y->name, y->tensor, 4,
                              (mica_index[]){rois->dim[0], t->dim[1], j->size[0], j->size[1]}, "rois", rois));
    if (j->size[0] < 0 || j->size[1] < 0 || t->dim[2] < 1 || t->dim[3] < 1)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: cells of %s %s, which has no pixels", op, x->name,
                         MICA_SHAPE(t));
    j->regions = (size_t)rois->dim[0];
    j->channels = (size_t)t->dim[1];
    j->height = t->dim[2];
    j->width = t->dim[3];
    return MICA_OK;
}

mica_status mica_roi_align(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x,
                           const mica_tensor *rois, const mica_tensor *image, const mica_roi_align_opts *opts)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, 0},
                       {"x", x, 0, 0},
                       {"rois", rois, 0, 0},
                       {"image", image, 0, MICA_DTYPES_INDEX}};
    MICA_TRY(mica_check_args(ctx, "roi_align", args, 4));
    job j;
    MICA_TRY(check(ctx, "roi_align", &j, &args[0], &args[1], rois, image, opts));
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 4);
    MICA_START(ctx, "roi_align", dense.bytes, &scratch);
    MICA_TRY(mica_check_indices(ctx, "roi_align", image, x, "x", 0));
    mica_contiguous_load(&dense, scratch);
    j.y = dense.data[0];
    j.x = dense.data[1];
    j.rois = dense.data[2];
    j.image = dense.data[3];
    if (mica_tensor_count(dst) > 0)
        mica_parallel(ctx, j.regions, forward_block, &j);
    mica_contiguous_store(&dense);
    return MICA_OK;
}

mica_status mica_roi_align_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                    const mica_tensor *x, const mica_tensor *rois, const mica_tensor *image,
                                    const mica_roi_align_opts *opts)
{
    const char *op = "roi_align_backward";
    mica_arg args[] = {{"dx", dx, MICA_ARG_OUT, 0},
                       {"dy", dy, 0, 0},
                       {"x", x, 0, 0},
                       {"rois", rois, 0, 0},
                       {"image", image, 0, MICA_DTYPES_INDEX}};
    MICA_TRY(mica_check_args(ctx, op, args, 5));
    job j;
    MICA_TRY(check(ctx, op, &j, &args[1], &args[2], rois, image, opts));
    MICA_TRY(mica_check_same_shape(ctx, op, "dx", dx, "x", x));
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 5);
    MICA_START(ctx, op, dense.bytes, &scratch);
    MICA_TRY(mica_check_indices(ctx, op, image, x, "x", 0));
    mica_contiguous_load(&dense, scratch);
    j.dx = dense.data[0];
    j.dy = dense.data[1];
    j.x = dense.data[2];
    j.rois = dense.data[3];
    j.image = dense.data[4];
    if (mica_tensor_count(dx) > 0) {
        memset(j.dx, 0, mica_tensor_bytes(dx));
        mica_parallel(ctx, j.channels, backward_block, &j);
    }
    mica_contiguous_store(&dense);
    return MICA_OK;
}
