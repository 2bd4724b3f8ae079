/* npz: a zip file. Its directory is at the end:
 *
 *     [local header, data] ... | an entry for each ... | [zip64 end, its locator] | end: how many, where, a comment
 */
#include "data/npz.h"

#include <string.h>

#include "base/size.h"
#include "io/quote.h"
#include "tensor/tensor.h"

enum { END = 22, LOCATOR = 20, END64 = 56, ENTRY = 46, LOCAL = 30 }; /* bytes, variable parts aside */
enum { LONGEST_COMMENT = 65535, STORED = 0, DEFLATED = 8, ENCRYPTED = 1 };

typedef struct reader {
    mica_context *ctx;
    mica_npz *npz;
    uint64_t count, at, bytes; /* entries; where the directory begins; its size */
} reader;

static uint64_t low_first(const unsigned char *b, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)b[i] << 8 * i;
    return value;
}

static mica_status bad(const reader *r, uint64_t at, const char *what)
{
    return mica_fail(r->ctx, MICA_ERR_FORMAT, "%s: byte %llu: npz: %s", MICA_QUOTE(r->npz->file.path),
                     (unsigned long long)at, what);
}

static mica_status read_at(const reader *r, void *to, uint64_t at, size_t bytes)
{
    return mica_file_read(r->ctx, to, &r->npz->file, bytes, at);
}

/* ---- The directory ---- */

/* Where the numbers of the end are too large for it. */
static mica_status read_end64(reader *r, uint64_t end)
{
    unsigned char locator[LOCATOR], e[END64];
    if (end < LOCATOR)
        return bad(r, end, "no zip64 locator before the end of the directory");
    MICA_TRY(read_at(r, locator, end - LOCATOR, sizeof locator));
    if (memcmp(locator, "PK\6\7", 4) != 0)
        return bad(r, end - LOCATOR, "no zip64 locator before the end of the directory");
    uint64_t at = low_first(locator + 8, 8);
    if (at > r->npz->file.bytes || r->npz->file.bytes - at < sizeof e)
        return bad(r, end - LOCATOR, "a zip64 directory beyond the end of the file");
    MICA_TRY(read_at(r, e, at, sizeof e));
    if (memcmp(e, "PK\6\6", 4) != 0)
        return bad(r, at, "expected the end of a zip64 directory");
    r->count = low_first(e + 32, 8);
    r->bytes = low_first(e + 40, 8);
    r->at = low_first(e + 48, 8);
    return MICA_OK;
}

/* The end is followed by a comment that reaches to the file's last byte. */
static mica_status read_end(reader *r)
{
    unsigned char e[END];
    uint64_t size = r->npz->file.bytes, most = size < END + LONGEST_COMMENT ? size : END + LONGEST_COMMENT;
    for (uint64_t back = END; back <= most; back++) {
        uint64_t at = size - back;
        MICA_TRY(read_at(r, e, at, sizeof e));
        if (memcmp(e, "PK\5\6", 4) != 0 || low_first(e + 20, 2) != back - END)
            continue;
        r->count = low_first(e + 10, 2);
        r->bytes = low_first(e + 12, 4);
        r->at = low_first(e + 16, 4);
        if (low_first(e + 4, 2) != 0 && low_first(e + 4, 2) != UINT16_MAX)
            return bad(r, at + 4, "a zip file in several parts is not supported");
        if (r->count == UINT16_MAX || r->bytes == UINT32_MAX || r->at == UINT32_MAX)
            MICA_TRY(read_end64(r, at));
        if (r->at > size || r->bytes > size - r->at)
            return bad(r, at, "a directory beyond the end of the file");
        if (r->count > MICA_NPZ_MOST_ARRAYS || r->count * ENTRY > r->bytes)
            return mica_fail(
                r->ctx, MICA_ERR_FORMAT,
                "%s: byte %llu: npz: %llu arrays, expected at most %d, and as the directory holds",
                MICA_QUOTE(r->npz->file.path), (unsigned long long)at, (unsigned long long)r->count,
                MICA_NPZ_MOST_ARRAYS);
        return MICA_OK;
    }
    return bad(r, size, "the end of a zip file's directory is missing: truncated, or not an npz file");
}

/* Sizes above 4 GiB are in an extra field: those that are 2^32 - 1, in this order. */
static mica_status read_large(const reader *r, mica_npz_array *a, const unsigned char *extra, size_t bytes,
                              uint64_t at)
{
    uint64_t *large[] = {&a->bytes, &a->packed, &a->offset};
    for (size_t field = 0; field + 4 <= bytes;) {
        size_t length = (size_t)low_first(extra + field + 2, 2), used = 0;
        if (length > bytes - field - 4)
            return bad(r, at, "an extra field longer than its entry");
        for (int i = 0; i < 3 && low_first(extra + field, 2) == 1; i++) {
            if (*large[i] != UINT32_MAX)
                continue;
            if (length - used < 8)
                return bad(r, at, "a zip64 field without its sizes");
            *large[i] = low_first(extra + field + 4 + used, 8);
            used += 8;
        }
        field += 4 + length;
    }
    return MICA_OK;
}

/* "x.npy" is called x. */
static mica_status set_name(const reader *r, mica_npz_array *a, const unsigned char *name, size_t length,
                            uint64_t at)
{
    if (length > 4 && memcmp(name + length - 4, ".npy", 4) == 0)
        length -= 4;
    if (length == 0 || length >= sizeof a->name || memchr(name, '\0', length) != NULL)
        return bad(r, at, "a name of no or more than 255 bytes, or with a zero byte");
    memcpy(a->name, name, length);
    a->name[length] = '\0';
    return MICA_OK;
}

/* One entry, from `at` on; *next is where it ends. */
static mica_status read_entry(const reader *r, mica_npz_array *a, uint64_t at, uint64_t *next)
{
    unsigned char e[ENTRY], text[1024];
    uint64_t left = r->at + r->bytes - at;
    if (left < sizeof e)
        return bad(r, at, "the directory ends within an entry");
    MICA_TRY(read_at(r, e, at, sizeof e));
    size_t name = (size_t)low_first(e + 28, 2), extra = (size_t)low_first(e + 30, 2),
           comment = (size_t)low_first(e + 32, 2);
    if (memcmp(e, "PK\1\2", 4) != 0)
        return bad(r, at, "expected an entry of the directory");
    if (name + extra + comment > left - sizeof e)
        return bad(r, at, "the directory ends within an entry");
    if (name + extra > sizeof text)
        return bad(r, at + 28, "an entry with a name and extra fields of more than 1024 bytes");
    MICA_TRY(read_at(r, text, at + ENTRY, name + extra));
    uint64_t method = low_first(e + 10, 2);
    *a = (mica_npz_array){.checksum = (uint32_t)low_first(e + 16, 4),
                          .packed = low_first(e + 20, 4),
                          .bytes = low_first(e + 24, 4),
                          .offset = low_first(e + 42, 4),
                          .deflated = method == DEFLATED};
    MICA_TRY(set_name(r, a, text, name, at + ENTRY));
    if ((low_first(e + 8, 2) & ENCRYPTED) != 0 || (method != STORED && method != DEFLATED))
        return bad(r, at + 8, "an array that is encrypted, or neither stored nor deflated");
    MICA_TRY(read_large(r, a, text + name, extra, at + ENTRY + name));
    if (a->offset > r->at || r->at - a->offset < LOCAL || a->packed > r->at - a->offset - LOCAL)
        return bad(r, at + 20, "an array that reaches into the directory");
    *next = at + ENTRY + name + extra + comment;
    return MICA_OK;
}

static mica_status read_directory(reader *r)
{
    MICA_TRY(read_end(r));
    mica_npz *npz = r->npz;
    npz->arrays = mica_allocate(r->ctx, mica_most((size_t)r->count, 1) * sizeof *npz->arrays);
    if (npz->arrays == NULL)
        return r->ctx->status;
    npz->count = (size_t)r->count;
    uint64_t at = r->at;
    for (size_t i = 0; i < npz->count; i++)
        MICA_TRY(read_entry(r, &npz->arrays[i], at, &at));
    return MICA_OK;
}

mica_status mica_npz_open(mica_context *ctx, mica_npz *out, mica_file file)
{
    *out = (mica_npz){.file = file};
    reader r = {.ctx = ctx, .npz = out};
    mica_status status = read_directory(&r);
    if (status != MICA_OK)
        mica_npz_close(ctx, out);
    return status;
}

void mica_npz_close(mica_context *ctx, mica_npz *npz)
{
    mica_release(ctx, npz->arrays, mica_most(npz->count, 1) * sizeof *npz->arrays);
    mica_file_close(&npz->file);
    npz->arrays = NULL;
    npz->count = 0;
}

const mica_npz_array *mica_npz_find(const mica_npz *npz, const char *name)
{
    for (size_t i = 0; i < npz->count; i++)
        if (strcmp(npz->arrays[i].name, name) == 0)
            return &npz->arrays[i];
    return NULL;
}

/* ---- Arrays ---- */

/* CRC-32 as of zip, four bits at a time. */
static uint32_t checksum_of(uint32_t sum, const unsigned char *bytes, size_t count)
{
    static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                       0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                       0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    sum = ~sum;
    for (size_t i = 0; i < count; i++) {
        sum = table[(sum ^ bytes[i]) & 15] ^ sum >> 4;
        sum = table[(sum ^ bytes[i] >> 4) & 15] ^ sum >> 4;
    }
    return ~sum;
}

static mica_status check_sum(const reader *r, const mica_npz_array *a, mica_stream *stream)
{
    unsigned char buffer[4096];
    uint32_t sum = 0;
    size_t got;
    do {
        MICA_TRY(mica_stream_read(r->ctx, buffer, &got, stream, sizeof buffer));
        sum = checksum_of(sum, buffer, got);
    } while (got > 0);
    if (stream->position != a->bytes || sum != a->checksum)
        return mica_fail(r->ctx, MICA_ERR_FORMAT,
                         "%s: npz: array %s is damaged: its size or checksum differs from the directory's",
                         MICA_QUOTE(r->npz->file.path), MICA_QUOTE(a->name));
    return mica_stream_rewind(r->ctx, stream);
}

mica_status mica_npz_read(mica_context *ctx, mica_loaded *out, const mica_npz *npz, const mica_npz_array *a)
{
    unsigned char local[LOCAL];
    mica_npz whole = *npz;
    reader r = {.ctx = ctx, .npz = &whole};
    MICA_TRY(read_at(&r, local, a->offset, sizeof local));
    if (memcmp(local, "PK\3\4", 4) != 0)
        return bad(&r, a->offset, "expected the header of an array");
    uint64_t start = a->offset + LOCAL + low_first(local + 26, 2) + low_first(local + 28, 2);
    if (start > npz->file.bytes || a->packed > npz->file.bytes - start)
        return bad(&r, a->offset, "an array that goes beyond the end of the file");
    mica_stream stream;
    mica_file part = mica_file_part(&npz->file, start, a->packed);
    mica_status status = mica_stream_open_part(ctx, &stream, &part, a->deflated, a->bytes);
    if (status != MICA_OK)
        return status;
    status = check_sum(&r, a, &stream);
    if (status == MICA_OK)
        status = mica_npy_read(ctx, out, &stream);
    mica_stream_close(ctx, &stream);
    return status;
}

/* ---- Sets ---- */

void mica_npz_usual(const mica_npz *npz, bool test, const char **inputs, const char **targets)
{
    static const char *const names[][3] = {
        /* inputs, targets, whether for tests */
        {"x", "y", ""},
        {"X", "Y", ""},
        {"X", "y", ""},
        {"inputs", "targets", ""},
        {"x_train", "y_train", ""},
        {"X_train", "y_train", ""},
        {"arr_0", "arr_1", ""},
        {"x_test", "y_test", "test"},
        {"X_test", "y_test", "test"},
    };
    *inputs = *targets = NULL;
    for (int pass = 0; pass < 2; pass++) { /* both, or at least the inputs */
        for (size_t i = 0; i < sizeof names / sizeof names[0] && *inputs == NULL; i++) {
            bool has_targets = mica_npz_find(npz, names[i][1]) != NULL;
            if ((names[i][2][0] != '\0') != test || mica_npz_find(npz, names[i][0]) == NULL ||
                (pass == 0 && !has_targets))
                continue;
            *inputs = names[i][0];
            *targets = has_targets ? names[i][1] : NULL;
        }
    }
}

static mica_status read_named(mica_context *ctx, mica_loaded *out, const mica_npz *npz, const char *name)
{
    const mica_npz_array *array = mica_npz_find(npz, name);
    if (array == NULL)
        return mica_fail(ctx, MICA_ERR_FORMAT, "%s: npz: no array %s among its %zu",
                         MICA_QUOTE(npz->file.path), MICA_QUOTE(name), npz->count);
    return mica_npz_read(ctx, out, npz, array);
}

static mica_status load(mica_context *ctx, mica_dataset *out, const mica_npz *npz, const mica_npz_opts *opts)
{
    const char *inputs = opts != NULL ? opts->inputs : NULL, *targets = opts != NULL ? opts->targets : NULL;
    if (inputs == NULL)
        mica_npz_usual(npz, opts != NULL && opts->test, &inputs, &targets);
    if (inputs == NULL)
        return mica_fail(ctx, MICA_ERR_FORMAT,
                         "%s: npz: none of its %zu arrays has one of the usual names: expected %s",
                         MICA_QUOTE(npz->file.path), npz->count,
                         opts != NULL && opts->test ? "x_test and y_test"
                                                    : "x and y, inputs and targets, or x_train and y_train");
    mica_loaded x = {0}, y = {0};
    MICA_TRY(read_named(ctx, &x, npz, inputs));
    mica_status status = targets != NULL ? read_named(ctx, &y, npz, targets) : MICA_OK;
    return mica_dataset_give(ctx, out, &x, targets != NULL ? &y : NULL, npz->file.path, status);
}

mica_status mica_dataset_load_npz(mica_context *ctx, mica_dataset *out, const char *path,
                                  const mica_npz_opts *opts)
{
    mica_file file;
    mica_npz npz;
    if (out == NULL || path == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "dataset: %s is NULL", out == NULL ? "out" : "path");
    *out = (mica_dataset){0};
    MICA_TRY(mica_file_open(ctx, &file, path));
    MICA_TRY(mica_npz_open(ctx, &npz, file));
    mica_status status = load(ctx, out, &npz, opts);
    mica_npz_close(ctx, &npz);
    return status;
}
