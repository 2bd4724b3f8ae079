/* Pages as files. */
#include "cli/model/page_file.h"

#include <errno.h>
#include <string.h>

#include "cli/picture/text.h"

int page_file(const verb *v, const char *path, bool quietly, bool (*write)(FILE *, const void *),
              const void *what)
{
    if (path == NULL)
        return EXIT_OK;
    FILE *out = fopen(path, "w");
    if (out == NULL)
        return verb_error(v, EXIT_FAILED, "cannot write %s: %s", path, strerror(errno));
    bool ok = write(out, what);
    if (fclose(out) != 0 || !ok)
        return verb_error(v, EXIT_FAILED, "cannot write %s: %s", path, strerror(errno));
    if (!quietly) {
        printf("wrote   ");
        put_plain(stdout, path);
        printf("\n");
    }
    return EXIT_OK;
}
