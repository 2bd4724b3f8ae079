/* A conversion to int8.
 *
 *   ranges.c   what values were, and the scales that follow
 *   scales.c   scales as text
 *   find.c     which calls become which int8 operation, which calls go into others
 *   build.c    the new net
 *   fake.c     the net of floats that rounds as the new net would, to be trained
 *   last.c     what lasts and stays float: copied into the new net
 *   weights.c  its weights, from those of the first
 *   compare.c  the numbers of both, layer by layer
 */
#ifndef MICA_SRC_INT8_CONVERT_H
#define MICA_SRC_INT8_CONVERT_H

#include <mica/int8.h>

#include "net/net.h"

#define MICA_INT8_BINS 2048

/* Sizes of a value: counts in equal parts of 0 to `top`, a power of two. */
typedef struct mica_int8_range {
    double most, top;
    uint64_t *count; /* [MICA_INT8_BINS]; NULL: nothing was seen */
} mica_int8_range;

/* What a call becomes. */
typedef enum mica_int8_kind {
    MICA_INT8_STAYS,   /* the same call, of floats */
    MICA_INT8_TAKEN,   /* part of a call before it */
    MICA_INT8_SAME,    /* its output is its input: dropout */
    MICA_INT8_MOVES,   /* the same call, of bytes */
    MICA_INT8_PRODUCT, /* and the rest by their operations */
    MICA_INT8_LIMIT,
    MICA_INT8_SUM,
    MICA_INT8_JOIN,
    MICA_INT8_MAXIMUM,
    MICA_INT8_AVERAGE,
    MICA_INT8_GLOBAL,
} mica_int8_kind;

typedef struct mica_int8_step {
    mica_int8_kind kind;
    int norm;                   /* of products: the node of the batch norm behind it; NONE: there is none */
    mica_activation activation; /* none, relu or relu6, behind that */
    int end;                    /* the value that the last of these makes */
} mica_int8_step;

/* A row of the report, and the value that it is about. */
typedef struct mica_int8_compared {
    int value;
    const char *name;
    const mica_op *op; /* of the new net */
    double signal, noise;
} mica_int8_compared;

struct mica_int8 {
    mica_context *ctx;
    mica_net *net;
    int values, nodes;
    bool observed;
    bool per_tensor, unpacked;
    mica_int8_range *range; /* [values] */
    float *scale;           /* [values]; 0: unknown, it stays float */

    /* Found, by value and by node. */
    float *used;      /* scales as they are shared */
    bool *bytes;      /* it will be made as bytes */
    int *readers;     /* calls that read it; two more if the caller does */
    int *last_reader; /* NONE: none */
    mica_int8_step *step;

    /* Built: values of the new net, 0: there is none. */
    mica_net *out;
    mica_value *as_bytes, *as_floats;
    mica_int8_compared *row; /* [nodes] */
    int rows;
};

mica_status mica_int8_find(mica_int8 *q);
/* Of a new net: finds what calls become, and makes the sizes; a layer named as that of a call; inputs that were made
 * before value number `end`, from *next on; what the caller finds by name. */
mica_status mica_int8_start(mica_int8 *q, mica_net *out);
void mica_int8_begin(mica_int8 *q, int node, const mica_op *op, mica_value input);
void mica_int8_build_inputs(mica_int8 *q, int *next, int end);
void mica_int8_build_outputs(mica_int8 *q);
/* Something that lasts, in the new net; and the elements of all that is learned or kept, copied there or back. */
mica_value mica_int8_lasting(mica_int8 *q, int value);
mica_status mica_int8_copy_lasting(mica_int8 *q, mica_net *out, bool back);
/* Of a product: its weights as the int8 operation has them, output channels first (a shape without memory); and
 * whether the first net has them the other way round. */
mica_tensor mica_int8_weights_of(const mica_int8 *q, const mica_node *node);
bool mica_int8_turned(const mica_node *node);
/* The limits of an activation on bytes of this scale. */
void mica_int8_limits_of(mica_activation activation, float scale, int *low, int *high);
/* Whether calls were made to keep the values for us, not for the caller. */
bool mica_int8_is_output(const mica_int8 *q, int value);
/* The name that a value is found by, or NULL. */
const char *mica_int8_name_of(const mica_net *net, int value);

#endif
