/* NAME.c: kernels, weights, memory, and the calls of a run and of a training step. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "export/write.h"

capitals capitals_of(const char *name)
{
    capitals c;
    size_t i = 0;
    for (; name[i] != '\0' && i + 1 < sizeof c.text; i++)
        c.text[i] = (char)toupper((unsigned char)name[i]);
    c.text[i] = '\0';
    return c;
}

bool has_kept(const graph *g)
{
    for (int i = 0; i < g->value_count; i++)
        if (g->values[i].home == VALUE_KEPT)
            return true;
    return false;
}

bool needs_init(const graph *g) { return g->train || has_kept(g); }

size_t ram_bytes(const graph *g) { return 4 * (g->block_count + g->whole_count); }

/* ---- The top ---- */

/* The last call of a layer, from number n on. */
static int end_of_layer(const graph *g, int n)
{
    while (n + 1 < g->run_count && strcmp(g->calls[n + 1].layer, g->calls[n].layer) == 0)
        n++;
    return n;
}

static void put_layers(text *out, const graph *g)
{
    for (int n = 0; n < g->run_count; n++) {
        const call *first = &g->calls[n];
        n = end_of_layer(g, n);
        const call *last = &g->calls[n];
        text_put(out, " *     %-16s %-12s %s -> %s\n", first->layer, first->kind,
                 first->ins > 0 && first->in[0] != NONE ? shape_of(&g->values[first->in[0]]).text : "",
                 last->outs > 0 && last->out[0] != NONE ? shape_of(&g->values[last->out[0]]).text : "");
    }
}

static void put_top(text *out, const graph *g, const export_opts *opts)
{
    text_put(out, "/* %s: ", opts->name);
    text_put_comment(out, opts->source);
    text_put(out, "%s, written by mica export %s.\n *\n", g->train ? ", with training" : "", mica_version());
    put_layers(out, g);
    text_put(out, " *\n * All memory is one block of %zu bytes%s. %s.h says how to use it. */\n",
             ram_bytes(g), g->whole_count > 0 ? ", and the integers behind it" : "", opts->name);
    text_put(out, "#include \"%s.h\"\n\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n\n",
             opts->name);
}

static void put_memory(text *out, const graph *g, const export_opts *opts)
{
    capitals name = capitals_of(opts->name);
    size_t learned = g->learned_count;
    text_put(out, "/* ---- Memory ----\n *\n");
    if (learned > 0) {
        text_put(out, " *     %8d  learned, %zu floats\n", 0, learned);
        text_put(out, " *     %8zu  %s\n", learned,
                 opts->optimizer->kind == MICA_SGD && opts->optimizer->momentum != 0.0f
                     ? "velocities, which gradients are added to"
                     : "gradients");
        if (g->states > 0)
            text_put(out, " *     %8zu  the optimizer's means, and the count of steps\n", 2 * learned);
    }
    if (g->kept_count > 0)
        text_put(out, " *     %8zu  kept from step to step\n",
                 g->block_count - g->arena_count - g->kept_count);
    text_put(out, " *     %8zu  all else, by lifetime: %zu floats */\n", g->block_count - g->arena_count,
             g->arena_count);
    text_put(out, "#ifdef %s_OWN_ARENA\nstatic float *block;\n", name.text);
    if (g->whole_count > 0)
        text_put(out, "static int32_t *whole;\n");
    text_put(out, "\nvoid %s_use(void *memory)\n{\n    block = memory;\n", opts->name);
    if (g->whole_count > 0)
        text_put(out, "    whole = (int32_t *)memory + %zu;\n", g->block_count);
    text_put(out, "}\n#else\nstatic float block[%zu];\n", g->block_count > 0 ? g->block_count : 1);
    if (g->whole_count > 0)
        text_put(out, "static int32_t whole[%zu];\n", g->whole_count);
    text_put(out, "#endif\n\n");
}

/* ---- The run ---- */

static bool has_modes(const graph *g)
{
    for (int n = 0; n < g->run_count; n++)
        if (find_export_op(g->calls[n].name)->modes)
            return g->train;
    return false;
}

void put_forward_call(text *out, const emitter *e, bool training, int indent)
{
    bool modes = has_modes(e->g);
    text_put(out, "%*sforward(%s%s%s);\n", 4 * indent, "", e->g->samples > 1 ? "sample" : "",
             e->g->samples > 1 && modes ? ", " : "", modes ? training ? "1" : "0" : "");
}

static void emit_in_modes(emitter *e, const call *c)
{
    if (!e->g->train || !find_export_op(c->name)->modes) {
        e->mode = MODE_RUN;
        emit_call(e, c);
        return;
    }
    emit(e, "if (training) {");
    e->indent++;
    e->mode = MODE_TRAIN;
    emit_call(e, c);
    e->indent--;
    emit(e, "} else {");
    e->indent++;
    e->mode = MODE_RUN;
    emit_call(e, c);
    e->indent--;
    emit(e, "}");
}

void write_forward(text *out, emitter *e)
{
    const graph *g = e->g;
    bool modes = has_modes(g), samples = g->samples > 1;
    text_put(out, "static void forward(%s%s%s)\n{\n", samples ? "int sample" : "",
             samples && modes ? ", " : "",
             modes     ? "int training"
             : samples ? ""
                       : "void");
    e->out = out;
    e->indent = 1;
    for (int n = 0; n < g->run_count; n++)
        emit_in_modes(e, &g->calls[n]);
    text_put(out, "}\n\n");
}

static void put_pointer(text *out, const graph *g, const value *v, const char *signature)
{
    text_put(out, "%s { return ", signature);
    value whole = *v;
    graph first = *g; /* of the first sample */
    first.samples = 1;
    put_address(out, &first, &whole);
    text_put(out, "; }\n");
}

static void write_interface(text *out, emitter *e, const export_opts *opts)
{
    const graph *g = e->g;
    char signature[192];
    for (int i = 0; i < g->value_count; i++) {
        const value *v = &g->values[i];
        if (v->home != VALUE_INPUT || v->root != i)
            continue;
        snprintf(signature, sizeof signature, "%s *%s_input%s%s(void)", c_type(v->dtype), opts->name,
                 i == g->input ? "" : "_", i == g->input ? "" : v->name);
        put_pointer(out, g, v, signature);
    }
    const value *y = &g->values[g->output];
    snprintf(signature, sizeof signature, "const %s *%s_output(void)", c_type(y->dtype), opts->name);
    put_pointer(out, g, y, signature);
    text_put(out, "\nvoid %s_run(void)\n{\n", opts->name);
    if (g->samples > 1)
        text_put(out, "    for (int sample = 0; sample < %d; sample++)\n    ", g->samples);
    put_forward_call(out, e, false, 1);
    text_put(out, "}\n");
}

bool write_source(text *out, emitter *e, const export_opts *opts, text *why)
{
    const graph *g = e->g;
    text body = {0};
    const char *missing = NULL;
    put_memory(&body, g, opts);
    text_put(&body, "/* ---- The net, a block for each call ---- */\n\n");
    write_forward(&body, e);
    write_interface(&body, e, opts);
    if (g->train)
        write_training(&body, e, opts);
    if (needs_init(g))
        write_start(&body, g, opts);
    put_top(out, g, opts);
    if (e->kernel_count > 0)
        text_put(out, "/* ---- Kernels ---- */\n\n");
    put_int8_kernels(out, g);
    bool found = put_kernels(out, e, &missing);
    if (!found)
        text_put(why, "  there is no kernel \"%s\"\n", missing);
    write_weights(out, g);
    text_add(out, body.bytes != NULL ? body.bytes : "");
    bool done = found && !body.failed && !out->failed;
    text_free(&body);
    return done;
}
