/* The elements of a tensor in a file: as raw bytes, which are lent where they are aligned; as lists of numbers, which
 * are converted; or in another file beside the model. */
#include <string.h>

#include "base/format.h"
#include "io/quote.h"
#include "onnx/model.h"
#include "onnx/wire.h"

#define BAD(model, t, format, ...)                                                                \
    mica_fail((model)->ctx, MICA_ERR_FORMAT, "%s: tensor %s: " format, MICA_QUOTE((model)->path), \
              MICA_QUOTE((t)->name), __VA_ARGS__)

/* Bits of an element in raw data: 4 and 2 for types that share a byte, which Mica keeps in a byte each. */
static unsigned bits_of(int type, mica_dtype dtype)
{
    switch (type) {
    case 21: /* UINT4 */
    case 22: /* INT4 */
    case 23: /* FLOAT4E2M1 */
        return 4;
    case 25: /* UINT2 */
    case 26: /* INT2 */
        return 2;
    default:
        return 8 * (unsigned)mica_dtype_bytes(dtype);
    }
}

/* One small element as the byte that Mica has for it: signed integers with their sign. */
static unsigned char small_element(int type, unsigned value)
{
    if (type == 22 && value >= 8)
        return (unsigned char)(value | 0xf0);
    if (type == 26 && value >= 2)
        return (unsigned char)(value | 0xfc);
    return (unsigned char)value;
}

static void unpack_small(unsigned char *to, size_t count, const unsigned char *from, int type, unsigned bits)
{
    unsigned each = 8 / bits, mask = (1u << bits) - 1;
    for (size_t i = 0; i < count; i++)
        to[i] = small_element(type, (unsigned)(from[i / each] >> (i % each * bits)) & mask);
}

/* ---- External data ---- */

/* A path that stays beside the model. */
static bool stays_inside(const char *path)
{
    if (path[0] == '/' || path[0] == '\0')
        return false;
    for (const char *part = path; part != NULL; part = strchr(part, '/')) {
        part += part[0] == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
            return false;
    }
    return strchr(path, '\\') == NULL;
}

static mica_status map_of(mica_onnx *model, const mica_onnx_tensor *t, const mica_map **out)
{
    for (const mica_onnx_mapped *m = model->mapped; m != NULL; m = m->next)
        if (m->name == t->external) {
            *out = &m->map;
            return MICA_OK;
        }
    if (!model->has_folder)
        return BAD(model, t, "its data lie in another file (%s), and the model is no file itself",
                   MICA_QUOTE(t->external));
    if (!stays_inside(t->external))
        return BAD(model, t, "its data lie in %s: expected a file in the folder of the model",
                   MICA_QUOTE(t->external));
    char path[4096];
    const char *slash = strrchr(model->path, '/');
    int folder = slash != NULL ? (int)(slash - model->path) + 1 : 0;
    if (mica_format(path, sizeof path, "%.*s%s", folder, model->path, t->external) >= (int)sizeof path)
        return BAD(model, t, "the path of its data is longer than %zu bytes", sizeof path);
    mica_onnx_mapped *mapped = mica_onnx_memory(model, sizeof *mapped);
    if (mapped == NULL)
        return model->ctx->status;
    *mapped = (mica_onnx_mapped){.name = t->external};
    MICA_TRY(mica_map_open(model->ctx, &mapped->map, path));
    mapped->next = model->mapped;
    model->mapped = mapped;
    *out = &mapped->map;
    return MICA_OK;
}

static mica_status take_external(mica_onnx *model, mica_onnx_tensor *t, size_t bytes)
{
    const mica_map *map = NULL;
    MICA_TRY(map_of(model, t, &map));
    if (t->external_bytes != 0 && t->external_bytes != bytes)
        return BAD(model, t, "%llu bytes of external data, expected %zu",
                   (unsigned long long)t->external_bytes, bytes);
    if (t->external_offset > map->size || map->size - t->external_offset < bytes)
        return BAD(model, t, "%zu bytes from byte %llu of %s on, which has %zu", bytes,
                   (unsigned long long)t->external_offset, MICA_QUOTE(t->external), map->size);
    t->raw = map->bytes + t->external_offset;
    t->raw_bytes = bytes;
    return MICA_OK;
}

/* ---- Lists of numbers ---- */

/* The field that holds elements of a type, as onnx.proto has it. */
static uint32_t field_of(int type)
{
    switch (type) {
    case 1:
        return 4; /* float_data */
    case 11:
        return 10; /* double_data */
    case 7:
        return 7; /* int64_data */
    case 12:
    case 13:
        return 11; /* uint64_data */
    default:
        return 5; /* int32_data */
    }
}

/* Where elements go, one after the other. */
typedef struct filling {
    unsigned char *to;
    size_t at, count; /* count is of elements; `at` may go beyond, which is an error later */
    size_t bytes;     /* of an element */
    unsigned bits;    /* in the file */
    int type;
} filling;

static void put(filling *f, uint64_t value)
{
    unsigned each = f->bits < 8 ? 8 / f->bits : 1, mask = (1u << (f->bits < 8 ? f->bits : 8)) - 1;
    for (unsigned i = 0; i < each; i++, f->at++) {
        if (f->at >= f->count && each > 1)
            return; /* what is left of the last byte */
        if (f->at >= f->count)
            continue;
        uint64_t element = f->bits < 8 ? small_element(f->type, (unsigned)(value >> (i * f->bits)) & mask)
                                       : value;
        for (size_t k = 0; k < f->bytes; k++)
            f->to[f->at * f->bytes + (MICA_LITTLE_ENDIAN ? k : f->bytes - 1 - k)] = (unsigned char)(element >>
                                                                                                    (8 * k));
    }
}

static bool put_packed(filling *f, const mica_wire_field *field, size_t width)
{
    mica_wire list = mica_wire_over(field->bytes, field->size);
    while (list.at < list.size) {
        uint64_t value = 0;
        if (width == 0) {
            if (!mica_wire_varint(&list, &value))
                return false;
        } else {
            if (list.size - list.at < width)
                return false;
            for (size_t i = width; i-- > 0;)
                value = value << 8 | list.bytes[list.at + i];
            list.at += width;
        }
        put(f, value);
    }
    return true;
}

static mica_status convert_lists(mica_onnx *model, mica_onnx_tensor *t, filling *f)
{
    mica_wire w = mica_wire_over(t->packed, t->packed_bytes);
    mica_wire_field field;
    uint32_t number = field_of(t->type);
    size_t width = t->type == 1 ? 4 : t->type == 11 ? 8 : 0; /* 0: varints */
    while (mica_wire_next(&w, &field)) {
        if (field.number != number)
            continue;
        if (field.kind != MICA_WIRE_BYTES)
            put(f, field.value);
        else if (!put_packed(f, &field, width))
            return BAD(model, t, "its list of elements ends in the middle of %s", "a number");
    }
    if (f->at != f->count)
        return BAD(model, t, "%zu elements, expected %zu", f->at, f->count);
    return MICA_OK;
}

/* ---- All ---- */

static mica_status lend_or_copy(mica_onnx *model, mica_onnx_tensor *t, size_t count, unsigned bits)
{
    size_t element = mica_dtype_bytes(t->tensor.dtype);
    bool aligned = (uintptr_t)t->raw % element == 0;
    if (bits >= 8 && aligned && (MICA_LITTLE_ENDIAN || element == 1)) {
        memcpy(&t->tensor.data, &t->raw, sizeof t->raw); /* read-only: nothing writes to it */
        return MICA_OK;
    }
    void *copy = mica_onnx_memory(model, count * element);
    if (copy == NULL)
        return model->ctx->status;
    if (bits < 8)
        unpack_small(copy, count, t->raw, t->type, bits);
    else if (count > 0)
        memcpy(copy, t->raw, count * element);
    if (!MICA_LITTLE_ENDIAN)
        mica_reverse_bytes(copy, count, element);
    t->tensor.data = copy;
    return MICA_OK;
}

mica_status mica_onnx_tensor_data(mica_onnx *model, mica_onnx_tensor *t)
{
    mica_dtype dtype = mica_onnx_dtype(t->type);
    if (t->made)
        return MICA_OK;
    if (dtype == MICA_DTYPE_COUNT)
        return mica_fail(model->ctx, MICA_ERR_DTYPE,
                         "%s: tensor %s: elements of type %s, which Mica does not have",
                         MICA_QUOTE(model->path), MICA_QUOTE(t->name), mica_onnx_type_name(t->type));
    MICA_TRY(mica_tensor_init(model->ctx, &t->tensor, NULL, dtype, t->rank, t->dim));
    size_t count = mica_tensor_count(&t->tensor);
    unsigned bits = bits_of(t->type, dtype);
    size_t bytes = bits < 8 ? count / (8 / bits) + (count % (8 / bits) != 0) : mica_tensor_bytes(&t->tensor);
    if (t->external != NULL)
        MICA_TRY(take_external(model, t, bytes));
    if (t->raw != NULL) {
        if (t->raw_bytes != bytes)
            return BAD(model, t, "%zu bytes of data, expected %zu", t->raw_bytes, bytes);
        MICA_TRY(lend_or_copy(model, t, count, bits));
    } else {
        /* Every element takes a bit of the file at least: no count is believed before. */
        if (count / 8 > t->packed_bytes)
            return BAD(model, t, "%zu elements in %zu bytes", count, t->packed_bytes);
        filling f = {.count = count, .bytes = mica_dtype_bytes(dtype), .bits = bits, .type = t->type};
        f.to = mica_onnx_memory(model, count * f.bytes);
        if (f.to == NULL)
            return model->ctx->status;
        MICA_TRY(convert_lists(model, t, &f));
        t->tensor.data = f.to;
    }
    t->made = true;
    return MICA_OK;
}
