/* Tables against pandas and scikit-learn: tests/golden/make_golden_table.py. */
#include <math.h>
#include <string.h>

#include "golden/golden.h"
#include "test.h"

enum { NEAR, FAR, WORD, WHEN, TARGET, COLUMNS };

static void compare(const golden_case *c, const char *name, const float *values, mica_index count)
{
    float copy[16];
    memcpy(copy, values, (size_t)count * sizeof *copy);
    mica_tensor got = mica_1d(copy, count);
    golden_compare(c, name, &got, 1e-6);
}

static void compare_statistics(const golden_case *c, const char *name, const mica_column *column)
{
    const float values[] = {(float)column->missing, (float)column->different, (float)column->least,
                            (float)column->most,    (float)column->mean,      (float)column->deviation,
                            (float)column->median};
    CHECK_MSG(column->kind == MICA_COLUMN_NUMBER, "%s, %s: kind %d", c->note, name, (int)column->kind);
    compare(c, name, values, sizeof values / sizeof values[0]);
}

static void compare_columns(const golden_case *c, const mica_table *table)
{
    compare_statistics(c, "near", mica_table_column(table, NEAR));
    compare_statistics(c, "far", mica_table_column(table, FAR));
    const mica_column *word = mica_table_column(table, WORD), *when = mica_table_column(table, WHEN);
    const mica_tensor *counts = golden_find(c, "words");
    CHECK(when->kind == MICA_COLUMN_DATE && when->times && word->kind == MICA_COLUMN_CATEGORY);
    if (CHECK(word->value_count == counts->dim[0]))
        for (int i = 0; i < word->value_count; i++)
            CHECK_MSG(word->counts[i] == (uint64_t)((const int32_t *)counts->data)[i], "%s: \"%s\"", c->note,
                      word->values[i]);
}

static void compare_rows(mica_context *ctx, const golden_case *c, const mica_table *table)
{
    const mica_tensor *file = golden_find(c, "file");
    mica_dataset set, full;
    if (!CHECK_OK(ctx,
                  mica_table_load_memory(ctx, &set, table, file->data, (size_t)file->dim[0], c->note, NULL)))
        return;
    if (CHECK_OK(ctx, mica_table_expand(ctx, &full, table, &set))) {
        golden_compare(c, "inputs", &full.inputs, 2e-6);
        golden_compare(c, "targets", &full.targets, 2e-6);
        mica_dataset_destroy(ctx, &full);
    }
    mica_dataset_destroy(ctx, &set);
    float mean, deviation;
    mica_table_target_unit(&mean, &deviation, table, 0);
    bool numbers = mica_table_column(table, TARGET)->kind == MICA_COLUMN_NUMBER;
    double unit[] = {golden_value(c, "unit", 0, 0), golden_value(c, "unit", 1, 1)};
    CHECK_MSG(numbers == (unit[1] != 1) && fabs((double)mean - unit[0]) < 1e-5 * unit[1] &&
                  fabs((double)deviation - unit[1]) < 1e-5 * unit[1],
              "%s: %g, %g", c->note, (double)mean, (double)deviation);
}

TEST(table_is_that_of_pandas_and_scikit_learn)
{
    mica_context *ctx = test_context(1);
    golden_file file = golden_load("table");
    CHECK(file.count == 5);
    for (size_t i = 0; i < file.count; i++) {
        const golden_case *c = &file.cases[i];
        const mica_tensor *bytes = golden_find(c, "file");
        mica_table *table;
        if (!CHECK_OK(ctx,
                      mica_table_scan_memory(ctx, &table, bytes->data, (size_t)bytes->dim[0], c->note, NULL)))
            continue;
        CHECK_MSG(mica_table_columns(table) == COLUMNS &&
                      (double)mica_table_rows(table) == golden_value(c, "rows", 0, 0) &&
                      mica_table_has_header(table) == (golden_value(c, "header", 0, 0) > 0) &&
                      mica_table_delimiter(table) == (char)golden_value(c, "delimiter", 0, 0),
                  "%s: %td rows, %d columns, delimiter %d", c->note, mica_table_rows(table),
                  mica_table_columns(table), mica_table_delimiter(table));
        compare_columns(c, table);
        mica_table_encode_opts opts = {.missing = (mica_missing)golden_value(c, "missing", 0, 0)};
        CHECK_OK(ctx, mica_table_set_role(ctx, table, TARGET, MICA_ROLE_TARGET));
        if (CHECK_OK(ctx, mica_table_encode(ctx, table, &opts)))
            compare_rows(ctx, c, table);
        mica_table_destroy(ctx, table);
    }
    golden_free(&file);
}
