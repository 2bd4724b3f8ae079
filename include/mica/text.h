/* Generating text with a trained net: sampling the next token from its logits. (Tokens and vocabularies: mica/data.h.)
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

/* How a token is sampled. Zeros: greedy. Each limit applies to what the previous ones leave; at least one token
 * always remains. */
typedef struct mica_sampling {
    float temperature; /* divides the logits; 0: greedy */
    int32_t top_k;     /* only this many of the most likely tokens; 0: all */
    float top_p;       /* only the most likely tokens with this total probability; 0 and 1: all */
    float min_p;       /* only tokens at least this fraction as likely as the most likely one; 0: all */

    /* Makes recent tokens less likely: their logits are divided by `repeat_penalty` if positive, multiplied by it if
     * negative. 0 and 1: off. */
    float repeat_penalty;
    const int32_t *recent; /* [recent_count] tokens, may contain duplicates */
    size_t recent_count;
} mica_sampling;

/* Draws a token from logits [V], f32 and contiguous; -inf is never drawn. Takes one position of *dice (none at
 * temperature 0), and 8 bytes of the workspace for each of V. A NaN among the logits, or +inf, is an error. */
MICA_API mica_status mica_sample(mica_context *ctx, int32_t *token, const mica_tensor *logits,
                                 mica_random *dice, const mica_sampling *sampling);

/* The token after tokens [n], n > 0: the last of them, as many as the net's first input [1, T] holds, are run
 * through the net, and the last row of `output` [1, t, V] (or [1, V]) is sampled. Recurrent states are reset. */
MICA_API mica_status mica_generate_next(mica_net *net, int32_t *token, const char *output,
                                        const mica_tensor *tokens, mica_random *dice,
                                        const mica_sampling *sampling);

#ifdef __cplusplus
}
#endif
#endif
