/* Single steps of ranks: what they take from the heap, and what is left of one that failed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mica/netfile.h>

#include "net/net.h"
#include "net/thread_ranks.h"
#include "test.h"

#if !defined(MICA_NO_THREADS)

enum { MOST_RANKS = 4, BATCH = 24, SHARES = 12, STEPS = 4 };

static const char net_text[] =
    "input x [1, 6, 6]\nconv 4 3x3\nbatch_norm relu\nflatten\ndense 33 relu\ndense 5 name=logits\nloss cross_entropy\n";
static const char dense_text[] =
    "input x [1, 6, 6]\nflatten\ndense 99 tanh\ndense 5 name=logits\nloss cross_entropy\n";

typedef enum fault { NO_FAULT, NAN_IN_DATA, NO_DATA, TOO_MANY_ROWS, NO_LR, NO_FILL } fault;

typedef struct trial {
    bool spread;
    int parts;
    float clip;
    fault fault; /* of rank 1, once, before the second step */

    mica_status failed[MOST_RANKS], status[MOST_RANKS];
    char error[MOST_RANKS][300];
    bool same[MOST_RANKS];
    float *kept; /* by rank 0, at the end */
    size_t count;
    uint64_t calls, own_calls[MOST_RANKS]; /* of the heap, in the last steps: of all; of the rank's context */
} trial;

static mica_status fill(mica_net *net, mica_index first, mica_index count, void *user)
{
    const fault *wrong = user;
    mica_tensor x, y;
    mica_status s = mica_net_input_tensor(net, NULL, &x, 0);
    s = s == MICA_OK ? mica_net_input_tensor(net, NULL, &y, 1) : s;
    mica_index each = s == MICA_OK ? (mica_index)mica_tensor_count(&x) / count : 0;
    for (mica_index i = 0; i < count * each; i++)
        ((float *)x.data)[i] = *wrong == NAN_IN_DATA ? NAN
                                                     : (float)((first * 31 + i * 17) % 23) / 11.0f - 1.0f;
    for (mica_index i = 0; i < count && s == MICA_OK; i++)
        ((int32_t *)y.data)[i] = (int32_t)((first + i) % 5);
    return *wrong == NO_DATA && first >= 8 ? mica_fail(net->ctx, MICA_ERR_IO, "the disk is gone") : s;
}

/* All that a net keeps from step to step, one after the other; returns how many floats. */
static size_t keep(float *to, mica_net *net)
{
    size_t count = 0;
    for (int i = 0; i < net->built_values; i++) {
        const mica_value_info *v = &net->values[i];
        if (v->home != MICA_HOME_LEARNED && (v->home != MICA_HOME_KEPT || v->kept == MICA_KEPT_PRIVATE))
            continue;
        mica_tensor t = mica_net_built_tensor(net, v);
        memcpy(to + count, t.data, mica_tensor_count(&t) * sizeof *to);
        count += mica_tensor_count(&t);
    }
    return count;
}

static mica_status step(mica_ranks *ranks, trial *t, fault wrong)
{
    mica_ranks_outcome out;
    mica_status s = MICA_OK;
    for (int part = 0; part < t->parts && s == MICA_OK; part++)
        s = mica_ranks_step(ranks, &out,
                            &(mica_ranks_step_opts){.rows = wrong == TOO_MANY_ROWS ? BATCH + 1 : BATCH - part,
                                                    .fill = wrong == NO_FILL ? NULL : fill,
                                                    .user = &wrong,
                                                    .part = part,
                                                    .parts = t->parts,
                                                    .lr = wrong == NO_LR ? NAN : 0.01f});
    return s;
}

/* Waits for all ranks. */
static void meet(const mica_transport *wire)
{
    char all[MOST_RANKS], own = 0;
    (void)wire->gather(wire->user, all, &own, 1);
}

static mica_status take_steps(mica_context *ctx, mica_net *net, mica_ranks *ranks, trial *t,
                              const mica_transport *wire)
{
    int rank = wire->rank;
    static float before[MOST_RANKS][10000], after[MOST_RANKS][10000];
    mica_status s = step(ranks, t, NO_FAULT);
    if (s == MICA_OK && t->fault != NO_FAULT) {
        size_t count = keep(before[rank], net);
        t->failed[rank] = step(ranks, t, rank == 1 ? t->fault : NO_FAULT);
        (void)snprintf(t->error[rank], sizeof t->error[0], "%s", mica_error(ctx));
        t->same[rank] = keep(after[rank], net) == count &&
                        memcmp(before[rank], after[rank], count * sizeof(float)) == 0;
    }
    s = s == MICA_OK ? step(ranks, t, NO_FAULT) : s;
    meet(wire);
    uint64_t calls = rank == 0 ? test_heap_now().calls : 0, own = mica_context_heap(ctx).allocations;
    meet(wire);
    for (int i = 2; i < STEPS && s == MICA_OK; i++)
        s = step(ranks, t, NO_FAULT);
    meet(wire);
    t->own_calls[rank] = mica_context_heap(ctx).allocations - own;
    if (rank == 0)
        t->calls = test_heap_now().calls - calls;
    meet(wire);
    if (rank == 0) {
        t->kept = malloc(sizeof before[0]);
        t->count = keep(t->kept, net);
    }
    return s;
}

static void be_rank(const mica_transport *wire, void *user)
{
    trial *t = user;
    mica_context *ctx;
    mica_net *net = NULL;
    mica_ranks *ranks = NULL;
    mica_optimizer adam = {.kind = MICA_ADAMW, .clip_norm = t->clip};
    mica_compile_opts compile = {.train = true, .optimizer = &adam, .ranks = t->spread ? wire->ranks : 0};
    mica_status s = mica_context_create(&ctx, &(mica_context_opts){.threads = 1});
    s = s == MICA_OK ? mica_net_create(ctx, &net) : s;
    s = s == MICA_OK ? mica_netfile_build(net, NULL, net_text, &(mica_netfile_opts){.batch = BATCH / SHARES})
                     : s;
    s = s == MICA_OK ? mica_net_compile(net, &compile) : s;
    s = s == MICA_OK ? mica_net_bind(net, NULL, 0) : s;
    s = s == MICA_OK ? mica_net_initialize(net, 1) : s;
    mica_ranks_opts opts = {
        .transport = wire, .batch = BATCH, .shares = SHARES, .bucket = 1000, .accumulates = t->parts > 1};
    s = s == MICA_OK ? mica_ranks_create(ctx, &ranks, net, &opts) : s;
    t->status[wire->rank] = s == MICA_OK ? take_steps(ctx, net, ranks, t, wire) : s;
    mica_ranks_destroy(ranks);
    mica_net_destroy(net);
    mica_context_destroy(ctx);
}

static trial try(trial t, int ranks)
{
    run_thread_ranks(ranks, be_rank, &t);
    for (int i = 0; i < ranks; i++)
        CHECK(t.status[i] == MICA_OK);
    return t;
}

TEST(ranks_steps_take_nothing_from_the_heap)
{
    for (int i = 0; i < 8; i++) {
        trial t = {.spread = i % 2 == 1, .parts = 1 + i / 2 % 2, .clip = i / 4 > 0 ? 0.1f : 0.0f};
        for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
            trial done = try(t, ranks);
            for (int rank = 0; rank < ranks; rank++)
                CHECK(done.own_calls[rank] == 0);
            CHECK_MSG(done.calls == 0, "%d ranks: %llu calls of the heap", ranks,
                      (unsigned long long)done.calls);
            free(done.kept);
        }
    }
}

/* What was there before the step is there after it, running statistics included, and training goes on from there. */
TEST(ranks_failed_step_leaves_no_trace)
{
    static const struct {
        fault fault;
        mica_status status;
        const char *text;
    } faults[] = {{NAN_IN_DATA, MICA_ERR_DIVERGED, "on rank 1, share"},
                  {NO_DATA, MICA_ERR_IO, "rank 1: the disk is gone"},
                  {TOO_MANY_ROWS, MICA_ERR_SHAPE, "rank 1: ranks_step: 25 rows of a batch of at most 24"},
                  {NO_LR, MICA_ERR_ARGUMENT, "rank 1: train_update: the learning rate is nan"},
                  {NO_FILL, MICA_ERR_ARGUMENT, "rank 1: ranks_step: fill is NULL"}};
    for (int i = 0; i < 4; i++) {
        trial t = {.spread = i % 2 == 1, .parts = 1 + i / 2};
        trial whole = try(t, 1);
        for (size_t k = 0; k < sizeof faults / sizeof faults[0]; k++)
            for (int ranks = 2; ranks <= MOST_RANKS; ranks++) {
                t.fault = faults[k].fault;
                trial got = try(t, ranks);
                for (int rank = 0; rank < ranks; rank++) {
                    CHECK(got.failed[rank] == faults[k].status && got.same[rank]);
                    CHECK_MSG(strstr(got.error[rank], faults[k].text) != NULL, "%s", got.error[rank]);
                }
                CHECK(got.count == whole.count &&
                      memcmp(got.kept, whole.kept, got.count * sizeof(float)) == 0);
                free(got.kept);
            }
        free(whole.kept);
    }
}

/* ---- Ranks that would not do the same ---- */

typedef struct unlike {
    size_t budget;
    int parts[2];
    mica_status status[2];
    char error[2][300];
} unlike;

static void be_unlike(const mica_transport *wire, void *user)
{
    unlike *u = user;
    mica_context *ctx;
    mica_net *net = NULL;
    mica_ranks *ranks = NULL;
    mica_optimizer sgd = {.kind = MICA_SGD};
    mica_compile_opts compile = {.train = true, .optimizer = &sgd, .budget = wire->rank == 1 ? u->budget : 0};
    mica_status s = mica_context_create(&ctx, &(mica_context_opts){.threads = 1});
    s = s == MICA_OK ? mica_net_create(ctx, &net) : s;
    s = s == MICA_OK ? mica_netfile_build(net, NULL, dense_text, &(mica_netfile_opts){.batch = 64}) : s;
    s = s == MICA_OK ? mica_net_compile(net, &compile) : s;
    s = s == MICA_OK ? mica_net_bind(net, NULL, 0) : s;
    s = s == MICA_OK ? mica_net_initialize(net, 1) : s;
    u->parts[wire->rank] = s == MICA_OK ? (int)mica_net_plan(net)->parts : 0;
    mica_ranks_opts opts = {.transport = wire, .shares = 2, .accumulates = u->budget == 0 && wire->rank == 1};
    u->status[wire->rank] = mica_ranks_create(ctx, &ranks, net, &opts);
    (void)snprintf(u->error[wire->rank], sizeof u->error[0], "%s", mica_error(ctx));
    mica_ranks_destroy(ranks);
    mica_net_destroy(net);
    mica_context_destroy(ctx);
}

TEST(ranks_must_have_the_same_parts)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    mica_optimizer sgd = {.kind = MICA_SGD};
    CHECK_OK(ctx, mica_net_create(ctx, &net));
    CHECK_OK(ctx, mica_netfile_build(net, NULL, dense_text, &(mica_netfile_opts){.batch = 64}));
    CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &sgd}));
    unlike budgets = {.budget = mica_net_plan(net)->total * 17 / 20}, parts = {0};
    mica_net_destroy(net);
    run_thread_ranks(2, be_unlike, &budgets);
    run_thread_ranks(2, be_unlike, &parts);
    CHECK(budgets.parts[0] == 1 && budgets.parts[1] > 1);
    for (int i = 0; i < 2; i++) {
        CHECK(budgets.status[i] == MICA_ERR_STATE && parts.status[i] == MICA_ERR_STATE);
        CHECK_MSG(strstr(budgets.error[i], "rank 1 has other parts of a share") != NULL, "%s",
                  budgets.error[i]);
        CHECK_MSG(strstr(parts.error[i], "rank 1 has other options") != NULL, "%s", parts.error[i]);
    }
}

#endif
