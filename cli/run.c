/* mica run: what a trained net says of inputs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/prediction.h"
#include "cli/model/same.h"
#include "cli/model/tables.h"
#include "cli/onnx/onnx.h"
#include "cli/ranks.h"

#define DEFAULT_BATCH 32

typedef struct settings {
    prediction_settings net; /* first: it begins with the shared ones */
    option_list set, inputs; /* these of an ONNX model */
    const char *output;
    int64_t repeat; /* 0: not given */
} settings;

static const verb_option options[] = {
    {.name = "--top",
     OPTION_COUNT,
     offsetof(settings, net.top),
     "N",
     "print the N most likely classes of each input (3; of classes in JSON all)",
     .least = 1},
    {.name = "--invert",
     OPTION_FLAG,
     offsetof(settings, net.invert),
     NULL,
     "invert images, for nets trained on white on black"},
    {.name = "--id",
     OPTION_TEXT,
     offsetof(settings, net.id),
     "COLUMN",
     "table: print the value of this column before each answer (the row's index)"},
    TABLE_READING_OPTIONS(prediction_settings),
    {.name = "--batch",
     OPTION_COUNT,
     offsetof(settings, net.batch),
     "N",
     "batch size (32)",
     .least = 1,
     .most = 1000000},
    PREPARE_OPTION(offsetof(settings, net.prepare),
                   "prepare weights before the first input: faster, and more memory (yes)"),
    {.name = "--input",
     OPTION_LIST,
     offsetof(settings, inputs),
     "NAME=FILE",
     "ONNX: an input, from a .npy file; may be repeated"},
    {.name = "--set",
     OPTION_LIST,
     offsetof(settings, set),
     "NAME=VALUE",
     "ONNX: a size (batch=8), or an input that is fixed: numbers, or @FILE.npy"},
    {.name = "--output",
     OPTION_TEXT,
     offsetof(settings, output),
     "DIR",
     "ONNX: write each output to DIR/NAME.npy, instead of printing the first values"},
    {.name = "--repeat",
     OPTION_COUNT,
     offsetof(settings, repeat),
     "N",
     "ONNX: run N times, and tell the median time (1)",
     .least = 1,
     .most = 1000000},
};

static const char details[] =
    "FILE is a checkpoint written by mica train, or its folder. INPUT is a file with one or more\n"
    "inputs: .idx, .npy, .npz, .csv or .tsv, or .txt for text nets; optionally gzipped. Or INPUTs are\n"
    "images (PNG, JPEG, PPM, PGM) and folders of them: the middle of each is scaled to the net's input.\n"
    "Or WAV files and folders of them, for nets trained on such. With \"-\" or no INPUT, reads stdin and\n"
    "detects the format.\n"
    "\n"
    "Prints a line per input: its index, its --id, or the file of an image, then the most likely classes\n"
    "with their probabilities, or the values of a regression net in their own unit. A text net\n"
    "predicts the next token.\n"
    "\n"
    "Nets trained on digits expect white on black: --invert converts black on white.\n"
    "\n"
    "FILE may also be an ONNX model. Then its inputs are .npy files, by name with --input, or in order;\n"
    "sizes that the model leaves open are those of the files. --json prints an object: inputs and outputs\n"
    "(name, dtype, shape, and the file or the first values), runs, seconds, heap_calls, plan_bytes.";

static const verb_example examples[] = {
    {"run lenet-digits seven.png --invert", "classify an image"},
    {"run lenet-animals photo.jpg album --top 1", "classify images and folders of them"},
    {"run lenet-digits t10k-images-idx3-ubyte.gz --top 1", "classify many images"},
    {"run mlp-iris - < flowers.csv", "read a table from stdin"},
    {"run mlp-churn customers.csv --id customer --json", "a line of JSON for each customer"},
    {"run keywords-words a.wav b.wav", "say what was spoken"},
    {"run resnet18.onnx --input image=cat.npy --output out",
     "an ONNX model: writes out/NAME.npy for each output"},
    {"run gpt-tiny-shakespeare --json < prompt.txt", "the most likely next characters, as JSON"},
    {NULL, NULL},
};

static int open_net(prediction *p, const char *where)
{
    int code = saved_open(&p->saved, &verb_run, p->ctx, where);
    p->is_text = p->saved.meaning.vocabulary.count > 0;
    mica_index batch = p->is_text ? 1 : (mica_index)p->set->batch;
    saved_build_opts opts = {.batch = batch, .prepare = p->set->prepare == PREPARE_YES};
    return code == EXIT_OK ? saved_build(&p->net, &p->info, &verb_run, p->ctx, &p->saved, &opts) : code;
}

static int predict(prediction *p, const char *where, char **inputs, int count)
{
    const prediction_settings *set = p->set;
    bool is_stdin = count == 1 && strcmp(inputs[0], "-") == 0;
    const int64_t chosen[] = {set->top, set->batch, set->invert, set->shared.json, is_stdin, set->prepare};
    int code = ranks_agree(open_net(p, where));
    if (code == EXIT_OK)
        code = same_options(chosen, sizeof chosen / sizeof chosen[0], &verb_run);
    if (code == EXIT_OK)
        code = same_net(&p->saved, p->net, &verb_run);
    if (code == EXIT_OK && is_stdin)
        code = prediction_read_stdin(p);
    if (code == EXIT_OK)
        code = ranks_agree(prediction_open_inputs(p, inputs, count, is_stdin));
    if (code == EXIT_OK && set->id != NULL && p->ids == NULL)
        code = usage_error(&verb_run, "--id is for tables");
    if (code == EXIT_OK)
        code = same_inputs(p->is_text ? &p->text.tokens : &p->inputs.inputs, &verb_run, inputs[0]);
    if (code != EXIT_OK)
        return code;
    if (!p->is_text)
        return prediction_run_samples(p);
    return ranks_rank() == 0 ? prediction_run_text(p) : EXIT_OK; /* there is one text, and one answer */
}

static int run_model(const settings *set, const char *path, char **files, int count)
{
    mica_context *ctx = verb_context(&verb_run, &set->net.shared);
    if (ctx == NULL)
        return EXIT_FAILED;
    onnx_run_settings model = {.shared = set->net.shared,
                               .set = set->set,
                               .inputs = set->inputs,
                               .output = set->output,
                               .prepare = set->net.prepare == PREPARE_YES,
                               .repeat = set->repeat > 0 ? set->repeat : 1};
    int code = ranks_rank() == 0 ? onnx_run(ctx, &verb_run, &model, path, files, count) : EXIT_OK;
    mica_context_destroy(ctx);
    return code;
}

/* An option that was given, and that is for the other kind of FILE; NULL: none was. */
static const char *option_of_models(const settings *set)
{
    return set->inputs.count > 0 ? "--input"
           : set->set.count > 0  ? "--set"
           : set->output != NULL ? "--output"
           : set->repeat > 0     ? "--repeat"
                                 : NULL;
}

static const char *option_of_checkpoints(const prediction_settings *set)
{
    return set->top >= 0                  ? "--top"
           : set->batch >= 0              ? "--batch"
           : set->invert                  ? "--invert"
           : set->id != NULL              ? "--id"
           : set->table.delimiter != NULL ? "--delimiter"
           : set->table.header >= 0       ? "--header"
                                          : NULL;
}

static int run(int argc, char **argv)
{
    settings set = {.net = {.shared = SHARED_DEFAULTS, .table = TABLE_DEFAULTS, .top = -1, .batch = -1}};
    int count = options_read(&verb_run, &set, argc, argv);
    if (count < 0)
        return EXIT_USAGE;
    if (count < 1)
        return usage_error(&verb_run, "which trained net? The FILE argument is missing");
    bool model = is_onnx(argv[0]);
    const char *other = model ? option_of_checkpoints(&set.net) : option_of_models(&set);
    if (other != NULL)
        return usage_error(&verb_run, "%s is for %s, which %s is not", other,
                           model ? "checkpoints" : "ONNX models", argv[0]);
    if (model)
        return run_model(&set, argv[0], argv + 1, count - 1);
    set.net.batch = set.net.batch > 0 ? set.net.batch : DEFAULT_BATCH;
    prediction p = {.ctx = verb_context(&verb_run, &set.net.shared), .set = &set.net, .to = stdout};
    if (p.ctx == NULL)
        return EXIT_FAILED;
    char *from_stdin[] = {"-"};
    int code = predict(&p, argv[0], count > 1 ? argv + 1 : from_stdin, count > 1 ? count - 1 : 1);
    mica_net_destroy(p.net);
    for (mica_index i = 0; p.ids != NULL && i < p.inputs.count; i++)
        free(p.ids[i]);
    free(p.ids);
    mica_dataset_destroy(p.ctx, &p.inputs);
    image_list_free(p.ctx, &p.images);
    mica_text_destroy(p.ctx, &p.text);
    saved_close(p.ctx, &p.saved);
    mica_context_destroy(p.ctx);
    free(p.bytes);
    free(p.picture);
    return code;
}

const verb verb_run = {
    .name = "run",
    .arguments = "FILE [INPUT...|-] [OPTIONS]",
    .summary = "run a trained net on inputs: classes and probabilities",
    .details = details,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
    .shared = SHARED_QUIET | SHARED_JSON | SHARED_THREADS | RANKED,
    .examples = examples,
};
