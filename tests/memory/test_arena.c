/* Arenas: parts in order, aligned, released to marks; failures that change nothing. */
#include <string.h>

#include "oom.h"

static _Alignas(64) char block[4096];

TEST(arena_gives_aligned_parts_in_order)
{
    mica_context *ctx = test_context(1);
    mica_arena arena;
    CHECK_OK(ctx, mica_arena_over(ctx, &arena, block, sizeof block));
    void *a, *b, *c;
    CHECK_OK(ctx, mica_arena_take(ctx, &a, &arena, 10, 1));
    CHECK_OK(ctx, mica_arena_take(ctx, &b, &arena, 8, 8));
    CHECK_OK(ctx, mica_arena_take(ctx, &c, &arena, 100, 0));
    CHECK(a == block && b == block + 16 && c == block + 64);
    CHECK(arena.used == 164 && arena.peak == 164 && mica_arena_remaining(&arena) == 4096 - 164);
    /* To the last byte, and nothing after it but nothing. */
    CHECK_OK(ctx, mica_arena_take(ctx, &a, &arena, 4096 - 164, 4));
    CHECK(a == block + 164 && mica_arena_remaining(&arena) == 0);
    CHECK_OK(ctx, mica_arena_take(ctx, &a, &arena, 0, 0));
    mica_arena_destroy(ctx, &arena);
    CHECK(arena.bytes == 0 && arena.block == NULL);
    mica_arena_destroy(ctx, &arena);
}

TEST(arena_aligns_addresses_of_any_block)
{
    mica_context *ctx = test_context(1);
    for (size_t start = 0; start < 64; start += 7) {
        for (size_t alignment = 1; alignment <= 1024; alignment *= 2) {
            mica_arena arena;
            void *part = NULL;
            CHECK_OK(ctx, mica_arena_over(ctx, &arena, block + start, 2048));
            CHECK_OK(ctx, mica_arena_take(ctx, &part, &arena, 5, alignment));
            CHECK((uintptr_t)part % alignment == 0);
            CHECK((char *)part >= block + start && (char *)part + 5 <= block + start + arena.used);
        }
    }
}

TEST(arena_releases_to_marks)
{
    mica_context *ctx = test_context(1);
    mica_arena arena;
    void *part, *again;
    CHECK_OK(ctx, mica_arena_over(ctx, &arena, block, sizeof block));
    CHECK_OK(ctx, mica_arena_take(ctx, &part, &arena, 100, 0));
    size_t outer = mica_arena_mark(&arena);
    CHECK_OK(ctx, mica_arena_take(ctx, &part, &arena, 1000, 0));
    size_t inner = mica_arena_mark(&arena);
    CHECK_OK(ctx, mica_arena_take(ctx, &again, &arena, 2000, 0));
    CHECK_OK(ctx, mica_arena_release(ctx, &arena, inner));
    CHECK_OK(ctx, mica_arena_release(ctx, &arena, outer));
    CHECK_ERROR(ctx, mica_arena_release(ctx, &arena, inner), MICA_ERR_STATE,
                "state error: arena_release: the mark is at 1128, but only 100 bytes are in use");
    CHECK(arena.used == 100 && arena.peak == 3152);
    CHECK_OK(ctx, mica_arena_take(ctx, &again, &arena, 1, 0));
    CHECK(again == part);
    CHECK_OK(ctx, mica_arena_release(ctx, &arena, 0));
    CHECK(arena.used == 0 && arena.peak == 3152);
}

TEST(arena_errors_change_nothing)
{
    mica_context *ctx = test_context(1);
    mica_arena arena;
    void *part = NULL;
    CHECK_ERROR(ctx, mica_arena_over(ctx, &arena, NULL, 10), MICA_ERR_ARGUMENT,
                "argument error: arena_over: block is NULL, bytes is 10");
    CHECK_OK(ctx, mica_arena_over(ctx, &arena, block, sizeof block));
    CHECK_OK(ctx, mica_arena_take(ctx, &part, &arena, 3996, 0));
    mica_arena before = arena;
    part = NULL;
    CHECK_ERROR(ctx, mica_arena_take(ctx, &part, &arena, 512, 0), MICA_ERR_MEMORY,
                "memory error: arena has 100 of 4096 bytes left, 512 requested");
    CHECK_ERROR(
        ctx, mica_arena_take(ctx, &part, &arena, 70, 64), MICA_ERR_MEMORY,
        "memory error: arena has 100 of 4096 bytes left, 70 requested and 36 more to align them to 64");
    CHECK_ERROR(ctx, mica_arena_take(ctx, &part, &arena, SIZE_MAX, 1), MICA_ERR_MEMORY,
                "memory error: arena has 100 of 4096 bytes left, 18446744073709551615 requested");
    CHECK_ERROR(ctx, mica_arena_take(ctx, &part, &arena, 1, (size_t)1 << 62), MICA_ERR_MEMORY,
                mica_error(ctx));
    CHECK_ERROR(ctx, mica_arena_take(ctx, &part, &arena, 1, 48), MICA_ERR_ARGUMENT,
                "argument error: arena_take: alignment is 48, not a power of two");
    CHECK(part == NULL);
    CHECK(memcmp(&before, &arena, sizeof arena) == 0);
}

TEST(arena_takes_tensors)
{
    mica_context *ctx = test_context(1);
    mica_arena arena;
    mica_tensor t, u;
    CHECK_OK(ctx, mica_arena_over(ctx, &arena, block, sizeof block));
    CHECK_OK(ctx, mica_arena_take_tensor(ctx, &t, &arena, MICA_F16, 2, (mica_index[]){3, 5}));
    CHECK_OK(ctx, mica_arena_take_tensor(ctx, &u, &arena, MICA_F32, 0, NULL));
    CHECK(t.data == block && mica_tensor_bytes(&t) == 30 && mica_tensor_contiguous(&t));
    CHECK(u.data == block + 64 && arena.used == 68);
    u = t;
    CHECK_ERROR(ctx, mica_arena_take_tensor(ctx, &u, &arena, MICA_F64, 1, (mica_index[]){1000}),
                MICA_ERR_MEMORY, "memory error: arena has 4028 of 4096 bytes left, 8000 requested");
    CHECK(mica_arena_take_tensor(ctx, &u, &arena, MICA_F64, 9, (mica_index[]){1}) != MICA_OK);
    CHECK(memcmp(&u, &t, sizeof t) == 0 && arena.used == 68);
}

static mica_status arena_work(const mica_allocator *allocator, void *argument)
{
    (void)argument;
    mica_context *ctx = NULL;
    mica_status status = mica_context_create(&ctx, &(mica_context_opts){.allocator = allocator});
    if (status != MICA_OK)
        return status;
    mica_arena arena;
    void *part = NULL;
    status = mica_arena_create(ctx, &arena, 1000);
    if (status == MICA_OK) {
        CHECK(arena.owned && arena.bytes == 1000 && (uintptr_t)arena.block % 64 == 0);
        CHECK_OK(ctx, mica_arena_take(ctx, &part, &arena, 1000, 0));
        memset(part, 1, 1000);
        mica_arena_destroy(ctx, &arena);
    } else {
        CHECK(strcmp(mica_error(ctx), "memory error: cannot allocate 1000 bytes") == 0);
        CHECK(arena.block == NULL && arena.bytes == 0);
    }
    mica_arena_destroy(ctx, &arena); /* again, or of one that never was */
    mica_context_destroy(ctx);
    return status;
}

TEST(arena_owns_its_block)
{
    CHECK(test_oom(arena_work, NULL) == 3);
    mica_context *ctx = test_context(1);
    mica_arena arena;
    void *part = &arena;
    CHECK_OK(ctx, mica_arena_create(ctx, &arena, 0));
    CHECK_OK(ctx, mica_arena_take(ctx, &part, &arena, 0, 0));
    CHECK(part == NULL && !arena.owned);
}
