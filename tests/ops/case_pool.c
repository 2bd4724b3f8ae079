/* Cases of pooling. */
#include "ops/op_case.h"

#include <math.h>

/* Options, for height and width: i[0..1] kernel, i[2..3] stride, i[4..5] pad, i[6..7] dilation, i[8] ceil
 * mode, i[9] exclude pad, i[10] the number of pooled axes. One-dimensional pooling has a height of 1. */
enum { KERNEL = 0, STRIDE = 2, PAD = 4, DILATION = 6, CEIL = 8, EXCLUDE = 9, AXES = 10 };

static mica_pooling_opts options(const op_call *c)
{
    mica_pooling_opts o = {.ceil_mode = c->i[CEIL] != 0, .exclude_pad = c->i[EXCLUDE] != 0};
    int first = 2 - (int)c->i[AXES];
    for (int k = first; k < 2; k++) {
        o.kernel[k - first] = c->i[KERNEL + k];
        o.stride[k - first] = c->i[STRIDE + k];
        o.pad[k - first] = c->i[PAD + k];
        o.dilation[k - first] = c->i[DILATION + k];
    }
    return o;
}

/* Draws options along one axis and a size that they fit; returns the output's size. */
static mica_index draw_axis(op_call *c, test_random *r, int k, bool dilate, mica_index *size)
{
    long kernel = test_int(r, 1, 4), dilation = dilate && test_chance(r, 30) ? test_int(r, 1, 3) : 1;
    long extent = (kernel - 1) * dilation + 1,
         pad = test_chance(r, 50) ? test_int(r, 0, (int)(extent / 2)) : 0;
    long stride = test_chance(r, 40) ? kernel : test_int(r, 1, 3);
    if (test_chance(r, 35)) { /* the fast path */
        kernel = stride = extent = 2;
        pad = 0;
        dilation = 1;
    }
    *size = c->large ? test_int(r, 30, 40) : test_int(r, 1, 12) + extent;
    if (!c->large && test_chance(r, 15))
        *size += 30;
    c->i[KERNEL + k] = kernel;
    c->i[STRIDE + k] = test_chance(r, 50) && stride == kernel ? 0 : stride;
    c->i[PAD + k] = pad;
    c->i[DILATION + k] = dilation == 1 && test_chance(r, 50) ? 0 : dilation;
    if (c->i[CEIL] != 0 && test_chance(r, 20)) { /* one window, larger than all there is */
        *size = extent - 2 * pad - test_int(r, 0, (int)stride - 1);
        *size = *size < 1 ? 1 : *size;
    }
    long room = *size + 2 * pad - extent, out = room / stride + 1;
    if (c->i[CEIL] != 0) {
        out = (room + stride - 1) / stride + 1;
        if ((out - 1) * stride >= *size + pad)
            out--;
    }
    return out;
}

/* Shapes of a pooling of the last `axes` axes; returns the rank. */
static int draw_shapes(op_call *c, test_random *r, int axes, bool dilate, mica_index *in, mica_index *out)
{
    int rank = axes + test_int(r, c->large ? 1 : 0, 2);
    c->i[AXES] = axes;
    c->i[CEIL] = test_chance(r, 30);
    c->i[EXCLUDE] = test_chance(r, 40);
    for (int i = 0; i < rank - axes; i++)
        in[i] = out[i] = c->large ? test_int(r, 10, 40) : test_chance(r, 4) ? 0 : test_int(r, 1, 3);
    c->i[KERNEL] = c->i[STRIDE] = c->i[DILATION] = 1;
    c->i[PAD] = 0;
    for (int k = 2 - axes; k < 2; k++)
        out[rank - 2 + k] = draw_axis(c, r, k, dilate, &in[rank - 2 + k]);
    return rank;
}

/* Planes, and how pixels lie in them. */
typedef struct planes {
    size_t count;
    long in[2], out[2];
} planes;

static planes planes_of(const op_call *c, const mica_tensor *x, const mica_tensor *y)
{
    int axes = (int)c->i[AXES];
    planes p = {1, {1, 1}, {1, 1}};
    for (int i = 0; i < x->rank - axes; i++)
        p.count *= (size_t)x->dim[i];
    for (int k = 2 - axes; k < 2; k++) {
        p.in[k] = x->dim[x->rank - 2 + k];
        p.out[k] = y->dim[y->rank - 2 + k];
    }
    return p;
}

/* ---- Maximum ---- */

static void draw_max(op_call *c, test_random *r, int axes)
{
    mica_index in[MICA_MAX_RANK], out[MICA_MAX_RANK];
    int rank = draw_shapes(c, r, axes, true, in, out);
    op_tensor(c, 0, MICA_F32, rank, out);
    op_tensor(c, 1, MICA_I32, rank, out);
    op_tensor(c, 2, MICA_F32, rank, in);
    c->absent[1] = test_chance(r, 30);
}
static void draw_max2d(op_call *c, test_random *r) { draw_max(c, r, 2); }
static void draw_max1d(op_call *c, test_random *r) { draw_max(c, r, 1); }

/* Ties, infinities and NaN. */
static void fill_max(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    (void)c;
    (void)tensor;
    bool coarse = test_chance(r, 50), strange = test_chance(r, 20);
    for (size_t i = 0; i < count; i++) {
        value[i] = coarse ? test_int(r, -2, 2) : test_normal(r);
        if (strange && test_chance(r, 10))
            value[i] = test_chance(r, 50) ? (double)NAN : (double)-INFINITY;
    }
}

static mica_status run_max2d(mica_context *ctx, const op_call *c)
{
    mica_pooling_opts o = options(c);
    return mica_max_pool2d(ctx, OP(c, 0), OP(c, 1), OP(c, 2), &o);
}
static mica_status run_max1d(mica_context *ctx, const op_call *c)
{
    mica_pooling_opts o = options(c);
    return mica_max_pool1d(ctx, OP(c, 0), OP(c, 1), OP(c, 2), &o);
}

static long or_one(long value, long otherwise) { return value != 0 ? value : otherwise; }

static void max_window(const op_call *c, const planes *p, const double *x, long oy, long ox, double *best,
                       double *at)
{
    *best = (double)-INFINITY;
    *at = -1.0;
    for (long ky = 0; ky < c->i[KERNEL]; ky++) {
        for (long kx = 0; kx < c->i[KERNEL + 1]; kx++) {
            long y = oy * or_one(c->i[STRIDE], c->i[KERNEL]) - c->i[PAD] + ky * or_one(c->i[DILATION], 1);
            long z = ox * or_one(c->i[STRIDE + 1], c->i[KERNEL + 1]) - c->i[PAD + 1] +
                     kx * or_one(c->i[DILATION + 1], 1);
            if (y < 0 || y >= p->in[0] || z < 0 || z >= p->in[1])
                continue;
            double value = x[y * p->in[1] + z];
            if (*at < 0.0 || value > *best || isnan(value)) {
                *best = value;
                *at = (double)(y * p->in[1] + z);
            }
        }
    }
}

static void reference_max(const op_call *c, double *const *v)
{
    planes p = planes_of(c, &c->tensor[2], &c->tensor[0]);
    size_t i = 0;
    for (size_t plane = 0; plane < p.count; plane++) {
        for (long oy = 0; oy < p.out[0]; oy++) {
            for (long ox = 0; ox < p.out[1]; ox++, i++) {
                double at;
                max_window(c, &p, v[2] + (long)plane * p.in[0] * p.in[1], oy, ox, &v[0][i], &at);
                if (!c->absent[1])
                    v[1][i] = at;
            }
        }
    }
}

#define MAX_CASE(op, axes)                         \
    OP_CASE(op) = {.names = {"y", "indices", "x"}, \
                   .outs = 2,                      \
                   .ins = 1,                       \
                   .optional = OP_BIT(1),          \
                   .any_shape = OP_BIT(2),         \
                   .draws = 400,                   \
                   .draw = draw_max##axes,         \
                   .fill = fill_max,               \
                   .run = run_max##axes,           \
                   .reference = reference_max,     \
                   .tolerance = 1e-7}
MAX_CASE(max_pool2d, 2d);
MAX_CASE(max_pool1d, 1d);

static void draw_max_backward(op_call *c, test_random *r, int axes)
{
    mica_index in[MICA_MAX_RANK], out[MICA_MAX_RANK];
    int rank = draw_shapes(c, r, axes, true, in, out);
    op_tensor(c, 0, MICA_F32, rank, in);
    op_tensor(c, 1, MICA_F32, rank, out);
    op_tensor(c, 2, MICA_I32, rank, out);
}
static void draw_max2d_backward(op_call *c, test_random *r) { draw_max_backward(c, r, 2); }
static void draw_max1d_backward(op_call *c, test_random *r) { draw_max_backward(c, r, 1); }

static void fill_max_backward(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    planes p = planes_of(c, &c->tensor[0], &c->tensor[1]);
    for (size_t i = 0; i < count; i++)
        value[i] = tensor == 2 ? test_int(r, -1, (int)(p.in[0] * p.in[1]) - 1) : test_normal(r);
}

static mica_status run_max2d_backward(mica_context *ctx, const op_call *c)
{
    return mica_max_pool2d_backward(ctx, OP(c, 0), OP(c, 1), OP(c, 2));
}
static mica_status run_max1d_backward(mica_context *ctx, const op_call *c)
{
    return mica_max_pool1d_backward(ctx, OP(c, 0), OP(c, 1), OP(c, 2));
}

static void reference_max_backward(const op_call *c, double *const *v)
{
    planes p = planes_of(c, &c->tensor[0], &c->tensor[1]);
    size_t in = (size_t)(p.in[0] * p.in[1]), out = (size_t)(p.out[0] * p.out[1]);
    for (size_t i = 0; i < p.count * in; i++)
        v[0][i] = 0.0;
    for (size_t i = 0; i < p.count * out; i++)
        if (v[2][i] >= 0.0)
            v[0][i / out * in + (size_t)v[2][i]] += v[1][i];
}

#define MAX_BACKWARD_CASE(op, axes)                     \
    OP_CASE(op) = {.names = {"dx", "dy", "indices"},    \
                   .outs = 1,                           \
                   .ins = 2,                            \
                   .any_shape = OP_BIT(0),              \
                   .draw = draw_max##axes##_backward,   \
                   .fill = fill_max_backward,           \
                   .run = run_max##axes##_backward,     \
                   .reference = reference_max_backward, \
                   .tolerance = 1e-6}
MAX_BACKWARD_CASE(max_pool2d_backward, 2d);
MAX_BACKWARD_CASE(max_pool1d_backward, 1d);

/* ---- Averages: y = W x, and dx = W' dy, with W[window][pixel] the share of a pixel in a window ---- */

/* The pixels begin to end of window `at` along an axis, and what it divides by. */
typedef struct window {
    long begin, end, divisor;
} window;

typedef window window_fn(const op_call *c, const planes *p, int axis, long at);

static window average_window(const op_call *c, const planes *p, int k, long at)
{
    long start = at * or_one(c->i[STRIDE + k], c->i[KERNEL + k]) - c->i[PAD + k];
    long end = start + c->i[KERNEL + k], padded = p->in[k] + c->i[PAD + k];
    window w = {start < 0 ? 0 : start, end < p->in[k] ? end : p->in[k],
                (end < padded ? end : padded) - start};
    if (c->i[EXCLUDE] != 0)
        w.divisor = w.end - w.begin;
    return w;
}

static window adaptive_window(const op_call *c, const planes *p, int k, long at)
{
    (void)c;
    long begin = (long)floor((double)(at * p->in[k]) / (double)p->out[k]);
    long end = (long)ceil((double)((at + 1) * p->in[k]) / (double)p->out[k]);
    return (window){begin, end, end - begin};
}

/* Forward: y from x. Backward: x from y. */
static void spread(const op_call *c, const planes *p, window_fn *fn, double *x, double *y, bool backward)
{
    for (long i = 0; backward && i < (long)p->count * p->in[0] * p->in[1]; i++)
        x[i] = 0.0;
    for (size_t plane = 0; plane < p->count; plane++, x += p->in[0] * p->in[1]) {
        for (long oy = 0; oy < p->out[0]; oy++) {
            for (long ox = 0; ox < p->out[1]; ox++, y++) {
                window a = fn(c, p, 0, oy), b = fn(c, p, 1, ox);
                double sum = 0.0, area = (double)(a.divisor * b.divisor);
                for (long iy = a.begin; iy < a.end; iy++)
                    for (long ix = b.begin; ix < b.end; ix++) {
                        sum += x[iy * p->in[1] + ix];
                        if (backward)
                            x[iy * p->in[1] + ix] += *y / area;
                    }
                if (!backward)
                    *y = sum / area;
            }
        }
    }
}

static void draw_average(op_call *c, test_random *r, int axes, bool backward)
{
    mica_index in[MICA_MAX_RANK], out[MICA_MAX_RANK];
    int rank = draw_shapes(c, r, axes, false, in, out);
    op_tensor(c, backward ? 1 : 0, MICA_F32, rank, out);
    op_tensor(c, backward ? 0 : 1, MICA_F32, rank, in);
}

static void draw_adaptive(op_call *c, test_random *r, int axes, bool backward)
{
    draw_average(c, r, axes, backward);
    mica_tensor *y = &c->tensor[backward ? 1 : 0];
    mica_index dims[MICA_MAX_RANK];
    for (int i = 0; i < y->rank; i++)
        dims[i] = i < y->rank - axes ? y->dim[i] : test_int(r, test_chance(r, 5) ? 0 : 1, 9);
    op_tensor(c, backward ? 1 : 0, MICA_F32, y->rank, dims);
}

static void reference_average(const op_call *c, double *const *v)
{
    planes p = planes_of(c, &c->tensor[1], &c->tensor[0]);
    spread(c, &p, average_window, v[1], v[0], false);
}
static void reference_average_backward(const op_call *c, double *const *v)
{
    planes p = planes_of(c, &c->tensor[0], &c->tensor[1]);
    spread(c, &p, average_window, v[0], v[1], true);
}
static void reference_adaptive(const op_call *c, double *const *v)
{
    planes p = planes_of(c, &c->tensor[1], &c->tensor[0]);
    spread(c, &p, adaptive_window, v[1], v[0], false);
}
static void reference_adaptive_backward(const op_call *c, double *const *v)
{
    planes p = planes_of(c, &c->tensor[0], &c->tensor[1]);
    spread(c, &p, adaptive_window, v[0], v[1], true);
}

static mica_status run_avg_pool2d(mica_context *ctx, const op_call *c)
{
    mica_pooling_opts o = options(c);
    return mica_avg_pool2d(ctx, OP(c, 0), OP(c, 1), &o);
}
static mica_status run_avg_pool1d(mica_context *ctx, const op_call *c)
{
    mica_pooling_opts o = options(c);
    return mica_avg_pool1d(ctx, OP(c, 0), OP(c, 1), &o);
}
static mica_status run_avg_pool2d_backward(mica_context *ctx, const op_call *c)
{
    mica_pooling_opts o = options(c);
    return mica_avg_pool2d_backward(ctx, OP(c, 0), OP(c, 1), &o);
}
static mica_status run_avg_pool1d_backward(mica_context *ctx, const op_call *c)
{
    mica_pooling_opts o = options(c);
    return mica_avg_pool1d_backward(ctx, OP(c, 0), OP(c, 1), &o);
}

#define RUN_PLAIN(op)                                                \
    static mica_status run_##op(mica_context *ctx, const op_call *c) \
    {                                                                \
        return mica_##op(ctx, OP(c, 0), OP(c, 1));                   \
    }
RUN_PLAIN(adaptive_avg_pool2d)
RUN_PLAIN(adaptive_avg_pool1d)
RUN_PLAIN(adaptive_avg_pool2d_backward)
RUN_PLAIN(adaptive_avg_pool1d_backward)
RUN_PLAIN(global_avg_pool)
RUN_PLAIN(global_avg_pool_backward)

#define AVERAGE_CASE(op, kind, axes, out, in, backward, way, free)                           \
    static void draw_##op(op_call *c, test_random *r) { draw_##kind(c, r, axes, backward); } \
    OP_CASE(op) = {.names = {out, in},                                                       \
                   .outs = 1,                                                                \
                   .ins = 1,                                                                 \
                   .any_shape = free,                                                        \
                   .draw = draw_##op,                                                        \
                   .run = run_##op,                                                          \
                   .reference = reference_##kind##way,                                       \
                   .tolerance = 2e-6}
AVERAGE_CASE(avg_pool2d, average, 2, "y", "x", false, , 0);
AVERAGE_CASE(avg_pool1d, average, 1, "y", "x", false, , 0);
AVERAGE_CASE(avg_pool2d_backward, average, 2, "dx", "dy", true, _backward, 0);
AVERAGE_CASE(avg_pool1d_backward, average, 1, "dx", "dy", true, _backward, 0);
AVERAGE_CASE(adaptive_avg_pool2d, adaptive, 2, "y", "x", false, , OP_BIT(0) | OP_BIT(1));
AVERAGE_CASE(adaptive_avg_pool1d, adaptive, 1, "y", "x", false, , OP_BIT(0) | OP_BIT(1));
AVERAGE_CASE(adaptive_avg_pool2d_backward, adaptive, 2, "dx", "dy", true, _backward, OP_BIT(0) | OP_BIT(1));
AVERAGE_CASE(adaptive_avg_pool1d_backward, adaptive, 1, "dx", "dy", true, _backward, OP_BIT(0) | OP_BIT(1));

static void draw_global(op_call *c, test_random *r, bool backward)
{
    mica_index in[MICA_MAX_RANK], out[MICA_MAX_RANK];
    int rank = test_int(r, 2, 5), out_rank = test_chance(r, 50) ? 2 : rank;
    for (int i = 0; i < rank; i++) {
        in[i] = c->large ? test_int(r, 8, 20) : test_int(r, i < 2 && test_chance(r, 4) ? 0 : 1, 7);
        out[i] = i < 2 ? in[i] : 1;
    }
    op_tensor(c, backward ? 1 : 0, MICA_F32, out_rank, out);
    op_tensor(c, backward ? 0 : 1, MICA_F32, rank, in);
}

static planes whole_planes(const mica_tensor *x)
{
    planes p = {(size_t)(x->dim[0] * x->dim[1]), {1, 1}, {1, 1}};
    for (int i = 2; i < x->rank; i++)
        p.in[1] *= x->dim[i];
    return p;
}
static void reference_global(const op_call *c, double *const *v)
{
    planes p = whole_planes(&c->tensor[1]);
    spread(c, &p, adaptive_window, v[1], v[0], false);
}
static void reference_global_backward(const op_call *c, double *const *v)
{
    planes p = whole_planes(&c->tensor[0]);
    spread(c, &p, adaptive_window, v[0], v[1], true);
}

static void draw_global_avg_pool(op_call *c, test_random *r) { draw_global(c, r, false); }
static void draw_global_avg_pool_backward(op_call *c, test_random *r) { draw_global(c, r, true); }

OP_CASE(global_avg_pool) = {.names = {"y", "x"},
                            .outs = 1,
                            .ins = 1,
                            .any_shape = OP_BIT(1),
                            .draw = draw_global_avg_pool,
                            .run = run_global_avg_pool,
                            .reference = reference_global,
                            .tolerance = 2e-6};
OP_CASE(global_avg_pool_backward) = {.names = {"dx", "dy"},
                                     .outs = 1,
                                     .ins = 1,
                                     .any_shape = OP_BIT(0),
                                     .draw = draw_global_avg_pool_backward,
                                     .run = run_global_avg_pool_backward,
                                     .reference = reference_global_backward,
                                     .tolerance = 2e-6};
