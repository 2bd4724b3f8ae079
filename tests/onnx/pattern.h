/* Small models that are a pattern of nodes, or look like one: each gives the same numbers with its nodes fused as with
 * every value between them an output, which keeps them apart. */
#ifndef MICA_TESTS_ONNX_PATTERN_H
#define MICA_TESTS_ONNX_PATTERN_H

#include <math.h>

#include <mica/onnx.h>

#include "onnx/proto.h"
#include "test.h"

#define PATTERN_MOST 24

/* A value that the model has: an input, or a constant. Dims end with 0; `number` fills it, unless it is NAN: then they
 * are random. */
typedef struct pattern_value {
    const char *name;
    int64_t dims[5];
    float number;
    bool integer; /* i64: dims are its elements */
} pattern_value;

typedef struct pattern_node {
    const char *type, *ins, *outs;
    const char *attributes; /* "axis=-1 perm=0,2,1,3 epsilon=0.1f mode='reflect'" */
} pattern_node;

typedef struct pattern_case {
    const char *name;
    pattern_value input, constants[PATTERN_MOST];
    pattern_node nodes[PATTERN_MOST];
    int rank;          /* of y */
    const char *calls; /* the program, with blanks between them */
    int opset;         /* 0: 17 */
} pattern_case;

typedef struct pattern_built {
    mica_onnx *model;
    mica_net *net;
    float y[4096];
    size_t count;
    char calls[512];
} pattern_built;

/* The model of a case; with `apart`, every value between is an output. */
proto pattern_model(const pattern_case *c, bool apart);
/* Builds it, and runs it once. */
bool pattern_build(mica_context *ctx, pattern_built *b, const pattern_case *c, proto bytes);
void pattern_drop(pattern_built *b, proto *bytes);

/* The numbers of both, and the calls that the fused one should be. */
void pattern_check(mica_context *ctx, const pattern_case *c);

/* ---- For tables of cases ---- */

#define X_ROWS .input = {.name = "x", .dims = {3, 8}}
#define NUMBER(name, value)     \
    {                           \
        name, {0}, value, false \
    }
#define RANDOM(name, ...)               \
    {                                   \
        name, {__VA_ARGS__}, NAN, false \
    }
#define SHAPE(name, ...)             \
    {                                \
        name, {__VA_ARGS__}, 0, true \
    }

#endif
