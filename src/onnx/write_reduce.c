/* Reductions. */
#include "onnx/write.h"

/* ---- Over axes ---- */

static int axes_of(const mica_onnx_writing *c, int64_t axes[MICA_MAX_RANK])
{
    const mica_reduction_opts *o = c->opts;
    int rank = c->in[0]->rank, count = o->count > 0 ? o->count : rank;
    for (int i = 0; i < count; i++)
        axes[i] = o->count > 0 ? mica_onnx_axis_from(o->axes[i], rank) : i;
    return count;
}

static mica_onnx_term reduce(mica_onnx_writing *c, mica_onnx_term out, const char *type, mica_onnx_term x,
                             bool keep)
{
    int64_t axes[MICA_MAX_RANK];
    int count = axes_of(c, axes);
    if (count == 0) { /* of a number; no axes would mean all of them, of which there are none */
        mica_onnx_put(c, out, type, &x, 1, ATTRS(mica_onnx_int_attr("keepdims", keep)));
        return out;
    }
    return mica_onnx_put_reduce(c, out, type, x, axes, count, keep);
}

static bool keeps(const mica_onnx_writing *c) { return ((const mica_reduction_opts *)c->opts)->keep; }

#define REDUCE(op, type) \
    static void op(mica_onnx_writing *c) { reduce(c, OUT(0), type, IN(0), keeps(c)); }

REDUCE(sum, "ReduceSum")
REDUCE(mean, "ReduceMean")
REDUCE(prod, "ReduceProd")
REDUCE(amax, "ReduceMax")
REDUCE(amin, "ReduceMin")

static void norm(mica_onnx_writing *c)
{
    mica_norm_kind kind = ((const mica_reduction_opts *)c->opts)->kind;
    if (kind == MICA_NORM_L2 || kind == MICA_NORM_L1)
        reduce(c, OUT(0), kind == MICA_NORM_L2 ? "ReduceL2" : "ReduceL1", IN(0), keeps(c));
    else
        reduce(c, OUT(0), "ReduceMax", mica_onnx_node1(c, NEW, "Abs", IN(0), NO_ATTRS), keeps(c));
}

/* The sum of (a - mean)^2 over n - correction. */
static void variance(mica_onnx_writing *c)
{
    const mica_reduction_opts *o = c->opts;
    int64_t axes[MICA_MAX_RANK];
    int count = axes_of(c, axes);
    mica_onnx_term t = reduce(c, NEW, "ReduceMean", IN(0), true);
    t = mica_onnx_node2(c, NEW, "Sub", IN(0), t);
    t = mica_onnx_node2(c, NEW, "Mul", t, t);
    if (o->correction == 0) {
        reduce(c, OUT(0), "ReduceMean", t, o->keep);
        return;
    }
    t = reduce(c, NEW, "ReduceSum", t, o->keep);
    mica_onnx_term sizes = mica_onnx_node1(c, NEW, "Shape", IN(0), NO_ATTRS);
    sizes = mica_onnx_node2(c, NEW, "Gather", sizes, mica_onnx_put_ints(c, axes, count));
    sizes = mica_onnx_put_cast(c, NEW, sizes, 1);
    mica_onnx_term n = mica_onnx_node1(c, NEW, "ReduceProd", sizes, ATTRS(mica_onnx_int_attr("keepdims", 0)));
    n = mica_onnx_node2(c, NEW, "Sub", n, mica_onnx_put_number(c, (float)o->correction));
    mica_onnx_node2(c, OUT(0), "Div", t, n);
}

/* ---- Along one axis ---- */

static void arg(mica_onnx_writing *c)
{
    const mica_arg_opts *o = c->opts;
    const char *type = c->node->op == &mica_op_argmax ? "ArgMax" : "ArgMin";
    mica_onnx_term x = IN(0), y;
    bool all = o->axis == MICA_ALL_AXES;
    if (all)
        x = mica_onnx_node2(c, NEW, "Reshape", x, mica_onnx_put_int(c, -1));
    y = mica_onnx_node1(c, o->wide && !all ? OUT(0) : NEW, type, x,
                        ATTRS(mica_onnx_int_attr("axis", all ? 0 : o->axis),
                              mica_onnx_int_attr("keepdims", !all && o->keep)));
    if (all) {
        int64_t ones[MICA_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
        y = mica_onnx_node2(c, o->wide ? OUT(0) : NEW, "Reshape", y,
                            mica_onnx_put_ints(c, ones, c->out[0]->rank));
    }
    if (!o->wide)
        mica_onnx_put_cast(c, OUT(0), y, 6);
}

static void dot(mica_onnx_writing *c)
{
    mica_onnx_term product = mica_onnx_node2(c, NEW, "Mul", IN(0), IN(1));
    mica_onnx_node1(c, OUT(0), "ReduceSum", product, ATTRS(mica_onnx_int_attr("keepdims", 0)));
}

static void l2_normalize(mica_onnx_writing *c)
{
    const mica_l2_normalize_opts *o = c->opts;
    int64_t axis = o->axis;
    mica_onnx_term size = mica_onnx_put_reduce(c, NEW, "ReduceL2", IN(0), &axis, 1, true);
    size = mica_onnx_node2(c, NEW, "Max", size, mica_onnx_put_number(c, o->eps != 0.0f ? o->eps : 1e-12f));
    mica_onnx_node2(c, OUT(0), "Div", IN(0), size);
}

const mica_onnx_row mica_onnx_write_reduce[] = {PLAIN(sum, sum),
                                                PLAIN(mean, mean),
                                                PLAIN(prod, prod),
                                                PLAIN(amax, amax),
                                                PLAIN(amin, amin),
                                                PLAIN(norm, norm),
                                                OWN(variance, variance),
                                                PLAIN(argmax, arg),
                                                PLAIN(argmin, arg),
                                                OWN(dot, dot),
                                                OWN(l2_normalize, l2_normalize),
                                                END_OF_ROWS};
