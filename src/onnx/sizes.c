/* Sizes of a model that are known by name only: "batch", "sequence". A net is planned for the most that each may be,
 * and a step may have less.
 *
 * What an operator is told about shapes are numbers, and some of them follow from such a size: a Reshape to [8, -1]
 * where 8 is the batch, a mean that divides by the length. To tell them from true constants the graph is imported
 * twice, first with every size a little smaller (the twin), then as set. Values get the same numbers both times, so
 * that each can be compared with its twin: a constant that enters the net must be the same in both, and a call must
 * give the shapes that its twin has, by the same options. A constant whose twin is its beginning (a table of positions,
 * a mask, states of zeros) is cut to the size of the step, and a reshape is written so that it follows. For anything
 * else the net's sizes are fixed to those planned.
 *
 * If what holds for these two may not hold for others (doubt.c), more imports follow, each with smaller sizes of its
 * own, and what has entered the net must be right for all of them (twin.c). */
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

#define NEAR 32 /* so many sizes just below are compared: all that there are, of most batches */

/* A symbol's size in an import. In the twin it is less by a number of its own, as far as it is large enough, so that
 * sizes which are the same as set are not the same there. What follows are others that are a little smaller, then about
 * a half of it, a quarter and so on, to 1. */
static mica_index size_in(const mica_onnx_import *im, const mica_onnx_set *s, int sizing)
{
    mica_index number = 0, most = s->size;
    for (const mica_onnx_set *before = im->opts->sets; before < s; before++)
        number += before->value == NULL;
    mica_index less = 1 + (sizing == 1 ? number : (number + sizing - 1) % NEAR);
    if (sizing == 0 || most < 2)
        return most;
    if (sizing <= NEAR)
        return most > less ? most - less : 1;
    int half = sizing - NEAR;
    mica_index size = (half < 62 ? most >> half : 0) + half % 2; /* neither even always, nor odd */
    return size > 1 ? size : 1;
}

bool mica_onnx_sizing_is_new(const mica_onnx_import *im, int sizing)
{
    for (int before = 0; before < sizing; before++) {
        bool same = true;
        for (int i = 0; i < im->opts->count && same; i++) {
            const mica_onnx_set *s = &im->opts->sets[i];
            same = s->value != NULL || size_in(im, s, sizing) == size_in(im, s, before);
        }
        if (same)
            return false;
    }
    return true;
}

/* Whether this size is that of one symbol alone, both here and in the twin. */
static bool is_of_one_symbol(const mica_onnx_import *im, mica_index now, mica_index then)
{
    int count = 0;
    for (int i = 0; i < im->opts->count; i++) {
        const mica_onnx_set *s = &im->opts->sets[i];
        count += s->value == NULL && size_in(im, s, im->sizing) == now &&
                 size_in(im, s, im->twin->sizing) == then;
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
    mica_index now = size_in(im, s, im->sizing),
               then = im->twin != NULL ? size_in(im, s, im->twin->sizing) : now;
    if (now != then && !is_of_one_symbol(im, now, then))
        im->fixed = "two of the model's sizes cannot be told apart: they are too small";
    *out = mica_net_size(im->net, name_in_net(im, symbol), now);
    return true;
}

/* ---- Twins ---- */

static const mica_onnx_held *held_in(const mica_onnx_import *other, mica_onnx_ref ref)
{
    return other != NULL && ref < other->count ? mica_onnx_held_at(other, ref) : NULL;
}

static const mica_onnx_held *twin_of(const mica_onnx_import *im, mica_onnx_ref ref)
{
    return held_in(im->twin, ref);
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

/* An input of the net that has an axis of this size, here and in the twin; 0: there is none. */
static mica_onnx_ref input_of_size(const mica_onnx_import *im, mica_index now, mica_index then, int *axis)
{
    for (mica_onnx_ref ref = 1; ref < im->count && is_of_one_symbol(im, now, then); ref++) {
        const mica_onnx_held *held = mica_onnx_held_at(im, ref), *twin = twin_of(im, ref);
        for (int k = 0; held->input && twin != NULL && k < held->shape.rank; k++)
            if (held->shape.dim[k] == now && twin->shape.dim[k] == then) {
                *axis = k;
                return ref;
            }
    }
    return 0;
}

/* Whether `y` is the beginning of a constant, along every axis. */
static bool begins_with(mica_onnx_import *im, const mica_tensor *x, const mica_tensor *y)
{
    mica_tensor part = *x, copy = *y;
    size_t bytes = mica_tensor_bytes(y);
    if (same_shape(x, y) && (bytes == 0 || x->data == y->data || memcmp(x->data, y->data, bytes) == 0))
        return true;
    if (x->rank != y->rank || x->dtype != y->dtype || !mica_tensor_contiguous(y))
        return false;
    for (int k = 0; k < x->rank; k++) {
        if (y->dim[k] > x->dim[k])
            return false;
        part.dim[k] = y->dim[k];
    }
    copy.data = mica_allocate(im->ctx, bytes > 0 ? bytes : 1);
    if (copy.data == NULL) {
        im->status = im->ctx->status;
        return false;
    }
    bool begins = mica_copy(im->ctx, &copy, &part) == MICA_OK &&
                  (bytes == 0 || memcmp(copy.data, y->data, bytes) == 0);
    mica_release(im->ctx, copy.data, bytes > 0 ? bytes : 1);
    return begins;
}

/* Whether another import has, in a constant's place, as much of its beginning as a step of those sizes takes: along
 * axes that differ in the twin, what an input of the net has. */
static bool is_part_in(mica_onnx_import *im, const mica_onnx_import *other, mica_onnx_ref ref)
{
    const mica_onnx_held *held = mica_onnx_held_at(im, ref), *twin = twin_of(im, ref),
                         *then = held_in(other, ref);
    if (twin == NULL || !twin->known || then == NULL || !then->known ||
        twin->shape.rank != held->shape.rank || then->shape.rank != held->shape.rank)
        return false;
    for (int k = 0; k < held->shape.rank; k++) {
        mica_index size = held->shape.dim[k];
        int axis = k;
        if (size != twin->shape.dim[k]) {
            mica_onnx_ref like = input_of_size(im, size, twin->shape.dim[k], &axis);
            const mica_onnx_held *input = like != 0 ? held_in(other, like) : NULL;
            if (input == NULL || axis >= input->shape.rank)
                return false;
            size = input->shape.dim[axis];
        }
        if (then->shape.dim[k] != size)
            return false;
    }
    return begins_with(im, &held->shape, &then->shape);
}

/* The leading part of a constant, as large as the inputs of the net whose sizes it follows. */
static mica_value leading_part(mica_onnx_import *im, mica_onnx_ref ref, mica_value value)
{
    const mica_tensor *x = &mica_onnx_held_at(im, ref)->shape, *twin = &twin_of(im, ref)->shape;
    mica_leading_opts opts = {.like = {0}};
    mica_value ins[1 + MICA_MAX_RANK] = {value};
    int count = 1;
    for (int k = 0; k < x->rank; k++) {
        if (x->dim[k] == twin->dim[k])
            continue;
        mica_onnx_ref like = input_of_size(im, x->dim[k], twin->dim[k], &opts.axis[k]);
        ins[count] = mica_onnx_held_at(im, like)->value;
        opts.like[k] = count++;
    }
    return count > 1 ? mica_net_call(im->net, NULL, &mica_op_leading, ins, count, &opts) : value;
}

static const char computed[] = "a constant of the model is computed from its sizes";

mica_value mica_onnx_sized_constant(mica_onnx_import *im, mica_onnx_ref ref, mica_value value)
{
    if (im->twin == NULL || im->fixed != NULL || mica_onnx_held_at(im, ref)->name != NULL)
        return value; /* initializers are what they are */
    if (is_part_in(im, im->twin, ref))
        return leading_part(im, ref, value);
    im->fixed = computed;
    return value;
}

/* The shapes that a call gives in its place in another import. */
static bool infer_in(mica_onnx_import *im, const mica_onnx_import *other, const mica_onnx_recorded *c,
                     const void *opts, mica_tensor *outs)
{
    const mica_tensor *tensors[MICA_OP_INS];
    mica_tensor shapes[MICA_OP_INS];
    for (int i = 0; i < c->ins; i++) {
        const mica_onnx_held *then = held_in(other, c->in[i]);
        if (then == NULL)
            return false;
        shapes[i] = then->shape;
        shapes[i].data = NULL;
        tensors[i] = c->in[i] != 0 ? &shapes[i] : NULL;
    }
    return mica_op_infer(im->ctx, c->op, outs, tensors, c->ins, opts) == MICA_OK;
}

static bool agrees(mica_onnx_import *im, const mica_onnx_import *other, const mica_onnx_recorded *c,
                   const void *opts)
{
    mica_tensor outs[MICA_OP_OUTS];
    if (!infer_in(im, other, c, opts, outs))
        return false;
    for (int k = 0; k < c->op->outs; k++) {
        const mica_onnx_held *then = held_in(other, c->first + k);
        if (then == NULL || !same_shape(&outs[k], &then->shape))
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

/* Whether the call does to another import's inputs what the options there do. Its shapes are right. What is derived
 * from constants may have another layout. */
static bool means_the_same(const mica_onnx_import *other, const mica_onnx_recorded *c)
{
    static const char *const by_shape[] = {"reshape", "broadcast_to", "split"}; /* which says all */
    int number = held_in(other, c->first)->call;
    const mica_onnx_recorded *then = number > 0 ? &other->calls[number - 1] : NULL;
    if (then == NULL) /* a slice of all that there is: the shape is right */
        return strcmp(c->op->name, "slice") == 0 && range_of(c->opts).step == 1 &&
               same_shape(&held_in(other, c->first)->shape, &held_in(other, c->in[0])->shape);
    if (then->op != c->op)
        return false;
    if (c->derived || c->op->opts_bytes == 0 || same_fields(c->op, c->opts, then->opts))
        return true;
    for (size_t i = 0; i < sizeof by_shape / sizeof by_shape[0]; i++)
        if (strcmp(c->op->name, by_shape[i]) == 0)
            return true;
    if (strcmp(c->op->name, "slice") != 0)
        return false;
    int axis = ((const mica_slice_range_opts *)c->opts)->axis;
    return same_elements(c->opts, then->opts, held_in(other, c->in[0])->shape.dim[axis]);
}

/* ---- Calls ---- */

/* Why it is not right at the sizes of another import; NULL: it is. */
static const char *call_difference(mica_onnx_import *im, const mica_onnx_import *other,
                                   const mica_onnx_recorded *c, const void *opts)
{
    if (!agrees(im, other, c, opts))
        return "a shape in the model is computed from its sizes";
    return means_the_same(other, c) ? NULL : "an option of an operation is computed from the model's sizes";
}

void mica_onnx_check_call(mica_onnx_import *im, mica_onnx_recorded *c)
{
    if (im->twin == NULL || im->fixed != NULL)
        return;
    im->fixed = call_difference(im, im->twin, c, c->opts);
    if (im->fixed == NULL || strcmp(c->op->name, "reshape") != 0 || twin_of(im, c->in[0]) == NULL ||
        twin_of(im, c->first) == NULL)
        return;
    mica_shape_opts *opts = mica_onnx_memory(im->model, sizeof *opts);
    if (opts == NULL) {
        im->status = im->ctx->status;
        return;
    }
    *opts = *(const mica_shape_opts *)c->opts;
    reshape_by_input(im, c, opts);
    const char *fixed = call_difference(im, im->twin, c, opts);
    if (fixed == NULL) {
        im->fixed = NULL;
        c->opts = opts;
    }
}

/* ---- Other imports ---- */

const char *mica_onnx_other_graph(const mica_onnx_import *im, const mica_onnx_import *other)
{
    if (im->decisions != other->decisions)
        return "a branch or a loop of the model depends on its sizes";
    return im->count != other->count ? "the model's graph depends on its sizes" : NULL;
}

const char *mica_onnx_difference(mica_onnx_import *im, const mica_onnx_import *other)
{
    const char *why = mica_onnx_other_graph(im, other);
    for (int i = 0; i < im->call_count && why == NULL; i++)
        if (im->calls[i].needed)
            why = call_difference(im, other, &im->calls[i], im->calls[i].opts);
    for (mica_onnx_ref ref = 1; ref < im->count && why == NULL; ref++) {
        const mica_onnx_held *held = mica_onnx_held_at(im, ref);
        if (held->known && held->value != 0 && held->name == NULL && !is_part_in(im, other, ref))
            why = computed;
    }
    return why;
}
