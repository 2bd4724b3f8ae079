/* Runs emlearn_mlp.c once, counted. */
#include "board.h"

int emlearn_run(float *outputs, const float *inputs);

int main(void)
{
    static float inputs[32], outputs[8];
    for (int i = 0; i < 32; i++)
        inputs[i] = 0.03f * (float)i;
    stack_paint();
    count_begin("step");
    int failed = emlearn_run(outputs, inputs);
    count_end();
    report("stack", stack_used());
    report_float("first output", outputs[0]);
    return failed;
}
