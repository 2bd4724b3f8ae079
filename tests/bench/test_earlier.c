/* The reader of earlier runs: what it takes, and where it says that something is wrong. */
#include "bench/earlier.h"

#include <stdio.h>
#include <string.h>

#include "test.h"

#define NUMBERS "\"ns\": 5.5, \"ns_min\": 5, \"percent_of_peak\": 9, \"allocs\": 1, \"bytes\": 64"
#define CASE    "{\"name\": \"a\\u0041\", \"threads\": 2, " NUMBERS "}"

/* Reads a copy, as reading changes the text. */
static bool read_copy(bench_earlier *out, char *copy, const char *text, size_t length)
{
    memcpy(copy, text, length);
    return earlier_read(out, copy, length);
}

TEST(earlier_reads_cases)
{
    static const char text[] = " {\"machine\": {\"cases\": [1, {}]}, \"cases\": [" CASE
                               ", {\"disturbed\": true, \"limit\": [], " NUMBERS
                               ", \"threads\": 1, \"name\": \"b\"}], \"x\": null} ";
    char copy[sizeof text];
    bench_earlier earlier;
    REQUIRE(read_copy(&earlier, copy, text, strlen(text)));
    CHECK(earlier.count == 2);
    const bench_result *a = &earlier.results[0], *b = &earlier.results[1];
    CHECK(strcmp(a->name, "aA") == 0 && a->threads == 2 && a->ns == 5.5 && a->ns_min == 5.0);
    CHECK(a->percent == 9.0 && a->allocs == 1.0 && a->bytes == 64.0);
    CHECK(strcmp(b->name, "b") == 0 && b->threads == 1);
    earlier_release(&earlier);
}

TEST(earlier_reads_as_many_cases_as_there_are)
{
    static char text[200 * sizeof CASE + 32];
    size_t length = (size_t)sprintf(text, "{\"cases\": [" CASE);
    for (int i = 1; i < 200; i++)
        length += (size_t)sprintf(text + length, "," CASE);
    length += (size_t)sprintf(text + length, "]}");
    bench_earlier earlier;
    REQUIRE(earlier_read(&earlier, text, length));
    CHECK(earlier.count == 200 && strcmp(earlier.results[199].name, "aA") == 0);
    earlier_release(&earlier);
}

TEST(earlier_says_where_it_went_wrong)
{
    static const struct {
        const char *text;
        size_t at;
        const char *error;
    } bad[] = {
        {"", 0, "the text ends too early"},
        {" 7", 1, "no \"cases\" in a number"},
        {" {}", 1, "no \"cases\" in an object"},
        {"{\"cases\": {}}", 10, "\"cases\" is an object, not an array"},
        {"{\"cases\": [[]]}", 11, "a case is an array, not an object"},
        {"{\"cases\": [], \"cases\": []}", 14, "a key given twice"},
        {"{\"cases\": []} 2", 14, "bytes after the value"},
        {"{\"cases\": [{}]}", 11, "no \"name\" in a case"},
        {"{\"cases\": [{\"name\": \"a\"}]}", 11, "no \"threads\" in a case"},
        {"{\"cases\": [{\"name\": 7}]}", 20, "\"name\" is a number, not a string"},
        {"{\"cases\": [{\"name\": \"a\", \"name\": \"a\"}]}", 25, "a key given twice"},
        {"{\"cases\": [{\"ns\": 1, \"ns\": 1}]}", 21, "a key given twice"},
        {"{\"cases\": [{\"ns\": 1e999}]}", 18, "a number is out of range"},
        {"{\"cases\": [{\"ns\": -1}]}", 18, "a number below zero"},
        {"{\"cases\": [{\"ns\": \"1\"}]}", 18, "\"ns\" is a string, not a number"},
        {"{\"cases\": [{\"name\": \"\\u0000\"}]}", 20, "a string may not hold a zero byte"},
        {"{\"cases\\u0000\": []}", 1, "a string may not hold a zero byte"},
        {"{\"cases\": [{\"name\": \"a\", \"threads\": 0, " NUMBERS "}]}", 36, "no such number of threads"},
        {"{\"cases\": [{\"name\": \"a\", \"threads\": 1e9, " NUMBERS "}]}", 36, "no such number of threads"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char copy[256];
        bench_earlier earlier;
        CHECK_MSG(!read_copy(&earlier, copy, bad[i].text, strlen(bad[i].text)), "read: %s", bad[i].text);
        CHECK_MSG(earlier.error_at == bad[i].at && strcmp(earlier.error, bad[i].error) == 0,
                  "%s: byte %zu: %s", bad[i].text, earlier.error_at, earlier.error);
        CHECK(earlier.count == 0);
        earlier_release(&earlier);
    }
}

/* Every beginning of a good text is wrong, and none makes the reader look past its end. */
TEST(earlier_refuses_every_truncation)
{
    static const char text[] = "{\"machine\": {\"cpu\": \"a\\u0041\\\"\"}, \"cases\": [" CASE "]}";
    for (size_t length = 0; length + 1 < sizeof text; length++) {
        char copy[sizeof text];
        memset(copy, '"', sizeof copy); /* would end a string, were it read */
        bench_earlier earlier;
        CHECK_MSG(!read_copy(&earlier, copy, text, length), "the first %zu bytes were read", length);
        CHECK(earlier.error_at <= length);
        earlier_release(&earlier);
    }
}
