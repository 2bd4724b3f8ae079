/* From the program of a compiled net to the exporter's own. */
#include "export/graph.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/emit.h"

/* ---- Lists ---- */

static bool make_room(void **list, int count, int *room, size_t bytes)
{
    if (count < *room)
        return true;
    int more = 2 * *room + 32;
    void *larger = realloc(*list, (size_t)more * bytes);
    if (larger == NULL)
        return false;
    *list = larger;
    *room = more;
    return true;
}

int graph_add_value(graph *g, const value *v)
{
    if (!make_room((void **)&g->values, g->value_count, &g->value_room, sizeof *v))
        return NONE;
    g->values[g->value_count] = *v;
    return g->value_count++;
}

call *graph_add_call(graph *g, int at, const call *c)
{
    if (!make_room((void **)&g->calls, g->call_count, &g->call_room, sizeof *c))
        return NULL;
    memmove(g->calls + at + 1, g->calls + at, (size_t)(g->call_count - at) * sizeof *c);
    g->calls[at] = *c;
    g->call_count++;
    return &g->calls[at];
}

void graph_drop_call(graph *g, int at)
{
    g->call_count--;
    memmove(g->calls + at, g->calls + at + 1, (size_t)(g->call_count - at) * sizeof g->calls[0]);
}

void graph_free(graph *g)
{
    free(g->values);
    free(g->calls);
    *g = (graph){0};
}

/* ---- Questions ---- */

static bool reads(const graph *g, const call *c, int root)
{
    for (int i = 0; i < c->ins; i++)
        if (c->in[i] != NONE && g->values[c->in[i]].root == root)
            return true;
    return false;
}

int graph_only_reader(const graph *g, int v)
{
    int found = NONE, root = g->values[v].root;
    for (int c = 0; c < g->call_count; c++)
        if (reads(g, &g->calls[c], root)) {
            if (found != NONE)
                return NONE;
            found = c;
        }
    return found;
}

int graph_writer(const graph *g, int v)
{
    for (int c = 0; c < g->call_count; c++)
        for (int k = 0; k < g->calls[c].outs; k++)
            if (g->calls[c].out[k] != NONE && g->values[g->calls[c].out[k]].root == g->values[v].root)
                return c;
    return NONE;
}

image image_of(const graph *g, int number)
{
    const value *v = &g->values[number];
    image m = {1, 1, 1, 1, 0, 0};
    if (v->rank > 0)
        m.columns = (int)v->dim[v->rank - 1];
    if (v->rank > 3)
        m.rows = (int)v->dim[v->rank - 2];
    if (v->rank > 1)
        m.channels = (int)v->dim[v->rank > 3 ? v->rank - 3 : v->rank - 2];
    for (int k = 0; k < v->rank - (v->rank > 3 ? 3 : 2); k++)
        m.count *= (int)v->dim[k];
    m.stride = m.columns + 2 * root_of(g, number)->border;
    m.plane = m.stride * (m.rows + 2 * root_of(g, number)->border);
    return m;
}

static bool spans_samples(const graph *g, const value *v)
{
    return g->samples > 1 && (v->home == VALUE_INPUT || v->output);
}

size_t value_size(const graph *g, const value *v)
{
    size_t count = v->count;
    if (v->border > 0) {
        size_t rows = (size_t)v->dim[v->rank - 2], columns = (size_t)v->dim[v->rank - 1];
        size_t border = 2 * (size_t)v->border;
        count = count / (rows * columns) * (rows + border) * (columns + border);
    }
    return count * (size_t)(spans_samples(g, v) ? g->samples : 1);
}

size_t value_inset(const value *v)
{
    return v->border > 0 ? (size_t)v->border * (size_t)(v->dim[v->rank - 1] + 2 * v->border + 1) : 0;
}

double call_number(const call *c, const char *name, int k)
{
    for (int f = 0; c->op != NULL && c->opts != NULL && f < c->op->field_count; f++) {
        const mica_field *field = &c->op->fields[f];
        if (strcmp(field->name, name) != 0 || k >= (field->count > 0 ? field->count : 1))
            continue;
        const char *at = (const char *)c->opts + field->offset;
        switch (field->kind) {
        case MICA_FIELD_INDEX:
            return (double)((const mica_index *)(const void *)at)[k];
        case MICA_FIELD_FLOAT:
            return (double)((const float *)(const void *)at)[k];
        case MICA_FIELD_DOUBLE:
            return ((const double *)(const void *)at)[k];
        case MICA_FIELD_BOOL:
            return ((const bool *)(const void *)at)[k];
        default:
            return ((const int *)(const void *)at)[k];
        }
    }
    return 0.0;
}

/* ---- Reading ---- */

static bool name_taken(const graph *g, const char *name)
{
    for (int i = 0; i < g->value_count; i++)
        if (strcmp(g->values[i].name, name) == 0)
            return true;
    return false;
}

/* Words of C, and what NAME.c and NAME_test.c call their own things. Kernels have theirs, too. */
static bool is_reserved(const char *name)
{
    static const char *const words[] = {
        "auto",     "break",   "case",   "char",     "const",    "continue", "default",  "do",
        "double",   "else",    "enum",   "extern",   "float",    "for",      "goto",     "if",
        "inline",   "int",     "long",   "register", "restrict", "return",   "short",    "signed",
        "sizeof",   "static",  "struct", "switch",   "typedef",  "union",    "unsigned", "void",
        "volatile", "while",   "asm",    "NULL",     "int8_t",   "uint8_t",  "int16_t",  "int32_t",
        "uint32_t", "int64_t", "size_t", "memcpy",   "memset",   "block",    "whole",    "start",
        "loss",     "rate",    "way",    "sample",   "scratch",  "i",        "o",        "sum",
        "forward",  "main",    "printf", "memory",   "state",    "draw",     "fill",     "expected",
        "worst",    "largest", "d"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(name, words[i]) == 0)
            return true;
    return kernel_declares(name);
}

/* An identifier that is like the name: "d conv1.weight" to d_conv1_weight. */
static void make_name(const graph *g, char *out, size_t size, const char *name)
{
    char base[48];
    size_t n = 0;
    if (!isalpha((unsigned char)name[0]))
        base[n++] = 'v';
    for (const char *p = name; *p != '\0' && n + 1 < sizeof base; p++)
        if (isalnum((unsigned char)*p))
            base[n++] = *p;
        else if (n > 0 && base[n - 1] != '_')
            base[n++] = '_';
    base[n] = '\0';
    snprintf(out, size, "%s%s", base, is_reserved(base) ? "_" : "");
    for (int number = 2; name_taken(g, out); number++)
        snprintf(out, size, "%s_%d", base, number);
}

/* Whether a value is read by losses only, and not as their prediction. */
static bool is_target(const mica_net *net, mica_value v)
{
    bool found = false;
    for (int n = 0; n < mica_net_program(net); n++) {
        mica_program_call c;
        if (mica_net_program_call(net, &c, n) != MICA_OK)
            return false;
        for (int i = 0; i < c.ins; i++) {
            mica_program_value in;
            if (c.in[i] == 0 || mica_net_program_value(net, &in, c.in[i]) != MICA_OK || in.root != v)
                continue;
            if (!(c.op->flags & MICA_OP_LOSS) || i != 1)
                return false;
            found = true;
        }
    }
    return found;
}

/* Whether a call changes something that is kept. */
static bool is_written(const mica_net *net, mica_value v)
{
    for (int n = 0; n < mica_net_program(net); n++) {
        mica_program_call c;
        if (mica_net_program_call(net, &c, n) != MICA_OK)
            return true;
        for (int i = 0; i < c.ins; i++) {
            mica_program_value in;
            if (c.in[i] != 0 && (c.op->writes >> i & 1u) &&
                mica_net_program_value(net, &in, c.in[i]) == MICA_OK && in.root == v)
                return true;
        }
    }
    return false;
}

static value_home home_of(const graph *g, const mica_program_value *v)
{
    if (v->kind == MICA_BUFFER_GRADIENT)
        return VALUE_GRADIENT;
    if (v->kind == MICA_BUFFER_INPUT && v->home != MICA_HOME_LENT)
        return is_target(g->net, v->root) ? VALUE_TARGET : VALUE_INPUT;
    switch (v->home) {
    case MICA_HOME_LEARNED:
        return g->train && !v->frozen ? VALUE_LEARNED : VALUE_CONST;
    case MICA_HOME_KEPT:
        return v->kept == MICA_KEPT_STATISTICS && !(g->train && is_written(g->net, v->root)) ? VALUE_CONST
                                                                                             : VALUE_KEPT;
    case MICA_HOME_DERIVED:
    case MICA_HOME_LENT:
        return VALUE_CONST;
    default:
        return VALUE_ARENA;
    }
}

static mica_dtype dtype_of(mica_dtype dtype) { return dtype == MICA_I64 ? MICA_I32 : dtype; }

/* The value with this number in the net, read when it is first asked for. */
static int value_of(graph *g, mica_value source, const char *suffix)
{
    if (source == 0)
        return NONE;
    for (int i = 0; i < g->value_count; i++)
        if (g->values[i].source == source)
            return i;
    mica_program_value from;
    if (mica_net_program_value(g->net, &from, source) != MICA_OK)
        return NONE;
    value v = {.dtype = dtype_of(from.dtype),
               .rank = from.rank,
               .count = 1,
               .source = source,
               .of = NONE,
               .output = from.output,
               .kept = from.kept,
               .home = home_of(g, &from),
               .group = NONE};
    for (int k = 0; k < v.rank; k++) {
        v.dim[k] = from.dim[k];
        v.count *= (size_t)from.dim[k];
    }
    char name[128];
    snprintf(name, sizeof name, "%s%s%s", from.name, suffix[0] != '\0' ? "_" : "", suffix);
    make_name(g, v.name, sizeof v.name, name);
    if (from.root != source) {
        v.root = value_of(g, from.root, "");
        if (v.root == NONE)
            return NONE;
    }
    if (from.gradient_of != 0)
        v.of = value_of(g, from.gradient_of, "");
    int number = graph_add_value(g, &v);
    if (number != NONE && from.root == source)
        g->values[number].root = number;
    return number;
}

/* Weights as the library's kernels read them; exported ones read those that they are made of. */
static bool is_packed(const mica_op *op, int in)
{
    return strncmp(op->name, "affine_", strlen("affine_")) == 0 && strcmp(op->names[in], "packed") == 0;
}

static bool read_call(graph *g, int number)
{
    mica_program_call from;
    if (mica_net_program_call(g->net, &from, number) != MICA_OK)
        return false;
    call c = {.name = from.op->name,
              .op = from.op,
              .opts = from.opts,
              .phase = from.phase,
              .ins = from.ins,
              .outs = from.outs,
              .add = from.add,
              .scratch = NONE,
              .steps = NONE,
              .seed = from.seed,
              .stream = from.stream,
              .stream_step = from.stream_step,
              .layer = "",
              .kind = ""};
    mica_value ignored;
    if (from.layer >= 0 && mica_net_layer(g->net, &c.layer, &c.kind, &ignored, from.layer) != MICA_OK)
        return false;
    memcpy(c.in_place, from.op->in_place, sizeof c.in_place);
    for (int i = 0; i < c.ins; i++) {
        c.in[i] = is_packed(from.op, i) ? NONE : value_of(g, from.in[i], "");
        if (is_packed(from.op, i))
            continue;
        if (from.in[i] != 0 && c.in[i] == NONE)
            return false;
    }
    for (int k = 0; k < c.outs; k++) {
        const char *suffix = k > 0 && from.op->names != NULL
                                 ? from.op->names[from.op->ins + from.op->optional_ins + k]
                                 : "";
        c.out[k] = value_of(g, from.out[k], suffix);
        if (from.out[k] != 0 && c.out[k] == NONE)
            return false;
    }
    return graph_add_call(g, g->call_count, &c) != NULL;
}

/* ---- What a run needs ---- */

static void mark_made(const graph *g, bool *needed, const call *c)
{
    for (int i = 0; i < c->ins; i++)
        if (c->in[i] != NONE)
            needed[g->values[c->in[i]].root] = true;
}

/* Forward calls that the output depends on, first; the order is otherwise kept. */
static bool sort_run_first(graph *g)
{
    bool *needed = calloc((size_t)g->value_count, sizeof *needed);
    call *sorted = calloc((size_t)g->call_count, sizeof *sorted);
    bool done = needed != NULL && sorted != NULL;
    if (done) {
        needed[g->values[g->output].root] = true;
        for (int n = g->call_count - 1; n >= 0; n--) {
            call *c = &g->calls[n];
            for (int k = 0; k < c->outs && c->phase == MICA_PHASE_FORWARD; k++)
                c->runs = c->runs || (c->out[k] != NONE && needed[g->values[c->out[k]].root]);
            for (int i = 0; i < c->ins && c->phase == MICA_PHASE_FORWARD; i++)
                c->runs = c->runs || (c->in[i] != NONE && c->op->writes >> i & 1u);
            if (c->runs)
                mark_made(g, needed, c);
        }
        int at = 0;
        for (int pass = 0; pass < 2; pass++)
            for (int n = 0; n < g->call_count; n++)
                if (g->calls[n].runs == (pass == 0))
                    sorted[at++] = g->calls[n];
        memcpy(g->calls, sorted, (size_t)g->call_count * sizeof *sorted);
        while (!g->train && g->call_count > 0 && !g->calls[g->call_count - 1].runs)
            graph_drop_call(g, g->call_count - 1); /* of outputs that are not exported */
    }
    free(needed);
    free(sorted);
    return done;
}

/* The output of this name. It may be a view that no call makes, of what one does. */
static int find_output(graph *g, const char *name)
{
    for (mica_value i = 1; i <= mica_net_program_values(g->net); i++) {
        mica_program_value v;
        if (mica_net_program_value(g->net, &v, i) != MICA_OK || strcmp(v.name, name) != 0 || !v.output)
            continue;
        for (int k = 0; k < g->value_count; k++)
            if (g->values[k].source == v.root)
                return value_of(g, i, "");
    }
    return NONE;
}

bool graph_read(graph *g, mica_net *net, const char *output, bool train, int samples)
{
    *g = (graph){
        .net = net, .train = train, .samples = samples, .share = 1.0f / (float)samples, .input = NONE};
    for (int n = 0; n < mica_net_program(net); n++)
        if (!read_call(g, n))
            return false;
    g->output = find_output(g, output);
    for (int i = 0; i < g->value_count && g->input == NONE; i++)
        if (g->values[i].home == VALUE_INPUT && g->values[i].root == i)
            g->input = i;
    if (g->output == NONE || g->input == NONE)
        return false;
    for (int i = 0; i < g->value_count; i++) /* only one is looked at after a run */
        g->values[i].output = i == g->values[g->output].root;
    return sort_run_first(g);
}
