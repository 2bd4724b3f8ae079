/* Where the time of steps goes, layer by layer: for the report page and for traces. */
#ifndef MICA_CLI_MODEL_WATCH_H
#define MICA_CLI_MODEL_WATCH_H

#include "cli/picture/report.h"
#include "cli/picture/trace.h"

#define WATCH_MOST_EVENTS 4096
#define WATCH_FIRST_STEP  3 /* of the trace: when everything is warm */
#define WATCH_STEPS       3

typedef struct watch {
    report_layer *layers; /* [layer_count]: seconds of all steps, until watch_end */
    size_t layer_count;   /* the net's, and one more: the optimizer */
    trace_event *events;
    size_t event_count;
    uint64_t steps; /* seen so far */
    double began;
    bool on;
} watch;

/* Watches the steps of a net. */
watch *watch_begin(mica_net *net);
/* Between steps: only what is between these two calls is counted. */
void watch_step(watch *w, bool begins);
/* Seconds of one step each. No longer watches. */
void watch_end(watch *w, mica_net *net);
void watch_free(watch *w);

#endif
