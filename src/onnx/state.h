/* The state of an import, for the files that carry it out: import.c walks the graph, values.c holds values and makes
 * calls, attributes.c reads attributes. Operators see import.h alone. */
#ifndef MICA_SRC_ONNX_STATE_H
#define MICA_SRC_ONNX_STATE_H

#include "onnx/import.h"

typedef struct mica_onnx_held {
    mica_tensor shape;                  /* dtype and planned shape; with data if its elements are known */
    mica_value value;                   /* in the net; 0: none yet */
    int call;                           /* 1 + the number of the call that makes it; 0: none */
    int maker;                          /* 1 + the number of the node that made it (patterns); 0: none */
    const char *name;                   /* of an initializer; NULL: none */
    mica_onnx_ref codes, scales, zeros; /* of a constant that DequantizeLinear made: what of; 0: none */
    int codes_axis;                     /* that scales are along */
    mica_onnx_ref kept[2];              /* what is kept that starts as this: a mean, a variance; 0: nothing */
    uint64_t inputs;                    /* bit k: depends on input k of the model, while that is not known */
    bool known;                         /* shape.data holds its elements (or it has none) */
    bool loose;         /* computed from a shape behind an axis that was rounded: see doubt.c */
    bool falls;         /* computed by a difference: where sizes are smaller, it may be 0 or less */
    bool inner;         /* an initializer of a subgraph: another may have its name */
    bool learned;       /* an initializer that becomes a parameter: known, but calls on it are not folded */
    bool trained;       /* computed from what is learned */
    bool broken;        /* made by a node that failed: nothing follows from it */
    bool input, output; /* in the net: is written, is read by the caller */
} mica_onnx_held;

/* A call of an operation that was recorded. Calls enter the net at the end, in their order, if an output needs them:
 * what was read for its shape alone, or what a pattern has replaced, costs nothing. */
typedef struct mica_onnx_recorded {
    const mica_op *op;
    const void *opts; /* NULL: none */
    mica_onnx_ref in[MICA_OP_INS];
    mica_onnx_ref first; /* its outputs: this one and those that follow */
    int ins;
    bool needed;
    bool derived; /* of constants alone: made when the net is bound */
} mica_onnx_recorded;

/* A node that was imported, for patterns that end in a later one. */
typedef struct mica_onnx_maker {
    const mica_onnx_node *node;
    const mica_onnx_ref *in, *out; /* [node->ins], [node->outs] */
    int body;                      /* the function's call that it lies in; 0: none */
} mica_onnx_maker;

/* What names stand for, in a graph or in a function that is being called. */
typedef struct mica_onnx_scope {
    struct mica_onnx_scope *outer; /* NULL: names end here */
    const char **names;            /* open addressing */
    mica_onnx_ref *refs;
    int count;
    size_t room;
} mica_onnx_scope;

/* A function that is being called: attributes of its nodes may refer to those of the call. */
typedef struct mica_onnx_frame {
    const struct mica_onnx_frame *caller;
    const mica_onnx_node *call;
    const mica_onnx_function *function;
} mica_onnx_frame;

#define MICA_ONNX_PAGE 256 /* values */

typedef struct mica_onnx_import {
    mica_onnx *model;
    mica_context *ctx;
    mica_net *net;
    const mica_onnx_opts *opts;
    mica_onnx_held *
        *pages; /* of values, which stay where they are: what mica_onnx_shape gave is good to the end */
    int count, page_room; /* value 0 is none */
    mica_onnx_recorded *calls;
    int call_count, call_room;
    mica_onnx_maker *makers;
    int maker_count, maker_room;
    mica_onnx_scope uses; /* how often a name is read, but for its shape */
    int body, bodies;     /* the present function's call, and how many there were */
    mica_onnx_scope *scope;
    const mica_onnx_scope *names; /* of the model's own graph: all that outputs and weights can be called */
    const mica_onnx_frame *frame; /* NULL: in the model's own graph */
    const mica_onnx_opset *opsets;
    int opset_count;
    int depth;                           /* of functions and subgraphs */
    int64_t nodes;                       /* imported so far, in all bodies */
    size_t folded;                       /* bytes of constants that were computed */
    int entered;                         /* calls that are in the net */
    int made_names;                      /* of constants without one */
    struct mica_onnx_chunk *chunks;      /* constants that are computed, unless sizes are as set */
    int sizing;                          /* 0: sizes as set; others are smaller, each in its way (sizes.c) */
    uint64_t decisions;                  /* a hash of the branches taken, and of the turns of loops */
    bool named;                          /* some size of the net has a name */
    bool varies;                         /* some size of the net may be smaller in a step */
    const struct mica_onnx_import *twin; /* the import with sizes a little smaller; NULL: none */
    bool rounds;                         /* an axis that is smaller in the twin meets a stride or a slice */
    bool doubtful;                       /* what is so for this and the twin may not be so at other sizes */
    const char *fixed;                   /* why sizes may not be smaller; NULL: they may */
    mica_status status;                  /* what ends the import at once: memory */
} mica_onnx_import;

/* For constants that are computed: the model's, or of an import that is dropped the import's. */
void *mica_onnx_import_memory(mica_onnx_import *im, size_t bytes);
/* A new value; 0 if memory is short (import->status). */
mica_onnx_ref mica_onnx_hold(mica_onnx_import *im, const mica_onnx_held *held);
static inline mica_onnx_held *mica_onnx_held_at(const mica_onnx_import *im, mica_onnx_ref ref)
{
    return &im->pages[ref / MICA_ONNX_PAGE][ref % MICA_ONNX_PAGE];
}
/* Counts the bytes of constants that are computed. False, having failed the node: they are too many for a file to ask
 * for. */
bool mica_onnx_may_compute(mica_onnx_importing *n, size_t bytes);
/* Its value in the net, which a constant gets when it is first asked for; of what a call makes, once that has entered
 * the net. 0 after an error. */
mica_value mica_onnx_in_net(mica_onnx_import *im, mica_onnx_ref ref);
/* Puts a call down; its outputs begin with `first`. */
bool mica_onnx_record(mica_onnx_import *im, const mica_op *op, const mica_onnx_ref *ins, int count,
                      const void *opts, mica_onnx_ref first);
/* The calls that these values need enter the net. */
void mica_onnx_enter_calls(mica_onnx_import *im, const mica_onnx_ref *outs, int count);

/* Names in the innermost scope, and what they stand for there or outside: 0 for an
 * input of a function that the call leaves out; -1 for nothing. */
bool mica_onnx_bind_name(mica_onnx_import *im, const char *name, mica_onnx_ref ref);
mica_onnx_ref mica_onnx_look_up(const mica_onnx_import *im, const char *name);
/* Whether a name that the import makes up is taken: in the net, or by something of the model that may yet enter it. */
bool mica_onnx_name_taken(mica_onnx_import *im, const char *text);

/* Records why a node cannot be imported. `needs`: inputs that would have to be known. */
void mica_onnx_add_problem(mica_onnx_import *im, const mica_onnx_node *node, const char *reason,
                           uint64_t needs);

/* Fails if something is set by a name that the model does not have (sets.c). */
void mica_onnx_check_sets(mica_onnx_import *im);
/* Imports the whole graph into im->net. */
void mica_onnx_import_model(mica_onnx_import *im);
/* Imports nodes in the innermost scope. */
void mica_onnx_import_nodes(mica_onnx_import *im, const mica_onnx_node *nodes, int count);
/* Imports a subgraph in a scope of its own: its outputs into out[most]. False: the node has failed. */
bool mica_onnx_import_graph(mica_onnx_importing *n, const mica_onnx_graph *graph, const mica_onnx_ref *ins,
                            int count, mica_onnx_ref *out, int most);

/* ---- Imports at other sizes (twin.c) ---- */

/* Imports the model, and compares that with imports at smaller sizes: steps of other sizes than planned only where it
 * has shown that they are right. */
mica_status mica_onnx_import_compared(mica_onnx_import *im);
void mica_onnx_drop_import(mica_onnx_import *im);

/* ---- Doubt (doubt.c) ---- */

/* A value, beside its twin. */
typedef enum mica_onnx_likeness {
    MICA_ONNX_SAME,
    MICA_ONNX_LONGER, /* a table of another shape, as Range makes it */
    MICA_ONNX_OTHER,  /* other numbers, as Shape gives them; or not known in both */
} mica_onnx_likeness;
mica_onnx_likeness mica_onnx_in_twin(const mica_onnx_import *im, mica_onnx_ref ref);
/* Whether an input may be another number at other sizes, even if it is the same in the twin. */
bool mica_onnx_is_loose(const mica_onnx_import *im, const mica_onnx_ref *ins, int count);
/* Whether what a folded operation makes may be 0 or less at smaller sizes, unlike a size. */
bool mica_onnx_may_fall(const mica_onnx_import *im, const mica_op *op, const mica_onnx_ref *ins, int count);
/* Whether a call on constants may round or limit numbers that follow from sizes. */
void mica_onnx_doubt_folded(mica_onnx_import *im, const mica_op *op, const mica_onnx_ref *ins, int count,
                            mica_dtype to);
/* The same of a node. */
void mica_onnx_doubt_node(mica_onnx_importing *n);

/* ---- Sizes (sizes.c) ---- */

/* Whether no import before has all the same sizes as this one. */
bool mica_onnx_sizing_is_new(const mica_onnx_import *im, int sizing);
/* Why an import is not right at the sizes of another; NULL: it is. Other graphs cannot be compared. */
const char *mica_onnx_other_graph(const mica_onnx_import *im, const mica_onnx_import *other);
const char *mica_onnx_difference(mica_onnx_import *im, const mica_onnx_import *other);
/* The number that stands for a symbol in the dims of an input; false: it was not set. */
bool mica_onnx_symbol_size(mica_onnx_import *im, const char *symbol, mica_index *out);
/* Whether the first axis of an input may be the batch: the model leaves it open, and gives it no other name. */
bool mica_onnx_may_be_batch(const mica_onnx_import *im, const mica_onnx_value *v);
/* A constant that enters the net as `value`: the value that is right at smaller sizes, too, the same one or its leading
 * part. Notes if there is none. */
mica_value mica_onnx_sized_constant(mica_onnx_import *im, mica_onnx_ref ref, mica_value value);
/* Gives a call options by which it is right at smaller sizes, too: its own, or another reshape's. Notes if there are
 * none. */
void mica_onnx_check_call(mica_onnx_import *im, mica_onnx_recorded *call);

/* Whether an axis is smaller in the twin. */
bool mica_onnx_axis_varies(const mica_onnx_import *im, mica_onnx_ref ref, int axis);

/* A slice as ONNX says it. */
typedef struct mica_onnx_range {
    int64_t start, stop, step;
} mica_onnx_range;
/* Notes if a call of Mica's slice does not take what the range does at every smaller size, too. */
void mica_onnx_check_slice(mica_onnx_import *im, mica_onnx_ref x, mica_onnx_range range,
                           const mica_slice_range_opts *opts);

/* ---- Patterns (fuse.c) ---- */

/* Counts who reads what in the whole model. */
void mica_onnx_count_uses(mica_onnx_import *im);
/* Notes that a node was imported, and made n->out. */
void mica_onnx_note_maker(mica_onnx_importing *n);
/* Whether one node alone reads what a node made. */
bool mica_onnx_read_once(const mica_onnx_importing *n, mica_onnx_ref ref);
/* Imports the node and some before it, which it ends a pattern of, as something simpler. False: it ends none. */
bool mica_onnx_fuse(mica_onnx_importing *n);

/* Keeps a learned or kept value's first elements, for mica_onnx_load. */
mica_status mica_onnx_remember(mica_onnx *model, const char *name, const mica_tensor *tensor);

#endif
