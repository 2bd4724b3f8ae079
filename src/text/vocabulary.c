/* The tables of a vocabulary: tokens by their text, merges by their parts, special tokens in order. */
#include "text/vocabulary.h"

#include <string.h>

#include "base/sort.h"
#include "io/utf8.h"

void *mica_tokenizer_take(mica_tokenizer *t, size_t count, size_t size)
{
    enum { MOST = sizeof t->blocks / sizeof t->blocks[0] };
    if (t->block_count == MOST || count > (SIZE_MAX - MICA_ALIGN) / size) {
        mica_fail(t->ctx, MICA_ERR_MEMORY, "tokenizer: %zu elements of %zu bytes cannot be had", count, size);
        return NULL;
    }
    size_t bytes = count > 0 ? count * size : size;
    void *start = mica_allocate(t->ctx, bytes);
    if (start != NULL)
        t->blocks[t->block_count++] = (mica_tokenizer_block){start, bytes};
    return start;
}

/* ---- By text ---- */

static inline uint64_t hash_byte(uint64_t hash, unsigned char byte)
{
    return (hash ^ byte) * 0x9fb21c651e98df25u;
}

static uint64_t hash_text(uint64_t hash, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        hash = hash_byte(hash, (unsigned char)text[i]);
    return hash;
}

static uint32_t hash_end(uint64_t hash)
{
    return (uint32_t)((hash ^ hash >> 29) * 0xd6e8feb86659fd93u >> 32);
}

/* Text becomes these alone: control tokens, unknown and bytes are never its meaning. */
static bool from_text(const mica_entry *e)
{
    return e->kind == MICA_TOKEN_NORMAL || e->kind == MICA_TOKEN_USER || e->kind == MICA_TOKEN_UNUSED;
}

static int32_t find_any(const mica_tokenizer *t, const char *prefix, size_t prefix_bytes, const char *text,
                        size_t length)
{
    uint32_t slot = hash_end(hash_text(hash_text(t->seed, prefix, prefix_bytes), text, length));
    for (slot &= t->slot_mask; t->slots[slot] >= 0; slot = (slot + 1) & t->slot_mask) {
        const mica_entry *e = &t->entries[t->slots[slot]];
        if (e->length == prefix_bytes + length && memcmp(e->text, prefix, prefix_bytes) == 0 &&
            memcmp(e->text + prefix_bytes, text, length) == 0)
            return t->slots[slot];
    }
    return -1;
}

int32_t mica_vocabulary_find(const mica_tokenizer *t, const char *prefix, const char *text, size_t length)
{
    if (length > t->longest)
        return -1;
    int32_t token = find_any(t, prefix, strlen(prefix), text, length);
    return token >= 0 && from_text(&t->entries[token]) ? token : -1;
}

int32_t mica_token_find(const mica_tokenizer *tokenizer, const char *text, size_t bytes)
{
    return tokenizer != NULL && text != NULL && bytes > 0 ? find_any(tokenizer, "", 0, text, bytes) : -1;
}

/* ---- Bytes as characters ---- */

/* Printable ones stand for themselves; the others, in order, for U+0100 and on. */
uint32_t mica_byte_character(unsigned char byte)
{
    if ((byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad))
        return byte;
    if (byte <= 0x20)
        return 0x100u + byte;
    return byte == 0xad ? 0x143 : 0x121u + (byte - 0x7fu);
}

int mica_character_byte(uint32_t code)
{
    if (code < 0x100)
        return mica_byte_character((unsigned char)code) == code ? (int)code : -1;
    if (code <= 0x120)
        return (int)(code - 0x100);
    return code == 0x143 ? 0xad : code < 0x143 ? (int)(code - 0x121 + 0x7f) : -1;
}

static bool same_bytes(const mica_entry *e, const unsigned char *bytes, size_t length)
{
    size_t at = 0;
    for (size_t i = 0; i < length; i++) {
        char character[MICA_UTF8_LONGEST];
        size_t n = mica_utf8_encode(character, mica_byte_character(bytes[i]));
        if (at + n > e->length || memcmp(e->text + at, character, n) != 0)
            return false;
        at += n;
    }
    return at == e->length;
}

int32_t mica_vocabulary_find_bytes(const mica_tokenizer *t, const unsigned char *bytes, size_t length)
{
    if (length > t->longest)
        return -1;
    uint64_t hash = t->seed;
    for (size_t i = 0; i < length; i++) {
        char character[MICA_UTF8_LONGEST];
        hash = hash_text(hash, character, mica_utf8_encode(character, mica_byte_character(bytes[i])));
    }
    uint32_t slot = hash_end(hash) & t->slot_mask;
    for (; t->slots[slot] >= 0; slot = (slot + 1) & t->slot_mask) {
        const mica_entry *e = &t->entries[t->slots[slot]];
        if (same_bytes(e, bytes, length))
            return from_text(e) ? t->slots[slot] : -1;
    }
    return -1;
}

void mica_vocabulary_bytes(mica_tokenizer *t)
{
    static const char digits[] = "0123456789ABCDEF";
    for (int b = 0; b < 256; b++) {
        unsigned char byte = (unsigned char)b;
        char name[] = {'<', '0', 'x', digits[b >> 4], digits[b & 15], '>'};
        t->bytes[b] = t->byte_level ? mica_vocabulary_find_bytes(t, &byte, 1) : find_any(t, "", 0, name, 6);
    }
}

/* ---- Special tokens ---- */

static int by_text(const void *a, const void *b)
{
    const mica_special *x = a, *y = b;
    int order = memcmp(x->text, y->text, x->length < y->length ? x->length : y->length);
    return order != 0 ? order : x->length < y->length ? -1 : x->length > y->length;
}

/* Half a character is none: what is cut out of a text leaves whole ones on both sides. */
static bool is_special(const mica_entry *e)
{
    return e->length > 0 && e->length <= MICA_LONGEST_TOKEN &&
           (e->kind == MICA_TOKEN_CONTROL || e->kind == MICA_TOKEN_USER || e->kind == MICA_TOKEN_UNKNOWN) &&
           mica_utf8_valid(e->text, e->length);
}

mica_status mica_vocabulary_specials(mica_tokenizer *t)
{
    size_t count = 0;
    for (int32_t i = 0; i < t->info.count; i++)
        count += is_special(&t->entries[i]);
    t->specials = mica_tokenizer_take(t, count, sizeof *t->specials);
    if (t->specials == NULL)
        return MICA_ERR_MEMORY;
    for (int32_t i = 0; i < t->info.count; i++)
        if (is_special(&t->entries[i]))
            t->specials[t->special_count++] = (mica_special){t->entries[i].text, t->entries[i].length, i};
    mica_sort(t->specials, count, sizeof *t->specials, by_text);
    size_t next = 0;
    for (unsigned byte = 0; byte <= 256; byte++) {
        while (next < count && (unsigned char)t->specials[next].text[0] < byte)
            next++;
        t->special_first[byte] = (uint32_t)next;
    }
    return MICA_OK;
}

mica_status mica_vocabulary_index(mica_tokenizer *t)
{
    size_t slots = 16;
    while (slots < 2 * (size_t)t->info.count)
        slots *= 2;
    t->slots = mica_tokenizer_take(t, slots, sizeof *t->slots);
    if (t->slots == NULL)
        return MICA_ERR_MEMORY;
    memset(t->slots, 0xff, slots * sizeof *t->slots);
    t->slot_mask = (uint32_t)(slots - 1);
    t->seed = 0x2545f4914f6cdd1du ^ (uint64_t)(uintptr_t)t->slots;
    for (int32_t i = 0; i < t->info.count; i++) {
        const mica_entry *e = &t->entries[i];
        if (e->length == 0)
            continue;
        if (e->length <= MICA_LONGEST_TOKEN && e->length > t->longest)
            t->longest = e->length;
        uint32_t slot = hash_end(hash_text(t->seed, e->text, e->length)) & t->slot_mask;
        while (t->slots[slot] >= 0 && (t->entries[t->slots[slot]].length != e->length ||
                                       memcmp(t->entries[t->slots[slot]].text, e->text, e->length) != 0))
            slot = (slot + 1) & t->slot_mask;
        t->slots[slot] = i; /* of two with the same text the later one is found */
    }
    return MICA_OK;
}

/* ---- Merges ---- */

static uint32_t hash_pair(const mica_tokenizer *t, int32_t left, int32_t right)
{
    uint64_t both = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    both = (both ^ t->seed) * 0x9fb21c651e98df25u;
    return hash_end(both ^ both >> 32);
}

mica_status mica_merges_begin(mica_tokenizer *t, size_t count)
{
    size_t slots = 16;
    if (count >= UINT32_MAX / 4)
        return mica_fail(t->ctx, MICA_ERR_FORMAT, "tokenizer: %zu merges are too many", count);
    while (slots < count + count / 2)
        slots *= 2;
    t->merges = mica_tokenizer_take(t, slots, sizeof *t->merges);
    if (t->merges == NULL)
        return MICA_ERR_MEMORY;
    memset(t->merges, 0xff, slots * sizeof *t->merges);
    t->merge_mask = (uint32_t)(slots - 1);
    return MICA_OK;
}

static mica_merge *merge_slot(const mica_tokenizer *t, int32_t left, int32_t right)
{
    uint32_t slot = hash_pair(t, left, right) & t->merge_mask;
    while (t->merges[slot].left >= 0 && (t->merges[slot].left != left || t->merges[slot].right != right))
        slot = (slot + 1) & t->merge_mask;
    return &t->merges[slot];
}

static int32_t find_joined(const mica_tokenizer *t, const char *left, size_t left_bytes, const char *right,
                           size_t right_bytes)
{
    if (left_bytes + right_bytes > t->longest)
        return -1;
    int32_t token = find_any(t, left, left_bytes, right, right_bytes);
    return token >= 0 && from_text(&t->entries[token]) ? token : -1;
}

void mica_merges_add(mica_tokenizer *t, uint32_t rank, const char *left, size_t left_bytes, const char *right,
                     size_t right_bytes)
{
    int32_t l = find_joined(t, "", 0, left, left_bytes), r = find_joined(t, "", 0, right, right_bytes);
    int32_t both = find_joined(t, left, left_bytes, right, right_bytes);
    if (l < 0 || r < 0 || both < 0)
        return;
    mica_merge *merge = merge_slot(t, l, r);
    if (merge->left < 0)
        *merge = (mica_merge){l, r, rank, both};
}

const mica_merge *mica_merge_find(const mica_tokenizer *t, int32_t left, int32_t right)
{
    if (left < 0 || right < 0)
        return NULL;
    const mica_merge *merge = merge_slot(t, left, right);
    return merge->left >= 0 ? merge : NULL;
}
