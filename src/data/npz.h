/* npz: NumPy's arrays by name, npy files in a zip file, stored or deflated. */
#ifndef MICA_SRC_DATA_NPZ_H
#define MICA_SRC_DATA_NPZ_H

#include "data/load.h"

#define MICA_NPZ_MOST_ARRAYS 1024
#define MICA_NPZ_NAME        256 /* bytes of a name, with its zero */

typedef struct mica_npz_array {
    char name[MICA_NPZ_NAME]; /* without ".npy" */
    uint64_t offset;          /* of its local header */
    uint64_t packed, bytes;   /* in the file; as unpacked */
    uint32_t checksum;
    bool deflated;
} mica_npz_array;

typedef struct mica_npz {
    mica_file file;
    mica_npz_array *arrays; /* [count], in the order of the file's directory */
    size_t count;
} mica_npz;

/* Reads the directory. Takes the file over, also when it fails. */
mica_status mica_npz_open(mica_context *ctx, mica_npz *out, mica_file file);
void mica_npz_close(mica_context *ctx, mica_npz *npz); /* safe twice */

/* NULL: there is none of that name. */
const mica_npz_array *mica_npz_find(const mica_npz *npz, const char *name);

/* One array, its checksum compared first. */
mica_status mica_npz_read(mica_context *ctx, mica_loaded *out, const mica_npz *npz,
                          const mica_npz_array *array);

/* The names of inputs and targets among those that are usual, or for tests; NULL: there are none. */
void mica_npz_usual(const mica_npz *npz, bool test, const char **inputs, const char **targets);

#endif
