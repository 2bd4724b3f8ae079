/* Sequences: attention and positions. */
#include <math.h>

#include "onnx/write.h"

/* Below all scores, yet finite: where all are hidden, softmax must not be NaN. */
#define HIDDEN (-3.0e38f)

/* ---- Attention ---- */

typedef struct heads {
    mica_onnx_term q, k, v; /* [B, heads, T, D], k and v with as many heads as q */
    mica_onnx_term mask;    /* 0: none */
    bool hides;             /* the mask is of u8: 0 hides a key; otherwise it is added */
    bool causal;
    int64_t later; /* how many more keys than queries there are */
    float scale;
} heads;

/* Ones where query i may see key j: j <= i + later. */
static mica_onnx_term earlier(mica_onnx_writing *c, mica_onnx_term scores, int64_t later)
{
    mica_onnx_term shape = mica_onnx_node1(c, NEW, "Shape", scores, NO_ATTRS);
    shape = mica_onnx_put_slice(c, NEW, shape, 0, -2, INT64_MAX);
    mica_onnx_term ones = mica_onnx_node2(c, NEW, "Expand", mica_onnx_put_number(c, 1.0f), shape);
    mica_tensor number = {.data = &later, .dtype = MICA_I64};
    ones = mica_onnx_put(c, NEW, "Trilu", TERMS(ones, mica_onnx_put_constant(c, &number)),
                         ATTRS(mica_onnx_int_attr("upper", 0)));
    return mica_onnx_put_cast(c, NEW, ones, 9);
}

static mica_onnx_term attend(mica_onnx_writing *c, mica_onnx_term out, const heads *h)
{
    mica_onnx_term seen[2];
    int masks = 0;
    mica_onnx_term k = mica_onnx_put_permute(c, NEW, h->k, (int[]){0, 1, 3, 2}, 4);
    mica_onnx_term s = mica_onnx_node2(c, NEW, "MatMul", h->q, k);
    s = mica_onnx_node2(c, NEW, "Mul", s, mica_onnx_put_number(c, h->scale));
    if (h->mask != 0 && !h->hides)
        s = mica_onnx_node2(c, NEW, "Add", s, h->mask);
    if (h->mask != 0 && h->hides)
        seen[masks++] = mica_onnx_put_cast(c, NEW, h->mask, 9);
    if (h->causal)
        seen[masks++] = earlier(c, s, h->later);
    for (int i = 0; i < masks; i++)
        s = mica_onnx_put(c, NEW, "Where", TERMS(seen[i], s, mica_onnx_put_number(c, HIDDEN)), NO_ATTRS);
    s = mica_onnx_node1(c, NEW, "Softmax", s, ATTRS(mica_onnx_int_attr("axis", -1)));
    for (int i = 0; i < masks; i++) /* a query that sees nothing gives nothing */
        s = mica_onnx_put(c, NEW, "Where", TERMS(seen[i], s, mica_onnx_put_number(c, 0.0f)), NO_ATTRS);
    return mica_onnx_node2(c, out, "MatMul", s, h->v);
}

/* Heads of keys or values, each as often as there are heads of queries for it. */
static mica_onnx_term repeat_heads(mica_onnx_writing *c, mica_onnx_term x, mica_index kv, mica_index all)
{
    if (kv == all)
        return x;
    size_t bytes = (size_t)all * sizeof(int64_t);
    int64_t *which = mica_allocate(c->w->ctx, bytes);
    if (which == NULL) {
        c->to->status = mica_context_status(c->w->ctx);
        return x;
    }
    for (mica_index i = 0; i < all; i++)
        which[i] = i / (all / kv);
    mica_onnx_term index = mica_onnx_put_ints(c, which, (int)all);
    mica_release(c->w->ctx, which, bytes);
    return mica_onnx_put(c, NEW, "Gather", TERMS(x, index), ATTRS(mica_onnx_int_attr("axis", 1)));
}

/* How many more keys than queries there are. */
static int64_t later_keys(mica_onnx_writing *c, int axis, bool causal)
{
    int64_t later = c->in[1]->dim[axis] - c->in[0]->dim[axis];
    for (int t = 1; t <= c->w->trials && causal; t++)
        if (c->w->shapes[t][c->node->in[1]].dim[axis] - c->w->shapes[t][c->node->in[0]].dim[axis] != later)
            mica_onnx_refuse(c, "causal, and how many more keys than queries there are is not fixed");
    return later;
}

static void attention(mica_onnx_writing *c)
{
    const mica_attention_opts *o = c->opts;
    const mica_tensor *q = c->in[0], *k = c->in[1];
    heads h = {.q = IN(0), .causal = o->causal, .later = later_keys(c, 2, o->causal)};
    h.k = repeat_heads(c, IN(1), k->dim[1], q->dim[1]);
    h.v = repeat_heads(c, IN(2), k->dim[1], q->dim[1]);
    h.scale = o->scale != 0.0f ? o->scale : 1.0f / sqrtf((float)q->dim[3]);
    if (c->node->in[3] != NONE) {
        h.mask = IN(3);
        h.hides = c->in[3]->dtype == MICA_U8;
    }
    attend(c, OUT(0), &h);
}

/* [N, T, heads * D] as [N, heads, T, D]. */
static mica_onnx_term by_heads(mica_onnx_writing *c, mica_onnx_term rows, mica_index count,
                               mica_index features)
{
    mica_onnx_term dims = mica_onnx_put_ints(c, (int64_t[]){0, 0, count, features}, 4);
    return mica_onnx_put_permute(c, NEW, mica_onnx_node2(c, NEW, "Reshape", rows, dims), (int[]){0, 2, 1, 3},
                                 4);
}

/* Heads `first` to `first + count - 1` of the first input. */
static mica_onnx_term heads_at(mica_onnx_writing *c, mica_index first, mica_index count, mica_index features)
{
    mica_onnx_term rows = mica_onnx_put_slice(c, NEW, IN(0), 2, first * features, (first + count) * features);
    return by_heads(c, rows, count, features);
}

/* Of q, k and v by heads, of which k and v have `kv`; the mask, if any, is an input. Heads end side by side. */
static void attend_rows(mica_onnx_writing *c, heads h, mica_index kv, mica_index features, int mask)
{
    const mica_attention_packed_opts *o = c->opts;
    mica_index count = o->heads != 0 ? o->heads : 1;
    h.k = repeat_heads(c, h.k, kv, count);
    h.v = repeat_heads(c, h.v, kv, count);
    h.scale = o->scale != 0.0f ? o->scale : 1.0f / sqrtf((float)features);
    h.causal = o->causal;
    if (c->node->in[mask] != NONE) {
        h.mask = IN(mask);
        h.hides = c->in[mask]->dtype == MICA_U8;
    }
    mica_onnx_term y = mica_onnx_put_permute(c, NEW, attend(c, NEW, &h), (int[]){0, 2, 1, 3}, 4);
    mica_onnx_node2(c, OUT(0), "Reshape", y, mica_onnx_put_ints(c, (int64_t[]){0, 0, count * features}, 3));
}

static void attention_packed(mica_onnx_writing *c)
{
    const mica_attention_packed_opts *o = c->opts;
    mica_index count = o->heads != 0 ? o->heads : 1, kv = o->kv_heads != 0 ? o->kv_heads : count;
    mica_index features = c->in[0]->dim[2] / (count + 2 * kv);
    attend_rows(c,
                (heads){.q = heads_at(c, 0, count, features),
                        .k = heads_at(c, count, kv, features),
                        .v = heads_at(c, count + kv, kv, features)},
                kv, features, 1);
}

static void attention_rows(mica_onnx_writing *c)
{
    const mica_attention_packed_opts *o = c->opts;
    mica_index count = o->heads != 0 ? o->heads : 1, kv = o->kv_heads != 0 ? o->kv_heads : count;
    mica_index features = c->in[0]->dim[2] / count;
    attend_rows(c,
                (heads){.q = by_heads(c, IN(0), count, features),
                        .k = by_heads(c, IN(1), kv, features),
                        .v = by_heads(c, IN(2), kv, features),
                        .later = later_keys(c, 1, o->causal)},
                kv, features, 3);
}

/* ---- Positions ---- */

/* The rows of a table, input 1, for a sequence, whose length is along axis `time` of input 0. */
static mica_onnx_term rows_of(mica_onnx_writing *c, int time)
{
    mica_onnx_dim length = mica_onnx_dim_of(c, 0, time);
    if (length.term == 0 && length.size == c->in[1]->dim[0])
        return IN(1);
    mica_onnx_term from = mica_onnx_put_int(c, 0), to = mica_onnx_put_dims(c, &length, 1);
    return mica_onnx_put(c, NEW, "Slice", TERMS(IN(1), from, to, mica_onnx_put_int(c, 0)), NO_ATTRS);
}

static void add_positions(mica_onnx_writing *c)
{
    if (((const mica_positions_opts *)c->opts)->position != 0)
        mica_onnx_refuse(c, "its position is a size of the step");
    mica_onnx_node2(c, OUT(0), "Add", IN(0), rows_of(c, c->in[0]->rank - 2));
}

typedef struct turning {
    mica_onnx_term cosines, sines; /* [..., R / 2], to broadcast over x */
    mica_index features, turned;   /* the last axis of x, of which the first R turn */
    int rank;                      /* of x */
    bool interleaved;
} turning;

/* Features first, first + step, ... before `end`. */
static mica_onnx_term some_features(mica_onnx_writing *c, mica_onnx_term x, int64_t first, int64_t end,
                                    int64_t step)
{
    mica_onnx_term from = mica_onnx_put_int(c, first), to = mica_onnx_put_int(c, end),
                   axis = mica_onnx_put_int(c, -1);
    return mica_onnx_put(c, NEW, "Slice", TERMS(x, from, to, axis, mica_onnx_put_int(c, step)), NO_ATTRS);
}

/* (a, b) becomes (a cos - b sin, a sin + b cos). */
static mica_onnx_term turn(mica_onnx_writing *c, mica_onnx_term out, mica_onnx_term x, const turning *how)
{
    mica_index r = how->turned, half = r / 2;
    bool pairs = how->interleaved, rest = r < how->features;
    mica_onnx_term a = some_features(c, x, 0, pairs ? r : half, pairs ? 2 : 1);
    mica_onnx_term b = some_features(c, x, pairs ? 1 : half, r, pairs ? 2 : 1);
    mica_onnx_term ac = mica_onnx_node2(c, NEW, "Mul", a, how->cosines),
                   bs = mica_onnx_node2(c, NEW, "Mul", b, how->sines);
    mica_onnx_term as = mica_onnx_node2(c, NEW, "Mul", a, how->sines),
                   bc = mica_onnx_node2(c, NEW, "Mul", b, how->cosines);
    mica_onnx_term first = mica_onnx_node2(c, NEW, "Sub", ac, bs),
                   second = mica_onnx_node2(c, NEW, "Add", as, bc);
    mica_onnx_attr last = mica_onnx_int_attr("axis", -1);
    mica_onnx_term y;
    if (pairs) {
        int64_t dims[MICA_MAX_RANK] = {0};
        dims[how->rank - 1] = r;
        mica_onnx_term axis = mica_onnx_put_int(c, -1);
        first = mica_onnx_node2(c, NEW, "Unsqueeze", first, axis);
        second = mica_onnx_node2(c, NEW, "Unsqueeze", second, axis);
        y = mica_onnx_put(c, NEW, "Concat", TERMS(first, second), ATTRS(last));
        y = mica_onnx_node2(c, rest ? NEW : out, "Reshape", y, mica_onnx_put_ints(c, dims, how->rank));
    } else {
        y = mica_onnx_put(c, rest ? NEW : out, "Concat", TERMS(first, second), ATTRS(last));
    }
    if (!rest)
        return y;
    mica_onnx_term still = some_features(c, x, r, how->features, 1);
    return mica_onnx_put(c, out, "Concat", TERMS(y, still), ATTRS(last));
}

/* Cosines and sines of a table [T, R], with another axis for heads in between or not. */
static void split_table(mica_onnx_writing *c, turning *how, mica_onnx_term table, bool heads_between)
{
    how->cosines = some_features(c, table, 0, how->turned / 2, 1);
    how->sines = some_features(c, table, how->turned / 2, how->turned, 1);
    if (!heads_between)
        return;
    mica_onnx_term axis = mica_onnx_put_int(c, 1);
    how->cosines = mica_onnx_node2(c, NEW, "Unsqueeze", how->cosines, axis);
    how->sines = mica_onnx_node2(c, NEW, "Unsqueeze", how->sines, axis);
}

static void rotary(mica_onnx_writing *c)
{
    const mica_turn_opts *o = c->opts;
    const mica_tensor *x = c->in[0];
    if (o->position != 0)
        mica_onnx_refuse(c, "its position is a size of the step");
    turning how = {.features = x->dim[x->rank - 1],
                   .turned = c->in[1]->dim[1],
                   .rank = x->rank,
                   .interleaved = o->interleaved};
    split_table(c, &how, rows_of(c, x->rank - 2), false);
    turn(c, OUT(0), IN(0), &how);
}

/* x [..., T, heads * D] as [..., T, heads, D], of which the first `turned` heads turn, and back. */
static void turn_heads(mica_onnx_writing *c, mica_onnx_term table, mica_index all, mica_index turned,
                       bool interleaved)
{
    const mica_tensor *x = c->in[0];
    int64_t dims[MICA_MAX_RANK + 1] = {0};
    turning how = {.features = x->dim[x->rank - 1] / all,
                   .turned = c->in[1]->dim[1],
                   .rank = x->rank + 1,
                   .interleaved = interleaved};
    split_table(c, &how, table, true);
    dims[x->rank - 1] = all;
    dims[x->rank] = how.features;
    mica_onnx_term t = mica_onnx_node2(c, NEW, "Reshape", IN(0), mica_onnx_put_ints(c, dims, x->rank + 1)),
                   rest = 0;
    if (turned < all) {
        rest = mica_onnx_put_slice(c, NEW, t, x->rank - 1, turned, all);
        t = mica_onnx_put_slice(c, NEW, t, x->rank - 1, 0, turned);
    }
    t = turn(c, NEW, t, &how);
    if (rest != 0)
        t = mica_onnx_put(c, NEW, "Concat", TERMS(t, rest), ATTRS(mica_onnx_int_attr("axis", x->rank - 1)));
    dims[x->rank - 1] = all * how.features;
    mica_onnx_node2(c, OUT(0), "Reshape", t, mica_onnx_put_ints(c, dims, x->rank));
}

static void rotary_packed(mica_onnx_writing *c)
{
    const mica_turn_opts *o = c->opts;
    int all = o->heads != 0 ? o->heads : 1;
    if (o->position != 0)
        mica_onnx_refuse(c, "its position is a size of the step");
    turn_heads(c, rows_of(c, c->in[0]->rank - 2), all, o->turned != 0 ? o->turned : all, o->interleaved);
}

static void rotary_rows(mica_onnx_writing *c)
{
    const mica_rotary_rows_opts *o = c->opts;
    int all = o->heads != 0 ? o->heads : 1;
    turn_heads(c, IN(1), all, all, o->interleaved);
}

/* In double, and within one turn before it is f32, whose sines are exact only there. */
static void rotary_angles(mica_onnx_writing *c)
{
    float magnitude = ((const mica_rotary_angles_opts *)c->opts)->magnitude;
    double turn_once = 6.283185307179586;
    mica_tensor number = {.data = &turn_once, .dtype = MICA_F64};
    mica_onnx_term p = mica_onnx_put_cast(c, NEW, IN(0), 11), f = mica_onnx_put_cast(c, NEW, IN(1), 11);
    p = mica_onnx_node2(c, NEW, "Unsqueeze", p, mica_onnx_put_int(c, 1));
    mica_onnx_term angle = mica_onnx_node2(c, NEW, "Mul", p, f);
    angle = mica_onnx_put(c, NEW, "Mod", TERMS(angle, mica_onnx_put_constant(c, &number)),
                          ATTRS(mica_onnx_int_attr("fmod", 1)));
    angle = mica_onnx_put_cast(c, NEW, angle, 1);
    mica_onnx_term cosines = mica_onnx_node1(c, NEW, "Cos", angle, NO_ATTRS);
    mica_onnx_term sines = mica_onnx_node1(c, NEW, "Sin", angle, NO_ATTRS);
    bool scaled = magnitude != 0.0f && magnitude != 1.0f;
    mica_onnx_term y = mica_onnx_put(c, scaled ? NEW : OUT(0), "Concat", TERMS(cosines, sines),
                                     ATTRS(mica_onnx_int_attr("axis", 1)));
    if (scaled)
        mica_onnx_node2(c, OUT(0), "Mul", y, mica_onnx_put_number(c, magnitude));
}

const mica_onnx_row mica_onnx_write_sequence[] = {OWN(attention, attention),
                                                  OWN(attention_packed, attention_packed),
                                                  OWN(attention_rows, attention_rows),
                                                  OWN(add_positions, add_positions),
                                                  OWN(rotary, rotary),
                                                  OWN(rotary_packed, rotary_packed),
                                                  OWN(rotary_rows, rotary_rows),
                                                  OWN(rotary_angles, rotary_angles),
                                                  END_OF_ROWS};
