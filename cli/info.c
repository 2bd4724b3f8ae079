/* mica info: what a net, a file of weights or a file of data holds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <mica/mica.h>

#include "cli/info/info.h"
#include "cli/text/model.h"
#include "cli/model/images.h"
#include "cli/model/saved.h"
#include "cli/model/sounds.h"
#include "cli/model/tables.h"
#include "cli/net/argument.h"
#include "cli/onnx/onnx.h"

static const verb_option options[] = {
    TABLE_READING_OPTIONS(info_settings),
    {.name = "--batch",
     OPTION_COUNT,
     offsetof(info_settings, batch),
     "N",
     "batch size (1)",
     .least = 1,
     .most = 1 << 24},
    {.name = "--text",
     OPTION_FLAG,
     offsetof(info_settings, text),
     NULL,
     "print the net's source as a net file"},
    NET_SET_OPTION(info_settings),
};

static const char details[] = NET_HELP
    "Or a file:\n"
    "  weights and checkpoints (safetensors): every tensor, the metadata, and the columns of a table\n"
    "  text models (gguf): every setting and every tensor; long texts and arrays are shortened\n"
    "  models (onnx): inputs and outputs, operators, weights, and what cannot be imported\n"
    "  tables (csv, tsv): every column, its kind, range, classes and missing values\n"
    "  other data (idx, npy, png, jpeg, ppm): dtype and shape\n"
    "  npz: every array; wav: rate, channels, length and level\n"
    "  a folder of images or WAV files: how many of each class, and their sizes";

/* ---- What it is ---- */

static bool begins(const unsigned char *head, size_t length, const char *magic, size_t count)
{
    return length >= count && memcmp(head, magic, count) == 0;
}

static bool ends_with(const char *path, const char *end)
{
    size_t length = strlen(path), tail = strlen(end);
    if (length > 3 && strcasecmp(path + length - 3, ".gz") == 0)
        length -= 3;
    return length >= tail && strncasecmp(path + length - tail, end, tail) == 0;
}

/* By its first bytes; what is packed, or has none that tell, by its name. */
static info_data_kind data_kind(const char *path)
{
    unsigned char head[8] = {0};
    FILE *file = is_regular(path) ? fopen(path, "rb") : NULL;
    size_t length = file != NULL ? fread(head, 1, sizeof head, file) : 0;
    if (file != NULL)
        fclose(file);
    if (length == 0)
        return INFO_NO_DATA;
    if (begins(head, length, "GGUF", 4) || ends_with(path, ".gguf"))
        return INFO_GGUF;
    if (begins(head, length, "\x89PNG", 4))
        return INFO_PNG;
    if (begins(head, length, "\xff\xd8\xff", 3))
        return INFO_JPEG;
    if (length > 2 && head[0] == 'P' && strchr("2356", head[1]) != NULL &&
        strchr(" \t\r\n#", head[2]) != NULL)
        return INFO_NETPBM;
    if (begins(head, length, "\x93NUMPY", 6) || ends_with(path, ".npy"))
        return INFO_NPY;
    if (begins(head, length, "RIFF", 4) || ends_with(path, ".wav"))
        return INFO_WAV;
    if (ends_with(path, ".npz"))
        return INFO_NPZ;
    if (ends_with(path, ".csv") || ends_with(path, ".tsv"))
        return INFO_CSV;
    if (begins(head, length, "\0\0", 2) || ends_with(path, "ubyte") || ends_with(path, ".idx"))
        return INFO_IDX;
    return INFO_NO_DATA;
}

static int info_of(mica_context *ctx, const info_settings *set, const char *what)
{
    if (mica_netfile_builtin(what) == NULL && strcmp(what, "-") != 0) {
        char path[4096];
        if (!set->text && checkpoint_path(path, sizeof path, what) && is_safetensors(path))
            return info_weights(ctx, set, path);
        if (!set->text && images_named(what) && has_images(ctx, what))
            return info_folder(ctx, set, what, false);
        if (!set->text && is_sound_folder(ctx, what))
            return info_folder(ctx, set, what, true);
        if (!set->text && is_onnx(what))
            return onnx_info(ctx, &verb_info, &set->set, what, set->shared.json);
        info_data_kind kind = data_kind(what);
        if (!set->text && !is_regular(what) && !ends_with(what, ".gguf") && is_text_model(what))
            return usage_error(&verb_info,
                               "%s is a model folder: name one of its files, such as %s/model.safetensors",
                               what, what);
        if (kind == INFO_WAV && !set->text)
            return info_wav(ctx, set, what);
        if (kind == INFO_GGUF && !set->text)
            return info_gguf(ctx, set, what);
        if (kind == INFO_NPZ && !set->text)
            return info_npz(ctx, set, what);
        if (kind == INFO_CSV && !set->text)
            return info_table(ctx, set, what);
        if (kind != INFO_NO_DATA && !set->text)
            return info_data(ctx, set, what, kind);
    }
    return info_net(ctx, set, what);
}

static int run(int argc, char **argv)
{
    info_settings set = {.shared = SHARED_DEFAULTS, .table = TABLE_DEFAULTS};
    int given = options_read(&verb_info, &set, argc, argv);
    if (given < 0)
        return EXIT_USAGE;
    if (given != 1)
        return usage_error(&verb_info, given == 0 ? "which net or file? Try: mica info lenet"
                                                  : "one net or file at a time");
    mica_context *ctx = verb_context(&verb_info, &set.shared);
    if (ctx == NULL)
        return EXIT_FAILED;
    int code = info_of(ctx, &set, argv[0]);
    mica_context_destroy(ctx);
    return code;
}

const verb verb_info = {
    .name = "info",
    .arguments = "NET|FILE [OPTIONS]",
    .summary = "describe a net, weights or data",
    .details = details,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
    .shared = SHARED_JSON | SHARED_QUIET,
    .examples =
        (const verb_example[]){
            {"info lenet", "layers, shapes and parameters"},
            {"info resnet-small --text > my.net", "its source, as a starting point for your own net"},
            {"info weights.safetensors", "the tensors and metadata of a file"},
            {"info model.gguf", "settings and tensors of a text model"},
            {"info resnet18.onnx", "inputs, outputs and operators of an ONNX model"},
            {"info customers.csv", "the columns of a table: kinds, ranges, missing values"},
            {"info train-images-idx3-ubyte.gz", "dtype and shape of data"},
            {NULL, NULL},
        },
};
