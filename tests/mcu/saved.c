/* XOR learns, is saved, forgets by beginning anew, and is loaded: the same answers as before. */
#include "board.h"
#include "xor.h"

static const float inputs[8] = {0, 0, 0, 1, 1, 0, 1, 1}, wanted[4] = {0, 1, 1, 0};
static float saved[XOR_SAVE_BYTES / 4];

static void show(void)
{
    for (int i = 0; i < XOR_INPUT_SIZE; i++)
        xor_input()[i] = inputs[i];
}

static int right(float *answers /* [4] */)
{
    int count = 0;
    show();
    xor_run();
    for (int i = 0; i < 4; i++) {
        answers[i] = xor_output()[i];
        count += (answers[i] > 0) == (wanted[i] > 0);
    }
    return count;
}

int main(void)
{
    float before[4], learned[4], lost[4], loaded[4], loss = 0;
    xor_init();
    int begin = right(before);
    for (int i = 0; i < 200; i++) {
        show();
        loss = xor_train_step(wanted, 0.05f);
    }
    int end = right(learned);
    xor_save(saved);
    xor_init();
    right(lost);
    xor_load(saved);
    int again = right(loaded);
    report("right before", (uint32_t)begin);
    report("right after", (uint32_t)end);
    report_float("loss", loss);
    for (int i = 0; i < 4; i++)
        if (lost[i] != before[i] || loaded[i] != learned[i])
            return 1;
    return begin < 4 && end == 4 && again == 4 && loss < 0.1f ? 0 : 2;
}
