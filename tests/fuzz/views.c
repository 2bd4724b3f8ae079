/* Chains of views against a model that lists every element: addresses, overlap, iteration, printing.
 *
 * The model of a tensor is its shape and the position in the buffer of each element in row-major order. Each
 * view is done twice, by the library on strides and here on that list, and the two must name the same
 * elements. */
#include <string.h>

#include "fuzz.h"

enum { BUFFER = 256, MOST = 512 /* elements of a tensor */, MOST_STEPS = 12 };

typedef struct model {
    int rank;
    mica_index dim[MICA_MAX_RANK];
    int count;
    int position[MOST];
} model;

/* Steps an index in row-major order; false past the last. */
static bool advance(mica_index *index, const mica_index *dim, int rank)
{
    for (int k = rank - 1; k >= 0; k--) {
        if (++index[k] < dim[k])
            return true;
        index[k] = 0;
    }
    return false;
}

/* -1: more than the model holds. */
static int count_of(const mica_index *dim, int rank)
{
    mica_index count = 1;
    for (int k = 0; k < rank; k++)
        if (dim[k] == 0)
            return 0;
    for (int k = 0; k < rank; k++) {
        count *= dim[k];
        if (count > MOST)
            return -1;
    }
    return (int)count;
}

static int position_at(const model *m, const mica_index *index)
{
    mica_index at = 0;
    for (int k = 0; k < m->rank; k++)
        at = at * m->dim[k] + index[k];
    return m->position[at];
}

/* Fills out->position: the element of `from` that `source` gives for each index of out. */
typedef void source_fn(mica_index *source, const mica_index *index, const void *how);

static void rebuild(model *out, const model *from, source_fn *source, const void *how)
{
    mica_index index[MICA_MAX_RANK] = {0}, at[MICA_MAX_RANK] = {0};
    out->count = count_of(out->dim, out->rank);
    for (int i = 0; i < out->count; i++) {
        source(at, index, how);
        out->position[i] = position_at(from, at);
        advance(index, out->dim, out->rank);
    }
}

/* ---- The views: each takes its numbers from the input, asks the library, and does the same to the model
 * ---- */

typedef struct state {
    mica_context *ctx;
    mica_tensor t;
    model m;
    bytes *in;
} state;

typedef struct slicing {
    int rank, axis;
    mica_index first, step;
} slicing;

static void from_slice(mica_index *at, const mica_index *index, const void *how)
{
    const slicing *s = how;
    memcpy(at, index, sizeof(mica_index) * MICA_MAX_RANK);
    at[s->axis] = s->first + index[s->axis] * s->step;
}

/* Python's rule for one end of a slice. */
static mica_index clamp_end(mica_index at, mica_index n, mica_index low, mica_index high)
{
    if (at < 0)
        at += n;
    return at < low ? low : at > high ? high : at;
}

static void slice(state *s)
{
    int axis = take(s->in, -MICA_MAX_RANK - 1, MICA_MAX_RANK);
    mica_index start = take(s->in, -9, 9), stop = take(s->in, -9, 10), step = take(s->in, -3, 3);
    if (stop == 10)
        stop = MICA_END;
    mica_status status = mica_view_slice(s->ctx, &s->t, &s->t, axis, start, stop, step);
    bool right = step != 0 && axis >= -s->m.rank && axis < s->m.rank;
    INSIST((status == MICA_OK) == right);
    if (!right)
        return;
    axis += axis < 0 ? s->m.rank : 0;
    mica_index n = s->m.dim[axis];
    mica_index low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    start = clamp_end(start, n, low, high);
    stop = stop == MICA_END ? (step > 0 ? n : -1) : clamp_end(stop, n, low, high);
    mica_index size = step > 0 ? (stop - start + step - 1) / step : (start - stop - step - 1) / -step;
    model before = s->m;
    s->m.dim[axis] = size > 0 ? size : 0;
    rebuild(&s->m, &before, from_slice, &(slicing){before.rank, axis, start, step});
}

static void flip(state *s)
{
    int axis = take(s->in, -MICA_MAX_RANK - 1, MICA_MAX_RANK);
    mica_status status = mica_view_flip(s->ctx, &s->t, &s->t, axis);
    bool right = axis >= -s->m.rank && axis < s->m.rank;
    INSIST((status == MICA_OK) == right);
    if (!right)
        return;
    axis += axis < 0 ? s->m.rank : 0;
    model before = s->m;
    rebuild(&s->m, &before, from_slice, &(slicing){before.rank, axis, before.dim[axis] - 1, -1});
}

typedef struct selecting {
    int rank, axis;
    mica_index position;
} selecting;

static void from_select(mica_index *at, const mica_index *index, const void *how)
{
    const selecting *s = how;
    for (int k = 0, j = 0; k < s->rank; k++)
        at[k] = k == s->axis ? s->position : index[j++];
}

static void drop_axis(model *m, int axis)
{
    for (int k = axis; k + 1 < m->rank; k++)
        m->dim[k] = m->dim[k + 1];
    m->rank--;
}

static void select_one(state *s)
{
    int axis = take(s->in, -MICA_MAX_RANK, MICA_MAX_RANK - 1);
    mica_index position = take(s->in, -7, 7);
    mica_status status = mica_view_select(s->ctx, &s->t, &s->t, axis, position);
    bool right = axis >= -s->m.rank && axis < s->m.rank;
    if (right) {
        axis += axis < 0 ? s->m.rank : 0;
        right = position >= -s->m.dim[axis] && position < s->m.dim[axis];
    }
    INSIST((status == MICA_OK) == right);
    if (!right)
        return;
    position += position < 0 ? s->m.dim[axis] : 0;
    model before = s->m;
    drop_axis(&s->m, axis);
    rebuild(&s->m, &before, from_select, &(selecting){before.rank, axis, position});
}

typedef struct permuting {
    int rank;
    int axes[MICA_MAX_RANK];
} permuting;

static void from_permute(mica_index *at, const mica_index *index, const void *how)
{
    const permuting *p = how;
    for (int k = 0; k < p->rank; k++)
        at[p->axes[k]] = index[k];
}

static void permute(state *s)
{
    permuting p = {.rank = s->m.rank};
    unsigned seen = 0;
    for (int k = 0; k < p.rank; k++) {
        p.axes[k] = take(s->in, 0, p.rank - 1);
        seen |= 1u << p.axes[k];
    }
    bool right = seen + 1 == 1u << p.rank;
    INSIST((mica_view_permute(s->ctx, &s->t, &s->t, p.axes) == MICA_OK) == right);
    if (!right)
        return;
    model before = s->m;
    for (int k = 0; k < p.rank; k++)
        s->m.dim[k] = before.dim[p.axes[k]];
    rebuild(&s->m, &before, from_permute, &p);
}

static void transpose(state *s)
{
    int a = take(s->in, -MICA_MAX_RANK, MICA_MAX_RANK - 1),
        b = take(s->in, -MICA_MAX_RANK, MICA_MAX_RANK - 1);
    bool right = a >= -s->m.rank && a < s->m.rank && b >= -s->m.rank && b < s->m.rank;
    INSIST((mica_view_transpose(s->ctx, &s->t, &s->t, a, b) == MICA_OK) == right);
    if (!right)
        return;
    permuting p = {.rank = s->m.rank};
    for (int k = 0; k < p.rank; k++)
        p.axes[k] = k;
    a += a < 0 ? p.rank : 0;
    b += b < 0 ? p.rank : 0;
    p.axes[a] = b;
    p.axes[b] = a;
    model before = s->m;
    s->m.dim[a] = before.dim[b];
    s->m.dim[b] = before.dim[a];
    rebuild(&s->m, &before, from_permute, &p);
}

typedef struct broadcasting {
    const model *from;
    int extra; /* axes in front */
} broadcasting;

static void from_broadcast(mica_index *at, const mica_index *index, const void *how)
{
    const broadcasting *b = how;
    for (int k = 0; k < b->from->rank; k++)
        at[k] = b->from->dim[k] == 1 ? 0 : index[k + b->extra];
}

static void broadcast(state *s)
{
    model before = s->m, after = s->m;
    after.rank = take(s->in, 0, MICA_MAX_RANK);
    bool right = after.rank >= before.rank;
    for (int k = 0; k < after.rank; k++) {
        int j = k - (after.rank - before.rank);
        /* Mostly a size that fits. */
        int choice = take(s->in, -1, 3);
        after.dim[k] = choice < 0 && j >= 0 ? before.dim[j] : choice < 0 ? 1 : choice;
        right = right && (j < 0 || after.dim[k] == before.dim[j] || before.dim[j] == 1);
    }
    if (right && count_of(after.dim, after.rank) < 0)
        return; /* too large for the model */
    INSIST((mica_view_broadcast(s->ctx, &s->t, &s->t, after.rank, after.dim) == MICA_OK) == right);
    if (!right)
        return;
    rebuild(&after, &before, from_broadcast, &(broadcasting){&before, after.rank - before.rank});
    s->m = after;
}

static void squeeze(state *s)
{
    int axis = take(s->in, -MICA_MAX_RANK - 1, MICA_MAX_RANK);
    bool all = axis == MICA_MAX_RANK, right = all || (axis >= -s->m.rank && axis < s->m.rank);
    int at = axis < 0 ? axis + s->m.rank : axis;
    right = right && (all || s->m.dim[at] == 1);
    INSIST((mica_view_squeeze(s->ctx, &s->t, &s->t, all ? MICA_ALL_AXES : axis) == MICA_OK) == right);
    if (!right)
        return;
    for (int k = s->m.rank - 1; k >= 0; k--)
        if (all ? s->m.dim[k] == 1 : k == at)
            drop_axis(&s->m, k);
}

static void unsqueeze(state *s)
{
    int axis = take(s->in, -MICA_MAX_RANK - 1, MICA_MAX_RANK);
    bool right = s->m.rank < MICA_MAX_RANK && axis >= -(s->m.rank + 1) && axis <= s->m.rank;
    INSIST((mica_view_unsqueeze(s->ctx, &s->t, &s->t, axis) == MICA_OK) == right);
    if (!right)
        return;
    axis += axis < 0 ? s->m.rank + 1 : 0;
    for (int k = s->m.rank++; k > axis; k--)
        s->m.dim[k] = s->m.dim[k - 1];
    s->m.dim[axis] = 1;
}

/* Strides may refuse a reshape that the shape allows, but never a contiguous tensor's. */
static void reshape(state *s)
{
    int rank = take(s->in, 0, MICA_MAX_RANK), guesses = 0;
    mica_index dim[MICA_MAX_RANK], known = 1;
    for (int k = 0; k < rank; k++) {
        dim[k] = take(s->in, -1, 6);
        guesses += dim[k] < 0;
        known *= dim[k] < 0 ? 1 : dim[k];
    }
    bool fits = guesses == 0 ? known == s->m.count : guesses == 1 && known > 0 && s->m.count % known == 0;
    bool contiguous = mica_tensor_contiguous(&s->t);
    mica_status status = mica_view_reshape(s->ctx, &s->t, &s->t, rank, dim);
    INSIST(status != MICA_OK || fits);
    INSIST(status == MICA_OK || !fits || !contiguous);
    if (status != MICA_OK)
        return;
    s->m.rank = rank;
    for (int k = 0; k < rank; k++)
        s->m.dim[k] = dim[k] < 0 ? s->m.count / known : dim[k];
}

static void flatten(state *s)
{
    int first = take(s->in, 0, MICA_MAX_RANK - 1), last = take(s->in, first, MICA_MAX_RANK - 1);
    bool contiguous = mica_tensor_contiguous(&s->t);
    bool single = s->m.rank == 0 && last == 0; /* becomes [1], as in PyTorch */
    bool right = last < s->m.rank || single;
    mica_status status = mica_view_flatten(s->ctx, &s->t, &s->t, first, last);
    INSIST(status != MICA_OK || right);
    INSIST(status == MICA_OK || !right || !contiguous);
    if (status != MICA_OK)
        return;
    if (single)
        s->m.dim[s->m.rank++] = 1;
    for (; last > first; last--) {
        s->m.dim[first] *= s->m.dim[first + 1];
        drop_axis(&s->m, first + 1);
    }
}

static void (*const views[])(state *) = {slice,     flip,    select_one, permute, transpose,
                                         broadcast, squeeze, unsqueeze,  reshape, flatten};

/* ---- What must hold of any tensor ---- */

static void same_elements(const state *s, const int16_t *buffer)
{
    INSIST(s->t.rank == s->m.rank);
    INSIST(mica_tensor_count(&s->t) == (size_t)s->m.count);
    for (int k = 0; k < s->t.rank; k++)
        INSIST(s->t.dim[k] == s->m.dim[k]);
    int i = 0;
    for (mica_iter it = mica_iter_begin(&s->t, 0, NULL); it.valid; mica_iter_next(&it), i++) {
        INSIST(i < s->m.count);
        INSIST((const int16_t *)it.element == buffer + s->m.position[i]);
        double value;
        INSIST(mica_at(s->ctx, &value, &s->t, it.index) == MICA_OK && (int)value == s->m.position[i]);
    }
    INSIST(i == s->m.count);
}

static void overlaps_truly(const state *a, const state *b)
{
    bool touched[BUFFER] = {false}, twice = false, common = false;
    for (int i = 0; i < a->m.count; i++) {
        twice = twice || touched[a->m.position[i]];
        touched[a->m.position[i]] = true;
    }
    for (int i = 0; i < b->m.count; i++)
        common = common || touched[b->m.position[i]];
    bool same = common && mica_tensor_same_shape(&a->t, &b->t) &&
                memcmp(a->m.position, b->m.position, sizeof(int) * (size_t)a->m.count) == 0;
    mica_overlap overlap = mica_tensor_overlap(&a->t, &b->t);
    INSIST(overlap == (same ? MICA_OVERLAP_EXACT : common ? MICA_OVERLAP_PARTIAL : MICA_OVERLAP_NONE));
    INSIST(mica_tensor_overlap(&b->t, &a->t) == overlap);
    INSIST(mica_tensor_self_overlap(&a->t) == twice);
}

/* The same text, cut where the buffer ends, for any size of buffer. */
static void prints_within(const mica_tensor *t, size_t size)
{
    size_t length = mica_tensor_print(NULL, 0, t);
    char *whole = malloc(length + 1), *part = malloc(size > 0 ? size : 1);
    INSIST(whole != NULL && part != NULL);
    INSIST(mica_tensor_print(whole, length + 1, t) == length && strlen(whole) == length);
    INSIST(mica_tensor_print(part, size, t) == length);
    if (size > 0) {
        size_t shown = length < size - 1 ? length : size - 1;
        INSIST(strlen(part) == shown && memcmp(part, whole, shown) == 0);
    }
    free(part);
    free(whole);
}

static state begin(mica_context *ctx, bytes *in, int16_t *buffer)
{
    state s = {.ctx = ctx, .in = in};
    s.m.rank = take(in, 0, 4);
    for (int k = 0; k < s.m.rank; k++)
        s.m.dim[k] = take(in, 0, 4);
    s.m.count = count_of(s.m.dim, s.m.rank);
    int first = take(in, 0, BUFFER - 1);
    if (s.m.count > BUFFER - first)
        first = 0;
    for (int i = 0; i < s.m.count; i++)
        s.m.position[i] = first + i;
    INSIST(mica_tensor_init(ctx, &s.t, buffer + first, MICA_I16, s.m.rank, s.m.dim) == MICA_OK);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static mica_context *ctx; /* made once: the fuzzer calls millions of times */
    if (ctx == NULL)
        INSIST(mica_context_create(&ctx, NULL) == MICA_OK);
    int16_t buffer[BUFFER];
    for (int i = 0; i < BUFFER; i++)
        buffer[i] = (int16_t)i;
    bytes in = {data, size};
    state s[2] = {begin(ctx, &in, buffer), begin(ctx, &in, buffer)};
    for (int i = 0; i < MOST_STEPS && in.left > 0; i++) {
        state *one = &s[take(&in, 0, 1)];
        views[take(&in, 0, sizeof views / sizeof views[0] - 1)](one);
        same_elements(one, buffer);
    }
    overlaps_truly(&s[0], &s[1]);
    overlaps_truly(&s[1], &s[0]);
    prints_within(&s[0].t, (size_t)take(&in, 0, 255));
    return 0;
}
