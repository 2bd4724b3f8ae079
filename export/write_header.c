/* NAME.h: what a program calls, and sizes that the preprocessor can check. */
#include "export/write.h"

static void put_sizes(text *out, const graph *g, const export_opts *opts)
{
    capitals name = capitals_of(opts->name);
    const value *x = &g->values[g->input], *y = &g->values[g->output];
    text_put(out, "#define %s_RAM_BYTES    %zu /* the block; the stack comes on top */\n", name.text,
             ram_bytes(g));
    text_put(out, "#define %s_FLASH_BYTES  %zu /* weights and tables; code comes on top */\n", name.text,
             const_bytes(g));
    text_put(out, "#define %s_BATCH        %d\n", name.text, opts->batch * g->samples);
    text_put(out, "#define %s_INPUT_SIZE   %zu /* of all samples: %s each */\n", name.text,
             x->count * (size_t)g->samples, shape_of(x).text);
    text_put(out, "#define %s_OUTPUT_SIZE  %zu /* of all samples: %s each */\n", name.text,
             y->count * (size_t)g->samples, shape_of(y).text);
    if (g->train)
        text_put(out, "#define %s_SAVE_BYTES   %zu\n", name.text, 4 * (g->learned_count + g->kept_count));
    text_put(
        out,
        "\n#ifdef %s_OWN_ARENA\n/* Gives the net its memory: %s_RAM_BYTES, aligned to 4. To be called before anything else. */\n",
        name.text, name.text);
    text_put(out, "void %s_use(void *memory);\n#endif\n\n", opts->name);
}

void write_header(text *out, const graph *g, const export_opts *opts)
{
    capitals name = capitals_of(opts->name);
    text_put(out, "/* %s: ", opts->name);
    text_put_comment(out, opts->source);
    text_put(out, ", as C. Written by mica export %s. */\n", mica_version());
    text_put(
        out,
        "#ifndef %s_H\n#define %s_H\n\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
        name.text, name.text);
    put_sizes(out, g, opts);
    if (needs_init(g))
        text_put(
            out,
            "/* Sets what is learned or kept to its initial state. To be called before any run or step. */\nvoid %s_init(void);\n\n",
            opts->name);
    text_put(out, "/* Write the inputs here before each run or step, which overwrites them. */\n");
    for (int i = 0; i < g->value_count; i++) {
        const value *v = &g->values[i];
        if (v->home == VALUE_INPUT && v->root == i)
            text_put(out, "%s *%s_input%s%s(void); /* %s%s */\n", c_type(v->dtype), opts->name,
                     i == g->input ? "" : "_", i == g->input ? "" : v->name, shape_of(v).text,
                     g->samples > 1 ? " for each sample" : "");
    }
    write_normalize(out, g, opts);
    text_put(out, "void %s_run(void);\n", opts->name);
    text_put(out, "/* Valid after a run%s. */\nconst %s *%s_output(void); /* %s%s */\n",
             g->train ? ", not after a training step" : "", c_type(g->values[g->output].dtype), opts->name,
             shape_of(&g->values[g->output]).text, g->samples > 1 ? " for each sample" : "");
    write_output_meaning(out, g, opts);
    if (g->train) {
        text_put(
            out,
            "\n/* One step with this learning rate; returns the loss from before the update. */\nfloat %s_train_step(",
            opts->name);
        put_targets(out, g);
        text_put(
            out,
            "float rate);\n\n/* What was learned: %s_SAVE_BYTES. Loading it forgets how it was moving. */\n",
            name.text);
        text_put(out, "void %s_save(void *to);\nvoid %s_load(const void *from);\n", opts->name, opts->name);
    }
    put_int8_header(out, g, opts);
    text_put(out, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}
