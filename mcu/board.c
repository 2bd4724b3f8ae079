/* The part that all boards share: text output, painting the stack, and the start of main(). */
#include "machine.h"

/* From the linker script. */
extern uint32_t board_data_start[], board_data_end[], board_data_load[];
extern uint32_t board_bss_start[], board_bss_end[];
extern uint32_t board_stack_limit[];
extern void (*board_init_start[])(void), (*board_init_end[])(void);

extern int main(void);

/* ---- Output ---- */

enum { semihosting_write0 = 0x04, semihosting_exit_extended = 0x20, application_exit = 0x20026 };

void put_text(const char *text) { machine_semihosting(semihosting_write0, text); }

static void put_unsigned(uint32_t value)
{
    char digits[11], *p = digits + sizeof digits - 1;
    *p = 0;
    do {
        *--p = (char)('0' + value % 10);
    } while (value /= 10);
    put_text(p);
}

void put_int(int32_t value)
{
    if (value < 0)
        put_text("-");
    put_unsigned(value < 0 ? 0u - (uint32_t)value : (uint32_t)value);
}

/* Nine digits of a float take more than its own precision. Doubles are emulated here: slow, and outside all counts. */
void put_float(float value)
{
    char text[] = "d.dddddddd";
    double v = value < 0 ? -(double)value : (double)value;
    int power = 0;
    if (!(v <= 3.5e38)) {
        put_text(value != value ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    while (v >= 10)
        v /= 10, power++;
    while (v > 0 && v < 1)
        v *= 10, power--;
    uint32_t digits = (uint32_t)(v * 1e8 + 0.5);
    if (digits >= 1000000000u)
        digits /= 10, power++;
    for (int i = (int)sizeof text - 2; i >= 0; i--) {
        if (text[i] == '.')
            continue;
        text[i] = (char)('0' + digits % 10);
        digits /= 10;
    }
    put_text(value < 0 ? "-" : "");
    put_text(text);
    if (power != 0) {
        put_text("e");
        put_int(power);
    }
}

void report(const char *name, uint32_t value)
{
    put_text(name);
    put_text(" = ");
    put_unsigned(value);
    put_text("\n");
}

void report_float(const char *name, float value)
{
    put_text(name);
    put_text(" = ");
    put_float(value);
    put_text("\n");
}

void board_exit(int code)
{
    const uintptr_t block[2] = {application_exit, (uintptr_t)code};
    for (;;)
        machine_semihosting(semihosting_exit_extended, block);
}

void board_fault(void)
{
    put_text("fault: the processor stopped at an invalid access or instruction\n");
    board_exit(99);
}

/* ---- Counting ---- */

void count_begin(const char *name)
{
    put_text("count ");
    put_text(name);
    put_text("\n");
    board_mark();
}

/* ---- Stack ---- */

static const uint32_t paint = 0xDEADBEEF;
static uint32_t *painted_top;

/* The frame of this function itself is left alone: 16 words are more than it takes. */
__attribute__((noinline)) void stack_paint(void)
{
    painted_top = __builtin_frame_address(0);
    for (volatile uint32_t *p = board_stack_limit; p < painted_top - 16; p++)
        *p = paint;
}

uint32_t stack_used(void)
{
    const volatile uint32_t *p = board_stack_limit;
    while (p < painted_top && *p == paint)
        p++;
    return (uint32_t)((uintptr_t)painted_top - (uintptr_t)p);
}

/* ---- Start ---- */

void board_start(void)
{
    const uint32_t *from = board_data_load;
    for (uint32_t *to = board_data_start; to < board_data_end;)
        *to++ = *from++;
    for (uint32_t *to = board_bss_start; to < board_bss_end;)
        *to++ = 0;
    for (void (**call)(void) = board_init_start; call < board_init_end; call++)
        (*call)();
    stack_paint();
    board_exit(main());
}
