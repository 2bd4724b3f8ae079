/* Cases of the int8 operations: sums in 64 bits, to the last bit. */
#include "ops/op_case.h"

#include <math.h>

#include "ops/int8_reference.h"

/* Bytes of all sizes; factors that bring sums into range and beyond. */
static double draw_value(const op_call *c, test_random *r, int tensor)
{
    switch (c->tensor[tensor].dtype) {
    case MICA_I8:
        return test_int(r, -127, 127);
    case MICA_U8:
        return test_int(r, 30, 44);
    case MICA_I32:
        return tensor == 3 ? test_int(r, -40000, 40000) : (double)((1 << 30) + test_int(r, 0, (1 << 30) - 1));
    default:
        return test_normal(r) * 2.0;
    }
}

static void fill(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        value[i] = draw_value(c, r, tensor);
}

static void draw_limits(op_call *c, test_random *r)
{
    c->i[LOW] = test_chance(r, 50) ? 0 : test_int(r, -127, 0);
    c->i[HIGH] = c->i[LOW] == 0 && test_chance(r, 50) ? 0 : test_int(r, 1, 127);
}

static void draw_factor(op_call *c, test_random *r, int low, int high)
{
    c->i[MULTIPLIER] = (1 << 30) + test_int(r, 0, (1 << 30) - 1);
    c->i[SHIFT] = test_int(r, low, high);
    draw_limits(c, r);
}

/* ---- Element by element ---- */

static void draw_map(op_call *c, test_random *r, int ins, mica_dtype to, mica_dtype from)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 0, 4, dims);
    op_tensor(c, 0, to, rank, dims);
    for (int k = 1; k <= ins; k++)
        op_tensor(c, k, from, rank, dims);
    c->f[0] = (float)exp(test_uniform(r, -4.0, 1.0));
}

static void draw_quantize(op_call *c, test_random *r) { draw_map(c, r, 1, MICA_I8, MICA_F32); }
static void draw_dequantize(op_call *c, test_random *r) { draw_map(c, r, 1, MICA_F32, MICA_I8); }

/* Halves, and what no byte holds, too. */
static void fill_quantize(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    static const double strange[] = {NAN, INFINITY, -INFINITY, 0.0, 1e30, -1e30};
    (void)tensor;
    for (size_t i = 0; i < count; i++)
        value[i] = test_chance(r, 5)    ? strange[test_int(r, 0, 5)]
                   : test_chance(r, 30) ? (double)((float)c->f[0] * ((float)test_int(r, -260, 260) / 2.0f))
                                        : test_normal(r) * 60.0 * c->f[0];
}

static mica_status run_quantize(mica_context *ctx, const op_call *c)
{
    return mica_quantize(ctx, OP(c, 0), OP(c, 1), &(mica_int8_scale_opts){(float)c->f[0]});
}
static mica_status run_dequantize(mica_context *ctx, const op_call *c)
{
    return mica_dequantize(ctx, OP(c, 0), OP(c, 1), &(mica_int8_scale_opts){(float)c->f[0]});
}

static void reference_quantize(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++) {
        float q = (float)v[1][i] * (1.0f / (float)c->f[0]);
        v[0][i] = isnan(q) ? -127.0 : nearbyint(fmin(fmax((double)q, -127.0), 127.0));
    }
}

static void reference_dequantize(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = (double)((float)v[1][i] * (float)c->f[0]);
}

OP_CASE(quantize) = {.names = {"y", "x"},
                     .outs = 1,
                     .ins = 1,
                     .draw = draw_quantize,
                     .fill = fill_quantize,
                     .run = run_quantize,
                     .reference = reference_quantize};
OP_CASE(dequantize) = {.names = {"y", "x"},
                       .outs = 1,
                       .ins = 1,
                       .draw = draw_dequantize,
                       .fill = fill,
                       .run = run_dequantize,
                       .reference = reference_dequantize};

static void draw_rescale(op_call *c, test_random *r)
{
    draw_map(c, r, 1, MICA_I8, MICA_I8);
    draw_factor(c, r, 27, 34);
}

static mica_status run_rescale(mica_context *ctx, const op_call *c)
{
    return mica_int8_rescale(
        ctx, OP(c, 0), OP(c, 1),
        &(mica_int8_rescale_opts){(int)c->i[MULTIPLIER], (int)c->i[SHIFT], (int)c->i[LOW], (int)c->i[HIGH]});
}

static void reference_rescale(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = int8_finished(c, (int64_t)v[1][i], c->i[MULTIPLIER], (int)c->i[SHIFT]);
}

OP_CASE(int8_rescale) = {.names = {"y", "x"},
                         .outs = 1,
                         .ins = 1,
                         .in_place = OP_BIT(1),
                         .draw = draw_rescale,
                         .fill = fill,
                         .run = run_rescale,
                         .reference = reference_rescale};

static void draw_add(op_call *c, test_random *r)
{
    draw_map(c, r, 2, MICA_I8, MICA_I8);
    draw_limits(c, r);
    c->i[MULTIPLIER] = test_int(r, -(1 << 21), 1 << 21);
    c->i[MULTIPLIER_B] = test_int(r, -(1 << 21), 1 << 21);
    c->i[SHIFT] = test_int(r, 18, 30);
}

static mica_status run_add(mica_context *ctx, const op_call *c)
{
    return mica_int8_add(ctx, OP(c, 0), OP(c, 1), OP(c, 2),
                         &(mica_int8_add_opts){.multiplier = {(int)c->i[MULTIPLIER], (int)c->i[MULTIPLIER_B]},
                                               .shift = (int)c->i[SHIFT],
                                               .low = (int)c->i[LOW],
                                               .high = (int)c->i[HIGH]});
}

static void reference_add(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = int8_finished(c,
                                (int64_t)v[1][i] * c->i[MULTIPLIER] + (int64_t)v[2][i] * c->i[MULTIPLIER_B],
                                1, (int)c->i[SHIFT]);
}

OP_CASE(int8_add) = {.names = {"y", "a", "b"},
                     .outs = 1,
                     .ins = 2,
                     .in_place = OP_BIT(1) | OP_BIT(2),
                     .draw = draw_add,
                     .fill = fill,
                     .run = run_add,
                     .reference = reference_add};

/* ---- Products: y, x, w, bias, multiplier, shift ---- */

static void draw_weights(op_call *c, test_random *r, mica_index channels)
{
    mica_index factors = test_chance(r, 30) ? 1 : channels;
    op_tensor(c, 3, MICA_I32, 1, &channels);
    op_tensor(c, 4, MICA_I32, 1, &factors);
    op_tensor(c, 5, MICA_U8, 1, &factors);
    draw_limits(c, r);
}

static mica_int8_weights weights_of(const op_call *c)
{
    return (mica_int8_weights){OP(c, 2), OP(c, 3), OP(c, 4), OP(c, 5), NULL};
}

static double finished_channel(const op_call *c, double *const *v, int64_t sum, size_t channel)
{
    size_t k = c->tensor[4].dim[0] == 1 ? 0 : channel;
    return int8_finished(c, sum + (int64_t)v[3][channel], (int64_t)v[4][k], (int)v[5][k]);
}

mica_index int8_draw_linear(op_call *c, test_random *r)
{
    int rank = test_int(r, 1, 3), most = test_chance(r, 20) ? 150 : 9;
    mica_index dims[3], units = test_int(r, test_chance(r, 3) ? 0 : 1, most);
    for (int k = 0; k < rank; k++)
        dims[k] = c->large ? test_int(r, 20, 40) : test_int(r, test_chance(r, 3) ? 0 : 1, 9);
    dims[rank - 1] = c->large ? 300 : test_int(r, test_chance(r, 5) ? 0 : 1, most);
    op_tensor(c, 1, MICA_I8, rank, dims);
    op_tensor(c, 2, MICA_I8, 2, (mica_index[]){units, dims[rank - 1]});
    dims[rank - 1] = units;
    op_tensor(c, 0, MICA_I8, rank, dims);
    return units;
}

static void draw_linear(op_call *c, test_random *r) { draw_weights(c, r, int8_draw_linear(c, r)); }

static mica_status run_linear(mica_context *ctx, const op_call *c)
{
    mica_int8_weights weights = weights_of(c);
    return mica_int8_linear(ctx, OP(c, 0), OP(c, 1), &weights,
                            &(mica_int8_limits){(int)c->i[LOW], (int)c->i[HIGH]});
}

int64_t int8_sum_linear(const op_call *c, double *const *v, size_t i, size_t *channel)
{
    size_t units = (size_t)c->tensor[2].dim[0], values = (size_t)c->tensor[2].dim[1];
    int64_t sum = 0;
    *channel = i % units;
    for (size_t k = 0; k < values; k++)
        sum += ((int64_t)v[1][i / units * values + k] - c->i[X_ZERO]) * (int64_t)v[2][i % units * values + k];
    return sum;
}

static void reference_linear(const op_call *c, double *const *v)
{
    for (size_t i = 0, channel; i < op_count(c, 0); i++) {
        int64_t sum = int8_sum_linear(c, v, i, &channel);
        v[0][i] = finished_channel(c, v, sum, channel);
    }
}

OP_CASE(int8_linear) = {.names = {"y", "x", "w", "bias", "multiplier", "shift"},
                        .outs = 1,
                        .ins = 5,
                        .draws = 400,
                        .draw = draw_linear,
                        .fill = fill,
                        .run = run_linear,
                        .reference = reference_linear};

mica_index int8_draw_conv(op_call *c, test_random *r)
{
    mica_index groups = test_chance(r, 50) ? 1 : test_int(r, 1, 4), factor = c->large ? 4 : 1;
    mica_index in = test_int(r, 1, test_chance(r, 20) ? 12 : 4) * factor,
               out = test_int(r, 1, test_chance(r, 30) ? 40 : 5) * factor;
    mica_index batch = test_chance(r, 5) ? 0 : test_int(r, 1, 3);
    mica_index x[4] = {batch, in * groups}, y[4] = {batch, out * groups}, w[4] = {out * groups, in};
    for (int k = 0; k < 2; k++) {
        long stride = test_int(r, 1, 3), dilation = test_chance(r, 60) ? 1 : test_int(r, 1, 3),
             pad = test_int(r, 0, 3);
        do {
            w[2 + k] = test_int(r, 1, test_chance(r, 20) ? 7 : 4);
            x[2 + k] = c->large ? test_int(r, 14, 30) : test_int(r, 1, test_chance(r, 20) ? 30 : 9);
            long room = x[2 + k] + 2 * pad - dilation * (w[2 + k] - 1) - 1;
            y[2 + k] = room < 0 ? 0 : room / stride + 1;
        } while (y[2 + k] < 1);
        c->i[STRIDE + k] = stride == 1 && test_chance(r, 50) ? 0 : stride;
        c->i[DILATION + k] = dilation == 1 && test_chance(r, 50) ? 0 : dilation;
        c->i[PAD + k] = pad;
    }
    c->i[GROUPS] = groups == 1 ? 0 : groups;
    op_tensor(c, 0, MICA_I8, 4, y);
    op_tensor(c, 1, MICA_I8, 4, x);
    op_tensor(c, 2, MICA_I8, 4, w);
    return out * groups;
}

static void draw_conv(op_call *c, test_random *r) { draw_weights(c, r, int8_draw_conv(c, r)); }

static mica_status run_conv(mica_context *ctx, const op_call *c)
{
    mica_int8_weights weights = weights_of(c);
    mica_int8_conv_opts o = {.groups = c->i[GROUPS], .low = (int)c->i[LOW], .high = (int)c->i[HIGH]};
    for (int k = 0; k < 2; k++) {
        o.stride[k] = c->i[STRIDE + k];
        o.pad[k] = c->i[PAD + k];
        o.dilation[k] = c->i[DILATION + k];
    }
    return mica_int8_conv2d(ctx, OP(c, 0), OP(c, 1), &weights, &o);
}

void int8_resize_conv(op_call *c, test_random *r, bool larger)
{
    mica_index x[4], y[4];
    const mica_tensor *w = &c->tensor[2];
    for (int k = 0; k < 4; k++) {
        x[k] = c->tensor[1].dim[k];
        y[k] = c->tensor[0].dim[k];
    }
    if (x[0] > 0)
        x[0] = y[0] = larger ? x[0] * test_int(r, 1, 3) : test_int(r, 1, (int)x[0]);
    for (int k = 0; k < 2; k++) {
        mica_index size = larger ? x[2 + k] * test_int(r, 1, 3) : test_int(r, 1, (int)x[2 + k]);
        long stride = c->i[STRIDE + k] > 0 ? c->i[STRIDE + k] : 1,
             dilation = c->i[DILATION + k] > 0 ? c->i[DILATION + k] : 1;
        long room = size + 2 * c->i[PAD + k] - dilation * (w->dim[2 + k] - 1) - 1;
        if (room < 0)
            continue;
        x[2 + k] = size;
        y[2 + k] = room / stride + 1;
    }
    op_tensor(c, 0, c->tensor[0].dtype, 4, y);
    op_tensor(c, 1, MICA_I8, 4, x);
}

int64_t int8_sum_conv(const op_call *c, double *const *v, size_t i, size_t *channel)
{
    const mica_tensor *y = &c->tensor[0], *x = &c->tensor[1], *w = &c->tensor[2];
    long groups = c->i[GROUPS] > 0 ? c->i[GROUPS] : 1, out = w->dim[0] / groups;
    long column = (long)i % y->dim[3], row = (long)i / y->dim[3] % y->dim[2],
         m = (long)i / y->dim[3] / y->dim[2] % y->dim[1], n = (long)i / y->dim[3] / y->dim[2] / y->dim[1];
    int64_t sum = 0;
    *channel = (size_t)m;
    for (long k = 0; k < w->dim[1] * w->dim[2] * w->dim[3]; k++) {
        long at[2] = {row, column}, tap[2] = {k / w->dim[3] % w->dim[2], k % w->dim[3]};
        long from = n * x->dim[1] + m / out * w->dim[1] + k / w->dim[3] / w->dim[2];
        if (int8_place(c, x, at, tap))
            sum += ((int64_t)v[1][(from * x->dim[2] + at[0]) * x->dim[3] + at[1]] - c->i[X_ZERO]) *
                   (int64_t)v[2][m * w->dim[1] * w->dim[2] * w->dim[3] + k];
    }
    return sum;
}

static void reference_conv(const op_call *c, double *const *v)
{
    for (size_t i = 0, channel; i < op_count(c, 0); i++) {
        int64_t sum = int8_sum_conv(c, v, i, &channel);
        v[0][i] = finished_channel(c, v, sum, channel);
    }
}

OP_CASE(int8_conv2d) = {.names = {"y", "x", "w", "bias", "multiplier", "shift"},
                        .outs = 1,
                        .ins = 5,
                        .any_shape = OP_BIT(1) | OP_BIT(2),
                        .draws = 600,
                        .draw = draw_conv,
                        .fill = fill,
                        .run = run_conv,
                        .resize = int8_resize_conv,
                        .reference = reference_conv};
