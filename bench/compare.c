/* A run beside an earlier one. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/json.h"
#include "bench/report.h"

#define MOST_FILE_BYTES ((size_t)64 << 20)

struct bench_earlier {
    json_value *root;
    bench_result *results; /* names lie in the tree */
    size_t count;
};

static bool complain(const char *path, size_t offset, const char *what)
{
    fprintf(stderr, "mica bench: %s: byte %zu: %s\n", path, offset, what);
    return false;
}

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

/* The member of this kind, or a complaint. */
static const json_value *wanted(const char *path, const json_value *object, const char *key, json_kind kind)
{
    const json_value *v = json_member(object, key);
    if (v != NULL && v->kind == kind)
        return v;
    char text[160];
    if (v == NULL)
        snprintf(text, sizeof text, "no \"%s\" in %s", key, json_kind_name(object->kind));
    else
        snprintf(text, sizeof text, "\"%s\" is %s, not %s", key, json_kind_name(v->kind),
                 json_kind_name(kind));
    complain(path, v != NULL ? v->offset : object->offset, text);
    return NULL;
}

static bool read_number(const char *path, const json_value *object, const char *key, double *out)
{
    const json_value *v = wanted(path, object, key, JSON_NUMBER);
    if (v == NULL)
        return false;
    *out = v->number;
    return v->number >= 0.0 ? true : complain(path, v->offset, "a number below zero");
}

static bool read_case(const char *path, const json_value *object, bench_result *out)
{
    double threads;
    const json_value *name = wanted(path, object, "name", JSON_STRING);
    if (name == NULL)
        return false;
    out->name = name->string;
    if (!read_number(path, object, "threads", &threads) || !read_number(path, object, "ns", &out->ns) ||
        !read_number(path, object, "ns_min", &out->ns_min) ||
        !read_number(path, object, "percent_of_peak", &out->percent) ||
        !read_number(path, object, "allocs", &out->allocs) ||
        !read_number(path, object, "bytes", &out->bytes))
        return false;
    if (threads < 1.0 || threads > MICA_MAX_THREADS)
        return complain(path, json_member(object, "threads")->offset, "no such number of threads");
    out->threads = (int)threads;
    return true;
}

static bool read_cases(const char *path, bench_earlier *earlier)
{
    const json_value *cases = wanted(path, earlier->root, "cases", JSON_ARRAY);
    if (cases == NULL)
        return false;
    size_t count = 0;
    for (const json_value *v = cases->first; v != NULL; v = v->next)
        count++;
    earlier->results = calloc(count + 1, sizeof *earlier->results);
    if (earlier->results == NULL)
        return complain(path, 0, "out of memory");
    for (const json_value *v = cases->first; v != NULL; v = v->next)
        if (!read_case(path, v, &earlier->results[earlier->count++]))
            return false;
    return true;
}

bench_earlier *earlier_read(const char *path)
{
    size_t length;
    json_error error;
    char *text = read_file(path, &length);
    bench_earlier *earlier = text != NULL ? calloc(1, sizeof *earlier) : NULL;
    if (earlier != NULL) {
        earlier->root = json_read(text, length, &error);
        if (earlier->root == NULL)
            complain(path, error.offset, error.text);
        if (earlier->root == NULL || !read_cases(path, earlier)) {
            earlier_free(earlier);
            earlier = NULL;
        }
    }
    free(text);
    return earlier;
}

void earlier_free(bench_earlier *earlier)
{
    if (earlier == NULL)
        return;
    json_free(earlier->root);
    free(earlier->results);
    free(earlier);
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

void compare_print(FILE *out, const bench_earlier *earlier, const bench_result *results, size_t count)
{
    double logs = 0.0;
    size_t compared = 0;
    fprintf(out, "\n%-36s %7s %14s %14s %15s %14s %8s %8s\n", "compared with the earlier run", "threads",
            "ns before", "ns now", "change", "of the limit", "allocs", "bytes");
    for (size_t i = 0; i < count; i++) {
        const bench_result *before = find(earlier, &results[i]);
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
