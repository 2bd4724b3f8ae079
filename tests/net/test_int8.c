/* Nets of floats that become nets of bytes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/example_nets.h"
#include "net/int8_run.h"
#include "net/net.h"
#include "oom.h"

enum { BATCH = 8 };

/* Every pattern that a conversion knows, and a layer that stays float. */
static mica_net *make_net(mica_context *ctx)
{
    mica_net *net;
    if (mica_net_create(ctx, &net) != MICA_OK)
        return NULL;
    mica_value x = mica_net_input(net, "x", MICA_F32, 4, (mica_index[]){BATCH, 3, 12, 12});
    mica_net_conv_opts conv = {
        .name = "stem", .out_channels = 8, .kernel = {3, 3}, .pad = {1, 1}, .no_bias = true};
    mica_value h = mica_net_conv2d(net, x, &conv);
    h = mica_net_batch_norm(net, h, &(mica_net_batch_norm_opts){.name = "norm"});
    h = mica_net_activation(net, h, &(mica_net_activation_opts){.name = "act", .kind = MICA_RELU});
    h = mica_net_max_pool2d(net, h, &(mica_net_pool_opts){.name = "pool", .kernel = {2, 2}});
    conv = (mica_net_conv_opts){.name = "depth", .kernel = {3, 3}, .pad = {1, 1}, .activation = MICA_RELU6};
    mica_value side = mica_net_depthwise_conv2d(net, h, &conv);
    mica_value sum = mica_net_plus(net, h, side, &(mica_net_pair_opts){.name = "sum"});
    sum = mica_net_activation(net, sum, &(mica_net_activation_opts){.kind = MICA_RELU});
    conv = (mica_net_conv_opts){.name = "one", .out_channels = 5, .kernel = {1, 1}};
    mica_value narrow = mica_net_conv2d(net, sum, &conv);
    h = mica_net_concat(net, (mica_value[]){sum, narrow}, 2,
                        &(mica_net_axis_opts){.name = "join", .axis = 1});
    h = mica_net_avg_pool2d(net, h, &(mica_net_pool_opts){.name = "mean", .kernel = {2, 2}});
    h = mica_net_dropout(net, h, &(mica_net_dropout_opts){.rate = 0.5f});
    mica_value all = mica_net_global_avg_pool(net, h, NULL);
    h = mica_net_flatten(net, h, NULL);
    h = mica_net_dense(net, h,
                       &(mica_net_dense_opts){.name = "hidden", .units = 20, .activation = MICA_TANH});
    h = mica_net_concat(net, (mica_value[]){h, all}, 2, &(mica_net_axis_opts){.name = "both", .axis = 1});
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.name = "logits", .units = 10});
    (void)mica_net_softmax(net, h, &(mica_net_softmax_opts){.name = "shares", .axis = 1});
    (void)mica_net_output(net, NULL, h);
    return net;
}

/* Running statistics that are not 0 and 1. */
static void set_norm(mica_net *net)
{
    mica_tensor mean, variance;
    test_random r = test_seed(9);
    if (!CHECK(mica_net_tensor(net, &mean, "norm.running_mean") == MICA_OK) ||
        !CHECK(mica_net_tensor(net, &variance, "norm.running_var") == MICA_OK))
        return;
    for (mica_index c = 0; c < mean.dim[0]; c++) {
        ((float *)mean.data)[c] = (float)test_uniform(&r, -0.3, 0.3);
        ((float *)variance.data)[c] = (float)test_uniform(&r, 0.1, 2.0);
    }
}

typedef struct pair {
    mica_net *net, *bytes;
    mica_int8 *q;
} pair;

static bool make_pair(pair *p, mica_context *ctx, const mica_int8_opts *opts, bool per_tensor)
{
    *p = (pair){.net = make_net(ctx)};
    if (!CHECK_OK(ctx, mica_int8_create(p->net, &p->q)) || !int8_ready(ctx, p->net))
        return false;
    set_norm(p->net);
    for (uint64_t seed = 0; seed < 6; seed++) {
        int8_fill(p->net, seed);
        if (!CHECK_OK(ctx, mica_net_forward(p->net)) || !CHECK_OK(ctx, mica_int8_collect(p->q)))
            return false;
    }
    mica_int8_per_tensor(p->q, per_tensor);
    return CHECK_OK(ctx, mica_int8_choose(p->q, opts)) && CHECK_OK(ctx, mica_net_create(ctx, &p->bytes)) &&
           CHECK_OK(ctx, mica_int8_build(p->q, p->bytes)) && CHECK_OK(ctx, mica_int8_observe(p->q)) &&
           int8_ready(ctx, p->bytes) && CHECK_OK(ctx, mica_int8_weights_set(p->q, p->bytes));
}

static void destroy_pair(pair *p)
{
    mica_net_destroy(p->bytes);
    mica_int8_destroy(p->q);
    mica_net_destroy(p->net);
}

static double decibels(const mica_int8_row *row)
{
    return 10.0 * log10(row->signal / fmax(row->noise, 1e-300));
}

TEST(int8_net_computes_what_the_float_net_does)
{
    mica_context *ctx = test_context(1);
    for (int per_tensor = 0; per_tensor < 2; per_tensor++)
        for (int method = 0; method < MICA_INT8_METHOD_COUNT; method++) {
            pair p;
            if (make_pair(&p, ctx, &(mica_int8_opts){.method = (mica_int8_method)method}, per_tensor)) {
                for (uint64_t seed = 0; seed < 4; seed++) {
                    int8_fill(p.net, 20 + seed);
                    int8_fill(p.bytes, 20 + seed);
                    test_heap heap = test_heap_now();
                    CHECK_OK(ctx, mica_net_forward(p.net));
                    CHECK_OK(ctx, mica_net_forward(p.bytes));
                    CHECK(test_heap_now().calls == heap.calls);
                    CHECK_OK(ctx, mica_int8_compare(p.q, p.bytes));
                }
                CHECK(mica_int8_rows(p.q) >= 12);
                for (int i = 0; i < mica_int8_rows(p.q); i++) {
                    mica_int8_row row;
                    CHECK_OK(ctx, mica_int8_row_at(p.q, &row, i));
                    CHECK_MSG(decibels(&row) > (method == MICA_INT8_KL ? 12.0 : 22.0),
                              "%s, %s: %.1f dB with %s", row.name, row.op, decibels(&row),
                              per_tensor ? "one scale" : "many scales");
                }
            }
            destroy_pair(&p);
        }
}

/* Bytes are exact, in parts as in the whole; what stays float is within its rounding. */
TEST(int8_net_in_parts_computes_what_the_whole_does)
{
    mica_context *ctx = test_context(2);
    pair p;
    if (make_pair(&p, ctx, &(mica_int8_opts){.method = MICA_INT8_MINMAX}, false))
        for (mica_index rows = 1; rows < BATCH; rows += 2) {
            mica_net *parts = NULL;
            mica_tensor want, got;
            REQUIRE(mica_net_create(ctx, &parts) == MICA_OK && CHECK_OK(ctx, mica_int8_build(p.q, parts)) &&
                    CHECK_OK(ctx, mica_net_compile(parts, &(mica_compile_opts){.part_rows = rows})) &&
                    CHECK_OK(ctx, mica_net_bind(parts, NULL, 0)) &&
                    CHECK_OK(ctx, mica_int8_weights_set(p.q, parts)));
            CHECK(mica_net_plan(parts)->parts == (BATCH + rows - 1) / rows);
            int8_fill(p.bytes, 31);
            int8_fill(parts, 31);
            CHECK_OK(ctx, mica_net_forward(p.bytes));
            CHECK_OK(ctx, mica_net_forward(parts));
            CHECK_OK(ctx, mica_net_tensor(p.bytes, &want, "shares"));
            CHECK_OK(ctx, mica_net_tensor(parts, &got, "shares"));
            REQUIRE(mica_tensor_same_shape(&want, &got));
            for (size_t i = 0; i < mica_tensor_count(&want); i++)
                CHECK(fabsf(((float *)want.data)[i] - ((float *)got.data)[i]) <= 1e-6f);
            mica_net_destroy(parts);
        }
    destroy_pair(&p);
}

TEST(int8_net_has_the_calls_that_it_should)
{
    static const struct {
        const char *op;
        int count;
    } want[] = {{"quantize", 2},
                {"dequantize", 2},
                {"int8_conv2d", 3},
                {"int8_linear", 2},
                {"int8_max_pool2d", 1},
                {"int8_add", 1},
                {"concat", 2},
                {"int8_avg_pool2d", 1},
                {"int8_global_avg_pool", 1},
                {"batch_norm", 0},
                {"relu", 0},
                {"relu6", 0},
                {"tanh", 1},
                {"softmax", 1},
                {"dropout", 0}};
    mica_context *ctx = test_context(1);
    pair p;
    if (make_pair(&p, ctx, NULL, false))
        for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
            CHECK_MSG(int8_count_calls(p.bytes, want[i].op) == want[i].count, "%d calls of %s: expected %d",
                      int8_count_calls(p.bytes, want[i].op), want[i].op, want[i].count);
    mica_tensor t;
    CHECK_OK(ctx, mica_net_tensor(p.bytes, &t, "logits"));
    CHECK(t.dtype == MICA_F32 && t.dim[1] == 10);
    CHECK_OK(ctx, mica_net_tensor(p.bytes, &t, "shares"));
    CHECK_OK(ctx, mica_net_tensor(p.bytes, &t, "stem.weight"));
    CHECK(t.dtype == MICA_I8 && t.rank == 4 && t.dim[0] == 8);
    CHECK_OK(ctx, mica_net_tensor(p.bytes, &t, "logits.multiplier"));
    CHECK(t.dtype == MICA_I32 && t.rank == 1 && t.dim[0] == 10);
    destroy_pair(&p);
}

/* The net of floats with the roundings makes, nearly, what the net of bytes does. */
TEST(int8_fake_net_rounds_as_the_int8_net_does)
{
    mica_context *ctx = test_context(1);
    pair p;
    mica_net *fake = NULL;
    float want[BATCH * 10], floats[BATCH * 10], got[BATCH * 10];
    if (make_pair(&p, ctx, NULL, false) && CHECK_OK(ctx, mica_net_create(ctx, &fake)) &&
        CHECK_OK(ctx, mica_int8_fake(p.q, fake)) && int8_ready(ctx, fake) &&
        CHECK_OK(ctx, mica_int8_fake_copy(p.q, fake, false))) {
        double far = 0.0, near = 0.0;
        for (uint64_t seed = 40; seed < 44; seed++) {
            int8_run(p.bytes, seed, want);
            int8_run(p.net, seed, floats);
            int8_run(fake, seed, got);
            for (int i = 0; i < BATCH * 10; i++) {
                far += ((double)floats[i] - (double)want[i]) * ((double)floats[i] - (double)want[i]);
                near += ((double)got[i] - (double)want[i]) * ((double)got[i] - (double)want[i]);
            }
        }
        CHECK_MSG(near < 0.8 * far, "squared differences %g, of the float net %g", near, far);
        mica_tensor from, to;
        CHECK_OK(ctx, mica_net_tensor(fake, &from, "stem.weight"));
        CHECK_OK(ctx, mica_net_tensor(p.net, &to, "stem.weight"));
        ((float *)from.data)[3] = 7.5f;
        CHECK_OK(ctx, mica_int8_fake_copy(p.q, fake, true));
        CHECK(((float *)to.data)[3] == 7.5f);
        CHECK(mica_int8_fake_copy(p.q, p.net, true) == MICA_ERR_STATE);
    }
    mica_net_destroy(fake);
    destroy_pair(&p);
}

/* Training goes through the roundings. */
TEST(int8_fake_net_learns)
{
    mica_context *ctx = test_context(1);
    mica_net *net, *fake = NULL;
    mica_int8 *q;
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){BATCH, 6});
    mica_value y = mica_net_input(net, "y", MICA_F32, 2, (mica_index[]){BATCH, 2});
    mica_value h = mica_net_dense(net, x, &(mica_net_dense_opts){.units = 16, .activation = MICA_RELU});
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.name = "out", .units = 2});
    (void)mica_net_mse(net, h, y, NULL);
    if (CHECK_OK(ctx, mica_int8_create(net, &q)) && int8_ready(ctx, net)) {
        mica_optimizer adam = {.kind = MICA_ADAM};
        mica_tensor t;
        int8_fill(net, 1);
        CHECK_OK(ctx, mica_net_forward(net));
        CHECK_OK(ctx, mica_int8_collect(q));
        CHECK_OK(ctx, mica_int8_choose(q, NULL));
        REQUIRE(mica_net_create(ctx, &fake) == MICA_OK);
        CHECK_OK(ctx, mica_int8_fake(q, fake));
        CHECK_OK(ctx, mica_net_compile(fake, &(mica_compile_opts){.train = true, .optimizer = &adam}));
        CHECK_OK(ctx, mica_net_bind(fake, NULL, 0));
        CHECK_OK(ctx, mica_net_initialize(fake, 3));
        CHECK_OK(ctx, mica_int8_fake_copy(q, fake, false));
        int8_fill(fake, 1);
        CHECK_OK(ctx, mica_net_tensor(fake, &t, "y"));
        for (size_t i = 0; i < mica_tensor_count(&t); i++)
            ((float *)t.data)[i] = i % 3 == 0 ? 0.2f : -0.1f;
        CHECK_OK(ctx, mica_train_step(fake, 0.01f));
        float first = mica_net_loss(fake);
        for (int step = 0; step < 60; step++)
            CHECK_OK(ctx, mica_train_step(fake, 0.01f));
        CHECK_MSG(mica_net_loss(fake) < 0.2f * first, "loss %g, then %g", (double)first,
                  (double)mica_net_loss(fake));
    }
    mica_net_destroy(fake);
    mica_int8_destroy(q);
    mica_net_destroy(net);
}

/* A net that is built again from the scales alone, and loads what the first has saved. */
TEST(int8_net_is_saved_and_loaded_on_any_instruction_set)
{
    static const char *const sets[] = {"scalar", "avx2", "avx512", "neon"};
    mica_context *ctx = test_context(1);
    char path[] = "/tmp/mica-test-int8-XXXXXX", text[8192];
    float first[BATCH * 10], again[BATCH * 10];
    REQUIRE(mkdtemp(path) != NULL);
    char file[64];
    snprintf(file, sizeof file, "%s/net.safetensors", path);
    pair p;
    if (make_pair(&p, ctx, NULL, false)) {
        CHECK(mica_int8_scales_print(text, sizeof text, p.q) < sizeof text);
        CHECK_OK(ctx, mica_weights_save(p.bytes, file));
        int8_run(p.bytes, 77, first);
        CHECK(mica_weights_bytes(p.bytes) * 2 < mica_weights_bytes(p.net));
    }
    destroy_pair(&p);
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
        for (int threads = 1; threads <= 3; threads++) {
            mica_context *other;
            if (mica_context_create(&other, &(mica_context_opts){.threads = threads, .isa = sets[i]}) !=
                MICA_OK)
                continue; /* not on this machine */
            pair b = {.net = make_net(other)};
            if (CHECK_OK(other, mica_int8_create(b.net, &b.q)) &&
                CHECK_OK(other, mica_int8_scales_read(b.q, text)) &&
                CHECK_OK(other, mica_net_create(other, &b.bytes)) &&
                CHECK_OK(other, mica_int8_build(b.q, b.bytes)) && int8_ready(other, b.bytes) &&
                CHECK_OK(other, mica_weights_load(b.bytes, file))) {
                int8_run(b.bytes, 77, again);
                CHECK_MSG(memcmp(first, again, sizeof first) == 0, "%s, %d threads", sets[i], threads);
            }
            destroy_pair(&b);
            mica_context_destroy(other);
        }
    remove(file);
    remove(path);
}

TEST(int8_refuses_weights_that_are_no_numbers)
{
    mica_context *ctx = test_context(1);
    static const float numbers[] = {NAN, INFINITY};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        pair p;
        mica_tensor w;
        if (make_pair(&p, ctx, NULL, i > 0) && CHECK_OK(ctx, mica_net_tensor(p.net, &w, "one.weight"))) {
            ((float *)w.data)[3] = numbers[i];
            CHECK(mica_int8_weights_set(p.q, p.bytes) == MICA_ERR_STATE);
            CHECK(strstr(mica_error(ctx), "layer \"one\"") != NULL);
        }
        destroy_pair(&p);
    }
}

/* A weight of a later layer is no number: those of the layers before it stay what they were, too. */
TEST(int8_weights_are_set_all_or_none)
{
    mica_context *ctx = test_context(1);
    pair p;
    mica_tensor w;
    if (make_pair(&p, ctx, NULL, false) && CHECK_OK(ctx, mica_net_tensor(p.net, &w, "stem.weight"))) {
        size_t block = p.bytes->persistent;
        void *before = malloc(block);
        memcpy(before, p.bytes->block, block);
        for (size_t i = 0; i < mica_tensor_count(&w); i++)
            ((float *)w.data)[i] *= 1.5f + (float)i;
        if (CHECK_OK(ctx, mica_net_tensor(p.net, &w, "logits.weight")))
            ((float *)w.data)[3] = NAN;
        CHECK(mica_int8_weights_set(p.q, p.bytes) == MICA_ERR_STATE);
        CHECK(memcmp(before, p.bytes->block, block) == 0);
        ((float *)w.data)[3] = 0.5f;
        CHECK_OK(ctx, mica_int8_weights_set(p.q, p.bytes));
        CHECK(memcmp(before, p.bytes->block, block) != 0);
        free(before);
    }
    destroy_pair(&p);
}

TEST(int8_misuse)
{
    mica_context *ctx = test_context(1);
    mica_int8 *q, *late;
    mica_net *net = make_net(ctx), *bytes;
    REQUIRE(mica_int8_create(net, &q) == MICA_OK && mica_net_create(ctx, &bytes) == MICA_OK);
    CHECK(mica_int8_choose(q, NULL) == MICA_ERR_STATE);
    CHECK(mica_int8_collect(q) == MICA_ERR_STATE);
    CHECK(mica_int8_build(q, bytes) == MICA_ERR_STATE); /* no range is known */
    CHECK(mica_int8_scales_read(q, "x 0\n") == MICA_ERR_FORMAT);
    CHECK(mica_int8_scales_read(q, "x nan\n") == MICA_ERR_FORMAT);
    CHECK(mica_int8_scales_read(q, "x \n") == MICA_ERR_FORMAT);
    CHECK(mica_int8_scales_read(q, "\n\nx\n 5\nx 1 2\n") == MICA_OK); /* no key of the net */
    CHECK(mica_int8_scales_read(q, "x 0.5\nnothing:0:0 3\n") == MICA_OK);
    char text[64];
    CHECK(mica_int8_scales_read(q, "x 0.25\nstem:0:0 nan\n") == MICA_ERR_FORMAT);
    CHECK(mica_int8_choose(q, NULL) == MICA_ERR_STATE);
    (void)mica_int8_scales_print(text, sizeof text, q);
    CHECK_MSG(strcmp(text, "x 0.5\n") == 0, "what failed changed the scales to \"%s\"", text);
    CHECK(mica_int8_weights_set(q, bytes) == MICA_ERR_STATE);
    CHECK(mica_int8_value(q, 1, NULL) == 0);
    if (int8_ready(ctx, net)) {
        REQUIRE(mica_int8_create(net, &late) == MICA_OK);
        CHECK(mica_int8_collect(late) == MICA_ERR_STATE);
        mica_int8_destroy(late);
    }
    mica_int8_destroy(q);
    mica_net_destroy(bytes);
    mica_net_destroy(net);
}

/* ---- Nets of all kinds ---- */

/* A batch through both nets, with the same inputs; then the losses are near one another. */
static void compare_example(mica_context *ctx, const example_net *example, mica_net *net, mica_net *bytes,
                            mica_int8 *q)
{
    example_net_fill(net, example, 50);
    example_net_fill(bytes, example, 50);
    if (!CHECK_OK(ctx, mica_net_forward(net)) || !CHECK_OK(ctx, mica_net_forward(bytes)) ||
        !CHECK_OK(ctx, mica_int8_compare(q, bytes)))
        return;
    double loss[2] = {(double)mica_net_loss(net), (double)mica_net_loss(bytes)};
    CHECK_MSG(fabs(loss[0] - loss[1]) < 0.03 * (1.0 + fabs(loss[0])), "%s: losses %g and %g", example->name,
              loss[0], loss[1]);
    for (int i = 0; i < mica_int8_rows(q); i++) {
        mica_int8_row row;
        CHECK_OK(ctx, mica_int8_row_at(q, &row, i));
        CHECK_MSG(row.signal == 0.0 || decibels(&row) > 12.0, "%s: %s, %s: %.1f dB", example->name, row.name,
                  row.op, decibels(&row));
    }
}

TEST(int8_converts_every_example)
{
    mica_context *ctx = test_context(1);
    for (int i = 0; i < example_net_count; i++) {
        const example_net *example = &example_nets[i];
        mica_index batch = example->batch < 4 ? example->batch : 4;
        mica_net *net = NULL, *bytes = NULL;
        mica_int8 *q = NULL;
        if (!CHECK_OK(ctx, mica_net_create(ctx, &net)))
            return;
        example->build(net, batch);
        bool ok = CHECK_OK(ctx, mica_int8_create(net, &q)) && int8_ready(ctx, net);
        for (uint64_t seed = 0; ok && seed < 4; seed++) {
            example_net_fill(net, example, 50 + seed);
            ok = CHECK_OK(ctx, mica_net_forward(net)) && CHECK_OK(ctx, mica_int8_collect(q));
        }
        ok = ok && CHECK_OK(ctx, mica_int8_choose(q, NULL)) && CHECK_OK(ctx, mica_net_create(ctx, &bytes));
        if (ok && CHECK_MSG(mica_int8_build(q, bytes) == MICA_OK, "%s: %s", example->name, mica_error(ctx)) &&
            CHECK_OK(ctx, mica_int8_observe(q)) && int8_ready(ctx, bytes) &&
            CHECK_OK(ctx, mica_int8_weights_set(q, bytes)))
            compare_example(ctx, example, net, bytes, q);
        mica_net_destroy(bytes);
        mica_int8_destroy(q);
        mica_net_destroy(net);
    }
}

/* ---- Out of memory ---- */

static mica_status convert(mica_net *net, mica_net *bytes, mica_int8 *q)
{
    char text[8192];
    mica_status status = mica_net_compile(net, NULL);
    if (status == MICA_OK)
        status = mica_net_bind(net, NULL, 0);
    if (status == MICA_OK)
        status = mica_net_initialize(net, 1);
    mica_tensor x;
    if (status == MICA_OK)
        status = mica_net_input_tensor(net, NULL, &x, 0);
    for (size_t k = 0; status == MICA_OK && k < mica_tensor_count(&x); k++)
        ((float *)x.data)[k] = (float)(k % 7) - 3.0f;
    if (status == MICA_OK)
        status = mica_net_forward(net);
    if (status == MICA_OK)
        status = mica_int8_collect(q);
    if (status == MICA_OK)
        status = mica_int8_choose(q, NULL);
    if (status == MICA_OK && mica_int8_scales_print(text, sizeof text, q) < sizeof text)
        status = mica_int8_scales_read(q, text);
    if (status == MICA_OK)
        status = mica_int8_build(q, bytes);
    if (status == MICA_OK)
        status = mica_net_compile(bytes, NULL);
    if (status == MICA_OK)
        status = mica_net_bind(bytes, NULL, 0);
    return status == MICA_OK ? mica_int8_weights_set(q, bytes) : status;
}

static mica_status oom_convert(const mica_allocator *allocator, void *argument)
{
    (void)argument;
    mica_context *ctx = NULL;
    mica_net *net = NULL, *bytes = NULL;
    mica_int8 *q = NULL;
    mica_status status = mica_context_create(&ctx,
                                             &(mica_context_opts){.allocator = allocator, .threads = 1});
    if (status != MICA_OK)
        return status;
    net = make_net(ctx);
    status = net != NULL ? mica_net_status(net) : mica_context_status(ctx);
    if (status == MICA_OK)
        status = mica_net_create(ctx, &bytes);
    if (status == MICA_OK)
        status = mica_int8_create(net, &q);
    if (status == MICA_OK)
        status = convert(net, bytes, q);
    mica_int8_destroy(q);
    mica_net_destroy(bytes);
    mica_net_destroy(net);
    mica_context_destroy(ctx);
    return status;
}

TEST(int8_conversion_out_of_memory) { CHECK(test_oom(oom_convert, NULL) > 30); }
