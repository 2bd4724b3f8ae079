/* The JSON reader: what it takes, what it refuses and where. */
#include "io/json.h"

#include <string.h>

#include "io/number.h"
#include "test.h"

/* Reads to the end; the error, or NULL. */
static const char *read_all(const char *text, size_t length, size_t *at, int *tokens)
{
    mica_json json = mica_json_over(text, length);
    mica_json_token token = {MICA_JSON_NULL, 0, NULL, 0};
    for (*tokens = 0; mica_json_next(&json, &token) && token.kind != MICA_JSON_DONE; ++*tokens)
        ;
    *at = json.at;
    mica_json_token again;
    CHECK(mica_json_next(&json, &again) == (json.error == NULL)); /* it stays where it is */
    return json.error;
}

TEST(json_takes_what_is_json)
{
    static const struct {
        const char *text;
        int tokens;
    } good[] = {
        {"null", 1},
        {" true ", 1},
        {"\t\r\n-0.5e+10", 1},
        {"0", 1},
        {"[]", 2},
        {"{}", 2},
        {"[1, [2, {}], \"x\"]", 9},
        {"{\"a\": 1, \"b\": [true, false, null]}", 10},
        {"\"\\u00e9 \\ud83d\\ude00 \\\" \\\\ \\/ \\b\\f\\n\\r\\t \xc3\xa9\"", 1},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        size_t at;
        int tokens;
        const char *error = read_all(good[i].text, strlen(good[i].text), &at, &tokens);
        CHECK_MSG(error == NULL && tokens == good[i].tokens, "%s: %s, %d tokens", good[i].text,
                  error != NULL ? error : "ok", tokens);
    }
}

TEST(json_refuses_what_is_not)
{
    static const struct {
        const char *text, *error;
        size_t at;
    } bad[] = {
        {"", "the text ends too early", 0},
        {"  ", "the text ends too early", 2},
        {"nul", "expected a value", 0},
        {"01", "a number may not start with 0", 0},
        {"-", "expected a digit", 1},
        {"1.", "expected a digit", 2},
        {"1e", "expected a digit", 2},
        {"+1", "expected a value", 0},
        {"NaN", "expected a value", 0},
        {"1 2", "bytes after the value", 2},
        {"[1,]", "expected a value", 3},
        {"[1 2]", "expected a comma or the end", 3},
        {"[1}", "expected a comma or the end", 2},
        {"[", "the text ends too early", 1},
        {"{\"a\"}", "expected a colon", 4},
        {"{\"a\":}", "expected a value", 5},
        {"{\"a\":1,}", "expected a key in quotes", 7},
        {"{1:2}", "expected a key in quotes", 1},
        {"\"abc", "the text ends inside a string", 4},
        {"\"a\nb\"", "a control character in a string", 2},
        {"\"\\x\"", "invalid escape sequence", 1},
        {"\"\\u12g4\"", "invalid escape sequence", 1},
        {"\"\\ud800\"", "invalid escape sequence", 1},
        {"\"\\udc00\"", "invalid escape sequence", 1},
        {"\"\\ud800\\u0041\"", "invalid escape sequence", 1},
        {"\"\xc0\x80\"", "not UTF-8", 1},
        {"\"\xed\xa0\x80\"", "not UTF-8", 1},
        {"\"\xf4\x90\x80\x80\"", "not UTF-8", 1},
        {"\"\xe2\x98\"", "not UTF-8", 1},
        {"// no", "expected a value", 0},
        {"[1]]", "bytes after the value", 3},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        size_t at;
        int tokens;
        const char *error = read_all(bad[i].text, strlen(bad[i].text), &at, &tokens);
        CHECK_MSG(error != NULL && strcmp(error, bad[i].error) == 0 && at == bad[i].at,
                  "%s: \"%s\" at %zu, wanted \"%s\" at %zu", bad[i].text, error != NULL ? error : "ok", at,
                  bad[i].error, bad[i].at);
    }
}

TEST(json_nests_so_deep_and_no_deeper)
{
    char text[3 * MICA_JSON_DEEPEST];
    for (int depth = MICA_JSON_DEEPEST; depth <= MICA_JSON_DEEPEST + 1; depth++) {
        size_t at;
        int tokens;
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        const char *error = read_all(text, 2 * (size_t)depth, &at, &tokens);
        CHECK(depth == MICA_JSON_DEEPEST ? error == NULL : error != NULL && at == MICA_JSON_DEEPEST);
    }
}

TEST(json_decodes_in_place_and_skips)
{
    char text[] =
        "{\"k\\u0065y\": [1, {\"x\": []}], \"n\": 18446744073709551615, \"m\": 18446744073709551616}";
    mica_json json = mica_json_over(text, strlen(text));
    mica_json_token token;
    uint64_t number = 0;
    CHECK(mica_json_next(&json, &token) && token.kind == MICA_JSON_OBJECT);
    CHECK(mica_json_next(&json, &token) && token.kind == MICA_JSON_KEY);
    CHECK(mica_json_decode(text + 2, &token) == 3 && memcmp(text + 2, "key", 3) == 0);
    CHECK(mica_json_next(&json, &token) && token.kind == MICA_JSON_ARRAY && mica_json_skip(&json, &token));
    CHECK(mica_json_next(&json, &token) && token.kind == MICA_JSON_KEY && token.text[0] == 'n');
    CHECK(!mica_json_unsigned(&number, &token));
    CHECK(mica_json_next(&json, &token) && mica_json_skip(&json, &token));
    CHECK(mica_json_unsigned(&number, &token) && number == UINT64_MAX);
    CHECK(mica_json_next(&json, &token) && mica_json_next(&json, &token));
    CHECK(!mica_json_unsigned(&number, &token)); /* one too many */
    CHECK(strcmp(mica_json_kind_name(token.kind), "a number") == 0);
}

TEST(numbers_are_the_nearest_doubles)
{
    static const struct {
        const char *text;
        double value;
    } good[] = {
        {"0", 0.0},
        {"-1", -1.0},
        {"+1.5", 1.5},
        {".5", 0.5},
        {"5.", 5.0},
        {"1e3", 1e3},
        {"1E-3", 1e-3},
        {"0.1", 0.1},
        {"123456789.123456789", 123456789.123456789},
        {"9007199254740993", 9007199254740992.0},
        {"1.7976931348623157e308", 1.7976931348623157e308},
        {"4.9e-324", 4.9e-324},
        {"2.2250738585072011e-308", 2.2250738585072011e-308},
        {"123456789012345678901234567890", 123456789012345678901234567890.0},
        {"0.000000000000000000000000000001", 1e-30},
        {"1e-400", 0.0},
        {"00012", 12.0},
    };
    double value;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        CHECK_MSG(mica_parse_number(&value, good[i].text, strlen(good[i].text)) && value == good[i].value,
                  "%s is %.17g", good[i].text, value);
    CHECK(mica_parse_number(&value, "1e999", 5) && value > 1e308);
    CHECK(mica_parse_number(&value, "-Inf", 4) && value < -1e308);
    CHECK(mica_parse_number(&value, "nan", 3) && value != value);
    static const char *const bad[] = {"",   "-",  ".",  "e5",   "1e",  "1e+",
                                      "1x", " 1", "1 ", "0x10", "1,5", "infinit"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_MSG(!mica_parse_number(&value, bad[i], strlen(bad[i])), "\"%s\"", bad[i]);
}
