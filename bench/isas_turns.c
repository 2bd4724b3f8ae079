#include "bench/isas_turns.h"

void isas_add(isas_best *b, double ns)
{
    b->second = b->turns == 0 || ns < b->best ? b->best : b->turns == 1 || ns < b->second ? ns : b->second;
    b->best = b->turns == 0 || ns < b->best ? ns : b->best;
    b->turns++;
}

bool isas_decided(const isas_best *ours, const isas_best *other)
{
    if (ours->turns < ISAS_LEAST_TURNS || ours->turns >= ISAS_MOST_TURNS)
        return ours->turns >= ISAS_MOST_TURNS;
    /* A best time may yet fall by as much as it is ahead of the second. */
    double ratio = other->best / ours->best;
    double least = ratio * other->best / other->second, most = ratio * ours->second / ours->best;
    return least >= ISAS_LEAST_RATIO || (most < ISAS_LEAST_RATIO && ours->turns >= 2 * ISAS_LEAST_TURNS);
}
