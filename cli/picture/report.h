/* A page about a training run, complete in one file. Whoever trains fills in what it knows; what is empty is
 * left out.
 *
 *     report r = {.title = "lenet on digits", .plan = mica_net_plan(net), .train_loss = {steps, losses, count}};
 *     ok = report_write(file, &r);
 *
 * Text in it may come from files: whatever it holds, it is shown, and never read as markup. */
#ifndef MICA_CLI_PICTURE_REPORT_H
#define MICA_CLI_PICTURE_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <mica/net.h>

typedef struct report_setting {
    const char *name, *value; /* "seed", "42" */
} report_setting;

/* Points (x[i], y[i]), x rising: epochs, in parts where it is finer (1.5 is half way through the second). A y that is
 * not finite is a gap. */
typedef struct report_curve {
    const double *x, *y;
    size_t count;
} report_curve;

/* A sample that the net took for something else. */
typedef struct report_mistake {
    size_t number; /* in its set */
    int label, prediction;
    double probability;          /* that it gave the prediction */
    double label_probability;    /* that it gave the label */
    const unsigned char *pixels; /* [height][width][channels], 0 is black; NULL: no picture */
    int width, height, channels; /* 1 or 3 channels */
} report_mistake;

/* A picture of the training samples. Pixels as above. */
typedef struct report_sample {
    int label; /* -1: none */
    const unsigned char *pixels;
    const unsigned char *changed[3]; /* [changed_count]: what augmentation made of it */
    size_t changed_count;
    int width, height, channels;
} report_sample;

/* A target's true value, the net's prediction and the baseline's: NaN where that is not known. */
typedef struct report_pair {
    double truth, said, baseline;
} report_pair;

/* A number that a regression says of every sample. */
typedef struct report_target {
    const char *name;         /* NULL: none */
    const report_pair *pairs; /* [count], each so many behind the one before */
    size_t count, stride;
} report_target;

/* A series, in the order of time. */
typedef struct report_forecast {
    const char *name, *baseline_name;
    const report_pair *pairs;
    size_t count, stride;
} report_forecast;

/* What is lost when a column of the table is shuffled. */
typedef struct report_column {
    const char *name;
    double drop;
} report_column;

typedef struct report_layer {
    const char *name, *kind;
    double forward, backward; /* seconds in a step */
} report_layer;

typedef struct report {
    const char *title;    /* "lenet on digits" */
    const char *subtitle; /* "97.8 % of 2,000 test samples after 3 epochs"; NULL: none */
    const char *command;  /* that repeats the run; NULL: not said */
    const report_setting *settings;
    size_t setting_count;
    const char *net;     /* the net's text; NULL: not shown */
    const char *summary; /* as of mica_net_summary; NULL: not shown */

    report_curve train_loss, validation_loss;
    report_curve train_accuracy, validation_accuracy; /* 0 to 1 */
    report_curve train_rmse, validation_rmse;
    report_curve learning_rate;

    int classes;                    /* of the confusion matrix; 0: none */
    const char *const *class_names; /* [classes]; NULL: their numbers */
    const uint64_t *confusion;      /* [classes (label)][classes (prediction)] */
    const report_mistake *mistakes; /* the worst first */
    size_t mistake_count;

    const report_sample *samples;
    size_t sample_count;
    const report_setting
        *scores; /* numbers that matter, with what they are: "RMSE of 44 test samples", "54.1" */
    size_t score_count;
    const report_target *targets; /* of a regression */
    size_t target_count;
    report_forecast forecast;     /* count 0: none */
    const report_column *columns; /* the most important first */
    size_t column_count;
    const char *importance_of; /* what is lost: "the accuracy falls" */
    bool importance_share;     /* it is of 1, and shown in percent */
    const char *const *texts;  /* that the net has written */
    size_t text_count;

    const report_layer *layers; /* in the order of the net */
    size_t layer_count;

    const mica_plan *plan; /* NULL: none */
    uint64_t steps;        /* 0: not said, and so are the next two */
    uint64_t heap_calls;   /* during all those steps, of the whole process */
    double seconds;        /* that they took */
} report;

/* Returns false if it could not all be written. */
bool report_write(FILE *out, const report *r);

#endif
