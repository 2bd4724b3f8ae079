/* The model of a tokenizer.json: its tokens and merges. */
#include <math.h>
#include <string.h>

#include "io/number.h"
#include "io/quote.h"
#include "text/tokenizer_json.h"

enum {
    TYPE,
    VOCAB,
    MERGES,
    UNKNOWN,
    UNKNOWN_ID,
    FALLBACK,
    IGNORE,
    FUSE,
    PREFIX,
    SUFFIX,
    LONGEST,
    DROPOUT,
    MEMBERS
};
static const char *const names[MEMBERS] = {"type",
                                           "vocab",
                                           "merges",
                                           "unk_token",
                                           "unk_id",
                                           "byte_fallback",
                                           "ignore_merges",
                                           "fuse_unk",
                                           "continuing_subword_prefix",
                                           "end_of_word_suffix",
                                           "max_input_chars_per_word",
                                           "dropout"};

/* Files may leave out numbers of tokens, but not make them up. */
#define MOST_HOLES 65536

static mica_status put_entry(mica_tokenizer_json *f, uint64_t id, const mica_json_part *text,
                             mica_token_kind kind)
{
    mica_json_string s = mica_json_take(&f->j, text);
    mica_entry *e = &f->t->entries[id];
    if (e->text != NULL && (e->length != s.length || memcmp(e->text, s.text, s.length) != 0))
        return mica_json_wrong(&f->j, text->start, "token %llu is %s and %s", (unsigned long long)id,
                               MICA_QUOTE_N(e->text, e->length), MICA_QUOTE_N(s.text, s.length));
    if (s.length > UINT32_MAX)
        return mica_json_wrong(&f->j, text->start, "a token of %zu bytes", s.length);
    e->text = s.text;
    e->length = (uint32_t)s.length;
    e->kind = (uint8_t)kind;
    return MICA_OK;
}

/* ---- Added tokens ---- */

enum { ADDED_ID, ADDED_CONTENT, ADDED_SPECIAL, ADDED_LEFT, ADDED_RIGHT, ADDED_WORD, ADDED_MEMBERS };

static mica_status added_members(mica_tokenizer_json *f, const mica_json_part *added, mica_json_part *out,
                                 uint64_t *id)
{
    static const char *const members[] = {"id", "content", "special", "lstrip", "rstrip", "single_word"};
    MICA_TRY(mica_json_members(&f->j, added, members, out, ADDED_MEMBERS));
    if (!mica_json_number_below(&f->j, &out[ADDED_ID], INT32_MAX / 4, id) ||
        out[ADDED_CONTENT].kind != MICA_JSON_STRING)
        return mica_json_wrong(&f->j, added->start, "an added token without a number or content");
    if (mica_json_true(&out[ADDED_WORD]))
        return mica_json_wrong(&f->j, out[ADDED_WORD].start,
                               "added tokens with \"single_word\" are not known");
    return MICA_OK;
}

static mica_status put_added(mica_tokenizer_json *f)
{
    mica_json_part element, member[ADDED_MEMBERS];
    size_t at = 0;
    while (mica_json_each(&f->j, &f->added, NULL, &element, &at)) {
        uint64_t id;
        MICA_TRY(added_members(f, &element, member, &id));
        MICA_TRY(put_entry(f, id, &member[ADDED_CONTENT],
                           mica_json_true(&member[ADDED_SPECIAL]) ? MICA_TOKEN_CONTROL : MICA_TOKEN_USER));
        f->t->entries[id].strips_left = mica_json_true(&member[ADDED_LEFT]);
        f->t->entries[id].strips_right = mica_json_true(&member[ADDED_RIGHT]);
    }
    return MICA_OK;
}

/* ---- The vocabulary ---- */

/* Its tokens: {"text": number} or [["text", score]]. */
static mica_status count_tokens(mica_tokenizer_json *f, const mica_json_part *vocab, uint64_t *count)
{
    mica_json_part key, value, member[ADDED_MEMBERS];
    uint64_t most = 0, entries = 0, id;
    size_t at = 0;
    while (mica_json_each(&f->j, vocab, &key, &value, &at)) {
        id = entries++;
        if (vocab->kind == MICA_JSON_OBJECT && !mica_json_number_below(&f->j, &value, INT32_MAX / 4, &id))
            return mica_json_wrong(&f->j, value.start, "expected the number of a token");
        most = id >= most ? id + 1 : most;
    }
    at = 0;
    while (mica_json_each(&f->j, &f->added, NULL, &value, &at)) {
        MICA_TRY(added_members(f, &value, member, &id));
        most = id >= most ? id + 1 : most;
        entries++;
    }
    if (most == 0 || most > entries + MOST_HOLES)
        return mica_json_wrong(&f->j, vocab->start, "%llu tokens have numbers up to %llu",
                               (unsigned long long)entries, (unsigned long long)most);
    *count = most;
    return MICA_OK;
}

static mica_status put_scored(mica_tokenizer_json *f, const mica_json_part *pair, uint64_t id)
{
    mica_json_part text = {.kind = MICA_JSON_DONE}, score = text, more;
    size_t at = 0;
    double number = 0;
    bool right = mica_json_each(&f->j, pair, NULL, &text, &at) &&
                 mica_json_each(&f->j, pair, NULL, &score, &at) &&
                 !mica_json_each(&f->j, pair, NULL, &more, &at) && pair->kind == MICA_JSON_ARRAY &&
                 text.kind == MICA_JSON_STRING && score.kind == MICA_JSON_NUMBER &&
                 mica_parse_number(&number, f->j.text + score.start, score.end - score.start) &&
                 isfinite((float)number);
    if (!right)
        return mica_json_wrong(&f->j, pair->start, "expected a token and its score");
    MICA_TRY(put_entry(f, id, &text, MICA_TOKEN_NORMAL));
    f->t->entries[id].score = (float)number;
    return MICA_OK;
}

static mica_status put_vocabulary(mica_tokenizer_json *f, const mica_json_part *vocab)
{
    mica_tokenizer *t = f->t;
    mica_json_part key, value;
    uint64_t count = 0, id = 0;
    size_t at = 0;
    MICA_TRY(count_tokens(f, vocab, &count));
    t->info.count = (int32_t)count;
    t->entries = mica_tokenizer_take(t, (size_t)count, sizeof *t->entries);
    if (t->entries == NULL)
        return MICA_ERR_MEMORY;
    memset(t->entries, 0, (size_t)count * sizeof *t->entries);
    for (; mica_json_each(&f->j, vocab, &key, &value, &at); id++) {
        if (vocab->kind == MICA_JSON_ARRAY) {
            MICA_TRY(put_scored(f, &value, id));
        } else {
            uint64_t number = 0;
            (void)mica_json_number_below(&f->j, &value, INT32_MAX / 4, &number);
            MICA_TRY(put_entry(f, number, &key, MICA_TOKEN_NORMAL));
        }
    }
    MICA_TRY(put_added(f));
    for (int32_t i = 0; i < t->info.count; i++) /* numbers without a token */
        if (t->entries[i].text == NULL)
            t->entries[i] = (mica_entry){.text = "", .kind = MICA_TOKEN_UNUSED};
    return MICA_OK;
}

/* ---- Merges: "left right" or ["left", "right"] ---- */

static mica_status put_merge(mica_tokenizer_json *f, const mica_json_part *merge, uint32_t rank)
{
    if (merge->kind == MICA_JSON_STRING) {
        mica_json_string s = mica_json_take(&f->j, merge);
        const char *space = s.length > 1 ? memchr(s.text + 1, ' ', s.length - 1) : NULL;
        if (space == NULL)
            return mica_json_wrong(&f->j, merge->start, "a merge without a space");
        size_t left = (size_t)(space - s.text);
        mica_merges_add(f->t, rank, s.text, left, space + 1, s.length - left - 1);
        return MICA_OK;
    }
    mica_json_part left = {.kind = MICA_JSON_DONE}, right = left, more;
    size_t at = 0;
    bool pair = merge->kind == MICA_JSON_ARRAY && mica_json_each(&f->j, merge, NULL, &left, &at) &&
                mica_json_each(&f->j, merge, NULL, &right, &at) &&
                !mica_json_each(&f->j, merge, NULL, &more, &at);
    if (!pair || left.kind != MICA_JSON_STRING || right.kind != MICA_JSON_STRING)
        return mica_json_wrong(&f->j, merge->start, "expected a merge of two texts");
    mica_json_string l = mica_json_take(&f->j, &left), r = mica_json_take(&f->j, &right);
    mica_merges_add(f->t, rank, l.text, l.length, r.text, r.length);
    return MICA_OK;
}

static mica_status put_merges(mica_tokenizer_json *f, const mica_json_part *merges)
{
    mica_json_part merge;
    size_t at = 0, count = 0;
    uint32_t rank = 0;
    if (merges->kind != MICA_JSON_ARRAY)
        return mica_json_wrong(&f->j, merges->start, "expected an array of merges");
    while (mica_json_each(&f->j, merges, NULL, &merge, &at))
        count++;
    MICA_TRY(mica_merges_begin(f->t, count));
    at = 0;
    while (mica_json_each(&f->j, merges, NULL, &merge, &at))
        MICA_TRY(put_merge(f, &merge, rank++));
    return MICA_OK;
}

/* ---- Kinds of models ---- */

/* The model's own options, before the rules are read that may ask what it is. */
static mica_status take_kind(mica_tokenizer_json *f, const mica_json_part *m)
{
    mica_tokenizer *t = f->t;
    uint64_t longest;
    if (mica_json_string_is(&f->j, &m[TYPE], "BPE") ||
        (m[TYPE].kind == MICA_JSON_DONE && m[MERGES].kind == MICA_JSON_ARRAY)) {
        t->kind = MICA_TOKENIZER_BPE;
        t->ignore_merges = mica_json_true(&m[IGNORE]);
        t->unknown_fused = mica_json_true(&m[FUSE]);
    } else if (mica_json_string_is(&f->j, &m[TYPE], "WordPiece")) {
        t->kind = MICA_TOKENIZER_WORDPIECE;
        t->word_longest = mica_json_number_below(&f->j, &m[LONGEST], 1001, &longest) ? (uint32_t)longest
                                                                                     : 100;
        if (m[PREFIX].kind == MICA_JSON_STRING && !mica_json_string_is(&f->j, &m[PREFIX], "##"))
            return mica_json_wrong(&f->j, m[PREFIX].start, "expected \"##\" before parts of words");
    } else if (mica_json_string_is(&f->j, &m[TYPE], "Unigram")) {
        t->kind = MICA_TOKENIZER_UNIGRAM;
    } else {
        return mica_tokenizer_json_unknown(f, "model", &m[TYPE]);
    }
    bool bpe = t->kind == MICA_TOKENIZER_BPE;
    if (bpe && (m[PREFIX].kind == MICA_JSON_STRING || m[SUFFIX].kind == MICA_JSON_STRING)) {
        const mica_json_part *p = m[PREFIX].kind == MICA_JSON_STRING ? &m[PREFIX] : &m[SUFFIX];
        if (p->end - p->start > 2)
            return mica_json_wrong(&f->j, p->start, "BPE with prefixes or suffixes of words is not known");
    }
    if (m[DROPOUT].kind == MICA_JSON_NUMBER && !mica_json_number_below(&f->j, &m[DROPOUT], 1, &longest))
        return mica_json_wrong(&f->j, m[DROPOUT].start, "merges that are dropped at random are for training");
    if (!bpe && mica_json_true(&m[FALLBACK]))
        return mica_json_wrong(&f->j, m[FALLBACK].start, "\"byte_fallback\" is known for BPE alone");
    return MICA_OK;
}

static void find_bytes(mica_tokenizer *t, bool fallback)
{
    mica_vocabulary_bytes(t);
    for (int b = 0; b < 256 && !t->byte_level; b++) {
        if (fallback && t->bytes[b] >= 0)
            t->entries[t->bytes[b]].kind = MICA_TOKEN_BYTE;
        else
            t->bytes[b] = -1;
    }
}

static void find_unknown(mica_tokenizer_json *f, const mica_json_part *m)
{
    mica_tokenizer *t = f->t;
    uint64_t id;
    if (m[UNKNOWN].kind == MICA_JSON_STRING) {
        mica_json_string text = mica_json_take(&f->j, &m[UNKNOWN]);
        t->info.unknown = mica_token_find(t, text.text, text.length);
    } else if (mica_json_number_below(&f->j, &m[UNKNOWN_ID], (uint64_t)t->info.count, &id)) {
        t->info.unknown = (int32_t)id;
    }
    t->drops_unknown = t->info.unknown < 0;
    if (t->info.unknown >= 0) /* also where it is no added token, text does not become it */
        t->entries[t->info.unknown].kind = MICA_TOKEN_UNKNOWN;
    double least = INFINITY;
    for (int32_t i = 0; i < t->info.count; i++)
        if (t->entries[i].kind == MICA_TOKEN_NORMAL && (double)t->entries[i].score < least)
            least = (double)t->entries[i].score;
    t->unknown_score = isfinite(least) ? least - 10 : -10;
}

mica_status mica_tokenizer_json_model(mica_tokenizer_json *f)
{
    mica_tokenizer *t = f->t;
    mica_json_part m[MEMBERS];
    if (f->model.kind != MICA_JSON_OBJECT)
        return mica_json_wrong(&f->j, 0, "expected a \"model\"");
    MICA_TRY(mica_json_members(&f->j, &f->model, names, m, MEMBERS));
    MICA_TRY(take_kind(f, m));
    MICA_TRY(mica_tokenizer_json_normalizer(f, &f->normalizer));
    MICA_TRY(mica_tokenizer_json_pre_tokenizer(f, &f->pre_tokenizer));
    bool list = t->kind == MICA_TOKENIZER_UNIGRAM;
    if (m[VOCAB].kind != (list ? MICA_JSON_ARRAY : MICA_JSON_OBJECT))
        return mica_json_wrong(&f->j, f->model.start, "expected \"vocab\", %s",
                               list ? "an array" : "an object");
    MICA_TRY(put_vocabulary(f, &m[VOCAB]));
    MICA_TRY(mica_vocabulary_index(t));
    find_bytes(t, mica_json_true(&m[FALLBACK]));
    find_unknown(f, m);
    t->info.model = t->kind == MICA_TOKENIZER_WORDPIECE ? "bert"
                    : list                              ? "t5"
                    : t->byte_level                     ? "gpt2"
                                                        : "llama";
    return t->kind == MICA_TOKENIZER_BPE ? put_merges(f, &m[MERGES]) : MICA_OK;
}
