/* mica convert: a net with its weights as a file of another format. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <mica/checkpoint.h>
#include <mica/onnx.h>

#include "cli/model/saved.h"
#include "cli/net/argument.h"
#include "cli/onnx/given.h"
#include "cli/onnx/onnx.h"
#include "cli/picture/text.h"
#include "net/net.h"

/* For a size that is not set: at 1, the -1 of a Reshape might stand for it as for any other. */
#define PLANNED 2
#define APART   3 /* from one such size to the next: sizes that are the same cannot be told apart */

typedef struct settings {
    shared_settings shared;
    option_list set;
    const char *weights;
    bool plain;
} settings;

static const verb_option options[] = {
    {.name = "--weights",
     OPTION_TEXT,
     offsetof(settings, weights),
     "FILE",
     "weights (safetensors) of a net that is given without them"},
    {.name = "--plain",
     OPTION_FLAG,
     offsetof(settings, plain),
     NULL,
     "to ONNX: only standard operators, no functions made of them"},
    {.name = "--set",
     OPTION_LIST,
     offsetof(settings, set),
     "NAME=VALUE",
     "override a constant of the net; of an ONNX model, fix a size or an input"},
};

static const char details[] = NET_HELP
    "  FILE.onnx                                  an ONNX model\n"
    "\n"
    "OUT says by its suffix what is written:\n"
    "  FILE.onnx                                  ONNX (opset 17), for inference, without losses\n"
    "  FILE.safetensors                           a checkpoint for mica eval, run and train: the net's text\n"
    "                                             and its weights; of an ONNX model, its weights alone\n"
    "  FILE.net                                   the net file, and FILE.safetensors with its weights\n"
    "\n"
    "In an ONNX file the batch and other sizes of a step are named dimensions, and weights keep their\n"
    "names. What ONNX has no operator for is a function made of standard operators, which Mica reads back\n"
    "as the operation it was; --plain writes its nodes instead. A net without weights gets fresh ones\n"
    "(--seed). An ONNX model cannot become a net file: that has no words for operations with weights.";

static const verb_example examples[] = {
    {"convert runs/lenet lenet.onnx", "a trained net, for other programs"},
    {"convert gpt.net gpt.onnx --weights gpt.safetensors", "the same from a net file and weights"},
    {"convert runs/lenet lenet.net", "lenet.net, and lenet.safetensors beside it"},
    {"convert model.onnx smaller.onnx --set batch=1", "an ONNX model, as Mica understands it"},
    {NULL, NULL},
};

typedef enum format { FORMAT_NONE, FORMAT_ONNX, FORMAT_SAFETENSORS, FORMAT_NET } format;

typedef struct job {
    const settings *set;
    mica_context *ctx;
    const char *from, *to;
    format format;
    mica_net *net;
    mica_netfile_info info;
    char weights[4096]; /* a file; "": none */
    bool is_checkpoint; /* the net's text comes from there, too */
    given given;        /* an ONNX model */
    bool is_model;
} job;

static bool ends_with(const char *text, const char *suffix)
{
    size_t length = strlen(text), end = strlen(suffix);
    return length > end && strcmp(text + length - end, suffix) == 0;
}

static format format_of(const char *path)
{
    return ends_with(path, ".onnx")          ? FORMAT_ONNX
           : ends_with(path, ".safetensors") ? FORMAT_SAFETENSORS
           : ends_with(path, ".net")         ? FORMAT_NET
                                             : FORMAT_NONE;
}

/* ---- Reading ---- */

static int failed(const job *j) { return verb_failed(&verb_convert, j->ctx); }

static int bind(job *j)
{
    return mica_net_compile(j->net, &(mica_compile_opts){.train = false}) == MICA_OK &&
                   mica_net_bind(j->net, NULL, 0) == MICA_OK &&
                   mica_net_initialize(j->net, (uint64_t)j->set->shared.seed) == MICA_OK
               ? EXIT_OK
               : failed(j);
}

static int read_net(job *j)
{
    mica_netfile_opts opts = {.batch = PLANNED, .inference = true};
    int code = net_build(&j->net, &j->info, &verb_convert, j->ctx, j->from, &j->set->set, &opts);
    if (code == EXIT_OK)
        code = bind(j);
    if (code == EXIT_OK && j->weights[0] != '\0' && mica_weights_load(j->net, j->weights) != MICA_OK)
        return failed(j);
    if (code == EXIT_OK && j->weights[0] == '\0' && !j->set->shared.quiet)
        fprintf(
            stderr,
            "mica convert: %s comes without weights: fresh ones are written (--weights FILE gives others)\n",
            j->from);
    return code;
}

/* Whether a quantized model was imported in bytes. */
static bool has_bytes(const mica_net *net)
{
    for (int n = 0; n < net->node_count; n++)
        if (strncmp(net->nodes[n].op->name, "affine_", strlen("affine_")) == 0)
            return true;
    return false;
}

/* Quantized models stay bytes if ONNX is written; else nets are imported as for training, so that what becomes of them
 * has the model's weights under their names. */
static mica_status build_model(job *j)
{
    if (j->format == FORMAT_ONNX) {
        if (given_build(&j->given, &j->net, false) == MICA_OK && has_bytes(j->net))
            return MICA_OK;
        mica_net_destroy(j->net);
        j->net = NULL;
    }
    j->given.frozen = true;
    return given_build(&j->given, &j->net, true);
}

static int read_model(job *j)
{
    if (j->set->weights != NULL)
        return usage_error(&verb_convert, "--weights is for nets without weights, and %s is an ONNX model",
                           j->from);
    j->is_model = true;
    int code = given_open(&j->given, j->ctx, j->from) == MICA_OK ? EXIT_OK : failed(j);
    if (code == EXIT_OK)
        code = given_sets(&j->given, &verb_convert, &j->set->set);
    if (code != EXIT_OK)
        return code;
    given_fill_sizes(&j->given, PLANNED, APART);
    if (build_model(j) != MICA_OK)
        return given_build_failed(&j->given, &verb_convert, j->from);
    code = bind(j);
    return code == EXIT_OK && mica_onnx_load(j->given.model, j->net) != MICA_OK ? failed(j) : code;
}

/* ---- Writing ---- */

static int not_written(const job *j)
{
    return verb_error(&verb_convert, EXIT_FAILED, "%s", mica_error(j->ctx));
}

/* What a checkpoint says of its net, or the text alone. */
static int add_notes(const job *j, notes *n)
{
    mica_safetensors *file = NULL;
    if (!j->is_checkpoint) {
        notes_add(n, MICA_NETFILE_KEY, j->info.text);
        return EXIT_OK;
    }
    if (mica_safetensors_open(j->ctx, &file, j->weights) != MICA_OK)
        return failed(j);
    for (size_t i = 0; i < mica_safetensors_metadata_count(file); i++) {
        const mica_metadata *from = mica_safetensors_metadata_at(file, i);
        if (strncmp(from->key, "mica.", 5) == 0 && strncmp(from->key, "mica.train.", 11) != 0)
            notes_add(n, from->key, from->value);
    }
    mica_safetensors_close(j->ctx, file);
    return EXIT_OK;
}

static int write_checkpoint(const job *j)
{
    if (j->is_model)
        return mica_weights_save(j->net, j->to) == MICA_OK ? EXIT_OK : not_written(j);
    notes n = {.count = 0};
    int code = add_notes(j, &n);
    mica_training_state state = {.notes = n.list, .note_count = n.count};
    if (code == EXIT_OK && mica_checkpoint_save(j->net, j->to, &state) != MICA_OK)
        code = not_written(j);
    notes_free(&n);
    return code;
}

static int write_net_file(const job *j)
{
    char path[4096];
    if (j->is_model)
        return verb_error(
            &verb_convert, EXIT_FAILED,
            "%s is an ONNX model, and net files have no words for operations with weights: convert it to "
            ".onnx, or its weights to .safetensors",
            j->from);
    int length = snprintf(path, sizeof path, "%.*s.safetensors", (int)(strlen(j->to) - strlen(".net")),
                          j->to);
    if (length < 0 || (size_t)length >= sizeof path)
        return verb_error(&verb_convert, EXIT_FAILED, "the name %s is too long", j->to);
    if (mica_weights_save(j->net, path) != MICA_OK)
        return not_written(j);
    FILE *file = fopen(j->to, "w");
    bool written = file != NULL && fputs(j->info.text, file) >= 0;
    if (file != NULL && fclose(file) != 0)
        written = false;
    return written ? EXIT_OK : verb_error(&verb_convert, EXIT_FAILED, "cannot write %s", j->to);
}

static int write_out(const job *j)
{
    if (j->format == FORMAT_NET)
        return write_net_file(j);
    if (j->format == FORMAT_SAFETENSORS)
        return write_checkpoint(j);
    return mica_onnx_write(j->net, j->to, &(mica_onnx_write_opts){.plain = j->set->plain}) == MICA_OK
               ? EXIT_OK
               : not_written(j);
}

/* ---- The verb ---- */

/* The file that is read must not be the one that is replaced: weights may still lie in it. */
static bool is_same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

static int find_weights(job *j)
{
    bool named = mica_netfile_builtin(j->from) == NULL && strcmp(j->from, "-") != 0;
    j->is_checkpoint = named && checkpoint_path(j->weights, sizeof j->weights, j->from) &&
                       is_safetensors(j->weights);
    if (!j->is_checkpoint)
        j->weights[0] = '\0';
    if (j->set->weights == NULL)
        return EXIT_OK;
    if (j->is_checkpoint)
        return usage_error(&verb_convert, "--weights is for nets without weights, and %s has its own",
                           j->from);
    int length = snprintf(j->weights, sizeof j->weights, "%s", j->set->weights);
    return length >= 0 && (size_t)length < sizeof j->weights
               ? EXIT_OK
               : usage_error(&verb_convert, "the name of the weights is too long");
}

static int convert(job *j)
{
    j->format = format_of(j->to);
    if (j->format == FORMAT_NONE)
        return usage_error(&verb_convert, "%s: expected a name that ends with .onnx, .safetensors or .net",
                           j->to);
    if (j->set->plain && j->format != FORMAT_ONNX)
        return usage_error(&verb_convert, "--plain is for ONNX files, and %s will be none", j->to);
    int code = EXIT_OK;
    bool model = mica_netfile_builtin(j->from) == NULL && strcmp(j->from, "-") != 0 && is_onnx(j->from);
    if (!model)
        code = find_weights(j);
    if (code == EXIT_OK &&
        (is_same_file(j->from, j->to) || (j->weights[0] != '\0' && is_same_file(j->weights, j->to))))
        return usage_error(&verb_convert, "%s would be read and written at once", j->to);
    if (code == EXIT_OK)
        code = model ? read_model(j) : read_net(j);
    return code == EXIT_OK ? write_out(j) : code;
}

static void put_some(const char *name, const float *values, mica_index count)
{
    enum { SHOWN = 4 };
    fprintf(stderr, ", %s", name);
    for (mica_index i = 0; i < count && i < SHOWN; i++)
        fprintf(stderr, " %.6g", (double)values[i]);
    fputs(count > SHOWN ? " ..." : "", stderr);
}

/* Programs that run an ONNX file do not read how the checkpoint's training prepared its data. */
static void tell_normalization(const job *j)
{
    mica_safetensors *file = NULL;
    if (!j->is_checkpoint || j->format != FORMAT_ONNX ||
        mica_safetensors_open(j->ctx, &file, j->weights) != MICA_OK)
        return;
    bool says = mica_safetensors_metadata_find(file, "mica.sample") != NULL;
    mica_safetensors_close(j->ctx, file);
    saved s = {.file = NULL};
    if (says && saved_open(&s, &verb_convert, j->ctx, j->weights) == EXIT_OK) {
        const normalization *n = &s.meaning.normalization;
        if (s.table != NULL)
            fprintf(
                stderr,
                "mica convert: the net was trained on rows of a table; %s expects them as Mica encodes them (mica "
                "info %s\n  lists the columns), and predicts numbers with mean 0 and standard deviation 1\n",
                j->to, j->from);
        if (n->channels > 0) {
            fprintf(
                stderr,
                "mica convert: the net was trained on normalized inputs, but %s does not normalize: feed it\n"
                "  (x * %.6g - mean) / deviation",
                j->to, (double)n->scale);
            put_some("mean", n->mean, n->channels);
            put_some("deviation", n->deviation, n->channels);
            fputs(n->channels > 1 ? ", for each channel or column\n" : "\n", stderr);
        }
    }
    saved_close(j->ctx, &s);
}

static void tell(const job *j)
{
    struct stat about;
    if (j->set->shared.quiet || stat(j->to, &about) != 0)
        return;
    printf("wrote %s, %s bytes\n", j->to, count_text((double)about.st_size).text);
    tell_normalization(j);
}

static int run(int argc, char **argv)
{
    settings set = {.shared = SHARED_DEFAULTS};
    int count = options_read(&verb_convert, &set, argc, argv);
    if (count < 0)
        return EXIT_USAGE;
    if (count != 2)
        return usage_error(&verb_convert,
                           "expected a net and a file to write: mica convert runs/lenet lenet.onnx");
    job *j = calloc(1, sizeof *j);
    if (j == NULL)
        return verb_error(&verb_convert, EXIT_FAILED, "out of memory");
    *j = (job){.set = &set, .from = argv[0], .to = argv[1], .ctx = verb_context(&verb_convert, &set.shared)};
    int code = j->ctx != NULL ? convert(j) : EXIT_FAILED;
    if (code == EXIT_OK)
        tell(j);
    mica_net_destroy(j->net);
    if (j->is_model)
        given_close(&j->given);
    if (j->ctx != NULL)
        mica_context_destroy(j->ctx);
    free(j);
    return code;
}

const verb verb_convert = {
    .name = "convert",
    .arguments = "NET OUT",
    .summary = "write a net with its weights in another format: ONNX, safetensors, net file",
    .details = details,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
    .shared = SHARED_QUIET | SHARED_SEED,
    .examples = examples,
};
