/* A folder of images as a data set. */
#include "data/images.h"

#include "data/classes.h"
#include "data/image_file.h"
#include "io/quote.h"
#include "ops/check.h"
#include "tensor/tensor.h"

/* ---- The middle of an image ---- */

mica_status mica_image_centre(mica_context *ctx, mica_tensor *out, const mica_tensor *image,
                              mica_index height, mica_index width)
{
    static const char op[] = "image_centre";
    if (out == NULL || height < 1 || width < 1)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: %s", op,
                         out == NULL ? "out is NULL" : "expected a size of 1 x 1 or more");
    MICA_TRY(mica_tensor_check(ctx, op, "image", image));
    MICA_TRY(mica_check_rank(ctx, op, "image", image, 3, 3));
    mica_index h = image->dim[1], w = image->dim[2];
    /* the largest h' x w' within with h' : w' = height : width, to the nearest pixel */
    double high = (double)w * (double)height / (double)width,
           wide = (double)h * (double)width / (double)height;
    mica_index keep_h = high < (double)h ? (mica_index)(high + 0.5) : h;
    mica_index keep_w = wide < (double)w ? (mica_index)(wide + 0.5) : w;
    keep_h = keep_h < 1 && h > 0 ? 1 : keep_h;
    keep_w = keep_w < 1 && w > 0 ? 1 : keep_w;
    mica_tensor rows;
    mica_index top = (h - keep_h) / 2, left = (w - keep_w) / 2;
    MICA_TRY(mica_view_slice(ctx, &rows, image, 1, top, top + keep_h, 1));
    return mica_view_slice(ctx, out, &rows, 2, left, left + keep_w, 1);
}

/* ---- Folders ---- */

static const char *const ends[] = {".png", ".jpg", ".jpeg", ".ppm", ".pgm", ".pnm"};

mica_status mica_images_list(mica_context *ctx, mica_folder *out, const char *path, bool flat,
                             const mica_images_opts *opts)
{
    mica_folder_opts listing = {.ends = ends,
                                .end_count = sizeof ends / sizeof ends[0],
                                .flat = flat,
                                .classes = opts->classes,
                                .class_count = opts->class_count};
    return mica_folder_list(ctx, out, path, &listing);
}

/* The set being made. */
typedef struct loading {
    mica_context *ctx;
    mica_images_opts opts; /* with nothing left open */
    mica_dataset set;
    float *fitted; /* one image, at its size */
    size_t fitted_bytes;
} loading;

static mica_status read_file(mica_context *ctx, mica_loaded *out, const char *path)
{
    mica_stream stream;
    MICA_TRY(mica_stream_open(ctx, &stream, path));
    mica_status status = mica_image_read(ctx, out, &stream);
    mica_stream_close(ctx, &stream);
    return status;
}

/* What the options leave open is as the first image has it. Then memory for all is known. */
static mica_status begin(loading *l, const mica_loaded *first, size_t count, const char *folder)
{
    mica_images_opts *o = &l->opts;
    o->channels = o->channels > 0 ? o->channels : first->tensor.dim[1] >= 3 ? 3 : 1;
    if (o->height == 0) {
        o->height = first->tensor.dim[2];
        o->width = first->tensor.dim[3];
    }
    mica_tensor shape = {
        .dtype = MICA_U8, .rank = 4, .dim = {(mica_index)count, o->channels, o->height, o->width}};
    char text[MICA_SHAPE_TEXT];
    const char *flaw = mica_tensor_flaw(&shape, text);
    if (flaw != NULL)
        return mica_fail(l->ctx, MICA_ERR_SHAPE, "%s: the images as %s %s", MICA_QUOTE(folder),
                         MICA_SHAPE(&shape), flaw);
    size_t image = (size_t)(o->channels * o->height * o->width), targets = count * sizeof(int32_t);
    void *block = mica_allocate(l->ctx, count * image);
    if (block == NULL)
        return l->ctx->status;
    l->set.owned[0] = count * image;
    MICA_TRY(mica_tensor_init(l->ctx, &l->set.inputs, block, MICA_U8, 4, shape.dim));
    block = mica_allocate(l->ctx, targets);
    if (block == NULL)
        return l->ctx->status;
    l->set.owned[1] = targets;
    MICA_TRY(mica_tensor_init(l->ctx, &l->set.targets, block, MICA_I32, 1, shape.dim));
    l->fitted_bytes = image * sizeof(float);
    l->fitted = mica_allocate(l->ctx, l->fitted_bytes);
    l->set.count = (mica_index)count;
    l->set.has_targets = true;
    return l->fitted != NULL ? MICA_OK : l->ctx->status;
}

/* Image i. */
static mica_status store(loading *l, const mica_loaded *image, size_t i)
{
    const mica_images_opts *o = &l->opts;
    size_t elements = l->fitted_bytes / sizeof(float);
    mica_tensor part, fitted;
    MICA_TRY(mica_tensor_init(l->ctx, &part, image->tensor.data, MICA_U8, 3, image->tensor.dim + 1));
    MICA_TRY(mica_tensor_init(l->ctx, &fitted, l->fitted, MICA_F32, 3,
                              (mica_index[]){o->channels, o->height, o->width}));
    if (!o->stretch)
        MICA_TRY(mica_image_centre(l->ctx, &part, &part, o->height, o->width));
    MICA_TRY(mica_image_fit(l->ctx, &fitted, &part));
    unsigned char *to = (unsigned char *)l->set.inputs.data + i * elements;
    for (size_t k = 0; k < elements; k++)
        to[k] = (unsigned char)(l->fitted[k] + 0.5f); /* 0 to 255: it is a mean of such */
    return MICA_OK;
}

static mica_status load_all(loading *l, const mica_folder_file *files, size_t count, const char *path)
{
    for (size_t i = 0; i < count; i++) {
        mica_loaded image;
        MICA_TRY(read_file(l->ctx, &image, files[i].path));
        mica_status status = i == 0 ? begin(l, &image, count, path) : MICA_OK;
        if (status == MICA_OK)
            status = store(l, &image, i);
        mica_loaded_release(l->ctx, &image);
        MICA_TRY(status);
        ((int32_t *)l->set.targets.data)[i] = files[i].number;
    }
    return MICA_OK;
}

static mica_status check_opts(mica_context *ctx, const mica_images_opts *o)
{
    static const char op[] = "dataset_load_images";
    if (o->channels != 0 && o->channels != 1 && o->channels != 3)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: channels is %td: expected 1 (greyscale) or 3 (RGB)", op,
                         o->channels);
    if (o->height < 0 || o->width < 0 || (o->height == 0) != (o->width == 0))
        return mica_fail(ctx, MICA_ERR_ARGUMENT,
                         "%s: a size of %td x %td: expected both at least 1, or both 0", op, o->height,
                         o->width);
    if (o->class_count < 0 || (o->class_count > 0 && o->classes == NULL))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: class_count is %d, classes %s", op, o->class_count,
                         o->classes == NULL ? "NULL" : "given");
    return MICA_OK;
}

mica_status mica_images_load(mica_context *ctx, mica_dataset *out, const mica_folder_file *files,
                             size_t count, const char *path, const mica_images_opts *opts)
{
    *out = (mica_dataset){0};
    loading l = {.ctx = ctx};
    if (opts != NULL)
        l.opts = *opts;
    MICA_TRY(check_opts(ctx, &l.opts));
    mica_status status = load_all(&l, files, count, path);
    mica_release(ctx, l.fitted, l.fitted_bytes);
    if (status != MICA_OK) {
        mica_dataset_destroy(ctx, &l.set);
        return status;
    }
    *out = l.set;
    return MICA_OK;
}

mica_status mica_dataset_load_images(mica_context *ctx, mica_dataset *out, const char *folder,
                                     const mica_images_opts *opts)
{
    if (out == NULL || folder == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "dataset: %s is NULL", out == NULL ? "out" : "folder");
    *out = (mica_dataset){0};
    mica_images_opts all = {0};
    if (opts != NULL)
        all = *opts;
    MICA_TRY(check_opts(ctx, &all));
    mica_folder files;
    MICA_TRY(mica_images_list(ctx, &files, folder, false, &all));
    mica_status status = mica_images_load(ctx, out, files.files, files.count, folder, &all);
    if (status == MICA_OK)
        status = mica_classes_copy(ctx, out, files.classes, files.class_count);
    if (status != MICA_OK)
        mica_dataset_destroy(ctx, out);
    mica_folder_release(ctx, &files);
    return status;
}
