/* mica run with a checkpoint: what is open while it runs, and its parts. */
#ifndef MICA_CLI_MODEL_PREDICTION_H
#define MICA_CLI_MODEL_PREDICTION_H

#include <stdio.h>

#include "cli/model/images.h"
#include "cli/model/saved.h"

typedef struct prediction_settings {
    shared_settings shared;
    table_settings table;
    int64_t top; /* -1: not given */
    int64_t batch;
    bool invert;
    const char *id;
    int prepare; /* PREPARE_YES or PREPARE_NO */
} prediction_settings;

typedef struct prediction {
    mica_context *ctx;
    const prediction_settings *set;
    saved saved;
    mica_net *net;
    mica_netfile_info info;
    mica_dataset inputs;
    mica_text text;
    char *bytes; /* of stdin */
    size_t byte_count;
    float *picture; /* fitted to the net's input */
    bool is_text, is_picture;
    image_list images; /* whose samples are in `inputs`, if it has paths */
    char **ids;        /* of the rows of a table, [inputs.count] */
    FILE *to;          /* where answers are printed */
} prediction;

/* All of stdin into p->bytes, on every rank. */
int prediction_read_stdin(prediction *p);
/* The inputs, from these files or, with is_stdin, from p->bytes; into p->text for a text net, else into p->inputs. */
int prediction_open_inputs(prediction *p, char **inputs, int count, bool is_stdin);

/* Runs the net over p->inputs, batch by batch, and prints the answers in the order of the inputs. */
int prediction_run_samples(prediction *p);
/* The next token of p->text. */
int prediction_run_text(prediction *p);

#endif
