/* Nets of bytes: the caller writes and reads bytes where the net begins and ends with them; convolutions get the
 * kernel that suits the target, with max pooling behind them in the same call, and weights packed for it.
 *
 *     quantize of an input                         the input itself
 *     dequantize to the output                     the output itself
 *     int8_conv2d, int8_max_pool2d of 2 x 2        int8_conv_plane      in planes with a border, if there is padding
 *     int8_conv2d of 1 x 1                         int8_conv1x1
 */
#include <stdio.h>
#include <string.h>

#include "export/emit_int8.h"
#include "export/rewrite.h"

#define FEW 4 /* outputs of a group that laying out patches does not pay for */

static bool is_named(const call *c, const char *name) { return strcmp(c->name, name) == 0; }

/* ---- Inputs and outputs ---- */

/* An input that is only quantized becomes what that makes. */
static void take_input(graph *g, int x)
{
    int reader = graph_only_reader(g, x);
    if (reader == NONE || !is_named(&g->calls[reader], "quantize") || g->calls[reader].in[0] != x)
        return;
    value *from = &g->values[x], *to = &g->values[g->calls[reader].out[0]];
    if (g->values[to->root].source != to->source || to->output)
        return;
    to->home = VALUE_INPUT;
    to->scale = (float)call_number(&g->calls[reader], "scale", 0);
    to->seen_as = from->source;
    from->home = VALUE_ARENA; /* nothing uses it any more */
    char name[sizeof to->name];
    memcpy(name, to->name, sizeof name);
    memcpy(to->name, from->name, sizeof name);
    memcpy(from->name, name, sizeof name);
    g->input = g->input == x ? g->calls[reader].out[0] : g->input;
    graph_drop_call(g, reader);
}

/* An output that bytes become at the end stays bytes. */
static void take_output(graph *g)
{
    int y = g->output, writer = graph_writer(g, y);
    if (g->train || writer == NONE || !is_named(&g->calls[writer], "dequantize") || g->values[y].root != y)
        return;
    for (int n = 0; n < g->call_count; n++)
        for (int i = 0; i < g->calls[n].ins; i++)
            if (g->calls[n].in[i] != NONE && g->values[g->calls[n].in[i]].root == y)
                return;
    int x = g->calls[writer].in[0];
    if (root_of(g, x)->home != VALUE_ARENA)
        return;
    g->values[x].scale = (float)call_number(&g->calls[writer], "scale", 0);
    g->values[x].seen_as = g->values[y].source;
    g->values[g->values[x].root].output = true;
    g->values[y].output = false;
    g->output = x;
    graph_drop_call(g, writer);
}

/* ---- Weights ---- */

/* Another constant made of the same numbers. */
static bool repack(graph *g, int at, int in, packing how, size_t count)
{
    value copy = g->values[g->calls[at].in[in]];
    static const char *const suffixes[] = {"", "_each", "_packed"};
    size_t length = strlen(copy.name);
    snprintf(copy.name + length, sizeof copy.name - length, "%s", suffixes[how]);
    copy.packed = how;
    copy.count = count;
    copy.root = g->value_count;
    int number = graph_add_value(g, &copy);
    if (number != NONE)
        g->calls[at].in[in] = number;
    return number != NONE;
}

static bool is_const(const graph *g, int v) { return root_of(g, v)->home == VALUE_CONST; }

/* The same for a number that is no constant: by a call before. */
static bool insert_each(graph *g, int *at, int in, size_t count)
{
    const call *c = &g->calls[*at];
    value copy = g->values[c->in[in]];
    snprintf(copy.name, sizeof copy.name, "%.50s_each", g->values[c->in[in]].name);
    copy.home = VALUE_ARENA;
    copy.source = 0;
    copy.output = false;
    copy.dim[0] = (mica_index)count;
    copy.count = count;
    copy.root = g->value_count;
    call each = {.name = "int8_each",
                 .phase = c->phase,
                 .layer = c->layer,
                 .kind = c->kind,
                 .ins = 1,
                 .outs = 1,
                 .scratch = NONE,
                 .runs = c->runs,
                 .in = {c->in[in]},
                 .out = {graph_add_value(g, &copy)}};
    if (each.out[0] == NONE || graph_add_call(g, *at, &each) == NULL)
        return false;
    g->calls[++*at].in[in] = each.out[0];
    return true;
}

/* One multiplier and shift for all channels become one for each. */
static bool spread_factors(graph *g, int *at)
{
    size_t channels = g->values[g->calls[*at].in[INT8_BIAS]].count;
    for (int in = INT8_MULTIPLIER; in <= INT8_SHIFT; in++) {
        int v = g->calls[*at].in[in];
        if (g->values[v].count != channels &&
            !(is_const(g, v) ? repack(g, *at, in, PACK_EACH, channels) : insert_each(g, at, in, channels)))
            return false;
    }
    return true;
}

/* ---- Convolutions ---- */

/* The pooling of 2 x 2 that follows; NONE: none, or other pooling. */
static int pooling_behind(const graph *g, int at)
{
    int y = g->calls[at].out[0], n = graph_only_reader(g, y);
    if (n == NONE || !is_named(&g->calls[n], "int8_max_pool2d") || g->calls[n].in[0] != y ||
        root_of(g, y)->output)
        return NONE;
    const call *c = &g->calls[n];
    image from = image_of(g, y), to = image_of(g, c->out[0]);
    for (int k = 0; k < 2; k++)
        if (call_int(c, "kernel", k) != 2 ||
            (call_int(c, "stride", k) != 2 && call_int(c, "stride", k) != 0) || call_int(c, "pad", k) != 0 ||
            call_size(c, "dilation", k) != 1)
            return NONE;
    bool whole = to.rows == from.rows / 2 && to.columns == from.columns / 2 && to.rows > 0 && to.columns > 0;
    return whole && g->values[c->out[0]].root == c->out[0] ? n : NONE;
}

/* Stride and dilation of 1, the same padding around, one image. */
static bool is_simple(const graph *g, const call *c)
{
    for (int k = 0; k < 2; k++)
        if (call_size(c, "stride", k) != 1 || call_size(c, "dilation", k) != 1)
            return false;
    return image_of(g, c->in[0]).count == 1 && call_int(c, "pad", 0) == call_int(c, "pad", 1) &&
           g->values[c->in[0]].root == c->in[0] && g->values[c->out[0]].root == c->out[0];
}

static int kernel_of(const graph *g, const call *c, int pool)
{
    const value *w = &g->values[c->in[INT8_W]];
    image y = image_of(g, c->out[0]);
    int rows = w->rank > 3 ? (int)w->dim[2] : 1, columns = (int)w->dim[w->rank - 1];
    if (!is_simple(g, c) || !is_const(g, c->in[INT8_W]))
        return INT8_GENERAL;
    if (target_has_vectors(g->target) && y.channels / call_size(c, "groups", 0) >= FEW)
        return pool != NONE ? INT8_PATCHES_POOL : INT8_PATCHES;
    bool pairs = target_has_pairs(g->target);
    if (pairs && rows == 1 && columns == 1 && pool == NONE && call_int(c, "pad", 0) == 0 &&
        y.rows * y.columns >= 4)
        return INT8_ONE;
    if (pairs && columns >= 3 && y.rows >= 2 && y.columns >= 2)
        return rows == 3 && columns == 3 ? pool != NONE ? INT8_3X3_POOL : INT8_3X3
               : pool != NONE            ? INT8_WIDE_POOL
                                         : INT8_WIDE;
    return pool != NONE ? INT8_PLAIN_POOL : INT8_GENERAL;
}

static bool choose_conv(graph *g, int at)
{
    int pool = pooling_behind(g, at), kernel = kernel_of(g, &g->calls[at], pool);
    call *c = &g->calls[at];
    const value *w = &g->values[c->in[INT8_W]];
    size_t threes = ((size_t)w->dim[w->rank - 1] + 2) / 3;
    size_t packed = w->count / (size_t)w->dim[w->rank - 1] * threes * 4;
    if (kernel == INT8_GENERAL)
        return true;
    c->name = kernel == INT8_ONE ? "int8_conv1x1" : "int8_conv_plane";
    c->numbers[INT8_KERNEL] = kernel;
    c->numbers[INT8_PAD] = call_int(c, "pad", 0);
    if (int8_pools(kernel)) {
        c->out[0] = g->calls[pool].out[0];
        graph_drop_call(g, pool);
    }
    return !int8_packs(kernel) || repack(g, at, INT8_W, PACK_THREES, packed);
}

/* ---- Borders ---- */

static bool is_plane(const call *c) { return is_named(c, "int8_conv_plane"); }

/* Whether these calls alone make and read a value, and all with this padding. */
static bool can_have_border(const graph *g, int v, int width)
{
    bool made = false;
    if (g->values[v].home != VALUE_ARENA || g->values[v].output || g->values[v].rank < 4)
        return false;
    for (int n = 0; n < g->call_count; n++) {
        const call *c = &g->calls[n];
        for (int i = 0; i < c->ins; i++)
            if (c->in[i] != NONE && g->values[c->in[i]].root == v &&
                (c->in[i] != v || !is_plane(c) || c->numbers[INT8_PAD] != width))
                return false;
        for (int k = 0; k < c->outs; k++)
            if (c->out[k] != NONE && g->values[c->out[k]].root == v) {
                if (!is_plane(c))
                    return false;
                made = true;
            }
    }
    return made;
}

/* Copies a value into one with a border before call `at`, which these calls read from there on. */
static bool insert_border(graph *g, int at, int v, int width)
{
    const call *c = &g->calls[at];
    value copy = g->values[v];
    snprintf(copy.name, sizeof copy.name, "%.50s_bordered", g->values[v].name);
    copy.home = VALUE_ARENA;
    copy.border = width;
    copy.output = false;
    copy.source = 0;
    copy.scale = 0.0f;
    copy.root = g->value_count;
    call border = {.name = "int8_border",
                   .phase = c->phase,
                   .layer = c->layer,
                   .kind = c->kind,
                   .ins = 1,
                   .outs = 1,
                   .scratch = NONE,
                   .runs = c->runs,
                   .in = {v},
                   .out = {graph_add_value(g, &copy)}};
    if (border.out[0] == NONE || graph_add_call(g, at, &border) == NULL)
        return false;
    for (int n = at + 1; n < g->call_count; n++)
        if (is_plane(&g->calls[n]) && g->calls[n].in[0] == v && g->calls[n].numbers[INT8_PAD] == width)
            g->calls[n].in[0] = border.out[0];
    return true;
}

static bool give_borders(graph *g)
{
    for (int n = 0; n < g->call_count; n++) {
        int width = g->calls[n].numbers[INT8_PAD], x = g->calls[n].in[0];
        if (!is_plane(&g->calls[n]) || width == 0 || g->values[x].border == width)
            continue;
        if (can_have_border(g, x, width))
            g->values[x].border = width;
        else if (!insert_border(g, n++, x, width))
            return false;
    }
    return true;
}

bool rewrite_int8(graph *g)
{
    int values = g->float_ends ? 0 : g->value_count;
    for (int i = 0; i < values; i++)
        if (g->values[i].home == VALUE_INPUT && g->values[i].root == i && g->values[i].dtype == MICA_F32)
            take_input(g, i);
    if (!g->float_ends)
        take_output(g);
    for (int n = 0; n < g->call_count; n++) {
        bool conv = is_named(&g->calls[n], "int8_conv2d");
        if ((conv || is_named(&g->calls[n], "int8_linear")) && !spread_factors(g, &n))
            return false;
        if (conv && !choose_conv(g, n))
            return false;
    }
    return give_borders(g);
}
