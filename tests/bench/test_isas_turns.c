/* When instruction sets have had enough turns. */
#include "bench/isas_turns.h"

#include "test.h"

/* The turns at which it is decided, where the sets take these times in order, and then the last one again. */
static int turns_until(const double *ours, const double *other, int times, isas_best best[2])
{
    best[0] = best[1] = (isas_best){0};
    for (int i = 0; !isas_decided(&best[0], &best[1]); i++) {
        isas_add(&best[0], ours[i < times ? i : times - 1]);
        isas_add(&best[1], other[i < times ? i : times - 1]);
    }
    return best[0].turns;
}

TEST(isas_turns_keep_the_best_two)
{
    isas_best b = {0};
    isas_add(&b, 5.0);
    isas_add(&b, 7.0);
    CHECK(b.best == 5.0 && b.second == 7.0 && b.turns == 2);
    isas_add(&b, 6.0);
    CHECK(b.best == 5.0 && b.second == 6.0);
    isas_add(&b, 4.0);
    CHECK(b.best == 4.0 && b.second == 5.0);
    isas_add(&b, 4.0);
    CHECK(b.best == 4.0 && b.second == 4.0 && b.turns == 5);
}

TEST(isas_turns_end_where_times_agree)
{
    isas_best b[2];
    double ten[] = {10.0}, nine[] = {9.0};
    CHECK(turns_until(ten, ten, 1, b) == ISAS_LEAST_TURNS);
    CHECK(turns_until(nine, ten, 1, b) == ISAS_LEAST_TURNS);
    CHECK(turns_until(ten, nine, 1, b) == 2 * ISAS_LEAST_TURNS); /* slower: looked at twice as long */
    CHECK(b[1].best / b[0].best < ISAS_LEAST_RATIO);
}

TEST(isas_turns_go_on_after_disturbed_ones)
{
    isas_best b[2];
    double late[] = {12.0, 12.0, 11.0, 12.0, 12.0, 12.0, 12.0, 12.0, 12.0, 10.0};
    double ten[] = {10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0};
    CHECK(turns_until(late, ten, 10, b) > ISAS_LEAST_TURNS && b[0].turns <= ISAS_MOST_TURNS);
    /* A shortfall that the other set's disturbed turns hid at first. */
    double eight[] = {13.0, 13.0, 13.0, 10.0, 13.0, 8.0};
    CHECK(turns_until(ten, eight, 6, b) > ISAS_LEAST_TURNS && b[1].best == 8.0);
}

TEST(isas_turns_end_in_any_case)
{
    isas_best b[2] = {{0}};
    while (!isas_decided(&b[0], &b[1])) {
        isas_add(&b[0], 10.0);
        isas_add(&b[1], b[1].turns == 0 ? 9.0 : b[1].best * 0.9);
    }
    CHECK(b[0].turns <= ISAS_MOST_TURNS);
}
