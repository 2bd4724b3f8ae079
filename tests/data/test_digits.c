/* Digits that the library draws. */
#include <string.h>

#include "oom.h"
#include "test.h"

static uint64_t hash(const void *bytes, size_t count)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < count; i++)
        h = (h ^ ((const uint8_t *)bytes)[i]) * 1099511628211u;
    return h;
}

TEST(digits_are_the_same_everywhere)
{
    mica_context *ctx = test_context(1), *threads = test_context(3);
    mica_dataset a, b;
    CHECK_OK(ctx, mica_dataset_digits(ctx, &a, &(mica_digits_opts){.count = 200, .seed = 7}));
    CHECK(a.count == 200 && a.inputs.rank == 3 && a.inputs.dim[1] == 28 && a.inputs.dtype == MICA_U8);
    /* The same bits with every compiler, instruction set and processor. */
    uint64_t seen = hash(a.inputs.data, 200 * 784) ^ hash(a.targets.data, 200);
    CHECK_MSG(seen == 0xb9c95891e16ca7dc, "hash %llx", (unsigned long long)seen);
    CHECK_OK(threads,
             mica_dataset_digits(threads, &b, &(mica_digits_opts){.count = 150, .seed = 7, .first = 50}));
    CHECK(memcmp((uint8_t *)a.inputs.data + 50 * 784, b.inputs.data, 150 * 784) == 0);
    CHECK(memcmp((uint8_t *)a.targets.data + 50, b.targets.data, 150) == 0);
    mica_dataset_destroy(threads, &b);
    CHECK_OK(ctx, mica_dataset_digits(ctx, &b, &(mica_digits_opts){.count = 200, .seed = 8}));
    CHECK(memcmp(a.inputs.data, b.inputs.data, 784) != 0);
    mica_dataset_destroy(ctx, &b);
    mica_dataset_destroy(ctx, &a);
    CHECK_OK(ctx, mica_dataset_digits(ctx, &a, NULL));
    CHECK(a.count == 1000);
    int counts[10] = {0};
    for (int i = 0; i < 1000; i++)
        counts[((uint8_t *)a.targets.data)[i]]++;
    for (int d = 0; d < 10; d++)
        CHECK_MSG(counts[d] > 60 && counts[d] < 140, "%d of digit %d", counts[d], d);
    mica_dataset_destroy(ctx, &a);
    CHECK_ERROR(ctx, mica_dataset_digits(ctx, &a, &(mica_digits_opts){.count = -1}), MICA_ERR_ARGUMENT,
                "argument error: dataset_digits: count is -1");
}

/* Every sample has ink, and not only ink. */
TEST(digits_can_be_seen)
{
    mica_context *ctx = test_context(2);
    mica_dataset set;
    CHECK_OK(ctx, mica_dataset_digits(ctx, &set, &(mica_digits_opts){.count = 2000, .seed = 3}));
    for (int i = 0; i < 2000; i++) {
        const uint8_t *image = (const uint8_t *)set.inputs.data + 784 * i;
        int dark = 0;
        for (int k = 0; k < 784; k++)
            dark += image[k] > 80;
        CHECK_MSG(dark >= 8 && dark < 400, "sample %d has %d pixels of ink", i, dark);
    }
    mica_dataset_destroy(ctx, &set);
}

static mica_status oom_work(const mica_allocator *allocator, void *argument)
{
    (void)argument;
    mica_context *ctx = NULL;
    mica_status status = mica_context_create(&ctx, &(mica_context_opts){.allocator = allocator});
    if (status != MICA_OK)
        return status;
    mica_dataset set;
    status = mica_dataset_digits(ctx, &set, &(mica_digits_opts){.count = 20});
    mica_dataset_destroy(ctx, &set);
    mica_context_destroy(ctx);
    return status;
}

TEST(digits_out_of_memory) { CHECK(test_oom(oom_work, NULL) >= 2); }
