/* Text models that others have trained: opened from a file, planned, run.
 *
 *     mica_model_open(ctx, &model, "smollm2.gguf");
 *     mica_session_create(model, &session, &(mica_session_opts){.context = 2048});  // the plan is known
 *     mica_session_bind(session, NULL, 0);                                          // one block
 *     mica_session_run(session, &(mica_session_piece){.tokens = prompt, .count = n, .logits = 1}, 1);
 *     mica_session_logits(session, &logits);                                        // allocates nothing, from here on
 *
 * Weights are lent to the net from the mapped file: they take no memory of their own. (But for matrices that a file has
 * transposed, as GPT-2's in a folder: the plan has copies of them.) A session is a net as any other, with a cache of
 * keys and values among what it keeps.
 *
 * A model and all of its sessions use the context that it was opened with, and so serve one thread at a time. For
 * another thread, open the file again with a context of its own: both map the same weights. */
#ifndef MICA_MODEL_H
#define MICA_MODEL_H

#include <mica/net.h>
#include <mica/tokenizer.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mica_model mica_model;

/* A GGUF file, or a folder of Hugging Face's: config.json, *.safetensors, tokenizer.json. */
MICA_API mica_status mica_model_open(mica_context *ctx, mica_model **out, const char *path);
MICA_API void mica_model_close(mica_model *model);

/* What a model is. */
typedef struct mica_model_info {
    char architecture[32]; /* "llama" */
    const char *name;      /* as the file has it; "": none */
    mica_index layers, width, heads, kv_heads, head_width, value_width, hidden;
    mica_index vocabulary, context; /* that it was trained for */
    mica_index window;              /* of layers with a sliding window; 0: none */
    size_t parameters;              /* values in all weights */
    size_t weight_bytes;            /* of the weights in the file */
    bool embeds;                    /* an embedding model: bert */
} mica_model_info;

MICA_API const mica_model_info *mica_model_about(const mica_model *model);
MICA_API const mica_tokenizer *mica_model_tokenizer(const mica_model *model);
/* The weights: their number, and each by its number; names as in GGUF. */
MICA_API size_t mica_model_weights(const mica_model *model);
/* `name` may be NULL. */
MICA_API mica_status mica_model_weight(const mica_model *model, mica_gguf_text *name, mica_tensor *out,
                                       size_t number);

/* ---- Sessions ---- */

typedef struct mica_session mica_session;

typedef enum mica_cache_type {
    MICA_CACHE_F16,
    MICA_CACHE_F32,
    MICA_CACHE_Q8_0,
    MICA_CACHE_FITTING, /* the first of f32, f16, q8_0 that fits the budget */
} mica_cache_type;

typedef struct mica_session_opts {
    mica_index context;   /* the most tokens of a sequence; 0: what the model was trained for, at most 4096 */
    mica_index sequences; /* at once; 0: 1 */
    mica_index tokens; /* in the cache, of all sequences; 0: sequences * context. Fewer do where they share */
    mica_index chunk;  /* the most tokens of one step; 0: 128, and the context of a model that embeds */
    mica_index logits; /* the most rows of logits of one run; 0: one for each sequence */
    mica_cache_type cache;
    size_t budget; /* bytes that the plan may take; 0: any */
} mica_session_opts;

/* Builds and compiles. mica_net_plan(mica_session_net(session)) says what it takes. The model must outlive it. */
MICA_API mica_status mica_session_create(const mica_model *model, mica_session **out,
                                         const mica_session_opts *opts);
MICA_API void mica_session_destroy(mica_session *session);
MICA_API mica_net *mica_session_net(mica_session *session);
MICA_API const mica_model *mica_session_model(const mica_session *session);
/* The options, with defaults filled in. */
MICA_API mica_session_opts mica_session_about(const mica_session *session);
/* Gives it its memory, as mica_net_bind does. */
MICA_API mica_status mica_session_bind(mica_session *session, void *block, size_t bytes);

/* Tokens that continue a sequence. */
typedef struct mica_session_piece {
    int sequence;
    const int32_t *tokens; /* [count] */
    mica_index count;
    mica_index logits; /* how many of the last tokens logits are wanted for */
} mica_session_piece;

/* Runs the pieces, in chunks. On failure the sequences are as before. */
MICA_API mica_status mica_session_run(mica_session *session, const mica_session_piece *pieces, int count);
/* Of the last run: f32 [rows, vocabulary], in the order of the pieces. Valid until the next. For an embedding model:
 * [pieces, width], a vector of unit length for each piece. */
MICA_API mica_status mica_session_logits(const mica_session *session, mica_tensor *out);

/* ---- Sequences ---- */

MICA_API mica_index mica_session_length(const mica_session *session, int sequence); /* tokens that are seen */
/* These tokens. Valid until the session changes. */
MICA_API mica_status mica_session_history(const mica_session *session, int sequence, const int32_t **tokens,
                                          mica_index *count);
/* Empties `to` and makes it begin with the first `count` tokens of `from`, sharing their pages. */
MICA_API mica_status mica_session_share(mica_session *session, int to, int from, mica_index count);
/* Forgets the last tokens: `length` stay. */
MICA_API mica_status mica_session_cut(mica_session *session, int sequence, mica_index length);
/* Forgets the first `count` tokens. Those that stay keep what they know of them, and positions go on, so that a
 * sequence may go on for 2^31 tokens; a model with learned positions refuses. */
MICA_API mica_status mica_session_drop(mica_session *session, int sequence, mica_index count);

/* A sequence in a file: its cache and tokens, for a session of the same model and cache type. */
MICA_API mica_status mica_session_save(mica_session *session, int sequence, const char *path);
MICA_API mica_status mica_session_restore(mica_session *session, int sequence, const char *path);

#ifdef __cplusplus
}
#endif
#endif
