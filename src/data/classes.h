/* Class names, collected while a folder is read. */
#ifndef MICA_SRC_DATA_CLASSES_H
#define MICA_SRC_DATA_CLASSES_H

#include <mica/data.h>

#include "base/context.h"

#define MICA_MOST_CLASSES     1024
#define MICA_CLASS_TEXT_BYTES ((size_t)1 << 16) /* of all names together */

/* Names in the order of their bytes. */
typedef struct mica_classes {
    int count;
    size_t used;
    uint32_t start[MICA_MOST_CLASSES]; /* of each name in text, where a zero byte ends it */
    char text[MICA_CLASS_TEXT_BYTES];
} mica_classes;

/* Adds a name unless it is there. False: there is no room for it. */
bool mica_classes_add(mica_classes *classes, const char *name, size_t length);

/* Gives the set copies of the names, as its own. */
mica_status mica_classes_copy(mica_context *ctx, mica_dataset *set, const char *const *names, int count);

#endif
