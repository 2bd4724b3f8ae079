/* NAME.md: the plan, for people. */
#include "export/write.h"

static const char *home_words(value_home home)
{
    static const char *const words[] = {"flash", "learned", "gradient or velocity", "kept", "arena",
                                        "input", "argument"};
    return words[home];
}

void write_page(text *out, const graph *g, const export_opts *opts)
{
    text_put(out, "# %s\n\n%s%s. Written by mica export %s.\n\n", opts->name, opts->source,
             g->train ? ", with training" : "", mica_version());
    text_put(
        out,
        "| memory | bytes |\n|---|---:|\n| weights and tables, const | %zu |\n| RAM, without the stack | %zu |\n",
        const_bytes(g), ram_bytes(g));
    if (g->learned_count > 0)
        text_put(
            out,
            "| of it learned | %zu |\n| gradients or velocities | %zu |\n| other state of the optimizer | %zu |\n",
            4 * g->learned_count, 4 * g->learned_count, 4 * g->learned_count * g->states);
    text_put(out, "| kept from step to step | %zu |\n| arena | %zu |\n\n## Calls\n\n", 4 * g->kept_count,
             4 * (g->arena_count + g->whole_count));
    text_put(out, "| | phase | layer | operation | makes |\n|---:|---|---|---|---|\n");
    for (int n = 0; n < g->call_count; n++) {
        const call *c = &g->calls[n];
        text_put(out, "| %d | %s | %s | %s |", n, mica_phase_text(c->phase), c->layer, c->name);
        for (int k = 0; k < c->outs; k++)
            if (c->out[k] != NONE)
                text_put(out, " %s %s", g->values[c->out[k]].name, shape_of(&g->values[c->out[k]]).text);
        text_put(out, " |\n");
    }
    text_put(
        out,
        "\n## Values in RAM\n\nOffsets and sizes in floats; calls from the first that uses it to the last.\n\n");
    text_put(out,
             "| value | home | shape | offset | size | from | to |\n|---|---|---|---:|---:|---:|---:|\n");
    for (int i = 0; i < g->value_count; i++) {
        const value *v = &g->values[i];
        if (v->root != i || v->home == VALUE_CONST || v->home == VALUE_TARGET || v->first == NONE)
            continue;
        text_put(out, "| %s | %s | %s | %zu | %zu | %d | %d |\n", v->name, home_words(v->home),
                 shape_of(v).text, v->offset, value_size(g, v), v->first, v->last);
    }
}
