/* Writing GGUF files: everything is checked before the first byte is written, and the header is made the way it is
 * read, one thing after the other. */
#include <string.h>

#include "base/size.h"
#include "base/sort.h"
#include "gguf/cursor.h"
#include "io/quote.h"
#include "tensor/tensor.h"

static const char op[] = "gguf_write";

#define PIECE ((size_t)4 << 20)

/* The work of writing. */
typedef struct writing {
    mica_context *ctx;
    const mica_gguf_new_tensor *tensors;
    size_t count;
    const mica_gguf_write_opts *opts;
    uint32_t alignment;
    uint64_t setting_count; /* that the file will have */
    mica_new_file file;
    uint64_t at; /* bytes written */
} writing;

#define REFUSE(w, format, ...) mica_fail((w)->ctx, MICA_ERR_ARGUMENT, "%s: " format, op, __VA_ARGS__)

/* ---- Checks ---- */

/* The largest a number of a kind without a sign can be. */
static uint64_t largest(mica_gguf_kind kind)
{
    return kind == MICA_GGUF_BOOL ? 1 : UINT64_MAX >> (64 - 8 * mica_gguf_kind_bytes(kind));
}

static bool number_fits(const mica_gguf_value *value)
{
    switch (value->kind) {
    case MICA_GGUF_U8:
    case MICA_GGUF_U16:
    case MICA_GGUF_U32:
    case MICA_GGUF_U64:
    case MICA_GGUF_BOOL:
        return value->u <= largest(value->kind);
    case MICA_GGUF_I8:
    case MICA_GGUF_I16:
    case MICA_GGUF_I32: {
        int64_t limit = (int64_t)1 << (8 * mica_gguf_kind_bytes(value->kind) - 1);
        return value->i >= -limit && value->i < limit;
    }
    default:
        return true;
    }
}

static mica_status check_value(const writing *w, const char *key, const mica_gguf_value *value)
{
    const mica_gguf_text of = {key, strlen(key)};
    switch (value->kind) {
    case MICA_GGUF_KIND_COUNT: /* left out */
        return MICA_OK;
    case MICA_GGUF_STRING:
        if (value->text.bytes == NULL && value->text.length > 0)
            return REFUSE(w, "setting %s has no bytes (NULL)", MICA_QUOTE(key));
        return MICA_OK;
    case MICA_GGUF_ARRAY:
        if (value->array.bytes == NULL && value->array.size > 0)
            return REFUSE(w, "setting %s has no bytes (NULL)", MICA_QUOTE(key));
        if ((unsigned)value->array.kind >= MICA_GGUF_KIND_COUNT || value->array.kind == MICA_GGUF_ARRAY)
            return REFUSE(w, "setting %s: an array's elements cannot be of kind %d", MICA_QUOTE(key),
                          (int)value->array.kind);
        return mica_gguf_check_elements(w->ctx, value, &of);
    default:
        if ((unsigned)value->kind > MICA_GGUF_KIND_COUNT)
            return REFUSE(w, "setting %s has unknown kind %d", MICA_QUOTE(key), (int)value->kind);
        if (!number_fits(value))
            return REFUSE(w, "setting %s: the value does not fit %s", MICA_QUOTE(key),
                          mica_gguf_kind_name(value->kind));
        return MICA_OK;
    }
}

static mica_status check_name(const writing *w, const char *what, const char *name, size_t longest)
{
    if (name == NULL)
        return REFUSE(w, "the %s is NULL", what);
    size_t length = strlen(name);
    if (length == 0 || length > longest)
        return REFUSE(w, "the %s %s has %zu bytes, expected 1 to %zu", what, MICA_QUOTE(name), length,
                      longest);
    return MICA_OK;
}

static mica_status check_tensor(const writing *w, const mica_gguf_new_tensor *given)
{
    const mica_tensor *t = &given->tensor;
    MICA_TRY(check_name(w, "name of a tensor", given->name, MICA_GGUF_LONGEST_NAME));
    mica_quote name = mica_quote_string(given->name);
    MICA_TRY(mica_tensor_check(w->ctx, op, name.text, t));
    if (t->rank < 1 || t->rank > MICA_GGUF_MOST_RANK || mica_tensor_count(t) == 0)
        return mica_fail(w->ctx, MICA_ERR_SHAPE, "%s: %s is %s, expected 1 to %d sizes, none of them 0", op,
                         name.text, MICA_SHAPE(t), MICA_GGUF_MOST_RANK);
    if (mica_gguf_type(t->dtype) < 0)
        return mica_fail(w->ctx, MICA_ERR_DTYPE, "%s: %s %s is %s, which the format does not support", op,
                         name.text, MICA_SHAPE(t), mica_dtype_name(t->dtype));
    if (given->make == NULL && t->data == NULL)
        return REFUSE(w, "%s %s has no data (NULL)", name.text, MICA_SHAPE(t));
    if (given->make == NULL && !mica_tensor_contiguous(t))
        return REFUSE(w, "%s %s is not contiguous", name.text, MICA_SHAPE(t));
    return MICA_OK;
}

static mica_status check_arguments(const writing *w, const char *path)
{
    if (path == NULL || (w->tensors == NULL && w->count > 0) ||
        (w->opts->settings == NULL && w->opts->setting_count > 0))
        return REFUSE(w, "%s is NULL", path == NULL ? "path" : w->tensors == NULL ? "tensors" : "settings");
    if (!MICA_LITTLE_ENDIAN)
        return mica_fail(w->ctx, MICA_ERR_FORMAT, "%s: needs a little-endian machine", op);
    for (size_t i = 0; i < w->opts->setting_count; i++) {
        const mica_gguf_new_setting *s = &w->opts->settings[i];
        MICA_TRY(check_name(w, "key of a setting", s->key, MICA_GGUF_LONGEST_KEY));
        MICA_TRY(check_value(w, s->key, &s->value));
    }
    for (size_t i = 0; i < w->count; i++)
        MICA_TRY(check_tensor(w, &w->tensors[i]));
    return MICA_OK;
}

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorts names[count]; fails where two are equal. */
static mica_status check_unique(const writing *w, const char *what, const char **names, size_t count)
{
    mica_sort(names, count, sizeof *names, compare_strings);
    for (size_t i = 1; i < count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return REFUSE(w, "%s %s is given twice", what, MICA_QUOTE(names[i]));
    return MICA_OK;
}

static mica_status check_names(const writing *w)
{
    size_t count = mica_most(w->opts->setting_count, w->count);
    if (count == 0)
        return MICA_OK;
    const char **names = mica_allocate(w->ctx, count * sizeof *names);
    if (names == NULL)
        return w->ctx->status;
    for (size_t i = 0; i < w->opts->setting_count; i++)
        names[i] = w->opts->settings[i].key;
    mica_status status = check_unique(w, "setting", names, w->opts->setting_count);
    for (size_t i = 0; i < w->count; i++)
        names[i] = w->tensors[i].name;
    if (status == MICA_OK)
        status = check_unique(w, "tensor", names, w->count);
    mica_release(w->ctx, names, count * sizeof *names);
    return status;
}

/* ---- Settings, those copied and those given ---- */

/* The given one with this key; NULL: none. */
static const mica_gguf_new_setting *given(const writing *w, mica_gguf_text key)
{
    for (size_t i = 0; i < w->opts->setting_count; i++) { /* a few */
        const char *other = w->opts->settings[i].key;
        if (mica_gguf_compare(key, (mica_gguf_text){other, strlen(other)}) == 0)
            return &w->opts->settings[i];
    }
    return NULL;
}

typedef mica_status setting_fn(writing *w, mica_gguf_text key, const mica_gguf_value *value);

/* Calls `visit` for every setting of the new file, in order. */
static mica_status each_setting(writing *w, setting_fn *visit)
{
    const mica_gguf *copy = w->opts->copy;
    for (size_t i = 0; copy != NULL && i < copy->setting_count; i++) {
        const mica_gguf_pair *pair = &copy->settings[i];
        const mica_gguf_new_setting *instead = given(w, pair->key);
        const mica_gguf_value *value = instead != NULL ? &instead->value : &pair->value;
        if (value->kind != MICA_GGUF_KIND_COUNT)
            MICA_TRY(visit(w, pair->key, value));
    }
    for (size_t i = 0; i < w->opts->setting_count; i++) {
        const mica_gguf_new_setting *s = &w->opts->settings[i];
        mica_gguf_value copied;
        if (s->value.kind != MICA_GGUF_KIND_COUNT && (copy == NULL || !mica_gguf_find(copy, &copied, s->key)))
            MICA_TRY(visit(w, (mica_gguf_text){s->key, strlen(s->key)}, &s->value));
    }
    return MICA_OK;
}

static mica_status count_setting(writing *w, mica_gguf_text key, const mica_gguf_value *value)
{
    static const char alignment[] = MICA_GGUF_ALIGNMENT_KEY;
    w->setting_count++;
    if (mica_gguf_compare(key, (mica_gguf_text){alignment, sizeof alignment - 1}) != 0)
        return MICA_OK;
    if (value->kind != MICA_GGUF_U32 || value->u < MICA_GGUF_LEAST_ALIGNMENT ||
        value->u > MICA_GGUF_MOST_ALIGNMENT || (value->u & (value->u - 1)) != 0)
        return REFUSE(w, "%s must be a u32, a power of two from %u to %u", alignment,
                      MICA_GGUF_LEAST_ALIGNMENT, (unsigned)MICA_GGUF_MOST_ALIGNMENT);
    w->alignment = (uint32_t)value->u;
    return MICA_OK;
}

/* ---- Bytes ---- */

static mica_status put(writing *w, const void *bytes, size_t count)
{
    w->at += count;
    return mica_new_file_write(w->ctx, &w->file, bytes, count);
}

static mica_status put_number(writing *w, uint64_t number, size_t bytes)
{
    unsigned char text[8];
    for (size_t i = 0; i < bytes; i++)
        text[i] = (unsigned char)(number >> (8 * i));
    return put(w, text, bytes);
}

static mica_status put_text(writing *w, mica_gguf_text text)
{
    MICA_TRY(put_number(w, text.length, 8));
    return put(w, text.bytes, text.length);
}

/* Zeros up to the next multiple of the alignment. */
static mica_status put_padding(writing *w)
{
    static const unsigned char zeros[64];
    while (w->at % w->alignment != 0)
        MICA_TRY(put(w, zeros, mica_least(sizeof zeros, (size_t)(w->alignment - w->at % w->alignment))));
    return MICA_OK;
}

static uint64_t number_bits(const mica_gguf_value *value)
{
    uint64_t bits = value->u;
    if (value->kind == MICA_GGUF_F32) {
        float f = (float)value->f;
        uint32_t word;
        memcpy(&word, &f, sizeof word);
        bits = word;
    } else if (value->kind == MICA_GGUF_F64) {
        memcpy(&bits, &value->f, sizeof bits);
    }
    return bits;
}

static mica_status put_setting(writing *w, mica_gguf_text key, const mica_gguf_value *value)
{
    MICA_TRY(put_text(w, key));
    MICA_TRY(put_number(w, (uint64_t)value->kind, 4));
    if (value->kind == MICA_GGUF_STRING)
        return put_text(w, value->text);
    if (value->kind != MICA_GGUF_ARRAY)
        return put_number(w, number_bits(value), mica_gguf_kind_bytes(value->kind));
    MICA_TRY(put_number(w, (uint64_t)value->array.kind, 4));
    MICA_TRY(put_number(w, value->array.count, 8));
    return put(w, value->array.bytes, value->array.size);
}

static mica_status put_entry(writing *w, const mica_gguf_new_tensor *given_tensor, uint64_t *offset)
{
    const mica_tensor *t = &given_tensor->tensor;
    MICA_TRY(put_text(w, (mica_gguf_text){given_tensor->name, strlen(given_tensor->name)}));
    MICA_TRY(put_number(w, (uint64_t)t->rank, 4));
    for (int k = t->rank - 1; k >= 0; k--)
        MICA_TRY(put_number(w, (uint64_t)t->dim[k], 8));
    MICA_TRY(put_number(w, (uint64_t)mica_gguf_type(t->dtype), 4));
    MICA_TRY(put_number(w, *offset, 8));
    *offset += mica_round_up(mica_tensor_bytes(t), w->alignment);
    return MICA_OK;
}

static mica_status put_header(writing *w)
{
    uint64_t offset = 0;
    MICA_TRY(put(w, MICA_GGUF_MAGIC, 4));
    MICA_TRY(put_number(w, MICA_GGUF_VERSION, 4));
    MICA_TRY(put_number(w, w->count, 8));
    MICA_TRY(put_number(w, w->setting_count, 8));
    MICA_TRY(each_setting(w, put_setting));
    for (size_t i = 0; i < w->count; i++)
        MICA_TRY(put_entry(w, &w->tensors[i], &offset));
    return put_padding(w);
}

/* ---- Tensors ---- */

static size_t row_bytes(const mica_tensor *t)
{
    return (size_t)t->dim[t->rank - 1] / mica_dtype_block(t->dtype) * mica_dtype_bytes(t->dtype);
}

/* Rows of a piece. */
static mica_index piece_rows(const writing *w, const mica_tensor *t)
{
    size_t piece = w->opts->piece > 0 ? w->opts->piece : PIECE;
    size_t rows = mica_tensor_count(t) / (size_t)t->dim[t->rank - 1];
    return (mica_index)mica_least(rows, mica_most(1, piece / row_bytes(t)));
}

/* The most bytes of a piece of any tensor. */
static size_t buffer_bytes(const writing *w)
{
    size_t most = 0;
    for (size_t i = 0; i < w->count; i++)
        if (w->tensors[i].make != NULL) {
            const mica_tensor *t = &w->tensors[i].tensor;
            most = mica_most(most, (size_t)piece_rows(w, t) * row_bytes(t));
        }
    return most;
}

static mica_status put_tensor(writing *w, const mica_gguf_new_tensor *given_tensor, void *buffer)
{
    const mica_tensor *t = &given_tensor->tensor;
    if (given_tensor->make == NULL)
        return put(w, t->data, mica_tensor_bytes(t));
    mica_index row = t->dim[t->rank - 1], rows = (mica_index)mica_tensor_count(t) / row,
               step = piece_rows(w, t);
    for (mica_index first = 0; first < rows; first += step) {
        mica_tensor piece;
        mica_index dims[] = {mica_least_index(step, rows - first), row};
        MICA_TRY(mica_tensor_init(w->ctx, &piece, buffer, t->dtype, 2, dims));
        MICA_TRY(given_tensor->make(given_tensor->user, w->ctx, &piece, first));
        MICA_TRY(put(w, buffer, mica_tensor_bytes(&piece)));
    }
    return MICA_OK;
}

static mica_status put_tensors(writing *w)
{
    size_t bytes = buffer_bytes(w);
    void *buffer = NULL;
    if (bytes > 0) {
        buffer = mica_allocate(w->ctx, bytes);
        if (buffer == NULL)
            return w->ctx->status;
    }
    mica_status status = MICA_OK;
    for (size_t i = 0; i < w->count && status == MICA_OK; i++) {
        status = put_tensor(w, &w->tensors[i], buffer);
        if (status == MICA_OK)
            status = put_padding(w);
    }
    mica_release(w->ctx, buffer, bytes);
    return status;
}

static mica_status write_file(writing *w, const char *path)
{
    MICA_TRY(mica_new_file_begin(w->ctx, &w->file, path));
    mica_status status = put_header(w);
    if (status == MICA_OK)
        status = put_tensors(w);
    if (status == MICA_OK)
        return mica_new_file_commit(w->ctx, &w->file);
    mica_new_file_abandon(&w->file);
    return status;
}

mica_status mica_gguf_write(mica_context *ctx, const char *path, const mica_gguf_new_tensor *tensors,
                            size_t count, const mica_gguf_write_opts *opts)
{
    static const mica_gguf_write_opts defaults = {0};
    writing w = {.ctx = ctx,
                 .tensors = tensors,
                 .count = count,
                 .opts = opts != NULL ? opts : &defaults,
                 .alignment = MICA_GGUF_ALIGNMENT};
    MICA_TRY(check_arguments(&w, path));
    MICA_TRY(check_names(&w));
    MICA_TRY(each_setting(&w, count_setting));
    return write_file(&w, path);
}
