/* Cutting text into words before merges: the rules that models were trained with, each a regular expression in the
 * files they come from, here written out over Unicode's classes.
 *
 * A rule splits a piece of text into smaller ones; rules in a row each split what the one before leaves. */
#ifndef MICA_SRC_TEXT_CUT_H
#define MICA_SRC_TEXT_CUT_H

#include <stdbool.h>
#include <stddef.h>

/* The end of the piece that begins at `at` < end; UTF-8, valid. */
typedef size_t mica_cut_fn(const char *text, size_t at, size_t end);

#define MICA_CUT_MOST 6

typedef struct mica_cut_rules {
    mica_cut_fn *rule[MICA_CUT_MOST];
    int count;
} mica_cut_rules;

enum {
    MICA_CUT_TAKES_WORDS = 1,   /* a word that is a token is one, whatever merges would make of it */
    MICA_CUT_ADDS_BOS = 2,      /* unless the file says otherwise */
    MICA_CUT_OF_CHARACTERS = 4, /* for vocabularies of characters, not of bytes */
};

/* What tokenizer.ggml.pre says, with what else follows from it. NULL: none of that name. */
typedef struct mica_cut_name {
    const char *name;
    mica_cut_rules rules;
    unsigned flags;
} mica_cut_name;

const mica_cut_name *mica_cut_by_name(const char *name, size_t length);

/* The rule of a regular expression in a tokenizer.json; NULL: not known. */
mica_cut_fn *mica_cut_by_pattern(const char *pattern, size_t length);

/* Calls `word` for each of the pieces that all rules leave, in order. */
typedef void mica_word_fn(void *user, const char *text, size_t length);
void mica_cut_words(const mica_cut_rules *rules, const char *text, size_t length, mica_word_fn *word,
                    void *user);

/* The rules by themselves. */
mica_cut_fn mica_cut_gpt2, mica_cut_llama3, mica_cut_qwen2, mica_cut_qwen35, mica_cut_number,
    mica_cut_3_numbers, mica_cut_numbers, mica_cut_3_digits, mica_cut_punctuation, mica_cut_punctuation_tick,
    mica_cut_newline, mica_cut_newline_runs, mica_cut_deepseek_letters, mica_cut_deepseek_punctuation,
    mica_cut_last_spaces, mica_cut_deepseek_cjk, mica_cut_space_letters, mica_cut_space_punctuation,
    mica_cut_cjk_kana, mica_cut_deepseek3, mica_cut_bloom, mica_cut_gpt4o, mica_cut_tekken, mica_cut_spaces,
    mica_cut_one_punctuation, mica_cut_underlines;

#endif
