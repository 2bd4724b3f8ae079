/* The probes, over the kernels of the context's instruction set. */
#include "bench/probe.h"

#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "kernel/kernels.h"
#include "base/parallel.h"

#define FMA_ROUNDS        10000 /* of one block: some 25 microseconds */
#define BLOCKS_PER_THREAD 8
#define COPY_BLOCK        ((size_t)16384)   /* elements of the plain loop: 64 KiB */
#define READ_BLOCK        ((size_t)1 << 18) /* elements: 1 MiB */

static fma_probe make(mica_context *ctx, bool bytes)
{
    const mica_probe_kernels *kernels = ctx->kernels->probe;
    size_t blocks = (size_t)mica_context_threads(ctx) * BLOCKS_PER_THREAD;
    size_t of_round = bytes ? kernels->byte_ops_per_round : kernels->flops_per_round;
    return (fma_probe){ctx, blocks, (double)blocks * FMA_ROUNDS * (double)of_round, bytes};
}

fma_probe fma_probe_make(mica_context *ctx) { return make(ctx, false); }
fma_probe byte_probe_make(mica_context *ctx) { return make(ctx, true); }

static void fma_block(void *work, size_t block, int thread)
{
    (void)block;
    (void)thread;
    const fma_probe *probe = work;
    const mica_probe_kernels *kernels = probe->ctx->kernels->probe;
    volatile float unused = probe->bytes ? (float)kernels->multiply_bytes(FMA_ROUNDS)
                                         : kernels->multiply_add(FMA_ROUNDS);
    (void)unused;
}

mica_status fma_probe_run(void *probe)
{
    fma_probe *p = probe;
    mica_parallel(p->ctx, p->blocks, fma_block, p);
    return MICA_OK;
}

mica_status copy_probe_make(copy_probe *out, mica_context *ctx, double bytes)
{
    size_t count = (size_t)(bytes / (2 * sizeof(float)));
    *out = (copy_probe){.ctx = ctx, .count = count > 0 ? count : 1};
    size_t half = mica_align_up(out->count * sizeof(float));
    float *block = aligned_alloc(MICA_ALIGN, 2 * half);
    if (block == NULL)
        return mica_fail(ctx, MICA_ERR_MEMORY, "no %zu bytes for the copy probe", 2 * half);
    memset(block, 0, 2 * half);
    out->dst = block;
    out->src = block + half / sizeof(float);
    return MICA_OK;
}

/* memcpy stores past the cache only where it sees how much there is to copy. */
static size_t block_size(const copy_probe *p)
{
    return p->plain ? COPY_BLOCK : mica_div_up(p->count, (size_t)mica_context_threads(p->ctx));
}

static void copy_block(void *work, size_t block, int thread)
{
    (void)thread;
    const copy_probe *p = work;
    size_t size = block_size(p), start = block * size;
    size_t n = p->count - start < size ? p->count - start : size;
    if (p->plain)
        p->ctx->kernels->probe->copy(p->dst + start, p->src + start, n);
    else
        memcpy(p->dst + start, p->src + start, n * sizeof(float));
}

mica_status copy_probe_run(void *probe)
{
    copy_probe *p = probe;
    mica_parallel(p->ctx, mica_div_up(p->count, block_size(p)), copy_block, p);
    return MICA_OK;
}

void copy_probe_release(copy_probe *probe)
{
    free(probe->dst);
    *probe = (copy_probe){0};
}

mica_status read_probe_make(read_probe *out, mica_context *ctx, double bytes)
{
    size_t count = (size_t)(bytes / sizeof(float));
    *out = (read_probe){.ctx = ctx, .count = count > 0 ? count : 1};
    size_t size = mica_align_up(out->count * sizeof(float));
    out->data = aligned_alloc(MICA_ALIGN, size);
    if (out->data == NULL)
        return mica_fail(ctx, MICA_ERR_MEMORY, "no %zu bytes for the read probe", size);
    memset(out->data, 0, size);
    return MICA_OK;
}

static void read_block(void *work, size_t block, int thread)
{
    (void)thread;
    const read_probe *p = work;
    size_t start = block * READ_BLOCK, left = p->count - start;
    volatile float unused = p->ctx->kernels->probe->read(p->data + start,
                                                         left < READ_BLOCK ? left : READ_BLOCK);
    (void)unused;
}

mica_status read_probe_run(void *probe)
{
    read_probe *p = probe;
    mica_parallel(p->ctx, mica_div_up(p->count, READ_BLOCK), read_block, p);
    return MICA_OK;
}

void read_probe_release(read_probe *probe)
{
    free(probe->data);
    *probe = (read_probe){0};
}
