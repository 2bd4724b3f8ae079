/* Tokenizers of public text models: from text to tokens and back, exactly as the models were trained.
 *
 * Opening one allocates; encoding and decoding do not. */
#ifndef MICA_TOKENIZER_H
#define MICA_TOKENIZER_H

#include <mica/gguf.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mica_tokenizer mica_tokenizer;

/* Special tokens are matched in a text only if .special is set; the longest that begins at a place wins. Tokens that a
 * model's files call "user-defined" (kind 4) are always matched, as they were in training. */

/* From the settings of a GGUF file (tokenizer.ggml.*), which must outlive it; or from a tokenizer.json of Hugging Face
 * (with tokenizer_config.json beside it, if there is one). The context must outlive it, too. */
MICA_API mica_status mica_tokenizer_of_gguf(mica_context *ctx, mica_tokenizer **out, const mica_gguf *file);
MICA_API mica_status mica_tokenizer_of_json(mica_context *ctx, mica_tokenizer **out, const char *path);
MICA_API void mica_tokenizer_close(mica_tokenizer *tokenizer);

typedef enum mica_token_kind {
    MICA_TOKEN_NORMAL = 1,
    MICA_TOKEN_UNKNOWN,
    MICA_TOKEN_CONTROL,
    MICA_TOKEN_USER,
    MICA_TOKEN_UNUSED,
    MICA_TOKEN_BYTE
} mica_token_kind;

typedef struct mica_tokenizer_info {
    const char *model; /* "llama", "gpt2", "bert", "t5", ... */
    const char *pre;   /* of gpt2: the rule that cuts text into words; "" otherwise */
    int32_t count;     /* of tokens */
    int32_t bos, eos, unknown, separator, padding; /* -1: none */
    bool add_bos, add_eos;                         /* what mica_encode adds with .ends */
    const char *chat_template;                     /* NULL: none */
    size_t chat_template_bytes;
} mica_tokenizer_info;
MICA_API const mica_tokenizer_info *mica_tokenizer_about(const mica_tokenizer *tokenizer);

/* The token's text as the vocabulary has it, and its kind. */
MICA_API mica_status mica_token_text(const mica_tokenizer *tokenizer, mica_gguf_text *out,
                                     mica_token_kind *kind, int32_t token);
/* Whether generation ends at this token. */
MICA_API bool mica_token_ends(const mica_tokenizer *tokenizer, int32_t token);
/* By its exact text; -1: there is none. */
MICA_API int32_t mica_token_find(const mica_tokenizer *tokenizer, const char *text, size_t bytes);

typedef struct mica_tokenize_opts {
    bool special; /* special tokens in the text are parsed; otherwise they stay text */
    bool ends;    /* adds bos and eos where the model wants them */
} mica_tokenize_opts;

/* Scratch for texts of up to so many bytes, whatever they hold; any memory, aligned to 16. SIZE_MAX: no text may be so
 * long (128 MiB). Most of it is only used where text is invalid, or is one word. */
MICA_API size_t mica_encode_scratch(const mica_tokenizer *tokenizer, size_t text_bytes);

/* Tokens of a text, UTF-8; invalid bytes are replaced by U+FFFD, one for each maximal invalid part (as Unicode
 * recommends). *count is the room before and the number of tokens after; if the room is too small, the call fails and
 * *count is the room required. */
MICA_API mica_status mica_encode(mica_context *ctx, const mica_tokenizer *tokenizer, int32_t *tokens,
                                 size_t *count, const char *text, size_t bytes, void *scratch,
                                 size_t scratch_bytes, const mica_tokenize_opts *opts);

/* Text of tokens as they come: whole characters only; bytes of an incomplete one are held back. */
typedef struct mica_decoder {
    const mica_tokenizer *tokenizer;
    bool special; /* writes control tokens, too */
    bool begun;   /* the first token has been seen */
    unsigned char held[8];
    int held_bytes;
} mica_decoder;

MICA_API void mica_decode_begin(mica_decoder *decoder, const mica_tokenizer *tokenizer, bool special);
/* Writes the text that this token completes and returns its length: at most `size` bytes; if there is more, nothing is
 * written or changed and the length is the room that it takes. */
MICA_API size_t mica_decode_next(mica_decoder *decoder, char *text, size_t size, int32_t token);
/* What is still held back, with U+FFFD for what was not completed. */
MICA_API size_t mica_decode_end(mica_decoder *decoder, char *text, size_t size);

/* ---- Chat ---- */

typedef struct mica_chat_message {
    const char *role; /* "system", "user", "assistant" */
    const char *text;
} mica_chat_message;

/* Scratch for a chat of these messages. */
MICA_API size_t mica_chat_scratch(const mica_tokenizer *tokenizer, const mica_chat_message *messages,
                                  int message_count);

/* The messages as tokens, ending where the assistant's turn begins. Template families are recognized by their form
 * (ChatML, Llama 3, Llama 2, Mistral, Gemma, Phi-3, Zephyr); another is refused. Text within messages never becomes a
 * special token. *count as for mica_encode; scratch as mica_chat_scratch says, aligned to 16. */
MICA_API mica_status mica_chat_encode(mica_context *ctx, const mica_tokenizer *tokenizer, int32_t *tokens,
                                      size_t *count, const mica_chat_message *messages, int message_count,
                                      void *scratch, size_t scratch_bytes);

#ifdef __cplusplus
}
#endif
#endif
