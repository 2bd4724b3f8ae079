/* Generating text: drawing the next token from logits, when to stop, and nets of your own that write. (Tokens and
 * vocabularies: mica/data.h; public text models: mica/model.h.)
 *
 *     mica_random dice = mica_random_stream(seed, 0);
 *     mica_generation writer;
 *     mica_generation_begin(&writer, net, "logits");
 *     for (int n = 0; n < 200; n++) {
 *         mica_generation_next(&writer, &token, &so_far, &dice, &(mica_sampling){.temperature = 0.8f});
 *         ...                                                     // print it, append it to the tokens so far
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

/* ---- Sampling ---- */

typedef struct mica_logit_bias {
    int32_t token;
    float bias; /* is added to the token's logit; -inf bans it */
} mica_logit_bias;

/* How a token is sampled. Zeros: greedy. What is given applies in this order, each to what the previous ones leave; at
 * least one token always remains:
 *
 *     bias, penalties, top_k, typical_p, top_p, min_p, temperature
 *
 * So the limits go by the model's own probabilities and mean the same at every temperature. (llama.cpp's order.) */
typedef struct mica_sampling {
    float temperature; /* divides the logits of what remains; 0: greedy, limits are ignored */
    int32_t top_k;     /* only this many of the most likely tokens; 0: all */
    float typical_p; /* only the tokens whose surprise is nearest to the entropy, with this total probability;
                        0 and 1: all */
    float top_p;     /* only the most likely tokens with this total probability; 0 and 1: all */
    float min_p;     /* only tokens at least this fraction as likely as the most likely one; 0: all */

    /* Penalties on tokens that are among the recent ones. The logit is first divided by `repeat_penalty` if positive,
     * multiplied by it if not (0 and 1: off); then `presence_penalty` is subtracted from it, and `frequency_penalty`
     * for each time that the token occurs there. */
    float repeat_penalty, presence_penalty, frequency_penalty;
    const int32_t *recent; /* [recent_count] tokens, may contain duplicates */
    size_t recent_count;

    const mica_logit_bias *bias; /* [bias_count] */
    size_t bias_count;
} mica_sampling;

/* Draws a token from logits [V], f32 and contiguous; -inf is never drawn. Takes one position of *dice (none at
 * temperature 0). The most likely token is the first of those with the largest logit. A NaN among the logits, +inf, or
 * nothing but -inf is an error.
 *
 * Of the workspace it takes nothing for the most likely token, 4 bytes for each of V where only the temperature is
 * given, 8 with bias or penalties, and with limits up to 16. */
MICA_API mica_status mica_sample(mica_context *ctx, int32_t *token, const mica_tensor *logits,
                                 mica_random *dice, const mica_sampling *sampling);

typedef struct mica_likely {
    int32_t token;
    float log_probability; /* natural logarithm */
} mica_likely;

/* The tokens that mica_sample can draw, most likely first, with their chances: after bias, penalties, limits and at the
 * temperature. `out` has room for *count, and *count becomes how many there are; top_k, or V, is enough. */
MICA_API mica_status mica_sample_probabilities(mica_context *ctx, mica_likely *out, size_t *count,
                                               const mica_tensor *logits, const mica_sampling *sampling);

/* Log-probabilities as the model gave them: at temperature 1, without bias, penalties or limits. *chosen gets that of
 * `token` (NULL: not asked for), likely[count] the most likely tokens, most likely first; at most V. Takes nothing of
 * the workspace. */
MICA_API mica_status mica_log_probabilities(mica_context *ctx, float *chosen, int32_t token,
                                            mica_likely *likely, size_t count, const mica_tensor *logits);

/* ---- Stopping ---- */

/* Finds stop strings in a text that comes in pieces. Text that could be the beginning of one is held back until that
 * is known; a text ends where the first stop string is complete, and is then without it. Where two are complete at the
 * same byte, the longer one counts. How the text is cut into pieces makes no difference. */
#define MICA_STOP_TEXTS   32  /* the most strings */
#define MICA_STOP_LONGEST 256 /* the most bytes of one */

typedef struct mica_stop {
    const char *const *texts; /* the caller's: they must live as long */
    size_t text_count;
    const int32_t *tokens; /* that end a text as well */
    size_t token_count;
    size_t bytes[MICA_STOP_TEXTS]; /* of each of the texts */
    size_t held;                   /* bytes held back: the first of texts[begun] */
    size_t begun;
    int matched; /* the text that was found; -1: none so far */
} mica_stop;

/* Checks the strings, none of which may be empty, and starts a new text. */
MICA_API mica_status mica_stop_begin(mica_context *ctx, mica_stop *stop, const char *const *texts,
                                     size_t text_count, const int32_t *tokens, size_t token_count);

/* Whether the token ends the text. */
MICA_API bool mica_stop_at_token(const mica_stop *stop, int32_t token);

/* Takes a piece of text. Writes what is certain to stay, at most bytes + MICA_STOP_LONGEST, to `out` and returns how
 * much that is. With stop->matched >= 0 the text is at its end: nothing more comes out. */
MICA_API size_t mica_stop_put(mica_stop *stop, char *out, const char *piece, size_t bytes);

/* The text is at its end: what was held back, at most MICA_STOP_LONGEST bytes, is part of it. */
MICA_API size_t mica_stop_end(mica_stop *stop, char *out);

/* ---- Nets of your own ---- */

/* A net that writes: its input is tokens [1, T], its output has logits [1, t, V] or [1, V]. */
typedef struct mica_generation {
    mica_net *net;
    const char *output; /* the caller's */
    bool cached;        /* each token is run once; else the whole window is run for each */
    mica_index run;     /* tokens of the text that the net has run */
    mica_index first;   /* of them, the first that it still sees */
} mica_generation;

/* The net is bound. `cached` becomes whether its steps continue one another (mica_net_continue). */
MICA_API mica_status mica_generation_begin(mica_generation *writer, mica_net *net, const char *output);

/* The token after tokens [n], n > 0, which are those of the call before, if there was one, and more. The last of them,
 * as many as the net's first input [1, T] holds, are what it sees. Where steps continue one another, only those that
 * are new are run. Once T are full, the net then goes on with the last half of them: a net with rotary positions, or
 * none, keeps what it has of those, another runs them again. A recurrent net without attention sees all tokens. */
MICA_API mica_status mica_generation_next(mica_generation *writer, int32_t *token, const mica_tensor *tokens,
                                          mica_random *dice, const mica_sampling *sampling);

/* The same for any tokens [n], whatever came before: the last of them are run through the net as one window. Recurrent
 * states are reset. */
MICA_API mica_status mica_generate_next(mica_net *net, int32_t *token, const char *output,
                                        const mica_tensor *tokens, mica_random *dice,
                                        const mica_sampling *sampling);

#ifdef __cplusplus
}
#endif
#endif
