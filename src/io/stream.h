/* A file read sequentially, decompressed on the fly if it is gzip. */
#ifndef MICA_SRC_IO_STREAM_H
#define MICA_SRC_IO_STREAM_H

#include "io/file.h"

typedef struct mica_gzip mica_gzip; /* gzip.c */

typedef struct mica_stream {
    mica_file file;
    uint64_t position; /* of the next byte, as unpacked */
    uint64_t most;     /* bytes there can be as unpacked: exact unless it is gzip. More are refused */
    mica_gzip *gzip;   /* NULL: the file is read as it is */
} mica_stream;

mica_status mica_stream_open(mica_context *ctx, mica_stream *out, const char *path);
/* Over bytes in memory; `name` is for messages. */
mica_status mica_stream_open_memory(mica_context *ctx, mica_stream *out, const void *bytes, size_t count,
                                    const char *name);
/* Over a part of an open file, as it is or packed by deflate, that has `bytes` bytes as unpacked. More than that are
 * refused, as from a gzip file. */
mica_status mica_stream_open_part(mica_context *ctx, mica_stream *out, const mica_file *part, bool packed,
                                  uint64_t bytes);
void mica_stream_close(mica_context *ctx, mica_stream *stream); /* safe twice */

/* Reads up to `bytes` bytes; *got is less only at the end. */
mica_status mica_stream_read(mica_context *ctx, void *to, size_t *got, mica_stream *stream, size_t bytes);

/* Reads exactly `bytes` bytes: `what` in the message if there are fewer. */
mica_status mica_stream_need(mica_context *ctx, void *to, mica_stream *stream, size_t bytes,
                             const char *what);

/* Fails unless the stream is at its end. */
mica_status mica_stream_at_end(mica_context *ctx, mica_stream *stream);

/* Back to the start. */
mica_status mica_stream_rewind(mica_context *ctx, mica_stream *stream);

/* The rest of the stream in a block from the context's allocator, to be released with *bytes + 1: one zero
 * byte follows. */
mica_status mica_stream_all(mica_context *ctx, char **block, size_t *bytes, mica_stream *stream);

#define MICA_STREAM_BUFFER ((size_t)65536)

/* ---- gzip.c, for stream.c ---- */

/* No byte of deflate stands for more than 1032. */
#define MICA_GZIP_RATIO 1032u

/* What a packed file may unpack to: this much in any case; above that, so many times its own size. Data are far
 * below; a file that is made to fill the memory, or to take hours, is not. */
#define MICA_GZIP_FREE       ((uint64_t)64 << 20)
#define MICA_GZIP_MOST_RATIO 200u

/* With `bare`, what is packed has no header: one stream of deflate, as in zip files. */
mica_status mica_gzip_open(mica_context *ctx, mica_gzip **out, const mica_file *file, bool bare);
void mica_gzip_close(mica_context *ctx, mica_gzip *gzip);
mica_status mica_gzip_rewind(mica_context *ctx, mica_gzip *gzip);
mica_status mica_gzip_read(mica_context *ctx, void *to, size_t *got, mica_gzip *gzip, size_t bytes);

#endif
