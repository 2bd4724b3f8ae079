/* Int8, element by element. */
#include "node/entry.h"
#include "node/int8.h"

/* ---- From floats and back ---- */

static mica_status infer_scaled(mica_infer *i, mica_dtype from, mica_dtype to)
{
    float scale = ((const mica_int8_scale_opts *)i->opts)->scale;
    const mica_tensor *x = i->in[0];
    MICA_TRY(mica_infer_dtype(i, 0, from));
    if (!(scale > 0.0f))
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "scale is %g: expected a number above 0", (double)scale);
    return mica_infer_out(i, 0, to, x->rank, x->dim);
}

static mica_status quantize_infer(mica_infer *i) { return infer_scaled(i, MICA_F32, MICA_I8); }
static mica_status dequantize_infer(mica_infer *i) { return infer_scaled(i, MICA_I8, MICA_F32); }

static mica_status quantize_run(const mica_call *c)
{
    return mica_quantize(c->ctx, c->out[0], c->in[0], c->opts);
}
static mica_status dequantize_run(const mica_call *c)
{
    return mica_dequantize(c->ctx, c->out[0], c->in[0], c->opts);
}

static void quantize_sample(mica_op_sample *s)
{
    mica_sample_one(s, -1.5, 1.5);
    ((mica_int8_scale_opts *)s->opts)->scale = 1.0f / (float)mica_op_sample_int(s, 1, 127);
}

static void dequantize_sample(mica_op_sample *s)
{
    quantize_sample(s);
    s->in[0].dtype = MICA_I8;
    mica_sample_range(s, 0, -127.0, 128.0);
}

static const mica_field scale_fields[] = {MICA_FIELD(mica_int8_scale_opts, scale, FLOAT, "of the i8 tensor")};

MICA_INT8_ENTRY(quantize, "x / scale, limited to -127 to 127 and rounded, as i8", .ins = 1,
                .flags = MICA_OP_CHEAP, .names = (const char *const[]){"x", "y"},
                .opts_bytes = sizeof(mica_int8_scale_opts), MICA_FIELD_LIST(scale_fields), .fixed_ins = 1,
                .infer = quantize_infer, .run = quantize_run, .passes = MICA_LAYOUTS(mica_elementwise_passes),
                .sample = quantize_sample)
MICA_INT8_ENTRY(dequantize, "scale x, of i8, as f32", .ins = 1, .flags = MICA_OP_CHEAP,
                .names = (const char *const[]){"x", "y"}, .opts_bytes = sizeof(mica_int8_scale_opts),
                MICA_FIELD_LIST(scale_fields), .infer = dequantize_infer, .run = dequantize_run,
                .passes = MICA_LAYOUTS(mica_elementwise_passes), .sample = dequantize_sample)

/* ---- Another scale ---- */

static mica_status rescale_infer(mica_infer *i)
{
    const mica_int8_rescale_opts *o = i->opts;
    MICA_TRY(mica_infer_dtype(i, 0, MICA_I8));
    MICA_TRY(mica_infer_factor(i, o->multiplier, o->shift));
    MICA_TRY(mica_infer_limits(i, o->low, o->high));
    return mica_infer_like(i, 0, 0);
}

static mica_status rescale_run(const mica_call *c)
{
    return mica_int8_rescale(c->ctx, c->out[0], c->in[0], c->opts);
}

static void rescale_sample(mica_op_sample *s)
{
    mica_int8_rescale_opts *o = s->opts;
    mica_index dims[MICA_MAX_RANK];
    mica_sample_bytes(s, 0, mica_sample_dims(s, 1, 3, dims), dims);
    mica_sample_factor(s, &o->multiplier, &o->shift, 29);
    mica_sample_limits(s, &o->low, &o->high);
}

static const mica_field rescale_fields[] = {MICA_INT8_FACTOR_FIELDS(mica_int8_rescale_opts)};

MICA_INT8_ENTRY(int8_rescale, "x multiplier / 2^shift, rounded and limited", .ins = 1, .flags = MICA_OP_CHEAP,
                .names = (const char *const[]){"x", "y"}, .opts_bytes = sizeof(mica_int8_rescale_opts),
                MICA_FIELD_LIST(rescale_fields), .in_place = {1}, .infer = rescale_infer, .run = rescale_run,
                .passes = MICA_LAYOUTS(mica_elementwise_passes), .sample = rescale_sample)

/* ---- Sums of two ---- */

static mica_status add_infer(mica_infer *i)
{
    const mica_int8_add_opts *o = i->opts;
    const int most = 1 << 21;
    MICA_TRY(mica_infer_dtype(i, 0, MICA_I8));
    MICA_TRY(mica_infer_dtype(i, 1, MICA_I8));
    if (!mica_tensor_same_shape(i->in[0], i->in[1]))
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected two of one shape, got %s and %s",
                               MICA_SHAPE(i->in[0]), MICA_SHAPE(i->in[1]));
    for (int k = 0; k < 2; k++)
        if (o->multiplier[k] < -most || o->multiplier[k] > most || o->shift < 1 || o->shift > 30)
            return mica_infer_fail(
                i, MICA_ERR_ARGUMENT,
                "multiplier is %d, shift is %d: expected at most 2^21 in size, and 1 to 30", o->multiplier[k],
                o->shift);
    MICA_TRY(mica_infer_limits(i, o->low, o->high));
    return mica_infer_like(i, 0, 0);
}

static mica_status add_run(const mica_call *c)
{
    return mica_int8_add(c->ctx, c->out[0], c->in[0], c->in[1], c->opts);
}

static void add_sample(mica_op_sample *s)
{
    mica_int8_add_opts *o = s->opts;
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 1, 3, dims);
    for (int k = 0; k < 2; k++) {
        mica_sample_bytes(s, k, rank, dims);
        o->multiplier[k] = (int)mica_op_sample_int(s, 0, 1 << 21);
    }
    o->shift = (int)mica_op_sample_int(s, 20, 22);
    mica_sample_limits(s, &o->low, &o->high);
}

static const mica_field add_fields[] = {
    MICA_FIELDS(mica_int8_add_opts, multiplier, INT, "of a and of b: at most 2^21 in size"),
    MICA_FIELD(mica_int8_add_opts, shift, INT, "bits that the sum goes down by, 1 to 30"),
    MICA_INT8_LIMIT_FIELDS(mica_int8_add_opts)};

MICA_INT8_ENTRY(int8_add, "(a multiplier[0] + b multiplier[1]) / 2^shift, rounded and limited", .ins = 2,
                .flags = MICA_OP_CHEAP, .names = (const char *const[]){"a", "b", "y"},
                .opts_bytes = sizeof(mica_int8_add_opts), MICA_FIELD_LIST(add_fields), .in_place = {3},
                .infer = add_infer, .run = add_run, .passes = MICA_LAYOUTS(mica_elementwise_passes),
                .sample = add_sample)
