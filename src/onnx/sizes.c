/* Sizes of a model that are known by name only: "batch", "sequence". A net is planned for the most that each may be,
 * and a step may have less.
 *
 * What an operator is told about shapes are numbers, and some of them follow from such a size: a Reshape to [8, -1]
 * where 8 is the batch, a mean that divides by the length. To tell them from true constants the graph is imported
 * several times, first with every size smaller, each by a number of its own, and with sizes of next to nothing: what
 * rounds (a quarter of the batch) or has a bound (at least 4) may be the same at 9 and at 8, but not at 2. Values get
 * the same numbers each time, so that each can be compared with its twins: a constant that enters the net must be the
 * same in all, and a call must give the shapes that its twins have, by the same options. A constant whose twins are its
 * beginning (a table of positions, a mask, states of zeros) is cut to the size of the step, and a reshape is written so
 * that it follows. For anything else the net's sizes are fixed to those planned. So they are if a branch or a loop goes
 * another way where all sizes are 1, at which shapes themselves are often another graph's. */
#include <stdlib.h>
#include <string.h>

#include "io/quote.h"
#include "net/net.h"
#include "node/entry.h"
#include "onnx/state.h"

/* ---- Symbols ---- */

static const mica_onnx_set *set_of(const mica_onnx_import *im, const char *symbol)
{
    for (int i = 0; i < im->opts->count; i++) {
        const mica_onnx_set *s = &im->opts->sets[i];
        if (s->name != NULL && s->value == NULL && strcmp(s->name, symbol) == 0)
            return s;
    }
    return NULL;
}

/* Whether an input has become a constant: then it is none of the net's. */
static bool is_fixed(const mica_onnx_import *im, const char *input)
{
    for (int i = 0; i < im->opts->count; i++) {
        const mica_onnx_set *s = &im->opts->sets[i];
        if (s->name != NULL && s->value != NULL && s->value->data != NULL && strcmp(s->name, input) == 0)
            return true;
    }
    return false;
}

/* The name of a size in the net. "batch" is the one that training and batches of data go by: the symbol of that name,
 * or else the first axis of the first input of which the model does not fix it. */
static const char *name_in_net(const mica_onnx_import *im, const char *symbol)
{
    const mica_onnx_graph *g = &im->model->graph;
    const char *first = NULL;
    bool found = false;
    for (int i = 0; i < g->input_count; i++) {
        const mica_onnx_value *v = &g->inputs[i].is;
        for (int k = 0; k < v->rank; k++)
            if (v->symbol[k] != NULL && strcmp(v->symbol[k], "batch") == 0)
                return symbol;
        if (!found && v->rank > 0 && v->dim[0] < 0 && !is_fixed(im, v->name)) {
            found = true;
            first = v->symbol[0];
        }
    }
    return first == symbol ? "batch" : symbol;
}

bool mica_onnx_may_be_batch(const mica_onnx_import *im, const mica_onnx_value *v)
{
    bool open = v->rank < 0 || (v->rank > 0 && v->dim[0] < 0);
    const char *symbol = open && v->rank > 0 ? v->symbol[0] : NULL;
    return open && (symbol == NULL || strcmp(name_in_net(im, symbol), "batch") == 0);
}

/* The size of a symbol in the twin: less by a number of its own, as far as it is large enough, so that sizes which
 * are the same now are not the same there. */
static mica_index smaller(const mica_onnx_import *im, const mica_onnx_set *s)
{
    mica_index less = 1;
    for (const mica_onnx_set *before = im->opts->sets; before < s; before++)
        less += before->value == NULL;
    return s->size > less ? s->size - less : s->size > 1 ? 1 : s->size;
}

/* The same in the twin of next to nothing: 2, 3 and so on (more where a model cannot do with so little), if that is
 * smaller still. */
static mica_index few(const mica_onnx_import *im, const mica_onnx_set *s)
{
    mica_index size = im->least;
    for (const mica_onnx_set *before = im->opts->sets; before < s; before++)
        size += before->value == NULL;
    return mica_least_index(size, smaller(im, s));
}

static mica_index size_at(const mica_onnx_import *im, const mica_onnx_set *s, mica_onnx_extent scale)
{
    switch (scale) {
    case MICA_ONNX_LESS:
        return smaller(im, s);
    case MICA_ONNX_FEW:
        return few(im, s);
    case MICA_ONNX_ONE:
        return mica_least_index(1, s->size);
    default:
        return s->size;
    }
}

bool mica_onnx_scale_differs(const mica_onnx_import *im, mica_onnx_extent scale)
{
    for (int i = 0; i < im->opts->count; i++) {
        const mica_onnx_set *s = &im->opts->sets[i];
        if (s->value == NULL && size_at(im, s, scale) < size_at(im, s, scale - 1))
            return true;
    }
    return false;
}

/* Whether this size is that of one symbol alone, both here and in the twin. */
static bool is_of_one_symbol(const mica_onnx_import *im, mica_index now, mica_index then)
{
    int count = 0;
    for (int i = 0; i < im->opts->count; i++) {
        const mica_onnx_set *s = &im->opts->sets[i];
        count += s->value == NULL && s->size == now && smaller(im, s) == then;
    }
    return count == 1;
}

bool mica_onnx_symbol_size(mica_onnx_import *im, const char *symbol, mica_index *out)
{
    const mica_onnx_set *s = set_of(im, symbol);
    if (s == NULL)
        return false;
    if (s->size < 0) {
        im->status = mica_fail(im->ctx, MICA_ERR_ARGUMENT, "onnx: size %s is set to %td: expected 0 or more",
                               MICA_QUOTE(symbol), s->size);
        return true;
    }
    im->named = true;
    im->varies = im->varies || s->size > 1;
    if (s->size > 1 && !is_of_one_symbol(im, s->size, smaller(im, s)))
        im->fixed = "two of the model's sizes cannot be told apart: they are too small";
    *out = mica_net_size(im->net, name_in_net(im, symbol), size_at(im, s, im->scale));
    return true;
}

/* ---- Twins ---- */

static const mica_onnx_held *held_in(const mica_onnx_import *twin, mica_onnx_ref ref)
{
    return ref < twin->count ? mica_onnx_held_at(twin, ref) : NULL;
}

/* In the first twin. */
static const mica_onnx_held *twin_of(const mica_onnx_import *im, mica_onnx_ref ref)
{
    return im->twin_count > 0 ? held_in(im->twins[0], ref) : NULL;
}

bool mica_onnx_axis_varies(const mica_onnx_import *im, mica_onnx_ref ref, int axis)
{
    const mica_onnx_held *twin = twin_of(im, ref);
    return twin != NULL && twin->shape.rank > axis &&
           twin->shape.dim[axis] != mica_onnx_held_at(im, ref)->shape.dim[axis];
}

void mica_onnx_decide(mica_onnx_import *im, int64_t what)
{
    im->decisions = (im->decisions + (uint32_t)what + 1) * 2654435761u;
}

static bool same_shape(const mica_tensor *a, const mica_tensor *b)
{
    return a->dtype == b->dtype && mica_tensor_same_shape(a, b);
}

/* Whether an axis of one value is as large as one of another, in all twins. */
static bool same_sizes(const mica_onnx_import *im, mica_onnx_ref ref, int axis, mica_onnx_ref other,
                       int of_other)
{
    for (int t = 0; t < im->twin_count; t++) {
        const mica_onnx_held *a = held_in(im->twins[t], ref), *b = held_in(im->twins[t], other);
        if (a == NULL || b == NULL || axis >= a->shape.rank || of_other >= b->shape.rank ||
            a->shape.dim[axis] != b->shape.dim[of_other])
            return false;
    }
    return true;
}

/* An input of the net that has an axis as large as this one of a value, here and in all twins; 0: there is none. */
static mica_value input_of_size(const mica_onnx_import *im, mica_onnx_ref of, int of_axis, int *axis)
{
    mica_index now = mica_onnx_held_at(im, of)->shape.dim[of_axis],
               then = twin_of(im, of)->shape.dim[of_axis];
    for (mica_onnx_ref ref = 1; ref < im->count && is_of_one_symbol(im, now, then); ref++) {
        const mica_onnx_held *held = mica_onnx_held_at(im, ref);
        for (int k = 0; held->input && k < held->shape.rank; k++)
            if (held->shape.dim[k] == now && same_sizes(im, ref, k, of, of_axis)) {
                *axis = k;
                return held->value;
            }
    }
    return 0;
}

/* Whether the twin is the beginning of the constant, along every axis. */
static bool begins_with(mica_onnx_import *im, const mica_tensor *x, const mica_tensor *twin)
{
    mica_tensor part = *x, copy = *twin;
    if (x->rank != twin->rank || x->dtype != twin->dtype || !mica_tensor_contiguous(twin))
        return false;
    for (int k = 0; k < x->rank; k++) {
        if (twin->dim[k] > x->dim[k])
            return false;
        part.dim[k] = twin->dim[k];
    }
    size_t bytes = mica_tensor_bytes(twin);
    copy.data = mica_onnx_memory(im->model, bytes > 0 ? bytes : 1);
    return copy.data != NULL && mica_copy(im->ctx, &copy, &part) == MICA_OK &&
           (bytes == 0 || memcmp(copy.data, twin->data, bytes) == 0);
}

/* Whether an axis of a value is as large in all twins. */
static bool same_as_planned(const mica_onnx_import *im, mica_onnx_ref ref, int axis)
{
    bool same = true;
    for (int t = 0; t < im->twin_count; t++)
        same = same &&
               held_in(im->twins[t], ref)->shape.dim[axis] == mica_onnx_held_at(im, ref)->shape.dim[axis];
    return same;
}

/* Its leading part, as large as the inputs of the net whose sizes it follows; 0: it does not follow any. */
static mica_value leading_part(mica_onnx_import *im, mica_onnx_ref ref, mica_value value)
{
    const mica_tensor *x = &mica_onnx_held_at(im, ref)->shape;
    mica_leading_opts opts = {.like = {0}};
    mica_value ins[1 + MICA_MAX_RANK] = {value};
    int count = 1;
    for (int t = 0; t < im->twin_count; t++)
        if (!begins_with(im, x, &held_in(im->twins[t], ref)->shape))
            return 0;
    for (int k = 0; k < x->rank; k++) {
        if (same_as_planned(im, ref, k))
            continue;
        ins[count] = input_of_size(im, ref, k, &opts.axis[k]);
        if (ins[count] == 0)
            return 0;
        opts.like[k] = count++;
    }
    return mica_net_call(im->net, NULL, &mica_op_leading, ins, count, &opts);
}

static bool same_constant(const mica_tensor *a, const mica_tensor *b)
{
    return same_shape(a, b) && (mica_tensor_count(a) == 0 || a->data == b->data ||
                                memcmp(a->data, b->data, mica_tensor_bytes(a)) == 0);
}

mica_value mica_onnx_sized_constant(mica_onnx_import *im, mica_onnx_ref ref, mica_value value)
{
    const mica_onnx_held *held = mica_onnx_held_at(im, ref);
    if (im->twin_count == 0 || held->name != NULL) /* initializers are what they are */
        return value;
    bool known = true, same = true;
    for (int t = 0; t < im->twin_count && known; t++) {
        const mica_onnx_held *twin = held_in(im->twins[t], ref);
        known = twin != NULL && twin->known;
        same = same && known && same_constant(&held->shape, &twin->shape);
    }
    if (same)
        return value;
    mica_value part = known && im->fixed == NULL ? leading_part(im, ref, value) : 0;
    if (part == 0 && im->fixed == NULL)
        im->fixed = "a constant of the model is computed from its sizes";
    return part != 0 ? part : value;
}

/* The shapes that a call gives in a twin's place. */
static bool infer_twin(mica_onnx_import *im, const mica_onnx_import *in, const mica_onnx_recorded *c,
                       const void *opts, mica_tensor *outs)
{
    const mica_tensor *tensors[MICA_OP_INS];
    mica_tensor shapes[MICA_OP_INS];
    for (int i = 0; i < c->ins; i++) {
        const mica_onnx_held *twin = held_in(in, c->in[i]);
        if (twin == NULL)
            return false;
        shapes[i] = twin->shape;
        shapes[i].data = NULL;
        tensors[i] = c->in[i] != 0 ? &shapes[i] : NULL;
    }
    return mica_op_infer(im->ctx, c->op, outs, tensors, c->ins, opts) == MICA_OK;
}

static bool agrees_in(mica_onnx_import *im, const mica_onnx_import *in, const mica_onnx_recorded *c,
                      const void *opts)
{
    mica_tensor outs[MICA_OP_OUTS];
    if (!infer_twin(im, in, c, opts, outs))
        return false;
    for (int k = 0; k < c->op->outs; k++) {
        const mica_onnx_held *twin = held_in(in, c->first + k);
        if (twin == NULL || !same_shape(&outs[k], &twin->shape))
            return false;
    }
    return true;
}

/* Whether it gives the shapes of all twins. */
static bool agrees(mica_onnx_import *im, const mica_onnx_recorded *c, const void *opts)
{
    for (int t = 0; t < im->twin_count; t++)
        if (!agrees_in(im, im->twins[t], c, opts))
            return false;
    return true;
}

/* A reshape in terms of its input: 0 for an axis that is the input's, -1 for the one that is left. */
static void reshape_by_input(mica_onnx_import *im, const mica_onnx_recorded *c, mica_shape_opts *opts)
{
    const mica_tensor *x = &mica_onnx_held_at(im, c->in[0])->shape, *x_twin = &twin_of(im, c->in[0])->shape,
                      *shape = &mica_onnx_held_at(im, c->first)->shape, *y = &twin_of(im, c->first)->shape;
    if (shape->rank != y->rank)
        return;
    for (int k = 0; k < shape->rank; k++) {
        bool follows = k < x->rank && x->dim[k] == shape->dim[k] && x_twin->dim[k] == y->dim[k];
        bool varies = shape->dim[k] != y->dim[k];
        opts->dims[k] = !varies ? shape->dim[k] : follows ? 0 : -1;
    }
}

/* ---- Slices ---- */

#define MOST_SIZES ((int64_t)1 << 20) /* that are tried: no model has such bounds */

static int64_t bound(int64_t at, int64_t size, int64_t low, int64_t high)
{
    at += at < 0 ? size : 0;
    return at < low ? low : at > high ? high : at;
}

/* How many of `size` elements a range takes, and the first; `low`: what a start before all of them becomes. */
static int64_t taken(mica_onnx_range r, int64_t size, int64_t low, int64_t *first)
{
    int64_t back = r.step < 0, stop = bound(r.stop, size, -back, size - back);
    *first = bound(r.start, size, low, size - back);
    int64_t way = back ? *first - stop : stop - *first;
    return way <= 0 ? 0 : back ? -((way - 1) / r.step) + 1 : (way - 1) / r.step + 1;
}

/* From this size on a range goes on as it has begun: no bound lies outside, and those that lie outside of all sizes up
 * to the planned one do so everywhere. */
static int64_t regular_from(mica_onnx_range r, int64_t size)
{
    int64_t start = r.start > -size && r.start < size ? llabs(r.start) : 0;
    int64_t stop = r.stop > -size && r.stop < size ? llabs(r.stop) : 0;
    return start + stop + 1 < size ? start + stop + 1 : size;
}

static mica_onnx_range range_of(const mica_slice_range_opts *opts)
{
    int64_t step = opts->step != 0 ? opts->step : 1;
    return (mica_onnx_range){opts->start,
                             opts->stop != 0 ? opts->stop
                             : step < 0      ? INT64_MIN
                                             : INT64_MAX,
                             step};
}

void mica_onnx_check_slice(mica_onnx_import *im, mica_onnx_ref x, mica_onnx_range range,
                           const mica_slice_range_opts *opts)
{
    const mica_onnx_held *twin = twin_of(im, x);
    if (im->fixed != NULL || twin == NULL || twin->known || twin->shape.rank <= opts->axis)
        return;
    mica_onnx_range own = range_of(opts);
    int64_t size = mica_onnx_held_at(im, x)->shape.dim[opts->axis], first, own_first, back = own.step < 0;
    if (twin->shape.dim[opts->axis] == size)
        return;
    /* One that counts from both ends takes more of fewer elements: more than planned. */
    int64_t most = taken(range, size, 0, &first), last = regular_from(range, size);
    bool same = last <= MOST_SIZES;
    for (int64_t now = 1; now <= last && same; now++) {
        int64_t count = taken(range, now, 0, &first);
        same = count <= most && count == taken(own, now, -back, &own_first) &&
               (count == 0 || first == own_first);
    }
    if (!same)
        im->fixed = "a slice in the model cannot follow a smaller size";
}

/* ---- Options that shapes do not tell of: where a slice starts, how much is padding, what a clip limits to ---- */

static bool same_fields(const mica_op *op, const void *a, const void *b)
{
    bool same = true;
    for (int i = 0; same && i < op->field_count; i++) {
        const mica_field *f = &op->fields[i];
        size_t bytes = mica_field_bytes(f) * (size_t)(f->count > 0 ? f->count : 1);
        same = memcmp((const char *)a + f->offset, (const char *)b + f->offset, bytes) == 0;
    }
    return same;
}

/* Whether a slice of so many elements takes the same by both. */
static bool same_elements(const mica_slice_range_opts *a, const mica_slice_range_opts *b, int64_t size)
{
    mica_onnx_range r = range_of(a), s = range_of(b);
    int64_t first = 0, other = 0, low = r.step < 0 ? -1 : 0, count = taken(r, size, low, &first);
    return a->axis == b->axis && r.step == s.step && count == taken(s, size, low, &other) &&
           (count == 0 || first == other);
}

/* Whether the call does to a twin's inputs what the twin's own options do. Its shapes are right. What is derived from
 * constants may have another layout. */
static bool means_the_same(const mica_onnx_import *in, const mica_onnx_recorded *c)
{
    static const char *const by_shape[] = {"reshape", "broadcast_to", "split"}; /* which says all */
    int number = held_in(in, c->first)->call;
    const mica_onnx_recorded *twin = number > 0 ? &in->calls[number - 1] : NULL;
    if (number == 0) /* a slice that takes all: its shape is right */
        return strcmp(c->op->name, "slice") == 0 && range_of(c->opts).step == 1 &&
               same_shape(&held_in(in, c->first)->shape, &held_in(in, c->in[0])->shape);
    if (twin->op != c->op)
        return false;
    if (c->derived || c->op->opts_bytes == 0 || same_fields(c->op, c->opts, twin->opts))
        return true;
    for (size_t i = 0; i < sizeof by_shape / sizeof by_shape[0]; i++)
        if (strcmp(c->op->name, by_shape[i]) == 0)
            return true;
    if (strcmp(c->op->name, "slice") != 0)
        return false;
    int axis = ((const mica_slice_range_opts *)c->opts)->axis;
    return same_elements(c->opts, twin->opts, held_in(in, c->in[0])->shape.dim[axis]);
}

/* ---- Calls ---- */

const void *mica_onnx_check_call(mica_onnx_import *im, const mica_onnx_recorded *c, mica_shape_opts *room)
{
    if (im->twin_count == 0 || im->fixed != NULL)
        return c->opts;
    if (agrees(im, c, c->opts)) {
        for (int t = 0; t < im->twin_count; t++)
            if (!means_the_same(im->twins[t], c))
                im->fixed = "an option of an operation is computed from the model's sizes";
        return c->opts;
    }
    if (strcmp(c->op->name, "reshape") == 0 && twin_of(im, c->in[0]) != NULL &&
        twin_of(im, c->first) != NULL) {
        *room = *(const mica_shape_opts *)c->opts;
        reshape_by_input(im, c, room);
        if (agrees(im, c, room))
            return room;
    }
    im->fixed = "a shape in the model is computed from its sizes";
    return c->opts;
}
