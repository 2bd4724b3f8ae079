/* Safetensors: any bytes are an error or a file whose tensors can all be read. The first byte chooses: as they
 * are, or as the header of a file that is otherwise sound. */
#include <string.h>

#include "fuzz.h"

static void read_all(mica_context *ctx, const mica_safetensors *file, size_t size)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < mica_safetensors_count(file); i++) {
        const mica_safetensors_entry *entry = mica_safetensors_at(file, i);
        INSIST(mica_safetensors_find(file, entry->name) == entry);
        INSIST(entry->offset <= size && entry->bytes <= size - entry->offset);
        bytes += entry->bytes;
        if (!entry->readable)
            continue;
        void *data = malloc((size_t)entry->bytes + 1);
        mica_named_tensor in = {entry->name, {0}};
        INSIST(mica_tensor_init(ctx, &in.tensor, data, entry->dtype, entry->rank, entry->dim) == MICA_OK);
        INSIST(mica_tensor_bytes(&in.tensor) == entry->bytes);
        INSIST(mica_safetensors_read(ctx, &in, 1, file) == MICA_OK);
        free(data);
    }
    INSIST(bytes <= size);
    for (size_t i = 0; i < mica_safetensors_metadata_count(file); i++) {
        const mica_metadata *m = mica_safetensors_metadata_at(file, i);
        INSIST(mica_safetensors_metadata_find(file, m->key) == m->value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mica_context *ctx;
    INSIST(mica_context_create(&ctx, &(mica_context_opts){.workspace_bytes = 65536}) == MICA_OK);
    size_t live = mica_context_heap(ctx).live_bytes;
    bytes in = {data, size};
    bool framed = take(&in, 0, 1) == 1;
    size_t tail = framed ? (size_t)take(&in, 0, 64) : 0, whole = in.left + (framed ? 8 + tail : 0);
    unsigned char *file_bytes = calloc(whole + 1, 1);
    if (framed) {
        file_bytes[0] = (unsigned char)in.left;
        file_bytes[1] = (unsigned char)(in.left >> 8);
    }
    memcpy(file_bytes + (framed ? 8 : 0), in.data, in.left);
    mica_safetensors *file = NULL;
    mica_status status = mica_safetensors_open_memory(ctx, &file, file_bytes, whole);
    INSIST((status == MICA_OK) == (file != NULL));
    INSIST(status == MICA_OK || status == MICA_ERR_FORMAT);
    if (file != NULL)
        read_all(ctx, file, whole);
    mica_safetensors_close(ctx, file);
    INSIST(mica_context_heap(ctx).live_bytes == live);
    free(file_bytes);
    mica_context_destroy(ctx);
    return 0;
}
