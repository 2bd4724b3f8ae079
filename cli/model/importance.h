/* Which columns of a table a net needs: what is lost when one of them is shuffled among the samples. */
#ifndef MICA_CLI_MODEL_IMPORTANCE_H
#define MICA_CLI_MODEL_IMPORTANCE_H

#include "cli/model/score_print.h"

typedef struct importance_opts {
    mica_index batch; /* that the net was built for */
    const feed *feed;
    uint64_t seed;                     /* of the shuffles */
    volatile const sig_atomic_t *stop; /* ends early when it is not 0, with no column; NULL: never */
} importance_opts;

/* How much the accuracy falls or the RMSE rises for each column, the most important first: at most IMPORTANCE_SAMPLES
 * samples, each column shuffled IMPORTANCE_TIMES times. No column where samples are no rows of a table, or the net
 * keeps a state between steps. `columns` is to be freed. On failure the context says why. */
#define IMPORTANCE_SAMPLES 1000
#define IMPORTANCE_TIMES   3
#define IMPORTANCE_COLUMNS 512 /* with more, there are none */
typedef struct importance {
    report_column *columns;
    size_t count;
    char (*numbers)[24]; /* names of columns that have none */
    double before;       /* the metric of the same samples as they are */
} importance;

mica_status importance_find(importance *out, mica_net *net, scored_net what, const importance_opts *opts);
void importance_free(importance *i);

#endif
