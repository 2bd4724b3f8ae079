/* Reading protocol buffers. */
#include "onnx/wire.h"

bool mica_wire_varint(mica_wire *w, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (w->at >= w->size)
            return false;
        unsigned char byte = w->bytes[w->at++];
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return shift < 63 || byte <= 1; /* the tenth byte has one bit of the 64 */
        }
    }
    return false;
}

static bool fixed(mica_wire *w, uint64_t *out, size_t bytes)
{
    if (w->size - w->at < bytes)
        return false;
    *out = 0;
    for (size_t i = bytes; i-- > 0;)
        *out = *out << 8 | w->bytes[w->at + i];
    w->at += bytes;
    return true;
}

static bool value_of(mica_wire *w, mica_wire_field *f)
{
    switch (f->kind) {
    case MICA_WIRE_VARINT:
        return mica_wire_varint(w, &f->value);
    case MICA_WIRE_64:
        return fixed(w, &f->value, 8);
    case MICA_WIRE_32:
        return fixed(w, &f->value, 4);
    case MICA_WIRE_BYTES:
        if (!mica_wire_varint(w, &f->value) || f->value > w->size - w->at)
            return false;
        f->bytes = w->bytes + w->at;
        f->size = (size_t)f->value;
        w->at += f->size;
        return true;
    default:
        return false;
    }
}

bool mica_wire_next(mica_wire *w, mica_wire_field *out)
{
    size_t start = w->at;
    uint64_t tag;
    if (w->bad || w->at == w->size)
        return false;
    *out = (mica_wire_field){0};
    if (mica_wire_varint(w, &tag) && tag >> 3 != 0 && tag >> 3 < (1u << 29)) {
        out->number = (uint32_t)(tag >> 3);
        out->kind = (unsigned)(tag & 7);
        if (value_of(w, out))
            return true;
    }
    w->at = start;
    w->bad = true;
    return false;
}
