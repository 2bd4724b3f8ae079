/* A model's memory: see model.h for what takes it. */
#ifndef MICA_SRC_ONNX_POOL_H
#define MICA_SRC_ONNX_POOL_H

#include "onnx/model.h"

typedef struct mica_onnx_chunk mica_onnx_chunk;

void mica_onnx_release_all(mica_onnx *model);

#endif
