/* Protocol buffers on the wire: a message is fields, each a tag (number and kind) and a value. This reads them where
 * they lie. Nothing is believed before it was checked: a length goes no farther than the message that holds it. */
#ifndef MICA_SRC_ONNX_WIRE_H
#define MICA_SRC_ONNX_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mica_wire {
    const unsigned char *bytes;
    size_t size, at;
    bool bad; /* what follows is no field: `at` is where */
} mica_wire;

/* The kinds of values that a tag tells. */
enum { MICA_WIRE_VARINT = 0, MICA_WIRE_64 = 1, MICA_WIRE_BYTES = 2, MICA_WIRE_32 = 5 };

typedef struct mica_wire_field {
    uint32_t number;
    unsigned kind;
    uint64_t value; /* varint, or the bits of 32 or 64 */
    const unsigned char *bytes;
    size_t size; /* of bytes */
} mica_wire_field;

static inline mica_wire mica_wire_over(const unsigned char *bytes, size_t size)
{
    return (mica_wire){.bytes = bytes, .size = size};
}

/* The next field. False at the end, or if it is broken: then w->bad. Groups, which ONNX has none of, are broken. */
bool mica_wire_next(mica_wire *w, mica_wire_field *out);
/* One varint, of a packed list. False: there is no whole one left. */
bool mica_wire_varint(mica_wire *w, uint64_t *out);

#endif
