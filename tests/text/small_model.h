/* Small text models with random weights, as GGUF files made by the test. */
#ifndef MICA_TESTS_SMALL_MODEL_H
#define MICA_TESTS_SMALL_MODEL_H

#include "test.h"

typedef struct small_model {
    const char *architecture;                   /* NULL: "llama" */
    mica_dtype weights;                         /* of matrices; F32 is 0 */
    int layers, width, heads, kv_heads, hidden; /* 0: 2, 256, 4, 2, 256 */
    int context;                                /* 0: 512 */
    int window;                                 /* 0: none */
    const char *windows;                        /* "wa": layer 0 has the window, 1 sees all; NULL: no list */
    bool qk_norm;
    bool biases;         /* of queries, keys and values */
    bool fused;          /* the same matrices, as one */
    const char *without; /* a tensor that is left out; NULL: none */
    uint64_t seed;
} small_model;

#define SMALL_VOCABULARY 300

/* Writes it to a file. */
mica_status small_model_write(mica_context *ctx, const char *path, const small_model *model);

#endif
