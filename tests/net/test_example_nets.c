/* Every example net: its plan is sound and tight, takes the bytes it announced, and no step makes a heap call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/example_nets.h"

/* ---- Plans ---- */

TEST(example_plans_are_tight)
{
    mica_context *ctx = test_context(1);
    double sum = 0.0;
    for (int i = 0; i < example_net_count; i++) {
        const example_net *example = &example_nets[i];
        mica_net *net = example_net_make(ctx, example, 0, NULL);
        REQUIRE(net != NULL);
        const mica_plan *plan = mica_net_plan(net);
        check_plan(plan);
        double ratio = (double)plan->total / (double)plan->lower_bound;
        CHECK_MSG(ratio <= 1.10, "%s: %zu bytes, lower bound %zu", example->name, plan->total,
                  plan->lower_bound);
        if (getenv("MICA_TEST_SHOW") != NULL)
            printf("  %-10s %10zu bytes, %.4f of the lower bound\n", example->name, plan->total, ratio);
        sum += ratio;
        mica_net_destroy(net);
    }
    CHECK_MSG(sum / example_net_count <= 1.03, "on average %.3f of the lower bound", sum / example_net_count);
}

/* A block of exactly the announced bytes is enough, and nothing outside of it is touched. */
TEST(example_plans_take_the_bytes_they_announce)
{
    enum { MARGIN = 4096 };
    mica_context *ctx = test_context(1);
    for (int i = 0; i < example_net_count; i++) {
        const example_net *example = &example_nets[i];
        mica_net *net;
        REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
        example->build(net, 2);
        REQUIRE(mica_net_compile(
                    net, &(mica_compile_opts){.train = true, .optimizer = &example->optimizer}) == MICA_OK);
        size_t total = mica_net_plan(net)->total;
        unsigned char *block = aligned_alloc(64, total + 2 * MARGIN);
        memset(block, 0x5c, total + 2 * MARGIN);
        uint64_t live = mica_context_heap(ctx).live_bytes;
        CHECK_OK(ctx, mica_net_bind(net, block + MARGIN, total));
        CHECK_OK(ctx, mica_net_initialize(net, 1));
        for (uint64_t step = 0; step < 3; step++) {
            example_net_fill(net, example, step);
            CHECK_OK(ctx, mica_train_step(net, MICA_OPTIMIZER_LR));
        }
        CHECK(mica_context_heap(ctx).live_bytes == live);
        bool outside = false;
        for (size_t j = 0; j < MARGIN; j++)
            outside = outside || block[j] != 0x5c || block[MARGIN + total + j] != 0x5c;
        CHECK_MSG(!outside, "%s wrote outside of its block", example->name);
        mica_net_destroy(net);
        free(block);
    }
}

/* ---- Heap calls ---- */

typedef mica_status step_fn(mica_net *net, const example_net *example, uint64_t number);

static mica_status train_one(mica_net *net, const example_net *example, uint64_t number)
{
    example_net_fill(net, example, number);
    return mica_train_step(net, MICA_OPTIMIZER_LR);
}

static mica_status evaluate_one(mica_net *net, const example_net *example, uint64_t number)
{
    example_net_fill(net, example, number);
    return mica_net_forward(net);
}

static mica_status alternate(mica_net *net, const example_net *example, uint64_t number)
{
    return number % 2 == 0 ? train_one(net, example, number) : evaluate_one(net, example, number);
}

static mica_status accumulate(mica_net *net, const example_net *example, uint64_t number)
{
    enum { PARTS = 3 };
    mica_status status = MICA_OK;
    for (int part = 0; part < PARTS && status == MICA_OK; part++) {
        example_net_fill(net, example, number + (uint64_t)part);
        status = mica_train_accumulate(net, part, PARTS);
    }
    return status != MICA_OK ? status : mica_train_update(net, MICA_OPTIMIZER_LR);
}

/* Batches of changing size, as at the end of an epoch. */
static mica_status resize(mica_net *net, const example_net *example, uint64_t number)
{
    mica_status status = mica_net_resize(net, 1 + (mica_index)(number % 2));
    return status != MICA_OK ? status : train_one(net, example, number);
}

static void check_heap(mica_context *ctx, const example_net *example)
{
    static const struct {
        const char *what;
        step_fn *step;
    } kinds[] = {{"train", train_one},
                 {"eval", evaluate_one},
                 {"alternating", alternate},
                 {"accumulating", accumulate},
                 {"resizing", resize}};
    mica_net *net = example_net_make(ctx, example, 2, NULL);
    REQUIRE(net != NULL);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        int steps = test_effort(100);
        test_heap before = test_heap_now();
        for (uint64_t number = 0; number < (uint64_t)steps; number++)
            REQUIRE(kinds[k].step(net, example, number) == MICA_OK);
        uint64_t calls = test_heap_now().calls - before.calls;
        CHECK_MSG(calls == 0, "%s, %s: %llu heap calls in %d steps with %d threads", example->name,
                  kinds[k].what, (unsigned long long)calls, steps, mica_context_threads(ctx));
    }
    mica_net_destroy(net);
}

TEST(example_nets_step_without_heap_calls)
{
    if (!test_heap_counted()) {
        test_skip("heap calls are not counted in this build");
        return;
    }
    for (int threads = 1; threads <= 2; threads++) {
        mica_context *ctx = test_context(threads);
        for (int i = 0; i < example_net_count; i++)
            check_heap(ctx, &example_nets[i]);
    }
}

/* ---- Bits ---- */

enum { STEPS = 5 };

static void losses_of(float loss[STEPS], mica_context *ctx, const example_net *example, bool debug)
{
    mica_compile_opts opts = {.train = true, .optimizer = &example->optimizer, .debug = debug};
    mica_net *net = example_net_make(ctx, example, 3, &opts);
    memset(loss, 0, STEPS * sizeof *loss);
    REQUIRE(net != NULL);
    for (uint64_t step = 0; step < STEPS; step++) {
        CHECK_OK(ctx, train_one(net, example, step));
        loss[step] = mica_net_loss(net);
    }
    mica_net_destroy(net);
}

TEST(example_nets_have_the_same_losses_for_any_number_of_threads)
{
    mica_context *ctx[] = {test_context(1), test_context(2), test_context(3)};
    for (int i = 0; i < example_net_count; i++) {
        float one[STEPS], other[STEPS];
        losses_of(one, ctx[0], &example_nets[i], false);
        for (int more = 1; more < 3; more++) {
            losses_of(other, ctx[more], &example_nets[i], true);
            CHECK_MSG(memcmp(one, other, sizeof one) == 0, "%s with %d threads", example_nets[i].name,
                      more + 1);
        }
    }
}
