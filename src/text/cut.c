/* The rules that cut text into words. */
#include "text/cut.h"

#include <string.h>

#include "text/unicode.h"

#define L     MICA_UNICODE_L
#define M     MICA_UNICODE_M
#define N     MICA_UNICODE_N
#define P     MICA_UNICODE_P
#define S     MICA_UNICODE_S
#define SPACE MICA_UNICODE_SPACE
#define UPPER                                                                                                \
    ((1u << MICA_UNICODE_LU) | (1u << MICA_UNICODE_LT) | (1u << MICA_UNICODE_LM) | (1u << MICA_UNICODE_LO) | \
     M)
#define LOWER ((1u << MICA_UNICODE_LL) | (1u << MICA_UNICODE_LM) | (1u << MICA_UNICODE_LO) | M)

/* A character, its class and where the next one begins; class 0: there is none. */
typedef struct character {
    uint32_t code, class;
    size_t next;
} character;

static inline character look(const char *text, size_t at, size_t end)
{
    if (at >= end)
        return (character){.code = UINT32_MAX, .class = 0, .next = at};
    const unsigned char *s = (const unsigned char *)text + at;
    uint32_t code = s[0];
    size_t length = 1;
    if (code >= 0xf0) {
        code = (code & 7) << 18 | (s[1] & 0x3fu) << 12 | (s[2] & 0x3fu) << 6 | (s[3] & 0x3fu);
        length = 4;
    } else if (code >= 0xe0) {
        code = (code & 15) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
        length = 3;
    } else if (code >= 0xc0) {
        code = (code & 31) << 6 | (s[1] & 0x3fu);
        length = 2;
    }
    return (character){.code = code, .class = mica_unicode_class(code), .next = at + length};
}

/* The end of the run of characters of these classes; and of any others. */
static size_t run(const char *text, size_t at, size_t end, uint32_t classes)
{
    for (character c = look(text, at, end); (c.class & classes) != 0; c = look(text, at, end))
        at = c.next;
    return at;
}

static size_t run_of_others(const char *text, size_t at, size_t end, uint32_t classes)
{
    for (character c = look(text, at, end); c.class != 0 && (c.class & classes) == 0; c = look(text, at, end))
        at = c.next;
    return at;
}

static bool is_newline(uint32_t code) { return code == '\r' || code == '\n'; }

static size_t run_of_newlines(const char *text, size_t at, size_t end)
{
    while (at < end && is_newline((unsigned char)text[at]))
        at++;
    return at;
}

/* 's 't 're 've 'm 'll 'd: where it ends; `at` if it is none. */
static size_t contraction(const char *text, size_t at, size_t end, bool any_case)
{
    if (at >= end || text[at] != '\'')
        return at;
    char letter[2] = {0, 0};
    for (size_t i = 0; i < 2 && at + 1 + i < end; i++) {
        letter[i] = text[at + 1 + i];
        if (any_case && letter[i] >= 'A' && letter[i] <= 'Z')
            letter[i] = (char)(letter[i] + 32);
    }
    if (letter[0] == 's' || letter[0] == 't' || letter[0] == 'm' || letter[0] == 'd')
        return at + 2;
    if ((letter[0] == 'r' && letter[1] == 'e') || (letter[0] == 'v' && letter[1] == 'e') ||
        (letter[0] == 'l' && letter[1] == 'l'))
        return at + 3;
    /* The long s, U+017F, is an s in another case. */
    return any_case && look(text, at + 1, end).code == 0x17f ? at + 3 : at;
}

/* \s+(?!\S)|\s+: before a word the last of several is left to it. */
static size_t spaces(const char *text, size_t at, size_t end)
{
    size_t last = at, next = at;
    for (character c = look(text, at, end); (c.class & SPACE) != 0; c = look(text, next, end)) {
        last = next;
        next = c.next;
    }
    return next < end && last > at ? last : next;
}

/* \s*[\r\n]+|\s+(?!\S)|\s+ */
static size_t lines_or_spaces(const char *text, size_t at, size_t end)
{
    size_t line = at, next = at;
    for (character c = look(text, at, end); (c.class & SPACE) != 0; c = look(text, next, end)) {
        next = c.next;
        if (is_newline(c.code))
            line = next;
    }
    return line > at ? line : spaces(text, at, end);
}

/* '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
size_t mica_cut_gpt2(const char *text, size_t at, size_t end)
{
    size_t short_form = contraction(text, at, end, false);
    if (short_form > at)
        return short_form;
    character c = look(text, at, end);
    if (c.code == ' ') {
        character after = look(text, c.next, end);
        c = after.class != 0 ? after : c;
    }
    if ((c.class & L) != 0)
        return run(text, c.next, end, L);
    if ((c.class & N) != 0)
        return run(text, c.next, end, N);
    if ((c.class & SPACE) == 0)
        return run_of_others(text, c.next, end, SPACE | L | N);
    return spaces(text, at, end);
}

/* (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[LETTERS]+|\p{N}{1,MOST}| ?[^\s\p{L}\p{N}LETTERS]+[\r\n]*|
 * \s*[\r\n]+|\s+(?!\S)|\s+ */
static inline size_t cut_llama(const char *text, size_t at, size_t end, int most_numbers, uint32_t letters)
{
    size_t short_form = contraction(text, at, end, true);
    if (short_form > at)
        return short_form;
    character c = look(text, at, end), after = look(text, c.next, end);
    if ((c.class & letters) != 0)
        return run(text, c.next, end, letters);
    if (!is_newline(c.code) && (c.class & N) == 0 && (after.class & letters) != 0)
        return run(text, after.next, end, letters);
    if ((c.class & N) != 0) {
        for (; most_numbers > 1 && (after.class & N) != 0; most_numbers--) {
            c = after;
            after = look(text, c.next, end);
        }
        return c.next;
    }
    if (c.code == ' ' && after.class != 0)
        c = after;
    if ((c.class & (SPACE | N)) == 0)
        return run_of_newlines(text, run_of_others(text, c.next, end, SPACE | N | letters), end);
    return lines_or_spaces(text, at, end);
}

size_t mica_cut_llama3(const char *text, size_t at, size_t end) { return cut_llama(text, at, end, 3, L); }
size_t mica_cut_qwen2(const char *text, size_t at, size_t end) { return cut_llama(text, at, end, 1, L); }
size_t mica_cut_qwen35(const char *text, size_t at, size_t end) { return cut_llama(text, at, end, 1, L | M); }

/* ---- Words by upper and lower case ---- */

/* [UPPER]*[LOWER]+, where many characters are both: `at` if there is none. */
static size_t upper_then_lower(const char *text, size_t at, size_t end)
{
    size_t next = at, both = at;
    character c = look(text, at, end);
    for (; (c.class & UPPER) != 0; c = look(text, next, end)) {
        next = c.next;
        if ((c.class & LOWER) != 0)
            both = next;
    }
    return (c.class & LOWER) != 0 ? run(text, c.next, end, LOWER) : both;
}

/* [UPPER]+[LOWER]* */
static size_t upper_and_lower(const char *text, size_t at, size_t end)
{
    size_t upper = run(text, at, end, UPPER);
    return upper > at ? run(text, upper, end, LOWER) : at;
}

/* [^\r\n\p{L}\p{N}]? before one of the two; `at` if neither is there. */
static size_t cased_word(const char *text, size_t at, size_t end)
{
    character c = look(text, at, end);
    bool may_precede = !is_newline(c.code) && (c.class & (L | N)) == 0;
    size_t word = may_precede ? upper_then_lower(text, c.next, end) : at;
    if (may_precede && word > c.next)
        return word;
    word = upper_then_lower(text, at, end);
    if (word > at)
        return word;
    word = may_precede ? upper_and_lower(text, c.next, end) : at;
    return may_precede && word > c.next ? word : upper_and_lower(text, at, end);
}

static size_t cut_cased(const char *text, size_t at, size_t end, int most_numbers, bool contractions)
{
    size_t word = cased_word(text, at, end);
    if (word > at)
        return contractions ? contraction(text, word, end, true) : word;
    character c = look(text, at, end);
    if ((c.class & N) != 0) {
        for (character after = look(text, c.next, end); most_numbers > 1 && (after.class & N) != 0;
             most_numbers--) {
            c = after;
            after = look(text, c.next, end);
        }
        return c.next;
    }
    if (c.code == ' ') {
        character after = look(text, c.next, end);
        c = after.class != 0 ? after : c;
    }
    if ((c.class & (SPACE | L | N)) == 0) {
        size_t next = run_of_others(text, c.next, end, SPACE | L | N);
        while (next < end && (is_newline((unsigned char)text[next]) || text[next] == '/'))
            next++;
        return next;
    }
    return lines_or_spaces(text, at, end);
}

size_t mica_cut_gpt4o(const char *text, size_t at, size_t end) { return cut_cased(text, at, end, 3, true); }
size_t mica_cut_tekken(const char *text, size_t at, size_t end) { return cut_cased(text, at, end, 1, false); }

/* ---- Matches set apart from what is between them ---- */

/* The end of the match at `at`; `at` if there is none. */
typedef size_t match_fn(const char *text, size_t at, size_t end);

static inline size_t set_apart(match_fn *match, const char *text, size_t at, size_t end)
{
    size_t next = match(text, at, end);
    if (next > at)
        return next;
    do
        at = look(text, at, end).next;
    while (at < end && match(text, at, end) == at);
    return at;
}

/* size_t mica_cut_NAME as the matches of match_NAME. */
#define SET_APART(name)                                             \
    size_t mica_cut_##name(const char *text, size_t at, size_t end) \
    {                                                               \
        return set_apart(match_##name, text, at, end);              \
    }

/* \p{N} */
static size_t match_number(const char *text, size_t at, size_t end)
{
    character c = look(text, at, end);
    return (c.class & N) != 0 ? c.next : at;
}
SET_APART(number)

/* \p{N}{1,3} */
static size_t match_3_numbers(const char *text, size_t at, size_t end)
{
    return match_number(text, match_number(text, match_number(text, at, end), end), end);
}
SET_APART(3_numbers)

/* \p{N}+ */
static size_t match_numbers(const char *text, size_t at, size_t end) { return run(text, at, end, N); }
SET_APART(numbers)

/* [0-9][0-9][0-9] */
static size_t match_3_digits(const char *text, size_t at, size_t end)
{
    for (size_t i = at; i < at + 3; i++)
        if (i >= end || text[i] < '0' || text[i] > '9')
            return at;
    return at + 3;
}
SET_APART(3_digits)

/* [\p{P}$+<=>^~|]+, and with ` */
static size_t punctuation(const char *text, size_t at, size_t end, uint32_t tick)
{
    for (character c = look(text, at, end);
         (c.class & P) != 0 || ((c.class & S) != 0 && c.code < 0x80 && c.code != tick);
         c = look(text, at, end))
        at = c.next;
    return at;
}

static size_t match_punctuation(const char *text, size_t at, size_t end)
{
    return punctuation(text, at, end, '`');
}
SET_APART(punctuation)

static size_t match_punctuation_tick(const char *text, size_t at, size_t end)
{
    return punctuation(text, at, end, 0);
}
SET_APART(punctuation_tick)

/* One of them. */
static size_t match_one_punctuation(const char *text, size_t at, size_t end)
{
    character c = look(text, at, end);
    return punctuation(text, at, c.next, 0);
}
SET_APART(one_punctuation)

/* [\r\n] */
static size_t match_newline(const char *text, size_t at, size_t end)
{
    return at < end && is_newline((unsigned char)text[at]) ? at + 1 : at;
}
SET_APART(newline)

/* [\n]+|[^\n]+ */
static size_t match_newline_runs(const char *text, size_t at, size_t end)
{
    while (at < end && text[at] == '\n')
        at++;
    return at;
}
SET_APART(newline_runs)

/* Before each U+2581. */
size_t mica_cut_underlines(const char *text, size_t at, size_t end)
{
    for (at = look(text, at, end).next; at < end; at++)
        if (end - at >= 3 && memcmp(text + at, "\xe2\x96\x81", 3) == 0)
            break;
    return at;
}

/* \s+ */
static size_t match_spaces(const char *text, size_t at, size_t end) { return run(text, at, end, SPACE); }
SET_APART(spaces)

/* \s+$ */
size_t mica_cut_last_spaces(const char *text, size_t at, size_t end)
{
    size_t start = at;
    while (at < end) {
        size_t next = run(text, at, end, SPACE);
        if (next == end)
            return at > start ? at : end;
        at = run_of_others(text, next, end, SPACE);
    }
    return end;
}

/* \s?\p{L}+ and \s?\p{P}+ */
static size_t after_space(const char *text, size_t at, size_t end, uint32_t classes)
{
    character c = look(text, at, end);
    size_t start = (c.class & SPACE) != 0 ? c.next : at;
    size_t next = run(text, start, end, classes);
    return next > start ? next : at;
}

static size_t match_space_letters(const char *text, size_t at, size_t end)
{
    return after_space(text, at, end, L);
}
SET_APART(space_letters)

static size_t match_space_punctuation(const char *text, size_t at, size_t end)
{
    return after_space(text, at, end, P);
}
SET_APART(space_punctuation)

/* ---- Sets that were written out ---- */

typedef struct range {
    uint32_t first, last;
} range;

/* Sorted. */
static bool is_in(const range *ranges, size_t count, uint32_t code)
{
    size_t low = mica_unicode_search(&ranges[0].last, 2, count, code);
    return low < count && ranges[low].first <= code;
}

static size_t run_in(const range *ranges, size_t count, const char *text, size_t at, size_t end)
{
    for (character c = look(text, at, end); c.class != 0 && is_in(ranges, count, c.code);
         c = look(text, at, end))
        at = c.next;
    return at;
}

#define RUN_IN(set, text, at, end) run_in(set, sizeof(set) / sizeof(set)[0], text, at, end)

/* Letters of alphabets that have cases. */
static const range cased_letters[] = {
    {0x41, 0x5a},       {0x61, 0x7a},       {0xb5, 0xb5},       {0xc0, 0xd6},       {0xd8, 0xf6},
    {0xf8, 0x1ba},      {0x1bc, 0x1bf},     {0x1c4, 0x293},     {0x295, 0x2af},     {0x370, 0x373},
    {0x376, 0x376},     {0x377, 0x377},     {0x37b, 0x37d},     {0x37f, 0x37f},     {0x386, 0x386},
    {0x388, 0x38a},     {0x38c, 0x38c},     {0x38e, 0x3a1},     {0x3a3, 0x3f5},     {0x3f7, 0x481},
    {0x48a, 0x52f},     {0x531, 0x556},     {0x10a0, 0x10c5},   {0x13a0, 0x13f5},   {0x13f8, 0x13fd},
    {0x1c90, 0x1cba},   {0x1cbd, 0x1cbf},   {0x1d00, 0x1d2b},   {0x1d6b, 0x1d77},   {0x1d79, 0x1d9a},
    {0x1e00, 0x1f15},   {0x1f18, 0x1f1d},   {0x1f20, 0x1f45},   {0x1f48, 0x1f4d},   {0x1f50, 0x1f57},
    {0x1f59, 0x1f59},   {0x1f5b, 0x1f5b},   {0x1f5d, 0x1f5d},   {0x1f5f, 0x1f7d},   {0x1f80, 0x1fb4},
    {0x1fb6, 0x1fbc},   {0x1fbe, 0x1fbe},   {0x1fc2, 0x1fc4},   {0x1fc6, 0x1fcc},   {0x1fd0, 0x1fd3},
    {0x1fd6, 0x1fdb},   {0x1fe0, 0x1fec},   {0x1ff2, 0x1ff4},   {0x1ff6, 0x1ffc},   {0x2102, 0x2102},
    {0x2107, 0x2107},   {0x210a, 0x2113},   {0x2115, 0x2115},   {0x2119, 0x211d},   {0x2124, 0x2124},
    {0x2126, 0x2126},   {0x2128, 0x2128},   {0x212a, 0x212d},   {0x212f, 0x2134},   {0x2139, 0x2139},
    {0x213c, 0x213f},   {0x2145, 0x2149},   {0x214e, 0x214e},   {0x2183, 0x2183},   {0x2184, 0x2184},
    {0x2c00, 0x2c7b},   {0x2c7e, 0x2ce4},   {0x2ceb, 0x2cee},   {0x2cf2, 0x2cf2},   {0x2cf3, 0x2cf3},
    {0xa640, 0xa66d},   {0xa680, 0xa69b},   {0xa722, 0xa76f},   {0xa771, 0xa787},   {0xa78b, 0xa78e},
    {0xab70, 0xabbf},   {0xfb00, 0xfb06},   {0xfb13, 0xfb17},   {0xff21, 0xff3a},   {0xff41, 0xff5a},
    {0x10400, 0x1044f}, {0x104b0, 0x104d3}, {0x104d8, 0x104fb}, {0x10c80, 0x10cb2}, {0x10cc0, 0x10cf2},
    {0x118a0, 0x118df}, {0x1e900, 0x1e943}};

static size_t match_deepseek_letters(const char *text, size_t at, size_t end)
{
    character c = look(text, at, end);
    size_t start = (c.class & SPACE) != 0 ? c.next : at, next = RUN_IN(cased_letters, text, start, end);
    return next > start ? next : at;
}
SET_APART(deepseek_letters)

static size_t match_deepseek_punctuation(const char *text, size_t at, size_t end)
{
    static const range set[] = {{'!', '/'},       {':', '~'},       {0x2018, 0x201f},
                                {0x3000, 0x3002}, {0xff01, 0xff0f}, {0xff1a, 0xff5e}};
    character c = look(text, at, end);
    size_t start = (c.class & SPACE) != 0 ? c.next : at, next = RUN_IN(set, text, start, end);
    if (next == start && start > at) /* U+3000 is a space of the set itself */
        next = RUN_IN(set, text, at, end), start = at;
    return next > start ? next : at;
}
SET_APART(deepseek_punctuation)

static size_t match_deepseek_cjk(const char *text, size_t at, size_t end)
{
    static const range set[] = {{0x800, 0x9fa5}, {0xac00, 0xd7ff}};
    return RUN_IN(set, text, at, end);
}
SET_APART(deepseek_cjk)

static size_t match_cjk_kana(const char *text, size_t at, size_t end)
{
    static const range set[] = {{0x3040, 0x30ff}, {0x4e00, 0x9fa5}};
    return RUN_IN(set, text, at, end);
}
SET_APART(cjk_kana)

static bool is_ascii_letter(uint32_t code)
{
    return (code >= 'A' && code <= 'Z') || (code >= 'a' && code <= 'z');
}

/* [!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ */
static size_t match_deepseek3(const char *text, size_t at, size_t end)
{
    character c = look(text, at, end), after = look(text, c.next, end);
    if (c.code < 0x80 && (c.class & (P | S)) != 0 && is_ascii_letter(after.code)) {
        size_t next = after.next;
        while (next < end && is_ascii_letter((unsigned char)text[next]))
            next++;
        return next;
    }
    if ((c.class & (L | M)) != 0)
        return run(text, c.next, end, L | M);
    if (!is_newline(c.code) && (c.class & (P | S)) == 0 && (after.class & (L | M)) != 0)
        return run(text, after.next, end, L | M);
    character first = c.code == ' ' && after.class != 0 ? after : c;
    if ((first.class & (P | S)) != 0)
        return run_of_newlines(text, run(text, first.next, end, P | S), end);
    return (c.class & SPACE) != 0 ? lines_or_spaces(text, at, end) : at;
}
SET_APART(deepseek3)

/*  ?[^(\s|.,!?…。，、।۔،)]+ */
static size_t match_bloom(const char *text, size_t at, size_t end)
{
    static const range set[] = {{'!', '!'},     {'(', ')'},       {',', ','},       {'.', '.'},
                                {'?', '?'},     {'|', '|'},       {0x60c, 0x60c},   {0x6d4, 0x6d4},
                                {0x964, 0x964}, {0x2026, 0x2026}, {0x3001, 0x3002}, {0xff0c, 0xff0c}};
    size_t start = at < end && text[at] == ' ' ? at + 1 : at, next = start;
    for (character c = look(text, next, end);
         c.class != 0 && (c.class & SPACE) == 0 && !is_in(set, sizeof set / sizeof set[0], c.code);
         c = look(text, next, end))
        next = c.next;
    return next > start ? next : at;
}
SET_APART(bloom)
