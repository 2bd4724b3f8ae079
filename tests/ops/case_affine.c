/* Cases of bytes with zero points: sums in 64 bits, then single steps in f32, to the last bit. */
#include "ops/op_case.h"

#include <math.h>

#include "ops/int8_reference.h"

static void fill(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    bool weights = c->op->ins == 4 && tensor == 2;
    for (size_t i = 0; i < count; i++)
        switch (c->tensor[tensor].dtype) {
        case MICA_I8:
            value[i] = test_int(r, weights ? -127 : -128, 127);
            break;
        case MICA_U8:
            value[i] = test_int(r, 0, 255);
            break;
        case MICA_I32:
            value[i] = test_int(r, -40000, 40000);
            break;
        default: /* factors; some make halves */
            value[i] = (double)(test_chance(r, 30) ? 0.015625f : (float)exp(test_uniform(r, -9.0, -3.0)));
        }
}

static void draw_zeros(op_call *c, test_random *r)
{
    for (int k = X_ZERO; k <= Y_ZERO; k++)
        c->i[k] = test_chance(r, 25) ? 0 : test_int(r, -128, 127);
    c->i[LOW] = test_chance(r, 50) ? 0 : test_int(r, -128, 0);
    c->i[HIGH] = c->i[LOW] == 0 && test_chance(r, 50) ? 0 : test_int(r, 1, 127);
}

/* A number to a byte of y. */
static double rounded(const op_call *c, float r)
{
    bool all = c->i[LOW] == 0 && c->i[HIGH] == 0;
    double low = all ? -128.0 : (double)c->i[LOW], high = all ? 127.0 : (double)c->i[HIGH];
    return fmin(fmax(nearbyint((double)r) + (double)c->i[Y_ZERO], low), high);
}

/* ---- Element by element ---- */

static void draw_map(op_call *c, test_random *r, int ins, mica_dtype to, mica_dtype from)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 0, 4, dims);
    op_tensor(c, 0, to, rank, dims);
    for (int k = 1; k <= ins; k++)
        op_tensor(c, k, from, rank, dims);
    draw_zeros(c, r);
    for (int k = 0; k < 2; k++)
        c->f[k] = (double)(float)exp(test_uniform(r, -4.0, 1.0));
}

static mica_affine_scale_opts scale_of(const op_call *c)
{
    return (mica_affine_scale_opts){(float)c->f[0], (int)c->i[X_ZERO]};
}

static void draw_quantize(op_call *c, test_random *r) { draw_map(c, r, 1, MICA_I8, MICA_F32); }
static void draw_dequantize(op_call *c, test_random *r) { draw_map(c, r, 1, MICA_F32, MICA_I8); }

static void fill_quantize(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    static const double strange[] = {NAN, INFINITY, -INFINITY, 0.0, 1e30, -1e30};
    (void)tensor;
    for (size_t i = 0; i < count; i++)
        value[i] = test_chance(r, 5)    ? strange[test_int(r, 0, 5)]
                   : test_chance(r, 30) ? (double)((float)c->f[0] * ((float)test_int(r, -520, 520) / 2.0f))
                                        : test_normal(r) * 90.0 * c->f[0];
}

static mica_status run_quantize(mica_context *ctx, const op_call *c)
{
    mica_affine_scale_opts o = scale_of(c);
    return mica_affine_quantize(ctx, OP(c, 0), OP(c, 1), &o);
}

static mica_status run_dequantize(mica_context *ctx, const op_call *c)
{
    mica_affine_scale_opts o = scale_of(c);
    return mica_affine_dequantize(ctx, OP(c, 0), OP(c, 1), &o);
}

static void reference_quantize(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++) {
        float q = (float)v[1][i] / (float)c->f[0];
        v[0][i] = isnan(q) ? -128.0 : fmin(fmax(nearbyint((double)q) + (double)c->i[X_ZERO], -128.0), 127.0);
    }
}

static void reference_dequantize(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = (double)((float)(v[1][i] - (double)c->i[X_ZERO]) * (float)c->f[0]);
}

OP_CASE(affine_quantize) = {.names = {"y", "x"},
                            .outs = 1,
                            .ins = 1,
                            .draw = draw_quantize,
                            .fill = fill_quantize,
                            .run = run_quantize,
                            .reference = reference_quantize};
OP_CASE(affine_dequantize) = {.names = {"y", "x"},
                              .outs = 1,
                              .ins = 1,
                              .draw = draw_dequantize,
                              .fill = fill,
                              .run = run_dequantize,
                              .reference = reference_dequantize};

static void draw_flip(op_call *c, test_random *r)
{
    bool to_signed = test_chance(r, 50);
    draw_map(c, r, 1, to_signed ? MICA_I8 : MICA_U8, to_signed ? MICA_U8 : MICA_I8);
}

static mica_status run_flip(mica_context *ctx, const op_call *c)
{
    return mica_affine_flip(ctx, OP(c, 0), OP(c, 1));
}

static void reference_flip(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = c->tensor[0].dtype == MICA_I8 ? v[1][i] - 128.0 : v[1][i] + 128.0;
}

OP_CASE(affine_flip) = {.names = {"y", "x"},
                        .outs = 1,
                        .ins = 1,
                        .draw = draw_flip,
                        .fill = fill,
                        .run = run_flip,
                        .reference = reference_flip};

static void draw_add(op_call *c, test_random *r) { draw_map(c, r, 2, MICA_I8, MICA_I8); }

static mica_status run_add(mica_context *ctx, const op_call *c)
{
    return mica_affine_add(
        ctx, OP(c, 0), OP(c, 1), OP(c, 2),
        &(mica_affine_add_opts){.factor = {(float)c->f[0], (float)c->f[1]},
                                .zero = {(int)c->i[X_ZERO], (int)c->i[B_ZERO], (int)c->i[Y_ZERO]},
                                .low = (int)c->i[LOW],
                                .high = (int)c->i[HIGH]});
}

static void reference_add(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++) {
        float a = (float)(v[1][i] - (double)c->i[X_ZERO]) * (float)c->f[0],
              b = (float)(v[2][i] - (double)c->i[B_ZERO]) * (float)c->f[1];
        v[0][i] = rounded(c, a + b);
    }
}

OP_CASE(affine_add) = {.names = {"y", "a", "b"},
                       .outs = 1,
                       .ins = 2,
                       .in_place = OP_BIT(1) | OP_BIT(2),
                       .draw = draw_add,
                       .fill = fill,
                       .run = run_add,
                       .reference = reference_add};

/* ---- Products of two ---- */

static void draw_matmul(op_call *c, test_random *r)
{
    bool large = test_chance(r, 20);
    mica_index m = test_int(r, 1, large ? 70 : 9), k = test_int(r, 0, large ? 90 : 9),
               n = test_int(r, 1, large ? 80 : 9);
    mica_index lead[2] = {test_int(r, 1, 3), test_int(r, 1, 3)};
    int rank = test_int(r, 2, 4), from = 4 - rank;
    op_tensor(c, 0, MICA_I8, rank, (mica_index[]){lead[0], lead[1], m, n} + from);
    op_tensor(c, 1, MICA_I8, rank, (mica_index[]){lead[0], lead[1], m, k} + from);
    op_tensor(c, 2, MICA_I8, rank, (mica_index[]){lead[0], lead[1], k, n} + from);
    draw_zeros(c, r);
    c->f[0] = (double)(float)exp(test_uniform(r, -10.0, test_chance(r, 90) ? -1.0 : 5.0));
    c->i[TO] = test_chance(r, 25) ? MICA_F32 : MICA_I8;
    c->tensor[0].dtype = (mica_dtype)c->i[TO];
}

static mica_status run_matmul(mica_context *ctx, const op_call *c)
{
    return mica_affine_matmul(ctx, OP(c, 0), OP(c, 1), OP(c, 2),
                              &(mica_affine_matmul_opts){.factor = (float)c->f[0],
                                                         .a_zero = (int)c->i[X_ZERO],
                                                         .b_zero = (int)c->i[B_ZERO],
                                                         .y_zero = (int)c->i[Y_ZERO],
                                                         .low = (int)c->i[LOW],
                                                         .high = (int)c->i[HIGH],
                                                         .dtype = (mica_dtype)c->i[TO]});
}

static void reference_matmul(const op_call *c, double *const *v)
{
    int rank = c->tensor[1].rank;
    size_t m = (size_t)c->tensor[1].dim[rank - 2], k = (size_t)c->tensor[1].dim[rank - 1],
           n = (size_t)c->tensor[2].dim[rank - 1];
    for (size_t i = 0; i < op_count(c, 0); i++) {
        const double *a = v[1] + i / n * k, *b = v[2] + i / (m * n) * k * n + i % n;
        int64_t sum = 0;
        for (size_t t = 0; t < k; t++)
            sum += ((int64_t)a[t] - c->i[X_ZERO]) * ((int64_t)b[t * n] - c->i[B_ZERO]);
        float f = (float)sum * (float)c->f[0];
        v[0][i] = c->i[TO] == MICA_F32 ? (double)f : rounded(c, f);
    }
}

OP_CASE(affine_matmul) = {.names = {"y", "a", "b"},
                          .outs = 1,
                          .ins = 2,
                          .draw = draw_matmul,
                          .fill = fill,
                          .run = run_matmul,
                          .reference = reference_matmul};

/* ---- Products: y, x, w, bias, factor ---- */

static void draw_weights(op_call *c, test_random *r, mica_index channels)
{
    mica_index factors = test_chance(r, 30) ? 1 : channels;
    op_tensor(c, 3, MICA_I32, 1, &channels);
    op_tensor(c, 4, MICA_F32, 1, &factors);
    draw_zeros(c, r);
    c->i[TO] = test_chance(r, 25) ? MICA_F32 : MICA_I8;
    c->tensor[0].dtype = (mica_dtype)c->i[TO];
}

static mica_affine_weights weights_of(const op_call *c)
{
    return (mica_affine_weights){OP(c, 2), OP(c, 3), OP(c, 4), NULL};
}

static double finished(const op_call *c, double *const *v, int64_t sum, size_t channel)
{
    size_t k = c->tensor[4].dim[0] == 1 ? 0 : channel;
    float r = (float)(sum + (int64_t)v[3][channel]) * (float)v[4][k];
    return c->i[TO] == MICA_F32 ? (double)r : rounded(c, r);
}

static void draw_linear(op_call *c, test_random *r) { draw_weights(c, r, int8_draw_linear(c, r)); }

static mica_status run_linear(mica_context *ctx, const op_call *c)
{
    mica_affine_weights weights = weights_of(c);
    return mica_affine_linear(ctx, OP(c, 0), OP(c, 1), &weights,
                              &(mica_affine_opts){(int)c->i[X_ZERO], (int)c->i[Y_ZERO], (int)c->i[LOW],
                                                  (int)c->i[HIGH], (mica_dtype)c->i[TO]});
}

static void reference_linear(const op_call *c, double *const *v)
{
    for (size_t i = 0, channel; i < op_count(c, 0); i++) {
        int64_t sum = int8_sum_linear(c, v, i, &channel);
        v[0][i] = finished(c, v, sum, channel);
    }
}

OP_CASE(affine_linear) = {.names = {"y", "x", "w", "bias", "factor"},
                          .outs = 1,
                          .ins = 4,
                          .draws = 400,
                          .draw = draw_linear,
                          .fill = fill,
                          .run = run_linear,
                          .reference = reference_linear};

static void draw_conv(op_call *c, test_random *r) { draw_weights(c, r, int8_draw_conv(c, r)); }

static mica_status run_conv(mica_context *ctx, const op_call *c)
{
    mica_affine_weights weights = weights_of(c);
    mica_affine_conv_opts o = {.groups = c->i[GROUPS],
                               .x_zero = (int)c->i[X_ZERO],
                               .y_zero = (int)c->i[Y_ZERO],
                               .low = (int)c->i[LOW],
                               .high = (int)c->i[HIGH],
                               .dtype = (mica_dtype)c->i[TO]};
    for (int k = 0; k < 2; k++) {
        o.stride[k] = c->i[STRIDE + k];
        o.pad[k] = c->i[PAD + k];
        o.dilation[k] = c->i[DILATION + k];
    }
    return mica_affine_conv2d(ctx, OP(c, 0), OP(c, 1), &weights, &o);
}

static void reference_conv(const op_call *c, double *const *v)
{
    for (size_t i = 0, channel; i < op_count(c, 0); i++) {
        int64_t sum = int8_sum_conv(c, v, i, &channel);
        v[0][i] = finished(c, v, sum, channel);
    }
}

OP_CASE(affine_conv2d) = {.names = {"y", "x", "w", "bias", "factor"},
                          .outs = 1,
                          .ins = 4,
                          .any_shape = OP_BIT(1) | OP_BIT(2),
                          .draws = 600,
                          .draw = draw_conv,
                          .fill = fill,
                          .run = run_conv,
                          .resize = int8_resize_conv,
                          .reference = reference_conv};

/* ---- Global average ---- */

static void draw_pool(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = test_int(r, 2, 5);
    for (int k = 0; k < rank; k++)
        dims[k] = c->large ? test_int(r, 12, 16) : test_int(r, 1, 6);
    op_tensor(c, 1, MICA_I8, rank, dims);
    for (int k = 2; k < rank; k++)
        dims[k] = 1;
    op_tensor(c, 0, MICA_I8, test_chance(r, 50) ? 2 : rank, dims);
    draw_zeros(c, r);
    c->f[0] = (double)(float)exp(test_uniform(r, -1.0, 1.0));
}

static mica_status run_pool(mica_context *ctx, const op_call *c)
{
    return mica_affine_global_avg_pool(ctx, OP(c, 0), OP(c, 1),
                                       &(mica_affine_pool_opts){.factor = (float)c->f[0],
                                                                .x_zero = (int)c->i[X_ZERO],
                                                                .y_zero = (int)c->i[Y_ZERO],
                                                                .low = (int)c->i[LOW],
                                                                .high = (int)c->i[HIGH]});
}

static void reference_pool(const op_call *c, double *const *v)
{
    size_t planes = op_count(c, 0), count = planes > 0 ? op_count(c, 1) / planes : 0;
    for (size_t p = 0; p < planes; p++) {
        double sum = 0.0;
        for (size_t i = 0; i < count; i++)
            sum += v[1][p * count + i] - (double)c->i[X_ZERO];
        v[0][p] = rounded(c, (float)sum * ((float)c->f[0] / (float)count));
    }
}

OP_CASE(affine_global_avg_pool) = {.names = {"y", "x"},
                                   .outs = 1,
                                   .ins = 1,
                                   .any_shape = OP_BIT(1),
                                   .draw = draw_pool,
                                   .fill = fill,
                                   .run = run_pool,
                                   .reference = reference_pool};
