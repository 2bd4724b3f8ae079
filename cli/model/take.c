#include "cli/model/take.h"

#include <stdlib.h>
#include <string.h>

#include "cli/ranks.h"
#include "net/net.h"

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

void *take_more(void *list, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return list;
    size_t wider = *room > 0 ? 2 * *room : 64;
    void *more = take(wider, size);
    if (count > 0)
        memcpy(more, list, count * size);
    free(list);
    *room = wider;
    return more;
}

bool take_into_net(mica_net *net, const char **text)
{
    if (*text == NULL)
        return true;
    size_t bytes = strlen(*text) + 1;
    char *copy = mica_net_memory(net, bytes);
    if (copy != NULL)
        memcpy(copy, *text, bytes);
    *text = copy;
    return copy != NULL;
}
