/* npy: "\x93NUMPY", a version, the header's length, the header (a Python dict), the elements.
 *
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
 */
#include <string.h>

#include "data/load.h"
#include "io/number.h"
#include "io/quote.h"
#include "tensor/tensor.h"

#define LONGEST_HEADER 4096

/* The header being read. */
typedef struct header {
    mica_context *ctx;
    const char *path;
    const char *text;
    size_t at, length;
    size_t start; /* of the text in the file */
} header;

static mica_status bad(const header *h, const char *expected)
{
    return mica_fail(h->ctx, MICA_ERR_FORMAT, "%s: byte %zu: npy header: expected %s", MICA_QUOTE(h->path),
                     h->start + h->at, expected);
}

static void skip_blanks(header *h)
{
    while (h->at < h->length && (h->text[h->at] == ' ' || h->text[h->at] == '\n'))
        h->at++;
}

/* Steps over a word after blanks, if it is there. */
static bool accept(header *h, const char *word)
{
    size_t n = strlen(word);
    skip_blanks(h);
    if (h->length - h->at < n || memcmp(h->text + h->at, word, n) != 0)
        return false;
    h->at += n;
    return true;
}

static mica_status expect(header *h, const char *word) { return accept(h, word) ? MICA_OK : bad(h, word); }

static mica_status read_descr(header *h, mica_tensor *t)
{
    static const struct {
        const char *name;
        mica_dtype dtype;
    } types[] = {{"'<f4'", MICA_F32}, {"'<f8'", MICA_F64}, {"'<f2'", MICA_F16}, {"'<i8'", MICA_I64},
                 {"'<i4'", MICA_I32}, {"'<i2'", MICA_I16}, {"'|i1'", MICA_I8},  {"'|u1'", MICA_U8},
                 {"'<u2'", MICA_U16}, {"'<u4'", MICA_U32}, {"'<u8'", MICA_U64}, {"'|b1'", MICA_BOOL}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (accept(h, types[i].name)) {
            t->dtype = types[i].dtype;
            return MICA_OK;
        }
    }
    return bad(h, "an element type: <f4 <f8 <f2 <i8 <i4 <i2 |i1 |u1 <u2 <u4 <u8 |b1");
}

static mica_status read_order(header *h, mica_tensor *t)
{
    (void)t;
    return accept(h, "False")
               ? MICA_OK
               : bad(h, "False: arrays in Fortran order are not supported, save numpy.ascontiguousarray(x)");
}

static mica_status read_shape(header *h, mica_tensor *t)
{
    MICA_TRY(expect(h, "("));
    for (t->rank = 0; !accept(h, ")"); t->rank++) {
        uint64_t size;
        size_t end = h->at;
        while (end < h->length && h->text[end] >= '0' && h->text[end] <= '9')
            end++;
        if (!mica_parse_unsigned(&size, h->text + h->at, end - h->at) || size > PTRDIFF_MAX)
            return bad(h, "a size");
        if (t->rank == MICA_MAX_RANK)
            return bad(h, "at most 8 dimensions");
        t->dim[t->rank] = (mica_index)size;
        h->at = end;
        if (!accept(h, ",")) { /* "(3, 4)" and "(3,)", but not "(3)" */
            if (t->rank == 0)
                return bad(h, "a comma");
            MICA_TRY(expect(h, ")"));
            t->rank++;
            return MICA_OK;
        }
    }
    return MICA_OK;
}

static const struct {
    const char *key;
    mica_status (*read)(header *h, mica_tensor *t);
} fields[] = {{"'descr'", read_descr}, {"'fortran_order'", read_order}, {"'shape'", read_shape}};
enum { FIELDS = 3 };

static mica_status read_dict(header *h, mica_tensor *t)
{
    unsigned seen = 0;
    MICA_TRY(expect(h, "{"));
    while (!accept(h, "}")) {
        int f = 0;
        while (f < FIELDS && !accept(h, fields[f].key))
            f++;
        if (f == FIELDS || (seen & 1u << f))
            return bad(h, "each of 'descr', 'fortran_order' and 'shape', once");
        seen |= 1u << f;
        MICA_TRY(expect(h, ":"));
        MICA_TRY(fields[f].read(h, t));
        if (!accept(h, ",")) {
            MICA_TRY(expect(h, "}"));
            break;
        }
    }
    if (seen != (1u << FIELDS) - 1)
        return bad(h, "each of 'descr', 'fortran_order' and 'shape', once");
    skip_blanks(h);
    return h->at == h->length ? MICA_OK : bad(h, "nothing more");
}

mica_status mica_npy_read(mica_context *ctx, mica_loaded *out, mica_stream *stream)
{
    const char *path = stream->file.path;
    unsigned char start[8], length_bytes[4] = {0};
    char text[LONGEST_HEADER];
    MICA_TRY(mica_stream_need(ctx, start, stream, sizeof start, "an npy header"));
    if (memcmp(start, "\x93NUMPY", 6) != 0)
        return mica_fail(ctx, MICA_ERR_FORMAT, "%s: byte 0: not an npy file", MICA_QUOTE(path));
    if (start[6] < 1 || start[6] > 3 || start[7] != 0)
        return mica_fail(ctx, MICA_ERR_FORMAT, "%s: byte 6: npy version %d.%d, expected 1.0, 2.0 or 3.0",
                         MICA_QUOTE(path), start[6], start[7]);
    MICA_TRY(mica_stream_need(ctx, length_bytes, stream, start[6] == 1 ? 2 : 4, "an npy header"));
    uint32_t length = (uint32_t)length_bytes[0] | (uint32_t)length_bytes[1] << 8 |
                      (uint32_t)length_bytes[2] << 16 | (uint32_t)length_bytes[3] << 24;
    if (length > sizeof text)
        return mica_fail(ctx, MICA_ERR_FORMAT, "%s: byte 8: an npy header of %u bytes, expected at most %zu",
                         MICA_QUOTE(path), (unsigned)length, sizeof text);
    header h = {ctx, path, text, 0, length, (size_t)stream->position};
    mica_tensor t = {0};
    MICA_TRY(mica_stream_need(ctx, text, stream, length, "an npy header"));
    MICA_TRY(read_dict(&h, &t));
    mica_tensor_set_strides(&t);
    MICA_TRY(mica_load_elements(ctx, out, stream, &t));
    if (!MICA_LITTLE_ENDIAN)
        mica_reverse_bytes(out->tensor.data, mica_tensor_count(&t), mica_dtype_bytes(t.dtype));
    return MICA_OK;
}
