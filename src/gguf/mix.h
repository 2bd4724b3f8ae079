/* Which type each tensor of a quantized file has: the mixes that files of this format usually have, tensor by tensor
 * those of llama-quantize. */
#ifndef MICA_SRC_GGUF_MIX_H
#define MICA_SRC_GGUF_MIX_H

#include <mica/gguf.h>

/* Which tensors of a kind get another type than most. */
typedef enum mica_mix_share {
    MICA_SHARE_NONE,
    MICA_SHARE_ALL,
    MICA_SHARE_MORE,      /* the first and last eighth, and every third between them */
    MICA_SHARE_EIGHTH,    /* the first eighth */
    MICA_SHARE_SIXTEENTH, /* the first sixteenth */
    MICA_SHARE_TWO,       /* the first two */
    MICA_SHARE_FOUR,
    MICA_SHARE_GROUPED, /* all, if four or more heads share keys and values */
} mica_mix_share;

typedef struct mica_mix_rule {
    mica_mix_share share;
    mica_dtype dtype;
} mica_mix_rule;

typedef struct mica_mix {
    mica_dtype dtype;
    mica_mix_rule values[2], down[2], output; /* attn_v, ffn_down, attn_output; the first that applies */
    bool wider_output;                        /* attn_output is Q5_K in models of eight experts */
} mica_mix;

/* The number of a mix in general.file_type. */
uint32_t mica_mix_number(mica_gguf_mix mix);

/* Sets to[i] for every tensor of the file. `pure`: the mix's own type wherever a tensor is quantized at all. */
mica_status mica_mix_choose(mica_context *ctx, mica_dtype *to, const mica_gguf *file, mica_gguf_mix mix,
                            bool pure);

#endif
