/* Cases of the operations that give tensors their first values, and of copy. */
#include <math.h>

#include "kernel/kernels.h"
#include "ops/op_index.h"

/* What a value becomes in a dtype. The conversions have tests of their own; this takes the plainest. */
static double stored(mica_dtype dtype, double value)
{
    int64_t bits = 0;
    mica_kernels_scalar.convert->run(&bits, dtype, &value, MICA_F64, 1);
    mica_kernels_scalar.convert->run(&value, MICA_F64, &bits, dtype, 1);
    return value;
}

/* ---- copy ---- */

static void draw_copy(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK], part[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 0, 5, dims);
    if (test_chance(r, 10) && !c->large) { /* beyond one tile of a transpose */
        rank = 2;
        dims[0] = test_int(r, 60, 140), dims[1] = test_int(r, 60, 140);
    }
    int part_rank = test_chance(r, 50) ? op_random_broadcast(r, rank, dims, part) : -1;
    op_tensor(c, 0, op_random_dtype(r), rank, dims);
    op_tensor(c, 1, test_chance(r, 50) ? c->tensor[0].dtype : op_random_dtype(r),
              part_rank < 0 ? rank : part_rank, part_rank < 0 ? dims : part);
}

static mica_status run_copy(mica_context *ctx, const op_call *c)
{
    return mica_copy(ctx, OP(c, 0), OP(c, 1));
}

static void reference_copy(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = stored(c->tensor[0].dtype, v[1][op_broadcast_index(&c->tensor[1], &c->tensor[0], i)]);
}

OP_CASE(copy) = {.names = {"dst", "src"},
                 .outs = 1,
                 .ins = 1,
                 .in_place = OP_BIT(1),
                 .any_shape = OP_BIT(0),
                 .any_dtype = OP_BIT(0) | OP_BIT(1),
                 .blocks = OP_BIT(0) | OP_BIT(1),
                 .draws = 600,
                 .draw = draw_copy,
                 .run = run_copy,
                 .reference = reference_copy};

/* ---- Constants, ranges, functions ---- */

/* f[0], f[1]: parameters. i[0]: a seed. */
static void draw_dst(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 0, 5, dims);
    op_tensor(c, 0, op_random_dtype(r), rank, dims);
    c->f[0] = test_uniform(r, -100, 100);
    c->f[1] = test_uniform(r, -3, 3);
    c->i[0] = test_int(r, 0, 1000000);
}

static mica_status run_fill(mica_context *ctx, const op_call *c) { return mica_fill(ctx, OP(c, 0), c->f[0]); }
static mica_status run_zeros(mica_context *ctx, const op_call *c) { return mica_zeros(ctx, OP(c, 0)); }
static mica_status run_ones(mica_context *ctx, const op_call *c) { return mica_ones(ctx, OP(c, 0)); }
static mica_status run_range(mica_context *ctx, const op_call *c)
{
    return mica_range(ctx, OP(c, 0), c->f[0], c->f[1]);
}

static double weigh_index(const mica_index *index, void *user)
{
    const op_call *c = user;
    double value = c->f[0];
    for (int k = 0; c != NULL && k < c->tensor[0].rank; k++)
        value = value * 0.5 + (double)index[k] * c->f[1];
    return value;
}

static mica_status run_generate(mica_context *ctx, const op_call *c)
{
    op_call copy = *c;
    return mica_generate(ctx, OP(c, 0), weigh_index, &copy);
}

static void reference_constant(const op_call *c, double *const *v, double value)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = stored(c->tensor[0].dtype, value);
}
static void reference_fill(const op_call *c, double *const *v) { reference_constant(c, v, c->f[0]); }
static void reference_zeros(const op_call *c, double *const *v) { reference_constant(c, v, 0); }
static void reference_ones(const op_call *c, double *const *v) { reference_constant(c, v, 1); }
static void reference_range(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = stored(c->tensor[0].dtype, c->f[0] + (double)i * c->f[1]);
}
static void reference_generate(const op_call *c, double *const *v)
{
    op_call copy = *c;
    for (size_t i = 0; i < op_count(c, 0); i++) {
        mica_index index[MICA_MAX_RANK] = {0}, rest = (mica_index)i;
        for (int k = c->tensor[0].rank - 1; k >= 0; k--) {
            index[k] = rest % c->tensor[0].dim[k];
            rest /= c->tensor[0].dim[k];
        }
        v[0][i] = stored(c->tensor[0].dtype, weigh_index(index, &copy));
    }
}

#define MAKE_CASE(op, draw_op, allowed)         \
    OP_CASE(op) = {.names = {"dst"},            \
                   .outs = 1,                   \
                   .any_shape = OP_BIT(0),      \
                   .any_dtype = OP_BIT(0),      \
                   .draw = draw_op,             \
                   .run = run_##op,             \
                   .reference = reference_##op, \
                   .tolerance = allowed}

MAKE_CASE(fill, draw_dst, 0);
MAKE_CASE(zeros, draw_dst, 0);
MAKE_CASE(ones, draw_dst, 0);
MAKE_CASE(range, draw_dst, 0);
MAKE_CASE(generate, draw_dst, 0);

/* ---- Random numbers ---- */

static mica_random stream_of(const op_call *c) { return (mica_random){(uint64_t)c->i[0], 3, 12345}; }

/* f32 mostly: others add a rounding, which makes whole numbers of normal ones hard to compare. */
static void draw_random(op_call *c, test_random *r)
{
    draw_dst(c, r);
    c->tensor[0].dtype = test_chance(r, 50) ? MICA_F32 : MICA_F64;
    if (c->f[1] < c->f[0]) {
        double high = c->f[0];
        c->f[0] = c->f[1];
        c->f[1] = high;
    }
    c->scale = 100.0;
}

static void draw_weights(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK];
    draw_random(c, r);
    int rank = op_random_shape(c, r, 2, 4, dims);
    op_tensor(c, 0, MICA_F32, rank, dims);
    c->f[0] = test_uniform(r, 0.5, 2);
    c->scale = 1.0;
}

static mica_status run_uniform(mica_context *ctx, const op_call *c)
{
    mica_random from = stream_of(c);
    return mica_uniform(ctx, OP(c, 0), &from, (float)c->f[0], (float)c->f[1]);
}
static mica_status run_normal(mica_context *ctx, const op_call *c)
{
    mica_random from = stream_of(c);
    return mica_normal(ctx, OP(c, 0), &from, (float)c->f[0], (float)c->f[1]);
}

/* The same values one at a time, as base - half + u * 2 half, or base + half * normal. */
static void reference_stream(const op_call *c, double *value, bool normal, double base, double spread)
{
    mica_random from = stream_of(c);
    for (size_t i = 0; i < op_count(c, 0); i++)
        value[i] = base + spread * (double)(normal ? mica_random_normal(&from) : mica_random_uniform(&from));
}
static void reference_uniform(const op_call *c, double *const *v)
{
    reference_stream(c, v[0], false, c->f[0], c->f[1] - c->f[0]);
}
static void reference_normal(const op_call *c, double *const *v)
{
    reference_stream(c, v[0], true, c->f[0], c->f[1]);
}

MAKE_CASE(uniform, draw_random, 1e-6);
MAKE_CASE(normal, draw_random, 2e-6);

static double variance_of(const op_call *c, bool xavier)
{
    const mica_tensor *t = &c->tensor[0];
    double kernel = 1;
    for (int k = 2; k < t->rank; k++)
        kernel *= (double)t->dim[k];
    double in = kernel * (double)t->dim[1], out = kernel * (double)t->dim[0];
    return 2.0 / (xavier ? in + out : in);
}

#define WEIGHTS_CASE(op, xavier, gauss)                                                         \
    static mica_status run_##op(mica_context *ctx, const op_call *c)                            \
    {                                                                                           \
        mica_random from = stream_of(c);                                                        \
        return mica_##op(ctx, OP(c, 0), &from, (float)c->f[0]);                                 \
    }                                                                                           \
    static void reference_##op(const op_call *c, double *const *v)                              \
    {                                                                                           \
        double spread = c->f[0] * sqrt(variance_of(c, xavier));                                 \
        double half = spread * sqrt(3.0);                                                       \
        reference_stream(c, v[0], gauss, (gauss) ? 0.0 : -half, (gauss) ? spread : 2.0 * half); \
    }                                                                                           \
    MAKE_CASE(op, draw_weights, 2e-6)

WEIGHTS_CASE(xavier_uniform, true, false);
WEIGHTS_CASE(xavier_normal, true, true);
WEIGHTS_CASE(he_uniform, false, false);
WEIGHTS_CASE(he_normal, false, true);
