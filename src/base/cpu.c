/* CPU detection. */
#include "base/cpu.h"

#include <stdint.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* XCR0: which register files the operating system saves on a context switch. */
static uint64_t saved_registers(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
        return 0;
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return ((uint64_t)high << 32) | low;
}

#define XCR0_AVX    0x6u  /* xmm and ymm */
#define XCR0_AVX512 0xe6u /* also opmask and the upper zmm */

bool mica_cpu_runs_avx2(void)
{
    unsigned a, b, c, d;
    if ((saved_registers() & XCR0_AVX) != XCR0_AVX || !__get_cpuid(1, &a, &b, &c, &d))
        return false;
    if (!(c & bit_AVX) || !(c & bit_FMA) || !(c & bit_F16C))
        return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX2);
}

bool mica_cpu_runs_avx512(void)
{
    unsigned a, b, c, d;
    if (!mica_cpu_runs_avx2() || (saved_registers() & XCR0_AVX512) != XCR0_AVX512)
        return false;
    const unsigned wanted = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & wanted) == wanted;
}

bool mica_cpu_runs_avx2_vnni(void)
{
    unsigned a, b, c, d;
    return mica_cpu_runs_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4); /* AVX-VNNI */
}

bool mica_cpu_runs_avx512_vnni(void)
{
    unsigned a, b, c, d;
    return mica_cpu_runs_avx512() && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
           (c & 1u << 11); /* AVX512_VNNI */
}
#elif defined(__aarch64__)
#if defined(__linux__)
#include <sys/auxv.h>

bool mica_cpu_runs_neon_dot(void) { return (getauxval(AT_HWCAP) & 1ul << 20) != 0; } /* HWCAP_ASIMDDP */
#elif defined(__ARM_FEATURE_DOTPROD)
bool mica_cpu_runs_neon_dot(void) { return true; }
#else
bool mica_cpu_runs_neon_dot(void) { return false; }
#endif
#endif

#define USUAL_SECOND_CACHE ((size_t)512 * 1024)

#if defined(__x86_64__)
/* One leaf lists all caches, a subleaf each; its number differs between makers, its layout does not. */
static size_t second_cache_in(unsigned leaf)
{
    enum { NONE = 0, INSTRUCTIONS = 2, MOST_CACHES = 16 };
    unsigned a, b, c, d;
    for (unsigned i = 0; i < MOST_CACHES && __get_cpuid_count(leaf, i, &a, &b, &c, &d); i++) {
        unsigned type = a & 0x1f, level = a >> 5 & 7;
        if (type == NONE)
            return 0;
        size_t ways = (b >> 22) + 1, partitions = (b >> 12 & 0x3ff) + 1, line = (b & 0xfff) + 1;
        if (level == 2 && type != INSTRUCTIONS)
            return ways * partitions * line * ((size_t)c + 1);
    }
    return 0;
}

size_t mica_second_cache(void)
{
    size_t bytes = second_cache_in(4); /* Intel */
    if (bytes == 0)
        bytes = second_cache_in(0x8000001d); /* AMD */
    return bytes > 0 ? bytes : USUAL_SECOND_CACHE;
}
#else
size_t mica_second_cache(void) { return USUAL_SECOND_CACHE; }
#endif
