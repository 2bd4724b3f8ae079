/* Tables that are read in blocks: every row once an epoch, the parts of mica_batches, cursors, no heap calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "oom.h"
#include "test.h"

enum { ROWS = 30011, BATCH = 37 };

/* A file of ROWS rows: a number, a word, a number that is sometimes missing, and the row's number as target. */
static void write_file(const char *path, bool gaps)
{
    static const char *const words[] = {"red", "green", "blue"};
    FILE *f = fopen(path, "w");
    REQUIRE(f != NULL);
    fprintf(f, "a,colour,b,n\n");
    for (int i = 0; i < ROWS; i++) {
        fprintf(f, "%d.25,%s,", i * 7 % 1000, words[i % 3]);
        if (i % 11 != 0)
            fprintf(f, "%d", i % 90);
        if (gaps && i % 13 == 0)
            fprintf(f, ",\n");
        else
            fprintf(f, ",%d\n", i);
    }
    fclose(f);
}

static mica_table *scan_file(mica_context *ctx, const char *path)
{
    mica_table *table = NULL;
    CHECK_OK(ctx, mica_table_scan(ctx, &table, path, NULL));
    CHECK_OK(ctx, mica_table_set_role(ctx, table, 3, MICA_ROLE_TARGET));
    CHECK_OK(ctx, mica_table_encode(ctx, table, &(mica_table_encode_opts){.raw_targets = true}));
    return table;
}

/* All rows of an epoch: which, and how often; inputs go to x [ROWS][inputs] by their number. */
static int epoch(mica_context *ctx, mica_table_stream *s, int *seen, int *first, float *x)
{
    float bx[BATCH * 7], by[BATCH];
    mica_tensor tx = mica_2d(bx, BATCH, 7), ty = mica_2d(by, BATCH, 1);
    int batches = 0;
    for (mica_index n;; batches++) {
        if (!CHECK_OK(ctx, mica_table_stream_begin(ctx, &n, s)) || n == 0)
            return batches;
        CHECK_OK(ctx, mica_table_stream_rows(ctx, &tx, &ty, 0, n, s));
        for (mica_index i = 0; i < n; i++) {
            seen[(int)by[i]]++;
            if (batches == 0 && first != NULL)
                first[i] = (int)by[i];
            if (x != NULL)
                memcpy(x + 7 * (int)by[i], bx + 7 * i, 7 * sizeof(float));
        }
    }
}

TEST(table_stream_has_every_row_once)
{
    mica_context *ctx = test_context(1);
    size_t live = mica_context_heap(ctx).live_bytes;
    char path[] = "/tmp/mica-test-XXXXXX";
    close(mkstemp(path));
    for (int gaps = 0; gaps < 2; gaps++) {
        write_file(path, gaps);
        mica_table *table = scan_file(ctx, path);
        REQUIRE(mica_table_inputs(table) == 7);
        mica_dataset set, full;
        CHECK_OK(ctx, mica_table_load(ctx, &set, table, path, NULL));
        CHECK_OK(ctx, mica_table_expand(ctx, &full, table, &set));
        int *seen = calloc(ROWS, sizeof *seen), firsts[2][BATCH];
        float *x = calloc((size_t)ROWS * 7, sizeof *x);
        static const mica_part parts[] = {MICA_PART_TRAIN, MICA_PART_VALIDATION, MICA_PART_TEST};
        mica_index all = 0;
        for (int p = 0; p < 3; p++) {
            mica_table_stream *s;
            mica_table_stream_opts opts = {.batch = BATCH,
                                           .seed = 5,
                                           .sequential = p > 0,
                                           .split = {.part = parts[p], .validation = 0.2, .test = 0.1},
                                           .bytes = 100000};
            mica_batches *b;
            CHECK_OK(ctx, mica_batches_create(ctx, &b, &set,
                                              &(mica_batches_opts){.sequential = true, .split = opts.split}));
            REQUIRE(CHECK_OK(ctx, mica_table_stream_create(ctx, &s, table, path, &opts)));
            CHECK(mica_table_stream_samples(s) == mica_batches_samples(b));
            all += mica_table_stream_samples(s);
            for (int round = 0; round < 3; round++) {
                memset(seen, 0, ROWS * sizeof *seen);
                test_heap before = test_heap_now(); /* of the reading thread, too */
                CHECK(epoch(ctx, s, seen, firsts[round % 2], x) == mica_table_stream_batches(s));
                CHECK(!test_heap_counted() || test_heap_now().calls == before.calls);
                /* The same rows as a walk through those in memory */
                float y[32];
                mica_tensor cells = mica_2d(x, 32, 3), ty = mica_2d(y, 32, 1);
                float *scratch = malloc(32 * 3 * sizeof *scratch);
                cells.data = scratch;
                for (mica_index n = 1; n > 0;) {
                    CHECK_OK(ctx, mica_batches_next(ctx, &cells, &ty, &n, b));
                    for (mica_index i = 0; i < n; i++)
                        CHECK(seen[(int)y[i]]-- == 1);
                }
                free(scratch);
                for (int i = 0; i < ROWS; i++)
                    CHECK(seen[i] == 0);
            }
            CHECK((memcmp(firsts[0], firsts[1], sizeof firsts[0]) != 0) == (p == 0));
            mica_batches_destroy(ctx, b);
            mica_table_stream_destroy(ctx, s);
        }
        CHECK(all == full.count);
        for (mica_index i = 0; i < full.count; i++)
            CHECK(memcmp((float *)full.inputs.data + 7 * i, x + 7 * (int)((float *)set.targets.data)[i],
                         7 * sizeof(float)) == 0);
        free(seen);
        free(x);
        mica_dataset_destroy(ctx, &full);
        mica_dataset_destroy(ctx, &set);
        mica_table_destroy(ctx, table);
    }
    unlink(path);
    CHECK(mica_context_heap(ctx).live_bytes == live);
}

/* A file with gaps in its target, by a table that was scanned from one without. */
TEST(table_stream_leaves_out_rows_of_an_indexed_file)
{
    mica_context *ctx = test_context(1);
    size_t live = mica_context_heap(ctx).live_bytes;
    char path[] = "/tmp/mica-test-XXXXXX";
    close(mkstemp(path));
    write_file(path, false);
    mica_table *table = scan_file(ctx, path);
    write_file(path, true);
    CHECK_OK(ctx, mica_table_index(ctx, table, path, NULL));
    mica_table_stream *s;
    mica_table_stream_opts opts = {.batch = BATCH, .seed = 5, .bytes = 100000};
    REQUIRE(CHECK_OK(ctx, mica_table_stream_create(ctx, &s, table, path, &opts)));
    CHECK(mica_table_stream_samples(s) == ROWS - (ROWS + 12) / 13);
    int *seen = calloc(ROWS, sizeof *seen);
    CHECK(epoch(ctx, s, seen, NULL, NULL) == mica_table_stream_batches(s));
    for (int i = 0; i < ROWS; i++)
        CHECK(seen[i] == (i % 13 != 0));
    mica_table_stream_destroy(ctx, s);
    free(seen);
    /* An index that could not be made is none. */
    FILE *f = fopen(path, "a");
    fprintf(f, "1\n");
    fclose(f);
    CHECK(mica_table_index(ctx, table, path, NULL) == MICA_ERR_FORMAT);
    CHECK(mica_table_stream_create(ctx, &s, table, path, &opts) == MICA_ERR_STATE);
    mica_table_destroy(ctx, table);
    unlink(path);
    CHECK(mica_context_heap(ctx).live_bytes == live);
}

TEST(table_stream_cursors_resume_exactly)
{
    mica_context *ctx = test_context(1);
    char path[] = "/tmp/mica-test-XXXXXX";
    close(mkstemp(path));
    write_file(path, false);
    mica_table *table = scan_file(ctx, path);
    mica_table_stream *a, *b;
    mica_table_stream_opts opts = {.batch = BATCH, .seed = 8, .bytes = 200000};
    REQUIRE(CHECK_OK(ctx, mica_table_stream_create(ctx, &a, table, path, &opts)));
    REQUIRE(CHECK_OK(ctx, mica_table_stream_create(ctx, &b, table, path, &opts)));
    float ax[BATCH * 7], bx[BATCH * 7];
    mica_tensor ta = mica_2d(ax, BATCH, 7), tb = mica_2d(bx, BATCH, 7);
    for (int step = 0; step < 1800; step++) {
        mica_index n, m;
        mica_cursor cursor = mica_table_stream_cursor(a);
        CHECK_OK(ctx, mica_table_stream_begin(ctx, &n, a));
        CHECK_OK(ctx, mica_table_stream_rows(ctx, &ta, NULL, 0, n, a));
        if (step % 97 != 0)
            continue;
        CHECK_OK(ctx, mica_table_stream_seek(ctx, b, cursor));
        CHECK_OK(ctx, mica_table_stream_begin(ctx, &m, b));
        CHECK_OK(ctx, mica_table_stream_rows(ctx, &tb, NULL, 0, m, b));
        CHECK(n == m && memcmp(ax, bx, (size_t)n * 7 * sizeof(float)) == 0);
    }
    CHECK(mica_table_stream_cursor(a).epoch == 2);
    CHECK(mica_table_stream_seek(ctx, b, (mica_cursor){0, ROWS + 1}) == MICA_ERR_INDEX);
    mica_table_stream_destroy(ctx, a);
    mica_table_stream_destroy(ctx, b);
    /* Another file by now */
    FILE *f = fopen(path, "r+");
    fseek(f, 400000, SEEK_SET);
    fprintf(f, "not,a,row\n");
    fclose(f);
    mica_status status = mica_table_stream_create(ctx, &a, table, path, &opts);
    for (int step = 0; status == MICA_OK && step < 1000; step++) {
        mica_index n;
        status = mica_table_stream_begin(ctx, &n, a);
    }
    CHECK(status == MICA_ERR_FORMAT && strstr(mica_error(ctx), "fields, the first line has 4") != NULL);
    mica_table_stream_destroy(ctx, a);
    CHECK(truncate(path, 1000) == 0);
    CHECK(mica_table_stream_create(ctx, &a, table, path, &opts) == MICA_ERR_IO && a == NULL);
    mica_table_destroy(ctx, table);
    unlink(path);
}

static mica_status use_table(mica_context *ctx, const char *path)
{
    char text[4096];
    size_t bytes = sizeof text;
    mica_table *table = NULL, *again = NULL;
    mica_dataset set = {0}, full = {0};
    mica_table_stream *s = NULL;
    mica_status status = mica_table_scan(ctx, &table, path, NULL);
    if (status == MICA_OK)
        status = mica_table_set_role(ctx, table, 3, MICA_ROLE_TARGET);
    if (status == MICA_OK)
        status = mica_table_encode(ctx, table, NULL);
    if (status == MICA_OK)
        status = mica_table_to_text(ctx, text, &bytes, table);
    if (status == MICA_OK)
        status = mica_table_from_text(ctx, &again, text);
    if (status == MICA_OK)
        status = mica_table_index(ctx, again, path, NULL);
    if (status == MICA_OK)
        status = mica_table_load(ctx, &set, again, path, NULL);
    if (status == MICA_OK)
        status = mica_table_expand(ctx, &full, again, &set);
    if (status == MICA_OK)
        status = mica_table_stream_create(ctx, &s, again, path, NULL);
    mica_index n;
    if (status == MICA_OK)
        status = mica_table_stream_begin(ctx, &n, s);
    mica_table_stream_destroy(ctx, s);
    mica_dataset_destroy(ctx, &full);
    mica_dataset_destroy(ctx, &set);
    mica_table_destroy(ctx, again);
    mica_table_destroy(ctx, table);
    return status;
}

static mica_status table_work(const mica_allocator *allocator, void *path)
{
    mica_context *ctx;
    mica_status status = mica_context_create(&ctx,
                                             &(mica_context_opts){.allocator = allocator, .threads = 1});
    if (status != MICA_OK)
        return status;
    status = use_table(ctx, path);
    mica_context_destroy(ctx);
    return status;
}

TEST(table_out_of_memory_at_any_time)
{
    char path[] = "/tmp/mica-test-XXXXXX";
    close(mkstemp(path));
    FILE *f = fopen(path, "w");
    REQUIRE(f != NULL);
    fprintf(f, "a,colour,b,kind\n");
    for (int i = 0; i < 300; i++)
        fprintf(f, "%d,%c%d,,\"x\"\"%d\"\n", i % 7, 'a' + i % 26, i % 3, i % 4);
    fclose(f);
    CHECK(test_oom(table_work, path) > 40);
    unlink(path);
}
