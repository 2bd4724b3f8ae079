/* A net in a block of the caller's, between guards: how much of it is written, by painting it. Definitions as for
 * bench/mcu/measure.c. */
#include "board.h"
#include NET_HEADER

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define CALL(what)  JOIN(NET, what)

enum { words = RAM_BYTES / 4, guard = 64 };
static const uint32_t paint = 0xA5C3A5C3u;
static uint32_t block[guard + words + guard];

#ifdef TRAIN
static TARGET targets[OUTPUTS];
#endif

static void step(void)
{
    for (int i = 0; i < INPUTS; i++)
        CALL(_input)()[i] = (INPUT)(INPUT_RANGE * 0.01f * (float)(i % 100));
    CALL(_run)();
#ifdef TRAIN
    for (int i = 0; i < INPUTS; i++)
        CALL(_input)()[i] = (INPUT)(INPUT_RANGE * 0.01f * (float)(i % 100));
    CALL(_train_step)(targets, 0.01f);
#endif
}

int main(void)
{
    uint32_t outside = 0, first = 0, last = words;
    for (int i = 0; i < guard + words + guard; i++)
        block[i] = paint;
    CALL(_use)(block + guard);
#ifdef INIT
    CALL(_init)();
#endif
    step();
    for (int i = 0; i < guard; i++)
        outside += (block[i] != paint) + (block[guard + words + i] != paint);
    while (first < words && block[guard + first] == paint)
        first++;
    while (last > first && block[guard + last - 1] == paint)
        last--;
    report("words outside", outside);
    report("first byte", 4 * first);
    report("bytes written", 4 * last);
    return 0;
}
