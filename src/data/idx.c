/* idx: four bytes (0, 0, element type, rank), the sizes and then the elements, all big-endian. */
#include "data/load.h"
#include "io/quote.h"
#include "tensor/tensor.h"

static bool dtype_of(mica_dtype *out, unsigned char code)
{
    static const struct {
        unsigned char code;
        mica_dtype dtype;
    } types[] = {{0x08, MICA_U8},  {0x09, MICA_I8},  {0x0b, MICA_I16},
                 {0x0c, MICA_I32}, {0x0d, MICA_F32}, {0x0e, MICA_F64}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (types[i].code == code) {
            *out = types[i].dtype;
            return true;
        }
    }
    return false;
}

mica_status mica_idx_read(mica_context *ctx, mica_loaded *out, mica_stream *stream)
{
    const char *path = stream->file.path;
    unsigned char magic[4], sizes[4 * MICA_MAX_RANK];
    mica_tensor t = {0};
    MICA_TRY(mica_stream_need(ctx, magic, stream, sizeof magic, "an idx header"));
    if (magic[0] != 0 || magic[1] != 0)
        return mica_fail(ctx, MICA_ERR_FORMAT, "%s: byte 0: not an idx file: it starts with %02x %02x",
                         MICA_QUOTE(path), magic[0], magic[1]);
    if (!dtype_of(&t.dtype, magic[2]))
        return mica_fail(ctx, MICA_ERR_FORMAT, "%s: byte 2: unknown idx element type %02x", MICA_QUOTE(path),
                         magic[2]);
    if (magic[3] > MICA_MAX_RANK)
        return mica_fail(ctx, MICA_ERR_FORMAT, "%s: byte 3: rank %d, expected 0 to %d", MICA_QUOTE(path),
                         magic[3], MICA_MAX_RANK);
    t.rank = magic[3];
    MICA_TRY(mica_stream_need(ctx, sizes, stream, 4 * (size_t)t.rank, "an idx header"));
    for (int k = 0; k < t.rank; k++) {
        const unsigned char *s = sizes + 4 * k;
        uint32_t size = (uint32_t)s[0] << 24 | (uint32_t)s[1] << 16 | (uint32_t)s[2] << 8 | s[3];
        if (size > INT32_MAX)
            return mica_fail(ctx, MICA_ERR_FORMAT, "%s: byte %d: a size of %u", MICA_QUOTE(path), 4 + 4 * k,
                             (unsigned)size);
        t.dim[k] = (mica_index)size;
    }
    mica_tensor_set_strides(&t);
    MICA_TRY(mica_load_elements(ctx, out, stream, &t));
    if (MICA_LITTLE_ENDIAN && mica_dtype_bytes(t.dtype) > 1)
        mica_reverse_bytes(out->tensor.data, mica_tensor_count(&t), mica_dtype_bytes(t.dtype));
    return MICA_OK;
}
