/* Weights that a training starts from, those that it leaves as they are, and those of classes. */
#ifndef MICA_CLI_MODEL_TRAINING_WEIGHTS_H
#define MICA_CLI_MODEL_TRAINING_WEIGHTS_H

#include "cli/model/training.h"

#define NO_WEIGHTS "none" /* --weights none: fresh ones, also for the net of a checkpoint */

/* Opens what --weights names, where that is a checkpoint of ours; refuses a NET that is a checkpoint where nothing says
 * what is to become of its weights. */
int weights_open(training *t);

/* For the data: the classes or the vocabulary that the weights were trained on, where the data have no others. True:
 * they are in *opts, and the data should be loaded with them. */
bool weights_meaning(const training *t, data_opts *opts);

/* Before the net is compiled: freezes what --freeze names. */
int weights_freeze(training *t);

/* When it is initialized: loads what fits, and says what does not. */
int weights_load(training *t);

/* --balance and --class-weight, or the checkpoint's: sets t->class_weights, for a net that is built and whose feeds are
 * open. */
int classes_weigh(training *t);
/* Whether there are any. */
bool classes_weighed(const training *t);

/* The items of a list as lines, to be freed; NULL: there are none. And back: pointers into `lines`, which is changed
 * for that. */
char *list_lines(const option_list *list);
void list_of_lines(option_list *out, char *lines);

/* With --resume: whether an option that was given is what the checkpoint has. Else says so. */
int same_as_saved(const training *t, const char *option, const char *given, const char *before);

#endif
