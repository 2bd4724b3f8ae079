/* Cortex-M: vectors, reset, semihosting. */
#include "machine.h"

extern uint32_t board_stack_top[];

_Noreturn void board_reset(void);

__attribute__((section(".vectors"), used)) static const uintptr_t vectors[16] = {
    (uintptr_t)board_stack_top,    (uintptr_t)board_reset,        (uintptr_t)board_fault,
    (uintptr_t)board_fault,        (uintptr_t)board_fault,        (uintptr_t)board_fault,
    (uintptr_t)board_fault,        (uintptr_t)board_fault,        [11] = (uintptr_t)board_fault,
    [14] = (uintptr_t)board_fault, [15] = (uintptr_t)board_fault,
};

int machine_semihosting(int operation, const void *argument)
{
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void board_reset(void)
{
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
    *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20; /* CPACR: the floating-point and vector units are on */
    __asm__ volatile("dsb\n isb");
#endif
    board_start();
}
