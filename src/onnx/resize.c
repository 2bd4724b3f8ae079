/* Resizing: along one axis after the other, by a table of elements and weights that is made while the net is built. */
#include <math.h>
#include <string.h>

#include "onnx/windows.h"

#define MOST ((double)INT32_MAX)

typedef enum mapping {
    HALF_PIXEL,
    HALF_PIXEL_SYMMETRIC,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    TF_CROP_AND_RESIZE,
    MAPPINGS
} mapping;

static const char *const mapping_names[] = {"half_pixel",    "half_pixel_symmetric", "pytorch_half_pixel",
                                            "align_corners", "asymmetric",           "tf_crop_and_resize"};

typedef enum interpolation { NEAREST, LINEAR, CUBIC } interpolation;

typedef struct resizing {
    interpolation mode;
    mapping mapping;
    const char *nearest; /* "floor", ...; "simple": as before opset 11 */
    bool antialias, exclude_outside;
    double cubic, extrapolation;
    int rank;
    mica_index in[MICA_MAX_RANK], out[MICA_MAX_RANK];
    double scale[MICA_MAX_RANK];
    double start[MICA_MAX_RANK], end[MICA_MAX_RANK]; /* the region of interest, as a part of the axis */
} resizing;

/* ---- Coordinates ---- */

/* Where in the input element x of the result lies. */
static double source_of(const resizing *r, int k, mica_index x)
{
    double in = (double)r->in[k], scale = r->scale[k], out = scale * in, at = (double)x,
           range = r->end[k] - r->start[k];
    switch (r->mapping) {
    case ALIGN_CORNERS:
        return out == 1.0 ? 0.0 : at * (in - 1.0) / (out - 1.0);
    case ASYMMETRIC:
        return at / scale;
    case TF_CROP_AND_RESIZE:
        return r->start[k] * (in - 1.0) +
               (out == 1.0 ? range * (in - 1.0) / 2.0 : at * range * (in - 1.0) / (out - 1.0));
    case PYTORCH_HALF_PIXEL:
        return r->out[k] <= 1 ? 0.0 : (at + 0.5) / scale - 0.5;
    case HALF_PIXEL_SYMMETRIC:
        return in / 2.0 * (1.0 - (double)r->out[k] / out) + (at + 0.5) / scale - 0.5;
    case HALF_PIXEL:
    case MAPPINGS:
        break;
    }
    return (at + 0.5) / scale - 0.5;
}

static bool is_outside(const resizing *r, int k, double at)
{
    return r->mapping == TF_CROP_AND_RESIZE && (at < 0.0 || at > (double)r->in[k] - 1.0);
}

static mica_index clamp(double at, mica_index size)
{
    return at > 0.0 ? (at < (double)(size - 1) ? (mica_index)at : size - 1) : 0;
}

static mica_index nearest_of(const resizing *r, int k, double at)
{
    double i;
    if (strcmp(r->nearest, "floor") == 0)
        i = floor(at);
    else if (strcmp(r->nearest, "ceil") == 0)
        i = ceil(at);
    else if (strcmp(r->nearest, "round_prefer_ceil") == 0)
        i = floor(at + 0.5);
    else if (strcmp(r->nearest, "simple") == 0)
        i = r->scale[k] < 1.0 ? ceil(at) : floor(at);
    else
        i = ceil(at - 0.5);
    return clamp(i, r->in[k]);
}

/* The weight of an element at this distance, in elements (of the result's, where it is smaller and antialias is
 * set). */
static double weight_of(const resizing *r, double distance)
{
    double d = fabs(distance), a = r->cubic;
    if (r->mode == LINEAR)
        return d < 1.0 ? 1.0 - d : 0.0;
    if (d <= 1.0)
        return ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0;
    return d < 2.0 ? ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a : 0.0;
}

/* ---- An axis ---- */

/* Row x: elements first + 1 - reach to first + reach, where first is the one in front of its coordinate. */
static void fill_row(const resizing *r, int k, const mica_onnx_table *t, mica_index x, double shrink,
                     mica_index reach)
{
    double at = source_of(r, k, x), first = ceil(at) - 1.0, sum = 0.0;
    if (!(at > -MOST && at < MOST))
        at = first = 0.0;
    for (mica_index i = 1 - reach; i <= reach; i++) {
        double place = first + (double)i, weight = weight_of(r, (place - at) * shrink);
        bool outside = place < 0.0 || place > (double)r->in[k] - 1.0;
        if (outside && r->exclude_outside)
            continue;
        sum += weight;
        t->index[x * t->taps + i + reach - 1] = (int32_t)clamp(place, r->in[k]);
        t->weight[x * t->taps + i + reach - 1] = (float)weight;
    }
    bool divide = (r->antialias || r->exclude_outside) && sum != 0.0;
    for (mica_index i = 0; divide && i < t->taps; i++)
        t->weight[x * t->taps + i] = (float)((double)t->weight[x * t->taps + i] / sum);
}

static mica_onnx_ref interpolate(mica_onnx_importing *n, mica_onnx_ref x, const resizing *r, int k)
{
    double shrink = r->antialias && r->scale[k] < 1.0 ? r->scale[k] : 1.0,
           width = r->mode == CUBIC ? 2.0 : 1.0;
    double reach = -floor(-width / shrink); /* ceil, as the standard writes it */
    mica_onnx_table t;
    if (reach > MOST || !mica_onnx_table_make(n, &t, r->out[k], 2 * (mica_index)reach))
        return reach > MOST ? mica_onnx_unsupported(n, "a scale of %g", r->scale[k]) : 0;
    for (mica_index i = 0; i < r->out[k]; i++)
        fill_row(r, k, &t, i, shrink, (mica_index)reach);
    return mica_onnx_sum_taps(n, x, k, &t);
}

/* Any dtype: elements are only moved. */
static mica_onnx_ref pick(mica_onnx_importing *n, mica_onnx_ref x, const resizing *r, int k)
{
    mica_onnx_table t;
    if (!mica_onnx_table_make(n, &t, r->out[k], 1))
        return 0;
    mica_onnx_doubt_axis(n, x, k);
    for (mica_index i = 0; i < r->out[k]; i++)
        t.index[i] = (int32_t)nearest_of(r, k, source_of(r, k, i));
    mica_tensor index = {.data = t.index, .dtype = MICA_I32, .rank = 1, .dim = {t.out}, .stride = {1}};
    return mica_onnx_op2(n, "take", x, mica_onnx_constant(n, &index), &(mica_axis_opts){k});
}

/* Whether element i of the result is element i of the input. */
static bool stays(const resizing *r, int k)
{
    bool same = r->in[k] == r->out[k];
    for (mica_index i = 0; same && i < r->out[k]; i++)
        same = source_of(r, k, i) == (double)i;
    return same;
}

/* Where the coordinate along an axis is outside of the region, the result is the extrapolation value. */
static mica_onnx_ref extrapolate(mica_onnx_importing *n, mica_onnx_ref x, const resizing *r, int k)
{
    mica_onnx_table t;
    bool any = false;
    if (!mica_onnx_table_make(n, &t, r->out[k], 1))
        return 0;
    for (mica_index i = 0; i < r->out[k]; i++) {
        bool outside = is_outside(r, k, source_of(r, k, i));
        t.weight[i] = outside ? 0.0f : 1.0f;
        any = any || outside;
    }
    if (!any)
        return x;
    mica_tensor inside = {.data = t.weight, .dtype = MICA_F32, .rank = r->rank};
    for (int d = 0; d < r->rank; d++) {
        inside.dim[d] = d == k ? r->out[k] : 1;
        inside.stride[d] = d < k ? r->out[k] : 1;
    }
    mica_onnx_ref value = mica_onnx_scalar(n, mica_onnx_shape(n, x)->dtype, r->extrapolation);
    return mica_onnx_op(n, "where", (mica_onnx_ref[]){mica_onnx_constant(n, &inside), x, value}, 3, NULL);
}

static void resize(mica_onnx_importing *n, const resizing *r)
{
    mica_onnx_ref x = n->in[0];
    mica_dtype dtype = mica_onnx_shape(n, x)->dtype;
    if (r->mode != NEAREST) {
        x = mica_onnx_f32(n, 0);
        if (!n->failed && mica_onnx_shape(n, x)->dtype != MICA_F32) {
            (void)mica_onnx_unsupported(n, "%s between elements: expected floats, or mode nearest",
                                        mica_dtype_name(dtype));
            return;
        }
    }
    for (int k = 0; k < r->rank && !n->failed; k++)
        if (r->in[k] < 1 || r->out[k] < 0)
            (void)mica_onnx_bad(n, "dimension %d of size %td cannot be resized to %td", k, r->in[k],
                                r->out[k]);
    for (int k = 0; k < r->rank && !n->failed; k++)
        if (!stays(r, k))
            x = r->mode == NEAREST ? pick(n, x, r, k) : interpolate(n, x, r, k);
    for (int k = 0; k < r->rank && !n->failed && r->mapping == TF_CROP_AND_RESIZE; k++)
        x = extrapolate(n, x, r, k);
    mica_onnx_give_like(n, 0, x, n->in[0]);
}

/* ---- Attributes and inputs ---- */

static bool begin(mica_onnx_importing *n, resizing *r)
{
    mica_tensor x = *mica_onnx_shape(n, n->in[0]);
    const char *mode = mica_onnx_text(n, "mode", "nearest");
    *r = (resizing){.mapping = ASYMMETRIC, .nearest = "simple", .rank = x.rank};
    for (int k = 0; k < x.rank; k++) {
        r->in[k] = r->out[k] = x.dim[k];
        r->scale[k] = r->end[k] = 1.0;
    }
    r->mode = strcmp(mode, "nearest") == 0 ? NEAREST : strcmp(mode, "cubic") == 0 ? CUBIC : LINEAR;
    if (r->mode == LINEAR && strcmp(mode, "linear") != 0 && strcmp(mode, "bilinear") != 0)
        return mica_onnx_bad(n, "mode is \"%s\": expected nearest, linear or cubic", mode) != 0;
    return !n->failed;
}

/* Numbers of an input that is not known to be absent or empty; -1 after an error. */
static int read_floats(mica_onnx_importing *n, mica_onnx_ref ref, const char *what, double *out, int most)
{
    if (ref == 0)
        return 0;
    ref = mica_onnx_cast(n, ref, MICA_F32);
    const mica_tensor *t = mica_onnx_known(n, ref, what);
    if (t == NULL)
        return -1;
    size_t count = mica_tensor_count(t);
    if (count > (size_t)most) {
        (void)mica_onnx_bad(n, "%s has %zu numbers, expected at most %d", what, count, most);
        return -1;
    }
    for (size_t i = 0; i < count; i++)
        out[i] = (double)((const float *)t->data)[i];
    return (int)count;
}

/* Sizes are multiplied in single precision, as everywhere. */
static bool set_scale(mica_onnx_importing *n, resizing *r, int k, double scale)
{
    double out = (double)floorf((float)r->in[k] * (float)scale);
    if (!(scale > 0.0) || !(out < MOST))
        return mica_onnx_bad(n, "scale %g of dimension %d", scale, k) != 0;
    r->scale[k] = scale;
    r->out[k] = (mica_index)out;
    return true;
}

static bool set_scales(mica_onnx_importing *n, resizing *r, const double *scales, int count, const int *axes,
                       int wanted)
{
    if (count != wanted)
        return mica_onnx_bad(n, "%d scales, expected %d", count, wanted) != 0;
    for (int i = 0; i < count; i++)
        if (!set_scale(n, r, axes[i], scales[i]))
            return false;
    return true;
}

/* Sizes; with a policy, one scale for all axes. */
static bool set_sizes(mica_onnx_importing *n, resizing *r, mica_onnx_ref ref, const int *axes, int wanted)
{
    int64_t sizes[MICA_MAX_RANK];
    const char *policy = mica_onnx_text(n, "keep_aspect_ratio_policy", "stretch");
    int count = mica_onnx_known_ints(n, ref, "sizes", sizes, MICA_MAX_RANK);
    if (n->failed)
        return false;
    if (count != wanted)
        return mica_onnx_bad(n, "%d sizes, expected %d", count, wanted) != 0;
    bool larger = strcmp(policy, "not_smaller") == 0;
    if (strcmp(policy, "stretch") != 0 && strcmp(policy, "not_larger") != 0 && !larger)
        return mica_onnx_bad(n, "keep_aspect_ratio_policy is \"%s\"", policy) != 0;
    double common = 0.0;
    for (int i = 0; i < count; i++) {
        int k = axes[i];
        if (sizes[i] < 1 || (double)sizes[i] > MOST || r->in[k] < 1)
            return mica_onnx_bad(n, "size %lld of dimension %d of size %td", (long long)sizes[i], k,
                                 r->in[k]) != 0;
        r->out[k] = (mica_index)sizes[i];
        r->scale[k] = (double)sizes[i] / (double)r->in[k];
        if (i == 0 || (larger ? r->scale[k] > common : r->scale[k] < common))
            common = r->scale[k];
    }
    for (int i = 0; i < count && strcmp(policy, "stretch") != 0; i++) {
        r->scale[axes[i]] = common;
        r->out[axes[i]] = (mica_index)(common * (double)r->in[axes[i]] + 0.5);
    }
    return true;
}

static bool read_roi(mica_onnx_importing *n, resizing *r, const int *axes, int wanted)
{
    double roi[2 * MICA_MAX_RANK];
    if (r->mapping != TF_CROP_AND_RESIZE)
        return true;
    int count = read_floats(n, n->in[1], "roi", roi, 2 * MICA_MAX_RANK);
    if (n->failed)
        return false;
    if (count != 2 * wanted)
        return mica_onnx_bad(n, "roi has %d numbers, expected %d", count, 2 * wanted) != 0;
    for (int i = 0; i < wanted; i++) {
        r->start[axes[i]] = roi[i];
        r->end[axes[i]] = roi[wanted + i];
    }
    return true;
}

static bool read_attributes(mica_onnx_importing *n, resizing *r)
{
    const char *name = mica_onnx_text(n, "coordinate_transformation_mode", "half_pixel");
    r->nearest = mica_onnx_text(n, "nearest_mode", "round_prefer_floor");
    r->cubic = (double)mica_onnx_float(n, "cubic_coeff_a", -0.75f);
    r->extrapolation = (double)mica_onnx_float(n, "extrapolation_value", 0.0f);
    r->antialias = mica_onnx_int(n, "antialias", 0) != 0;
    r->exclude_outside = mica_onnx_int(n, "exclude_outside", 0) != 0;
    int mapped = 0;
    while (mapped < MAPPINGS && strcmp(mapping_names[mapped], name) != 0)
        mapped++;
    if (mapped == MAPPINGS)
        return mica_onnx_unsupported(n, "coordinate_transformation_mode \"%s\"", name) != 0;
    r->mapping = (mapping)mapped;
    return !n->failed;
}

/* Resize from opset 11 on: X, roi, scales, sizes. */
static void resize11(mica_onnx_importing *n)
{
    resizing r;
    int axes[MICA_MAX_RANK];
    int64_t given[MICA_MAX_RANK];
    double scales[MICA_MAX_RANK];
    if (!begin(n, &r) || !read_attributes(n, &r))
        return;
    int count = mica_onnx_int_list(n, "axes", given, MICA_MAX_RANK), wanted = count >= 0 ? count : r.rank;
    for (int i = 0; i < wanted; i++)
        axes[i] = count >= 0 ? mica_onnx_axis(n, given[i], n->in[0]) : i;
    int found = read_floats(n, n->in[2], "scales", scales, MICA_MAX_RANK);
    if (n->failed || !read_roi(n, &r, axes, wanted))
        return;
    if (found > 0 ? set_scales(n, &r, scales, found, axes, wanted) : set_sizes(n, &r, n->in[3], axes, wanted))
        resize(n, &r);
}

/* Resize of opset 10, and Upsample: X, scales; or scales as an attribute. */
static void resize10(mica_onnx_importing *n)
{
    static const int all[MICA_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    resizing r;
    double scales[MICA_MAX_RANK];
    float given[MICA_MAX_RANK];
    if (!begin(n, &r))
        return;
    int count = mica_onnx_float_list(n, "scales", given, MICA_MAX_RANK);
    for (int i = 0; i < count; i++)
        scales[i] = (double)given[i];
    if (count < 0)
        count = read_floats(n, n->in[1], "scales", scales, MICA_MAX_RANK);
    if (!n->failed && set_scales(n, &r, scales, count, all, r.rank))
        resize(n, &r);
}

const mica_onnx_operator mica_onnx_resize_operators[] = {
    {"Resize", 10, resize10}, {"Resize", 11, resize11}, {"Upsample", 7, resize10}, {NULL, 0, NULL}};
