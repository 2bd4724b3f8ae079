/* Tokenizers of GGUF files: the settings tokenizer.ggml.*. */
#include <math.h>
#include <string.h>

#include "io/quote.h"
#include "text/vocabulary.h"

typedef struct opening {
    mica_tokenizer *t;
    const mica_gguf *file;
} opening;

static mica_status wrong(const opening *o, const char *key, const char *text)
{
    return mica_fail(o->t->ctx, MICA_ERR_FORMAT, "tokenizer: the setting %s %s", key, text);
}

/* ---- Single settings ---- */

static bool text_setting(const opening *o, mica_gguf_text *out, const char *key)
{
    mica_gguf_value value;
    if (!mica_gguf_find(o->file, &value, key) || value.kind != MICA_GGUF_STRING)
        return false;
    *out = value.text;
    return true;
}

static void flag_setting(const opening *o, bool *out, const char *key)
{
    mica_gguf_value value;
    if (mica_gguf_find(o->file, &value, key) && value.kind == MICA_GGUF_BOOL)
        *out = value.u != 0;
}

/* A token's number; one that is not in the vocabulary is as good as none, as in llama.cpp. */
static void token_setting(const opening *o, int32_t *out, const char *key)
{
    mica_gguf_value value;
    if (*out >= o->t->info.count)
        *out = -1;
    if (!mica_gguf_find(o->file, &value, key))
        return;
    bool is_unsigned = value.kind == MICA_GGUF_U8 || value.kind == MICA_GGUF_U16 ||
                       value.kind == MICA_GGUF_U32 || value.kind == MICA_GGUF_U64;
    bool is_signed = value.kind == MICA_GGUF_I8 || value.kind == MICA_GGUF_I16 ||
                     value.kind == MICA_GGUF_I32 || value.kind == MICA_GGUF_I64;
    if (is_unsigned && value.u < (uint64_t)o->t->info.count)
        *out = (int32_t)value.u;
    else if (is_signed && value.i >= 0 && value.i < o->t->info.count)
        *out = (int32_t)value.i;
}

/* ---- Models ---- */

typedef struct model {
    const char *name;
    mica_tokenizer_kind kind;
    int32_t bos, eos, unknown, separator, padding; /* unless the file says otherwise */
    bool add_bos, add_eos, space_prefix, escape_spaces;
} model;

static const model models[] = {
    {"gpt2", MICA_TOKENIZER_BPE, 11, 11, -1, -1, -1, false, false, false, false},
    {"gemma4", MICA_TOKENIZER_BPE, -1, -1, -1, -1, -1, true, false, false, true},
    {"llama", MICA_TOKENIZER_SPM, 1, 2, 0, -1, -1, true, false, true, true},
    {"bert", MICA_TOKENIZER_WORDPIECE, 101, -1, 100, 102, 0, true, true, false, false},
    {"t5", MICA_TOKENIZER_UNIGRAM, -1, 1, 2, -1, 0, false, true, true, true},
};

static mica_status take_model(opening *o)
{
    mica_tokenizer *t = o->t;
    mica_gguf_text name;
    if (!text_setting(o, &name, "tokenizer.ggml.model"))
        return wrong(o, "tokenizer.ggml.model", "is missing, or no text");
    const model *m = NULL;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        if (strlen(models[i].name) == name.length && memcmp(models[i].name, name.bytes, name.length) == 0)
            m = &models[i];
    if (m == NULL)
        return mica_fail(t->ctx, MICA_ERR_FORMAT,
                         "tokenizer: tokenizer.ggml.model is %s; gpt2, gemma4, llama, bert and t5 are known",
                         MICA_QUOTE_N(name.bytes, name.length));
    t->kind = m->kind;
    t->info.model = m->name;
    t->info.pre = "";
    t->info.bos = m->bos;
    t->info.eos = m->eos;
    t->info.unknown = m->unknown;
    t->info.separator = m->separator;
    t->info.padding = m->padding;
    t->info.add_bos = m->add_bos;
    t->info.add_eos = m->add_eos;
    t->space_prefix = m->space_prefix;
    t->escape_spaces = m->escape_spaces;
    t->byte_level = strcmp(m->name, "gpt2") == 0;
    t->whole_newlines = strcmp(m->name, "gemma4") == 0;
    t->drops_unknown = true;
    t->word_prefix = "\xe2\x96\x81";
    t->part_prefix = "";
    t->word_longest = 100;
    t->clean = t->chinese = t->lowercase = t->strip_accents = true;
    return MICA_OK;
}

static mica_status take_cut(opening *o)
{
    mica_tokenizer *t = o->t;
    mica_gguf_text pre = {"default", 7};
    if (t->kind != MICA_TOKENIZER_BPE)
        return MICA_OK;
    if (t->whole_newlines)
        pre = (mica_gguf_text){"gemma4", 6};
    else
        (void)text_setting(o, &pre, "tokenizer.ggml.pre");
    const mica_cut_name *name = mica_cut_by_name(pre.bytes, pre.length);
    if (name == NULL || ((name->flags & MICA_CUT_OF_CHARACTERS) != 0) == t->byte_level)
        return mica_fail(t->ctx, MICA_ERR_FORMAT, "tokenizer: the rule %s of tokenizer.ggml.pre is not known",
                         MICA_QUOTE_N(pre.bytes, pre.length));
    t->info.pre = name->name;
    t->cut = name->rules;
    t->ignore_merges = (name->flags & MICA_CUT_TAKES_WORDS) != 0;
    t->info.add_bos = (name->flags & MICA_CUT_ADDS_BOS) != 0;
    return MICA_OK;
}

/* ---- The vocabulary ---- */

static mica_status take_texts(opening *o)
{
    mica_tokenizer *t = o->t;
    mica_gguf_value tokens;
    if (!mica_gguf_find(o->file, &tokens, "tokenizer.ggml.tokens") || tokens.kind != MICA_GGUF_ARRAY ||
        tokens.array.kind != MICA_GGUF_STRING || tokens.array.count == 0 ||
        tokens.array.count > INT32_MAX / 4)
        return wrong(o, "tokenizer.ggml.tokens", "is missing, empty, or no array of texts");
    t->info.count = (int32_t)tokens.array.count;
    t->entries = mica_tokenizer_take(t, tokens.array.count, sizeof *t->entries);
    if (t->entries == NULL)
        return MICA_ERR_MEMORY;
    size_t at = 0;
    for (int32_t i = 0; i < t->info.count; i++) {
        mica_gguf_text text;
        if (!mica_gguf_next_text(&tokens, &text, &at) || text.length > UINT32_MAX)
            return wrong(o, "tokenizer.ggml.tokens", "has a text that is too long");
        t->entries[i] = (mica_entry){
            .text = text.bytes, .length = (uint32_t)text.length, .kind = MICA_TOKEN_NORMAL};
    }
    return MICA_OK;
}

static mica_status take_kinds(opening *o)
{
    mica_tokenizer *t = o->t;
    mica_gguf_value kinds;
    if (!mica_gguf_find(o->file, &kinds, "tokenizer.ggml.token_type"))
        return MICA_OK;
    if (kinds.kind != MICA_GGUF_ARRAY || kinds.array.kind != MICA_GGUF_I32 ||
        kinds.array.count < (size_t)t->info.count)
        return wrong(o, "tokenizer.ggml.token_type", "is no array of an i32 for each token");
    for (int32_t i = 0; i < t->info.count; i++) {
        int64_t kind = 0;
        (void)mica_gguf_integer_at(&kinds, &kind, (size_t)i);
        if (kind >= MICA_TOKEN_NORMAL && kind <= MICA_TOKEN_BYTE)
            t->entries[i].kind = (uint8_t)kind;
        else
            t->entries[i].kind = MICA_TOKEN_UNUSED;
    }
    return MICA_OK;
}

static mica_status take_scores(opening *o)
{
    mica_tokenizer *t = o->t;
    mica_gguf_value scores;
    if (!mica_gguf_find(o->file, &scores, "tokenizer.ggml.scores")) {
        if (t->kind == MICA_TOKENIZER_SPM || t->kind == MICA_TOKENIZER_UNIGRAM)
            return wrong(o, "tokenizer.ggml.scores", "is missing");
        return MICA_OK;
    }
    if (scores.kind != MICA_GGUF_ARRAY ||
        (scores.array.kind != MICA_GGUF_F32 && scores.array.kind != MICA_GGUF_I32) ||
        scores.array.count < (size_t)t->info.count)
        return wrong(o, "tokenizer.ggml.scores", "is no array of a number for each token");
    double least = INFINITY;
    for (int32_t i = 0; i < t->info.count; i++) {
        double score = 0;
        (void)mica_gguf_number_at(&scores, &score, (size_t)i);
        if (!isfinite(score))
            return wrong(o, "tokenizer.ggml.scores", "has one that is not finite");
        t->entries[i].score = (float)score;
        if (t->entries[i].kind == MICA_TOKEN_NORMAL && score < least)
            least = score;
    }
    t->unknown_score = isfinite(least) ? least - 10 : -10;
    return MICA_OK;
}

static mica_status take_merges(opening *o)
{
    mica_tokenizer *t = o->t;
    mica_gguf_value merges;
    if (t->kind != MICA_TOKENIZER_BPE)
        return MICA_OK;
    if (!mica_gguf_find(o->file, &merges, "tokenizer.ggml.merges") || merges.kind != MICA_GGUF_ARRAY ||
        merges.array.kind != MICA_GGUF_STRING)
        return wrong(o, "tokenizer.ggml.merges", "is missing, or no array of texts");
    MICA_TRY(mica_merges_begin(t, merges.array.count));
    size_t at = 0;
    mica_gguf_text text;
    for (uint32_t i = 0; mica_gguf_next_text(&merges, &text, &at); i++) {
        const char *space = text.length > 1 ? memchr(text.bytes + 1, ' ', text.length - 1) : NULL;
        if (space == NULL)
            continue;
        size_t left = (size_t)(space - text.bytes);
        mica_merges_add(t, i, text.bytes, left, space + 1, text.length - left - 1);
    }
    return MICA_OK;
}

static void take_specials(opening *o)
{
    mica_tokenizer *t = o->t;
    if (t->kind == MICA_TOKENIZER_WORDPIECE) /* in older files; llama.cpp reads the other alone */
        token_setting(o, &t->info.bos, "tokenizer.ggml.cls_token_id");
    token_setting(o, &t->info.bos, "tokenizer.ggml.bos_token_id");
    token_setting(o, &t->info.eos, "tokenizer.ggml.eos_token_id");
    token_setting(o, &t->info.unknown, "tokenizer.ggml.unknown_token_id");
    token_setting(o, &t->info.separator, "tokenizer.ggml.seperator_token_id"); /* so it is spelled */
    token_setting(o, &t->info.padding, "tokenizer.ggml.padding_token_id");
    flag_setting(o, &t->info.add_bos, "tokenizer.ggml.add_bos_token");
    flag_setting(o, &t->info.add_eos, "tokenizer.ggml.add_eos_token");
    flag_setting(o, &t->space_prefix, "tokenizer.ggml.add_space_prefix");
    flag_setting(o, &t->merge_spaces, "tokenizer.ggml.remove_extra_whitespaces");
    if (t->kind == MICA_TOKENIZER_BPE)
        t->space_prefix = false; /* which models of this kind never had, whatever the file says */
    mica_gguf_text chat;
    if (text_setting(o, &chat, "tokenizer.chat_template")) {
        t->info.chat_template = chat.bytes;
        t->info.chat_template_bytes = chat.length;
    }
}

static mica_status take_charsmap(opening *o)
{
    mica_gguf_value map;
    if (!mica_gguf_find(o->file, &map, "tokenizer.ggml.precompiled_charsmap"))
        return MICA_OK;
    if (map.kind != MICA_GGUF_ARRAY || (map.array.kind != MICA_GGUF_U8 && map.array.kind != MICA_GGUF_I8))
        return wrong(o, "tokenizer.ggml.precompiled_charsmap", "is no array of bytes");
    return map.array.count > 0 ? mica_charsmap_open(o->t, map.array.bytes, map.array.count) : MICA_OK;
}

/* Phi-3's special tokens take the white space after them with them: nothing but its name says so. */
static void strip_phi3(opening *o)
{
    mica_gguf_text name;
    static const char *const never[] = {"<unk>", "<s>", "<|endoftext|>"};
    if (!text_setting(o, &name, "general.name") || name.length < 4)
        return;
    bool is_phi3 = false;
    for (size_t i = 0; i + 4 <= name.length && !is_phi3; i++) {
        const char *n = name.bytes + i;
        is_phi3 = (n[0] | 32) == 'p' && (n[1] | 32) == 'h' && (n[2] | 32) == 'i' &&
                  (n[3] == '3' || (n[3] == '-' && i + 5 <= name.length && n[4] == '3'));
    }
    for (int32_t i = 0; i < o->t->info.count && is_phi3; i++) {
        mica_entry *e = &o->t->entries[i];
        e->strips_right = e->kind == MICA_TOKEN_CONTROL || e->kind == MICA_TOKEN_USER ||
                          e->kind == MICA_TOKEN_UNKNOWN;
        for (size_t k = 0; k < sizeof never / sizeof never[0]; k++)
            if (strlen(never[k]) == e->length && memcmp(never[k], e->text, e->length) == 0)
                e->strips_right = false;
    }
}

static mica_status open_all(opening *o)
{
    MICA_TRY(take_model(o));
    MICA_TRY(take_cut(o));
    MICA_TRY(take_texts(o));
    MICA_TRY(take_kinds(o));
    MICA_TRY(take_scores(o));
    take_specials(o);
    MICA_TRY(mica_vocabulary_index(o->t));
    mica_vocabulary_ends(o->t);
    mica_vocabulary_bytes(o->t);
    MICA_TRY(take_merges(o));
    MICA_TRY(take_charsmap(o));
    strip_phi3(o);
    return mica_vocabulary_specials(o->t);
}

mica_status mica_tokenizer_of_gguf(mica_context *ctx, mica_tokenizer **out, const mica_gguf *file)
{
    if (out != NULL)
        *out = NULL;
    if (out == NULL || file == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "tokenizer: %s is NULL", out == NULL ? "out" : "file");
    mica_tokenizer *t = mica_allocate(ctx, sizeof *t);
    if (t == NULL)
        return MICA_ERR_MEMORY;
    memset(t, 0, sizeof *t);
    t->ctx = ctx;
    opening o = {.t = t, .file = file};
    mica_status status = open_all(&o);
    if (status != MICA_OK) {
        mica_tokenizer_close(t);
        return status;
    }
    *out = t;
    return MICA_OK;
}
