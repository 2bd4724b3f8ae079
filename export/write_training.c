/* NAME_train_step: forward, losses, backward, update; and saving what was learned. */
#include "export/write.h"

void put_targets(text *out, const graph *g)
{
    bool first = true;
    for (int i = 0; i < g->value_count; i++) {
        const value *v = &g->values[i];
        if (v->home != VALUE_TARGET || v->root != i)
            continue;
        text_put(out, "%sconst %s *%s", first ? "" : ", ", c_type(v->dtype), v->name);
        first = false;
    }
}

/* ---- The update ---- */

/* Without momentum gradients begin as zeros. With it, as the velocities of the last step, which that has slowed
 * down. */
static void put_begin(text *out, const graph *g, const mica_optimizer *o)
{
    if (o->kind != MICA_SGD || o->momentum == 0.0f)
        text_put(out, "    memset(block + %zu, 0, %zu * sizeof *block);\n", g->learned_count,
                 g->learned_count);
}

/* SGD: w -= rate v, then v slows down for the next step, whose gradients are added to it. What decays is part of the
 * gradient. */
static void put_sgd(text *out, const graph *g, const mica_optimizer *o)
{
    size_t n = g->learned_count;
    text_put(out, "    for (int i = 0; i < %zu; i++) { /* w -= rate v%s */\n        float v = block[%zu + i]",
             n, o->momentum != 0.0f ? "; the next gradients are added to what is left of v" : "", n);
    if (o->weight_decay != 0.0f)
        text_put(out, " + %s * block[i]", float_text((double)o->weight_decay));
    text_put(out, ";\n        block[i] -= rate * v;\n");
    if (o->momentum != 0.0f)
        text_put(out, "        block[%zu + i] = %s * v;\n", n, float_text((double)o->momentum));
    text_put(out, "    }\n");
}

static void put_adam_call(text *out, const graph *g, const mica_optimizer *o, size_t begin, size_t count,
                          bool decays)
{
    size_t n = g->learned_count;
    text_put(
        out,
        "    adam(block + %zu, block + %zu, block + %zu, block + %zu, %zu, rate / way[0], 1.0f / sqrt_f(way[1]),\n         ",
        begin, n + begin, 2 * n + begin, 3 * n + begin, count);
    text_put_float(out, o->beta1 != 0.0f ? o->beta1 : 0.9f);
    text_put(out, ", ");
    text_put_float(out, o->beta2 != 0.0f ? o->beta2 : 0.999f);
    text_put(out, ", ");
    text_put_float(out, o->eps != 0.0f ? o->eps : 1e-8f);
    text_put(out, ", ");
    text_put_float(out, decays && o->kind == MICA_ADAM ? o->weight_decay : 0.0f);
    if (decays && o->kind == MICA_ADAMW && o->weight_decay != 0.0f) {
        text_put(out, ", 1.0f - rate * ");
        text_put_float(out, o->weight_decay);
        text_put(out, ");\n");
    } else
        text_put(out, ", 1.0f);\n");
}

/* Adam: runs of parameters that decay alike; the library's AdamW leaves those of rank 0 and 1 alone. */
static void put_adam(text *out, const graph *g, const mica_optimizer *o)
{
    size_t begin = 0, end = 0;
    bool before = true;
    double beta[2] = {(double)(o->beta1 != 0.0f ? o->beta1 : 0.9f),
                      (double)(o->beta2 != 0.0f ? o->beta2 : 0.999f)};
    text_put(out, "    float *way = block + %zu; /* 1 - beta^t: how far the means have come from zero */\n",
             4 * g->learned_count);
    for (int k = 0; k < 2; k++)
        text_put(out, "    way[%d] += %s * (1.0f - way[%d]);\n", k, float_text(1.0 - beta[k]), k);
    for (int i = 0; i < g->value_count; i++) {
        const value *v = &g->values[i];
        if (v->home != VALUE_LEARNED || v->root != i)
            continue;
        bool decays = o->weight_decay != 0.0f && (o->kind != MICA_ADAMW || o->decay_all || v->rank > 1);
        if (end > begin && decays != before) {
            put_adam_call(out, g, o, begin, end - begin, before);
            begin = end;
        }
        before = decays;
        end += v->count;
    }
    if (end > begin)
        put_adam_call(out, g, o, begin, end - begin, before);
}

/* ---- The step ---- */

static void put_save(text *out, const graph *g, const export_opts *opts)
{
    size_t n = g->learned_count, kept = g->kept_count, at = g->block_count - g->arena_count - kept;
    text_put(out, "\nvoid %s_save(void *to)\n{\n    memcpy(to, block, %zu * sizeof *block);\n", opts->name,
             n);
    if (kept > 0)
        text_put(out, "    memcpy((char *)to + %zu, block + %zu, %zu * sizeof *block);\n", 4 * n, at, kept);
    text_put(out, "}\n\nvoid %s_load(const void *from)\n{\n    memcpy(block, from, %zu * sizeof *block);\n",
             opts->name, n);
    text_put(out, "    memset(block + %zu, 0, %zu * sizeof *block);\n", n, at - n);
    if (kept > 0)
        text_put(out, "    memcpy(block + %zu, (const char *)from + %zu, %zu * sizeof *block);\n", at, 4 * n,
                 kept);
    text_put(out, "}\n");
}

/* Over the samples, and their targets. */
static void put_loop(text *out, const graph *g)
{
    text_put(out, "    for (int sample = 0; sample < %d; sample++", g->samples);
    for (int i = 0; i < g->value_count; i++)
        if (g->values[i].home == VALUE_TARGET && g->values[i].root == i)
            text_put(out, ", %s += %zu", g->values[i].name, g->values[i].count);
    text_put(out, ") {\n");
}

void write_training(text *out, emitter *e, const export_opts *opts)
{
    const graph *g = e->g;
    bool sgd = opts->optimizer->kind == MICA_SGD, samples = g->samples > 1;
    text_put(out, "\nfloat %s_train_step(", opts->name);
    put_targets(out, g);
    text_put(out, ", float rate)\n{\n    float loss = 0.0f;\n");
    put_begin(out, g, opts->optimizer);
    if (samples)
        put_loop(out, g);
    put_forward_call(out, e, true, samples ? 2 : 1);
    e->out = out;
    e->indent = samples ? 2 : 1;
    e->mode = MODE_TRAIN;
    for (int n = g->run_count; n < g->call_count; n++)
        emit_call(e, &g->calls[n]);
    if (samples)
        text_put(out, "    }\n");
    if (sgd)
        put_sgd(out, g, opts->optimizer);
    else {
        use_kernel(e, "adam");
        put_adam(out, g, opts->optimizer);
    }
    text_put(out, "    return loss;\n}\n");
    put_save(out, g, opts);
}
