#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/model/take.h"
#include "cli/onnx/folders.h"

#define DEEPEST 6 /* folders within folders; links may go round in circles */

static bool is_test(const char *path)
{
    char model[4096];
    struct stat about;
    int length = snprintf(model, sizeof model, "%s/model.onnx", path);
    return length > 0 && (size_t)length < sizeof model && stat(model, &about) == 0 && S_ISREG(about.st_mode);
}

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static void add(folder_list *list, const char *path)
{
    list->path = take_more(list->path, list->count, &list->room, sizeof *list->path);
    list->path[list->count++] = take_text(path);
}

static bool find_below(folder_list *list, const char *path, int depth)
{
    if (is_test(path)) {
        add(list, path);
        return true;
    }
    DIR *folder = depth < DEEPEST ? opendir(path) : NULL;
    if (folder == NULL)
        return false;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char below[4096];
        int length = snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.' && length > 0 && (size_t)length < sizeof below && is_folder(below))
            (void)find_below(list, below, depth + 1);
    }
    closedir(folder);
    return true;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

bool folders_find(folder_list *list, const char *path)
{
    char trimmed[4096];
    size_t length = strlen(path), before = list->count;
    if (length == 0 || length >= sizeof trimmed)
        return false;
    memcpy(trimmed, path, length + 1);
    while (length > 1 && trimmed[length - 1] == '/')
        trimmed[--length] = '\0';
    bool found = find_below(list, trimmed, 0);
    if (list->count > before)
        qsort(list->path + before, list->count - before, sizeof *list->path, by_name);
    return found;
}

void folders_free(folder_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->path[i]);
    free(list->path);
}
