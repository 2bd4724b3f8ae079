/* mica export: a net as C files that need no library. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <mica/checkpoint.h>
#include <mica/mica.h>

#include "cli/model/saved.h"
#include "cli/net/argument.h"
#include "cli/picture/text.h"
#include "export/export.h"

#define TEST_STEPS 50

typedef struct settings {
    shared_settings shared;
    option_list set, freeze;
    const char *out, *name;
    bool train;
    int64_t batch;
    int optimizer;
    double weight_decay;
    size_t budget;
} settings;

enum { METHOD_SGD, METHOD_MOMENTUM, METHOD_ADAM, METHOD_ADAMW };
static const char *const methods[] = {"sgd", "momentum", "adam", "adamw", NULL};

static const verb_option options[] = {
    {.name = "--out",
     OPTION_TEXT,
     offsetof(settings, out),
     "DIR",
     "folder to write to, made if need be",
     .letter = "o"},
    {.name = "--name",
     OPTION_TEXT,
     offsetof(settings, name),
     "NAME",
     "name of the files, and what all their names begin with (that of the net)"},
    {.name = "--train",
     OPTION_FLAG,
     offsetof(settings, train),
     NULL,
     "also a training step, so that the net can go on learning"},
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
     "with --train: parameters whose names begin so stay as they are, in flash"},
    {.name = "--batch",
     OPTION_COUNT,
     offsetof(settings, batch),
     "N",
     "samples of a run or step (1)",
     .least = 1,
     .most = 4096},
    {.name = "--budget",
     OPTION_BYTES,
     offsetof(settings, budget),
     "BYTES",
     "RAM without the stack: fit into this, by computing activations again"},
    NET_SET_OPTION(settings),
};

static const char details[] = NET_HELP
    "\n"
    "Writes NAME.c and NAME.h, C99 that needs no library; NAME_test.c, a program that checks them against\n"
    "what the net did here; and NAME.md, which shows the plan of its memory.\n"
    "\n"
    "Weights stay in flash; all other memory is one block, static or the caller's. With --train what is\n"
    "learned moves to RAM. A batch is run sample by sample where no operation mixes them, so that it takes\n"
    "no more memory than one. A net without a checkpoint gets fresh weights (--seed).\n"
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

/* What is exported, and the net of the whole batch, whose results the test compares with. */
typedef struct job {
    const settings *set;
    mica_context *ctx;
    const char *what;
    char weights[4096]; /* a checkpoint; "": none */
    char name[64];
    mica_optimizer optimizer;
    mica_net *net, *check;
    mica_netfile_info info;
    export_opts opts;
} job;

static int compile(job *j, mica_net *net, size_t budget)
{
    for (size_t i = 0; i < j->set->freeze.count; i++)
        if (mica_net_freeze(net, j->set->freeze.item[i], true) != MICA_OK)
            return verb_failed(&verb_export, j->ctx);
    mica_compile_opts opts = {
        .train = j->set->train, .optimizer = j->set->train ? &j->optimizer : NULL, .budget = budget};
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
    mica_index batch = (mica_index)j->set->batch;
    mica_netfile_opts opts = {.batch = batch, .inference = !j->set->train};
    int code = net_build(&j->check, &j->info, &verb_export, j->ctx, j->what, &j->set->set, &opts);
    if (code == EXIT_OK)
        code = compile(j, j->check, 0);
    if (code != EXIT_OK)
        return code;
    bool apart = batch > 1 && !mica_net_keeps_states(j->check) && mica_net_samples_apart(j->check);
    opts.batch = apart ? 1 : batch;
    j->opts.samples = apart ? (int)batch : 1;
    j->opts.batch = (int)opts.batch;
    mica_netfile_info info;
    if (mica_net_create(j->ctx, &j->net) != MICA_OK ||
        mica_netfile_build(j->net, &info, j->info.text, &opts) != MICA_OK)
        return verb_failed(&verb_export, j->ctx);
    j->opts.output = info.output;
    return EXIT_OK;
}

/* ---- The budget ---- */

/* Compiles with less and less memory for the library's own plan, which then computes more again, until the exported one
 * fits. */
static int compile_within(job *j, text *why)
{
    size_t ram = 0, best = SIZE_MAX, given = 0;
    for (int tries = 0; tries < 40; tries++) {
        int code = EXIT_OK;
        if (given > 0 &&
            mica_net_compile(j->net, &(mica_compile_opts){.train = j->set->train,
                                                          .optimizer = j->set->train ? &j->optimizer : NULL,
                                                          .budget = given}) != MICA_OK)
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

static int write_file(const job *j, const char *suffix, const text *t)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s%s", j->set->out, j->name, suffix);
    FILE *file = length > 0 && (size_t)length < sizeof path ? fopen(path, "w") : NULL;
    bool written = file != NULL && fwrite(t->bytes, 1, t->length, file) == t->length;
    if (file != NULL && fclose(file) != 0)
        written = false;
    return written ? EXIT_OK
                   : verb_error(&verb_export, EXIT_FAILED, "cannot write %s: %s", path, strerror(errno));
}

static int write_files(const job *j, const exported *e)
{
    struct stat about;
    if (mkdir(j->set->out, 0777) != 0 &&
        (errno != EEXIST || stat(j->set->out, &about) != 0 || !S_ISDIR(about.st_mode)))
        return verb_error(&verb_export, EXIT_FAILED, "cannot make the folder %s: %s", j->set->out,
                          strerror(errno));
    int code = write_file(j, ".c", &e->source);
    if (code == EXIT_OK)
        code = write_file(j, ".h", &e->header);
    if (code == EXIT_OK)
        code = write_file(j, "_test.c", &e->test);
    return code == EXIT_OK ? write_file(j, ".md", &e->page) : code;
}

static void tell(const job *j, const exported *e)
{
    if (j->set->shared.json) {
        printf(
            "{\"name\": \"%s\", \"ram\": %zu, \"flash\": %zu, \"files\": [\"%s.c\", \"%s.h\", \"%s_test.c\", \"%s.md\"]}\n",
            j->name, e->ram, e->flash, j->name, j->name, j->name, j->name);
        return;
    }
    if (j->set->shared.quiet)
        return;
    printf("%s/%s.c: %s bytes of RAM, %s of weights in flash\n", j->set->out, j->name,
           count_text((double)e->ram).text, count_text((double)e->flash).text);
    printf("check it: cc -std=c99 -O2 %s/%s.c %s/%s_test.c -o /tmp/%s_test && /tmp/%s_test\n", j->set->out,
           j->name, j->set->out, j->name, j->name, j->name);
}

static int export_with(job *j, text *why)
{
    int code = build_nets(j);
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

static int check_settings(const settings *set)
{
    if (set->out == NULL)
        return usage_error(&verb_export, "where to? -o DIR");
    if (set->name != NULL && !is_identifier(set->name))
        return usage_error(&verb_export,
                           "--name %s: expected a name of C, of at most 48 letters, digits and _", set->name);
    if (!set->train && (set->freeze.count > 0 || set->weight_decay != 0.0))
        return usage_error(&verb_export, "%s is about training: --train",
                           set->freeze.count > 0 ? "--freeze" : "--weight-decay");
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
    if (set->name != NULL)
        snprintf(j->name, sizeof j->name, "%s", set->name);
    else
        take_name(j->name, 48, what);
    j->opts = (export_opts){.name = j->name,
                            .source = strstr(base_of(what), "*/") == NULL ? base_of(what) : "a net",
                            .train = set->train,
                            .optimizer = &j->optimizer,
                            .steps = TEST_STEPS};
}

static int run(int argc, char **argv)
{
    settings set = {.shared = SHARED_DEFAULTS, .optimizer = METHOD_MOMENTUM, .batch = 1};
    int given = options_read(&verb_export, &set, argc, argv);
    if (given < 0)
        return EXIT_USAGE;
    if (given != 1)
        return usage_error(&verb_export,
                           given == 0 ? "which net? Try: mica export lenet -o lenet-c" : "one net at a time");
    if (check_settings(&set) != EXIT_OK)
        return EXIT_USAGE;
    set.shared.threads = 1;
    job j = {.ctx = verb_context(&verb_export, &set.shared)};
    if (j.ctx == NULL)
        return EXIT_FAILED;
    text why = {0};
    set_job(&j, &set, argv[0]);
    int code = export_with(&j, &why);
    text_free(&why);
    mica_net_destroy(j.net);
    mica_net_destroy(j.check);
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
            {"export my.net -o firmware --train --batch 4 --optimizer adam", "four samples in each step"},
            {NULL, NULL},
        },
};
