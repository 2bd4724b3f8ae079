/* Writing: the calls of a net become ONNX nodes.
 *
 * An operation is a function and a row in its family's table:
 *
 *     static void leaky_relu(mica_onnx_writing *c)
 *     {
 *         const mica_scalar_opts *o = c->opts;
 *         mica_onnx_node1(c, OUT(0), "LeakyRelu", IN(0), ATTRS(mica_onnx_float_attr("alpha", o->s)));
 *     }
 *     const mica_onnx_row mica_onnx_write_activation[] = {{&mica_op_leaky_relu, leaky_relu}, {NULL}};
 *
 * The nodes of most calls stand in the graph. Where ONNX has no operator that is the same to the last bit, they are the
 * body of a function of the file's own, in the domain "mica" (row.own): another program runs the body, and Mica,
 * reading its own file, makes the same call again (own.c), without guessing from a pattern of nodes what it was.
 *
 *   write.c        what is written, and the file           write_call.c   nodes, constants and shapes of one call
 *   wire_write.c   protobuf                                write_*.c      the operations, by family
 */
#ifndef MICA_SRC_ONNX_WRITE_H
#define MICA_SRC_ONNX_WRITE_H

#include <mica/onnx.h>

#include "io/file.h"
#include "net/net.h"
#include "node/entry.h"

/* Fields of messages that several files write. */
enum { NODE_IN = 1, NODE_OUT = 2, NODE_NAME = 3, NODE_TYPE = 4, NODE_ATTRIBUTE = 5, NODE_DOMAIN = 7 };
enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2 };

/* ---- wire_write.c ---- */

/* Bytes that grow. After a failure, of which the context tells, nothing is added any more. */
typedef struct mica_onnx_bytes {
    mica_context *ctx;
    unsigned char *data;
    size_t used, room;
    mica_status status;
} mica_onnx_bytes;

void mica_onnx_add(mica_onnx_bytes *b, const void *bytes, size_t count);
void mica_onnx_free(mica_onnx_bytes *b);
size_t mica_onnx_varint_size(uint64_t value);
/* In `width` bytes, or as few as it takes if that is 0. */
void mica_onnx_add_varint(mica_onnx_bytes *b, uint64_t value, size_t width);
/* Fields of a message. */
void mica_onnx_add_int(mica_onnx_bytes *b, unsigned field, int64_t value);
void mica_onnx_add_float(mica_onnx_bytes *b, unsigned field, float value);
void mica_onnx_add_text(mica_onnx_bytes *b, unsigned field, const char *text);
void mica_onnx_add_head(mica_onnx_bytes *b, unsigned field,
                        uint64_t bytes); /* of a field whose bytes follow */
void mica_onnx_add_part(mica_onnx_bytes *b, unsigned field, const mica_onnx_bytes *part);

/* The standard's number of a dtype; 0: it has none. */
int mica_onnx_type_of(mica_dtype dtype);
/* The versions of the standard that a file says. */
typedef struct mica_onnx_version {
    int opset, ir;
} mica_onnx_version;
/* The usual ones, or, where they do not have the dtype, the first that do. */
mica_onnx_version mica_onnx_version_of(mica_dtype dtype);
/* Bytes of a tensor's elements in a file. */
size_t mica_onnx_raw_bytes(const mica_tensor *t);
/* Turns elements as they are in memory into those of a file, in place. Returns how many bytes they are now. */
size_t mica_onnx_pack(void *bytes, size_t count, mica_dtype dtype);

/* ---- One call ---- */

struct mica_onnx_writer;

/* A value within a call: an input, an output, or one on the way. 0: none. */
typedef int mica_onnx_term;
#define IN(i)  (1 + (i))
#define OUT(k) (100 + (k))
#define NEW    199 /* as a node's output: another value on the way, whose term is returned */

typedef struct mica_onnx_writing {
    struct mica_onnx_writer *w;
    const mica_node *node;
    const void *opts;
    const mica_tensor *in[MICA_OP_INS], *out[MICA_OP_OUTS]; /* as built; NULL: absent */
    mica_onnx_bytes *to;                                    /* nodes go here */
    bool own;                                               /* which is a function's body */
    int terms;                                              /* on the way, so far */
    const char *refused;                                    /* why it cannot be expressed; NULL: it can */
} mica_onnx_writing;

typedef struct mica_onnx_row {
    const mica_op *op;
    void (*write)(mica_onnx_writing *c);
    bool (*plain)(mica_onnx_writing *c); /* own, but not where this holds; NULL: never */
    bool own;                            /* a function of the file's own */
    bool several;                        /* it writes more outputs than the first */
} mica_onnx_row;

/* Rows of a table: nodes in the graph; a function of the file's own, and one that writes several outputs; the end. */
/* clang-format off */
#define PLAIN(op, write)       {&mica_op_##op, write, NULL, false, false}
#define OWN(op, write)         {&mica_op_##op, write, NULL, true, false}
#define OWN_SEVERAL(op, write) {&mica_op_##op, write, NULL, true, true}
#define END_OF_ROWS            {NULL, NULL, NULL, false, false}
/* clang-format on */

/* The row of an operation by its entry, or by its name; NULL: it cannot be expressed. */
const mica_onnx_row *mica_onnx_row_of(const mica_op *op);
const mica_onnx_row *mica_onnx_row_named(const char *name, size_t length);

/* Attributes. */
typedef struct mica_onnx_attr {
    const char *name;
    const char *s;
    const int64_t *ints;
    const float *floats;
    int64_t i;
    float f;
    int count;
    enum {
        MICA_ONNX_ATTR_INT,
        MICA_ONNX_ATTR_FLOAT,
        MICA_ONNX_ATTR_TEXT,
        MICA_ONNX_ATTR_INTS,
        MICA_ONNX_ATTR_FLOATS,
        MICA_ONNX_ATTR_TEXTS /* of one text */
    } kind;
} mica_onnx_attr;

static inline mica_onnx_attr mica_onnx_int_attr(const char *name, int64_t i)
{
    return (mica_onnx_attr){.name = name, .kind = MICA_ONNX_ATTR_INT, .i = i};
}
static inline mica_onnx_attr mica_onnx_float_attr(const char *name, float f)
{
    return (mica_onnx_attr){.name = name, .kind = MICA_ONNX_ATTR_FLOAT, .f = f};
}
static inline mica_onnx_attr mica_onnx_text_attr(const char *name, const char *s)
{
    return (mica_onnx_attr){.name = name, .kind = MICA_ONNX_ATTR_TEXT, .s = s};
}
static inline mica_onnx_attr mica_onnx_ints_attr(const char *name, const int64_t *ints, int count)
{
    return (mica_onnx_attr){.name = name, .kind = MICA_ONNX_ATTR_INTS, .ints = ints, .count = count};
}

static inline mica_onnx_attr mica_onnx_texts_attr(const char *name, const char *s)
{
    return (mica_onnx_attr){.name = name, .kind = MICA_ONNX_ATTR_TEXTS, .s = s};
}

#define ATTRS(...)                         \
    (const mica_onnx_attr[]){__VA_ARGS__}, \
        (int)(sizeof((const mica_onnx_attr[]){__VA_ARGS__}) / sizeof(mica_onnx_attr))
#define NO_ATTRS NULL, 0
#define TERMS(...)                         \
    (const mica_onnx_term[]){__VA_ARGS__}, \
        (int)(sizeof((const mica_onnx_term[]){__VA_ARGS__}) / sizeof(mica_onnx_term))

/* Attributes of a node that is being written, for write_own.c. */
void mica_onnx_add_attrs(struct mica_onnx_writer *w, mica_onnx_bytes *node, const mica_onnx_attr *attrs,
                         int count);

/* A node. `outs` holds its outputs; NEW ones are set to what they became. */
void mica_onnx_nodes(mica_onnx_writing *c, mica_onnx_term *outs, int out_count, const char *type,
                     const mica_onnx_term *ins, int count, const mica_onnx_attr *attrs, int attr_count);
/* With one output, which is returned; and with one or two inputs. */
mica_onnx_term mica_onnx_put(mica_onnx_writing *c, mica_onnx_term out, const char *type,
                             const mica_onnx_term *ins, int count, const mica_onnx_attr *attrs,
                             int attr_count);
mica_onnx_term mica_onnx_node1(mica_onnx_writing *c, mica_onnx_term out, const char *type, mica_onnx_term a,
                               const mica_onnx_attr *attrs, int attr_count);
mica_onnx_term mica_onnx_node2(mica_onnx_writing *c, mica_onnx_term out, const char *type, mica_onnx_term a,
                               mica_onnx_term b);

/* Constants: of any tensor, with data in order; a number of rank 0; whole numbers, as axes and shapes are given. */
mica_onnx_term mica_onnx_put_constant(mica_onnx_writing *c, const mica_tensor *tensor);
mica_onnx_term mica_onnx_put_number(mica_onnx_writing *c, float value);
mica_onnx_term mica_onnx_put_scalar(mica_onnx_writing *c, mica_dtype dtype, double value); /* of any type */
mica_onnx_term mica_onnx_put_ints(mica_onnx_writing *c, const int64_t *values, int count);
mica_onnx_term mica_onnx_put_int(mica_onnx_writing *c, int64_t value); /* [1] */

/* Reduces over axes, which are an input from opset 18 on (ReduceSum: from 13), and an attribute before. */
mica_onnx_term mica_onnx_put_reduce(mica_onnx_writing *c, mica_onnx_term out, const char *type,
                                    mica_onnx_term x, const int64_t *axes, int count, bool keep);

/* A size in a shape: a number, or what `term` has along an axis when it runs. */
typedef struct mica_onnx_dim {
    int64_t size; /* 0: as the input of Reshape; -1: what is left */
    mica_onnx_term term;
    int axis;
} mica_onnx_dim;
/* That of an input: a number where steps do not change it. */
mica_onnx_dim mica_onnx_dim_of(mica_onnx_writing *c, int in, int axis);
bool mica_onnx_varies(mica_onnx_writing *c, int value, int axis);
/* A shape, as a term; and x in a shape, of which at most one size need be asked for when it runs: that is then -1. */
mica_onnx_term mica_onnx_put_dims(mica_onnx_writing *c, const mica_onnx_dim *dims, int rank);
mica_onnx_term mica_onnx_put_reshape(mica_onnx_writing *c, mica_onnx_term out, mica_onnx_term x,
                                     const mica_onnx_dim *dims, int rank);
mica_onnx_term mica_onnx_put_permute(mica_onnx_writing *c, mica_onnx_term out, mica_onnx_term x,
                                     const int *axes, int rank);
mica_onnx_term mica_onnx_put_slice(mica_onnx_writing *c, mica_onnx_term out, mica_onnx_term x, int axis,
                                   int64_t start, int64_t stop);
mica_onnx_term mica_onnx_put_cast(mica_onnx_writing *c, mica_onnx_term out, mica_onnx_term x, int type);

/* act(x), as an operation's option or an operation of its own. */
mica_onnx_term mica_onnx_put_activation(mica_onnx_writing *c, mica_onnx_term out, mica_onnx_term x,
                                        mica_activation act, float slope);

/* Windows of a convolution or of pooling, as attributes have them. */
typedef struct mica_onnx_window {
    int64_t kernel[2], strides[2], dilations[2], pads[4], output_pad[2];
    int axes;
} mica_onnx_window;
mica_onnx_window mica_onnx_conv_window(const mica_onnx_writing *c, const mica_conv2d_opts *o);
/* `axes` that the operation pools; `over`: a last window extends beyond the padding. */
mica_onnx_window mica_onnx_pool_window(mica_onnx_writing *c, const mica_pooling_opts *o, int axes,
                                       bool *over);

/* The call cannot be expressed. */
void mica_onnx_refuse(mica_onnx_writing *c, const char *why);
/* Output k is read, or is one of the net's. */
bool mica_onnx_is_read(mica_onnx_writing *c, int k);
/* An axis that may count from the end. */
static inline int mica_onnx_axis_from(int axis, int rank) { return axis < 0 ? axis + rank : axis; }
/* How many inputs a call has, without those at its end that are absent, or packed weights, which a reader packs. */
int mica_onnx_count_ins(const mica_onnx_writing *c);

/* ---- The writer ---- */

enum { MICA_ONNX_MOST_TRIALS = 2 * MICA_SIZES };

typedef struct mica_onnx_writer {
    mica_context *ctx;
    mica_net *net;
    mica_onnx_version version;
    bool plain;   /* no functions: all nodes in the graph */
    bool *needed; /* [nodes]: an output of the inference net follows from it */
    bool *read;   /* [values]: by a needed call, or after the step */
    bool *named;  /* [values]: by a node that was written */
    int *same;    /* [values]: the value that it is, where a call does nothing (dropout) */
    mica_tensor *shapes[1 + MICA_ONNX_MOST_TRIALS]; /* [values] each: as built, then at other sizes */
    int trials;
    mica_index sizes[1 + MICA_ONNX_MOST_TRIALS][MICA_SIZES]; /* of each */
    bool varies[MICA_SIZES];                                 /* a size of the step that may be another */
    mica_onnx_bytes nodes, functions, scratch, part;
    struct mica_onnx_own *own; /* functions, written so far */
    int own_count, own_room;
    char problems[MICA_ERROR_TEXT]; /* calls that cannot be expressed */
    size_t problem_used;
    int problem_count, problem_told;
} mica_onnx_writer;

/* The name of a value in the file, into text[MICA_NAME_BYTES + 32]. */
#define MICA_ONNX_NAME (MICA_NAME_BYTES + 32)
void mica_onnx_value_name(const mica_onnx_writer *w, char *text, int value);
void mica_onnx_use_value(mica_onnx_writer *w, char *text, int value); /* and it is needed */
/* The inputs of the file. */
bool mica_onnx_is_input(const mica_onnx_writer *w, int value);
/* The outputs of the file: values that are read after a step, but for losses. */
bool mica_onnx_is_output(const mica_onnx_writer *w, int value);

/* What is written as a weight; and its name, which is another where it is also an output. */
bool mica_onnx_is_weight(const mica_onnx_writer *w, int value);
void mica_onnx_weight_name(const mica_onnx_writer *w, char *text, int value);
/* A value that follows from nothing: made by a call without inputs, it is written as a weight. */
bool mica_onnx_is_computed(const mica_onnx_writer *w, int value);

/* write_file.c: the file, of the nodes and functions that were written. */
mica_status mica_onnx_write_file(mica_onnx_writer *w, const char *path);

/* write_own.c: a call as a node that stands for a function, and the function, unless the same was written before. */
mica_status mica_onnx_write_own(mica_onnx_writer *w, mica_onnx_writing *c, const mica_onnx_row *row);
void mica_onnx_free_own(mica_onnx_writer *w);
/* The name of an input or an output of an operation, in a function. */
void mica_onnx_formal_name(char *text, size_t size, const mica_op *op, int number);

/* ---- Families ---- */

#define MICA_ONNX_WRITE_FAMILIES(X) \
    X(elementwise)                  \
    X(activation)                   \
    X(shape)                        \
    X(index)                        \
    X(reduce)                       \
    X(linear)                       \
    X(conv)                         \
    X(norm)                         \
    X(sequence)                     \
    X(recurrent)                    \
    X(int8)

#define MICA_ONNX_DECLARE_ROWS(family) extern const mica_onnx_row mica_onnx_write_##family[];
MICA_ONNX_WRITE_FAMILIES(MICA_ONNX_DECLARE_ROWS)
#undef MICA_ONNX_DECLARE_ROWS

#endif
