/* Bytes: the operations of int8 nets and of quantized models. What another program makes of their functions is one step
 * off at most: QLinearConv multiplies by a float where int8_conv2d has a whole number and a shift, and onnxruntime has
 * its own ways of adding and of means. */
#include "node/int8.h"
#include "onnx/write.h"

enum { FLOAT = 1, INT8 = 3, INT64 = 7 }; /* numbers of types */

typedef struct limits {
    int low, high;
} limits;

/* Both 0: as many as bytes have. */
static limits limits_of(int low, int high, int least)
{
    return low == 0 && high == 0 ? (limits){least, INT8_MAX} : (limits){low, high};
}

static limits symmetric(int low, int high) { return limits_of(low, high, -INT8_MAX); }
static limits affine(int low, int high) { return limits_of(low, high, INT8_MIN); }

static mica_onnx_term put_byte(mica_onnx_writing *c, int value)
{
    return mica_onnx_put_scalar(c, MICA_I8, value);
}

static mica_onnx_term put_long(mica_onnx_writing *c, int64_t value)
{
    mica_tensor t = {.data = &value, .dtype = MICA_I64};
    return mica_onnx_put_constant(c, &t);
}

/* ---- Whole numbers by multiplier / 2^shift ---- */

/* (x multiplier + 2^(shift - 1)) / 2^shift, rounded down, of i64. `power` is 2^shift. Div rounds to 0; so what Mod
 * leaves, which is never below 0, is taken off before. A sum of 32 bits, a multiplier of 31 and a shift of 62 do not
 * pass 64 bits. Limits are floats, which hold all that lies within: onnxruntime 1.31's Clip of i64 lets numbers from
 * 2^31 to 2^32 through. */
static void put_scaled(mica_onnx_writing *c, mica_onnx_term x, mica_onnx_term multiplier,
                       mica_onnx_term power, limits l)
{
    mica_onnx_term half = mica_onnx_node2(c, NEW, "Div", power, put_long(c, 2));
    x = mica_onnx_node2(c, NEW, "Mul", x, multiplier);
    x = mica_onnx_node2(c, NEW, "Add", x, half);
    x = mica_onnx_node2(c, NEW, "Sub", x, mica_onnx_node2(c, NEW, "Mod", x, power));
    x = mica_onnx_put_cast(c, NEW, mica_onnx_node2(c, NEW, "Div", x, power), FLOAT);
    mica_onnx_term low = mica_onnx_put_number(c, (float)l.low), high = mica_onnx_put_number(c, (float)l.high);
    mica_onnx_put_cast(c, OUT(0), mica_onnx_put(c, NEW, "Clip", TERMS(x, low, high), NO_ATTRS), INT8);
}

static void put_scaled_by(mica_onnx_writing *c, mica_onnx_term x, int multiplier, int shift, limits l)
{
    put_scaled(c, x, put_long(c, multiplier), put_long(c, (int64_t)1 << shift), l);
}

static void rescale(mica_onnx_writing *c)
{
    const mica_int8_rescale_opts *o = c->opts;
    put_scaled_by(c, mica_onnx_put_cast(c, NEW, IN(0), INT64), o->multiplier, o->shift,
                  symmetric(o->low, o->high));
}

static void add(mica_onnx_writing *c)
{
    const mica_int8_add_opts *o = c->opts;
    mica_onnx_term sum[2];
    for (int i = 0; i < 2; i++) {
        mica_onnx_term x = mica_onnx_put_cast(c, NEW, IN(i), INT64);
        sum[i] = mica_onnx_node2(c, NEW, "Mul", x, put_long(c, o->multiplier[i]));
    }
    put_scaled_by(c, mica_onnx_node2(c, NEW, "Add", sum[0], sum[1]), 1, o->shift, symmetric(o->low, o->high));
}

/* ---- Floats ---- */

/* x / scale, limited and rounded. QuantizeLinear would round first, and divide. */
static void quantize(mica_onnx_writing *c)
{
    float scale = ((const mica_int8_scale_opts *)c->opts)->scale;
    mica_onnx_term t = mica_onnx_node2(c, NEW, "Mul", IN(0), mica_onnx_put_number(c, 1.0f / scale));
    mica_onnx_term low = mica_onnx_put_number(c, -127.0f), high = mica_onnx_put_number(c, 127.0f);
    t = mica_onnx_put(c, NEW, "Clip", TERMS(t, low, high), NO_ATTRS);
    t = mica_onnx_node1(c, NEW, "Round", t, NO_ATTRS);
    mica_onnx_put_cast(c, OUT(0), t, INT8);
}

static void dequantize(mica_onnx_writing *c)
{
    mica_onnx_term t = mica_onnx_put_cast(c, NEW, IN(0), FLOAT);
    mica_onnx_node2(c, OUT(0), "Mul", t,
                    mica_onnx_put_number(c, ((const mica_int8_scale_opts *)c->opts)->scale));
}

static void put_linear(mica_onnx_writing *c, const char *type)
{
    const mica_affine_scale_opts *o = c->opts;
    mica_onnx_term scale = mica_onnx_put_number(c, o->scale);
    mica_onnx_put(c, OUT(0), type, TERMS(IN(0), scale, put_byte(c, o->zero)), NO_ATTRS);
}

static void affine_quantize(mica_onnx_writing *c) { put_linear(c, "QuantizeLinear"); }
static void affine_dequantize(mica_onnx_writing *c) { put_linear(c, "DequantizeLinear"); }

/* The first input, whose zero point is `from`, with the zero point `to`, which may be of the other type. */
static mica_onnx_term put_flipped(mica_onnx_writing *c, mica_onnx_term out, mica_onnx_term from,
                                  mica_onnx_term to)
{
    mica_onnx_term one = mica_onnx_put_number(c, 1.0f);
    mica_onnx_term x = mica_onnx_put(c, NEW, "DequantizeLinear", TERMS(IN(0), one, from), NO_ATTRS);
    return mica_onnx_put(c, out, "QuantizeLinear", TERMS(x, one, to), NO_ATTRS);
}

static void flip(mica_onnx_writing *c)
{
    mica_onnx_term i8 = put_byte(c, 0), u8 = mica_onnx_put_scalar(c, MICA_U8, 128.0);
    bool from = c->in[0]->dtype == MICA_U8;
    put_flipped(c, OUT(0), from ? u8 : i8, from ? i8 : u8);
}

/* In steps of y, as floats. */
static mica_onnx_term put_steps(mica_onnx_writing *c, int in, float factor, int zero)
{
    mica_onnx_term scale = mica_onnx_put_number(c, factor);
    return mica_onnx_put(c, NEW, "DequantizeLinear", TERMS(IN(in), scale, put_byte(c, zero)), NO_ATTRS);
}

/* And back, limited. */
static void put_quantized(mica_onnx_writing *c, mica_onnx_term y, int zero, limits l)
{
    if (l.low > INT8_MIN || l.high < INT8_MAX) {
        mica_onnx_term low = mica_onnx_put_number(c, (float)(l.low - zero));
        mica_onnx_term high = mica_onnx_put_number(c, (float)(l.high - zero));
        y = mica_onnx_put(c, NEW, "Clip", TERMS(y, low, high), NO_ATTRS);
    }
    mica_onnx_term one = mica_onnx_put_number(c, 1.0f);
    mica_onnx_put(c, OUT(0), "QuantizeLinear", TERMS(y, one, put_byte(c, zero)), NO_ATTRS);
}

static void affine_add(mica_onnx_writing *c)
{
    const mica_affine_add_opts *o = c->opts;
    mica_onnx_term a = put_steps(c, 0, o->factor[0], o->zero[0]),
                   b = put_steps(c, 1, o->factor[1], o->zero[1]);
    put_quantized(c, mica_onnx_node2(c, NEW, "Add", a, b), o->zero[2], affine(o->low, o->high));
}

/* ---- Products ---- */

/* x as u8, with its zero point: onnxruntime multiplies i8 by i8 ten times as slowly on x86. */
static mica_onnx_term put_unsigned(mica_onnx_writing *c, int zero, mica_onnx_term *point)
{
    mica_onnx_term from = put_byte(c, zero);
    *point = mica_onnx_put_scalar(c, MICA_U8, zero + 128);
    return put_flipped(c, NEW, from, *point);
}

/* i32 sums of rows, with the bias. */
static mica_onnx_term put_row_sums(mica_onnx_writing *c, mica_onnx_term out, int zero)
{
    static const int turned[] = {1, 0};
    mica_onnx_term point, x = put_unsigned(c, zero, &point);
    mica_onnx_term w = mica_onnx_put_permute(c, NEW, IN(INT8_W), turned, 2);
    mica_onnx_term sum = mica_onnx_put(c, NEW, "MatMulInteger", TERMS(x, w, point), NO_ATTRS);
    return mica_onnx_node2(c, out, "Add", sum, IN(INT8_BIAS));
}

static void linear(mica_onnx_writing *c)
{
    const mica_int8_limits *o = c->opts;
    mica_onnx_term sum = mica_onnx_put_cast(c, NEW, put_row_sums(c, NEW, 0), INT64);
    mica_onnx_term shift = mica_onnx_put_cast(c, NEW, IN(INT8_SHIFT), FLOAT);
    mica_onnx_term power = mica_onnx_node2(c, NEW, "Pow", mica_onnx_put_number(c, 2.0f), shift);
    put_scaled(c, sum, mica_onnx_put_cast(c, NEW, IN(INT8_MULTIPLIER), INT64),
               mica_onnx_put_cast(c, NEW, power, INT64), symmetric(o->low, o->high));
}

/* Sums that become what the options say. */
static void put_sums(mica_onnx_writing *c, mica_onnx_term sum, mica_onnx_term factor,
                     const mica_affine_opts *o)
{
    sum = mica_onnx_put_cast(c, NEW, sum, FLOAT);
    sum = mica_onnx_node2(c, o->dtype == MICA_F32 ? OUT(0) : NEW, "Mul", sum, factor);
    if (o->dtype == MICA_I8)
        put_quantized(c, sum, o->y_zero, affine(o->low, o->high));
}

static void affine_linear(mica_onnx_writing *c)
{
    const mica_affine_opts *o = c->opts;
    mica_onnx_term sum = put_row_sums(c, o->dtype == MICA_I32 ? OUT(0) : NEW, o->x_zero);
    if (o->dtype != MICA_I32)
        put_sums(c, sum, IN(AFFINE_FACTOR), o);
}

/* Of two activations. */
static void affine_matmul(mica_onnx_writing *c)
{
    const mica_affine_matmul_opts *o = c->opts;
    mica_onnx_term point, a = put_unsigned(c, o->a_zero, &point);
    mica_onnx_term sum = mica_onnx_put(c, NEW, "MatMulInteger",
                                       TERMS(a, IN(1), point, put_byte(c, o->b_zero)), NO_ATTRS);
    put_sums(c, sum, mica_onnx_put_number(c, o->factor),
             &(mica_affine_opts){.y_zero = o->y_zero, .low = o->low, .high = o->high, .dtype = o->dtype});
}

/* ---- Convolutions ---- */

static mica_onnx_term put_conv(mica_onnx_writing *c, mica_onnx_term out, const char *type,
                               const mica_onnx_term *ins, int count, const mica_conv2d_opts *o)
{
    mica_onnx_window w = mica_onnx_conv_window(c, o);
    return mica_onnx_put(c, out, type, ins, count,
                         ATTRS(mica_onnx_ints_attr("kernel_shape", w.kernel, w.axes),
                               mica_onnx_ints_attr("strides", w.strides, w.axes),
                               mica_onnx_ints_attr("pads", w.pads, 2 * w.axes),
                               mica_onnx_ints_attr("dilations", w.dilations, w.axes),
                               mica_onnx_int_attr("group", o->groups != 0 ? o->groups : 1)));
}

/* Bytes of bytes: scales are 1, but for that of the weights, which is the factor. */
static void put_qlinear(mica_onnx_writing *c, mica_onnx_term factor, const mica_conv2d_opts *o,
                        const mica_affine_opts *to, bool pool)
{
    static const int64_t two[] = {2, 2};
    mica_onnx_term x_zero, x = put_unsigned(c, to->x_zero, &x_zero), one = mica_onnx_put_number(c, 1.0f);
    mica_onnx_term w_zero = put_byte(c, 0), y_zero = mica_onnx_put_scalar(c, MICA_U8, to->y_zero + 128);
    mica_onnx_term y = put_conv(c, NEW, "QLinearConv",
                                TERMS(x, one, x_zero, IN(INT8_W), factor, w_zero, one, y_zero, IN(INT8_BIAS)),
                                o);
    if (pool)
        y = mica_onnx_node1(
            c, NEW, "MaxPool", y,
            ATTRS(mica_onnx_ints_attr("kernel_shape", two, 2), mica_onnx_ints_attr("strides", two, 2)));
    y = mica_onnx_put(c, NEW, "DequantizeLinear", TERMS(y, one, y_zero), NO_ATTRS);
    put_quantized(c, y, to->y_zero, (limits){to->low, to->high});
}

static void conv(mica_onnx_writing *c)
{
    const mica_int8_conv_opts *o = c->opts;
    const limits l = symmetric(o->low, o->high);
    mica_conv2d_opts windows = {.stride = {o->stride[0], o->stride[1]},
                                .pad = {o->pad[0], o->pad[1]},
                                .dilation = {o->dilation[0], o->dilation[1]},
                                .groups = o->groups};
    mica_onnx_term shift = mica_onnx_put_cast(c, NEW, IN(INT8_SHIFT), FLOAT);
    mica_onnx_term power = mica_onnx_node2(c, NEW, "Pow", mica_onnx_put_number(c, 2.0f), shift);
    mica_onnx_term factor = mica_onnx_put_cast(c, NEW, IN(INT8_MULTIPLIER), FLOAT);
    factor = mica_onnx_node2(c, NEW, "Div", factor, power);
    put_qlinear(c, factor, &windows, &(mica_affine_opts){.low = l.low, .high = l.high}, o->pool == 2);
}

/* [M] or [1], along the channels of an image. */
static mica_onnx_term by_channel(mica_onnx_writing *c, int in)
{
    mica_onnx_dim dims[3] = {{.size = c->in[in]->dim[0]}, {.size = 1}, {.size = 1}};
    return mica_onnx_put_reshape(c, NEW, IN(in), dims, c->in[INT8_X]->rank - 1);
}

static void affine_conv(mica_onnx_writing *c)
{
    const mica_affine_conv_opts *o = c->opts;
    const limits l = affine(o->low, o->high);
    const mica_affine_opts to = {o->x_zero, o->y_zero, l.low, l.high, o->dtype};
    mica_conv2d_opts windows = {.stride = {o->stride[0], o->stride[1]},
                                .pad = {o->pad[0], o->pad[1]},
                                .dilation = {o->dilation[0], o->dilation[1]},
                                .groups = o->groups};
    if (o->dtype == MICA_I8) {
        put_qlinear(c, IN(AFFINE_FACTOR), &windows, &to, false);
        return;
    }
    mica_onnx_term point, x = put_unsigned(c, o->x_zero, &point);
    mica_onnx_term sum = put_conv(c, NEW, "ConvInteger", TERMS(x, IN(INT8_W), point), &windows);
    sum = mica_onnx_node2(c, o->dtype == MICA_I32 ? OUT(0) : NEW, "Add", sum, by_channel(c, INT8_BIAS));
    if (o->dtype != MICA_I32)
        put_sums(c, sum, by_channel(c, AFFINE_FACTOR), &to);
}

/* ---- Pooling ---- */

/* Means by AveragePool, times what they were divided by, are sums again, which floats hold. */
static void avg_pool(mica_onnx_writing *c)
{
    const mica_int8_avg_pool_opts *o = c->opts;
    mica_pooling_opts windows = {.ceil_mode = o->ceil_mode};
    bool over;
    for (int i = 0; i < 2; i++) {
        windows.kernel[i] = o->kernel[i];
        windows.stride[i] = o->stride[i];
        windows.pad[i] = o->pad[i];
    }
    mica_onnx_window w = mica_onnx_pool_window(c, &windows, 2, &over);
    mica_onnx_term x = mica_onnx_put_cast(c, NEW, IN(0), FLOAT);
    x = mica_onnx_node1(c, NEW, "AveragePool", x,
                        ATTRS(mica_onnx_ints_attr("kernel_shape", w.kernel, w.axes),
                              mica_onnx_ints_attr("strides", w.strides, w.axes),
                              mica_onnx_ints_attr("pads", w.pads, 2 * w.axes),
                              mica_onnx_int_attr("count_include_pad", 1)));
    float count = (float)w.kernel[0] * (w.axes == 2 ? (float)w.kernel[1] : 1.0f);
    x = mica_onnx_node2(c, NEW, "Mul", x, mica_onnx_put_number(c, count));
    x = mica_onnx_put_cast(c, NEW, mica_onnx_node1(c, NEW, "Round", x, NO_ATTRS), INT64);
    put_scaled_by(c, x, o->multiplier, o->shift, symmetric(o->low, o->high));
}

/* i64 sums over all axes after the first two. */
static mica_onnx_term put_plane_sums(mica_onnx_writing *c, bool keep)
{
    int64_t axes[MICA_MAX_RANK];
    int count = c->in[0]->rank - 2;
    mica_onnx_term x = mica_onnx_put_cast(c, NEW, IN(0), INT64);
    for (int i = 0; i < count; i++)
        axes[i] = 2 + i;
    if (count <= 0)
        return x;
    return mica_onnx_put(c, NEW, "ReduceSum", TERMS(x, mica_onnx_put_ints(c, axes, count)),
                         ATTRS(mica_onnx_int_attr("keepdims", keep)));
}

static void global_pool(mica_onnx_writing *c)
{
    const mica_int8_global_pool_opts *o = c->opts;
    put_scaled_by(c, put_plane_sums(c, o->keep), o->multiplier, o->shift, symmetric(o->low, o->high));
}

static void affine_pool(mica_onnx_writing *c)
{
    const mica_affine_pool_opts *o = c->opts;
    mica_onnx_term x = put_steps(c, 0, o->factor, o->x_zero);
    if (c->in[0]->rank > 2)
        x = mica_onnx_node1(c, NEW, "GlobalAveragePool", x, NO_ATTRS);
    if (c->in[0]->rank > 2 && !o->keep)
        x = mica_onnx_node1(c, NEW, "Flatten", x, NO_ATTRS);
    put_quantized(c, x, o->y_zero, affine(o->low, o->high));
}

const mica_onnx_row mica_onnx_write_int8[] = {OWN(quantize, quantize),
                                              OWN(dequantize, dequantize),
                                              OWN(int8_rescale, rescale),
                                              OWN(int8_add, add),
                                              OWN(int8_linear, linear),
                                              OWN(int8_conv2d, conv),
                                              OWN(int8_avg_pool2d, avg_pool),
                                              OWN(int8_global_avg_pool, global_pool),
                                              OWN(affine_quantize, affine_quantize),
                                              OWN(affine_dequantize, affine_dequantize),
                                              OWN(affine_flip, flip),
                                              OWN(affine_add, affine_add),
                                              OWN(affine_linear, affine_linear),
                                              OWN(affine_matmul, affine_matmul),
                                              OWN(affine_conv2d, affine_conv),
                                              OWN(affine_global_avg_pool, affine_pool),
                                              END_OF_ROWS};
