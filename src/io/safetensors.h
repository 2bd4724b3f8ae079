/* Shared by reading and writing safetensors.
 *
 *     0         8                  8 + n                           end
 *     | n (u64) | JSON, n bytes    | the tensors' bytes, gapless   |
 *
 *     {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...,
 *      "__metadata__": {"key": "value", ...}}
 *
 * Offsets count from 8 + n. All numbers are little-endian. */
#ifndef MICA_SRC_IO_SAFETENSORS_H
#define MICA_SRC_IO_SAFETENSORS_H

#include <mica/io.h>

#define MICA_SAFETENSORS_PREFIX   8
#define MICA_SAFETENSORS_MOST     100000000u /* bytes of a header: what the format allows */
#define MICA_SAFETENSORS_METADATA "__metadata__"
#define MICA_SAFETENSORS_CHUNK    ((size_t)65536) /* bytes converted at a time */

/* Every dtype of ours that a file can have, and its name there. Blocks are not among them. */
#define MICA_SAFETENSORS_DTYPES(X) \
    X("F32", MICA_F32)             \
    X("F64", MICA_F64)             \
    X("F16", MICA_F16)             \
    X("BF16", MICA_BF16)           \
    X("I64", MICA_I64)             \
    X("I32", MICA_I32)             \
    X("I16", MICA_I16)             \
    X("I8", MICA_I8)               \
    X("U8", MICA_U8)               \
    X("U16", MICA_U16)             \
    X("U32", MICA_U32)             \
    X("U64", MICA_U64)             \
    X("BOOL", MICA_BOOL)           \
    X("F8_E4M3", MICA_F8E4M3FN)    \
    X("F8_E5M2", MICA_F8E5M2)      \
    X("F8_E8M0", MICA_F8E8M0)

/* Fails where mica_safetensors_write would, whatever the disk holds. Writes nothing, and takes as much scratch. */
mica_status mica_safetensors_check(mica_context *ctx, const char *path, const mica_named_tensor *tensors,
                                   size_t count, const mica_safetensors_write_opts *opts);

#endif
