/* Operations as entries: what a net knows about an operation. Mica's own are found by mica_op_find; an operation of
 * yours has the same kind of entry.
 *
 * An entry says what shapes the outputs have (infer), how to run the operation (run), and what its gradient is, in
 * terms of other operations (gradient). A net is a list of calls of such entries. Compiling it appends the backward
 * calls to the forward ones and plans the memory of all of them; a step runs them in order.
 *
 *     static mica_status infer(mica_infer *i) { return mica_infer_like(i, 0, 0); }
 *     static mica_status run(const mica_call *c) { return mica_square(c->ctx, c->out[0], c->in[0]); }
 *     static void gradient(mica_grad *g)                                   // dx = 2 x dy
 *     {
 *         mica_value product =
 *             mica_grad_value(g, mica_op_find("mul"), (mica_value[]){g->in[0], g->dout[0]}, 2, NULL);
 *         mica_grad_give(g, 0, mica_op_find("scale"), &product, 1, &(mica_scalar_opts){2.0f});
 *     }
 *     static const mica_op square = {.name = "square", .about = "a * a", .ins = 1, .outs = 1, .in_place = {1},
 *                                    .infer = infer, .run = run, .gradient = gradient};
 *
 * `run` is also called while measuring (mica_measure_begin), with tensors that have no data: this is how compile finds
 * out how much scratch a call needs. So it must touch data only through operations, or ask mica_call_measuring first. A
 * smaller call must never need more scratch than a larger one.
 *
 * Threads may run parts of an inference batch side by side, and then call `run` concurrently, each with a context and
 * tensors of its own, perhaps on a worker thread. If it uses anything else that it also changes (a static variable,
 * memory behind its options), the flag MICA_OP_SERIAL rules this out; so does a kept value that it writes. */
#ifndef MICA_OP_H
#define MICA_OP_H

#include <mica/net.h>
#include <mica/ops.h>
#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mica_op_sample mica_op_sample;

#define MICA_OP_INS  12 /* the most inputs of a call */
#define MICA_OP_OUTS 8  /* the most outputs */

/* ---- Options, described so that net files and listings can handle them ---- */

typedef enum mica_field_kind {
    MICA_FIELD_INT,
    MICA_FIELD_INDEX, /* mica_index */
    MICA_FIELD_FLOAT,
    MICA_FIELD_DOUBLE,
    MICA_FIELD_BOOL,
    MICA_FIELD_ACTIVATION, /* mica_activation, by name */
    MICA_FIELD_DTYPE,      /* mica_dtype, by name */
    MICA_FIELD_CHOICE,     /* an enum from 0 on; `about` has its names, "constant|reflect" */
    MICA_FIELD_LENGTH,     /* int: the length of the array that the next field describes; set along with it */
} mica_field_kind;

typedef struct mica_field {
    const char *name;
    const char *about; /* a short description */
    size_t offset;     /* in the options struct */
    mica_field_kind kind;
    int count; /* the size of an array; 0: a single value */
} mica_field;

/* clang-format off */
#define MICA_FIELD(type, member, kind, about) {#member, about, offsetof(type, member), MICA_FIELD_##kind, 0}
#define MICA_FIELDS(type, member, kind, about)                          \
    {#member, about, offsetof(type, member), MICA_FIELD_##kind,         \
     (int)(sizeof(((type *)0)->member) / sizeof(((type *)0)->member[0]))}
/* clang-format on */

/* Options of operations whose C functions take plain arguments, or take the shape of the result from dst. */

typedef struct mica_axis_opts {
    int axis; /* may count from the end */
} mica_axis_opts;

typedef struct mica_scalar_opts {
    float s;
} mica_scalar_opts;
/* Shape. */
typedef struct mica_shape_opts { /* reshape, broadcast_to */
    int rank;
    mica_index dims[MICA_MAX_RANK]; /* 0: that of the input's axis. In reshape one may be -1: what is left */
} mica_shape_opts;
typedef struct mica_flatten_opts {
    int first, last; /* the axes to join; 0, 0: all but the first */
} mica_flatten_opts;
/* slice: as in Python, negative positions count from the end, and those out of range are clamped. */
typedef struct mica_slice_range_opts {
    int axis;
    mica_index start;
    mica_index stop; /* 0: to the end */
    mica_index step; /* 0: 1. Negative: backwards */
} mica_slice_range_opts;
typedef struct mica_transpose_opts {
    int a, b; /* 0, 0: the last two axes */
} mica_transpose_opts;
typedef struct mica_permute_opts {
    int axes[MICA_MAX_RANK]; /* axis k of the output is axis axes[k] of the input */
} mica_permute_opts;
typedef struct mica_split_opts {
    int axis, count;                /* the axis, and the number of parts: 1 to MICA_OP_OUTS */
    mica_index sizes[MICA_OP_OUTS]; /* of the parts; one may be -1: what is left. All 0: equal parts */
} mica_split_opts;
typedef struct mica_tile_opts {
    int rank;                          /* of the output, which may have more leading axes. 0: the input's */
    mica_index repeats[MICA_MAX_RANK]; /* along each axis of the output; 0: 1 */
} mica_tile_opts;
/* Convolution and pooling. */
typedef struct mica_col2im_opts { /* the first four as in mica_im2col_opts */
    mica_index kernel[2], stride[2], pad[2], dilation[2];
    mica_index size[2]; /* height and width of the image */
} mica_col2im_opts;
typedef struct mica_adaptive_pool_opts {
    mica_index size[2]; /* of the output: height and width; 0: 1. In one dimension, the first */
} mica_adaptive_pool_opts;
typedef struct mica_global_pool_opts {
    bool keep; /* [N, C, 1, ...] instead of [N, C] */
} mica_global_pool_opts;

typedef struct mica_unpool_opts { /* max_unpool */
    int axes;                     /* how many of the last axes grow: 1 to 3 */
    mica_index size[3];           /* what they grow to */
} mica_unpool_opts;
typedef struct
    mica_conv3d_opts { /* conv3d, conv_transpose3d; along depth, height and width, as in mica_conv2d_opts */
    mica_index stride[3], pad[3], dilation[3];
    mica_index groups;
    mica_index output_pad[3];
} mica_conv3d_opts;

typedef struct mica_clamp_opts {
    float low, high;
} mica_clamp_opts;

/* celu, thresholded_relu, swish: alpha; selu: alpha and gamma; hard_sigmoid: alpha and beta; shrink: bias and from.
 * Both as they are: 0 is 0. */
typedef struct mica_curve_opts {
    float alpha, beta;
} mica_curve_opts;

/* mica_apply_scalar; the others take their mica_function1, 2 or 3 as it is. */
typedef struct mica_apply_scalar_opts {
    float s;
    mica_function2 f;
} mica_apply_scalar_opts;

typedef struct mica_copy_opts {
    bool cast;           /* convert to the dtype below; otherwise the copy has the dtype of its input */
    mica_dtype dtype;    /* gradients, which are f32, pass through casts from float to float */
    bool wrap, overflow; /* of the cast: mica_cast_opts */
    mica_cast_rounding round;
} mica_copy_opts;

typedef struct mica_compare_opts {
    bool mask;  /* the result is u8; otherwise f32 */
    bool truth; /* the result is bool */
} mica_compare_opts;

/* Reductions: mica_reduce_opts, and the shape of the result. */
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
    bool wide; /* positions are i64; otherwise i32 */
} mica_arg_opts;

/* fill, range, uniform and the like. With an input, the result has that input's shape, at any size of the step;
 * without one, the shape given here. */
typedef struct mica_make_opts {
    int rank;
    mica_index dims[MICA_MAX_RANK];
    mica_dtype dtype;
    double value;               /* fill */
    double start, step;         /* range; step 0: 1 */
    float low, high;            /* uniform; both 0: from 0 to 1 */
    float mean, deviation;      /* normal; deviation 0: 1 */
    float gain;                 /* xavier and he; 0: 1 */
    mica_index seed;            /* the same random numbers in every step; 0: new ones in each step */
    mica_generate_fn *function; /* generate; it and `user` must outlive the net */
    void *user;
} mica_make_opts;

typedef struct mica_weighted_loss_opts {
    mica_loss_opts loss;   /* reduction: the mean or the sum */
    float weight;          /* of this loss where there are several; 0: 1 */
    bool plain_scores;     /* cross-entropies: class weights are for training mode alone */
} mica_weighted_loss_opts; /* loss.class_weights is not used: they are an input */

/* ---- Infer: shapes ---- */

typedef struct mica_infer {
    mica_context *ctx;
    const mica_op *op;
    const void *opts; /* never NULL if the entry has options: zeros if none were given */
    int ins;
    const mica_tensor *in[MICA_OP_INS]; /* shapes; data is NULL. NULL: an optional input that is absent */
    mica_tensor out[MICA_OP_OUTS];      /* to be set by the functions below; rank -1: not set */
} mica_infer;

/* Output `out` has this dtype and shape. Fails if a size is negative or their product overflows. */
MICA_API mica_status mica_infer_out(mica_infer *infer, int out, mica_dtype dtype, int rank,
                                    const mica_index *dims);
/* Output `out` has the dtype and shape of input `in`. */
MICA_API mica_status mica_infer_like(mica_infer *infer, int out, int in);
/* Fails with this text, which says what was expected and what was given. The net puts the layer's name and the
 * input's shape and origin in front. */
MICA_API mica_status mica_infer_fail(mica_infer *infer, mica_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Fails with the text of the operation or view that has just failed, without its "shape error: operation: ". */
MICA_API mica_status mica_infer_pass_on(mica_infer *infer, mica_status status);
/* Fails with "expected f32, got i32" unless input `in` has this dtype. */
MICA_API mica_status mica_infer_dtype(mica_infer *infer, int in, mica_dtype dtype);
/* Output `out` is f32, of the shape that inputs a and b broadcast to. */
MICA_API mica_status mica_infer_broadcast(mica_infer *infer, int out, int a, int b);
/* Resolves an axis of input `in`, which may count from the end. */
MICA_API mica_status mica_infer_axis(mica_infer *infer, int in, int axis, int *result);

/* ---- Run ---- */

typedef struct mica_call {
    mica_context *ctx;
    const mica_op *op;
    const void *opts;
    int ins, outs;
    const mica_tensor *in[MICA_OP_INS];   /* NULL: an optional input that is absent */
    const mica_tensor *out[MICA_OP_OUTS]; /* NULL: an unused optional output */
    unsigned add;  /* bit k: add to out[k] instead of writing; only those in op->adds */
    bool training; /* dropout drops, batch norm uses the batch's statistics */
    bool again;    /* runs again to recompute what was not kept: must not change values that are kept from
                               step to step */
    float scale;   /* of the losses' gradients in this step */
    uint64_t seed, stream;  /* of random numbers: this call's own in this step */
    const mica_index *size; /* the sizes of this step (mica_net_size_number) */
    int sizes;              /* how many there are: 0 outside of a net */
} mica_call;

MICA_API bool mica_call_measuring(const mica_call *call);

/* ---- Gradient ---- */

/* A call whose gradient is being described. Nothing runs: the functions below add calls to the program. The net
 * records errors, so they need not be checked. */
typedef struct mica_grad {
    mica_net *net; /* private */
    const mica_op *op;
    const void *opts;
    int ins, outs;
    mica_value in[MICA_OP_INS], out[MICA_OP_OUTS]; /* 0: absent */
    mica_value dout[MICA_OP_OUTS];                 /* gradients of the outputs; 0: no loss depends on it */
    int call;                                      /* private: its number in the program */
} mica_grad;

/* Whether the gradient of input `in` is needed. The functions below do nothing if it is not, so this only saves
 * work. */
MICA_API bool mica_grad_wants(const mica_grad *g, int in);

/* Adds a call whose output 0, of the shape of input `in`, contributes to its gradient: the first contribution is
 * written, later ones are added. */
MICA_API void mica_grad_give(mica_grad *g, int in, const mica_op *op, const mica_value *ins, int count,
                             const void *opts);
/* The same for a call with several outputs, of which number k contributes to the gradient of input which[k]. If
 * which[k] is -1 or that gradient is not needed, output k is NULL if it is optional; otherwise it gets memory of
 * its own, with the shape of an input that it may overwrite (in_place). No call is added if none is needed. */
MICA_API void mica_grad_give_all(mica_grad *g, const int *which, int outs, const mica_op *op,
                                 const mica_value *ins, int count, const void *opts);
/* The gradient of input `in` is this value, of the same shape, unchanged (as for an addition). */
MICA_API void mica_grad_pass(mica_grad *g, int in, mica_value value);
/* The same for an input that was broadcast to the shape of `value`: summed over the axes along which it was
 * repeated. */
MICA_API void mica_grad_pass_summed(mica_grad *g, int in, mica_value value);
/* Adds a call whose output 0 is an intermediate value, and returns that. */
MICA_API mica_value mica_grad_value(mica_grad *g, const mica_op *op, const mica_value *ins, int count,
                                    const void *opts);

/* The shape of a value as built. */
MICA_API mica_tensor mica_grad_shape(const mica_grad *g, mica_value value);

/* ---- The entry ---- */

enum {
    MICA_OP_VIEW = 1, /* out[0] is in[0] with another shape: nothing runs, memory is shared */
    MICA_OP_LOSS = 2, /* out[0] is a loss, one number, where the backward starts */
    MICA_OP_CHEAP =
        4, /* costs about as much as moving its inputs and outputs: a plan may run it again for the
                           backward instead of keeping its outputs */
    MICA_OP_RANDOM = 8,    /* draws random numbers from call->seed and call->stream */
    MICA_OP_PICKS = 16,    /* reads no more of an input than its output holds: rows of a table by index */
    MICA_OP_CALLBACK = 32, /* its options hold a function of the caller's, which no file can give */
    MICA_OP_RISES =
        64, /* of one input, element by element: never falls, no gradient where it does not rise */
    MICA_OP_LARGEST = 128, /* out[0] has the largest of windows of in[0]; out[1], optional, where each lay */
    MICA_OP_SERIAL = 256,  /* run is never called for several parts of a batch at once */
};

struct mica_op_passes;

struct mica_op {
    const char *name; /* "conv2d" */
    /* "conv", as in include/mica/ops/conv.h; "composed": it has no C function; NULL: not listed. */
    const char *family;
    const char *about; /* what it computes, in one line */
    unsigned flags;
    int ins, optional_ins; /* required inputs, and how many optional ones may follow */
    int outs;
    unsigned optional_outs; /* bit k: out[k] is NULL in run if nothing reads it */
    /* Of the inputs, then the outputs, for messages and listings; NULL: a, b, ..., y. */
    const char *const *names;
    size_t opts_bytes;        /* size of the options, which are copied into the net; 0: none */
    const mica_field *fields; /* description of the options; NULL: none */
    int field_count;
    unsigned in_place[MICA_OP_OUTS]; /* bit i of number k: out[k] may be exactly in[i] */
    unsigned adds; /* bit k: run can add to out[k] (call->add); otherwise the net adds, through a temporary */
    unsigned writes; /* bit i: in[i] is kept from step to step, and run writes to it (running statistics) */
    /* Bit i: in[i] has no gradient, though its elements matter: compiling for training refuses one that is learned,
     * or made of something learned. Bit k: the same of out[k], if a loss depends on it. */
    unsigned fixed_ins, fixed_outs;
    mica_status (*infer)(mica_infer *infer);
    mica_status (*run)(const mica_call *call);
    void (*gradient)(mica_grad *grad); /* NULL: none, or 0 everywhere */
    /* Whether a sample of the output (axis 0 is the batch) depends on other samples of the inputs, or the batch becomes
     * another axis. NULL: no. If it does, a batch cannot be run in parts. */
    bool (*mixes)(const mica_infer *infer);
    /* Sets random inputs and options for tests and benchmarks; NULL: f32 inputs, all of the same shape. */
    void (*sample)(mica_op_sample *sample);
    /* For Mica's own: which activation it is; and its hooks for the passes of compile (src/net/net.h; NULL: none). */
    mica_activation activation;
    const struct mica_op_passes *passes;
};

/* ---- Samples: random calls for tests and benchmarks ---- */

struct mica_op_sample {
    uint64_t (*draw)(mica_op_sample *sample); /* the next random number */
    void *user;
    void *opts;                  /* zeros, op->opts_bytes */
    int ins;                     /* the required inputs; may be raised to add optional ones */
    mica_tensor in[MICA_OP_INS]; /* dtype and shape, to be set */
    double low[MICA_OP_INS],
        high[MICA_OP_INS]; /* range of the values; default -1 to 1. Indices: 0 to high - 1 */
};

/* A random number from low to high. */
MICA_API mica_index mica_op_sample_int(mica_op_sample *sample, mica_index low, mica_index high);
/* Input `in` is f32 of this shape. */
MICA_API void mica_op_sample_shape(mica_op_sample *sample, int in, int rank, const mica_index *dims);

/* ---- The list ---- */

/* All operations of Mica, in the order of the list; NULL after the last. */
MICA_API const mica_op *mica_op_at(int number);
/* By name; NULL if unknown. */
MICA_API const mica_op *mica_op_find(const char *name);
/* Runs an operation on tensors, as its C function does: all outputs of the entry, and `count` inputs. NULL: an
 * optional one that is absent. */
MICA_API mica_status mica_op_run(mica_context *ctx, const mica_op *op, const mica_tensor *const *outs,
                                 const mica_tensor *const *ins, int count, const void *opts);
/* The shapes of the outputs that follow from these inputs. */
MICA_API mica_status mica_op_infer(mica_context *ctx, const mica_op *op, mica_tensor *outs,
                                   const mica_tensor *const *ins, int count, const void *opts);

#ifdef __cplusplus
}
#endif
#endif
