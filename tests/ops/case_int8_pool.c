/* Cases of int8 pooling. */
#include "ops/op_case.h"

#include "ops/int8_reference.h"

static void fill(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    (void)c;
    (void)tensor;
    for (size_t i = 0; i < count; i++)
        value[i] = test_int(r, -127, 127);
}

static void draw_factor(op_call *c, test_random *r)
{
    c->i[MULTIPLIER] = (1 << 30) + test_int(r, 0, (1 << 30) - 1);
    c->i[SHIFT] = test_int(r, 29, 36);
    c->i[LOW] = test_chance(r, 50) ? 0 : test_int(r, -127, 0);
    c->i[HIGH] = c->i[LOW] == 0 && test_chance(r, 50) ? 0 : test_int(r, 1, 127);
}

static mica_pooling_opts windows_of(const op_call *c)
{
    mica_pooling_opts o = {.ceil_mode = c->i[CEIL] != 0};
    for (int k = 0; k < 2; k++) {
        o.kernel[k] = c->i[KERNEL + k];
        o.stride[k] = c->i[STRIDE + k];
        o.pad[k] = c->i[PAD + k];
        o.dilation[k] = c->i[DILATION + k];
    }
    return o;
}

static void draw_windows(op_call *c, test_random *r, bool dilate)
{
    int rank = 2 + test_int(r, c->large ? 1 : 0, 2);
    mica_index in[4], out[4];
    for (int i = 0; i < rank - 2; i++)
        in[i] = out[i] = c->large ? test_int(r, 10, 40) : test_chance(r, 4) ? 0 : test_int(r, 1, 3);
    c->i[CEIL] = test_chance(r, 30);
    for (int k = 0; k < 2; k++) {
        long kernel = test_int(r, 1, 4), dilation = dilate && test_chance(r, 30) ? test_int(r, 1, 3) : 1;
        long extent = (kernel - 1) * dilation + 1;
        c->i[KERNEL + k] = kernel;
        c->i[STRIDE + k] = test_chance(r, 40) ? 0 : test_int(r, 1, 3);
        c->i[DILATION + k] = dilation == 1 ? 0 : dilation;
        c->i[PAD + k] = test_chance(r, 50) ? test_int(r, 0, (int)(extent / 2)) : 0;
        in[rank - 2 + k] = c->large ? test_int(r, 30, 40) : test_int(r, 1, 12) + extent;
        if (test_chance(r, 3))
            in[rank - 2 + k] += 600; /* more than is done at a time */
        mica_pooling_opts o = windows_of(c);
        out[rank - 2 + k] = mica_pooling_size(in[rank - 2 + k], k, &o);
    }
    op_tensor(c, 0, MICA_I8, rank, out);
    op_tensor(c, 1, MICA_I8, rank, in);
    draw_factor(c, r);
}

static void draw_max(op_call *c, test_random *r) { draw_windows(c, r, true); }
static void draw_average(op_call *c, test_random *r) { draw_windows(c, r, false); }

static mica_status run_max(mica_context *ctx, const op_call *c)
{
    mica_pooling_opts o = windows_of(c);
    return mica_int8_max_pool2d(ctx, OP(c, 0), OP(c, 1), &o);
}

static mica_status run_average(mica_context *ctx, const op_call *c)
{
    mica_pooling_opts o = windows_of(c);
    return mica_int8_avg_pool2d(ctx, OP(c, 0), OP(c, 1),
                                &(mica_int8_avg_pool_opts){.kernel = {o.kernel[0], o.kernel[1]},
                                                           .stride = {o.stride[0], o.stride[1]},
                                                           .pad = {o.pad[0], o.pad[1]},
                                                           .ceil_mode = o.ceil_mode,
                                                           .multiplier = (int)c->i[MULTIPLIER],
                                                           .shift = (int)c->i[SHIFT],
                                                           .low = (int)c->i[LOW],
                                                           .high = (int)c->i[HIGH]});
}

static void reference_windows(const op_call *c, double *const *v, bool maximum)
{
    const mica_tensor *y = &c->tensor[0], *x = &c->tensor[1];
    long rows = y->dim[y->rank - 2], columns = y->dim[y->rank - 1];
    long plane = x->dim[x->rank - 2] * x->dim[x->rank - 1];
    for (size_t i = 0; i < op_count(c, 0); i++) {
        const double *from = v[1] + (long)i / columns / rows * plane;
        int64_t sum = 0, most = -128;
        for (long k = 0; k < c->i[KERNEL] * c->i[KERNEL + 1]; k++) {
            long at[2] = {(long)i / columns % rows, (long)i % columns};
            if (!int8_place(c, x, at, (long[]){k / c->i[KERNEL + 1], k % c->i[KERNEL + 1]}))
                continue;
            int64_t value = (int64_t)from[at[0] * x->dim[x->rank - 1] + at[1]];
            sum += value;
            most = value > most ? value : most;
        }
        v[0][i] = maximum ? (double)most : int8_finished(c, sum, c->i[MULTIPLIER], (int)c->i[SHIFT]);
    }
}

static void reference_max(const op_call *c, double *const *v) { reference_windows(c, v, true); }
static void reference_average(const op_call *c, double *const *v) { reference_windows(c, v, false); }

OP_CASE(int8_max_pool2d) = {.names = {"y", "x"},
                            .outs = 1,
                            .ins = 1,
                            .any_shape = OP_BIT(1),
                            .draws = 400,
                            .draw = draw_max,
                            .fill = fill,
                            .run = run_max,
                            .reference = reference_max};
OP_CASE(int8_avg_pool2d) = {.names = {"y", "x"},
                            .outs = 1,
                            .ins = 1,
                            .any_shape = OP_BIT(1),
                            .draws = 400,
                            .draw = draw_average,
                            .fill = fill,
                            .run = run_average,
                            .reference = reference_average};

static void draw_global(op_call *c, test_random *r)
{
    mica_index x[5] = {test_int(r, c->large ? 10 : 0, c->large ? 20 : 3), c->large ? 40 : test_int(r, 1, 5)},
               y[5] = {x[0], x[1], 1, 1, 1};
    int rank = test_int(r, 2, 5);
    for (int k = 2; k < rank; k++)
        x[k] = test_int(r, 1, 9);
    op_tensor(c, 0, MICA_I8, test_chance(r, 50) ? 2 : rank, y);
    op_tensor(c, 1, MICA_I8, rank, x);
    draw_factor(c, r);
}

static mica_status run_global(mica_context *ctx, const op_call *c)
{
    return mica_int8_global_avg_pool(ctx, OP(c, 0), OP(c, 1),
                                     &(mica_int8_global_pool_opts){.multiplier = (int)c->i[MULTIPLIER],
                                                                   .shift = (int)c->i[SHIFT],
                                                                   .low = (int)c->i[LOW],
                                                                   .high = (int)c->i[HIGH]});
}

static void reference_global(const op_call *c, double *const *v)
{
    size_t planes = op_count(c, 0), each = planes > 0 ? op_count(c, 1) / planes : 0;
    for (size_t i = 0; i < planes; i++) {
        int64_t sum = 0;
        for (size_t k = 0; k < each; k++)
            sum += (int64_t)v[1][i * each + k];
        v[0][i] = int8_finished(c, sum, c->i[MULTIPLIER], (int)c->i[SHIFT]);
    }
}

OP_CASE(int8_global_avg_pool) = {.names = {"y", "x"},
                                 .outs = 1,
                                 .ins = 1,
                                 .any_shape = OP_BIT(1),
                                 .draw = draw_global,
                                 .fill = fill,
                                 .run = run_global,
                                 .reference = reference_global};
