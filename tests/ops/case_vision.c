/* Cases of sums along an axis, points of grids, regions of interest and deformable patches. Gradients by data are
 * compared with differences of the references, which are linear in it. */
#include "ops/op_index.h"

#include <math.h>

/* The sum of dy times what a reference gives, for op_numeric_gradient. */
typedef struct slope {
    const op_call *c;
    double *const *v;
    int dy;
    double (*value)(const op_call *c, double *const *v, size_t i); /* element i of the result */
} slope;

static double weighted_sum(void *user)
{
    const slope *s = user;
    double sum = 0.0;
    for (size_t i = 0; i < op_count(s->c, s->dy); i++)
        sum += s->v[s->dy][i] * s->value(s->c, s->v, i);
    return sum;
}

static void gradient_by(const slope *s, int out, int in)
{
    slope copy = *s;
    if (!s->c->absent[out])
        op_numeric_gradient(s->v[out], s->v[in], op_count(s->c, in), weighted_sum, &copy);
}

/* ---- sum_taps: i[0] is the axis ---- */

static void draw_taps(op_call *c, test_random *r, int narrow, int wide)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 1, 4, dims), axis = test_int(r, 0, rank - 1);
    if (!c->large)
        dims[axis] += dims[axis] == 0;
    op_tensor(c, wide, MICA_F32, rank, dims);
    c->i[0] = test_chance(r, 50) ? axis : axis - rank;
    c->i[1] = dims[axis];
    mica_index table[2] = {test_int(r, test_chance(r, 5) ? 0 : 1, c->large ? 40 : 9), test_int(r, 0, 5)};
    op_tensor(c, 2, MICA_I32, 2, table);
    op_tensor(c, 3, MICA_F32, 2, table);
    dims[axis] = table[0];
    op_tensor(c, narrow, MICA_F32, rank, dims);
}
static void draw_sum_taps(op_call *c, test_random *r) { draw_taps(c, r, 0, 1); }
static void draw_sum_taps_backward(op_call *c, test_random *r) { draw_taps(c, r, 1, 0); }

static void fill_taps(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        value[i] = tensor == 2 ? test_int(r, -1, (int)c->i[1] - 1) : test_normal(r);
}

static mica_status run_sum_taps(mica_context *ctx, const op_call *c)
{
    return mica_sum_taps(ctx, OP(c, 0), OP(c, 1), OP(c, 2), OP(c, 3), (int)c->i[0]);
}
static mica_status run_sum_taps_backward(mica_context *ctx, const op_call *c)
{
    return mica_sum_taps_backward(ctx, OP(c, 0), OP(c, 1), OP(c, 2), OP(c, 3), (int)c->i[0]);
}

static void reference_taps(const op_call *c, double *const *v, int narrow, int wide, bool backward)
{
    int axis = (int)(c->i[0] < 0 ? c->i[0] + c->tensor[wide].rank : c->i[0]);
    size_t taps = (size_t)c->tensor[2].dim[1];
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = 0.0;
    for (size_t i = 0; i < op_count(c, narrow); i++) {
        mica_index at[MICA_MAX_RANK];
        op_unravel(&c->tensor[narrow], i, at);
        size_t row = (size_t)at[axis] * taps;
        for (size_t k = row; k < row + taps; k++) {
            if (v[2][k] < 0.0)
                continue;
            at[axis] = (mica_index)v[2][k];
            size_t from = op_ravel(&c->tensor[wide], at);
            if (backward)
                v[0][from] += v[3][k] * v[1][i];
            else
                v[0][i] += v[3][k] * v[1][from];
        }
    }
}
static void reference_sum_taps(const op_call *c, double *const *v) { reference_taps(c, v, 0, 1, false); }
static void reference_sum_taps_backward(const op_call *c, double *const *v)
{
    reference_taps(c, v, 1, 0, true);
}

#define TAPS_CASE(op, out, in, wide)                      \
    OP_CASE(op) = {.names = {out, in, "index", "weight"}, \
                   .outs = 1,                             \
                   .ins = 3,                              \
                   .any_shape = OP_BIT(wide),             \
                   .axis_option = 1,                      \
                   .draw = draw_##op,                     \
                   .fill = fill_taps,                     \
                   .run = run_##op,                       \
                   .reference = reference_##op,           \
                   .tolerance = 1e-5}
TAPS_CASE(sum_taps, "dst", "x", 1);
TAPS_CASE(sum_taps_backward, "dx", "dy", 0);

/* ---- grid_sample: i[0] mode, i[1] outside, i[2] align_corners, i[3] number of x, i[4] number of grid ---- */

static mica_grid_sample_opts grid_options(const op_call *c)
{
    return (mica_grid_sample_opts){(mica_interpolation)c->i[0], (mica_outside)c->i[1], c->i[2] != 0};
}

static void draw_grid(op_call *c, test_random *r, int y, int x)
{
    int axes = test_int(r, 2, 3);
    mica_index image[5], grid[5], out[5];
    c->i[0] = test_int(r, 0, 2);
    c->i[1] = test_int(r, 0, 2);
    c->i[2] = test_chance(r, 50);
    c->i[3] = x;
    c->i[4] = x + 1;
    image[0] = grid[0] = out[0] = test_int(r, test_chance(r, 5) ? 0 : 1, 3);
    image[1] = out[1] = test_int(r, 1, 3);
    for (int k = 0; k < axes; k++) {
        image[2 + k] = test_int(r, 1, 4);
        grid[1 + k] = out[2 + k] = c->large ? test_int(r, 20, 24) : test_int(r, 1, 3);
    }
    grid[1 + axes] = axes;
    op_tensor(c, y, MICA_F32, 2 + axes, out);
    op_tensor(c, x, MICA_F32, 2 + axes, image);
    op_tensor(c, x + 1, MICA_F32, 2 + axes, grid);
}

/* Points inside, and up to more than twice the image outside. */
static void fill_grid(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        value[i] = tensor == c->i[4] ? 1.3 * test_normal(r) : test_normal(r);
}

/* Folded at both ends until it is inside. */
static double fold(double at, double low, double high)
{
    if (high <= low)
        return low;
    while (at < low || at > high)
        at = at < low ? 2.0 * low - at : 2.0 * high - at;
    return at;
}

static double keys(double d)
{
    const double a = -0.75;
    d = fabs(d);
    return d <= 1.0  ? ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0
           : d < 2.0 ? ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a
                     : 0.0;
}

/* The weight of pixel p of n for a coordinate: all positions that show it count. */
static double grid_weight(const op_call *c, double coordinate, mica_index n, mica_index p)
{
    double size = (double)n, low = c->i[2] ? 0.0 : -0.5, high = c->i[2] ? size - 1.0 : size - 0.5, sum = 0.0;
    double at = c->i[2] ? (coordinate + 1.0) / 2.0 * (size - 1.0) : ((coordinate + 1.0) * size - 1.0) / 2.0;
    if (c->i[0] == MICA_NEAREST) { /* rounded as it is computed */
        float g = (float)coordinate, s = (float)n;
        at = (double)rintf(c->i[2] ? (g + 1.0f) / 2.0f * (s - 1.0f) : ((g + 1.0f) * s - 1.0f) / 2.0f);
    }
    if (at < low || at > high)
        at = c->i[1] == MICA_OUTSIDE_BORDER && c->i[0] != MICA_CUBIC ? fmin(fmax(at, 0.0), size - 1.0)
             : c->i[1] == MICA_OUTSIDE_REFLECTION                    ? fold(at, low, high)
                                                                     : at;
    double first = c->i[0] == MICA_NEAREST ? floor(at) : floor(at) - 1.0;
    for (int k = 0; k < (c->i[0] == MICA_NEAREST ? 1 : 4); k++) {
        double place = first + k, weight = 1.0, shown = place;
        if (c->i[0] == MICA_LINEAR)
            weight = fmax(0.0, 1.0 - fabs(at - place));
        else if (c->i[0] == MICA_CUBIC)
            weight = keys(at - place);
        if (c->i[1] == MICA_OUTSIDE_BORDER)
            shown = fmin(fmax(place, 0.0), size - 1.0);
        else if (c->i[1] == MICA_OUTSIDE_REFLECTION)
            shown = fold(place, low, high);
        if (shown == (double)p)
            sum += weight;
    }
    return sum;
}

static double grid_value(const op_call *c, double *const *v, size_t i)
{
    int number = (int)c->i[3];
    const mica_tensor *x = &c->tensor[number], *grid = &c->tensor[number + 1];
    mica_tensor y = *x;
    mica_index out[MICA_MAX_RANK] = {0}, at[MICA_MAX_RANK], from[MICA_MAX_RANK];
    int axes = x->rank - 2;
    for (int k = 0; k < axes; k++)
        y.dim[2 + k] = grid->dim[1 + k];
    op_unravel(&y, i, out);
    at[0] = out[0];
    for (int k = 0; k < axes; k++)
        at[1 + k] = out[2 + k];
    at[1 + axes] = 0;
    const double *point = v[number + 1] + op_ravel(grid, at);
    size_t pixels = 1;
    for (int k = 0; k < axes; k++)
        pixels *= (size_t)x->dim[2 + k];
    double sum = 0.0;
    for (size_t p = 0; p < pixels; p++) {
        size_t place = (size_t)(out[0] * x->dim[1] + out[1]) * pixels + p;
        double weight = 1.0;
        op_unravel(x, place, from);
        for (int k = 0; k < axes; k++)
            weight *= grid_weight(c, point[axes - 1 - k], x->dim[2 + k], from[2 + k]);
        sum += weight * v[number][place];
    }
    return sum;
}

static void draw_grid_sample(op_call *c, test_random *r) { draw_grid(c, r, 0, 1); }

static void draw_grid_sample_backward(op_call *c, test_random *r)
{
    draw_grid(c, r, 2, 3);
    op_tensor(c, 0, MICA_F32, c->tensor[3].rank, c->tensor[3].dim);
    op_tensor(c, 1, MICA_F32, c->tensor[4].rank, c->tensor[4].dim);
    c->absent[0] = test_chance(r, 20);
    c->absent[1] = test_chance(r, 20);
}

static mica_status run_grid_sample(mica_context *ctx, const op_call *c)
{
    mica_grid_sample_opts o = grid_options(c);
    return mica_grid_sample(ctx, OP(c, 0), OP(c, 1), OP(c, 2), &o);
}
static mica_status run_grid_sample_backward(mica_context *ctx, const op_call *c)
{
    mica_grid_sample_opts o = grid_options(c);
    return mica_grid_sample_backward(ctx, OP(c, 0), OP(c, 1), OP(c, 2), OP(c, 3), OP(c, 4), &o);
}

static void reference_grid_sample(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = grid_value(c, v, i);
}
static void reference_grid_sample_backward(const op_call *c, double *const *v)
{
    slope s = {c, v, 2, grid_value};
    gradient_by(&s, 0, 3);
    gradient_by(&s, 1, 4);
}

OP_CASE(grid_sample) = {.names = {"dst", "x", "grid"},
                        .outs = 1,
                        .ins = 2,
                        .any_shape = OP_BIT(1),
                        .draw = draw_grid_sample,
                        .fill = fill_grid,
                        .run = run_grid_sample,
                        .reference = reference_grid_sample,
                        .tolerance = 2e-5};
OP_CASE(grid_sample_backward) = {.names = {"dx", "dgrid", "dy", "x", "grid"},
                                 .outs = 2,
                                 .ins = 3,
                                 .optional = OP_BIT(0) | OP_BIT(1),
                                 .any_shape = OP_BIT(3),
                                 .draws = 60,
                                 .draw = draw_grid_sample_backward,
                                 .fill = fill_grid,
                                 .run = run_grid_sample_backward,
                                 .reference = reference_grid_sample_backward,
                                 .tolerance = 1e-4};

/* ---- roi_align: i[0..1] size, i[2] samples, i[3] max, i[4] corner, i[5] number of x; f[0] scale ---- */

static mica_roi_align_opts roi_options(const op_call *c)
{
    return (mica_roi_align_opts){
        {c->i[0], c->i[1]}, (float)c->f[0], (int)c->i[2], c->i[3] != 0, c->i[4] != 0};
}

static void draw_rois(op_call *c, test_random *r, int y, int x)
{
    mica_index images = test_int(r, 1, 3),
               regions = c->large ? 60 : test_int(r, test_chance(r, 5) ? 0 : 1, 4);
    mica_index channels = c->large ? 20 : test_int(r, 1, 3), height = test_int(r, 1, 6),
               width = test_int(r, 1, 6);
    c->i[0] = test_int(r, 0, 4);
    c->i[1] = test_int(r, 0, 4);
    c->i[2] = test_int(r, 0, 3);
    c->i[3] = test_chance(r, 30);
    c->i[4] = test_chance(r, 50);
    c->i[5] = x;
    c->f[0] = test_chance(r, 50) ? 0.0 : 0.5;
    op_tensor(c, y, MICA_F32, 4,
              (mica_index[]){regions, channels, c->i[0] != 0 ? c->i[0] : 1, c->i[1] != 0 ? c->i[1] : 1});
    op_tensor(c, x, MICA_F32, 4, (mica_index[]){images, channels, height, width});
    op_tensor(c, x + 1, MICA_F32, 2, (mica_index[]){regions, 4});
    op_tensor(c, x + 2, test_chance(r, 50) ? MICA_I64 : MICA_I32, 1, &regions);
}

/* Corners are sixteenths, so that coordinates are exact; regions may be empty or upside down. */
static void fill_rois(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    int x = (int)c->i[5];
    for (size_t i = 0; i < count; i++) {
        if (tensor == x + 2)
            value[i] = test_int(r, 0, (int)c->tensor[x].dim[0] - 1);
        else
            value[i] = tensor == x + 1 ? test_int(r, i % 4 < 2 ? -32 : 16, i % 4 < 2 ? 48 : 128) / 16.0
                                       : test_normal(r);
    }
}

static double roi_value(const op_call *c, double *const *v, size_t i)
{
    int number = (int)c->i[5];
    const mica_tensor *x = &c->tensor[number];
    mica_index size[2] = {c->i[0] != 0 ? c->i[0] : 1, c->i[1] != 0 ? c->i[1] : 1}, samples[2];
    size_t cell = i % (size_t)(size[0] * size[1]), rest = i / (size_t)(size[0] * size[1]);
    size_t channel = rest % (size_t)x->dim[1], roi = rest / (size_t)x->dim[1];
    mica_index at[2] = {(mica_index)cell / size[1], (mica_index)cell % size[1]};
    double scale = c->f[0] != 0.0 ? c->f[0] : 1.0, sum = 0.0, best = (double)-INFINITY;
    float start[2], each[2]; /* coordinates as they are computed: some lie on the edge of the image */
    for (int k = 0; k < 2; k++) {
        const double *corner = v[number + 1] + 4 * roi;
        double extent = (corner[3 - k] - corner[1 - k]) * scale;
        start[k] = (float)(corner[1 - k] * scale - (c->i[4] ? 0.0 : 0.5));
        each[k] = (float)(c->i[4] ? fmax(extent, 1.0) : extent) / (float)size[k];
        samples[k] = c->i[2] > 0 ? c->i[2] : (mica_index)fmax(ceil((double)each[k]), 0.0);
    }
    for (mica_index s = 0; s < samples[0] * samples[1]; s++) {
        double corner[4] = {0.0, 0.0, 0.0, 0.0};
        mica_index low[2], high[2], which[2] = {s / samples[1], s % samples[1]};
        double part[2];
        bool inside = true;
        for (int k = 0; k < 2; k++) {
            double p = (double)(start[k] + (float)at[k] * each[k] +
                                ((float)which[k] + 0.5f) * each[k] / (float)samples[k]);
            mica_index n = x->dim[2 + k];
            inside = inside && p >= -1.0 && p <= (double)n;
            p = fmin(fmax(p, 0.0), (double)(n - 1));
            low[k] = (mica_index)p;
            high[k] = low[k] + 1 < n ? low[k] + 1 : low[k];
            part[k] = p - (double)low[k];
        }
        for (int k = 0; inside && k < 4; k++) {
            mica_index h = k < 2 ? low[0] : high[0], w = k % 2 == 0 ? low[1] : high[1];
            size_t place = ((size_t)v[number + 2][roi] * (size_t)x->dim[1] + channel) *
                           (size_t)(x->dim[2] * x->dim[3]);
            corner[k] = (k < 2 ? 1.0 - part[0] : part[0]) * (k % 2 == 0 ? 1.0 - part[1] : part[1]) *
                        v[number][place + (size_t)(h * x->dim[3] + w)];
        }
        for (int k = 0; k < 4; k++) {
            sum += corner[k];
            best = fmax(best, corner[k]);
        }
    }
    double count = (double)(samples[0] * samples[1]);
    return count == 0.0 ? 0.0 : c->i[3] ? best : sum / count;
}

static void draw_roi_align(op_call *c, test_random *r) { draw_rois(c, r, 0, 1); }
static void draw_roi_align_backward(op_call *c, test_random *r)
{
    draw_rois(c, r, 1, 2);
    op_tensor(c, 0, MICA_F32, 4, c->tensor[2].dim);
}

static mica_status run_roi_align(mica_context *ctx, const op_call *c)
{
    mica_roi_align_opts o = roi_options(c);
    return mica_roi_align(ctx, OP(c, 0), OP(c, 1), OP(c, 2), OP(c, 3), &o);
}
static mica_status run_roi_align_backward(mica_context *ctx, const op_call *c)
{
    mica_roi_align_opts o = roi_options(c);
    return mica_roi_align_backward(ctx, OP(c, 0), OP(c, 1), OP(c, 2), OP(c, 3), OP(c, 4), &o);
}

static void reference_roi_align(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = roi_value(c, v, i);
}
static void reference_roi_align_backward(const op_call *c, double *const *v)
{
    gradient_by(&(slope){c, v, 1, roi_value}, 0, 2);
}

OP_CASE(roi_align) = {.names = {"dst", "x", "rois", "image"},
                      .outs = 1,
                      .ins = 3,
                      .any_shape = OP_BIT(1),
                      .draw = draw_roi_align,
                      .fill = fill_rois,
                      .run = run_roi_align,
                      .reference = reference_roi_align,
                      .tolerance = 1e-5};
OP_CASE(roi_align_backward) = {.names = {"dx", "dy", "x", "rois", "image"},
                               .outs = 1,
                               .ins = 4,
                               .draws = 60,
                               .draw = draw_roi_align_backward,
                               .fill = fill_rois,
                               .run = run_roi_align_backward,
                               .reference = reference_roi_align_backward,
                               .tolerance = 1e-4};

/* ---- deform_columns: along each axis i[0] kernel, i[2] stride, i[4] pad, i[6] dilation; i[8] groups, i[9] number of
 * x; the offset and the mask follow ---- */

static mica_deform_opts deform_options(const op_call *c)
{
    return (mica_deform_opts){
        {c->i[0], c->i[1]}, {c->i[2], c->i[3]}, {c->i[4], c->i[5]}, {c->i[6], c->i[7]}, c->i[8]};
}

static void draw_deform(op_call *c, test_random *r, int y, int x)
{
    mica_index groups = test_int(r, 1, 2), image[4], offset[4], taps = 1;
    for (int k = 0; k < 2; k++) {
        c->i[k] = test_int(r, 0, 3);
        c->i[2 + k] = test_int(r, 0, 2);
        c->i[4 + k] = test_int(r, 0, 2);
        c->i[6 + k] = test_int(r, 0, 2);
        image[2 + k] = test_int(r, 1, 5);
        offset[2 + k] = c->large ? test_int(r, 20, 30) : test_int(r, 1, 4);
        taps *= c->i[k] != 0 ? c->i[k] : 1;
    }
    c->i[8] = groups == 1 && test_chance(r, 50) ? 0 : groups;
    c->i[9] = x;
    image[0] = offset[0] = test_int(r, test_chance(r, 5) ? 0 : 1, 2);
    image[1] = groups * test_int(r, 1, 3);
    offset[1] = groups * taps * 2;
    op_tensor(c, y, MICA_F32, 3, (mica_index[]){image[0], image[1] * taps, offset[2] * offset[3]});
    op_tensor(c, x, MICA_F32, 4, image);
    op_tensor(c, x + 1, MICA_F32, 4, offset);
    offset[1] /= 2;
    op_tensor(c, x + 2, MICA_F32, 4, offset);
    c->absent[x + 2] = test_chance(r, 40);
}

static double deform_value(const op_call *c, double *const *v, size_t i)
{
    int number = (int)c->i[9];
    const mica_tensor *x = &c->tensor[number], *offset = &c->tensor[number + 1];
    mica_index kernel[2] = {c->i[0] ? c->i[0] : 1, c->i[1] ? c->i[1] : 1}, taps = kernel[0] * kernel[1];
    mica_index width = offset->dim[3], points = offset->dim[2] * width, groups = c->i[8] ? c->i[8] : 1;
    mica_index point = (mica_index)i % points, row = (mica_index)i / points, tap = row % taps;
    mica_index channel = row / taps % x->dim[1], image = row / taps / x->dim[1];
    mica_index group = channel / (x->dim[1] / groups), moved = (image * groups + group) * taps + tap;
    mica_index place[2] = {point / width, point % width}, at[2] = {tap / kernel[1], tap % kernel[1]};
    double p[2], sum = 0.0;
    for (int k = 0; k < 2; k++)
        p[k] = (double)(place[k] * (c->i[2 + k] ? c->i[2 + k] : 1) - c->i[4 + k] +
                        at[k] * (c->i[6 + k] ? c->i[6 + k] : 1)) +
               v[number + 1][(moved * 2 + k) * points + point];
    for (mica_index h = 0; h < x->dim[2]; h++)
        for (mica_index w = 0; w < x->dim[3]; w++)
            sum += fmax(0.0, 1.0 - fabs(p[0] - (double)h)) * fmax(0.0, 1.0 - fabs(p[1] - (double)w)) *
                   v[number][((image * x->dim[1] + channel) * x->dim[2] + h) * x->dim[3] + w];
    return c->absent[number + 2] ? sum : sum * v[number + 2][moved * points + point];
}

static void draw_deform_columns(op_call *c, test_random *r) { draw_deform(c, r, 0, 1); }
static void draw_deform_columns_backward(op_call *c, test_random *r)
{
    draw_deform(c, r, 3, 4);
    for (int k = 0; k < 3; k++) {
        op_tensor(c, k, MICA_F32, 4, c->tensor[4 + k].dim);
        c->absent[k] = test_chance(r, 20) || c->absent[4 + k];
    }
}

static mica_status run_deform_columns(mica_context *ctx, const op_call *c)
{
    mica_deform_opts o = deform_options(c);
    return mica_deform_columns(ctx, OP(c, 0), OP(c, 1), OP(c, 2), OP(c, 3), &o);
}
static mica_status run_deform_columns_backward(mica_context *ctx, const op_call *c)
{
    mica_deform_opts o = deform_options(c);
    return mica_deform_columns_backward(ctx, OP(c, 0), OP(c, 1), OP(c, 2), OP(c, 3), OP(c, 4), OP(c, 5),
                                        OP(c, 6), &o);
}

static void reference_deform_columns(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = deform_value(c, v, i);
}
static void reference_deform_columns_backward(const op_call *c, double *const *v)
{
    slope s = {c, v, 3, deform_value};
    for (int k = 0; k < 3; k++)
        gradient_by(&s, k, 4 + k);
}

OP_CASE(deform_columns) = {.names = {"dst", "x", "offset", "mask"},
                           .outs = 1,
                           .ins = 3,
                           .optional = OP_BIT(3),
                           .any_shape = OP_BIT(1),
                           .draw = draw_deform_columns,
                           .run = run_deform_columns,
                           .reference = reference_deform_columns,
                           .tolerance = 1e-5};
OP_CASE(deform_columns_backward) = {.names = {"dx", "doffset", "dmask", "dy", "x", "offset", "mask"},
                                    .outs = 3,
                                    .ins = 4,
                                    .optional = OP_BIT(0) | OP_BIT(1) | OP_BIT(2) | OP_BIT(6),
                                    .any_shape = OP_BIT(4),
                                    .draws = 40,
                                    .draw = draw_deform_columns_backward,
                                    .run = run_deform_columns_backward,
                                    .reference = reference_deform_columns_backward,
                                    .tolerance = 1e-4};
