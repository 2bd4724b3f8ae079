/* Reductions over axes, which are an attribute or, in later opsets, an input. */
#include <float.h>
#include <math.h>

#include "onnx/moves.h"

typedef struct reduction {
    mica_onnx_ref x;
    mica_reduction_opts opts;
    unsigned mask; /* of the axes */
    bool none;     /* nothing is reduced */
    bool empty;    /* of nothing: the result has elements, what is reduced has none */
} reduction;

/* False: the node has failed. */
static bool read_axes(mica_onnx_importing *n, reduction *r)
{
    const mica_tensor *x = mica_onnx_shape(n, n->in[0]);
    int count = mica_onnx_axes(n, "axes", 1, n->in[0], &r->mask);
    r->x = n->in[0];
    r->opts.keep = mica_onnx_int(n, "keepdims", 1) != 0;
    if (count <= 0 && mica_onnx_int(n, "noop_with_empty_axes", 0) != 0)
        r->none = true;
    else if (count <= 0)
        r->mask = (1u << x->rank) - 1u;
    r->none = r->none || r->mask == 0;
    size_t kept = 1, reduced = 1;
    for (int k = 0; k < x->rank; k++) {
        if (r->mask >> k & 1u)
            r->opts.axes[r->opts.count++] = k;
        *(r->mask >> k & 1u ? &reduced : &kept) *= (size_t)x->dim[k];
    }
    r->empty = !r->none && reduced == 0 && kept > 0;
    return !n->failed;
}

static mica_onnx_ref reduce(mica_onnx_importing *n, const reduction *r, const char *op, mica_onnx_ref x)
{
    return r->none ? x : mica_onnx_op1(n, op, x, &r->opts);
}

/* What a reduction of no elements gives: this number everywhere. */
static void give_empty(mica_onnx_importing *n, const reduction *r, double value)
{
    const mica_tensor *x = mica_onnx_shape(n, r->x);
    mica_index dims[MICA_MAX_RANK];
    int rank = 0;
    for (int k = 0; k < x->rank; k++)
        if (r->opts.keep || !(r->mask >> k & 1u))
            dims[rank++] = r->mask >> k & 1u ? 1 : x->dim[k];
    mica_onnx_give(n, 0, mica_onnx_expand(n, mica_onnx_scalar(n, x->dtype, value), rank, dims));
}

/* Sums, products and the like are there for all numbers; halves are computed in f32. */
static void plain(mica_onnx_importing *n, const char *op, double of_nothing)
{
    reduction r = {0};
    if (!read_axes(n, &r))
        return;
    mica_dtype dtype = mica_onnx_shape(n, r.x)->dtype;
    if (r.empty) {
        give_empty(n, &r, of_nothing);
        return;
    }
    mica_onnx_ref x = mica_onnx_is_half(dtype) ? mica_onnx_cast(n, r.x, MICA_F32)
                      : dtype == MICA_BOOL     ? mica_onnx_cast(n, r.x, MICA_U8)
                                               : r.x;
    mica_onnx_give_like(n, 0, reduce(n, &r, op, x), r.x);
}

/* The least and the largest number of a type, as what max and min of nothing are. */
static double limit(mica_onnx_importing *n, bool largest)
{
    mica_dtype dtype = mica_onnx_shape(n, n->in[0])->dtype;
    double bits = 8.0 * (double)mica_dtype_bytes(dtype);
    if (mica_onnx_is_float(dtype))
        return largest ? (double)INFINITY : -(double)INFINITY;
    if (dtype == MICA_BOOL)
        return largest;
    bool without_sign = dtype == MICA_U8 || dtype == MICA_U16 || dtype == MICA_U32 || dtype == MICA_U64;
    if (without_sign)
        return largest ? ldexp(1.0, (int)bits) - 1.0 : 0.0;
    return largest ? ldexp(1.0, (int)bits - 1) - 1.0 : -ldexp(1.0, (int)bits - 1);
}

static void reduce_sum(mica_onnx_importing *n) { plain(n, "sum", 0.0); }
static void reduce_mean(mica_onnx_importing *n) { plain(n, "mean", (double)NAN); }
static void reduce_prod(mica_onnx_importing *n) { plain(n, "prod", 1.0); }
static void reduce_max(mica_onnx_importing *n) { plain(n, "amax", limit(n, false)); }
static void reduce_min(mica_onnx_importing *n) { plain(n, "amin", limit(n, true)); }

/* In f32, but for integers. */
static mica_onnx_ref number(mica_onnx_importing *n, const reduction *r)
{
    bool floats = mica_onnx_is_float(mica_onnx_shape(n, r->x)->dtype);
    return floats ? mica_onnx_cast(n, r->x, MICA_F32) : r->x;
}

static void reduce_l1(mica_onnx_importing *n)
{
    reduction r = {0};
    if (read_axes(n, &r))
        mica_onnx_give_like(n, 0, reduce(n, &r, "sum", mica_onnx_op1(n, "abs", number(n, &r), NULL)), r.x);
}

static mica_onnx_ref sum_of_squares(mica_onnx_importing *n, const reduction *r)
{
    mica_onnx_ref x = number(n, r);
    return reduce(n, r, "sum", mica_onnx_op2(n, "mul", x, x, NULL));
}

static void reduce_sum_square(mica_onnx_importing *n)
{
    reduction r = {0};
    if (read_axes(n, &r))
        mica_onnx_give_like(n, 0, sum_of_squares(n, &r), r.x);
}

static void reduce_l2(mica_onnx_importing *n)
{
    reduction r = {0};
    if (!read_axes(n, &r))
        return;
    mica_onnx_ref x = number(n, &r), y;
    if (mica_onnx_shape(n, x)->dtype != MICA_F32) /* the squares of integers are summed as such */
        y = mica_onnx_op1(n, "sqrt", mica_onnx_cast(n, sum_of_squares(n, &r), MICA_F32), NULL);
    else if (r.none)
        y = mica_onnx_op1(n, "abs", x, NULL);
    else /* unlike a root, which has none at 0, a norm has the gradient 0 there, as in PyTorch */
        y = mica_onnx_op1(n, "norm", x, &r.opts);
    mica_onnx_give_like(n, 0, y, r.x);
}

static void reduce_log_sum(mica_onnx_importing *n)
{
    reduction r = {0};
    if (!read_axes(n, &r))
        return;
    mica_onnx_ref sum = mica_onnx_cast(n, reduce(n, &r, "sum", number(n, &r)), MICA_F32);
    mica_onnx_give_like(n, 0, mica_onnx_op1(n, "log", sum, NULL), r.x);
}

/* log(sum(exp(x - m))) + m, where m is the largest: so nothing overflows. An m that is infinite would make NaN of what
 * is not, so it is brought to the largest float. */
static void reduce_log_sum_exp(mica_onnx_importing *n)
{
    reduction r = {0};
    if (!read_axes(n, &r))
        return;
    if (r.empty) {
        give_empty(n, &r, -(double)INFINITY);
        return;
    }
    mica_reduction_opts keep = r.opts;
    keep.keep = true;
    mica_onnx_ref x = mica_onnx_cast(n, r.x, MICA_F32);
    mica_onnx_ref m = r.none ? x : mica_onnx_op1(n, "amax", x, &keep);
    m = mica_onnx_op1(n, "clamp", m, &(mica_clamp_opts){-FLT_MAX, FLT_MAX});
    mica_onnx_ref sum = mica_onnx_op1(n, "exp", mica_onnx_op2(n, "sub", x, m, NULL), NULL);
    sum = r.none ? sum : mica_onnx_op1(n, "sum", sum, &keep);
    mica_onnx_ref y = mica_onnx_op2(n, "add", mica_onnx_op1(n, "log", sum, NULL), m, NULL);
    if (!r.none && !r.opts.keep)
        y = mica_onnx_drop_axes(n, y, r.mask);
    mica_onnx_give_like(n, 0, y, r.x);
}

const mica_onnx_operator mica_onnx_reduce_operators[] = {{"ReduceSum", 1, reduce_sum},
                                                         {"ReduceMean", 1, reduce_mean},
                                                         {"ReduceProd", 1, reduce_prod},
                                                         {"ReduceMax", 1, reduce_max},
                                                         {"ReduceMin", 1, reduce_min},
                                                         {"ReduceL1", 1, reduce_l1},
                                                         {"ReduceL2", 1, reduce_l2},
                                                         {"ReduceSumSquare", 1, reduce_sum_square},
                                                         {"ReduceLogSum", 1, reduce_log_sum},
                                                         {"ReduceLogSumExp", 1, reduce_log_sum_exp},
                                                         {NULL, 0, NULL}};
