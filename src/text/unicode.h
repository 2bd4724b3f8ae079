/* What tokenizers ask of Unicode: categories, lower case, normal forms D and C. */
#ifndef MICA_SRC_TEXT_UNICODE_H
#define MICA_SRC_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* General categories, in the order of tools/make_unicode.py. */
typedef enum mica_unicode_category {
    MICA_UNICODE_CN,
    MICA_UNICODE_CC,
    MICA_UNICODE_CF,
    MICA_UNICODE_CO,
    MICA_UNICODE_LU,
    MICA_UNICODE_LL,
    MICA_UNICODE_LT,
    MICA_UNICODE_LM,
    MICA_UNICODE_LO,
    MICA_UNICODE_MN,
    MICA_UNICODE_MC,
    MICA_UNICODE_ME,
    MICA_UNICODE_ND,
    MICA_UNICODE_NL,
    MICA_UNICODE_NO,
    MICA_UNICODE_PC,
    MICA_UNICODE_PD,
    MICA_UNICODE_PS,
    MICA_UNICODE_PE,
    MICA_UNICODE_PI,
    MICA_UNICODE_PF,
    MICA_UNICODE_PO,
    MICA_UNICODE_SM,
    MICA_UNICODE_SC,
    MICA_UNICODE_SK,
    MICA_UNICODE_SO,
    MICA_UNICODE_ZS,
    MICA_UNICODE_ZL,
    MICA_UNICODE_ZP,
} mica_unicode_category;

/* Sets of categories, one bit each, and white space as \s has it. */
#define MICA_UNICODE_BITS(first, last) ((2u << (last)) - (1u << (first)))
#define MICA_UNICODE_L                 MICA_UNICODE_BITS(MICA_UNICODE_LU, MICA_UNICODE_LO)
#define MICA_UNICODE_M                 MICA_UNICODE_BITS(MICA_UNICODE_MN, MICA_UNICODE_ME)
#define MICA_UNICODE_N                 MICA_UNICODE_BITS(MICA_UNICODE_ND, MICA_UNICODE_NO)
#define MICA_UNICODE_P                 MICA_UNICODE_BITS(MICA_UNICODE_PC, MICA_UNICODE_PO)
#define MICA_UNICODE_S                 MICA_UNICODE_BITS(MICA_UNICODE_SM, MICA_UNICODE_SO)
#define MICA_UNICODE_SPACE             (1u << 31)

/* The bit of the character's category, with MICA_UNICODE_SPACE. */
uint32_t mica_unicode_class(uint32_t code);

/* The same as Hugging Face's BertNormalizer has it: without what came after Unicode 8. */
uint32_t mica_unicode_class_of_8(uint32_t code);

/* Lower case, character by character: one or two code points. Returns how many. */
int mica_unicode_lower(uint32_t out[2], uint32_t code);

#define MICA_UNICODE_PARTS 4 /* the most code points that one decomposes into */

/* The full canonical decomposition of one character; itself if it has none. */
int mica_unicode_decompose(uint32_t out[MICA_UNICODE_PARTS], uint32_t code);
unsigned mica_unicode_combining_class(uint32_t code);
/* What two characters compose into; 0: nothing. */
uint32_t mica_unicode_compose(uint32_t first, uint32_t second);

/* In a table of `count` structs of `words` 32-bit fields, sorted by one of them, whose first is at `field`: the first
 * where it is at least `code`; `count` if there is none. */
static inline size_t mica_unicode_search(const uint32_t *field, size_t words, size_t count, uint32_t code)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (field[middle * words] < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#endif
