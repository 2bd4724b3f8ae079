/* What is in an open GGUF file. */
#include <stddef.h>
#include <string.h>

#include "gguf/format.h"
#include "io/quote.h"

static mica_status out_of_range(const mica_gguf *file, const char *what, size_t number, size_t count)
{
    return mica_fail(file->ctx, MICA_ERR_ARGUMENT, "%s: no %s %zu: there are %zu", MICA_QUOTE(file->name),
                     what, number, count);
}

/* Settings and tensors alike begin with their names. */
_Static_assert(offsetof(mica_gguf_pair, key) == 0 && offsetof(mica_gguf_entry, name) == 0,
               "search() needs it");

/* The one of this name; NULL: none. */
static const void *search(const void *const *sorted, size_t count, const char *name)
{
    mica_gguf_text wanted = {name, strlen(name)};
    for (size_t low = 0, high = count; low < high;) {
        size_t middle = low + (high - low) / 2;
        int order = mica_gguf_compare(wanted, *(const mica_gguf_text *)sorted[middle]);
        if (order == 0)
            return sorted[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

size_t mica_gguf_settings(const mica_gguf *file) { return file->setting_count; }

mica_status mica_gguf_setting(const mica_gguf *file, mica_gguf_text *key, mica_gguf_value *out, size_t number)
{
    if (number >= file->setting_count)
        return out_of_range(file, "setting", number, file->setting_count);
    *key = file->settings[number].key;
    *out = file->settings[number].value;
    return MICA_OK;
}

bool mica_gguf_find(const mica_gguf *file, mica_gguf_value *out, const char *key)
{
    const mica_gguf_pair *pair = search(file->sorted_settings, file->setting_count, key);
    if (pair != NULL)
        *out = pair->value;
    return pair != NULL;
}

size_t mica_gguf_tensors(const mica_gguf *file) { return file->tensor_count; }

mica_status mica_gguf_tensor(const mica_gguf *file, mica_gguf_text *name, mica_tensor *out, size_t number)
{
    if (number >= file->tensor_count)
        return out_of_range(file, "tensor", number, file->tensor_count);
    *name = file->tensors[number].name;
    *out = file->tensors[number].tensor;
    return MICA_OK;
}

bool mica_gguf_find_tensor(const mica_gguf *file, mica_tensor *out, const char *name)
{
    const mica_gguf_entry *entry = search(file->sorted_tensors, file->tensor_count, name);
    if (entry != NULL)
        *out = entry->tensor;
    return entry != NULL;
}
