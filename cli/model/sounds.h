/* Folders of WAV files as data, and how sounds are made ready: said once, kept in the checkpoint. */
#ifndef MICA_CLI_MODEL_SOUNDS_H
#define MICA_CLI_MODEL_SOUNDS_H

#include <mica/sound.h>

#include "cli/model/images.h"
#include "cli/model/saved.h"

extern const char *const feature_names[]; /* of --features: FEATURES_LOG_MEL, ... */
enum { FEATURES_LOG_MEL, FEATURES_SAMPLES };

#define SOUND_TEXT 160 /* bytes of what a checkpoint says of sounds */

/* Whether there are WAV files in a folder, at any depth. */
bool is_sound_folder(mica_context *ctx, const char *path);

/* FOLDER with a sub-folder for each class; or FOLDER/train and, if there is one, FOLDER/test with these. */
int sounds_load(data *out, const verb *v, mica_context *ctx, const char *folder, const data_opts *opts);

/* Files, and all those of folders, as inputs of a net, and the path of each. */
int sounds_load_files(image_list *out, const verb *v, mica_context *ctx, char *const *names, int count,
                      const mica_sounds_opts *opts);

/* "log-mel rate=16000 seconds=1 ..." to text[SOUND_TEXT], and back. False: it is something else. */
void sounds_describe(char *text, const mica_sounds_opts *opts);
bool sounds_parse(mica_sounds_opts *out, const char *text);

/* What a checkpoint says of sounds: whether the net's inputs are such. */
int sounds_check(const saved *s, const verb *v, mica_context *ctx);

#endif
