/* How an operation becomes C. To add one:
 *
 *   1. Write its kernel, export/kernels/NAME.c: C99 that compiles by itself, functions static, outputs first, then
 *      inputs, then sizes as int; what it needs it includes ("exp.c"). It is embedded into the tool by the build, and
 *      written out once, where something uses it.
 *   2. Write an emitter, a function of a few lines, in the emit_FAMILY.c of its family:
 *
 *          static void emit_softmax(emitter *e, const call *c)
 *          {
 *              const value *x = in_value(e, 0);
 *              int columns = (int)x->dim[x->rank - 1];
 *              use_kernel(e, "softmax");                                  // export/kernels/softmax.c
 *              emit(e, "softmax(%s, %s, %d, %d);", out_name(e, 0), in_name(e, 0), (int)x->count / columns, columns);
 *          }
 *
 *      It is called inside a block of C whose variables are already declared, each with its shape in a comment: one
 *      for each input and output of the call, by the names that in_name and out_name give. An absent input is "0".
 *      Shapes are numbers now: a loop nest may be written out instead of a call.
 *   3. Add a line to the table of that file: the operation's name in `mica ops` (or of a gradient: `mica plan NET
 *      --train --program`), and what else is to be known of it. A new family's table goes into the list in emit.c.
 *
 * What an entry promises:
 *   - out[k] may be exactly in[i] where the library's operation allows it (op->in_place), and then is, if memory can be
 *     saved so; if the kernel cannot, the entry says .apart.
 *   - c->add bit k: out[k] holds something, which the result is added to. An entry lists the outputs for which it
 *     looks at that bit in .adds, and those that its kernel always adds to in .only_adds (gradients of parameters:
 *     they lie in the velocity). The rest is done around it: an output is set to zeros before, or made elsewhere and
 *     added.
 *   - .refuse says why a call cannot be exported (a short text; NULL: it can), before anything is written.
 *   - .scratch: how many floats the call needs besides, in scratch_name(e).
 *   - .modes: it differs in training: then the emitter looks at e->mode, and is called for each mode that is needed.
 */
#ifndef MICA_EXPORT_EMIT_H
#define MICA_EXPORT_EMIT_H

#include "export/graph.h"

#define MOST_KERNELS 256

typedef enum mode { MODE_RUN, MODE_TRAIN } mode;

typedef struct emitter {
    const graph *g;
    const call *c; /* the present one */
    mode mode;
    text *out;
    int indent;
    const char *kernels[MOST_KERNELS]; /* used so far, in order */
    int kernel_count;
    unsigned used_ins, used_outs; /* by the present call, as bits: only these are declared */
    bool used_scratch, used_steps;
} emitter;

typedef struct export_op {
    const char *name;
    const char *title; /* for people, above its block; NULL: the name */
    void (*emit)(emitter *e, const call *c);
    unsigned adds, only_adds;
    bool apart, modes;
    const char *(*refuse)(const graph *g, const call *c);
    size_t (*scratch)(const graph *g, const call *c);
} export_op;

/* The tables of the families; each ends with an entry without a name. */
extern const export_op export_activation_ops[], export_conv_ops[], export_conv_pool_ops[], export_dense_ops[],
    export_loss_ops[], export_memory_ops[];
/* Those of all else, by general loops. */
extern const export_op export_elementwise_ops[], export_reduce_ops[], export_move_ops[], export_index_ops[],
    export_norm_ops[], export_recurrent_ops[], export_attention_ops[], export_window_ops[],
    export_matrix_ops[], export_make_ops[], export_random_ops[], export_class_ops[], export_affine_ops[];

/* The entry of an operation of bytes; NULL: it is none. And whether int8_t can be exported for an operation: for
 * those, and for those that move elements. */
const export_op *find_int8_op(const char *name);
bool takes_bytes(const char *name);

/* The entry of an operation; NULL: it cannot be exported. */
const export_op *find_export_op(const char *name);

/* ---- For emitters ---- */

/* A line of C, indented. */
void emit(emitter *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void use_kernel(emitter *e, const char *name);
const char *in_name(emitter *e, int i);
const char *out_name(emitter *e, int k);
const char *scratch_name(emitter *e);
const char *steps_name(emitter *e); /* the count of steps, one float */
static inline const value *in_value(const emitter *e, int i) { return &e->g->values[e->c->in[i]]; }
static inline const value *out_value(const emitter *e, int k) { return &e->g->values[e->c->out[k]]; }
/* Rows of the last axis: [..., columns]. */
static inline int columns_of(const value *v) { return v->rank > 0 ? (int)v->dim[v->rank - 1] : 1; }
static inline int rows_of(const value *v) { return columns_of(v) > 0 ? (int)v->count / columns_of(v) : 0; }

/* A number as C has it; valid until the fourth call after it. */
const char *float_text(double number);

/* Applies the activation of fused options ("activation", "slope" with this prefix) to a value in place. */
void emit_activation(emitter *e, const char *name, size_t count, const char *prefix);
/* NULL, or why the fused activation of a call cannot be exported. */
const char *refuse_activation(const call *c, const char *prefix);

/* Why a loss cannot be exported; NULL: it can. */
const char *refuse_loss(const graph *g, const call *c);

/* The sizes of a convolution, as `shape` of kernels/conv_shape.c, from options with this prefix. */
void emit_conv_shape(emitter *e, image x, image y, const value *w, const char *prefix);
/* Whether a dense layer is written out as loops rather than a call. */
bool is_small_dense(const value *x, const value *y);
/* The sizes of pooling, as `windows` of kernels/pool_shape.c, from options with this prefix. */
void emit_pool_shape(emitter *e, image x, image y, const char *prefix);

/* ---- For the writers ---- */

/* All calls that cannot be exported, a line each, with layer and operation; returns how many. */
int graph_refusals(const graph *g, text *out);
/* Scratch of calls; sums through temporaries, zeros where a kernel only adds. */
bool graph_prepare(graph *g);
/* The block of one call. */
void emit_call(emitter *e, const call *c);
/* Expression of a value's first element, and its type in C. */
void put_address(text *out, const graph *g, const value *v);
const char *c_type(mica_dtype dtype);
/* "[8, 6, 6]" */
typedef struct shape_words {
    char text[96];
} shape_words;
shape_words shape_of(const value *v);

/* ---- kernels.c: the kernels, as text ---- */

/* Writes those that are used, what they include first, each once. False if one is missing: *missing is its name. */
/* Whether one of them has a function or a type of this name. */
bool kernel_declares(const char *name);
bool put_kernels(text *out, const emitter *e, const char **missing);

#endif
