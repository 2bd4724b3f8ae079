/* The reader of earlier benchmark runs, over any bytes: whatever it takes can be walked and freed, and what
 * it refuses is refused at a byte of the text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static void walk(const json_value *parent)
{
    for (const json_value *v = parent->first; v != NULL; v = v->next) {
        require(v->offset > parent->offset);
        require((v->key != NULL) == (parent->kind == JSON_OBJECT));
        require(v->key == NULL || json_member(parent, v->key) == v);
        require((v->string != NULL) == (v->kind == JSON_STRING));
        walk(v);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of exactly this size, so that the sanitizer sees a read past the end. */
    char *text = malloc(size > 0 ? size : 1);
    require(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    json_error error = {0};
    json_value *v = json_read(text, size, &error);
    if (v != NULL)
        walk(v);
    else
        require(error.text[0] != '\0' && error.offset <= size);
    json_free(v);
    free(text);
    return 0;
}
