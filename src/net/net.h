/* A net's inside.
 *
 *   build    values, and nodes: calls of operations over them        build.c, values.c, call.c, names.c, continue.c
 *   compile  the program of a step: forward calls, backward calls    compile.c: reorder.c, differentiate.c, fold.c,
 *            their scratch, the lifetimes and places of values         fuse.c, layout.c, prepare.c, cheap.c,
 *                                                                      recompute.c, lifetime.c, plan.c;
 *                                                                      take_parts.c, choose_parts.c
 *   bind     every value gets its memory                             bind.c
 *   step     the program's calls in order                            run.c; sizes.c, rules.c, parts.c: smaller steps;
 *                                                                      lanes.c: parts side by side
 *
 * Nodes are never changed by compiling: it works on a copy of them, and on values behind the built ones.
 */
#ifndef MICA_SRC_NET_NET_H
#define MICA_SRC_NET_NET_H

#include <mica/net.h>
#include <mica/op.h>

#include "base/context.h"
#include "base/size.h"
#include "memory/pack.h"
#include "tensor/tensor.h"

#define NONE (-1)

/* Most sizes of a step, the batch included; most scopes and layers within one another; bytes of a full name; the most
 * axes of a value. */
#if defined(MICA_SMALL)
#define MICA_SIZES       4
#define MICA_LAYER_DEPTH 8
#define MICA_NAME_BYTES  96
#define MICA_VALUE_RANK  4
#else
#define MICA_SIZES       8
#define MICA_LAYER_DEPTH 32
#define MICA_NAME_BYTES  512
#define MICA_VALUE_RANK  MICA_MAX_RANK
#endif

/* How dims say that they follow a size of a step, or an axis of a value: numbers that no size can be. */
#define MICA_SIZE_FIRST     (-1000)
#define MICA_SIZE_CODE(n)   (MICA_SIZE_FIRST - (mica_index)(n))
#define MICA_DIM_FIRST      (-2000)
#define MICA_DIM_CODE(v, a) (MICA_DIM_FIRST - ((mica_index)(v)*MICA_MAX_RANK + (a)))

/* The number of a stream of random numbers. */
#if defined(MICA_SMALL)
typedef uint32_t mica_stream_number;
#else
typedef uint64_t mica_stream_number;
#endif

typedef struct mica_size {
    const char *name;
    mica_index most, now;
    mica_index ruled; /* from this one up, rules tell shapes: rules.c */
#if !defined(MICA_SMALL)
    const char *fixed; /* why no step may have another one than planned; NULL: it may */
#endif
} mica_size;

/* The size of an axis of a value: a number times the product of some sizes of the step, plus a number. */
typedef struct mica_rule {
    int value, axis;
    unsigned sizes; /* bit i: size number i is a factor */
    mica_index factor, plus;
} mica_rule;

/* Everything that the net knows about a tensor. */
typedef struct mica_value_info {
    const char *name; /* NULL: it has none; it is found by its layer's */
    mica_home home;
    mica_buffer_kind kind;              /* as the plan tells of it */
    mica_tensor tensor;                 /* of the present sizes; data is NULL until bound */
    mica_index built[MICA_VALUE_RANK];  /* the largest sizes */
    mica_index widest[MICA_VALUE_RANK]; /* as planned: less in parts */
    const mica_index *source; /* inputs and kept values: what a size follows (mica_net_size, _dim); 0: none */
    size_t built_bytes, bytes; /* as built; as planned: less in parts */
    int layer;                 /* that it belongs to; NONE: none */
    int maker;                 /* the node that makes it; NONE: none does */
    int number;                /* which of its outputs */
    int root;                  /* of a view, the value whose memory it shows (itself, otherwise) */
    int like;                  /* made by compile: has this value's shape; NONE: its maker infers it */
    int gradient;              /* NONE: none */
    int group;                 /* its memory in the packed part; NONE: none */
    mica_init init;            /* learned */
    mica_stream_number stream; /* of its first values' random numbers */
    mica_kept_kind kept;
    float start; /* kept */
    size_t flat; /* learned: its first element in the flat tensor; kept and derived: its byte in the block */
    bool frozen;
    int output;         /* is read after the step: the number of the output, from 1 on; 0: it is none */
    bool unasked;       /* it is no output even if nobody reads it */
    bool observed;      /* that alone for a conversion: src/int8 */
    bool wanted;        /* its gradient is */
    bool owned;         /* a gradient that more may be added to: it is no other value's, too */
    bool whole;         /* of a step in parts: it holds the whole batch, and each part sees its rows of it */
    bool changed;       /* its shape, by the resizing under way */
    bool channels_last; /* an image in the order N, H, W, C: layout.c */
} mica_value_info;

/* A call as built. */
typedef struct mica_node {
    const mica_op *op;
    void *opts;
    int layer;
    int ins, outs;
    int in[MICA_OP_INS]; /* values; NONE: an optional one that is not there */
    int out[MICA_OP_OUTS];
} mica_node;

/* A call of the program. Its number is its time. */
typedef struct mica_entry {
    mica_node node;
    mica_phase phase;
    int origin;       /* the number of the node that it runs, or whose gradient it is part of */
    unsigned add;     /* bit k: out[k] has been written before */
    unsigned learned; /* bit k: out[k] is a parameter's gradient, which a step may add to */
    /* Where out[k] goes if it must be added to and the operation cannot; NONE: nowhere. */
    int addend[MICA_OP_OUTS];
    const char *fused;      /* what else it does: "relu" */
    size_t workspace_bytes; /* of its operation */
#if !defined(MICA_SMALL)
    size_t lane_bytes; /* the same by one thread, where parts run side by side */
#endif
    double flops; /* as planned */
#if !defined(MICA_SMALL)
    double time; /* about, in ns, by one thread and out of the cache, where layout.c tells; 0: it does not */
#endif
    int group;      /* of the workspace */
    mica_call call; /* what the operation is told */
} mica_entry;

/* The block:
 *
 *   [ learned | gradients | optimizer state | kept | derived | all else, packed by lifetime ]
 *   0         flat, aligned alike                            persistent                     total
 */

/* A piece of the packed part, used by one value or by several that take over from one another. */
typedef struct mica_group {
    mica_span span;
    int value; /* the first that uses it; NONE: the workspace of an entry */
    int entry;
#if !defined(MICA_SMALL)
    size_t lane_offset; /* in the memory of a lane but the first: lanes.c */
#endif
    int seen;  /* through this time it is looked at from outside, so nobody takes it over; NONE: it is not */
    bool gone; /* its users moved to another group */
} mica_group;

#if !defined(MICA_SMALL)
/* What a thread runs parts of a batch with, beside the others: lanes.c. */
typedef struct mica_lane {
    mica_context ctx;    /* the net's, without other threads */
    mica_tensor *values; /* [value_count] */
    mica_call *calls;    /* [entry_count], on these */
    unsigned shapes;     /* which shapes they have: net->shapes */
    mica_index part;     /* the first that failed */
    mica_status status;  /* of that one */
} mica_lane;
#endif

typedef struct mica_layer_info {
    const char *name, *kind;
    mica_value input, output;
    int first_value, first_node; /* that were made in it */
} mica_layer_info;

typedef struct mica_chunk mica_chunk; /* of names and options: build.c */

struct mica_net {
    mica_context *ctx;
    void (*at_end)(void *user); /* called when it has been destroyed; NULL: nothing is */
    void *at_end_user;
    mica_chunk *chunks, *built_chunks; /* all, and those of building */
    size_t built_used;                 /* of the last of these */
    bool marked;                       /* building has ended */
    bool continues;                    /* steps continue one another: continue.c */
    mica_status status;                /* of the first failure while building */
    char *error;                       /* its text, [MICA_ERROR_TEXT]; NULL: none, or no memory for it */
    char prefix[MICA_NAME_BYTES];      /* of names: "block0.attn." */
    unsigned short scope_start[MICA_LAYER_DEPTH]; /* where each scope's name begins in it */
    int scope_layer[MICA_LAYER_DEPTH];            /* the layer that a scope is; NONE: it is none */
    int scopes;
    int open_layer; /* the innermost layer that is being built; NONE */

    int size_count;
    mica_size size[MICA_SIZES];
    const char *sizes_fixed; /* why no step may have other sizes than those planned; NULL: it may */
    mica_value_info *values;
    int value_count, value_room, output_count;
    int built_values, built_derivations; /* those after are made by compile */
    /* Of random numbers, given out so far; counted so that a seed means the weights it did in 0.1. */
    mica_stream_number streams;
    mica_node *nodes;
    int node_count, node_room;
    mica_node *derivations; /* calls that make derived values */
    int derivation_count, derivation_room;
    mica_layer_info *layers;
    int layer_count, layer_room;
    int *names; /* names.c */
    int name_count, name_room;

    /* Compiled. */
    bool compiled, train, debug, planes, keep_cheap, has_optimizer, prepare;
    bool in_sequence; /* parts never run side by side */
#if !defined(MICA_SMALL)
    size_t budget;      /* the most bytes of the block; 0: no limit */
    size_t whole_total; /* plan.total of the last plan that was not in parts */
#endif
    int ranks;       /* that share the optimizer's state */
    bool unshared;   /* for tests, which set it: every buffer has memory of its own, for all of the step */
    bool all_last;   /* the same: every image that may has its channels last */
    bool owns_block; /* bound: the net allocated it */
    bool ready;      /* a forward in training mode has run, and nothing since: a backward may */
    mica_optimizer optimizer;
    const mica_net *weights;
    mica_entry *entries;
    int entry_count, entry_room, forward_count;
    mica_rule *rules;
    int rule_count, rule_room;
    unsigned inferred; /* bit i: size number i has no rules */
    mica_node *makers; /* that infer the shapes of values made by compile */
    int maker_count, maker_room;
    mica_group *groups;
    int group_count, group_room;
    size_t flat_count;    /* elements of all parameters, padding included */
    size_t state_count;   /* elements of each state of the optimizer: all learned, or a rank's part of them */
    size_t learned_count; /* of those that are learned, which come first; there are as many gradients */
    int *learned;         /* their values, in the order of their places */
    int learned_values, learned_room;
    size_t persistent; /* bytes of what lives from step to step */
    mica_plan plan;
    mica_plan_buffer *plan_buffers;
    mica_plan_time *plan_times;
    size_t plan_room, plan_time_room;

    /* Bound. */
    char *block;
    size_t block_bytes;
    float *flat_parameters, *flat_gradients, *flat_optimizer[2];
    float *whole_state[2]; /* of the optimizer of all ranks, while a checkpoint is saved or loaded */
    char *best;         /* a copy of the best weights, which checkpoints then hold too; NULL: none (best.c) */
    size_t state_first; /* the learned element that the optimizer's state begins with */
    bool gradients_lent; /* the caller has their memory, and may write to it between steps */

    /* Stepping. A step's batch may be run in parts of at most `part_rows` samples, one after the other. */
    mica_index rows;                 /* the batch of a step; size[0].now is that of a part */
    mica_index part_rows;            /* as planned; size[0].most: in one */
    mica_index size_now[MICA_SIZES]; /* for operations: of the present part */
#if !defined(MICA_SMALL)
    mica_lane *lane;                 /* [lanes]; NULL: none */
    size_t lanes_offset, lane_bytes; /* the memory of all but the first, and of each */
    int lanes;                       /* parts that run side by side; 1: none do */
    unsigned shapes;                 /* how often shapes have changed */
#endif
    uint64_t ready_step; /* the number of the forward that a backward may follow */
    uint64_t seed, steps_taken;
    float loss;
    float gradient_norm;
    mica_watch_fn *watch; /* NULL: nobody does */
    void *watch_user;
    void (*after)(void *user,
                  int time); /* called after each entry of the last part of a step; NULL: nobody is */
    void *after_user;
};

/* ---- build.c ---- */

/* Records the first failure of building, which ctx already holds. */
mica_status mica_net_failed(mica_net *net, mica_status status);
/* Memory that lives as long as the net. NULL, with an error recorded, when refused. */
void *mica_net_memory(mica_net *net, size_t bytes);
const char *mica_net_text(mica_net *net, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Memory taken after the mark belongs to a plan; rewinding gives it back before the next plan. */
void mica_net_mark_memory(mica_net *net);
void mica_net_rewind_memory(mica_net *net);
/* Gives back the room of arrays behind their last elements, where the library is built small. */
void mica_net_trim(mica_net *net);
/* Makes room for one more element of `bytes` in *array. */
mica_status mica_net_grow(mica_net *net, void *array, int count, int *room, size_t bytes);
/* A new value of this shape, contiguous; NONE, with an error recorded, when refused. */
int mica_net_new_value(mica_net *net, const char *name, mica_home home, mica_buffer_kind kind,
                       const mica_tensor *shape);
/* What the axes of a value follow. */
mica_status mica_net_set_source(mica_net *net, int value, int rank, const mica_index *source);
/* Whether building goes on: not after a failure, nor once the net is compiled. */
bool mica_net_building(mica_net *net);
/* Fails the build unless this is a value of the net. */
mica_status mica_net_check_value(mica_net *net, mica_value value, const char *what);
/* prefix + name, or prefix + kind + "_" + number without one. NULL, with an error recorded, if it is taken. */
const char *mica_net_full_name(mica_net *net, const char *name, const char *kind);

/* ---- values.c ---- */

/* An input whose sizes follow those of a step only where `dims` say so, and not where a number is that of the batch. */
mica_value mica_net_input_as_said(mica_net *net, const char *name, mica_dtype dtype, int rank,
                                  const mica_index *dims);
/* The batch is always of so many rows: no input follows it. `reason`, which must live as long as the net, is for the
 * error of a step that tries others. */
void mica_net_fix_batch(mica_net *net, mica_index rows, const char *reason);

/* ---- names.c ---- */

/* Makes a value or a layer known by its name, once it has one. */
mica_status mica_net_name_value(mica_net *net, int value);
mica_status mica_net_name_layer(mica_net *net, int layer);
/* The value with this name, of those that are built, or the one that the layer of this name ends with; or NONE. */
int mica_net_find(const mica_net *net, const char *name);
bool mica_net_name_taken(const mica_net *net, const char *name);

/* ---- call.c ---- */

/* Runs a node's infer on the present shapes. */
mica_status mica_net_infer_node(mica_net *net, const mica_node *node, mica_infer *infer);
/* A view shows the memory of its input, which lies in order; a loss is a number. */
mica_status mica_net_check_outputs(mica_net *net, const mica_node *node, const mica_tensor *out);
/* Whether a kept value is written to by a node behind number `origin`: what that one read is gone after the forward. */
bool mica_net_changes_later(const mica_net *net, int value, int origin);
/* Checks the inputs of a call and copies its options. */
mica_status mica_net_make_node(mica_net *net, mica_node *node, const mica_op *op, const mica_value *ins,
                               int count, const void *opts);

/* ---- continue.c ---- */

/* Whether steps continue one another and can go on without the first tokens: only differences of positions count. */
bool mica_net_can_drop(const mica_net *net);
/* Of `count` tokens that were run, the first `dropped` are forgotten: the next has position count - dropped. */
mica_status mica_net_drop(mica_net *net, mica_index count, mica_index dropped);

/* ---- sizes.c ---- */

/* Dims with sizes of a step among them: the largest, and what they follow. */
mica_status mica_net_resolve_dims(mica_net *net, int rank, const mica_index *dims, mica_index *most,
                                  mica_index *source);
/* Whether all steps, or their parts, are of the same sizes, or of no rows. */
static inline bool mica_net_one_size(const mica_net *net)
{
    return net->sizes_fixed != NULL || (net->size_count == 1 && net->part_rows <= 1);
}
/* Gives every value the shape that follows from net->size[].now, by inference. */
mica_status mica_net_infer_shapes(mica_net *net);
/* Gives all shapes for a batch of so many rows; leaves them as they were where that fails. */
mica_status mica_net_set_rows(mica_net *net, mica_index rows);
/* Forgets a plan: every value is as built again. */
mica_status mica_net_unplan(mica_net *net);

/* ---- layout.c ---- */

/* The strides of a value of the present shape: of planes, or of channels that lie last. */
static inline void mica_net_set_strides(mica_value_info *v)
{
#if !defined(MICA_SMALL)
    if (v->channels_last) {
        mica_tensor_set_channels_last(&v->tensor);
        return;
    }
#endif
    mica_tensor_set_strides(&v->tensor);
}

struct mica_preparation;

/* What passes of compile ask of Mica's own operations; NULL: it has none of it. */
typedef struct mica_op_passes {
    /* How its call takes in the one behind it: fuse.c. */
    bool (*fuse)(mica_net *net, mica_node *node, const mica_node *then);
#if !defined(MICA_SMALL)
    /* Whether this call is linear in in[1] and in[2], weights and a bias whose first axis is the channels of out[0]:
     * fold.c. */
    bool (*folds)(const mica_net *net, const mica_node *node);
    /* How it becomes a call of weights that are prepared once: prepare.c. */
    bool (*prepare)(const mica_net *net, const mica_node *node, struct mica_preparation *how);
    /* How the call of entry number e becomes one of prepared weights, which may take in another one behind it: that has
     * then no operation. Called before calls are fused. */
    mica_status (*pair)(mica_net *net, int e);
    /* About how long a call takes by one thread, in ns, with its images as they lie: layout.c. Without data. */
    double (*time)(const mica_call *call);
#endif
} mica_op_passes;

/* ---- program.c ---- */

/* Bytes of an option; of a list of them, of each. */
size_t mica_field_bytes(const mica_field *field);

/* ---- rules.c ---- */

/* The same by rules, where a compiled net has them for these sizes. */
mica_status mica_net_update_shapes(mica_net *net);
/* Finds the rules of a compiled net. */
mica_status mica_net_find_rules(mica_net *net);

/* ---- ranks, in src/train ---- */

/* Ranks divide elements in multiples of this, and sums over all elements are made in blocks of it, on whatever rank. */
#define MICA_RANK_BLOCK ((size_t)1024)
/* How many of the elements each rank has; the last may have fewer. */
static inline size_t mica_net_rank_part(size_t elements, int ranks)
{
    return ranks <= 1 ? elements : mica_round_up(mica_div_up(elements, (size_t)ranks), MICA_RANK_BLOCK);
}

/* ---- parts.c ---- */

/* Whether a batch can be run in parts: no operation mixes samples. */
bool mica_net_can_part(mica_net *net);
/* The fewest rows that a step takes: batch norm in training, say, wants two. Of a net that is planned. */
mica_index mica_net_fewest_rows(mica_net *net);
/* Whether every batch of at least `fewest` rows can also be run in parts of at most so many, none of fewer. */
bool mica_net_parts_fit(mica_index most, mica_index part_rows, mica_index fewest);
/* choose_parts.c, of a net that is only run: whether its parts together give what the whole gives; and about how long a
 * step takes as it is planned now, by one thread, in ns. */
bool mica_net_can_infer_parts(mica_net *net);
double mica_net_step_time(const mica_net *net);
/* The same of a net that trains, as a whole: whether no sample depends on others, and calls are about as fast for fewer
 * of them; and about how long its calls take. */
bool mica_net_can_train_parts(mica_net *net);
double mica_net_training_time(const mica_net *net);
/* take_parts.c, of a net that is planned as a whole: plans the parts that a net which is only run is asked for
 * (mica_compile_opts.part_rows), or those that make it faster; and those of a training batch that save memory at next
 * to no cost, if there are any. */
mica_status mica_net_take_parts(mica_net *net, mica_index rows);
mica_status mica_net_take_cheap_parts(mica_net *net);
/* compile.c: all of the program and the plan, in parts of so many rows, with what is cheap recomputed. */
mica_status mica_net_plan_with_parts(mica_net *net, mica_index rows);
/* Plans for parts of so many rows: sizes of buffers follow. */
mica_status mica_net_plan_parts(mica_net *net, mica_index part_rows);
/* Points inputs and outputs at the rows of one part. */
mica_status mica_net_select_part(mica_net *net, mica_index first, mica_index rows);
/* A tensor as the caller sees it: the whole batch. */
mica_tensor mica_net_whole(const mica_net *net, int value);

/* Points tensors of a part's shapes, numbered as the net's values, at its rows of what holds the whole batch. */
void mica_net_select_rows(const mica_net *net, mica_tensor *tensors, mica_index first);

/* ---- The passes of compile, in their order ---- */

/* compile.c: another entry, a copy of the node's. NULL, with an error recorded, when refused. */
mica_entry *mica_net_new_entry(mica_net *net, const mica_node *node, mica_phase phase, int origin);
/* reorder.c: the forward calls, in an order that is less work. */
mica_status mica_net_forward_calls(mica_net *net);
/* differentiate.c: the backward calls behind them. */
mica_status mica_net_differentiate(mica_net *net);
/* fuse.c: calls that one operation can do together become one. */
mica_status mica_net_fuse(mica_net *net);
/* Room for the options of any operation that fuses. */
typedef union mica_fused_options {
    char bytes[192];
    void *pointer;
    double number;
} mica_fused_options;
/* For an entry's `fuse`, which changes *node to do what `then` does, too, or returns false. Its options are a copy, in
 * a mica_fused_options: if it changes the operation, the options of that go there. This one ends the
 * call with an activation, in the options where its kind and slope stand; false if it has one already. */
bool mica_net_fuse_activation(const mica_node *then, mica_activation *activation, float *slope);
/* layout.c: where the channels of images lie. */
mica_status mica_net_choose_layouts(mica_net *net);
/* fold.c: batch norms go into the weights before them. */
mica_status mica_net_fold(mica_net *net);
/* prepare.c: two calls that are best run at once become one of prepared weights; then calls of constant weights become
 * calls of prepared ones. */
mica_status mica_net_pair(mica_net *net);
mica_status mica_net_prepare(mica_net *net);
/* Whether a value lasts and no step changes it. */
bool mica_net_is_constant(const mica_net *net, int value);
/* A derived value of this shape, and the call that makes it when the net is bound; named after `from`, from which it is
 * made, and how. NONE, with an error recorded, when refused. */
int mica_net_prepared_value(mica_net *net, const mica_node *maker, const mica_tensor *shape, int from,
                            const char *how);
/* What an entry's `prepare` fills in, or returns false: the call becomes one of `op`, with the same inputs and outputs,
 * and behind them, as input number `place`, what `maker` makes of input number `input` when the net is bound. The
 * shapes of the node's values are those planned for; a smaller step has to do with what was prepared for them. */
typedef struct mica_preparation {
    int input, place;
    const mica_op *op, *maker;
    mica_fused_options opts, maker_opts; /* of each */
    mica_tensor shape;                   /* of what is made: its data is NULL */
} mica_preparation;
/* cheap.c: what costs little to make again is not kept for the backward; or whatever is needed for at most `target`
 * bytes alive at once, if it is not 0. */
mica_status mica_net_recompute_cheap(mica_net *net, size_t target);
/* recompute.c: segments of so many calls are run again before their backward (0: none). */
mica_status mica_net_recompute_segments(mica_net *net, int segment_calls);
/* Runs forward call f again just before entry when[f] (NONE: not); there are `count` of them. What they make is dropped
 * after the forward, if dropped[] says so of the value. */
mica_status mica_net_run_again(mica_net *net, const int *when, int count, const bool *dropped);
/* Whether forward call e would make something else the second time. */
bool mica_net_reads_what_changes(const mica_net *net, int e);
/* lifetime.c: gives every value its group, every group its lifetime and offset, and all that lasts its place. */
mica_status mica_net_lay_out(mica_net *net);

/* Whether a kept value belongs to the net that lends its weights. */
bool mica_borrows(const mica_net *net, const mica_value_info *value);

/* ---- plan.c ---- */

mica_status mica_net_fill_plan(mica_net *net);
/* The name of a value for people. Made where it has none. */
const char *mica_net_value_name(mica_net *net, int value);
/* When the net has been destroyed, this is called: to close a file that its values are lent from. */
void mica_net_at_end(mica_net *net, void (*at_end)(void *user), void *user);
/* The same for messages, which allocate nothing. */
typedef struct mica_value_text {
    char text[MICA_NAME_BYTES];
} mica_value_text;
mica_value_text mica_net_value_text(const mica_net *net, int value);
/* How much recomputing adds to the forward, as a fraction. */
double mica_net_extra_work(const mica_net *net);

/* ---- bind.c ---- */

/* Points the entries' calls at the values' tensors. Values must not move any more. */
void mica_net_link(mica_net *net);
/* The workspace that derived values take to make. */
mica_status mica_net_measure_derivations(mica_net *net, size_t *bytes);
/* Forgets what operations noted about gradients, if the caller may have changed them since. */
mica_status mica_net_distrust_gradients(mica_net *net);
/* Something learned or kept, as built: of a smaller step, or one in parts, its tensor shows a part of it. */
mica_tensor mica_net_built_tensor(const mica_net *net, const mica_value_info *value);

/* ---- run.c ---- */

/* How a step runs. */
typedef struct mica_mode {
    bool training;
    bool add;      /* to the parameters' gradients */
    float scale;   /* of the losses' gradients */
    uint64_t step; /* whose random numbers are drawn */
    bool early;    /* more parts of the batch follow */
} mica_mode;

/* Runs an entry's operation, and adds parts to their sums. */
mica_status mica_net_run_entry(mica_net *net, mica_entry *entry, const mica_mode *mode);
/* Entries from `first` to before `end`, one after the other, by all threads. */
mica_status mica_net_run_entries(mica_net *net, int first, int end, const mica_mode *mode);

#if !defined(MICA_SMALL)
/* ---- lanes.c ---- */

/* How many parts of the present plan run side by side. */
int mica_net_lanes_for(const mica_net *net);
/* The bytes of the block up to which they may: those of the budget, and of the batch as a whole. So what a net takes
 * grows with the threads only up to what it would have taken anyway. */
size_t mica_net_most_with_lanes(const mica_net *net);
/* What of a group each lane but the first has for itself, by its offset in the lane's memory; false: nothing. */
bool mica_net_lane_span(const mica_net *net, const mica_group *group, mica_span *span);
/* Where in the block the memory of such a lane begins. */
size_t mica_net_lane_start(const mica_net *net, int lane);
/* At the end of compile, and of bind. */
mica_status mica_net_make_lanes(mica_net *net);
void mica_net_bind_lanes(mica_net *net);
/* The first `end` entries, for every part of the batch. */
mica_status mica_net_run_lanes(mica_net *net, int end, const mica_mode *mode);
#endif

/* ---- watch.c ---- */

/* What an entry is about to do. */
mica_work mica_net_work(mica_net *net, mica_entry *entry, const mica_mode *mode);
/* And the optimizer, in one update. */
mica_work mica_net_update_work(const mica_net *net);

static inline void mica_net_tell(const mica_net *net, const mica_work *work, bool done)
{
    net->watch(net->watch_user, work, done);
}

#endif
