/* Pooling: fast operations where padding is even, in one and two dimensions; otherwise sums along one axis after
 * the other, or the largest of windows of any kind. */
#include <math.h>
#include <string.h>

#include "onnx/windows.h"

/* Whether max_pool2d and avg_pool2d take these windows: signals run as images of one row. */
static bool is_plain(const mica_onnx_windows *w)
{
    bool plain = w->axes <= 2 && mica_onnx_even_padding(w);
    for (int k = 0; plain && k < w->axes; k++)
        plain = w->before[k] <= (w->dilation[k] * (w->kernel[k] - 1) + 1) / 2;
    return plain;
}

/* Of one or two axes. */
static mica_pooling_opts plain_options(const mica_onnx_windows *w)
{
    mica_pooling_opts o = {.kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}, .ceil_mode = w->ceil_mode};
    for (int k = 0; k < w->axes; k++) {
        int at = 2 - w->axes + k;
        o.kernel[at] = w->kernel[k];
        o.stride[at] = w->stride[k];
        o.pad[at] = w->before[k];
        o.dilation[at] = w->dilation[k];
    }
    return o;
}

static bool read_pool(mica_onnx_importing *n, mica_onnx_windows *w, mica_onnx_ref x)
{
    mica_tensor shape = *mica_onnx_shape(n, x);
    if (!mica_onnx_read_windows(n, w, &shape, NULL))
        return false;
    mica_onnx_check_windows(n, x, w);
    for (int k = 0; k < w->axes; k++)
        if (w->out[k] < 1)
            return mica_onnx_bad(n, "a window of %td does not fit into dimension %d of size %td",
                                 w->kernel[k], 2 + k, w->size[k]) != 0;
    return true;
}

/* ---- Sums of windows ---- */

typedef enum weigh { WEIGH_ONE, WEIGH_INSIDE, WEIGH_PADDED } weigh;

/* How many taps of a window lie less than this far behind its start. */
static mica_index taps_before(const mica_onnx_windows *w, int k, mica_index distance)
{
    mica_index taps = distance > 0 ? (distance + w->dilation[k] - 1) / w->dilation[k] : 0;
    return taps < w->kernel[k] ? taps : w->kernel[k];
}

/* Along axis k of the windows, each element counts 1, or divided by those of its window that are inside the input,
 * or inside the padding. */
static mica_onnx_ref sum_axis(mica_onnx_importing *n, mica_onnx_ref x, const mica_onnx_windows *w, int k,
                              weigh how)
{
    mica_onnx_table t;
    if (!mica_onnx_table_make(n, &t, w->out[k], w->kernel[k] < w->size[k] ? w->kernel[k] : w->size[k]))
        return 0;
    for (mica_index i = 0; i < w->out[k]; i++) {
        mica_index start = i * w->stride[k] - w->before[k], step = w->dilation[k];
        mica_index first = start >= 0 ? 0 : (-start + step - 1) / step; /* taps first to end - 1 are inside */
        mica_index end = taps_before(w, k, w->size[k] - start),
                   padded = taps_before(w, k, w->size[k] + w->after[k] - start);
        double weight = how == WEIGH_ONE ? 1.0 : 1.0 / (double)(how == WEIGH_INSIDE ? end - first : padded);
        for (mica_index tap = first; tap < end; tap++)
            mica_onnx_table_put(&t, i, start + tap * step, weight);
    }
    return mica_onnx_sum_taps(n, x, 2 + k, &t);
}

static mica_onnx_ref sum_windows(mica_onnx_importing *n, mica_onnx_ref x, const mica_onnx_windows *w,
                                 weigh how)
{
    for (int k = 0; k < w->axes; k++)
        x = sum_axis(n, x, w, k, how);
    return x;
}

static void average_pool(mica_onnx_importing *n)
{
    mica_onnx_ref x = mica_onnx_f32(n, 0);
    mica_onnx_windows w;
    bool padded = mica_onnx_int(n, "count_include_pad", 0) != 0;
    if (!read_pool(n, &w, x))
        return;
    bool plain = is_plain(&w);
    for (int k = 0; k < w.axes; k++)
        plain = plain && w.dilation[k] == 1;
    if (!plain) {
        mica_onnx_ref y = sum_windows(n, x, &w, padded ? WEIGH_PADDED : WEIGH_INSIDE);
        mica_onnx_give_like(n, 0, y, n->in[0]);
        return;
    }
    mica_pooling_opts o = plain_options(&w);
    o.exclude_pad = !padded;
    if (w.axes == 1)
        o = (mica_pooling_opts){{o.kernel[1]}, {o.stride[1]}, {o.pad[1]}, {1}, o.ceil_mode, o.exclude_pad};
    mica_onnx_give_like(n, 0, mica_onnx_op1(n, w.axes == 1 ? "avg_pool1d" : "avg_pool2d", x, &o), n->in[0]);
}

/* |x|^p, and the root of a sum of such. */
static mica_onnx_ref to_power(mica_onnx_importing *n, mica_onnx_ref x, float p)
{
    if (p == 2.0f)
        return mica_onnx_op1(n, "square", x, NULL);
    x = mica_onnx_op1(n, "abs", x, NULL);
    return p == 1.0f ? x : mica_onnx_op1(n, "pow_scalar", x, &(mica_scalar_opts){p});
}

static mica_onnx_ref root(mica_onnx_importing *n, mica_onnx_ref x, float p)
{
    if (p == 2.0f)
        return mica_onnx_op1(n, "sqrt", x, NULL);
    return p == 1.0f ? x : mica_onnx_op1(n, "pow_scalar", x, &(mica_scalar_opts){1.0f / p});
}

static float read_power(mica_onnx_importing *n)
{
    int64_t p = mica_onnx_int(n, "p", 2);
    if (p < 1)
        (void)mica_onnx_bad(n, "p is %lld: expected 1 or more", (long long)p);
    return (float)p;
}

static void lp_pool(mica_onnx_importing *n)
{
    mica_onnx_ref x = mica_onnx_f32(n, 0);
    mica_onnx_windows w;
    float p = read_power(n);
    if (!read_pool(n, &w, x))
        return;
    mica_onnx_ref y = sum_windows(n, to_power(n, x, p), &w, WEIGH_ONE);
    mica_onnx_give_like(n, 0, root(n, y, p), n->in[0]);
}

/* ---- Maximum ---- */

/* Windows of any kind, and where each maximum lay. */
static mica_onnx_ref max_anywhere(mica_onnx_importing *n, mica_onnx_ref x, mica_onnx_windows *w, bool wanted)
{
    static const mica_index none[3];
    mica_index front[3] = {0}; /* what is cut off; behind, no window gets there */
    for (int k = 0; k < w->axes; k++) {
        front[k] = w->before[k] < 0 ? w->before[k] : 0;
        w->before[k] -= front[k];
        w->after[k] = w->after[k] > 0 ? w->after[k] : 0;
        if (wanted && front[k] < 0)
            return mica_onnx_unsupported(n, "Indices where auto_pad cuts off %td of dimension %d", -front[k],
                                         2 + k);
    }
    x = mica_onnx_pad(n, x, w->axes, front, none, 0.0);
    mica_max_pool_opts o = {.axes = w->axes, .ceil_mode = w->ceil_mode, .flat = wanted};
    o.column_major = mica_onnx_int(n, "storage_order", 0) != 0;
    memcpy(o.kernel, w->kernel, sizeof o.kernel);
    memcpy(o.stride, w->stride, sizeof o.stride);
    memcpy(o.before, w->before, sizeof o.before);
    memcpy(o.after, w->after, sizeof o.after);
    memcpy(o.dilation, w->dilation, sizeof o.dilation);
    return mica_onnx_op1(n, "max_pool", x, &o);
}

/* With padding of our own where it is uneven; with ceil_mode, as far as windows reach. */
static mica_onnx_ref max_padded(mica_onnx_importing *n, mica_onnx_ref x, mica_onnx_windows *w)
{
    mica_index before[3], after[3];
    memcpy(before, w->before, sizeof before);
    if (w->ceil_mode)
        mica_onnx_fix_strided(n, x, w, "ceil_mode with uneven padding depends on a size of the model");
    for (int k = 0; k < w->axes; k++) {
        mica_index reached = (w->out[k] - 1) * w->stride[k] + w->dilation[k] * (w->kernel[k] - 1) + 1;
        after[k] = w->ceil_mode ? reached - w->size[k] - before[k] : w->after[k];
        after[k] = after[k] > 0 ? after[k] : 0;
        w->before[k] = w->after[k] = 0;
    }
    w->ceil_mode = false;
    mica_pooling_opts o = plain_options(w);
    return mica_onnx_op1(n, "max_pool2d", mica_onnx_pad(n, x, w->axes, before, after, (double)-INFINITY), &o);
}

/* max_pool2d takes planes behind two other axes as they are, and signals [N, C, L]. */
static void max_pool(mica_onnx_importing *n)
{
    mica_onnx_ref x = n->in[0], y;
    mica_dtype dtype = mica_onnx_shape(n, x)->dtype;
    bool floats = dtype == MICA_F32 || dtype == MICA_F64 || dtype == MICA_F16 || dtype == MICA_BF16;
    if (!floats && dtype != MICA_I8 && dtype != MICA_U8 && dtype != MICA_I16) {
        (void)mica_onnx_unsupported(n, "input of %s: expected floats, or integers of 8 or 16 bits",
                                    mica_dtype_name(dtype));
        return;
    }
    x = mica_onnx_cast(n, x, MICA_F32); /* small integers are exact there */
    mica_onnx_windows w;
    bool wanted = mica_onnx_wants(n, 1);
    if (!read_pool(n, &w, x))
        return;
    if (wanted || w.axes == 3) {
        y = max_anywhere(n, x, &w, wanted);
        if (wanted)
            mica_onnx_give(n, 1, mica_onnx_result(n, y, 1));
    } else if (is_plain(&w)) {
        mica_pooling_opts o = plain_options(&w);
        y = mica_onnx_op1(n, "max_pool2d", x, &o);
    } else {
        y = max_padded(n, x, &w);
    }
    mica_onnx_give_like(n, 0, y, n->in[0]);
}

/* Indices count in a result of the size that the windows say; output_shape may want more or less of it. */
static void max_unpool(mica_onnx_importing *n)
{
    mica_onnx_ref x = mica_onnx_f32(n, 0);
    mica_tensor shape = *mica_onnx_shape(n, x);
    mica_onnx_windows w;
    if (!mica_onnx_read_windows(n, &w, &shape, NULL))
        return;
    mica_unpool_opts o = {.axes = w.axes};
    for (int k = 0; k < w.axes; k++) {
        o.size[k] = (w.size[k] - 1) * w.stride[k] - w.before[k] - w.after[k] + w.kernel[k];
        if (o.size[k] < 1) {
            (void)mica_onnx_bad(n, "dimension %d would have size %td", 2 + k, o.size[k]);
            return;
        }
    }
    mica_onnx_ref y = mica_onnx_op2(n, "max_unpool", x, n->in[1], &o);
    if (n->in[2] != 0) {
        int64_t wanted[MICA_MAX_RANK];
        mica_index front[MICA_MAX_RANK] = {0}, behind[MICA_MAX_RANK] = {0};
        int count = mica_onnx_known_ints(n, n->in[2], "output_shape", wanted, MICA_MAX_RANK);
        mica_tensor made = *mica_onnx_shape(n, y);
        if (n->failed || count != made.rank) {
            (void)mica_onnx_bad(n, "output_shape has %d sizes, expected %d", count, made.rank);
            return;
        }
        for (int k = 0; k < count; k++) {
            if (wanted[k] < 0 || wanted[k] > INT32_MAX) {
                (void)mica_onnx_bad(n, "output_shape is %lld in dimension %d", (long long)wanted[k], k);
                return;
            }
            behind[k] = (mica_index)wanted[k] - made.dim[k];
        }
        y = mica_onnx_pad_all(n, y, front, behind, 0.0);
    }
    mica_onnx_give_like(n, 0, y, n->in[0]);
}

/* ---- Whole planes ---- */

/* All axes behind the first two, which stay with size 1. */
static bool whole(mica_onnx_importing *n, mica_onnx_ref x, mica_reduction_opts *o)
{
    int rank = mica_onnx_shape(n, x)->rank;
    if (!n->failed && rank < 3)
        return mica_onnx_bad(n, "input of rank %d: expected 3 or more", rank) != 0;
    *o = (mica_reduction_opts){.count = rank - 2, .keep = true};
    for (int k = 2; k < rank; k++)
        o->axes[k - 2] = k;
    return !n->failed;
}

static void global_average_pool(mica_onnx_importing *n)
{
    mica_onnx_ref x = mica_onnx_f32(n, 0);
    mica_onnx_give_like(n, 0, mica_onnx_op1(n, "global_avg_pool", x, &(mica_global_pool_opts){.keep = true}),
                        n->in[0]);
}

static void global_max_pool(mica_onnx_importing *n)
{
    mica_onnx_ref x = mica_onnx_f32(n, 0);
    mica_reduction_opts o;
    if (whole(n, x, &o))
        mica_onnx_give_like(n, 0, mica_onnx_op1(n, "amax", x, &o), n->in[0]);
}

static void global_lp_pool(mica_onnx_importing *n)
{
    mica_onnx_ref x = mica_onnx_f32(n, 0);
    float p = read_power(n);
    mica_reduction_opts o;
    if (whole(n, x, &o))
        mica_onnx_give_like(n, 0, root(n, mica_onnx_op1(n, "sum", to_power(n, x, p), &o), p), n->in[0]);
}

const mica_onnx_operator mica_onnx_pooling_operators[] = {{"AveragePool", 1, average_pool},
                                                          {"LpPool", 2, lp_pool},
                                                          {"MaxPool", 1, max_pool},
                                                          {"MaxUnpool", 9, max_unpool},
                                                          {"GlobalAveragePool", 1, global_average_pool},
                                                          {"GlobalMaxPool", 1, global_max_pool},
                                                          {"GlobalLpPool", 2, global_lp_pool},
                                                          {NULL, 0, NULL}};
