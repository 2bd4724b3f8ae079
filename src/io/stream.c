/* A file read sequentially. */
#include "io/stream.h"

#include "io/quote.h"

/* What a gzip file of so many bytes may unpack to. */
static uint64_t most_unpacked(uint64_t bytes)
{
    uint64_t can = bytes > UINT64_MAX / MICA_GZIP_RATIO ? UINT64_MAX : bytes * MICA_GZIP_RATIO;
    uint64_t may = bytes > UINT64_MAX / MICA_GZIP_RATIO ? UINT64_MAX : bytes * MICA_GZIP_MOST_RATIO;
    may = may > MICA_GZIP_FREE ? may : MICA_GZIP_FREE;
    return can < may ? can : may;
}

/* Looks whether it is gzip, by its first two bytes. Takes the file over, also when it fails. */
static mica_status start(mica_context *ctx, mica_stream *out, mica_file file)
{
    unsigned char magic[2] = {0, 0};
    *out = (mica_stream){.file = file, .most = file.bytes};
    mica_status status = MICA_OK;
    if (file.bytes >= sizeof magic)
        status = mica_file_read(ctx, magic, &out->file, sizeof magic, 0);
    if (status == MICA_OK && magic[0] == 0x1f && magic[1] == 0x8b) {
        out->most = most_unpacked(file.bytes);
        status = mica_gzip_open(ctx, &out->gzip, &out->file, false);
    }
    if (status != MICA_OK)
        mica_stream_close(ctx, out);
    return status;
}

mica_status mica_stream_open(mica_context *ctx, mica_stream *out, const char *path)
{
    mica_file file;
    MICA_TRY(mica_file_open(ctx, &file, path));
    return start(ctx, out, file);
}

mica_status mica_stream_open_memory(mica_context *ctx, mica_stream *out, const void *bytes, size_t count,
                                    const char *name)
{
    return start(ctx, out, mica_file_over(bytes, count, name));
}

mica_status mica_stream_open_part(mica_context *ctx, mica_stream *out, const mica_file *part, bool packed,
                                  uint64_t bytes)
{
    *out = (mica_stream){.file = *part, .most = bytes};
    uint64_t most = packed ? most_unpacked(part->bytes) : part->bytes;
    if (bytes > most || (!packed && bytes < most))
        return mica_fail(
            ctx, MICA_ERR_FORMAT, "%s: byte %llu: a part of %llu bytes is said to hold %llu, expected %s%llu",
            MICA_QUOTE(part->path), (unsigned long long)part->start, (unsigned long long)part->bytes,
            (unsigned long long)bytes, packed ? "at most " : "", (unsigned long long)most);
    return packed ? mica_gzip_open(ctx, &out->gzip, &out->file, true) : MICA_OK;
}

void mica_stream_close(mica_context *ctx, mica_stream *stream)
{
    if (stream->gzip != NULL)
        mica_gzip_close(ctx, stream->gzip);
    stream->gzip = NULL;
    mica_file_close(&stream->file);
}

mica_status mica_stream_read(mica_context *ctx, void *to, size_t *got, mica_stream *stream, size_t bytes)
{
    *got = 0;
    if (stream->gzip != NULL) {
        MICA_TRY(mica_gzip_read(ctx, to, got, stream->gzip, bytes));
    } else {
        uint64_t left = stream->file.bytes - stream->position;
        size_t count = bytes < left ? bytes : (size_t)left;
        MICA_TRY(mica_file_read(ctx, to, &stream->file, count, stream->position));
        *got = count;
    }
    stream->position += *got;
    if (stream->position > stream->most)
        return mica_fail(ctx, MICA_ERR_FORMAT,
                         "%s: gzip: %llu bytes decompress to more than the limit of %llu bytes",
                         MICA_QUOTE(stream->file.path), (unsigned long long)stream->file.bytes,
                         (unsigned long long)stream->most);
    return MICA_OK;
}

mica_status mica_stream_need(mica_context *ctx, void *to, mica_stream *stream, size_t bytes, const char *what)
{
    size_t got;
    MICA_TRY(mica_stream_read(ctx, to, &got, stream, bytes));
    if (got < bytes)
        return mica_fail(ctx, MICA_ERR_FORMAT, "%s: byte %llu: the file ends, %zu bytes short of %s",
                         MICA_QUOTE(stream->file.path), (unsigned long long)stream->position, bytes - got,
                         what);
    return MICA_OK;
}

mica_status mica_stream_at_end(mica_context *ctx, mica_stream *stream)
{
    char more;
    size_t got;
    uint64_t end = stream->position;
    MICA_TRY(mica_stream_read(ctx, &more, &got, stream, 1));
    if (got > 0)
        return mica_fail(ctx, MICA_ERR_FORMAT, "%s: byte %llu: trailing bytes after the data",
                         MICA_QUOTE(stream->file.path), (unsigned long long)end);
    return MICA_OK;
}

mica_status mica_stream_rewind(mica_context *ctx, mica_stream *stream)
{
    stream->position = 0;
    return stream->gzip != NULL ? mica_gzip_rewind(ctx, stream->gzip) : MICA_OK;
}

/* How many bytes there are: a gzip file is unpacked once for that. */
static mica_status measure(mica_context *ctx, uint64_t *bytes, mica_stream *stream)
{
    *bytes = stream->file.bytes;
    if (stream->gzip == NULL)
        return MICA_OK;
    char buffer[4096];
    size_t got;
    do
        MICA_TRY(mica_stream_read(ctx, buffer, &got, stream, sizeof buffer));
    while (got > 0);
    *bytes = stream->position;
    return mica_stream_rewind(ctx, stream);
}

mica_status mica_stream_all(mica_context *ctx, char **block, size_t *bytes, mica_stream *stream)
{
    uint64_t whole;
    MICA_TRY(measure(ctx, &whole, stream));
    if (whole >= PTRDIFF_MAX)
        return mica_fail(ctx, MICA_ERR_MEMORY, "%s: %llu bytes do not fit in memory",
                         MICA_QUOTE(stream->file.path), (unsigned long long)whole);
    char *to = mica_allocate(ctx, (size_t)whole + 1);
    if (to == NULL)
        return ctx->status;
    mica_status status = mica_stream_need(ctx, to, stream, (size_t)whole, "its own length");
    if (status != MICA_OK) {
        mica_release(ctx, to, (size_t)whole + 1);
        return status;
    }
    to[whole] = '\0';
    *block = to;
    *bytes = (size_t)whole;
    return MICA_OK;
}
