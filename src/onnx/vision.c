/* Images: grids, regions, blocks of pixels, normalization over channels, boxes. */
#include <string.h>

#include "onnx/state.h"
#include "onnx/windows.h"

/* ---- Blocks of pixels ---- */

/* No product of sizes and blocks overflows: images without elements may be as large as one likes otherwise. */
static mica_index read_block(mica_onnx_importing *n, mica_tensor *x)
{
    *x = *mica_onnx_shape(n, n->in[0]);
    int64_t block = mica_onnx_int(n, "blocksize", 0);
    bool fits = block <= INT16_MAX;
    for (int k = 0; k < x->rank; k++)
        fits = fits && x->dim[k] <= INT32_MAX;
    if (!n->failed && (x->rank != 4 || block < 1))
        (void)mica_onnx_bad(n, "blocksize is %lld, input of rank %d: expected 1 or more, and images",
                            (long long)block, x->rank);
    else if (!n->failed && !fits)
        (void)mica_onnx_unsupported(n, "blocks of %lld in images %s", (long long)block, MICA_SHAPE(x));
    return n->failed ? 1 : (mica_index)block;
}

static void depth_to_space(mica_onnx_importing *n)
{
    mica_tensor x;
    mica_index b = read_block(n, &x), c = x.dim[1];
    const char *mode = mica_onnx_text(n, "mode", "DCR");
    bool crd = strcmp(mode, "CRD") == 0;
    if (!n->failed && ((!crd && strcmp(mode, "DCR") != 0) || c % (b * b) != 0))
        (void)mica_onnx_bad(n, "%td channels in blocks of %td x %td, mode %s", c, b, b, mode);
    if (n->failed)
        return;
    mica_index depth = c / (b * b);
    mica_index split[6] = {0, crd ? depth : b, b, crd ? b : depth, x.dim[2], x.dim[3]};
    split[0] = x.dim[0];
    mica_onnx_ref y = mica_onnx_reshape(n, n->in[0], 6, split);
    y = mica_onnx_permute(n, y, crd ? (const int[]){0, 1, 4, 2, 5, 3} : (const int[]){0, 3, 4, 1, 5, 2});
    mica_onnx_give(n, 0,
                   mica_onnx_reshape(n, y, 4, (mica_index[]){x.dim[0], depth, x.dim[2] * b, x.dim[3] * b}));
}

static void space_to_depth(mica_onnx_importing *n)
{
    mica_tensor x;
    mica_index b = read_block(n, &x);
    if (!n->failed && (x.dim[2] % b != 0 || x.dim[3] % b != 0))
        (void)mica_onnx_bad(n, "%td x %td pixels in blocks of %td x %td", x.dim[2], x.dim[3], b, b);
    if (n->failed)
        return;
    mica_index h = x.dim[2] / b, w = x.dim[3] / b;
    mica_onnx_ref y = mica_onnx_reshape(n, n->in[0], 6, (mica_index[]){x.dim[0], x.dim[1], h, b, w, b});
    y = mica_onnx_permute(n, y, (const int[]){0, 3, 5, 1, 2, 4});
    mica_onnx_give(n, 0, mica_onnx_reshape(n, y, 4, (mica_index[]){x.dim[0], x.dim[1] * b * b, h, w}));
}

/* ---- Grids ---- */

static void grid_sample(mica_onnx_importing *n)
{
    const char *mode = mica_onnx_text(n, "mode", n->opset < 20 ? "bilinear" : "linear");
    const char *outside = mica_onnx_text(n, "padding_mode", "zeros");
    mica_grid_sample_opts o = {.align_corners = mica_onnx_int(n, "align_corners", 0) != 0};
    if (strcmp(mode, "nearest") == 0)
        o.mode = MICA_NEAREST;
    else if (strcmp(mode, "cubic") == 0 || strcmp(mode, "bicubic") == 0)
        o.mode = MICA_CUBIC;
    else if (strcmp(mode, "linear") != 0 && strcmp(mode, "bilinear") != 0)
        (void)mica_onnx_bad(n, "mode is \"%s\": expected linear, nearest or cubic", mode);
    if (strcmp(outside, "border") == 0)
        o.outside = MICA_OUTSIDE_BORDER;
    else if (strcmp(outside, "reflection") == 0)
        o.outside = MICA_OUTSIDE_REFLECTION;
    else if (strcmp(outside, "zeros") != 0)
        (void)mica_onnx_bad(n, "padding_mode is \"%s\": expected zeros, border or reflection", outside);
    mica_onnx_ref y = mica_onnx_op2(n, "grid_sample", mica_onnx_f32(n, 0), mica_onnx_f32(n, 1), &o);
    mica_onnx_give_like(n, 0, y, n->in[0]);
}

/* The points of a grid of this size, from -1 to 1: [points, axes + 1], x first, then 1. */
static mica_onnx_ref plain_grid(mica_onnx_importing *n, const int64_t *size, int axes, bool align)
{
    mica_index points = 1;
    for (int k = 0; k < axes; k++)
        if (size[k] < 1 || size[k] > INT32_MAX ||
            __builtin_mul_overflow(points, (mica_index)size[k], &points) || points > INT32_MAX / 16)
            return mica_onnx_bad(n, "a grid of %lld points along an axis", (long long)size[k]);
    mica_onnx_table t; /* its weights serve as memory */
    if (!mica_onnx_table_make(n, &t, points, axes + 1))
        return 0;
    for (mica_index p = 0; p < points; p++) {
        mica_index rest = p;
        for (int k = axes - 1; k >= 0; k--) {
            mica_index at = rest % (mica_index)size[k];
            double all = (double)size[k];
            rest /= (mica_index)size[k];
            double place = align ? (size[k] > 1 ? 2.0 * (double)at / (all - 1.0) - 1.0 : -1.0)
                                 : (2.0 * (double)at + 1.0) / all - 1.0;
            t.weight[p * (axes + 1) + (axes - 1 - k)] = (float)place;
        }
        t.weight[p * (axes + 1) + axes] = 1.0f;
    }
    mica_tensor grid = {.data = t.weight, .rank = 2, .dim = {points, axes + 1}, .stride = {axes + 1, 1}};
    return mica_onnx_constant(n, &grid);
}

static void affine_grid(mica_onnx_importing *n)
{
    mica_onnx_ref theta = mica_onnx_f32(n, 0);
    mica_tensor shape = *mica_onnx_shape(n, theta);
    int64_t size[5];
    int axes = mica_onnx_known_ints(n, n->in[1], "size", size, 5) - 2;
    if (!n->failed && (axes < 2 || shape.rank != 3 || shape.dim[1] != axes || shape.dim[2] != axes + 1))
        (void)mica_onnx_bad(
            n, "theta of rank %d with a size of %d numbers: expected [N, 2, 3] and 4, or [N, 3, 4] and 5",
            shape.rank, axes + 2);
    if (n->failed)
        return;
    mica_onnx_ref grid = plain_grid(n, size + 2, axes, mica_onnx_int(n, "align_corners", 0) != 0);
    mica_onnx_ref y = mica_onnx_op2(n, "matmul", grid, theta, &(mica_matmul_opts){.transpose_b = true});
    mica_index dims[5] = {shape.dim[0]};
    for (int k = 0; k < axes; k++)
        dims[1 + k] = (mica_index)size[2 + k];
    dims[1 + axes] = axes;
    mica_onnx_give_like(n, 0, mica_onnx_reshape(n, y, 2 + axes, dims), n->in[0]);
}

/* ---- Regions ---- */

static void roi_align(mica_onnx_importing *n)
{
    const char *mode = mica_onnx_text(n, "mode", "avg");
    const char *from = mica_onnx_text(n, "coordinate_transformation_mode",
                                      n->opset < 16 ? "output_half_pixel" : "half_pixel");
    int64_t height = mica_onnx_int(n, "output_height", 1), width = mica_onnx_int(n, "output_width", 1);
    int64_t samples = mica_onnx_int(n, "sampling_ratio", 0);
    mica_roi_align_opts o = {.size = {(mica_index)height, (mica_index)width},
                             .scale = mica_onnx_float(n, "spatial_scale", 1.0f),
                             .samples = (int)samples,
                             .max = strcmp(mode, "max") == 0,
                             .corner = strcmp(from, "output_half_pixel") == 0};
    if ((!o.max && strcmp(mode, "avg") != 0) || (!o.corner && strcmp(from, "half_pixel") != 0))
        (void)mica_onnx_bad(n, "mode is \"%s\", coordinate_transformation_mode \"%s\"", mode, from);
    if (height < 1 || width < 1 || samples < 0 || samples > INT32_MAX || !(o.scale > 0.0f))
        (void)mica_onnx_bad(n, "an output of %lld x %lld by %lld samples at scale %g", (long long)height,
                            (long long)width, (long long)samples, (double)o.scale);
    mica_onnx_ref ins[3] = {mica_onnx_f32(n, 0), mica_onnx_f32(n, 1), n->in[2]};
    mica_onnx_give_like(n, 0, mica_onnx_op(n, "roi_align", ins, 3, &o), n->in[0]);
}

/* ---- Normalization over channels ---- */

/* y = x / (bias + alpha / size * the sum of squares of `size` channels around it)^beta */
static void lrn(mica_onnx_importing *n)
{
    mica_onnx_ref x = mica_onnx_f32(n, 0);
    mica_tensor shape = *mica_onnx_shape(n, x);
    int64_t size = mica_onnx_int(n, "size", 0);
    double alpha = (double)mica_onnx_float(n, "alpha", 1e-4f);
    float beta = mica_onnx_float(n, "beta", 0.75f), bias = mica_onnx_float(n, "bias", 1.0f);
    if (!n->failed && (size < 1 || size > INT32_MAX || shape.rank < 2))
        (void)mica_onnx_bad(n, "size is %lld, input of rank %d: expected 1 or more, and 2 or more",
                            (long long)size, shape.rank);
    mica_onnx_table t;
    mica_index channels = shape.dim[1], taps = (mica_index)size < channels ? (mica_index)size : channels;
    if (n->failed || !mica_onnx_table_make(n, &t, channels, taps))
        return;
    for (mica_index c = 0; c < channels; c++) {
        mica_index first = c - (mica_index)(size - 1) / 2, last = c + (mica_index)size / 2;
        for (mica_index at = first > 0 ? first : 0; at <= last && at < channels; at++)
            mica_onnx_table_put(&t, c, at, alpha / (double)size);
    }
    mica_onnx_ref sum = mica_onnx_sum_taps(n, mica_onnx_op1(n, "square", x, NULL), 1, &t);
    sum = mica_onnx_op1(n, "add_scalar", sum, &(mica_scalar_opts){bias});
    sum = mica_onnx_op1(n, "pow_scalar", sum, &(mica_scalar_opts){-beta});
    mica_onnx_give_like(n, 0, mica_onnx_op2(n, "mul", x, sum, NULL), n->in[0]);
}

/* ---- Cropping ---- */

static void center_crop_pad(mica_onnx_importing *n)
{
    mica_tensor x = *mica_onnx_shape(n, n->in[0]);
    int64_t shape[MICA_MAX_RANK], given[MICA_MAX_RANK];
    mica_index front[MICA_MAX_RANK] = {0}, behind[MICA_MAX_RANK] = {0};
    int count = mica_onnx_known_ints(n, n->in[1], "shape", shape, MICA_MAX_RANK);
    int axes = mica_onnx_int_list(n, "axes", given, MICA_MAX_RANK);
    if (n->failed)
        return;
    if (count != (axes >= 0 ? axes : x.rank)) {
        (void)mica_onnx_bad(n, "shape has %d sizes, expected %d", count, axes >= 0 ? axes : x.rank);
        return;
    }
    for (int i = 0; i < count; i++) {
        int k = axes >= 0 ? mica_onnx_axis(n, given[i], n->in[0]) : i;
        if (shape[i] < 0 || shape[i] > INT32_MAX) {
            (void)mica_onnx_bad(n, "size %lld of dimension %d", (long long)shape[i], k);
            return;
        }
        mica_index more = (mica_index)shape[i] - x.dim[k];
        front[k] = more / 2; /* rounded to 0: an odd element is behind */
        behind[k] = more - front[k];
    }
    mica_onnx_give(n, 0, mica_onnx_pad_all(n, n->in[0], front, behind, 0.0));
}

/* ---- Boxes ---- */

typedef struct boxes {
    const float *box, *score; /* [images, count, 4], [images, classes, count] */
    mica_index images, classes, count;
    bool centered;
    double most_overlap, least_score;
    bool scored; /* there is a least score */
} boxes;

typedef struct edges {
    float low[2], high[2];
} edges;

static edges edges_of(const boxes *b, mica_index image, mica_index i)
{
    const float *v = b->box + (image * b->count + i) * 4;
    edges e;
    for (int k = 0; k < 2; k++) {
        float first = b->centered ? v[k] - v[2 + k] / 2.0f : v[k],
              second = b->centered ? v[k] + v[2 + k] / 2.0f : v[2 + k];
        e.low[k] = first < second ? first : second;
        e.high[k] = first < second ? second : first;
    }
    return e;
}

static bool overlap(const boxes *b, mica_index image, mica_index i, mica_index j)
{
    edges p = edges_of(b, image, i), q = edges_of(b, image, j);
    float both = 1.0f, of_p = 1.0f, of_q = 1.0f;
    for (int k = 0; k < 2; k++) {
        float low = p.low[k] > q.low[k] ? p.low[k] : q.low[k],
              high = p.high[k] < q.high[k] ? p.high[k] : q.high[k];
        if (!(high > low))
            return false;
        both *= high - low;
        of_p *= p.high[k] - p.low[k];
        of_q *= q.high[k] - q.low[k];
    }
    return both > 0.0f && of_p > 0.0f && of_q > 0.0f &&
           (double)(both / (of_p + of_q - both)) > b->most_overlap;
}

/* The best box that is left (taken[i] is 0); of equal scores the first. -1: none. */
static mica_index best_of(const boxes *b, const float *score, const int32_t *taken)
{
    mica_index best = -1;
    for (mica_index i = 0; i < b->count; i++)
        if (taken[i] == 0 && (!b->scored || (double)score[i] > b->least_score) &&
            (best < 0 || score[i] > score[best]))
            best = i;
    return best;
}

/* Boxes of one class of one image, appended to `out`. Returns how many there are then. */
static mica_index select_boxes(const boxes *b, mica_index image, mica_index class, mica_index most,
                               int32_t *taken, int64_t *out, mica_index found)
{
    const float *score = b->score + (image * b->classes + class) * b->count;
    mica_index first = found;
    memset(taken, 0, (size_t)b->count * sizeof *taken);
    while (found - first < most) {
        mica_index i = best_of(b, score, taken);
        if (i < 0)
            break;
        taken[i] = 1;
        bool free = true;
        for (mica_index k = first; free && k < found; k++)
            free = !overlap(b, image, i, (mica_index)out[3 * k + 2]);
        if (!free)
            continue;
        out[3 * found] = image;
        out[3 * found + 1] = class;
        out[3 * found + 2] = i;
        found++;
    }
    return found;
}

/* How many boxes there are depends on the data: only where those are known. */
static void non_max_suppression(mica_onnx_importing *n)
{
    const mica_tensor *box = mica_onnx_known(n, n->in[0], "boxes"),
                      *score = mica_onnx_known(n, n->in[1], "scores");
    if (box == NULL || score == NULL)
        return;
    if (box->dtype != MICA_F32 || score->dtype != MICA_F32 || box->rank != 3 || score->rank != 3 ||
        box->dim[2] != 4 || box->dim[0] != score->dim[0] || box->dim[1] != score->dim[2]) {
        (void)mica_onnx_bad(n, "expected f32 boxes [N, boxes, 4] and scores [N, classes, boxes]");
        return;
    }
    boxes b = {.box = box->data,
               .score = score->data,
               .images = box->dim[0],
               .classes = score->dim[1],
               .count = box->dim[1],
               .centered = mica_onnx_int(n, "center_point_box", 0) != 0,
               .scored = n->in[4] != 0};
    double most = n->in[2] != 0 ? mica_onnx_known_number(n, n->in[2], "max_output_boxes_per_class") : 0.0;
    b.most_overlap = n->in[3] != 0 ? mica_onnx_known_number(n, n->in[3], "iou_threshold") : 0.0;
    b.least_score = n->in[4] != 0 ? mica_onnx_known_number(n, n->in[4], "score_threshold") : 0.0;
    mica_index limit = most > 0.0 ? (most < (double)b.count ? (mica_index)most : b.count) : 0;
    mica_index rows = b.images * b.classes * limit, found = 0;
    mica_onnx_table taken; /* its index serves as memory */
    if (n->failed || !mica_onnx_table_make(n, &taken, b.count, 1))
        return;
    int64_t *out = mica_onnx_memory(n->import->model, (size_t)(rows > 0 ? rows : 1) * 3 * sizeof *out);
    if (out == NULL) {
        n->import->status = n->import->ctx->status;
        n->failed = true;
        return;
    }
    for (mica_index image = 0; image < b.images && limit > 0; image++)
        for (mica_index class = 0; class < b.classes; class ++)
            found = select_boxes(&b, image, class, limit, taken.index, out, found);
    mica_tensor y = {.data = out, .dtype = MICA_I64, .rank = 2, .dim = {found, 3}, .stride = {3, 1}};
    mica_onnx_give(n, 0, mica_onnx_constant(n, &y));
}

const mica_onnx_operator mica_onnx_vision_operators[] = {{"DepthToSpace", 1, depth_to_space},
                                                         {"SpaceToDepth", 1, space_to_depth},
                                                         {"GridSample", 16, grid_sample},
                                                         {"AffineGrid", 20, affine_grid},
                                                         {"RoiAlign", 10, roi_align},
                                                         {"LRN", 1, lrn},
                                                         {"CenterCropPad", 18, center_crop_pad},
                                                         {"NonMaxSuppression", 10, non_max_suppression},
                                                         {NULL, 0, NULL}};
