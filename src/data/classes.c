/* Names of classes. */
#include "data/classes.h"

#include <string.h>

/* As strcmp, for a name that no zero byte ends. */
static int compare(const char *name, size_t length, const char *other)
{
    size_t other_length = strlen(other), shorter = length < other_length ? length : other_length;
    int order = memcmp(name, other, shorter);
    return order != 0 ? order : length < other_length ? -1 : length > other_length;
}

bool mica_classes_add(mica_classes *classes, const char *name, size_t length)
{
    int low = 0, high = classes->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        int order = compare(name, length, classes->text + classes->start[middle]);
        if (order == 0)
            return true;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    if (classes->count == MICA_MOST_CLASSES || length >= MICA_CLASS_TEXT_BYTES - classes->used)
        return false;
    memmove(classes->start + low + 1, classes->start + low,
            (size_t)(classes->count - low) * sizeof classes->start[0]);
    classes->start[low] = (uint32_t)classes->used;
    memcpy(classes->text + classes->used, name, length);
    classes->text[classes->used + length] = '\0';
    classes->used += length + 1;
    classes->count++;
    return true;
}

/* One block: [ pointers | names ] */
mica_status mica_classes_copy(mica_context *ctx, mica_dataset *set, const char *const *names, int count)
{
    size_t pointers = (size_t)count * sizeof(char *), bytes = pointers;
    for (int i = 0; i < count; i++)
        bytes += strlen(names[i]) + 1;
    char *block = mica_allocate(ctx, bytes);
    if (block == NULL)
        return ctx->status;
    const char **to = (const char **)(void *)block;
    char *text = block + pointers;
    for (int i = 0; i < count; i++) {
        size_t size = strlen(names[i]) + 1;
        to[i] = memcpy(text, names[i], size);
        text += size;
    }
    set->classes = to;
    set->class_count = count;
    set->owned[2] = bytes;
    return MICA_OK;
}
