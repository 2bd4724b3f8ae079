/* Layers for sequences of tokens: embeddings, positions, attention, and the transformers made of them.
 *
 * Shapes: N sequences of T tokens, C features, V tokens in the vocabulary. */
#ifndef MICA_LAYERS_TEXT_H
#define MICA_LAYERS_TEXT_H

#include <mica/layers/activation.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Embedding ---- */

/* indices [...], i32 or i64, to [..., width]: rows of weight [rows, width]. An index out of range is an error
 * of the step. A step touches no more of the weight's gradient than the rows it used, and zeroes those of the
 * step before: the other rows are 0 and must stay so. (The kept value "used" [rows] marks those that are not.) */
typedef struct mica_net_embedding_opts {
    const char *name;
    mica_index rows, width;
    mica_init weight_init; /* default: normal of deviation 1 */
} mica_net_embedding_opts;
MICA_API mica_value mica_net_embedding(mica_net *net, mica_value indices,
                                       const mica_net_embedding_opts *opts);

/* ---- Positions: x [..., T, C] plus a table of them ---- */

typedef struct mica_net_positions_opts {
    const char *name;
    mica_index rows;       /* learned: of weight [rows, C], at least T; 0: T */
    mica_init weight_init; /* learned; default: normal of deviation 0.02 */
    double base;           /* sinusoidal; 0: 10000 */
    mica_index position;   /* a size of the step (mica_net_size) that says where x begins; 0: at 0 */
} mica_net_positions_opts;
MICA_API mica_value mica_net_learned_positions(mica_net *net, mica_value x,
                                               const mica_net_positions_opts *opts);
/* Feature 2i of position t is sin(t / base^(2i / C)), feature 2i + 1 the cosine, of a table that
 * is made when the net is bound, for as many positions as x, as built, can have. */
MICA_API mica_value mica_net_sinusoidal_positions(mica_net *net, mica_value x,
                                                  const mica_net_positions_opts *opts);

/* Rotary: x [..., T, heads * D], of which the first `turned` heads are turned (mica/ops/rotary.h). */
typedef struct mica_net_rotary_opts {
    const char *name;
    int heads;        /* 0: 1 */
    int turned;       /* 0: all */
    mica_index width; /* features of each head that are turned; 0: all */
    double base;      /* 0: 10000 */
    bool interleaved;
    mica_index position; /* as above */
} mica_net_rotary_opts;
MICA_API mica_value mica_net_rotary(mica_net *net, mica_value x, const mica_net_rotary_opts *opts);

/* ---- Attention ---- */

/* The bare operation: x [N, T, (heads + 2 * kv_heads) * D], queries, keys and values side by side, to
 * [N, T, heads * D]. No [T, T] matrix is ever stored: backward computes scores again from what each row's sum
 * was. */
typedef struct mica_net_attention_opts {
    const char *name;
    int heads;    /* 0: 1 */
    int kv_heads; /* that share keys and values: a divisor of heads; 0: heads */
    bool causal;  /* a token sees itself and those before it */
    float scale;  /* 0: 1 / sqrt(D) */
    /* An input [N or 1, heads or 1, T or 1, T]: f32 is added to scores, u8 0 hides a key. 0: none */
    mica_value mask;
} mica_net_attention_opts;
MICA_API mica_value mica_net_attention(mica_net *net, mica_value x, const mica_net_attention_opts *opts);

/* Self-attention: x [N, T, C] through dense "qkv", attention, and dense "out" back to C. */
typedef struct mica_net_multi_head_attention_opts {
    const char *name;
    int heads, kv_heads;
    bool causal;
    bool no_bias;
    mica_value mask;
    bool rotary; /* queries and keys are turned by their positions */
    bool rotary_interleaved;
    double rotary_base;
    mica_init weight_init, out_init; /* of "qkv" and "out"; where given, their biases start at 0 */
} mica_net_multi_head_attention_opts;
MICA_API mica_value mica_net_multi_head_attention(mica_net *net, mica_value x,
                                                  const mica_net_multi_head_attention_opts *opts);

/* ---- Transformers ---- */

/* The last axis in two halves a and b, as silu(a) * b. */
typedef struct mica_net_swiglu_opts {
    const char *name;
} mica_net_swiglu_opts;
MICA_API mica_value mica_net_swiglu(mica_net *net, mica_value x, const mica_net_swiglu_opts *opts);

/* x [..., C] through dense "up", an activation, and dense "down" back to C. */
typedef struct mica_net_mlp_opts {
    const char *name;
    mica_index hidden;          /* 0: 4 C, or for SwiGLU 8/3 C as a multiple of 32 */
    mica_activation activation; /* none: gelu */
    bool swiglu;                /* instead of an activation; "up" makes both halves */
    bool no_bias;
    mica_init weight_init, out_init; /* of "up" and "down"; where given, their biases start at 0 */
} mica_net_mlp_opts;
MICA_API mica_value mica_net_mlp(mica_net *net, mica_value x, const mica_net_mlp_opts *opts);

/* Pre-norm: h = x + attention(norm1(x)), then h + mlp(norm2(h)), with dropout before each sum. x [N, T, C]. */
typedef struct mica_net_transformer_block_opts {
    const char *name;
    mica_net_multi_head_attention_opts attention; /* named "attention" where it has no name */
    mica_net_mlp_opts mlp;                        /* named "mlp" */
    bool rms_norm;                                /* instead of layer norm */
    float eps;                                    /* of the norms; 0: theirs */
    float dropout;
} mica_net_transformer_block_opts;
MICA_API mica_value mica_net_transformer_block(mica_net *net, mica_value x,
                                               const mica_net_transformer_block_opts *opts);

typedef enum mica_gpt_kind {
    MICA_GPT2,  /* learned positions, layer norm, gelu (tanh form) */
    MICA_LLAMA, /* rotary positions, RMS norm, SwiGLU, no biases */
} mica_gpt_kind;

/* A decoder: tokens [N, T] to logits [N, T, vocabulary]. Weights start as GPT-2's: normal of deviation 0.02,
 * that of the layers behind which a sum follows over sqrt(2 * layers). Names: "tokens", "positions", "block0"
 * ..., "norm", "head". */
typedef struct mica_net_gpt_opts {
    const char *name; /* NULL: names have no prefix */
    mica_gpt_kind kind;
    mica_index vocabulary, width;
    int layers, heads;
    int kv_heads;         /* 0: heads */
    mica_index positions; /* GPT-2: rows of the table of positions; 0: T */
    mica_index hidden;    /* of the MLP; 0: as mica_net_mlp has it */
    double rotary_base;   /* Llama; 0: 10000 */
    float eps;            /* of the norms; 0: 1e-5 */
    float dropout;
    bool tied;    /* the head's weight is that of "tokens" */
    bool no_bias; /* GPT-2 without biases */
} mica_net_gpt_opts;
MICA_API mica_value mica_net_gpt(mica_net *net, mica_value tokens, const mica_net_gpt_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
