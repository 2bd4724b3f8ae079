/* What the classes of a net are called, and how likely it takes each to be. */
#ifndef MICA_CLI_MODEL_NAMES_H
#define MICA_CLI_MODEL_NAMES_H

#include "cli/model/saved.h"

typedef struct name_list {
    const char *const
        *list; /* [count]; NULL: their numbers. May be fewer than there are classes: see class_text */
    int count;
} name_list;

/* Of a net that says yes or no: "no" and "yes", unless the data have other names for them than 0 and 1. */
name_list class_names_of(const meaning *m, const mica_netfile_info *info);

/* The name of a class for people, printable; its number where it has no name. In text[size], which is returned. */
const char *class_text(char *text, size_t size, const char *const *names, int count, int class);

/* Probabilities of a row of outputs: softmax or sigmoid of logits, or as they are. */
void probabilities(float *out, const float *row, mica_index count, const mica_netfile_info *info);

#endif
