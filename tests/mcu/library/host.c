/* What mcu/board.h declares, on a host: the numbers that boards are compared with. */
#include <stdio.h>

#include "board.h"

void put_text(const char *text) { (void)fputs(text, stdout); }
void report(const char *name, uint32_t value) { printf("%s = %u\n", name, (unsigned)value); }
void report_float(const char *name, float value) { printf("%s = %.9g\n", name, (double)value); }
void count_begin(const char *name) { (void)name; }
void stack_paint(void) {}
uint32_t stack_used(void) { return 0; }
uint32_t heap_used(void) { return 0; }
