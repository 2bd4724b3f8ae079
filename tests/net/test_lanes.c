/* Parts of a batch that threads run side by side: the same bits as one after the other, whatever the batch, in memory
 * that does not overlap; and what fails in one of them. */
#include <stdio.h>
#include <string.h>

#include <mica/layers.h>
#include <mica/op.h>

#include "net/net.h"
#include "ops/check.h"
#include "test.h"

#if !defined(MICA_NO_THREADS)

#define DIMS(...) \
    (int)(sizeof((mica_index[]){__VA_ARGS__}) / sizeof(mica_index)), (mica_index[]) { __VA_ARGS__ }

enum { THREADS = 5 };

/* Images and numbers beside them; a table that all samples share; outputs in the middle and at the end, one of them in
 * the place of what it is made from. */
static void build(mica_net *net, test_random *r, mica_index batch)
{
    mica_index size = test_int(r, 5, 14), channels = test_int(r, 1, 7);
    mica_value h = mica_net_input(net, "x", MICA_F32, DIMS(batch, channels, size, size + 1));
    mica_value beside = mica_net_input(net, "beside", MICA_F32, DIMS(batch, 8));
    mica_value table = mica_net_input(net, "table", MICA_F32, DIMS(1, 8));
    for (int i = test_int(r, 1, 3); i > 0; i--)
        h = mica_net_conv2d(net, h,
                            &(mica_net_conv_opts){.out_channels = test_int(r, 1, 40),
                                                  .kernel = {3, 3},
                                                  .pad = {1, 1},
                                                  .activation = MICA_RELU});
    mica_net_output(net, "middle", h);
    h = mica_net_dense(net, mica_net_global_avg_pool(net, h, NULL), &(mica_net_dense_opts){.units = 8});
    h = mica_net_plus(net, h, beside, NULL);
    h = mica_net_op(net, NULL, "add", (mica_value[]){h, table}, 2, NULL);
    mica_net_output(net, "y", mica_net_activation(net, h, &(mica_net_activation_opts){.kind = MICA_TANH}));
}

static mica_net *make(mica_context *ctx, uint64_t seed, mica_index batch, const mica_compile_opts *opts)
{
    mica_net *net = NULL;
    test_random r = test_seed(seed);
    if (!CHECK_OK(ctx, mica_net_create(ctx, &net)))
        return NULL;
    build(net, &r, batch);
    if (CHECK_OK(ctx, mica_net_compile(net, opts)) && CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) &&
        CHECK_OK(ctx, mica_net_initialize(net, 1 + seed)))
        return net;
    mica_net_destroy(net);
    return NULL;
}

static mica_status fill_and_run(mica_net *net, mica_index batch)
{
    MICA_TRY(mica_net_resize(net, batch));
    for (int n = 0; n < mica_net_inputs(net); n++) {
        mica_tensor t;
        MICA_TRY(mica_net_input_tensor(net, NULL, &t, n));
        test_random r = test_seed(7000 + (uint64_t)n);
        for (size_t i = 0; i < mica_tensor_count(&t); i++)
            ((float *)t.data)[i] = (float)test_uniform(&r, -1.0, 1.0);
    }
    return mica_net_forward(net);
}

static void check_same(mica_net *a, mica_net *b, const char *what)
{
    static const char *const names[] = {"middle", "y"};
    for (int k = 0; k < 2; k++) {
        mica_tensor x, y;
        REQUIRE(mica_net_tensor(a, &x, names[k]) == MICA_OK && mica_net_tensor(b, &y, names[k]) == MICA_OK);
        CHECK_MSG(mica_tensor_same_shape(&x, &y) && memcmp(x.data, y.data, mica_tensor_bytes(&x)) == 0,
                  "%s: %s", what, names[k]);
    }
}

/* No two buffers that are there at the same time share a byte, in whichever lane they are. */
static void check_apart(const mica_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        for (size_t j = 0; j < i; j++) {
            const mica_plan_buffer *a = &plan->buffers[i], *b = &plan->buffers[j];
            bool times = a->first <= b->last && b->first <= a->last;
            CHECK_MSG(!times || a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset,
                      "%s and %s", a->name, b->name);
        }
    for (size_t i = 0; i < plan->count; i++)
        CHECK(plan->buffers[i].offset + plan->buffers[i].bytes <= plan->total);
    CHECK(plan->lower_bound <= plan->total);
}

TEST(lanes_give_the_bits_of_one_thread)
{
    mica_context *contexts[THREADS + 1];
    for (int t = 1; t <= THREADS; t++)
        contexts[t] = test_context(t);
    int beside = 0;
    for (uint64_t seed = 0; seed < (uint64_t)test_effort(40); seed++) {
        test_random r = test_seed(31 * seed);
        int threads = test_int(&r, 2, THREADS);
        mica_index rows = test_int(&r, 1, 3), batch = rows * threads + test_int(&r, 0, 9);
        mica_compile_opts opts = {.part_rows = rows, .side_by_side = true, .prepare = test_chance(&r, 50)};
        mica_net *one = make(contexts[1], seed, batch, &opts),
                 *net = make(contexts[threads], seed, batch, &opts);
        REQUIRE(one != NULL && net != NULL);
        CHECK(one->lanes == 1);
        beside += net->lanes == threads;
        check_apart(mica_net_plan(net));
        for (mica_index n = 0; n <= 2 * batch; n++) {
            mica_index now = n <= batch ? n : test_int(&r, 0, (int)batch); /* larger and smaller ones, too */
            CHECK_OK(contexts[1], fill_and_run(one, now));
            test_heap heap = test_heap_now();
            CHECK_OK(contexts[threads], fill_and_run(net, now));
            CHECK(test_heap_now().calls == heap.calls);
            char what[120];
            (void)snprintf(what, sizeof what, "seed %d, %td of %td in parts of %td, %d threads", (int)seed,
                           now, batch, rows, threads);
            check_same(one, net, what);
        }
        mica_net_destroy(net);
        mica_net_destroy(one);
    }
    CHECK_MSG(beside > 0, "no plan had lanes");
}

/* Neither more than the batch as a whole, nor more than a budget. */
TEST(lanes_take_no_more_than_the_batch_would)
{
    enum { BATCH = 12 };
    for (int threads = 1; threads <= THREADS; threads++) {
        mica_context *ctx = test_context(threads);
        for (uint64_t seed = 0; seed < 6; seed++) {
            size_t whole = 0;
            mica_net *net = make(ctx, seed, BATCH, &(mica_compile_opts){.part_rows = MICA_WHOLE_BATCH});
            REQUIRE(net != NULL);
            whole = mica_net_plan(net)->total;
            mica_net_destroy(net);
            net = make(ctx, seed, BATCH, &(mica_compile_opts){.part_rows = 2, .side_by_side = true});
            REQUIRE(net != NULL);
            size_t total = mica_net_plan(net)->total;
            bool beside = net->lanes > 1;
            CHECK(!beside || total <= whole);
            mica_net_destroy(net);
            if (!beside)
                continue;
            net = make(ctx, seed, BATCH,
                       &(mica_compile_opts){.part_rows = 2, .side_by_side = true, .budget = total - 1});
            REQUIRE(net != NULL);
            CHECK(net->lanes == 1 && mica_net_plan(net)->total < total);
            CHECK_OK(ctx, fill_and_run(net, BATCH));
            size_t fewer = mica_net_plan(net)->total;
            mica_net_destroy(net);
            net = make(ctx, seed, BATCH, &(mica_compile_opts){.part_rows = 2});
            REQUIRE(net != NULL);
            CHECK(mica_net_plan(net)->lanes == 1 && mica_net_plan(net)->total == fewer);
            mica_net_destroy(net);
        }
    }
}

/* A caller's operation that refuses samples below 0. */
static mica_status picky_infer(mica_infer *i) { return mica_infer_like(i, 0, 0); }

static mica_status picky_run(const mica_call *c)
{
    const float *x = c->in[0]->data;
    if (!mica_call_measuring(c) && mica_tensor_count(c->in[0]) > 0 && x[0] < 0.0f)
        return mica_fail(c->ctx, MICA_ERR_ARGUMENT, "picky: %g", (double)x[0]);
    return mica_copy(c->ctx, c->out[0], c->in[0]);
}

static const mica_op picky = {.name = "picky", .ins = 1, .outs = 1, .infer = picky_infer, .run = picky_run};

TEST(lanes_tell_of_the_first_part_that_fails)
{
    enum { BATCH = 11, WIDTH = 100 };
    for (int threads = 1; threads <= 3; threads++) {
        mica_context *ctx = test_context(threads);
        mica_net *net;
        REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
        mica_value h = mica_net_input(net, "x", MICA_F32, DIMS(BATCH, WIDTH));
        h = mica_net_call(net, NULL, &picky, &h, 1, NULL);
        h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 300, .activation = MICA_RELU});
        h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 2});
        mica_net_output(net, "y", h);
        REQUIRE(mica_net_compile(net, &(mica_compile_opts){.part_rows = 1, .side_by_side = true}) == MICA_OK);
        REQUIRE(mica_net_bind(net, NULL, 0) == MICA_OK);
        CHECK_MSG(net->lanes == threads, "%d lanes of %d", net->lanes, threads);
        mica_tensor x;
        REQUIRE(mica_net_tensor(net, &x, "x") == MICA_OK);
        for (int bad = 0; bad < BATCH; bad++) {
            for (int i = 0; i < WIDTH * BATCH; i++) {
                int row = i / WIDTH;
                ((float *)x.data)[i] = row < bad ? 1.0f : -1.0f - (float)row;
            }
            char expected[32];
            (void)snprintf(expected, sizeof expected, "picky: %d", -1 - bad);
            CHECK(mica_net_forward(net) == MICA_ERR_ARGUMENT);
            CHECK_MSG(strstr(mica_error(ctx), expected) != NULL, "%d threads, %s: %s", threads, expected,
                      mica_error(ctx));
        }
        for (int i = 0; i < WIDTH * BATCH; i++)
            ((float *)x.data)[i] = 0.5f;
        CHECK_OK(ctx, mica_net_forward(net));
        mica_net_destroy(net);
    }
}

/* ---- What rules lanes out ---- */

static float twice(void *user, float x)
{
    (void)user;
    return 2.0f * x;
}

static mica_status plain_run(const mica_call *c) { return mica_copy(c->ctx, c->out[0], c->in[0]); }

static const mica_op plain = {.name = "plain", .ins = 1, .outs = 1, .infer = picky_infer, .run = plain_run};
static const mica_op serial = {
    .name = "serial", .flags = MICA_OP_SERIAL, .ins = 1, .outs = 1, .infer = picky_infer, .run = plain_run};

static int lanes_with(mica_context *ctx, const mica_op *op, const void *opts)
{
    mica_net *net;
    if (!CHECK_OK(ctx, mica_net_create(ctx, &net)))
        return 0;
    mica_value h = mica_net_input(net, "x", MICA_F32, DIMS(6, 50));
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 300});
    h = mica_net_call(net, NULL, op, &h, 1, opts);
    mica_net_output(net, "y", mica_net_dense(net, h, &(mica_net_dense_opts){.units = 2}));
    CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.part_rows = 1, .side_by_side = true}));
    int lanes = mica_net_plan(net)->lanes;
    mica_net_destroy(net);
    return lanes;
}

/* A caller's function is called on the calling thread alone; an operation may ask for that. */
TEST(lanes_are_not_for_what_must_be_serial)
{
    mica_context *ctx = test_context(2);
    CHECK(lanes_with(ctx, &plain, NULL) == 2);
    CHECK(lanes_with(ctx, &serial, NULL) == 1);
    CHECK(lanes_with(ctx, mica_op_find("apply1"), &(mica_function1){.call = twice}) == 1);
}

/* Needs more scratch with one thread than with several. */
static mica_status lonely_run(const mica_call *c)
{
    size_t bytes = mica_context_threads(c->ctx) == 1 ? 4096 : 64;
    void *scratch;
    MICA_START(c->ctx, "lonely", bytes, &scratch);
    memset(scratch, 1, bytes);
    return mica_copy(c->ctx, c->out[0], c->in[0]);
}

static const mica_op lonely = {
    .name = "lonely", .ins = 1, .outs = 1, .infer = picky_infer, .run = lonely_run};

TEST(lanes_have_the_scratch_of_one_thread)
{
    mica_context *ctx = test_context(2);
    mica_net *net;
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    mica_value h = mica_net_input(net, "x", MICA_F32, DIMS(6, 50));
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 3000});
    h = mica_net_call(net, NULL, &lonely, &h, 1, NULL);
    mica_net_output(net, "y", mica_net_dense(net, h, &(mica_net_dense_opts){.units = 2}));
    /* Again with other options: what belonged to the plan before is gone. */
    for (int i = 0; i < 3; i++) {
        bool beside = i != 1;
        CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.part_rows = 1, .side_by_side = beside}));
        CHECK(net->lanes == (beside ? 2 : 1));
    }
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_initialize(net, 1));
    for (mica_index batch = 6; batch >= 0; batch--)
        CHECK_OK(ctx, fill_and_run(net, batch));
    mica_net_destroy(net);
}

/* Watching a net makes its parts run in sequence; the bits stay. */
static void count_calls(void *user, const mica_work *work, bool done)
{
    (void)work;
    *(int *)user += done;
}

TEST(lanes_rest_while_a_net_is_watched)
{
    mica_context *ctx = test_context(3);
    mica_compile_opts opts = {.part_rows = 1, .side_by_side = true};
    mica_net *net = make(ctx, 5, 7, &opts), *other = make(ctx, 5, 7, &opts);
    REQUIRE(net != NULL && other != NULL);
    CHECK(net->lanes == 3);
    for (int i = 0; i < 4; i++) {
        int calls = 0;
        mica_net_watch(net, i % 2 == 0 ? count_calls : NULL, &calls);
        CHECK_OK(ctx, fill_and_run(net, 7));
        CHECK_OK(ctx, fill_and_run(other, 7));
        CHECK(i % 2 == 0 ? calls == 7 * net->entry_count : calls == 0);
        check_same(net, other, "watched");
    }
    mica_net_destroy(other);
    mica_net_destroy(net);
}

#endif
