/* Unigram (t5): the sequence of tokens with the highest sum of scores, after the character map of SentencePiece. */
#include <float.h>
#include <string.h>

#include "io/utf8.h"
#include "text/vocabulary.h"

/* ---- The character map: a trie in a double array, whose leaves point at replacements ---- */

static uint32_t unit(const mica_tokenizer *t, size_t number)
{
    const unsigned char *b = t->charsmap + 4 * number;
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static size_t offset_of(uint32_t unit) { return (size_t)(unit >> 10) << ((unit & 1u << 9) >> 6); }

/* The longest key that the text begins with: its bytes, and what replaces it. 0: none. */
static size_t mapped(const mica_tokenizer *t, const char *text, size_t length, const char **to,
                     size_t *to_bytes)
{
    if (t->charsmap_units == 0)
        return 0;
    size_t found = 0, node = offset_of(unit(t, 0));
    for (size_t i = 0; i < length && text[i] != '\0'; i++) {
        unsigned char byte = (unsigned char)text[i];
        node ^= byte;
        if (node >= t->charsmap_units)
            break;
        uint32_t here = unit(t, node);
        if ((here & (1u << 31 | 0xff)) != byte)
            break;
        node ^= offset_of(here);
        if ((here >> 8 & 1) == 0)
            continue;
        size_t value = node < t->charsmap_units ? unit(t, node) & 0x7fffffffu : SIZE_MAX;
        if (value >= t->replacement_bytes)
            break;
        found = i + 1;
        *to = t->replacements + value;
    }
    if (found > 0)
        *to_bytes = strlen(*to); /* the last byte of them all is 0 */
    return found;
}

mica_status mica_charsmap_open(mica_tokenizer *t, const void *bytes, size_t size)
{
    const unsigned char *b = bytes;
    size_t units = size >= 4 ? (b[0] | (size_t)b[1] << 8 | (size_t)b[2] << 16 | (size_t)b[3] << 24) : 0;
    if (size < 4 || units > size - 4 || units % 4 != 0 || units == 0 || units == size - 4 || b[size - 1] != 0)
        return mica_fail(
            t->ctx, MICA_ERR_FORMAT,
            "tokenizer: a character map of %zu bytes, of which %zu are said to be its trie; expected less, "
            "and texts that end with a zero",
            size, units);
    t->charsmap = b + 4;
    t->charsmap_units = units / 4;
    t->replacements = (const char *)b + 4 + units;
    t->replacement_bytes = size - 4 - units;
    /* A byte of text becomes at most the longest replacement. */
    for (size_t at = 0, length; at < t->replacement_bytes; at += length + 1) {
        length = strlen(t->replacements + at);
        t->growth = length > t->growth ? length : t->growth;
    }
    if (t->growth > 1024)
        return mica_fail(t->ctx, MICA_ERR_FORMAT,
                         "tokenizer: a replacement of %zu bytes in the character map; at most 1024 are taken",
                         t->growth);
    return MICA_OK;
}

/* ---- Normalization ---- */

typedef struct normalizing {
    const mica_tokenizer *t;
    char *out;
    size_t bytes;
    bool in_word, prefixed;
} normalizing;

static void put_space(normalizing *n)
{
    const char *space = n->t->escape_spaces ? "\xe2\x96\x81" : " ";
    memcpy(n->out + n->bytes, space, strlen(space));
    n->bytes += strlen(space);
}

static void put_normal(normalizing *n, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == ' ') {
            n->in_word = false;
            if (!n->t->merge_spaces)
                put_space(n);
            continue;
        }
        if (!n->in_word && (n->t->merge_spaces || (n->t->space_prefix && !n->prefixed))) {
            put_space(n);
            n->prefixed = true;
        }
        n->in_word = true;
        n->out[n->bytes++] = text[i];
    }
}

static bool begins_word(const char *text, size_t at, size_t length)
{
    return length - at >= 3 && memcmp(text + at, "\xe2\x96\x81", 3) == 0;
}

static size_t normalize(const mica_tokenizer *t, char *out, const mica_fragment *f)
{
    bool spaced = f->length > 0 && (f->text[0] == ' ' || begins_word(f->text, 0, f->length));
    normalizing n = {.t = t,
                     .out = out,
                     .prefixed = t->prefix_unless_space && (spaced || (t->prefix_first_only && !f->first))};
    for (size_t at = 0; at < f->length;) {
        const char *to = NULL;
        size_t to_bytes = 0, from = mapped(t, f->text + at, f->length - at, &to, &to_bytes);
        uint32_t code;
        if (from == 0) {
            to = f->text + at;
            from = mica_utf8_decode(&code, f->text + at, f->length - at);
            to_bytes = from = from > 0 ? from : 1; /* a map can take a part of a character */
        }
        put_normal(&n, to, to_bytes);
        at += from;
    }
    if (t->keep_last_space && !n.in_word && f->length > 0)
        put_space(&n);
    return n.bytes;
}

/* ---- The best path ---- */

/* How the best sequence to here ends. */
typedef struct step {
    double score;
    uint32_t start; /* of its last token */
    int32_t token;
} step;

static void offer(step *s, double score, size_t start, int32_t token)
{
    if (score > s->score)
        *s = (step){score, (uint32_t)start, token};
}

/* All tokens that begin here. */
static bool offer_tokens(const mica_tokenizer *t, step *best, const char *text, size_t at, size_t length,
                         size_t character)
{
    bool whole = false;
    size_t most = length - at < t->longest ? length - at : t->longest;
    for (size_t n = 1; n <= most; n++) {
        if (at + n < length && ((unsigned char)text[at + n] & 0xc0) == 0x80)
            continue;
        if (n > 3 && t->words_apart && begins_word(text, at + n - 3, length))
            break;
        int32_t token = mica_vocabulary_find(t, "", text + at, n);
        if (token < 0)
            continue;
        whole = whole || n == character;
        bool user = t->entries[token].kind == MICA_TOKEN_USER;
        offer(&best[at + n], best[at].score + (user ? 0 : (double)t->entries[token].score), at, token);
    }
    return whole;
}

/* Backwards along the path, from the end of each token to its start. Unknown ones in a row are one. */
static void put_path(const mica_tokenizer *t, mica_tokens *out, step *best, const char *text, size_t length)
{
    size_t count = 0;
    bool unknown = false;
    for (size_t at = length; at > 0; at = best[at].start) {
        bool is_unknown = best[at].token == t->info.unknown;
        if (is_unknown && unknown && !(t->words_apart && begins_word(text, at, length)))
            best[at].token = -1;
        count += best[at].token >= 0; /* a vocabulary without an unknown token drops what it does not have */
        unknown = is_unknown;
    }
    out->count += count;
    size_t place = out->count;
    for (size_t at = length; at > 0; at = best[at].start)
        if (best[at].token >= 0 && --place < out->room)
            out->token[place] = best[at].token;
}

/* Bytes that a byte of text may become: a replacement, or an escaped space; and the prefix. */
static size_t most_bytes(const mica_tokenizer *t, size_t bytes)
{
    return bytes * (t->growth > 1 ? 3 * t->growth : 3) + 3;
}

size_t mica_unigram_scratch(const mica_tokenizer *t, size_t bytes)
{
    return most_bytes(t, bytes) * (1 + sizeof(step)) + sizeof(step);
}

/* Scratch: steps, the normalized text. */
void mica_unigram_encode(const mica_tokenizer *t, mica_tokens *out, const mica_fragment *f, void *scratch)
{
    step *best = scratch;
    char *text = (char *)(best + most_bytes(t, f->length) + 1);
    size_t length = normalize(t, text, f);
    for (size_t i = 0; i <= length; i++)
        best[i] = (step){i == 0 ? 0 : -DBL_MAX, 0, t->info.unknown};
    for (size_t at = 0, n; at < length; at += n) {
        uint32_t code;
        n = mica_utf8_decode(&code, text + at, length - at);
        n = n > 0 ? n : 1;
        if (!offer_tokens(t, best, text, at, length, n))
            offer(&best[at + n], best[at].score + t->unknown_score, at, t->info.unknown);
    }
    put_path(t, out, best, text, length);
}
