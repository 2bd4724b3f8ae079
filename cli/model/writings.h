/* Texts that a net writes, to show what it has learned. */
#ifndef MICA_CLI_MODEL_WRITINGS_H
#define MICA_CLI_MODEL_WRITINGS_H

#include "cli/model/saved.h"

#define WRITINGS       3   /* texts, */
#define WRITING_TOKENS 240 /* each so long */

typedef struct writings {
    char *texts[WRITINGS];
    size_t count;
} writings;

/* As mica generate would, with a seed of its own for each. Of a net that is none for text: nothing. The checkpoint is
 * read again, so that the net which is being trained stays as it is. `out` is to be freed in any case. */
int writings_make(writings *out, const verb *v, mica_context *ctx, const saved *s, uint64_t seed);
/* The same of the checkpoint at a path. */
int writings_of(writings *out, const verb *v, mica_context *ctx, const char *path, uint64_t seed);
void writings_free(writings *w);

#endif
