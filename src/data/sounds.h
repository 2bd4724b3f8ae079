/* WAV files as a data set. */
#ifndef MICA_SRC_DATA_SOUNDS_H
#define MICA_SRC_DATA_SOUNDS_H

#include <mica/sound.h>

#include "data/folder.h"

/* Files of a folder that have sounds; `flat`: without classes. */
mica_status mica_sounds_list(mica_context *ctx, mica_folder *out, const char *path, bool flat,
                             const mica_sounds_opts *opts);

/* These files, with their class numbers as targets if they have some, but without names of classes. `path` is for
 * messages. */
mica_status mica_sounds_load(mica_context *ctx, mica_dataset *out, const mica_folder_file *files,
                             size_t count, const char *path, const mica_sounds_opts *opts);

/* One file in memory, without target. */
mica_status mica_sounds_from_memory(mica_context *ctx, mica_dataset *out, const void *bytes, size_t count,
                                    const char *name, const mica_sounds_opts *opts);

#endif
