/* How a training goes, on stderr: a bar on a terminal, a line now and then elsewhere. */
#ifndef MICA_CLI_MODEL_PROGRESS_H
#define MICA_CLI_MODEL_PROGRESS_H

#include <mica/mica.h>

#include "cli/verb.h"

typedef struct progress {
    bool shown; /* false: nothing is ever printed */
    uint64_t epochs, epoch_steps;
    size_t plan_bytes;

    struct terminal terminal;
    bool drawn; /* a bar stands on the line */
    double began, epoch_began, drawn_at;
    uint64_t first_step; /* that this process did */
    bool rmse;           /* what is measured is that, not an accuracy */
    double loss, metric; /* smoothed over steps; NaN: not known */
} progress;

void progress_begin(progress *p, const shared_settings *shared, uint64_t epochs, uint64_t epoch_steps,
                    size_t plan_bytes, uint64_t steps_before);

/* After a step; the accuracy or RMSE of its batch, NaN if there is no such thing. */
void progress_step(progress *p, const mica_progress *step, double metric);

/* After an epoch: a line that stays, with that of validation. */
void progress_epoch(progress *p, const mica_progress *epoch, uint64_t epoch_samples, double metric);

/* Takes the bar away, so that others can print. */
void progress_clear(progress *p);

/* The course of positive values, by their logarithms, as a line of little bars: SPARK_WIDTH of them, with a zero
 * behind, into text. Values that are not finite count for nothing. Where the locale's name does not say UTF-8, plain
 * characters. */
#define SPARK_WIDTH 40
#define SPARK_BYTES (3 * SPARK_WIDTH + 1)
bool terminal_utf8(void);
void sparkline(char *text, const double *values, size_t count);

#endif
