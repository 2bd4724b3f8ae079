/* What a program needs to run on one of the emulated boards and to be measured there: output, counting, stack.
 * Nothing here allocates or uses a C library. */
#ifndef MCU_BOARD_H
#define MCU_BOARD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Output, by semihosting: the emulator prints it ---- */

void put_text(const char *text);
void put_int(int32_t value);
void put_float(float value); /* nine significant digits, as 1.23456789e-3: reads back as the same float */

/* A line "NAME = VALUE", which mcu/run collects. */
void report(const char *name, uint32_t value);
void report_float(const char *name, float value);

/* Ends the program. main() may also return its code. */
void board_exit(int code) __attribute__((noreturn));

/* ---- Counting ---- */

/* Between these two, instructions and modelled cycles are counted under this name. A pair may be run several times,
 * once for each name; pairs do not nest. Outside mcu/run they do nothing. */
void count_begin(const char *name);
static inline void count_end(void);

/* ---- Stack ---- */

/* Fills the free stack below the caller with a pattern. */
void stack_paint(void);
/* Bytes of it that were written since: what the functions called in between took. */
uint32_t stack_used(void);

/* Bytes that the C library's malloc has taken so far. */
uint32_t heap_used(void);

/* An instruction that does nothing and that compilers do not emit: the plugin closes a region there. */
static inline void board_mark(void)
{
#if defined(__riscv)
    __asm__ volatile(".option push\n.option norvc\nori x0, x0, 77\n.option pop" ::: "memory");
#elif defined(__arm__)
    __asm__ volatile("mov r11, r11" ::: "memory");
#endif
}

static inline void count_end(void) { board_mark(); }

#ifdef __cplusplus
}
#endif

#endif
