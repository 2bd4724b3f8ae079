/* The reader of earlier runs: what it takes, and where it says that something is wrong. */
#include <string.h>

#include "bench/json.h"
#include "test.h"

static json_value *read_text(const char *text)
{
    json_error error = {0};
    json_value *v = json_read(text, strlen(text), &error);
    CHECK_MSG(v != NULL, "%s: byte %zu: %s", text, error.offset, error.text);
    return v;
}

TEST(json_reads_every_kind_of_value)
{
    json_value *v = read_text(
        " {\"a\": [1, -2.5e3, 0], \"b\": {}, \"c\": \"x\", \"d\": [true, false, null]} ");
    REQUIRE(v != NULL);
    CHECK(v->kind == JSON_OBJECT && v->offset == 1);
    const json_value *a = json_member(v, "a");
    CHECK(a != NULL && a->kind == JSON_ARRAY && a->first->number == 1.0);
    CHECK(a->first->next->number == -2500.0 && a->first->next->next->number == 0.0);
    CHECK(a->first->next->next->next == NULL);
    CHECK(json_member(v, "b")->kind == JSON_OBJECT && json_member(v, "b")->first == NULL);
    CHECK(strcmp(json_member(v, "c")->string, "x") == 0);
    const json_value *d = json_member(v, "d")->first;
    CHECK(d->kind == JSON_TRUE && d->next->kind == JSON_FALSE && d->next->next->kind == JSON_NULL);
    CHECK(json_member(v, "e") == NULL && json_member(a, "a") == NULL);
    json_free(v);
}

TEST(json_decodes_strings)
{
    json_value *v = read_text("\"\\\"\\\\\\/\\b\\f\\n\\r\\t \\u0041\\u00e9\\u20ac\\ud83d\\ude00 \xc3\xa9\"");
    REQUIRE(v != NULL);
    CHECK(strcmp(v->string, "\"\\/\b\f\n\r\t A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 \xc3\xa9") == 0);
    json_free(v);
}

TEST(json_says_where_it_went_wrong)
{
    static const struct {
        const char *text;
        size_t offset;
        const char *error;
    } bad[] = {
        {"", 0, "the text ends too early"},
        {"{", 1, "expected a key in quotes"},
        {"{\"a\": 1, \"a\": 2}", 9, "a key given twice"},
        {"[{\"a\": 1}, {\"a\": 1, \"b\": {\"a\": 1, \"a\": 2}}]", 34, "a key given twice"},
        {"[1, 2", 5, "expected a comma or the end"},
        {"[1] 2", 4, "bytes after the value"},
        {"[1e999]", 1, "a number is out of range"},
        {"[\"\\u0000\"]", 1, "a string may not hold a zero byte"},
        {"{\"\\u0000\": 1}", 1, "a string may not hold a zero byte"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        json_error error = {0};
        CHECK_MSG(json_read(bad[i].text, strlen(bad[i].text), &error) == NULL, "read: %s", bad[i].text);
        CHECK_MSG(error.offset == bad[i].offset && strcmp(error.text, bad[i].error) == 0, "%s: byte %zu: %s",
                  bad[i].text, error.offset, error.text);
    }
}

TEST(json_refuses_deep_nesting)
{
    char text[400];
    memset(text, '[', 200);
    memset(text + 200, ']', 200);
    json_error error = {0};
    CHECK(json_read(text, sizeof text, &error) == NULL);
    CHECK(strcmp(error.text, "nested too deeply") == 0 && error.offset == 64);
}

/* Every beginning of a good text is wrong, and none makes the reader look past its end. */
TEST(json_refuses_every_truncation)
{
    static const char text[] =
        "{\"machine\": {\"cpu\": \"a\\u0041\\\"\"}, \"cases\": [{\"ns\": -1.5e+3}, null]}";
    for (size_t length = 0; length + 1 < sizeof text; length++) {
        char exact[sizeof text];
        memcpy(exact, text, length);
        memset(exact + length, '"', sizeof text - length); /* would end a string, were it read */
        json_error error = {0};
        CHECK_MSG(json_read(exact, length, &error) == NULL, "the first %zu bytes were read", length);
        CHECK(error.offset <= length);
    }
}
