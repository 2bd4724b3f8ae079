/* When the turns of two instruction sets have shown which of them is faster. */
#ifndef MICA_BENCH_ISAS_TURNS_H
#define MICA_BENCH_ISAS_TURNS_H

#include <stdbool.h>

#define ISAS_LEAST_TURNS 4
#define ISAS_MOST_TURNS  24
/* Within this they are equal. */
#define ISAS_LEAST_RATIO 0.98

/* The two shortest times of a set's turns; 0 at first. */
typedef struct isas_best {
    double best, second;
    int turns;
} isas_best;

void isas_add(isas_best *b, double ns);

/* Whether these say which is faster, after as many turns of both: others that use the machine make any turn longer,
 * and none shorter. After many turns they do in any case. */
bool isas_decided(const isas_best *ours, const isas_best *other);

#endif
