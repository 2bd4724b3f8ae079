/* What a tokenizer.json does with text before its model, and which tokens it puts around it. What is not known here is
 * refused by its name: tokens that are nearly right would be worse. */
#include <string.h>

#include "text/tokenizer_json.h"

#define UNDERLINE "\xe2\x96\x81" /* U+2581 */

typedef struct kind_of_rule {
    const char *type;
    mica_status (*take)(mica_tokenizer_json *f, const mica_json_part *part);
} kind_of_rule;

/* By its type; of a Sequence, one after the other. */
static mica_status take_rule(mica_tokenizer_json *f, const mica_json_part *part, const char *what,
                             const char *list, const kind_of_rule *rules, size_t count, int depth)
{
    const char *const names[] = {"type", list};
    mica_json_part m[2], element;
    size_t at = 0;
    if (part->kind == MICA_JSON_DONE)
        return MICA_OK;
    MICA_TRY(mica_json_members(&f->j, part, names, m, 2));
    if (mica_json_string_is(&f->j, &m[0], "Sequence") && depth < 4) {
        while (mica_json_each(&f->j, &m[1], NULL, &element, &at))
            MICA_TRY(take_rule(f, &element, what, list, rules, count, depth + 1));
        return MICA_OK;
    }
    for (size_t i = 0; i < count; i++)
        if (mica_json_string_is(&f->j, &m[0], rules[i].type))
            return rules[i].take(f, part);
    if (m[0].kind == MICA_JSON_DONE)
        m[0].start = part->start;
    return mica_tokenizer_json_unknown(f, what, &m[0]);
}

static mica_status not_here(const mica_tokenizer_json *f, const mica_json_part *part, const char *type)
{
    return mica_json_wrong(&f->j, part->start, "%s is not known with this model", type);
}

/* ---- Normalizers ---- */

static mica_status take_nfc(mica_tokenizer_json *f, const mica_json_part *part)
{
    if (f->t->kind != MICA_TOKENIZER_BPE)
        return not_here(f, part, "NFC");
    f->t->compose = true;
    return MICA_OK;
}

static mica_status take_bert(mica_tokenizer_json *f, const mica_json_part *part)
{
    static const char *const names[] = {"clean_text", "handle_chinese_chars", "strip_accents", "lowercase"};
    mica_json_part m[4];
    mica_tokenizer *t = f->t;
    if (t->kind != MICA_TOKENIZER_WORDPIECE)
        return not_here(f, part, "BertNormalizer");
    MICA_TRY(mica_json_members(&f->j, part, names, m, 4));
    t->clean = mica_json_true(&m[0]);
    t->chinese = mica_json_true(&m[1]);
    t->lowercase = mica_json_true(&m[3]);
    t->strip_accents = m[2].kind == MICA_JSON_DONE ? t->lowercase : mica_json_true(&m[2]);
    return MICA_OK;
}

static mica_status take_prepend(mica_tokenizer_json *f, const mica_json_part *part)
{
    static const char *const names[] = {"prepend"};
    mica_json_part m;
    MICA_TRY(mica_json_members(&f->j, part, names, &m, 1));
    if (f->t->kind != MICA_TOKENIZER_BPE || !mica_json_string_is(&f->j, &m, UNDERLINE))
        return not_here(f, part, "Prepend of anything but U+2581");
    f->t->space_prefix = true;
    return MICA_OK;
}

/* " " to U+2581; and several spaces to one. */
static mica_status take_replace(mica_tokenizer_json *f, const mica_json_part *part)
{
    static const char *const names[] = {"pattern", "content"}, *const kinds[] = {"String", "Regex"};
    mica_json_part m[2], pattern[2];
    mica_tokenizer *t = f->t;
    MICA_TRY(mica_json_members(&f->j, part, names, m, 2));
    MICA_TRY(mica_json_members(&f->j, &m[0], kinds, pattern, 2));
    bool escapes = mica_json_string_is(&f->j, &pattern[0], " ") &&
                   mica_json_string_is(&f->j, &m[1], UNDERLINE);
    bool joins = mica_json_string_is(&f->j, &pattern[1], " {2,}") &&
                 (mica_json_string_is(&f->j, &m[1], " ") || mica_json_string_is(&f->j, &m[1], UNDERLINE));
    if (escapes && t->kind == MICA_TOKENIZER_BPE)
        t->escape_spaces = true;
    else if (joins && t->kind == MICA_TOKENIZER_UNIGRAM)
        t->merge_spaces = t->keep_last_space = true;
    else
        return not_here(f, part, "this Replace");
    return MICA_OK;
}

static mica_status take_strip(mica_tokenizer_json *f, const mica_json_part *part)
{
    static const char *const names[] = {"strip_right"};
    mica_json_part m;
    if (f->t->kind != MICA_TOKENIZER_UNIGRAM)
        return not_here(f, part, "Strip");
    MICA_TRY(mica_json_members(&f->j, part, names, &m, 1));
    f->t->strip_last_space = mica_json_true(&m);
    return MICA_OK;
}

static int digit_of(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

/* SentencePiece's character map in base 64, decoded where it is. */
static mica_status take_precompiled(mica_tokenizer_json *f, const mica_json_part *part)
{
    static const char *const names[] = {"precompiled_charsmap"};
    mica_json_part m;
    if (f->t->kind != MICA_TOKENIZER_UNIGRAM)
        return not_here(f, part, "Precompiled");
    MICA_TRY(mica_json_members(&f->j, part, names, &m, 1));
    if (m.kind == MICA_JSON_DONE)
        return MICA_OK;
    if (m.kind != MICA_JSON_STRING)
        return mica_json_wrong(&f->j, m.start, "expected a text in base 64");
    mica_json_string s = mica_json_take(&f->j, &m);
    unsigned char *out = (unsigned char *)f->j.text + m.start + 1;
    size_t bytes = 0;
    uint32_t bits = 0;
    int held = 0;
    for (size_t i = 0; i < s.length && s.text[i] != '='; i++) {
        int digit = digit_of(s.text[i]);
        if (digit < 0)
            return mica_json_wrong(&f->j, m.start, "a character map that is not in base 64");
        bits = bits << 6 | (uint32_t)digit;
        held += 6;
        if (held >= 8) {
            held -= 8;
            out[bytes++] = (unsigned char)(bits >> held);
        }
    }
    return bytes > 0 ? mica_charsmap_open(f->t, out, bytes) : MICA_OK;
}

/* Parts of what BertNormalizer does, one by one. */
static mica_status take_nfd(mica_tokenizer_json *f, const mica_json_part *part)
{
    return f->t->kind == MICA_TOKENIZER_WORDPIECE ? MICA_OK : not_here(f, part, "NFD");
}

static mica_status take_lowercase(mica_tokenizer_json *f, const mica_json_part *part)
{
    f->t->lowercase = true;
    return f->t->kind == MICA_TOKENIZER_WORDPIECE ? MICA_OK : not_here(f, part, "Lowercase");
}

static mica_status take_accents(mica_tokenizer_json *f, const mica_json_part *part)
{
    f->t->strip_accents = true;
    return f->t->kind == MICA_TOKENIZER_WORDPIECE ? MICA_OK : not_here(f, part, "StripAccents");
}

#define TAKE_RULES(f, part, what, list, rules) \
    take_rule(f, part, what, list, rules, sizeof(rules) / sizeof(rules)[0], 0)

mica_status mica_tokenizer_json_normalizer(mica_tokenizer_json *f, const mica_json_part *part)
{
    static const kind_of_rule rules[] = {
        {"NFC", take_nfc},         {"BertNormalizer", take_bert}, {"Prepend", take_prepend},
        {"Replace", take_replace}, {"Strip", take_strip},         {"Precompiled", take_precompiled},
        {"NFD", take_nfd},         {"Lowercase", take_lowercase}, {"StripAccents", take_accents},
    };
    MICA_TRY(TAKE_RULES(f, part, "normalizer", "normalizers", rules));
    f->t->keep_last_space = f->t->keep_last_space && !f->t->strip_last_space;
    return MICA_OK;
}

/* ---- Pre-tokenizers ---- */

static mica_status add_rule(mica_tokenizer_json *f, const mica_json_part *part, mica_cut_fn *rule)
{
    mica_cut_rules *cut = &f->t->cut;
    if (f->t->kind != MICA_TOKENIZER_BPE || cut->count == MICA_CUT_MOST)
        return mica_json_wrong(&f->j, part->start, "%s",
                               cut->count == MICA_CUT_MOST ? "more rules in a row than are known"
                                                           : "a rule that is not known with this model");
    cut->rule[cut->count++] = rule;
    return MICA_OK;
}

static mica_status take_byte_level(mica_tokenizer_json *f, const mica_json_part *part)
{
    static const char *const names[] = {"add_prefix_space", "use_regex"};
    mica_json_part m[2];
    mica_tokenizer *t = f->t;
    MICA_TRY(mica_json_members(&f->j, part, names, m, 2));
    if (t->kind != MICA_TOKENIZER_BPE || (mica_json_true(&m[0]) && t->cut.count > 0))
        return not_here(f, part, "ByteLevel");
    t->byte_level = true;
    t->space_prefix = t->prefix_unless_space = mica_json_true(&m[0]);
    return m[1].kind == MICA_JSON_FALSE ? MICA_OK : add_rule(f, part, mica_cut_gpt2);
}

static mica_status take_split(mica_tokenizer_json *f, const mica_json_part *part)
{
    static const char *const names[] = {"pattern", "behavior", "invert"}, *const kinds[] = {"String",
                                                                                            "Regex"};
    mica_json_part m[3], pattern[2];
    MICA_TRY(mica_json_members(&f->j, part, names, m, 3));
    MICA_TRY(mica_json_members(&f->j, &m[0], kinds, pattern, 2));
    /* Gemma's: no space is left when it comes. */
    if (f->t->escape_spaces && mica_json_string_is(&f->j, &pattern[0], " "))
        return MICA_OK;
    bool isolated = mica_json_string_is(&f->j, &m[1], "Isolated") && !mica_json_true(&m[2]);
    bool all_kept = mica_json_string_is(&f->j, &m[1], "Removed") && mica_json_true(&m[2]);
    if (pattern[1].kind != MICA_JSON_STRING || (!isolated && !all_kept))
        return not_here(f, part, "this Split");
    mica_json_string regex = mica_json_take(&f->j, &pattern[1]);
    mica_cut_fn *rule = mica_cut_by_pattern(regex.text, regex.length);
    /* These match all there is: nothing is removed between them. */
    bool whole = rule == mica_cut_gpt2 || rule == mica_cut_llama3 || rule == mica_cut_qwen2 ||
                 rule == mica_cut_qwen35 || rule == mica_cut_gpt4o || rule == mica_cut_tekken;
    if (rule == NULL || (all_kept && !whole))
        return mica_json_wrong(&f->j, pattern[1].start, "the pattern of this Split is not known");
    return add_rule(f, part, rule);
}

static mica_status take_digits(mica_tokenizer_json *f, const mica_json_part *part)
{
    static const char *const names[] = {"individual_digits"};
    mica_json_part m;
    MICA_TRY(mica_json_members(&f->j, part, names, &m, 1));
    return add_rule(f, part, mica_json_true(&m) ? mica_cut_number : mica_cut_numbers);
}

static mica_status take_punctuation(mica_tokenizer_json *f, const mica_json_part *part)
{
    static const char *const names[] = {"behavior"};
    mica_json_part m;
    MICA_TRY(mica_json_members(&f->j, part, names, &m, 1));
    if (mica_json_string_is(&f->j, &m, "Contiguous"))
        return add_rule(f, part, mica_cut_punctuation_tick);
    if (m.kind != MICA_JSON_DONE && !mica_json_string_is(&f->j, &m, "Isolated"))
        return not_here(f, part, "this Punctuation");
    return add_rule(f, part, mica_cut_one_punctuation);
}

static mica_status take_metaspace(mica_tokenizer_json *f, const mica_json_part *part)
{
    static const char *const names[] = {"replacement", "add_prefix_space", "prepend_scheme", "split"};
    mica_json_part m[4];
    mica_tokenizer *t = f->t;
    MICA_TRY(mica_json_members(&f->j, part, names, m, 4));
    bool known = mica_json_string_is(&f->j, &m[0], UNDERLINE) && t->kind != MICA_TOKENIZER_WORDPIECE &&
                 t->cut.count == 0;
    if (!known)
        return not_here(f, part, "this Metaspace");
    t->escape_spaces = true;
    t->prefix_unless_space = true;
    t->space_prefix = m[1].kind != MICA_JSON_FALSE && !mica_json_string_is(&f->j, &m[2], "never");
    t->prefix_first_only = mica_json_string_is(&f->j, &m[2], "first");
    t->words_apart = m[3].kind != MICA_JSON_FALSE;
    return t->kind == MICA_TOKENIZER_BPE && t->words_apart ? add_rule(f, part, mica_cut_underlines) : MICA_OK;
}

static mica_status take_bert_words(mica_tokenizer_json *f, const mica_json_part *part)
{
    return f->t->kind == MICA_TOKENIZER_WORDPIECE ? MICA_OK : not_here(f, part, "BertPreTokenizer");
}

static mica_status take_white_space(mica_tokenizer_json *f, const mica_json_part *part)
{
    if (f->t->kind != MICA_TOKENIZER_UNIGRAM)
        return not_here(f, part, "WhitespaceSplit");
    f->t->merge_spaces = true;
    f->t->keep_last_space = false;
    return MICA_OK;
}

mica_status mica_tokenizer_json_pre_tokenizer(mica_tokenizer_json *f, const mica_json_part *part)
{
    static const kind_of_rule rules[] = {
        {"ByteLevel", take_byte_level},
        {"Split", take_split},
        {"Digits", take_digits},
        {"Punctuation", take_punctuation},
        {"Metaspace", take_metaspace},
        {"BertPreTokenizer", take_bert_words},
        {"WhitespaceSplit", take_white_space},
    };
    MICA_TRY(TAKE_RULES(f, part, "pre-tokenizer", "pretokenizers", rules));
    if (f->t->kind == MICA_TOKENIZER_WORDPIECE && part->kind == MICA_JSON_DONE)
        return mica_json_wrong(&f->j, f->model.start, "WordPiece without BertPreTokenizer is not known");
    return MICA_OK;
}

/* ---- Post-processors ---- */

static int32_t take_token(mica_tokenizer_json *f, const mica_json_part *text)
{
    if (text->kind != MICA_JSON_STRING)
        return -1;
    mica_json_string s = mica_json_take(&f->j, text);
    return mica_token_find(f->t, s.text, s.length);
}

/* [{"SpecialToken": {"id": "[CLS]"}}, {"Sequence": ...}, {"SpecialToken": ...}] */
static mica_status take_template(mica_tokenizer_json *f, const mica_json_part *part)
{
    static const char *const names[] = {"single"}, *const kinds[] = {"SpecialToken", "Sequence"},
                             *const ids[] = {"id"};
    mica_json_part single, element, m[2], id;
    size_t at = 0;
    bool after = false;
    MICA_TRY(mica_json_members(&f->j, part, names, &single, 1));
    while (mica_json_each(&f->j, &single, NULL, &element, &at)) {
        MICA_TRY(mica_json_members(&f->j, &element, kinds, m, 2));
        after = after || m[1].kind != MICA_JSON_DONE;
        if (m[0].kind != MICA_JSON_OBJECT)
            continue;
        MICA_TRY(mica_json_members(&f->j, &m[0], ids, &id, 1));
        int32_t token = take_token(f, &id);
        bool *adds = after ? &f->t->info.add_eos : &f->t->info.add_bos;
        if (token < 0 || *adds)
            return mica_json_wrong(&f->j, m[0].start,
                                   "expected one known token before and after the text at most");
        *(after ? &f->t->info.eos : &f->t->info.bos) = token;
        *adds = true;
    }
    return MICA_OK;
}

/* {"sep": ["[SEP]", 102], "cls": ["[CLS]", 101]} */
static mica_status take_bert_ends(mica_tokenizer_json *f, const mica_json_part *part)
{
    static const char *const names[] = {"cls", "sep"};
    mica_json_part m[2], text;
    MICA_TRY(mica_json_members(&f->j, part, names, m, 2));
    for (int i = 0; i < 2; i++) {
        size_t at = 0;
        int32_t token = mica_json_each(&f->j, &m[i], NULL, &text, &at) ? take_token(f, &text) : -1;
        if (token < 0)
            return mica_json_wrong(&f->j, part->start, "expected tokens as \"cls\" and \"sep\"");
        *(i == 0 ? &f->t->info.bos : &f->t->info.eos) = token;
    }
    f->t->info.add_bos = f->t->info.add_eos = true;
    return MICA_OK;
}

static mica_status take_nothing(mica_tokenizer_json *f, const mica_json_part *part)
{
    (void)f, (void)part; /* it moves offsets, not tokens */
    return MICA_OK;
}

mica_status mica_tokenizer_json_post_processor(mica_tokenizer_json *f, const mica_json_part *part)
{
    static const kind_of_rule rules[] = {
        {"TemplateProcessing", take_template},
        {"BertProcessing", take_bert_ends},
        {"RobertaProcessing", take_bert_ends},
        {"ByteLevel", take_nothing},
    };
    return TAKE_RULES(f, part, "post-processor", "processors", rules);
}
