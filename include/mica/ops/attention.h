/* Scaled dot-product attention: out = softmax(scale q k' + mask) v, for every head of every sequence.
 *
 *     q, out [B, H, Tq, D]      k, v [B, Hkv, Tk, D]      H a multiple of Hkv
 *
 * Query head h reads key head h / (H / Hkv): Hkv = H is multi-head, Hkv = 1 multi-query attention, anything
 * between is grouped. Keys are processed in tiles with an online softmax, so that no
 * [Tq, Tk] matrix ever exists; scratch is a few tiles for each thread.
 *
 * All tensors are f32. Their leading axes may have any strides, so that heads can be views of a [B, T, 3, H,
 * D] projection; one whose last axis is not contiguous is copied through the workspace. */
#ifndef MICA_OPS_ATTENTION_H
#define MICA_OPS_ATTENTION_H

#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mica_attention_opts {
    float scale; /* 0: 1 / sqrt(D) */
    bool causal; /* query i sees keys 0 to Tk - Tq + i: the last query sees all, as with a KV cache */

    /* Broadcasts to [B, H, Tq, Tk]. f32: added to the scaled scores. u8: 0 hides a key. NULL: none. */
    const mica_tensor *mask;

    /* Forward only, an output: [B, H, Tq], the logarithm of the sum of the exponentials of each query's
     * scores, for backward (-infinity where a query sees no key). NULL: not kept. */
    const mica_tensor *lse;
} mica_attention_opts;

/* A query that attends to no key gives zeros. out may be exactly q. */
MICA_API mica_status mica_attention(mica_context *ctx, const mica_tensor *out, const mica_tensor *q,
                                    const mica_tensor *k, const mica_tensor *v,
                                    const mica_attention_opts *opts);

/* Destinations of the gradients, which are overwritten, not added to. All are required. */
typedef struct mica_attention_grads {
    const mica_tensor *q; /* [B, H, Tq, D] */
    const mica_tensor *k; /* [B, Hkv, Tk, D] */
    const mica_tensor *v;
} mica_attention_grads;

/* Inputs and outputs of the forward pass. */
typedef struct mica_attention_saved {
    const mica_tensor *q, *k, *v;
    const mica_tensor *out; /* [B, H, Tq, D] */
    const mica_tensor *lse; /* [B, H, Tq] */
} mica_attention_saved;

/* Gradients by q, k and v. Scores are recomputed, tile by tile. opts as in forward (lse is not read); the
 * mask has no gradient. No gradient may overlap anything else. */
MICA_API mica_status mica_attention_backward(mica_context *ctx, const mica_attention_grads *grads,
                                             const mica_tensor *dout, const mica_attention_saved *saved,
                                             const mica_attention_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
