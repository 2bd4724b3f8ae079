/* A folder for the files of one test. */
#ifndef MICA_TESTS_SCRATCH_H
#define MICA_TESTS_SCRATCH_H

#include <stddef.h>

typedef struct scratch {
    char folder[200];
    char path[300]; /* of the last file asked for */
} scratch;

scratch scratch_make(void);
void scratch_remove(scratch *s); /* with all files in it */

/* folder/name; valid until the next one. */
const char *scratch_path(scratch *s, const char *name);

/* Files of the folder. */
int scratch_count(const scratch *s);

/* Whole files; 0 bytes and NULL if there is none. What is read must be freed. */
void scratch_write(const char *path, const void *bytes, size_t count);
unsigned char *scratch_read(const char *path, size_t *count);

#endif
