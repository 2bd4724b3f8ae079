/* Folders and files of images. */
#include "cli/model/images.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/take.h"
#include "cli/picture/text.h"
#include "data/images.h"
#include "io/file.h"

static bool is_folder(const char *path)
{
    mica_file_type type = mica_file_type_of(path);
    return type == MICA_FILE_FOLDER || type == MICA_FILE_FOLDER_LINK;
}

bool images_named(const char *spec)
{
    char path[MICA_FOLDER_PATH];
    return is_folder(spec) && !find_idx(path, sizeof path, spec, "train-images-idx3-ubyte");
}

/* ---- Sizes ---- */

/* The side of a square of so many pixels; 0: it is none. */
static mica_index square_side(mica_index pixels)
{
    mica_index side = (mica_index)(sqrt((double)pixels) + 0.5);
    return side * side == pixels ? side : 0;
}

image_size images_size_of_sample(const mica_tensor *s)
{
    if (s->rank == 3)
        return (image_size){s->dim[0] == 1 || s->dim[0] == 3 ? s->dim[0] : 0, s->dim[1], s->dim[2]};
    if (s->rank == 2)
        return (image_size){1, s->dim[0], s->dim[1]};
    mica_index grey = s->rank == 1 ? square_side(s->dim[0]) : 0;
    mica_index colour = s->rank == 1 && s->dim[0] % 3 == 0 ? square_side(s->dim[0] / 3) : 0;
    return grey > 0     ? (image_size){1, grey, grey}
           : colour > 0 ? (image_size){3, colour, colour}
                        : (image_size){0};
}

image_size images_size_of(const mica_tensor *input)
{
    mica_tensor sample = {.rank = input->rank - 1};
    for (int i = 1; i < input->rank; i++)
        sample.dim[i - 1] = input->dim[i];
    return images_size_of_sample(&sample);
}

int images_size_given(image_size *size, const verb *v, const char *given, bool colour, bool grey)
{
    if (colour && grey)
        return usage_error(v, "--colour or --grey: not both");
    if (colour || grey)
        size->channels = colour ? 3 : 1;
    if (given == NULL)
        return EXIT_OK;
    char *end;
    errno = 0;
    long height = strtol(given, &end, 10), width = *end == 'x' ? strtol(end + 1, &end, 10) : 0;
    if (given[0] < '1' || given[0] > '9' || *end != '\0' || errno != 0 || height < 1 || width < 1 ||
        height > 65536 || width > 65536)
        return usage_error(v, "--size takes HEIGHTxWIDTH from 1 to 65536 each, such as 64x64, not \"%s\"",
                           given);
    size->height = height;
    size->width = width;
    return EXIT_OK;
}

/* ---- Folders with classes ---- */

/* "animals: 180 images of 3 classes as [1, 28, 28], and 60 for the test" */
static void tell(const data *d, const verb *v, const char *folder)
{
    const mica_tensor *x = &d->samples.inputs;
    fprintf(stderr, "mica %s: ", v->name);
    put_plain(stderr, folder);
    fprintf(stderr, ": %s images of %d class%s as [%td, %td, %td]", count_text((double)d->samples.count).text,
            d->samples.class_count, d->samples.class_count == 1 ? "" : "es", x->dim[1], x->dim[2], x->dim[3]);
    if (d->has_test)
        fprintf(stderr, ", and %s for the test", count_text((double)d->test.count).text);
    fprintf(stderr, "\n");
}

/* The folder of test images: --test, or one within. NULL: none. */
static const char *test_folder(char *path, mica_context *ctx, const char *folder, bool parts,
                               const data_opts *opts)
{
    if (opts->test != NULL)
        return opts->test;
    bool own = parts && (mica_folder_part_of(ctx, path, folder, MICA_FOLDER_TEST) ||
                         mica_folder_part_of(ctx, path, folder, MICA_FOLDER_VALIDATION));
    return own ? path : NULL;
}

int images_load(data *out, const verb *v, mica_context *ctx, const char *folder, const data_opts *opts)
{
    char train[MICA_FOLDER_PATH], path[MICA_FOLDER_PATH];
    bool parts = mica_folder_part_of(ctx, train, folder, MICA_FOLDER_TRAIN);
    mica_images_opts images = {.channels = opts->images.channels,
                               .height = opts->images.height,
                               .width = opts->images.width,
                               .classes = opts->classes,
                               .class_count = opts->class_count};
    if (mica_dataset_load_images(ctx, &out->samples, parts ? train : folder, &images) != MICA_OK)
        return verb_failed(v, ctx);
    const char *test = test_folder(path, ctx, folder, parts, opts);
    out->has_test = test != NULL;
    /* Of the same classes, and as large. */
    images.channels = out->samples.inputs.dim[1];
    images.height = out->samples.inputs.dim[2];
    images.width = out->samples.inputs.dim[3];
    images.classes = out->samples.classes;
    images.class_count = out->samples.class_count;
    if (test != NULL && mica_dataset_load_images(ctx, &out->test, test, &images) != MICA_OK)
        return verb_failed(v, ctx);
    if (opts->tell)
        tell(out, v, folder);
    return EXIT_OK;
}

/* ---- Files ---- */

/* Appends a file, or those of a folder; paths are kept. */
typedef struct path_list {
    mica_folder_file *files;
    size_t count, room;
} path_list;

static void add_path(path_list *list, const char *path)
{
    if (list->count == list->room) {
        mica_folder_file *larger = take(list->room = 2 * list->room + 64, sizeof *larger);
        if (list->count > 0)
            memcpy(larger, list->files, list->count * sizeof *larger);
        free(list->files);
        list->files = larger;
    }
    list->files[list->count++] = (mica_folder_file){.path = take_text(path), .number = -1};
}

static mica_status add_name(path_list *list, mica_context *ctx, const char *name)
{
    mica_folder folder;
    if (!is_folder(name)) {
        add_path(list, name);
        return MICA_OK;
    }
    mica_status status = mica_images_list(ctx, &folder, name, true, &(mica_images_opts){0});
    for (size_t i = 0; status == MICA_OK && i < folder.count; i++)
        add_path(list, folder.files[i].path);
    mica_folder_release(ctx, &folder);
    return status;
}

int image_list_load(image_list *out, const verb *v, mica_context *ctx, char **names, int count,
                    const image_size *size)
{
    path_list list = {0};
    mica_images_opts opts = {.channels = size->channels, .height = size->height, .width = size->width};
    mica_status status = MICA_OK;
    *out = (image_list){0};
    for (int i = 0; i < count && status == MICA_OK; i++)
        status = add_name(&list, ctx, names[i]);
    if (status == MICA_OK)
        status = mica_images_load(ctx, &out->set, list.files, list.count, names[0], &opts);
    out->paths = take(list.count + 1, sizeof *out->paths);
    for (size_t i = 0; i < list.count; i++)
        out->paths[i] = (char *)list.files[i].path;
    free(list.files);
    return status == MICA_OK ? EXIT_OK : verb_failed(v, ctx);
}

void image_list_free(mica_context *ctx, image_list *list)
{
    for (char **path = list->paths; path != NULL && *path != NULL; path++)
        free(*path);
    free(list->paths);
    mica_dataset_destroy(ctx, &list->set);
    *list = (image_list){0};
}
