/* A folder for the files of one test. */
#include "scratch.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

scratch scratch_make(void)
{
    scratch s;
    const char *base = getenv("TMPDIR");
    snprintf(s.folder, sizeof s.folder, "%s/mica-test-XXXXXX", base != NULL ? base : "/tmp");
    CHECK(mkdtemp(s.folder) != NULL);
    return s;
}

const char *scratch_path(scratch *s, const char *name)
{
    snprintf(s->path, sizeof s->path, "%s/%s", s->folder, name);
    return s->path;
}

/* Counts the files, and removes them if asked to. */
static int walk(const scratch *s, bool unlinks)
{
    int count = 0;
    DIR *folder = opendir(s->folder);
    if (folder == NULL)
        return -1;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        count++;
        char path[600];
        snprintf(path, sizeof path, "%s/%s", s->folder, entry->d_name);
        if (unlinks)
            CHECK(unlink(path) == 0);
    }
    closedir(folder);
    return count;
}

int scratch_count(const scratch *s) { return walk(s, false); }

void scratch_remove(scratch *s)
{
    (void)walk(s, true);
    CHECK(rmdir(s->folder) == 0);
}

void scratch_write(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    if (!CHECK_MSG(file != NULL, "cannot write %s", path))
        return;
    CHECK(fwrite(bytes, 1, count, file) == count);
    CHECK(fclose(file) == 0);
}

unsigned char *scratch_read(const char *path, size_t *count)
{
    *count = 0;
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(size + 1);
    *count = fread(bytes, 1, size, file);
    fclose(file);
    return bytes;
}
