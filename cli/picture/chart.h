/* Curves over epochs, as an <svg> element. */
#ifndef MICA_CLI_PICTURE_CHART_H
#define MICA_CLI_PICTURE_CHART_H

#include "cli/picture/report.h"

typedef struct chart_series {
    const char *name;
    const report_curve *curve;
} chart_series;

typedef struct chart {
    const char *title;
    chart_series series[2]; /* drawn in this order; an empty one is left out */
    bool share;             /* y is from 0 to 1, and shown in percent */
    bool may_log;           /* y on a logarithmic axis, where it spans much */
} chart;

/* Nothing if no series has a point. */
void put_chart(FILE *out, const chart *c);

#endif
