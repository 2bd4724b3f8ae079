/* Byte-pair encoding: text is cut into words, and in each neighbours merge, those first that were merged first when
 * the vocabulary was made. */
#include <string.h>

#include "io/utf8.h"
#include "text/merge.h"
#include "text/vocabulary.h"

typedef struct encoding {
    const mica_tokenizer *t;
    mica_tokens *out;
    mica_symbol *symbol;
    uint64_t *pairs;
} encoding;

static bool merges(const void *user, const mica_symbol *left, const mica_symbol *right, uint32_t *order,
                   int32_t *token)
{
    const mica_merge *merge = mica_merge_find(user, left->token, right->token);
    if (merge == NULL)
        return false;
    *order = merge->rank;
    *token = merge->result;
    return true;
}

/* Symbols of a word: its bytes, or its characters. */
static size_t symbols_of(const encoding *e, const char *text, size_t length)
{
    size_t count = 0;
    for (size_t at = 0; at < length; count++) {
        mica_symbol *s = &e->symbol[count];
        uint32_t code;
        size_t n = e->t->byte_level ? 1 : mica_utf8_decode(&code, text + at, length - at);
        s->start = (uint32_t)at;
        s->length = (uint32_t)(n > 0 ? n : 1);
        s->token = e->t->byte_level ? e->t->bytes[(unsigned char)text[at]]
                                    : mica_vocabulary_find(e->t, "", text + at, s->length);
        at += s->length;
    }
    return count;
}

/* A character without a token: its bytes, if all have one; else unknown. */
static void put_unknown(const encoding *e, const char *text, size_t length, bool *unknown_before)
{
    const mica_tokenizer *t = e->t;
    bool all = true;
    for (size_t i = 0; i < length && !t->byte_level; i++)
        all = all && t->bytes[(unsigned char)text[i]] >= 0;
    if (!t->byte_level && all) {
        for (size_t i = 0; i < length; i++)
            mica_tokens_put(e->out, t->bytes[(unsigned char)text[i]]);
        *unknown_before = false;
        return;
    }
    if (!t->drops_unknown && t->info.unknown >= 0 && !(t->unknown_fused && *unknown_before))
        mica_tokens_put(e->out, t->info.unknown);
    *unknown_before = true;
}

static int32_t whole_word(const mica_tokenizer *t, const char *text, size_t length)
{
    if (t->byte_level)
        return mica_vocabulary_find_bytes(t, (const unsigned char *)text, length);
    return mica_vocabulary_find(t, "", text, length);
}

static void encode_word(void *user, const char *text, size_t length)
{
    const encoding *e = user;
    const mica_tokenizer *t = e->t;
    if (t->ignore_merges || (t->whole_newlines && text[0] == '\n')) {
        int32_t token = whole_word(t, text, length);
        if (token >= 0) {
            mica_tokens_put(e->out, token);
            return;
        }
    }
    size_t count = symbols_of(e, text, length);
    mica_merge_all(e->symbol, count, e->pairs, merges, t);
    bool unknown = false;
    for (uint32_t i = 0; i != MICA_NO_SYMBOL; i = e->symbol[i].next) {
        const mica_symbol *s = &e->symbol[i];
        if (s->token >= 0) {
            mica_tokens_put(e->out, s->token);
            unknown = false;
        } else {
            put_unknown(e, text + s->start, s->length, &unknown);
        }
    }
}

/* Of a text of so many bytes, as one word: an escaped space is one character, but three bytes. */
static size_t most_symbols(const mica_tokenizer *t, size_t bytes)
{
    return (t->byte_level && t->escape_spaces ? 3 * bytes : bytes) + 3;
}

size_t mica_bpe_scratch(const mica_tokenizer *t, size_t bytes)
{
    size_t text = t->escape_spaces || t->space_prefix ? 3 * bytes + 16 : 0;
    return MICA_MERGE_SCRATCH(most_symbols(t, bytes)) + text;
}

/* Scratch: symbols, pairs, the text with its spaces escaped. */
void mica_bpe_encode(const mica_tokenizer *t, mica_tokens *out, const mica_fragment *f, void *scratch)
{
    encoding e = {.t = t, .out = out, .pairs = scratch};
    size_t symbols = most_symbols(t, f->length);
    e.symbol = (mica_symbol *)(e.pairs + 2 * symbols);
    const char *text = f->text;
    size_t length = f->length;
    if (t->escape_spaces || t->space_prefix) {
        char *escaped = (char *)(e.symbol + symbols);
        length = mica_escape_spaces(t, escaped, f);
        text = escaped;
    }
    mica_cut_words(&t->cut, text, length, encode_word, &e);
}
