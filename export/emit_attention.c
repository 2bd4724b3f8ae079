/* Attention, over queries, keys and values apart or side by side, and rotary positions. */
#include <stdio.h>
#include <string.h>

#include "export/formula.h"

typedef struct heads {
    int batch, heads, kv, queries, keys, features;
    int q[3], k[3], y[3];
} heads;

static void set(int stride[3], int batch, int head, int time)
{
    stride[0] = batch, stride[1] = head, stride[2] = time;
}

/* q [B, H, Tq, D], k and v [B, Hkv, Tk, D] */
static heads heads_apart(const value *q, const value *k)
{
    heads h = {(int)q->dim[0],
               (int)q->dim[1],
               (int)k->dim[1],
               (int)q->dim[2],
               (int)k->dim[2],
               (int)q->dim[3],
               {0},
               {0},
               {0}};
    set(h.q, h.heads * h.queries * h.features, h.queries * h.features, h.features);
    set(h.k, h.kv * h.keys * h.features, h.keys * h.features, h.features);
    memcpy(h.y, h.q, sizeof h.y);
    return h;
}

/* x [N, T, (heads + 2 kv) D], y [N, T, heads D] */
static heads heads_packed(const call *c, const value *x)
{
    heads h = {.batch = (int)x->dim[0],
               .heads = call_size(c, "heads", 0),
               .queries = (int)x->dim[1],
               .keys = (int)x->dim[1]};
    int width = (int)x->dim[2];
    h.kv = call_int(c, "kv_heads", 0) != 0 ? call_int(c, "kv_heads", 0) : h.heads;
    h.features = width / (h.heads + 2 * h.kv);
    set(h.q, h.queries * width, h.features, width);
    memcpy(h.k, h.q, sizeof h.k);
    set(h.y, h.queries * h.heads * h.features, h.features, h.heads * h.features);
    return h;
}

/* Strides of a mask that broadcasts to [B, H, Tq, Tk]. */
static void mask_strides(const value *mask, int stride[4])
{
    int step = 1;
    memset(stride, 0, 4 * sizeof *stride);
    for (int k = mask != NULL ? mask->rank - 1 : -1; k >= 0; k--) {
        stride[4 - mask->rank + k] = mask->dim[k] == 1 ? 0 : step;
        step *= (int)mask->dim[k];
    }
}

static void emit_shape(emitter *e, const call *c, const heads *h, const value *mask)
{
    int m[4];
    double scale = call_number(c, "scale", 0);
    mask_strides(mask, m);
    double root = 1.0;
    for (int i = 0; i < 60; i++) /* Newton's method, once, here */
        root = 0.5 * (root + h->features / root);
    emit(e, "static const struct attention_shape shape = {");
    emit(e, "    .batch = %d, .heads = %d, .kv_heads = %d, .queries = %d, .keys = %d, .features = %d,",
         h->batch, h->heads, h->kv, h->queries, h->keys, h->features);
    emit(e, "    .q = {%d, %d, %d}, .k = {%d, %d, %d}, .y = {%d, %d, %d}, .mask = {%d, %d, %d, %d},", h->q[0],
         h->q[1], h->q[2], h->k[0], h->k[1], h->k[2], h->y[0], h->y[1], h->y[2], m[0], m[1], m[2], m[3]);
    emit(e, "    .causal = %d, .scale = %s,", call_int(c, "causal", 0),
         float_text((double)(float)(scale != 0.0 ? scale : 1.0 / root)));
    emit(e, "};");
}

/* The mask as numbers to add and as bytes that hide, of which there is one at most. */
static const value *mask_of(emitter *e, int i, const char **added, const char **hides)
{
    *added = *hides = "0";
    if (i >= e->c->ins || e->c->in[i] == NONE)
        return NULL;
    const value *mask = in_value(e, i);
    *(mask->dtype == MICA_U8 ? hides : added) = in_name(e, i);
    return mask;
}

static void emit_attention(emitter *e, const call *c)
{
    const char *added, *hides;
    heads h = heads_apart(in_value(e, 0), in_value(e, 1));
    use_kernel(e, "attention");
    emit_shape(e, c, &h, mask_of(e, 3, &added, &hides));
    emit(e, "attention(%s, %s, %s, %s, %s, %s, %s, &shape, %s);", out_name(e, 0), out_name(e, 1),
         in_name(e, 0), in_name(e, 1), in_name(e, 2), added, hides, scratch_name(e));
}

static void emit_attention_backward(emitter *e, const call *c)
{
    const char *added, *hides;
    heads h = heads_apart(in_value(e, 1), in_value(e, 2));
    use_kernel(e, "attention_backward");
    emit_shape(e, c, &h, mask_of(e, 6, &added, &hides));
    emit(e, "attention_backward(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, &shape);", out_name(e, 0),
         out_name(e, 1), out_name(e, 2), in_name(e, 0), in_name(e, 1), in_name(e, 2), in_name(e, 3),
         in_name(e, 4), in_name(e, 5), added, hides);
}

static void emit_packed(emitter *e, const call *c)
{
    const char *added, *hides, *x = in_name(e, 0);
    heads h = heads_packed(c, in_value(e, 0));
    use_kernel(e, "attention");
    emit_shape(e, c, &h, mask_of(e, 1, &added, &hides));
    emit(e, "attention(%s, %s, %s, %s + %d, %s + %d, %s, %s, &shape, %s);", out_name(e, 0), out_name(e, 1), x,
         x, h.heads * h.features, x, (h.heads + h.kv) * h.features, added, hides, scratch_name(e));
}

static void emit_packed_backward(emitter *e, const call *c)
{
    const char *added, *hides, *x = in_name(e, 1), *dx = out_name(e, 0);
    heads h = heads_packed(c, in_value(e, 1));
    int keys = h.heads * h.features, values = (h.heads + h.kv) * h.features;
    use_kernel(e, "attention_backward");
    emit_shape(e, c, &h, mask_of(e, 4, &added, &hides));
    emit(e, "attention_backward(%s, %s + %d, %s + %d, %s, %s, %s + %d, %s + %d, %s, %s, %s, %s, &shape);", dx,
         dx, keys, dx, values, in_name(e, 0), x, x, keys, x, values, in_name(e, 2), in_name(e, 3), added,
         hides);
}

static size_t row_apart(const graph *g, const call *c) { return (size_t)g->values[c->in[0]].dim[3]; }
static size_t row_packed(const graph *g, const call *c)
{
    return (size_t)heads_packed(c, &g->values[c->in[0]]).features;
}

/* ---- Rotary ---- */

static void emit_rotary(emitter *e, const call *c)
{
    const value *x = in_value(e, 0), *table = in_value(e, 1);
    int head_count = call_size(c, "heads", 0), turned = call_int(c, "turned", 0),
        time = (int)x->dim[x->rank - 2];
    use_kernel(e, "rotary");
    emit(e, "rotary(%s, %s, %s, %d, %d, %d, %d, %d, %d, %d, %d);", out_name(e, 0), in_name(e, 0),
         in_name(e, 1), (int)x->count / (time * columns_of(x)), time, head_count,
         turned != 0 ? turned : head_count, columns_of(x) / head_count, columns_of(table),
         call_int(c, "interleaved", 0), strstr(c->name, "backward") != NULL);
}

const export_op export_attention_ops[] = {
    {.name = "attention", .emit = emit_attention, .scratch = row_apart},
    {.name = "attention_backward", .emit = emit_attention_backward, .only_adds = 7},
    {.name = "attention_packed", .emit = emit_packed, .scratch = row_packed},
    {.name = "attention_packed_backward", .emit = emit_packed_backward, .only_adds = 1},
    {.name = "rotary", .emit = emit_rotary, .refuse = refuse_position},
    {.name = "rotary_backward", .emit = emit_rotary, .refuse = refuse_position},
    {.name = "rotary_packed", .emit = emit_rotary, .refuse = refuse_position},
    {.name = "rotary_packed_backward", .emit = emit_rotary, .refuse = refuse_position},
    {.name = NULL},
};
