/* Exported nets, each with a function that tests it, compiled together and run. */
#ifndef MICA_TESTS_EXPORT_COMPILED_H
#define MICA_TESTS_EXPORT_COMPILED_H

#include <stdio.h>

#include "export/export.h"
#include "test.h"

typedef struct compiled {
    char folder[256];
    FILE *main; /* calls each of them */
    int count;
    char name[128]; /* of the present one */
} compiled;

/* Skips the test where there is no compiler. */
bool compiled_start(compiled *all, const char *what);
/* Writes NAME.c and NAME.h, and opens NAME_test.c inside a function that returns how many comparisons failed. There
 * compare(name, got, expected, count) tells whether the largest difference is within 1e-5 of the largest number. */
FILE *compiled_add(compiled *all, const char *name, const exported *e);
void compiled_end(compiled *all, FILE *test);
/* The same with the test that was exported along with the net. */
void compiled_add_test(compiled *all, const char *name, const exported *e);
/* Compiles all, runs them, and checks that they agree; the folder goes away if they do. */
void compiled_run(compiled *all);

#endif
