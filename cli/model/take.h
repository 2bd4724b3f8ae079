/* Memory for the tool itself, which ends where there is none. */
#ifndef MICA_CLI_MODEL_TAKE_H
#define MICA_CLI_MODEL_TAKE_H

#include <stddef.h>

/* Zeroed; to be given to free(). */
void *take(size_t count, size_t size);
/* A copy of a string. */
char *take_text(const char *text);

#endif
