/* Between the part that all boards share and that of an architecture. */
#ifndef MCU_MACHINE_H
#define MCU_MACHINE_H

#include "board.h"

/* Asks the emulator for something. */
int machine_semihosting(int operation, const void *argument);

/* Called with a stack and nothing else: sets up memory and runs main(). */
_Noreturn void board_start(void);
_Noreturn void board_fault(void);

#endif
