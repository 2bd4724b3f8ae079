/* What the classes of a net are called. */
#ifndef MICA_CLI_MODEL_NAMES_H
#define MICA_CLI_MODEL_NAMES_H

#include "cli/model/saved.h"

typedef struct class_names {
    const char *const
        *list; /* [count]; NULL: their numbers. May be fewer than there are classes: see class_text */
    int count;
} class_names;

/* Of a net that says yes or no: "no" and "yes", unless the data have names for them. */
class_names class_names_of(const meaning *m, const mica_netfile_info *info);

#endif
