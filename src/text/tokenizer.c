/* Tokenizers: what all of them share. */
#include <string.h>

#include "io/utf8.h"
#include "text/normal.h"
#include "text/repair.h"
#include "text/unicode.h"
#include "text/vocabulary.h"

void mica_tokenizer_close(mica_tokenizer *t)
{
    if (t == NULL)
        return;
    mica_context *ctx = t->ctx;
    for (int i = t->block_count - 1; i >= 0; i--)
        mica_release(ctx, t->blocks[i].start, t->blocks[i].bytes);
    mica_release(ctx, t, sizeof *t);
}

const mica_tokenizer_info *mica_tokenizer_about(const mica_tokenizer *t)
{
    return t != NULL ? &t->info : NULL;
}

mica_status mica_token_text(const mica_tokenizer *t, mica_gguf_text *out, mica_token_kind *kind,
                            int32_t token)
{
    if (t == NULL)
        return MICA_ERR_ARGUMENT;
    if (token < 0 || token >= t->info.count)
        return mica_fail(t->ctx, MICA_ERR_INDEX, "token %d: the vocabulary has %d", (int)token,
                         (int)t->info.count);
    if (out != NULL)
        *out = (mica_gguf_text){t->entries[token].text, t->entries[token].length};
    if (kind != NULL)
        *kind = (mica_token_kind)t->entries[token].kind;
    return MICA_OK;
}

bool mica_token_ends(const mica_tokenizer *t, int32_t token)
{
    return t != NULL && token >= 0 && token < t->info.count && t->entries[token].ends;
}

/* ---- Generation ends ---- */

void mica_vocabulary_ends(mica_tokenizer *t)
{
    static const char *const names[] = {
        "<|eot_id|>",
        "<|im_end|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "<end_of_turn>",
        "<|endoftext|>",
        "</s>",
        "<|eom_id|>",
        "<EOT>",
        "_<EOT>",
        "[EOT]",
        "[EOS]",
        "<|end_of_text|>",
        "<end_of_utterance>",
        "<eos>",
        "<turn|>",
        "<|tool_response>",
        "<\xef\xbd\x9c\x65nd\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>", /* of DeepSeek */
        "[e~[",
    };
    /* Gemma 4 has </s> as text. */
    bool has_tools = mica_token_find(t, "<|tool_response>", 16) >= 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int32_t token = mica_token_find(t, names[i], strlen(names[i]));
        if (token < 0 || (has_tools && strcmp(names[i], "</s>") == 0))
            continue;
        t->entries[token].ends = true;
        /* Some files call it text: a user who types it must not end a turn. */
        t->entries[token].kind = MICA_TOKEN_CONTROL;
    }
    if (t->info.eos >= 0)
        t->entries[t->info.eos].ends = true;
    /* Where these two are, <|end|> ends a message and not the turn. */
    int32_t end = mica_token_find(t, "<|end|>", 7);
    if (end >= 0 && mica_token_find(t, "<|return|>", 10) >= 0 && mica_token_find(t, "<|call|>", 8) >= 0)
        t->entries[end].ends = false;
}

/* ---- Encoding ---- */

static const struct {
    mica_encode_fn *encode;
    size_t (*scratch)(const mica_tokenizer *t, size_t bytes);
} models[] = {
    [MICA_TOKENIZER_BPE] = {mica_bpe_encode, mica_bpe_scratch},
    [MICA_TOKENIZER_SPM] = {mica_spm_encode, mica_spm_scratch},
    [MICA_TOKENIZER_WORDPIECE] = {mica_wordpiece_encode, mica_wordpiece_scratch},
    [MICA_TOKENIZER_UNIGRAM] = {mica_unigram_encode, mica_unigram_scratch},
};

#define LONGEST_TEXT ((size_t)1 << 27) /* bytes: positions are 32 bits, also where text grows */

/* Of valid text. Normal form C may make three bytes of one. */
static size_t scratch_of(const mica_tokenizer *t, size_t bytes)
{
    size_t normal = t->compose ? mica_align_up(3 * bytes) + mica_align_up(MICA_COMPOSE_SCRATCH(bytes)) : 0;
    return normal + models[t->kind].scratch(t, t->compose ? 3 * bytes : bytes) + MICA_ALIGN;
}

size_t mica_encode_scratch(const mica_tokenizer *t, size_t text_bytes)
{
    if (t == NULL || text_bytes > LONGEST_TEXT)
        return SIZE_MAX;
    /* Each invalid byte is three when it is replaced. */
    return mica_align_up(3 * text_bytes) + scratch_of(t, 3 * text_bytes);
}

/* The longest special token that begins here; NULL: none. */
static const mica_special *special_at(const mica_tokenizer *t, const char *text, size_t length, bool control)
{
    size_t low = t->special_first[(unsigned char)text[0]],
           high = t->special_first[(unsigned char)text[0] + 1];
    const mica_special *best = NULL;
    /* Those in low .. high agree with the text in its first `depth` bytes. */
    for (size_t depth = 1; low < high; depth++) {
        for (; low < high && t->specials[low].length == depth; low++) {
            int kind = t->entries[t->specials[low].token].kind;
            if (control || kind == MICA_TOKEN_USER)
                best = &t->specials[low];
        }
        if (depth == length)
            break;
        unsigned char byte = (unsigned char)text[depth];
        if (low < high && (unsigned char)t->specials[low].text[depth] == byte &&
            (unsigned char)t->specials[high - 1].text[depth] == byte)
            continue; /* and so have all between: long tokens that begin alike are no trap */
        size_t from = low, to = high;
        while (from < to) { /* the first whose next byte is not less */
            size_t middle = from + (to - from) / 2;
            if ((unsigned char)t->specials[middle].text[depth] < byte)
                from = middle + 1;
            else
                to = middle;
        }
        low = from;
        for (to = high; from < to;) { /* the first whose next byte is greater */
            size_t middle = from + (to - from) / 2;
            if ((unsigned char)t->specials[middle].text[depth] <= byte)
                from = middle + 1;
            else
                to = middle;
        }
        high = from;
    }
    return best;
}

typedef struct encoding {
    const mica_tokenizer *t;
    mica_tokens *out;
    unsigned char *scratch;
    bool after_special, first;
} encoding;

static void encode_fragment(encoding *e, const char *text, size_t length)
{
    mica_fragment f = {.text = text, .length = length, .begins = e->after_special, .first = e->first};
    unsigned char *scratch = e->scratch;
    if (length == 0)
        return;
    if (e->t->compose) {
        char *composed = (char *)scratch;
        scratch += mica_align_up(3 * length);
        f.length = mica_compose_text(composed, text, length, scratch);
        f.text = composed;
        scratch += mica_align_up(MICA_COMPOSE_SCRATCH(length));
    }
    models[e->t->kind].encode(e->t, e->out, &f, scratch);
    e->after_special = false;
    e->first = false;
}

/* Without the white space at its end. */
static size_t strip_end(const char *text, size_t from, size_t to)
{
    while (to > from) {
        size_t start = to - 1;
        uint32_t code = 0;
        while (start > from && ((unsigned char)text[start] & 0xc0) == 0x80)
            start--;
        mica_utf8_decode(&code, text + start, to - start);
        if ((mica_unicode_class(code) & MICA_UNICODE_SPACE) == 0)
            break;
        to = start;
    }
    return to;
}

static size_t strip_start(const char *text, size_t from, size_t to)
{
    while (from < to) {
        uint32_t code = 0;
        size_t n = mica_utf8_decode(&code, text + from, to - from);
        if ((mica_unicode_class(code) & MICA_UNICODE_SPACE) == 0)
            break;
        from += n;
    }
    return from;
}

static void encode_text(encoding *e, const char *text, size_t length, bool special)
{
    const mica_tokenizer *t = e->t;
    size_t from = 0, at = 0;
    while (at < length) {
        const mica_special *s = special_at(t, text + at, length - at, special);
        if (s == NULL) {
            at++;
            continue;
        }
        const mica_entry *entry = &t->entries[s->token];
        encode_fragment(e, text + from, (entry->strips_left ? strip_end(text, from, at) : at) - from);
        mica_tokens_put(e->out, s->token);
        e->after_special = true;
        e->first = false;
        at += s->length;
        at = entry->strips_right ? strip_start(text, at, length) : at;
        from = at;
    }
    encode_fragment(e, text + from, length - from);
}

mica_status mica_encode_into(mica_context *ctx, const mica_tokenizer *t, mica_tokens *out, const char *text,
                             size_t bytes, void *scratch, size_t scratch_bytes, mica_encode_how how)
{
    if (bytes > LONGEST_TEXT)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "encode: a text of %zu bytes; the most is %zu", bytes,
                         LONGEST_TEXT);
    bool valid = mica_utf8_valid(text, bytes);
    size_t clean = valid ? bytes : mica_repair(NULL, 0, text, bytes);
    size_t copy = valid ? 0 : mica_align_up(clean), wanted = copy + scratch_of(t, clean);
    size_t aligned = (size_t)(-(uintptr_t)scratch & (sizeof(uint64_t) - 1));
    if (scratch_bytes < aligned || wanted > scratch_bytes - aligned)
        return mica_fail(ctx, MICA_ERR_MEMORY,
                         "encode: %zu bytes of text take %zu bytes of scratch, there are %zu", bytes,
                         wanted + aligned, scratch_bytes);
    unsigned char *start = (unsigned char *)scratch + aligned;
    if (!valid) {
        mica_repair((char *)start, clean, text, bytes);
        text = (const char *)start;
    }
    encoding e = {.t = t, .out = out, .scratch = start + copy, .after_special = true, .first = !how.later};
    encode_text(&e, text, clean, how.special);
    return MICA_OK;
}

mica_status mica_encode(mica_context *ctx, const mica_tokenizer *t, int32_t *tokens, size_t *count,
                        const char *text, size_t bytes, void *scratch, size_t scratch_bytes,
                        const mica_tokenize_opts *opts)
{
    if (t == NULL || count == NULL || (tokens == NULL && *count > 0) || (text == NULL && bytes > 0))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "encode: %s is NULL",
                         t == NULL       ? "the tokenizer"
                         : count == NULL ? "count"
                         : text == NULL  ? "the text"
                                         : "tokens");
    mica_tokenize_opts o = opts != NULL ? *opts : (mica_tokenize_opts){.special = false};
    mica_tokens out = {.token = tokens, .room = *count};
    if (o.ends && t->info.add_bos && t->info.bos >= 0)
        mica_tokens_put(&out, t->info.bos);
    MICA_TRY(mica_encode_into(ctx, t, &out, text, bytes, scratch, scratch_bytes,
                              (mica_encode_how){.special = o.special}));
    int32_t last = t->info.eos >= 0 ? t->info.eos : t->info.separator;
    if (o.ends && t->info.add_eos && last >= 0)
        mica_tokens_put(&out, last);
    *count = out.count;
    if (out.count > out.room)
        return mica_fail(ctx, MICA_ERR_MEMORY, "encode: the text is %zu tokens, there is room for %zu",
                         out.count, out.room);
    return MICA_OK;
}
