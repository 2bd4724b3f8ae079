/* Finding tests: folders with a model.onnx. */
#ifndef MICA_CLI_ONNX_FOLDERS_H
#define MICA_CLI_ONNX_FOLDERS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct folder_list {
    char **path;
    size_t count, room;
} folder_list;

/* Adds `path` if it is a test, else all tests below it, sorted by name. False if it cannot be read. */
bool folders_find(folder_list *list, const char *path);
void folders_free(folder_list *list);

#endif
