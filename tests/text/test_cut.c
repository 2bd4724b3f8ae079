/* Cutting text into words, normal forms, and repairing UTF-8. */
#include <string.h>

#include "test.h"
#include "text/cut.h"
#include "text/normal.h"
#include "text/repair.h"
#include "text/unicode.h"

typedef struct joined {
    char text[512];
    size_t length;
} joined;

/* Words with bars between them. */
static void join(void *user, const char *text, size_t length)
{
    joined *j = user;
    if (j->length + length + 1 > sizeof j->text)
        return;
    if (j->length > 0)
        j->text[j->length++] = '|';
    memcpy(j->text + j->length, text, length);
    j->length += length;
}

TEST(cut_words_by_the_rules_of_each_model)
{
    static const struct {
        const char *name, *text, *words;
    } cases[] = {
        {"gpt-2", "I'll say  hello,\n world 123's", "I|'ll| say| | hello|,|\n| world| 123|'s"},
        {"gpt-2", "a\t\tb  ", "a|\t|\t|b|  "},
        {"gpt-2", "it'S", "it|'|S"},
        {"smollm", "x 1234", "x| |1|2|3|4"},
        {"llama-bpe", "It'S 12345 \n\n x=-1;\n\ny", "It|'S| |123|45| \n\n| x|=-|1|;\n\n|y"},
        {"llama-bpe", "\t\xc3\xa9t\xc3\xa9  z", "\t\xc3\xa9t\xc3\xa9| | z"},
        {"qwen2", "12 a\xcc\x81x", "1|2| a|\xcc\x81x"},
        {"qwen35", "12 a\xcc\x81x", "1|2| a\xcc\x81x"},
        {"default", "a+b=1234!", "a|+|b|=|123|4|!"},
        {"falcon", "`a` 1234", "`|a|`| |123|4"},
        {"deepseek-coder", "a\n b, 12\xe4\xbd\xa0", "a|\n| b|,| |1|2|\xe4\xbd\xa0"},
        {"deepseek-llm", "Hi, you 12  ", "Hi|,| you| |12|  "},
        {"deepseek-v3", "f_x(a) 1234\n", "f|_x|(a|)| |123|4|\n"},
        {"gpt-4o", "HelloWorld's ABC 1234//\n", "Hello|World's| ABC| |123|4|//\n"},
        {"tekken", "XMLFile 12", "XMLFile| |1|2"},
        {"bloom", "a b.c, d", "a| b|.|c|,| d"},
        {"viking", "ab12", "ab|1|2"},
        {"gemma4", "a b\n\nc", "a b|\n\n|c"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        joined j = {.length = 0};
        const mica_cut_name *name = mica_cut_by_name(cases[i].name, strlen(cases[i].name));
        REQUIRE(name != NULL);
        mica_cut_words(&name->rules, cases[i].text, strlen(cases[i].text), join, &j);
        CHECK_MSG(strlen(cases[i].words) == j.length && memcmp(j.text, cases[i].words, j.length) == 0,
                  "%s: %.*s", cases[i].name, (int)j.length, j.text);
    }
    CHECK(mica_cut_by_name("gpt", 3) == NULL && mica_cut_by_name("gpt-22", 6) == NULL);
    CHECK(mica_cut_by_pattern("\\p{N}", 5) == mica_cut_number && mica_cut_by_pattern("\\p{N", 4) == NULL);
    CHECK(mica_cut_by_pattern("[\r\n]", 4) == mica_cut_newline); /* line ends as they are, or escaped */
}

TEST(cut_rules_keep_every_byte)
{
    static const char *const parts[] = {" ",
                                        "\n",
                                        "\t",
                                        "a",
                                        "B",
                                        "1",
                                        "'s",
                                        "\xc3\xa9",
                                        "\xcc\x81",
                                        "\xe4\xbd\xa0",
                                        "\xe3\x80\x80",
                                        "\xf0\x9f\x98\x80",
                                        "...",
                                        "_",
                                        "\xef\xbf\xbd",
                                        "\xc2\xa0"};
    static const char *const names[] = {"default",      "gpt-2",          "smollm",      "llama-bpe",
                                        "qwen2",        "qwen35",         "gpt-4o",      "tekken",
                                        "deepseek-llm", "deepseek-coder", "deepseek-v3", "viking"};
    test_random r = test_seed(5);
    for (int n = 0; n < test_effort(400); n++) {
        char text[256] = "";
        for (int k = test_int(&r, 1, 30); k > 0; k--)
            strcat(text, parts[test_int(&r, 0, 15)]);
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            joined j = {.length = 0};
            mica_cut_words(&mica_cut_by_name(names[i], strlen(names[i]))->rules, text, strlen(text), join,
                           &j);
            size_t kept = 0;
            for (size_t b = 0; b < j.length; b++)
                if (j.text[b] != '|')
                    CHECK(j.text[b] == text[kept++]);
            CHECK_MSG(kept == strlen(text), "%s", names[i]);
        }
    }
}

TEST(unicode_classes_and_forms)
{
    CHECK(mica_unicode_class('a') == 1u << MICA_UNICODE_LL);
    CHECK(mica_unicode_class(0x85) == (1u << MICA_UNICODE_CC | MICA_UNICODE_SPACE));
    CHECK(mica_unicode_class(0x1c89) == 1u << MICA_UNICODE_LU); /* of Unicode 16 */
    CHECK(mica_unicode_class(0x10ffff) == 1u << MICA_UNICODE_CN);
    CHECK(mica_unicode_class_of_8(0x1cf00) == 1u << MICA_UNICODE_CN);
    uint32_t lower[2];
    CHECK(mica_unicode_lower(lower, 0x130) == 2 && lower[0] == 'i' && lower[1] == 0x307);
    CHECK(mica_unicode_lower(lower, 0x3a9) == 1 && lower[0] == 0x3c9);
    CHECK(mica_unicode_lower(lower, 0x101) == 1 && lower[0] == 0x101);
    static const struct {
        const char *text, *composed;
    } cases[] = {
        {"e\xcc\x81", "\xc3\xa9"},
        {"a\xcc\xa3\xcc\x81", "\xe1\xba\xa1\xcc\x81"}, /* dot below before acute, however they come */
        {"a\xcc\x81\xcc\xa3", "\xe1\xba\xa1\xcc\x81"},
        {"\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8", "\xea\xb0\x81"}, /* Hangul */
        {"\xe2\x84\xab", "\xc3\x85"},                             /* Angstrom */
        {"\xe0\xa5\x98", "\xe0\xa4\x95\xe0\xa4\xbc"},             /* never composed */
        {"plain", "plain"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char out[64];
        uint64_t scratch[64];
        size_t n = mica_compose_text(out, cases[i].text, strlen(cases[i].text), scratch);
        CHECK_MSG(n == strlen(cases[i].composed) && memcmp(out, cases[i].composed, n) == 0, "case %zu", i);
    }
}

TEST(repair_replaces_maximal_parts)
{
#define FFFD "\xef\xbf\xbd"
    static const struct {
        const char *text, *repaired;
    } cases[] = {
        {"", ""},
        {"a\xc3\xa9", "a\xc3\xa9"},
        {"\x80", FFFD},
        {"\xc3", FFFD},
        {"\xe2\x82", FFFD},      /* one part */
        {"\xe2\x82z", FFFD "z"}, /* and what follows stays */
        {"\xe0\x80\x80", FFFD FFFD FFFD},
        {"\xed\xa0\x80", FFFD FFFD FFFD}, /* a surrogate */
        {"\xf0\x9f\x98", FFFD},
        {"\xf4\x90\x80\x80", FFFD FFFD FFFD FFFD},
        {"\xf0\x9f\xf0\x9f\x98\x80", FFFD "\xf0\x9f\x98\x80"},
        {"\xff\xfe", FFFD FFFD},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char out[64];
        size_t n = mica_repair(out, sizeof out, cases[i].text, strlen(cases[i].text));
        CHECK_MSG(n == strlen(cases[i].repaired) && memcmp(out, cases[i].repaired, n) == 0, "case %zu", i);
        CHECK(mica_repair(NULL, 0, cases[i].text, strlen(cases[i].text)) == n);
    }
}
