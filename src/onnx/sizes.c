/* Sizes of a model that are known by name only: "batch", "sequence". A net is planned for the most that each may be,
 * and a step may have less.
 *
 * What an operator is told about shapes are numbers, and some of them follow from such a size: a Reshape to [8, -1]
 * where 8 is the batch, a mean that divides by the length. To tell them from true constants the graph is imported
 * twice, first with every size smaller, each by a number of its own. Values get the same numbers both times, so that
 * each can be compared with its twin: a constant that enters the net must be the same in both, and a call must give the
 * shapes that its twin has, by the same options. A constant whose twin is its beginning (a table of positions, a mask,
 * states of zeros) is cut to the size of the step, and a reshape is written so that it follows. For anything else the
 * net's sizes are fixed to those planned.
 *
 * A number that is rounded or limited, as in a division of a size by 3, may be the same in both by accident. Where
 * there is one, the comparison is repeated with other sizes (probes): those just below, then further and further. */
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

#define NEAR_PROBES 9 /* that try all sizes just below */

/* The size of a symbol in the twin: less by a number of its own, as far as it is large enough, so that sizes which
 * are the same now are not the same there. */
static mica_index smaller_at(const mica_onnx_import *im, const mica_onnx_set *s, int probe)
{
    mica_index number = 0;
    for (const mica_onnx_set *before = im->opts->sets; before < s; before++)
        number += before->value == NULL;
    mica_index less = number + 1;
    if (probe >= NEAR_PROBES)
        less = (less << (probe - NEAR_PROBES + 3)) + probe % 2;
    else if (probe > 0)
        less = 1 + (number + probe) % NEAR_PROBES;
    return s->size > less ? s->size - less : s->size > 1 ? 1 : s->size;
}

static mica_index smaller(const mica_onnx_import *im, const mica_onnx_set *s)
{
    return smaller_at(im, s, im->probe);
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

bool mica_onnx_may_probe(const mica_onnx_import *im, int probe)
{
    const mica_onnx_set *sets = im->opts->sets;
    bool other = false;
    for (int i = 0; i < im->opts->count; i++) {
        if (sets[i].value != NULL || sets[i].size < 2)
            continue;
        mica_index size = smaller_at(im, &sets[i], probe);
        other = other || size != smaller_at(im, &sets[i], probe - 1);
        for (int k = 0; k < i; k++)
            if (sets[k].value == NULL && sets[k].size == sets[i].size &&
                smaller_at(im, &sets[k], probe) == size)
                return false;
    }
    return other;
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
    *out = mica_net_size(im->net, name_in_net(im, symbol), im->smaller ? smaller(im, s) : s->size);
    return true;
}

/* ---- Twins ---- */

static const mica_onnx_held *twin_of(const mica_onnx_import *im, mica_onnx_ref ref)
{
    return im->twin != NULL && ref < im->twin->count ? mica_onnx_held_at(im->twin, ref) : NULL;
}

bool mica_onnx_axis_varies(const mica_onnx_import *im, mica_onnx_ref ref, int axis)
{
    const mica_onnx_held *twin = twin_of(im, ref);
    return twin != NULL && twin->shape.rank > axis &&
           twin->shape.dim[axis] != mica_onnx_held_at(im, ref)->shape.dim[axis];
}

static bool same_shape(const mica_tensor *a, const mica_tensor *b)
{
    return a->dtype == b->dtype && mica_tensor_same_shape(a, b);
}

/* Of two constants. */
static bool same_numbers(const mica_tensor *a, const mica_tensor *b)
{
    return same_shape(a, b) && (mica_tensor_count(a) == 0 || a->data == b->data ||
                                memcmp(a->data, b->data, mica_tensor_bytes(a)) == 0);
}

/* An input of the net that has an axis of this size, here and in the twin; 0: there is none. */
static mica_value input_of_size(const mica_onnx_import *im, mica_index now, mica_index then, int *axis)
{
    for (mica_onnx_ref ref = 1; ref < im->count && is_of_one_symbol(im, now, then); ref++) {
        const mica_onnx_held *held = mica_onnx_held_at(im, ref), *twin = twin_of(im, ref);
        for (int k = 0; held->input && twin != NULL && k < held->shape.rank; k++)
            if (held->shape.dim[k] == now && twin->shape.dim[k] == then) {
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

/* Its leading part, as large as the inputs of the net whose sizes it follows; 0: it does not follow any. */
static mica_value leading_part(mica_onnx_import *im, const mica_tensor *x, const mica_tensor *twin,
                               mica_value value)
{
    mica_leading_opts opts = {.like = {0}};
    mica_value ins[1 + MICA_MAX_RANK] = {value};
    int count = 1;
    if (!begins_with(im, x, twin))
        return 0;
    for (int k = 0; k < x->rank; k++) {
        if (x->dim[k] == twin->dim[k])
            continue;
        ins[count] = input_of_size(im, x->dim[k], twin->dim[k], &opts.axis[k]);
        if (ins[count] == 0)
            return 0;
        opts.like[k] = count++;
    }
    return mica_net_call(im->net, NULL, &mica_op_leading, ins, count, &opts);
}

mica_value mica_onnx_sized_constant(mica_onnx_import *im, mica_onnx_ref ref, mica_value value)
{
    const mica_onnx_held *held = mica_onnx_held_at(im, ref), *twin = twin_of(im, ref);
    if (im->twin == NULL || held->name != NULL) /* initializers are what they are */
        return value;
    bool known = twin != NULL && twin->known;
    if (known && same_numbers(&held->shape, &twin->shape))
        return value;
    mica_value part = known && im->fixed == NULL ? leading_part(im, &held->shape, &twin->shape, value) : 0;
    if (part == 0 && im->fixed == NULL)
        im->fixed = "a constant of the model is computed from its sizes";
    return part != 0 ? part : value;
}

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

void mica_onnx_check_folded(mica_onnx_import *im, const mica_op *op, const mica_onnx_ref *ins, int count,
                            mica_onnx_ref first)
{
    static const char *const round[] = {"div", "mod", "fmod", "floor", "ceil", "round"};
    static const char *const harmless[] = {"take",    "gather", "slice", "concat",
                                           "reshape", "split",  "equal"}; /* with -1 in a shape */
    bool differs = false;
    if (im->twin == NULL || im->rounds || first == 0)
        return;
    for (int i = 0; i < count && !differs; i++) {
        const mica_onnx_held *held = mica_onnx_held_at(im, ins[i]), *twin = twin_of(im, ins[i]);
        differs = ins[i] != 0 && (twin == NULL || !twin->known || !same_numbers(&held->shape, &twin->shape));
    }
    if (!differs)
        return;
    const mica_onnx_held *made = mica_onnx_held_at(im, first), *twin = twin_of(im, first);
    bool rounded = is_one_of(op->name, round, sizeof round / sizeof round[0]),
         same = twin != NULL && twin->known && same_numbers(&made->shape, &twin->shape);
    im->rounds = rounded || (same && !is_one_of(op->name, harmless, sizeof harmless / sizeof harmless[0]));
}

/* The shapes that a call gives in the twin's place. */
static bool infer_twin(mica_onnx_import *im, const mica_onnx_recorded *c, const void *opts, mica_tensor *outs)
{
    const mica_tensor *tensors[MICA_OP_INS];
    mica_tensor shapes[MICA_OP_INS];
    for (int i = 0; i < c->ins; i++) {
        const mica_onnx_held *twin = twin_of(im, c->in[i]);
        if (twin == NULL)
            return false;
        shapes[i] = twin->shape;
        shapes[i].data = NULL;
        tensors[i] = c->in[i] != 0 ? &shapes[i] : NULL;
    }
    return mica_op_infer(im->ctx, c->op, outs, tensors, c->ins, opts) == MICA_OK;
}

static bool agrees(mica_onnx_import *im, const mica_onnx_recorded *c, const void *opts)
{
    mica_tensor outs[MICA_OP_OUTS];
    if (!infer_twin(im, c, opts, outs))
        return false;
    for (int k = 0; k < c->op->outs; k++) {
        const mica_onnx_held *twin = twin_of(im, c->first + k);
        if (twin == NULL || !same_shape(&outs[k], &twin->shape))
            return false;
    }
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

/* Whether the call does to the twin's inputs what the twin's own options do. Its shapes are right. What is derived from
 * constants may have another layout. */
static bool means_the_same(const mica_onnx_import *im, const mica_onnx_recorded *c)
{
    static const char *const by_shape[] = {"reshape", "broadcast_to", "split"}; /* which says all */
    int number = twin_of(im, c->first)->call;
    const mica_onnx_recorded *twin = number > 0 ? &im->twin->calls[number - 1] : NULL;
    if (twin == NULL || twin->op != c->op)
        return false;
    if (c->derived || c->op->opts_bytes == 0 || same_fields(c->op, c->opts, twin->opts))
        return true;
    for (size_t i = 0; i < sizeof by_shape / sizeof by_shape[0]; i++)
        if (strcmp(c->op->name, by_shape[i]) == 0)
            return true;
    if (strcmp(c->op->name, "slice") != 0)
        return false;
    int axis = ((const mica_slice_range_opts *)c->opts)->axis;
    return same_elements(c->opts, twin->opts, twin_of(im, c->in[0])->shape.dim[axis]);
}

/* ---- Calls ---- */

const void *mica_onnx_check_call(mica_onnx_import *im, const mica_onnx_recorded *c, mica_shape_opts *room)
{
    if (im->twin == NULL || im->fixed != NULL)
        return c->opts;
    if (agrees(im, c, c->opts)) {
        if (!means_the_same(im, c))
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
