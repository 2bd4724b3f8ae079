/* mica train: the options; cli/model/ does the work. */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/model/sounds.h"
#include "cli/model/augment.h"
#include "cli/model/tables.h"
#include "cli/model/take.h"
#include "cli/model/training.h"
#include "cli/net/argument.h"
#include "cli/ranks.h"

#define FIELD(name) offsetof(train_settings, name)

static const verb_option options[] = {
    {.name = "--data", OPTION_TEXT, FIELD(data), "DATA", "training data (see below)"},
    {.name = "--label",
     OPTION_TEXT,
     FIELD(table.label),
     "COLUMN",
     "table: the column to learn, by name or number, or several: a,b (the last)"},
    {.name = "--test",
     OPTION_TEXT,
     FIELD(test),
     "FILE",
     "table, or folder of images: for the test alone (a tenth of the data)"},
    {.name = "--task",
     OPTION_CHOICE,
     FIELD(table.task),
     "TASK",
     "table: what the column is (inferred, and told)",
     .choices = table_task_names},
    {.name = "--missing",
     OPTION_CHOICE,
     FIELD(table.missing),
     "HOW",
     "table: what stands for a missing value (mean, and an input that says so)",
     .choices = table_missing_names},
    {.name = "--ignore", OPTION_LIST, FIELD(table.ignore), "COLUMN", "table: a column to leave out"},
    {.name = "--category",
     OPTION_LIST,
     FIELD(table.categories),
     "COLUMN",
     "table: numbers that are names, not amounts"},
    TABLE_READING_OPTIONS(train_settings),
    {.name = "--window",
     OPTION_COUNT,
     FIELD(table.window),
     "N",
     "series: forecast from so many rows",
     .least = 1,
     .most = MOST_WINDOW},
    {.name = "--horizon",
     OPTION_COUNT,
     FIELD(table.horizon),
     "N",
     "series: forecast so many rows (1)",
     .least = 1,
     .most = MOST_WINDOW},
    {.name = "--season",
     OPTION_COUNT,
     FIELD(table.season),
     "N",
     "series: rows of a season, for the baseline (detected)",
     .least = 1,
     .most = MOST_WINDOW},
    {.name = "--memory",
     OPTION_BYTES,
     FIELD(table.memory),
     "BYTES",
     "table: rows that take more are read in blocks, again each epoch (256MiB)"},
    {.name = "--features",
     OPTION_CHOICE,
     FIELD(features),
     "KIND",
     "WAV files: what the net takes (log-mel)",
     .choices = feature_names},
    {.name = "--rate",
     OPTION_COUNT,
     FIELD(rate),
     "HZ",
     "WAV files: the rate that they are resampled to (16000)",
     .least = MICA_SOUND_LEAST_RATE,
     .most = MICA_SOUND_MOST_RATE},
    {.name = "--seconds",
     OPTION_NUMBER,
     FIELD(seconds),
     "X",
     "WAV files: the length that they are cut or padded to (1)"},
    {.name = "--size", OPTION_TEXT, FIELD(size), "HxW", "images: their height and width (the net's input)"},
    {.name = "--colour", OPTION_FLAG, FIELD(colour), NULL, "images: in colour, whatever the net's input"},
    {.name = "--grey", OPTION_FLAG, FIELD(grey), NULL, "images: in greyscale, whatever the net's input"},
    {.name = "--augment",
     OPTION_TEXT,
     FIELD(augment),
     "LIST",
     "change pictures a little in every epoch (see below), such as flip,shift=2"},
    {.name = "--epochs",
     OPTION_COUNT,
     FIELD(epochs),
     "N",
     "passes over the data (enough for 100,000 samples)",
     .least = 1,
     .most = MOST_EPOCHS},
    {.name = "--batch",
     OPTION_COUNT,
     FIELD(batch),
     "N",
     "batch size (32; text 16)",
     .least = 1,
     .most = MOST_BATCH},
    {.name = "--optimizer",
     OPTION_CHOICE,
     FIELD(optimizer),
     "NAME",
     "optimizer (adamw)",
     .choices = optimizer_names},
    {.name = "--lr",
     OPTION_NUMBER,
     FIELD(lr),
     "X",
     "peak learning rate (depends on the optimizer; adamw 0.002)"},
    {.name = "--schedule",
     OPTION_CHOICE,
     FIELD(schedule),
     "NAME",
     "learning rate schedule (cosine)",
     .choices = schedule_names},
    {.name = "--warmup", OPTION_COUNT, FIELD(warmup), "N", "warm-up steps (0; text 50)", .most = MOST_WARMUP},
    {.name = "--weight-decay",
     OPTION_NUMBER,
     FIELD(weight_decay),
     "X",
     "weight decay (adamw 0.01; text 0.1; tables by their steps)"},
    {.name = "--momentum", OPTION_NUMBER, FIELD(momentum), "X", "momentum of sgd and rmsprop (sgd 0.9)"},
    {.name = "--clip", OPTION_NUMBER, FIELD(clip), "X", "clip the gradient norm to X (none; text 1)"},
    {.name = "--patience",
     OPTION_COUNT,
     FIELD(patience),
     "N",
     "stop early after N epochs without a better validation loss",
     .most = INT32_MAX},
    {.name = "--validation",
     OPTION_NUMBER,
     FIELD(validation),
     "SHARE",
     "share of the training data held out for validation (0.1)"},
    {.name = "--folds",
     OPTION_COUNT,
     FIELD(folds),
     "K",
     "k-fold cross-validation: train K times, score each net on the fold left out; saves none",
     .least = 2,
     .most = MICA_MOST_FOLDS},
    {.name = "--budget",
     OPTION_BYTES,
     FIELD(budget),
     "BYTES",
     "limit on the memory of training, such as 2MiB"},
    {.name = "--shares",
     OPTION_COUNT,
     FIELD(shares),
     "N",
     "cut batches into N shares, summed in a fixed order: the same bits for any number of ranks",
     .least = 1,
     .most = MOST_SHARES},
    {.name = "--shard",
     OPTION_FLAG,
     FIELD(shard),
     NULL,
     "under mpirun: each rank keeps its part of the optimizer's state"},
    {.name = "--keep-cheap",
     OPTION_FLAG,
     FIELD(keep_cheap),
     NULL,
     "keep activations even where recomputing them costs next to nothing"},
    {.name = "--parts",
     OPTION_FLAG,
     FIELD(parts),
     NULL,
     "run a batch in parts where that saves memory and costs next to no time"},
    NET_SET_OPTION(train_settings),
    {.name = "--weights",
     OPTION_TEXT,
     FIELD(weights),
     "FILE",
     "start from the weights of a checkpoint, its folder or a safetensors file; none: fresh ones"},
    {.name = "--freeze",
     OPTION_LIST,
     FIELD(freeze),
     "PREFIX",
     "leave parameters as they are whose names start with PREFIX; may be repeated"},
    {.name = "--balance",
     OPTION_FLAG,
     FIELD(balance),
     NULL,
     "weigh classes by the inverse of their frequency, so that rare ones count as much"},
    {.name = "--class-weight",
     OPTION_LIST,
     FIELD(class_weight),
     "NAME=W",
     "weigh the samples of a class by W in training; may be repeated"},
    {.name = "--checkpoint", OPTION_TEXT, FIELD(checkpoint), "DIR", "folder for the checkpoint (./NET-DATA)"},
    {.name = "--checkpoint-steps",
     OPTION_COUNT,
     FIELD(checkpoint_steps),
     "N",
     "also write it every N steps (0: after every epoch alone)",
     .most = MOST_CHECKPOINT_STEPS},
    {.name = "--resume",
     OPTION_FLAG,
     FIELD(resume),
     NULL,
     "continue from the checkpoint, with the same losses as an uninterrupted run"},
    {.name = "--overwrite", OPTION_FLAG, FIELD(overwrite), NULL, "replace an existing checkpoint"},
    {.name = "--where", OPTION_FLAG, FIELD(where), NULL, "print the path of the checkpoint, and stop"},
    {.name = "--report", OPTION_TEXT, FIELD(report), "FILE.html", "write a training report"},
    {.name = "--trace",
     OPTION_TEXT,
     FIELD(trace),
     "FILE.json",
     "write a trace of a few steps for ui.perfetto.dev"},
};

static const char details[] = NET_HELP
    "\n" DATA_HELP "\n" AUGMENT_HELP
    "\n"
    "A tenth of the training data is held out for validation, and if the data has no test set\n"
    "of its own, another tenth for the final test. Inputs are normalized by the mean and standard\n"
    "deviation of the training split. DIR/" CHECKPOINT_NAME
    " stores the weights,\n"
    "the optimizer state and everything that eval, run, generate and info need, after every epoch\n"
    "and when Ctrl-C stops training; a second Ctrl-C exits at once. In the end, the weights are those\n"
    "of the epoch with the least validation loss.\n"
    "\n"
    "Prints the loss curve, the score, the planned bytes and the number of heap calls the whole\n"
    "process made during its steps. --json prints a line per step and epoch.";

static const verb_example examples[] = {
    {"train lenet --data digits", "learn to read digits; saves to ./lenet-digits"},
    {"train resnet-small --data fashion-mnist --epochs 10 --report report.html", "also write a report"},
    {"train lenet --data animals --augment flip,shift=2",
     "a folder of pictures, a sub-folder for each class"},
    {"train mlp --data iris.csv --label species", "a table with class names in a column"},
    {"train keywords --data words", "spoken words: WAV files in words/yes, words/no, ..."},
    {"train mlp --data iris.csv --label species --folds 5", "how well that works, by cross-validation"},
    {"train gpt-tiny --data shakespeare.txt --budget 20MiB", "a text, within a memory budget"},
    {"train --checkpoint lenet-digits --resume", "continue an interrupted run"},
    {"train --weights lenet-digits --freeze conv --data letters.csv", "fine-tune on other data"},
    {"train gpt-tiny --data shakespeare.txt --shares 4", "under mpirun -np 1, 2 or 4: the same bits"},
    {NULL, NULL},
};

/* What the table of options cannot say. */
static int check_settings(const train_settings *s)
{
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"--lr", s->lr},
                   {"--weight-decay", s->weight_decay},
                   {"--momentum", s->momentum},
                   {"--clip", s->clip}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (numbers[i].value > (double)FLT_MAX)
            return usage_error(&verb_train, "%s takes a number of at most %g", numbers[i].name,
                               (double)FLT_MAX);
    if (s->table.horizon > 0 && s->table.window == 0)
        return usage_error(&verb_train, "--horizon goes with --window, the rows to forecast from");
    if ((float)s->lr == 0)
        return usage_error(&verb_train, "--lr takes a number above 0");
    if (s->validation > MOST_SHARE)
        return usage_error(&verb_train, "--validation takes a share of at most %g", MOST_SHARE);
    return EXIT_OK;
}

static int run(int argc, char **argv)
{
    training *t = take(1, sizeof *t);
    t->v = &verb_train;
    t->settings = (train_settings)TRAIN_DEFAULTS;
    int count = options_read(&verb_train, &t->settings, argc, argv);
    int code = count < 0   ? EXIT_USAGE
               : count > 1 ? usage_error(&verb_train, "one net at a time; unexpected \"%s\"%s%s", argv[1],
                                         t->settings.data == NULL ? ". For data: --data " : "",
                                         t->settings.data == NULL ? argv[1] : "")
                           : EXIT_OK;
    if (code == EXIT_OK)
        code = check_settings(&t->settings);
    t->settings.net = count == 1 ? argv[0] : NULL;
    if (code == EXIT_OK && t->settings.folds > 0) {
        code = training_folds(&verb_train, &t->settings);
    } else if (code == EXIT_OK && t->settings.where) {
        code = training_where(t);
    } else if (code == EXIT_OK) {
        t->ctx = verb_context(&verb_train, &t->settings.shared);
        code = t->ctx == NULL ? EXIT_FAILED : training_open(t);
    }
    if (code == EXIT_OK && t->ctx != NULL && !t->ended)
        code = ranks_agree(training_run(t));
    if (code == EXIT_OK && t->ctx != NULL && !t->ended)
        code = training_finish(t);
    if (t->ctx != NULL) {
        training_close(t);
        mica_context_destroy(t->ctx);
    }
    free(t);
    return code;
}

const verb verb_train = {
    .name = "train",
    .arguments = "NET --data DATA [OPTIONS]",
    .summary = "train a net in memory planned before the first step",
    .details = details,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
    .shared = SHARED_QUIET | SHARED_JSON | SHARED_THREADS | SHARED_SEED | RANKED,
    .examples = examples,
};
