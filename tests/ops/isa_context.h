/* Contexts of an instruction set by name. */
#ifndef MICA_TESTS_OPS_ISA_CONTEXT_H
#define MICA_TESTS_OPS_ISA_CONTEXT_H

#include "test.h"

/* With so many threads (one in a build without) and a workspace for any call of a test; to be destroyed. isa NULL: the
 * best. NULL where the set does not run here. */
static inline mica_context *isa_context(const char *isa, int threads)
{
    mica_context *ctx = NULL;
#if defined(MICA_NO_THREADS)
    threads = 1;
#endif
    if (mica_context_create(&ctx, &(mica_context_opts){.threads = threads, .isa = isa}) != MICA_OK)
        return NULL;
    CHECK_OK(ctx, mica_workspace_reserve(ctx, (size_t)32 << 20));
    return ctx;
}

#endif
