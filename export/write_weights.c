/* Weights: const arrays, and what a net that learns starts with. */
#include <string.h>

#include "export/emit_int8.h"
#include "export/write.h"

#define COLUMN 112 /* lines of numbers end here */

static bool is_used(const graph *g, int v)
{
    for (int n = 0; n < g->call_count; n++)
        for (int i = 0; i < g->calls[n].ins; i++)
            if (g->calls[n].in[i] != NONE && g->values[g->calls[n].in[i]].root == v)
                return true;
    return false;
}

size_t const_bytes(const graph *g)
{
    size_t bytes = 4 * g->learned_count;
    for (int i = 0; i < g->value_count; i++)
        if (g->values[i].home == VALUE_CONST && g->values[i].root == i && is_used(g, i))
            bytes += g->values[i].count *
                     (g->values[i].dtype == MICA_U8 || g->values[i].dtype == MICA_I8 ? 1 : 4);
    return bytes;
}

/* The net's tensor of a value; data NULL if it has none. */
static mica_tensor tensor_of(const graph *g, const value *v)
{
    mica_tensor t = {0};
    if (mica_net_value_tensor(g->net, &t, v->source) != MICA_OK)
        t.data = NULL;
    return t;
}

/* Where element i, in row-major order, lies: what is lent need not be in that order. */
static size_t place_of(const mica_tensor *t, size_t i)
{
    mica_index at = 0;
    for (int k = t->rank - 1; k >= 0; k--) {
        at += (mica_index)(i % (size_t)t->dim[k]) * t->stride[k];
        i /= (size_t)t->dim[k];
    }
    return (size_t)at;
}

static void put_number(text *out, const value *v, const mica_tensor *t, size_t i)
{
    if (t->dtype == MICA_I8 || v->packed != PACK_NOT) {
        text_put(out, "%d", packed_number(v, t, v->packed == PACK_NOT ? place_of(t, i) : i));
        return;
    }
    i = place_of(t, i);
    if (t->dtype == MICA_I32)
        text_put(out, "%d", ((const int32_t *)t->data)[i]);
    else if (t->dtype == MICA_I64)
        text_put(out, "%d", (int)((const int64_t *)t->data)[i]);
    else if (t->dtype == MICA_U8)
        text_put(out, "%d", ((const uint8_t *)t->data)[i]);
    else
        text_put_float(out, ((const float *)t->data)[i]);
}

static void put_numbers(text *out, const value *v, const mica_tensor *t, size_t count)
{
    size_t line = out->length;
    text_put(out, "    ");
    for (size_t i = 0; i < count && t->data != NULL; i++) {
        put_number(out, v, t, i);
        text_put(out, ",");
        if (out->length - line > COLUMN && i + 1 < count) {
            text_put(out, "\n");
            line = out->length;
            text_put(out, "    ");
        } else if (i + 1 < count)
            text_put(out, " ");
    }
    text_put(out, "\n");
}

void write_weights(text *out, const graph *g)
{
    bool first = true;
    for (int i = 0; i < g->value_count; i++) {
        const value *v = &g->values[i];
        if (v->home != VALUE_CONST || v->root != i || !is_used(g, i))
            continue;
        text_put(out, "%s", first ? "/* ---- Weights ---- */\n\n" : "");
        first = false;
        mica_tensor t = tensor_of(g, v);
        text_put(out, "static const %s %s[%zu] = { /* %s */\n", c_type(v->dtype), v->name, v->count,
                 shape_of(v).text);
        put_numbers(out, v, &t, v->count);
        text_put(out, "};\n\n");
    }
}

/* ---- What learns, or is kept ---- */

static void put_start_values(text *out, const graph *g)
{
    text_put(out, "\n/* What is learned begins with this. */\nstatic const float start[%zu] = {\n",
             g->learned_count);
    for (int i = 0; i < g->value_count; i++) {
        const value *v = &g->values[i];
        if (v->home != VALUE_LEARNED || v->root != i)
            continue;
        mica_tensor t = tensor_of(g, v);
        text_put(out, "    /* %s %s */\n", v->name, shape_of(v).text);
        put_numbers(out, v, &t, v->count);
    }
    text_put(out, "};\n");
}

static bool all_equal(const mica_tensor *t, size_t count)
{
    for (size_t i = 1; t->data != NULL && i < count; i++)
        if (memcmp(t->data, (const char *)t->data + 4 * i, 4) != 0)
            return false;
    return true;
}

/* Kept values: by a loop where all elements are the same. */
static void put_kept(text *out, const graph *g, bool arrays)
{
    for (int i = 0; i < g->value_count; i++) {
        const value *v = &g->values[i];
        if (v->home != VALUE_KEPT || v->root != i)
            continue;
        mica_tensor t = tensor_of(g, v);
        bool equal = t.dtype == MICA_F32 && all_equal(&t, v->count);
        if (arrays && !equal) {
            text_put(out, "static const %s %s_start[%zu] = {\n", c_type(v->dtype), v->name, v->count);
            put_numbers(out, v, &t, v->count);
            text_put(out, "};\n");
        } else if (!arrays && !equal) {
            text_put(out, "    memcpy(");
            put_address(out, g, v);
            text_put(out, ", %s_start, sizeof %s_start);\n", v->name, v->name);
        } else if (!arrays) {
            text_put(out, "    for (int i = 0; i < %zu; i++) /* %s */\n        (", v->count, v->name);
            put_address(out, g, v);
            text_put(out, ")[i] = ");
            text_put_float(out, t.data != NULL ? *(const float *)t.data : 0.0f);
            text_put(out, ";\n");
        }
    }
}

void write_start(text *out, const graph *g, const export_opts *opts)
{
    if (g->learned_count > 0)
        put_start_values(out, g);
    put_kept(out, g, true);
    text_put(out, "\nvoid %s_init(void)\n{\n", opts->name);
    text_put(out, "    memset(block, 0, %zu * sizeof *block);\n", g->block_count);
    if (g->learned_count > 0)
        text_put(out, "    memcpy(block, start, sizeof start);\n");
    put_kept(out, g, false);
    text_put(out, "}\n");
}
