/* Protobuf: fields of a message, added to bytes that grow. */
#include <string.h>

#include "onnx/model.h"
#include "onnx/write.h"

enum { VARINT = 0, BYTES = 2, FIXED32 = 5 };

static bool make_room(mica_onnx_bytes *b, size_t more)
{
    if (b->status != MICA_OK)
        return false;
    if (more <= b->room - b->used)
        return true;
    size_t room = b->room > 0 ? b->room : 512;
    while (room - b->used < more && room <= SIZE_MAX / 2)
        room *= 2;
    unsigned char *data = mica_allocate(b->ctx, room);
    if (data == NULL) {
        b->status = mica_context_status(b->ctx);
        return false;
    }
    if (b->used > 0)
        memcpy(data, b->data, b->used);
    mica_release(b->ctx, b->data, b->room);
    b->data = data;
    b->room = room;
    return true;
}

void mica_onnx_add(mica_onnx_bytes *b, const void *bytes, size_t count)
{
    if (count == 0 || !make_room(b, count))
        return;
    memcpy(b->data + b->used, bytes, count);
    b->used += count;
}

void mica_onnx_free(mica_onnx_bytes *b)
{
    mica_release(b->ctx, b->data, b->room);
    *b = (mica_onnx_bytes){.ctx = b->ctx};
}

size_t mica_onnx_varint_size(uint64_t value)
{
    size_t size = 1;
    while ((value >>= 7) != 0)
        size++;
    return size;
}

void mica_onnx_add_varint(mica_onnx_bytes *b, uint64_t value, size_t width)
{
    unsigned char bytes[10];
    size_t size = 0, least = width > 0 ? width : mica_onnx_varint_size(value);
    for (; size < least; size++, value >>= 7)
        bytes[size] = (unsigned char)((value & 0x7f) | (size + 1 < least ? 0x80 : 0));
    mica_onnx_add(b, bytes, size);
}

static void add_tag(mica_onnx_bytes *b, unsigned field, unsigned kind)
{
    mica_onnx_add_varint(b, (uint64_t)field << 3 | kind, 0);
}

void mica_onnx_add_int(mica_onnx_bytes *b, unsigned field, int64_t value)
{
    add_tag(b, field, VARINT);
    mica_onnx_add_varint(b, (uint64_t)value, 0);
}

void mica_onnx_add_float(mica_onnx_bytes *b, unsigned field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    unsigned char bytes[4];
    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(bits >> 8 * i);
    add_tag(b, field, FIXED32);
    mica_onnx_add(b, bytes, sizeof bytes);
}

void mica_onnx_add_head(mica_onnx_bytes *b, unsigned field, uint64_t bytes)
{
    add_tag(b, field, BYTES);
    mica_onnx_add_varint(b, bytes, 0);
}

void mica_onnx_add_text(mica_onnx_bytes *b, unsigned field, const char *text)
{
    mica_onnx_add_head(b, field, strlen(text));
    mica_onnx_add(b, text, strlen(text));
}

void mica_onnx_add_part(mica_onnx_bytes *b, unsigned field, const mica_onnx_bytes *part)
{
    if (part->status != MICA_OK)
        b->status = part->status;
    mica_onnx_add_head(b, field, part->used);
    mica_onnx_add(b, part->data, part->used);
}

int mica_onnx_type_of(mica_dtype dtype)
{
    enum { LAST = 23 }; /* of those that the standard has numbers for */
    for (int type = 1; type <= LAST && dtype < MICA_DTYPE_COUNT; type++)
        if (mica_onnx_dtype(type) == dtype)
            return type;
    return 0;
}

/* ---- Elements of 4 bits: two in a byte, where Mica has each in a byte of its own ---- */

static bool is_small(mica_dtype dtype)
{
    return dtype == MICA_I4 || dtype == MICA_U4 || dtype == MICA_F4E2M1;
}

size_t mica_onnx_raw_bytes(const mica_tensor *t)
{
    size_t bytes = mica_tensor_bytes(t);
    return is_small(t->dtype) ? bytes / 2 + bytes % 2 : bytes;
}

size_t mica_onnx_pack(void *bytes, size_t count, mica_dtype dtype)
{
    unsigned char *all = bytes;
    if (!is_small(dtype))
        return count;
    for (size_t i = 0; i < count; i += 2)
        all[i / 2] = (unsigned char)((all[i] & 15) | (i + 1 < count ? all[i + 1] << 4 : 0));
    return count / 2 + count % 2;
}
