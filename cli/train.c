/* mica train: the options; cli/model/ does the work. */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/model/take.h"
#include "cli/model/training.h"
#include "cli/net/argument.h"

#define FIELD(name) offsetof(train_settings, name)

static const verb_option options[] = {
    {.name = "--data", OPTION_TEXT, FIELD(data), "DATA", "what to learn (see below)"},
    {.name = "--label",
     OPTION_TEXT,
     FIELD(label),
     "COLUMN",
     "of a CSV: the label's column, by name or number; -1 is the last (-1)"},
    {.name = "--epochs",
     OPTION_COUNT,
     FIELD(epochs),
     "N",
     "times through the data (as many as 100,000 samples take)",
     .least = 1,
     .most = MOST_EPOCHS},
    {.name = "--batch",
     OPTION_COUNT,
     FIELD(batch),
     "N",
     "samples of a step (32; text 16)",
     .least = 1,
     .most = MOST_BATCH},
    {.name = "--optimizer",
     OPTION_CHOICE,
     FIELD(optimizer),
     "NAME",
     "how to learn (adamw)",
     .choices = optimizer_names},
    {.name = "--lr",
     OPTION_NUMBER,
     FIELD(lr),
     "X",
     "the highest learning rate (by the optimizer; adamw 0.002)"},
    {.name = "--schedule",
     OPTION_CHOICE,
     FIELD(schedule),
     "NAME",
     "how the learning rate goes down (cosine)",
     .choices = schedule_names},
    {.name = "--warmup",
     OPTION_COUNT,
     FIELD(warmup),
     "N",
     "steps in which it first goes up (0; text 50)",
     .most = MOST_WARMUP},
    {.name = "--weight-decay",
     OPTION_NUMBER,
     FIELD(weight_decay),
     "X",
     "pull of the weights to 0 (adamw 0.01; text 0.1)"},
    {.name = "--momentum", OPTION_NUMBER, FIELD(momentum), "X", "of sgd and rmsprop (sgd 0.9)"},
    {.name = "--clip", OPTION_NUMBER, FIELD(clip), "X", "the largest norm of the gradients (none; text 1)"},
    {.name = "--patience",
     OPTION_COUNT,
     FIELD(patience),
     "N",
     "stop after N epochs without a better validation loss",
     .most = INT32_MAX},
    {.name = "--validation",
     OPTION_NUMBER,
     FIELD(validation),
     "SHARE",
     "of the training data that is held back (0.1)"},
    {.name = "--budget", OPTION_BYTES, FIELD(budget), "BYTES", "memory that it all may take: 2MiB, say"},
    {.name = "--keep-cheap",
     OPTION_FLAG,
     FIELD(keep_cheap),
     NULL,
     "keep what costs next to nothing to compute again for the backward"},
    NET_SET_OPTION(train_settings),
    {.name = "--checkpoint",
     OPTION_TEXT,
     FIELD(checkpoint),
     "DIR",
     "where the trained net goes (./NET-DATA)"},
    {.name = "--resume",
     OPTION_FLAG,
     FIELD(resume),
     NULL,
     "go on from there; the same losses as if it never stopped"},
    {.name = "--overwrite", OPTION_FLAG, FIELD(overwrite), NULL, "start anew where a trained net is already"},
    {.name = "--report", OPTION_TEXT, FIELD(report), "FILE.html", "write a page about the training"},
    {.name = "--trace",
     OPTION_TEXT,
     FIELD(trace),
     "FILE.json",
     "write what some steps did, for ui.perfetto.dev"},
};

static const char details[] = NET_HELP
    "\n" DATA_HELP
    "\n"
    "A tenth of the training data is held back for validation, and where the data have no test\n"
    "part of their own, another tenth for the test at the end. Inputs are normalized by the mean\n"
    "and deviation of the training part. DIR/" CHECKPOINT_NAME
    " gets the weights, the optimizer's\n"
    "state and all that eval, run, generate and info want to know, after every epoch and when\n"
    "Ctrl-C stops the training; a second Ctrl-C ends it at once.\n"
    "\n"
    "Prints the course of the loss, the score, the bytes that were planned, and how many heap\n"
    "calls the whole process made in its steps. With --json: a line for each step and epoch.";

static const verb_example examples[] = {
    {"train lenet --data digits", "learns to read digits, into ./lenet-digits"},
    {"train resnet-small --data fashion-mnist --epochs 10 --report report.html",
     "and writes a page about it"},
    {"train mlp --data iris.csv --label species", "a table, with the names of the classes in a column"},
    {"train gpt-tiny --data shakespeare.txt --budget 20MiB", "a text, in no more memory than this"},
    {"train --checkpoint lenet-digits --resume", "goes on where it was stopped"},
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
            return usage_error(&verb_train, "%s takes a number up to %g", numbers[i].name, (double)FLT_MAX);
    if ((float)s->lr == 0)
        return usage_error(&verb_train, "--lr takes a number above 0");
    if (s->validation > MOST_SHARE)
        return usage_error(&verb_train, "--validation takes a share up to %g", MOST_SHARE);
    return EXIT_OK;
}

static int run(int argc, char **argv)
{
    training *t = take(1, sizeof *t);
    t->v = &verb_train;
    t->settings = (train_settings){.shared = SHARED_DEFAULTS,
                                   .epochs = -1,
                                   .batch = -1,
                                   .warmup = -1,
                                   .patience = -1,
                                   .optimizer = -1,
                                   .schedule = -1,
                                   .lr = -1,
                                   .weight_decay = -1,
                                   .momentum = -1,
                                   .clip = -1,
                                   .validation = -1};
    int count = options_read(&verb_train, &t->settings, argc, argv);
    int code = count < 0   ? EXIT_USAGE
               : count > 1 ? usage_error(&verb_train, "one net at a time, not also \"%s\"", argv[1])
                           : EXIT_OK;
    if (code == EXIT_OK)
        code = check_settings(&t->settings);
    if (code == EXIT_OK) {
        t->settings.net = count == 1 ? argv[0] : NULL;
        t->ctx = verb_context(&verb_train, &t->settings.shared);
        code = t->ctx == NULL ? EXIT_FAILED : training_open(t);
    }
    if (code == EXIT_OK)
        code = training_run(t);
    if (code == EXIT_OK)
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
    .summary = "trains a net, in memory planned before the first step",
    .details = details,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
    .shared = SHARED_QUIET | SHARED_JSON | SHARED_THREADS | SHARED_SEED,
    .examples = examples,
};
