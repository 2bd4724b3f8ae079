/* Shapes: views, moves, joining, splitting, padding. */
#include <string.h>

#include "onnx/write.h"

static int axis_of(const mica_onnx_writing *c) { return ((const mica_axis_opts *)c->opts)->axis; }

/* ---- Views ---- */

static void reshape(mica_onnx_writing *c)
{
    const mica_shape_opts *o = c->opts;
    int64_t dims[MICA_MAX_RANK];
    for (int i = 0; i < o->rank; i++)
        dims[i] = o->dims[i];
    mica_onnx_node2(c, OUT(0), "Reshape", IN(0), mica_onnx_put_ints(c, dims, o->rank));
}

/* Sizes before the merged axis stand where they stood; those behind do not. */
static void flatten(mica_onnx_writing *c)
{
    const mica_flatten_opts *o = c->opts;
    const mica_tensor *x = c->in[0];
    bool usual = o->first == 0 && o->last == 0;
    int first = usual ? 1 : mica_onnx_axis_from(o->first, x->rank);
    int last = usual ? x->rank - 1 : mica_onnx_axis_from(o->last, x->rank), rank = 0;
    mica_onnx_dim dims[MICA_MAX_RANK] = {{0}};
    if (usual && x->rank < 2) {
        mica_onnx_node2(c, OUT(0), "Reshape", IN(0), mica_onnx_put_ints(c, (int64_t[]){-1, 1}, 2));
        return;
    }
    for (int i = 0; i < first; i++)
        dims[rank++].size = 0;
    dims[rank++].size = -1;
    for (int i = last + 1; i < x->rank; i++)
        dims[rank++] = mica_onnx_dim_of(c, 0, i);
    mica_onnx_node2(c, OUT(0), "Reshape", IN(0), mica_onnx_put_dims(c, dims, rank));
}

static void squeeze(mica_onnx_writing *c)
{
    const mica_tensor *x = c->in[0];
    int64_t axes[MICA_MAX_RANK];
    int count = 0, axis = axis_of(c);
    for (int i = 0; i < x->rank; i++)
        if (axis == MICA_ALL_AXES ? x->dim[i] == 1 : i == mica_onnx_axis_from(axis, x->rank))
            axes[count++] = i;
    mica_onnx_node2(c, OUT(0), "Squeeze", IN(0), mica_onnx_put_ints(c, axes, count));
}

static void unsqueeze(mica_onnx_writing *c)
{
    mica_onnx_node2(c, OUT(0), "Unsqueeze", IN(0), mica_onnx_put_int(c, axis_of(c)));
}

/* ---- Moves ---- */

static void slice(mica_onnx_writing *c)
{
    const mica_slice_range_opts *o = c->opts;
    int64_t step = o->step != 0 ? o->step : 1, stop = o->stop != 0 ? o->stop
                                                      : step > 0   ? INT64_MAX
                                                                   : INT64_MIN;
    mica_onnx_term start = mica_onnx_put_int(c, o->start), end = mica_onnx_put_int(c, stop);
    mica_onnx_term axis = mica_onnx_put_int(c, o->axis);
    mica_onnx_put(c, OUT(0), "Slice", TERMS(IN(0), start, end, axis, mica_onnx_put_int(c, step)), NO_ATTRS);
}

static void flip(mica_onnx_writing *c)
{
    mica_onnx_term start = mica_onnx_put_int(c, -1), end = mica_onnx_put_int(c, INT64_MIN);
    mica_onnx_term axis = mica_onnx_put_int(c, axis_of(c));
    mica_onnx_put(c, OUT(0), "Slice", TERMS(IN(0), start, end, axis, mica_onnx_put_int(c, -1)), NO_ATTRS);
}

static void transpose(mica_onnx_writing *c)
{
    const mica_transpose_opts *o = c->opts;
    int rank = c->in[0]->rank, axes[MICA_MAX_RANK];
    bool usual = o->a == 0 && o->b == 0;
    int a = usual ? rank - 2 : mica_onnx_axis_from(o->a, rank),
        b = usual ? rank - 1 : mica_onnx_axis_from(o->b, rank);
    for (int i = 0; i < rank; i++)
        axes[i] = i == a ? b : i == b ? a : i;
    mica_onnx_put_permute(c, OUT(0), IN(0), axes, rank);
}

static void permute(mica_onnx_writing *c)
{
    mica_onnx_put_permute(c, OUT(0), IN(0), ((const mica_permute_opts *)c->opts)->axes, c->in[0]->rank);
}

/* Expand takes 1 where an axis stays as it is. */
static void broadcast_to(mica_onnx_writing *c)
{
    const mica_shape_opts *o = c->opts;
    int64_t dims[MICA_MAX_RANK];
    for (int i = 0; i < o->rank; i++)
        dims[i] = o->dims[i] != 0 ? o->dims[i] : i >= o->rank - c->in[0]->rank ? 1 : 0;
    mica_onnx_term shape = c->in[1] != NULL ? mica_onnx_node1(c, NEW, "Shape", IN(1), NO_ATTRS)
                                            : mica_onnx_put_ints(c, dims, o->rank);
    mica_onnx_node2(c, OUT(0), "Expand", IN(0), shape);
}

/* ---- Joining and splitting ---- */

static void concat(mica_onnx_writing *c)
{
    mica_onnx_term ins[MICA_OP_INS];
    int count = mica_onnx_count_ins(c);
    for (int i = 0; i < count; i++)
        ins[i] = IN(i);
    mica_onnx_put(c, OUT(0), "Concat", ins, count, ATTRS(mica_onnx_int_attr("axis", axis_of(c))));
}

static void stack(mica_onnx_writing *c)
{
    mica_onnx_term ins[MICA_OP_INS], axis = mica_onnx_put_int(c, axis_of(c));
    int count = mica_onnx_count_ins(c);
    for (int i = 0; i < count; i++)
        ins[i] = mica_onnx_node2(c, NEW, "Unsqueeze", IN(i), axis);
    mica_onnx_put(c, OUT(0), "Concat", ins, count, ATTRS(mica_onnx_int_attr("axis", axis_of(c))));
}

static void split(mica_onnx_writing *c)
{
    const mica_split_opts *o = c->opts;
    int axis = mica_onnx_axis_from(o->axis, c->in[0]->rank);
    mica_onnx_term outs[MICA_OP_OUTS], parts = 0;
    int64_t sizes[MICA_OP_OUTS];
    bool equal = true;
    for (int k = 0; k < o->count; k++) {
        outs[k] = c->node->out[k] != NONE ? OUT(k) : NEW;
        sizes[k] = c->out[k] != NULL ? c->out[k]->dim[axis] : 0;
        equal = equal && o->sizes[k] == 0;
    }
    if (!mica_onnx_varies(c, c->node->in[0], axis))
        parts = mica_onnx_put_ints(c, sizes, o->count);
    else if (!equal)
        mica_onnx_refuse(c, "splits an axis whose size is not fixed, by fixed sizes");
    mica_onnx_nodes(c, outs, o->count, "Split", TERMS(IN(0), parts), ATTRS(mica_onnx_int_attr("axis", axis)));
}

static void tile(mica_onnx_writing *c)
{
    const mica_tile_opts *o = c->opts;
    int rank = c->out[0]->rank, more = rank - c->in[0]->rank;
    int64_t repeats[MICA_MAX_RANK], leading[MICA_MAX_RANK];
    for (int i = 0; i < rank; i++)
        repeats[i] = o->repeats[i] != 0 ? o->repeats[i] : 1;
    for (int i = 0; i < more; i++)
        leading[i] = i;
    mica_onnx_term x = IN(0);
    if (more > 0)
        x = mica_onnx_node2(c, NEW, "Unsqueeze", x, mica_onnx_put_ints(c, leading, more));
    mica_onnx_node2(c, OUT(0), "Tile", x, mica_onnx_put_ints(c, repeats, rank));
}

/* ---- Padding ---- */

static void pad(mica_onnx_writing *c)
{
    const mica_pad_opts *o = c->opts;
    int rank = c->in[0]->rank;
    int64_t pads[2 * MICA_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        pads[i] = o->before[i];
        pads[rank + i] = o->after[i];
    }
    mica_onnx_term by = mica_onnx_put_ints(c, pads, 2 * rank);
    if (o->mode == MICA_PAD_CONSTANT) {
        mica_onnx_term value = mica_onnx_put_scalar(c, c->in[0]->dtype, o->value);
        mica_onnx_put(c, OUT(0), "Pad", TERMS(IN(0), by, value), NO_ATTRS);
        return;
    }
    if (o->mode == MICA_PAD_WRAP)
        mica_onnx_refuse(c, "wraps around, for which opset 17 has no mode");
    mica_onnx_put(c, OUT(0), "Pad", TERMS(IN(0), by),
                  ATTRS(mica_onnx_text_attr("mode", o->mode == MICA_PAD_EDGE ? "edge" : "reflect")));
}

static void unpad(mica_onnx_writing *c)
{
    const mica_pad_opts *o = c->opts;
    int rank = c->in[0]->rank;
    int64_t starts[MICA_MAX_RANK], ends[MICA_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        starts[i] = o->before[i];
        ends[i] = o->after[i] > 0 ? -o->after[i] : INT64_MAX;
    }
    mica_onnx_term from = mica_onnx_put_ints(c, starts, rank), to = mica_onnx_put_ints(c, ends, rank);
    mica_onnx_put(c, OUT(0), "Slice", TERMS(IN(0), from, to), NO_ATTRS);
}

/* ---- In the shape of another ---- */

/* Whether the elements of the table are known, and all the same. */
static bool is_uniform(const mica_onnx_writing *c, mica_tensor *table)
{
    const mica_value_info *v = &c->w->net->values[c->node->in[0]];
    if (v->home != MICA_HOME_LENT || !mica_tensor_contiguous(&v->tensor) ||
        mica_tensor_count(&v->tensor) == 0)
        return false;
    size_t each = mica_dtype_bytes(v->tensor.dtype), bytes = mica_tensor_bytes(&v->tensor);
    *table = v->tensor;
    return memcmp(table->data, (const char *)table->data + each, bytes - each) == 0;
}

/* The beginning of a table. One of equal elements, as the first states of a recurrent layer are, has no end. */
static void leading(mica_onnx_writing *c)
{
    const mica_leading_opts *o = c->opts;
    mica_onnx_dim ends[MICA_MAX_RANK];
    mica_tensor table;
    if (is_uniform(c, &table)) {
        for (int k = 0; k < table.rank; k++)
            ends[k] = o->like[k] > 0 ? (mica_onnx_dim){.term = IN(o->like[k]), .axis = o->axis[k]}
                                     : (mica_onnx_dim){.size = table.dim[k]};
        mica_onnx_term shape = mica_onnx_put_dims(c, ends, table.rank);
        table.rank = 0;
        mica_onnx_node2(c, OUT(0), "Expand", mica_onnx_put_constant(c, &table), shape);
        return;
    }
    int64_t starts[MICA_MAX_RANK] = {0}, axes[MICA_MAX_RANK];
    int count = 0;
    for (int k = 0; k < c->in[0]->rank; k++)
        if (o->like[k] > 0) {
            axes[count] = k;
            ends[count++] = (mica_onnx_dim){.term = IN(o->like[k]), .axis = o->axis[k]};
        }
    if (count == 0) {
        mica_onnx_node1(c, OUT(0), "Identity", IN(0), NO_ATTRS);
        return;
    }
    mica_onnx_term from = mica_onnx_put_ints(c, starts, count), to = mica_onnx_put_dims(c, ends, count);
    mica_onnx_put(c, OUT(0), "Slice", TERMS(IN(0), from, to, mica_onnx_put_ints(c, axes, count)), NO_ATTRS);
}

static void fill(mica_onnx_writing *c)
{
    const mica_op *op = c->node->op;
    double value = op == &mica_op_zeros  ? 0.0
                   : op == &mica_op_ones ? 1.0
                                         : ((const mica_make_opts *)c->opts)->value;
    mica_onnx_term shape = mica_onnx_node1(c, NEW, "Shape", IN(0), NO_ATTRS);
    mica_onnx_node2(c, OUT(0), "Expand", mica_onnx_put_scalar(c, c->out[0]->dtype, value), shape);
}

/* clang-format off */
const mica_onnx_row mica_onnx_write_shape[] = {
    PLAIN(reshape, reshape), PLAIN(flatten, flatten), PLAIN(squeeze, squeeze), PLAIN(unsqueeze, unsqueeze),
    PLAIN(slice, slice), PLAIN(flip, flip), PLAIN(transpose, transpose), PLAIN(permute, permute),
    PLAIN(broadcast_to, broadcast_to), PLAIN(concat, concat), PLAIN(stack, stack),
    {&mica_op_split, split, NULL, false, true}, PLAIN(tile, tile), PLAIN(pad, pad), PLAIN(unpad, unpad),
    PLAIN(leading, leading), PLAIN(fill, fill), PLAIN(zeros, fill), PLAIN(ones, fill), END_OF_ROWS};
/* clang-format on */
