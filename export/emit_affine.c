/* Operations of bytes with zero points, as quantized models have them. */
#include <stdio.h>
#include <string.h>

#include "export/emit_int8.h"

/* Inputs of affine_linear and affine_conv2d. */
enum { AFFINE_X, AFFINE_W, AFFINE_BIAS, AFFINE_FACTOR };

static limit_words limits_of(const call *c) { return limit_words_of(c, -128); }

/* ---- Element by element ---- */

static void emit_scaled(emitter *e, const call *c, const char *kernel)
{
    use_kernel(e, kernel);
    emit(e, "%s(%s, %s, %zu, %s, %d);", kernel, out_name(e, 0), in_name(e, 0), out_value(e, 0)->count,
         float_text(call_number(c, "scale", 0)), call_int(c, "zero", 0));
}

static void emit_quantize(emitter *e, const call *c) { emit_scaled(e, c, "affine_quantize"); }
static void emit_dequantize(emitter *e, const call *c) { emit_scaled(e, c, "affine_dequantize"); }

static void emit_flip(emitter *e, const call *c)
{
    (void)c;
    bool down = in_value(e, 0)->dtype == MICA_U8;
    emit(e, "for (int i = 0; i < %zu; i++)", out_value(e, 0)->count);
    emit(e, "    %s[i] = (%s)(%s[i] %c 128);", out_name(e, 0), down ? "int8_t" : "uint8_t", in_name(e, 0),
         down ? '-' : '+');
}

static void emit_add(emitter *e, const call *c)
{
    use_kernel(e, "affine_add");
    emit(e, "static const float factor[] = {%s, %s};", float_text(call_number(c, "factor", 0)),
         float_text(call_number(c, "factor", 1)));
    emit(e, "static const int zero[] = {%d, %d, %d};", call_int(c, "zero", 0), call_int(c, "zero", 1),
         call_int(c, "zero", 2));
    emit(e, "affine_add(%s, %s, %s, %zu, factor, zero, %s);", out_name(e, 0), in_name(e, 0), in_name(e, 1),
         out_value(e, 0)->count, limits_of(c).text);
}

static void emit_global_avg_pool(emitter *e, const call *c)
{
    const value *x = in_value(e, 0);
    int planes = (int)(x->dim[0] * x->dim[1]), count = planes > 0 ? (int)x->count / planes : 1;
    float factor = (float)call_number(c, "factor", 0) / (float)count;
    use_kernel(e, "affine_global_avg_pool");
    emit(e, "affine_global_avg_pool(%s, %s, %d, %d, %s, %d, %d, %s);", out_name(e, 0), in_name(e, 0), planes,
         count, float_text((double)factor), call_int(c, "x_zero", 0), call_int(c, "y_zero", 0),
         limits_of(c).text);
}

/* ---- Products ---- */

/* The end of a call: what becomes of sums. */
static void put_end(emitter *e, const call *c, const char *sizes)
{
    mica_dtype to = out_value(e, 0)->dtype;
    int x_zero = call_int(c, "x_zero", 0);
    if (to == MICA_I32) {
        emit(e, "    %s, %d);", sizes, x_zero);
        return;
    }
    const char *factor = in_name(e, AFFINE_FACTOR);
    int each = in_value(e, AFFINE_FACTOR)->count > 1;
    if (to == MICA_F32)
        emit(e, "    %s, %d, %s, %d);", sizes, x_zero, factor, each);
    else
        emit(e, "    %s, %d, %s, %d, %d, %s);", sizes, x_zero, factor, each, call_int(c, "y_zero", 0),
             limits_of(c).text);
}

static void put_start(emitter *e, const char *bytes, const char *floats, const char *sums)
{
    mica_dtype to = out_value(e, 0)->dtype;
    const char *kernel = to == MICA_I8 ? bytes : to == MICA_F32 ? floats : sums;
    use_kernel(e, kernel);
    emit(e, "%s(%s, %s, %s, %s,", kernel, out_name(e, 0), in_name(e, AFFINE_X), in_name(e, AFFINE_W),
         in_name(e, AFFINE_BIAS));
}

static void emit_linear(emitter *e, const call *c)
{
    const value *x = in_value(e, AFFINE_X), *y = out_value(e, 0);
    char sizes[64];
    put_start(e, "affine_dense", "affine_dense_float", "affine_dense_sums");
    snprintf(sizes, sizeof sizes, "%d, %d, %d", rows_of(x), columns_of(y), columns_of(x));
    put_end(e, c, sizes);
}

/* Of two activations. */
static void emit_matmul(emitter *e, const call *c)
{
    const value *a = in_value(e, 0), *y = out_value(e, 0);
    bool bytes = y->dtype == MICA_I8;
    const char *kernel = bytes ? "affine_matmul" : "affine_matmul_float";
    int rows = (int)a->dim[a->rank - 2], batch = rows > 0 ? rows_of(y) / rows : 0;
    use_kernel(e, kernel);
    emit(e, "%s(%s, %s, %s, %d, %d, %d, %d,", kernel, out_name(e, 0), in_name(e, 0), in_name(e, 1), batch,
         rows, columns_of(y), columns_of(a));
    emit(e, "    %d, %d, %s%s", call_int(c, "a_zero", 0), call_int(c, "b_zero", 0),
         float_text(call_number(c, "factor", 0)), bytes ? "," : ");");
    if (bytes)
        emit(e, "    %d, %s);", call_int(c, "y_zero", 0), limits_of(c).text);
}

static void emit_conv(emitter *e, const call *c)
{
    emit_conv_shape(e, image_of(e->g, c->in[0]), image_of(e->g, c->out[0]), in_value(e, AFFINE_W), "");
    put_start(e, "affine_conv", "affine_conv_float", "affine_conv_sums");
    put_end(e, c, "&shape");
}

const export_op export_affine_ops[] = {
    {.name = "affine_quantize", .emit = emit_quantize},
    {.name = "affine_dequantize", .emit = emit_dequantize},
    {.name = "affine_flip", .emit = emit_flip},
    {.name = "affine_add", .emit = emit_add},
    {.name = "affine_global_avg_pool", .emit = emit_global_avg_pool},
    {.name = "affine_linear", .emit = emit_linear},
    {.name = "affine_matmul", .emit = emit_matmul},
    {.name = "affine_conv2d", .emit = emit_conv},
    {0},
};
