/* An open safetensors file. */
#ifndef MICA_SRC_IO_SAFETENSORS_FILE_H
#define MICA_SRC_IO_SAFETENSORS_FILE_H

#include <mica/io.h>

#include "io/file.h"

struct mica_safetensors {
    mica_file file;
    mica_map map;                    /* if it is mapped: what `file` is over */
    mica_safetensors_entry *entries; /* sorted by name */
    size_t count;
    mica_metadata *metadata; /* sorted by key */
    size_t metadata_count;
    char *header; /* where names, keys and values are, as C strings */
    size_t header_bytes;
    size_t own_bytes; /* of the block that this struct begins */
};

#endif
