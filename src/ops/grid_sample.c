/* Images at given points. */
#include <mica/ops/vision.h>

#include <string.h>

#include "base/parallel.h"
#include "ops/contiguous.h"
#include "ops/points.h"

/* Values in a block of parallel work. */
#define BLOCK ((size_t)4096)

typedef struct job {
    mica_grid_sample_opts how;
    int axes;           /* 2 or 3 */
    mica_index size[3]; /* of the image: depth (or 1), height, width */
    size_t images, channels, points, pixels, per_block;
    float *y, *dx, *dgrid;
    const float *x, *grid, *dy;
} job;

/* ---- Points ---- */

/* Reflected at low and high, which are half pixels or pixels; *turned where it runs the other way. */
static float reflect(float at, float low, float high, bool *turned)
{
    float range = high - low;
    if (!(range > 0.0f) || !(at > -MICA_FAR && at < MICA_FAR))
        return at > -MICA_FAR && at < MICA_FAR ? low : at;
    float far = at < low ? low - at : at - high;
    float times = floorf(far / range), rest = far - times * range;
    bool even = fmodf(times, 2.0f) == 0.0f;
    *turned = even;
    return (at < low) == even ? low + rest : high - rest;
}

/* The pixel that position i shows; -1: none. */
static mica_index shown(mica_index i, mica_index size, const mica_grid_sample_opts *how)
{
    if (i >= 0 && i < size)
        return i;
    if (how->outside == MICA_OUTSIDE_ZEROS)
        return -1;
    if (how->outside == MICA_OUTSIDE_BORDER)
        return i < 0 ? 0 : size - 1;
    mica_index period = how->align_corners ? 2 * (size - 1) : 2 * size;
    if (period == 0)
        return 0;
    mica_index at = (i % period + period) % period;
    return at < size ? at : period - at - (how->align_corners ? 0 : 1);
}

/* Keys' kernel, and its derivative, at distances 1 + f, f, 1 - f, 2 - f. */
static void cubic(mica_taps *t, float f)
{
    const float a = -0.75f;
    for (int k = 0; k < 4; k++) {
        float d = k < 2 ? f + (float)(1 - k) : (float)(k - 1) - f, sign = k < 2 ? 1.0f : -1.0f;
        bool far = k == 0 || k == 3;
        t->weight[k] = far ? ((a * d - 5.0f * a) * d + 8.0f * a) * d - 4.0f * a
                           : ((a + 2.0f) * d - (a + 3.0f)) * d * d + 1.0f;
        t->slope[k] = sign * (far ? (3.0f * a * d - 10.0f * a) * d + 8.0f * a
                                  : (3.0f * (a + 2.0f) * d - 2.0f * (a + 3.0f)) * d);
    }
    t->count = 4;
}

/* The taps along an axis of this size for a coordinate from -1 to 1. */
static mica_taps taps_of(const mica_grid_sample_opts *how, float coordinate, mica_index size)
{
    float n = (float)size, slope = how->align_corners ? (n - 1.0f) / 2.0f : n / 2.0f;
    float at = how->align_corners ? (coordinate + 1.0f) / 2.0f * (n - 1.0f)
                                  : ((coordinate + 1.0f) * n - 1.0f) / 2.0f;
    float low = how->align_corners ? 0.0f : -0.5f, high = how->align_corners ? n - 1.0f : n - 0.5f;
    mica_taps t = {.count = 0};
    if (how->mode == MICA_NEAREST)
        at = rintf(at);
    if (at < low || at > high) {
        bool turned = false;
        if (how->outside == MICA_OUTSIDE_BORDER &&
            how->mode == MICA_CUBIC) { /* taps go to the border one by one */
            at = fminf(fmaxf(at, -3.0f), n + 2.0f);
        } else if (how->outside == MICA_OUTSIDE_BORDER) {
            at = at < low ? 0.0f : n - 1.0f;
            slope = 0.0f;
        } else if (how->outside == MICA_OUTSIDE_REFLECTION) {
            at = reflect(at, low, high, &turned);
            slope = turned ? -slope : slope;
        }
    }
    if (!(at > -MICA_FAR && at < MICA_FAR))
        return t;
    float floor_at = floorf(at);
    mica_index first = (mica_index)floor_at;
    if (how->mode == MICA_NEAREST) {
        t = (mica_taps){.count = 1, .at = {first}, .weight = {1.0f}};
    } else if (how->mode == MICA_LINEAR) {
        t = (mica_taps){2, {first, first + 1}, {1.0f - (at - floor_at), at - floor_at}, {-1.0f, 1.0f}};
    } else {
        cubic(&t, at - floor_at);
        for (int k = 0; k < 4; k++)
            t.at[k] = first - 1 + k;
    }
    for (int k = 0; k < t.count; k++) {
        t.at[k] = shown(t.at[k], size, how);
        t.slope[k] *= slope;
    }
    return t;
}

/* Point `number` of all images: its coordinates are x, y, z; the image's axes are z, y, x. */
static void locate(const job *j, mica_point *p, size_t number, bool slopes)
{
    mica_taps t[3] = {{.count = 1, .weight = {1.0f}}};
    for (int k = 3 - j->axes; k < 3; k++)
        t[k] = taps_of(&j->how, j->grid[number * (size_t)j->axes + (size_t)(2 - k)], j->size[k]);
    mica_point_set(p, t, j->size, slopes);
}

/* ---- Blocks ---- */

static void forward_block(void *work, size_t block, int thread)
{
    (void)thread;
    const job *j = work;
    size_t end = mica_least((block + 1) * j->per_block, j->images * j->points);
    mica_point p;
    for (size_t number = block * j->per_block; number < end; number++) {
        size_t image = number / j->points, point = number % j->points;
        locate(j, &p, number, false);
        for (size_t c = image * j->channels; c < (image + 1) * j->channels; c++)
            j->y[c * j->points + point] = mica_point_value(&p, j->x + c * j->pixels);
    }
}

/* One image. */
static void backward_block(void *work, size_t image, int thread)
{
    (void)thread;
    const job *j = work;
    mica_point p;
    if (j->dx != NULL && j->pixels * j->channels > 0)
        memset(j->dx + image * j->channels * j->pixels, 0, j->channels * j->pixels * sizeof *j->dx);
    for (size_t number = image * j->points; number < (image + 1) * j->points; number++) {
        float slope[3] = {0.0f, 0.0f, 0.0f};
        locate(j, &p, number, j->dgrid != NULL);
        for (size_t c = image * j->channels; c < (image + 1) * j->channels; c++) {
            float dy = j->dy[c * j->points + number % j->points];
            if (j->dx != NULL)
                mica_point_add(&p, j->dx + c * j->pixels, dy);
            for (int k = 3 - j->axes; j->dgrid != NULL && k < 3; k++)
                slope[k] += dy * mica_point_slope(&p, k, j->x + c * j->pixels);
        }
        for (int k = 3 - j->axes; j->dgrid != NULL && k < 3; k++)
            j->dgrid[number * (size_t)j->axes + (size_t)(2 - k)] = slope[k];
    }
}

/* ---- Operations ---- */

static mica_status check(mica_context *ctx, const char *op, job *j, const mica_arg *y, const mica_arg *x,
                         const mica_tensor *grid, const mica_grid_sample_opts *opts)
{
    static const mica_grid_sample_opts defaults;
    *j = (job){.how = opts != NULL ? *opts : defaults, .size = {1, 1, 1}, .points = 1, .pixels = 1};
    if ((unsigned)j->how.mode > MICA_CUBIC || (unsigned)j->how.outside > MICA_OUTSIDE_REFLECTION)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: unknown mode %d or outside %d", op, (int)j->how.mode,
                         (int)j->how.outside);
    const mica_tensor *image = x->tensor;
    MICA_TRY(mica_check_rank(ctx, op, x->name, image, 4, 5));
    MICA_TRY(mica_check_rank(ctx, op, "grid", grid, image->rank, image->rank));
    j->axes = image->rank - 2;
    if (grid->dim[0] != image->dim[0] || grid->dim[grid->rank - 1] != j->axes)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: grid is %s: expected [%td, ..., %d] for %s %s", op,
                         MICA_SHAPE(grid), image->dim[0], j->axes, x->name, MICA_SHAPE(image));
    mica_index dims[MICA_MAX_RANK] = {image->dim[0], image->dim[1]};
    for (int k = 0; k < j->axes; k++) {
        dims[2 + k] = grid->dim[1 + k];
        j->size[3 - j->axes + k] = image->dim[2 + k];
        j->points *= (size_t)grid->dim[1 + k];
        j->pixels *= (size_t)image->dim[2 + k];
    }
    j->images = (size_t)image->dim[0];
    j->channels = (size_t)image->dim[1];
    return mica_check_shape(ctx, op, y->name, y->tensor, image->rank, dims, "grid", grid);
}

mica_status mica_grid_sample(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x,
                             const mica_tensor *grid, const mica_grid_sample_opts *opts)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, 0}, {"x", x, 0, 0}, {"grid", grid, 0, 0}};
    MICA_TRY(mica_check_args(ctx, "grid_sample", args, 3));
    job j;
    MICA_TRY(check(ctx, "grid_sample", &j, &args[0], &args[1], grid, opts));
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 3);
    MICA_START(ctx, "grid_sample", dense.bytes, &scratch);
    mica_contiguous_load(&dense, scratch);
    j.y = dense.data[0];
    j.x = dense.data[1];
    j.grid = dense.data[2];
    j.per_block = j.channels < BLOCK ? BLOCK / (j.channels + 1) + 1 : 1;
    mica_parallel(ctx, mica_div_up(j.images * j.points, j.per_block), forward_block, &j);
    mica_contiguous_store(&dense);
    return MICA_OK;
}

mica_status mica_grid_sample_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dgrid,
                                      const mica_tensor *dy, const mica_tensor *x, const mica_tensor *grid,
                                      const mica_grid_sample_opts *opts)
{
    const char *op = "grid_sample_backward";
    mica_arg args[] = {{"dx", dx, MICA_ARG_OUT | MICA_ARG_OPTIONAL, 0},
                       {"dgrid", dgrid, MICA_ARG_OUT | MICA_ARG_OPTIONAL, 0},
                       {"dy", dy, 0, 0},
                       {"x", x, 0, 0},
                       {"grid", grid, 0, 0}};
    MICA_TRY(mica_check_args(ctx, op, args, 5));
    job j;
    MICA_TRY(check(ctx, op, &j, &args[2], &args[3], grid, opts));
    if (dx != NULL)
        MICA_TRY(mica_check_same_shape(ctx, op, "dx", dx, "x", x));
    if (dgrid != NULL)
        MICA_TRY(mica_check_same_shape(ctx, op, "dgrid", dgrid, "grid", grid));
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 5);
    MICA_START(ctx, op, dense.bytes, &scratch);
    mica_contiguous_load(&dense, scratch);
    j.dx = dense.data[0];
    j.dgrid = dense.data[1];
    j.dy = dense.data[2];
    j.x = dense.data[3];
    j.grid = dense.data[4];
    mica_parallel(ctx, j.images, backward_block, &j);
    mica_contiguous_store(&dense);
    return MICA_OK;
}
