/* A net file as a row: what ./dev bench --peers known asks `mica bench --serve` for. */
#ifndef MICA_BENCH_SERVED_NET_H
#define MICA_BENCH_SERVED_NET_H

#include "bench/bench.h"

#define SERVED_MOST_CONSTANTS 4

typedef struct served_net {
    bench_case row; /* first: the case is found by it */
    char path[512];
    char constant_name[SERVED_MOST_CONSTANTS][32];
    double constant[SERVED_MOST_CONSTANTS];
    size_t constants;
    mica_index batch, tokens; /* integers that are no target are numbers of tokens, below this */
    bool train;               /* a step with Adam; else a forward */
    mica_index part_rows;     /* of a forward in parts: at most so many; 0: as compiling chooses */
} served_net;

/* From words: FILE train|infer[/ROWS] BATCH TOKENS [NAME=NUMBER...]. NULL, or what is wrong with them. */
const char *served_net_read(served_net *out, char *words);

/* What the net of such a row, which is set up, makes in a step. */
mica_status served_net_result(mica_tensor *out, bench_state *s);

/* What a step costs by its plan. */
typedef struct served_cost {
    double parameters; /* numbers that are learned */
    double plan;       /* bytes of the block */
    double prepared;   /* of them: weights in other layouts, besides the weights themselves */
    double
        work; /* of them: neither weights, as they are or prepared, nor gradients or the optimizer's state */
    double flops;
} served_cost;

mica_status served_net_cost(served_cost *out, bench_state *s);

#endif
