/* Packing: no two spans that live at once overlap, and the result is near what must be. */
#include "memory/pack.h"
#include "test.h"

static void random_spans(test_random *r, mica_span *spans, size_t count, int times)
{
    for (size_t i = 0; i < count; i++) {
        int first = test_int(r, 0, times - 1);
        int last = test_chance(r, 50) ? first : test_int(r, first, times - 1);
        spans[i] = (mica_span){
            .bytes = (size_t)test_int(r, 0, 40) * MICA_ALIGN, .first = first, .last = last};
    }
}

static bool overlap(const mica_span *a, const mica_span *b)
{
    bool in_time = a->first <= b->last && b->first <= a->last;
    bool in_space = a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
    return in_time && in_space && a->bytes > 0 && b->bytes > 0;
}

TEST(pack_keeps_living_spans_apart)
{
    mica_context *ctx = test_context(1);
    mica_span spans[60];
    for (uint64_t seed = 0; seed < 1000; seed++) {
        test_random r = test_seed(seed);
        size_t count = (size_t)test_int(&r, 0, 60);
        int times = test_int(&r, 1, 40);
        random_spans(&r, spans, count, times);
        size_t total, bound;
        REQUIRE(mica_pack(ctx, spans, count, &total) == MICA_OK);
        REQUIRE(mica_pack_lower_bound(ctx, spans, count, times, &bound) == MICA_OK);
        CHECK(count == 0 || total >= bound);
        CHECK_MSG(count == 0 || total <= 2 * bound, "seed %d: %zu for a bound of %zu", (int)seed, total,
                  bound);
        for (size_t i = 0; i < count; i++) {
            CHECK(spans[i].offset + spans[i].bytes <= total && spans[i].offset % MICA_ALIGN == 0);
            for (size_t j = 0; j < i; j++)
                CHECK(!overlap(&spans[i], &spans[j]));
        }
    }
}

/* Beyond a number of spans only orders of time are tried: as sound, and for what a net makes (values that live until
 * their backward, and scratch) as tight. */
TEST(pack_takes_thousands_of_spans)
{
    enum { NODES = 2500 };
    mica_context *ctx = test_context(1);
    static mica_span spans[3 * NODES];
    test_random r = test_seed(1);
    for (int i = 0; i < NODES; i++) {
        int back = 2 * NODES - 1 - i;
        spans[3 * i] = (mica_span){
            .bytes = (size_t)test_int(&r, 1, 40) * MICA_ALIGN, .first = i, .last = back};
        spans[3 * i + 1] = (mica_span){
            .bytes = (size_t)test_int(&r, 1, 40) * MICA_ALIGN, .first = i, .last = i};
        spans[3 * i + 2] = (mica_span){
            .bytes = (size_t)test_int(&r, 0, 40) * MICA_ALIGN, .first = back - (i < NODES - 1), .last = back};
    }
    size_t total, bound;
    REQUIRE(mica_pack(ctx, spans, 3 * NODES, &total) == MICA_OK);
    REQUIRE(mica_pack_lower_bound(ctx, spans, 3 * NODES, 2 * NODES, &bound) == MICA_OK);
    CHECK_MSG((double)total <= 1.01 * (double)bound, "%zu for a bound of %zu", total, bound);
    int overlaps = 0;
    for (size_t i = 0; i < 3 * NODES; i++)
        for (size_t j = i - i % 3 > 300 ? i - 300 : 0; j < i; j++)
            overlaps += overlap(&spans[i], &spans[j]);
    for (size_t i = 0; i < 3 * NODES; i += 50)
        for (size_t j = 0; j < i; j++)
            overlaps += overlap(&spans[i], &spans[j]);
    CHECK(overlaps == 0);
}
