/* Folders and lists of images. */
#ifndef MICA_SRC_DATA_IMAGES_H
#define MICA_SRC_DATA_IMAGES_H

#include <mica/data.h>

#include "data/folder.h"

/* Lists the images of a folder, by their names' endings; `flat`: without classes. */
mica_status mica_images_list(mica_context *ctx, mica_folder *out, const char *path, bool flat,
                             const mica_images_opts *opts);

/* Loads images [count], one at least, as mica_dataset_load_images does, without the classes' names. `path` is for
 * messages about all of them. */
mica_status mica_images_load(mica_context *ctx, mica_dataset *out, const mica_folder_file *files,
                             size_t count, const char *path, const mica_images_opts *opts);

#endif
