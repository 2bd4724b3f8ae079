/* MODEL on the command line: a public text model, a GGUF file or a folder of Hugging Face's; and the session in which
 * it runs. */
#ifndef MICA_CLI_TEXT_MODEL_H
#define MICA_CLI_TEXT_MODEL_H

#include <mica/model.h>

#include "cli/verb.h"

/* For help. */
#define MODEL_HELP                                                       \
    "MODEL is one of:\n"                                                 \
    "  FILE.gguf                                  a model in one file\n" \
    "  DIR                                        with config.json, safetensors and tokenizer.json\n"

/* How large a session is. */
typedef struct session_settings {
    int64_t context, sequences, chunk; /* 0: not given */
    int cache;                         /* of session_caches; -1: not given */
    size_t budget;
} session_settings;

#define SESSION_DEFAULTS \
    {                    \
        .cache = -1      \
    }

extern const char *const session_caches[];

#define CONTEXT_TRAINED "what it was trained for, at most 4096"

/* Its options, for a field `session` of the verb's settings. */
#define SESSION_OPTIONS(settings, context_default)                                           \
    {.name = "--context",                                                                    \
     OPTION_COUNT,                                                                           \
     offsetof(settings, session.context),                                                    \
     "N",                                                                                    \
     "text model: context length in tokens (" context_default ")",                           \
     .least = 1,                                                                             \
     .most = 1 << 27},                                                                       \
        {.name = "--cache",                                                                  \
         OPTION_CHOICE,                                                                      \
         offsetof(settings, session.cache),                                                  \
         "TYPE",                                                                             \
         "text model: type of the cache (f16; with --budget fit, the most exact that fits)", \
         .choices = session_caches},                                                         \
    {                                                                                        \
        .name = "--chunk", OPTION_COUNT, offsetof(settings, session.chunk), "N",             \
        "text model: the most prompt tokens in one step (128)", .least = 1, .most = 1 << 20  \
    }

/* Whether a path looks like a text model, be it a good one or not. */
bool is_text_model(const char *path);

typedef struct text_model {
    mica_context *ctx;
    mica_model *model;
    mica_session *session;
} text_model;

/* Opens the model and makes the session, with room for so many rows of logits. The plan is known then; nothing is
 * bound. On failure it was said what is wrong, and what the program ends with is returned. */
int text_model_open(text_model *t, const verb *v, mica_context *ctx, const char *path,
                    const session_settings *set, mica_index logits);
int text_model_bind(text_model *t, const verb *v);
void text_model_close(text_model *t);

/* Bytes of what belongs to an open model and its session besides the block: the vocabulary, the net's description. */
size_t text_model_tables(const text_model *t);

/* A text as tokens, to be given to free(): with bos in front if the model wants it, or with all that it wants around a
 * text. NULL after a failure, with *code. */
typedef enum text_ends { TEXT_PLAIN, TEXT_BEGIN, TEXT_ENDS } text_ends;
int32_t *text_model_encode(const text_model *t, const verb *v, const char *text, size_t bytes, text_ends ends,
                           bool special, size_t *count, int *code);

/* Hands a failure of the library up, to where it is said. */
#define PASS_UP(call)                        \
    do {                                     \
        mica_status pass_up_status = (call); \
        if (pass_up_status != MICA_OK)       \
            return pass_up_status;           \
    } while (0)

/* All of a stream or of a file, to be given to free(), terminated; NULL after a failure, with *code. */
char *text_read_all(const verb *v, const char *path, size_t *bytes, int *code);

#endif
