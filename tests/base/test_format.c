/* The small build's formatting against the C library's. */
#include "base/format.h"

#include <stdio.h>
#include <string.h>

#include "test.h"

#define SAME(...)                                                                              \
    do {                                                                                       \
        char want[128], got[128];                                                              \
        int wanted = snprintf(want, sizeof want, __VA_ARGS__);                                 \
        int length = mica_format_small(got, sizeof got, __VA_ARGS__);                          \
        CHECK_MSG(length == wanted && strcmp(got, want) == 0, "\"%s\" for \"%s\"", got, want); \
    } while (0)

TEST(format_small_as_printf)
{
    SAME("plain 100%%");
    SAME("%d %i %5d|%-5d|%05d|%+d|% d", 0, -7, 42, 42, -42, 7, 7);
    SAME("%u %x %llx %lu", 4000000000u, 0xbeefu, 0xfedcba9876543210ull, 17ul);
    SAME("%lld %lld %zu %td", -9223372036854775807ll - 1, 9223372036854775807ll, (size_t)-1, (ptrdiff_t)-5);
    SAME("%s|%8s|%-8s|%.3s|%.*s|%*s|%c", "text", "right", "left", "shortened", 2, "abc", -6, "x", 'c');
    SAME("%14zu %12s %6d %4d", (size_t)123456, "s", 12, -3);
    SAME("%g %g %g %g %g %g", 0.0, 1.0, -0.5, 100000.0, 1000000.0, 1e-5);
    SAME("%g %g %g %g %g", 0.1, 123456.0, 1234567.0, 3.14159265, 1e300);
    SAME("%.3g %.3g %.1f %.2f %.0f %.0f %.2f", 12345.0, 0.00012345, 0.25, 2.005, 2.5, 0.4, 0.0);
    SAME("%.4e %.2e %e %.4e", 12345.678, 0.0, 1.5, 9.99999e-7);
    SAME("%#.3f %#.0f %8.2f|%-8.2f|%08.2f", 1.5, 3.0, 2.25, 2.25, -2.25);
    SAME("%f %f %g", (double)INFINITY, -(double)INFINITY, (double)INFINITY);
}

TEST(format_small_floats_of_any_size)
{
    test_random r = test_seed(5);
    for (int i = 0; i < test_effort(3000); i++) {
        double value = test_uniform(&r, -1, 1);
        for (int k = test_int(&r, -20, 20); k != 0; k += k < 0 ? 1 : -1)
            value *= k < 0 ? 0.1 : 10.0;
        SAME("%g", value);
        SAME("%.3e", value);
        SAME("%.2f", value / 1e14);
    }
}

TEST(format_small_is_cut_as_snprintf)
{
    for (size_t size = 0; size < 12; size++) {
        char want[16] = "################", got[16] = "################";
        int wanted = snprintf(want, size, "%s %d", "words", 12);
        int length = mica_format_small(got, size, "%s %d", "words", 12);
        CHECK(length == wanted && memcmp(got, want, sizeof got) == 0);
    }
}
