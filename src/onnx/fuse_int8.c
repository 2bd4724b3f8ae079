/* Quantized models, between products: DequantizeLinear, what moves, adds or pools, QuantizeLinear. What comes before a
 * QuantizeLinear was imported in floats; where all of it was made from bytes it is recorded once more, for bytes, and
 * the calls for floats are needed by nobody. */
#include <math.h>
#include <string.h>

#include "onnx/int8.h"

/* ---- Bytes ---- */

mica_onnx_ref mica_onnx_as_i8(mica_onnx_importing *n, mica_onnx_ref ref)
{
    const mica_onnx_recorded *flip = mica_onnx_made_by(n, ref, "affine_flip");
    if (mica_onnx_shape(n, ref)->dtype == MICA_I8)
        return ref;
    return flip != NULL ? flip->in[0] : mica_onnx_op1(n, "affine_flip", ref, NULL);
}

bool mica_onnx_read_scale(mica_onnx_importing *n, mica_onnx_bytes *out, mica_onnx_ref scale,
                          mica_onnx_ref zero, mica_dtype dtype)
{
    double s = 0, z = 0;
    if ((dtype != MICA_U8 && dtype != MICA_I8) || !mica_onnx_is_f32(n, scale) ||
        !mica_onnx_is_number(n, scale, &s) ||
        (zero != 0 && (mica_onnx_shape(n, zero)->dtype != dtype || !mica_onnx_is_number(n, zero, &z))))
        return false;
    out->scale = (float)s;
    out->zero = (int)z - (dtype == MICA_U8 ? 128 : 0);
    return s > 0 && isfinite(out->scale) && isfinite(1.0f / out->scale);
}

bool mica_onnx_bytes_of(const mica_onnx_importing *n, mica_onnx_ref ref, mica_onnx_bytes *out)
{
    const mica_onnx_recorded *made = mica_onnx_made_by(n, ref, "affine_dequantize");
    if (made == NULL)
        return false;
    const mica_affine_scale_opts *o = made->opts;
    *out = (mica_onnx_bytes){made->in[0], o->scale, o->zero};
    return true;
}

void mica_onnx_give_bytes(mica_onnx_importing *n, mica_onnx_ref y, mica_dtype dtype)
{
    mica_onnx_give(n, 0, dtype == MICA_U8 ? mica_onnx_op1(n, "affine_flip", y, NULL) : y);
}

/* ---- DequantizeLinear ---- */

/* Constants are floats as ever, but it is known what of: weights. */
static bool note_codes(mica_onnx_importing *n, const mica_onnx_match *m)
{
    const mica_tensor x = *mica_onnx_shape(n, mica_onnx_matched(m, 'x'));
    int64_t axis = mica_onnx_int(n, "axis", 1);
    mica_onnx_importing as = *n;
    if (!mica_onnx_import_as(n, &as))
        return false;
    if (n->failed || n->out[0] == 0 || mica_onnx_int(n, "block_size", 0) != 0)
        return true;
    mica_onnx_held *held = mica_onnx_held_at(n->import, n->out[0]);
    held->codes = mica_onnx_matched(m, 'x');
    held->scales = mica_onnx_matched(m, 's');
    held->zeros = mica_onnx_matched(m, 'z');
    held->codes_axis = (int)(axis < 0 ? axis + x.rank : axis);
    return true;
}

static bool dequantize(mica_onnx_importing *n, const mica_onnx_match *m)
{
    mica_onnx_ref x = mica_onnx_matched(m, 'x');
    mica_onnx_bytes bytes;
    if (!mica_onnx_keeps_bytes(n) || mica_onnx_int(n, "output_dtype", 0) > 1)
        return false;
    if (mica_onnx_is_known(n, x))
        return note_codes(n, m);
    if (!mica_onnx_read_scale(n, &bytes, mica_onnx_matched(m, 's'), mica_onnx_matched(m, 'z'),
                              mica_onnx_shape(n, x)->dtype))
        return false;
    mica_affine_scale_opts o = {bytes.scale, bytes.zero};
    mica_onnx_give(n, 0, mica_onnx_op1(n, "affine_dequantize", mica_onnx_as_i8(n, x), &o));
    return true;
}

/* ---- What lies before QuantizeLinear ---- */

/* What becomes of a float: the bytes y, limited. */
typedef struct target {
    mica_onnx_bytes y; /* without ref */
    int low, high;
} target;

/* Relu and relu6 before a rounding are limits. Moves x to before them. */
static void take_activation(mica_onnx_importing *n, mica_onnx_ref *x, target *t)
{
    const mica_onnx_recorded *relu = mica_onnx_made_by(n, *x, "relu"),
                             *relu6 = mica_onnx_made_by(n, *x, "relu6");
    if ((relu == NULL && relu6 == NULL) || !mica_onnx_read_once(n, *x))
        return;
    int high = t->high;
    if (relu6 != NULL)
        high = (int)fminf(nearbyintf(6.0f / t->y.scale) + (float)t->y.zero, 127.0f);
    if (t->y.zero == 0 && high == 0) /* a step of more than 12: as limits, both 0 would mean none */
        return;
    t->low = t->y.zero;
    t->high = high;
    *x = (relu != NULL ? relu : relu6)->in[0];
}

/* Of a product of bytes that gives floats: the same with bytes. */
static mica_onnx_ref product(mica_onnx_importing *n, mica_onnx_ref x, const target *t)
{
    const mica_onnx_recorded *conv = mica_onnx_made_by(n, x, "affine_conv2d"),
                             *linear = mica_onnx_made_by(n, x, "affine_linear");
    if ((conv == NULL && linear == NULL) || !mica_onnx_read_once(n, x))
        return 0;
    mica_onnx_recorded c = conv != NULL ? *conv : *linear; /* calls move when there are more */
    mica_affine_conv_opts o = {.groups = 0};
    mica_affine_opts l = {.x_zero = 0};
    if (conv != NULL)
        o = *(const mica_affine_conv_opts *)c.opts;
    else
        l = *(const mica_affine_opts *)c.opts;
    if ((conv != NULL ? o.dtype : l.dtype) != MICA_F32)
        return 0;
    const mica_tensor *factor = mica_onnx_shape(n, c.in[3]);
    for (size_t i = 0; i < mica_tensor_count(factor); i++)
        if (!isfinite(((const float *)factor->data)[i] / t->y.scale))
            return 0; /* what overflows stays floats */
    o.dtype = l.dtype = MICA_I8;
    o.y_zero = l.y_zero = t->y.zero;
    o.low = l.low = t->low;
    o.high = l.high = t->high;
    c.in[3] = mica_onnx_op2(n, "div", c.in[3], mica_onnx_scalar(n, MICA_F32, (double)t->y.scale), NULL);
    return mica_onnx_call(n, c.op, c.in, c.ins, conv != NULL ? (const void *)&o : (const void *)&l);
}

/* Of a product of two. */
static mica_onnx_ref product_of_two(mica_onnx_importing *n, mica_onnx_ref x, const target *t)
{
    const mica_onnx_recorded *made = mica_onnx_made_by(n, x, "affine_matmul");
    if (made == NULL || !mica_onnx_read_once(n, x))
        return 0;
    mica_onnx_recorded c = *made;
    mica_affine_matmul_opts o = *(const mica_affine_matmul_opts *)c.opts;
    o.factor /= t->y.scale;
    if (o.dtype != MICA_F32 || !isfinite(o.factor))
        return 0;
    o.dtype = MICA_I8;
    o.y_zero = t->y.zero;
    o.low = t->low;
    o.high = t->high;
    return mica_onnx_call(n, c.op, c.in, c.ins, &o);
}

static mica_onnx_ref sum(mica_onnx_importing *n, mica_onnx_ref x, const target *t)
{
    const mica_onnx_recorded *add = mica_onnx_made_by(n, x, "add");
    mica_onnx_bytes a, b;
    if (add == NULL || !mica_onnx_bytes_of(n, add->in[0], &a) || !mica_onnx_bytes_of(n, add->in[1], &b) ||
        !mica_tensor_same_shape(mica_onnx_shape(n, a.ref), mica_onnx_shape(n, b.ref)))
        return 0;
    mica_affine_add_opts o = {.factor = {a.scale / t->y.scale, b.scale / t->y.scale},
                              .zero = {a.zero, b.zero, t->y.zero},
                              .low = t->low,
                              .high = t->high};
    if (!isfinite(o.factor[0]) || !isfinite(o.factor[1]))
        return 0;
    return mica_onnx_op2(n, "affine_add", a.ref, b.ref, &o);
}

static mica_onnx_ref mean(mica_onnx_importing *n, mica_onnx_ref x, const target *t)
{
    const mica_onnx_recorded *pool = mica_onnx_made_by(n, x, "global_avg_pool");
    mica_onnx_bytes from;
    if (pool == NULL || !mica_onnx_bytes_of(n, pool->in[0], &from))
        return 0;
    const mica_tensor *shape = mica_onnx_shape(n, from.ref);
    double count = 1;
    for (int k = 2; k < shape->rank; k++)
        count *= (double)shape->dim[k];
    mica_affine_pool_opts o = {.keep = ((const mica_global_pool_opts *)pool->opts)->keep,
                               .factor = from.scale / t->y.scale,
                               .x_zero = from.zero,
                               .y_zero = t->y.zero,
                               .low = t->low,
                               .high = t->high};
    if (!isfinite(o.factor) || count < 1 || count > MICA_INT8_PRODUCTS)
        return 0;
    return mica_onnx_op1(n, "affine_global_avg_pool", from.ref, &o);
}

/* What only moves bytes of the same scale, or leaves them where they are. */
static mica_onnx_ref move(mica_onnx_importing *n, mica_onnx_ref x, const target *t)
{
    static const char *const moves[] = {"reshape", "permute", "max_pool2d", "concat"};
    const mica_onnx_recorded *made = NULL;
    mica_onnx_bytes same;
    if (mica_onnx_bytes_of(n, x, &same) && same.scale == t->y.scale && same.zero == t->y.zero)
        return same.ref;
    for (size_t k = 0; k < sizeof moves / sizeof *moves && made == NULL; k++)
        made = mica_onnx_made_by(n, x, moves[k]);
    if (made == NULL)
        return 0;
    mica_onnx_recorded c = *made;
    for (int i = 0; i < c.ins; i++) {
        mica_onnx_bytes from;
        if (!mica_onnx_bytes_of(n, c.in[i], &from) || from.scale != t->y.scale || from.zero != t->y.zero)
            return 0;
        c.in[i] = from.ref;
    }
    if (strcmp(c.op->name, "max_pool2d") == 0)
        return mica_onnx_op1(n, "int8_max_pool2d", c.in[0], c.opts);
    return mica_onnx_call(n, c.op, c.in, c.ins, c.opts);
}

static bool quantize(mica_onnx_importing *n, const mica_onnx_match *m)
{
    mica_onnx_ref x = mica_onnx_matched(m, 'x'), zero = mica_onnx_matched(m, 'z');
    mica_dtype dtype = zero != 0 ? mica_onnx_shape(n, zero)->dtype : MICA_U8;
    target t = {.low = INT8_MIN, .high = INT8_MAX};
    if (!mica_onnx_keeps_bytes(n) || mica_onnx_is_known(n, x) || !mica_onnx_is_f32(n, x) ||
        mica_onnx_int(n, "block_size", 0) != 0 || (zero == 0 && mica_onnx_int(n, "output_dtype", 0) != 0) ||
        !mica_onnx_read_scale(n, &t.y, mica_onnx_matched(m, 's'), zero, dtype))
        return false;
    mica_onnx_ref before = x, y = move(n, x, &t);
    take_activation(n, &before, &t);
    y = y != 0 ? y : product(n, before, &t);
    y = y != 0 ? y : product_of_two(n, before, &t);
    y = y != 0 ? y : sum(n, before, &t);
    y = y != 0 ? y : mean(n, before, &t);
    mica_affine_scale_opts o = {t.y.scale, t.y.zero};
    y = y != 0 ? y : mica_onnx_op1(n, "affine_quantize", x, &o);
    mica_onnx_give_bytes(n, y, dtype);
    return true;
}

const mica_onnx_pattern mica_onnx_int8_patterns[] = {
    {"DequantizeLinear(x,#s,#z?)", dequantize},
    {"QuantizeLinear(x,#s,#z?)", quantize},
    {NULL, NULL},
};
