/* RISC-V, machine mode: reset, traps, semihosting. */
#include "machine.h"

/* mstatus.FS: the floating-point unit is on. mtvec: where traps go; the address is a multiple of 4. */
__attribute__((naked, used, section(".vectors"))) void board_reset(void)
{
    __asm__ volatile(
        ".option push\n"
        ".option norelax\n"
        "la gp, __global_pointer$\n"
        ".option pop\n"
        "la sp, board_stack_top\n"
        "la tp, board_tls\n"
        "li t0, 0x2000\n"
        "csrs mstatus, t0\n"
        "la t0, board_trap\n"
        "csrw mtvec, t0\n"
        "j board_start\n");
}

__attribute__((used, aligned(4))) void board_trap(void);
void board_trap(void) { board_fault(); }

/* The three instructions that the emulator knows; none of them compressed. */
__attribute__((noinline)) int machine_semihosting(int operation, const void *argument)
{
    register int a0 __asm__("a0") = operation;
    register const void *a1 __asm__("a1") = argument;
    __asm__ volatile(
        ".option push\n"
        ".option norvc\n"
        ".balign 16\n" /* within one page, as is asked for */
        "slli x0, x0, 0x1f\n"
        "ebreak\n"
        "srai x0, x0, 7\n"
        ".option pop"
        : "+r"(a0)
        : "r"(a1)
        : "memory");
    return a0;
}
