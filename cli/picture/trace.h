/* Steps as a trace in Chrome's format, which https://ui.perfetto.dev, chrome://tracing and others show. */
#ifndef MICA_CLI_PICTURE_TRACE_H
#define MICA_CLI_PICTURE_TRACE_H

#include <stdbool.h>
#include <stdio.h>

#include <mica/net.h>

/* One thing that a step did. */
typedef struct trace_event {
    const char *name; /* "conv1", as in the plan */
    const char *kind; /* "conv2d"; NULL: not said */
    mica_phase phase;
    double begin, end; /* seconds, from any moment on */
    int step;          /* which step it was of */
} trace_event;

typedef struct trace {
    const char *title;
    const trace_event *events; /* in the order in which they began */
    size_t count;
    const mica_plan *plan; /* to also draw how many bytes are in use; NULL: not drawn */
} trace;

/* Returns false if it could not all be written. */
bool trace_write(FILE *out, const trace *t);

#endif
