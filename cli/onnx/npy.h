/* Tensors in .npy files, whole. */
#ifndef MICA_CLI_ONNX_NPY_H
#define MICA_CLI_ONNX_NPY_H

#include "data/load.h"

/* Reads one; to be given to mica_loaded_release. */
mica_status npy_read(mica_context *ctx, mica_loaded *out, const char *path);

/* Writes one, replacing the file. Types that NumPy does not have are written as f32, which holds them exactly. False,
 * with errno or the context's error set, if it could not be. */
bool npy_write(mica_context *ctx, const char *path, const mica_tensor *t);

#endif
