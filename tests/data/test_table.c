/* Scans of tables: what columns are taken for, and files that are none. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/table_case.h"
#include "test.h"

TEST(table_finds_delimiter_header_and_kinds)
{
    static const struct {
        const char *text, *kinds;
        mica_index rows;
        char delimiter;
        mica_scan_opts opts;
    } cases[] = {
        {"a,b\n1,2\n3,4\n", "number a, number b", 2, ',', {0}},
        {"\xef\xbb\xbf"
         "a,b\r\n\r\n1,2\r\n3,4",
         "number a, number b",
         2,
         ',',
         {0}},
        {"1,2,3\r4,5,6\r", "number column 1, number column 2, number column 3", 2, ',', {0}},
        {"a;b\n1,5;x\n2,25;y\n", "number a, category b", 2, ';', {0}},
        {"a\tb\n1\tx\n", "number a, category b", 1, '\t', {0}},
        {"a|b\n1|2\n", "number a, number b", 1, '|', {0}},
        {"7\n8\n9\n", "number column 1", 3, ',', {0}},
        {"n\n7\n8\n", "number n", 2, ',', {0}},
        {"power; kW\n7\n8\n5\n", "number power; kW", 3, ',', {0}},
        {"5.1,3.5,setosa\n4.9,3.0,setosa\n6.0,2.2,virginica\n",
         "number column 1, number column 2, category column 3",
         3,
         ',',
         {0}},
        {"city,state\nOslo,open\nRome,shut\nOslo,shut\n", "category city, category state", 3, ',', {0}},
        {"Oslo,open\nRome,shut\nOslo,open\nRome,open\n", "category column 1, category column 2", 4, ',', {0}},
        {"1,2\n3,4\n", "number 1, number 2", 1, ',', {.header = MICA_CSV_HEADER_YES}},
        {"a,b\n1,2\n", "category column 1, category column 2", 2, ',', {.header = MICA_CSV_HEADER_NO}},
        {"1,2\n3,4\n", "number column 1", 2, ';', {.delimiter = ';', .header = MICA_CSV_HEADER_NO}},
        {"\"x, \"\"y\"\"\",\"line\nbreak\"\n\"1\", 2 \n", "number x, \"y\", number line\nbreak", 1, ',', {0}},
        {"when,v\n2024-02-29,1\n2023-12-31T10:20,2\n", "date when, number v", 2, ',', {0}},
        {"when,v\n2023-02-29,1\n2023-12-31,2\n", "category when, number v", 2, ',', {0}},
        {"when\n31.12.2023 23:59:59\n1.2.2024\n", "date when", 2, ',', {0}},
        {"a,b,c\n1,NA,\n2,,null\n", "number a, empty b, empty c", 2, ',', {0}},
        {",a,a\n0,1,2\n", "number column 1, number a, number a (column 3)", 1, ',', {0}},
        {"a,b,c\n\" 1\",\"2.5 \",\"\t2024-02-29 \"\n\" \",\" NA\",\"\"\n",
         "number a, number b, date c",
         2,
         ',',
         {0}},
    };
    mica_context *ctx = test_context(1);
    size_t live = mica_context_heap(ctx).live_bytes;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mica_table *table;
        if (!CHECK_OK(ctx, table_scan(ctx, &table, cases[i].text, &cases[i].opts)))
            continue;
        CHECK_MSG(strcmp(table_kinds(table), cases[i].kinds) == 0, "%zu: %s", i, table_kinds(table));
        CHECK_MSG(mica_table_rows(table) == cases[i].rows, "%zu: %td rows", i, mica_table_rows(table));
        CHECK(mica_table_delimiter(table) == cases[i].delimiter);
        mica_table_destroy(ctx, table);
    }
    CHECK(mica_context_heap(ctx).live_bytes == live);
}

TEST(table_says_where_it_goes_wrong)
{
    static const struct {
        const char *text, *error;
    } bad[] = {
        {"", "the file has no rows"},
        {"\n\n", "the file has no rows"},
        {"1,2\n3\n", "line 2: 1 fields, the first line has 2"},
        {"1,2\n3,4,5\n", "line 2: 3 fields, the first line has 2"},
        {"1,2\n3,\"4\n\n", "line 2, column 2: unterminated quote"},
        {"1,2\n3,\"4\"5\n", "line 2, column 2: text after the closing quote"},
        {"a,b\n1,inf\n", "line 2, column 2: \"inf\" is not a finite number"},
        {"a,b\n1,1e999\n", "line 2, column 2: \"1e999\" is not a finite number"},
        {"\xff\xfe"
         "a",
         "this is UTF-16: save it as UTF-8"},
        {"v\n1e308\n-1e308\n", "column \"v\": its numbers are too large"},
    };
    mica_context *ctx = test_context(1);
    size_t live = mica_context_heap(ctx).live_bytes;
    mica_table *table;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char error[256];
        snprintf(error, sizeof error, "format error: \"file\": %s", bad[i].error);
        CHECK_ERROR(ctx, table_scan(ctx, &table, bad[i].text, NULL), MICA_ERR_FORMAT, error);
        CHECK(table == NULL);
    }
    CHECK_ERROR(ctx, table_scan(ctx, &table, "a,b\n", &(mica_scan_opts){.header = MICA_CSV_HEADER_YES}),
                MICA_ERR_FORMAT, "format error: \"file\": the file has a header and no rows");
    CHECK(mica_table_scan_memory(ctx, &table, "a\0b\n1\n", 6, "file", NULL) == MICA_ERR_FORMAT);
    CHECK(mica_table_scan(ctx, &table, "no such file", NULL) == MICA_ERR_IO);
    CHECK(mica_context_heap(ctx).live_bytes == live);
}

TEST(table_statistics)
{
    mica_context *ctx = test_context(1);
    mica_table *table;
    CHECK_OK(ctx, table_scan(
                      ctx, &table,
                      "id,size,town,sold\n1,2.5,Oslo,2020-01-01\n2,NA,Rome,2020-01-03\n3,3.5,Oslo,\n4,9,Bonn,"
                      "2020-01-02\n",
                      NULL));
    const mica_column *c = mica_table_column(table, 0);
    CHECK(c->counts_rows && c->role == MICA_ROLE_NONE && c->whole && c->least == 1 && c->most == 4);
    c = mica_table_column(table, 1);
    CHECK(c->missing == 1 && c->different == 3 && !c->whole && c->role == MICA_ROLE_INPUT);
    CHECK(c->mean == 5 && fabs(c->deviation - sqrt((6.25 + 2.25 + 16) / 3)) < 1e-12 && c->median == 3.5);
    c = mica_table_column(table, 2);
    CHECK(c->value_count == 3 && strcmp(c->values[0], "Bonn") == 0 && strcmp(c->values[1], "Oslo") == 0 &&
          c->counts[1] == 2 && c->counts[2] == 1);
    c = mica_table_column(table, 3);
    CHECK(c->missing == 1 && !c->times && c->least == 18262 * 86400.0 && c->median == 18263 * 86400.0);
    CHECK(mica_table_find(table, "town") == 2 && mica_table_find(table, "x") == -1);
    mica_table_destroy(ctx, table);

    /* Numbers of rows, without a header; with a gap at the start or after the first; words in the first row */
    CHECK_OK(ctx, table_scan(ctx, &table, "7,,1,a\n8,2,3,1\n9,3,4,2\n10,4,5,3\n", NULL));
    CHECK(mica_table_rows(table) == 3 && mica_table_has_header(table));
    mica_table_destroy(ctx, table);
    CHECK_OK(ctx, table_scan(ctx, &table, "7,,1\n8,2,3\n9,3,4\n10,4,5\n", NULL));
    CHECK(mica_table_rows(table) == 4 && mica_table_column(table, 0)->counts_rows);
    CHECK(!mica_table_column(table, 1)->counts_rows && !mica_table_column(table, 2)->counts_rows);
    mica_table_destroy(ctx, table);
    CHECK_OK(ctx, table_scan(ctx, &table, "n,k\n,5\n1,6\n2,7\n3,8\n", NULL));
    CHECK(!mica_table_column(table, 0)->counts_rows && mica_table_column(table, 1)->counts_rows);
    mica_table_destroy(ctx, table);

    CHECK_OK(ctx, table_scan(ctx, &table, "n\n10\n9\n1.0\n1\n10\n",
                             NULL)); /* in the order of numbers, 1 and 1.0 as one */
    c = mica_table_column(table, 0);
    CHECK(c->value_count == 3 && strcmp(c->values[2], "10") == 0 && c->counts[0] == 2 && c->counts[2] == 2);
    mica_table_destroy(ctx, table);
}

/* The first record is surveyed last where it is no header. */
TEST(table_columns_that_count_rows)
{
    static const struct {
        const char *text;
        bool counts;
    } cases[] = {
        {"id,x\n1,5\n2,3\n3,9\n", true},  {"1,5\n2,3\n3,9\n", true},
        {"1,5\n3,3\n4,9\n", false},       {"2,5\n2,3\n3,9\n", false},
        {"NA,5\n2,3\n3,9\n4,1\n", false}, {"id,x\n,5\n2,3\n3,9\n4,1\n", false},
        {"1,5\n2,3\n,9\n4,1\n", false},   {"7,5\n2,7\n3,5\n4,7\n", false},
        {"1,5\n2,7\n4,5\n5,7\n", false},
    };
    mica_context *ctx = test_context(1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mica_table *table;
        if (!CHECK_OK(ctx, table_scan(ctx, &table, cases[i].text, NULL)))
            continue;
        const mica_column *c = mica_table_column(table, 0);
        CHECK_MSG(c->counts_rows == cases[i].counts, "%zu: %d", i, c->counts_rows);
        CHECK_MSG(c->role == (cases[i].counts ? MICA_ROLE_NONE : MICA_ROLE_INPUT), "%zu: role %d", i,
                  c->role);
        mica_table_destroy(ctx, table);
    }
}

/* More than one buffer, and every place where a buffer can end. */
TEST(table_across_buffers)
{
    enum { BYTES = 1100000 };
    mica_context *ctx = test_context(1);
    char *text = malloc(BYTES + 100);
    for (int pad = 0; pad < 9; pad++) {
        size_t used = 0;
        double sum = 0;
        int rows = 0;
        for (int k = 0; k < pad; k++)
            text[used++] = '\n';
        for (; used < BYTES; rows++) {
            used += (size_t)snprintf(text + used, 60, "%d,\"%d \"\"x\"\"\",%d.5\r\n", rows % 1000, rows % 7,
                                     -rows);
            sum += rows % 1000;
        }
        mica_table *table;
        REQUIRE(CHECK_OK(ctx, mica_table_scan_memory(ctx, &table, text, used, "file", NULL)));
        CHECK(mica_table_rows(table) == rows && mica_table_columns(table) == 3);
        CHECK(fabs(mica_table_column(table, 0)->mean - sum / rows) < 1e-9 * rows);
        CHECK(mica_table_column(table, 1)->value_count == 7 &&
              strcmp(mica_table_column(table, 1)->values[0], "0 \"x\"") == 0);
        CHECK(mica_table_column(table, 2)->least == -(rows - 1) - 0.5);
        mica_table_destroy(ctx, table);
    }
    free(text);
}

TEST(table_numbers_with_groups)
{
    static const struct {
        const char *text;
        double value; /* NAN: it is no number */
    } cases[] = {{"a;b\n1.234,50;1\n", 1234.5},       {"a;b\n-12.345.678,9;1\n", -12345678.9},
                 {"a;b\n1,234.50;1\n", 1234.5},       {"a;b\n1,234;1\n", 1.234},
                 {"a;b\n1.234;1\n", 1.234},           {"a;b\n1.234.567;1\n", 1234567},
                 {"a,b\n\"1,234.50\",1\n", 1234.5},   {"a,b\n\"1,234\",1\n", 1234},
                 {"a,b\n\"1,234,567\",1\n", 1234567}, {"a,b\n\"0,123\",1\n", (double)NAN},
                 {"a,b\n\"12,34\",1\n", (double)NAN}, {"a,b\n\"1234,567\",1\n", (double)NAN},
                 {"a;b\n1.234,;1\n", (double)NAN},    {"a;b\n1.23.456;1\n", (double)NAN}};
    mica_context *ctx = test_context(1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mica_table *table;
        REQUIRE(table_scan(ctx, &table, cases[i].text, &(mica_scan_opts){.header = MICA_CSV_HEADER_YES}) ==
                MICA_OK);
        const mica_column *c = mica_table_column(table, 0);
        CHECK(isnan(cases[i].value) ? c->kind != MICA_COLUMN_NUMBER
                                    : c->kind == MICA_COLUMN_NUMBER && c->mean == cases[i].value);
        mica_table_destroy(ctx, table);
    }
}

TEST(table_tells_odd_values_and_uneven_time)
{
    mica_table *table;
    mica_context *ctx = test_context(1);
    const char *text =
        "when,n\n2024-01-01,1\n2024-01-02,2\n2024-01-03,3\n2024-01-05,4\n2024-01-06,5\n2024-01-07,6\n"
        "2024-01-08,7\n2024-01-09,8\n2024-01-10,9\n2024-01-11,k.A.\n";
    REQUIRE(table_scan(ctx, &table, text, NULL) == MICA_OK);
    const mica_column *when = mica_table_column(table, 0), *n = mica_table_column(table, 1);
    CHECK(when->step == 86400 && when->uneven == 1);
    CHECK(n->kind == MICA_COLUMN_CATEGORY && n->odd == 1 && strcmp(n->odd_value, "k.A.") == 0);
    mica_table_destroy(ctx, table);
}
