#include "cli/picture/report.h"

#include "cli/picture/text.h"

bool report_write(FILE *out, const report *r)
{
    put_text(out, r->title);
    return fflush(out) == 0 && !ferror(out);
}
