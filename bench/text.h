/* mica bench --text: a public text model's prompts and generation, against what the machine reads in a second. */
#ifndef MICA_BENCH_TEXT_H
#define MICA_BENCH_TEXT_H

#include "bench/bench.h"

#define BENCH_MOST_PROMPTS 8

typedef struct bench_text_options {
    const char *model;
    const char *json; /* NULL: no file */
    int threads[BENCH_MOST_THREAD_COUNTS];
    int thread_counts;
    mica_index prompts[BENCH_MOST_PROMPTS]; /* tokens of each */
    int prompt_count;
    mica_index decode; /* tokens, one after the other; 0: none */
    double seconds;    /* for each row */
} bench_text_options;

/* Returns the exit code. Messages go to stderr. */
int bench_text(const bench_text_options *options);

#endif
