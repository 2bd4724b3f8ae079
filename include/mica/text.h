/* Writing text with a trained net: the next token drawn from its logits. (Tokens and vocabularies: mica/data.h.)
 *
 *     mica_random dice = mica_random_stream(seed, 0);
 *     for (int n = 0; n < 200; n++) {
 *         mica_generate_next(net, &token, "logits", &window, &dice, &(mica_sampling){.temperature = 0.8f});
 *         ...                                                     // print it, append it to the window
 *     }
 *
 * Nothing here allocates. */
#ifndef MICA_TEXT_H
#define MICA_TEXT_H

#include <mica/net.h>
#include <mica/random.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a token is drawn. Zeros: always the likeliest. Each of the limits is applied to what the ones before it
 * leave; at least one token always stays. */
typedef struct mica_sampling {
    float
        temperature; /* logits are divided by it: below 1 is careful, above is wild; 0: the likeliest token */
    int32_t top_k;   /* only so many of the likeliest; 0: all */
    float top_p;     /* only the likeliest that together have this probability; 0 and 1: all */
    float min_p;     /* only those at least so likely as this share of the likeliest one; 0: all */

    /* Tokens that were used lately are made less likely: their logits are divided by `repeat_penalty` where
     * positive, multiplied by it where negative. 0 and 1: they are not. */
    float repeat_penalty;
    const int32_t *recent; /* [recent_count] tokens, the same one any number of times */
    size_t recent_count;
} mica_sampling;

/* Draws a token from logits [V], f32 and contiguous; -inf is never drawn. Takes one position of *dice (none at
 * temperature 0), and 8 bytes of the workspace for each of V. A NaN among the logits, or +inf, is an error. */
MICA_API mica_status mica_sample(mica_context *ctx, int32_t *token, const mica_tensor *logits,
                                 mica_random *dice, const mica_sampling *sampling);

/* The token after tokens [n], n > 0: the last of them, as many as the net's first input [1, T] holds, are run
 * through the net, and the last row of `output` [1, t, V] (or [1, V]) is sampled. Recurrent states start anew. */
MICA_API mica_status mica_generate_next(mica_net *net, int32_t *token, const char *output,
                                        const mica_tensor *tokens, mica_random *dice,
                                        const mica_sampling *sampling);

#ifdef __cplusplus
}
#endif
#endif
