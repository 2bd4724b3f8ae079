#include "cli/model/take.h"

#include <stdlib.h>
#include <string.h>

#include "cli/ranks.h"

void *take(size_t count, size_t size)
{
    void *block = calloc(count > 0 ? count : 1, size > 0 ? size : 1);
    if (block == NULL)
        exit(ranks_abort(verb_error(NULL, EXIT_FAILED, "out of memory: cannot allocate %zu times %zu bytes",
                                    count, size)));
    return block;
}

char *take_text(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(take(size, 1), text, size);
}
