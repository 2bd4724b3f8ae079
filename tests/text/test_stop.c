/* Stop strings, against a search of the whole text. */
#include <string.h>

#include "test.h"

enum { TEXT = 60, TEXTS = 4, LONGEST = 6 };

/* Where the text ends: the first place at which a stop string is complete, less the longest of those. */
static size_t end_of(const char *text, size_t bytes, const char *const *stops, size_t count, int *which)
{
    *which = -1;
    for (size_t end = 1; end <= bytes; end++) {
        size_t best = 0;
        for (size_t i = 0; i < count; i++) {
            size_t n = strlen(stops[i]);
            if (n <= end && n > best && memcmp(text + end - n, stops[i], n) == 0) {
                best = n;
                *which = (int)i;
            }
        }
        if (best > 0)
            return end - best;
    }
    return bytes;
}

/* How many bytes of the end of the text could be the beginning of a stop string. */
static size_t held_of(const char *text, size_t bytes, const char *const *stops, size_t count)
{
    for (size_t n = bytes < LONGEST ? bytes : LONGEST; n > 0; n--)
        for (size_t i = 0; i < count; i++)
            if (strncmp(text + bytes - n, stops[i], n) == 0)
                return n;
    return 0;
}

TEST(stop_finds_what_a_search_finds)
{
    mica_context *ctx = test_context(1);
    test_random r = test_seed(8);
    int found = 0;
    for (int n = 0; n < 20000; n++) {
        char text[TEXT + 1] = {0}, words[TEXTS][LONGEST + 1] = {{0}}, out[2 * TEXT + MICA_STOP_LONGEST];
        const char *stops[TEXTS];
        size_t count = (size_t)test_int(&r, 0, TEXTS), written = 0;
        int letters = test_int(&r, 1, 3);
        for (size_t i = 0; i < count; i++) {
            int length = test_int(&r, 1, LONGEST);
            for (int k = 0; k < length; k++)
                words[i][k] = (char)('a' + test_int(&r, 0, letters - 1));
            stops[i] = words[i];
        }
        size_t bytes = (size_t)test_int(&r, 0, TEXT);
        for (size_t i = 0; i < bytes; i++)
            text[i] = (char)('a' + test_int(&r, 0, letters));
        int which;
        size_t end = end_of(text, bytes, stops, count, &which);
        mica_stop stop;
        CHECK_OK(ctx, mica_stop_begin(ctx, &stop, stops, count, NULL, 0));
        for (size_t at = 0, piece; at < bytes && stop.matched < 0; at += piece) {
            piece = (size_t)test_int(&r, 1, 9);
            piece = piece < bytes - at ? piece : bytes - at;
            written += mica_stop_put(&stop, out + written, text + at, piece);
            if (stop.matched < 0) /* as much as can be is out */
                CHECK(written == at + piece - held_of(text, at + piece, stops, count));
        }
        if (stop.matched < 0)
            written += mica_stop_end(&stop, out + written);
        /* Two equal stop strings: either may be named. */
        bool named = which < 0 ? stop.matched < 0
                               : stop.matched >= 0 && strcmp(stops[which], stops[stop.matched]) == 0;
        CHECK_MSG(written == end && memcmp(out, text, end) == 0 && named, "\"%s\": %zu bytes, wanted %zu",
                  text, written, end);
        found += which >= 0;
    }
    CHECK_MSG(found > 5000, "%d of the texts were stopped", found);
}

TEST(stop_across_tokens)
{
    mica_context *ctx = test_context(1);
    static const char *const stops[] = {"</s>", "\nUser:"};
    static const int32_t ends[] = {2, 7};
    char out[300];
    mica_stop stop;
    CHECK_OK(ctx, mica_stop_begin(ctx, &stop, stops, 2, ends, 2));
    CHECK(mica_stop_at_token(&stop, 7) && !mica_stop_at_token(&stop, 3));
    CHECK(mica_stop_put(&stop, out, "so\nUs", 5) == 2);
    CHECK(mica_stop_put(&stop, out, "ual\0<", 5) == 7 && memcmp(out, "\nUsual\0", 7) == 0);
    CHECK(mica_stop_put(&stop, out, "/s", 2) == 0 && stop.matched < 0);
    CHECK(mica_stop_put(&stop, out, "> more", 6) == 0 && stop.matched == 0);
    CHECK(mica_stop_put(&stop, out, "more", 4) == 0 && mica_stop_end(&stop, out) == 0);
}

TEST(stop_says_what_is_wrong)
{
    mica_context *ctx = test_context(1);
    static char lengthy[MICA_STOP_LONGEST + 2];
    memset(lengthy, 'a', MICA_STOP_LONGEST + 1);
    const char *many[MICA_STOP_TEXTS + 1] = {"a", "", lengthy};
    mica_stop stop;
    CHECK_ERROR(ctx, mica_stop_begin(ctx, &stop, many, 2, NULL, 0), MICA_ERR_ARGUMENT,
                "argument error: stop_begin: stop string 1 has 0 bytes: expected 1 to 256");
    CHECK_ERROR(ctx, mica_stop_begin(ctx, &stop, many + 2, 1, NULL, 0), MICA_ERR_ARGUMENT,
                "argument error: stop_begin: stop string 0 has 257 bytes: expected 1 to 256");
    CHECK_ERROR(ctx, mica_stop_begin(ctx, &stop, many, MICA_STOP_TEXTS + 1, NULL, 0), MICA_ERR_ARGUMENT,
                "argument error: stop_begin: 33 stop strings: expected at most 32");
    CHECK_ERROR(ctx, mica_stop_begin(ctx, &stop, NULL, 1, NULL, 0), MICA_ERR_ARGUMENT,
                "argument error: stop_begin: an argument is NULL");
}
