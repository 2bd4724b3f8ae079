/* PyTorch's numbers, as tests/golden/make_golden.py wrote them: cases with options and tensors by name. */
#ifndef MICA_TESTS_GOLDEN_GOLDEN_H
#define MICA_TESTS_GOLDEN_GOLDEN_H

#include "test.h"

enum { GOLDEN_NAME = 32, GOLDEN_TENSORS = 32, GOLDEN_NUMBERS = 12 };

typedef struct golden_tensor {
    char name[GOLDEN_NAME];
    mica_tensor tensor; /* contiguous; its data belongs to the file */
} golden_tensor;

typedef struct golden_number {
    char name[GOLDEN_NAME];
    double value[4];
    int count;
} golden_number;

typedef struct golden_case {
    char op[GOLDEN_NAME], note[GOLDEN_NAME];
    golden_tensor tensors[GOLDEN_TENSORS];
    golden_number numbers[GOLDEN_NUMBERS];
    int tensor_count, number_count;
} golden_case;

typedef struct golden_file {
    golden_case *cases;
    size_t count;
} golden_file;

/* Reads tests/data/golden/<family>.txt. A file that cannot be read is a failed check and no case. */
golden_file golden_load(const char *family);
void golden_free(golden_file *file);

/* NULL if the case has no such tensor. */
const mica_tensor *golden_find(const golden_case *c, const char *name);
/* Value i of a number; a single value stands for all; `otherwise` if there is none. */
double golden_value(const golden_case *c, const char *name, int i, double otherwise);

/* A zeroed tensor like the case's `name`, for a result; data NULL if the case has none. golden_release frees
 * it. */
mica_tensor golden_like(const golden_case *c, const char *name);
void golden_release(mica_tensor *t);

/* Checks `got` against the case's tensor: within tolerance of max(1, |value|). Nothing to do if the case has
 * no such tensor. */
void golden_compare(const golden_case *c, const char *name, const mica_tensor *got, double tolerance);

#endif
