/* Nets that are only run, with a batch in parts: the same results as of the whole, in less memory; and what cannot be
 * run in parts is not. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mica/layers.h>
#include <mica/onnx.h>
#include <mica/op.h>

#include "net/net.h"
#include "test.h"

#define DIMS(...) \
    (int)(sizeof((mica_index[]){__VA_ARGS__}) / sizeof(mica_index)), (mica_index[]) { __VA_ARGS__ }

/* ---- Random nets whose samples are apart ---- */

typedef void build_fn(mica_net *net, test_random *r, mica_index batch);

/* Images through convolutions of all kinds, with branches and an output in the middle. */
static void build_images(mica_net *net, test_random *r, mica_index batch)
{
    mica_index size = test_int(r, 6, 17), channels = test_int(r, 1, 9);
    mica_value h = mica_net_input(net, "x", MICA_F32, DIMS(batch, channels, size, size + test_int(r, 0, 3)));
    int layers = test_int(r, 2, 6);
    for (int i = 0; i < layers; i++) {
        int kind = test_int(r, 0, 5);
        if (kind == 0)
            h = mica_net_depthwise_conv2d(
                net, h, &(mica_net_conv_opts){.kernel = {3, 3}, .pad = {1, 1}, .activation = MICA_RELU6});
        else if (kind == 1)
            h = mica_net_batch_norm(net, h, NULL);
        else if (kind == 2)
            h = mica_net_plus(
                net, h, mica_net_activation(net, h, &(mica_net_activation_opts){.kind = MICA_TANH}), NULL);
        else
            h = mica_net_conv2d(net, h,
                                &(mica_net_conv_opts){.out_channels = test_int(r, 1, 40),
                                                      .kernel = {kind == 3 ? 1 : 3, kind == 3 ? 1 : 3},
                                                      .pad = {kind == 3 ? 0 : 1, kind == 3 ? 0 : 1},
                                                      .activation = MICA_RELU});
        if (i == 1)
            mica_net_output(net, "middle", h);
    }
    h = mica_net_global_avg_pool(net, h, NULL);
    mica_net_output(net, "y", mica_net_dense(net, h, &(mica_net_dense_opts){.units = test_int(r, 1, 30)}));
}

/* Tokens, and numbers beside them; a table that all samples share; an output that is a view. */
static void build_tokens(mica_net *net, test_random *r, mica_index batch)
{
    mica_index length = test_int(r, 1, 7), width = 4 * test_int(r, 1, 6);
    mica_value tokens = mica_net_input(net, "x", MICA_I32, DIMS(batch, length));
    mica_value beside = mica_net_input(net, "beside", MICA_F32, DIMS(batch, length, width));
    mica_value table = mica_net_input(net, "table", MICA_F32, DIMS(1, length, width));
    mica_value h = mica_net_embedding(net, tokens, &(mica_net_embedding_opts){.rows = 11, .width = width});
    h = mica_net_plus(net, h, beside, NULL);
    h = mica_net_op(net, NULL, "add", (mica_value[]){h, table}, 2, NULL);
    for (int i = test_int(r, 1, 2); i > 0; i--) {
        mica_value a = mica_net_layer_norm(net, h, NULL);
        a = mica_net_multi_head_attention(net, a, &(mica_net_multi_head_attention_opts){.heads = 2});
        h = mica_net_plus(net, h, mica_net_dropout(net, a, &(mica_net_dropout_opts){.rate = 0.3f}), NULL);
        a = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 2 * width, .activation = MICA_GELU});
        h = mica_net_plus(net, h, mica_net_dense(net, a, &(mica_net_dense_opts){.units = width}), NULL);
    }
    mica_net_output(net, "middle", mica_net_flatten(net, h, NULL));
    mica_net_output(net, "y", mica_net_dense(net, h, &(mica_net_dense_opts){.units = test_int(r, 1, 9)}));
}

static void build_rows(mica_net *net, test_random *r, mica_index batch)
{
    mica_value h = mica_net_input(net, "x", MICA_F32, DIMS(batch, test_int(r, 1, 60)));
    for (int i = test_int(r, 1, 4); i > 0; i--)
        h = mica_net_dense(net, h,
                           &(mica_net_dense_opts){.units = test_int(r, 1, 90), .activation = MICA_SILU});
    mica_net_output(net, "middle", h);
    mica_net_output(net, "y", mica_net_softmax(net, h, &(mica_net_softmax_opts){.axis = 1}));
}

static build_fn *const builders[] = {build_images, build_tokens, build_rows};

/* The net of this seed, ready to run; NULL, having failed the test, if it is not. */
static mica_net *make(mica_context *ctx, uint64_t seed, mica_index batch, const mica_compile_opts *opts,
                      bool all_last)
{
    mica_net *net = NULL;
    test_random r = test_seed(seed);
    if (!CHECK_OK(ctx, mica_net_create(ctx, &net)))
        return NULL;
    net->all_last = all_last;
    builders[seed % 3](net, &r, batch);
    if (CHECK_OK(ctx, mica_net_compile(net, opts)) && CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) &&
        CHECK_OK(ctx, mica_net_initialize(net, 1 + seed)))
        return net;
    mica_net_destroy(net);
    return NULL;
}

/* Inputs of a step: row i of the batch is the same whatever the batch is, from row `first` of all on. */
static void fill(mica_net *net, mica_index batch, mica_index first)
{
    for (int n = 0; n < mica_net_inputs(net); n++) {
        mica_tensor t;
        const char *name;
        CHECK(mica_net_input_tensor(net, &name, &t, n) == MICA_OK);
        bool shared = strcmp(name, "table") == 0;
        CHECK(shared || t.dim[0] == batch);
        size_t row = t.dim[0] > 0 ? mica_tensor_count(&t) / (size_t)t.dim[0] : 0;
        for (size_t i = 0; i < mica_tensor_count(&t); i++) {
            test_random r = test_seed(1000 * (uint64_t)n + i + (shared ? 0 : (uint64_t)first * row));
            if (t.dtype == MICA_I32)
                ((int32_t *)t.data)[i] = test_int(&r, 0, 10);
            else
                ((float *)t.data)[i] = (float)test_uniform(&r, -1.0, 1.0);
        }
    }
}

static mica_tensor run(mica_net *net, mica_index batch, mica_index first, const char *name)
{
    mica_context *ctx = mica_net_context(net);
    mica_tensor y = {0};
    CHECK_OK(ctx, mica_net_resize(net, batch));
    fill(net, batch, first);
    test_heap heap = test_heap_now();
    CHECK_OK(ctx, mica_net_forward(net));
    CHECK(test_heap_now().calls == heap.calls);
    CHECK_OK(ctx, mica_net_tensor(net, &y, name));
    return y;
}

/* How far b is from a, relative to the largest number that is above 1. */
static double difference(const mica_tensor *a, const mica_tensor *b)
{
    double most = 0.0, largest = 1.0;
    if (!CHECK(mica_tensor_count(a) == mica_tensor_count(b) && a->dim[0] == b->dim[0]))
        return INFINITY;
    for (size_t i = 0; i < mica_tensor_count(a); i++) {
        double x = (double)((const float *)a->data)[i], y = (double)((const float *)b->data)[i];
        most = fabs(x - y) > most || isnan(x - y) ? fabs(x - y) : most;
        largest = fmax(largest, fabs(x));
    }
    return most / largest;
}

static const char *const names[] = {"y", "middle"};

/* At every batch up to the planned one. */
TEST(inference_parts_give_what_the_whole_gives)
{
    mica_context *contexts[] = {test_context(1), test_context(2), test_context(3)};
    for (uint64_t seed = 0; seed < (uint64_t)test_effort(60); seed++) {
        test_random r = test_seed(77 * seed);
        mica_context *ctx = contexts[seed / 3 % 3];
        mica_index batch = test_int(&r, 2, 9), rows = test_int(&r, 1, (int)batch - 1);
        bool all_last = test_chance(&r, 25);
        mica_compile_opts opts = {.prepare = test_chance(&r, 50),
                                  .debug = test_chance(&r, 25),
                                  .part_rows = MICA_WHOLE_BATCH,
                                  .side_by_side = test_chance(&r, 50)};
        mica_net *whole = make(ctx, seed, batch, &opts, all_last);
        opts.part_rows = rows;
        mica_net *parts = make(ctx, seed, batch, &opts, all_last);
        REQUIRE(whole != NULL && parts != NULL);
        CHECK(mica_net_plan(whole)->parts == 1);
        CHECK(mica_net_plan(parts)->parts == (batch + rows - 1) / rows);
        for (mica_index n = batch + 1; n-- > 0;) {
            mica_index now = n > 0 ? n : batch; /* back to all of it at last */
            for (int k = 0; k < 2; k++) {
                mica_tensor a = run(whole, now, 0, names[k]), b = run(parts, now, 0, names[k]);
                double off = difference(&a, &b);
                CHECK_MSG(off <= 2e-6, "seed %d, %td of %td in parts of %td: %s is off by %g", (int)seed, now,
                          batch, rows, names[k], off);
            }
        }
        CHECK_OK(ctx, mica_net_resize(parts, 0));
        CHECK_OK(ctx, mica_net_forward(parts));
        mica_net_destroy(parts);
        mica_net_destroy(whole);
    }
}

/* A part takes the paths of a net that was planned for as many rows: bit for bit what that gives, for any number of
 * threads. */
TEST(inference_parts_give_the_bits_of_a_smaller_net)
{
    mica_context *contexts[] = {test_context(1), test_context(1), test_context(2), test_context(3)};
    for (uint64_t seed = 0; seed < (uint64_t)test_effort(45); seed++) {
        test_random r = test_seed(99 * seed);
        mica_index rows = test_int(&r, 1, 4), parts = test_int(&r, 2, 3);
        bool prepare = test_chance(&r, 50);
        for (int threads = 1; threads <= 3; threads++) {
            mica_context *ctx = contexts[threads], *other = contexts[0];
            mica_net *small = make(other, seed, rows,
                                   &(mica_compile_opts){.prepare = prepare, .part_rows = MICA_WHOLE_BATCH},
                                   false);
            mica_net *net = make(
                ctx, seed, rows * parts,
                &(mica_compile_opts){.prepare = prepare, .part_rows = rows, .side_by_side = seed % 2 == 0},
                false);
            REQUIRE(small != NULL && net != NULL);
            mica_tensor all = run(net, rows * parts, 0, "y");
            size_t bytes = mica_tensor_bytes(&all) / (size_t)parts;
            for (mica_index part = 0; part < parts && all.dtype == MICA_F32; part++) {
                mica_tensor y = run(small, rows, part * rows, "y");
                CHECK_MSG(mica_tensor_bytes(&y) == bytes &&
                              memcmp(y.data, (char *)all.data + (size_t)part * bytes, bytes) == 0,
                          "seed %d, part %td of %td rows, %d threads", (int)seed, part, rows, threads);
            }
            mica_net_destroy(net);
            mica_net_destroy(small);
        }
    }
}

/* ---- Budgets ---- */

TEST(inference_fits_a_budget_in_parts)
{
    mica_context *ctx = test_context(2);
    for (uint64_t seed = 0; seed < 12; seed++) {
        enum { BATCH = 13 };
        mica_net *whole = make(ctx, seed, BATCH, &(mica_compile_opts){.part_rows = MICA_WHOLE_BATCH}, false);
        mica_net *least = make(ctx, seed, BATCH, &(mica_compile_opts){.part_rows = 1}, false);
        REQUIRE(whole != NULL && least != NULL);
        size_t most = mica_net_plan(whole)->total, few = mica_net_plan(least)->total;
        mica_tensor a = run(whole, BATCH, 0, "y");
        for (size_t budget = most - 1; few < most && budget >= few; budget -= (most - few + 3) / 4) {
            mica_net *net = make(ctx, seed, BATCH, &(mica_compile_opts){.budget = budget}, false);
            REQUIRE(net != NULL);
            CHECK(mica_net_plan(net)->parts > 1 && mica_net_plan(net)->total <= budget);
            mica_tensor b = run(net, BATCH, 0, "y");
            CHECK(difference(&a, &b) <= 2e-6);
            mica_net_destroy(net);
        }
        mica_net_destroy(least);
        mica_net *net;
        test_random r = test_seed(seed);
        REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
        builders[seed % 3](net, &r, BATCH);
        CHECK(mica_net_compile(net, &(mica_compile_opts){.budget = few / 8}) == MICA_ERR_MEMORY);
        CHECK(mica_net_compile(net, &(mica_compile_opts){.budget = most - 1,
                                                         .part_rows = MICA_WHOLE_BATCH}) == MICA_ERR_MEMORY);
        CHECK_OK(ctx,
                 mica_net_compile(net, &(mica_compile_opts){.budget = most, .part_rows = MICA_WHOLE_BATCH}));
        mica_net_destroy(net);
        mica_net_destroy(whole);
    }
}

/* ---- The choice ---- */

static int parts_of(mica_net *net, const mica_compile_opts *opts)
{
    return CHECK_OK(mica_net_context(net), mica_net_compile(net, opts)) ? mica_net_plan(net)->parts : 0;
}

TEST(inference_parts_are_chosen_where_images_outgrow_the_cache)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    mica_value h = mica_net_input(net, "x", MICA_F32, DIMS(64, 3, 40, 40));
    h = mica_net_conv2d(net, h, &(mica_net_conv_opts){.out_channels = 64, .kernel = {1, 1}});
    for (int i = 0; i < 4; i++)
        h = mica_net_activation(net, h,
                                &(mica_net_activation_opts){.kind = i % 2 == 0 ? MICA_RELU : MICA_TANH});
    mica_net_output(net, "y", mica_net_global_avg_pool(net, h, NULL));
    int parts = parts_of(net, NULL);
    size_t total = mica_net_plan(net)->total;
    CHECK_MSG(parts > 1, "%d parts", parts);
    CHECK(parts_of(net, &(mica_compile_opts){.part_rows = MICA_WHOLE_BATCH}) == 1);
    CHECK(mica_net_plan(net)->total > total);
    CHECK(parts_of(net, &(mica_compile_opts){.budget = total}) == parts);
    CHECK(mica_net_compile(net, &(mica_compile_opts){.budget = 1000}) == MICA_ERR_MEMORY);
    CHECK(parts_of(net, &(mica_compile_opts){.planes = true}) == 1);
    CHECK(mica_net_compile(net, &(mica_compile_opts){.planes = true, .budget = total}) == MICA_ERR_MEMORY);
    CHECK(parts_of(net, &(mica_compile_opts){.part_rows = 64}) == 1);
    CHECK(parts_of(net, &(mica_compile_opts){.part_rows = 63}) == 2);
    char text[4096];
    (void)mica_plan_print(text, sizeof text, mica_net_plan(net));
    CHECK(strstr(text, "the batch is split into 2 parts") != NULL);
    mica_net_destroy(net);

    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    h = mica_net_input(net, "x", MICA_F32, DIMS(256, 784));
    for (int i = 0; i < 3; i++)
        h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 512, .activation = MICA_RELU});
    CHECK(parts_of(net, NULL) == 1);
    total = mica_net_plan(net)->total;
    parts = parts_of(net, &(mica_compile_opts){.budget = total - 1});
    CHECK_MSG(parts > 1 && mica_net_plan(net)->total < total, "%d parts", parts);
    CHECK(parts_of(net, &(mica_compile_opts){.budget = total - 1, .same_parts = true}) == parts);
    mica_net_destroy(net);
}

/* No batch, of those that the smallest plan takes, has a part that is too small. */
TEST(inference_parts_are_large_enough)
{
    for (mica_index most = 1; most <= 40; most++)
        for (mica_index part = 1; part <= most; part++)
            for (mica_index fewest = 1; fewest <= most; fewest++) {
                bool fit = true;
                for (mica_index rows = fewest; rows <= most; rows++)
                    fit = fit && rows / ((rows + part - 1) / part) >= fewest;
                CHECK_MSG(mica_net_parts_fit(most, part, fewest) == fit,
                          "%td in parts of %td, of %td or more", most, part, fewest);
            }
}

#if !defined(MICA_NO_THREADS)
static int parts_with_threads(int threads, const mica_index x[4], mica_index kernel, mica_index channels)
{
    mica_context *ctx = NULL;
    mica_net *net = NULL;
    if (!CHECK(mica_context_create(&ctx, &(mica_context_opts){.threads = threads}) == MICA_OK) ||
        !CHECK_OK(ctx, mica_net_create(ctx, &net)))
        return 0;
    mica_value h = mica_net_input(net, "x", MICA_F32, 4, x);
    h = mica_net_conv2d(net, h,
                        &(mica_net_conv_opts){.out_channels = channels,
                                              .kernel = {kernel, kernel},
                                              .pad = {kernel / 2, kernel / 2}});
    for (int i = 0; i < 2; i++)
        h = mica_net_activation(net, h, &(mica_net_activation_opts){.kind = MICA_TANH});
    mica_net_output(net, "y", h);
    int parts = parts_of(net, NULL);
    mica_net_destroy(net);
    mica_context_destroy(ctx);
    return parts;
}

/* Threads take scratch, on which the choice must not depend: other parts round otherwise. */
TEST(inference_parts_are_those_of_one_thread)
{
    test_random r = test_seed(5);
    for (int i = 0; i < test_effort(60); i++) {
        mica_index size = test_int(&r, 60, 130), kernel = 1 + 2 * test_int(&r, 0, 2),
                   channels = test_int(&r, 30, 120);
        mica_index x[] = {4 << test_int(&r, 0, 4), test_int(&r, 1, 4), size, size};
        int one = parts_with_threads(1, x, kernel, channels),
            four = parts_with_threads(4, x, kernel, channels),
            many = parts_with_threads(16, x, kernel, channels);
        CHECK_MSG(one == four && one == many, "[%td, %td, %td, %td], %td of %td: %d, %d and %d parts", x[0],
                  x[1], x[2], x[3], channels, kernel, one, four, many);
    }
}
#endif

/* ---- What stays whole ---- */

static void sum_over_batch(mica_net *net)
{
    mica_value x = mica_net_input(net, "x", MICA_F32, DIMS(6, 5));
    (void)mica_net_op(net, "s", "sum", &x, 1, &(mica_reduction_opts){.axes = {0}, .count = 1});
}

static void softmax_over_batch(mica_net *net)
{
    mica_value x = mica_net_input(net, "x", MICA_F32, DIMS(6, 5));
    (void)mica_net_op(net, "s", "softmax", &x, 1, &(mica_axis_opts){0});
}

static void with_loss(mica_net *net)
{
    mica_value x = mica_net_input(net, "x", MICA_F32, DIMS(6, 5));
    (void)mica_net_mse(net, x, mica_net_input(net, "t", MICA_F32, DIMS(6, 5)), NULL);
}

static void with_states(mica_net *net)
{
    mica_value x = mica_net_input(net, "x", MICA_F32, DIMS(6, 4, 5));
    (void)mica_net_lstm(net, x, &(mica_net_recurrent_opts){.units = 3, .keep_state = true});
}

static void with_random_numbers(mica_net *net)
{
    mica_value x = mica_net_input(net, "x", MICA_F32, DIMS(6, 5));
    mica_value noise = mica_net_op(net, NULL, "uniform", &x, 1, NULL);
    (void)mica_net_plus(net, x, noise, NULL);
}

static void with_rows_of_others(mica_net *net)
{
    mica_value x = mica_net_input(net, "x", MICA_F32, DIMS(6, 5)),
               i = mica_net_input(net, "i", MICA_I32, DIMS(6));
    (void)mica_net_op(net, "t", "take", (mica_value[]){x, i}, 2, &(mica_axis_opts){0});
}

/* y is repeated along the rows of x: of two samples, each would see one number of it instead. */
static void with_square(mica_net *net)
{
    mica_value x = mica_net_input(net, "x", MICA_F32, DIMS(2, 2)),
               y = mica_net_input(net, "y", MICA_F32, DIMS(2));
    (void)mica_net_op(net, "s", "add", (mica_value[]){x, y}, 2, NULL);
}

TEST(inference_parts_are_refused_where_samples_meet)
{
    static const struct {
        void (*build)(mica_net *net);
        mica_index batch;
    } nets[] = {{sum_over_batch, 6},      {softmax_over_batch, 6},  {with_loss, 6},  {with_states, 6},
                {with_random_numbers, 6}, {with_rows_of_others, 6}, {with_square, 2}};
    mica_context *ctx = test_context(1);
    for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
        mica_net *net;
        char text[160];
        REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
        nets[i].build(net);
        (void)snprintf(
            text, sizeof text,
            "state error: net_compile: a batch of %d cannot be run in parts of 1: its samples depend on one "
            "another",
            (int)nets[i].batch);
        CHECK_ERROR(ctx, mica_net_compile(net, &(mica_compile_opts){.part_rows = 1}), MICA_ERR_STATE, text);
        CHECK(parts_of(net, NULL) == 1);
        size_t total = mica_net_plan(net)->total;
        CHECK(mica_net_compile(net, &(mica_compile_opts){.budget = total - 1}) == MICA_ERR_MEMORY);
        mica_net_destroy(net);
    }
}

TEST(inference_parts_that_make_no_sense)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    with_loss(net);
    CHECK_ERROR(ctx, mica_net_compile(net, &(mica_compile_opts){.part_rows = -2}), MICA_ERR_ARGUMENT,
                "argument error: net_compile: part_rows is -2: expected 0 or more, or MICA_WHOLE_BATCH");
    CHECK_ERROR(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true, .part_rows = 2}),
                MICA_ERR_ARGUMENT,
                "argument error: net_compile: part_rows is 2, which is for inference: training takes 0 or "
                "MICA_CHEAP_PARTS");
    mica_net_destroy(net);
    net = make(ctx, 2, 6, &(mica_compile_opts){.part_rows = 4}, false);
    REQUIRE(net != NULL);
    CHECK(mica_net_samples_apart(net));
    CHECK_ERROR(
        ctx, mica_net_forward_training(net, 0), MICA_ERR_STATE,
        "state error: net_forward_training: this plan runs an inference batch in parts: compile with .part_rows "
        "= MICA_WHOLE_BATCH");
    mica_tensor y = run(net, 6, 0, "y");
    CHECK(y.dim[0] == 6);
    mica_net_destroy(net);
}

/* A copy of at least four rows. */
static mica_status four_infer(mica_infer *i)
{
    return i->in[0]->dim[0] >= 4 ? mica_infer_like(i, 0, 0)
                                 : mica_infer_fail(i, MICA_ERR_SHAPE, "expected four rows");
}
static mica_status four_run(const mica_call *c) { return mica_copy(c->ctx, c->out[0], c->in[0]); }
static bool four_mixes(const mica_infer *i) { return i == NULL; }

/* Parts that were tried and refused leave no error behind. */
TEST(inference_parts_leave_no_error)
{
    static const mica_op four = {
        .name = "four", .ins = 1, .outs = 1, .infer = four_infer, .run = four_run, .mixes = four_mixes};
    mica_context *ctx = test_context(1);
    mica_net *net;
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    mica_value h = mica_net_input(net, "x", MICA_F32, DIMS(64, 3, 40, 40));
    h = mica_net_call(net, NULL, &four, &h, 1, NULL);
    for (int i = 0; i < 4; i++)
        h = mica_net_activation(net, h,
                                &(mica_net_activation_opts){.kind = i % 2 == 0 ? MICA_RELU : MICA_TANH});
    mica_net_output(net, "y", mica_net_global_avg_pool(net, h, NULL));
    CHECK(parts_of(net, NULL) > 0);
    CHECK_MSG(mica_error(ctx)[0] == '\0' && mica_context_status(ctx) == MICA_OK, "%s", mica_error(ctx));
    CHECK(mica_net_compile(net, &(mica_compile_opts){.budget = 1}) == MICA_ERR_MEMORY);
    CHECK(strstr(mica_error(ctx), "needs at least") != NULL);
    mica_net_destroy(net);
}

/* ---- ONNX ---- */

/* A model with several inputs, written and read again. */
TEST(inference_parts_of_an_onnx_model)
{
    mica_context *ctx = test_context(2);
    char path[] = "/tmp/mica-parts-XXXXXX";
    int file = mkstemp(path);
    REQUIRE(file >= 0);
    close(file);
    for (uint64_t seed = 0; seed < 6; seed++) {
        mica_net *from = make(ctx, seed, 7, &(mica_compile_opts){.part_rows = 3}, false),
                 *net[2] = {NULL, NULL};
        mica_onnx *model[2] = {NULL, NULL};
        REQUIRE(from != NULL && CHECK_OK(ctx, mica_onnx_write(from, path, NULL)));
        mica_onnx_opts opts = {.sets = &(mica_onnx_set){.name = "batch", .size = 7}, .count = 1};
        for (int k = 0; k < 2; k++) {
            mica_compile_opts compile = {.part_rows = k == 0 ? MICA_WHOLE_BATCH : 3,
                                         .prepare = seed % 2 == 0};
            REQUIRE(CHECK_OK(ctx, mica_onnx_open(ctx, &model[k], path)) &&
                    mica_net_create(ctx, &net[k]) == MICA_OK &&
                    CHECK_OK(ctx, mica_onnx_build(model[k], net[k], &opts)) &&
                    CHECK_OK(ctx, mica_net_compile(net[k], &compile)) &&
                    CHECK_OK(ctx, mica_net_bind(net[k], NULL, 0)) &&
                    CHECK_OK(ctx, mica_onnx_load(model[k], net[k])));
            CHECK(mica_net_plan(net[k])->parts == (k == 0 ? 1 : 3));
        }
        for (mica_index batch = 7; batch > 0; batch -= 2) {
            mica_tensor a = run(net[0], batch, 0, "y"), b = run(net[1], batch, 0, "y"),
                        c = run(from, batch, 0, "y");
            CHECK(difference(&a, &b) <= 2e-6 && difference(&c, &b) <= 1e-5);
        }
        for (int k = 0; k < 2; k++) {
            mica_net_destroy(net[k]);
            mica_onnx_close(model[k]);
        }
        mica_net_destroy(from);
    }
    unlink(path);
}
