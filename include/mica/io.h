/* Files of tensors: safetensors, the format of Python's package of that name.
 *
 * A malformed file is an error that names the file, the tensor and the byte, and changes nothing. A build
 * without file support (MICA_IO=OFF) reads from memory only. */
#ifndef MICA_IO_H
#define MICA_IO_H

#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor under a name, UTF-8. */
typedef struct mica_named_tensor {
    const char *name;
    mica_tensor tensor;
} mica_named_tensor;

/* A text under a name, both UTF-8. */
typedef struct mica_metadata {
    const char *key;
    const char *value;
} mica_metadata;

/* ---- Writing ----------------------------------------------------------------------------------------- */

typedef struct mica_safetensors_write_opts {
    const mica_metadata *metadata;
    size_t metadata_count;
} mica_safetensors_write_opts;

/* Writes tensors of any plain dtype and layout to a file, which replaces PATH once all of it is on disk: a crash
 * at any moment leaves the old file or the new one. Until then it is PATH.tmp, in the same folder.
 *
 * Names must be unique and UTF-8. The tensors are stored in the order given, larger element sizes first, so that
 * all are aligned. Takes scratch from the workspace: 64 KiB, and 8 bytes for each name. */
MICA_API mica_status mica_safetensors_write(mica_context *ctx, const char *path,
                                            const mica_named_tensor *tensors, size_t count,
                                            const mica_safetensors_write_opts *opts);

/* ---- Reading ----------------------------------------------------------------------------------------- */

/* An open file with a validated header: offsets and sizes of all tensors are consistent,
 * with no missing, extra or shared byte. */
typedef struct mica_safetensors mica_safetensors;

/* Opens a file. The header (at most 100 MB) and a table of its tensors are kept in memory from the context's
 * allocator until the file is closed. On failure *out is NULL. */
MICA_API mica_status mica_safetensors_open(mica_context *ctx, mica_safetensors **out, const char *path);

/* The same for a file that is in memory, which must outlive it. */
MICA_API mica_status mica_safetensors_open_memory(mica_context *ctx, mica_safetensors **out,
                                                  const void *bytes, size_t count);

/* The same for a file that is mapped: its tensors can be lent. */
MICA_API mica_status mica_safetensors_map(mica_context *ctx, mica_safetensors **out, const char *path);

/* Takes the context that opened it. NULL is allowed. */
MICA_API void mica_safetensors_close(mica_context *ctx, mica_safetensors *file);

/* The header's description of one tensor. */
typedef struct mica_safetensors_entry {
    const char *name;       /* lives as long as the file is open */
    const char *dtype_name; /* as the file has it: "F32" */
    bool readable;          /* whether Mica has its dtype; BOOL is read as u8 */
    mica_dtype dtype;       /* if readable */
    int rank;
    mica_index dim[MICA_MAX_RANK];
    uint64_t offset; /* of its first byte in the file */
    uint64_t bytes;
} mica_safetensors_entry;

/* Tensors are numbered in byte order of their names. */
MICA_API size_t mica_safetensors_count(const mica_safetensors *file);
/* NULL if there is none. Valid as long as the file is open. */
MICA_API const mica_safetensors_entry *mica_safetensors_at(const mica_safetensors *file, size_t number);
MICA_API const mica_safetensors_entry *mica_safetensors_find(const mica_safetensors *file, const char *name);

/* Metadata is numbered in byte order of its keys. NULL if there is none. */
MICA_API size_t mica_safetensors_metadata_count(const mica_safetensors *file);
MICA_API const mica_metadata *mica_safetensors_metadata_at(const mica_safetensors *file, size_t number);
MICA_API const char *mica_safetensors_metadata_find(const mica_safetensors *file, const char *key);

/* Reads each tensor of the list by its name, into any layout, converting as mica_copy does. All of them are
 * looked up and checked first: if one is missing or has another shape, the error says which, and none is
 * modified. (If the disk fails later, some may have been.) Allocates nothing; tensors that are not contiguous or
 * have another dtype in the file take 64 KiB of scratch from the workspace. */
MICA_API mica_status mica_safetensors_read(mica_context *ctx, const mica_named_tensor *tensors, size_t count,
                                           const mica_safetensors *file);

/* A tensor over the bytes of a file that is mapped or in memory: read-only, and valid as long as the file is open.
 * Fails if there is none of that name, if Mica does not have its dtype, or if it does not begin at a multiple of its
 * elements' size. */
MICA_API mica_status mica_safetensors_lend(mica_context *ctx, mica_tensor *out, const mica_safetensors *file,
                                           const char *name);

#ifdef __cplusplus
}
#endif
#endif
