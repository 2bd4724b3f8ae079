/* The table and the JSON file. */
#include "bench/report.h"

#include <errno.h>
#include <string.h>

void report_machine(FILE *out, const bench_machine *machine)
{
    fprintf(out, "%s, %s, commit %s\n", machine->cpu, machine->isa, machine->commit);
    for (int i = 0; i < machine->peaks; i++) {
        const bench_peak *peak = &machine->peak[i];
        fprintf(out, "%d thread%s: peak %.1f GFLOP/s, copy %.1f GB/s (%zu MiB moved)\n", peak->threads,
                peak->threads == 1 ? "" : "s", peak->gflops, peak->gbs, BENCH_PROBE_BYTES >> 20);
    }
}

void report_head(FILE *out)
{
    fprintf(out, "%-36s %7s %11s %11s %8s %8s %14s %8s %8s\n", "case", "threads", "median", "best", "GFLOP/s",
            "GB/s", "of the limit", "allocs", "bytes");
}

static void print_time(FILE *out, double ns, bool rough)
{
    static const char *const unit[] = {"ns", "us", "ms", "s"};
    int u = 0;
    for (; u < 3 && ns >= 1000.0; u++)
        ns /= 1000.0;
    fprintf(out, " %c%7.*f %-2s", rough ? '~' : ' ', ns < 10.0 ? 2 : ns < 100.0 ? 1 : 0, ns, unit[u]);
}

void report_time(FILE *out, double ns) { print_time(out, ns, false); }

static void print_rate(FILE *out, double rate)
{
    if (rate > 0.0)
        fprintf(out, " %8.*f", rate < 100.0 ? 1 : 0, rate);
    else
        fprintf(out, " %8s", "-");
}

void report_row(FILE *out, const bench_result *r)
{
    fprintf(out, "%-36s %7d", r->name, r->threads);
    print_time(out, r->ns, r->disturbed);
    print_time(out, r->ns_min, r->disturbed);
    print_rate(out, r->gflops);
    print_rate(out, r->gbs);
    if (r->limit == BENCH_LIMIT_NONE)
        fprintf(out, " %14s", "-");
    else
        fprintf(out, " %5.0f %% of %-4s", r->percent, bench_limit_name(r->limit));
    fprintf(out, " %8.4g %8.4g\n", r->allocs, r->bytes);
    fflush(out);
}

/* ---- JSON ---- */

static void json_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20)
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

static void json_string_or_null(FILE *out, const char *text)
{
    if (text != NULL)
        json_string(out, text);
    else
        fprintf(out, "null");
}

static void json_count(FILE *out, const char *name, double value)
{
    if (value >= 0.0)
        fprintf(out, ", \"%s\": %.0f", name, value);
    else
        fprintf(out, ", \"%s\": null", name);
}

static void json_machine(FILE *out, const bench_machine *machine)
{
    /* The one line of the machine is that of most threads; `peaks` has all. */
    const bench_peak *most = &machine->peak[0];
    for (int i = 1; i < machine->peaks; i++)
        if (machine->peak[i].threads > most->threads)
            most = &machine->peak[i];
    fprintf(out, "  \"machine\": {\n    \"cpu\": ");
    json_string(out, machine->cpu);
    fprintf(out, ",\n    \"isa\": ");
    json_string(out, machine->isa);
    fprintf(out,
            ",\n    \"threads\": %d,\n    \"peak_gflops\": %.3f,\n    \"copy_gbs\": %.3f,\n    \"commit\": ",
            most->threads, most->gflops, most->gbs);
    json_string(out, machine->commit);
    fprintf(out, ",\n    \"peaks\": [");
    for (int i = 0; i < machine->peaks; i++)
        fprintf(out, "%s{\"threads\": %d, \"peak_gflops\": %.3f, \"copy_gbs\": %.3f}", i > 0 ? ", " : "",
                machine->peak[i].threads, machine->peak[i].gflops, machine->peak[i].gbs);
    fprintf(out, "],\n    \"counted_by\": ");
    json_string_or_null(out, machine->counted_by);
    fprintf(out, ",\n    \"not_counted\": ");
    json_string_or_null(out, machine->counted_by == NULL ? machine->not_counted : NULL);
    fprintf(out, "\n  }");
}

static void json_case(FILE *out, const bench_result *r)
{
    fprintf(out, "    {\"name\": ");
    json_string(out, r->name);
    fprintf(
        out,
        ", \"threads\": %d, \"ns\": %.3f, \"ns_min\": %.3f, \"gflops\": %.3f, \"gbs\": %.3f, "
        "\"percent_of_peak\": %.2f, \"limit\": \"%s\", \"allocs\": %.9g, \"bytes\": %.9g, \"disturbed\": %s",
        r->threads, r->ns, r->ns_min, r->gflops, r->gbs, r->percent, bench_limit_name(r->limit), r->allocs,
        r->bytes, r->disturbed ? "true" : "false");
    json_count(out, "instructions", r->instructions);
    json_count(out, "bytes_moved", r->moved);
    fprintf(out, "}");
}

bool report_json(const char *path, const bench_machine *machine, const bench_result *results, size_t count)
{
    FILE *out = fopen(path, "w");
    if (out == NULL) {
        fprintf(stderr, "mica bench: cannot write %s: %s\n", path, strerror(errno));
        return false;
    }
    fprintf(out, "{\n");
    json_machine(out, machine);
    fprintf(out, ",\n  \"cases\": [\n");
    for (size_t i = 0; i < count; i++) {
        json_case(out, &results[i]);
        fprintf(out, "%s\n", i + 1 < count ? "," : "");
    }
    fprintf(out, "  ]\n}\n");
    bool failed = ferror(out) != 0;
    failed = fclose(out) != 0 || failed;
    if (failed)
        fprintf(stderr, "mica bench: writing %s failed: %s\n", path, strerror(errno));
    return !failed;
}
