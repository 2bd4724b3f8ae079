/* The pool: classes, statistics, limits, and returns that cannot be. */
#include <stdio.h>
#include <string.h>

#include "memory/pool.h"
#include "oom.h"

static mica_pool *make_pool(mica_context *ctx, const mica_pool_opts *opts)
{
    mica_pool *pool = NULL;
    CHECK_OK(ctx, mica_pool_create(ctx, &pool, opts));
    return pool;
}

static void *rent(mica_context *ctx, mica_pool *pool, size_t bytes)
{
    void *buffer = NULL;
    CHECK_OK(ctx, mica_pool_rent(ctx, &buffer, pool, bytes));
    return buffer;
}

TEST(pool_classes_hold_what_they_are_for)
{
    size_t last = 0;
    for (unsigned c = 0; c < MICA_POOL_CLASSES; c++) {
        size_t bytes = mica_pool_class_bytes(c);
        CHECK(bytes > last && bytes % MICA_ALIGN == 0);
        CHECK(mica_pool_class_of(last + 1) == c);
        CHECK(mica_pool_class_of(bytes) == c);
        CHECK(last == 0 || (bytes <= 262144 ? bytes == 2 * last : bytes - last <= bytes / 5));
        last = bytes;
    }
    CHECK(mica_pool_class_of(0) == 0 && mica_pool_class_bytes(0) == 64 * sizeof(float));
    CHECK(mica_pool_class_bytes(10) == 65536 * sizeof(float));
    CHECK(last >= MICA_POOL_MOST_BYTES);
}

TEST(pool_statistics)
{
    mica_context *ctx = test_context(1);
    mica_pool *pool = make_pool(ctx, NULL);
    void *a = rent(ctx, pool, 2000); /* of 2048 */
    void *b = rent(ctx, pool, 2048);
    void *c = rent(ctx, pool, 300000); /* of 320 KiB */
    CHECK(a != b && (uintptr_t)a % 64 == 0 && (uintptr_t)c % 64 == 0);
    memset(a, 1, 2000), memset(b, 2, 2048), memset(c, 3, 300000);
    mica_pool_stats s = mica_pool_statistics(pool);
    CHECK(s.rents == 3 && s.allocations == 3 && s.hits == 0 && s.returns == 0 && s.releases == 0);
    CHECK(s.rented == 3 && s.rented_bytes == 4096 + 327680 && s.pooled == 0 && s.pooled_bytes == 0);
    CHECK(s.peak_bytes == 4096 + 327680);

    CHECK_OK(ctx, mica_pool_return(ctx, pool, a));
    CHECK_OK(ctx, mica_pool_return(ctx, pool, c));
    s = mica_pool_statistics(pool);
    CHECK(s.returns == 2 && s.rented == 1 && s.rented_bytes == 2048);
    CHECK(s.pooled == 2 && s.pooled_bytes == 2048 + 327680);

    CHECK(rent(ctx, pool, 1025) == a);
    CHECK(rent(ctx, pool, 327680) == c);
    s = mica_pool_statistics(pool);
    CHECK(s.rents == 5 && s.hits == 2 && s.allocations == 3 && s.pooled == 0 && s.rented == 3);
    CHECK(s.peak_bytes == 4096 + 327680);
    CHECK(mica_pool_heap(pool).allocations == 4 && mica_pool_heap(pool).failures == 0);
    mica_pool_destroy(pool);
    mica_pool_destroy(NULL);
}

TEST(pool_hits_make_no_heap_call)
{
    mica_context *ctx = test_context(1);
    mica_pool *pool = make_pool(ctx, NULL);
    for (int i = 0; i < 2; i++) {
        test_heap before = test_heap_now();
        for (int j = 0; j < 1000; j++)
            CHECK_OK(ctx, mica_pool_return(ctx, pool, rent(ctx, pool, 512 * sizeof(float))));
        if (i == 1)
            CHECK(test_heap_now().calls == before.calls && test_heap_now().frees == before.frees);
    }
    mica_pool_destroy(pool);
}

TEST(pool_keeps_at_most_its_limit)
{
    mica_context *ctx = test_context(1);
    mica_pool *pool = make_pool(ctx, &(mica_pool_opts){.limit = 3});
    void *buffer[8];
    for (int i = 0; i < 8; i++)
        buffer[i] = rent(ctx, pool, i < 5 ? 1000 : 5000);
    for (int i = 0; i < 8; i++)
        CHECK_OK(ctx, mica_pool_return(ctx, pool, buffer[i]));
    mica_pool_stats s = mica_pool_statistics(pool);
    CHECK(s.pooled == 6 && s.pooled_bytes == 3 * 1024 + 3 * 8192 && s.releases == 2 && s.rented == 0);
    mica_pool_destroy(pool);

    pool = make_pool(ctx, NULL);
    void *many[MICA_POOL_LIMIT + 1];
    for (int i = 0; i <= MICA_POOL_LIMIT; i++)
        many[i] = rent(ctx, pool, 1);
    for (int i = 0; i <= MICA_POOL_LIMIT; i++)
        CHECK_OK(ctx, mica_pool_return(ctx, pool, many[i]));
    CHECK(mica_pool_statistics(pool).pooled == MICA_POOL_LIMIT);
    mica_pool_destroy(pool);
}

TEST(pool_trims_large_buffers_first)
{
    mica_context *ctx = test_context(1);
    mica_pool *pool = make_pool(ctx, NULL);
    void *buffer[6];
    for (size_t i = 0; i < 6; i++)
        buffer[i] = rent(ctx, pool, (size_t)256 << i);
    void *rented = rent(ctx, pool, 1 << 20);
    for (size_t i = 0; i < 6; i++)
        CHECK_OK(ctx, mica_pool_return(ctx, pool, buffer[i]));
    CHECK(mica_pool_statistics(pool).pooled_bytes == 63 * 256);
    CHECK(mica_pool_trim(pool, SIZE_MAX) == 0);
    CHECK(mica_pool_trim(pool, 16 * 256) == 48 * 256); /* keeps 256 to 2048 */
    CHECK(mica_pool_statistics(pool).pooled == 4 && mica_pool_statistics(pool).releases == 2);
    CHECK(mica_pool_clear(pool) == 15 * 256);
    mica_pool_stats s = mica_pool_statistics(pool);
    CHECK(s.pooled == 0 && s.pooled_bytes == 0 && s.rented == 1 && s.releases == 6);
    memset(rented, 1, 1 << 20); /* still the renter's */
    CHECK_OK(ctx, mica_pool_return(ctx, pool, rented));
    mica_pool_destroy(pool);
}

/* Fails with exactly: `before` pointer `after`. */
static void check_refused(mica_context *ctx, mica_pool *pool, void *buffer, mica_status status,
                          const char *before, const char *after)
{
    char text[200];
    (void)snprintf(text, sizeof text, "%s%p%s", before, buffer, after);
    CHECK_ERROR(ctx, mica_pool_return(ctx, pool, buffer), status, text);
}

TEST(pool_refuses_foreign_and_double_returns)
{
    mica_context *ctx = test_context(1);
    mica_pool *pool = make_pool(ctx, &(mica_pool_opts){.limit = 1});
    mica_pool *other = make_pool(ctx, NULL);
    const char *foreign = "argument error: pool_return: ", *unknown = " is not a buffer of this pool";
    char *a = rent(ctx, pool, 1000), *b = rent(ctx, pool, 1000), *theirs = rent(ctx, other, 1000);
    int local = 0;
    const uintptr_t nowhere = 0x123440; /* not mapped: looking there would crash */
    char *wild;
    memcpy(&wild, &nowhere, sizeof wild);
    mica_pool_stats before = mica_pool_statistics(pool);
    void *const bad[] = {&local, a + 64, a + 1, a - 64, theirs, wild, NULL};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        check_refused(ctx, pool, bad[i], MICA_ERR_ARGUMENT, foreign, unknown);
    mica_pool_stats after = mica_pool_statistics(pool);
    CHECK(memcmp(&before, &after, sizeof before) == 0);

    CHECK_OK(ctx, mica_pool_return(ctx, pool, a));
    check_refused(ctx, pool, a, MICA_ERR_STATE, "state error: pool_return: buffer ",
                  " has already been returned");
    CHECK_OK(ctx, mica_pool_return(ctx, pool, b)); /* beyond the limit: given back to the allocator */
    check_refused(ctx, pool, b, MICA_ERR_ARGUMENT, foreign, unknown);
    CHECK(mica_pool_statistics(pool).returns == 2 && mica_pool_statistics(pool).pooled == 1);
    CHECK(rent(ctx, pool, 1000) == a);
    CHECK_OK(ctx, mica_pool_return(ctx, pool, a));
    mica_pool_destroy(pool);
    mica_pool_destroy(other); /* with one of its buffers still rented */
}

TEST(pool_clears_buffers)
{
    mica_context *ctx = test_context(1);
    mica_pool *pool = make_pool(ctx, &(mica_pool_opts){.clear = true});
    for (size_t i = 0; i < 4; i++) {
        unsigned char *buffer = rent(ctx, pool, 900 + 30 * i), any = 0;
        for (size_t j = 0; j < 900 + 30 * i; j++)
            any |= buffer[j];
        CHECK(any == 0);
        memset(buffer, 0xff, 900 + 30 * i);
        CHECK_OK(ctx, mica_pool_return(ctx, pool, buffer));
        any = 0;
        for (size_t j = 0; j < 900; j++) /* pooled, and the pool's: but this is its test */
            any |= buffer[j];
        CHECK(any == 0);
    }
    CHECK(mica_pool_statistics(pool).hits == 3);
    mica_pool_destroy(pool);
}

TEST(pool_tensors_have_the_shape_asked_for)
{
    mica_context *ctx = test_context(1);
    mica_pool *pool = make_pool(ctx, NULL);
    mica_tensor t, u;
    CHECK_OK(ctx, mica_pool_rent_tensor(ctx, &t, pool, MICA_F32, 2, (mica_index[]){10, 10}));
    CHECK(mica_pool_statistics(pool).rented_bytes == 512); /* the capacity: 128 elements */
    CHECK(t.rank == 2 && t.dim[0] == 10 && t.dim[1] == 10 && t.stride[0] == 10 && t.stride[1] == 1);
    CHECK(mica_tensor_count(&t) == 100 && mica_tensor_bytes(&t) == 400 && mica_tensor_contiguous(&t));
    /* No elements, but a buffer all the same; and one element. */
    CHECK_OK(ctx, mica_pool_rent_tensor(ctx, &u, pool, MICA_I64, 2, (mica_index[]){0, 5}));
    CHECK(u.data != NULL && u.data != t.data && mica_tensor_count(&u) == 0);
    CHECK_OK(ctx, mica_pool_return_tensor(ctx, pool, &u));
    CHECK_OK(ctx, mica_pool_rent_tensor(ctx, &u, pool, MICA_U8, 0, NULL));
    CHECK(mica_tensor_bytes(&u) == 1);
    CHECK_OK(ctx, mica_pool_return_tensor(ctx, pool, &t));
    CHECK(mica_pool_return_tensor(ctx, pool, &t) == MICA_ERR_STATE);

    mica_tensor before = u;
    CHECK(mica_pool_rent_tensor(ctx, &u, pool, MICA_F32, 1, (mica_index[]){-1}) != MICA_OK);
    CHECK(memcmp(&before, &u, sizeof u) == 0 && mica_pool_statistics(pool).rented == 1);
    mica_pool_destroy(pool);
}

TEST(pool_errors)
{
    mica_context *ctx = test_context(1);
    mica_pool *pool = NULL;
    oom_heap heap = {0};
    mica_allocator allocator = oom_allocator(&heap), broken = allocator;
    broken.release = NULL;
    CHECK_ERROR(ctx, mica_pool_create(ctx, &pool, &(mica_pool_opts){.allocator = &broken}), MICA_ERR_ARGUMENT,
                "argument error: pool_create: the allocator lacks release");
    broken.allocate = NULL;
    CHECK_ERROR(ctx, mica_pool_create(ctx, &pool, &(mica_pool_opts){.allocator = &broken}), MICA_ERR_ARGUMENT,
                "argument error: pool_create: the allocator lacks allocate");
    CHECK(pool == NULL);
    pool = make_pool(ctx, &(mica_pool_opts){.allocator = &allocator});
    void *buffer = &heap;
    CHECK_ERROR(ctx, mica_pool_rent(ctx, &buffer, pool, SIZE_MAX), MICA_ERR_MEMORY,
                "memory error: pool_rent: 18446744073709551615 bytes exceed the largest possible buffer");
    heap.refuse = heap.calls + 1;
    CHECK_ERROR(ctx, mica_pool_rent(ctx, &buffer, pool, 1000), MICA_ERR_MEMORY,
                "memory error: pool_rent: cannot allocate 1088 bytes");
    CHECK(buffer == &heap && mica_pool_statistics(pool).rents == 0 && mica_pool_heap(pool).failures == 1);

    /* What lies unused is given up before a rent fails. */
    CHECK_OK(ctx, mica_pool_return(ctx, pool, rent(ctx, pool, 100)));
    heap.refuse = heap.calls + 1;
    CHECK_OK(ctx, mica_pool_rent(ctx, &buffer, pool, 1000));
    CHECK(mica_pool_statistics(pool).pooled == 0 && mica_pool_statistics(pool).rented == 1);
    mica_pool_destroy(pool);
    CHECK(heap.blocks == 0 && heap.bytes == 0);
}

/* More buffers than the table starts with buckets, so that it grows twice. */
static mica_status pool_work(const mica_allocator *allocator, void *context)
{
    enum { COUNT = 200 };
    mica_context *ctx = context;
    mica_pool *pool = NULL;
    mica_status status = mica_pool_create(ctx, &pool,
                                          &(mica_pool_opts){.allocator = allocator, .limit = COUNT});
    void *buffer[COUNT];
    size_t got = 0;
    for (; status == MICA_OK && got < COUNT; got++)
        status = mica_pool_rent(ctx, &buffer[got], pool, 1 + got % 7 * 400);
    if (status != MICA_OK) {
        CHECK(strncmp(mica_error(ctx), "memory error: pool_", 19) == 0);
        got -= got > 0;
    }
    for (size_t i = 0; i < got; i += 2)
        CHECK_OK(ctx, mica_pool_return(ctx, pool, buffer[i]));
    for (size_t i = 1; i < got; i += 2)
        CHECK_OK(ctx, mica_pool_return(ctx, pool, buffer[i]));
    if (got > 0)
        CHECK(mica_pool_return(ctx, pool, buffer[got - 1]) == MICA_ERR_STATE);
    mica_pool_destroy(pool);
    return status;
}

TEST(pool_out_of_memory_at_every_allocation) { CHECK(test_oom(pool_work, test_context(1)) == 1 + 200 + 2); }
