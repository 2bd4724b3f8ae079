#include "cli/picture/plan_picture.h"

#include "cli/picture/text.h"

bool plan_picture_svg(FILE *out, const plan_picture *picture)
{
    (void)picture;
    return fflush(out) == 0 && !ferror(out);
}

bool plan_picture_html(FILE *out, const plan_picture *picture)
{
    (void)picture;
    return fflush(out) == 0 && !ferror(out);
}
