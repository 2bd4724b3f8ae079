#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mica/mica.h>

#include "cli/model/take.h"
#include "cli/onnx/npy.h"
#include "tensor/tensor.h"

mica_status npy_read(mica_context *ctx, mica_loaded *out, const char *path)
{
    mica_stream stream;
    mica_status status = mica_stream_open(ctx, &stream, path);
    if (status != MICA_OK)
        return status;
    status = mica_npy_read(ctx, out, &stream);
    mica_stream_close(ctx, &stream);
    return status;
}

/* What NumPy calls it; NULL: it has no such type. */
static const char *descr_of(mica_dtype dtype)
{
    static const char *const names[][2] = {{"f32", "<f4"}, {"f64", "<f8"}, {"f16", "<f2"}, {"i64", "<i8"},
                                           {"i32", "<i4"}, {"i16", "<i2"}, {"i8", "|i1"},  {"u64", "<u8"},
                                           {"u32", "<u4"}, {"u16", "<u2"}, {"u8", "|u1"},  {"bool", "|b1"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i][0], mica_dtype_name(dtype)) == 0)
            return names[i][1];
    return NULL;
}

/* Magic, version, length and dict, padded with blanks so that elements start at a multiple of 64. */
static size_t make_header(char *to, size_t size, const char *descr, const mica_tensor *t)
{
    size_t at = 10;
    at += (size_t)snprintf(to + at, size - at, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < t->rank; i++)
        at += (size_t)snprintf(to + at, size - at, "%s%td", i > 0 ? ", " : "", t->dim[i]);
    at += (size_t)snprintf(to + at, size - at, "%s), }", t->rank == 1 ? "," : "");
    while (at % 64 != 63)
        to[at++] = ' ';
    to[at++] = '\n';
    static const unsigned char magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    memcpy(to, magic, sizeof magic);
    to[8] = (char)((at - 10) & 0xff);
    to[9] = (char)((at - 10) >> 8);
    return at;
}

bool npy_write(mica_context *ctx, const char *path, const mica_tensor *t)
{
    char header[512];
    mica_tensor plain;
    mica_dtype dtype = descr_of(t->dtype) != NULL ? t->dtype : MICA_F32;
    if (mica_tensor_init(ctx, &plain, NULL, dtype, t->rank, t->dim) != MICA_OK)
        return false;
    size_t bytes = mica_tensor_bytes(&plain), length = make_header(header, sizeof header, descr_of(dtype), t);
    plain.data = take(bytes + 1, 1);
    bool good = mica_copy(ctx, &plain, t) == MICA_OK;
    if (good && !MICA_LITTLE_ENDIAN)
        mica_reverse_bytes(plain.data, mica_tensor_count(&plain), mica_dtype_bytes(dtype));
    errno = 0;
    FILE *file = good ? fopen(path, "wb") : NULL;
    good = file != NULL && fwrite(header, 1, length, file) == length &&
           fwrite(plain.data, 1, bytes, file) == bytes;
    if (file != NULL && fclose(file) != 0)
        good = false;
    if (file != NULL && !good) {
        int cause = errno;
        (void)remove(path); /* half a file is worse than none */
        errno = cause;
    }
    free(plain.data);
    return good;
}
