/* What mica help prints, all of it from the tables of the verbs. */
#ifndef MICA_CLI_HELP_H
#define MICA_CLI_HELP_H

#include <stdio.h>

#include "cli/verb.h"

extern const verb *const all_verbs[];
extern const size_t all_verb_count;

/* The options that several verbs share: those of `v` if SHARED_... of it is set. */
typedef struct shared_option {
    unsigned flag;
    verb_option option; /* its offset is that within shared_settings */
} shared_option;
extern const shared_option shared_options[];
extern const size_t shared_option_count;

const verb *verb_find(const char *name);
int unknown_verb(const char *name);
/* For mica help NAME: where it is neither a verb nor anything else that there is help for. */
int unknown_topic(const char *name);
/* A built-in net; false: there is none of this name. */
bool help_net(FILE *out, const char *name);

void help_summary(FILE *out);
void help_verb(FILE *out, const verb *v);
/* Everything, a line each with fields between tabs: what man pages and completions are made of. */
void help_table(FILE *out);

#endif
