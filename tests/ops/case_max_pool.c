/* Cases of windows of one to three axes. Options: i[0] axes; for each axis k kernel i[1 + k], stride i[4 + k], before
 * i[7 + k], after i[10 + k], dilation i[13 + k]; i[16] ceil mode, i[17] flat, i[18] column-major. */
#include "ops/op_index.h"

#include <math.h>

enum {
    AXES = 0,
    KERNEL = 1,
    STRIDE = 4,
    BEFORE = 7,
    AFTER = 10,
    DILATION = 13,
    CEIL = 16,
    FLAT = 17,
    COLUMNS = 18
};

static mica_max_pool_opts options(const op_call *c)
{
    mica_max_pool_opts o = {.axes = (int)c->i[AXES],
                            .ceil_mode = c->i[CEIL] != 0,
                            .flat = c->i[FLAT] != 0,
                            .column_major = c->i[COLUMNS] != 0};
    for (int k = 0; k < o.axes; k++) {
        o.kernel[k] = c->i[KERNEL + k];
        o.stride[k] = c->i[STRIDE + k];
        o.before[k] = c->i[BEFORE + k];
        o.after[k] = c->i[AFTER + k];
        o.dilation[k] = c->i[DILATION + k];
    }
    return o;
}

/* Draws options along an axis and a size that they fit; returns the output's size. */
static mica_index draw_axis(op_call *c, test_random *r, int k, mica_index *size)
{
    long kernel = test_int(r, 1, 4), dilation = test_chance(r, 30) ? test_int(r, 1, 3) : 1,
         stride = test_int(r, 1, 3);
    long reach = (kernel - 1) * dilation + 1;
    long before = test_int(r, 0, (int)reach - 1), after = test_int(r, 0, (int)reach - 1);
    *size = c->large ? test_int(r, 12, 16) : test_int(r, 0, 5) + reach;
    if (c->i[CEIL] != 0 && test_chance(r, 20)) { /* one window, larger than all there is */
        *size = reach - before - after - test_int(r, 0, (int)stride - 1);
        *size = *size < 1 ? 1 : *size;
    }
    c->i[KERNEL + k] = kernel == 1 && test_chance(r, 50) ? 0 : kernel;
    c->i[STRIDE + k] = stride == 1 && test_chance(r, 50) ? 0 : stride;
    c->i[DILATION + k] = dilation == 1 && test_chance(r, 50) ? 0 : dilation;
    c->i[BEFORE + k] = before;
    c->i[AFTER + k] = after;
    long room = *size + before + after - reach, out = room / stride + 1;
    if (c->i[CEIL] != 0) {
        out = (room + stride - 1) / stride + 1;
        out -= (out - 1) * stride >= *size + before;
    }
    return out;
}

static int draw_shapes(op_call *c, test_random *r, mica_index *in, mica_index *out)
{
    int axes = test_int(r, 1, 3), rank = axes + test_int(r, c->large ? 1 : 0, 2);
    c->i[AXES] = axes;
    c->i[CEIL] = test_chance(r, 40);
    c->i[FLAT] = test_chance(r, 50);
    c->i[COLUMNS] = test_chance(r, 30);
    for (int k = 0; k < rank; k++) {
        in[k] = out[k] = c->large ? test_int(r, 10, 30) : test_chance(r, 4) ? 0 : test_int(r, 1, 3);
        if (k >= rank - axes)
            out[k] = draw_axis(c, r, k - (rank - axes), &in[k]);
    }
    return rank;
}

static void draw_forward(op_call *c, test_random *r)
{
    mica_index in[MICA_MAX_RANK], out[MICA_MAX_RANK];
    int rank = draw_shapes(c, r, in, out);
    op_tensor(c, 0, MICA_F32, rank, out);
    op_tensor(c, 1, MICA_I64, rank, out);
    op_tensor(c, 2, MICA_F32, rank, in);
    c->absent[1] = test_chance(r, 30);
}

/* Ties, infinities and NaN. */
static void fill_forward(const op_call *c, test_random *r, int tensor, double *value, size_t count)
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

static mica_status run_forward(mica_context *ctx, const op_call *c)
{
    mica_max_pool_opts o = options(c);
    return mica_max_pool(ctx, OP(c, 0), OP(c, 1), OP(c, 2), &o);
}

/* The index that stands for element `place` (row-major) of x. */
static double index_of(const op_call *c, const mica_tensor *x, size_t place)
{
    mica_index at[MICA_MAX_RANK];
    size_t plane = 1, inside = 0, step = 1;
    int axes = (int)c->i[AXES];
    for (int k = x->rank - axes; k < x->rank; k++)
        plane *= (size_t)x->dim[k];
    op_unravel(x, place, at);
    for (int k = x->rank - axes; k < x->rank; k++) {
        inside += step * (size_t)at[k];
        step *= (size_t)x->dim[k];
    }
    if (c->i[COLUMNS] == 0)
        inside = place % plane;
    return (double)(inside + (c->i[FLAT] != 0 ? place / plane * plane : 0));
}

static long or_one(long value) { return value != 0 ? value : 1; }

static void reference_forward(const op_call *c, double *const *v)
{
    const mica_tensor *y = &c->tensor[0], *x = &c->tensor[2];
    int axes = (int)c->i[AXES], leading = x->rank - axes;
    for (size_t i = 0; i < op_count(c, 0); i++) {
        mica_index out[MICA_MAX_RANK], in[MICA_MAX_RANK];
        double best = (double)-INFINITY, where = -1.0;
        long taps = 1;
        op_unravel(y, i, out);
        for (int k = 0; k < axes; k++)
            taps *= or_one(c->i[KERNEL + k]);
        for (long tap = 0; tap < taps; tap++) {
            long rest = tap;
            bool inside = true;
            for (int k = 0; k < leading; k++)
                in[k] = out[k];
            for (int k = axes - 1; k >= 0; k--) {
                long kernel = or_one(c->i[KERNEL + k]);
                in[leading + k] = out[leading + k] * or_one(c->i[STRIDE + k]) - c->i[BEFORE + k] +
                                  rest % kernel * or_one(c->i[DILATION + k]);
                rest /= kernel;
                inside = inside && in[leading + k] >= 0 && in[leading + k] < x->dim[leading + k];
            }
            if (!inside)
                continue;
            size_t place = op_ravel(x, in);
            if (where < 0.0 || v[2][place] > best || isnan(v[2][place])) {
                best = v[2][place];
                where = index_of(c, x, place);
            }
        }
        v[0][i] = best;
        if (!c->absent[1])
            v[1][i] = where;
    }
}

OP_CASE(max_pool) = {.names = {"y", "indices", "x"},
                     .outs = 2,
                     .ins = 1,
                     .optional = OP_BIT(1),
                     .any_shape = OP_BIT(2),
                     .draws = 400,
                     .draw = draw_forward,
                     .fill = fill_forward,
                     .run = run_forward,
                     .reference = reference_forward,
                     .tolerance = 1e-7};

/* ---- Backward ---- */

static void draw_backward(op_call *c, test_random *r)
{
    mica_index in[MICA_MAX_RANK], out[MICA_MAX_RANK];
    int rank = draw_shapes(c, r, in, out);
    op_tensor(c, 0, MICA_F32, rank, in);
    op_tensor(c, 1, MICA_F32, rank, out);
    op_tensor(c, 2, MICA_I64, rank, out);
}

/* Indices of any element of the plane, or -1. */
static void fill_backward(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    size_t in = 1, out = 1;
    const mica_tensor *dx = &c->tensor[0];
    for (int k = dx->rank - (int)c->i[AXES]; k < dx->rank; k++) {
        in *= (size_t)dx->dim[k];
        out *= (size_t)c->tensor[1].dim[k];
    }
    for (size_t i = 0; i < count; i++) {
        if (tensor != 2)
            value[i] = test_normal(r);
        else
            value[i] = test_chance(r, 10) || in == 0
                           ? -1.0
                           : index_of(c, dx, i / out * in + (size_t)test_int(r, 0, (int)in - 1));
    }
}

static mica_status run_backward(mica_context *ctx, const op_call *c)
{
    mica_max_pool_opts o = options(c);
    return mica_max_pool_backward(ctx, OP(c, 0), OP(c, 1), OP(c, 2), &o);
}

static void reference_backward(const op_call *c, double *const *v)
{
    size_t in = 1, out = 1, count = op_count(c, 0);
    const mica_tensor *dx = &c->tensor[0];
    for (int k = dx->rank - (int)c->i[AXES]; k < dx->rank; k++) {
        in *= (size_t)dx->dim[k];
        out *= (size_t)c->tensor[1].dim[k];
    }
    for (size_t i = 0; i < count; i++) {
        v[0][i] = 0.0;
        for (size_t j = i / in * out; j < (i / in + 1) * out; j++)
            if (v[2][j] == index_of(c, dx, i))
                v[0][i] += v[1][j];
    }
}

OP_CASE(max_pool_backward) = {.names = {"dx", "dy", "indices"},
                              .outs = 1,
                              .ins = 2,
                              .any_shape = OP_BIT(0),
                              .draw = draw_backward,
                              .fill = fill_backward,
                              .run = run_backward,
                              .reference = reference_backward,
                              .tolerance = 1e-6};

/* ---- max_unpool ---- */

static void draw_unpool(op_call *c, test_random *r)
{
    mica_index in[MICA_MAX_RANK], out[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 0, 4, in), to = op_random_shape(c, r, 1, 4, out);
    out[0] = out[0] > 0 ? out[0] : 1;
    op_tensor(c, 0, MICA_F32, to, out);
    if (op_count(c, 0) == 0)
        in[0] = 0, rank = rank > 0 ? rank : 1;
    op_tensor(c, 1, MICA_F32, rank, in);
    op_tensor(c, 2, test_chance(r, 50) ? MICA_I64 : MICA_I32, rank, in);
}

static void fill_unpool(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        value[i] = tensor == 2 ? test_int(r, 0, (int)op_count(c, 0) - 1) : test_normal(r);
}

static mica_status run_unpool(mica_context *ctx, const op_call *c)
{
    return mica_max_unpool(ctx, OP(c, 0), OP(c, 1), OP(c, 2));
}

static void reference_unpool(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = 0.0;
    for (size_t i = 0; i < op_count(c, 1); i++)
        v[0][(size_t)v[2][i]] = v[1][i];
}

OP_CASE(max_unpool) = {.names = {"dst", "x", "indices"},
                       .outs = 1,
                       .ins = 2,
                       .any_shape = OP_BIT(0),
                       .draw = draw_unpool,
                       .fill = fill_unpool,
                       .run = run_unpool,
                       .reference = reference_unpool};
