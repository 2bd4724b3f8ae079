/* A small test harness: no dependency, so that it also runs where only a cross compiler is.
 *
 *     TEST(tensor_slice_clamps)
 *     {
 *             CHECK(count == 3);
 *     }
 *
 * registers itself. A failed CHECK says where, marks the test as failed, and goes on; REQUIRE leaves the
 * test. mica-test [FILTER...] runs the tests whose name contains one of the filters. */
#ifndef MICA_TESTS_TEST_H
#define MICA_TESTS_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mica/mica.h>

#include "host/heap.h"

typedef struct test_entry {
    const char *name;
    void (*run)(void);
    struct test_entry *next;
} test_entry;

void test_register(test_entry *entry);

#define TEST(test)                                                                                   \
    static void test_##test(void);                                                                   \
    static test_entry entry_##test = {#test, test_##test, NULL};                                     \
    __attribute__((constructor)) static void register_##test(void) { test_register(&entry_##test); } \
    static void test_##test(void)

/* Counts a check; prints file, line and the message if it does not hold. Returns `ok`. */
bool test_check(bool ok, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#define CHECK(condition)          test_check((condition), __FILE__, __LINE__, "%s", #condition)
#define CHECK_MSG(condition, ...) test_check((condition), __FILE__, __LINE__, __VA_ARGS__)
#define REQUIRE(condition)     \
    do {                       \
        if (!CHECK(condition)) \
            return;            \
    } while (0)

/* The call succeeds; prints the context's error otherwise. */
#define CHECK_OK(ctx, call) \
    test_check((call) == MICA_OK, __FILE__, __LINE__, "%s failed: %s", #call, mica_error(ctx))
/* The call fails with exactly this status and text. */
#define CHECK_ERROR(ctx, call, status, text) test_error((ctx), (call), (status), (text), __FILE__, __LINE__)
bool test_error(mica_context *ctx, mica_status got, mica_status want, const char *text, const char *file,
                int line);

/* Ends the test as skipped, which is said in the summary. Use as: { test_skip("why"); return; } */
void test_skip(const char *why);

/* A context with this many threads (one in a build without threads) and $MICA_ISA's kernels (or the best),
 * made for this test and destroyed after it. */
mica_context *test_context(int threads);

/* How many random cases to try where `count` are wanted: $MICA_TEST_EFFORT percent of them (100 if not set),
 * rounded up. Builds in which everything takes ten times as long set it lower. */
int test_effort(int count);

/* ---- Random numbers for tests: small, repeatable, nothing of the library's ---- */

typedef struct test_random {
    uint64_t state;
} test_random;

test_random test_seed(uint64_t seed);
uint64_t test_next(test_random *r);
int test_int(test_random *r, int low, int high); /* both included */
bool test_chance(test_random *r, int percent);
double test_uniform(test_random *r, double low, double high);
double test_normal(test_random *r);

/* ---- Heap calls of the whole process: host/heap.h ---- */

typedef heap_counts test_heap;
static inline bool test_heap_counted(void) { return heap_counted(); }
static inline test_heap test_heap_now(void) { return heap_now(); }

#endif
