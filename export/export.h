/* mica export: a compiled net as one C file that needs no library.
 *
 *     graph.c     the program of the compiled net, read into values and calls of the exporter's own
 *     rewrite.c   a few calls become one that suits a small device better
 *     plan.c      lifetimes, memory that is taken over, offsets in one block
 *     emit*.c     each call as C: emit.h says how to add an operation
 *     kernels/    what those calls call
 *     write*.c    the files: NAME.c, NAME.h, NAME_test.c, NAME.md
 */
#ifndef MICA_EXPORT_EXPORT_H
#define MICA_EXPORT_EXPORT_H

#include <mica/mica.h>

#include "export/target.h"
#include "export/text.h"

typedef struct export_opts {
    const char *name;   /* an identifier: what all names of the files begin with */
    const char *source; /* where the net came from, for the comment on top */
    export_target target;
    bool float_ends;    /* inputs and outputs of nets of bytes stay floats */
    const char *output; /* the name of the value that is predicted */
    bool train;         /* also a training step, for what is not frozen */
    int samples;        /* of a step; the net is built for one of them, unless it mixes samples */
    int batch;          /* that the net is built for */
    const mica_optimizer *optimizer; /* of the training step: SGD, Adam or AdamW */
    /* How inputs x were normalized in training: (x * scale - mean[c]) / deviation[c]. channels 0: not. */
    float scale;
    int channels;
    const float *mean, *deviation;
    const mica_table *table;       /* whose rows the net was trained on; NULL: on something else */
    const char *const *classes;    /* [class_count], in the order of the outputs */
    int class_count;               /* 0: they have no names */
    const char *const *targets;    /* names of the numbers that a table's net predicts [target_count] */
    const float *unit, *unit_mean; /* [target_count]: an output y stands for y * unit + unit_mean */
    int target_count;              /* 0: outputs are in no unit */
    int steps;                     /* of the test: training steps that are compared */
} export_opts;

typedef struct exported {
    text source, header, test, page;
    size_t ram, flash;
} exported;

/* What would be exported of a compiled net, which need not be bound: bytes of RAM without the stack. False, with all
 * calls that cannot be exported in `why`, a line each. */
bool export_measure(size_t *ram, mica_net *net, const export_opts *opts, text *why);

/* The files of a bound net whose weights are set. `check` is the same net, built for the whole batch, bound, with the
 * same weights: its outputs (with .train, its losses) are what the test expects. It is run, and trained, by this. */
bool export_net(exported *out, mica_net *net, mica_net *check, const export_opts *opts, text *why);
void exported_free(exported *e);

/* library.properties of an Arduino library, and library.json of a PlatformIO one, with NAME.c and NAME.h in src/. */
void write_arduino_properties(text *out, const export_opts *opts);
void write_platformio_json(text *out, const export_opts *opts);

#endif
