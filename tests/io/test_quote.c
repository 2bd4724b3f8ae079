/* Names in messages: printable, and short. */
#include <stdio.h>
#include <string.h>

#include "io/quote.h"
#include "io/utf8.h"
#include "test.h"

TEST(quote_escapes_what_a_terminal_obeys)
{
    static const char *const cases[][2] = {
        {"plain", "\"plain\""},
        {"", "\"\""},
        {"a\"b\\", "\"a\\x22b\\x5c\""},
        {"\x1b[31m\x07\n", "\"\\x1b[31m\\x07\\x0a\""},
        {"\xc2\x9b"
         "31m",
         "\"\\xc2\\x9b31m\""}, /* CSI, as one character of C1 */
        {"\x9b"
         "31m",
         "\"\\x9b31m\""},                                                     /* and as a byte of its own */
        {"\xc2\xa0\xc3\xa9\xe2\x98\x83", "\"\xc2\xa0\xc3\xa9\xe2\x98\x83\""}, /* printable */
        {"\xe2\x80\xae", "\"\\xe2\\x80\\xae\""}, /* right to left from here on; NOLINT */
        {"\xc3", "\"\\xc3\""},                   /* half a character */
        {"\xed\xa0\x80", "\"\\xed\\xa0\\x80\""}, /* a surrogate */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK_MSG(strcmp(MICA_QUOTE(cases[i][0]), cases[i][1]) == 0, "%s, wanted %s", MICA_QUOTE(cases[i][0]),
                  cases[i][1]);
}

/* Of any bytes and any length: it fits, and every character of it is printable. */
TEST(quote_of_random_bytes_is_printable)
{
    test_random r = test_seed(3);
    static const char *const pieces[] = {"a",    "\xc3\xa9", "\xe2\x98\x83", "\xf0\x9f\x98\x80",
                                         "\x1b", "\xff",     "\xc2\x9b"};
    for (int turn = 0; turn < test_effort(20000); turn++) {
        char bytes[1024];
        size_t length = 0, wanted = (size_t)test_int(&r, 0, 400);
        int kinds = test_int(&r, 1, 7);
        while (length < wanted) {
            const char *piece = pieces[test_int(&r, 0, kinds - 1)];
            while (*piece != '\0')
                bytes[length++] = *piece++;
        }
        mica_quote quote = mica_quote_of(bytes, length);
        size_t shown = strlen(quote.text);
        REQUIRE(shown >= 2 && shown < sizeof quote.text);
        for (size_t at = 0, size; at < shown; at += size) {
            uint32_t code;
            size = mica_utf8_decode(&code, quote.text + at, shown - at);
            REQUIRE(size > 0 && mica_utf8_printable(code));
        }
    }
}
