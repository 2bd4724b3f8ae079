/* mica export: a net as C files that need no library. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <mica/checkpoint.h>
#include <mica/int8.h>
#include <mica/mica.h>

#include "cli/model/quantize_int8.h"
#include "cli/model/saved.h"
#include "cli/model/tables.h"
#include "cli/net/argument.h"
#include "cli/onnx/net.h"
#include "cli/onnx/onnx.h"
#include "cli/picture/text.h"
#include "export/export.h"

#define TEST_STEPS 50

typedef struct settings {
    shared_settings shared;
    option_list set, freeze;
    const char *out, *name;
    bool train;
    int64_t batch; /* -1: not given */
    int optimizer; /* -1: not given */
    int layout;
    double weight_decay;
    size_t budget;
    int target;
    bool int8;
    int8_ranges ranges;
    table_settings table;
} settings;

enum { METHOD_SGD, METHOD_MOMENTUM, METHOD_ADAM, METHOD_ADAMW };
static const char *const methods[] = {"sgd", "momentum", "adam", "adamw", NULL};

enum { LAYOUT_FLAT, LAYOUT_ARDUINO };
static const char *const layouts[] = {"flat", "arduino", NULL};

static const char *const targets[] = {
#define TARGET_NAME(name) #name,
    EXPORT_TARGETS(TARGET_NAME)
#undef TARGET_NAME
        NULL,
};

static const verb_option options[] = {
    {.name = "--out",
     OPTION_TEXT,
     offsetof(settings, out),
     "DIR",
     "folder to write to, created if there is none",
     .letter = "o"},
    {.name = "--name",
     OPTION_TEXT,
     offsetof(settings, name),
     "NAME",
     "name of the files, and prefix of all C names in them (the net's)"},
    {.name = "--train",
     OPTION_FLAG,
     offsetof(settings, train),
     NULL,
     "add a training step, so that the net can learn on the device"},
    {.name = "--optimizer",
     OPTION_CHOICE,
     offsetof(settings, optimizer),
     "NAME",
     "with --train (momentum: SGD with a momentum of 0.9)",
     .choices = methods},
    {.name = "--weight-decay", OPTION_NUMBER, offsetof(settings, weight_decay), "X", "with --train (0)"},
    {.name = "--freeze",
     OPTION_LIST,
     offsetof(settings, freeze),
     "PREFIX",
     "with --train: parameters whose names begin with PREFIX stay fixed, in flash"},
    {.name = "--batch",
     OPTION_COUNT,
     offsetof(settings, batch),
     "N",
     "samples in each run or step (1, or what is written into an ONNX model)",
     .least = 1,
     .most = 4096},
    {.name = "--budget",
     OPTION_BYTES,
     offsetof(settings, budget),
     "BYTES",
     "most RAM to use, without the stack; activations are recomputed to fit"},
    {.name = "--layout",
     OPTION_CHOICE,
     offsetof(settings, layout),
     "HOW",
     "arduino: a library for the Arduino IDE and PlatformIO (flat)",
     .choices = layouts},
    {.name = "--target",
     OPTION_CHOICE,
     offsetof(settings, target),
     "CPU",
     "processor to choose kernels for; m4, m7 and m33 have SMLAD, m55 has MVE (generic)",
     .choices = targets},
    {.name = "--int8",
     OPTION_FLAG,
     offsetof(settings, int8),
     NULL,
     "quantize the net first, of a checkpoint or an ONNX model; with --train what is not frozen stays float"},
    INT8_OPTIONS(settings),
    TABLE_READING_OPTIONS(settings),
    NET_SET_OPTION(settings),
};

static const char details[] = NET_HELP
    "\n"
    "Writes NAME.c and NAME.h, C99 that needs no library; NAME_test.c, a program that checks them against\n"
    "what the net did here; and NAME.md, which shows the plan of its memory.\n"
    "\n"
    "Weights stay in flash; all other memory is one block, static or the caller's. With --train what is\n"
    "learned moves to RAM. Where no operation mixes samples, a batch is run sample by sample, so that only\n"
    "its inputs take more memory. A net without a checkpoint gets fresh weights (--seed).\n"
    "\n"
    "With --int8, or for a net from mica quantize --int8, inputs and outputs are bytes; NAME.h has their\n"
    "scales, and functions for floats. --int8 also writes NAME.safetensors, the quantized net, for mica eval.\n"
    "\n"
    "--json prints one object: name, ram, flash (bytes), files.";

/* ---- Names ---- */

/* lenet.net of runs/lenet.net: files that are written say nothing of the folders of this machine. */
static const char *base_of(const char *what)
{
    const char *slash = strrchr(what, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : what;
}

/* lenet of runs/lenet.net, as an identifier. */
static void take_name(char *out, size_t size, const char *what)
{
    const char *base = base_of(what);
    size_t n = 0;
    if (!isalpha((unsigned char)base[0]))
        n = (size_t)snprintf(out, size, "net");
    for (; *base != '\0' && *base != '.' && *base != '/' && n + 1 < size; base++)
        out[n++] = isalnum((unsigned char)*base) ? *base : '_';
    out[n] = '\0';
}

/* A path as it may stand in a comment: without what would end it. */
static void take_source(char *out, size_t size, const char *what)
{
    snprintf(out, size, "%s", what);
    for (char *at = out; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || *at == '\\' || *at == '*' || *at == '?')
            *at = '_';
}

static bool is_identifier(const char *name)
{
    if (!isalpha((unsigned char)name[0]) || strlen(name) > 48)
        return false;
    for (; *name != '\0'; name++)
        if (!isalnum((unsigned char)*name) && *name != '_')
            return false;
    return true;
}

/* ---- Nets ---- */

/* What is exported, and a net for the whole batch, whose results the test compares with. */
typedef struct job {
    const settings *set;
    mica_context *ctx;
    const char *what;
    char weights[4096]; /* a checkpoint; "": none */
    bool is_model;      /* ONNX: it has its weights */
    char name[64];
    char source[256]; /* as it may stand in a comment */
    mica_optimizer optimizer;
    mica_net *net, *check;
    mica_netfile_info info;
    saved saved; /* what the checkpoint says of the net's inputs */
    export_opts opts;
} job;

static int compile(job *j, mica_net *net, size_t budget)
{
    /* In an int8 net, what is frozen has no parameters any more. */
    for (size_t i = 0; i < j->set->freeze.count && !j->set->int8; i++)
        if (mica_net_freeze(net, j->set->freeze.item[i], true) != MICA_OK)
            return verb_failed(&verb_export, j->ctx);
    mica_compile_opts opts = {.train = j->set->train,
                              .optimizer = j->set->train ? &j->optimizer : NULL,
                              .budget = budget,
                              .planes = true,
                              .part_rows = j->set->train ? 0 : MICA_WHOLE_BATCH};
    return mica_net_compile(net, &opts) == MICA_OK
               ? EXIT_OK
               : verb_error(&verb_export, EXIT_FAILED, "%s", mica_error(j->ctx));
}

static int set_weights(job *j, mica_net *net)
{
    if (mica_net_bind(net, NULL, 0) != MICA_OK ||
        mica_net_initialize(net, (uint64_t)j->set->shared.seed) != MICA_OK ||
        (j->weights[0] != '\0' && mica_weights_load(net, j->weights) != MICA_OK))
        return verb_failed(&verb_export, j->ctx);
    return EXIT_OK;
}

/* The net of the whole batch; and that of one sample, if the batch can be run one by one. */
static int build_nets(job *j)
{
    mica_index own = j->is_model && j->set->batch < 0 ? onnx_batch_of(j->ctx, j->what) : 0;
    mica_index batch = own > 0 ? own : j->set->batch > 0 ? (mica_index)j->set->batch : 1;
    mica_netfile_opts opts = {.batch = batch, .inference = !j->set->train};
    const option_list *set = j->set->int8 ? NULL : &j->set->set; /* the quantized net has them already */
    int code = net_build(&j->check, &j->info, &verb_export, j->ctx, j->what, set, &opts);
    if (code == EXIT_OK)
        code = compile(j, j->check, 0);
    if (code != EXIT_OK)
        return code;
    bool apart = batch > 1 && !onnx_sizes_fixed(j->check) && !mica_net_keeps_states(j->check) &&
                 mica_net_samples_apart(j->check);
    opts.batch = apart ? 1 : batch;
    j->opts.samples = apart ? (int)batch : 1;
    j->opts.batch = (int)opts.batch;
    mica_netfile_info info;
    if (strcmp(j->what, "-") != 0)
        code = net_build(&j->net, &info, &verb_export, j->ctx, j->what, set, &opts);
    else if (mica_net_create(j->ctx, &j->net) != MICA_OK || /* what was read from there is gone */
             mica_netfile_build(j->net, &info, j->info.text, &opts) != MICA_OK)
        code = verb_failed(&verb_export, j->ctx);
    if (code == EXIT_OK)
        j->opts.output = info.output;
    return code;
}

/* A checkpoint of mica train says what its data were. Other files need not. */
static int read_meaning(job *j)
{
    mica_safetensors *file = NULL;
    if (j->weights[0] == '\0')
        return EXIT_OK;
    if (mica_safetensors_open(j->ctx, &file, j->weights) != MICA_OK)
        return verb_failed(&verb_export, j->ctx);
    bool says = mica_safetensors_metadata_find(file, "mica.sample") != NULL;
    mica_safetensors_close(j->ctx, file);
    int code = says ? saved_open(&j->saved, &verb_export, j->ctx, j->weights) : EXIT_OK;
    if (code != EXIT_OK || !says)
        return code;
    const meaning *m = &j->saved.meaning;
    j->opts.channels = (int)m->normalization.channels;
    j->opts.scale = m->normalization.scale;
    j->opts.mean = m->normalization.mean;
    j->opts.deviation = m->normalization.deviation;
    j->opts.table = m->table;
    if (m->class_count == j->info.classes && m->class_names != NULL) {
        j->opts.classes = (const char *const *)m->class_names;
        j->opts.class_count = m->class_count;
    }
    if (m->units.mean != NULL && m->units.deviation != NULL && m->units.names != NULL) {
        j->opts.targets = m->units.names;
        j->opts.unit = m->units.deviation;
        j->opts.unit_mean = m->units.mean;
        j->opts.target_count = (int)m->units.count;
    }
    return EXIT_OK;
}

/* ---- The budget ---- */

/* Compiles with less and less memory for the library's own plan, which then recomputes more, until the exported plan
 * fits. */
static int compile_within(job *j, text *why)
{
    size_t ram = 0, best = SIZE_MAX, given = 0;
    for (int tries = 0; tries < 40; tries++) {
        int code = EXIT_OK;
        if (given > 0 &&
            mica_net_compile(
                j->net, &(mica_compile_opts){.train = j->set->train,
                                             .optimizer = j->set->train ? &j->optimizer : NULL,
                                             .budget = given,
                                             .planes = true,
                                             .part_rows = j->set->train ? 0 : MICA_WHOLE_BATCH}) != MICA_OK)
            break;
        if (given == 0)
            code = compile(j, j->net, 0);
        if (code != EXIT_OK)
            return code;
        if (mica_net_plan(j->net)->parts > 1)
            break;
        if (!export_measure(&ram, j->net, &j->opts, why))
            return verb_error(&verb_export, EXIT_FAILED, "%s cannot be exported:\n%s", j->what, why->bytes);
        if (j->set->budget == 0 || ram <= j->set->budget)
            return EXIT_OK;
        best = ram < best ? ram : best;
        given = (size_t)(0.95 * (double)mica_net_plan(j->net)->total);
    }
    return verb_error(&verb_export, EXIT_FAILED,
                      "%s needs at least %zu bytes of RAM, the budget is %zu (%zu short)", j->what, best,
                      j->set->budget, best - j->set->budget);
}

/* ---- Files ---- */

static int make_folder(const char *path)
{
    struct stat about;
    if (mkdir(path, 0777) == 0 || (errno == EEXIST && stat(path, &about) == 0 && S_ISDIR(about.st_mode)))
        return EXIT_OK;
    return verb_error(&verb_export, EXIT_FAILED, "cannot create the folder %s: %s", path, strerror(errno));
}

/* DIR/FOLDER/NAMESUFFIX; the folder is made. */
static int write_file(const job *j, const char *folder, const char *name, const char *suffix, const text *t)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s", j->set->out, folder);
    if (length < 0 || (size_t)length + strlen(name) + strlen(suffix) + 2 > sizeof path)
        return verb_error(&verb_export, EXIT_FAILED, "the name of the folder %s is too long", j->set->out);
    int code = make_folder(path);
    if (code != EXIT_OK)
        return code;
    snprintf(path + length, sizeof path - (size_t)length, "/%s%s", name, suffix);
    FILE *file = fopen(path, "w");
    bool written = file != NULL && fwrite(t->bytes, 1, t->length, file) == t->length;
    if (file != NULL && fclose(file) != 0)
        written = false;
    if (written)
        return EXIT_OK;
    int cause = errno;
    if (file != NULL) /* half a file is worse than none */
        remove(path);
    return verb_error(&verb_export, EXIT_FAILED, "cannot write %s: %s", path, strerror(cause));
}

static int write_library(const job *j)
{
    text properties = {0}, json = {0};
    write_arduino_properties(&properties, &j->opts);
    write_platformio_json(&json, &j->opts);
    int code = properties.failed || json.failed ? verb_error(&verb_export, EXIT_FAILED, "out of memory")
                                                : write_file(j, ".", "library", ".properties", &properties);
    if (code == EXIT_OK)
        code = write_file(j, ".", "library", ".json", &json);
    text_free(&properties);
    text_free(&json);
    return code;
}

static int write_files(const job *j, const exported *e)
{
    bool library = j->set->layout == LAYOUT_ARDUINO;
    const char *sources = library ? "src" : ".", *extras = library ? "extras" : ".";
    int code = make_folder(j->set->out);
    if (code == EXIT_OK && library)
        code = write_library(j);
    if (code == EXIT_OK)
        code = write_file(j, sources, j->name, ".c", &e->source);
    if (code == EXIT_OK)
        code = write_file(j, sources, j->name, ".h", &e->header);
    if (code == EXIT_OK)
        code = write_file(j, extras, j->name, "_test.c", &e->test);
    return code == EXIT_OK ? write_file(j, extras, j->name, ".md", &e->page) : code;
}

/* A model may have several outputs; the header has a function for one. */
static void tell_left_out(const job *j)
{
    const mica_onnx *model = onnx_of(j->net);
    mica_onnx_value out;
    for (int i = 0; model != NULL && !j->set->shared.quiet && i < mica_onnx_outputs(model); i++)
        if (mica_onnx_output(model, &out, i) == MICA_OK && i == 0 && mica_onnx_outputs(model) > 1)
            fprintf(stderr,
                    "mica export: %s_output() is the model's first output, \"%s\"; not exported:", j->name,
                    out.name);
        else if (i > 0)
            fprintf(stderr, "%s \"%s\"%s", i > 1 ? "," : "", out.name,
                    i + 1 == mica_onnx_outputs(model) ? "\n" : "");
}

static void tell(const job *j, const exported *e)
{
    tell_left_out(j);
    bool library = j->set->layout == LAYOUT_ARDUINO;
    const char *sources = library ? "src/" : "", *extras = library ? "extras/" : "";
    if (j->set->shared.json) {
        printf(
            "{\"name\": \"%s\", \"ram\": %zu, \"flash\": %zu, \"files\": [\"%s%s.c\", \"%s%s.h\", \"%s%s_test.c\", "
            "\"%s%s.md\"]}\n",
            j->name, e->ram, e->flash, sources, j->name, sources, j->name, extras, j->name, extras, j->name);
        return;
    }
    if (j->set->shared.quiet)
        return;
    printf("%s/%s%s.c: %s bytes of RAM, %s of weights in flash\n", j->set->out, sources, j->name,
           count_text((double)e->ram).text, count_text((double)e->flash).text);
    printf("check it: cc -std=c99 -O2 %s%s%s%s/%s%s.c %s/%s%s_test.c -o /tmp/%s_test && /tmp/%s_test\n",
           library ? "-I" : "", library ? j->set->out : "", library ? "/src " : "", j->set->out, sources,
           j->name, j->set->out, extras, j->name, j->name, j->name);
}

/* --int8: DIR/NAME.safetensors is what is exported then. */
static int quantize(job *j)
{
    const settings *set = j->set;
    if (j->weights[0] == '\0' && !j->is_model)
        return verb_error(&verb_export, EXIT_FILE,
                          "--int8 is for checkpoints and ONNX models: %s has no trained weights to quantize",
                          j->what);
    int8_settings with = {.shared = &set->shared,
                          .ranges = set->ranges,
                          .table = set->table,
                          .set = &set->set,
                          .learns = set->train,
                          .freeze = &set->freeze,
                          .silent = set->shared.json || set->shared.quiet};
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s.safetensors", set->out, j->name);
    if (length < 0 || (size_t)length >= sizeof path)
        return verb_error(&verb_export, EXIT_FAILED, "the name of the folder %s is too long", set->out);
    int code = make_folder(set->out);
    if (code == EXIT_OK)
        code = quantize_int8(&verb_export, j->ctx, &with, j->is_model ? j->what : j->weights, path);
    if (code == EXIT_OK && !with.silent)
        printf("\n");
    memcpy(j->weights, path, sizeof path);
    j->what = j->weights;
    j->is_model = false; /* what follows is a checkpoint */
    return code;
}

static int export_saved(job *j, text *why)
{
    int code = build_nets(j);
    if (code == EXIT_OK)
        code = read_meaning(j);
    if (code == EXIT_OK)
        code = compile_within(j, why);
    if (code == EXIT_OK)
        code = set_weights(j, j->net);
    if (code == EXIT_OK)
        code = set_weights(j, j->check);
    if (code != EXIT_OK)
        return code;
    exported e;
    if (!export_net(&e, j->net, j->check, &j->opts, why))
        code = verb_error(&verb_export, EXIT_FAILED, "%s cannot be exported:\n%s", j->what,
                          why->bytes != NULL ? why->bytes : "");
    else
        code = write_files(j, &e);
    if (code == EXIT_OK)
        tell(j, &e);
    exported_free(&e);
    return code;
}

/* What goes with a net, and not with a model; and the other way round. */
static int check_model(const job *j)
{
    if (!j->is_model && j->set->int8 && j->set->set.count > 0)
        return usage_error(&verb_export, "--set does not go with --int8: the net is already trained");
    if (!j->is_model || !j->set->train)
        return EXIT_OK;
    return verb_error(
        &verb_export, EXIT_FILE,
        "%s is an ONNX model, which has no loss to train with: mica train %s --data DATA writes a "
        "checkpoint, and that can be exported with --train",
        j->what, j->what);
}

static int export_with(job *j, text *why)
{
    int code = check_model(j);
    if (code == EXIT_OK && j->set->int8)
        code = quantize(j);
    if (code != EXIT_OK)
        return code;
    code = export_saved(j, why);
    if (code != EXIT_OK && j->set->int8)
        quantize_int8_remove(j->weights); /* the quantized net alone is not what was asked for */
    return code;
}

static int check_settings(const settings *set)
{
    if (set->out == NULL)
        return usage_error(&verb_export, "where to? Use -o DIR");
    if (set->name != NULL && !is_identifier(set->name))
        return usage_error(&verb_export,
                           "--name %s: expected a C identifier of at most 48 letters, digits and _",
                           set->name);
    if (!set->int8 && int8_not_wanted(&set->ranges, &verb_export) != EXIT_OK)
        return EXIT_USAGE;
    if (set->int8 && set->train && set->freeze.count == 0)
        return usage_error(
            &verb_export,
            "--int8 --train needs --freeze PREFIX: frozen layers become int8, the others learn as floats");
    if (!set->train && (set->freeze.count > 0 || set->weight_decay != 0.0 || set->optimizer >= 0))
        return usage_error(&verb_export, "%s needs --train",
                           set->freeze.count > 0 ? "--freeze"
                           : set->optimizer >= 0 ? "--optimizer"
                                                 : "--weight-decay");
    return EXIT_OK;
}

static mica_optimizer optimizer_of(const settings *set)
{
    static const mica_optimizer_kind kinds[] = {MICA_SGD, MICA_SGD, MICA_ADAM, MICA_ADAMW};
    return (mica_optimizer){.kind = kinds[set->optimizer],
                            .momentum = set->optimizer == METHOD_MOMENTUM ? 0.9f : 0.0f,
                            .weight_decay = (float)set->weight_decay};
}

static void set_job(job *j, const settings *set, const char *what)
{
    j->set = set;
    j->what = what;
    j->optimizer = optimizer_of(set);
    if (mica_netfile_builtin(what) != NULL || !checkpoint_path(j->weights, sizeof j->weights, what) ||
        !is_safetensors(j->weights))
        j->weights[0] = '\0';
    j->is_model = mica_netfile_builtin(what) == NULL && is_onnx(what);
    if (set->name != NULL)
        snprintf(j->name, sizeof j->name, "%s", set->name);
    else
        take_name(j->name, 48, what);
    take_source(j->source, sizeof j->source, base_of(what));
    j->opts = (export_opts){.name = j->name,
                            .source = j->source,
                            .train = set->train,
                            .target = (export_target)set->target,
                            .optimizer = &j->optimizer,
                            .steps = TEST_STEPS};
}

static int run(int argc, char **argv)
{
    settings set = {.shared = SHARED_DEFAULTS,
                    .optimizer = -1,
                    .batch = -1,
                    .table = TABLE_DEFAULTS,
                    .ranges = INT8_RANGES_DEFAULTS};
    int given = options_read(&verb_export, &set, argc, argv);
    if (given < 0)
        return EXIT_USAGE;
    if (given != 1)
        return usage_error(&verb_export,
                           given == 0 ? "which net? Try: mica export lenet -o lenet-c" : "one net at a time");
    if (check_settings(&set) != EXIT_OK)
        return EXIT_USAGE;
    set.shared.threads = 1;
    set.optimizer = set.optimizer >= 0 ? set.optimizer : METHOD_MOMENTUM;
    job j = {.ctx = verb_context(&verb_export, &set.shared)};
    if (j.ctx == NULL)
        return EXIT_FAILED;
    text why = {0};
    set_job(&j, &set, argv[0]);
    int code = export_with(&j, &why);
    text_free(&why);
    mica_net_destroy(j.net);
    mica_net_destroy(j.check);
    if (j.saved.file != NULL)
        saved_close(j.ctx, &j.saved);
    mica_context_destroy(j.ctx);
    return code;
}

const verb verb_export = {
    .name = "export",
    .arguments = "NET -o DIR [OPTIONS]",
    .summary = "write a net as C for a microcontroller, training included",
    .details = details,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
    .shared = SHARED_JSON | SHARED_QUIET | SHARED_SEED,
    .examples =
        (const verb_example[]){
            {"export lenet-digits -o firmware", "a trained net, for inference"},
            {"export lenet-digits -o firmware --train --freeze conv", "whose last layers go on learning"},
            {"export lenet-digits -o firmware --int8 --data digits --target m4", "in int8, using SMLAD"},
            {"export model.onnx -o firmware --set sequence=16",
             "an ONNX model; sizes that it leaves open are fixed"},
            {"export my.net -o firmware --train --batch 4 --optimizer adam", "four samples in each step"},
            {NULL, NULL},
        },
};
