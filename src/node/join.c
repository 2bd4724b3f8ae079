/* Concat, stack and split. Gradients are split or concatenated accordingly. */
#include <string.h>

#include "node/shape.h"

enum { ALL = (1 << MICA_OP_OUTS) - 1 };

static int axis_in(const void *opts) { return ((const mica_axis_opts *)opts)->axis; }

static const mica_field axis_fields[] = {
    MICA_FIELD(mica_axis_opts, axis, INT, "the axis; negative counts from the end")};

/* The whole's part of `size` that begins at `start`. */
static mica_status part_of(const mica_call *c, mica_tensor *part, const mica_tensor *whole, int axis,
                           mica_index start, mica_index size)
{
    return mica_view_slice(c->ctx, part, whole, axis, start, start + size, 1);
}

/* How many inputs there are: optional ones at the end may not be. */
static int count_of(const mica_tensor *const *in, int ins)
{
    while (ins > 1 && in[ins - 1] == NULL)
        ins--;
    return ins;
}

/* The same, of values. */
static int value_count(const mica_grad *g)
{
    int ins = g->ins;
    while (ins > 1 && g->in[ins - 1] == 0)
        ins--;
    return ins;
}

/* ---- Concat ---- */

static mica_status concat_infer(mica_infer *i)
{
    const mica_tensor *first = i->in[0];
    mica_index dims[MICA_MAX_RANK];
    int axis;
    MICA_TRY(mica_infer_axis(i, 0, axis_in(i->opts), &axis));
    memcpy(dims, first->dim, sizeof dims);
    for (int n = 1; n < count_of(i->in, i->ins); n++) {
        const mica_tensor *t = i->in[n];
        if (t == NULL)
            return mica_infer_fail(i, MICA_ERR_ARGUMENT, "input %d is missing", n);
        if (t->rank != first->rank || t->dtype != first->dtype)
            return mica_infer_fail(i, MICA_ERR_SHAPE, "expected %s of rank %d in input %d, got %s of rank %d",
                                   mica_dtype_name(first->dtype), first->rank, n, mica_dtype_name(t->dtype),
                                   t->rank);
        for (int k = 0; k < t->rank; k++)
            if (k != axis && t->dim[k] != first->dim[k])
                return mica_infer_fail(i, MICA_ERR_SHAPE, "expected %td in dimension %d of input %d, got %td",
                                       first->dim[k], k, n, t->dim[k]);
        if (__builtin_add_overflow(dims[axis], t->dim[axis], &dims[axis]))
            return mica_infer_fail(i, MICA_ERR_SHAPE, "too many elements along axis %d", axis);
    }
    return mica_infer_out(i, 0, first->dtype, first->rank, dims);
}

static mica_status concat_run(const mica_call *c)
{
    return mica_concat(c->ctx, c->out[0], c->in, count_of(c->in, c->ins), axis_in(c->opts));
}

/* Which part of dy belongs to which input follows from their sizes, which a step may change. Those that get a gradient
 * are outputs. Of the others, one size follows from the rest; if there are more, they are inputs behind dy. */
typedef struct concat_back_opts {
    int axis, count; /* of concat's inputs */
} concat_back_opts;

static const mica_field concat_back_fields[] = {
    MICA_FIELD(concat_back_opts, axis, INT, "the axis; negative counts from the end"),
    MICA_FIELD(concat_back_opts, count, INT, "number of concat's inputs")};

static mica_status concat_backward(const mica_call *c)
{
    const concat_back_opts *o = c->opts;
    const mica_tensor *dy = c->in[0];
    int axis = mica_axis_of(o->axis, dy->rank);
    mica_index size[MICA_OP_OUTS], left = dy->dim[axis], start = 0;
    for (int k = 0; k < o->count; k++) {
        const mica_tensor *t = c->out[k] != NULL ? c->out[k] : c->in[1 + k];
        size[k] = t != NULL ? t->dim[axis] : -1;
        left -= t != NULL ? size[k] : 0;
    }
    for (int k = 0; k < o->count; k++) {
        mica_tensor part;
        mica_index mine = size[k] >= 0 ? size[k] : left;
        if (c->out[k] != NULL) {
            MICA_TRY(part_of(c, &part, dy, axis, start, mine));
            MICA_TRY(mica_put(c, k, c->out[k], &part));
        }
        start += mine;
    }
    return MICA_OK;
}

static const mica_op concat_back = {.name = "concat_backward",
                                    .ins = 1,
                                    .optional_ins = MICA_OP_OUTS,
                                    .outs = MICA_OP_OUTS,
                                    .optional_outs = ALL,
                                    .opts_bytes = sizeof(concat_back_opts),
                                    MICA_FIELD_LIST(concat_back_fields),
                                    .adds = ALL,
                                    .run = concat_backward};

static void concat_gradient(mica_grad *g)
{
    int which[MICA_OP_OUTS], unwanted = 0, count = value_count(g);
    mica_value ins[1 + MICA_OP_OUTS] = {g->dout[0]};
    for (int k = 0; k < count; k++) {
        which[k] = k;
        if (mica_grad_wants(g, k))
            continue;
        which[k] = -1;
        ins[1 + k] = g->in[k];
        unwanted++;
    }
    mica_grad_give_all(g, which, count, &concat_back, ins, unwanted > 1 ? 1 + count : 1,
                       &(concat_back_opts){axis_in(g->opts), count});
}

static bool concat_mixes(const mica_infer *i) { return mica_axis_of(axis_in(i->opts), i->in[0]->rank) == 0; }

static void concat_sample(mica_op_sample *s)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 1, 4, dims), axis = mica_sample_axis(s, rank);
    ((mica_axis_opts *)s->opts)->axis = axis;
    s->ins = (int)mica_op_sample_int(s, 1, 4);
    for (int n = 0; n < s->ins; n++) {
        dims[mica_axis_of(axis, rank)] = mica_op_sample_int(s, 1, 3);
        mica_op_sample_shape(s, n, rank, dims);
    }
}

/* ---- Stack ---- */

static mica_status stack_infer(mica_infer *i)
{
    mica_tensor view;
    mica_status status = mica_view_unsqueeze(i->ctx, &view, i->in[0], axis_in(i->opts));
    if (status != MICA_OK)
        return mica_infer_pass_on(i, status);
    int count = count_of(i->in, i->ins);
    for (int n = 1; n < count; n++)
        if (i->in[n] == NULL || i->in[n]->dtype != i->in[0]->dtype ||
            !mica_tensor_same_shape(i->in[n], i->in[0]))
            return mica_infer_fail(i, MICA_ERR_SHAPE,
                                   "expected input %d to have the shape and dtype of the first", n);
    view.dim[mica_axis_of(axis_in(i->opts), view.rank)] = count;
    return mica_infer_out(i, 0, view.dtype, view.rank, view.dim);
}

static mica_status stack_run(const mica_call *c)
{
    return mica_stack(c->ctx, c->out[0], c->in, count_of(c->in, c->ins), axis_in(c->opts));
}

static mica_status stack_backward(const mica_call *c)
{
    const mica_tensor *dy = c->in[0];
    int axis = mica_axis_of(axis_in(c->opts), dy->rank);
    for (int k = 0; k < dy->dim[axis] && k < MICA_OP_OUTS; k++) {
        mica_tensor part;
        if (c->out[k] == NULL)
            continue;
        MICA_TRY(mica_view_select(c->ctx, &part, dy, axis, k));
        MICA_TRY(mica_put(c, k, c->out[k], &part));
    }
    return MICA_OK;
}

static const mica_op stack_back = {.name = "stack_backward",
                                   .ins = 1,
                                   .outs = MICA_OP_OUTS,
                                   .optional_outs = ALL,
                                   .opts_bytes = sizeof(mica_axis_opts),
                                   .adds = ALL,
                                   .run = stack_backward};

static void stack_gradient(mica_grad *g)
{
    static const int which[MICA_OP_OUTS] = {0, 1, 2, 3, 4, 5, 6, 7};
    mica_grad_give_all(g, which, value_count(g), &stack_back, &g->dout[0], 1, g->opts);
}

static bool stack_mixes(const mica_infer *i)
{
    return mica_axis_of(axis_in(i->opts), i->in[0]->rank + 1) == 0;
}

static void stack_sample(mica_op_sample *s)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 0, 4, dims);
    ((mica_axis_opts *)s->opts)->axis = mica_sample_axis(s, rank + 1);
    s->ins = (int)mica_op_sample_int(s, 1, 4);
    for (int n = 0; n < s->ins; n++)
        mica_op_sample_shape(s, n, rank, dims);
}

#define JOIN(op, pass, words)                                               \
    const mica_op mica_op_##op = {.name = #op,                              \
                                  .family = "shape",                        \
                                  .about = words,                           \
                                  .flags = MICA_OP_CHEAP,                   \
                                  .ins = 1,                                 \
                                  .optional_ins = MICA_OP_OUTS - 1,         \
                                  .outs = 1,                                \
                                  .opts_bytes = sizeof(mica_axis_opts),     \
                                  MICA_FIELD_LIST(axis_fields),             \
                                  .infer = op##_infer,                      \
                                  .run = op##_run,                          \
                                  .gradient = MICA_GRADIENT(op##_gradient), \
                                  .passes = pass,                           \
                                  .mixes = op##_mixes,                      \
                                  .sample = MICA_SAMPLE(op##_sample)};

JOIN(concat, MICA_LAYOUTS(mica_gathering_passes), "concatenation along an axis")
JOIN(stack, NULL, "stacking along a new axis")

/* ---- Split ---- */

/* How a size of `whole` is divided; false if it cannot be so. */
static bool split_sizes(mica_index size[MICA_OP_OUTS], const mica_split_opts *o, mica_index whole)
{
    mica_index left = whole;
    int open = -1;
    bool equal = true;
    if (o->count < 1 || o->count > MICA_OP_OUTS)
        return false;
    for (int k = 0; k < o->count; k++) {
        equal = equal && o->sizes[k] == 0;
        size[k] = o->sizes[k];
        if (size[k] == -1 && open < 0)
            open = k;
        else if (size[k] < 0 || size[k] > left)
            return false;
        else
            left -= size[k];
    }
    for (int k = 0; equal && k < o->count; k++)
        size[k] = whole / o->count;
    if (open >= 0)
        size[open] = left;
    return equal ? whole % o->count == 0 : open >= 0 || left == 0;
}

static mica_status split_infer(mica_infer *i)
{
    const mica_split_opts *o = i->opts;
    const mica_tensor *x = i->in[0];
    mica_index size[MICA_OP_OUTS], dims[MICA_MAX_RANK];
    int axis;
    MICA_TRY(mica_infer_axis(i, 0, o->axis, &axis));
    if (o->count < 1 || o->count > MICA_OP_OUTS)
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "count is %d: expected 1 to %d", o->count, MICA_OP_OUTS);
    if (!split_sizes(size, o, x->dim[axis]))
        return mica_infer_fail(i, MICA_ERR_SHAPE, "axis %d of size %td cannot be split into these %d parts",
                               axis, x->dim[axis], o->count);
    memcpy(dims, x->dim, sizeof dims);
    for (int k = 0; k < o->count; k++) {
        dims[axis] = size[k];
        MICA_TRY(mica_infer_out(i, k, x->dtype, x->rank, dims));
    }
    return MICA_OK; /* there are no others */
}

static mica_status split_run(const mica_call *c)
{
    const mica_split_opts *o = c->opts;
    const mica_tensor *x = c->in[0];
    mica_index size[MICA_OP_OUTS] = {0}, start = 0;
    int axis = mica_axis_of(o->axis, x->rank);
    (void)split_sizes(size, o, x->dim[axis]); /* infer has looked at it */
    for (int k = 0; k < o->count; start += size[k++]) {
        mica_tensor part;
        if (c->out[k] == NULL)
            continue;
        MICA_TRY(part_of(c, &part, x, axis, start, size[k]));
        MICA_TRY(mica_copy(c->ctx, c->out[k], &part));
    }
    return MICA_OK;
}

/* dx = the parts' gradients one after the other, 0 where there is none */
static mica_status split_backward(const mica_call *c)
{
    const mica_split_opts *o = c->opts;
    const mica_tensor *dx = c->out[0];
    mica_index size[MICA_OP_OUTS] = {0}, start = 0;
    int axis = mica_axis_of(o->axis, dx->rank);
    (void)split_sizes(size, o, dx->dim[axis]);
    for (int k = 0; k < o->count; start += size[k++]) {
        mica_tensor part;
        MICA_TRY(part_of(c, &part, dx, axis, start, size[k]));
        if (c->in[k] != NULL)
            MICA_TRY(mica_put(c, 0, &part, c->in[k]));
        else if (!(c->add & 1u))
            MICA_TRY(mica_zeros(c->ctx, &part));
    }
    return MICA_OK;
}

static const mica_op split_back = {.name = "split_backward",
                                   .optional_ins = MICA_OP_OUTS,
                                   .outs = 1,
                                   .opts_bytes = sizeof(mica_split_opts),
                                   .adds = 1,
                                   .run = split_backward};

static void split_gradient(mica_grad *g) { mica_grad_give(g, 0, &split_back, g->dout, g->outs, g->opts); }

static bool split_mixes(const mica_infer *i)
{
    return mica_axis_of(((const mica_split_opts *)i->opts)->axis, i->in[0]->rank) == 0;
}

static void split_sample(mica_op_sample *s)
{
    mica_split_opts *o = s->opts;
    mica_index dims[MICA_MAX_RANK], total = 0;
    int rank = mica_sample_dims(s, 1, 4, dims);
    o->axis = mica_sample_axis(s, rank);
    o->count = (int)mica_op_sample_int(s, 1, 4);
    bool equal = mica_op_sample_int(s, 0, 1) == 0;
    for (int k = 0; k < o->count; k++)
        total += o->sizes[k] = mica_op_sample_int(s, 1, 3);
    dims[mica_axis_of(o->axis, rank)] = equal ? 2 * o->count : total;
    o->sizes[o->count - 1] = -1;
    if (equal)
        memset(o->sizes, 0, sizeof o->sizes);
    mica_op_sample_shape(s, 0, rank, dims);
}

static const mica_field split_fields[] = {
    MICA_FIELD(mica_split_opts, axis, INT, "the axis; negative counts from the end"),
    MICA_FIELD(mica_split_opts, count, INT, "number of parts"),
    MICA_FIELD(mica_split_opts, count, LENGTH, "number of parts"),
    MICA_FIELDS(mica_split_opts, sizes, INDEX,
                "of each part; one may be -1: what is left. All 0: equal parts")};

const mica_op mica_op_split = {.name = "split",
                               .family = "shape",
                               .about = "x split along an axis, one output per part",
                               .flags = MICA_OP_CHEAP,
                               .ins = 1,
                               .outs = MICA_OP_OUTS,
                               .optional_outs = ALL,
                               .names = (const char *const[]){"x", "0", "1", "2", "3", "4", "5", "6", "7"},
                               .opts_bytes = sizeof(mica_split_opts),
                               MICA_FIELD_LIST(split_fields),
                               .infer = split_infer,
                               .run = split_run,
                               .gradient = MICA_GRADIENT(split_gradient),
                               .mixes = split_mixes,
                               .sample = MICA_SAMPLE(split_sample)};
