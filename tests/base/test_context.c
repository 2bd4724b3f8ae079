/* Contexts: made and placed, options that cannot be, instruction sets by name, the workspace, the counters. */
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "oom.h"

static const char *const known_isas[] = {"scalar", "avx2", "avx512", "neon"};

TEST(context_defaults)
{
    mica_context *ctx = NULL;
    REQUIRE(mica_context_create(&ctx, NULL) == MICA_OK);
    CHECK(mica_context_threads(ctx) == 1);
    CHECK(mica_context_status(ctx) == MICA_OK && strcmp(mica_error(ctx), "") == 0);
    CHECK(mica_workspace_bytes(ctx) == MICA_DEFAULT_WORKSPACE);
    mica_heap_stats heap = mica_context_heap(ctx);
    CHECK(heap.allocations == 2 && heap.releases == 0 && heap.failures == 0);
    CHECK(heap.live_bytes == sizeof *ctx + MICA_DEFAULT_WORKSPACE && heap.peak_bytes == heap.live_bytes);
    CHECK(heap.total_bytes == heap.live_bytes);
    mica_context_destroy(ctx);
    mica_context_destroy(NULL);
}

TEST(context_options_that_cannot_be)
{
    static _Alignas(64) char block[256];
    oom_heap heap = {0};
    mica_allocator no_release = oom_allocator(&heap), no_allocate = no_release;
    no_release.release = NULL;
    no_allocate.allocate = NULL;
    const mica_context_opts bad[] = {
        {.threads = -1},
        {.threads = MICA_MAX_THREADS + 1},
        {.isa = "mmx"},
        {.isa = "AVX2"},
        {.workspace = block},                             /* of no size */
        {.workspace = block + 8, .workspace_bytes = 128}, /* not aligned */
        {.allocator = &no_release},
        {.allocator = &no_allocate},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        mica_context *ctx = (mica_context *)block;
        size_t bytes = 7;
        CHECK_MSG(mica_context_create(&ctx, &bad[i]) == MICA_ERR_ARGUMENT, "create, case %zu", i);
        CHECK(ctx == NULL);
        CHECK_MSG(mica_context_place(NULL, NULL, &bytes, &bad[i]) == MICA_ERR_ARGUMENT, "place, case %zu", i);
        CHECK(bytes == 7);
    }
    CHECK(mica_context_create(NULL, NULL) == MICA_ERR_ARGUMENT);
    CHECK(heap.calls == 0);
}

TEST(context_placed_in_the_callers_memory)
{
    size_t bytes = 0, without = 0;
    mica_context_opts opts = {.workspace_bytes = 1000};
    REQUIRE(mica_context_place(NULL, NULL, &bytes, &opts) == MICA_OK);
    char *memory = aligned_alloc(64, bytes + 64);
    REQUIRE(memory != NULL);

    test_heap before = test_heap_now();
    mica_context *ctx = NULL;
    REQUIRE(mica_context_place(&ctx, memory, &bytes, &opts) == MICA_OK);
    CHECK((char *)ctx == memory && mica_workspace_bytes(ctx) == 1000);
    memset(ctx->workspace, 1, 1000);
    CHECK((char *)ctx->workspace >= memory && (char *)ctx->workspace + 1000 <= memory + bytes);
    CHECK(mica_context_heap(ctx).allocations == 0);
    mica_context_destroy(ctx);
    CHECK(test_heap_now().calls == before.calls && test_heap_now().frees == before.frees);

    size_t less = bytes - 1;
    CHECK(mica_context_place(&ctx, memory, &less, &opts) == MICA_ERR_MEMORY && ctx == NULL);
    CHECK_MSG(less == bytes, "too small a block: %zu bytes are wanted, not %zu", less, bytes);
    CHECK(mica_context_place(&ctx, memory + 8, &bytes, &opts) == MICA_ERR_ARGUMENT);
    CHECK(mica_context_place(NULL, memory, &bytes, &opts) == MICA_ERR_ARGUMENT);
    CHECK(mica_context_place(&ctx, memory, NULL, &opts) == MICA_ERR_ARGUMENT);
    opts.threads = 2;
    CHECK(mica_context_place(&ctx, memory, &bytes, &opts) == MICA_ERR_ARGUMENT);

    /* A workspace elsewhere is not part of the block; one that no address space holds is refused. */
    static _Alignas(64) char workspace[128];
    opts = (mica_context_opts){.workspace = workspace, .workspace_bytes = sizeof workspace};
    CHECK(mica_context_place(NULL, NULL, &without, &opts) == MICA_OK);
    CHECK(without == mica_align_up(sizeof *ctx));
    CHECK(mica_context_place(&ctx, memory, &without, &opts) == MICA_OK && ctx->workspace == workspace);
    mica_context_destroy(ctx);
    for (size_t short_of = 0; short_of < 128; short_of += 21) {
        opts = (mica_context_opts){.workspace_bytes = SIZE_MAX - short_of};
        CHECK(mica_context_place(NULL, NULL, &bytes, &opts) == MICA_ERR_MEMORY);
        CHECK(mica_context_create(&ctx, &opts) == MICA_ERR_MEMORY);
    }
    free(memory);
}

TEST(context_isa_by_name)
{
    int found = 0;
    for (size_t i = 0; i < sizeof known_isas / sizeof known_isas[0]; i++) {
        mica_context *ctx = NULL;
        mica_status status = mica_context_create(&ctx, &(mica_context_opts){.isa = known_isas[i]});
        CHECK(status == MICA_OK || (status == MICA_ERR_ARGUMENT && ctx == NULL));
        if (status == MICA_OK) {
            CHECK(strcmp(mica_context_isa(ctx), known_isas[i]) == 0);
            found++;
        } else {
            CHECK(strcmp(known_isas[i], "scalar") != 0);
        }
        mica_context_destroy(ctx);
    }
    CHECK(found >= 1);
}

TEST(context_isa_by_environment)
{
    const char *before = getenv("MICA_ISA");
    char *kept = before != NULL ? strdup(before) : NULL;
    mica_context *ctx = NULL;
    setenv("MICA_ISA", "scalar", 1);
    REQUIRE(mica_context_create(&ctx, NULL) == MICA_OK);
    CHECK(strcmp(mica_context_isa(ctx), "scalar") == 0);
    mica_context_destroy(ctx);
    setenv("MICA_ISA", "abacus", 1);
    CHECK(mica_context_create(&ctx, NULL) == MICA_ERR_ARGUMENT);
    /* The caller's word counts for more; an empty variable counts for nothing. */
    CHECK(mica_context_create(&ctx, &(mica_context_opts){.isa = "scalar"}) == MICA_OK);
    mica_context_destroy(ctx);
    setenv("MICA_ISA", "", 1);
    CHECK(mica_context_create(&ctx, NULL) == MICA_OK);
    mica_context_destroy(ctx);
    if (kept != NULL)
        setenv("MICA_ISA", kept, 1);
    else
        unsetenv("MICA_ISA");
    free(kept);
}

TEST(context_workspace)
{
    static _Alignas(64) char block[1024];
    oom_heap heap = {0};
    mica_allocator allocator = oom_allocator(&heap);
    mica_context *ctx = NULL;
    mica_context_opts opts = {.allocator = &allocator, .workspace = block, .workspace_bytes = 512};
    REQUIRE(mica_context_create(&ctx, &opts) == MICA_OK);
    CHECK(mica_workspace_bytes(ctx) == 512 && ctx->workspace == block && heap.blocks == 1);
    CHECK_OK(ctx, mica_workspace_reserve(ctx, 512)); /* it is that large already */
    CHECK(ctx->workspace == block && heap.blocks == 1);
    CHECK_OK(ctx, mica_workspace_reserve(ctx, 513));
    CHECK(mica_workspace_bytes(ctx) == 513 && ctx->workspace != block && heap.blocks == 2);
    CHECK_OK(ctx, mica_workspace_reserve(ctx, 2000)); /* the former goes back */
    CHECK(mica_workspace_bytes(ctx) == 2000 && heap.blocks == 2 && heap.bytes == sizeof *ctx + 2000);

    heap.refuse = heap.calls + 1;
    void *former = ctx->workspace;
    CHECK_ERROR(ctx, mica_workspace_reserve(ctx, 4000), MICA_ERR_MEMORY,
                "memory error: cannot allocate 4000 bytes");
    CHECK(mica_context_status(ctx) == MICA_ERR_MEMORY);
    CHECK(ctx->workspace == former && mica_workspace_bytes(ctx) == 2000);
    CHECK_ERROR(ctx, mica_workspace_give(ctx, block + 1, 100), MICA_ERR_ARGUMENT,
                "argument error: workspace_give: the block must be aligned to 64 bytes");
    CHECK_ERROR(ctx, mica_workspace_give(ctx, NULL, 100), MICA_ERR_ARGUMENT,
                "argument error: workspace_give: block is NULL, bytes is 100");
    CHECK(ctx->workspace == former && mica_workspace_bytes(ctx) == 2000);

    CHECK_OK(ctx, mica_workspace_give(ctx, block, sizeof block));
    CHECK(mica_workspace_bytes(ctx) == 1024 && heap.blocks == 1);
    CHECK_OK(ctx, mica_workspace_give(ctx, NULL, 0));
    CHECK(mica_workspace_bytes(ctx) == 0 && ctx->workspace == NULL);
    mica_heap_stats stats = mica_context_heap(ctx);
    CHECK(stats.allocations == 3 && stats.releases == 2 && stats.failures == 1);
    CHECK(stats.live_bytes == sizeof *ctx && stats.total_bytes == sizeof *ctx + 2513);
    CHECK(stats.peak_bytes == sizeof *ctx + 2513); /* the new one is taken before the old goes */
    CHECK_OK(ctx, mica_workspace_reserve(ctx, 100));
    mica_context_destroy(ctx);
    CHECK(heap.blocks == 0 && heap.bytes == 0);
}

TEST(context_measures_from_nothing)
{
    mica_context *ctx = test_context(1);
    mica_measure_begin(ctx);
    CHECK(mica_measure_end(ctx) == 0);
}

TEST(context_error_texts_are_cut_to_fit)
{
    mica_context *ctx = test_context(1);
    char longer[2 * MICA_ERROR_TEXT];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    CHECK(mica_fail(ctx, MICA_ERR_SHAPE, "%s", longer) == MICA_ERR_SHAPE);
    CHECK(strlen(mica_error(ctx)) == MICA_ERROR_TEXT - 1);
    CHECK(strncmp(mica_error(ctx), "shape error: xxx", 16) == 0);
    CHECK_ERROR(ctx, mica_fail(ctx, MICA_ERR_AXIS, "axis %d", 3), MICA_ERR_AXIS, "axis error: axis 3");
}

TEST(context_status_texts)
{
    for (int s = 0; s < MICA_STATUS_COUNT; s++)
        for (int t = 0; t < s; t++)
            CHECK(strcmp(mica_status_text((mica_status)s), mica_status_text((mica_status)t)) != 0);
    CHECK(strcmp(mica_status_text(MICA_OK), "ok") == 0);
    CHECK(strcmp(mica_status_text(MICA_STATUS_COUNT), "unknown status") == 0);
    CHECK(strcmp(mica_status_text((mica_status)-1), "unknown status") == 0);
    CHECK(strcmp(mica_version(), "0.2.0") == 0);
}

static mica_status context_work(const mica_allocator *allocator, void *threads)
{
    mica_context *ctx = NULL;
    mica_context_opts opts = {.allocator = allocator, .threads = *(int *)threads, .workspace_bytes = 100};
    mica_status status = mica_context_create(&ctx, &opts);
    CHECK((status == MICA_OK) == (ctx != NULL));
    if (status == MICA_OK) {
        status = mica_workspace_reserve(ctx, 1000);
        if (status != MICA_OK)
            CHECK(strcmp(mica_error(ctx), "memory error: cannot allocate 1000 bytes") == 0);
    }
    mica_context_destroy(ctx);
    return status;
}

TEST(context_out_of_memory_at_every_allocation)
{
    int threads = 1;
    CHECK(test_oom(context_work, &threads) == 3);
#if !defined(MICA_NO_THREADS)
    threads = 3;
    CHECK(test_oom(context_work, &threads) == 4);
#endif
}

TEST(context_many_threads)
{
    mica_context *ctx = NULL;
#if defined(MICA_NO_THREADS)
    CHECK(mica_context_create(&ctx, &(mica_context_opts){.threads = 2}) == MICA_ERR_ARGUMENT && ctx == NULL);
#else
    for (int threads = 1; threads <= 33; threads += 16) {
        REQUIRE(mica_context_create(&ctx, &(mica_context_opts){.threads = threads}) == MICA_OK);
        CHECK(mica_context_threads(ctx) == threads);
        mica_context_destroy(ctx);
    }
#endif
}

/* Whatever was not made, or has ended already, may be ended: so cleaning up needs no conditions. */
TEST(nothing_can_be_destroyed)
{
    mica_context *ctx = test_context(1);
    uint64_t calls = test_heap_now().calls;
    mica_context_destroy(NULL);
    mica_net_destroy(NULL);
    mica_pool_destroy(NULL);
    mica_scope_end(NULL);
    mica_arena_destroy(ctx, NULL);
    mica_batches_destroy(ctx, NULL);
    mica_dataset_destroy(ctx, NULL);
    mica_text_destroy(ctx, NULL);
    mica_safetensors_close(ctx, NULL);
    for (int twice = 0; twice < 2; twice++) {
        mica_scope_end(&(mica_scope){0});
        mica_arena_destroy(ctx, &(mica_arena){0});
        mica_dataset_destroy(ctx, &(mica_dataset){0});
        mica_text_destroy(ctx, &(mica_text){0});
    }
    CHECK(test_heap_now().calls == calls && mica_context_status(ctx) == MICA_OK);
}
