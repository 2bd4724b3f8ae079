/* Which instruction sets this CPU and operating system can run, and what caches it has. */
#ifndef MICA_SRC_BASE_CPU_H
#define MICA_SRC_BASE_CPU_H

#include "kernel/kernels.h"

/* The kernels of a set by name; with NULL those named by $MICA_ISA, and without that the best that runs here.
 * NULL for a name that is unknown, not built in, or that this CPU or OS cannot run. */
const mica_kernels *mica_kernels_choose(const char *isa);

/* Bytes of a core's second cache; where the CPU does not tell, what most have. */
size_t mica_second_cache(void);

#endif
