/* WordPiece (bert): words in lower case without accents, each as the longest tokens that it begins with. */
#include <string.h>

#include "io/utf8.h"
#include "text/normal.h"
#include "text/unicode.h"
#include "text/vocabulary.h"

#define WORD_BYTES 4096 /* of a word: word_longest characters of at most 4 bytes */

typedef struct splitting {
    const mica_tokenizer *t;
    mica_tokens *out;
    char *word; /* [WORD_BYTES] */
    size_t bytes;
    uint32_t characters; /* counts on beyond the longest */
} splitting;

static int32_t longest_token(const mica_tokenizer *t, const char *word, size_t at, size_t end, size_t *stop)
{
    const char *prefix = at == 0 ? t->word_prefix : t->part_prefix;
    size_t mark = strlen(t->word_prefix);
    if (at > 0 && mark > 0 && end - at >= mark && memcmp(word + at, t->word_prefix, mark) == 0)
        return -1; /* what marks a beginning in the vocabulary is no part when it stands in the text */
    for (*stop = end; *stop > at; (*stop)--) {
        if (*stop < end && ((unsigned char)word[*stop] & 0xc0) == 0x80)
            continue;
        int32_t token = mica_vocabulary_find(t, prefix, word + at, *stop - at);
        if (token >= 0)
            return token;
    }
    return -1;
}

static void end_word(splitting *s)
{
    const mica_tokenizer *t = s->t;
    size_t before = s->out->count, stop = 0;
    bool known = s->characters <= t->word_longest;
    for (size_t at = 0; known && at < s->bytes; at = stop) {
        int32_t token = longest_token(t, s->word, at, s->bytes, &stop);
        known = token >= 0;
        if (known)
            mica_tokens_put(s->out, token);
    }
    if (!known) {
        s->out->count = before;
        if (t->info.unknown >= 0)
            mica_tokens_put(s->out, t->info.unknown);
    }
    s->bytes = 0;
    s->characters = 0;
}

static void add_character(splitting *s, uint32_t code)
{
    if (s->characters++ < s->t->word_longest)
        s->bytes += mica_utf8_encode(s->word + s->bytes, code);
}

/* The CJK blocks that Hugging Face takes for Chinese: U+2B820 to U+2B91F, an omission, are none there. */
static bool is_chinese(uint32_t c)
{
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
           (c >= 0x2a700 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) || (c >= 0xf900 && c <= 0xfaff) ||
           (c >= 0x2f800 && c <= 0x2fa1f);
}

static bool is_space(uint32_t code) { return (mica_unicode_class(code) & MICA_UNICODE_SPACE) != 0; }

/* Controls and what has no character go, white space is a space, and Chinese characters stand between spaces. */
static size_t clean(const mica_tokenizer *t, char *out, const mica_fragment *f)
{
    const uint32_t others = 1u << MICA_UNICODE_CC | 1u << MICA_UNICODE_CF | 1u << MICA_UNICODE_CO;
    size_t bytes = 0;
    for (size_t at = 0; at < f->length;) {
        uint32_t code = 0;
        at += mica_utf8_decode(&code, f->text + at, f->length - at);
        if (t->clean) {
            bool line = code == '\t' || code == '\n' || code == '\r';
            if (code == 0 || code == 0xfffd || (!line && (mica_unicode_class_of_8(code) & others) != 0))
                continue;
            code = is_space(code) ? ' ' : code;
        }
        bool chinese = t->chinese && is_chinese(code);
        if (chinese)
            out[bytes++] = ' ';
        bytes += mica_utf8_encode(out + bytes, code);
        if (chinese)
            out[bytes++] = ' ';
    }
    return bytes;
}

/* A character of the normalized text: a word ends at white space, and punctuation is one by itself. */
static void take_character(splitting *s, uint32_t code)
{
    uint32_t class = mica_unicode_class_of_8(code);
    bool mark = (class & MICA_UNICODE_P) != 0 || (code < 0x80 && (class & MICA_UNICODE_S) != 0);
    bool space = is_space(code);
    if ((mark || space) && s->characters > 0)
        end_word(s);
    if (!space)
        add_character(s, code);
    if (mark)
        end_word(s);
}

static void take_lower(splitting *s, uint32_t code)
{
    uint32_t lower[2] = {code, 0};
    int count = s->t->lowercase ? mica_unicode_lower(lower, code) : 1;
    for (int i = 0; i < count; i++)
        take_character(s, lower[i]);
}

size_t mica_wordpiece_scratch(const mica_tokenizer *t, size_t bytes)
{
    size_t marks = t->strip_accents ? MICA_COMPOSE_SCRATCH(2 * bytes) : 0;
    return marks + 2 * bytes + WORD_BYTES;
}

/* Scratch: the decomposed text, if accents go; the cleaned text; a word. */
void mica_wordpiece_encode(const mica_tokenizer *t, mica_tokens *out, const mica_fragment *f, void *scratch)
{
    mica_ordered *decomposed = scratch;
    char *text = (char *)scratch + (t->strip_accents ? MICA_COMPOSE_SCRATCH(2 * f->length) : 0);
    splitting s = {.t = t, .out = out, .word = text + 2 * f->length};
    size_t length = clean(t, text, f);
    if (t->strip_accents) {
        size_t count = mica_decompose_text(decomposed, text, length);
        for (size_t i = 0; i < count; i++) {
            uint32_t code = MICA_ORDERED_CODE(decomposed[i]);
            if ((mica_unicode_class_of_8(code) & 1u << MICA_UNICODE_MN) == 0)
                take_lower(&s, code);
        }
    }
    for (size_t at = 0; at < length && !t->strip_accents;) {
        uint32_t code = 0;
        at += mica_utf8_decode(&code, text + at, length - at);
        take_lower(&s, code);
    }
    if (s.characters > 0)
        end_word(&s);
}
