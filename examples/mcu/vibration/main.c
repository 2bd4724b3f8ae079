/* A device on a machine: it knows six states of it, and is taught a seventh. The body of the net is constant, in flash;
 * the last layer learns, from a few windows of each state. */
#include "../common/chance.h"
#include "board.h"
#include "sensor.h"
#include "vibration.h"

enum { test_each = 20, lessons = 60 * state_count };

static const char *const names[state_count] = {"off",  "running", "unbalanced", "misaligned",
                                               "gear", "rubbing", "bearing"};

static void look(enum state state, chance *c)
{
    sensor_read(vibration_input(), state, c);
    vibration_normalize(vibration_input());
}

static int guess(void)
{
    const float *scores = vibration_output();
    int best = 0;
    for (int i = 1; i < state_count; i++)
        if (scores[i] > scores[best])
            best = i;
    return best;
}

/* Percent of each state that are recognised; the mean over all. */
static uint32_t examine(const char *when)
{
    chance c = {99};
    uint32_t all = 0;
    put_text(when);
    put_text(":");
    for (int state = 0; state < state_count; state++) {
        uint32_t right = 0;
        for (int i = 0; i < test_each; i++) {
            look((enum state)state, &c);
            vibration_run();
            right += guess() == state;
        }
        all += right;
        put_text(" ");
        put_text(names[state]);
        put_text(" ");
        put_int((int32_t)(right * 100 / test_each));
        put_text(" %");
    }
    put_text("\n");
    return all * 100 / (state_count * test_each);
}

int main(void)
{
    chance c = {7};
    vibration_init();
    uint32_t before = examine("before");
    for (int i = 0; i < lessons; i++) {
        const int32_t state = i % state_count;
        look((enum state)state, &c);
        if (i == lessons - 1)
            count_begin("learning step");
        vibration_train_step(&state, 0.02f);
        if (i == lessons - 1)
            count_end();
    }
    uint32_t after = examine("after 60 windows of each");
    report("percent before", before);
    report("percent after", after);
    report("RAM", VIBRATION_RAM_BYTES);
    return before <= 86 && after >= 93 ? 0 : 1;
}
