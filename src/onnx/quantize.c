/* Quantization as ONNX defines it: to integers and small floats and back, and products of integers.
 *
 *     QuantizeLinear      y = saturate(round(x / scale) + zero), halves to even
 *     DequantizeLinear    y = (x - zero) scale
 *
 * Products of integers are exact: sums of at most 2^24 in size are exact in f32 in any order, so a matrix product is
 * one in f32 for each stretch of K for which that holds, and their sums are i32; convolutions are made in i32. What
 * becomes of sums (QLinear...) is computed in f32, then rounded half to even. */
#include <math.h>
#include <string.h>

#include "onnx/compose.h"
#include "onnx/windows.h"
#include "ops/integer.h"

static bool is_integer(mica_dtype dtype)
{
    return dtype == MICA_I8 || dtype == MICA_U8 || dtype == MICA_I16 || dtype == MICA_U16 ||
           dtype == MICA_I32 || dtype == MICA_I4 || dtype == MICA_U4 || dtype == MICA_I2 || dtype == MICA_U2;
}

static bool is_small_float(mica_dtype dtype) { return dtype >= MICA_F8E4M3FN && dtype <= MICA_F4E2M1; }

static mica_onnx_ref floats(mica_onnx_importing *n, mica_onnx_ref ref)
{
    return ref != 0 ? mica_onnx_cast(n, ref, MICA_F32) : 0;
}

static mica_onnx_ref input(const mica_onnx_importing *n, int number)
{
    return number < n->ins ? n->in[number] : 0;
}

/* ---- Scales and zero points against x ---- */

/* A zero point is of the type of what it is taken from: of any other, differences would not be what they seem. */
static bool is_zero_of(mica_onnx_importing *n, mica_onnx_ref zero, mica_dtype dtype)
{
    mica_dtype got = mica_onnx_shape(n, zero)->dtype;
    return zero == 0 || got == dtype ||
           mica_onnx_bad(n, "a zero point of type %s: expected %s, as x is", mica_dtype_name(got),
                         mica_dtype_name(dtype)) != 0;
}

/* How scales lie along x. */
typedef struct layout {
    int axis;
    mica_index block; /* 0: a scale for each index of the axis, or one for all */
    mica_tensor x, scale;
} layout;

static bool read_layout(mica_onnx_importing *n, layout *l)
{
    l->x = *mica_onnx_shape(n, n->in[0]);
    l->scale = *mica_onnx_shape(n, n->in[1]);
    l->block = (mica_index)mica_onnx_int(n, "block_size", 0);
    bool one = mica_tensor_count(&l->scale) == 1;
    if (n->failed)
        return false;
    if (l->block == 0 && one && (l->scale.rank != 1 || l->x.rank == 0 || mica_tensor_count(&l->x) != 1)) {
        l->axis = 0;
        return true;
    }
    /* A single element has no axis 1, the default. */
    l->axis = mica_onnx_axis(n, mica_onnx_int(n, "axis", l->x.rank == 1 ? 0 : 1), n->in[0]);
    if (n->failed)
        return false;
    mica_index size = l->x.dim[l->axis];
    if (l->block == 0 && (l->scale.rank != 1 || l->scale.dim[0] != size))
        return mica_onnx_bad(n, "the scale is %s, expected [%td], as axis %d of x has", MICA_SHAPE(&l->scale),
                             size, l->axis) != 0;
    if (l->block == 0)
        return true;
    bool fits = l->block > 0 && l->scale.rank == l->x.rank;
    for (int k = 0; k < l->x.rank && fits; k++)
        fits = l->scale.dim[k] == (k == l->axis ? size / l->block + (size % l->block != 0) : l->x.dim[k]);
    if (!fits)
        return mica_onnx_bad(n, "the scale is %s, for blocks of %td along axis %d of x %s",
                             MICA_SHAPE(&l->scale), l->block, l->axis, MICA_SHAPE(&l->x)) != 0;
    if (size % l->block != 0 || l->x.rank == MICA_MAX_RANK)
        return mica_onnx_unsupported(n, "blocks of %td along an axis of %td elements: only whole ones are",
                                     l->block, size) != 0;
    return true;
}

/* x with the blocks of its axis as an axis of their own; and back. */
static mica_onnx_ref in_blocks(mica_onnx_importing *n, const layout *l, mica_onnx_ref x)
{
    mica_index dims[MICA_MAX_RANK];
    if (l->block == 0)
        return x;
    for (int k = 0; k < l->x.rank; k++)
        dims[k < l->axis ? k : k + 1] = l->x.dim[k];
    dims[l->axis] = l->x.dim[l->axis] / l->block;
    dims[l->axis + 1] = l->block;
    return mica_onnx_reshape(n, x, l->x.rank + 1, dims);
}

static mica_onnx_ref out_of_blocks(mica_onnx_importing *n, const layout *l, mica_onnx_ref y)
{
    return l->block == 0 ? y : mica_onnx_reshape(n, y, l->x.rank, l->x.dim);
}

/* A scale or a zero point in a shape that broadcasts to that of in_blocks. */
static mica_onnx_ref along(mica_onnx_importing *n, const layout *l, mica_onnx_ref ref)
{
    mica_index dims[MICA_MAX_RANK], count = (mica_index)mica_tensor_count(mica_onnx_shape(n, ref));
    if (l->block != 0) {
        for (int k = 0; k < l->x.rank; k++)
            dims[k <= l->axis ? k : k + 1] = l->scale.dim[k];
        dims[l->axis + 1] = 1;
        return mica_onnx_reshape(n, ref, l->x.rank + 1, dims);
    }
    if (count == 1)
        return mica_onnx_reshape(n, ref, 0, dims);
    for (int k = 0; k < l->x.rank; k++)
        dims[k] = k == l->axis ? count : 1;
    return mica_onnx_reshape(n, ref, l->x.rank, dims);
}

/* ---- To bytes and back ---- */

/* saturate(round(x) + zero): casts saturate. To floats of few bits, the cast rounds. */
static mica_onnx_ref rounded(mica_onnx_importing *n, mica_onnx_ref x, mica_onnx_ref zero, mica_dtype dtype,
                             bool saturate)
{
    if (!is_integer(dtype) && !is_small_float(dtype))
        return mica_onnx_bad(n, "a zero point of type %s: expected one that numbers are quantized to",
                             mica_dtype_name(dtype));
    if (!is_integer(dtype)) {
        mica_copy_opts opts = {.cast = true, .dtype = dtype, .overflow = !saturate};
        return mica_onnx_op1(n, "copy", x, &opts);
    }
    mica_onnx_ref y = mica_onnx_op1(n, "round", x, NULL);
    y = zero != 0 ? mica_onnx_add(n, y, zero) : y;
    return mica_onnx_cast(n, y, dtype);
}

static void quantize_linear(mica_onnx_importing *n)
{
    layout l;
    int64_t type = mica_onnx_int(n, "output_dtype", 0);
    mica_onnx_ref zero = input(n, 2);
    mica_dtype dtype = zero != 0   ? mica_onnx_shape(n, zero)->dtype
                       : type != 0 ? mica_onnx_dtype_of(n, type)
                                   : MICA_U8;
    if (!read_layout(n, &l))
        return;
    mica_onnx_ref x = in_blocks(n, &l, floats(n, n->in[0])), scale = along(n, &l, floats(n, n->in[1]));
    zero = zero != 0 && is_integer(dtype) ? along(n, &l, floats(n, zero)) : 0;
    mica_onnx_ref y = rounded(n, mica_onnx_div(n, x, scale), zero, dtype,
                              mica_onnx_int(n, "saturate", 1) != 0);
    mica_onnx_give(n, 0, out_of_blocks(n, &l, y));
}

static void dequantize_linear(mica_onnx_importing *n)
{
    layout l;
    int64_t type = mica_onnx_int(n, "output_dtype", 0);
    mica_dtype dtype = type != 0 ? mica_onnx_dtype_of(n, type) : mica_onnx_shape(n, n->in[1])->dtype;
    if (!read_layout(n, &l) || !is_zero_of(n, input(n, 2), l.x.dtype))
        return;
    mica_onnx_ref x = in_blocks(n, &l, floats(n, n->in[0])), scale = along(n, &l, floats(n, n->in[1]));
    if (input(n, 2) != 0)
        x = mica_onnx_sub(n, x, along(n, &l, floats(n, n->in[2])));
    mica_onnx_ref y = out_of_blocks(n, &l, mica_onnx_mul(n, x, scale));
    mica_onnx_give(n, 0, mica_onnx_cast(n, y, dtype));
}

/* The range of x, which 0 is part of, in 255 steps. */
static void dynamic_quantize_linear(mica_onnx_importing *n)
{
    mica_onnx_ref x = floats(n, n->in[0]);
    mica_onnx_ref most = mica_onnx_op1(n, "max_scalar", mica_onnx_op1(n, "amax", x, NULL),
                                       &(mica_scalar_opts){0.0f});
    mica_onnx_ref least = mica_onnx_op1(n, "min_scalar", mica_onnx_op1(n, "amin", x, NULL),
                                        &(mica_scalar_opts){0.0f});
    mica_onnx_ref steps = mica_onnx_scalar(n, MICA_F32, 255.0), none = mica_onnx_scalar(n, MICA_F32, 0.0);
    mica_onnx_ref scale = mica_onnx_div(n, mica_onnx_sub(n, most, least), steps);
    mica_onnx_ref low = mica_onnx_sub(n, none, mica_onnx_div(n, least, scale));
    mica_onnx_ref zero = rounded(n, low, 0, MICA_U8, true);
    mica_onnx_give(n, 0, rounded(n, mica_onnx_div(n, x, scale), floats(n, zero), MICA_U8, true));
    if (mica_onnx_wants(n, 1))
        mica_onnx_give(n, 1, scale);
    if (mica_onnx_wants(n, 2))
        mica_onnx_give(n, 2, zero);
}

/* ---- Matrix products of integers ---- */

/* A factor less its zero point, in f32; and the most that it can be in size. */
typedef struct factor {
    mica_onnx_ref ref;
    double most;
} factor;

/* A zero point of one element, or one for each row (of a) or column (of b): `axis` from the end. */
static factor less_zero(mica_onnx_importing *n, mica_onnx_ref x, mica_onnx_ref zero, int axis)
{
    const mica_tensor *t = mica_onnx_shape(n, x);
    factor f = {floats(n, x), t->dtype == MICA_U8 ? 255.0 : 128.0};
    if (t->dtype != MICA_U8 && t->dtype != MICA_I8)
        return (factor){
            mica_onnx_unsupported(n, "products of %s: only of 8-bit integers", mica_dtype_name(t->dtype)),
            1.0};
    if (zero == 0 || !is_zero_of(n, zero, t->dtype))
        return f;
    mica_tensor z = *mica_onnx_shape(n, zero);
    mica_onnx_ref point = floats(n, zero);
    if (mica_tensor_count(&z) == 1)
        point = mica_onnx_reshape(n, point, 0, NULL);
    else if (z.rank == 1 && axis == 2)
        point = mica_onnx_reshape(n, point, 2, (mica_index[]){z.dim[0], 1});
    f.ref = mica_onnx_sub(n, f.ref, point);
    f.most = 255.0;
    return f;
}

/* i32 [..., M, N] of a [..., M, K] and b [..., K, N]. */
static mica_onnx_ref product(mica_onnx_importing *n, factor a, factor b)
{
    mica_tensor left = *mica_onnx_shape(n, a.ref), right = *mica_onnx_shape(n, b.ref);
    if (n->failed)
        return 0;
    if (left.rank < 1 || right.rank < 1)
        return mica_onnx_bad(n, "a product of %s and %s", MICA_SHAPE(&left), MICA_SHAPE(&right));
    bool row = left.rank == 1, column = right.rank == 1;
    if (row)
        a.ref = mica_onnx_reshape(n, a.ref, 2, (mica_index[]){1, left.dim[0]});
    if (column)
        b.ref = mica_onnx_reshape(n, b.ref, 2, (mica_index[]){right.dim[0], 1});
    left = *mica_onnx_shape(n, a.ref);
    right = *mica_onnx_shape(n, b.ref);
    if (n->failed)
        return 0;
    mica_index values = left.dim[left.rank - 1], most = (mica_index)(0x1p24 / (a.most * b.most));
    mica_onnx_ref sum = 0;
    for (mica_index k = 0; k < values || k == 0; k += most) {
        mica_index end = k + most < values ? k + most : values;
        mica_onnx_ref part = mica_onnx_op2(n, "matmul", mica_onnx_part(n, a.ref, left.rank - 1, k, end),
                                           mica_onnx_part(n, b.ref, right.rank - 2, k, end), NULL);
        part = mica_onnx_cast(n, part, MICA_I32);
        sum = sum == 0 ? part : mica_onnx_add(n, sum, part);
        if (n->failed)
            return 0;
    }
    if (!row && !column)
        return sum;
    mica_tensor y = *mica_onnx_shape(n, sum);
    mica_index dims[MICA_MAX_RANK];
    int rank = 0;
    for (int k = 0; k < y.rank; k++)
        if (!(row && k == y.rank - 2) && !(column && k == y.rank - 1))
            dims[rank++] = y.dim[k];
    return mica_onnx_reshape(n, sum, rank, dims);
}

static void matmul_integer(mica_onnx_importing *n)
{
    factor a = less_zero(n, n->in[0], input(n, 2), 2), b = less_zero(n, n->in[1], input(n, 3), 1);
    mica_onnx_give(n, 0, product(n, a, b));
}

/* A scale of one element as it is; one for each row of a as a column. */
static mica_onnx_ref scale_of(mica_onnx_importing *n, mica_onnx_ref scale, int axis)
{
    mica_tensor t = *mica_onnx_shape(n, scale);
    mica_onnx_ref s = floats(n, scale);
    if (mica_tensor_count(&t) == 1)
        return mica_onnx_reshape(n, s, 0, NULL);
    return t.rank == 1 && axis == 2 ? mica_onnx_reshape(n, s, 2, (mica_index[]){t.dim[0], 1}) : s;
}

/* a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero */
static void qlinear_matmul(mica_onnx_importing *n)
{
    factor a = less_zero(n, n->in[0], n->in[2], 2), b = less_zero(n, n->in[3], n->in[5], 1);
    mica_onnx_ref sum = mica_onnx_cast(n, product(n, a, b), MICA_F32);
    mica_onnx_ref ratio = mica_onnx_div(
        n, mica_onnx_mul(n, scale_of(n, n->in[1], 2), scale_of(n, n->in[4], 1)), scale_of(n, n->in[6], 2));
    mica_onnx_ref zero = scale_of(n, n->in[7], 2);
    mica_onnx_give(n, 0,
                   rounded(n, mica_onnx_mul(n, sum, ratio), zero, mica_onnx_shape(n, n->in[7])->dtype, true));
}

/* ---- Convolutions of integers ---- */

/* i32 less a zero point of one element, or one for each index of the first axis. */
static mica_onnx_ref integers(mica_onnx_importing *n, mica_onnx_ref x, mica_onnx_ref zero)
{
    mica_tensor t = *mica_onnx_shape(n, x);
    mica_onnx_ref y = mica_onnx_cast(n, x, MICA_I32);
    if (zero == 0 || n->failed || !is_zero_of(n, zero, t.dtype))
        return y;
    mica_index dims[MICA_MAX_RANK], count = (mica_index)mica_tensor_count(mica_onnx_shape(n, zero));
    for (int k = 0; k < t.rank; k++)
        dims[k] = k == 0 ? count : 1;
    mica_onnx_ref point = mica_onnx_reshape(n, mica_onnx_cast(n, zero, MICA_I32), count == 1 ? 0 : t.rank,
                                            dims);
    return mica_onnx_sub(n, y, point);
}

static mica_onnx_ref convolved(mica_onnx_importing *n, mica_onnx_ref x, mica_onnx_ref w, mica_onnx_ref x_zero,
                               mica_onnx_ref w_zero)
{
    mica_onnx_ref ins[2] = {integers(n, x, x_zero), integers(n, w, w_zero)};
    mica_tensor image = *mica_onnx_shape(n, ins[0]), weights = *mica_onnx_shape(n, ins[1]);
    mica_onnx_windows v;
    if (n->failed)
        return 0;
    if (image.rank < 3 || weights.rank != image.rank)
        return mica_onnx_bad(n, "x has rank %d and w %d: expected the same, 3 or more", image.rank,
                             weights.rank);
    if (image.rank > 4)
        return mica_onnx_unsupported(n, "a convolution of integers along %d axes: only along 1 or 2",
                                     image.rank - 2);
    if (!mica_onnx_read_windows(n, &v, &image, &weights.dim[2]))
        return 0;
    mica_integer_conv_opts o = {.groups = (mica_index)mica_onnx_int(n, "group", 1)};
    for (int k = 0; k < v.axes; k++) {
        o.stride[2 - v.axes + k] = v.stride[k];
        o.dilation[2 - v.axes + k] = v.dilation[k];
    }
    mica_onnx_check_windows(n, ins[0], &v);
    mica_onnx_cut_nothing(&v);
    ins[0] = mica_onnx_pad(n, ins[0], v.axes, v.before, v.after, 0.0);
    return mica_onnx_op(n, "integer_conv", ins, 2, &o);
}

static void conv_integer(mica_onnx_importing *n)
{
    mica_onnx_give(n, 0, convolved(n, n->in[0], n->in[1], input(n, 2), input(n, 3)));
}

/* x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias */
static void qlinear_conv(mica_onnx_importing *n)
{
    mica_onnx_ref sum = convolved(n, n->in[0], n->in[3], n->in[2], n->in[5]);
    if (n->failed)
        return;
    int rank = mica_onnx_shape(n, sum)->rank;
    if (input(n, 8) != 0)
        sum = mica_onnx_add(n, sum, mica_onnx_by_channel(n, n->in[8], rank));
    mica_onnx_ref ratio = mica_onnx_div(
        n, mica_onnx_mul(n, scale_of(n, n->in[1], 1), scale_of(n, n->in[4], 1)), scale_of(n, n->in[6], 1));
    if (mica_onnx_shape(n, ratio)->rank == 1)
        ratio = mica_onnx_by_channel(n, ratio, rank);
    mica_onnx_ref y = mica_onnx_mul(n, mica_onnx_cast(n, sum, MICA_F32), ratio);
    mica_onnx_give(n, 0, rounded(n, y, scale_of(n, n->in[7], 1), mica_onnx_shape(n, n->in[7])->dtype, true));
}

const mica_onnx_operator mica_onnx_quantize_operators[] = {
    {"QuantizeLinear", 10, quantize_linear},
    {"DequantizeLinear", 10, dequantize_linear},
    {"DynamicQuantizeLinear", 11, dynamic_quantize_linear},
    {"MatMulInteger", 10, matmul_integer},
    {"ConvInteger", 10, conv_integer},
    {"QLinearMatMul", 10, qlinear_matmul},
    {"QLinearConv", 10, qlinear_conv},
    {NULL, 0, NULL}};
