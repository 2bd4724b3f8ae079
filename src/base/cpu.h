/* Which instruction sets this CPU and operating system can run, and what caches it has. */
#ifndef MICA_SRC_BASE_CPU_H
#define MICA_SRC_BASE_CPU_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__x86_64__)
/* The CPU has the instructions, with those that come with them, and the system saves their registers. */
bool mica_cpu_runs_avx2(void);
bool mica_cpu_runs_avx2_vnni(void);
bool mica_cpu_runs_avx512(void);
bool mica_cpu_runs_avx512_vnni(void);
#elif defined(__aarch64__)
bool mica_cpu_runs_neon_dot(void);
#endif

/* Bytes of a core's second cache; where the CPU does not tell, what most have. */
size_t mica_second_cache(void);

#endif
