/* What the harness itself promises: output, counts of known code, the stack of a known function. */
#include "board.h"

#if defined(__riscv)
#define MULTIPLY "mul a0, a0, a0"
#define DIVIDE   "divu a0, a0, a0"
#define USED     "a0"
#else
#define MULTIPLY "mul r0, r0, r0"
#define DIVIDE   "udiv r0, r0, r0"
#define USED     "r0"
#endif

/* In functions of their own: the compiler takes a repeated line for one instruction, and would place its constants too
 * far away. */
#define HUNDRED(name, instruction, used)                                \
    __attribute__((noinline)) static void name(void)                    \
    {                                                                   \
        __asm__ volatile(".rept 100\n" instruction "\n.endr" ::: used); \
    }
HUNDRED(multiply, MULTIPLY, USED)
HUNDRED(divide, DIVIDE, USED)
#if defined(__ARM_FP) && !defined(__ARM_FEATURE_MVE)
HUNDRED(fused, "vfma.f32 s0, s1, s2", "s0")
HUNDRED(load, "ldr r0, [sp]", "r0")
#endif

__attribute__((noinline)) static int deep(int n)
{
    volatile char room[1024];
    for (int i = 0; i < 1024; i++)
        room[i] = (char)n;
    return room[n];
}

int main(void)
{
    put_text("a line\n");
    put_int(-2147483647 - 1);
    put_text("\n");
    report_float("minus a third", -1.0f / 3.0f);
    report_float("nothing", 0.0f);
    count_begin("multiply");
    multiply();
    count_end();
    count_begin("divide");
    divide();
    count_end();
#if defined(__ARM_FP) && !defined(__ARM_FEATURE_MVE)
    count_begin("float");
    fused();
    count_end();
    count_begin("load");
    load();
    count_end();
#endif
    stack_paint();
    deep(7);
    report("stack", stack_used());
#ifdef FAULT
    (*(void (*volatile *)(void))0xF0000000)();
#endif
    return 7;
}
