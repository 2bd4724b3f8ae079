/* Rows of tables: what becomes of columns, files that do not fit, tables as text, windows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/table_case.h"
#include "test.h"

/* ---- Encoding ---- */

static const char houses[] =
    "town,size,sold,price\n"
    "Oslo,10,2020-07-01,100\n"
    "Rome,20,2020-07-02,200\n"
    "Oslo,,2020-07-03,300\n"
    "Bonn,30,2020-07-04,400\n";

/* The table of `houses` with its price as target. */
static mica_table *houses_table(mica_context *ctx, const mica_table_encode_opts *opts)
{
    mica_table *table;
    CHECK_OK(ctx, table_scan(ctx, &table, houses, NULL));
    CHECK_OK(ctx, mica_table_set_role(ctx, table, 3, MICA_ROLE_TARGET));
    CHECK_OK(ctx, mica_table_encode(ctx, table, opts));
    return table;
}

static mica_status expand(mica_context *ctx, mica_dataset *out, const mica_table *table, const char *text,
                          const mica_table_read_opts *opts)
{
    mica_dataset cells = {0};
    mica_status status = table_load(ctx, &cells, table, text, opts);
    if (status != MICA_OK)
        return status;
    status = mica_table_expand(ctx, out, table, &cells);
    if (status == MICA_OK) { /* targets go with the inputs */
        out->owned[1] = cells.owned[1];
        cells.owned[1] = 0;
    }
    mica_dataset_destroy(ctx, &cells);
    return status;
}

TEST(table_encodes_rows)
{
    mica_context *ctx = test_context(1);
    size_t live = mica_context_heap(ctx).live_bytes;
    mica_table *table = houses_table(ctx, NULL);
    /* town: 3 values and unseen; size and its indicator; sold: standardized, sine and cosine */
    CHECK(mica_table_inputs(table) == 4 + 2 + 3 && mica_table_targets(table) == 1);
    mica_dataset set;
    mica_table_found found;
    REQUIRE(CHECK_OK(ctx, expand(ctx, &set, table, houses, &(mica_table_read_opts){.found = &found})));
    const float *x = set.inputs.data, *y = set.targets.data;
    float size = (float)(10 / sqrt(200.0 / 3)), price = (float)(50 / sqrt(12500.0));
    const float first[] = {0, 1, 0, 0, -size, 0};
    CHECK(memcmp(x, first, sizeof first) == 0);
    CHECK(x[9 + 2] == 1 && x[9 + 4] == 0 && x[9 + 5] == 0);
    CHECK(x[18 + 4] == 0 && x[18 + 5] == 1 && x[27] == 1);
    CHECK(fabsf(x[6] + (float)(1.5 / sqrt(1.25))) < 1e-6f && fabsf(x[7]) < 0.05f && fabsf(x[8] + 1) < 1e-3f);
    CHECK(fabsf(y[0] + 3 * price) < 1e-6f && fabsf(y[3] - 3 * price) < 1e-6f);
    CHECK(found.rows == 4 && found.missing == 1 && found.dropped == 0 && found.unseen == 0);
    float mean, deviation;
    mica_table_target_unit(&mean, &deviation, table, 0);
    CHECK(mean == 250 && deviation == (float)sqrt(12500.0));
    mica_dataset_destroy(ctx, &set);

    /* Other order, another town, a column too many, no price */
    static const char other[] = "colour,sold,town,size\nred,2020-07-01,Kiel,NA\n";
    mica_table_read_opts without = {.no_targets = true, .found = &found};
    REQUIRE(CHECK_OK(ctx, expand(ctx, &set, table, other, &without)));
    x = set.inputs.data;
    const float unseen[] = {0, 0, 0, 1, 0, 1};
    CHECK(set.count == 1 && !set.has_targets && memcmp(x, unseen, sizeof unseen) == 0);
    CHECK(found.unseen == 1 && found.extra_columns == 1 && found.missing == 1 && !found.by_position);
    mica_dataset_destroy(ctx, &set);
    CHECK_ERROR(
        ctx, table_load(ctx, &set, table, other, NULL), MICA_ERR_FORMAT,
        "format error: \"file\": line 1: there is no column \"price\", which the table has as a target");
    CHECK_ERROR(ctx, table_load(ctx, &set, table, "town,size,sold,price\nOslo,big,2020-01-01,1\n", NULL),
                MICA_ERR_FORMAT, "format error: \"file\": line 2, column \"size\": \"big\" is not a number");
    CHECK_ERROR(ctx, table_load(ctx, &set, table, "town,size,sold,price\nOslo,1,soon,1\n", NULL),
                MICA_ERR_FORMAT, "format error: \"file\": line 2, column \"sold\": \"soon\" is not a date");
    CHECK_ERROR(
        ctx, table_load(ctx, &set, table, "Oslo,1\n", NULL), MICA_ERR_FORMAT,
        "format error: \"file\": line 1: there is no column \"town\", which the table has as an input");
    CHECK(table_load(ctx, &set, table, "Oslo,1,2020-01-01\n", &without) == MICA_OK && set.count == 1);
    CHECK(found.by_position && found.extra_columns == 0);
    mica_dataset_destroy(ctx, &set);
    mica_table_destroy(ctx, table);
    CHECK(mica_context_heap(ctx).live_bytes == live);
}

TEST(table_missing_values)
{
    mica_context *ctx = test_context(1);
    mica_dataset set;
    mica_table_found found;
    mica_table_read_opts opts = {.found = &found};
    mica_table *table = houses_table(ctx, &(mica_table_encode_opts){.missing = MICA_MISSING_DROP});
    CHECK(mica_table_inputs(table) == 8); /* no indicator */
    CHECK_OK(ctx, table_load(ctx, &set, table, houses, &opts));
    CHECK(set.count == 3 && found.dropped == 1 && ((float *)set.targets.data)[2] > 1);
    mica_dataset_destroy(ctx, &set);
    mica_table_destroy(ctx, table);
    table = houses_table(ctx, &(mica_table_encode_opts){.missing = MICA_MISSING_REFUSE});
    CHECK_ERROR(ctx, table_load(ctx, &set, table, houses, NULL), MICA_ERR_FORMAT,
                "format error: \"file\": line 4, column \"size\": the value is missing");
    mica_table_destroy(ctx, table);
    /* A target that is missing always drops the row; an input that never was before is filled. */
    table = houses_table(ctx, &(mica_table_encode_opts){.missing = MICA_MISSING_MEDIAN, .raw_targets = true});
    CHECK_OK(ctx, expand(ctx, &set, table, "town,size,sold,price\n?,1,,5\nOslo,1,2020-07-01,NA\n", &opts));
    const float *x = set.inputs.data;
    CHECK(set.count == 1 && found.dropped == 1 && found.missing == 2 && ((float *)set.targets.data)[0] == 5);
    CHECK(x[3] == 1 && x[6] == 0 && x[7] == 0 && x[8] == 0);
    mica_dataset_destroy(ctx, &set);
    mica_table_destroy(ctx, table);
}

TEST(table_targets_that_are_classes)
{
    mica_context *ctx = test_context(1);
    mica_table *table;
    mica_dataset set;
    CHECK_OK(ctx, table_scan(ctx, &table, "x,k\n1,b\n2,a\n3,b\n4,c\n", NULL));
    CHECK_OK(ctx, mica_table_set_role(ctx, table, 0, MICA_ROLE_INPUT));
    CHECK_OK(ctx, mica_table_set_role(ctx, table, 1, MICA_ROLE_TARGET));
    CHECK_OK(ctx, mica_table_encode(ctx, table, NULL));
    CHECK_OK(ctx, table_load(ctx, &set, table, "k,x\nc,9\na,8\n", NULL));
    CHECK(set.class_count == 3 && strcmp(set.classes[2], "c") == 0 &&
          memcmp(set.targets.data, (float[]){2, 0}, 8) == 0);
    mica_dataset_destroy(ctx, &set);
    CHECK_ERROR(ctx, table_load(ctx, &set, table, "k,x\nd,9\n", NULL), MICA_ERR_FORMAT,
                "format error: \"file\": line 2, column \"k\": \"d\" is none of the classes of the table");
    CHECK_ERROR(ctx, mica_table_set_kind(ctx, table, 1, MICA_COLUMN_NUMBER), MICA_ERR_ARGUMENT,
                "argument error: table_set_kind: column \"k\" is not a column of numbers");
    mica_table_destroy(ctx, table);

    CHECK_OK(ctx, table_scan(ctx, &table, "x,k\n5,10\n6,2\n8,2.0\n", NULL)); /* numbers that are names */
    CHECK_OK(ctx, mica_table_set_kind(ctx, table, 1, MICA_COLUMN_CATEGORY));
    CHECK_OK(ctx, mica_table_set_role(ctx, table, 1, MICA_ROLE_TARGET));
    CHECK_OK(ctx, mica_table_encode(ctx, table, NULL));
    CHECK_OK(ctx, table_load(ctx, &set, table, "x,k\n5,10.0\n6,2\n", NULL));
    CHECK(set.class_count == 2 && memcmp(set.targets.data, (float[]){1, 0}, 8) == 0);
    mica_dataset_destroy(ctx, &set);
    mica_table_destroy(ctx, table);
}

/* A file is read by the names that its scan has made. */
TEST(table_names_that_are_empty_or_there_twice)
{
    static const char text[] = ",a,a,a \xc3\xa9,a\n0,1,2,3,10\n0,3,4,5,20\n";
    mica_context *ctx = test_context(1);
    mica_table *table, *back;
    mica_dataset set;
    mica_table_found found;
    CHECK_OK(ctx, table_scan(ctx, &table, text, NULL));
    CHECK_MSG(strcmp(table_kinds(table),
                     "number column 1, number a, number a (column 3), number a \xc3\xa9, number a "
                     "(column 5)") == 0,
              "%s", table_kinds(table));
    CHECK_OK(ctx, mica_table_set_role(ctx, table, 4, MICA_ROLE_TARGET));
    CHECK_OK(ctx, mica_table_encode(ctx, table, &(mica_table_encode_opts){.raw_targets = true}));
    CHECK_OK(ctx, table_load(ctx, &set, table, text, &(mica_table_read_opts){.found = &found}));
    const float *cells = set.inputs.data; /* of columns 1 to 4: the first is constant */
    CHECK(set.count == 2 && memcmp(set.targets.data, (float[]){10, 20}, 8) == 0 && found.extra_columns == 0);
    CHECK(set.inputs.dim[1] == 4 && memcmp(cells, (float[]){0, -1, -1, -1, 0, 1, 1, 1}, 32) == 0);
    mica_dataset_destroy(ctx, &set);
    /* In other places nothing says which is which. */
    CHECK(table_load(ctx, &set, table, "a,,a,a,a \xc3\xa9\n1,0,2,10,3\n", NULL) == MICA_ERR_FORMAT);
    mica_table_destroy(ctx, table);

    /* However long they are, they can be kept. */
    char wide[400], kept[2000];
    size_t bytes = sizeof kept;
    int at = snprintf(wide, sizeof wide, "x");
    for (int i = 0; i < 40; i++)
        at += snprintf(wide + at, sizeof wide - (size_t)at, "\xc3\xa9");
    char twice[1000];
    snprintf(twice, sizeof twice, "%s,%s\n1,2\n3,5\n", wide, wide);
    CHECK_OK(ctx, table_scan(ctx, &table, twice, NULL));
    snprintf(twice, sizeof twice, "%s (column 2)", wide);
    CHECK(strcmp(mica_table_column(table, 1)->name, twice) == 0);
    CHECK_OK(ctx, mica_table_to_text(ctx, kept, &bytes, table));
    CHECK_OK(ctx, mica_table_from_text(ctx, &back, kept));
    mica_table_destroy(ctx, back);
    mica_table_destroy(ctx, table);
    CHECK_ERROR(ctx, table_scan(ctx, &table, "a,a,a (column 2)\n1,2,3\n", NULL), MICA_ERR_FORMAT,
                "format error: \"file\": line 1: two columns are named \"a (column 2)\"");
}

/* ---- Text ---- */

TEST(table_text_of_any_delimiter)
{
    static const char delimiters[] = {',', '\t', '\\', '\x01', '|'};
    mica_context *ctx = test_context(1);
    for (size_t i = 0; i < sizeof delimiters; i++) {
        mica_table *table, *back;
        char lines[32], text[1000], again[1000];
        size_t bytes = sizeof text, more = sizeof again, at = 0;
        for (const char *c = "a,b\n1,2\n3,5\n"; *c != '\0'; c++)
            lines[at++] = *c == ',' ? delimiters[i] : *c;
        lines[at] = '\0';
        REQUIRE(CHECK_OK(ctx, table_scan(ctx, &table, lines, &(mica_scan_opts){.delimiter = delimiters[i]})));
        CHECK_OK(ctx, mica_table_to_text(ctx, text, &bytes, table));
        if (CHECK_OK(ctx, mica_table_from_text(ctx, &back, text))) {
            CHECK_OK(ctx, mica_table_to_text(ctx, again, &more, back));
            CHECK(strcmp(text, again) == 0);
            mica_table_destroy(ctx, back);
        }
        mica_table_destroy(ctx, table);
    }
}

TEST(table_survives_text)
{
    mica_context *ctx = test_context(1);
    size_t live = mica_context_heap(ctx).live_bytes;
    mica_table *table = houses_table(ctx, &(mica_table_encode_opts){.missing = MICA_MISSING_MEDIAN}), *back,
               *odd;
    size_t bytes = 0, again = 0;
    CHECK_OK(ctx, mica_table_to_text(ctx, NULL, &bytes, table));
    char *text = malloc(bytes), *copy = malloc(bytes);
    CHECK_OK(ctx, mica_table_to_text(ctx, text, &bytes, table));
    CHECK(strlen(text) + 1 == bytes);
    REQUIRE(CHECK_OK(ctx, mica_table_from_text(ctx, &back, text)));
    again = bytes;
    CHECK_OK(ctx, mica_table_to_text(ctx, copy, &again, back));
    CHECK(again == bytes && memcmp(text, copy, bytes) == 0);
    mica_dataset a, b;
    CHECK_OK(ctx, expand(ctx, &a, table, houses, NULL));
    CHECK_OK(ctx, expand(ctx, &b, back, houses, NULL));
    CHECK(memcmp(a.inputs.data, b.inputs.data, 4 * 9 * sizeof(float)) == 0);
    mica_dataset_destroy(ctx, &a);
    mica_dataset_destroy(ctx, &b);
    again = bytes - 1;
    memset(copy, '-', bytes);
    CHECK(mica_table_to_text(ctx, copy, &again, table) == MICA_ERR_ARGUMENT && again == bytes);
    for (size_t i = 0; i < bytes; i++)
        CHECK(copy[i] == '-'); /* nothing is written */
    /* Cut anywhere, or with any byte changed: an error, or a table. */
    for (size_t i = 0; i < bytes - 1; i++) {
        memcpy(copy, text, bytes);
        copy[i] = '\0';
        CHECK(mica_table_from_text(ctx, &odd, copy) != MICA_OK && odd == NULL);
        for (int k = 0; k < 6; k++) {
            memcpy(copy, text, bytes);
            copy[i] = "0\"]}-e"[k];
            if (mica_table_from_text(ctx, &odd, copy) == MICA_OK)
                mica_table_destroy(ctx, odd);
        }
    }
    mica_table_destroy(ctx, table);
    mica_table_destroy(ctx, back);
    free(text);
    free(copy);
    CHECK(mica_context_heap(ctx).live_bytes == live);
    CHECK_OK(ctx, table_scan(ctx, &table, "a,b\nx\xff,1\ny,2\n", NULL));
    bytes = 0;
    CHECK_ERROR(ctx, mica_table_to_text(ctx, NULL, &bytes, table), MICA_ERR_FORMAT,
                "format error: column \"a\": a value is not UTF-8: \"x\\xff\"");
    mica_table_destroy(ctx, table);
}

static mica_status keep(mica_context *ctx, mica_table **back, const mica_table *table)
{
    char text[4000];
    size_t bytes = sizeof text;
    mica_status status = mica_table_to_text(ctx, text, &bytes, table);
    return status == MICA_OK ? mica_table_from_text(ctx, back, text) : status;
}

/* Words with a decimal comma are words in a file with commas between fields: they stay so, in the same order. */
TEST(table_text_keeps_words_and_numbers_apart)
{
    static const char words[] = "x,k\n1,\"10,5\"\n2,\"2,5\"\n4,\"10,5\"\n";
    mica_context *ctx = test_context(1);
    mica_table *table, *back;
    mica_dataset set;
    CHECK_OK(ctx, table_scan(ctx, &table, words, NULL));
    CHECK_OK(ctx, mica_table_set_role(ctx, table, 1, MICA_ROLE_TARGET));
    CHECK_OK(ctx, mica_table_encode(ctx, table, NULL));
    CHECK_OK(ctx, keep(ctx, &back, table));
    CHECK_OK(ctx, table_load(ctx, &set, back, words, NULL));
    CHECK(memcmp(set.targets.data, (float[]){0, 1, 0}, 12) == 0);
    mica_dataset_destroy(ctx, &set);
    mica_table_destroy(ctx, back);
    mica_table_destroy(ctx, table);

    CHECK_OK(ctx, table_scan(ctx, &table, "x,k\n1,10\n2,9\n4,10\n", NULL));
    CHECK_OK(ctx, mica_table_set_kind(ctx, table, 1, MICA_COLUMN_CATEGORY));
    CHECK_OK(ctx, mica_table_set_role(ctx, table, 1, MICA_ROLE_TARGET));
    CHECK_OK(ctx, mica_table_encode(ctx, table, NULL));
    CHECK_OK(ctx, keep(ctx, &back, table));
    CHECK_OK(ctx, table_load(ctx, &set, back, "x,k\n1,10.0\n2,9\n", NULL));
    CHECK(memcmp(set.targets.data, (float[]){1, 0}, 8) == 0);
    mica_dataset_destroy(ctx, &set);
    mica_table_destroy(ctx, back);
    mica_table_destroy(ctx, table);
}

TEST(table_text_of_a_stranger)
{
    static const struct {
        const char *column, *error;
    } bad[] = {
        {"\"kind\": \"category\", \"values\": [\"\"]", "a value is empty, which is a missing one"},
        {"\"kind\": \"category\", \"numeric\": true, \"values\": [\"1\", \"b\"]", "a value is not a number"},
        {"\"kind\": \"category\", \"values\": [\"b\", \"b\"]", "a value occurs twice, or there are too many"},
        {"\"kind\": \"category\"", "a category has no values"},
        {"\"kind\": \"text\", \"role\": 1", "a column that has no use has a role"},
    };
    mica_context *ctx = test_context(1);
    mica_table *table;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[300];
        snprintf(text, sizeof text, "{\"version\": 1, \"columns\": [{\"name\": \"a\", %s}]}", bad[i].column);
        CHECK(mica_table_from_text(ctx, &table, text) == MICA_ERR_FORMAT && table == NULL);
        CHECK_MSG(strstr(mica_error(ctx), bad[i].error) != NULL, "%s", mica_error(ctx));
    }
    CHECK(mica_table_from_text(ctx, &table,
                               "{\"version\": 1, \"encoded\": true, \"missing\": \"median\", \"columns\": "
                               "[{\"name\": \"a\", \"kind\": \"number\", \"role\": 1, \"missing\": 1, "
                               "\"deviation\": 1e-300, \"median\": 1e300}]}") == MICA_ERR_ARGUMENT);
}

/* ---- Windows ---- */

TEST(table_windows_over_rows)
{
    mica_context *ctx = test_context(1);
    float x[10][2], y[10];
    for (int i = 0; i < 10; i++) {
        x[i][0] = (float)i;
        x[i][1] = (float)(100 + i);
        y[i] = (float)(1000 + i);
    }
    mica_tensor inputs = mica_2d(&x[0][0], 10, 2), targets = mica_2d(y, 10, 1);
    mica_dataset rows, set;
    CHECK_OK(ctx, mica_dataset_over(ctx, &rows, &inputs, &targets));
    CHECK_OK(ctx, mica_dataset_windows(ctx, &set, &rows, 3, 2));
    CHECK(set.count == 6 && set.inputs.rank == 3 && set.inputs.dim[1] == 3 && set.inputs.dim[2] == 2);
    float bx[6 * 6], by[6 * 2];
    mica_tensor tx = mica_3d(bx, 6, 3, 2), ty = mica_2d(by, 6, 2);
    mica_batches *b;
    mica_index n;
    CHECK_OK(ctx, mica_batches_create(ctx, &b, &set, &(mica_batches_opts){.batch = 6, .sequential = true}));
    CHECK_OK(ctx, mica_batches_next(ctx, &tx, &ty, &n, b));
    CHECK(n == 6);
    for (int i = 0; i < 6; i++) {
        for (int k = 0; k < 3; k++)
            CHECK(bx[6 * i + 2 * k] == (float)(i + k) && bx[6 * i + 2 * k + 1] == (float)(100 + i + k));
        CHECK(by[2 * i] == (float)(1003 + i) && by[2 * i + 1] == (float)(1004 + i));
    }
    mica_batches_destroy(ctx, b);
    CHECK_ERROR(ctx, mica_dataset_windows(ctx, &set, &rows, 9, 2), MICA_ERR_SHAPE,
                "shape error: dataset_windows: 10 rows are too few for a window of 9 and a horizon of 2");
}

TEST(table_refuses_what_a_column_cannot_be)
{
    static const char file[] = "a,b,c,d\n1e300,,2024-01-01,1\n1e300,,2024-01-02,2\n";
    mica_context *ctx = test_context(1);
    mica_table *table;
    REQUIRE(CHECK_OK(ctx, table_scan(ctx, &table, file, NULL)));
    CHECK_ERROR(ctx, mica_table_set_kind(ctx, table, 1, MICA_COLUMN_CATEGORY), MICA_ERR_ARGUMENT,
                "argument error: table_set_kind: column \"b\" has no values");
    CHECK_ERROR(ctx, mica_table_set_kind(ctx, table, 2, MICA_COLUMN_CATEGORY), MICA_ERR_ARGUMENT,
                "argument error: table_set_kind: column \"c\" is a date, which cannot be a category");
    CHECK_OK(ctx, mica_table_encode(ctx, table, NULL)); /* as an input it is standardized */
    CHECK_OK(ctx, mica_table_set_role(ctx, table, 0, MICA_ROLE_TARGET));
    CHECK_ERROR(ctx, mica_table_encode(ctx, table, NULL), MICA_ERR_ARGUMENT,
                "argument error: table_encode: column \"a\": its numbers are too large to predict");
    CHECK(mica_table_inputs(table) == 0);
    mica_table_destroy(ctx, table);
}

TEST(table_calls_without_arguments)
{
    mica_context *ctx = test_context(1);
    mica_table *table = houses_table(ctx, NULL);
    mica_dataset set = {0};
    mica_index n;
    CHECK(mica_table_scan(ctx, NULL, "file", NULL) == MICA_ERR_ARGUMENT);
    CHECK(mica_table_encode(ctx, NULL, NULL) == MICA_ERR_ARGUMENT);
    CHECK(mica_table_set_role(ctx, NULL, 0, MICA_ROLE_INPUT) == MICA_ERR_ARGUMENT);
    CHECK(mica_table_set_kind(ctx, table, 99, MICA_COLUMN_NUMBER) == MICA_ERR_INDEX);
    CHECK(mica_table_load(ctx, &set, NULL, "file", NULL) == MICA_ERR_ARGUMENT);
    CHECK(mica_table_expand(ctx, NULL, table, &set) == MICA_ERR_ARGUMENT);
    CHECK(mica_table_expand(ctx, &set, table, &set) == MICA_ERR_SHAPE);
    CHECK(mica_dataset_windows(ctx, &set, NULL, 1, 1) == MICA_ERR_ARGUMENT);
    CHECK(mica_dataset_windows(ctx, &set, &set, 1, 1) == MICA_ERR_ARGUMENT);
    CHECK(mica_table_stream_begin(ctx, &n, NULL) == MICA_ERR_ARGUMENT);
    CHECK(mica_table_stream_seek(ctx, NULL, (mica_cursor){0, 0}) == MICA_ERR_ARGUMENT);
    CHECK(mica_table_stream_rows(ctx, NULL, NULL, 0, 0, NULL) == MICA_ERR_ARGUMENT);
    CHECK(mica_table_column(table, -1) == NULL && mica_table_column(table, 4) == NULL);
    mica_table_destroy(ctx, table);
    mica_table_destroy(ctx, NULL);
    mica_table_stream_destroy(ctx, NULL);
}
