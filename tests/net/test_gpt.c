/* The character GPT: plans, budgets, bits and learning. With MICA_LONG=1 it learns Shakespeare. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <mica/data.h>
#include <mica/train.h>

#include "data/sample.h"
#include "net/example_nets.h"

static const char paragraph[] =
    "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of "
    "foolishness, it was the epoch of belief, it was the epoch of incredulity, it was the season of Light, "
    "it was the season of Darkness, it was the spring of hope, it was the winter of despair.";

typedef struct gpt_size {
    mica_index batch, length;
    mica_net_gpt_opts gpt;
} gpt_size;

static const mica_optimizer adamw = {
    .kind = MICA_ADAMW, .lr = 1e-3f, .beta2 = 0.99f, .weight_decay = 0.1f, .clip_norm = 1.0f};

/* The reference workload, and one of twelve layers. */
static const gpt_size tiny = {16, 64, {.vocabulary = 256, .width = 128, .layers = 4, .heads = 4}};
static const gpt_size deep = {
    4, 32, {.kind = MICA_LLAMA, .vocabulary = 256, .width = 32, .layers = 12, .heads = 4, .kv_heads = 2}};

static mica_net *make(mica_context *ctx, const gpt_size *size, const mica_compile_opts *opts)
{
    mica_net *net;
    if (!CHECK_OK(ctx, mica_net_create(ctx, &net)))
        return NULL;
    mica_index dims[] = {size->batch, size->length};
    mica_value x = mica_net_input(net, "x", MICA_I32, 2, dims);
    mica_value target = mica_net_input(net, "target", MICA_I32, 2, dims);
    mica_value logits = mica_net_gpt(net, x, &size->gpt);
    mica_net_output(net, "logits", logits);
    mica_net_cross_entropy(net, logits, target, NULL);
    if (CHECK_OK(ctx, mica_net_compile(net, opts)) && CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) &&
        CHECK_OK(ctx, mica_net_initialize(net, 11)))
        return net;
    mica_net_destroy(net);
    return NULL;
}

/* One step on windows of a text. */
static mica_status train(mica_net *net, const mica_tensor *tokens, uint64_t step, float lr)
{
    mica_tensor x, target;
    mica_context *ctx = mica_net_context(net);
    mica_net_tensor(net, &x, "x");
    mica_net_tensor(net, &target, "target");
    mica_status status = mica_windows_random(ctx, &x, &target, tokens, mica_random_stream(5, step));
    return status != MICA_OK ? status : mica_train_step(net, lr);
}

enum { STEPS = 6 };

/* Trains a few steps; the losses and the plan that did it. */
static mica_plan losses_of(float loss[STEPS], mica_context *ctx, const gpt_size *size, size_t budget,
                           bool debug)
{
    mica_compile_opts opts = {.train = true, .optimizer = &adamw, .budget = budget, .debug = debug};
    mica_net *net = make(ctx, size, &opts);
    mica_plan plan = {0};
    memset(loss, 0, STEPS * sizeof *loss);
    if (net == NULL)
        return plan;
    mica_text text;
    CHECK_OK(ctx, mica_text_from_memory(ctx, &text, paragraph, sizeof paragraph - 1, NULL));
    plan = *mica_net_plan(net);
    check_plan(&plan);
    test_heap heap = test_heap_now();
    for (uint64_t step = 0; step < STEPS; step++) {
        CHECK_OK(ctx, train(net, &text.tokens, step, MICA_OPTIMIZER_LR));
        loss[step] = mica_net_loss(net);
    }
    CHECK(test_heap_now().calls == heap.calls);
    mica_text_destroy(ctx, &text);
    mica_net_destroy(net);
    return plan;
}

static size_t persistent(const mica_plan *plan)
{
    return plan->kind_bytes[MICA_BUFFER_PARAMETER] + plan->kind_bytes[MICA_BUFFER_GRADIENT] +
           plan->kind_bytes[MICA_BUFFER_OPTIMIZER] + plan->kind_bytes[MICA_BUFFER_STATE];
}

/* What training takes if nothing is recomputed. */
static size_t total_kept(mica_context *ctx, const gpt_size *size)
{
    mica_net *net = make(ctx, size, &(mica_compile_opts){.train = true, .optimizer = &adamw, .keep_cheap = true});
    size_t total = net != NULL ? mica_net_plan(net)->total : 0;
    mica_net_destroy(net);
    return total;
}

/* The same losses with one thread and two, and in 60 % of the memory for activations. */
static void check_gpt(const gpt_size *size)
{
    float loss[3][STEPS];
    mica_plan plan = losses_of(loss[0], test_context(1), size, 0, false);
    CHECK_MSG((double)plan.total <= 1.10 * (double)plan.lower_bound, "%zu bytes, lower bound %zu", plan.total,
              plan.lower_bound);
    CHECK_MSG(loss[0][STEPS - 1] < loss[0][0] - 0.1f, "loss from %g to %g", (double)loss[0][0],
              (double)loss[0][STEPS - 1]);
    losses_of(loss[1], test_context(2), size, 0, true);
    CHECK(memcmp(loss[0], loss[1], sizeof loss[0]) == 0);
    size_t kept = persistent(&plan), all = total_kept(test_context(2), size);
    size_t budget = kept + (all - kept) * 6 / 10;
    mica_plan small = losses_of(loss[2], test_context(2), size, budget, false);
    CHECK_MSG(small.total <= budget && small.recomputed > 0 && small.parts == 1, "%zu of %zu bytes, %d parts",
              small.total, budget, small.parts);
    CHECK(memcmp(loss[0], loss[2], sizeof loss[0]) == 0);
    printf("  activations %zu KiB of %zu, %d nodes run again, %.0f %% more forward work\n",
           (small.total - kept) / 1024, (all - kept) / 1024, small.recomputed,
           100.0 * small.extra_work);
}

TEST(gpt_tiny_trains_in_a_budget_with_the_same_bits)
{
    gpt_size size = tiny;
    size.batch = test_effort((int)tiny.batch);
    check_gpt(&size);
}
TEST(gpt_of_twelve_layers_trains_in_a_budget_with_the_same_bits)
{
    if (test_effort(100) < 10) /* another processor's emulation, where the one above takes long enough */
        test_skip("takes more effort");
    else
        check_gpt(&deep);
}

/* A token changes no logit before it. */
TEST(gpt_does_not_look_ahead)
{
    mica_context *ctx = test_context(1);
    for (int kind = 0; kind < 2; kind++) {
        gpt_size size = {1, 8, {.vocabulary = 16, .width = 32, .layers = 2, .heads = 4}};
        size.gpt.kind = kind == 0 ? MICA_GPT2 : MICA_LLAMA;
        mica_net *net = make(ctx, &size, NULL);
        REQUIRE(net != NULL);
        float logits[2][8 * 16];
        for (int run = 0; run < 2; run++) {
            mica_tensor x, target, y;
            mica_net_tensor(net, &x, "x");
            mica_net_tensor(net, &target, "target");
            memset(target.data, 0, mica_tensor_bytes(&target));
            for (int t = 0; t < 8; t++)
                ((int32_t *)x.data)[t] = t == 5 && run == 1 ? 9 : t;
            CHECK_OK(ctx, mica_net_forward(net));
            mica_net_tensor(net, &y, "logits");
            memcpy(logits[run], y.data, sizeof logits[run]);
        }
        CHECK(memcmp(logits[0], logits[1], 5 * 16 * sizeof(float)) == 0);
        CHECK(memcmp(logits[0] + 5 * 16, logits[1] + 5 * 16, 16 * sizeof(float)) != 0);
        mica_net_destroy(net);
    }
}

/* ---- Shakespeare ---- */

/* The mean loss over all whole windows, but those of a last batch that is not full. */
static double validation_loss(mica_net *net, const mica_tensor *tokens)
{
    mica_tensor x, target;
    mica_context *ctx = mica_net_context(net);
    mica_net_tensor(net, &x, "x");
    mica_net_tensor(net, &target, "target");
    mica_index windows = mica_windows_count(tokens, x.dim[1]), batches = windows / x.dim[0];
    double sum = 0.0;
    for (mica_index i = 0; i < batches; i++) {
        CHECK_OK(ctx, mica_windows_in_order(ctx, &x, &target, tokens, i * x.dim[0]));
        CHECK_OK(ctx, mica_net_forward(net));
        sum += (double)mica_net_loss(net);
    }
    return sum / (double)batches;
}

TEST(gpt_learns_shakespeare)
{
    enum { ITERATIONS = 2000 };
    const char *path = sample_real_data("tinyshakespeare.txt");
    if (getenv("MICA_LONG") == NULL || path == NULL) {
        test_skip("set MICA_LONG=1, with tinyshakespeare.txt in $MICA_DATA or ../shared/data");
        return;
    }
    mica_context *ctx = test_context(2);
    mica_text text;
    REQUIRE(CHECK_OK(ctx, mica_text_load(ctx, &text, path, &(mica_text_opts){.characters = true})));
    mica_index split = text.tokens.dim[0] * 9 / 10;
    mica_tensor learn, check;
    CHECK_OK(ctx, mica_view_slice(ctx, &learn, &text.tokens, 0, 0, split, 1));
    CHECK_OK(ctx, mica_view_slice(ctx, &check, &text.tokens, 0, split, MICA_END, 1));
    gpt_size size = {12, 64, {.vocabulary = text.vocabulary.count, .width = 128, .layers = 4, .heads = 4}};
    mica_net *net = make(ctx, &size, &(mica_compile_opts){.train = true, .optimizer = &adamw});
    REQUIRE(net != NULL);
    mica_schedule schedule = {
        .kind = MICA_SCHEDULE_COSINE, .lr = 1e-3f, .min_lr = 1e-4f, .warmup = 100, .total = ITERATIONS};
    struct timespec begin, end;
    timespec_get(&begin, TIME_UTC);
    for (uint64_t step = 0; step < ITERATIONS; step++)
        REQUIRE(train(net, &learn, step, mica_schedule_lr(&schedule, step)) == MICA_OK);
    timespec_get(&end, TIME_UTC);
    double seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    double loss = validation_loss(net, &check);
    CHECK_MSG(loss <= 1.90, "validation loss %.4f after %d iterations", loss, ITERATIONS);
    printf("  validation loss %.4f, %.1f ms an iteration\n", loss, 1e3 * seconds / ITERATIONS);
    mica_net_destroy(net);
    mica_text_destroy(ctx, &text);
}
