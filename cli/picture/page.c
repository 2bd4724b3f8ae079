/* The head and the foot of pages. */
#include "cli/picture/page.h"

#include <mica/mica.h>

#include "cli/picture/assets.h"
#include "cli/picture/text.h"

void page_begin(FILE *out, const char *title, const char *subtitle, const char *css)
{
    fputs(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "script-src 'unsafe-inline'; img-src data:\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
        out);
    put_text(out, title);
    fprintf(out, "</title>\n<style>\n%s%s%s%s</style>\n</head>\n<body>\n<main>\n<h1>", asset_colours_css,
            asset_plan_css, asset_page_css, css != NULL ? css : "");
    put_text(out, title);
    fputs("</h1>\n", out);
    if (subtitle != NULL) {
        fputs("<p class=\"lead\">", out);
        put_text(out, subtitle);
        fputs("</p>\n", out);
    }
}

bool page_end(FILE *out)
{
    fprintf(
        out,
        "<footer>Written by mica %s. This page is self-contained and makes no network requests.</footer>\n",
        mica_version());
    fputs("</main>\n</body>\n</html>\n", out);
    return fflush(out) == 0 && !ferror(out);
}

void put_tile(FILE *out, const char *number, const char *what)
{
    fputs("<li><b>", out);
    put_text(out, number);
    fputs("</b><span>", out);
    put_text(out, what);
    fputs("</span></li>\n", out);
}
