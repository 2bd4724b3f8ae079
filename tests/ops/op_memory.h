/* Memory for the tensors of a call: random layouts, with guards that tell when something else was written. */
#ifndef MICA_TESTS_OPS_OP_MEMORY_H
#define MICA_TESTS_OPS_OP_MEMORY_H

#include "ops/op_case.h"

typedef struct op_storage {
    unsigned char *bytes, *before; /* before: as it was at op_keep */
    bool *element;                 /* whether a byte belongs to an element of the tensor */
    size_t size;
    void *pages; /* that the bytes are the end of; NULL: they are from the heap */
    size_t mapped;
} op_storage;

typedef struct op_memory {
    op_storage of[OP_TENSORS];
    double *value[OP_TENSORS]; /* row-major, as filled; the reference's outputs */
} op_memory;

/* Places every tensor of the call, in plain row-major order or in a random layout, and fills it with values. */
void op_place(op_memory *m, op_call *c, test_random *r, bool plain);
void op_free(op_memory *m);
/* Remembers all bytes, to be compared later. */
void op_keep(op_memory *m);
/* Whether all bytes (or all but the elements of outputs) are as they were kept. */
bool op_unchanged(const op_memory *m, const op_call *c, bool but_outputs);
/* The elements of a tensor in row-major order. */
void op_read(const mica_tensor *t, double *value);
void op_write(const mica_tensor *t, const double *value);

#endif
