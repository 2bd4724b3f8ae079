/* What the user sees of a run: the table, the JSON file, and the comparison with an earlier one. */
#ifndef MICA_BENCH_REPORT_H
#define MICA_BENCH_REPORT_H

#include <stdio.h>

#include "bench/bench.h"

/* The machine, and the build that ran on it. */
typedef struct bench_machine {
    char cpu[96];
    const char *isa;
    const char *commit;
    bench_peak peak[BENCH_MOST_THREAD_COUNTS]; /* in the order of the options' thread counts */
    int peaks;
    const char *counted_by; /* what counts instructions and bytes: "perf_event", "callgrind"; NULL: nothing */
    const char *not_counted; /* then why */
} bench_machine;

void report_machine(FILE *out, const bench_machine *machine);
void report_head(FILE *out);
/* 1234.5 ns as "1.23 us", in four significant digits at most; 12 characters wide. */
void report_time(FILE *out, double ns);
void report_row(FILE *out, const bench_result *result);

/* False, with a message on stderr, if the file cannot be written. */
bool report_json(const char *path, const bench_machine *machine, const bench_result *results, size_t count);

/* An earlier run to compare with, from its JSON file. */
typedef struct bench_comparison bench_comparison;

/* NULL, with a message on stderr that says where in the file, if it is no such file. */
bench_comparison *compare_open(const char *path);
void compare_close(bench_comparison *comparison); /* NULL is fine */

void compare_print(FILE *out, const bench_comparison *comparison, const bench_result *results, size_t count);

#endif
