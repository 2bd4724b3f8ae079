/* A strict JSON reader (RFC 8259) that returns one token at a time.
 *
 * It neither allocates nor recurses: the nesting is a stack of bits. Text must be UTF-8, escapes must be complete
 * (no lone surrogates), and only whitespace may follow the value. Detecting duplicate keys is up to the caller, who
 * stores them.
 *
 *     mica_json json = mica_json_over(text, length);
 *     mica_json_token token;
 *     while (mica_json_next(&json, &token) && token.kind != MICA_JSON_DONE)
 *             use(&token);
 *     if (json.error != NULL)
 *             tell(json.error, json.at);
 */
#ifndef MICA_SRC_IO_JSON_H
#define MICA_SRC_IO_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum mica_json_kind {
    MICA_JSON_NULL,
    MICA_JSON_FALSE,
    MICA_JSON_TRUE,
    MICA_JSON_NUMBER,
    MICA_JSON_STRING,
    MICA_JSON_KEY,
    MICA_JSON_ARRAY, /* begins */
    MICA_JSON_ARRAY_END,
    MICA_JSON_OBJECT, /* begins */
    MICA_JSON_OBJECT_END,
    MICA_JSON_DONE, /* the text has ended where it may */
} mica_json_kind;

#define MICA_JSON_DEEPEST 64

typedef struct mica_json_token {
    mica_json_kind kind;
    size_t offset;    /* of its first byte in the text */
    const char *text; /* of a number, or of a key or string without its quotes, still escaped */
    size_t length;
} mica_json_token;

typedef struct mica_json {
    const char *text;
    size_t length;
    size_t at;         /* the next byte; after a failure, the one at fault */
    const char *error; /* what is wrong there; NULL: nothing yet */
    uint64_t objects;  /* bit d: the value open at depth d is an object */
    int depth;
    int expect; /* what may come next: json.c */
} mica_json;

mica_json mica_json_over(const char *text, size_t length);

/* The next token; false, with json->error set, if there is none. Stays at MICA_JSON_DONE, or at the failure. */
bool mica_json_next(mica_json *json, mica_json_token *token);

/* Reads on to the end of the value that `token` begins: nothing for a scalar. For values of no interest. */
bool mica_json_skip(mica_json *json, const mica_json_token *token);

/* Resolves the escapes of a key or string, never longer than it was; `out` may be its very text. Returns the
 * length; nothing is terminated. */
size_t mica_json_decode(char *out, const mica_json_token *token);

/* Whether it is a key or string, and this word: of at most 42 letters, for each may be escaped. */
bool mica_json_says(const mica_json_token *token, const char *word);

/* A number that is a whole one, not negative, written as digits; false for any other token. */
bool mica_json_unsigned(uint64_t *out, const mica_json_token *token);

const char *mica_json_kind_name(mica_json_kind kind); /* "a number" */

#endif
