/* Operations of text models: products with weights of any type, and attention over a cache.
 *
 * What each of them computes for a row does not depend on the other rows of the call, nor on how many there are, nor on
 * the number of threads: not in a single bit. So a prompt gives the same numbers in one call, in chunks of any size,
 * token by token, and beside other texts.
 *
 * None has a gradient. */
#ifndef MICA_OPS_TEXT_H
#define MICA_OPS_TEXT_H

#include <mica/ops/activation.h>
#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* y [T, N] = x [T, K] times the transposed w [N, K], plus bias [N] (NULL: none). x, y, bias: f32. w: f32, f16, bf16 or
 * block-quantized, rows of stride 1. x and y may be columns of wider rows.
 *
 * With a block-quantized w, rows of x are rounded to 8 bits, 32 values at a time: q = round(x / d), d = max |x| / 127
 * (32 values below 2^-100 count as 0). A row with a NaN or an infinity gives NaN throughout.
 * Products within such a block are exact in integers; blocks are added in f32, in order: y = fma(d_x d_w, dot, y). So
 * every instruction set gives the same bits. With other types products are f32, and their order depends on the
 * instruction set alone. */
MICA_API mica_status mica_linear_rows(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                      const mica_tensor *w, const mica_tensor *bias);

/* y [T, N] = act(a) * b, all f32; the gate of a feed-forward layer. y may be exactly a or b. */
typedef struct mica_gate_opts {
    mica_activation activation; /* silu, gelu or gelu_tanh; none: silu */
} mica_gate_opts;
MICA_API mica_status mica_gate(mica_context *ctx, const mica_tensor *y, const mica_tensor *a,
                               const mica_tensor *b, const mica_gate_opts *opts);

/* ---- Positions ---- */

/* The angles by which pairs of features turn at given positions (RoPE), for every pair i of R / 2:
 *
 *     table [T, R]       the R / 2 cosines of a row, then its sines, each times `magnitude`
 *     positions [T]      i32
 *     frequency [R / 2]  f32: the angle is position * frequency, computed in double
 */
typedef struct mica_rotary_angles_opts {
    float magnitude; /* 0: 1 */
} mica_rotary_angles_opts;
MICA_API mica_status mica_rotary_angles(mica_context *ctx, const mica_tensor *table,
                                        const mica_tensor *positions, const mica_tensor *frequency,
                                        const mica_rotary_angles_opts *opts);

/* y [T, heads * D] = x, each head's first R features turned by the row of `table` [T, R]. A pair is (i, i + R / 2), or
 * with `interleaved` (2i, 2i + 1). y may be exactly x. */
typedef struct mica_rotary_rows_opts {
    int heads; /* 0: 1 */
    bool interleaved;
} mica_rotary_rows_opts;
MICA_API mica_status mica_rotary_rows(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                      const mica_tensor *table, const mica_rotary_rows_opts *opts);

/* ---- Attention over a cache ----
 *
 * A cache holds keys and values of tokens in pages of MICA_CACHE_PAGE. Sequences own pages by a table, so several may
 * share those of a common beginning. A token's place is that in its sequence, from 0 on; page table[s][place / PAGE]
 * has it at place % PAGE.
 *
 *     keys, values   u8 [pages, mica_cache_page_bytes], contiguous; what a page looks like is private
 *     table          i32 [sequences, pages of a sequence]
 *     first          i32 [sequences]: places before it are no longer seen
 *     sequence       i32 [T]: of each row; -1: the row is left out, its y is 0
 *     place          i32 [T]
 */
#define MICA_CACHE_PAGE 32

typedef struct mica_cached_attention_opts {
    int heads, kv_heads;    /* kv_heads divides heads */
    mica_index width;       /* D: features of a head of q and k */
    mica_index value_width; /* of v; 0: D */
    int type;    /* mica_dtype of the cache: MICA_F32, MICA_F16, MICA_Q8_0 (then 32 divides both widths) */
    float scale; /* of scores; 0: 1 / sqrt(D) */
    float cap;   /* scores become cap * tanh(score / cap); 0: none */
    mica_index window; /* a token sees itself and window - 1 before it; 0: all */
    bool both_ways;    /* a token also sees later ones of the same call: not causal */
} mica_cached_attention_opts;

/* The bytes of a page of keys, and of values, for all heads. */
MICA_API size_t mica_cache_page_bytes(const mica_cached_attention_opts *opts, bool values);

typedef struct mica_cached_attention_args {
    const mica_tensor *q;             /* [T, heads * D] */
    const mica_tensor *k;             /* [T, kv_heads * D] */
    const mica_tensor *v;             /* [T, kv_heads * value_width] */
    const mica_tensor *keys, *values; /* the cache: rows of k and v are written at their places first */
    const mica_tensor *table, *first, *sequence, *place;
} mica_cached_attention_args;

/* y [T, heads * value_width]. All rows of the call are in the cache before the first is computed, so that their order
 * does not matter; consecutive places in ascending order are fastest. Pages are read only where a row sees
 * some of their places, so that table entries of others may be anything. What is out of range is an index error, and
 * nothing is written. */
MICA_API mica_status mica_cached_attention(mica_context *ctx, const mica_tensor *y,
                                           const mica_cached_attention_args *args,
                                           const mica_cached_attention_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
