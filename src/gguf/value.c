/* Reading the values of settings: nothing is believed before it is checked. */
#include <string.h>

#include "base/size.h"
#include "gguf/cursor.h"
#include "io/quote.h"

static const struct kind {
    const char *name;
    size_t bytes; /* 0: each has its own size */
} kinds[MICA_GGUF_KIND_COUNT] = {
    [MICA_GGUF_U8] = {"u8", 1},       [MICA_GGUF_I8] = {"i8", 1},     [MICA_GGUF_U16] = {"u16", 2},
    [MICA_GGUF_I16] = {"i16", 2},     [MICA_GGUF_U32] = {"u32", 4},   [MICA_GGUF_I32] = {"i32", 4},
    [MICA_GGUF_F32] = {"f32", 4},     [MICA_GGUF_BOOL] = {"bool", 1}, [MICA_GGUF_STRING] = {"string", 0},
    [MICA_GGUF_ARRAY] = {"array", 0}, [MICA_GGUF_U64] = {"u64", 8},   [MICA_GGUF_I64] = {"i64", 8},
    [MICA_GGUF_F64] = {"f64", 8},
};

const char *mica_gguf_kind_name(mica_gguf_kind kind)
{
    return (unsigned)kind < MICA_GGUF_KIND_COUNT ? kinds[kind].name : "invalid";
}

size_t mica_gguf_kind_bytes(mica_gguf_kind kind) { return kinds[kind].bytes; }

/* ---- Numbers ---- */

static int64_t sign_extend(uint64_t bits, size_t bytes)
{
    uint64_t sign = (uint64_t)1 << (8 * bytes - 1);
    return (int64_t)((bits ^ sign) - sign);
}

void mica_gguf_load_number(mica_gguf_value *value, const unsigned char *bytes)
{
    size_t size = kinds[value->kind].bytes;
    uint64_t bits = mica_gguf_load(bytes, size);
    switch (value->kind) {
    case MICA_GGUF_I8:
    case MICA_GGUF_I16:
    case MICA_GGUF_I32:
    case MICA_GGUF_I64:
        value->i = sign_extend(bits, size);
        break;
    case MICA_GGUF_F32: {
        uint32_t word = (uint32_t)bits;
        float f;
        memcpy(&f, &word, sizeof f);
        value->f = (double)f;
        break;
    }
    case MICA_GGUF_F64:
        memcpy(&value->f, &bits, sizeof value->f);
        break;
    default:
        value->u = bits;
    }
}

/* ---- Cursor ---- */

mica_status mica_gguf_need(const mica_gguf_cursor *c, uint64_t bytes, const char *what)
{
    if (bytes <= c->size - c->at)
        return MICA_OK;
    return MICA_GGUF_BAD(c, c->at, "%s takes %llu bytes, %zu are left", what, (unsigned long long)bytes,
                         c->size - c->at);
}

mica_status mica_gguf_take(mica_gguf_cursor *c, uint64_t *out, size_t bytes, const char *what)
{
    MICA_TRY(mica_gguf_need(c, bytes, what));
    *out = mica_gguf_load(c->bytes + c->at, bytes);
    c->at += bytes;
    return MICA_OK;
}

mica_status mica_gguf_take_text(mica_gguf_cursor *c, mica_gguf_text *out, const char *what)
{
    uint64_t length;
    MICA_TRY(mica_gguf_take(c, &length, sizeof length, "the length of a string"));
    MICA_TRY(mica_gguf_need(c, length, what));
    *out = (mica_gguf_text){(const char *)c->bytes + c->at, (size_t)length};
    c->at += (size_t)length;
    return MICA_OK;
}

/* ---- Values ---- */

static mica_status check_bools(const mica_gguf_cursor *c, size_t at, size_t count, const mica_gguf_text *of)
{
    for (size_t i = 0; i < count; i++)
        if (c->bytes[at + i] > 1)
            return MICA_GGUF_BAD(c, at + i, "setting %s: a bool is %u, expected 0 or 1",
                                 MICA_QUOTE_N(of->bytes, of->length), c->bytes[at + i]);
    return MICA_OK;
}

static mica_status check_kind(const mica_gguf_cursor *c, uint64_t kind, size_t at, const mica_gguf_text *of)
{
    if (kind < MICA_GGUF_KIND_COUNT)
        return MICA_OK;
    return MICA_GGUF_BAD(c, at, "setting %s has unknown kind %llu", MICA_QUOTE_N(of->bytes, of->length),
                         (unsigned long long)kind);
}

static mica_status read_elements(mica_gguf_cursor *c, mica_gguf_value *value, uint64_t count,
                                 const mica_gguf_text *of)
{
    size_t bytes = kinds[value->array.kind].bytes, start = c->at;
    uint64_t left = c->size - c->at, least = bytes > 0 ? bytes : sizeof(uint64_t); /* a string's length */
    if (count > left / least)
        return MICA_GGUF_BAD(c, c->at,
                             "setting %s: an array of %llu elements (%s) does not fit the %llu bytes left",
                             MICA_QUOTE_N(of->bytes, of->length), (unsigned long long)count,
                             kinds[value->array.kind].name, (unsigned long long)left);
    if (bytes > 0) {
        if (value->array.kind == MICA_GGUF_BOOL)
            MICA_TRY(check_bools(c, c->at, (size_t)count, of));
        c->at += (size_t)count * bytes;
    } else {
        mica_gguf_text text;
        for (uint64_t i = 0; i < count; i++)
            MICA_TRY(mica_gguf_take_text(c, &text, "a string of an array"));
    }
    value->array.count = (size_t)count;
    value->array.bytes = c->bytes + start;
    value->array.size = c->at - start;
    return MICA_OK;
}

static mica_status read_array(mica_gguf_cursor *c, mica_gguf_value *out, const mica_gguf_text *of)
{
    uint64_t kind, count;
    size_t at = c->at;
    MICA_TRY(mica_gguf_take(c, &kind, sizeof(uint32_t), "the kind of an array's elements"));
    MICA_TRY(check_kind(c, kind, at, of));
    if (kind == MICA_GGUF_ARRAY)
        return MICA_GGUF_BAD(c, at, "setting %s is an array of arrays, which is not supported",
                             MICA_QUOTE_N(of->bytes, of->length));
    MICA_TRY(mica_gguf_take(c, &count, sizeof count, "the length of an array"));
    out->array.kind = (mica_gguf_kind)kind;
    return read_elements(c, out, count, of);
}

mica_status mica_gguf_take_value(mica_gguf_cursor *c, mica_gguf_value *out, const mica_gguf_text *of)
{
    uint64_t kind;
    size_t at = c->at;
    *out = (mica_gguf_value){0};
    MICA_TRY(mica_gguf_take(c, &kind, sizeof(uint32_t), "the kind of a value"));
    MICA_TRY(check_kind(c, kind, at, of));
    out->kind = (mica_gguf_kind)kind;
    if (kind == MICA_GGUF_ARRAY)
        return read_array(c, out, of);
    if (kind == MICA_GGUF_STRING)
        return mica_gguf_take_text(c, &out->text, "a string");
    MICA_TRY(mica_gguf_need(c, kinds[kind].bytes, "a value"));
    if (kind == MICA_GGUF_BOOL)
        MICA_TRY(check_bools(c, c->at, 1, of));
    mica_gguf_load_number(out, c->bytes + c->at);
    c->at += kinds[kind].bytes;
    return MICA_OK;
}

mica_status mica_gguf_check_elements(mica_context *ctx, const mica_gguf_value *value,
                                     const mica_gguf_text *of)
{
    mica_gguf_cursor c = {ctx, "the array", value->array.bytes, value->array.size, 0};
    mica_gguf_value read = *value;
    MICA_TRY(read_elements(&c, &read, value->array.count, of));
    if (c.at != c.size)
        return MICA_GGUF_BAD(&c, c.at, "setting %s: its elements end here, the array has %zu bytes",
                             MICA_QUOTE_N(of->bytes, of->length), c.size);
    return MICA_OK;
}

/* ---- Elements ---- */

/* The number at a place of an array, or a value that is one itself as number 0. */
static bool scalar_at(const mica_gguf_value *value, mica_gguf_value *out, size_t number)
{
    *out = *value;
    if (value->kind != MICA_GGUF_ARRAY)
        return number == 0 && (unsigned)value->kind < MICA_GGUF_KIND_COUNT && kinds[value->kind].bytes > 0;
    size_t bytes = kinds[value->array.kind].bytes;
    if (bytes == 0 || number >= value->array.count)
        return false;
    out->kind = value->array.kind;
    mica_gguf_load_number(out, value->array.bytes + number * bytes);
    return true;
}

static bool is_signed(mica_gguf_kind kind)
{
    return kind == MICA_GGUF_I8 || kind == MICA_GGUF_I16 || kind == MICA_GGUF_I32 || kind == MICA_GGUF_I64;
}

bool mica_gguf_number_at(const mica_gguf_value *array, double *out, size_t number)
{
    mica_gguf_value value;
    if (!scalar_at(array, &value, number))
        return false;
    if (value.kind == MICA_GGUF_F32 || value.kind == MICA_GGUF_F64)
        *out = value.f;
    else
        *out = is_signed(value.kind) ? (double)value.i : (double)value.u;
    return true;
}

bool mica_gguf_integer_at(const mica_gguf_value *array, int64_t *out, size_t number)
{
    mica_gguf_value value;
    if (!scalar_at(array, &value, number) || value.kind == MICA_GGUF_F32 || value.kind == MICA_GGUF_F64)
        return false;
    if (!is_signed(value.kind) && value.u > INT64_MAX)
        return false;
    *out = is_signed(value.kind) ? value.i : (int64_t)value.u;
    return true;
}

bool mica_gguf_next_text(const mica_gguf_value *array, mica_gguf_text *out, size_t *at)
{
    if (array->kind != MICA_GGUF_ARRAY || array->array.kind != MICA_GGUF_STRING)
        return false;
    size_t left = *at < array->array.size ? array->array.size - *at : 0;
    if (left < sizeof(uint64_t))
        return false;
    const unsigned char *bytes = array->array.bytes + *at;
    uint64_t length = mica_gguf_load(bytes, sizeof length);
    if (length > left - sizeof length)
        return false;
    *out = (mica_gguf_text){(const char *)bytes + sizeof length, (size_t)length};
    *at += sizeof length + (size_t)length;
    return true;
}
