/* Cases of dropout. */
#include <math.h>

#include "ops/op_case.h"

/* Options: f[0] rate; i[0] seed, i[1] stream, i[2] position. */
static void draw_rate(op_call *c, test_random *r)
{
    static const double ends[] = {0.0, 1e-6, 1e-5, 1.0 - 1e-5, 1.0 - 1e-6, 1.0};
    c->f[0] = test_chance(r, 20) ? ends[test_int(r, 0, 5)] : test_uniform(r, 0.05, 0.95);
    for (int i = 0; i < 3; i++)
        c->i[i] = test_int(r, 0, 1000);
}

/* The share that stays: the rate is taken to a 65,536th. */
static double keep_of(const op_call *c)
{
    double kept = floor((1.0 - (double)(float)c->f[0]) * 65536.0 + 0.5);
    return (kept == 0.0 && c->f[0] < 1.0 ? 1.0 : kept) / 65536.0;
}

static void draw_forward(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 0, 4, dims);
    op_tensor(c, 0, MICA_F32, rank, dims);
    op_tensor(c, 1, MICA_U8, rank, dims);
    op_tensor(c, 2, MICA_F32, rank, dims);
    c->absent[1] = test_chance(r, 20);
    draw_rate(c, r);
}

static mica_status run_forward(mica_context *ctx, const op_call *c)
{
    mica_dropout_opts o = {(float)c->f[0], {(uint64_t)c->i[0], (uint64_t)c->i[1], (uint64_t)c->i[2]}};
    return mica_dropout(ctx, OP(c, 0), OP(c, 1), OP(c, 2), &o);
}

static void reference_forward(const op_call *c, double *const *v)
{
    mica_random random = {(uint64_t)c->i[0], (uint64_t)c->i[1], (uint64_t)c->i[2]};
    for (size_t i = 0; i < op_count(c, 0); i++) {
        bool keep = mica_random_bits16(&random) < keep_of(c) * 65536.0;
        v[0][i] = keep ? v[2][i] / keep_of(c) : 0.0;
        if (!c->absent[1])
            v[1][i] = keep;
    }
}

OP_CASE(dropout) = {.names = {"y", "mask", "x"},
                    .outs = 2,
                    .ins = 1,
                    .in_place = OP_BIT(2),
                    .optional = OP_BIT(1),
                    .draw = draw_forward,
                    .run = run_forward,
                    .reference = reference_forward,
                    .tolerance = 1e-6};

static void draw_backward(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 0, 4, dims);
    op_tensor(c, 0, MICA_F32, rank, dims);
    op_tensor(c, 1, MICA_F32, rank, dims);
    op_tensor(c, 2, MICA_U8, rank, dims);
    draw_rate(c, r);
    if (c->f[0] > 0.95) /* where nothing is kept, the mask says so */
        c->f[0] = 0.5;
}

static void fill_backward(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    (void)c;
    for (size_t i = 0; i < count; i++)
        value[i] = tensor == 2 ? test_chance(r, 50) : test_normal(r);
}

static mica_status run_backward(mica_context *ctx, const op_call *c)
{
    return mica_dropout_backward(ctx, OP(c, 0), OP(c, 1), OP(c, 2), (float)c->f[0]);
}

static void reference_backward(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = v[2][i] != 0.0 ? v[1][i] / keep_of(c) : 0.0;
}

OP_CASE(dropout_backward) = {.names = {"dx", "dy", "mask"},
                             .outs = 1,
                             .ins = 2,
                             .in_place = OP_BIT(1),
                             .draw = draw_backward,
                             .fill = fill_backward,
                             .run = run_backward,
                             .reference = reference_backward,
                             .tolerance = 1e-6};
