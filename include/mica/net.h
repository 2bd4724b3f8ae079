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
 * Building may allocate and may fail. A call that fails records its error and returns 0; later calls do nothing, and
 * mica_net_compile reports the first failure. So calls need not be checked one by one. docs/networks.md says how it
 * works. */
#ifndef MICA_NET_H
#define MICA_NET_H

#include <mica/optimizer.h>
#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mica_net mica_net;
typedef struct mica_op mica_op; /* mica/op.h */

/* A tensor in a net: an input, a parameter, or an output of a call. 0 is none. */
typedef int mica_value;

/* How a parameter is initialized. MICA_INIT_DEFAULT is the layer's usual choice. */
typedef enum mica_init_kind {
    MICA_INIT_DEFAULT,
    MICA_INIT_CONSTANT,       /* `value` everywhere */
    MICA_INIT_UNIFORM,        /* in [-value, value) */
    MICA_INIT_NORMAL,         /* standard deviation `value` */
    MICA_INIT_XAVIER_UNIFORM, /* these four: from the parameter's shape, times `value` (0: 1) */
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

/* Declares a size that may be smaller in a step than planned, such as a length, and returns a number that stands
 * for it in the dims of inputs. `most` is its largest value: the plan is made for it, and it holds until
 * mica_net_set_size. The batch needs no declaration. It is the size "batch": dims[0] of the first input, and of
 * every other input where that is the same number. */
MICA_API mica_index mica_net_size(mica_net *net, const char *name, mica_index most);
/* The index, in mica_net_size_at and mica_call.size, of what mica_net_size returned; -1 if it is no size. */
MICA_API int mica_net_size_number(const mica_net *net, mica_index size);
/* A number that stands for axis `axis` of a value in the dims of kept values, which then follow its size. */
MICA_API mica_index mica_net_dim(mica_net *net, mica_value value, int axis);
/* No step may have other sizes than those planned, because something in the net was computed from them; `reason` is for
 * the error of one that tries. */
MICA_API mica_status mica_net_fix_sizes(mica_net *net, const char *reason);

/* ---- Inputs and persistent values ---- */

/* Written by the caller before every step. */
MICA_API mica_value mica_net_input(mica_net *net, const char *name, mica_dtype dtype, int rank,
                                   const mica_index *dims);

/* Learned: a parameter, f32, with a gradient and optimizer state. Its name is prefixed with that of the layer it is
 * made in: "conv1.weight". */
MICA_API mica_value mica_net_learned(mica_net *net, const char *name, int rank, const mica_index *dims,
                                     mica_init init);
/* An existing learned value, by its full name, which must have this shape: to share weights between layers. */
MICA_API mica_value mica_net_shared(mica_net *net, const char *full_name, int rank, const mica_index *dims);

/* Kept from step to step, not learned. */
typedef enum mica_kept_kind {
    MICA_KEPT_STATISTICS, /* part of what was learned (running means): shared with the weights, never reset */
    MICA_KEPT_STATE,      /* of a sequence: mica_net_reset_states resets it */
    MICA_KEPT_PRIVATE,    /* an operation's own bookkeeping: never saved */
} mica_kept_kind;
MICA_API mica_value mica_net_kept(mica_net *net, const char *name, mica_kept_kind kind, mica_dtype dtype,
                                  int rank, const mica_index *dims, float start);

/* Derived: computed by a call when the net is bound, initialized or loaded (see mica_net_derive); never saved. For
 * tables and converted weights. Its inputs are learned, kept, lent or derived. A training step does not compute it
 * again, and no gradient flows through it. */
MICA_API mica_value mica_net_derived(mica_net *net, const char *name, mica_dtype dtype, int rank,
                                     const mica_index *dims, const mica_op *op, const mica_value *ins,
                                     int count, const void *opts);

/* Lent: the caller's memory (such as a mapped file), read-only, of any dtype and layout. It must outlive the
 * net. */
MICA_API mica_value mica_net_lent(mica_net *net, const char *name, const mica_tensor *tensor);
/* The parameter of this full name ("conv1.weight"), which a layer has made, is lent: the net reads `tensor`, of the
 * same shape, where it lies, such as in flash memory, and has no copy of it. It is no parameter any more: it is
 * neither initialized nor learned nor saved. Before compiling. */
MICA_API mica_status mica_net_lend(mica_net *net, const char *name, const mica_tensor *tensor);

/* ---- Calls ---- */

/* Adds a call of an operation, as part of the layer that is being built or else as a layer of its own, and
 * returns its first output. `name` may be NULL. An optional input that is absent is 0, and may be left out at
 * the end. */
MICA_API mica_value mica_net_call(mica_net *net, const char *name, const mica_op *op, const mica_value *ins,
                                  int count, const void *opts);
/* The same for one of Mica's operations, by name: mica_net_op(net, NULL, "sub", (mica_value[]){a, b}, 2, NULL). */
MICA_API mica_value mica_net_op(mica_net *net, const char *name, const char *op, const mica_value *ins,
                                int count, const void *opts);
/* Output number `number`, from 0, of the call that made `value`. */
MICA_API mica_value mica_net_result(mica_net *net, mica_value value, int number);

/* Names a value, so that it can be found, and keeps it until the end of a step. A value that no call reads is
 * kept in any case. A value has one name: that of its layer until it gets another here. */
MICA_API mica_status mica_net_output(mica_net *net, const char *name, mica_value value);

/* Names of layers added between these are prefixed "name.". They nest. */
MICA_API void mica_net_enter(mica_net *net, const char *name);
MICA_API void mica_net_leave(mica_net *net);

/* A layer: what is added between these belongs to it and is named after it, and errors name it and its input.
 * `output` takes the layer's name. With `name` NULL the layer is named after its kind and a number. */
MICA_API void mica_net_layer_begin(mica_net *net, const char *kind, const char *name, mica_value input);
MICA_API mica_value mica_net_layer_end(mica_net *net, mica_value output);
/* Fails the build, with a text that says what was expected and what was given, and ends the layer that is being
 * built. The net puts the layer's name and its input in front. Returns 0. */
MICA_API mica_value mica_net_layer_fail(mica_net *net, mica_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same outside of a layer: fails the build with "net: " and the text. */
MICA_API mica_value mica_net_refuse(mica_net *net, mica_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The status of the build so far: that of the first failure. */
MICA_API mica_status mica_net_status(const mica_net *net);
MICA_API mica_context *mica_net_context(const mica_net *net);

/* Freezes the parameters whose names start with `prefix`, or with false unfreezes them. Before compiling. */
MICA_API mica_status mica_net_freeze(mica_net *net, const char *prefix, bool frozen);

/* The value of this name: an input, an output that was given one, or by its full name what is learned, kept, derived or
 * lent; 0: there is none. For what is added to a net that something else has built: a loss of an imported model. */
MICA_API mica_value mica_net_named(const mica_net *net, const char *name);

/* The shape of a value as built, whatever the current sizes are. */
MICA_API mica_status mica_net_shape(const mica_net *net, mica_tensor *out, mica_value value);

/* Makes steps continue one another, for generation: the last call of building, for inference, of a net whose one input
 * is a sequence [1, T], T being a size of the step. From then on a step runs only the next tokens of the sequence.
 * Causal attention keeps keys and values of T tokens, recurrent layers keep their states, and positions follow the size
 * "position", which the caller sets to the number of tokens that were run before (a net that needs none has no such
 * size). mica_net_reset_states, and position 0, begin another sequence.
 *
 * Where a call mixes tokens in another way, or may do so, the net stays as it was, and *reason, which lives as long as
 * the net, says which call that is. NULL: done. */
MICA_API mica_status mica_net_continue(mica_net *net, const char **reason);

/* ---- Compile ---- */

typedef struct mica_compile_opts {
    bool train;                      /* also plan gradients, and the optimizer's state */
    const mica_optimizer *optimizer; /* NULL: none; gradients are there for the caller */
    size_t budget;                   /* the most bytes that the block may have; 0: no limit */
    const mica_net *weights; /* inference with this bound net's parameters; it must outlive this one */
    bool keep_cheap;         /* keep all that the backward reads, even what is cheap to compute again */
    int ranks;               /* shard the optimizer's state over this many ranks (mica/ranks.h); 0: do not */
    bool
        same_parts; /* within a budget: parts of the batch do not depend on threads or ranks, and so no bit does */
    bool debug; /* guards between buffers, and NaN in buffers whose lifetime has ended */
    /* Keep images between calls planar: otherwise, without training, they may be stored channels-last where that is
     * faster. For callers that read the program (mica_net_program_value) and want all tensors contiguous. */
    bool planes;
    /* Inference only: convert weights to the layouts that calls read once, when the net is bound, instead of in every
     * step. The copies take memory (MICA_BUFFER_PREPARED) in addition to the weights; none are made if one thread would
     * exceed the budget with them. Writes to weights have no effect until mica_net_derive. */
    bool prepare;
    /* Inference only: run the batch in parts of at most this many rows. 0: the compiler chooses, so that values between
     * calls stay in the cache where that pays, and the budget is met. MICA_WHOLE_BATCH: never in parts, whatever the
     * budget is. Training takes 0, for parts only if a budget needs them, or MICA_CHEAP_PARTS: also where they save
     * memory and cost next to no time.
     *
     * If there is a part for every thread, the parts that the compiler chooses run side by side, one per thread, each
     * in memory of its own (mica_plan.lanes), unless that exceeds the budget or what the whole batch would take. */
    mica_index part_rows;
    bool side_by_side; /* with .part_rows given: threads run parts side by side, too */
} mica_compile_opts;
#define MICA_WHOLE_BATCH (-1)
#define MICA_CHEAP_PARTS (-2)

/* Makes the program and the plan. Allocates no memory for tensors.
 *
 * If a plan with .train exceeds the budget, activations are recomputed, which changes no bit of the result. If that
 * is not enough, the batch is run in parts whose gradients are added, which gives the same result within
 * rounding (except that batch norm sees one part at a time, and dropout draws other numbers). If nothing fits,
 * the error says how many bytes the smallest plan takes. How many parts there are may depend on the threads, which take
 * scratch, and on the ranks; with .same_parts it does not: then fewer threads may fit where more do not.
 *
 * Without .train, a batch may be run in parts, too, if its samples do not depend on one another: to meet a budget,
 * where that is faster, or where it saves memory at next to no cost (.part_rows). Inputs and outputs still hold the
 * whole batch. docs/networks.md says when this is done, and when results are bit-identical.
 *
 * May be called again until the net is bound. Nothing can be added to the net afterwards. */
MICA_API mica_status mica_net_compile(mica_net *net, const mica_compile_opts *opts);

/* What a buffer holds. */
#define MICA_BUFFER_KINDS(X)                                                    \
    X(PARAMETER, "parameter")                                                   \
    X(GRADIENT, "gradient")   /* of parameters */                               \
    X(OPTIMIZER, "optimizer") /* its state */                                   \
    X(STATE, "state")         /* kept: running statistics, recurrent state */   \
    X(INPUT, "input")                                                           \
    X(ACTIVATION, "activation")                                                 \
    X(SAVED, "saved") /* saved by a forward for its backward */                 \
    X(BACK, "activation gradient")                                              \
    X(SCRATCH, "scratch")           /* workspace and temporaries of one call */ \
    X(DERIVED, "derived")           /* made when bound: tables */               \
    X(PREPARED, "prepared weights") /* made when bound: mica_compile_opts.prepare */

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
    int first, last; /* times (numbers of calls) at which it is first written and last read */
    int lane; /* of parts that run at once, which one has it; 0: the first, or all. Each runs by its own times */
    /* The first tensor that uses it; for scratch, bytes. One part of the batch, if it is run in parts. */
    mica_dtype dtype;
    int rank;
    mica_index dim[MICA_MAX_RANK];
} mica_plan_buffer;

#define MICA_PHASES(X)                                                                  \
    X(FORWARD, "forward")                                                               \
    X(RECOMPUTE, "recompute") /* a forward call again, for the backward that follows */ \
    X(BACKWARD, "backward")                                                             \
    X(UPDATE, "update") /* the optimizer: after the program, so not part of the plan */

typedef enum mica_phase {
#define MICA_PHASE_ENUM(phase, text) MICA_PHASE_##phase,
    MICA_PHASES(MICA_PHASE_ENUM)
#undef MICA_PHASE_ENUM
        MICA_PHASE_COUNT
} mica_phase;

MICA_API const char *mica_phase_text(mica_phase phase);

/* What a step does at one time. */
typedef struct mica_plan_time {
    const char *name; /* of the layer */
    mica_phase phase;
} mica_plan_time;

/* All memory of a net. The block has `total` bytes. */
typedef struct mica_plan {
    size_t total;
    size_t lower_bound;                        /* the most bytes alive at once: no layout takes less */
    size_t kind_bytes[MICA_BUFFER_KIND_COUNT]; /* sums over buffers; shared memory counts for each */
    int times;                                 /* calls of a step: forward, recomputed, backward */
    const mica_plan_time *time;                /* [times] */
    int parts;                                 /* that a batch is run in */
    int lanes;         /* how many of them run at once, one per thread; 1: in sequence */
    int recomputed;    /* forward calls that run twice */
    double extra_work; /* of recomputing, as a fraction of the forward */
    const mica_plan_buffer *buffers;
    size_t count;
} mica_plan;

/* The plan of a compiled net; NULL before. Valid until the net is compiled again or destroyed. */
MICA_API const mica_plan *mica_net_plan(const mica_net *net);
/* As a table, into text[size], always terminated. Returns the length of the whole text, as snprintf does. */
MICA_API size_t mica_plan_print(char *text, size_t size, const mica_plan *plan);

/* ---- Bind ---- */

/* Gives the net its memory: `bytes` (at least the plan's total) at `block`, aligned to 64, which remains the
 * caller's; with NULL, one allocation. Parameters and states are not set: see mica_net_initialize. */
MICA_API mica_status mica_net_bind(mica_net *net, void *block, size_t bytes);

/* Initializes parameters, kept values and optimizer state. The seed also determines all random numbers of later
 * steps. */
MICA_API mica_status mica_net_initialize(mica_net *net, uint64_t seed);

/* Computes derived values again, after the caller has written to what they are made from. Binding, initializing and
 * loading do this already. */
MICA_API mica_status mica_net_derive(mica_net *net);

/* Resets the states of recurrent layers, but not running statistics, for a new sequence. */
MICA_API mica_status mica_net_reset_states(mica_net *net);
/* Whether there are any: then what a step makes depends on the steps before it. */
MICA_API bool mica_net_keeps_states(const mica_net *net);

/* ---- Tensors by name ---- */

/* A tensor of a bound net: an input, an output (including what no call reads), or by its full name
 * ("conv1.weight") a value that is learned, kept, derived or lent. Other values exist for part of a step only:
 * make them outputs. */
MICA_API mica_status mica_net_tensor(mica_net *net, mica_tensor *out, const char *name);
MICA_API mica_status mica_net_value_tensor(mica_net *net, mica_tensor *out, mica_value value);
/* The gradient of a parameter. */
MICA_API mica_status mica_net_gradient(mica_net *net, mica_tensor *out, const char *name);

/* The number of inputs, and each by its number, in the order of building. */
MICA_API int mica_net_inputs(const mica_net *net);
MICA_API mica_status mica_net_input_tensor(mica_net *net, const char **name, mica_tensor *out, int number);

/* The number of parameters, and each by its number, in the order of building. mica_net_flat gives all of them,
 * and all gradients, as one flat tensor each; frozen parameters come last and have no gradient. */
MICA_API int mica_net_parameters(const mica_net *net);
MICA_API mica_status mica_net_parameter(mica_net *net, const char **name, mica_tensor *out, int number);
MICA_API mica_status mica_net_flat(mica_net *net, mica_tensor *parameters, mica_tensor *gradients);

/* ---- Step: nothing from here on allocates ---- */

/* Sets a size for the steps that follow: from 0 to what was planned. On failure nothing changes. */
MICA_API mica_status mica_net_set_size(mica_net *net, const char *name, mica_index size);
/* The same for the batch. */
MICA_API mica_status mica_net_resize(mica_net *net, mica_index batch);
/* The number of sizes, and each by its number ("batch" is 0): its name, its current and its largest value. Each
 * pointer may be NULL. */
MICA_API int mica_net_sizes(const mica_net *net);
MICA_API mica_status mica_net_size_at(const mica_net *net, const char **name, mica_index *now,
                                      mica_index *most, int number);

/* Forward in inference mode. Inputs must be written before every step: their memory is reused once they have been
 * read. */
MICA_API mica_status mica_net_forward(mica_net *net);

/* Forward in training mode: dropout draws the random numbers of step `step`, batch norm uses the batch's
 * statistics. An error if the net was compiled for inference and its plan runs a batch in parts. */
MICA_API mica_status mica_net_forward_training(mica_net *net, uint64_t step);

/* Backward from every loss, directly after mica_net_forward_training. Gradients are written, or with `add` added
 * to. The losses' gradients are scaled by `scale` (0: 1), for accumulation over several steps. An error if the
 * plan runs a batch in parts, where forward and backward alternate: mica_net_gradients does both, for any plan. */
typedef struct mica_backward_opts {
    bool add;
    float scale;
    uint64_t step; /* for the forward of mica_net_gradients: see above */
} mica_backward_opts;
MICA_API mica_status mica_net_backward(mica_net *net, const mica_backward_opts *opts);

/* Forward in training mode, then backward. */
MICA_API mica_status mica_net_gradients(mica_net *net, const mica_backward_opts *opts);

/* The sum of the losses of the last forward, each times its weight. */
MICA_API float mica_net_loss(const mica_net *net);

/* ---- Profiling ---- */

/* A call of the program, at the sizes of the step. If a batch is run in parts, there is one for each part. */
typedef struct mica_work {
    int layer;         /* its number, as in mica_net_layer; -1: the update */
    const char *name;  /* of the layer, as in its parameters' names; of the update, "optimizer" */
    const char *kind;  /* of the layer: "dense"; of the update, the optimizer: "adam" */
    const char *op;    /* the operation: "linear_backward_weight" */
    const char *fused; /* what is fused into it: "relu", "max_pool2d, relu"; NULL: nothing */
    mica_phase phase;
    double flops; /* as mica_measure_flops counts them: 0 for operations that are bound by memory */
    double bytes; /* of the tensors that it reads and writes */
} mica_work;

/* Called before a call runs (done is false) and after (true), with the same *work, which is valid in between. It
 * may take the time and store it; it must not use the net or its context. */
typedef void mica_watch_fn(void *user, const mica_work *work, bool done);

/* From now on, fn is called for everything that a step runs; NULL turns it off, and then it costs nothing. While a net
 * is watched, parts run in sequence (mica_plan.lanes). Allocates nothing. */
MICA_API void mica_net_watch(mica_net *net, mica_watch_fn *fn, void *user);

/* ---- The program ---- */

/* One call of the program of a compiled net. plan.time has as many entries, in the same order. */
#define MICA_PROGRAM_TENSORS 12
typedef struct mica_program_call {
    const mica_op *op;
    mica_phase phase;
    int layer;
    const void *opts;
    const char *fused; /* as in mica_work */
    int ins, outs;
    mica_value in[MICA_PROGRAM_TENSORS], out[MICA_PROGRAM_TENSORS]; /* 0: absent */
    unsigned add;                                                   /* bit k: adds to out[k] */
    size_t scratch, scratch_offset;
    uint64_t seed, stream, stream_step; /* of random numbers: in step t, stream + t * stream_step */
} mica_program_call;

typedef enum mica_home {
    MICA_HOME_PLANNED, /* packed by lifetime */
    MICA_HOME_LEARNED, /* flat, with gradient and optimizer state */
    MICA_HOME_KEPT,    /* lasts from step to step */
    MICA_HOME_DERIVED, /* computed when bound */
    MICA_HOME_LENT,    /* the caller's memory, or another net's */
} mica_home;
MICA_API const char *mica_home_text(mica_home home);

/* A value of the program. */
typedef struct mica_program_value {
    const char *name;
    mica_home home;
    mica_dtype dtype;
    int rank;
    mica_index dim[8];
    size_t offset; /* in the block; 0 if lent */
    size_t bytes;
    mica_buffer_kind kind;  /* what it holds */
    mica_value root;        /* of a view, the value whose memory it shows; otherwise itself */
    mica_value gradient_of; /* the parameter whose gradient it is; 0: none */
    mica_kept_kind kept;    /* if it is kept */
    bool frozen;            /* a parameter that is not learned */
    bool output;            /* is read after the step */
    bool channels_last;     /* an image stored in the order N, H, W, C (see mica_compile_opts.planes) */
} mica_program_value;

/* The number of calls of a compiled net, each by its number, and its values. */
MICA_API int mica_net_program(const mica_net *net);
MICA_API mica_status mica_net_program_call(const mica_net *net, mica_program_call *out, int number);
MICA_API mica_status mica_net_program_value(const mica_net *net, mica_program_value *out, mica_value value);
/* The number of values: they are 1 to this. */
MICA_API int mica_net_program_values(const mica_net *net);
/* Whether each sample of a batch is computed by itself, so that a batch can be run sample by sample, with gradients
 * added up: no operation mixes samples (batch norm does, in training), and each loss is a mean. Of a compiled net that
 * was built for two or more. */
MICA_API bool mica_net_samples_apart(mica_net *net);
/* As text, one line per call: outputs with offsets, operation, inputs, options. Into text[size], as
 * mica_plan_print. */
MICA_API size_t mica_net_program_print(char *text, size_t size, const mica_net *net);

/* ---- Inspection ---- */

/* One line per layer: name, kind, output shape, parameters, bytes. Into text[size], as mica_plan_print. */
MICA_API size_t mica_net_summary(char *text, size_t size, const mica_net *net);
MICA_API int mica_net_layers(const mica_net *net);
/* The number of parameters (scalars) of a layer, without those it shares from another. */
MICA_API size_t mica_net_layer_parameters(const mica_net *net, int number);
/* Name, kind and output of a layer by number. */
MICA_API mica_status mica_net_layer(const mica_net *net, const char **name, const char **kind,
                                    mica_value *output, int number);

#ifdef __cplusplus
}
#endif
#endif
