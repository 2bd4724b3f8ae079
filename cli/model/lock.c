/* Locks on folders. */
#include "cli/model/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Who holds it, as the file says. */
static int in_use(const folder_lock *lock, const verb *v, const char *folder, int handle)
{
    char text[32] = "";
    ssize_t got = read(handle, text, sizeof text - 1);
    text[got > 0 ? strspn(text, "0123456789") : 0] = '\0';
    (void)close(handle);
    return verb_error(
        v, EXIT_FAILED,
        "%s is in use by another training run%s%s (%s is locked); --checkpoint DIR saves this one elsewhere",
        folder, text[0] != '\0' ? ", process " : "", text, lock->path);
}

static void write_process(int handle)
{
    char text[32];
    int length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    /* Only for people: that it could not be written is no reason not to train. */
    if (ftruncate(handle, 0) != 0 || write(handle, text, (size_t)length) != length)
        return;
}

int folder_lock_take(folder_lock *lock, const verb *v, const char *folder)
{
    int n = snprintf(lock->path, sizeof lock->path, "%s/%s", folder, LOCK_NAME);
    if (n < 0 || (size_t)n >= sizeof lock->path)
        return usage_error(v, "the folder name is longer than %zu bytes",
                           sizeof lock->path - sizeof LOCK_NAME - 1);
    for (int attempt = 0; attempt < 100; attempt++) {
        int handle = open(lock->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666);
        if (handle < 0)
            return verb_error(v, EXIT_FAILED, "cannot write to the folder %s: %s: %s", folder, LOCK_NAME,
                              strerror(errno));
        if (flock(handle, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
            return in_use(lock, v, folder, handle);
        /* The one before may have removed the file in between: then this is no longer what the name leads to. */
        struct stat opened, named;
        if (fstat(handle, &opened) == 0 && lstat(lock->path, &named) == 0 && opened.st_dev == named.st_dev &&
            opened.st_ino == named.st_ino) {
            if (!S_ISREG(opened.st_mode)) {
                (void)close(handle);
                return verb_error(v, EXIT_FAILED, "%s exists, but is not a regular file", lock->path);
            }
            lock->handle = handle;
            lock->held = true;
            write_process(handle);
            return EXIT_OK;
        }
        (void)close(handle);
    }
    return verb_error(v, EXIT_FAILED, "%s is constantly in use by other processes", folder);
}

void folder_lock_release(folder_lock *lock)
{
    if (!lock->held)
        return;
    (void)unlink(lock->path); /* while it is held: nobody else's can be meant */
    (void)close(lock->handle);
    lock->held = false;
}
