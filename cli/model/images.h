/* Folders of images as data, and files of images as inputs. */
#ifndef MICA_CLI_MODEL_IMAGES_H
#define MICA_CLI_MODEL_IMAGES_H

#include "cli/model/data.h"

/* Whether files of images are to be loaded for it: a folder, but not one of MNIST's files. */
bool images_named(const char *spec);

/* A folder with a sub-folder for each class, or such folders within FOLDER/train and FOLDER/test. */
int images_load(data *out, const verb *v, mica_context *ctx, const char *folder, const data_opts *opts);

/* What images become for an input of this shape [batch, ...]: [1 or 3, H, W], [H, W], or as many values as a square has
 * pixels. What is not told by it stays 0. */
image_size images_size_of(const mica_tensor *input);
/* The same of a sample, as checkpoints have it. */
image_size images_size_of_sample(const mica_tensor *sample);

/* What --size, --colour and --grey say instead. */
int images_size_given(image_size *size, const verb *v, const char *given, bool colour, bool grey);

/* Files of images, and all those of folders, at one size: inputs [N, channels, H, W] and the path of each. */
typedef struct image_list {
    mica_dataset set;
    char **paths; /* [set.count] */
} image_list;

int image_list_load(image_list *out, const verb *v, mica_context *ctx, char **names, int count,
                    const image_size *size);
void image_list_free(mica_context *ctx, image_list *list);

#endif
