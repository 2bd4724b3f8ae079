/* The cycle models: what an instruction costs, told from its bits alone.
 *
 * No wait states, no cache, no stall of a load that is used at once, and a branch taken costs two cycles more. So these
 * are modelled cycles, good for comparing programs, not a measurement of hardware. */
#ifndef MCU_PLUGIN_COST_H
#define MCU_PLUGIN_COST_H

#include <stddef.h>
#include <stdint.h>

struct cost {
    unsigned cycles;
    int memory;    /* a single load or store: the next one is pipelined with it */
    int free_jump; /* the branch back of a hardware loop: costs nothing if taken */
};

/* bytes: of the instruction, size of them. after_memory: the one before was a single load or store. */
typedef struct cost (*cost_model)(const uint8_t *bytes, size_t size, int after_memory);

struct cost cost_cortex_m4(const uint8_t *bytes, size_t size, int after_memory);
struct cost cost_cortex_m3(const uint8_t *bytes, size_t size, int after_memory);
struct cost cost_cortex_m55(const uint8_t *bytes, size_t size, int after_memory);
struct cost cost_rv32(const uint8_t *bytes, size_t size, int after_memory);

#endif
