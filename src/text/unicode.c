/* Looking things up in the tables of Unicode. */
#include "text/unicode.h"

#include "text/unicode_table.h"

static bool is_space(uint32_t code)
{
    return (code >= 9 && code <= 13) || code == 0x20 || code == 0x85 || code == 0xa0 || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f ||
           code == 0x205f || code == 0x3000;
}

uint32_t mica_unicode_class(uint32_t code)
{
    if (code < 0x80)
        return mica_unicode_ascii[code];
    const uint32_t *table = mica_unicode_categories;
    size_t low = 0, high = mica_unicode_categories_count; /* of those that begin at or before it, the last */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (table[middle] >> 5 <= code)
            low = middle;
        else
            high = middle;
    }
    return 1u << (table[low] & 31) | (is_space(code) ? MICA_UNICODE_SPACE : 0);
}

uint32_t mica_unicode_class_of_8(uint32_t code)
{
    switch (code) { /* these were moved to another category */
    case 0x166d:
    case 0x111c9:
        return 1u << MICA_UNICODE_PO;
    case 0x1734:
    case 0x1171e:
        return 1u << MICA_UNICODE_MN;
    default:
        break;
    }
    size_t low = mica_unicode_search(&mica_unicode_later[0].last, 2, mica_unicode_later_count, code);
    if (low < mica_unicode_later_count && mica_unicode_later[low].first <= code)
        return 1u << MICA_UNICODE_CN;
    return mica_unicode_class(code);
}

int mica_unicode_lower(uint32_t out[2], uint32_t code)
{
    out[0] = code;
    out[1] = 0;
    if (code < 0x80) {
        out[0] += code >= 'A' && code <= 'Z' ? 32 : 0;
        return 1;
    }
    size_t low = mica_unicode_search(&mica_unicode_lower_runs[0].last, 4, mica_unicode_lower_runs_count,
                                     code);
    const mica_unicode_lower_run *run = &mica_unicode_lower_runs[low];
    if (low < mica_unicode_lower_runs_count && run->first <= code &&
        (code - run->first) % (uint32_t)run->step == 0)
        out[0] = code + (uint32_t)run->add;
    if (code != 0x130)
        return 1;
    out[1] = 0x307; /* I with a dot above keeps it */
    return 2;
}

/* ---- Normal forms ---- */

enum { HANGUL = 0xac00, LEAD = 0x1100, VOWEL = 0x1161, TAIL = 0x11a7, VOWELS = 21, TAILS = 28, LEADS = 19 };

static const mica_unicode_pair *pair_of(uint32_t code)
{
    size_t low = mica_unicode_search(&mica_unicode_pairs[0].code, 3, mica_unicode_pairs_count, code);
    const mica_unicode_pair *pair = &mica_unicode_pairs[low];
    return low < mica_unicode_pairs_count && pair->code == code ? pair : NULL;
}

int mica_unicode_decompose(uint32_t out[MICA_UNICODE_PARTS], uint32_t code)
{
    if (code >= HANGUL && code < HANGUL + LEADS * VOWELS * TAILS) {
        uint32_t number = code - HANGUL;
        out[0] = LEAD + number / (VOWELS * TAILS);
        out[1] = VOWEL + number % (VOWELS * TAILS) / TAILS;
        out[2] = TAIL + number % TAILS;
        return number % TAILS == 0 ? 2 : 3;
    }
    /* Only the first of a pair decomposes further: the others gather from the end. */
    uint32_t rest[MICA_UNICODE_PARTS];
    int rests = 0, count = 0;
    for (const mica_unicode_pair *pair = pair_of(code); pair != NULL; pair = pair_of(code)) {
        if (pair->second != 0 && rests < MICA_UNICODE_PARTS - 1)
            rest[rests++] = pair->second;
        code = pair->first;
    }
    out[count++] = code;
    while (rests > 0)
        out[count++] = rest[--rests];
    return count;
}

unsigned mica_unicode_combining_class(uint32_t code)
{
    if (code < 0x300)
        return 0;
    size_t low = mica_unicode_search(&mica_unicode_classes[0].last, 3, mica_unicode_classes_count, code);
    const mica_unicode_class_run *run = &mica_unicode_classes[low];
    return low < mica_unicode_classes_count && run->first <= code ? run->number : 0;
}

uint32_t mica_unicode_compose(uint32_t first, uint32_t second)
{
    if (first >= LEAD && first < LEAD + LEADS && second >= VOWEL && second < VOWEL + VOWELS)
        return HANGUL + ((first - LEAD) * VOWELS + (second - VOWEL)) * TAILS;
    if (first >= HANGUL && first < HANGUL + LEADS * VOWELS * TAILS && (first - HANGUL) % TAILS == 0 &&
        second > TAIL && second < TAIL + TAILS)
        return first + (second - TAIL);
    size_t low = 0, high = mica_unicode_composed_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const mica_unicode_pair *pair = &mica_unicode_pairs[mica_unicode_composed[middle]];
        if (pair->first < first || (pair->first == first && pair->second < second))
            low = middle + 1;
        else
            high = middle;
    }
    if (low == mica_unicode_composed_count)
        return 0;
    const mica_unicode_pair *pair = &mica_unicode_pairs[mica_unicode_composed[low]];
    return pair->first == first && pair->second == second ? pair->code : 0;
}
