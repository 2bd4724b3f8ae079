/* The exporter's own program: values and calls, read from a compiled net, then rewritten, planned and written out. */
#ifndef MICA_EXPORT_GRAPH_H
#define MICA_EXPORT_GRAPH_H

#include <mica/mica.h>
#include <mica/op.h>

#include "export/target.h"
#include "export/text.h"

#define NONE (-1)

/* Where a value lives in the exported program. */
typedef enum value_home {
    VALUE_CONST,    /* in flash: weights, tables */
    VALUE_LEARNED,  /* in RAM, next to one another */
    VALUE_GRADIENT, /* of something learned, in the same order: the velocity itself, with SGD */
    VALUE_KEPT,     /* in RAM, from step to step: running statistics, recurrent state */
    VALUE_ARENA,    /* for part of a step */
    VALUE_INPUT,    /* the same, written by the caller before the step */
    VALUE_TARGET,   /* an argument of the training step */
} value_home;

/* How a constant lies in flash, where that is not as in the net: pack_int8.c. */
typedef enum packing {
    PACK_NOT,
    PACK_EACH,   /* the one number that there is, for every channel */
    PACK_THREES, /* rows of weights in threes, each of four bytes */
} packing;

typedef struct value {
    char name[64]; /* an identifier of C, which no other value has */
    value_home home;
    mica_dtype dtype; /* MICA_F32, MICA_I32 (of any integer of the net), MICA_U8 or MICA_I8 */
    int rank;
    mica_index dim[MICA_MAX_RANK];
    size_t count;      /* elements, without a border */
    int border;        /* zeros around each plane of the last two axes */
    int root;          /* of a view, the value whose memory it shows; otherwise itself */
    int of;            /* of a gradient, the parameter */
    mica_value source; /* in the net; 0: made by the exporter */
    bool output;       /* read by the caller after a run */
    mica_kept_kind kept;
    packing packed;     /* of a constant */
    float scale;        /* of bytes that the caller writes or reads; 0: they are no such */
    mica_value seen_as; /* and the floats of the net that they stand for */
    /* By plan.c: */
    int first, last; /* numbers of the calls between which it lives */
    int group;       /* of values that take over from one another */
    size_t offset;   /* in elements of 4 bytes from the start of its block */
} value;

typedef struct call {
    const char *name;  /* of the operation: what emit.c looks up */
    const mica_op *op; /* NULL: made by the exporter */
    const void *opts;
    mica_phase phase;
    const char *layer, *kind;
    int ins, outs;
    int in[MICA_OP_INS], out[MICA_OP_OUTS]; /* values; NONE: absent */
    unsigned add;                           /* bit k: adds to out[k] */
    unsigned in_place[MICA_OP_OUTS];        /* bit i of number k: out[k] may be exactly in[i] */
    int scratch;                            /* a value; NONE: none */
    int steps;                              /* the count of steps that random numbers follow; NONE: none */
    uint64_t seed, stream, stream_step;     /* of random numbers: as in mica_program_call */
    bool runs;                              /* an output of the net depends on it: it is part of a run */
    int numbers[8];                         /* of a call made by the exporter: its own */
    const char *also;                       /* another operation that is part of it; NULL: none */
    float slope;                            /* of that */
} call;

typedef struct graph {
    mica_net *net;
    export_target target;
    bool float_ends; /* the caller writes and reads floats, also of nets of bytes */
    bool train;
    int samples; /* that a step runs one after the other: axis 0 of its inputs and outputs */
    value *values;
    int value_count, value_room;
    call *calls;
    int call_count, call_room;
    int run_count;                /* the first calls: those of a run */
    int input, output;            /* the first input; what is predicted */
    float share;                  /* of a sample in the mean of the loss */
    size_t learned_count;         /* floats; as many gradients */
    size_t kept_count;            /* floats of running statistics and state, behind them */
    size_t arena_count;           /* floats */
    size_t whole_count;           /* int32_t */
    size_t states;                /* floats for each learned one, besides its gradient: 2 for Adam */
    size_t block_count;           /* floats of the block: all of these */
    const mica_optimizer *method; /* of training */
} graph;

/* Reads the program of a compiled net. False, with a text, if memory runs out. */
bool graph_read(graph *g, mica_net *net, const char *output, bool train, int samples);
void graph_free(graph *g);

int graph_add_value(graph *g, const value *v); /* NONE: no memory */
/* Inserts a call before number `at`. NULL: no memory. */
call *graph_add_call(graph *g, int at, const call *c);
void graph_drop_call(graph *g, int at);

/* The only call that reads a value (or a view of it), if there is just one; otherwise NONE. And the one that writes it
 * first. */
int graph_only_reader(const graph *g, int v);
int graph_writer(const graph *g, int v);
static inline const value *root_of(const graph *g, int v) { return &g->values[g->values[v].root]; }

/* Elements that a value takes, with its border and for all samples of a step. */
size_t value_size(const graph *g, const value *v);
/* Floats (or bytes as floats, rounded up) from the first element of a bordered value's memory to its first own. */
size_t value_inset(const value *v);
/* As images: [N, C, H, W], for [N, C, L] of one row. */
typedef struct image {
    int count, channels, rows, columns;
    int stride,
        plane; /* elements from row to row, and from plane to plane: more than they hold with a border */
} image;
image image_of(const graph *g, int v);

/* An option of a call by its name ("stride", "conv.pad"), element k: 0 if the operation has none of that name. */
double call_number(const call *c, const char *field, int k);
static inline int call_int(const call *c, const char *field, int k) { return (int)call_number(c, field, k); }
/* The same, 1 for 0. */
static inline int call_size(const call *c, const char *field, int k)
{
    int size = call_int(c, field, k);
    return size > 0 ? size : 1;
}

/* ---- plan.c: lifetimes, what takes over whose memory, offsets ---- */
bool graph_plan(graph *g);

/* ---- rewrite.c: a few calls into one that is cheaper on a small device ---- */
bool graph_rewrite(graph *g);

#endif
