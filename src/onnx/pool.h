/* Memory in chunks, which are released all at once: a model's (see model.h for what takes it), or an import's. */
#ifndef MICA_SRC_ONNX_POOL_H
#define MICA_SRC_ONNX_POOL_H

#include "onnx/model.h"

typedef struct mica_onnx_chunk mica_onnx_chunk;

/* NULL, with an error, if memory is short. */
void *mica_onnx_memory_in(mica_context *ctx, mica_onnx_chunk **chunks, size_t bytes);
void mica_onnx_release_chunks(mica_context *ctx, mica_onnx_chunk **chunks);
void mica_onnx_release_all(mica_onnx *model);

#endif
