/* A run beside an earlier one. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/earlier.h"
#include "bench/report.h"

#define MOST_FILE_BYTES ((size_t)64 << 20)

struct bench_comparison {
    char *text; /* the file's; names lie in it */
    bench_earlier earlier;
};

/* ---- Reading ---- */

static char *read_file(const char *path, size_t *length)
{
    FILE *in = fopen(path, "rb");
    char *text = in != NULL ? malloc(MOST_FILE_BYTES) : NULL;
    *length = text != NULL ? fread(text, 1, MOST_FILE_BYTES, in) : 0;
    if (text == NULL || ferror(in)) {
        fprintf(stderr, "mica bench: cannot read %s: %s\n", path, strerror(errno));
        free(text);
        text = NULL;
    }
    if (in != NULL)
        fclose(in);
    return text;
}

bench_comparison *compare_open(const char *path)
{
    size_t length;
    bench_comparison *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->text = read_file(path, &length);
    if (c->text != NULL && earlier_read(&c->earlier, c->text, length))
        return c;
    if (c->text != NULL)
        fprintf(stderr, "mica bench: %s: byte %zu: %s\n", path, c->earlier.error_at, c->earlier.error);
    compare_close(c);
    return NULL;
}

void compare_close(bench_comparison *c)
{
    if (c == NULL)
        return;
    earlier_release(&c->earlier);
    free(c->text);
    free(c);
}

/* ---- Comparing ---- */

static const bench_result *find(const bench_earlier *earlier, const bench_result *now)
{
    for (size_t i = 0; i < earlier->count; i++)
        if (earlier->results[i].threads == now->threads && strcmp(earlier->results[i].name, now->name) == 0)
            return &earlier->results[i];
    return NULL;
}

/* By how much one time differs from an earlier one: 50 ns after 100 ns is 100 % faster. */
static void print_change(FILE *out, double before, double now)
{
    double percent = 100.0 * (before > now ? before / now - 1.0 : now / before - 1.0);
    if (percent < 0.5)
        fprintf(out, " %15s", "same");
    else
        fprintf(out, " %6.0f %% %s", percent, before > now ? "faster" : "slower");
}

static void print_compared(FILE *out, const bench_result *before, const bench_result *now)
{
    fprintf(out, "%-36s %7d %14.0f %14.0f", now->name, now->threads, before->ns, now->ns);
    print_change(out, before->ns, now->ns);
    fprintf(out, " %4.0f -> %4.0f %%", before->percent, now->percent);
    fprintf(out, " %+8.4g %+8.4g\n", now->allocs - before->allocs, now->bytes - before->bytes);
}

void compare_print(FILE *out, const bench_comparison *c, const bench_result *results, size_t count)
{
    double logs = 0.0;
    size_t compared = 0;
    fprintf(out, "\n%-36s %7s %14s %14s %15s %14s %8s %8s\n", "compared with the earlier run", "threads",
            "ns before", "ns now", "change", "of the limit", "allocs", "bytes");
    for (size_t i = 0; i < count; i++) {
        const bench_result *before = find(&c->earlier, &results[i]);
        if (before == NULL || before->ns <= 0.0) {
            fprintf(out, "%-36s %7d %14s %14.0f\n", results[i].name, results[i].threads, "-", results[i].ns);
            continue;
        }
        print_compared(out, before, &results[i]);
        logs += log(before->ns / results[i].ns);
        compared++;
    }
    if (compared > 0) {
        double mean = exp(logs / (double)compared);
        fprintf(out, "%-36s %7s %14s %14s", "geometric mean", "", "", "");
        print_change(out, mean, 1.0);
        fprintf(out, "\n");
    }
}
