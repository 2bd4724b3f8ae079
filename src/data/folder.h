/* Folders of samples: one file each, in a sub-folder for each class, or all together.
 *
 *     animals/cat/1.png          animals/train/cat/1.png
 *     animals/cat/2.png          animals/test/cat/1.png
 *     animals/dog/1.png          ...
 */
#ifndef MICA_SRC_DATA_FOLDER_H
#define MICA_SRC_DATA_FOLDER_H

#include "base/context.h"

#define MICA_FOLDER_MOST_FILES ((size_t)1 << 24)
#define MICA_FOLDER_PATH       4096 /* bytes of a path, with its zero */

typedef struct mica_folder_file {
    const char *path; /* FOLDER/CLASS/NAME */
    int32_t number;   /* of its class; -1: none */
} mica_folder_file;

/* A value: read its fields freely. */
typedef struct mica_folder {
    size_t count;
    mica_folder_file *files; /* [count], by class, then by the bytes of their paths */
    int class_count;
    const char *const *classes; /* [class_count] names; in order of their bytes unless given */
    struct mica_folder_block *block;
} mica_folder;

typedef struct mica_folder_opts {
    /* A file's name must end with one of them [end_count], such as ".png", in letters of either case. */
    const char *const *ends;
    size_t end_count; /* 0: any */
    bool flat;        /* no classes: all files in the folder and below */

    /* Sub-folders must be of these, which are numbered as they stand here, and outlive the list. */
    const char *const *classes;
    int class_count; /* 0: as the sub-folders are named */
} mica_folder_opts;

/* Lists the files of a folder, and of sub-folders at any depth up to 16. What begins with a dot is skipped, and so are
 * links to folders, save where they are a class. A sub-folder without files of these endings is no class. A file beside
 * the classes, and a folder without any file, are errors. */
mica_status mica_folder_list(mica_context *ctx, mica_folder *out, const char *path,
                             const mica_folder_opts *opts);
void mica_folder_release(mica_context *ctx, mica_folder *folder); /* safe twice */

typedef enum mica_folder_part {
    MICA_FOLDER_TRAIN,
    MICA_FOLDER_VALIDATION,
    MICA_FOLDER_TEST
} mica_folder_part;

/* Writes the path of the part's own sub-folder, such as FOLDER/train, to to[MICA_FOLDER_PATH]. False: there is none. A
 * class may have such a name; so what has no sub-folder itself is no part. */
bool mica_folder_part_of(mica_context *ctx, char *to, const char *path, mica_folder_part part);

#endif
