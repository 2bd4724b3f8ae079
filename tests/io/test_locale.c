/* Text that is kept has the same numbers wherever a program's locale puts a comma. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mica/int8.h>
#include <mica/netfile.h>

#include "data/table_case.h"
#include "io/number.h"
#include "scratch.h"
#include "test.h"

/* The GNU C library's own form of such a locale (LC_NUMERIC alone), as few systems have one: where the six fields are,
 * then the point, the separator, its groups, both again in UCS-4, and the character set. */
static const unsigned char comma_locale[] = {
    0x14, 0x11, 0x03, 0x20, 6, 0, 0, 0,    0x20, 0, 0,   0,    0x22, 0,   0,   0,   0x23,
    0,    0,    0,    0x24, 0, 0, 0, 0x28, 0,    0, 0,   0x2c, 0,    0,   0,   ',', 0,
    0,    0,    ',',  0,    0, 0, 0, 0,    0,    0, 'U', 'T',  'F',  '-', '8', 0};

/* False: the C library has another form. */
static bool set_comma(scratch *s)
{
    char *folder = strrchr(s->folder, '/');
    scratch_write(scratch_path(s, "LC_NUMERIC"), comma_locale, sizeof comma_locale);
    *folder = '\0';
    bool set = setenv("LOCPATH", s->folder, 1) == 0 && setlocale(LC_NUMERIC, folder + 1) != NULL;
    *folder = '/';
    return set && strcmp(localeconv()->decimal_point, ",") == 0;
}

static void check_numbers(void)
{
    static const char *const texts[] = {"0.5", "-1.25e-07", "123456789.123457", "7", "1e+300", "-inf"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char text[MICA_NUMBER_ROOM];
        double value = 0.0;
        CHECK_MSG(mica_parse_number(&value, texts[i], strlen(texts[i])), "%s", texts[i]);
        CHECK_MSG(strcmp(mica_print_number(text, 15, value), texts[i]) == 0, "%s is %s", texts[i], text);
    }
    double value = 0.0;
    CHECK(mica_parse_number(&value, "123456789.123456789", 19) && value == 123456789.123456789);
}

static void check_scales(mica_context *ctx)
{
    mica_net *net;
    mica_int8 *q;
    char text[64];
    REQUIRE(CHECK_OK(ctx, mica_net_create(ctx, &net)));
    (void)mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){1, 3});
    if (CHECK_OK(ctx, mica_int8_create(net, &q))) {
        CHECK_OK(ctx, mica_int8_scales_read(q, "x 0.25\n"));
        CHECK(mica_int8_scales_print(text, sizeof text, q) < sizeof text);
        CHECK_MSG(strcmp(text, "x 0.25\n") == 0, "%s", text);
        mica_int8_destroy(q);
    }
    mica_net_destroy(net);
}

static void check_net_file(mica_context *ctx)
{
    mica_netfile_constant rate = {"rate", 0.1, false};
    mica_netfile_info info;
    mica_net *net;
    REQUIRE(CHECK_OK(ctx, mica_net_create(ctx, &net)));
    if (CHECK_OK(ctx, mica_netfile_build(net, &info, "let rate = 0.5\ninput x [4]\ndropout rate\ndense 2\n",
                                         &(mica_netfile_opts){.constants = &rate, .constant_count = 1})))
        CHECK_MSG(strncmp(info.text, "let rate = 0.1\n", 15) == 0, "%s", info.text);
    mica_net_destroy(net);
}

static void check_table(mica_context *ctx)
{
    mica_table *table, *back;
    char text[2000];
    size_t bytes = sizeof text;
    REQUIRE(CHECK_OK(ctx, table_scan(ctx, &table, "width,price\n0.5,1.25\n1.5,2.75\n", NULL)));
    if (CHECK_OK(ctx, mica_table_to_text(ctx, text, &bytes, table)) &&
        CHECK_OK(ctx, mica_table_from_text(ctx, &back, text))) {
        CHECK(mica_table_column(back, 1)->mean == 2.0);
        mica_table_destroy(ctx, back);
    }
    mica_table_destroy(ctx, table);
}

TEST(text_is_the_same_in_every_locale)
{
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    bool set = set_comma(&s);
    if (set) {
        check_numbers();
        check_scales(ctx);
        check_net_file(ctx);
        check_table(ctx);
    } else {
        test_skip("a locale of this form is unknown here");
    }
    CHECK(setlocale(LC_NUMERIC, "C") != NULL);
    unsetenv("LOCPATH");
    scratch_remove(&s);
}
