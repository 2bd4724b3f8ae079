/* What a net says of an input, for people or as JSON: a line each. */
#ifndef MICA_CLI_MODEL_ANSWER_H
#define MICA_CLI_MODEL_ANSWER_H

#include <stdio.h>

#include "cli/model/saved.h"

typedef struct answer_style {
    FILE *to;
    bool json;
    int64_t top; /* how many classes of each */
    mica_context *ctx;
    const mica_netfile_info *info;
    const meaning *meaning;
    char *const
        *paths; /* what inputs are called, such as the files of images; NULL: they go by their number */
    const char *path_key; /* and what that is called in JSON; NULL: "file" */
} answer_style;

/* The row [count] of outputs for the input of this number; scratch [count] is written over. */
void answer_row(const answer_style *a, mica_index number, const float *row, mica_index count, float *scratch);

#endif
