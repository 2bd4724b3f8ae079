/* Files on POSIX systems. */
#define _FILE_OFFSET_BITS 64

#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/quote.h"

#define LARGEST_CALL ((size_t)1 << 30) /* bytes read or written at once: systems have limits near 2^31 */

/* "file error: "model.safetensors": cannot write: No space left on device" */
static mica_status fail(mica_context *ctx, const char *path, const char *what, int error)
{
    char why[128];
    if (strerror_r(error, why, sizeof why) != 0)
        (void)snprintf(why, sizeof why, "error %d", error);
    return mica_fail(ctx, MICA_ERR_IO, "%s: %s: %s", MICA_QUOTE(path), what, why);
}

/* open(2), not ended by a signal. */
static int open_retry(const char *path, int flags)
{
    int handle;
    do
        handle = open(path, flags | O_CLOEXEC, 0666);
    while (handle < 0 && errno == EINTR);
    return handle;
}

/* ---- Reading ---- */

mica_status mica_file_open(mica_context *ctx, mica_file *out, const char *path)
{
    *out = (mica_file){.path = path, .handle = -1};
    int handle = open_retry(path, O_RDONLY | O_NONBLOCK); /* a pipe must not make it wait */
    if (handle < 0)
        return fail(ctx, path, "cannot open", errno);
    struct stat about;
    if (fstat(handle, &about) != 0) {
        int error = errno;
        (void)close(handle);
        return fail(ctx, path, "cannot open", error);
    }
    if (!S_ISREG(about.st_mode)) {
        (void)close(handle);
        return mica_fail(ctx, MICA_ERR_IO, "%s: not a regular file", MICA_QUOTE(path));
    }
    out->handle = handle;
    out->bytes = (uint64_t)about.st_size;
    return MICA_OK;
}

bool mica_file_exists(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

void mica_file_close(mica_file *file)
{
    if (file->handle >= 0)
        (void)close(file->handle);
    file->handle = -1;
}

mica_status mica_system_read(mica_context *ctx, void *to, const mica_file *file, size_t bytes,
                             uint64_t offset)
{
    for (char *at = to; bytes > 0;) {
        ssize_t got = pread(file->handle, at, bytes < LARGEST_CALL ? bytes : LARGEST_CALL, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail(ctx, file->path, "cannot read", errno);
        if (got == 0)
            return mica_fail(ctx, MICA_ERR_IO, "%s: became shorter while it was read: it ends at byte %llu",
                             MICA_QUOTE(file->path), (unsigned long long)offset);
        at += got;
        offset += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return MICA_OK;
}

/* ---- Making ---- */

/* Opens PATH.tmp for this process alone. A lock goes away with the process that holds it, so what a killed one
 * left is taken over. Between opening and locking, another process may have finished with the very file and
 * given it its final name: then the name PATH.tmp leads elsewhere by now, and it is tried again. */
static mica_status claim(mica_context *ctx, mica_new_file *file)
{
    for (int attempt = 0; attempt < 100; attempt++) {
        int handle = open_retry(file->temporary, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK);
        if (handle < 0)
            return fail(ctx, file->temporary, "cannot create", errno);
        struct stat opened, named;
        if (flock(handle, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
            (void)close(handle);
            return mica_fail(ctx, MICA_ERR_IO, "%s: is being written by somebody else",
                             MICA_QUOTE(file->path));
        }
        if (fstat(handle, &opened) == 0 && stat(file->temporary, &named) == 0 &&
            opened.st_dev == named.st_dev && opened.st_ino == named.st_ino) {
            file->handle = handle;
            if (S_ISREG(opened.st_mode) && ftruncate(handle, 0) == 0)
                return MICA_OK;
            mica_status status = fail(ctx, file->temporary, "cannot empty", errno);
            (void)close(handle);
            return status;
        }
        (void)close(handle);
    }
    return mica_fail(ctx, MICA_ERR_IO, "%s: is being written by others all the time", MICA_QUOTE(file->path));
}

mica_status mica_new_file_begin(mica_context *ctx, mica_new_file *out, const char *path)
{
    out->path = path;
    out->handle = -1;
    out->used = 0;
    size_t length = strlen(path);
    if (length + sizeof ".tmp" > sizeof out->temporary)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "the path %s is too long: %zu bytes", MICA_QUOTE(path),
                         length);
    struct stat about; /* a device or a folder under this name is not to be replaced by a file */
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode))
        return mica_fail(ctx, MICA_ERR_IO, "%s: cannot replace what is not a regular file", MICA_QUOTE(path));
    memcpy(out->temporary, path, length);
    memcpy(out->temporary + length, ".tmp", sizeof ".tmp");
    return claim(ctx, out);
}

static mica_status write_all(mica_context *ctx, const mica_new_file *file, const void *bytes, size_t count)
{
    for (const char *at = bytes; count > 0;) {
        ssize_t done = write(file->handle, at, count < LARGEST_CALL ? count : LARGEST_CALL);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return fail(ctx, file->path, "cannot write", errno);
        at += done;
        count -= (size_t)done;
    }
    return MICA_OK;
}

static mica_status flush(mica_context *ctx, mica_new_file *file)
{
    size_t used = file->used;
    file->used = 0;
    return write_all(ctx, file, file->buffer, used);
}

mica_status mica_new_file_write(mica_context *ctx, mica_new_file *file, const void *bytes, size_t count)
{
    if (count > sizeof file->buffer - file->used)
        MICA_TRY(flush(ctx, file));
    if (count > sizeof file->buffer)
        return write_all(ctx, file, bytes, count);
    if (count > 0)
        memcpy(file->buffer + file->used, bytes, count);
    file->used += count;
    return MICA_OK;
}

/* A new name is on the disk when its folder is. Some file systems cannot be asked for that: EINVAL. */
static mica_status sync_folder(mica_context *ctx, mica_new_file *file)
{
    char *slash = strrchr(file->temporary, '/');
    if (slash == NULL)
        memcpy(file->temporary, ".", 2);
    else
        slash[slash == file->temporary] = '\0';
    int folder = open_retry(file->temporary, O_RDONLY | O_DIRECTORY);
    if (folder < 0)
        return fail(ctx, file->temporary, "cannot open the folder", errno);
    int error = fsync(folder) == 0 ? 0 : errno;
    (void)close(folder);
    if (error != 0 && error != EINVAL)
        return fail(ctx, file->temporary, "cannot sync the folder", error);
    return MICA_OK;
}

mica_status mica_new_file_commit(mica_context *ctx, mica_new_file *file)
{
    mica_status status = flush(ctx, file);
    if (status == MICA_OK && fsync(file->handle) != 0)
        status = fail(ctx, file->path, "cannot sync", errno);
    if (status == MICA_OK && rename(file->temporary, file->path) != 0)
        status = fail(ctx, file->path, "cannot replace", errno);
    if (status != MICA_OK) {
        mica_new_file_abandon(file);
        return status;
    }
    (void)close(file->handle);
    file->handle = -1;
    return sync_folder(ctx, file);
}

void mica_new_file_abandon(mica_new_file *file)
{
    if (file->handle < 0)
        return;
    (void)unlink(file->temporary); /* before the lock goes: nobody else's can be meant */
    (void)close(file->handle);
    file->handle = -1;
}
