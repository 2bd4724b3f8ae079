/* The smallest program: output, a count, the stack. */
#include "board.h"

static volatile int sum;

__attribute__((noinline)) static void add_up(int n)
{
    volatile int values[16] = {0};
    for (int i = 0; i < n; i++)
        values[i % 16] = i, sum += values[i % 16];
}

int main(void)
{
    put_text("hello\n");
    stack_paint();
    count_begin("loop");
    add_up(1000);
    count_end();
    report("stack", stack_used());
    report("sum", (uint32_t)sum);
    report_float("third", 1.0f / 3.0f);
    report_float("tiny", -1.5e-39f);
    report_float("big", 3.25e38f);
    return sum == 499500 ? 0 : 1;
}
