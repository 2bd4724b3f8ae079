/* Importing: ONNX nodes become calls of Mica's operations, in a net.
 *
 * An operator is a function and a line in its family's table (mica_onnx_conv_operators[] and so on, listed in
 * operators.c):
 *
 *     static void leaky_relu(mica_onnx_importing *n)
 *     {
 *         mica_scalar_opts opts = {mica_onnx_float(n, "alpha", 0.01f)};
 *         mica_onnx_give(n, 0, mica_onnx_op1(n, "leaky_relu", n->in[0], &opts));
 *     }
 *     const mica_onnx_operator mica_onnx_activation_operators[] = {{"LeakyRelu", 1, leaky_relu}, {NULL}};
 *
 * What a node's inputs are is a mica_onnx_ref: a value of the net, or a constant, whose elements are known while the
 * net is built. A call all of whose inputs are constants runs at once and gives constants: that is all there is to
 * constant folding, so an operator need not know of it.
 *
 * Errors stick to the node: after the first one its calls do nothing and return 0, so that they need not be checked one
 * by one. The import goes on with the other nodes, to tell all that it cannot do at once. */
#ifndef MICA_SRC_ONNX_IMPORT_H
#define MICA_SRC_ONNX_IMPORT_H

#include <mica/op.h>

#include "onnx/model.h"

/* A value of the model: 0 is none (an optional input that is absent, or what a call gives after an error). */
typedef int mica_onnx_ref;

/* The most inputs and outputs of a node. Concat has many: one for each feature that scikit-learn makes up. */
#define MICA_ONNX_INS  512
#define MICA_ONNX_OUTS 64

/* A node that is being imported. */
typedef struct mica_onnx_importing {
    struct mica_onnx_import *import; /* private */
    const mica_onnx_node *node;
    int opset; /* the version of the node's domain that the model asks for */
    int ins, outs;
    mica_onnx_ref in[MICA_ONNX_INS]; /* 0: absent */
    mica_onnx_ref out[MICA_ONNX_OUTS];
    bool failed;
    bool sized; /* private: has read numbers that are others at other sizes */
} mica_onnx_importing;

typedef struct mica_onnx_operator {
    const char *type; /* "LeakyRelu"; of another domain "ai.onnx.ml:Binarizer" */
    int since;        /* the first opset that this function is for; the largest that fits is taken */
    void (*import)(mica_onnx_importing *n);
} mica_onnx_operator;

/* The operator of a node; NULL: there is none. */
const mica_onnx_operator *mica_onnx_operator_for(const char *domain, const char *type, int opset);

/* Whether Mica wrote the model as its net was (it imports the domain "mica"): what looks like a pattern there was
 * none. */
bool mica_onnx_is_own(const mica_onnx *model);
/* The operator of a node that Mica itself wrote, which stands for a call of its own; NULL: it is none (own.c). */
const mica_onnx_operator *mica_onnx_own_operator(const char *domain, const char *type);

/* ---- Values ---- */

/* Its dtype and planned shape; of a constant, also its data (contiguous). Never NULL: after an error a scalar f32. */
const mica_tensor *mica_onnx_shape(mica_onnx_importing *n, mica_onnx_ref ref);
/* Whether its elements are known while the net is built. */
bool mica_onnx_is_known(mica_onnx_importing *n, mica_onnx_ref ref);
/* Its elements, which must be known: otherwise the node fails, and the message says which inputs of the model must be
 * fixed (mica_onnx_set) so that they are. `what` is the input's name, for that message. NULL after an error. */
const mica_tensor *mica_onnx_known(mica_onnx_importing *n, mica_onnx_ref ref, const char *what);
/* The same of numbers, converted: into out[most]. Returns how many there are; -1 after an error, also of too many. */
int mica_onnx_known_ints(mica_onnx_importing *n, mica_onnx_ref ref, const char *what, int64_t *out, int most);
double mica_onnx_known_number(mica_onnx_importing *n, mica_onnx_ref ref, const char *what);
/* For an operator that rounds or limits numbers that it has read, or what it computes from the size of an axis: these
 * may follow from sizes that a step may have less of, and then in steps that two imports do not show (doubt.c). An
 * operator that may read such numbers, and is not listed there, need not say so of them. */
void mica_onnx_doubt_numbers(mica_onnx_importing *n);
void mica_onnx_doubt_axis(mica_onnx_importing *n, mica_onnx_ref ref, int axis);

/* Constants of the operator's own. The elements are copied. */
mica_onnx_ref mica_onnx_constant(mica_onnx_importing *n, const mica_tensor *tensor);
mica_onnx_ref mica_onnx_scalar(mica_onnx_importing *n, mica_dtype dtype, double value);   /* of rank 0 */
mica_onnx_ref mica_onnx_vector(mica_onnx_importing *n, const int64_t *values, int count); /* i64 */

/* ---- Calls ---- */

/* A call of one of Mica's operations; `count` inputs, 0 for an absent optional one. Returns its first output. */
mica_onnx_ref mica_onnx_op(mica_onnx_importing *n, const char *op, const mica_onnx_ref *ins, int count,
                           const void *opts);
/* The same for an entry that is not in the list. */
mica_onnx_ref mica_onnx_call(mica_onnx_importing *n, const mica_op *op, const mica_onnx_ref *ins, int count,
                             const void *opts);
/* A call on constants whose result depends on the machine that the net runs on: it is made when the net is bound. 0 if
 * the net is not of the model's context. */
mica_onnx_ref mica_onnx_derived(mica_onnx_importing *n, const mica_op *op, const mica_onnx_ref *ins,
                                int count, const void *opts);
/* Output `number` of the call that gave `ref`. */
mica_onnx_ref mica_onnx_result(mica_onnx_importing *n, mica_onnx_ref ref, int number);

/* Calls of one and two inputs without much ado. */
mica_onnx_ref mica_onnx_op1(mica_onnx_importing *n, const char *op, mica_onnx_ref a, const void *opts);
mica_onnx_ref mica_onnx_op2(mica_onnx_importing *n, const char *op, mica_onnx_ref a, mica_onnx_ref b,
                            const void *opts);

/* In another dtype (the same: as it is). */
mica_onnx_ref mica_onnx_cast(mica_onnx_importing *n, mica_onnx_ref ref, mica_dtype dtype);
/* In another shape with as many elements: dims as of mica_shape_opts (0: that of x; one may be -1). */
mica_onnx_ref mica_onnx_reshape(mica_onnx_importing *n, mica_onnx_ref ref, int rank, const mica_index *dims);
/* Axes in another order. */
mica_onnx_ref mica_onnx_permute(mica_onnx_importing *n, mica_onnx_ref ref, const int *axes);

/* Output `number` of the node is this. */
void mica_onnx_give(mica_onnx_importing *n, int number, mica_onnx_ref ref);
/* Whether anything wants output `number`: it has a name. */
bool mica_onnx_wants(const mica_onnx_importing *n, int number);

/* Most of Mica's operations compute in f32. Input `number` as f32, if it is of another float type; and an output in the
 * dtype of input 0: so a model in f16 or f64 is computed in f32, between casts. */
mica_onnx_ref mica_onnx_f32(mica_onnx_importing *n, int number);
void mica_onnx_give_like(mica_onnx_importing *n, int number, mica_onnx_ref ref, mica_onnx_ref like);

/* Whether the net is built for training: then initializers that are weights are learned, and calls on them are not
 * folded. mica_onnx_is_known is false of them, mica_onnx_known still gives their elements. */
bool mica_onnx_training(const mica_onnx_importing *n);
/* Whether a step may train the net: what depends on weights must then have a gradient. */
bool mica_onnx_may_train(const mica_onnx_importing *n);
/* A running mean (0) or variance (1), kept from step to step, that starts as this constant. Nodes that read the same
 * initializer, as a layer that is used twice does, share it. */
mica_onnx_ref mica_onnx_kept(mica_onnx_importing *n, mica_onnx_ref ref, int which);

/* For what needs one: checks, reading elements. */
mica_context *mica_onnx_context(const mica_onnx_importing *n);
/* A call in the type of its first input, to which the others are cast; in f32 where the operation does not take that
 * type of floats. The result is of the type that was computed in (mica_onnx_give_like). */
mica_onnx_ref mica_onnx_typed(mica_onnx_importing *n, const char *op, const mica_onnx_ref *ins, int count,
                              const void *opts);

/* ---- Attributes ---- */

const mica_onnx_attribute *mica_onnx_find(const mica_onnx_importing *n,
                                          const char *name); /* NULL: there is none */
int64_t mica_onnx_int(mica_onnx_importing *n, const char *name, int64_t otherwise);
float mica_onnx_float(mica_onnx_importing *n, const char *name, float otherwise);
const char *mica_onnx_text(mica_onnx_importing *n, const char *name, const char *otherwise);
/* Into out[most]. Returns how many; -1: the attribute is absent. More than `most` fail the node. */
int mica_onnx_int_list(mica_onnx_importing *n, const char *name, int64_t *out, int most);
int mica_onnx_float_list(mica_onnx_importing *n, const char *name, float *out, int most);
/* An axis of `ref` that may count from the end, resolved. */
int mica_onnx_axis(mica_onnx_importing *n, int64_t axis, mica_onnx_ref ref);
/* Mica's dtype of an ONNX number; MICA_DTYPE_COUNT, having failed the node, if there is none. */
mica_dtype mica_onnx_dtype_of(mica_onnx_importing *n, int64_t type);

/* ---- Failing ---- */

/* The node cannot be imported: what about it is not supported. Returns 0. */
mica_onnx_ref mica_onnx_unsupported(mica_onnx_importing *n, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The node violates the standard: what came, and what was expected. Returns 0. */
mica_onnx_ref mica_onnx_bad(mica_onnx_importing *n, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- Families: each a file of this folder, with a table that ends with {NULL} ---- */

#define MICA_ONNX_FAMILIES(X) \
    X(activation)             \
    X(attention)              \
    X(cast)                   \
    X(contrib)                \
    X(control)                \
    X(conv)                   \
    X(einsum)                 \
    X(elementwise)            \
    X(index)                  \
    X(logic)                  \
    X(loss)                   \
    X(matmul)                 \
    X(ml)                     \
    X(norm)                   \
    X(pooling)                \
    X(qlinear)                \
    X(quantize)               \
    X(random)                 \
    X(recurrent)              \
    X(reduce)                 \
    X(resize)                 \
    X(shape)                  \
    X(signal)                 \
    X(vision)

#define MICA_ONNX_DECLARE(family) extern const mica_onnx_operator mica_onnx_##family##_operators[];
MICA_ONNX_FAMILIES(MICA_ONNX_DECLARE)
#undef MICA_ONNX_DECLARE

#endif
