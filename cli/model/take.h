/* Memory for the tool itself, which ends where there is none. */
#ifndef MICA_CLI_MODEL_TAKE_H
#define MICA_CLI_MODEL_TAKE_H

#include <stdbool.h>
#include <stddef.h>

#include <mica/net.h>

/* Zeroed; to be given to free(). */
void *take(size_t count, size_t size);
/* A copy of a string. */
char *take_text(const char *text);
/* A list with room for one more than `count` elements of this size: the list itself, or a longer one that its elements
 * were moved to. *room is how many it has room for, 0 for a list that is NULL. */
void *take_more(void *list, size_t count, size_t *room, size_t size);
/* Makes *text a copy that lives as long as the net; NULL stays NULL. False, with the net's error set: no memory. */
bool take_into_net(mica_net *net, const char **text);

#endif
