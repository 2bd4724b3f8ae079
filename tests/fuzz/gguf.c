/* GGUF: any bytes are an error, or a file all of whose settings and tensors can be read. */
#include <string.h>

#include "fuzz.h"

/* Every byte that a value has. */
static unsigned read_value(const mica_gguf_value *value)
{
    unsigned sum = 0;
    mica_gguf_text text;
    double number;
    int64_t integer;
    size_t at = 0, texts = 0, numbers = 0;
    if (value->kind == MICA_GGUF_STRING)
        for (size_t i = 0; i < value->text.length; i++)
            sum += (unsigned char)value->text.bytes[i];
    while (mica_gguf_next_text(value, &text, &at)) {
        texts++;
        for (size_t i = 0; i < text.length; i++)
            sum += (unsigned char)text.bytes[i];
    }
    while (mica_gguf_number_at(value, &number, numbers)) {
        numbers++;
        sum += number > 0.0;
    }
    (void)mica_gguf_integer_at(value, &integer, numbers);
    if (value->kind == MICA_GGUF_ARRAY)
        INSIST(texts + numbers == value->array.count);
    return sum;
}

static unsigned read_all(const mica_gguf *file, const unsigned char *bytes, size_t size)
{
    unsigned sum = 0;
    for (size_t i = 0; i < mica_gguf_settings(file); i++) {
        mica_gguf_text key;
        mica_gguf_value value;
        INSIST(mica_gguf_setting(file, &key, &value, i) == MICA_OK && key.length > 0);
        sum += read_value(&value);
    }
    for (size_t i = 0; i < mica_gguf_tensors(file); i++) {
        mica_gguf_text name;
        mica_tensor t, found;
        INSIST(mica_gguf_tensor(file, &name, &t, i) == MICA_OK);
        char text[64];
        INSIST(name.length > 0 && name.length < sizeof text);
        memcpy(text, name.bytes, name.length);
        text[name.length] = '\0';
        INSIST(mica_gguf_find_tensor(file, &found, text) && found.data == t.data);
        const unsigned char *data = t.data;
        INSIST(data >= bytes && mica_tensor_bytes(&t) <= (size_t)(bytes + size - data));
        for (size_t k = 0; k < mica_tensor_bytes(&t); k++)
            sum += data[k];
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mica_context *ctx;
    INSIST(mica_context_create(&ctx, NULL) == MICA_OK);
    size_t live = mica_context_heap(ctx).live_bytes;
    /* A copy of exactly this size, so that the sanitizer sees a step past the end. */
    unsigned char *copy = malloc(size > 0 ? size : 1);
    INSIST(copy != NULL);
    if (size > 0)
        memcpy(copy, data, size);
    mica_gguf *file = NULL;
    mica_status status = mica_gguf_over(ctx, &file, copy, size, "fuzz");
    INSIST((status == MICA_OK) == (file != NULL));
    INSIST(status == MICA_OK || status == MICA_ERR_FORMAT);
    if (file != NULL) {
        volatile unsigned sum = read_all(file, copy, size);
        (void)sum;
        INSIST(mica_context_heap(ctx).live_bytes - live <=
               4096 + 8 * size); /* in proportion to what was there */
    }
    mica_gguf_close(file);
    INSIST(mica_context_heap(ctx).live_bytes == live);
    free(copy);
    mica_context_destroy(ctx);
    return 0;
}
