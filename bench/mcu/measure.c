/* Runs an exported net once, counted: -DNET=cnn -DNET_HEADER='"cnn.h"', with -DTRAIN a training step, with -DTARGET=float
 * or int32_t the type of its targets. -DINIT if it has an NAME_init(). */
#include "board.h"
#include NET_HEADER

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define CALL(what)  JOIN(NET, what)

#ifdef TRAIN
static TARGET targets[OUTPUTS];
#endif

static void fill(void)
{
    static uint32_t state = 1;
    for (int i = 0; i < INPUTS; i++) {
        state = state * 1664525u + 1013904223u;
        CALL(_input)()[i] = (INPUT)((float)(state >> 8) * (INPUT_RANGE / 16777216.0f));
    }
}

static void step(void)
{
#ifdef TRAIN
    CALL(_train_step)(targets, 0.01f);
#else
    CALL(_run)();
#endif
}

int main(void)
{
#ifdef INIT
    CALL(_init)();
#endif
    fill();
    step(); /* the first training step moves weights that have not moved yet: not what is measured */
    fill();
    stack_paint();
    count_begin("step");
    step();
    count_end();
    report("stack", stack_used());
    return 0;
}
