/* The operations that can be exported, and the block of C around each call. */
#include "export/emit.h"

#include <stdio.h>
#include <string.h>

static const export_op *const families[] = {
    export_elementwise_ops, export_activation_ops, export_conv_pool_ops, export_conv_ops,
    export_window_ops,      export_dense_ops,      export_class_ops,     export_loss_ops,
    export_memory_ops,      export_reduce_ops,     export_move_ops,      export_index_ops,
    export_norm_ops,        export_recurrent_ops,  export_attention_ops, export_matrix_ops,
    export_make_ops,        export_random_ops,     export_affine_ops,
};

const export_op *find_export_op(const char *name)
{
    for (size_t f = 0; f < sizeof families / sizeof families[0]; f++)
        for (const export_op *op = families[f]; op->name != NULL; op++)
            if (strcmp(op->name, name) == 0)
                return op;
    return find_int8_op(name);
}

/* ---- For emitters ---- */

void emit(emitter *e, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    text_put(e->out, "%*s", 4 * e->indent, "");
    text_put_list(e->out, format, list);
    text_put(e->out, "\n");
    va_end(list);
}

void use_kernel(emitter *e, const char *name)
{
    for (int i = 0; i < e->kernel_count; i++)
        if (strcmp(e->kernels[i], name) == 0)
            return;
    if (e->kernel_count < MOST_KERNELS)
        e->kernels[e->kernel_count++] = name;
}

const char *in_name(emitter *e, int i)
{
    if (i >= e->c->ins || e->c->in[i] == NONE)
        return "0";
    e->used_ins |= 1u << i;
    return in_value(e, i)->name;
}

const char *out_name(emitter *e, int k)
{
    if (k >= e->c->outs || e->c->out[k] == NONE)
        return "0";
    e->used_outs |= 1u << k;
    return out_value(e, k)->name;
}

const char *scratch_name(emitter *e)
{
    e->used_scratch = true;
    return "scratch";
}

const char *steps_name(emitter *e)
{
    e->used_steps = true;
    return e->g->values[e->c->steps].name;
}

const char *float_text(double number)
{
    static char texts[4][64];
    static int next;
    char *chosen = texts[next++ % 4];
    text t = {0};
    text_put_float(&t, (float)number);
    snprintf(chosen, sizeof texts[0], "%s", t.bytes != NULL ? t.bytes : "0.0f");
    text_free(&t);
    return chosen;
}

/* ---- Before writing ---- */

/* Operations that the library also computes in other types, and their first input that is computed with. */
static bool in_other_type(const graph *g, const call *c)
{
    static const char *const names[] = {
        "add",  "sub", "mul",  "div",  "min",  "max",    "pow",    "eq",     "ne",     "lt",    "le",
        "gt",   "ge",  "neg",  "abs",  "sign", "square", "sqrt",   "floor",  "ceil",   "round", "mod",
        "fmod", "sum", "mean", "prod", "amax", "amin",   "argmax", "argmin", "matmul", "where"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(c->name, names[i]) == 0)
            return g->values[c->in[strcmp(c->name, "where") == 0]].dtype != MICA_F32;
    return false;
}

static const char *why_not(const graph *g, const call *c)
{
    const export_op *op = find_export_op(c->name);
    if (op == NULL)
        return "no exporter";
    if (in_other_type(g, c))
        return "arithmetic in another type than f32";
    for (int i = 0; i < c->ins + c->outs; i++) {
        int v = i < c->ins ? c->in[i] : c->out[i - c->ins];
        if (v != NONE && g->values[v].dtype != MICA_F32 && g->values[v].dtype != MICA_I32 &&
            g->values[v].dtype != MICA_U8 && !(g->values[v].dtype == MICA_I8 && takes_bytes(c->name)))
            return mica_dtype_name(g->values[v].dtype);
    }
    return op->refuse != NULL ? op->refuse(g, c) : NULL;
}

int graph_refusals(const graph *g, text *out)
{
    int count = 0;
    for (int n = 0; n < g->call_count; n++) {
        const call *c = &g->calls[n];
        const char *why = why_not(g, c);
        if (why == NULL)
            continue;
        text_put(out, "  layer \"%s\" (%s): %s: %s\n", c->layer, c->kind, c->name, why);
        count++;
    }
    return count;
}

/* Output k of call `at` is made in a temporary, which is then added to where it belongs. */
static bool add_through_temporary(graph *g, int at, int k)
{
    value v = g->values[g->calls[at].out[k]];
    int to = g->calls[at].out[k];
    snprintf(v.name, sizeof v.name, "part_of_%.40s", g->values[to].name);
    v.home = VALUE_ARENA;
    v.source = 0;
    v.border = 0;
    v.output = false;
    int number = graph_add_value(g, &v);
    if (number == NONE)
        return false;
    g->values[number].root = number;
    g->calls[at].out[k] = number;
    g->calls[at].add &= ~(1u << k);
    call sum = g->calls[at];
    sum.name = "add_to";
    sum.op = NULL;
    sum.ins = sum.outs = 1;
    sum.in[0] = number;
    sum.out[0] = to;
    sum.add = 1;
    memset(sum.in_place, 0, sizeof sum.in_place);
    sum.scratch = NONE;
    return graph_add_call(g, at + 1, &sum) != NULL;
}

/* Gradients of parameters are added to what is there; kernels that only add find zeros where nothing is. */
static bool settle_sums(graph *g, int at)
{
    const export_op *op = find_export_op(g->calls[at].name);
    for (int k = 0; k < g->calls[at].outs; k++) {
        call *c = &g->calls[at];
        if (c->out[k] == NONE)
            continue;
        if (root_of(g, c->out[k])->home == VALUE_GRADIENT)
            c->add |= 1u << k;
        if ((c->add >> k & 1u) && !((op->adds | op->only_adds) >> k & 1u) && !add_through_temporary(g, at, k))
            return false;
    }
    return true;
}

static bool take_scratch(graph *g, int at)
{
    const export_op *op = find_export_op(g->calls[at].name);
    size_t count = op->scratch != NULL ? op->scratch(g, &g->calls[at]) : 0;
    if (count == 0)
        return true;
    value v = {.name = "scratch",
               .home = VALUE_ARENA,
               .dtype = MICA_F32,
               .rank = 1,
               .dim = {(mica_index)count},
               .count = count,
               .of = NONE,
               .group = NONE,
               .root = g->value_count};
    int number = graph_add_value(g, &v);
    g->calls[at].scratch = number;
    return number != NONE;
}

bool graph_prepare(graph *g)
{
    for (int n = 0; n < g->call_count; n++) {
        if (find_export_op(g->calls[n].name)->apart)
            memset(g->calls[n].in_place, 0, sizeof g->calls[n].in_place);
        if (!settle_sums(g, n) || !take_scratch(g, n))
            return false;
    }
    return true;
}

/* ---- Values as C ---- */

const char *c_type(mica_dtype dtype)
{
    return dtype == MICA_I32  ? "int32_t"
           : dtype == MICA_U8 ? "uint8_t"
           : dtype == MICA_I8 ? "int8_t"
                              : "float";
}

shape_words shape_of(const value *v)
{
    shape_words words;
    size_t length = (size_t)snprintf(words.text, sizeof words.text, "[");
    for (int k = 0; k < v->rank && length < sizeof words.text; k++)
        length += (size_t)snprintf(words.text + length, sizeof words.text - length, "%s%td",
                                   k > 0 ? ", " : "", v->dim[k]);
    if (length < sizeof words.text)
        snprintf(words.text + length, sizeof words.text - length, "]");
    return words;
}

void put_address(text *out, const graph *g, const value *v)
{
    const value *root = &g->values[v->root];
    bool of_samples = g->samples > 1 && (root->home == VALUE_INPUT || root->output);
    size_t inset = value_inset(root);
    if (root->home == VALUE_CONST || root->home == VALUE_TARGET)
        text_put(out, "%s", root->name);
    else if (v->dtype == MICA_U8)
        text_put(out, "(uint8_t *)(block + %zu)", root->offset);
    else if (v->dtype == MICA_I8)
        text_put(out, inset > 0 ? "(int8_t *)(block + %zu) + %zu" : "(int8_t *)(block + %zu)", root->offset,
                 inset);
    else
        text_put(out, "%s + %zu", v->dtype == MICA_I32 ? "whole" : "block", root->offset + inset);
    if (of_samples)
        text_put(out, " + %zu * sample", root->count);
}

/* Whether a call writes the value that it reads as input i. */
static bool writes_input(const call *c, int i) { return c->op != NULL && (c->op->writes >> i & 1u); }

static void declare(text *out, const emitter *e, const value *v, bool is_const)
{
    const value *root = &e->g->values[v->root];
    if (root == v && v->home == VALUE_CONST)
        return; /* an array of that name */
    if (root == v && v->home == VALUE_TARGET)
        return; /* an argument of that name */
    bool target = root->home == VALUE_TARGET || root->home == VALUE_CONST;
    text_put(out, "%*s%s%s *%s = ", 4 * e->indent, "", is_const || target ? "const " : "", c_type(v->dtype),
             v->name);
    put_address(out, e->g, v);
    text_put(out, "; /* %s", shape_of(v).text);
    if (root->border > 0)
        text_put(out, ", a border of %d around each plane", root->border);
    text_put(out, " */\n");
}

static bool declared_before(const call *c, int i)
{
    for (int other = 0; other < i; other++)
        if (c->in[other] == c->in[i])
            return true;
    return false;
}

static void declare_used(text *out, const emitter *e, const call *c)
{
    for (int k = 0; k < c->outs; k++)
        if (e->used_outs >> k & 1u)
            declare(out, e, out_value(e, k), false);
    for (int i = 0; i < c->ins; i++) {
        bool is_out = false;
        for (int k = 0; k < c->outs; k++)
            is_out = is_out || (c->out[k] == c->in[i] && (e->used_outs >> k & 1u));
        if ((e->used_ins >> i & 1u) && !is_out && !declared_before(c, i))
            declare(out, e, in_value(e, i), !writes_input(c, i));
    }
    if (e->used_scratch && c->scratch != NONE)
        declare(out, e, &e->g->values[c->scratch], false);
    if (e->used_steps && c->steps != NONE)
        declare(out, e, &e->g->values[c->steps], strcmp(c->name, "count_step") != 0);
}

/* "relu_backward" as "relu backward". */
static void put_words(text *out, const char *name)
{
    for (; *name != '\0'; name++)
        text_put(out, "%c", *name == '_' ? ' ' : *name);
}

/* "conv1: convolution: [1, 1, 12, 12] -> [1, 8, 12, 12]" */
static void put_title(emitter *e, const call *c)
{
    const export_op *op = find_export_op(c->name);
    text_put(e->out, "%*s{ /* %s: %s", 4 * e->indent, "", c->layer[0] != '\0' ? c->layer : c->kind,
             c->phase == MICA_PHASE_RECOMPUTE ? "again: " : "");
    if (op->title != NULL)
        text_add(e->out, op->title);
    else
        put_words(e->out, c->name);
    if (c->ins > 0 && c->in[0] != NONE && c->outs > 0 && c->out[0] != NONE && c->phase != MICA_PHASE_BACKWARD)
        text_put(e->out, ": %s -> %s", shape_of(&e->g->values[c->in[0]]).text,
                 shape_of(&e->g->values[c->out[0]]).text);
    text_put(e->out, " */\n");
}

/* Zeros, for a kernel that adds. */
static void emit_clear(emitter *e, int k)
{
    const value *v = root_of(e->g, e->c->out[k]);
    const char *name = out_name(e, k);
    if (v->border > 0)
        emit(e, "memset(%s - %zu, 0, %zu * sizeof *%s);", name, value_inset(v), value_size(e->g, v), name);
    else
        emit(e, "memset(%s, 0, %zu * sizeof *%s);", name, value_size(e->g, v), name);
}

void emit_call(emitter *e, const call *c)
{
    text *out = e->out, body = {0};
    const export_op *op = find_export_op(c->name);
    put_title(e, c);
    e->c = c;
    e->used_ins = e->used_outs = 0;
    e->used_scratch = e->used_steps = false;
    e->indent++;
    e->out = &body;
    for (int k = 0; k < c->outs; k++)
        if (c->out[k] != NONE && (op->only_adds >> k & 1u) && !(c->add >> k & 1u))
            emit_clear(e, k);
    op->emit(e, c);
    e->out = out;
    out->failed = out->failed || body.failed;
    declare_used(out, e, c);
    if (body.bytes != NULL)
        text_add(out, body.bytes);
    text_free(&body);
    e->indent--;
    text_put(out, "%*s}\n", 4 * e->indent, "");
}
