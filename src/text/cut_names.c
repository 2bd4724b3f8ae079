/* The names and patterns by which files ask for rules of cutting. */
#include <string.h>

#include "text/cut.h"

/* clang-format off */
#define RULES_1(a)          {.rule = {(a)}, .count = 1}
#define RULES_2(a, b)       {.rule = {(a), (b)}, .count = 2}
#define RULES_3(a, b, c)    {.rule = {(a), (b), (c)}, .count = 3}
#define RULES_4(a, b, c, d) {.rule = {(a), (b), (c), (d)}, .count = 4}
#define RULES_5(a, b, c, d, e)    {.rule = {(a), (b), (c), (d), (e)}, .count = 5}
#define RULES_6(a, b, c, d, e, f) {.rule = {(a), (b), (c), (d), (e), (f)}, .count = 6}
/* clang-format on */
#define GPT2     RULES_1(mica_cut_gpt2)
#define DIGITS   RULES_2(mica_cut_number, mica_cut_gpt2)
#define LLAMA3   RULES_1(mica_cut_llama3)
#define QWEN2    RULES_1(mica_cut_qwen2)
#define GPT4O    RULES_1(mica_cut_gpt4o)
#define BLOOM    RULES_1(mica_cut_bloom)
#define DEEPSEEK RULES_3(mica_cut_3_numbers, mica_cut_cjk_kana, mica_cut_deepseek3)

/* tokenizer.ggml.pre as llama.cpp's converter writes it. */
static const mica_cut_name names[] = {
    {"default", RULES_4(mica_cut_punctuation, mica_cut_gpt2, mica_cut_numbers, mica_cut_3_digits), 0},
    {"gpt-2", GPT2, 0},
    {"phi-2", GPT2, 0},
    {"mpt", GPT2, 0},
    {"olmo", GPT2, 0},
    {"jais", GPT2, 0},
    {"trillion", GPT2, 0},
    {"granite-docling", GPT2, 0},
    {"exaone4", GPT2, 0},
    {"gigachat", GPT2, 0},
    {"mellum", GPT2, 0},
    {"a.x-4.0", GPT2, 0},
    {"modern-bert", GPT2, 0},
    {"roberta-bpe", GPT2, 0},
    {"jina-es", GPT2, 0},
    {"jina-de", GPT2, 0},
    {"jina-v1-en", GPT2, 0},
    {"jina-v2-es", GPT2, 0},
    {"jina-v2-de", GPT2, 0},
    {"jina-v2-code", GPT2, 0},
    {"smollm", DIGITS, 0},
    {"starcoder", DIGITS, 0},
    {"refact", DIGITS, 0},
    {"command-r", DIGITS, 0},
    {"codeshell", DIGITS, 0},
    {"exaone", DIGITS, 0},
    {"minerva-7b", DIGITS, 0},
    {"mellum2", DIGITS, 0},
    {"llama3", LLAMA3, MICA_CUT_TAKES_WORDS | MICA_CUT_ADDS_BOS},
    {"llama-v3", LLAMA3, MICA_CUT_TAKES_WORDS | MICA_CUT_ADDS_BOS},
    {"llama-bpe", LLAMA3, MICA_CUT_TAKES_WORDS | MICA_CUT_ADDS_BOS},
    {"falcon3", LLAMA3, MICA_CUT_TAKES_WORDS | MICA_CUT_ADDS_BOS},
    {"falcon-h1", LLAMA3, MICA_CUT_TAKES_WORDS | MICA_CUT_ADDS_BOS},
    {"pixtral", LLAMA3, MICA_CUT_TAKES_WORDS | MICA_CUT_ADDS_BOS},
    {"midm-2.0", LLAMA3, MICA_CUT_TAKES_WORDS | MICA_CUT_ADDS_BOS},
    {"lfm2", LLAMA3, MICA_CUT_TAKES_WORDS | MICA_CUT_ADDS_BOS},
    {"jina-v5-nano", LLAMA3, MICA_CUT_TAKES_WORDS | MICA_CUT_ADDS_BOS},
    {"dbrx", LLAMA3, 0},
    {"smaug-bpe", LLAMA3, 0},
    {"chatglm-bpe", LLAMA3, 0},
    {"glm4", LLAMA3, MICA_CUT_TAKES_WORDS},
    {"glm5", LLAMA3, MICA_CUT_TAKES_WORDS},
    {"minicpm5", RULES_2(mica_cut_3_numbers, mica_cut_llama3), MICA_CUT_TAKES_WORDS},
    {"qwen2", QWEN2, 0},
    {"deepseek-r1-qwen", QWEN2, 0},
    {"stablelm2", QWEN2, 0},
    {"hunyuan", QWEN2, 0},
    {"solar-open", QWEN2, 0},
    {"grok-2", QWEN2, 0},
    {"megrez", QWEN2, 0},
    {"kormo", QWEN2, 0},
    {"f2llmv2", QWEN2, 0},
    {"qwen35", RULES_1(mica_cut_qwen35), 0},
    {"gpt-4o", GPT4O, 0},
    {"llama4", GPT4O, 0},
    {"kanana2", GPT4O, 0},
    {"talkie", GPT4O, 0},
    {"minimax-m2", GPT4O, 0},
    {"tekken", RULES_1(mica_cut_tekken), MICA_CUT_TAKES_WORDS | MICA_CUT_ADDS_BOS},
    {"falcon", RULES_3(mica_cut_punctuation_tick, mica_cut_gpt2, mica_cut_3_digits), 0},
    {"deepseek-llm",
     RULES_6(mica_cut_newline, mica_cut_deepseek_letters, mica_cut_deepseek_punctuation, mica_cut_last_spaces,
             mica_cut_deepseek_cjk, mica_cut_numbers),
     0},
    {"deepseek-coder",
     RULES_5(mica_cut_newline, mica_cut_space_letters, mica_cut_space_punctuation, mica_cut_deepseek_cjk,
             mica_cut_number),
     0},
    {"deepseek-v3", DEEPSEEK, 0},
    {"hunyuan-dense", DEEPSEEK, 0},
    {"joyai-llm", DEEPSEEK, 0},
    {"hy_v4", DEEPSEEK, 0},
    {"bloom", BLOOM, 0},
    {"poro-chat", BLOOM, 0},
    {"gpt3-finnish", BLOOM, 0},
    {"viking", RULES_2(mica_cut_bloom, mica_cut_number), 0},
    {"gemma4", RULES_1(mica_cut_newline_runs), MICA_CUT_ADDS_BOS | MICA_CUT_OF_CHARACTERS},
};

const mica_cut_name *mica_cut_by_name(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i].name) == length && memcmp(names[i].name, name, length) == 0)
            return &names[i];
    return NULL;
}

/* ---- Patterns of tokenizer.json ---- */

#define SHORT_FORMS  "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES       "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CASED_UPPER  "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED_LOWER  "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define NO_WORD      "[^\\r\\n\\p{L}\\p{N}]?"
#define PUNCTUATION  "| ?[^\\s\\p{L}\\p{N}]+"
#define ALPHA_MARKS  "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
#define GPT2_PATTERN "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+" PUNCTUATION "|\\s+(?!\\S)"

static const struct {
    const char *pattern;
    mica_cut_fn *rule;
} patterns[] = {
    {GPT2_PATTERN "|\\s+", mica_cut_gpt2},
    {GPT2_PATTERN, mica_cut_gpt2},
    {"'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+" PUNCTUATION "|\\s+(?!\\S)|\\s+", mica_cut_gpt2},
    {SHORT_FORMS "|" NO_WORD "\\p{L}+|\\p{N}{1,3}" PUNCTUATION "[\\r\\n]*" SPACES, mica_cut_llama3},
    {SHORT_FORMS "|" NO_WORD "\\p{L}+|\\p{N}" PUNCTUATION "[\\r\\n]*" SPACES, mica_cut_qwen2},
    {SHORT_FORMS "|" NO_WORD "[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" SPACES,
     mica_cut_qwen35},
    {NO_WORD CASED_UPPER "*" CASED_LOWER "+" SHORT_FORMS "?|" NO_WORD CASED_UPPER "+" CASED_LOWER
                         "*" SHORT_FORMS "?|\\p{N}{1,3}" PUNCTUATION "[\\r\\n/]*" SPACES,
     mica_cut_gpt4o},
    {NO_WORD CASED_UPPER "*" CASED_LOWER "+|" NO_WORD CASED_UPPER "+" CASED_LOWER "*|\\p{N}" PUNCTUATION
                         "[\\r\\n/]*" SPACES,
     mica_cut_tekken},
    {ALPHA_MARKS "|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*" SPACES,
     mica_cut_deepseek3},
    {"[\xe4\xb8\x80-\xe9\xbe\xa5\xe3\x81\x80-\xe3\x82\x9f\xe3\x82\xa0-\xe3\x83\xbf]+", mica_cut_cjk_kana},
    {"[\xe4\xb8\x80-\xe9\xbe\xa5\xe0\xa0\x80-\xe4\xb8\x80\xea\xb0\x80-\xed\x9f\xbf]+", mica_cut_deepseek_cjk},
    {" ?[^(\\s|.,!?\xe2\x80\xa6\xe3\x80\x82\xef\xbc\x8c\xe3\x80\x81\xe0\xa5\xa4\xdb\x94\xd8\x8c)]+",
     mica_cut_bloom},
    {"[0-9][0-9][0-9]", mica_cut_3_digits},
    {"\\p{N}{1,3}", mica_cut_3_numbers},
    {"\\p{N}+", mica_cut_numbers},
    {"\\p{N}", mica_cut_number},
    {"\\d", mica_cut_number},
    {"[\\r\\n]", mica_cut_newline},
    {"\\s?\\p{L}+", mica_cut_space_letters},
    {"\\s?\\p{P}+", mica_cut_space_punctuation},
    {"\\s+$", mica_cut_last_spaces},
};

/* A pattern may hold a line end itself instead of its escape. */
static bool same_pattern(const char *known, const char *pattern, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char escape = pattern[i] == '\r' ? 'r' : pattern[i] == '\n' ? 'n' : 0;
        if (escape != 0 && known[0] == '\\' && known[1] == escape)
            known += 2;
        else if (*known == '\0' || *known++ != pattern[i])
            return false;
    }
    return *known == '\0';
}

mica_cut_fn *mica_cut_by_pattern(const char *pattern, size_t length)
{
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        if (same_pattern(patterns[i].pattern, pattern, length))
            return patterns[i].rule;
    return NULL;
}

/* ---- Rules in a row ---- */

void mica_cut_words(const mica_cut_rules *rules, const char *text, size_t length, mica_word_fn *word,
                    void *user)
{
    size_t at[MICA_CUT_MOST + 1], end[MICA_CUT_MOST + 1]; /* of the piece that each rule works on */
    int level = 0;
    at[0] = 0;
    end[0] = length;
    while (level >= 0) {
        if (at[level] == end[level]) {
            level--;
        } else if (level == rules->count) {
            word(user, text + at[level], end[level] - at[level]);
            level--;
        } else {
            size_t next = rules->rule[level](text, at[level], end[level]);
            at[level + 1] = at[level];
            end[level + 1] = next;
            at[level] = next;
            level++;
        }
    }
}
