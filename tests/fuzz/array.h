/* Shared by the targets of array formats: any bytes are an error or an array of the size it says. */
#ifndef MICA_TESTS_FUZZ_ARRAY_H
#define MICA_TESTS_FUZZ_ARRAY_H

#include "data/image_file.h"
#include "fuzz.h"

static inline int fuzz_array(mica_read_fn *read, const uint8_t *data, size_t size)
{
    mica_context *ctx;
    INSIST(mica_context_create(&ctx, &(mica_context_opts){.workspace_bytes = 64}) == MICA_OK);
    size_t live = mica_context_heap(ctx).live_bytes;
    mica_stream stream;
    mica_loaded got = {0};
    mica_status status = mica_stream_open_memory(ctx, &stream, data, size, "input");
    if (status == MICA_OK) {
        status = read(ctx, &got, &stream);
        mica_stream_close(ctx, &stream);
    }
    INSIST(status == MICA_OK || status == MICA_ERR_FORMAT || status == MICA_ERR_MEMORY ||
           status == MICA_ERR_IO);
    INSIST((status == MICA_OK) == (got.tensor.data != NULL));
    if (status == MICA_OK)
        INSIST(mica_tensor_contiguous(&got.tensor) && mica_tensor_bytes(&got.tensor) <= got.bytes);
    mica_loaded_release(ctx, &got);
    INSIST(mica_context_heap(ctx).live_bytes == live);
    mica_context_destroy(ctx);
    return 0;
}

#endif
