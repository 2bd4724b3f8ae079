/* What a tokenizer holds, and how its parts share it.
 *
 * Opening:  a GGUF file (tokenizer_gguf.c) or a tokenizer.json (tokenizer_json.c) fills in the entries and the rules
 *           below; mica_vocabulary_index and mica_vocabulary_merges make the tables.
 * Encoding: text -> UTF-8 repaired -> cut at special tokens (tokenizer.c) -> each fragment by the algorithm
 *           (tokenizer_bpe.c, tokenizer_spm.c, tokenizer_wordpiece.c, tokenizer_unigram.c), in the caller's scratch.
 * Decoding: decode.c. */
#ifndef MICA_SRC_TEXT_VOCABULARY_H
#define MICA_SRC_TEXT_VOCABULARY_H

#include <mica/tokenizer.h>

#include "base/context.h"
#include "text/cut.h"

typedef struct mica_entry {
    const char *text; /* as the vocabulary has it */
    uint32_t length;
    float score;
    uint8_t kind;                   /* mica_token_kind */
    bool ends;                      /* generation */
    bool strips_left, strips_right; /* as a special token it takes the white space beside it with it */
} mica_entry;

/* Two tokens that become one. */
typedef struct mica_merge {
    int32_t left, right; /* left -1: a free slot */
    uint32_t rank;
    int32_t result;
} mica_merge;

/* A token that is cut out of the text before all else. */
typedef struct mica_special {
    const char *text;
    uint32_t length;
    int32_t token;
} mica_special;

typedef enum mica_tokenizer_kind {
    MICA_TOKENIZER_BPE,
    MICA_TOKENIZER_SPM,
    MICA_TOKENIZER_WORDPIECE,
    MICA_TOKENIZER_UNIGRAM,
} mica_tokenizer_kind;

#define MICA_LONGEST_TOKEN 4096 /* bytes of a token that text can become; longer ones are only decoded */

typedef struct mica_tokenizer_block {
    void *start;
    size_t bytes;
} mica_tokenizer_block;

struct mica_tokenizer {
    mica_context *ctx;
    mica_tokenizer_info info;
    mica_tokenizer_kind kind;
    mica_tokenizer_block blocks[16]; /* all it has allocated */
    int block_count;

    mica_entry *entries; /* [info.count] */
    int32_t *slots;      /* [slot_mask + 1] tokens by their text, -1: free */
    uint32_t slot_mask;
    uint64_t seed;          /* of the hashes: nobody can make a file whose tokens collide */
    uint32_t longest;       /* text of an entry that may come from text */
    mica_special *specials; /* sorted by text */
    size_t special_count;
    uint32_t special_first[257]; /* where those that begin with a byte begin */

    /* Byte-pair encoding. */
    mica_merge *merges;
    uint32_t merge_mask;
    bool byte_level;     /* bytes are printable characters in the vocabulary; else UTF-8 with <0xXX> tokens */
    bool ignore_merges;  /* a word that is a token is not made by merges */
    bool whole_newlines; /* gemma4: a run of newlines that is a token is one */
    mica_cut_rules cut;
    int32_t bytes[256]; /* the token of a byte; -1: none */

    /* How text becomes what the vocabulary has. */
    bool compose;             /* to normal form C */
    bool escape_spaces;       /* space is U+2581 */
    bool space_prefix;        /* one more in front */
    bool prefix_first_only;   /* not after special tokens, but at the beginning of the text alone */
    bool prefix_unless_space; /* not where the text begins with one */
    bool merge_spaces;        /* no two in a row, none at the ends */
    bool keep_last_space;     /* but one where the text ends with some */
    bool strip_last_space;    /* while a tokenizer.json is read */
    bool words_apart;         /* tokens have no U+2581 but at their beginning */
    bool unknown_fused;       /* characters without a token are one unknown token together */
    bool drops_unknown;       /* or none at all */

    /* WordPiece. */
    bool lowercase, strip_accents, chinese, clean;
    const char *word_prefix, *part_prefix; /* "▁" and "" in GGUF files, "" and "##" in tokenizer.json */
    uint32_t word_longest;                 /* characters: a longer word is unknown */

    /* Unigram. */
    const unsigned char *charsmap; /* a double array: 4 bytes a unit, then texts that end with 0 */
    size_t charsmap_units;
    const char *replacements;
    size_t replacement_bytes;
    size_t growth; /* the most bytes that one byte of text becomes */
    double unknown_score;
};

/* ---- Opening ---- */

/* Memory that close gives back. NULL, with an error recorded. */
void *mica_tokenizer_take(mica_tokenizer *t, size_t count, size_t size);

/* From entries: finding by text; and at last, when the kinds of all are known, special tokens. */
mica_status mica_vocabulary_index(mica_tokenizer *t);
mica_status mica_vocabulary_specials(mica_tokenizer *t);
/* Room for so many merges, then one after the other, the first of the same pair counting. One whose parts or result
 * the vocabulary does not have never happens and is left out. */
mica_status mica_merges_begin(mica_tokenizer *t, size_t count);
void mica_merges_add(mica_tokenizer *t, uint32_t rank, const char *left, size_t left_bytes, const char *right,
                     size_t right_bytes);
/* The tokens of single bytes, in the form that byte_level says. */
void mica_vocabulary_bytes(mica_tokenizer *t);
/* Tokens that end generation by their names, and eos. */
void mica_vocabulary_ends(mica_tokenizer *t);
/* Of a charsmap: checks it, and finds the least and most that it may do. */
mica_status mica_charsmap_open(mica_tokenizer *t, const void *bytes, size_t size);

/* For tests and fuzzing: the text of a tokenizer.json and of a tokenizer_config.json (or NULL), which are copied. */
mica_status mica_tokenizer_over_json(mica_context *ctx, mica_tokenizer **out, const char *text, size_t length,
                                     const char *config, size_t config_length);

/* ---- Looking up ---- */

/* The token with this text (a prefix and the rest) that plain text may become; -1: none. */
int32_t mica_vocabulary_find(const mica_tokenizer *t, const char *prefix, const char *text, size_t length);
/* The same for bytes that the vocabulary has as printable characters. */
int32_t mica_vocabulary_find_bytes(const mica_tokenizer *t, const unsigned char *bytes, size_t length);
const mica_merge *mica_merge_find(const mica_tokenizer *t, int32_t left, int32_t right);

/* Byte-level vocabularies write byte b as this character, and back (-1: no byte). */
uint32_t mica_byte_character(unsigned char byte);
int mica_character_byte(uint32_t code);

/* ---- Encoding ---- */

typedef struct mica_tokens {
    int32_t *token;
    size_t room, count; /* counts on when the room is used up */
} mica_tokens;

static inline void mica_tokens_put(mica_tokens *out, int32_t token)
{
    if (out->count < out->room)
        out->token[out->count] = token;
    out->count++;
}

/* A fragment of text, valid UTF-8, to tokens. `begins`: after a special token, or at the beginning (`first`). */
typedef struct mica_fragment {
    const char *text;
    size_t length;
    bool begins, first;
} mica_fragment;

typedef void mica_encode_fn(const mica_tokenizer *t, mica_tokens *out, const mica_fragment *f, void *scratch);

/* Each with the scratch for a fragment of so many bytes; SIZE_MAX: more than there can be. */
mica_encode_fn mica_bpe_encode, mica_spm_encode, mica_wordpiece_encode, mica_unigram_encode;
size_t mica_bpe_scratch(const mica_tokenizer *t, size_t bytes);
size_t mica_spm_scratch(const mica_tokenizer *t, size_t bytes);
size_t mica_wordpiece_scratch(const mica_tokenizer *t, size_t bytes);
size_t mica_unigram_scratch(const mica_tokenizer *t, size_t bytes);

typedef struct mica_encode_how {
    bool special; /* text that looks like a special token becomes one */
    bool later;   /* not the beginning of all text */
} mica_encode_how;

/* Tokens of a text, appended to `out`: mica_encode without the ends. */
mica_status mica_encode_into(mica_context *ctx, const mica_tokenizer *t, mica_tokens *out, const char *text,
                             size_t bytes, void *scratch, size_t scratch_bytes, mica_encode_how how);

/* Copies with spaces escaped as the rules say; `out` has room for 3 bytes for each of the text's, and 3 more. */
size_t mica_escape_spaces(const mica_tokenizer *t, char *out, const mica_fragment *f);

#endif
