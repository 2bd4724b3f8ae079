/* Operations as entries: what a net knows about an operation. Mica's own are listed (mica_ops), and one of yours
 * has the same entry.
 *
 * An entry says how the outputs follow from the inputs (infer), how it runs (run), and what its gradient is, in
 * terms of other operations (gradient). A net is a list of calls of such entries; compiling it writes the
 * backward calls behind the forward ones, plans the memory of all of them, and a step runs them in order.
 *
 *     static mica_status infer(mica_infer *i) { return mica_infer_like(i, 0, 0); }
 *     static mica_status run(const mica_call *c) { return mica_square(c->ctx, c->out[0], c->in[0]); }
 *     static void gradient(mica_grad *g)                                   // dx = 2 x dy
 *     {
 *         mica_value product = mica_grad_value(g, &mica_op_mul, (mica_value[]){g->in[0], g->dout[0]}, 2, NULL);
 *         mica_grad_give(g, 0, &mica_op_scale, &product, 1, &(mica_scalar_opts){2.0f});
 *     }
 *     const mica_op mica_op_square = {.name = "square", .family = "elementwise", .about = "a * a",
 *                                     .ins = 1, .outs = 1, .in_place = {1}, .infer = infer, .run = run,
 *                                     .gradient = gradient};
 *
 * `run` is also called while measuring (mica_measure_begin), with tensors that have no data: that is how a plan
 * learns how much scratch it takes. So it touches data only through operations, or asks mica_call_measuring. What a
 * smaller call takes must never be more than what a larger one does. */
#ifndef MICA_OP_H
#define MICA_OP_H

#include <mica/net.h>
#include <mica/ops.h>
#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mica_op_sample mica_op_sample;

#define MICA_OP_INS  12 /* most inputs of a call */
#define MICA_OP_OUTS 8  /* most outputs */

/* ---- Options, described so that files and printers can handle them ---- */

typedef enum mica_field_kind {
    MICA_FIELD_INT,
    MICA_FIELD_INDEX, /* mica_index */
    MICA_FIELD_FLOAT,
    MICA_FIELD_DOUBLE,
    MICA_FIELD_BOOL,
    MICA_FIELD_ACTIVATION, /* mica_activation, by name */
    MICA_FIELD_DTYPE,      /* mica_dtype, by name */
    MICA_FIELD_CHOICE,     /* an enum from 0 on; `about` has its words, "constant|reflect" */
} mica_field_kind;

typedef struct mica_field {
    const char *name;
    mica_field_kind kind;
    size_t offset;     /* in the options struct */
    int count;         /* of an array: its size; 0: a single value */
    const char *about; /* a short line for the documentation */
} mica_field;

#define MICA_FIELD(type, member, kind, about) \
    {#member, MICA_FIELD_##kind, offsetof(type, member), 0, about}
#define MICA_FIELDS(type, member, kind, about) \
    {#member, MICA_FIELD_##kind, offsetof(type, member), \
     (int)(sizeof(((type *)0)->member) / sizeof(((type *)0)->member[0])), about}

/* Options of operations whose C functions take plain arguments, or learn from dst what the result is like. */

typedef struct mica_axis_opts {
    int axis; /* may count from the end */
} mica_axis_opts;

typedef struct mica_scalar_opts {
    float s;
} mica_scalar_opts;
/* Shape. */
typedef struct mica_shape_opts { /* reshape, broadcast_to */
    int rank;
    mica_index dims[MICA_MAX_RANK]; /* 0: as the input has at this axis. Of reshape one may be -1: what is left */
} mica_shape_opts;
typedef struct mica_flatten_opts {
    int first, last; /* axes that are joined; 0, 0: all but the first */
} mica_flatten_opts;
typedef struct mica_slice_range_opts { /* slice: as in Python; out of range is clamped, negative from the end */
    int axis;
    mica_index start;
    mica_index stop; /* 0: through the end */
    mica_index step; /* 0: 1. Negative: backwards */
} mica_slice_range_opts;
typedef struct mica_transpose_opts {
    int a, b; /* 0, 0: the last two axes */
} mica_transpose_opts;
typedef struct mica_permute_opts {
    int axes[MICA_MAX_RANK]; /* axis k of the output is axis axes[k] of the input */
} mica_permute_opts;
typedef struct mica_split_opts {
    int axis, count;                /* of the parts: 1 to MICA_OP_OUTS */
    mica_index sizes[MICA_OP_OUTS]; /* of each along the axis; one may be -1: what is left. All 0: equal parts */
} mica_split_opts;
typedef struct mica_tile_opts {
    int rank;                          /* of the output: leading axes are added. 0: the input's */
    mica_index repeats[MICA_MAX_RANK]; /* along each of the output's axes; 0: 1 */
} mica_tile_opts;
/* Convolution and pooling. */
typedef struct mica_col2im_opts { /* the first four as in mica_im2col_opts */
    mica_index kernel[2], stride[2], pad[2], dilation[2];
    mica_index size[2]; /* height and width of the image */
} mica_col2im_opts;
typedef struct mica_adaptive_pool_opts {
    mica_index size[2]; /* of the output, height and width; 0: 1. In one dimension the first counts */
} mica_adaptive_pool_opts;
typedef struct mica_global_pool_opts {
    bool keep; /* [N, C, 1, ...] rather than [N, C] */
} mica_global_pool_opts;

typedef struct mica_clamp_opts {
    float low, high;
} mica_clamp_opts;

/* mica_apply_scalar; the others take their mica_function1, 2 or 3 as it is. */
typedef struct mica_apply_scalar_opts {
    float s;
    mica_function2 f;
} mica_apply_scalar_opts;

typedef struct mica_copy_opts {
    bool cast;        /* to the dtype below; else the copy has the dtype of its input */
    mica_dtype dtype; /* from float to float, gradients pass; they are f32 */
} mica_copy_opts;

typedef struct mica_compare_opts {
    bool mask; /* the result is u8; else f32 */
} mica_compare_opts;

/* Reductions: mica_reduce_opts, and what the result looks like. */
typedef struct mica_reduction_opts {
    int axes[MICA_MAX_RANK]; /* may count from the end; none twice */
    int count;               /* how many axes; 0: all */
    bool keep;               /* reduced axes stay, with size 1 */
    int correction;          /* variance only: it divides by n - correction */
    mica_norm_kind kind;     /* norm only */
} mica_reduction_opts;

/* argmax, argmin */
typedef struct mica_arg_opts {
    int axis;  /* may count from the end; MICA_ALL_AXES: the position in row-major order */
    bool keep; /* the axis stays, with size 1 */
    bool wide; /* positions are i64; else i32 */
} mica_arg_opts;

/* What is made from nothing. With an input the result has that input's shape, whatever the sizes of the step are;
 * without, the shape given here. */
typedef struct mica_make_opts {
    int rank;
    mica_index dims[MICA_MAX_RANK];
    mica_dtype dtype;
    double value;              /* fill */
    double start, step;        /* range; step 0: 1 */
    float low, high;           /* uniform; both 0: from 0 to 1 */
    float mean, deviation;     /* normal; deviation 0: 1 */
    float gain;                /* xavier and he; 0: 1 */
    mica_index seed;           /* random numbers: the same in every step; 0: other ones in each step */
    mica_generate_fn *function; /* generate; it and `user` must outlive the net */
    void *user;
} mica_make_opts;

typedef struct mica_weighted_loss_opts {
    mica_loss_opts loss; /* reduction: the mean or the sum */
    float weight;        /* of this loss where there are several; 0: 1 */
} mica_weighted_loss_opts;

/* ---- Infer: shapes ---- */

typedef struct mica_infer {
    mica_context *ctx;
    const mica_op *op;
    const void *opts; /* never NULL if the entry has options: zeros where none were given */
    int ins;
    const mica_tensor *in[MICA_OP_INS]; /* shapes; data is NULL. NULL: an optional input that is not there */
    mica_tensor out[MICA_OP_OUTS];      /* to be set by the functions below; rank -1: not set */
} mica_infer;

/* Output `out` has this dtype and shape. Fails if a size is negative or the whole overflows. */
MICA_API mica_status mica_infer_out(mica_infer *infer, int out, mica_dtype dtype, int rank,
                                    const mica_index *dims);
/* Output `out` has the dtype and shape of input `in`. */
MICA_API mica_status mica_infer_like(mica_infer *infer, int out, int in);
/* Fails with this text, which says what came and what was expected. The net puts the layer's name and the input's
 * shape and origin in front. */
MICA_API mica_status mica_infer_fail(mica_infer *infer, mica_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Fails with what the operation or view that just failed said, without "shape error: operation: ". */
MICA_API mica_status mica_infer_pass_on(mica_infer *infer, mica_status status);
/* Input `in` is of this dtype; else fails with "expected f32, got i32". */
MICA_API mica_status mica_infer_dtype(mica_infer *infer, int in, mica_dtype dtype);
/* Output `out` is f32 of the shape that inputs a and b are both broadcast to. */
MICA_API mica_status mica_infer_broadcast(mica_infer *infer, int out, int a, int b);
/* An axis that may count from the end, of input `in`. */
MICA_API mica_status mica_infer_axis(mica_infer *infer, int in, int axis, int *result);

/* ---- Run ---- */

typedef struct mica_call {
    mica_context *ctx;
    const mica_op *op;
    const void *opts;
    int ins, outs;
    const mica_tensor *in[MICA_OP_INS];   /* NULL: an optional input that is not there */
    const mica_tensor *out[MICA_OP_OUTS]; /* NULL: an optional output that nobody reads */
    unsigned add;                         /* bit k: add to out[k] instead of writing; only those in op->adds */
    bool training;                        /* dropout drops, batch norm uses the batch's statistics */
    bool again;                           /* a second run, to recompute what was not kept: nothing that is kept from
                                             step to step may change */
    float scale;                          /* of the losses' gradients in this step */
    uint64_t seed, stream;                /* of random numbers: this node's own in this step */
    const mica_index *size;               /* the sizes of this step, by number (mica_net_size) */
    int sizes;                            /* how many; outside of nets 0 */
} mica_call;

MICA_API bool mica_call_measuring(const mica_call *call);

/* ---- Gradient ---- */

/* A call while its gradient is written down. Nothing runs: the functions below add calls to the program. Errors
 * are remembered by the net, so none need be looked at. */
typedef struct mica_grad {
    mica_net *net; /* private */
    const mica_op *op;
    const void *opts;
    int ins, outs;
    mica_value in[MICA_OP_INS], out[MICA_OP_OUTS]; /* 0: not there */
    mica_value dout[MICA_OP_OUTS];                 /* gradients of the outputs; 0: nothing depends on it */
    int call;                                      /* private: its number in the program */
} mica_grad;

/* Whether the gradient of input `in` is wanted. The functions below do nothing for one that is not, so this is only
 * needed where there is work to save. */
MICA_API bool mica_grad_wants(const mica_grad *g, int in);

/* Adds a call whose output 0, of the shape of input `in`, is a part of its gradient: what comes first is written,
 * what comes later is added. */
MICA_API void mica_grad_give(mica_grad *g, int in, const mica_op *op, const mica_value *ins, int count,
                             const void *opts);
/* The same for a call with several outputs, of which number k is a part of the gradient of input which[k]. One that is
 * -1 or not wanted is NULL in the call if it is optional; else it has memory of its own, of the shape of an input that
 * it may lie over. Nothing is added if none is wanted. */
MICA_API void mica_grad_give_all(mica_grad *g, const int *which, int outs, const mica_op *op,
                                 const mica_value *ins, int count, const void *opts);
/* The gradient of input `in` is this value, of its shape, as it is (of an addition, say). */
MICA_API void mica_grad_pass(mica_grad *g, int in, mica_value value);
/* The same, of a shape that the input was broadcast to: summed over the axes along which it was repeated. */
MICA_API void mica_grad_pass_summed(mica_grad *g, int in, mica_value value);
/* Adds a call whose output 0 is a value on the way. */
MICA_API mica_value mica_grad_value(mica_grad *g, const mica_op *op, const mica_value *ins, int count,
                                    const void *opts);

/* The shape of a value as built. */
MICA_API mica_tensor mica_grad_shape(const mica_grad *g, mica_value value);

/* ---- The entry ---- */

enum {
    MICA_OP_VIEW = 1,   /* out[0] is in[0] under another shape: nothing runs, memory is shared */
    MICA_OP_LOSS = 2,   /* out[0] is a loss, one number, where a backward starts */
    MICA_OP_CHEAP = 4,  /* makes its outputs from its inputs for about the cost of moving them: a plan may make them
                           again for the backward instead of keeping them */
    MICA_OP_RANDOM = 8, /* draws random numbers from call->seed and call->stream */
    MICA_OP_PICKS = 16, /* reads no more of its inputs than comes out: rows of a table by index */
};

struct mica_op {
    const char *name;   /* "conv2d" */
    const char *family; /* "conv": as in include/mica/ops/conv.h; NULL: not for the list */
    const char *about;  /* one line: what it computes */
    unsigned flags;
    int ins, optional_ins; /* inputs that must be there, and how many more may follow */
    int outs;
    unsigned optional_outs;  /* bit k: out[k] may be NULL in run, where nobody reads it */
    const char *const *names; /* of the inputs, then the outputs, for messages and listings; NULL: a, b, ..., y */
    size_t opts_bytes;       /* of the options, which are copied into the net; 0: none */
    const mica_field *fields; /* that describe them; NULL: none are described */
    int field_count;
    unsigned in_place[MICA_OP_OUTS]; /* bit i of number k: out[k] may be exactly in[i] */
    unsigned adds;     /* bit k: out[k] can be added to (call->add). Others go through memory of their own. */
    unsigned writes;   /* bit i: in[i] is kept from step to step, and this writes to it (running statistics) */
    mica_status (*infer)(mica_infer *infer);
    mica_status (*run)(const mica_call *call);
    void (*gradient)(mica_grad *grad); /* NULL: it has none, or it is 0 everywhere */
    /* Whether a sample of the output (axis 0 is the batch) depends on other samples of the inputs, or the batch is
     * another axis. NULL: no. A batch can only be run in parts where it does not. */
    bool (*mixes)(const mica_infer *infer);
    /* Fills in random inputs and options for tests and benchmarks; NULL: one f32 tensor per input, of one shape. */
    void (*sample)(mica_op_sample *sample);
};

/* ---- Samples: random calls for tests and benchmarks ---- */

struct mica_op_sample {
    uint64_t (*draw)(mica_op_sample *sample); /* the next random number */
    void *user;
    void *opts; /* zeros, op->opts_bytes */
    int ins;    /* the required ones; may be raised to give optional inputs */
    mica_tensor in[MICA_OP_INS];                   /* dtype and shape, to be set */
    double low[MICA_OP_INS], high[MICA_OP_INS];    /* range of the values; default -1 to 1. Indices: 0 to high - 1 */
};

/* A random number from low to high. */
MICA_API mica_index mica_op_sample_int(mica_op_sample *sample, mica_index low, mica_index high);
/* Input `in` is f32 of this shape. */
MICA_API void mica_op_sample_shape(mica_op_sample *sample, int in, int rank, const mica_index *dims);

/* ---- The list ---- */

/* All operations of Mica, in the order of the list; NULL after the last. */
MICA_API const mica_op *mica_op_at(int number);
/* By name; NULL if there is none. */
MICA_API const mica_op *mica_op_find(const char *name);
/* Runs an operation on tensors, as its C function does: outputs, then inputs, as many as the entry has. NULL: an
 * optional one that is not there. */
MICA_API mica_status mica_op_run(mica_context *ctx, const mica_op *op, const mica_tensor *const *outs,
                                 const mica_tensor *const *ins, int count, const void *opts);
/* The shapes of the outputs that follow from these inputs. */
MICA_API mica_status mica_op_infer(mica_context *ctx, const mica_op *op, mica_tensor *outs,
                                   const mica_tensor *const *ins, int count, const void *opts);

#ifdef __cplusplus
}
#endif
#endif
