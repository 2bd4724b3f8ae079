/* Operations that move elements: loop nests over strides. */
#include <stdio.h>
#include <string.h>

#include "export/nest.h"

static int axis_of(int axis, int rank) { return axis < 0 ? axis + rank : axis; }

static const char *assign_of(const call *c, int k) { return c->add >> k & 1u ? "+=" : "="; }

static void emit_nest(emitter *e, nest *n, int to, int from, const char *assign)
{
    nest_open(e, n);
    emit(e, "%s %s %s;", nest_at(n, to), assign, nest_at(n, from));
    nest_close(e, n);
}

/* ---- Views of the input, copied ---- */

static void emit_permuted(emitter *e, const call *c, const int *axes)
{
    const value *x = in_value(e, 0), *y = out_value(e, 0);
    mica_index stride[MICA_MAX_RANK];
    nest n;
    strides_of(x, stride);
    nest_start(&n, y);
    int to = nest_operand(&n, out_name(e, 0), y), from = nest_add(&n, in_name(e, 0));
    for (int k = 0; k < y->rank; k++)
        n.stride[from][k] = stride[axes[k]];
    emit_nest(e, &n, to, from, assign_of(c, 0));
}

static void emit_permute(emitter *e, const call *c)
{
    int axes[MICA_MAX_RANK], rank = in_value(e, 0)->rank;
    for (int k = 0; k < rank; k++)
        axes[k] = axis_of(((const mica_permute_opts *)c->opts)->axes[k], rank);
    emit_permuted(e, c, axes);
}

static void emit_transpose(emitter *e, const call *c)
{
    const mica_transpose_opts *o = c->opts;
    int axes[MICA_MAX_RANK], rank = in_value(e, 0)->rank, a = o->a, b = o->b;
    if (a == 0 && b == 0)
        a = -2, b = -1;
    a = axis_of(a, rank), b = axis_of(b, rank);
    for (int k = 0; k < rank; k++)
        axes[k] = k == a ? b : k == b ? a : k;
    emit_permuted(e, c, axes);
}

/* Elements start, start + step, ... of an axis of `whole`: strides of operand `part`. Positions are clamped as
 * Python's. */
static void slice_operand(nest *n, int part, const value *whole, int axis, mica_index start, mica_index step)
{
    mica_index stride[MICA_MAX_RANK];
    strides_of(whole, stride);
    for (int k = 0; k < whole->rank; k++)
        n->stride[part][k] = stride[k] * (k == axis ? step : 1);
    n->offset[part] = start * stride[axis];
}

static void slice_of(const call *c, const value *whole, int *axis, mica_index *start, mica_index *step)
{
    const mica_slice_range_opts *o = c->opts;
    *axis = axis_of(o->axis, whole->rank);
    *step = o->step != 0 ? o->step : 1;
    mica_index size = whole->dim[*axis], first = o->start < 0 ? o->start + size : o->start;
    mica_index least = *step < 0 ? -1 : 0, most = *step < 0 ? size - 1 : size;
    *start = first < least ? least : first > most ? most : first;
}

static void emit_slice(emitter *e, const call *c)
{
    nest n;
    int axis;
    mica_index start, step;
    slice_of(c, in_value(e, 0), &axis, &start, &step);
    if (out_value(e, 0)->count == 0)
        return;
    nest_start(&n, out_value(e, 0));
    int to = nest_operand(&n, out_name(e, 0), out_value(e, 0)), from = nest_add(&n, in_name(e, 0));
    slice_operand(&n, from, in_value(e, 0), axis, start, step);
    emit_nest(e, &n, to, from, assign_of(c, 0));
}

/* The first elements along each axis. */
static void emit_leading(emitter *e, const call *c)
{
    nest n;
    if (out_value(e, 0)->count == 0)
        return;
    nest_start(&n, out_value(e, 0));
    int to = nest_operand(&n, out_name(e, 0), out_value(e, 0)), from = nest_add(&n, in_name(e, 0));
    strides_of(in_value(e, 0), n.stride[from]);
    emit_nest(e, &n, to, from, assign_of(c, 0));
}

/* dx += dy where y came from */
static void emit_slice_backward(emitter *e, const call *c)
{
    nest n;
    int axis;
    mica_index start, step;
    slice_of(c, out_value(e, 0), &axis, &start, &step);
    const char *dx = out_name(e, 0);
    if (in_value(e, 0)->count == 0)
        return;
    nest_start(&n, in_value(e, 0));
    int to = nest_add(&n, dx), from = nest_operand(&n, in_name(e, 0), in_value(e, 0));
    slice_operand(&n, to, out_value(e, 0), axis, start, step);
    emit_nest(e, &n, to, from, "+=");
}

static void emit_flip(emitter *e, const call *c)
{
    nest n;
    const value *x = in_value(e, 0);
    int axis = axis_of(((const mica_axis_opts *)c->opts)->axis, x->rank);
    nest_start(&n, x);
    int to = nest_operand(&n, out_name(e, 0), out_value(e, 0)), from = nest_add(&n, in_name(e, 0));
    slice_operand(&n, from, x, axis, x->dim[axis] - 1, -1);
    emit_nest(e, &n, to, from, assign_of(c, 0));
}

static void emit_broadcast_to(emitter *e, const call *c)
{
    nest n;
    nest_start(&n, out_value(e, 0));
    int to = nest_operand(&n, out_name(e, 0), out_value(e, 0)),
        from = nest_broadcast(&n, in_name(e, 0), in_value(e, 0));
    emit_nest(e, &n, to, from, assign_of(c, 0));
}

/* ---- Parts of an axis: `part` lies from `start` on along `axis` of `whole` ---- */

static void emit_part(emitter *e, const char *to, const char *from, const value *whole, const value *part,
                      int axis, mica_index start, bool into_whole, const char *assign)
{
    nest n;
    nest_start(&n, part);
    int a = nest_add(&n, to), b = nest_add(&n, from);
    mica_index stride[MICA_MAX_RANK];
    strides_of(part, stride);
    slice_operand(&n, into_whole ? a : b, whole, axis, start, 1);
    memcpy(n.stride[into_whole ? b : a], stride, sizeof stride);
    if (part->count > 0)
        emit_nest(e, &n, a, b, assign);
}

static void emit_concat(emitter *e, const call *c)
{
    const value *y = out_value(e, 0);
    int axis = axis_of(((const mica_axis_opts *)c->opts)->axis, y->rank);
    mica_index start = 0;
    for (int i = 0; i < c->ins; i++)
        if (c->in[i] != NONE) {
            emit_part(e, out_name(e, 0), in_name(e, i), y, in_value(e, i), axis, start, true,
                      assign_of(c, 0));
            start += in_value(e, i)->dim[axis];
        }
}

/* Of the inputs that get no gradient, one size follows from the rest; if there are more, they are inputs behind dy. */
static void emit_concat_backward(emitter *e, const call *c)
{
    const value *dy = in_value(e, 0);
    int axis = axis_of(call_int(c, "axis", 0), dy->rank), count = call_int(c, "count", 0);
    mica_index size[MICA_OP_OUTS], left = dy->dim[axis], start = 0;
    for (int k = 0; k < count; k++) {
        bool known = c->out[k] != NONE || (1 + k < c->ins && c->in[1 + k] != NONE);
        size[k] = !known              ? -1
                  : c->out[k] != NONE ? out_value(e, k)->dim[axis]
                                      : in_value(e, 1 + k)->dim[axis];
        left -= known ? size[k] : 0;
    }
    for (int k = 0; k < count; k++) {
        if (c->out[k] != NONE)
            emit_part(e, out_name(e, k), in_name(e, 0), dy, out_value(e, k), axis, start, false,
                      assign_of(c, k));
        start += size[k] >= 0 ? size[k] : left;
    }
}

/* The sizes of the parts: one may be what is left, and all 0 are equal ones. */
static void split_sizes(const mica_split_opts *o, mica_index whole, mica_index size[MICA_OP_OUTS])
{
    mica_index left = whole;
    bool equal = true;
    for (int k = 0; k < o->count; k++) {
        equal = equal && o->sizes[k] == 0;
        left -= o->sizes[k] > 0 ? o->sizes[k] : 0;
    }
    for (int k = 0; k < o->count; k++)
        size[k] = equal ? whole / o->count : o->sizes[k] == -1 ? left : o->sizes[k];
}

static void emit_split(emitter *e, const call *c)
{
    const mica_split_opts *o = c->opts;
    const value *x = in_value(e, 0);
    int axis = axis_of(o->axis, x->rank);
    mica_index size[MICA_OP_OUTS] = {0}, start = 0;
    split_sizes(o, x->dim[axis], size);
    for (int k = 0; k < o->count; start += size[k++])
        if (c->out[k] != NONE)
            emit_part(e, out_name(e, k), in_name(e, 0), x, out_value(e, k), axis, start, false,
                      assign_of(c, k));
}

static void emit_split_backward(emitter *e, const call *c)
{
    const mica_split_opts *o = c->opts;
    const value *dx = out_value(e, 0);
    int axis = axis_of(o->axis, dx->rank);
    mica_index size[MICA_OP_OUTS] = {0}, start = 0;
    split_sizes(o, dx->dim[axis], size);
    for (int k = 0; k < o->count; start += size[k++])
        if (k < c->ins && c->in[k] != NONE)
            emit_part(e, out_name(e, 0), in_name(e, k), dx, in_value(e, k), axis, start, true, "+=");
}

/* A value with an axis of size 1 more. */
static value with_axis(const value *v, int axis)
{
    value more = *v;
    more.rank = v->rank + 1;
    for (int k = v->rank; k > axis; k--)
        more.dim[k] = v->dim[k - 1];
    more.dim[axis] = 1;
    return more;
}

static void emit_stack(emitter *e, const call *c)
{
    const value *y = out_value(e, 0);
    int axis = axis_of(((const mica_axis_opts *)c->opts)->axis, y->rank), at = 0;
    for (int i = 0; i < c->ins; i++)
        if (c->in[i] != NONE) {
            value part = with_axis(in_value(e, i), axis);
            emit_part(e, out_name(e, 0), in_name(e, i), y, &part, axis, at++, true, assign_of(c, 0));
        }
}

static void emit_stack_backward(emitter *e, const call *c)
{
    const value *dy = in_value(e, 0);
    int axis = axis_of(((const mica_axis_opts *)c->opts)->axis, dy->rank);
    for (int k = 0; k < c->outs; k++)
        if (c->out[k] != NONE) {
            value part = with_axis(out_value(e, k), axis);
            emit_part(e, out_name(e, k), in_name(e, 0), dy, &part, axis, k, false, assign_of(c, k));
        }
}

/* ---- Repetition: each axis becomes two, repetitions and elements ---- */

static void emit_tiled(emitter *e, const char *large_name, const char *small_name, const value *large,
                       const value *small, bool back, const char *assign)
{
    nest n;
    mica_index stride[MICA_MAX_RANK], own[MICA_MAX_RANK];
    int missing = large->rank - small->rank;
    strides_of(large, stride);
    strides_of(small, own);
    nest_start(&n, NULL);
    int to = nest_add(&n, back ? small_name : large_name),
        from = nest_add(&n, back ? large_name : small_name);
    int l = back ? from : to, s = back ? to : from;
    for (int k = 0; k < large->rank; k++) {
        mica_index size = k >= missing ? small->dim[k - missing] : 1;
        n.stride[l][n.rank] = stride[k] * size;
        nest_axis(&n, size > 0 ? large->dim[k] / size : 0);
        n.stride[l][n.rank] = stride[k];
        n.stride[s][n.rank] = k >= missing ? own[k - missing] : 0;
        nest_axis(&n, size);
    }
    emit_nest(e, &n, to, from, assign);
}

static void emit_tile(emitter *e, const call *c)
{
    emit_tiled(e, out_name(e, 0), in_name(e, 0), out_value(e, 0), in_value(e, 0), false, assign_of(c, 0));
}

static void emit_tile_backward(emitter *e, const call *c)
{
    (void)c;
    emit_tiled(e, in_name(e, 0), out_name(e, 0), in_value(e, 0), out_value(e, 0), true, "+=");
}

/* ---- Padding ---- */

/* Part of `whole` from before[k] on along each axis. */
static void emit_inset(emitter *e, const char *to, const char *from, const value *whole, const value *part,
                       const mica_index *before, bool into_whole, const char *assign)
{
    nest n;
    mica_index stride[MICA_MAX_RANK];
    nest_start(&n, part);
    int a = nest_add(&n, to), b = nest_add(&n, from), w = into_whole ? a : b, p = into_whole ? b : a;
    strides_of(whole, stride);
    for (int k = 0; k < part->rank; k++) {
        n.stride[w][k] = stride[k];
        n.offset[w] += before[k] * stride[k];
    }
    strides_of(part, n.stride[p]);
    emit_nest(e, &n, a, b, assign);
}

/* Reflected at the first and last element, or these repeated, or the other end: loops go through the larger, whose
 * elements each come from, or are added to, one of the smaller. */
static void emit_reflected(emitter *e, const call *c, bool back)
{
    const mica_pad_opts *o = c->opts;
    const value *whole = back ? in_value(e, 0) : out_value(e, 0),
                *part = back ? out_value(e, 0) : in_value(e, 0);
    mica_index stride[MICA_MAX_RANK], own[MICA_MAX_RANK];
    text large = {0}, small = {0};
    strides_of(whole, stride);
    strides_of(part, own);
    const char *from = o->mode == MICA_PAD_REFLECT ? "reflect"
                       : o->mode == MICA_PAD_EDGE  ? "nearest"
                                                   : "wrapped";
    use_kernel(e, from);
    text_put(&large, whole->rank == 0 ? "0" : "");
    text_put(&small, whole->rank == 0 ? "0" : "");
    for (int k = 0; k < whole->rank; k++) {
        emit(e, "for (int i%d = 0; i%d < %td; i%d++)", k, k, whole->dim[k], k);
        e->indent++;
        text_put(&large, "%s%td * i%d", k > 0 ? " + " : "", stride[k], k);
        text_put(&small, "%s%td * %s(i%d - %td, %td)", k > 0 ? " + " : "", own[k], from, k, o->before[k],
                 part->dim[k]);
    }
    emit(e, "%s[%s] %s %s[%s];", out_name(e, 0), back ? small.bytes : large.bytes, back ? "+=" : "=",
         in_name(e, 0), back ? large.bytes : small.bytes);
    e->indent -= whole->rank;
    text_free(&large);
    text_free(&small);
}

static void emit_pad(emitter *e, const call *c)
{
    const mica_pad_opts *o = c->opts;
    if (o->mode != MICA_PAD_CONSTANT) {
        emit_reflected(e, c, false);
        return;
    }
    emit(e, "for (int i = 0; i < %zu; i++)", out_value(e, 0)->count);
    emit(e, "    %s[i] = %s;", out_name(e, 0), float_text(o->value));
    emit_inset(e, out_name(e, 0), in_name(e, 0), out_value(e, 0), in_value(e, 0), o->before, true, "=");
}

static void emit_pad_backward(emitter *e, const call *c)
{
    const mica_pad_opts *o = c->opts;
    if (o->mode != MICA_PAD_CONSTANT)
        emit_reflected(e, c, true);
    else
        emit_inset(e, out_name(e, 0), in_name(e, 0), in_value(e, 0), out_value(e, 0), o->before, false, "+=");
}

static void emit_unpad(emitter *e, const call *c)
{
    emit_inset(e, out_name(e, 0), in_name(e, 0), in_value(e, 0), out_value(e, 0),
               ((const mica_pad_opts *)c->opts)->before, false, assign_of(c, 0));
}

/* ---- Copies, and other dtypes ---- */

static void emit_copy(emitter *e, const call *c)
{
    const value *x = in_value(e, 0), *y = out_value(e, 0);
    emit(e, "for (int i = 0; i < %zu; i++)", y->count);
    if (x->dtype == y->dtype)
        emit(e, "    %s[i] %s %s[i];", out_name(e, 0), assign_of(c, 0), in_name(e, 0));
    else
        emit(e, "    %s[i] %s (%s)%s[i];", out_name(e, 0), assign_of(c, 0), c_type(y->dtype), in_name(e, 0));
}

static const char *refuse_copy(const graph *g, const call *c)
{
    mica_dtype from = g->values[c->in[0]].dtype, to = g->values[c->out[0]].dtype;
    for (int k = 0; k < 2; k++) {
        mica_dtype dtype = k == 0 ? from : to;
        if (dtype != MICA_F32 && dtype != MICA_I32 && dtype != MICA_U8 && dtype != MICA_I8)
            return "a dtype other than f32, i32, i64 and u8";
    }
    return NULL;
}

const export_op export_move_ops[] = {
    {.name = "slice", .emit = emit_slice, .adds = 1},
    {.name = "leading", .emit = emit_leading, .adds = 1},
    {.name = "slice_backward", .emit = emit_slice_backward, .only_adds = 1},
    {.name = "transpose", .emit = emit_transpose, .adds = 1},
    {.name = "permute", .emit = emit_permute, .adds = 1},
    {.name = "flip", .emit = emit_flip, .adds = 1},
    {.name = "broadcast_to", .emit = emit_broadcast_to, .adds = 1},
    {.name = "concat", .emit = emit_concat, .adds = 1},
    {.name = "concat_backward", .emit = emit_concat_backward, .adds = (1u << MICA_OP_OUTS) - 1u},
    {.name = "split", .emit = emit_split, .adds = (1u << MICA_OP_OUTS) - 1u},
    {.name = "split_backward", .emit = emit_split_backward, .only_adds = 1},
    {.name = "stack", .emit = emit_stack, .adds = 1},
    {.name = "stack_backward", .emit = emit_stack_backward, .adds = (1u << MICA_OP_OUTS) - 1u},
    {.name = "tile", .emit = emit_tile, .adds = 1},
    {.name = "tile_backward", .emit = emit_tile_backward, .only_adds = 1},
    {.name = "pad", .emit = emit_pad},
    {.name = "pad_backward", .emit = emit_pad_backward, .only_adds = 1},
    {.name = "unpad", .emit = emit_unpad, .adds = 1},
    {.name = "copy", .emit = emit_copy, .adds = 1, .refuse = refuse_copy},
    {.name = NULL},
};
