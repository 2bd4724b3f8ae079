/* The picture of a plan, as an <svg> element. */
#ifndef MICA_CLI_PICTURE_PLAN_SVG_H
#define MICA_CLI_PICTURE_PLAN_SVG_H

#include "cli/picture/plan_picture.h"

/* What the picture shows beside the plan itself. */
typedef struct plan_facts {
    int peak_time;    /* the first at which the most bytes are in use */
    size_t peak;      /* those bytes: the lower bound */
    size_t all_bytes; /* of all buffers, were none to share */
    size_t at_peak[MICA_BUFFER_KIND_COUNT];
    int forwards; /* times before the first that is no forward */
    size_t
        *alive; /* [times] bytes in use at each; plan_facts_release gives it back. NULL: no memory for it */
} plan_facts;

plan_facts plan_facts_of(const mica_plan *plan);
void plan_facts_release(plan_facts *facts);

/* "conv2, backward" */
void put_moment(FILE *out, const mica_plan *plan, int time);

/* A standalone one has a title, hover texts and colours of its own; otherwise those come from the page around it. */
void put_plan_svg(FILE *out, const plan_picture *picture, const plan_facts *facts, bool standalone);

#endif
