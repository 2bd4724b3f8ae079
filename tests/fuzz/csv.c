/* CSV: any bytes, under any options, are an error or a table of numbers. */
#include "data/load.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mica_context *ctx;
    INSIST(mica_context_create(&ctx, &(mica_context_opts){.workspace_bytes = 64}) == MICA_OK);
    size_t live = mica_context_heap(ctx).live_bytes;
    bytes in = {data, size};
    mica_csv_opts opts = {.delimiter = ",;\t "[take(&in, 0, 3)],
                          .header = (mica_csv_header)take(&in, 0, 2),
                          .label = take(&in, 0, 3) == 0 ? "a" : NULL,
                          .label_column = take(&in, -3, 3),
                          .allow_empty = take(&in, 0, 1) == 1,
                          .label_names = take(&in, 0, 1) == 1};
    mica_stream stream;
    mica_dataset set = {0};
    mica_status status = mica_stream_open_memory(ctx, &stream, in.data, in.left, "input");
    if (status == MICA_OK) {
        status = mica_csv_read(ctx, &set, &stream, &opts);
        mica_stream_close(ctx, &stream);
    }
    INSIST((status == MICA_OK) == (set.inputs.data != NULL));
    if (status == MICA_OK) {
        INSIST(set.count > 0 && set.inputs.dim[0] == set.count);
        INSIST(set.has_targets == (opts.label != NULL || opts.label_column != 0));
    }
    mica_dataset_destroy(ctx, &set);
    INSIST(mica_context_heap(ctx).live_bytes == live);
    mica_context_destroy(ctx);
    return 0;
}
