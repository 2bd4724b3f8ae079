/* Loading arrays from streams. */
#ifndef MICA_SRC_DATA_LOAD_H
#define MICA_SRC_DATA_LOAD_H

#include <mica/data.h>

#include "io/stream.h"

/* A contiguous tensor in a block of its own from the context's allocator, of `bytes` bytes. */
typedef struct mica_loaded {
    mica_tensor tensor;
    size_t bytes;
} mica_loaded;

void mica_loaded_release(mica_context *ctx, mica_loaded *loaded);

/* Takes the block for a tensor, whose size a file has claimed, and reads its elements, which must end the
 * stream. Nothing is allocated where the stream cannot hold that much. */
mica_status mica_load_elements(mica_context *ctx, mica_loaded *out, mica_stream *stream,
                               const mica_tensor *shape);

/* Makes a set that owns what was loaded; targets may be NULL. After a failure, here or before as `status` says, both
 * are released. `path` is that of the inputs, for messages. */
mica_status mica_dataset_give(mica_context *ctx, mica_dataset *out, mica_loaded *inputs, mica_loaded *targets,
                              const char *path, mica_status status);

/* A whole file. On failure nothing is left. */
typedef mica_status mica_read_fn(mica_context *ctx, mica_loaded *out, mica_stream *stream);
mica_read_fn mica_idx_read, mica_npy_read;

#endif
