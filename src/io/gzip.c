/* gzip through zlib, with memory from the context; without zlib, an error that says so. */
#include "io/quote.h"
#include "io/stream.h"

#ifdef MICA_HAVE_ZLIB
#include <limits.h>
#include <zlib.h>

#include "io/zlib_memory.h"

struct mica_gzip {
    const mica_file *file;
    z_stream zlib;
    uint64_t position; /* of the next byte of the file */
    bool bare;         /* deflate without gzip's header */
    bool ended;
    unsigned char buffer[16384];
};

static mica_status bad(mica_context *ctx, const mica_gzip *gzip, const char *what)
{
    return mica_fail(ctx, MICA_ERR_FORMAT, "%s: byte %llu: %s: %s", MICA_QUOTE(gzip->file->path),
                     (unsigned long long)(gzip->file->start + gzip->position - gzip->zlib.avail_in),
                     gzip->bare ? "deflate" : "gzip", what);
}

mica_status mica_gzip_open(mica_context *ctx, mica_gzip **out, const mica_file *file, bool bare)
{
    *out = NULL;
    mica_gzip *gzip = mica_allocate(ctx, sizeof *gzip);
    if (gzip == NULL)
        return ctx->status;
    *gzip = (mica_gzip){.file = file, .bare = bare};
    gzip->zlib = (z_stream){.zalloc = mica_zlib_allocate, .zfree = mica_zlib_release, .opaque = ctx};
    if (inflateInit2(&gzip->zlib, bare ? -MAX_WBITS : 16 + MAX_WBITS) != Z_OK) {
        mica_release(ctx, gzip, sizeof *gzip);
        return mica_fail(ctx, MICA_ERR_MEMORY, "%s: out of memory while decompressing",
                         MICA_QUOTE(file->path));
    }
    *out = gzip;
    return MICA_OK;
}

void mica_gzip_close(mica_context *ctx, mica_gzip *gzip)
{
    (void)inflateEnd(&gzip->zlib);
    mica_release(ctx, gzip, sizeof *gzip);
}

mica_status mica_gzip_rewind(mica_context *ctx, mica_gzip *gzip)
{
    gzip->position = 0;
    gzip->ended = false;
    gzip->zlib.avail_in = 0;
    return inflateReset(&gzip->zlib) == Z_OK ? MICA_OK : bad(ctx, gzip, "cannot rewind");
}

static mica_status refill(mica_context *ctx, mica_gzip *gzip)
{
    uint64_t left = gzip->file->bytes - gzip->position;
    size_t count = left < sizeof gzip->buffer ? (size_t)left : sizeof gzip->buffer;
    MICA_TRY(mica_file_read(ctx, gzip->buffer, gzip->file, count, gzip->position));
    gzip->position += count;
    gzip->zlib.next_in = gzip->buffer;
    gzip->zlib.avail_in = (unsigned)count;
    return MICA_OK;
}

/* One member has ended: the file has, or another member follows, as when .gz files are joined. */
static mica_status next_member(mica_context *ctx, mica_gzip *gzip)
{
    if (gzip->zlib.avail_in == 0)
        MICA_TRY(refill(ctx, gzip));
    gzip->ended = gzip->zlib.avail_in == 0;
    if (!gzip->ended && gzip->bare)
        return bad(ctx, gzip, "bytes after the end of the packed data");
    if (!gzip->ended && inflateReset(&gzip->zlib) != Z_OK)
        return bad(ctx, gzip, "cannot rewind");
    return MICA_OK;
}

mica_status mica_gzip_read(mica_context *ctx, void *to, size_t *got, mica_gzip *gzip, size_t bytes)
{
    z_stream *z = &gzip->zlib;
    *got = 0;
    while (*got < bytes && !gzip->ended) {
        size_t wanted = bytes - *got;
        if (z->avail_in == 0)
            MICA_TRY(refill(ctx, gzip));
        z->next_out = (unsigned char *)to + *got;
        z->avail_out = wanted < UINT_MAX ? (unsigned)wanted : UINT_MAX;
        unsigned before = z->avail_out;
        int result = inflate(z, Z_NO_FLUSH);
        *got += before - z->avail_out;
        if (result == Z_STREAM_END)
            MICA_TRY(next_member(ctx, gzip));
        else if (result == Z_BUF_ERROR) /* there is room, so it is the input that is missing */
            return bad(ctx, gzip, "the file ends too early");
        else if (result == Z_MEM_ERROR)
            return ctx->status;
        else if (result != Z_OK)
            return bad(ctx, gzip, z->msg != NULL ? z->msg : "corrupt data");
    }
    return MICA_OK;
}

#else

mica_status mica_gzip_open(mica_context *ctx, mica_gzip **out, const mica_file *file, bool bare)
{
    *out = NULL;
    return mica_fail(ctx, MICA_ERR_IO, "%s: %s, but this build has no zlib: decompress it first",
                     MICA_QUOTE(file->path), bare ? "it has packed parts" : "a gzip file");
}

void mica_gzip_close(mica_context *ctx, mica_gzip *gzip) { (void)ctx, (void)gzip; }

mica_status mica_gzip_rewind(mica_context *ctx, mica_gzip *gzip)
{
    (void)ctx, (void)gzip;
    return MICA_OK;
}

mica_status mica_gzip_read(mica_context *ctx, void *to, size_t *got, mica_gzip *gzip, size_t bytes)
{
    (void)ctx, (void)to, (void)gzip, (void)bytes;
    *got = 0;
    return MICA_OK;
}

#endif
