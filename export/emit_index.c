/* Elements and slices by index. An index out of range, which the library refuses, reads zeros and writes nowhere. */
#include "export/nest.h"

static int axis_in(const call *c, int rank)
{
    int axis = ((const mica_axis_opts *)c->opts)->axis;
    return axis < 0 ? axis + rank : axis;
}

/* ---- Element by element: small[..] and large[.. index ..] ---- */

/* A nest over the indices: operand `large` is at stride 0 along `axis`, whose stride is returned. */
static mica_index start_gather(nest *n, const value *index, int axis, int *large, const char *large_name,
                               const value *large_value)
{
    mica_index stride[MICA_MAX_RANK];
    strides_of(large_value, stride);
    nest_start(n, index);
    *large = nest_add(n, large_name);
    for (int k = 0; k < index->rank; k++)
        n->stride[*large][k] = k == axis ? 0 : stride[k];
    return stride[axis];
}

static void emit_gather(emitter *e, const call *c)
{
    nest n;
    int from, axis = axis_in(c, in_value(e, 0)->rank);
    mica_index step = start_gather(&n, in_value(e, 1), axis, &from, in_name(e, 0), in_value(e, 0));
    int to = nest_operand(&n, out_name(e, 0), out_value(e, 0)),
        by = nest_operand(&n, in_name(e, 1), in_value(e, 1));
    nest_open(e, &n);
    emit(e, "%s %s (uint32_t)%s < %td ? %s[%s + %td * %s] : 0;", nest_at(&n, to), c->add & 1u ? "+=" : "=",
         nest_at(&n, by), in_value(e, 0)->dim[axis], n.name[from], nest_index(&n, from), step,
         nest_at(&n, by));
    nest_close(e, &n);
}

static void emit_scatter(emitter *e, const call *c, int src, int index)
{
    nest n;
    int to, axis = axis_in(c, out_value(e, 0)->rank);
    mica_index step = start_gather(&n, in_value(e, index), axis, &to, out_name(e, 0), out_value(e, 0));
    int from = nest_operand(&n, in_name(e, src), in_value(e, src)),
        by = nest_operand(&n, in_name(e, index), in_value(e, index));
    nest_open(e, &n);
    emit(e, "if ((uint32_t)%s < %td)", nest_at(&n, by), out_value(e, 0)->dim[axis]);
    emit(e, "    %s[%s + %td * %s] += %s;", n.name[to], nest_index(&n, to), step, nest_at(&n, by),
         nest_at(&n, from));
    nest_close(e, &n);
}

static void emit_gather_backward(emitter *e, const call *c) { emit_scatter(e, c, 0, 1); }

/* Input 0 moved to where the result is, unless it lies there. */
static void emit_start(emitter *e)
{
    const char *y = out_name(e, 0), *x = in_name(e, 0);
    emit(e, "if (%s != %s)", y, x);
    emit(e, "    memcpy(%s, %s, %zu * sizeof *%s);", y, x, out_value(e, 0)->count, y);
}

static void emit_scatter_add(emitter *e, const call *c)
{
    emit_start(e);
    emit_scatter(e, c, 1, 2);
}

/* ---- Whole slices: small[outer, t, inner] and large[outer, index[t], inner] ---- */

static void emit_slices(emitter *e, const char *to, const char *from, const char *index, const value *large,
                        size_t count, int axis, bool into_large, const char *assign)
{
    mica_index outer = 1, inner = 1;
    for (int k = 0; k < axis; k++)
        outer *= large->dim[k];
    for (int k = axis + 1; k < large->rank; k++)
        inner *= large->dim[k];
    nest n;
    nest_start(&n, NULL);
    nest_axis(&n, outer);
    nest_axis(&n, (mica_index)count);
    nest_axis(&n, inner);
    int small = nest_add(&n, into_large ? from : to), whole = nest_add(&n, into_large ? to : from),
        by = nest_add(&n, index);
    n.stride[small][0] = (mica_index)count * inner, n.stride[small][1] = inner, n.stride[small][2] = 1;
    n.stride[whole][0] = large->dim[axis] * inner, n.stride[whole][2] = 1;
    n.stride[by][1] = 1;
    nest_open(e, &n);
    text at = {0};
    text_put(&at, "%s[%s + %td * %s]", n.name[whole], nest_index(&n, whole), inner, nest_at(&n, by));
    if (into_large) {
        emit(e, "if ((uint32_t)%s < %td)", nest_at(&n, by), large->dim[axis]);
        emit(e, "    %s %s %s;", at.bytes, assign, nest_at(&n, small));
    } else
        emit(e, "%s %s (uint32_t)%s < %td ? %s : 0;", nest_at(&n, small), assign, nest_at(&n, by),
             large->dim[axis], at.bytes);
    text_free(&at);
    nest_close(e, &n);
}

static void emit_take(emitter *e, const call *c)
{
    emit_slices(e, out_name(e, 0), in_name(e, 0), in_name(e, 1), in_value(e, 0), in_value(e, 1)->count,
                axis_in(c, in_value(e, 0)->rank), false, c->add & 1u ? "+=" : "=");
}

static void emit_take_backward(emitter *e, const call *c)
{
    emit_slices(e, out_name(e, 0), in_name(e, 0), in_name(e, 1), out_value(e, 0), in_value(e, 1)->count,
                axis_in(c, out_value(e, 0)->rank), true, "+=");
}

static void emit_index_add(emitter *e, const call *c)
{
    emit_start(e);
    emit_slices(e, out_name(e, 0), in_name(e, 1), in_name(e, 2), out_value(e, 0), in_value(e, 2)->count,
                axis_in(c, out_value(e, 0)->rank), true, "+=");
}

static void emit_embedding(emitter *e, const call *c)
{
    emit_slices(e, out_name(e, 0), in_name(e, 0), in_name(e, 1), in_value(e, 0), in_value(e, 1)->count, 0,
                false, c->add & 1u ? "+=" : "=");
}

/* Which rows were used matters only where the gradient is not added to what is there. */
static void emit_embedding_backward(emitter *e, const call *c)
{
    (void)c;
    emit_slices(e, out_name(e, 0), in_name(e, 0), in_name(e, 1), out_value(e, 0), in_value(e, 1)->count, 0,
                true, "+=");
}

/* Indices that count from the end of an axis get its size; of tuples each place has an axis. */
static void emit_wrap(emitter *e, const call *c)
{
    const mica_wrap_opts *o = c->opts;
    const value *index = in_value(e, 0), *like = in_value(e, 1);
    int width = o->tuples ? (int)index->dim[index->rank - 1] : 1;
    for (int k = 0; k < width && index->count > 0; k++) {
        const char *y = out_name(e, 0), *x = in_name(e, 0);
        int axis = o->tuples ? o->batch + k : o->axis < 0 ? o->axis + like->rank : o->axis;
        emit(e, "for (int i = %d; i < %zu; i += %d)", k, index->count, width);
        emit(e, "    %s[i] = %s[i] < 0 ? %s[i] + %td : %s[i];", y, x, x, like->dim[axis], x);
    }
}

static const char *refuse_table(const graph *g, const call *c)
{
    mica_dtype dtype = g->values[c->in[0]].dtype;
    return dtype == MICA_F32 || dtype == MICA_I32 || dtype == MICA_U8 ? NULL : "a table that is not f32";
}

const export_op export_index_ops[] = {
    {.name = "wrap_indices", .emit = emit_wrap},
    {.name = "gather", .emit = emit_gather, .adds = 1, .refuse = refuse_table},
    {.name = "gather_backward", .emit = emit_gather_backward, .only_adds = 1},
    {.name = "scatter_add", .emit = emit_scatter_add},
    {.name = "take", .emit = emit_take, .adds = 1, .refuse = refuse_table},
    {.name = "take_backward", .emit = emit_take_backward, .only_adds = 1},
    {.name = "index_add", .emit = emit_index_add},
    {.name = "embedding", .emit = emit_embedding, .adds = 1, .refuse = refuse_table},
    {.name = "embedding_backward", .emit = emit_embedding_backward, .only_adds = 1},
    {.name = NULL},
};
