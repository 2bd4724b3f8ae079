/* Pages as files. */
#ifndef MICA_CLI_MODEL_PAGE_FILE_H
#define MICA_CLI_MODEL_PAGE_FILE_H

#include <stdio.h>

#include "cli/verb.h"

/* Writes what `write` puts out to a file, and says so ("wrote   page.html") unless `quietly`. NULL as the path: nothing
 * is wanted. Else says what is wrong, and returns what the program ends with. */
int page_file(const verb *v, const char *path, bool quietly, bool (*write)(FILE *, const void *),
              const void *what);

#endif
