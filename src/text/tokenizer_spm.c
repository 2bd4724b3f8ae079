/* SentencePiece's byte-pair encoding: neighbours merge into the token with the highest score. */
#include <string.h>

#include "io/utf8.h"
#include "text/merge.h"
#include "text/vocabulary.h"

#define ESCAPED_SPACE "\xe2\x96\x81" /* U+2581 */

size_t mica_escape_spaces(const mica_tokenizer *t, char *out, const mica_fragment *f)
{
    const char *space = t->escape_spaces ? ESCAPED_SPACE : " ";
    size_t width = t->escape_spaces ? sizeof ESCAPED_SPACE - 1 : 1, length = 0;
    bool has_space = f->length > 0 && f->text[0] == ' ';
    bool has_escaped = t->escape_spaces && f->length >= 3 && memcmp(f->text, ESCAPED_SPACE, 3) == 0;
    if (t->space_prefix && (t->prefix_first_only ? f->first : f->begins) &&
        !(t->prefix_unless_space && (has_space || has_escaped))) {
        memcpy(out, space, width);
        length = width;
    }
    for (size_t i = 0; i < f->length; i++) {
        if (f->text[i] == ' ') {
            memcpy(out + length, space, width);
            length += width;
        } else {
            out[length++] = f->text[i];
        }
    }
    return length;
}

typedef struct spelling {
    const mica_tokenizer *t;
    const char *text;
} spelling;

/* Orders scores, the highest first, as unsigned numbers. */
static uint32_t order_of(float score)
{
    union {
        float f;
        uint32_t u;
    } bits = {.f = score == 0 ? 0 : score};
    return bits.u >> 31 ? bits.u : 0x7fffffffu - bits.u;
}

static bool joins(const void *user, const mica_symbol *left, const mica_symbol *right, uint32_t *order,
                  int32_t *token)
{
    const spelling *s = user;
    *token = mica_vocabulary_find(s->t, "", s->text + left->start, (size_t)left->length + right->length);
    if (*token < 0)
        return false;
    *order = order_of(s->t->entries[*token].score);
    return true;
}

size_t mica_spm_scratch(const mica_tokenizer *t, size_t bytes)
{
    (void)t;
    return MICA_MERGE_SCRATCH(bytes + 1) + 3 * bytes + 16;
}

/* Scratch: symbols, pairs, the text with its spaces escaped. */
void mica_spm_encode(const mica_tokenizer *t, mica_tokens *out, const mica_fragment *f, void *scratch)
{
    uint64_t *pairs = scratch;
    mica_symbol *symbol = (mica_symbol *)(pairs + 2 * (f->length + 1));
    char *text = (char *)(symbol + f->length + 1);
    size_t length = mica_escape_spaces(t, text, f), count = 0;
    spelling s = {t, text};
    for (size_t at = 0; at < length; count++) {
        uint32_t code;
        size_t n = mica_utf8_decode(&code, text + at, length - at);
        symbol[count].start = (uint32_t)at;
        symbol[count].length = (uint32_t)(n > 0 ? n : 1);
        symbol[count].token = mica_vocabulary_find(t, "", text + at, symbol[count].length);
        at += symbol[count].length;
    }
    if (count == 0)
        return;
    mica_merge_all(symbol, count, pairs, joins, &s);
    for (uint32_t i = 0; i != MICA_NO_SYMBOL; i = symbol[i].next) {
        if (symbol[i].token >= 0) {
            mica_tokens_put(out, symbol[i].token);
            continue;
        }
        for (uint32_t b = 0; b < symbol[i].length; b++) {
            int32_t byte = t->bytes[(unsigned char)text[symbol[i].start + b]];
            if (byte >= 0 || t->info.unknown >= 0)
                mica_tokens_put(out, byte >= 0 ? byte : t->info.unknown);
        }
    }
}
