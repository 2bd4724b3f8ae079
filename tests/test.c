/* The harness: registration, checks, the run and its summary. */
#include "test.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/clock.h"

#define MOST_FAILURES_SHOWN 20 /* of one test */
#define MOST_CONTEXTS       16 /* of one test */

static struct {
    test_entry *tests;
    _Atomic size_t failures; /* of the running test, which may have threads */
    _Atomic size_t checks;
    const char *skipped;
    mica_context *contexts[MOST_CONTEXTS];
    int context_count;
} run;

void test_register(test_entry *entry)
{
    /* Sorted, so that the order does not depend on the linker. */
    test_entry **place = &run.tests;
    while (*place != NULL && strcmp((*place)->name, entry->name) < 0)
        place = &(*place)->next;
    entry->next = *place;
    *place = entry;
}

bool test_check(bool ok, const char *file, int line, const char *format, ...)
{
    run.checks++;
    if (ok)
        return true;
    if (++run.failures <= MOST_FAILURES_SHOWN) {
        va_list args;
        va_start(args, format);
        printf("  %s:%d: ", file, line);
        vprintf(format, args);
        printf("\n");
        va_end(args);
    }
    return false;
}

bool test_error(mica_context *ctx, mica_status got, mica_status want, const char *text, const char *file,
                int line)
{
    bool status = test_check(got == want, file, line, "status is \"%s\", wanted \"%s\" (text: %s)",
                             mica_status_text(got), mica_status_text(want), mica_error(ctx));
    return status && test_check(strcmp(mica_error(ctx), text) == 0, file, line,
                                "text is\n    %s\n  wanted\n    %s", mica_error(ctx), text);
}

void test_skip(const char *why) { run.skipped = why; }

int test_effort(int count)
{
    const char *text = getenv("MICA_TEST_EFFORT");
    long percent = text != NULL ? strtol(text, NULL, 10) : 100;
    return percent > 0 && percent < 100 ? (int)((count * percent + 99) / 100) : count;
}

mica_context *test_context(int threads)
{
    if (run.context_count == MOST_CONTEXTS) {
        printf("  more than %d contexts in one test\n", MOST_CONTEXTS);
        abort();
    }
#if defined(MICA_NO_THREADS)
    threads = 1;
#endif
    mica_context *ctx = NULL;
    mica_status status = mica_context_create(&ctx, &(mica_context_opts){.threads = threads});
    if (status != MICA_OK) {
        printf("  no context: %s (MICA_ISA=%s)\n", mica_status_text(status), getenv("MICA_ISA"));
        exit(1);
    }
    run.contexts[run.context_count++] = ctx;
    return ctx;
}

static bool matches(const char *name, int count, char **filters)
{
    for (int i = 0; i < count; i++)
        if (strstr(name, filters[i]) != NULL)
            return true;
    return count == 0;
}

/* Runs one test and tells what came of it: 'p'assed, 'f'ailed, 's'kipped. */
static char run_one(const test_entry *entry)
{
    run.failures = run.checks = 0;
    run.skipped = NULL;
    double start = clock_seconds();
    entry->run();
    while (run.context_count > 0)
        mica_context_destroy(run.contexts[--run.context_count]);
    double took = clock_seconds() - start;
    if (run.failures > 0) {
        printf("FAIL %s (%zu of %zu checks)\n", entry->name, run.failures, run.checks);
        return 'f';
    }
    if (run.skipped != NULL) {
        printf("skip %s: %s\n", entry->name, run.skipped);
        return 's';
    }
    printf("ok   %-44s %9zu checks %7.2f s\n", entry->name, run.checks, took);
    return 'p';
}

int main(int argc, char **argv)
{
    size_t passed = 0, failed = 0, skipped = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (const test_entry *entry = run.tests; entry != NULL; entry = entry->next) {
        if (!matches(entry->name, argc - 1, argv + 1))
            continue;
        switch (run_one(entry)) {
        case 'p':
            passed++;
            break;
        case 's':
            skipped++;
            break;
        default:
            failed++;
        }
    }
    printf("%zu passed, %zu failed, %zu skipped\n", passed, failed, skipped);
    return failed > 0 || passed + skipped == 0 ? 1 : 0;
}

/* ---- Random numbers: splitmix64 ---- */

test_random test_seed(uint64_t seed) { return (test_random){seed}; }

uint64_t test_next(test_random *r)
{
    uint64_t z = (r->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int test_int(test_random *r, int low, int high)
{
    return low + (int)(test_next(r) % (uint64_t)(high - low + 1));
}

bool test_chance(test_random *r, int percent) { return test_int(r, 0, 99) < percent; }

double test_uniform(test_random *r, double low, double high)
{
    return low + (high - low) * ((double)(test_next(r) >> 11) * 0x1p-53);
}

double test_normal(test_random *r)
{
    double radius = sqrt(-2.0 * log(test_uniform(r, 0x1p-53, 1.0)));
    return radius * cos(test_uniform(r, 0.0, 6.283185307179586));
}
