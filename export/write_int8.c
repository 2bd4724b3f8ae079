/* What NAME.h and NAME_test.c say of a net whose caller writes or reads bytes. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "export/write.h"

#define RUNS      8 /* of the test */
#define MOST_EACH 4 /* convolutions that get code of their own */

/* "INPUT" of the first input, "INPUT_X" of another, "OUTPUT". */
static capitals words_of(const graph *g, int v)
{
    char words[80];
    snprintf(words, sizeof words, "%s%s%s", v == g->output ? "output" : "input",
             v == g->output || v == g->input ? "" : "_",
             v == g->output || v == g->input ? "" : g->values[v].name);
    return capitals_of(words);
}

static void put_quantize(text *out, const graph *g, const export_opts *opts, int i)
{
    capitals name = capitals_of(opts->name), input = words_of(g, i);
    char lower[80];
    size_t length = strlen(input.text);
    for (size_t k = 0; k <= length; k++)
        lower[k] = (char)tolower((unsigned char)input.text[k]);
    if (i != g->input)
        snprintf(lower, sizeof lower, "input_%.60s", g->values[i].name);
    text_put(out,
             "\n/* Quantizes floats into %s_%s(). */\n"
             "static inline void %s_quantize_%s(const float *x)\n{\n"
             "    int8_t *y = %s_%s();\n"
             "    for (int i = 0; i < %zu; i++) {\n"
             "        float v = x[i] * (1.0f / %s_%s_SCALE), rounded;\n"
             "        v = v > -127.0f ? v < 127.0f ? v : 127.0f : -127.0f;\n"
             "        rounded = v + 12582912.0f; /* half to even */\n"
             "        y[i] = (int8_t)(rounded - 12582912.0f);\n    }\n}\n",
             opts->name, lower, opts->name, lower, opts->name, lower, g->values[i].count * (size_t)g->samples,
             name.text, input.text);
}

void put_int8_header(text *out, const graph *g, const export_opts *opts)
{
    capitals name = capitals_of(opts->name);
    bool first = true;
    for (int i = 0; i < g->value_count; i++) {
        const value *v = &g->values[i];
        if (!(v->scale > 0.0f))
            continue;
        text_put(out, "%s", first ? "\n/* A byte q stands for SCALE * (q - ZERO); -127 to 127. */\n" : "");
        first = false;
        text_put(out, "#define %s_%s_SCALE %s\n#define %s_%s_ZERO  0\n", name.text, words_of(g, i).text,
                 float_text((double)v->scale), name.text, words_of(g, i).text);
    }
    for (int i = 0; i < g->value_count; i++)
        if (g->values[i].scale > 0.0f && i != g->output)
            put_quantize(out, g, opts, i);
    const value *y = &g->values[g->output];
    if (y->scale > 0.0f)
        text_put(out,
                 "\n/* %s_output() as floats. */\n"
                 "static inline void %s_dequantize_output(float *y)\n{\n"
                 "    for (int i = 0; i < %zu; i++)\n"
                 "        y[i] = (float)%s_output()[i] * %s_OUTPUT_SCALE;\n}\n",
                 opts->name, opts->name, y->count * (size_t)g->samples, opts->name, name.text);
}

void put_int8_kernels(text *out, const graph *g)
{
    int count = 0;
    for (int n = 0; n < g->call_count; n++)
        count += strcmp(g->calls[n].name, "int8_conv_plane") == 0;
    if (count > MOST_EACH)
        text_put(out, "#define INT8_EACH /* convolutions share their code: there are %d */\n\n", count);
}

/* ---- The test ---- */

bool put_int8_expected(text *out, const graph *g, mica_net *check, const export_opts *opts, test_fill *fill)
{
    size_t count = g->values[g->output].count * (size_t)g->samples;
    generator r = {1};
    text_put(out, "/* What the library made of %d inputs. */\nstatic const int8_t expected[%zu] = {", RUNS,
             RUNS * count);
    for (int run = 0; run < RUNS; run++) {
        mica_tensor y;
        if (!fill(g, check, &r) || mica_net_forward(check) != MICA_OK ||
            mica_net_tensor(check, &y, opts->output) != MICA_OK || y.dtype != MICA_F32 ||
            mica_tensor_count(&y) != count)
            return false;
        for (size_t i = 0; i < count; i++)
            text_put(out, "%s%d,", i % 20 == 0 ? "\n    " : " ",
                     (int)lrintf(((const float *)y.data)[i] / g->values[g->output].scale));
    }
    text_put(out, "\n};\n\n");
    return true;
}

void put_int8_main(text *out, const graph *g, const export_opts *opts)
{
    capitals name = capitals_of(opts->name);
    size_t count = g->values[g->output].count * (size_t)g->samples;
    text_put(out, "int main(void)\n{\n    int wrong = 0;\n#ifdef %s_OWN_ARENA\n    %s_use(memory);\n#endif\n",
             name.text, opts->name);
    if (needs_init(g))
        text_put(out, "    %s_init();\n", opts->name);
    text_put(out, "    for (int run = 0; run < %d; run++) {\n        fill();\n        %s_run();\n", RUNS,
             opts->name);
    text_put(out,
             "        for (int i = 0; i < %zu; i++)\n"
             "            wrong += %s_output()[i] != expected[%zu * run + i];\n    }\n",
             count, opts->name, count);
    text_put(out, "    printf(\"%s: %%d of %zu bytes are wrong\\n\", wrong);\n    return wrong != 0;\n}\n",
             opts->name, RUNS * count);
}
