/* Nets of bytes, exported for processors without and with their instructions: the same bits as the library. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mica/int8.h>
#include <mica/netfile.h>

#include "export/compiled.h"

enum { RUNS = 3, SEEDS = 8, SEEN = 8 };

static const struct {
    const char *name, *lines;
} nets[] = {
    {"cnn",
     "input x [1, 12, 12]\nconv 8 3x3 pad=1 relu\nmax_pool 2x2\nconv 16 3x3 pad=1 relu\nmax_pool 2x2\nflatten\n"
     "dense 10 name=y\noutput y\n"},
    {"lenet",
     "input x [1, 20, 20]\nconv 6 5x5 pad=2 relu\nmax_pool 2x2\nconv 8 5x5 relu\nmax_pool 2x2\nflatten\n"
     "dense 20 relu\ndense 10 name=y\noutput y\n"},
    {"depthwise",
     "input x [3, 11, 9]\nconv 8 3x3 stride=2 pad=1 relu6\ndepthwise_conv 3x3 pad=1 relu6\nconv 12 1x1 relu6\n"
     "depthwise_conv 3x3 pad=1 stride=2 relu\nconv 6 1x1\nglobal_avg_pool\ndense 5 name=y\noutput y\n"},
    {"residual",
     "input x [2, 9, 9]\nconv 6 3x3 pad=1 relu\nresidual relu {\n    conv 6 3x3 pad=1 relu\n    conv 6 3x3 pad=1\n}\n"
     "residual {\n    conv 6 1x1\n}\navg_pool 2x2\nflatten\ndense 7 name=y\noutput y\n"},
    {"signal",
     "input x [3, 40]\nconv 6 5 stride=2 relu\nmax_pool 2\nconv 8 3 pad=1 relu\nglobal_avg_pool\ndense 4 name=y\n"
     "output y\n"},
    {"softened", "input x [19]\ndense 13 relu\ndense 6 tanh\ndense 5\nsoftmax name=y\noutput y\n"},
    {"deep",
     "input x [1, 14, 14]\nconv 4 3x3 pad=1 relu\nconv 5 3x3 relu\nconv 6 4x3 relu\nconv 4 3x3 pad=2\nconv 3 2x2 relu\n"
     "max_pool 3x3 stride=2\nconv 6 3x3 pad=1\nmax_pool 2x2\nflatten\ndense 3 name=y\noutput y\n"},
};

/* ---- Random nets ---- */

static unsigned draw(unsigned *state, unsigned bound)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 12) % bound;
}

static void random_net(char *lines, size_t size, unsigned seed)
{
    static const char *const ends[] = {"", "relu", "relu6"};
    unsigned state = seed * 77u + 5u, side = 8 + draw(&state, 6), channels = 1 + draw(&state, 4);
    size_t n = (size_t)snprintf(lines, size, "input x [%u, %u, %u]\n", channels, side, side + 1);
    for (unsigned layers = 1 + draw(&state, 4); layers > 0; layers--) {
        unsigned kernel = 1 + draw(&state, 5), stride = 1 + draw(&state, 5) / 4, pad = draw(&state, kernel);
        unsigned after = side + 2 * pad >= kernel ? (side + 2 * pad - kernel) / stride + 1 : 0;
        const char *end = ends[draw(&state, 3)];
        switch (draw(&state, 4)) {
        case 0:
            n += (size_t)snprintf(lines + n, size - n, "depthwise_conv 3x3 pad=1 %s\n", end);
            break;
        case 1:
            n += (size_t)snprintf(lines + n, size - n, "residual relu {\n    conv %u 3x3 pad=1 %s\n}\n",
                                  channels, end);
            break;
        default:
            if (after < 4)
                break;
            channels = 2 + draw(&state, 7);
            n += (size_t)snprintf(lines + n, size - n, "conv %u %ux%u pad=%u stride=%u %s\n", channels,
                                  kernel, kernel, pad, stride, end);
            side = after;
        }
        if (side >= 6 && draw(&state, 2)) {
            n += (size_t)snprintf(lines + n, size - n, "%s\n",
                                  draw(&state, 4) ? "max_pool 2x2" : "avg_pool 2x2");
            side /= 2;
        }
    }
    snprintf(lines + n, size - n, "%s\ndense %u relu\ndense 5 name=y\noutput y\n",
             draw(&state, 2) ? "flatten" : "global_avg_pool", 3 + draw(&state, 9));
}

/* ---- Float to bytes ---- */

typedef struct pair {
    mica_net *floats, *bytes;
    mica_int8 *q;
    unsigned state;
} pair;

static void fill(pair *p, mica_net *net)
{
    mica_tensor x;
    if (!CHECK_OK(mica_net_context(net), mica_net_tensor(net, &x, "x")))
        return;
    for (size_t i = 0; i < mica_tensor_count(&x); i++)
        ((float *)x.data)[i] = (float)draw(&p->state, 4001) / 2000.0f - 1.0f;
}

static bool make(pair *p, mica_context *ctx, const char *lines, unsigned seed, bool per_tensor)
{
    mica_netfile_info info;
    *p = (pair){.state = seed};
    if (!CHECK_OK(ctx, mica_net_create(ctx, &p->floats)) ||
        !CHECK_MSG(mica_netfile_build(p->floats, &info, lines,
                                      &(mica_netfile_opts){.batch = 1, .inference = true}) == MICA_OK,
                   "%s\n%s", mica_error(ctx), lines) ||
        !CHECK_OK(ctx, mica_int8_create(p->floats, &p->q)) ||
        !CHECK_OK(ctx, mica_net_compile(p->floats, NULL)) ||
        !CHECK_OK(ctx, mica_net_bind(p->floats, NULL, 0)) ||
        !CHECK_OK(ctx, mica_net_initialize(p->floats, seed)))
        return false;
    for (int i = 0; i < SEEN; i++) {
        fill(p, p->floats);
        if (!CHECK_OK(ctx, mica_net_forward(p->floats)) || !CHECK_OK(ctx, mica_int8_collect(p->q)))
            return false;
    }
    mica_int8_per_tensor(p->q, per_tensor);
    mica_int8_pack_weights(p->q, false);
    return CHECK_OK(ctx, mica_int8_choose(p->q, NULL)) && CHECK_OK(ctx, mica_net_create(ctx, &p->bytes)) &&
           CHECK_OK(ctx, mica_int8_build(p->q, p->bytes)) &&
           CHECK_OK(ctx, mica_net_compile(p->bytes, NULL)) &&
           CHECK_OK(ctx, mica_net_bind(p->bytes, NULL, 0)) &&
           CHECK_OK(ctx, mica_net_initialize(p->bytes, 0)) &&
           CHECK_OK(ctx, mica_int8_weights_set(p->q, p->bytes));
}

static void drop(pair *p)
{
    mica_int8_destroy(p->q);
    mica_net_destroy(p->bytes);
    mica_net_destroy(p->floats);
}

/* ---- Exported ---- */

static void put_floats(FILE *f, const char *name, const float *x, size_t count)
{
    fprintf(f, "        static const float %s[] = {", name);
    for (size_t i = 0; i < count; i++)
        fprintf(f, "%af, ", (double)x[i]);
    fprintf(f, "};\n");
}

/* Inputs before outputs: a forward uses their memory again. */
static void put_run(FILE *f, pair *p, const char *name, const exported *e)
{
    mica_context *ctx = mica_net_context(p->bytes);
    mica_tensor x, y;
    fill(p, p->bytes);
    (void)mica_net_tensor(p->bytes, &x, "x");
    fprintf(f, "    {\n");
    put_floats(f, "x", x.data, mica_tensor_count(&x));
    if (!CHECK_OK(ctx, mica_net_forward(p->bytes)) || !CHECK_OK(ctx, mica_net_tensor(p->bytes, &y, "y")))
        return;
    put_floats(f, "expected", y.data, mica_tensor_count(&y));
    fprintf(f, "        float y[%zu];\n        %s_quantize_input(x);\n        %s_run();\n",
            mica_tensor_count(&y), name, name);
    if (strstr(e->header.bytes, "_dequantize_output(") != NULL)
        fprintf(f, "        %s_dequantize_output(y);\n        wrong += memcmp(y, expected, sizeof y) != 0;\n",
                name);
    else
        fprintf(f, "        memcpy(y, %s_output(), sizeof y);\n", name);
    fprintf(f, "        wrong += compare(\"%s\", y, expected, %zu);\n    }\n", name, mica_tensor_count(&y));
}

static void export_for(pair *p, compiled *all, const char *net, export_target target, unsigned number)
{
    char name[96];
    exported e;
    text why = {0};
    snprintf(name, sizeof name, "%s_%u_t%d", net, number, (int)target);
    export_opts opts = {
        .name = name, .source = net, .target = target, .output = "y", .samples = 1, .batch = 1};
    if (CHECK_MSG(export_net(&e, p->bytes, p->bytes, &opts, &why), "%s: %s", name, why.bytes)) {
        FILE *f = compiled_add(all, name, &e);
        if (f != NULL) {
            fprintf(f, "    int wrong = 0;\n");
            for (int i = 0; i < RUNS; i++)
                put_run(f, p, name, &e);
            fprintf(f, "    return wrong;\n");
        }
        compiled_end(all, f);
    }
    exported_free(&e);
    text_free(&why);
}

static void try_net(mica_context *ctx, compiled *all, const char *name, const char *lines, unsigned number)
{
    static const export_target targets[] = {TARGET_generic, TARGET_m4, TARGET_m55};
    pair p;
    if (make(&p, ctx, lines, number + 1, number % 4 == 3))
        for (size_t t = 0; t < sizeof targets / sizeof targets[0]; t++)
            export_for(&p, all, name, targets[t], number);
    drop(&p);
}

TEST(export_int8)
{
    mica_context *ctx = test_context(1);
    compiled all;
    if (!compiled_start(&all, "int8"))
        return;
    for (unsigned n = 0; n < sizeof nets / sizeof nets[0]; n++)
        try_net(ctx, &all, nets[n].name, nets[n].lines, n);
    for (unsigned seed = 0; seed < (unsigned)test_effort(SEEDS); seed++) {
        char lines[2048];
        random_net(lines, sizeof lines, seed);
        try_net(ctx, &all, "random", lines, seed);
    }
    compiled_run(&all);
}
