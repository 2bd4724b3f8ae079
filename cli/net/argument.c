/* Finds the text of a net, and builds it. */
#include "cli/net/argument.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include <mica/io.h>

#include "cli/model/int8.h"
#include "cli/model/saved.h"
#include "cli/onnx/onnx.h"
#include "cli/onnx/net.h"
#include "cli/onnx/text.h"

#define MOST_CONSTANTS 64

bool is_regular(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

const char *foreign_model(const char *path)
{
    static const struct {
        const char *suffix, *advice;
    } kinds[] = {
#define PYTORCH \
    "probably a PyTorch file: export the model to ONNX with torch.onnx.export(model, inputs, \"model.onnx\")"
        {".pt", PYTORCH},    {".pth", PYTORCH},      {".ckpt", PYTORCH},
#undef PYTORCH
#define TENSORFLOW "probably a TensorFlow file: convert it to ONNX with tf2onnx"
        {".h5", TENSORFLOW}, {".keras", TENSORFLOW}, {".tflite", TENSORFLOW}, {".pb", TENSORFLOW},
#undef TENSORFLOW
#define PICKLE "probably a Python object: export the model to ONNX (from scikit-learn with skl2onnx)"
        {".pkl", PICKLE},    {".pickle", PICKLE},    {".joblib", PICKLE},
#undef PICKLE
    };
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t end = strlen(kinds[i].suffix);
        if (length > end && strcasecmp(path + length - end, kinds[i].suffix) == 0)
            return kinds[i].advice;
    }
    return NULL;
}

bool is_safetensors(const char *path)
{
    unsigned char head[9] = {0};
    FILE *file = is_regular(path) ? fopen(path, "rb") : NULL;
    if (file == NULL)
        return false;
    /* The header's length, in eight bytes, then the header. */
    bool is = fread(head, 1, sizeof head, file) == sizeof head && head[8] == '{' && head[5] == 0 &&
              head[6] == 0 && head[7] == 0;
    fclose(file);
    return is;
}

/* All of a stream, terminated; NULL if it is no text, or longer than any net file. */
static char *read_all(FILE *file, size_t *length)
{
    char *text = malloc(MICA_NETFILE_MOST_BYTES + 2);
    if (text == NULL)
        return NULL;
    *length = fread(text, 1, MICA_NETFILE_MOST_BYTES + 1, file);
    text[*length] = '\0';
    return text;
}

static char *copy_of(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = malloc(bytes);
    return copy != NULL ? memcpy(copy, text, bytes) : NULL;
}

static char *text_of_checkpoint(int *code, const verb *v, mica_context *ctx, const char *path)
{
    mica_safetensors *file;
    if (mica_safetensors_open(ctx, &file, path) != MICA_OK) {
        *code = verb_failed(v, ctx);
        return NULL;
    }
    const char *text = mica_safetensors_metadata_find(file, MICA_NETFILE_KEY);
    char *copy = text != NULL ? copy_of(text) : NULL;
    if (text == NULL)
        *code = verb_error(v, EXIT_FILE, "%s has weights, but no net source (metadata \"%s\")", path,
                           MICA_NETFILE_KEY);
    mica_safetensors_close(ctx, file);
    return copy;
}

static int no_such_net(const verb *v, const char *what)
{
    const char *names[16];
    size_t count = 0;
    for (; count < 16 && mica_netfile_builtin_name(count) != NULL; count++)
        names[count] = mica_netfile_builtin_name(count);
    const char *meant = nearest(what, names, count, sizeof names[0]), *why = strerror(errno);
    if (meant != NULL)
        return verb_error(v, EXIT_FILE, "unknown net \"%s\"; did you mean \"%s\"? (As a file: %s)", what,
                          meant, why);
    return verb_error(v, EXIT_FILE, "unknown net \"%s\" (as a file: %s)", what, why);
}

char *net_text(int *code, const verb *v, mica_context *ctx, const char *what)
{
    *code = EXIT_FAILED;
    const char *builtin = mica_netfile_builtin(what);
    if (builtin != NULL)
        return copy_of(builtin);
    bool standard = strcmp(what, "-") == 0;
    char path[4096];
    if (!standard && checkpoint_path(path, sizeof path, what) && is_safetensors(path))
        return text_of_checkpoint(code, v, ctx, path);
    FILE *file = standard ? stdin : fopen(what, "rb");
    if (file == NULL) {
        *code = no_such_net(v, what);
        return NULL;
    }
    size_t length = 0;
    errno = 0;
    char *text = read_all(file, &length);
    bool failed = ferror(file) != 0;
    int reason = errno;
    if (!standard)
        fclose(file);
    if (text != NULL && !failed && length <= MICA_NETFILE_MOST_BYTES && strlen(text) == length)
        return text;
    *code = verb_error(v, EXIT_FILE, "%s: %s", what,
                       failed                             ? strerror(reason)
                       : foreign_model(what) != NULL      ? foreign_model(what)
                       : length > MICA_NETFILE_MOST_BYTES ? "too long for a net file"
                                                          : "not a text file, so not a net file");
    free(text);
    return NULL;
}

/* "width=64" */
static bool read_set(const verb *v, mica_netfile_constant *out, char *name, size_t room, const char *set)
{
    const char *equals = strchr(set, '=');
    char *end = NULL;
    size_t length = equals != NULL ? (size_t)(equals - set) : 0;
    double value = equals != NULL ? strtod(equals + 1, &end) : 0.0;
    if (length == 0 || length >= room || end == equals + 1 || *end != '\0' || !isfinite(value)) {
        usage_error(v, "--set takes NAME=NUMBER, such as width=64, not \"%s\"", set);
        return false;
    }
    memcpy(name, set, length);
    name[length] = '\0';
    *out = (mica_netfile_constant){name, value, false};
    return true;
}

/* What a person set comes before what the caller has. */
static bool gather(const verb *v, mica_netfile_constant *all, char (*names)[64], size_t *count,
                   const option_list *set, const mica_netfile_opts *opts)
{
    for (size_t i = 0; set != NULL && i < set->count; i++) {
        if (!read_set(v, &all[*count], names[i], sizeof names[i], set->item[i]))
            return false;
        ++*count;
    }
    for (size_t i = 0; i < opts->constant_count && *count < MOST_CONSTANTS; i++)
        all[(*count)++] = opts->constants[i];
    return true;
}

/* The net of bytes, if that is what a checkpoint holds. */
static int convert(mica_net **net, mica_netfile_info *info, const verb *v, mica_context *ctx,
                   const char *what)
{
    char path[4096];
    mica_safetensors *file;
    if (strcmp(what, "-") == 0 || !checkpoint_path(path, sizeof path, what) || !is_safetensors(path))
        return EXIT_OK;
    if (mica_safetensors_open(ctx, &file, path) != MICA_OK)
        return verb_failed(v, ctx);
    const char *text = mica_safetensors_metadata_find(file, INT8_KEY);
    int code = EXIT_OK;
    if (text != NULL && v == &verb_train)
        code = verb_error(v, EXIT_FILE,
                          "%s is an int8 net, which cannot be trained: train the net that it was made of",
                          path);
    else if (text != NULL && (int8_convert(net, info, text, v != &verb_export) != MICA_OK ||
                              int8_check_file(*net, file) != MICA_OK))
        code = verb_error(v, EXIT_FILE, "%s: %s", path, mica_error(ctx));
    mica_safetensors_close(ctx, file);
    return code;
}

int net_build(mica_net **out, mica_netfile_info *info, const verb *v, mica_context *ctx, const char *what,
              const option_list *set, const mica_netfile_opts *opts)
{
    return net_build_for(out, info, v, ctx, what, MICA_TASK_NONE, set, opts);
}

/* Where a text comes from a checkpoint, its model lies beside that. */
static int build_model(mica_net **out, mica_netfile_info *info, const verb *v, mica_context *ctx,
                       const char *text, const char *what, const mica_netfile_opts *opts)
{
    char path[4096];
    if (!checkpoint_path(path, sizeof path, what))
        return usage_error(v, "the path is longer than %zu bytes", sizeof path - 1);
    return onnx_text_build(out, info, v, ctx, text, path, opts);
}

int net_build_for(mica_net **out, mica_netfile_info *info, const verb *v, mica_context *ctx, const char *what,
                  mica_task task, const option_list *set, const mica_netfile_opts *opts)
{
    if (mica_netfile_builtin(what) == NULL && is_onnx(what)) {
        *out = NULL;
        return onnx_run_build(out, info, v, ctx, what, set, opts);
    }
    mica_netfile_opts with = opts != NULL ? *opts : (mica_netfile_opts){0};
    mica_netfile_constant all[MOST_CONSTANTS];
    char names[OPTION_LIST_MOST][64];
    size_t count = 0;
    int code;
    *out = NULL;
    if (!gather(v, all, names, &count, set, &with))
        return EXIT_USAGE;
    const char *builtin = mica_netfile_builtin_for(what, task);
    char *text = builtin != NULL ? copy_of(builtin) : net_text(&code, v, ctx, what);
    if (text == NULL)
        return builtin != NULL ? EXIT_FAILED : code;
    with.file = strcmp(what, "-") == 0 ? "stdin" : what;
    with.constants = all;
    with.constant_count = count;
    code = EXIT_OK;
    if (is_onnx_text(text) && set != NULL && set->count > 0)
        code = usage_error(v, "--set %s: %s is made from an ONNX model, whose sizes and inputs were set then",
                           set->item[0], what);
    else if (is_onnx_text(text))
        code = build_model(out, info, v, ctx, text, what, &with);
    else if (mica_net_create(ctx, out) != MICA_OK)
        code = verb_failed(v, ctx);
    else if (mica_netfile_build(*out, info, text, &with) != MICA_OK)
        code = verb_error(v, mica_context_status(ctx) == MICA_ERR_MEMORY ? EXIT_FAILED : EXIT_FILE, "%s",
                          mica_error(ctx));
    free(text);
    if (code == EXIT_OK && builtin == NULL)
        code = convert(out, info, v, ctx, what);
    if (code != EXIT_OK) {
        mica_net_destroy(*out);
        *out = NULL;
    }
    return code;
}
