/* A small picture within a page. */
#ifndef MICA_CLI_PICTURE_PNG_H
#define MICA_CLI_PICTURE_PNG_H

#include <stdio.h>

/* The pixels as a PNG in a "data:" address: [height][width][channels] with 1 (grey) or 3 (red, green, blue) channels.
 * Not compressed, for such pictures are small. Nothing is written if it has more than 65,534 bytes a row. */
void put_png(FILE *out, const unsigned char *pixels, int width, int height, int channels);

#endif
