/* Networks: build, compile, bind, step.
 *
 *     mica_net *net;
 *     mica_net_create(ctx, &net);
 *     mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){32, 784});
 *     mica_value h = mica_net_dense(net, x, &(mica_net_dense_opts){.units = 128, .activation = MICA_RELU});
 *     mica_value y = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 10});
 *     mica_net_output(net, "y", y);
 *     mica_net_compile(net, &(mica_compile_opts){0});     // the plan is known; no memory is taken yet
 *     mica_net_bind(net, NULL, 0);                        // one block, allocated or the caller's
 *     mica_net_initialize(net, 42);
 *     mica_net_forward(net);                              // allocates nothing, from here on
 *
 * Building may allocate and may fail. A failed call records the error and returns the value 0; later calls then
 * do nothing, and mica_net_compile reports that first failure. So a builder need not look at each call. */
#ifndef MICA_NET_H
#define MICA_NET_H

#include <mica/optimizer.h>
#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mica_net mica_net;
typedef struct mica_op mica_op; /* mica/op.h */

/* A value in a net: an input, something learned, or what a call makes. 0 is none. */
typedef int mica_value;

/* How a parameter starts out. The zero is what its layer is usually started with. */
typedef enum mica_init_kind {
    MICA_INIT_DEFAULT,
    MICA_INIT_CONSTANT,       /* `value` everywhere */
    MICA_INIT_UNIFORM,        /* in [-value, value) */
    MICA_INIT_NORMAL,         /* standard deviation `value` */
    MICA_INIT_XAVIER_UNIFORM, /* these four: by the parameter's shape, times `value` (0: 1) */
    MICA_INIT_XAVIER_NORMAL,
    MICA_INIT_HE_UNIFORM,
    MICA_INIT_HE_NORMAL,
} mica_init_kind;

typedef struct mica_init {
    mica_init_kind kind;
    float value;
} mica_init;

/* ---- Build ---- */

MICA_API mica_status mica_net_create(mica_context *ctx, mica_net **out);
MICA_API void mica_net_destroy(mica_net *net);

/* ---- Sizes of a step ---- */

/* A size that a step may have less of than was planned: a length, say. Returns what stands for it in the dims of
 * inputs. `most` is the largest, which the plan is made for, and the size until mica_net_set_size. The batch is one
 * by itself, "batch": dims[0] of the first input, and of every other input where it is the same number. */
MICA_API mica_index mica_net_size(mica_net *net, const char *name, mica_index most);
/* The number of what mica_net_size returned, as in mica_net_size_at and mica_call.size; -1 if it is none. */
MICA_API int mica_net_size_number(const mica_net *net, mica_index size);
/* What stands for the size of axis `axis` of a value in the dims of kept values: they follow it. */
MICA_API mica_index mica_net_dim(mica_net *net, mica_value value, int axis);

/* ---- Values from outside, and values that last ---- */

/* Written by the caller before every step. */
MICA_API mica_value mica_net_input(mica_net *net, const char *name, mica_dtype dtype, int rank,
                                   const mica_index *dims);

/* Learned: f32, with a gradient and the optimizer's state beside it. Named after the layer it is made in:
 * "conv1.weight". */
MICA_API mica_value mica_net_learned(mica_net *net, const char *name, int rank, const mica_index *dims,
                                     mica_init init);
/* Something learned that is there already, by its full name, of this shape: shared. */
MICA_API mica_value mica_net_shared(mica_net *net, const char *full_name, int rank, const mica_index *dims);

/* Kept from step to step, not learned. */
typedef enum mica_kept_kind {
    MICA_KEPT_STATISTICS, /* part of what was learned (running means): lent along with the weights, never reset */
    MICA_KEPT_STATE,      /* of a sequence: mica_net_reset_states sets it back */
    MICA_KEPT_PRIVATE,    /* marks of an operation's own: never saved */
} mica_kept_kind;
MICA_API mica_value mica_net_kept(mica_net *net, const char *name, mica_kept_kind kind, mica_dtype dtype, int rank,
                                  const mica_index *dims, float start);

/* Derived: made by a call when the net is bound, and again when what it is made from is set anew; never saved.
 * Tables, repacked weights. Its inputs are learned, kept, lent or derived. */
MICA_API mica_value mica_net_derived(mica_net *net, const char *name, mica_dtype dtype, int rank,
                                     const mica_index *dims, const mica_op *op, const mica_value *ins, int count,
                                     const void *opts);

/* Lent: the caller's memory (a mapped file, say), read only, of any dtype and layout. It must outlive the net. Only where
 * its elements lie in order can it be viewed (reshape, squeeze, ...): else view a copy. */
MICA_API mica_value mica_net_lent(mica_net *net, const char *name, const mica_tensor *tensor);

/* ---- Calls ---- */

/* Adds a call of an operation as a layer of its own, or as part of the layer that is being built, and returns its
 * first output. `name` may be NULL. Optional inputs that are not there are 0, and may be left out at the end. */
MICA_API mica_value mica_net_call(mica_net *net, const char *name, const mica_op *op, const mica_value *ins,
                                  int count, const void *opts);
/* The same for an operation of the list, by its name: mica_net_op(net, NULL, "sub", (mica_value[]){a, b}, 2, NULL). */
MICA_API mica_value mica_net_op(mica_net *net, const char *name, const char *op, const mica_value *ins, int count,
                                const void *opts);
/* Output number `number` of the call that made `value`. */
MICA_API mica_value mica_net_result(mica_net *net, mica_value value, int number);

/* Names a value, so that it can be found, and keeps it until the end of a step. What nobody reads is kept as well.
 * A value has one name: that of its layer until it gets another here. */
MICA_API mica_status mica_net_output(mica_net *net, const char *name, mica_value value);

/* Names of layers added between these are prefixed "name.". They nest. */
MICA_API void mica_net_enter(mica_net *net, const char *name);
MICA_API void mica_net_leave(mica_net *net);

/* A layer: what is added between these belongs to it and is named after it; errors speak of it and of its input. The
 * value that it ends with takes its name. With `name` NULL it is named after its kind and a number. */
MICA_API void mica_net_layer_begin(mica_net *net, const char *kind, const char *name, mica_value input);
MICA_API mica_value mica_net_layer_end(mica_net *net, mica_value output);
/* Fails the build with a text that says what came and what was expected, for the layer that is being built, and ends
 * it. Returns 0. */
MICA_API mica_value mica_net_layer_fail(mica_net *net, mica_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* For a builder outside of a layer that finds its options wrong: fails the build with "net: " and the text. */
MICA_API mica_value mica_net_refuse(mica_net *net, mica_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The status of the build so far: that of the first call that failed. */
MICA_API mica_status mica_net_status(const mica_net *net);
MICA_API mica_context *mica_net_context(const mica_net *net);

/* Parameters whose name starts with `prefix` are not learned (or again are). Before compiling. */
MICA_API mica_status mica_net_freeze(mica_net *net, const char *prefix, bool frozen);

/* The shape of a value as built, whatever the batch is now. */
MICA_API mica_status mica_net_shape(const mica_net *net, mica_tensor *out, mica_value value);

/* ---- Compile ---- */

typedef struct mica_compile_opts {
    bool train;                      /* also plan gradients, and the optimizer's state */
    const mica_optimizer *optimizer; /* NULL: none; gradients are there for the caller */
    size_t budget;                   /* bytes that the whole may take; 0: no limit */
    const mica_net *weights; /* inference with this bound net's parameters; it must outlive this one */
    bool keep_cheap; /* keep what a backward reads even where making it again costs next to nothing */
    bool debug;      /* guards between buffers, and dead buffers filled with NaN */
} mica_compile_opts;

/* Infers, schedules and plans. Takes no memory for tensors.
 *
 * With a budget, fits into it by recomputing activations, which changes no bit of the result; where that is not
 * enough, also by running a training batch in parts whose gradients are added, which is the same within rounding
 * (but batch norm then sees one part at a time). Otherwise it says how many bytes it takes at least.
 *
 * May be called again until the net is bound; nothing can be added any more. */
MICA_API mica_status mica_net_compile(mica_net *net, const mica_compile_opts *opts);

/* What a buffer holds. */
#define MICA_BUFFER_KINDS(X)                                            \
    X(PARAMETER, "parameter")                                           \
    X(GRADIENT, "gradient")   /* of parameters */                       \
    X(OPTIMIZER, "optimizer") /* its state */                           \
    X(STATE, "state")         /* kept: running statistics, recurrent state */ \
    X(DERIVED, "derived")     /* made when bound: tables */ \
    X(INPUT, "input")                                                   \
    X(ACTIVATION, "activation")                                         \
    X(SAVED, "saved") /* kept by a forward for its backward */          \
    X(BACK, "activation gradient")                                      \
    X(SCRATCH, "scratch") /* workspace and temporaries of one node */

typedef enum mica_buffer_kind {
#define MICA_BUFFER_ENUM(kind, text) MICA_BUFFER_##kind,
    MICA_BUFFER_KINDS(MICA_BUFFER_ENUM)
#undef MICA_BUFFER_ENUM
        MICA_BUFFER_KIND_COUNT
} mica_buffer_kind;

MICA_API const char *mica_buffer_kind_text(mica_buffer_kind kind);

typedef struct mica_plan_buffer {
    const char *name;
    mica_buffer_kind kind;
    size_t bytes, offset;
    int first, last; /* times of the step at which it is first written and last read */
    /* What lies in it, of the first to use it: scratch is so many bytes. A part of the batch, if run in parts. */
    mica_dtype dtype;
    int rank;
    mica_index dim[MICA_MAX_RANK];
} mica_plan_buffer;

#define MICA_PHASES(X)                                                                 \
    X(FORWARD, "forward")                                                              \
    X(RECOMPUTE, "recompute") /* a forward once more, for the backwards that follow */ \
    X(BACKWARD, "backward")                                                            \
    X(UPDATE, "update") /* the optimizer: after a step's times, so in no plan */

typedef enum mica_phase {
#define MICA_PHASE_ENUM(phase, text) MICA_PHASE_##phase,
    MICA_PHASES(MICA_PHASE_ENUM)
#undef MICA_PHASE_ENUM
        MICA_PHASE_COUNT
} mica_phase;

MICA_API const char *mica_phase_text(mica_phase phase);

/* What a step does at a time. */
typedef struct mica_plan_time {
    const char *name; /* of the layer */
    mica_phase phase;
} mica_plan_time;

/* All memory of a net, as data. The block is `total` bytes. */
typedef struct mica_plan {
    size_t total;
    size_t lower_bound;                        /* the most bytes alive at once: no layout takes less */
    size_t kind_bytes[MICA_BUFFER_KIND_COUNT]; /* summed over buffers; those that share memory count each */
    int times;                                 /* of a step: forwards, recomputations, backwards */
    const mica_plan_time *time;                /* [times] */
    int parts;                                 /* that a batch is run in, one after the other */
    int recomputed;                            /* calls of the forward that run twice */
    double extra_work;                         /* that recomputing adds, as a fraction of the forward */
    const mica_plan_buffer *buffers;
    size_t count;
} mica_plan;

/* The plan of a compiled net. Lives as long as the net, until it is compiled again. */
MICA_API const mica_plan *mica_net_plan(const mica_net *net);
/* As a table, into text[size], always terminated. Returns the length that the whole has, as snprintf does. */
MICA_API size_t mica_plan_print(char *text, size_t size, const mica_plan *plan);

/* ---- Bind ---- */

/* Gives the net its memory: `bytes` (at least the plan's total) at `block`, aligned to 64, which stays the
 * caller's; or with NULL one allocation. Parameters and states are not set: see mica_net_initialize. */
MICA_API mica_status mica_net_bind(mica_net *net, void *block, size_t bytes);

/* Draws all parameters, and sets states and optimizer state to their start. */
MICA_API mica_status mica_net_initialize(mica_net *net, uint64_t seed);

/* Makes derived values again, after what they are made from was written by hand. Binding, initializing and loading
 * do so by themselves. */
MICA_API mica_status mica_net_derive(mica_net *net);

/* Sets the states of recurrent layers, but not running statistics, back to their start, for a new sequence. */
MICA_API mica_status mica_net_reset_states(mica_net *net);

/* ---- Tensors by name ---- */

/* An input, an output (also what nobody reads) or, by its full name ("conv1.weight"), what is learned, kept or
 * derived, of a bound net. What is only there for a part of a step cannot be had: make it an output. */
MICA_API mica_status mica_net_tensor(mica_net *net, mica_tensor *out, const char *name);
MICA_API mica_status mica_net_value_tensor(mica_net *net, mica_tensor *out, mica_value value);
/* The gradient of a parameter. */
MICA_API mica_status mica_net_gradient(mica_net *net, mica_tensor *out, const char *name);

/* Inputs by number, in the order of building, and how many. */
MICA_API int mica_net_inputs(const mica_net *net);
MICA_API mica_status mica_net_input_tensor(mica_net *net, const char **name, mica_tensor *out, int number);

/* Parameters by number, in the order of building: also how many, and all of them as one flat tensor. */
MICA_API int mica_net_parameters(const mica_net *net);
MICA_API mica_status mica_net_parameter(mica_net *net, const char **name, mica_tensor *out, int number);
MICA_API mica_status mica_net_flat(mica_net *net, mica_tensor *parameters, mica_tensor *gradients);

/* ---- Step: nothing from here on allocates ---- */

/* Sets a size of the steps to come: from 0 to what was planned. */
MICA_API mica_status mica_net_set_size(mica_net *net, const char *name, mica_index size);
/* The same of the batch: fewer samples than planned. */
MICA_API mica_status mica_net_resize(mica_net *net, mica_index batch);
/* Sizes by number, "batch" first: its name, what it is now, and the most that it can be. Each may be NULL. */
MICA_API int mica_net_sizes(const mica_net *net);
MICA_API mica_status mica_net_size_at(const mica_net *net, const char **name, mica_index *now, mica_index *most,
                                      int number);

/* Inputs must be set before every step: their memory is used again once they have been read. */
MICA_API mica_status mica_net_forward(mica_net *net);

/* Forward in training mode, with the random numbers of step number `step`. */
MICA_API mica_status mica_net_forward_training(mica_net *net, uint64_t step);

/* Backward from every loss, after mica_net_forward_training and before anything else runs: gradients are written, or
 * with `add` added to. The losses' gradients are scaled by `scale` (0: 1), as in accumulation over several steps.
 * Not of a plan in parts, whose forwards and backwards alternate: mica_net_gradients does both for any plan. */
typedef struct mica_backward_opts {
    bool add;
    float scale;
    uint64_t step; /* mica_net_gradients: that of its forward */
} mica_backward_opts;
MICA_API mica_status mica_net_backward(mica_net *net, const mica_backward_opts *opts);

/* Forward in training mode, then backward. */
MICA_API mica_status mica_net_gradients(mica_net *net, const mica_backward_opts *opts);

/* The sum of the losses of the last forward or backward, each times its weight. */
MICA_API float mica_net_loss(const mica_net *net);

/* ---- Watching ---- */

/* A call of a step's program, at the sizes that it runs with. */
typedef struct mica_work {
    int layer;         /* its number, as in mica_net_layer; -1: the update, which is all parameters' */
    const char *name;  /* of the layer, as in its parameters' names; "optimizer" */
    const char *kind;  /* of the layer: "dense"; of the update, the optimizer's: "adam" */
    const char *op;    /* the operation: "linear_backward_weight" */
    const char *fused; /* what is done along with it: "relu", "max_pool2d, relu"; NULL: nothing */
    mica_phase phase;
    double flops; /* as mica_measure_flops counts: 0 where moving the bytes is what counts */
    double bytes; /* of the tensors that it reads and of those that it writes: what must be moved */
} mica_work;

/* Called before a piece of work (done is false) and after it (true), with the same *work, which lives until then.
 * It may take the time and note it; it may not use the net or its context. */
typedef void mica_watch_fn(void *user, const mica_work *work, bool done);

/* From now on, fn is called for everything that a step runs; NULL: nothing is. Costs nothing while off; allocates
 * nothing. */
MICA_API void mica_net_watch(mica_net *net, mica_watch_fn *fn, void *user);

/* ---- The program ---- */

/* A compiled net is a list of calls. This is one of them, as data: plan.time has as many, in the same order. */
#define MICA_PROGRAM_TENSORS 12
typedef struct mica_program_call {
    const mica_op *op;
    mica_phase phase;
    int layer;
    const void *opts;
    const char *fused; /* as in mica_work */
    int ins, outs;
    mica_value in[MICA_PROGRAM_TENSORS], out[MICA_PROGRAM_TENSORS]; /* 0: not there */
    unsigned add;                                                   /* bit k: adds to out[k] */
    size_t scratch, scratch_offset;
} mica_program_call;

typedef enum mica_home {
    MICA_HOME_PLANNED, /* packed by lifetime */
    MICA_HOME_LEARNED, /* flat, with gradient and optimizer state */
    MICA_HOME_KEPT,    /* from step to step */
    MICA_HOME_DERIVED, /* made when bound */
    MICA_HOME_LENT,    /* the caller's memory, or another net's */
} mica_home;
MICA_API const char *mica_home_text(mica_home home);

/* What a value of the program is. */
typedef struct mica_program_value {
    const char *name;
    mica_home home;
    mica_dtype dtype;
    int rank;
    mica_index dim[8];
    size_t offset; /* in the block; of a lent one 0 */
    size_t bytes;
} mica_program_value;

/* Calls of a compiled net by number, and how many; and what its values are. */
MICA_API int mica_net_program(const mica_net *net);
MICA_API mica_status mica_net_program_call(const mica_net *net, mica_program_call *out, int number);
MICA_API mica_status mica_net_program_value(const mica_net *net, mica_program_value *out, mica_value value);
/* As text, a line a call: outputs with place, operation, inputs, options. Into text[size], as above. */
MICA_API size_t mica_net_program_print(char *text, size_t size, const mica_net *net);

/* ---- Looking ---- */

/* Layer, kind, output shape, parameters, bytes: a line each, into text[size] as above. */
MICA_API size_t mica_net_summary(char *text, size_t size, const mica_net *net);
MICA_API int mica_net_layers(const mica_net *net);
/* How many parameters a layer has of its own. */
MICA_API size_t mica_net_layer_parameters(const mica_net *net, int number);
/* Name, kind and output of a layer by number. */
MICA_API mica_status mica_net_layer(const mica_net *net, const char **name, const char **kind,
                                    mica_value *output, int number);

#ifdef __cplusplus
}
#endif
#endif
