/* A memory plan as a picture: time runs to the right through forward and backward, offsets upwards, and every
 * buffer is a rectangle: from its first write to its last read, and from its first byte to its last.
 *
 * Text in it may come from files: whatever it holds, it is shown, and never read as markup. */
#ifndef MICA_CLI_PICTURE_PLAN_PICTURE_H
#define MICA_CLI_PICTURE_PLAN_PICTURE_H

#include <stdbool.h>
#include <stdio.h>

#include <mica/net.h>

typedef struct plan_picture {
    const mica_plan *plan;
    const char *title;    /* "lenet" */
    const char *subtitle; /* "training, batch 32, adamw"; NULL: none */
} plan_picture;

/* An image, for documents. Returns false if it could not all be written. */
bool plan_picture_svg(FILE *out, const plan_picture *picture);

/* A page of its own: the image, which can be looked at closely, and what it says in numbers. */
bool plan_picture_html(FILE *out, const plan_picture *picture);

#endif
