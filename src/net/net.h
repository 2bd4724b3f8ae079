/* A net's inside: nodes and the slots they read and write; after compiling, the schedule of a step and its
 * memory.
 *
 *   build    nodes, slots                                          build.c, names.c, infer.c, batch.c
 *   compile  entries (what runs when), gradients, groups (memory)  fuse.c, schedule.c, lifetime.c, compile.c
 *   bind     every slot's tensor gets its data                     bind.c
 *   step     entries in order                                      run.c
 */
#ifndef MICA_SRC_NET_NET_H
#define MICA_SRC_NET_NET_H

#include <mica/layer.h>
#include <mica/net.h>

#include "base/context.h"
#include "memory/pack.h"

#define NONE (-1)

/* A tensor that the net knows. What is recomputed for its backward has a second life, in other memory. */
typedef struct mica_slot {
    const char *name;
    mica_buffer_kind kind;
    mica_tensor tensor[2];           /* one for each life; data is NULL until bound */
    int group[2];                    /* which memory; NONE: none */
    size_t built_bytes;              /* for the batch as built */
    size_t bytes;                    /* as planned: a resized net uses less */
    mica_index built[MICA_MAX_RANK]; /* the sizes, as built */
    int node;                        /* that makes it, or that it belongs to; NONE for an input */
    int gradient;                    /* slot of its gradient, or NONE */
    int reader;     /* the only node that reads it; NONE: none does, or several, or the caller */
    int root;       /* of a view, the slot whose memory it shows (itself, otherwise) */
    mica_init init; /* parameters */
    float start;    /* states */
    size_t flat; /* of a parameter: its first element in the flat tensor; of a state: its byte in the block */
    bool frozen;
    bool output;  /* is read after the step */
    bool wanted;  /* its gradient is */
    bool dropped; /* between forward and backward: backward reads its second life */
    bool whole;   /* of a step in parts: it holds the whole batch, and each part sees its rows of it */
} mica_slot;

typedef struct mica_node {
    const mica_layer *layer;
    const char *name;
    void *opts;
    int inputs, params, states, saved, temps;
    int in[MICA_LAYER_INPUTS]; /* slots */
    int out;
    int param[MICA_LAYER_BUFFERS], state[MICA_LAYER_BUFFERS], save[MICA_LAYER_BUFFERS],
        temp[MICA_LAYER_BUFFERS];
    int segment;    /* of recomputation */
    int pool;       /* the max pooling that is fused into this one's forward, or NONE */
    int activation; /* the same of an activation, behind this one or its pooling */
    int mean;       /* the same of a mean, behind all that */
    bool fused;     /* this node's forward is part of another's */
} mica_node;

/* One thing that a step does. Its number is its time. */
typedef struct mica_entry {
    int node;
    mica_phase phase;
    unsigned add_din;    /* bit i: input i's gradient has been written before */
    unsigned add_dparam; /* bit i: so has parameter i's (a shared parameter) */
    /* Its scratch: [ the operations' workspace | temporaries | parts of sums ] */
    size_t workspace_bytes, scratch_bytes;
    int group;
} mica_entry;

/* The block:
 *
 *   [ parameters | gradients | optimizer state | states | all else, packed by lifetime ]
 *   0            flat, aligned alike                    persistent                     total
 */

/* A piece of the packed part, used by one slot or by several that take over from one another. */
typedef struct mica_group {
    mica_span span;
    int slot; /* the first that uses it; NONE: scratch of an entry */
    int entry;
    bool gone; /* its users moved to another group */
} mica_group;

typedef struct mica_chunk mica_chunk; /* of names and options: build.c */

struct mica_net {
    mica_context *ctx;
    mica_status status; /* of the first failure while building */
    char error[MICA_ERROR_TEXT];
    mica_chunk *chunks;
    char prefix[256];               /* of names: "block0.attn." */
    unsigned char scope_start[256]; /* where each scope's name begins in it, which has at least a dot */
    int scopes;

    mica_node *nodes;
    int node_count, node_room;
    mica_slot *slots;
    int *names; /* names.c */
    int slot_count, slot_room;
    int built_slots; /* those after are gradients, made by compile */
    int name_count, name_room;

    /* Compiled. */
    bool compiled, train, debug;
    bool reordered; /* nodes are no longer as they were added */
    bool unshared;  /* for tests, which set it: every buffer has memory of its own, for all of the step */
    bool has_optimizer;
    mica_optimizer optimizer;
    const mica_net *weights;
    mica_entry *entries;
    int entry_count, entry_room, forward_count;
    mica_group *groups;
    int group_count, group_room;
    size_t flat_count;    /* elements of all parameters, padding included */
    size_t learned_count; /* of those that are learned, which come first; there are as many gradients */
    int *learned;         /* their slots, in the order of their places */
    int learned_slots, learned_room;
    size_t persistent; /* bytes of what lives from step to step */
    mica_plan plan;
    mica_plan_buffer *plan_buffers;
    mica_plan_time *plan_times;
    size_t plan_room, plan_time_room;

    /* Bound. */
    char *block;
    size_t block_bytes;
    bool owns_block;
    float *flat_parameters, *flat_gradients, *flat_optimizer[2];

    /* Stepping. A step's batch may be run in parts of at most `part_rows` samples, one after the other: see
     * batch.c. */
    mica_index built_rows; /* the batch as built */
    mica_index rows;       /* of a step */
    mica_index part_rows;  /* as planned; built_rows: in one */
    mica_index shaped;     /* the batch that all shapes are inferred for now; NONE: they are not */
    uint64_t seed, steps_taken;
    float loss;
    float gradient_norm;
    mica_watch_fn *watch; /* NULL: nobody does */
    void *watch_user;
};

/* ---- build.c ---- */

/* Records the first failure of building, which ctx already holds. */
mica_status mica_net_failed(mica_net *net, mica_status status);
/* Memory that lives as long as the net. NULL, with an error recorded, when refused. */
void *mica_net_memory(mica_net *net, size_t bytes);
const char *mica_net_text(mica_net *net, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Makes room for one more element of `bytes` in *array; 0 on success. */
mica_status mica_net_grow(mica_net *net, void *array, int count, int *room, size_t bytes);
int mica_net_new_slot(mica_net *net, const char *name, mica_buffer_kind kind, const mica_tensor *shape,
                      int node);

/* ---- names.c ---- */

/* Makes a slot or a node known by its name, once it has one. */
mica_status mica_net_name_slot(mica_net *net, int slot);
mica_status mica_net_name_node(mica_net *net, int node);
/* The slot with this name, of those that are built; or NONE. */
int mica_net_find(const mica_net *net, const char *name);
/* Whether a slot or a node has it. */
bool mica_net_name_taken(const mica_net *net, const char *name);

/* ---- infer.c ---- */

mica_status mica_net_infer(mica_net *net, int node, bool first_time);

/* ---- batch.c ---- */

/* Gives every slot the shape that follows from a batch. */
mica_status mica_net_set_rows(mica_net *net, mica_index rows);
/* Forgets a plan: every slot is as built again. */
mica_status mica_net_unplan(mica_net *net);
/* Plans for parts of so many rows: sizes of buffers follow. */
mica_status mica_net_plan_parts(mica_net *net, mica_index part_rows);
/* Points inputs and outputs at the rows of one part. */
mica_status mica_net_select_part(mica_net *net, mica_index first, mica_index rows);
/* A tensor as the caller sees it: the whole batch. */
mica_tensor mica_net_whole(const mica_net *net, int slot);

/* ---- schedule.c ---- */

/* Which life of a slot an entry of this phase reads or writes. */
static inline int mica_life(const mica_slot *slot, mica_phase phase)
{
    return phase != MICA_PHASE_FORWARD && slot->dropped ? 1 : 0;
}

/* The slot that a node's forward writes: its own, or that of the pooling, activation or mean it ends with. */
static inline int mica_forward_out(const mica_net *net, const mica_node *node)
{
    int last = node->mean != NONE ? node->mean : node->activation != NONE ? node->activation : node->pool;
    return last != NONE ? net->nodes[last].out : node->out;
}

/* ---- fuse.c ---- */

/* Changes the order of nodes where that is less work. Before shapes are inferred for a plan. */
void mica_net_reorder(mica_net *net);
/* Finds the nodes that are part of others' forwards. */
void mica_net_fuse(mica_net *net);

/* ---- schedule.c, again ---- */

/* Fills entries and makes gradient slots. Nodes are recomputed by segments of `segment_nodes` nodes; 0: none. */
mica_status mica_net_schedule(mica_net *net, int segment_nodes);

typedef void mica_use_fn(void *user, int slot, int life);
/* Everything in planned memory that an entry touches, but its scratch. */
void mica_each_use(const mica_net *net, const mica_entry *entry, mica_use_fn *use, void *user);

/* Whether a node gives the gradient of one of its inputs. */
bool mica_has_input_gradient(const mica_net *net, const mica_node *node, int input);

/* Whether a node's saved values have memory. */
bool mica_keeps_saved(const mica_net *net, const mica_node *node);

/* The slot of what the pooling that is fused into a node's forward keeps; NONE if there is none. */
int mica_forward_picks(const mica_net *net, const mica_node *node);

/* ---- lifetime.c ---- */

/* Whether a slot is a state that belongs to the net that lends its weights. */
bool mica_borrows_state(const mica_net *net, const mica_slot *slot);

/* Gives every slot its group, every group its lifetime and offset, and every parameter its place. */
mica_status mica_net_lay_out(mica_net *net);

/* ---- run.c ---- */

/* Everything that a layer's function is told, with the tensors that exist only while it runs. */
typedef struct mica_running {
    mica_step step;
    mica_tensor temp[MICA_LAYER_BUFFERS];
    mica_tensor part[MICA_LAYER_INPUTS + MICA_LAYER_BUFFERS]; /* of gradients that are added to */
    const mica_tensor *sum[MICA_LAYER_INPUTS + MICA_LAYER_BUFFERS];
    int parts;
} mica_running;

/* How a step runs. */
typedef struct mica_mode {
    bool training;
    bool add;      /* to the parameters' gradients */
    float scale;   /* of the losses' gradients */
    uint64_t step; /* whose random numbers are drawn */
} mica_mode;

/* Fills *r for an entry; *scratch is the end of what its scratch holds. */
void mica_net_prepare(const mica_net *net, const mica_entry *entry, const mica_mode *mode, mica_running *r,
                      size_t *scratch);
/* Runs it, and adds parts to their sums. */
mica_status mica_net_call(const mica_net *net, const mica_entry *entry, const mica_running *r);

/* ---- watch.c ---- */

/* What an entry is about to do. */
mica_work mica_net_work(mica_net *net, const mica_entry *entry, const mica_mode *mode);
/* And the optimizer, in one update. */
mica_work mica_net_update_work(const mica_net *net);

static inline void mica_net_tell(const mica_net *net, const mica_work *work, bool done)
{
    net->watch(net->watch_user, work, done);
}

#endif
