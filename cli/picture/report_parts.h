/* Sections of a report; each writes nothing if the report has nothing for it. */
#ifndef MICA_CLI_PICTURE_REPORT_PARTS_H
#define MICA_CLI_PICTURE_REPORT_PARTS_H

#include "cli/picture/report.h"

/* The name of a class. */
void put_class(FILE *out, const report *r, int number);

void put_confusion(FILE *out, const report *r);
void put_mistakes(FILE *out, const report *r);
void put_regression(FILE *out, const report *r);
void put_forecast(FILE *out, const report *r);
void put_importance(FILE *out, const report *r);
void put_texts(FILE *out, const report *r);

void put_samples(FILE *out, const report *r);

#endif
