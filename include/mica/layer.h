/* Layers: what a node of a network does. Mica's own layers are written against this header, and so can yours
 * be.
 *
 * A layer is a constant table of functions. `infer` says what follows from the inputs: the output's shape,
 * and the parameters and other buffers that the layer wants. `forward` and `backward` get them all as tensors
 * and call operations. They are also run while measuring (mica_measure_begin), with no data: that is how a
 * plan learns what scratch they take. So they touch data only through operations, or ask mica_step_measuring
 * first. */
#ifndef MICA_LAYER_H
#define MICA_LAYER_H

#include <mica/net.h>
#include <mica/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MICA_LAYER_INPUTS  8 /* most inputs of a node */
#define MICA_LAYER_BUFFERS 8 /* most parameters of a node; also most states, saved values and temporaries */

/* ---- Infer ---- */

/* A node while its shapes are inferred. Inference is repeated when a net is resized to a smaller batch: it
 * must be a function of the inputs and options alone. */
typedef struct mica_infer {
    mica_context *ctx;
    const char *name;                         /* of the node, for messages */
    const void *opts;                         /* the layer's options; NULL if it has none */
    int inputs;                               /* how many */
    const mica_tensor *in[MICA_LAYER_INPUTS]; /* their shapes; data is NULL */
    struct mica_net *net;                     /* private, as is what follows */
    int node;
    int asked[4];
} mica_infer;

/* Every layer calls this once, when its inputs fit. */
MICA_API mica_status mica_infer_output(mica_infer *infer, mica_dtype dtype, int rank, const mica_index *dims);

/* What else the layer wants, numbered from 0 in the order of the calls, each kind by itself.
 *
 * A parameter is f32 and learned. A state is kept from step to step and not learned (running statistics); it
 * starts at `start`. A saved value lives from the node's forward to its backward. A temporary lives while one
 * of them runs. */
MICA_API mica_status mica_infer_parameter(mica_infer *infer, const char *name, int rank,
                                          const mica_index *dims, mica_init init);
/* A parameter of another node, by its full name: the next number too. Both add to its gradient. */
MICA_API mica_status mica_infer_shared(mica_infer *infer, const char *full_name, int rank,
                                       const mica_index *dims);
MICA_API mica_status mica_infer_state(mica_infer *infer, const char *name, mica_dtype dtype, int rank,
                                      const mica_index *dims, float start);
MICA_API mica_status mica_infer_saved(mica_infer *infer, mica_dtype dtype, int rank, const mica_index *dims);
MICA_API mica_status mica_infer_temporary(mica_infer *infer, mica_dtype dtype, int rank,
                                          const mica_index *dims);

/* Fails with "shape error: layer 3 "conv2" (conv2d): " and the message, which says what came and what was
 * expected, and goes on with who made the first input. */
MICA_API mica_status mica_infer_fail(mica_infer *infer, mica_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- Step ---- */

/* A node while it runs. */
typedef struct mica_step {
    mica_context *ctx;
    const void *opts;
    bool training; /* dropout drops, batch norm uses the batch's statistics */
    bool again;    /* forward runs a second time, to recompute what was not kept: states must not change */
    int inputs;
    uint64_t seed, stream; /* of random numbers: this node's own in this step */

    const mica_tensor *in[MICA_LAYER_INPUTS];
    const mica_tensor *out;
    const mica_tensor *param[MICA_LAYER_BUFFERS];
    const mica_tensor *state[MICA_LAYER_BUFFERS];
    const mica_tensor *saved[MICA_LAYER_BUFFERS];
    const mica_tensor *temp[MICA_LAYER_BUFFERS];

    float loss_scale;           /* losses only */
    mica_activation activation; /* to end with, and its slope: only with MICA_LAYER_ENDS_WITH_ACTIVATION */
    float slope;
    const void *
        pool; /* the options of a max pooling to go on with before that, as mica_net_max_pool2d keeps them, or
                         NULL: only with MICA_LAYER_ENDS_WITH_POOL */
    const mica_tensor *picks; /* where its largest lie: NULL, if nobody wants to know */
    bool mean; /* to end with the mean of each channel, after that: out is [N, C] or [N, C, 1, ...]. Only with
                  MICA_LAYER_ENDS_WITH_MEAN */

    /* Backward (and the forward of a loss). A gradient that nobody wants is NULL. */
    const mica_tensor *dout;
    const mica_tensor *din[MICA_LAYER_INPUTS];
    const mica_tensor *dparam[MICA_LAYER_BUFFERS];
    bool add_din[MICA_LAYER_INPUTS];     /* add to what is there instead of writing; only with
                                            MICA_LAYER_ADDS_INPUTS */
    bool add_dparam[MICA_LAYER_BUFFERS]; /* the same; only with MICA_LAYER_ADDS_PARAMETERS */
} mica_step;

/* Whether the step is only measured: no tensor has data. */
MICA_API bool mica_step_measuring(const mica_step *step);

/* ---- The table ---- */

enum {
    /* What backward reads. What it does not read may be gone by then. */
    MICA_LAYER_READS_INPUTS = 1,
    MICA_LAYER_READS_OUTPUT = 2,
    /* out may be exactly in[0]. */
    MICA_LAYER_IN_PLACE = 4,
    /* out is in[0] under another shape: nothing runs. */
    MICA_LAYER_VIEW = 8,
    /* backward can add to gradients itself. Without these, a sum goes through a temporary. */
    MICA_LAYER_ADDS_INPUTS = 16,
    MICA_LAYER_ADDS_PARAMETERS = 32,
    /* A loss, one number: where din[0] is given, forward writes the gradient too, times loss_scale. It has no
       backward. */
    MICA_LAYER_LOSS = 64,
    /* The inputs from number 1 on have no gradient (indices, targets, masks). */
    MICA_LAYER_FIRST_INPUT_ONLY = 128,
    /* No input has a gradient (an embedding's indices). */
    MICA_LAYER_NO_INPUT_GRADIENT = 256,
    /* din[0] may be exactly dout. */
    MICA_LAYER_BACKWARD_IN_PLACE = 512,
    /* forward can end with an activation, step->activation: a node of it behind this one is then fused into it. */
    MICA_LAYER_ENDS_WITH_ACTIVATION = 1024,
    /* An activation that can be fused: its options are mica_net_activation_opts. */
    MICA_LAYER_ACTIVATION = 2048,
    /* Saved values are written for backward alone: where there will be none, they are NULL. */
    MICA_LAYER_BACKWARD_SAVED = 4096,
    /* Temporaries are there in backward alone. */
    MICA_LAYER_BACKWARD_TEMPORARIES = 8192,
    /* States are part of what is learned (running statistics): a net with another's weights reads its states
       too, and none changes them but in training. */
    MICA_LAYER_STATES_LEARNED = 16384,
    /* An activation that never falls, and has no gradient where it does not rise (relu). Ahead of a layer whose
       output has the largest of some elements of in[0] each (max pooling), it may be applied after it instead. */
    MICA_LAYER_RISING = 32768,
    MICA_LAYER_PICKS = 65536,
    /* forward can end with the mean of each channel, step->mean: a node of it behind this one, or behind the
       activation that is fused into this one, is then fused into it, too. */
    MICA_LAYER_ENDS_WITH_MEAN = 131072,
    /* The mean of each channel (global_avg_pool). */
    MICA_LAYER_MEAN = 262144,
    /* forward can go on with max pooling, step->pool: a node of it right behind this one is then fused into it. */
    MICA_LAYER_ENDS_WITH_POOL = 524288,
    /* Max pooling of images or signals (max_pool2d, max_pool1d). */
    MICA_LAYER_MAX_POOL = 1048576,
};

typedef struct mica_layer {
    const char *name; /* "conv2d" */
    unsigned flags;
    size_t opts_bytes; /* copied into the net; starts with `const char *name` */
    mica_status (*infer)(mica_infer *infer);
    mica_status (*forward)(const mica_step *step);
    mica_status (*backward)(const mica_step *step);
} mica_layer;

/* Adds a node. Our own builders (mica/layers.h) are a line each over this. Returns 0 after a failure. */
MICA_API mica_value mica_net_add(mica_net *net, const mica_layer *layer, const void *opts,
                                 const mica_value *inputs, int count);

/* For a builder that finds its options wrong: fails the build with a message, and returns 0. */
MICA_API mica_value mica_net_refuse(mica_net *net, mica_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#ifdef __cplusplus
}
#endif
#endif
