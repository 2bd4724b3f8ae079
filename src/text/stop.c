/* Stop strings in a text that comes in pieces. What is held back is always the beginning of one of them, so it needs no
 * room of its own. */
#include <string.h>

#include <mica/text.h>

#include "base/context.h"

mica_status mica_stop_begin(mica_context *ctx, mica_stop *stop, const char *const *texts, size_t text_count,
                            const int32_t *tokens, size_t token_count)
{
    if (stop == NULL || (texts == NULL && text_count > 0) || (tokens == NULL && token_count > 0))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "stop_begin: an argument is NULL");
    if (text_count > MICA_STOP_TEXTS)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "stop_begin: %zu stop strings: expected at most %d",
                         text_count, MICA_STOP_TEXTS);
    *stop = (mica_stop){.texts = texts,
                        .text_count = text_count,
                        .tokens = tokens,
                        .token_count = token_count,
                        .matched = -1};
    for (size_t i = 0; i < text_count; i++) {
        stop->bytes[i] = texts[i] != NULL ? strlen(texts[i]) : 0;
        if (stop->bytes[i] == 0 || stop->bytes[i] > MICA_STOP_LONGEST)
            return mica_fail(ctx, MICA_ERR_ARGUMENT,
                             "stop_begin: stop string %zu has %zu bytes: expected 1 to %d", i, stop->bytes[i],
                             MICA_STOP_LONGEST);
    }
    return MICA_OK;
}

bool mica_stop_at_token(const mica_stop *stop, int32_t token)
{
    for (size_t i = 0; i < stop->token_count; i++)
        if (stop->tokens[i] == token)
            return true;
    return false;
}

/* Whether what is held back, and then `next`, ends with the first `length` bytes of text i. */
static bool ends_with(const mica_stop *stop, char next, size_t i, size_t length)
{
    const char *text = stop->texts[i];
    return text[length - 1] == next &&
           memcmp(stop->texts[stop->begun] + stop->held - (length - 1), text, length - 1) == 0;
}

/* The longest end of the same that is the beginning of a text, or all of it: its length, 0 for none, and the text. One
 * that ends a text goes before all. */
static size_t longest_end(const mica_stop *stop, char next, size_t *which, bool *whole)
{
    size_t best = 0;
    *whole = false;
    for (size_t i = 0; i < stop->text_count; i++) {
        size_t length = stop->held + 1 < stop->bytes[i] ? stop->held + 1 : stop->bytes[i];
        if (length == stop->bytes[i] && (!*whole || length > best) && ends_with(stop, next, i, length)) {
            best = length;
            *which = i;
            *whole = true;
        }
        for (; !*whole && length > best; length--)
            if (ends_with(stop, next, i, length)) {
                best = length;
                *which = i;
            }
    }
    return best;
}

size_t mica_stop_put(mica_stop *stop, char *out, const char *piece, size_t bytes)
{
    size_t written = 0;
    for (size_t i = 0; i < bytes && stop->matched < 0; i++) {
        size_t which = 0;
        bool whole;
        size_t length = longest_end(stop, piece[i], &which, &whole);
        size_t clear = stop->held + 1 - length; /* bytes of what was held back, and then the new one */
        size_t of_held = clear < stop->held ? clear : stop->held;
        if (of_held > 0)
            memcpy(out + written, stop->texts[stop->begun], of_held);
        written += of_held;
        if (clear > of_held)
            out[written++] = piece[i];
        stop->held = whole ? 0 : length;
        stop->begun = which;
        stop->matched = whole ? (int)which : -1;
    }
    return written;
}

size_t mica_stop_end(mica_stop *stop, char *out)
{
    size_t bytes = stop->held;
    if (bytes > 0)
        memcpy(out, stop->texts[stop->begun], bytes);
    stop->held = 0;
    return bytes;
}
