/* RISC-V, 32 bits: the pipeline of the CV32E40P (RV32IMFC, in order), as its manual describes it. Loads, stores, integer and
 * pipelined floating-point arithmetic are a cycle each; a division takes as long as its operands want, so a mean. */
#include "cost.h"

enum { opcode_op = 0x33, opcode_op_fp = 0x53 };

struct cost cost_rv32(const uint8_t *bytes, size_t size, int after_memory)
{
    struct cost c = {1, 0, 0};
    (void)after_memory;
    if (size == 2)
        return c; /* no multiplication, no division among the compressed */
    uint32_t word = bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
    uint32_t opcode = word & 0x7F, function3 = word >> 12 & 7, function7 = word >> 25;
    if (opcode == opcode_op && function7 == 1)                   /* the M extension */
        c.cycles = function3 >= 4 ? 19 : function3 == 0 ? 1 : 5; /* DIV, REM: 3 to 35; MUL; MULH.. */
    if (opcode == opcode_op_fp && (function7 == 0x0C || function7 == 0x2C))
        c.cycles = 12; /* FDIV.S, FSQRT.S */
    return c;
}
