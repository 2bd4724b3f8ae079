/* The entries of all operations: src/ops/list.h, each defined in a file of this folder. */
#ifndef MICA_SRC_NODE_ENTRY_H
#define MICA_SRC_NODE_ENTRY_H

#include <mica/op.h>
#include <mica/ops.h>

#include "base/context.h"
#include "ops/list.h"

#define MICA_DECLARE_ENTRY(name, family) extern const mica_op mica_op_##name;
MICA_OPS(MICA_DECLARE_ENTRY)
#undef MICA_DECLARE_ENTRY

#if !defined(MICA_SOME_ACTIVATIONS)
#define MICA_HAS_relu       1
#define MICA_HAS_relu6      1
#define MICA_HAS_leaky_relu 1
#define MICA_HAS_elu        1
#define MICA_HAS_sigmoid    1
#define MICA_HAS_tanh       1
#define MICA_HAS_softplus   1
#define MICA_HAS_silu       1
#define MICA_HAS_gelu       1
#define MICA_HAS_gelu_tanh  1
#define MICA_HAS_hard_swish 1
#endif

/* The entries of activations by their number; NULL for MICA_NO_ACTIVATION, and for those that this build leaves out
 * (MICA_ACTIVATIONS of CMakeLists.txt: the option of a layer names any of them, so the table links them all). */
extern const mica_op *const mica_activation_ops[MICA_ACTIVATION_COUNT];

/* Not in the list: parts of layers and of gradients. */
extern const mica_op mica_op_linear;
extern const mica_op mica_op_linear_packed; /* the same, of weights that are packed once: linear_packed.c */
extern const mica_op mica_op_sum_to;        /* y = a, summed over the axes along which it is larger than y */
extern const mica_op mica_op_loss_gradient; /* y = a * weight * the step's scale */
/* The largest of windows of what conv2d gives, then the activation: outputs y and, optionally, where in its plane each
 * lay. [N, C, L] is [N, C, 1, L], as in conv2d and max_pool2d. */
typedef struct mica_conv_max_pool_opts {
    mica_conv2d_opts conv;
    mica_pooling_opts pool;
} mica_conv_max_pool_opts;
extern const mica_op mica_op_conv2d_max_pool;

/* The leading part of x, whose other inputs tell how large it is (leading.c). */
typedef struct mica_leading_opts {
    int like[MICA_MAX_RANK]; /* the number of the input that axis k is as large as; 0: as in x */
    int axis[MICA_MAX_RANK]; /* which axis of that input */
} mica_leading_opts;
extern const mica_op mica_op_leading;

struct mica_node;
struct mica_preparation;

/* What passes of compile ask of operations whose output has each element in the place of its inputs', and of those that
 * make it from what lies around: all images of such a call best lie the same way (layout.c). */
extern const struct mica_op_passes mica_elementwise_passes, mica_gathering_passes;
/* The same of those with one result for each channel. */
extern const struct mica_op_passes mica_reducing_passes;

/* ---- Sequences ---- */

extern const mica_op mica_op_embedding;        /* rows of a learned table, by index */
extern const mica_op mica_op_attention_packed; /* of queries, keys and values side by side */
extern const mica_op mica_op_attention_cached; /* the same, of tokens behind those of earlier steps */
extern const mica_op mica_op_attention_rows;   /* of queries, keys and values whose heads lie side by side */
extern const mica_op mica_op_rotary_packed;    /* of heads side by side */
extern const mica_op mica_op_add_positions;    /* a sequence plus rows of a table */
extern const mica_op mica_op_sinusoidal_table;
extern const mica_op mica_op_swiglu;

/* Of attention_packed: x [N, T, (heads + 2 kv_heads) * D]. */
typedef struct mica_attention_packed_opts {
    int heads;    /* 0: 1 */
    int kv_heads; /* that share keys and values: a divisor of heads; 0: heads */
    bool causal;  /* a token sees itself and those before it */
    float scale;  /* 0: 1 / sqrt(D) */
} mica_attention_packed_opts;

/* Of attention_cached: x as above, of one token or more, and a cache [N, tokens, 2 kv_heads * D] of keys and values,
 * which is kept: the keys and values of x are written behind those of the tokens before. What is causal is so. */
typedef struct mica_attention_cached_opts {
    mica_attention_packed_opts packed; /* first: read as such */
    int position; /* 1 + the number of the step size that says how many tokens came before; 0: none */
} mica_attention_cached_opts;

/* Of tables by position [rows, columns]: rotary_table, sinusoidal_table. */
typedef struct mica_table_opts {
    mica_index rows, columns;
    double base; /* 0: 10000 */
} mica_table_opts;

/* Of operations that read rows of such a table, one for each row of a sequence. */
typedef struct mica_positions_opts {
    int position; /* 1 + the number of the step size that says where row 0 of the sequence stands; 0: at 0 */
} mica_positions_opts;

/* Of rotary and rotary_packed, x [..., T, heads * D]. */
typedef struct mica_turn_opts {
    int position;     /* as above */
    bool interleaved; /* pairs are neighbours, not half a head apart */
    int heads;        /* packed: in x; 0: 1 */
    int turned;       /* packed: how many of them, from the first on; 0: all */
} mica_turn_opts;

/* Of lstm, gru and rnn. */
typedef struct mica_sequence_opts {
    bool last;       /* only the last step's output: [N, units] */
    bool relu;       /* rnn: instead of tanh */
    bool reverse;    /* from the last time step to the first; y stays in the order of x */
    bool time_first; /* x and y are [T, N, ...] instead of [N, T, ...] */
} mica_sequence_opts;

/* What some builds leave out: gradients where nets are only run, and samples, which are for tests. The function is
 * named but not linked. */
#define MICA_LEFT_OUT(function) ((void *)(sizeof((void (*)(void))(function)) == 0))
#if defined(MICA_NO_TRAINING)
#define MICA_GRADIENT(function) MICA_LEFT_OUT(function)
#else
#define MICA_GRADIENT(function) (function)
#endif
#if defined(MICA_SMALL)
#define MICA_SAMPLE(function)    MICA_LEFT_OUT(function)
#define MICA_RUN_ALONE(function) MICA_LEFT_OUT(function) /* of views, which nets do not run: copying */
#define MICA_LAYOUTS(passes)     NULL                    /* images lie as planes */
#else
#define MICA_LAYOUTS(passes)     (&(passes))
#define MICA_RUN_ALONE(function) (function)
#define MICA_SAMPLE(function)    (function)
#endif

/* For the entries of conv2d, conv2d_mean and linear, whose files a small build has: mica_op_passes.prepare. */
bool mica_conv2d_mean_prepare(const mica_net *net, const struct mica_node *node,
                              struct mica_preparation *how);
bool mica_conv2d_prepare(const mica_net *net, const struct mica_node *node, struct mica_preparation *how);
bool mica_linear_prepare(const mica_net *net, const struct mica_node *node, struct mica_preparation *how);

/* For the entries of lstm, gru and rnn: mica_op_passes.pair. */
mica_status mica_recurrent_pair(mica_net *net, int e);

#define MICA_FIELD_LIST(list) .fields = (list), .field_count = (int)(sizeof(list) / sizeof(list)[0])

#endif
