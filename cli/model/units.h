/* What targets and inputs of a table stand for: their own unit and names. All of it belongs to whoever fills it in. */
#ifndef MICA_CLI_MODEL_UNITS_H
#define MICA_CLI_MODEL_UNITS_H

#include <mica/tensor.h>

/* A target y of a regression, and the output for it, is y * deviation + mean in its own unit. */
typedef struct target_units {
    mica_index count;              /* targets of a sample; 0: they are as they are */
    const float *mean, *deviation; /* [count] over the training samples; NULL: as they are */
    const char *const *names;      /* [count]; NULL: none */
} target_units;

/* Elements first .. first + count - 1 of an input sample come from this column of the table. */
typedef struct column_span {
    const char *name;
    mica_index first, count;
} column_span;

typedef struct column_spans {
    const column_span *list;
    size_t count;
} column_spans;

/* The baseline of a forecast, which needs no net: from the inputs [window, width] of a sample, as the net gets them,
 * its targets for each row of the horizon, as the net would predict them. */
typedef void baseline_fn(float *out, const float *inputs, const void *user);

/* A series: `window` rows are known, and the targets of the next `horizon` rows wanted. Samples follow each other in
 * time. */
typedef struct forecast_shape {
    mica_index window, horizon; /* horizon 0: it is none */
    mica_index width;           /* elements of a row of the window */
    baseline_fn *baseline;      /* NULL: none */
    const char *baseline_name;  /* "the last value" */
    const void *user;
} forecast_shape;

/* A value of target `number` in its own unit. */
static inline double in_unit(const target_units *u, mica_index number, double value)
{
    if (u == NULL || number >= u->count)
        return value;
    double deviation = u->deviation != NULL ? (double)u->deviation[number] : 1;
    return value * deviation + (u->mean != NULL ? (double)u->mean[number] : 0);
}

/* Its name; NULL: it has none. */
static inline const char *target_name(const target_units *u, mica_index number)
{
    return u != NULL && u->names != NULL && number < u->count ? u->names[number] : NULL;
}

#endif
