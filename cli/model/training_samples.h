/* Pictures of the training part, for the report. */
#ifndef MICA_CLI_MODEL_TRAINING_SAMPLES_H
#define MICA_CLI_MODEL_TRAINING_SAMPLES_H

#include "cli/model/training.h"
#include "cli/picture/report.h"

/* A few, evenly from the whole of it; with augmentation, also as the first epochs saw them. None unless the samples are
 * pictures of bytes. Their pixels are in memory of their own. */
typedef struct sample_pictures {
    report_sample list[12];
    size_t count;
} sample_pictures;

void sample_pictures_take(sample_pictures *out, const training *t);
void sample_pictures_free(sample_pictures *s);

#endif
