/* Contexts with the kernels that suit this machine. Compiled once, unlike the other files here. */
#include "base/context.h"

#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "kernel/kernels.h"

static bool runs_always(void) { return true; }

typedef struct isa_entry {
    const mica_kernels *kernels;
    bool (*runs)(void);
} isa_entry;

/* Best first. */
static const isa_entry isas[] = {
#if defined(MICA_WITH_AVX512_VNNI)
    {&mica_kernels_avx512_vnni, mica_cpu_runs_avx512_vnni},
#endif
#if defined(MICA_WITH_AVX512) && !defined(MICA_AVX512_EMULATE)
    {&mica_kernels_avx512, mica_cpu_runs_avx512},
#endif
#if defined(MICA_WITH_AVX2_VNNI)
    {&mica_kernels_avx2_vnni, mica_cpu_runs_avx2_vnni},
#endif
#if defined(MICA_WITH_AVX2)
    {&mica_kernels_avx2, mica_cpu_runs_avx2},
#endif
#if defined(MICA_WITH_NEON_DOT)
    {&mica_kernels_neon_dot, mica_cpu_runs_neon_dot},
#endif
#if defined(MICA_WITH_NEON)
    {&mica_kernels_neon, runs_always},
#endif
    {&mica_kernels_scalar, runs_always},
#if defined(MICA_AVX512_EMULATE)
    {&mica_kernels_avx512, mica_cpu_runs_avx2}, /* after what always runs: by name only */
#endif
};

const mica_kernels *mica_kernels_choose(const char *isa)
{
    if (isa == NULL)
        isa = getenv("MICA_ISA");
    bool any = isa == NULL || *isa == '\0';
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
        const mica_kernels *kernels = isas[i].kernels;
        bool named = any || strcmp(isa, kernels->isa) == 0 || strcmp(isa, kernels->full_name) == 0;
        if (named && isas[i].runs())
            return kernels;
    }
    return NULL;
}

#if defined(MICA_ONE_ISA)
/* Kernels are reached by symbol: a context that had the table would keep all of them. */
static const mica_kernels by_symbol = {.isa = "scalar", .full_name = "scalar-plain"};

static const mica_kernels *chosen(const mica_context_opts *opts)
{
    const char *isa = opts != NULL ? opts->isa : NULL;
    bool any = isa == NULL || *isa == '\0';
    return any || strcmp(isa, by_symbol.isa) == 0 || strcmp(isa, by_symbol.full_name) == 0 ? &by_symbol
                                                                                           : NULL;
}
#else
static const mica_kernels *chosen(const mica_context_opts *opts)
{
    return mica_kernels_choose(opts != NULL ? opts->isa : NULL);
}
#endif

mica_status mica_context_create(mica_context **out, const mica_context_opts *opts)
{
    return mica_context_create_with(out, opts, chosen(opts));
}

mica_status mica_context_place(mica_context **out, void *memory, size_t *bytes, const mica_context_opts *opts)
{
    return mica_context_place_with(out, memory, bytes, opts, chosen(opts));
}

const char *mica_context_isa(const mica_context *ctx) { return ctx->kernels->isa; }
