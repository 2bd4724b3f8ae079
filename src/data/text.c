/* Text as tokens: bytes, or the characters that occur in it. */
#include <string.h>

#include <mica/data.h>

#include "io/quote.h"
#include "io/stream.h"
#include "io/utf8.h"
#include "ops/check.h"
#include "tensor/tensor.h"
#include "kernel/kernels.h"

#define BYTES 256

/* ---- Vocabularies ---- */

/* The token of a character; -1 if it is not in the vocabulary. */
static int32_t token_of(const mica_vocabulary *v, uint32_t character)
{
    for (int32_t low = 0, high = v->count; low < high;) {
        int32_t middle = low + (high - low) / 2;
        if (v->characters[middle] == character)
            return middle;
        if (v->characters[middle] > character)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

/* Walks over the characters of a text that comes from `where` (a path, for messages). */
static mica_status next_character(mica_context *ctx, uint32_t *character, size_t *at, const char *where,
                                  const char *bytes, size_t count)
{
    size_t size = mica_utf8_decode(character, bytes + *at, count - *at);
    if (size == 0)
        return mica_fail(ctx, MICA_ERR_FORMAT, "%s: byte %zu: not UTF-8", MICA_QUOTE(where), *at);
    *at += size;
    return MICA_OK;
}

/* A bit for each code point. */
typedef struct character_set {
    uint32_t bits[MICA_UNICODE_END / 32];
} character_set;

/* The characters of a text, their number, and how many there are of different ones. */
static mica_status survey(mica_context *ctx, character_set *set, size_t *characters, int32_t *different,
                          const char *where, const char *bytes, size_t count)
{
    memset(set, 0, sizeof *set);
    *characters = 0;
    *different = 0;
    for (size_t at = 0; at < count; ++*characters) {
        uint32_t c;
        MICA_TRY(next_character(ctx, &c, &at, where, bytes, count));
        uint32_t bit = (uint32_t)1 << (c % 32);
        *different += (set->bits[c / 32] & bit) == 0;
        set->bits[c / 32] |= bit;
    }
    return MICA_OK;
}

/* ---- Making tokens ---- */

/* tokens[i] of either element type. */
static void put_token(const mica_tensor *tokens, size_t i, int32_t token)
{
    if (tokens->dtype == MICA_U8)
        ((uint8_t *)tokens->data)[i] = (uint8_t)token;
    else
        ((int32_t *)tokens->data)[i] = token;
}

static mica_status encode_all(mica_context *ctx, const mica_text *text, const char *where, const char *bytes,
                              size_t count)
{
    for (size_t at = 0, i = 0; at < count; i++) {
        uint32_t c;
        size_t start = at;
        MICA_TRY(next_character(ctx, &c, &at, where, bytes, count));
        int32_t token = token_of(&text->vocabulary, c);
        if (token < 0)
            return mica_fail(ctx, MICA_ERR_FORMAT, "%s: byte %zu: %s is not in the vocabulary",
                             MICA_QUOTE(where), start, MICA_QUOTE_N(bytes + start, at - start));
        put_token(&text->tokens, i, token);
    }
    return MICA_OK;
}

/* One block: [ tokens | the vocabulary, unless it is somebody else's ] */
static mica_status make_characters(mica_context *ctx, mica_text *out, const char *where, const char *bytes,
                                   size_t count, const mica_text_opts *opts, character_set *set)
{
    size_t characters;
    int32_t different;
    MICA_TRY(survey(ctx, set, &characters, &different, where, bytes, count));
    mica_vocabulary v = {.count = different};
    if (opts->vocabulary != NULL)
        v = *opts->vocabulary;
    mica_dtype dtype = v.count <= BYTES ? MICA_U8 : MICA_I32;
    size_t own = opts->vocabulary == NULL ? (size_t)different * sizeof(uint32_t) : 0;
    size_t own_at = mica_align_up(characters * mica_dtype_bytes(dtype) + 1);
    char *block = mica_allocate(ctx, own_at + own);
    if (block == NULL)
        return ctx->status;
    *out = (mica_text){.vocabulary = v, .block = block, .bytes = own_at + own};
    if (opts->vocabulary == NULL) {
        uint32_t *to = (uint32_t *)(void *)(block + own_at);
        out->vocabulary.characters = to;
        for (uint32_t c = 0; c < MICA_UNICODE_END; c++)
            if (set->bits[c / 32] >> (c % 32) & 1)
                *to++ = c;
    }
    mica_status status = mica_tensor_init(ctx, &out->tokens, block, dtype, 1,
                                          (mica_index[]){(mica_index)characters});
    if (status == MICA_OK)
        status = encode_all(ctx, out, where, bytes, count);
    if (status != MICA_OK)
        mica_text_destroy(ctx, out);
    return status;
}

static mica_status from_bytes(mica_context *ctx, mica_text *out, const char *where, const char *bytes,
                              size_t count, const mica_text_opts *opts)
{
    character_set *set = mica_allocate(ctx, sizeof *set);
    if (set == NULL)
        return ctx->status;
    mica_status status = make_characters(ctx, out, where, bytes, count, opts, set);
    mica_release(ctx, set, sizeof *set);
    return status;
}

static bool wants_characters(const mica_text_opts *opts)
{
    return opts->vocabulary != NULL ? opts->vocabulary->characters != NULL : opts->characters;
}

/* The text is its tokens. Takes the block over. */
static mica_status as_bytes(mica_context *ctx, mica_text *out, char *block, size_t count, size_t block_bytes)
{
    *out = (mica_text){.vocabulary = {BYTES, NULL}, .block = block, .bytes = block_bytes};
    return mica_tensor_init(ctx, &out->tokens, block, MICA_U8, 1, (mica_index[]){(mica_index)count});
}

static const mica_text_opts defaults = {0};

mica_status mica_text_from_memory(mica_context *ctx, mica_text *out, const char *bytes, size_t count,
                                  const mica_text_opts *opts)
{
    if (out == NULL || (bytes == NULL && count > 0))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "text: %s is NULL", out == NULL ? "out" : "bytes");
    *out = (mica_text){0};
    if (opts == NULL)
        opts = &defaults;
    if (wants_characters(opts))
        return from_bytes(ctx, out, "memory", bytes, count, opts);
    char *block = mica_allocate(ctx, count + 1);
    if (block == NULL)
        return ctx->status;
    if (count > 0)
        memcpy(block, bytes, count);
    return as_bytes(ctx, out, block, count, count + 1);
}

mica_status mica_text_load(mica_context *ctx, mica_text *out, const char *path, const mica_text_opts *opts)
{
    if (out == NULL || path == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "text: %s is NULL", out == NULL ? "out" : "path");
    *out = (mica_text){0};
    if (opts == NULL)
        opts = &defaults;
    mica_stream stream;
    char *bytes = NULL;
    size_t count = 0;
    MICA_TRY(mica_stream_open(ctx, &stream, path));
    mica_status status = mica_stream_all(ctx, &bytes, &count, &stream);
    mica_stream_close(ctx, &stream);
    if (status != MICA_OK)
        return status;
    if (!wants_characters(opts))
        return as_bytes(ctx, out, bytes, count, count + 1);
    status = from_bytes(ctx, out, path, bytes, count, opts);
    mica_release(ctx, bytes, count + 1);
    return status;
}

void mica_text_destroy(mica_context *ctx, mica_text *text)
{
    if (text == NULL)
        return;
    mica_release(ctx, text->block, text->bytes);
    *text = (mica_text){0};
}

/* ---- Strings ---- */

mica_status mica_text_encode(mica_context *ctx, int32_t *tokens, size_t *count,
                             const mica_vocabulary *vocabulary, const char *string)
{
    static const char op[] = "text_encode";
    if (count == NULL || vocabulary == NULL || string == NULL || (tokens == NULL && *count > 0))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: an argument is NULL", op);
    size_t room = *count, used = 0, length = strlen(string);
    for (size_t at = 0, size; at < length; at += size, used++) {
        uint32_t c = (unsigned char)string[at];
        size = vocabulary->characters == NULL ? 1 : mica_utf8_decode(&c, string + at, length - at);
        int32_t token = vocabulary->characters == NULL ? (int32_t)c : size > 0 ? token_of(vocabulary, c) : -1;
        if (token < 0)
            return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: byte %zu: %s is not in the vocabulary", op, at,
                             MICA_QUOTE_N(string + at, size > 0 ? size : 1));
        if (used < room)
            tokens[used] = token;
    }
    *count = used;
    if (used > room)
        return mica_fail(ctx, MICA_ERR_MEMORY, "%s: %zu tokens, room for %zu", op, used, room);
    return MICA_OK;
}

mica_status mica_text_decode(mica_context *ctx, char *text, size_t size, const mica_vocabulary *vocabulary,
                             const mica_tensor *tokens)
{
    static const char op[] = "text_decode";
    if (text == NULL || vocabulary == NULL || size == 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: %s", op, size == 0 ? "no room" : "an argument is NULL");
    mica_arg arg = {"tokens", tokens, 0, MICA_DTYPES_ANY};
    MICA_TRY(mica_check_args(ctx, op, &arg, 1));
    size_t used = 0;
    for (mica_iter it = mica_iter_begin(tokens, 0, NULL); it.valid; mica_iter_next(&it)) {
        int32_t token;
        char bytes[MICA_UTF8_LONGEST];
        MICA_KERNEL(ctx->kernels, convert, run)(&token, MICA_I32, it.element, tokens->dtype, 1);
        if (token < 0 || token >= vocabulary->count)
            return mica_fail(ctx, MICA_ERR_INDEX, "%s: token %d, the vocabulary has %d", op, (int)token,
                             (int)vocabulary->count);
        bytes[0] = (char)token;
        size_t length = vocabulary->characters == NULL
                            ? 1
                            : mica_utf8_encode(bytes, vocabulary->characters[token]);
        if (length >= size - used)
            return mica_fail(ctx, MICA_ERR_MEMORY, "%s: the text does not fit in %zu bytes", op, size);
        memcpy(text + used, bytes, length);
        used += length;
    }
    text[used] = '\0';
    return MICA_OK;
}
