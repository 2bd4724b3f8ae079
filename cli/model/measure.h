/* How good a net is on the batch that it has just run, while it learns: the share that is right, or the RMSE of a
 * regression in its own unit. */
#ifndef MICA_CLI_MODEL_MEASURE_H
#define MICA_CLI_MODEL_MEASURE_H

#include "cli/model/match.h"
#include "cli/model/metrics.h"
#include "cli/model/units.h"

typedef enum measure_kind { MEASURE_NOTHING, MEASURE_ACCURACY, MEASURE_RMSE } measure_kind;

measure_kind measure_kind_of(const mica_netfile_info *info);

/* Sums over batches. Nothing is allocated but by measure_open. */
typedef struct measure {
    measure_kind kind;
    const mica_netfile_info *info;
    const target_units *units;
    mica_index each;  /* targets of a sample */
    int32_t *classes; /* [batch, each] targets of the batch; or the next */
    float *numbers;
    mica_index samples; /* of that batch; 0: there is none */
    int64_t right, rows;
    error_sums *errors; /* [groups] */
    int groups;
} measure;

/* MEASURE_NOTHING where targets and outputs do not allow it. */
void measure_open(measure *m, const mica_netfile_info *info, const net_ends *ends, const target_units *units);
void measure_close(measure *m);

/* Keeps the targets of a batch of so many samples, whose memory serves others before its step ends. */
void measure_targets(measure *m, const mica_tensor *targets, mica_index count);
/* After that batch has been run: adds how good its outputs are. */
void measure_outputs(measure *m, mica_net *net);
/* What all batches since the last call come to; NaN of none. */
double measure_take(measure *m);

#endif
