/* npz files: the directory, and every array of it. */
#include "data/npz.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mica_context *ctx;
    INSIST(mica_context_create(&ctx, &(mica_context_opts){.workspace_bytes = 64}) == MICA_OK);
    size_t live = mica_context_heap(ctx).live_bytes;
    mica_npz npz;
    mica_status status = mica_npz_open(ctx, &npz, mica_file_over(data, size, "input"));
    INSIST(status == MICA_OK || status == MICA_ERR_FORMAT || status == MICA_ERR_MEMORY);
    for (size_t i = 0; i < npz.count && i < 8; i++) {
        mica_loaded got = {0};
        status = mica_npz_read(ctx, &got, &npz, &npz.arrays[i]);
        INSIST(status == MICA_OK || status == MICA_ERR_FORMAT || status == MICA_ERR_MEMORY ||
               status == MICA_ERR_IO);
        INSIST((status == MICA_OK) == (got.tensor.data != NULL));
        mica_loaded_release(ctx, &got);
    }
    mica_npz_close(ctx, &npz);
    INSIST(mica_context_heap(ctx).live_bytes == live);
    mica_context_destroy(ctx);
    return 0;
}
