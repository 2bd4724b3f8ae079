/* Files on POSIX systems. */
#define _FILE_OFFSET_BITS 64
#define _DEFAULT_SOURCE   /* madvise */

#include "base/format.h"
#include "io/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/quote.h"

#define LARGEST_CALL ((size_t)1 << 30) /* bytes read or written at once: systems have limits near 2^31 */

/* "file error: "model.safetensors": cannot write: No space left on device" */
static mica_status fail(mica_context *ctx, const char *path, const char *what, int error)
{
    char why[128];
    if (strerror_r(error, why, sizeof why) != 0)
        (void)mica_format(why, sizeof why, "error %d", error);
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

mica_file_type mica_file_type_of(const char *path)
{
    struct stat link, about;
    if (lstat(path, &link) != 0 || stat(path, &about) != 0)
        return MICA_FILE_NOTHING;
    if (S_ISDIR(about.st_mode))
        return S_ISLNK(link.st_mode) ? MICA_FILE_FOLDER_LINK : MICA_FILE_FOLDER;
    return S_ISREG(about.st_mode) ? MICA_FILE_REGULAR : MICA_FILE_OTHER;
}

mica_status mica_file_visit(mica_context *ctx, const char *folder, mica_visit_fn *visit, void *user)
{
    DIR *list = opendir(folder);
    if (list == NULL)
        return fail(ctx, folder, "cannot open", errno);
    mica_status status = MICA_OK;
    while (status == MICA_OK) {
        errno = 0;
        const struct dirent *entry = readdir(list);
        if (entry == NULL) {
            if (errno != 0)
                status = fail(ctx, folder, "cannot read", errno);
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = visit(user, entry->d_name);
    }
    (void)closedir(list);
    return status;
}

void mica_file_close(mica_file *file)
{
    if (file->handle >= 0 && !file->part)
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
            return mica_fail(ctx, MICA_ERR_IO, "%s: truncated while being read: it ends at byte %llu",
                             MICA_QUOTE(file->path), (unsigned long long)offset);
        at += got;
        offset += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return MICA_OK;
}

/* ---- Mapping ---- */

mica_status mica_map_open(mica_context *ctx, mica_map *out, const char *path)
{
    *out = (mica_map){0};
    mica_file file;
    MICA_TRY(mica_file_open(ctx, &file, path));
    mica_status status = MICA_OK;
    if (file.bytes == 0) {
        status = mica_fail(ctx, MICA_ERR_FORMAT, "%s: the file is empty", MICA_QUOTE(path));
    } else if (file.bytes > PTRDIFF_MAX) {
        status = mica_fail(ctx, MICA_ERR_MEMORY, "%s: %llu bytes are too many for memory", MICA_QUOTE(path),
                           (unsigned long long)file.bytes);
    } else {
        void *bytes = mmap(NULL, (size_t)file.bytes, PROT_READ, MAP_SHARED, file.handle, 0);
        if (bytes == MAP_FAILED)
            status = fail(ctx, path, "cannot map", errno);
        else
            *out = (mica_map){bytes, (size_t)file.bytes};
    }
    mica_file_close(&file);
    return status;
}

void mica_map_close(mica_map *map)
{
    if (map->bytes != NULL)
        (void)munmap((void *)map->bytes, map->size);
    *map = (mica_map){0};
}

void mica_map_forget(const mica_map *map, const void *bytes, size_t count)
{
    uintptr_t start = (uintptr_t)map->bytes, at = (uintptr_t)bytes, page = (uintptr_t)sysconf(_SC_PAGESIZE);
    if (start == 0 || at < start || at - start > map->size || count > map->size - (at - start))
        return;
    uintptr_t first = (at + page - 1) / page * page, end = (at + count) / page * page; /* whole pages */
    if (first < end)
        (void)madvise((void *)(map->bytes + (first - start)), end - first, MADV_DONTNEED);
}

/* ---- Making ---- */

/* Removes the PATH.tmp that a killed process left. A lock goes away with the process that holds it, so one that
 * can be locked is nobody's. Between opening and locking, another process may have finished with the very file and
 * given it its final name: then the name PATH.tmp leads elsewhere by now, and nothing is removed. The name alone goes:
 * had somebody linked another file to it, that file would stay as it is. */
static mica_status remove_left_over(mica_context *ctx, const mica_new_file *file)
{
    int handle = open_retry(file->temporary, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
    if (handle < 0)
        return errno == ENOENT ? MICA_OK : fail(ctx, file->temporary, "cannot create", errno);
    mica_status status = MICA_OK;
    struct stat opened, named;
    if (flock(handle, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR))
        status = mica_fail(ctx, MICA_ERR_IO, "%s: another process is writing it", MICA_QUOTE(file->path));
    else if (fstat(handle, &opened) == 0 && lstat(file->temporary, &named) == 0 &&
             opened.st_dev == named.st_dev && opened.st_ino == named.st_ino) {
        if (!S_ISREG(opened.st_mode))
            status = mica_fail(ctx, MICA_ERR_IO, "%s: exists, but is not a regular file",
                               MICA_QUOTE(file->temporary));
        else if (unlink(file->temporary) != 0 && errno != ENOENT)
            status = fail(ctx, file->temporary, "cannot remove", errno);
    }
    (void)close(handle);
    return status;
}

/* Makes PATH.tmp for this process alone. It is new each time, so that its mode is what the umask says. Another
 * process may take a file that is not locked yet for a left over one, and remove it: then it is tried again. */
static mica_status claim(mica_context *ctx, mica_new_file *file)
{
    for (int attempt = 0; attempt < 100; attempt++) {
        int handle = open_retry(file->temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW);
        if (handle < 0 && errno != EEXIST)
            return fail(ctx, file->temporary, "cannot create", errno);
        if (handle < 0) {
            MICA_TRY(remove_left_over(ctx, file));
            continue;
        }
        struct stat opened, named;
        bool locked = flock(handle, LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EINTR);
        if (locked && fstat(handle, &opened) == 0 && lstat(file->temporary, &named) == 0 &&
            opened.st_dev == named.st_dev && opened.st_ino == named.st_ino) {
            file->handle = handle;
            return MICA_OK;
        }
        (void)close(handle);
    }
    return mica_fail(ctx, MICA_ERR_IO, "%s: other processes are constantly writing it",
                     MICA_QUOTE(file->path));
}

static mica_status too_long(mica_context *ctx, const char *path, size_t length)
{
    return mica_fail(ctx, MICA_ERR_ARGUMENT, "the path %s is too long: %zu bytes", MICA_QUOTE(path), length);
}

/* file->target: where the links that PATH may be lead. What they lead to need not be there. */
static mica_status follow_links(mica_context *ctx, mica_new_file *file)
{
    enum { MOST_LINKS = 40 }; /* as Linux has it */
    const size_t room = sizeof file->target - sizeof ".tmp";
    size_t length = strlen(file->path);
    if (length > room)
        return too_long(ctx, file->path, length);
    memcpy(file->target, file->path, length + 1);
    for (int links = 0; links < MOST_LINKS; links++) {
        char *link = file->temporary; /* not in use yet */
        ssize_t got = readlink(file->target, link, room);
        if (got < 0 || got == (ssize_t)room) /* no link, or nothing: opening it will tell */
            return got < 0 ? MICA_OK : too_long(ctx, file->path, room);
        char *slash = strrchr(file->target, '/');
        size_t folder = link[0] == '/' || slash == NULL ? 0 : (size_t)(slash + 1 - file->target);
        if (folder + (size_t)got > room)
            return too_long(ctx, file->path, folder + (size_t)got);
        memcpy(file->target + folder, link, (size_t)got);
        file->target[folder + (size_t)got] = '\0';
    }
    return fail(ctx, file->path, "cannot open", ELOOP);
}

/* Gives the new file the mode of the one that it replaces, and its owner where that is allowed. */
static mica_status keep_mode(mica_context *ctx, const mica_new_file *file, const struct stat *old)
{
    struct stat now;
    if (fstat(file->handle, &now) != 0)
        return fail(ctx, file->path, "cannot create", errno);
    bool same = now.st_uid == old->st_uid && now.st_gid == old->st_gid;
    if (!same && fchown(file->handle, old->st_uid, old->st_gid) != 0 && errno != EPERM && errno != EINVAL)
        return fail(ctx, file->path, "cannot keep the owner", errno);
    if ((now.st_mode & 0777) != (old->st_mode & 0777) && fchmod(file->handle, old->st_mode & 0777) != 0)
        return fail(ctx, file->path, "cannot keep the mode", errno);
    return MICA_OK;
}

mica_status mica_new_file_begin(mica_context *ctx, mica_new_file *out, const char *path)
{
    out->path = path;
    out->handle = -1;
    out->used = 0;
    MICA_TRY(follow_links(ctx, out));
    struct stat about; /* a device or a folder under this name is not to be replaced by a file */
    bool replaces = lstat(out->target, &about) == 0;
    if (replaces && !S_ISREG(about.st_mode))
        return mica_fail(ctx, MICA_ERR_IO, "%s: not a regular file, cannot be replaced", MICA_QUOTE(path));
    size_t length = strlen(out->target);
    memcpy(out->temporary, out->target, length);
    memcpy(out->temporary + length, ".tmp", sizeof ".tmp");
    MICA_TRY(claim(ctx, out));
    mica_status status = replaces ? keep_mode(ctx, out, &about) : MICA_OK;
    if (status != MICA_OK)
        mica_new_file_abandon(out);
    return status;
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
    if (status == MICA_OK && rename(file->temporary, file->target) != 0)
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
