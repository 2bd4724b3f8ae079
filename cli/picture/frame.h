/* A figure with two axes that something is drawn into, as an <svg> element. */
#ifndef MICA_CLI_PICTURE_FRAME_H
#define MICA_CLI_PICTURE_FRAME_H

#include <stdio.h>

#include "cli/picture/axis.h"

typedef struct frame {
    const char *title;
    const char *of; /* behind the title: what it is of; NULL: nothing */
    const char *x_title;
    const char *legend[3]; /* names of what is drawn in the colours s0 to s2; NULL: none */
    bool wide;             /* twice as wide as others */
    axis x, y;
} frame;

void frame_begin(FILE *out, const frame *f);
void frame_end(FILE *out);

/* Where a point goes, in the units of the element. */
double frame_x(const frame *f, double x);
double frame_y(const frame *f, double y);

#endif
