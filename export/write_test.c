/* NAME_test.c: inputs from a generator that the library's net was given too, and what it made of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/write.h"

#define MOST_STEPS 256

/* ---- The same numbers on both sides ---- */

static uint32_t draw(generator *r)
{
    r->state = r->state * 1664525u + 1013904223u;
    return r->state >> 8;
}

/* Whole numbers are below this: rows of the table that they are indices of, classes. */
static int bound_of(const graph *g, int v)
{
    int bound = 2;
    for (int n = 0; n < g->call_count; n++) {
        const call *c = &g->calls[n];
        for (int i = 0; i < c->ins; i++) {
            if (c->in[i] == NONE || g->values[c->in[i]].root != v)
                continue;
            bool loss = c->op != NULL && (c->op->flags & MICA_OP_LOSS);
            for (int other = 0; other < c->ins; other++) {
                const value *table = c->in[other] != NONE ? &g->values[c->in[other]] : NULL;
                if (table == NULL || table->dtype != MICA_F32 || table->rank == 0)
                    continue;
                if (loss ? other == 0 : table->home == VALUE_CONST || table->home == VALUE_LEARNED)
                    return (int)table->dim[loss ? table->rank - 1 : 0];
            }
        }
    }
    return bound;
}

static bool is_filled(const graph *g, int v, value_home home)
{
    return g->values[v].home == home && g->values[v].root == v;
}

static size_t filled_count(const graph *g, int v) { return g->values[v].count * (size_t)g->samples; }

/* The net's value that it is, or whose bytes it holds. */
static mica_value source_of(const value *v) { return v->scale > 0.0f ? v->seen_as : v->source; }

/* Fills the library's inputs, in the order of the test. */
static bool fill(const graph *g, mica_net *check, generator *r)
{
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < g->value_count; i++) {
            if (!is_filled(g, i, pass == 0 ? VALUE_INPUT : VALUE_TARGET))
                continue;
            mica_program_value v;
            mica_tensor t;
            float scale = g->values[i].scale;
            if (mica_net_program_value(g->net, &v, source_of(&g->values[i])) != MICA_OK ||
                mica_net_tensor(check, &t, v.name) != MICA_OK || mica_tensor_count(&t) != filled_count(g, i))
                return false;
            uint32_t bound = (uint32_t)bound_of(g, i);
            for (size_t k = 0; k < filled_count(g, i); k++) {
                uint32_t bits = draw(r);
                if (t.dtype == MICA_I32)
                    ((int32_t *)t.data)[k] = (int32_t)(bits % bound);
                else if (t.dtype == MICA_I64)
                    ((int64_t *)t.data)[k] = (int64_t)(bits % bound);
                else if (t.dtype == MICA_F32 && scale > 0.0f)
                    ((float *)t.data)[k] = (float)((int)(bits % 255) - 127) * scale;
                else if (t.dtype == MICA_F32)
                    ((float *)t.data)[k] = (float)bits / 8388608.0f - (pass == 0 ? 1.0f : 0.0f);
                else
                    return false;
            }
        }
    return true;
}

static void put_fill(text *out, const graph *g, const export_opts *opts, int i)
{
    const value *v = &g->values[i];
    size_t count = filled_count(g, i);
    bool input = v->home == VALUE_INPUT;
    char place[160];
    if (input)
        snprintf(place, sizeof place, "%s_input%s%s()", opts->name, i == g->input ? "" : "_",
                 i == g->input ? "" : v->name);
    else
        snprintf(place, sizeof place, "%s", v->name);
    if (v->dtype == MICA_I32)
        text_put(out, "    for (int i = 0; i < %zu; i++)\n        %s[i] = (int32_t)(draw() %% %d);\n", count,
                 place, bound_of(g, i));
    else if (v->dtype == MICA_I8)
        text_put(out,
                 "    for (int i = 0; i < %zu; i++)\n        %s[i] = (int8_t)((int)(draw() %% 255) - 127);\n",
                 count, place);
    else
        text_put(out, "    for (int i = 0; i < %zu; i++)\n        %s[i] = (float)draw() / 8388608.0f - %s;\n",
                 count, place, input ? "1.0f" : "0.0f");
}

/* The learning rate of the test. */
static float rate_of(const export_opts *opts) { return opts->optimizer->kind == MICA_SGD ? 0.01f : 0.001f; }

/* ---- The test ---- */

static void put_top(text *out, const graph *g, const export_opts *opts)
{
    text_put(
        out,
        "/* Checks that %s.c computes what the net did in Mica. Written by mica export. */\n#include <stdio.h>\n\n#include \"%s.h\"\n\n",
        opts->name, opts->name);
    capitals name = capitals_of(opts->name);
    text_put(out, "#ifdef %s_OWN_ARENA\nstatic float memory[%s_RAM_BYTES / 4];\n#endif\n\n", name.text,
             name.text);
    text_put(out, "static uint32_t state = 1;\n\nstatic uint32_t draw(void)\n{\n");
    text_put(out, "    state = state * 1664525u + 1013904223u;\n    return state >> 8;\n}\n\n");
    for (int i = 0; i < g->value_count; i++)
        if (is_filled(g, i, VALUE_TARGET))
            text_put(out, "static %s %s[%zu];\n", c_type(g->values[i].dtype), g->values[i].name,
                     filled_count(g, i));
    text_put(out, "static void fill(void)\n{\n");
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < g->value_count; i++)
            if (is_filled(g, i, pass == 0 ? VALUE_INPUT : VALUE_TARGET))
                put_fill(out, g, opts, i);
    text_put(out, "}\n\n");
}

static void put_expected(text *out, const float *expected, size_t count)
{
    text_put(out, "static const float expected[%zu] = {", count);
    for (size_t i = 0; i < count; i++) {
        text_put(out, i % 8 == 0 ? "\n    " : " ");
        text_put_float(out, expected[i]);
        text_put(out, ",");
    }
    text_put(out, "\n};\n\n");
}

/* Whether floats that it has computed become bytes: one that lies on an edge may fall on the other side of it. */
static bool rounds_to_bytes(const graph *g)
{
    for (int i = 0; i < g->call_count; i++)
        for (int k = 0; k < i && strcmp(g->calls[i].name, "affine_quantize") == 0; k++)
            if (g->calls[k].out[0] == g->calls[i].in[0])
                return true;
    return false;
}

static void put_main(text *out, const graph *g, const export_opts *opts, size_t count, float largest)
{
    capitals name = capitals_of(opts->name);
    text_put(out, "int main(void)\n{\n    float worst = 0.0f, largest = ");
    text_put_float(out, largest);
    text_put(out, ";\n#ifdef %s_OWN_ARENA\n    %s_use(memory);\n#endif\n", name.text, opts->name);
    if (needs_init(g))
        text_put(out, "    %s_init();\n", opts->name);
    if (g->train) {
        text_put(out,
                 "    for (int i = 0; i < %zu; i++) {\n        fill();\n        float d = %s_train_step(",
                 count, opts->name);
        for (int i = 0; i < g->value_count; i++)
            if (is_filled(g, i, VALUE_TARGET))
                text_put(out, "%s, ", g->values[i].name);
        text_put(out, "%s) - expected[i];\n", float_text((double)rate_of(opts)));
    } else {
        text_put(out, "    fill();\n    %s_run();\n    for (int i = 0; i < %zu; i++) {\n", opts->name, count);
        text_put(out, "        float d = (float)%s_output()[i] - expected[i];\n", opts->name);
    }
    text_put(
        out,
        "        d = d < 0.0f ? -d : d;\n        if (!(d <= worst) && worst == worst) /* a NaN, too, and it stays */\n            worst = d;\n    }\n");
    text_put(out, "    printf(\"%s: off by %%g of %%g at most\\n\", (double)worst, (double)largest);\n",
             opts->name);
    text_put(out, "    return worst <= %s * largest ? 0 : 1;\n}\n", rounds_to_bytes(g) ? "5e-2f" : "1e-5f");
}

/* ---- What the library makes of the same numbers ---- */

/* Moves each number by a few roundings. */
static void nudge(const mica_tensor *t)
{
    for (size_t k = 0; k < mica_tensor_count(t); k++)
        ((float *)t->data)[k] *= k % 3 == 0 ? 1.0f + 0x1p-21f : 1.0f - 0x1p-22f;
}

/* Copies one sample of the inputs from the net of all of them to that which was exported; `nudged`: in the last bit
 * off. */
static bool copy_sample(const graph *g, mica_net *check, int sample, bool nudged)
{
    for (int i = 0; i < g->value_count; i++) {
        if (!is_filled(g, i, VALUE_INPUT) && !is_filled(g, i, VALUE_TARGET))
            continue;
        mica_program_value v;
        mica_tensor from, to;
        if (mica_net_program_value(g->net, &v, source_of(&g->values[i])) != MICA_OK ||
            mica_net_tensor(check, &from, v.name) != MICA_OK ||
            mica_net_tensor(g->net, &to, v.name) != MICA_OK)
            return false;
        size_t bytes = mica_tensor_bytes(&to);
        memcpy(to.data, (const char *)from.data + (size_t)sample * bytes, bytes);
        if (nudged && to.dtype == MICA_F32)
            nudge(&to);
    }
    return true;
}

/* The same step with inputs that are a bit off, or sums in another order: its loss. */
static bool step_nearly(const graph *g, mica_net *check, const export_opts *opts, float *loss)
{
    *loss = 0.0f;
    for (int sample = 0; sample < g->samples; sample++) {
        if (!copy_sample(g, check, sample, g->samples == 1) ||
            mica_train_accumulate(g->net, sample, g->samples) != MICA_OK)
            return false;
        *loss += g->share * mica_net_loss(g->net);
    }
    return mica_train_update(g->net, rate_of(opts)) == MICA_OK;
}

/* Whether samples that are run one by one draw other numbers than all of them at once. */
static bool draws_apart(const graph *g)
{
    for (int n = 0; n < g->call_count; n++)
        if (g->samples > 1 && g->calls[n].op != NULL && (g->calls[n].op->flags & MICA_OP_RANDOM))
            return true;
    return false;
}

/* Losses of some steps. Where the library's own losses part, by half of what the test allows, from those of the same
 * net a few last bits off, nothing can be compared any more (a relu went the other way); half of the steps until then
 * are kept, as that may come sooner with other bits. */
static bool run_training(const graph *g, mica_net *check, const export_opts *opts, float *losses,
                         size_t *count)
{
    generator r = {1};
    mica_tensor weights, gradients;
    if (mica_net_flat(g->net, &weights, &gradients) != MICA_OK)
        return false;
    nudge(&weights);
    for (*count = 0; *count < (size_t)opts->steps; ++*count) {
        float nearly;
        if (!fill(g, check, &r) || !step_nearly(g, check, opts, &nearly) ||
            mica_train_step(check, rate_of(opts)) != MICA_OK)
            return false;
        losses[*count] = mica_net_loss(check);
        if (*count > 0 && !draws_apart(g) && fabsf(losses[*count] - nearly) > 5e-6f * fabsf(losses[0])) {
            *count = *count / 2 + 1;
            return true;
        }
    }
    return true;
}

/* Labels are compared as floats, too. y's elements are contiguous. False: not enough memory, or of another type. */
static bool put_output(text *out, const mica_tensor *y, float *largest)
{
    size_t count = mica_tensor_count(y);
    float *floats = malloc((count + 1) * sizeof *floats);
    bool known = y->dtype == MICA_F32 || y->dtype == MICA_I32 || y->dtype == MICA_I64;
    for (size_t i = 0; floats != NULL && known && i < count; i++) {
        floats[i] = y->dtype == MICA_F32   ? ((const float *)y->data)[i]
                    : y->dtype == MICA_I32 ? (float)((const int32_t *)y->data)[i]
                                           : (float)((const int64_t *)y->data)[i];
        *largest = fabsf(floats[i]) > *largest ? fabsf(floats[i]) : *largest;
    }
    if (floats != NULL && known)
        put_expected(out, floats, count);
    known = known && floats != NULL;
    free(floats);
    return known;
}

static bool run_library(text *out, const graph *g, mica_net *check, const export_opts *opts, float *largest,
                        size_t *count)
{
    generator r = {1};
    float losses[MOST_STEPS];
    mica_tensor y = {0};
    if (g->train && !run_training(g, check, opts, losses, count))
        return false;
    *largest = 0.0f;
    if (!g->train) {
        if (!fill(g, check, &r) || mica_net_forward(check) != MICA_OK ||
            mica_net_tensor(check, &y, opts->output) != MICA_OK)
            return false;
        *count = mica_tensor_count(&y);
        return put_output(out, &y, largest);
    }
    for (size_t i = 0; i < *count; i++)
        *largest = fabsf(losses[i]) > *largest ? fabsf(losses[i]) : *largest;
    put_expected(out, losses, *count);
    return true;
}

bool write_test(text *out, const graph *g, mica_net *check, const export_opts *opts, text *why)
{
    float largest = 0.0f;
    size_t count = 0;
    put_top(out, g, opts);
    bool bytes = g->values[g->output].scale > 0.0f;
    if (bytes ? !put_int8_expected(out, g, check, opts, fill)
              : !run_library(out, g, check, opts, &largest, &count)) {
        const char *error = mica_error(mica_net_context(check));
        text_put(why, "  the library could not run the test: %s\n",
                 error[0] != '\0' ? error : "its output is neither of floats nor of i32 or i64");
        return false;
    }
    if (bytes)
        put_int8_main(out, g, opts);
    else
        put_main(out, g, opts, count, largest > 0.0f ? largest : 1.0f);
    return !out->failed;
}
