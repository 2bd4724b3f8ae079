/* What every page has around it. */
#ifndef MICA_CLI_PICTURE_PAGE_H
#define MICA_CLI_PICTURE_PAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/picture/plan_svg.h"

/* From the doctype to the heading. The page's policy forbids it to ask anything of a network. `css` may be NULL. */
void page_begin(FILE *out, const char *title, const char *subtitle, const char *css);
/* The last lines. Returns false if the page could not all be written. */
bool page_end(FILE *out);

/* A number that matters, with what it is: within <ul class="tiles">. */
void put_tile(FILE *out, const char *number, const char *what);

/* The figure of a plan with its hover and zoom, and what is in use at its peak. One in a page. */
void put_plan_figure(FILE *out, const plan_picture *picture, const plan_facts *facts);
/* Its tiles. */
void put_plan_tiles(FILE *out, const mica_plan *plan, const plan_facts *facts);

#endif
