/* CSV: what is read, and where it goes wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/sample.h"
#include "test.h"

TEST(csv_reads_numbers)
{
    mica_context *ctx = test_context(1);
    static const struct {
        const char *text;
        mica_csv_opts opts;
        mica_index rows, columns;
        float inputs[6], targets[3];
    } good[] = {
        {"1,2,3\n4,5,6\n", {0}, 2, 3, {1, 2, 3, 4, 5, 6}, {0}},
        {"1,2,3\r\n4,5,6", {0}, 2, 3, {1, 2, 3, 4, 5, 6}, {0}},
        {"\xef\xbb\xbf"
         "a,b,c\n\n1,2,3\n\n\n4,5,6\n\n",
         {0},
         2,
         3,
         {1, 2, 3, 4, 5, 6},
         {0}},
        {"a,b,c\n1,2,3\n4,5,6\n", {.label = "b"}, 2, 2, {1, 3, 4, 6}, {2, 5}},
        {"1,2,3\n4,5,6\n", {.label_column = 1}, 2, 2, {2, 3, 5, 6}, {1, 4}},
        {"1,2,3\n4,5,6\n", {.label_column = -1}, 2, 2, {1, 2, 4, 5}, {3, 6}},
        {"1,2,3\n4,5,6\n", {.header = MICA_CSV_HEADER_YES}, 1, 3, {4, 5, 6}, {0}},
        {"\"x, \"\"y\"\"\",\"line\nbreak\"\n\"1\", 2 \n", {.label = "x, \"y\""}, 1, 1, {2}, {1}},
        {"1;2\n3;4\n", {.delimiter = ';'}, 2, 2, {1, 2, 3, 4}, {0}},
        {"1\t-2.5e-1\n", {.delimiter = '\t'}, 1, 2, {1, -0.25f}, {0}},
        {"7\n8\n9\n", {.label_column = 1}, 3, 0, {0}, {7, 8, 9}},
        {"+1,.5\r2.,1e2", {0}, 2, 2, {1, 0.5f, 2, 100}, {0}},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        mica_dataset set = {0};
        if (!CHECK_OK(ctx, sample_read_csv(ctx, &set, good[i].text, &good[i].opts)))
            continue;
        bool labelled = good[i].opts.label != NULL || good[i].opts.label_column != 0;
        CHECK(set.count == good[i].rows && set.inputs.dim[0] == good[i].rows &&
              set.inputs.dim[1] == good[i].columns && set.has_targets == labelled);
        size_t bytes = (size_t)(good[i].rows * good[i].columns) * sizeof(float);
        CHECK_MSG(memcmp(set.inputs.data, good[i].inputs, bytes) == 0, "inputs of %s", good[i].text);
        if (labelled)
            CHECK(memcmp(set.targets.data, good[i].targets, (size_t)good[i].rows * sizeof(float)) == 0);
        mica_dataset_destroy(ctx, &set);
    }
    mica_dataset set = {0};
    CHECK_OK(ctx, sample_read_csv(ctx, &set, "1,,nan\n", &(mica_csv_opts){.allow_empty = true}));
    const float *x = set.inputs.data;
    CHECK(x[0] == 1 && x[1] != x[1] && x[2] != x[2]);
    mica_dataset_destroy(ctx, &set);
    CHECK(mica_context_heap(ctx).live_bytes == mica_context_heap(test_context(1)).live_bytes);
}

TEST(csv_says_where_it_goes_wrong)
{
    mica_context *ctx = test_context(1);
    static const struct {
        const char *text, *error;
        mica_csv_opts opts;
    } bad[] = {
        {"", "line 1: the file has no numbers", {0}},
        {"\n\n", "line 3: the file has no numbers", {0}},
        {"a,b\n", "line 2: the file has no numbers", {0}},
        {"a,b\n1,2\n3,x\n", "line 3, column 2: \"x\" is not a number", {0}},
        {"a,b\n1,2\n3,\n", "line 3, column 2: empty field", {0}},
        {"1,2\n3\n", "line 2, column 1: fewer fields than the first line", {0}},
        {"1,2\n3,4,5\n", "line 2, column 3: more fields than the first line", {0}},
        {"1,2\n3,\"4\n\n", "line 2, column 2: unterminated quote", {0}},
        {"1,2\n3,\"4\"5\n", "line 2, column 2: text after the closing quote", {0}},
        {"\"a\n\nb\",c\n1,x\n", "line 4, column 2: \"x\" is not a number", {0}},
        {"a,b\n1,2\n", "line 1, column 1: \"a\" is not a number", {.header = MICA_CSV_HEADER_NO}},
        {"a,b\n1,2\n", "line 1: there is no column \"c\"", {.label = "c"}},
        {"1,2\n3,4\n", "line 1: there is no column \"1\"", {.label = "1"}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        mica_dataset set = {0};
        char error[256];
        snprintf(error, sizeof error, "format error: \"file\": %s", bad[i].error);
        CHECK_ERROR(ctx, sample_read_csv(ctx, &set, bad[i].text, &bad[i].opts), MICA_ERR_FORMAT, error);
        CHECK(set.inputs.data == NULL);
    }
    mica_dataset set = {0};
    CHECK_ERROR(ctx, sample_read_csv(ctx, &set, "1,2\n", &(mica_csv_opts){.label_column = 3}),
                MICA_ERR_ARGUMENT, "argument error: \"file\": label_column is 3, the file has 2 columns");
    char wide[2000];
    memset(wide, '1', sizeof wide - 1);
    wide[sizeof wide - 1] = '\0';
    CHECK_ERROR(ctx, sample_read_csv(ctx, &set, wide, NULL), MICA_ERR_FORMAT,
                "format error: \"file\": line 1, column 1: field longer than 1024 bytes");
    CHECK(mica_dataset_load_csv(ctx, &set, "no such file", NULL) == MICA_ERR_IO);
}

/* More than a buffer of text: rows are the same wherever the buffer ends. */
TEST(csv_across_buffers)
{
    mica_context *ctx = test_context(1);
    static char text[40000];
    for (int pad = 0; pad < 12; pad++) {
        size_t used = 0;
        int rows = 0;
        for (int k = 0; k < pad; k++)
            text[used++] = '\n';
        for (; used < sizeof text - 40; rows++)
            used += (size_t)snprintf(text + used, 40, "%d,\"%d\",%d.5\r\n", rows, rows * 7, -rows);
        mica_dataset set = {0};
        REQUIRE(CHECK_OK(ctx, sample_read_csv(ctx, &set, text, NULL)));
        CHECK(set.count == rows && set.inputs.dim[1] == 3);
        const float *x = set.inputs.data;
        for (int r = 0; r < rows; r++)
            CHECK(x[3 * r] == (float)r && x[3 * r + 1] == (float)(7 * r) &&
                  x[3 * r + 2] == (r == 0 ? 0.5f : -(float)r - 0.5f));
        mica_dataset_destroy(ctx, &set);
    }
}

TEST(csv_labels_by_name)
{
    mica_context *ctx = test_context(1);
    size_t live = mica_context_heap(ctx).live_bytes;
    static const char *const texts[] = {
        "1,2,pear\n3,4,apple\n5,6,pear\n", /* no header, though a field is text */
        "x,y,fruit\n1,2,pear\n3,4,apple\n5,6,pear\n"};
    for (int i = 0; i < 2; i++) {
        mica_dataset set = {0};
        CHECK_OK(ctx, sample_read_csv(ctx, &set, texts[i],
                                      &(mica_csv_opts){.label_column = -1, .label_names = true}));
        CHECK(set.count == 3 && set.class_count == 2 &&
              memcmp(set.targets.data, (float[]){1, 0, 1}, 12) == 0);
        REQUIRE(set.class_count == 2);
        CHECK(strcmp(set.classes[0], "apple") == 0 && strcmp(set.classes[1], "pear") == 0);
        mica_dataset_destroy(ctx, &set);
    }
    mica_dataset set = {0};
    mica_csv_opts named = {.label = "n", .label_names = true};
    CHECK_OK(ctx, sample_read_csv(ctx, &set, "n,x\n2,5\n1,6\n", &named));
    CHECK(set.classes == NULL &&
          memcmp(set.targets.data, (float[]){2, 1}, 8) == 0); /* numbers stay numbers */
    mica_dataset_destroy(ctx, &set);
    static const char *const known[] = {"apple", "fig", "pear"};
    named.classes = known;
    named.class_count = 3;
    CHECK_OK(ctx, sample_read_csv(ctx, &set, "n,x\npear,5\nfig,6\n", &named));
    CHECK(set.class_count == 3 && memcmp(set.targets.data, (float[]){2, 1}, 8) == 0);
    mica_dataset_destroy(ctx, &set);
    CHECK_ERROR(ctx, sample_read_csv(ctx, &set, "n,x\npear,5\nplum,6\n", &named), MICA_ERR_FORMAT,
                "format error: \"file\": line 3, column 1: unknown class \"plum\"");
    CHECK_ERROR(
        ctx,
        sample_read_csv(ctx, &set, "n,x\npear,5\n,6\n", &(mica_csv_opts){.label = "n", .label_names = true}),
        MICA_ERR_FORMAT, "format error: \"file\": line 3, column 1: empty field");
    static char many[60000] = "n,x\n";
    size_t at = strlen(many);
    for (int i = 0; i < 1025; i++)
        at += (size_t)snprintf(many + at, sizeof many - at, "class%d,1\n", i);
    CHECK_ERROR(ctx, sample_read_csv(ctx, &set, many, &(mica_csv_opts){.label = "n", .label_names = true}),
                MICA_ERR_FORMAT,
                "format error: \"file\": line 1026, column 1: too many distinct labels for class indices");
    CHECK(mica_context_heap(ctx).live_bytes == live);
}

/* ---- A file that somebody rewrites between the passes: as the set's memory is taken ---- */

typedef struct rewriting {
    char *text;
    const char *to;
    int at; /* the allocation at which it happens */
} rewriting;

static void *rewrite_and_allocate(void *user, size_t bytes, size_t align)
{
    rewriting *r = user;
    if (r->at-- == 0)
        memcpy(r->text, r->to, strlen(r->text));
    size_t whole = (bytes + align - 1) / align * align;
    return aligned_alloc(align, whole);
}

static void release(void *user, void *block, size_t bytes, size_t align)
{
    (void)user, (void)bytes, (void)align;
    free(block);
}

/* Reads `before`, which becomes `after`, of the same length, at the n-th allocation. */
static void check_rewritten(const char *before, const char *after, int at)
{
    char text[64];
    snprintf(text, sizeof text, "%s", before);
    CHECK(strlen(before) == strlen(after));
    rewriting r = {text, after, -1};
    mica_allocator allocator = {.user = &r, .allocate = rewrite_and_allocate, .release = release};
    mica_context *ctx;
    REQUIRE(mica_context_create(&ctx, &(mica_context_opts){.allocator = &allocator}) == MICA_OK);
    r.at = at;
    mica_dataset set = {0};
    mica_csv_opts opts = {.label_column = -1, .label_names = true};
    CHECK_ERROR(ctx, sample_read_csv(ctx, &set, text, &opts), MICA_ERR_IO,
                "file error: \"file\": the file changed while being read");
    mica_dataset_destroy(ctx, &set);
    mica_context_destroy(ctx);
}

TEST(csv_that_changes_while_it_is_read_is_an_error)
{
    /* Nothing but line ends: the header that was there is looked for, for ever if nobody minds the end. */
    check_rewritten("a,k\n1,cat\n2,dog\n", "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n", 0);
    check_rewritten("a,k\n1,cat\n2,dog\n", "a,k\n1,cat\n2,eel\n", 0);
    check_rewritten("a,k\n1,22\n3,44\n", "a,k\n1,22\n3,xy\n", 0);  /* a name where numbers were */
    check_rewritten("a,k\n1,22\n3,44\n", "a,k\n1,22\n3,45\n", 0);  /* another number */
    check_rewritten("a,k\n1,22\n3,44\n", "a,k\n1,22344\n\n\n", 1); /* fewer rows */
}
