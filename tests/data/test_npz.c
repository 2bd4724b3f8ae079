/* npz: what NumPy wrote, and every way in which it may be wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/npz.h"
#include "data/sample.h"
#include "io/scratch.h"
#include "oom.h"

static const char *npz_path(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/npz/%s.npz", MICA_TEST_DATA, name);
    return path;
}

static void check_set(mica_dataset *set, mica_index count, bool targets)
{
    CHECK(set->count == count && set->inputs.rank == 2 && set->inputs.dim[1] == 3 &&
          set->inputs.dtype == MICA_F32 && set->has_targets == targets);
    for (int i = 0; i < 6; i++)
        CHECK(((float *)set->inputs.data)[i] == (float)i);
    if (targets)
        CHECK(set->targets.dtype == MICA_I64 && ((int64_t *)set->targets.data)[1] == 9);
}

TEST(npz_reads_files_of_numpy)
{
    mica_context *ctx = test_context(1);
    mica_dataset set;
    CHECK_OK(ctx, mica_dataset_load_npz(ctx, &set, npz_path("stored"), NULL));
    check_set(&set, 2, true);
    mica_dataset_destroy(ctx, &set);
    CHECK_OK(ctx, mica_dataset_load_npz(ctx, &set, npz_path("positions"), NULL));
    check_set(&set, 2, false);
    mica_dataset_destroy(ctx, &set);
    mica_npz_opts named = {.inputs = "a", .targets = "b"};
    CHECK_OK(ctx, mica_dataset_load_npz(ctx, &set, npz_path("others"), &named));
    check_set(&set, 2, true);
    mica_dataset_destroy(ctx, &set);
    CHECK(mica_dataset_load_npz(ctx, &set, npz_path("others"), NULL) == MICA_ERR_FORMAT && set.count == 0);
    CHECK(strstr(mica_error(ctx),
                 "npz: none of its 2 arrays has one of the usual names: expected x and y,") != NULL);
    named.targets = "c";
    CHECK(mica_dataset_load_npz(ctx, &set, npz_path("others"), &named) == MICA_ERR_FORMAT);
    CHECK(strstr(mica_error(ctx), "npz: no array \"c\" among its 2") != NULL);
    CHECK(mica_dataset_load_npz(ctx, &set, npz_path("stored"), &(mica_npz_opts){.test = true}) ==
          MICA_ERR_FORMAT);
    CHECK(strstr(mica_error(ctx), "expected x_test and y_test") != NULL);
    if (sample_has_zlib(ctx)) {
        CHECK_OK(ctx, mica_dataset_load_npz(ctx, &set, npz_path("packed"), NULL));
        check_set(&set, 2, true);
        mica_dataset_destroy(ctx, &set);
        CHECK_OK(ctx, mica_dataset_load_npz(ctx, &set, npz_path("split"), NULL));
        check_set(&set, 4, true);
        mica_dataset_destroy(ctx, &set);
        CHECK_OK(ctx, mica_dataset_load_npz(ctx, &set, npz_path("split"), &(mica_npz_opts){.test = true}));
        check_set(&set, 2, true);
        mica_dataset_destroy(ctx, &set);
    }
    CHECK(mica_context_heap(ctx).live_bytes == mica_context_heap(test_context(1)).live_bytes);
}

/* All arrays of a file in memory. */
static mica_status read_all(mica_context *ctx, const unsigned char *bytes, size_t count)
{
    unsigned char *copy = malloc(count + 1);
    memcpy(copy + 1, bytes, count);
    mica_npz npz;
    mica_status status = mica_npz_open(ctx, &npz, mica_file_over(copy + 1, count, "file"));
    for (size_t i = 0; status == MICA_OK && i < npz.count; i++) {
        mica_loaded got = {0};
        status = mica_npz_read(ctx, &got, &npz, &npz.arrays[i]);
        CHECK((status == MICA_OK) == (got.tensor.data != NULL));
        mica_loaded_release(ctx, &got);
    }
    mica_npz_close(ctx, &npz);
    free(copy);
    return status;
}

TEST(npz_mutations_give_clean_errors)
{
    mica_context *ctx = test_context(1);
    const char *names[] = {"stored", "packed"};
    bool zlib = sample_has_zlib(ctx); /* without, a part that claims to be packed is refused as such */
    for (int f = 0; f < (zlib ? 2 : 1); f++) {
        size_t count;
        unsigned char *bytes = scratch_read(npz_path(names[f]), &count);
        REQUIRE(bytes != NULL);
        CHECK_OK(ctx, read_all(ctx, bytes, count));
        for (size_t n = 0; n < count; n++)
            CHECK_MSG(read_all(ctx, bytes, n) == MICA_ERR_FORMAT, "%s cut to %zu bytes", names[f], n);
        for (size_t bit = 0; bit < 8 * count; bit++) {
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            mica_status status = read_all(ctx, bytes, count);
            CHECK(status == MICA_OK || status == MICA_ERR_FORMAT || (!zlib && status == MICA_ERR_IO));
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        free(bytes);
    }
    CHECK(mica_context_heap(ctx).live_bytes == mica_context_heap(test_context(1)).live_bytes);
}

/* Where "PK" and these two bytes are for the last time. */
static size_t last_mark(const unsigned char *bytes, size_t count, int a, int b)
{
    for (size_t i = count - 4; i > 0; i--)
        if (bytes[i] == 'P' && bytes[i + 1] == 'K' && bytes[i + 2] == a && bytes[i + 3] == b)
            return i;
    return 0;
}

TEST(npz_says_what_is_wrong)
{
    mica_context *ctx = test_context(1);
    static const struct {
        bool in_end; /* the byte is relative to the end, or to the last entry of the directory */
        size_t byte;
        unsigned char value;
        const char *error;
    } bad[] = {
        {true, 0, 'X', "npz: the end of a zip file's directory is missing: truncated, or not an npz file"},
        {true, 4, 1, "npz: a zip file in several parts is not supported"},
        {true, 11, 8, "npz: 2050 arrays, expected at most 1024"},
        {true, 10, 9, "npz: 9 arrays, expected at most 1024, and as the directory holds"},
        {true, 19, 1, "npz: a directory beyond the end of the file"},
        {false, 0, 'X', "npz: expected an entry of the directory"},
        {false, 8, 1, "npz: an array that is encrypted, or neither stored nor deflated"},
        {false, 10, 12, "npz: an array that is encrypted, or neither stored nor deflated"},
        {false, 29, 1, "npz: the directory ends within an entry"},
        {false, 28, 0, "npz: a name of no or more than 255 bytes, or with a zero byte"},
        {false, 16, 0, "npz: array \"y\" is damaged: its size or checksum differs from the directory's"},
        {false, 22, 9, "npz: an array that reaches into the directory"},
        {false, 42, 1, "npz: expected the header of an array"},
        {false, 24, 1, "a part of 144 bytes is said to hold 1, expected 144"},
    };
    size_t count;
    unsigned char *bytes = scratch_read(npz_path("stored"), &count);
    REQUIRE(bytes != NULL);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        size_t at = (bad[i].in_end ? last_mark(bytes, count, 5, 6) : last_mark(bytes, count, 1, 2)) +
                    bad[i].byte;
        unsigned char kept = bytes[at];
        bytes[at] = bad[i].value;
        CHECK(read_all(ctx, bytes, count) == MICA_ERR_FORMAT);
        CHECK_MSG(strstr(mica_error(ctx), bad[i].error) != NULL, "%s, not %s", mica_error(ctx), bad[i].error);
        bytes[at] = kept;
    }
    free(bytes);
}

/* The sizes of one array and the directory as a file above 4 GiB has them. */
TEST(npz_zip64)
{
    mica_context *ctx = test_context(1);
    size_t count;
    unsigned char *bytes = scratch_read(npz_path("positions"), &count);
    REQUIRE(bytes != NULL);
    unsigned char made[1024] = {0};
    size_t entry = last_mark(bytes, count, 1, 2), end = last_mark(bytes, count, 5, 6),
           name = bytes[entry + 28];
    size_t size = entry + 46 + name;
    memcpy(made, bytes, size);
    made[entry + 30] = 4 + 24; /* an extra field: 1, its length, bytes, packed, offset */
    memset(made + entry + 20, 0xff, 8);
    memset(made + entry + 42, 0xff, 4);
    made[size] = 1;
    made[size + 2] = 24;
    memcpy(made + size + 4, bytes + entry + 24, 4);
    memcpy(made + size + 12, bytes + entry + 20, 4);
    size += 28;
    size_t end64 = size;
    memcpy(made + size, (const unsigned char[]){'P', 'K', 6, 6}, 4);
    made[size + 32] = 1;
    made[size + 40] = (unsigned char)(end64 - entry);
    made[size + 48] = (unsigned char)entry;
    made[size + 49] = (unsigned char)(entry >> 8);
    size += 56;
    memcpy(made + size, (const unsigned char[]){'P', 'K', 6, 7}, 4);
    made[size + 8] = (unsigned char)end64;
    made[size + 9] = (unsigned char)(end64 >> 8);
    size += 20;
    memcpy(made + size, bytes + end, 22);
    memset(made + size + 8, 0xff, 12);
    size += 22;
    CHECK_OK(ctx, read_all(ctx, made, size));
    made[end64 + 48]++;
    CHECK(read_all(ctx, made, size) == MICA_ERR_FORMAT);
    made[end64 + 48]--;
    made[entry + 46 + name + 2] = 16; /* the field is too short for what it must hold */
    CHECK(read_all(ctx, made, size) == MICA_ERR_FORMAT);
    free(bytes);
}

static mica_status oom_work(const mica_allocator *allocator, void *argument)
{
    mica_context *ctx = NULL;
    mica_status status = mica_context_create(&ctx, &(mica_context_opts){.allocator = allocator});
    mica_dataset set = {0};
    if (status == MICA_OK)
        status = mica_dataset_load_npz(ctx, &set, npz_path(argument), NULL);
    mica_dataset_destroy(ctx, &set);
    mica_context_destroy(ctx);
    return status;
}

TEST(npz_out_of_memory)
{
    char stored[] = "stored", packed[] = "packed";
    CHECK(test_oom(oom_work, sample_has_zlib(test_context(1)) ? packed : stored) >= 4);
}
