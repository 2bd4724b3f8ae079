/* Axes: where a value lies along one, and round numbers for its ticks. */
#ifndef MICA_CLI_PICTURE_AXIS_H
#define MICA_CLI_PICTURE_AXIS_H

#include <stdbool.h>

typedef struct axis {
    double low, high;
    bool is_log;
} axis;

/* 0 at its low end, 1 at its high one. */
double axis_along(const axis *a, double value);

/* The round number (1, 2 or 5 times a power of ten) of which about `count` fit into a span. */
double round_step(double span, double count);

/* One from `low` to `high` or somewhat further, to round numbers. */
axis axis_over(double low, double high);

#endif
