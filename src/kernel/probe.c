/* Probes; compiled once per instruction set. */
#include "kernel/probe.h"
#include "kernel/vec.h"

/* Chains of multiply-adds that do not wait for one another. Two units with a latency of four or five cycles
 * need ten; the other registers hold the constants. Of plain C the compiler makes vectors of four by itself. */
#define CHAINS (VF_LANES > 1 ? 12 : 48)

static float multiply_add(size_t rounds)
{
    /* Volatile: known values would let the compiler compute the answer. 1 = 1 * 0.5 + 0.5 stays a normal
     * number however often it is applied. */
    volatile float half_source = 0.5f;
    vf half = vf_set1(half_source);
    vf chain[CHAINS];
    for (int i = 0; i < CHAINS; i++)
        chain[i] = vf_set1((float)i);
    for (size_t round = 0; round < rounds; round++)
        for (int i = 0; i < CHAINS; i++)
            chain[i] = vf_fma(chain[i], half, half);
    float sum = 0.0f;
    for (int i = 0; i < CHAINS; i++)
        sum += vf_sum(chain[i]);
    return sum;
}

static void copy(float *dst, const float *src, size_t n)
{
    size_t i = 0;
    for (; i + 4 * VF_LANES <= n; i += 4 * VF_LANES) {
        vf a = vf_load(src + i), b = vf_load(src + i + VF_LANES);
        vf c = vf_load(src + i + 2 * VF_LANES), d = vf_load(src + i + 3 * VF_LANES);
        vf_store(dst + i, a);
        vf_store(dst + i + VF_LANES, b);
        vf_store(dst + i + 2 * VF_LANES, c);
        vf_store(dst + i + 3 * VF_LANES, d);
    }
    for (; i < n; i++)
        dst[i] = src[i];
}

/* Several sums, so that adding is not what it waits for. */
static float read(const float *src, size_t n)
{
    vf a = vf_set1(0.0f), b = a, c = a, d = a;
    size_t i = 0;
    for (; i + 4 * VF_LANES <= n; i += 4 * VF_LANES) {
        a = vf_add(a, vf_load(src + i));
        b = vf_add(b, vf_load(src + i + VF_LANES));
        c = vf_add(c, vf_load(src + i + 2 * VF_LANES));
        d = vf_add(d, vf_load(src + i + 3 * VF_LANES));
    }
    float sum = vf_sum(vf_add(vf_add(a, b), vf_add(c, d)));
    for (; i < n; i++)
        sum += src[i];
    return sum;
}

const mica_probe_kernels VF_VARIANT_SYMBOL(mica_probe_kernels) = {.multiply_add = multiply_add,
                                                                  .flops_per_round = (size_t)2 * VF_LANES *
                                                                                     CHAINS,
                                                                  .copy = copy,
                                                                  .read = read};
