/* Every operation of the list, exported in a net of its own: on random samples of its entry, a run and training
 * steps give what the library gives. All of them are compiled at once, as C99 with all warnings and under
 * sanitizers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/compiled.h"
#include "ops/entry_draw.h"

enum { SEEDS = 3, STEPS = 8 };
#define RATE 0.01f

/* Operations that no device has a use for: callbacks, and what works over mapped text models. Others come with models
 * of other frameworks, and have no exporter yet. */
/* clang-format off */
static const char *const refused[] = {
    "apply1", "apply2", "apply3", "apply_scalar", "generate", "linear_rows", "rotary_angles",
    "rotary_rows", "cached_attention", "mod", "fmod", "tan", "asin", "acos", "atan", "sinh", "cosh",
    "asinh", "acosh", "atanh", "mish", "bit_and", "bit_or", "bit_xor", "bit_not", "shift_left",
    "shift_right", "gather_nd", "gather_nd_backward", "scatter", "scatter_nd",
    "tensor_scatter", "top_k", "one_hot", "cumsum", "trilu", "reverse_sequence", "det",
    "det_backward", "conv3d", "conv_transpose3d", "max_pool", "max_unpool", "sum_taps",
    "grid_sample", "roi_align", "deform_columns", "int8_pack", "integer_conv", "quantize_error"};
/* clang-format on */

static bool is_refused(const mica_op *op)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (strcmp(refused[i], op->name) == 0)
            return true;
    return false;
}

/* Inputs of f32 that have no gradient. */
static unsigned constant_inputs(const mica_op *op)
{
    if (op->flags & MICA_OP_LOSS)
        return 1u << 1 | 1u << 2;
    if (strcmp(op->name, "where") == 0)
        return 1u << 0;
    return op->fixed_ins |
           (strcmp(op->name, "broadcast_to") == 0 || strncmp(op->name, "rotary", 6) == 0 ? 1u << 1 : 0u);
}

typedef struct one {
    entry_draw draw;
    mica_net *net;
    mica_value in[MICA_OP_INS], x, target;
    unsigned learned;
    bool train;
    char name[96];
} one;

static mica_value add_input(one *o, int i)
{
    char name[32];
    const mica_tensor *t = &o->draw.in[i];
    snprintf(name, sizeof name, "in %d", i);
    if (!o->draw.given[i])
        return 0;
    if (o->draw.op->writes >> i & 1u)
        return mica_net_kept(o->net, name, MICA_KEPT_STATISTICS, t->dtype, t->rank, t->dim, 0.0f);
    return o->learned >> i & 1u
               ? mica_net_learned(o->net, name, t->rank, t->dim, (mica_init){MICA_INIT_CONSTANT, 0.0f})
               : mica_net_input(o->net, name, t->dtype, t->rank, t->dim);
}

/* y = what the operation made + x, and in training the mean square of its distance from a target. False: nothing
 * to try. */
static bool build(one *o, mica_context *ctx, uint64_t seed)
{
    const mica_op *op = o->draw.op;
    int results[MICA_OP_OUTS], count = 0;
    bool loss = (op->flags & MICA_OP_LOSS) != 0;
    for (int k = 0; k < op->outs; k++)
        if (entry_result(&o->draw, k) && (!o->train || o->draw.out[k].dtype == MICA_F32) &&
            !(o->train && (op->fixed_outs >> k & 1u)))
            results[count++] = k;
    if (count == 0 || (loss && !o->train) || !CHECK_OK(ctx, mica_net_create(ctx, &o->net)))
        return false;
    for (int i = 0; i < o->draw.sample.ins; i++)
        o->in[i] = add_input(o, i);
    mica_value first = mica_net_call(o->net, "call", op, o->in, o->draw.sample.ins, o->draw.sample.opts);
    mica_value y = loss ? o->in[0] : mica_net_result(o->net, first, results[seed % (uint64_t)count]);
    mica_tensor shape;
    if (mica_net_shape(o->net, &shape, y) == MICA_OK && shape.dtype != MICA_F32)
        y = mica_net_op(o->net, NULL, "copy", &y, 1, &(mica_copy_opts){.cast = true, .dtype = MICA_F32});
    o->x = mica_net_input(o->net, "x", MICA_F32, 1, (mica_index[]){1});
    y = mica_net_op(o->net, "sum", "add", (mica_value[]){y, o->x}, 2, NULL);
    (void)mica_net_output(o->net, "y", y);
    if (o->train && !loss) {
        (void)mica_net_shape(o->net, &shape, y);
        o->target = mica_net_input(o->net, "goal", MICA_F32, shape.rank, shape.dim);
        (void)mica_net_op(o->net, "loss", "mse_loss", (mica_value[]){y, o->target}, 2, NULL);
    }
    return true;
}

static bool compile(const one *o, mica_context *ctx, const mica_optimizer *sgd)
{
    mica_compile_opts opts = {.train = o->train, .optimizer = o->train ? sgd : NULL};
    return CHECK_MSG(mica_net_compile(o->net, &opts) == MICA_OK &&
                         mica_net_bind(o->net, NULL, 0) == MICA_OK &&
                         mica_net_initialize(o->net, 1) == MICA_OK,
                     "%s: %s", o->name, mica_error(ctx));
}

/* Values of the draw, where they are read; learned and kept ones only the first time. */
static void put_values(const one *o, bool first)
{
    mica_tensor t;
    for (int i = 0; i < o->draw.sample.ins; i++) {
        bool lasting = (o->learned >> i & 1u) || (o->draw.op->writes >> i & 1u);
        if (o->in[i] != 0 && (first || !lasting) && mica_net_value_tensor(o->net, &t, o->in[i]) == MICA_OK &&
            t.data != NULL)
            memcpy(t.data, o->draw.in[i].data, mica_tensor_bytes(&t));
    }
    if (mica_net_value_tensor(o->net, &t, o->x) == MICA_OK && t.data != NULL)
        *(float *)t.data = 0.25f;
    if (o->target != 0 && mica_net_value_tensor(o->net, &t, o->target) == MICA_OK && t.data != NULL)
        for (size_t i = 0; i < mica_tensor_count(&t); i++)
            ((float *)t.data)[i] = (float)sin((double)i);
}

/* ---- The same in the test ---- */

static void put_array(FILE *f, const char *name, const mica_tensor *t)
{
    size_t count = mica_tensor_count(t);
    fprintf(f, "    static const %s %s[] = {",
            t->dtype == MICA_F32  ? "float"
            : t->dtype == MICA_U8 ? "uint8_t"
            : t->dtype == MICA_I8 ? "int8_t"
                                  : "int32_t",
            name);
    for (size_t i = 0; i < count; i++)
        if (t->dtype == MICA_F32)
            fprintf(f, "%af, ", (double)((const float *)t->data)[i]);
        else
            fprintf(f, "%d, ",
                    t->dtype == MICA_I64   ? (int)((const int64_t *)t->data)[i]
                    : t->dtype == MICA_I32 ? (int)((const int32_t *)t->data)[i]
                    : t->dtype == MICA_I8  ? (int)((const int8_t *)t->data)[i]
                                           : (int)((const uint8_t *)t->data)[i]);
    fprintf(f, "%s};\n", count == 0 ? "0" : "");
}

static void put_inputs(FILE *f, const one *o, const exported *e)
{
    for (int i = 0; i < o->draw.sample.ins; i++) {
        char name[128];
        bool lasting = (o->learned >> i & 1u) || (o->draw.op->writes >> i & 1u);
        bool target = (o->draw.op->flags & MICA_OP_LOSS) && i == 1;
        if (o->in[i] == 0 || lasting)
            continue;
        snprintf(name, sizeof name, "in_%d", i);
        put_array(f, name, &o->draw.in[i]);
        if (target)
            continue;
        snprintf(name, sizeof name, "%s_input_in_%d(", o->name, i);
        bool own = strstr(e->header.bytes, name) != NULL;
        fprintf(f, "    memcpy(%s%s), in_%d, sizeof in_%d);\n", own ? name : o->name, own ? "" : "_input(", i,
                i);
    }
    char x[128];
    snprintf(x, sizeof x, "%s_input_x(", o->name);
    bool own = strstr(e->header.bytes, x) != NULL;
    fprintf(f, "    %s%s)[0] = 0.25f;\n", own ? x : o->name, own ? "" : "_input(");
}

static void put_run(FILE *f, const one *o, const exported *e, const mica_tensor *y)
{
    put_array(f, "expected", y);
    if (strstr(e->header.bytes, "_init(") != NULL)
        fprintf(f, "    %s_init();\n", o->name);
    put_inputs(f, o, e);
    fprintf(f, "    %s_run();\n", o->name);
    fprintf(f, "    return compare(\"%s\", %s_output(), expected, %zu);\n", o->name, o->name,
            mica_tensor_count(y));
}

static void put_training(FILE *f, const one *o, const exported *e, const mica_tensor *losses,
                         const mica_tensor *learned, size_t goal)
{
    put_array(f, "expected", losses);
    put_array(f, "expected_learned", learned);
    fprintf(f, "    static float got[%d], saved[8192];\n", STEPS);
    if (goal > 0)
        fprintf(
            f,
            "    static float goal[%zu];\n    for (int i = 0; i < %zu; i++)\n        goal[i] = (float)sin(i);\n",
            goal, goal);
    fprintf(f, "    %s_init();\n    for (int i = 0; i < %d; i++) {\n", o->name, STEPS);
    put_inputs(f, o, e);
    fprintf(f, "    got[i] = %s_train_step(%s, %af);\n    }\n", o->name, goal > 0 ? "goal" : "in_1",
            (double)RATE);
    fprintf(f, "    %s_save(saved);\n", o->name);
    fprintf(f, "    return compare(\"%s: losses\", got, expected, %d) +\n", o->name, STEPS);
    fprintf(f, "        compare(\"%s: learned\", saved, expected_learned, %zu);\n", o->name,
            mica_tensor_count(learned));
}

/* ---- The library's side ---- */

static void try_run(const one *o, compiled *all, const exported *e)
{
    mica_tensor y;
    put_values(o, false);
    if (!CHECK_OK(mica_net_context(o->net), mica_net_forward(o->net)) ||
        !CHECK_OK(mica_net_context(o->net), mica_net_tensor(o->net, &y, "y")))
        return;
    FILE *f = compiled_add(all, o->name, e);
    if (f != NULL)
        put_run(f, o, e, &y);
    compiled_end(all, f);
}

static void try_training(const one *o, compiled *all, const exported *e)
{
    float losses[STEPS];
    size_t count = 0;
    for (int i = 0; i < STEPS; i++) {
        put_values(o, false);
        if (!CHECK_OK(mica_net_context(o->net), mica_train_step(o->net, RATE)))
            return;
        losses[i] = mica_net_loss(o->net);
    }
    float *learned = malloc(sizeof *learned * 4096);
    for (int i = 0; i < o->draw.sample.ins; i++) {
        mica_tensor t;
        if (!(o->learned >> i & 1u) || mica_net_value_tensor(o->net, &t, o->in[i]) != MICA_OK ||
            count + mica_tensor_count(&t) > 4096)
            continue;
        memcpy(learned + count, t.data, mica_tensor_bytes(&t));
        count += mica_tensor_count(&t);
    }
    mica_tensor goal = mica_0d(NULL);
    if (o->target != 0)
        (void)mica_net_shape(o->net, &goal, o->target);
    mica_tensor all_losses = mica_1d(losses, STEPS), all_learned = mica_1d(learned, (mica_index)count);
    FILE *f = compiled_add(all, o->name, e);
    if (f != NULL)
        put_training(f, o, e, &all_losses, &all_learned, o->target != 0 ? mica_tensor_count(&goal) : 0);
    compiled_end(all, f);
    free(learned);
}

static void try_one(mica_context *ctx, compiled *all, const mica_op *op, uint64_t seed, bool train)
{
    one o = {.train = train};
    const mica_optimizer sgd = {.kind = MICA_SGD, .momentum = 0.9f};
    snprintf(o.name, sizeof o.name, "%s_%d%s", op->name, (int)seed, train ? "_t" : "");
    entry_draw_make(&o.draw, ctx, op, seed);
    for (int i = 0; train && i < o.draw.sample.ins; i++)
        if (o.draw.given[i] && o.draw.in[i].dtype == MICA_F32 &&
            !((constant_inputs(op) | op->writes) >> i & 1u))
            o.learned |= 1u << i;
    if ((!train || (op->gradient != NULL && o.learned != 0)) && build(&o, ctx, seed) &&
        compile(&o, ctx, &sgd)) {
        exported e;
        text why = {0};
        put_values(&o, true);
        export_opts opts = {.name = o.name,
                            .source = op->name,
                            .output = "y",
                            .float_ends = true,
                            .train = train,
                            .samples = 1,
                            .batch = 1,
                            .optimizer = &sgd};
        bool done = export_net(&e, o.net, NULL, &opts, &why);
        if (!done)
            CHECK_MSG(is_refused(op) || strstr(why.bytes, ": f64\n") != NULL ||
                          strstr(why.bytes, ": bool\n") != NULL || strstr(why.bytes, ": bf16\n") != NULL ||
                          strstr(why.bytes, ": f16\n") != NULL,
                      "%s is refused: %s", o.name, why.bytes);
        else if (train)
            try_training(&o, all, &e);
        else
            try_run(&o, all, &e);
        exported_free(&e);
        text_free(&why);
    }
    mica_net_destroy(o.net);
    entry_draw_free(&o.draw);
}

TEST(export_operations)
{
    mica_context *ctx = test_context(1);
    compiled all;
    if (!compiled_start(&all, "operations"))
        return;
    int seeds = test_effort(SEEDS);
    for (int n = 0; mica_op_at(n) != NULL; n++) {
        const mica_op *op = mica_op_at(n);
        if (entry_skipped(op) || !entry_callable(op) || (op->flags & MICA_OP_CALLBACK))
            continue;
        for (int seed = 0; seed < seeds; seed++)
            for (int train = 0; train < 2; train++)
                try_one(ctx, &all, op, (uint64_t)seed, train != 0);
    }
    compiled_run(&all);
}

static float halve(void *user, float x)
{
    (void)user;
    return 0.5f * x;
}

/* What cannot be exported is told at once, all of it. */
TEST(export_refusals)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    exported e;
    text why = {0};
    mica_function1 halves = {halve, NULL};
    REQUIRE(CHECK_OK(ctx, mica_net_create(ctx, &net)));
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){1, 4});
    mica_value y = mica_net_op(net, "narrow", "copy", &x, 1,
                               &(mica_copy_opts){.cast = true, .dtype = MICA_F16});
    y = mica_net_op(net, "wide", "copy", &y, 1, &(mica_copy_opts){.cast = true, .dtype = MICA_F32});
    y = mica_net_op(net, "square", "apply1", &y, 1, &halves);
    (void)mica_net_output(net, "y", y);
    if (CHECK_OK(ctx, mica_net_compile(net, NULL)) && CHECK_OK(ctx, mica_net_bind(net, NULL, 0))) {
        export_opts opts = {.name = "none", .source = "a test", .output = "y", .samples = 1, .batch = 1};
        CHECK(!export_net(&e, net, NULL, &opts, &why));
        CHECK_MSG(strcmp(why.bytes,
                         "  layer \"narrow\" (copy): copy: f16\n"
                         "  layer \"wide\" (copy): copy: f16\n"
                         "  layer \"square\" (apply1): apply1: no exporter\n") == 0,
                  "%s", why.bytes);
        CHECK(e.source.bytes == NULL && e.header.bytes == NULL);
        exported_free(&e);
    }
    text_free(&why);
    mica_net_destroy(net);
}
