/* Bytes with zero points: element by element, and the mean of planes. Products: int8_product.c. */
#include <math.h>

#include "node/entry.h"
#include "node/int8.h"

/* ---- From floats and back ---- */

static mica_status infer_scaled(mica_infer *i, mica_dtype from, mica_dtype to)
{
    const mica_affine_scale_opts *o = i->opts;
    const mica_tensor *x = i->in[0];
    MICA_TRY(mica_infer_dtype(i, 0, from));
    MICA_TRY(mica_infer_zero(i, o->zero));
    if (!(o->scale > 0.0f))
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "scale is %g: expected a number above 0",
                               (double)o->scale);
    return mica_infer_out(i, 0, to, x->rank, x->dim);
}

static mica_status quantize_infer(mica_infer *i) { return infer_scaled(i, MICA_F32, MICA_I8); }
static mica_status dequantize_infer(mica_infer *i) { return infer_scaled(i, MICA_I8, MICA_F32); }

static mica_status quantize_run(const mica_call *c)
{
    return mica_affine_quantize(c->ctx, c->out[0], c->in[0], c->opts);
}
static mica_status dequantize_run(const mica_call *c)
{
    return mica_affine_dequantize(c->ctx, c->out[0], c->in[0], c->opts);
}

static void quantize_sample(mica_op_sample *s)
{
    mica_affine_scale_opts *o = s->opts;
    mica_sample_one(s, -1.5, 1.5);
    o->scale = 1.0f / (float)mica_op_sample_int(s, 1, 127);
    mica_sample_zeros(s, &o->zero, 1);
}

static void dequantize_sample(mica_op_sample *s)
{
    quantize_sample(s);
    s->in[0].dtype = MICA_I8;
    mica_sample_range(s, 0, -128.0, 128.0);
}

static const mica_field scale_fields[] = {
    MICA_FIELD(mica_affine_scale_opts, scale, FLOAT, "of the i8 tensor"),
    MICA_FIELD(mica_affine_scale_opts, zero, INT, "its zero point, -128 to 127")};

MICA_INT8_ENTRY(affine_quantize, "x / scale, rounded, plus zero, limited, as i8", .ins = 1,
                .flags = MICA_OP_CHEAP, .names = (const char *const[]){"x", "y"},
                .opts_bytes = sizeof(mica_affine_scale_opts), MICA_FIELD_LIST(scale_fields), .fixed_ins = 1,
                .infer = quantize_infer, .run = quantize_run, .passes = MICA_LAYOUTS(mica_elementwise_passes),
                .sample = quantize_sample)
MICA_INT8_ENTRY(affine_dequantize, "(x - zero) scale, of i8, as f32", .ins = 1, .flags = MICA_OP_CHEAP,
                .names = (const char *const[]){"x", "y"}, .opts_bytes = sizeof(mica_affine_scale_opts),
                MICA_FIELD_LIST(scale_fields), .infer = dequantize_infer, .run = dequantize_run,
                .passes = MICA_LAYOUTS(mica_elementwise_passes), .sample = dequantize_sample)

/* ---- Signed and unsigned ---- */

static mica_status flip_infer(mica_infer *i)
{
    const mica_tensor *x = i->in[0];
    if (x->dtype != MICA_U8 && x->dtype != MICA_I8)
        return mica_infer_fail(i, MICA_ERR_DTYPE, "x is %s: expected u8 or i8", mica_dtype_name(x->dtype));
    return mica_infer_out(i, 0, x->dtype == MICA_U8 ? MICA_I8 : MICA_U8, x->rank, x->dim);
}

static mica_status flip_run(const mica_call *c) { return mica_affine_flip(c->ctx, c->out[0], c->in[0]); }

static void flip_sample(mica_op_sample *s)
{
    mica_sample_one(s, 0.0, 128.0);
    s->in[0].dtype = mica_sample_chance(s) ? MICA_I8 : MICA_U8;
}

MICA_INT8_ENTRY(affine_flip, "u8 less 128 as i8, or i8 plus 128 as u8", .ins = 1, .flags = MICA_OP_CHEAP,
                .names = (const char *const[]){"x", "y"}, .in_place = {1}, .infer = flip_infer,
                .run = flip_run, .passes = MICA_LAYOUTS(mica_elementwise_passes), .sample = flip_sample)

/* ---- Sums of two ---- */

static mica_status add_infer(mica_infer *i)
{
    const mica_affine_add_opts *o = i->opts;
    MICA_TRY(mica_infer_dtype(i, 0, MICA_I8));
    MICA_TRY(mica_infer_dtype(i, 1, MICA_I8));
    if (!mica_tensor_same_shape(i->in[0], i->in[1]))
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected two of one shape, got %s and %s",
                               MICA_SHAPE(i->in[0]), MICA_SHAPE(i->in[1]));
    for (int k = 0; k < 2; k++)
        if (!isfinite(o->factor[k]))
            return mica_infer_fail(i, MICA_ERR_ARGUMENT, "factor is %g: expected a number",
                                   (double)o->factor[k]);
    MICA_TRY(mica_infer_zero(i, o->zero[0]));
    MICA_TRY(mica_infer_affine(i, o->zero[1], o->zero[2], o->low, o->high));
    return mica_infer_like(i, 0, 0);
}

static mica_status add_run(const mica_call *c)
{
    return mica_affine_add(c->ctx, c->out[0], c->in[0], c->in[1], c->opts);
}

static void add_sample(mica_op_sample *s)
{
    mica_affine_add_opts *o = s->opts;
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 1, 3, dims);
    for (int k = 0; k < 2; k++) {
        mica_sample_bytes(s, k, rank, dims);
        o->factor[k] = (float)mica_op_sample_int(s, 0, 20) / 10.0f;
    }
    mica_sample_zeros(s, o->zero, 3);
    mica_sample_limits(s, &o->low, &o->high);
}

static const mica_field add_fields[] = {
    MICA_FIELDS(mica_affine_add_opts, factor, FLOAT, "of a and of b"),
    MICA_FIELDS(mica_affine_add_opts, zero, INT, "the zero points of a, b and y, -128 to 127"),
    MICA_AFFINE_LIMIT_FIELDS(mica_affine_add_opts)};

MICA_INT8_ENTRY(affine_add, "(a - zero[0]) factor[0] + (b - zero[1]) factor[1], rounded, plus zero[2]",
                .ins = 2, .flags = MICA_OP_CHEAP, .names = (const char *const[]){"a", "b", "y"},
                .opts_bytes = sizeof(mica_affine_add_opts), MICA_FIELD_LIST(add_fields), .in_place = {3},
                .infer = add_infer, .run = add_run, .passes = MICA_LAYOUTS(mica_elementwise_passes),
                .sample = add_sample)

/* ---- Products of two ---- */

static mica_status matmul_infer(mica_infer *i)
{
    const mica_affine_matmul_opts *o = i->opts;
    const mica_tensor *a = i->in[0], *b = i->in[1];
    int rank = a->rank;
    MICA_TRY(mica_infer_dtype(i, 0, MICA_I8));
    MICA_TRY(mica_infer_dtype(i, 1, MICA_I8));
    bool fits = rank >= 2 && b->rank == rank && b->dim[rank - 2] == a->dim[rank - 1] &&
                a->dim[rank - 1] <= MICA_AFFINE_MATMUL_VALUES;
    for (int k = 0; fits && k < rank - 2; k++)
        fits = a->dim[k] == b->dim[k];
    if (!fits)
        return mica_infer_fail(i, MICA_ERR_SHAPE,
                               "expected a [..., M, K] and b [..., K, N], K at most %d, got %s and %s",
                               MICA_AFFINE_MATMUL_VALUES, MICA_SHAPE(a), MICA_SHAPE(b));
    if (!(o->factor >= 0.0f) || !isfinite(o->factor))
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "factor is %g: expected a number from 0 up",
                               (double)o->factor);
    if (o->dtype != MICA_I8 && o->dtype != MICA_F32)
        return mica_infer_fail(i, MICA_ERR_DTYPE, "dtype is %s: expected i8 or f32",
                               mica_dtype_name(o->dtype));
    MICA_TRY(mica_infer_zero(i, o->a_zero));
    MICA_TRY(mica_infer_affine(i, o->b_zero, o->y_zero, o->low, o->high));
    mica_index dims[MICA_MAX_RANK];
    for (int k = 0; k < rank; k++)
        dims[k] = k < rank - 1 ? a->dim[k] : b->dim[k];
    return mica_infer_out(i, 0, o->dtype, rank, dims);
}

static mica_status matmul_run(const mica_call *c)
{
    return mica_affine_matmul(c->ctx, c->out[0], c->in[0], c->in[1], c->opts);
}

static void matmul_sample(mica_op_sample *s)
{
    mica_affine_matmul_opts *o = s->opts;
    mica_index a[4], b[4];
    int rank = (int)mica_op_sample_int(s, 2, 4);
    for (int k = 0; k < rank; k++)
        a[k] = b[k] = mica_op_sample_int(s, 1, 5);
    b[rank - 2] = a[rank - 1];
    b[rank - 1] = mica_op_sample_int(s, 1, 5);
    mica_sample_bytes(s, 0, rank, a);
    mica_sample_bytes(s, 1, rank, b);
    o->factor = (float)mica_op_sample_int(s, 1, 20) / 1000.0f;
    o->dtype = mica_sample_chance(s) ? MICA_I8 : MICA_F32;
    mica_sample_zeros(s, &o->a_zero, 1);
    mica_sample_zeros(s, &o->b_zero, 1);
    mica_sample_zeros(s, &o->y_zero, 1);
    mica_sample_limits(s, &o->low, &o->high);
}

static const mica_field matmul_fields[] = {
    MICA_FIELD(mica_affine_matmul_opts, factor, FLOAT, "of sums"),
    MICA_FIELD(mica_affine_matmul_opts, a_zero, INT, "the zero point of a, -128 to 127"),
    MICA_FIELD(mica_affine_matmul_opts, b_zero, INT, "that of b"),
    MICA_FIELD(mica_affine_matmul_opts, y_zero, INT, "that of y"),
    MICA_AFFINE_LIMIT_FIELDS(mica_affine_matmul_opts),
    MICA_FIELD(mica_affine_matmul_opts, dtype, DTYPE, "of y: i8, or f32 (not rounded)")};

MICA_INT8_ENTRY(affine_matmul,
                "(a - a_zero) (b - b_zero), a product of matrices, times factor, rounded, plus y_zero",
                .ins = 2, .names = (const char *const[]){"a", "b", "y"},
                .opts_bytes = sizeof(mica_affine_matmul_opts), MICA_FIELD_LIST(matmul_fields),
                .infer = matmul_infer, .run = matmul_run, .sample = matmul_sample)

/* ---- Global average ---- */

static mica_status global_infer(mica_infer *i)
{
    const mica_affine_pool_opts *o = i->opts;
    const mica_tensor *x = i->in[0];
    double count = 1.0;
    MICA_TRY(mica_infer_dtype(i, 0, MICA_I8));
    if (x->rank < 2)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected i8 [N, C, ...] of rank 2 or more");
    for (int k = 2; k < x->rank; k++)
        count *= (double)x->dim[k];
    if (count < 1.0 || count > MICA_INT8_PRODUCTS)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "sums of %.0f values: expected 1 to %d", count,
                               MICA_INT8_PRODUCTS);
    if (!(o->factor >= 0.0f) || !isfinite(o->factor))
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "factor is %g: expected a number from 0 up",
                               (double)o->factor);
    MICA_TRY(mica_infer_affine(i, o->x_zero, o->y_zero, o->low, o->high));
    mica_index dims[MICA_MAX_RANK] = {x->dim[0], x->dim[1], 1, 1, 1, 1, 1, 1};
    return mica_infer_out(i, 0, MICA_I8, o->keep ? x->rank : 2, dims);
}

static mica_status global_run(const mica_call *c)
{
    return mica_affine_global_avg_pool(c->ctx, c->out[0], c->in[0], c->opts);
}

static void global_sample(mica_op_sample *s)
{
    mica_affine_pool_opts *o = s->opts;
    mica_index dims[5];
    for (int k = 0; k < 5; k++)
        dims[k] = mica_op_sample_int(s, 1, 4);
    o->keep = mica_sample_chance(s);
    mica_sample_bytes(s, 0, (int)mica_op_sample_int(s, 3, 5), dims);
    o->factor = (float)mica_op_sample_int(s, 1, 20) / 10.0f;
    mica_sample_zeros(s, &o->x_zero, 1);
    mica_sample_zeros(s, &o->y_zero, 1);
    mica_sample_limits(s, &o->low, &o->high);
}

static const mica_field global_fields[] = {
    MICA_FIELD(mica_affine_pool_opts, keep, BOOL, "[N, C, 1, ...] instead of [N, C]"),
    MICA_FIELD(mica_affine_pool_opts, factor, FLOAT, "of the mean"),
    MICA_AFFINE_FIELDS(mica_affine_pool_opts),
};

MICA_INT8_ENTRY(affine_global_avg_pool,
                "means of channels of i8 [N, C, ...], by factor, rounded, plus y_zero", .ins = 1,
                .names = (const char *const[]){"x", "y"}, .opts_bytes = sizeof(mica_affine_pool_opts),
                MICA_FIELD_LIST(global_fields), .infer = global_infer, .run = global_run,
                .passes = MICA_LAYOUTS(mica_reducing_passes), .sample = global_sample)
