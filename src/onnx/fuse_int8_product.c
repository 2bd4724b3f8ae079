/* Quantized models: products of bytes with constant weights, whose zero point is 0. Those of DequantizeLinear give
 * floats; a QuantizeLinear behind them turns that into bytes (fuse_int8.c). */
#include <math.h>
#include <string.h>

#include "node/entry.h"
#include "onnx/compose.h"
#include "onnx/int8.h"
#include "onnx/windows.h"

#define MOST_BIAS 1073741824.0 /* 2^30 */

/* A product that is being made. */
typedef struct product {
    mica_onnx_bytes x;
    mica_onnx_ref w; /* i8, a constant: [M, C, ...], or as it was [K, M] */
    bool turned;     /* the latter */
    mica_index channels;
    const float *scale; /* of weights; NULL: they have none */
    size_t scales;      /* 1 or channels */
    mica_onnx_ref bias, factor;
} product;

/* ---- Weights ---- */

static bool all_zero(mica_onnx_importing *n, mica_onnx_ref zeros)
{
    const mica_tensor *t = mica_onnx_shape(n, zeros);
    if (zeros == 0)
        return true;
    if (!mica_onnx_is_known(n, zeros))
        return false;
    const char *bytes = t->data;
    for (size_t i = 0; i < mica_tensor_bytes(t); i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

/* i8 weights with channels along `axis`, for sums of so many products that they are exact. Kernels take no -128. */
static bool take_weights(mica_onnx_importing *n, product *p, mica_onnx_ref w, int axis, mica_onnx_ref scales,
                         mica_onnx_ref zeros)
{
    const mica_tensor *t = mica_onnx_shape(n, w);
    if (!mica_onnx_is_known(n, w) || t->dtype != MICA_I8 || t->rank < 2 || !mica_tensor_contiguous(t) ||
        !all_zero(n, zeros))
        return false;
    size_t count = mica_tensor_count(t);
    p->w = w;
    p->turned = axis == 1;
    p->channels = t->dim[axis];
    if (count == 0 || count / (size_t)p->channels > MICA_INT8_PRODUCTS)
        return false;
    const int8_t *values = t->data;
    for (size_t i = 0; i < count; i++)
        if (values[i] == INT8_MIN)
            return false;
    if (scales == 0)
        return true;
    const mica_tensor *s = mica_onnx_shape(n, scales);
    p->scales = mica_tensor_count(s);
    p->scale = s->data;
    bool fits = mica_onnx_is_known(n, scales) && s->dtype == MICA_F32 && mica_tensor_contiguous(s) &&
                (p->scales == 1 || p->scales == (size_t)p->channels);
    for (size_t i = 0; fits && i < p->scales; i++)
        fits = p->scale[i] > 0.0f && isfinite(p->scale[i]);
    return fits;
}

/* A constant in memory of its own; NULL if there is none left. */
static void *new_constant(mica_onnx_importing *n, mica_dtype dtype, size_t count, mica_onnx_ref *ref)
{
    mica_onnx_held held = {.known = true,
                           .shape = {.dtype = dtype, .rank = 1, .dim = {(mica_index)count}, .stride = {1}}};
    held.shape.data = mica_onnx_memory(n->import->model, count * mica_dtype_bytes(dtype));
    if (held.shape.data == NULL) {
        n->import->status = n->import->ctx->status;
        n->failed = true;
        return NULL;
    }
    void *data = held.shape.data;
    *ref = mica_onnx_hold(n->import, &held);
    return *ref != 0 ? data : NULL;
}

/* What sums are multiplied by so that they are floats. */
static bool set_factor(mica_onnx_importing *n, product *p)
{
    float *factor = new_constant(n, MICA_F32, p->scales, &p->factor);
    for (size_t i = 0; factor != NULL && i < p->scales; i++) {
        factor[i] = p->x.scale * p->scale[i];
        if (!(factor[i] > 0.0f) || !isfinite(factor[i]))
            return false;
    }
    return factor != NULL;
}

/* From i32 as it is, from f32 (which may be what DequantizeLinear made of i32) in steps of the factor; 0: none. */
static bool set_bias(mica_onnx_importing *n, product *p, mica_onnx_ref bias)
{
    const mica_tensor from = *mica_onnx_shape(n, bias);
    mica_index last = from.rank > 0 ? from.dim[from.rank - 1] : 1; /* of Gemm, C may also be a column */
    if (bias != 0 &&
        (!mica_onnx_is_known(n, bias) || (from.dtype != MICA_F32 && from.dtype != MICA_I32) ||
         last != p->channels || mica_tensor_count(&from) != (size_t)last || !mica_tensor_contiguous(&from)))
        return false;
    int32_t *to = new_constant(n, MICA_I32, (size_t)p->channels, &p->bias);
    for (mica_index c = 0; to != NULL && c < p->channels; c++) {
        double b = bias == 0                ? 0.0
                   : from.dtype == MICA_I32 ? (double)((const int32_t *)from.data)[c]
                                            : (double)((const float *)from.data)[c];
        if (bias != 0 && from.dtype == MICA_F32)
            b = nearbyint(b / ((double)p->x.scale * (double)p->scale[p->scales == 1 ? 0 : c]));
        if (!(fabs(b) <= MOST_BIAS))
            return false;
        to[c] = (int32_t)b;
    }
    return to != NULL;
}

/* [K, M] seen as [M, K], where it lies. */
static mica_onnx_ref rows_of(mica_onnx_importing *n, const product *p)
{
    if (!p->turned)
        return p->w;
    mica_onnx_held view = {.shape = *mica_onnx_shape(n, p->w), .known = true};
    mica_tensor *t = &view.shape;
    mica_index dim = t->dim[0], stride = t->stride[0];
    t->dim[0] = t->dim[1], t->stride[0] = t->stride[1];
    t->dim[1] = dim, t->stride[1] = stride;
    return mica_onnx_hold(n->import, &view);
}

/* ---- Calls ---- */

static mica_onnx_ref call(mica_onnx_importing *n, const char *op, const product *p,
                          const mica_int8_pack_opts *pack, const void *opts)
{
    mica_onnx_ref ins[5] = {p->x.ref, rows_of(n, p), p->bias, p->factor, 0};
    ins[4] = mica_onnx_derived(n, &mica_op_int8_pack, &ins[1], 2, pack);
    return mica_onnx_op(n, op, ins, 5, opts);
}

static mica_onnx_ref linear(mica_onnx_importing *n, const product *p, const mica_affine_opts *o)
{
    return call(n, "affine_linear", p, &(mica_int8_pack_opts){.zero = p->x.zero}, o);
}

/* A convolution by the node's attributes; what is on one side only is padded before. */
static mica_onnx_ref convolve(mica_onnx_importing *n, product *p, mica_affine_conv_opts *o)
{
    const mica_tensor x = *mica_onnx_shape(n, p->x.ref), w = *mica_onnx_shape(n, p->w);
    mica_onnx_windows v;
    if (!mica_onnx_read_windows(n, &v, &x, &w.dim[2]))
        return 0;
    mica_index before[3], after[3];
    o->groups = (mica_index)mica_onnx_int(n, "group", 1);
    mica_onnx_check_windows(n, p->x.ref, &v);
    mica_onnx_cut_nothing(&v);
    for (int k = 0; k < v.axes; k++) {
        int at = 2 - v.axes + k;
        mica_index both = v.before[k] < v.after[k] ? v.before[k] : v.after[k];
        before[k] = v.before[k] - both;
        after[k] = v.after[k] - both;
        o->pad[at] = both;
        o->stride[at] = v.stride[k];
        o->dilation[at] = v.dilation[k];
    }
    o->x_zero = p->x.zero;
    p->x.ref = mica_onnx_pad(n, p->x.ref, v.axes, before, after, (double)p->x.zero);
    mica_int8_pack_opts pack = {
        .groups = o->groups, .zero = p->x.zero, .tiled = mica_onnx_is_tiled(n, p->x.ref, p->w, o)};
    return call(n, "affine_conv2d", p, &pack, o);
}

/* Whether a convolution of bytes takes these. */
static bool are_planes(mica_onnx_importing *n, const product *p)
{
    const mica_tensor *x = mica_onnx_shape(n, p->x.ref), *w = mica_onnx_shape(n, p->w);
    int64_t groups = mica_onnx_int(n, "group", 1);
    return (x->rank == 3 || x->rank == 4) && w->rank == x->rank && groups > 0 && p->channels % groups == 0 &&
           x->dim[1] == w->dim[1] * groups;
}

static bool are_rows(mica_onnx_importing *n, const product *p)
{
    const mica_tensor *x = mica_onnx_shape(n, p->x.ref), *w = mica_onnx_shape(n, p->w);
    return x->rank >= 2 && w->rank == 2 && x->dim[x->rank - 1] == w->dim[p->turned ? 0 : 1];
}

/* ---- Between DequantizeLinear and QuantizeLinear ---- */

/* x and w that DequantizeLinear made; channels of w along `axis`. */
static bool take_factors(mica_onnx_importing *n, product *p, const mica_onnx_match *m, int axis)
{
    const mica_onnx_held w = *mica_onnx_held_at(n->import, mica_onnx_matched(m, 'w'));
    if (!mica_onnx_keeps_bytes(n) || w.codes == 0 ||
        !mica_onnx_bytes_of(n, mica_onnx_matched(m, 'x'), &p->x) ||
        !take_weights(n, p, w.codes, axis, w.scales, w.zeros))
        return false;
    return (p->scales == 1 || w.codes_axis == axis) && set_factor(n, p) &&
           set_bias(n, p, mica_onnx_matched(m, 'b'));
}

static bool conv(mica_onnx_importing *n, const mica_onnx_match *m)
{
    product p = {.channels = 0};
    mica_affine_conv_opts o = {.dtype = MICA_F32};
    if (!take_factors(n, &p, m, 0) || !are_planes(n, &p))
        return false;
    mica_onnx_give(n, 0, convolve(n, &p, &o));
    return true;
}

static bool give_rows(mica_onnx_importing *n, const mica_onnx_match *m, int axis)
{
    product p = {.channels = 0};
    if (mica_onnx_shape(n, mica_onnx_matched(m, 'w'))->rank != 2 || !take_factors(n, &p, m, axis) ||
        !are_rows(n, &p))
        return false;
    mica_affine_opts o = {.x_zero = p.x.zero, .dtype = MICA_F32};
    mica_onnx_give(n, 0, linear(n, &p, &o));
    return true;
}

static bool matmul(mica_onnx_importing *n, const mica_onnx_match *m) { return give_rows(n, m, 1); }

/* Of two activations, as in attention. */
static bool matmul_of_two(mica_onnx_importing *n, const mica_onnx_match *m)
{
    mica_onnx_bytes a, b;
    if (!mica_onnx_keeps_bytes(n) || !mica_onnx_bytes_of(n, mica_onnx_matched(m, 'x'), &a) ||
        !mica_onnx_bytes_of(n, mica_onnx_matched(m, 'y'), &b))
        return false;
    const mica_tensor *x = mica_onnx_shape(n, a.ref), *y = mica_onnx_shape(n, b.ref);
    int rank = x->rank;
    bool fits = rank >= 2 && y->rank == rank && x->dim[rank - 1] == y->dim[rank - 2] &&
                x->dim[rank - 1] <= MICA_AFFINE_MATMUL_VALUES;
    for (int k = 0; fits && k < rank - 2; k++)
        fits = x->dim[k] == y->dim[k];
    mica_affine_matmul_opts o = {
        .factor = a.scale * b.scale, .a_zero = a.zero, .b_zero = b.zero, .dtype = MICA_F32};
    if (!fits || !(o.factor > 0.0f) || !isfinite(o.factor))
        return false;
    mica_onnx_give(n, 0, mica_onnx_op2(n, "affine_matmul", a.ref, b.ref, &o));
    return true;
}

static bool gemm(mica_onnx_importing *n, const mica_onnx_match *m)
{
    if (mica_onnx_float(n, "alpha", 1) != 1.0f || mica_onnx_float(n, "beta", 1) != 1.0f ||
        mica_onnx_int(n, "transA", 0) != 0)
        return false;
    return give_rows(n, m, mica_onnx_int(n, "transB", 0) != 0 ? 0 : 1);
}

/* ---- QLinearConv, QLinearMatMul: x, s, z times w, t, v to scale r, zero u ---- */

static bool take_linear(mica_onnx_importing *n, product *p, const mica_onnx_match *m, int axis,
                        mica_onnx_bytes *y)
{
    mica_onnx_ref x = mica_onnx_matched(m, 'x'), t = mica_onnx_matched(m, 't'), u = mica_onnx_matched(m, 'u');
    if (!mica_onnx_keeps_bytes(n) || mica_onnx_is_known(n, x) ||
        !mica_onnx_read_scale(n, &p->x, mica_onnx_matched(m, 's'), mica_onnx_matched(m, 'z'),
                              mica_onnx_shape(n, x)->dtype) ||
        !mica_onnx_read_scale(n, y, mica_onnx_matched(m, 'r'), u, mica_onnx_shape(n, u)->dtype) ||
        !take_weights(n, p, mica_onnx_matched(m, 'w'), axis, t, mica_onnx_matched(m, 'v')) ||
        !set_factor(n, p) || !set_bias(n, p, mica_onnx_matched(m, 'b')))
        return false;
    for (size_t i = 0; i < p->scales; i++)
        if (!isfinite(p->x.scale * p->scale[i] / y->scale))
            return false;
    p->x.ref = mica_onnx_as_i8(n, x);
    p->factor = mica_onnx_div(n, p->factor, mica_onnx_scalar(n, MICA_F32, (double)y->scale));
    return !n->failed;
}

static bool qlinear_conv(mica_onnx_importing *n, const mica_onnx_match *m)
{
    product p = {.channels = 0};
    mica_onnx_bytes y;
    if (mica_onnx_shape(n, mica_onnx_matched(m, 'w'))->rank < 3 || !take_linear(n, &p, m, 0, &y) ||
        !are_planes(n, &p))
        return false;
    mica_affine_conv_opts o = {.y_zero = y.zero, .dtype = MICA_I8};
    mica_onnx_give_bytes(n, convolve(n, &p, &o), mica_onnx_shape(n, mica_onnx_matched(m, 'u'))->dtype);
    return true;
}

static bool qlinear_matmul(mica_onnx_importing *n, const mica_onnx_match *m)
{
    product p = {.channels = 0};
    mica_onnx_bytes y;
    if (mica_onnx_shape(n, mica_onnx_matched(m, 'w'))->rank != 2 || !take_linear(n, &p, m, 1, &y) ||
        !are_rows(n, &p))
        return false;
    mica_affine_opts o = {.x_zero = p.x.zero, .y_zero = y.zero, .dtype = MICA_I8};
    mica_onnx_give_bytes(n, linear(n, &p, &o), mica_onnx_shape(n, mica_onnx_matched(m, 'u'))->dtype);
    return true;
}

/* ---- ConvInteger, MatMulInteger: sums ---- */

static bool take_integers(mica_onnx_importing *n, product *p, const mica_onnx_match *m, int axis)
{
    mica_onnx_ref x = mica_onnx_matched(m, 'x'), z = mica_onnx_matched(m, 'z');
    mica_dtype dtype = mica_onnx_shape(n, x)->dtype;
    double zero = 0;
    if (!mica_onnx_keeps_bytes(n) || mica_onnx_is_known(n, x) || (dtype != MICA_U8 && dtype != MICA_I8) ||
        (z != 0 && mica_onnx_shape(n, z)->dtype != dtype) ||
        (z != 0 && mica_onnx_is_known(n, z) && !mica_onnx_is_number(n, z, &zero)) ||
        !take_weights(n, p, mica_onnx_matched(m, 'w'), axis, 0, mica_onnx_matched(m, 'v')) ||
        !set_bias(n, p, 0))
        return false;
    p->x = (mica_onnx_bytes){mica_onnx_as_i8(n, x), 1.0f, (int)zero - (dtype == MICA_U8 ? 128 : 0)};
    return true;
}

static bool conv_integer(mica_onnx_importing *n, const mica_onnx_match *m)
{
    product p = {.channels = 0};
    mica_affine_conv_opts o = {.dtype = MICA_I32};
    if (mica_onnx_shape(n, mica_onnx_matched(m, 'w'))->rank < 3 || !take_integers(n, &p, m, 0) ||
        !are_planes(n, &p))
        return false;
    mica_onnx_give(n, 0, convolve(n, &p, &o));
    return true;
}

/* Sums of columns of weights [K, M]. */
static mica_onnx_ref column_sums(mica_onnx_importing *n, const product *p)
{
    const mica_tensor w = *mica_onnx_shape(n, p->w);
    mica_onnx_ref ref;
    int32_t *sums = new_constant(n, MICA_I32, (size_t)w.dim[1], &ref);
    if (sums == NULL)
        return 0;
    memset(sums, 0, (size_t)w.dim[1] * sizeof *sums);
    for (mica_index k = 0; k < w.dim[0]; k++)
        for (mica_index c = 0; c < w.dim[1]; c++)
            sums[c] += ((const int8_t *)w.data)[k * w.dim[1] + c];
    return ref;
}

/* A zero point that is computed, as that of DynamicQuantizeLinear, is taken from the sums. */
static bool matmul_integer(mica_onnx_importing *n, const mica_onnx_match *m)
{
    mica_onnx_ref z = mica_onnx_matched(m, 'z');
    product p = {.channels = 0};
    bool computed = z != 0 && !mica_onnx_is_known(n, z);
    if (mica_onnx_shape(n, mica_onnx_matched(m, 'w'))->rank != 2 ||
        (computed && mica_tensor_count(mica_onnx_shape(n, z)) != 1) || !take_integers(n, &p, m, 1) ||
        !are_rows(n, &p))
        return false;
    mica_affine_opts o = {.x_zero = p.x.zero, .dtype = MICA_I32};
    mica_onnx_ref y = linear(n, &p, &o);
    if (computed) {
        mica_onnx_ref zero = mica_onnx_reshape(n, mica_onnx_cast(n, z, MICA_I32), 0, NULL);
        y = mica_onnx_sub(n, y, mica_onnx_mul(n, zero, column_sums(n, &p)));
    }
    mica_onnx_give(n, 0, y);
    return true;
}

const mica_onnx_pattern mica_onnx_int8_product_patterns[] = {
    {"Conv(x,#w,#b?)", conv},
    {"MatMul(x,#w)", matmul},
    {"MatMul(x,y)", matmul_of_two},
    {"Gemm(x,#w,#b?)", gemm},
    {"QLinearConv(x,#s,#z,#w,#t,#v,#r,#u,#b?)", qlinear_conv},
    {"QLinearMatMul(x,#s,#z,#w,#t,#v,#r,#u)", qlinear_matmul},
    {"ConvInteger(x,#w,#z?,#v?)", conv_integer},
    {"MatMulInteger(x,#w,z?,#v?)", matmul_integer},
    {NULL, NULL},
};
