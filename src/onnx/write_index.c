/* Elements and slices by index. */
#include "onnx/write.h"

static mica_onnx_attr axis_attr(const mica_onnx_writing *c)
{
    return mica_onnx_int_attr("axis", ((const mica_axis_opts *)c->opts)->axis);
}

static void embedding(mica_onnx_writing *c)
{
    mica_onnx_term rows = IN(0);
    if (c->in[0]->dtype != MICA_F32) /* rows become f32 */
        rows = mica_onnx_put_cast(c, NEW, rows, 1);
    if (mica_onnx_type_of(c->in[0]->dtype) == 0)
        mica_onnx_refuse(c, "block-quantized weights");
    mica_onnx_node2(c, OUT(0), "Gather", rows, IN(1));
}

static void take(mica_onnx_writing *c)
{
    if (mica_onnx_type_of(c->in[0]->dtype) == 0)
        mica_onnx_refuse(c, "block-quantized weights");
    mica_onnx_put(c, OUT(0), "Gather", TERMS(IN(0), IN(1)), ATTRS(axis_attr(c)));
}

static void gather(mica_onnx_writing *c)
{
    mica_onnx_put(c, OUT(0), "GatherElements", TERMS(IN(0), IN(1)), ATTRS(axis_attr(c)));
}

static void scatter_add(mica_onnx_writing *c)
{
    mica_onnx_put(c, OUT(0), "ScatterElements", TERMS(IN(0), IN(2), IN(1)),
                  ATTRS(axis_attr(c), mica_onnx_text_attr("reduction", "add")));
}

/* The indices stand for whole slices of src: in the shape of src they are those of elements. An index of several
 * axes is made one, as are those axes of src. */
static void index_add(mica_onnx_writing *c)
{
    const mica_tensor *x = c->in[0], *index = c->in[2];
    int axis = mica_onnx_axis_from(((const mica_axis_opts *)c->opts)->axis, x->rank);
    mica_onnx_dim dims[MICA_MAX_RANK], ones[MICA_MAX_RANK];
    int behind = axis + index->rank;
    for (int i = 0; i < x->rank; i++) {
        ones[i] = (mica_onnx_dim){.size = i == axis ? -1 : 1};
        dims[i] = i == axis  ? (mica_onnx_dim){.size = (int64_t)mica_tensor_count(index)}
                  : i < axis ? mica_onnx_dim_of(c, 1, i)
                             : mica_onnx_dim_of(c, 1, i - axis - 1 + behind);
    }
    for (int i = 0; i < index->rank; i++)
        if (mica_onnx_varies(c, c->node->in[2], i))
            mica_onnx_refuse(c, "how many indices there are is not fixed");
    mica_onnx_term src = mica_onnx_put_reshape(c, NEW, IN(1), dims, x->rank);
    mica_onnx_term where = mica_onnx_put_reshape(c, NEW, IN(2), ones, x->rank);
    where = mica_onnx_node2(c, NEW, "Expand", where, mica_onnx_node1(c, NEW, "Shape", src, NO_ATTRS));
    mica_onnx_put(c, OUT(0), "ScatterElements", TERMS(IN(0), where, src),
                  ATTRS(axis_attr(c), mica_onnx_text_attr("reduction", "add")));
}

/* Negative ones, plus the size of their axis. */
static void wrap_indices(mica_onnx_writing *c)
{
    const mica_wrap_opts *o = c->opts;
    const mica_tensor *index = c->in[0];
    int axis = o->tuples ? o->batch : mica_onnx_axis_from(o->axis, c->in[1]->rank);
    mica_onnx_term sizes = mica_onnx_node1(c, NEW, "Shape", IN(1), NO_ATTRS);
    if (o->tuples)
        sizes = mica_onnx_put_slice(c, NEW, sizes, 0, axis, axis + index->dim[index->rank - 1]);
    else
        sizes = mica_onnx_node2(c, NEW, "Gather", sizes, mica_onnx_put_scalar(c, MICA_I64, axis));
    if (index->dtype != MICA_I64)
        sizes = mica_onnx_put_cast(c, NEW, sizes, mica_onnx_type_of(index->dtype));
    mica_onnx_term none = mica_onnx_put_scalar(c, index->dtype, 0.0);
    mica_onnx_term negative = mica_onnx_node2(c, NEW, "Less", IN(0), none);
    mica_onnx_term more = mica_onnx_node2(c, NEW, "Add", IN(0), sizes);
    mica_onnx_put(c, OUT(0), "Where", TERMS(negative, more, IN(0)), NO_ATTRS);
}

/* ---- Order and sums ---- */

static void gather_nd(mica_onnx_writing *c)
{
    mica_onnx_term index = c->in[1]->dtype == MICA_I64 ? IN(1) : mica_onnx_put_cast(c, NEW, IN(1), 7);
    mica_onnx_put(c, OUT(0), "GatherND", TERMS(IN(0), index),
                  ATTRS(mica_onnx_int_attr("batch_dims", *(const int *)c->opts)));
}

static void top_k(mica_onnx_writing *c)
{
    const mica_top_k_opts *o = c->opts;
    bool wide = c->out[1] != NULL && c->out[1]->dtype == MICA_I64;
    if (o->last)
        mica_onnx_refuse(c, "of equal ones the last comes first");
    mica_onnx_term outs[2] = {OUT(0), wide ? OUT(1) : NEW};
    mica_onnx_nodes(c, outs, 2, "TopK", TERMS(IN(0), mica_onnx_put_int(c, o->k != 0 ? o->k : 1)),
                    ATTRS(mica_onnx_int_attr("axis", o->axis), mica_onnx_int_attr("largest", !o->smallest)));
    if (!wide && mica_onnx_is_read(c, 1))
        mica_onnx_put_cast(c, OUT(1), outs[1], mica_onnx_type_of(c->out[1]->dtype));
}

static mica_onnx_term whole(mica_onnx_writing *c, int64_t value) /* of rank 0 */
{
    mica_tensor t = {.data = &value, .dtype = MICA_I64};
    return mica_onnx_put_constant(c, &t);
}

static void cumsum(mica_onnx_writing *c)
{
    const mica_cumsum_opts *o = c->opts;
    mica_onnx_put(
        c, OUT(0), "CumSum", TERMS(IN(0), whole(c, o->axis)),
        ATTRS(mica_onnx_int_attr("exclusive", o->exclusive), mica_onnx_int_attr("reverse", o->reverse)));
}

static void trilu(mica_onnx_writing *c)
{
    const mica_trilu_opts *o = c->opts;
    mica_onnx_put(c, OUT(0), "Trilu", TERMS(IN(0), whole(c, o->k)),
                  ATTRS(mica_onnx_int_attr("upper", !o->lower)));
}

static void det(mica_onnx_writing *c) { mica_onnx_node1(c, OUT(0), "Det", IN(0), NO_ATTRS); }

static void one_hot(mica_onnx_writing *c)
{
    const struct {
        int axis;
        mica_index depth;
    } *o = c->opts;
    /* onnxruntime has it with both of one type only */
    bool narrow = c->in[0]->dtype == MICA_I32 && o->depth <= INT32_MAX;
    mica_onnx_term depth = narrow ? mica_onnx_put_scalar(c, MICA_I32, (double)o->depth)
                                  : mica_onnx_put_int(c, o->depth);
    mica_onnx_put(c, OUT(0), "OneHot", TERMS(IN(0), depth, IN(1)),
                  ATTRS(mica_onnx_int_attr("axis", o->axis)));
}

/* All elements that are read, as an axis behind the one that they are read from, times their weights; those of an index
 * of -1 are none. */
static void sum_taps(mica_onnx_writing *c)
{
    int rank = c->in[0]->rank, axis = mica_onnx_axis_from(((const mica_axis_opts *)c->opts)->axis, rank);
    mica_onnx_dim dims[MICA_MAX_RANK + 1];
    mica_onnx_term none = mica_onnx_put_scalar(c, MICA_I32, 0.0);
    mica_onnx_term outside = mica_onnx_node2(c, NEW, "Less", IN(1), none);
    mica_onnx_term at = mica_onnx_node2(c, NEW, "Max", IN(1), none);
    mica_onnx_term taps = mica_onnx_put(c, NEW, "Gather", TERMS(IN(0), at),
                                        ATTRS(mica_onnx_int_attr("axis", axis)));
    mica_onnx_term weights = mica_onnx_put(
        c, NEW, "Where", TERMS(outside, mica_onnx_put_scalar(c, MICA_F32, 0.0), IN(2)), NO_ATTRS);
    for (int i = 0; i < rank - axis + 1; i++)
        dims[i] = i < 2 ? mica_onnx_dim_of(c, 2, i) : (mica_onnx_dim){.size = 1};
    weights = mica_onnx_put_reshape(c, NEW, weights, dims, rank - axis + 1);
    taps = mica_onnx_node2(c, NEW, "Mul", taps, weights);
    mica_onnx_put(c, OUT(0), "ReduceSum", TERMS(taps, mica_onnx_put_int(c, axis + 1)),
                  ATTRS(mica_onnx_int_attr("keepdims", 0)));
}

const mica_onnx_row mica_onnx_write_index[] = {PLAIN(embedding, embedding), PLAIN(take, take),
                                               PLAIN(gather, gather),       OWN(scatter_add, scatter_add),
                                               OWN(index_add, index_add),   OWN(wrap_indices, wrap_indices),
                                               OWN(gather_nd, gather_nd),   OWN(cumsum, cumsum),
                                               OWN(trilu, trilu),           OWN(det, det),
                                               OWN_SEVERAL(top_k, top_k),   OWN(one_hot, one_hot),
                                               OWN(sum_taps, sum_taps),     END_OF_ROWS};
