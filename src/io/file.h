/* Files: random-access reads, and atomic replacement.
 *
 * All operating system calls are in file_posix.c. A build without file support (MICA_IO=OFF) uses
 * file_none.c instead, where opening fails; reading from memory still works. */
#ifndef MICA_SRC_IO_FILE_H
#define MICA_SRC_IO_FILE_H

#include "base/context.h"

/* A file being read: one of the system's, or bytes in memory. */
typedef struct mica_file {
    const char *path;            /* for messages; must outlive the file */
    const unsigned char *memory; /* NULL: the system's */
    int handle;                  /* of the system; -1: none */
    uint64_t bytes;
    uint64_t start; /* of a part, in the system's file */
    bool part;      /* of an open file, whose handle it borrows */
} mica_file;

mica_status mica_file_open(mica_context *ctx, mica_file *out, const char *path);
mica_file mica_file_over(const void *memory, size_t bytes, const char *name);
void mica_file_close(mica_file *file); /* safe twice */

/* Bytes start .. start + bytes - 1 of an open file, which they must be in and which must stay open, as a file. */
mica_file mica_file_part(const mica_file *whole, uint64_t start, uint64_t bytes);

/* Whether there is something of that name, be it readable or not. */
bool mica_file_exists(const char *path);

/* What a name leads to. */
typedef enum mica_file_type {
    MICA_FILE_NOTHING,
    MICA_FILE_REGULAR, /* also through a link */
    MICA_FILE_FOLDER,
    MICA_FILE_FOLDER_LINK, /* a link to a folder */
    MICA_FILE_OTHER,
} mica_file_type;

mica_file_type mica_file_type_of(const char *path);

/* Calls `visit` for every name in a folder but "." and "..", in the order in which the system has them, until one
 * fails. */
typedef mica_status mica_visit_fn(void *user, const char *name);
mica_status mica_file_visit(mica_context *ctx, const char *folder, mica_visit_fn *visit, void *user);

/* Reads exactly `bytes` bytes from `offset` on; fewer there is an error. */
mica_status mica_file_read(mica_context *ctx, void *to, const mica_file *file, size_t bytes, uint64_t offset);

/* A file's bytes in memory, read-only, fetched by the system where they are touched: an open one takes next to
 * none. If the file is shortened meanwhile, touching what is gone ends the process: nobody can catch that here. */
typedef struct mica_map {
    const unsigned char *bytes;
    size_t size;
} mica_map;

/* An empty file is an error, as is anything but a regular file. */
mica_status mica_map_open(mica_context *ctx, mica_map *out, const char *path);
void mica_map_close(mica_map *map); /* safe twice */
/* Bytes of the map that are not needed for a while: memory need not hold them. Other bytes are nobody's business. */
void mica_map_forget(const mica_map *map, const void *bytes, size_t count);

/* A file being made. It is written beside the one it will replace, as PATH.tmp, and takes its name when all of it
 * is on the disk: a process that ends at any moment leaves the old file or the new one. What such an end leaves
 * of PATH.tmp is removed by the next one. Two at once for one path: the second is refused. A file that is replaced
 * keeps its mode; if PATH is a symbolic link, it stays one, and what it leads to is replaced. */
typedef struct mica_new_file {
    const char *path; /* as given, for messages */
    int handle;
    size_t used;       /* bytes waiting in the buffer */
    char target[4096]; /* the path without links at its end */
    char temporary[4096];
    unsigned char buffer[8192];
} mica_new_file;

mica_status mica_new_file_begin(mica_context *ctx, mica_new_file *out, const char *path);
mica_status mica_new_file_write(mica_context *ctx, mica_new_file *file, const void *bytes, size_t count);
/* Either of these ends it, with the new file or with the old one. */
mica_status mica_new_file_commit(mica_context *ctx, mica_new_file *file);
void mica_new_file_abandon(mica_new_file *file);

/* For file.c: a read within the system's file. */
mica_status mica_system_read(mica_context *ctx, void *to, const mica_file *file, size_t bytes,
                             uint64_t offset);

/* Files hold the low byte first. Turns elements of `size` bytes round where memory does not. */
static inline void mica_reverse_bytes(void *elements, size_t count, size_t size)
{
    for (unsigned char *e = elements; count > 0; count--, e += size) {
        for (size_t i = 0; i < size / 2; i++) {
            unsigned char kept = e[i];
            e[i] = e[size - 1 - i];
            e[size - 1 - i] = kept;
        }
    }
}

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define MICA_LITTLE_ENDIAN 0
#else
#define MICA_LITTLE_ENDIAN 1
#endif

#endif
