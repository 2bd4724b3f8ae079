/* Probes; compiled once per instruction set. */
#include "kernel/probe.h"
#include "kernel/vec.h"
#if VF_LANES > 1
#include "kernel/vec_bytes.h"
#endif

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

/* Every sum has a product of its own, of factors that change: else the compiler would make it once for all. */
#define BYTE_U (VF_LANES > 8 ? 3 : 2)
#define BYTE_A 4

#if VF_LANES > 1
static int32_t multiply_bytes(size_t rounds)
{
    volatile uint8_t source = 1;
    vb u[BYTE_U], a[BYTE_A], flip = vb_set1(source);
    vi sum[BYTE_U][BYTE_A];
    for (int j = 0; j < BYTE_A; j++)
        a[j] = vb_set1((uint8_t)(source + j));
    for (int i = 0; i < BYTE_U; i++) {
        u[i] = vb_set1((uint8_t)(source + 2 * i));
        for (int j = 0; j < BYTE_A; j++)
            sum[i][j] = vi_set1(0);
    }
    for (size_t round = 0; round < rounds; round++)
        for (int i = 0; i < BYTE_U; i++) {
            u[i] = vb_xor(u[i], flip);
            for (int j = 0; j < BYTE_A; j++)
                sum[i][j] = vi_dot(sum[i][j], u[i], a[j]);
        }
    uint32_t total = 0;
    for (int i = 0; i < BYTE_U; i++)
        for (int j = 0; j < BYTE_A; j++) {
            int32_t lanes[VF_LANES];
            vi_store(lanes, sum[i][j]);
            for (int k = 0; k < VF_LANES; k++)
                total += (uint32_t)lanes[k];
        }
    return (int32_t)(total & INT32_MAX);
}
#else
static int32_t multiply_bytes(size_t rounds)
{
    volatile uint8_t source = 1;
    uint32_t u[BYTE_U], a[BYTE_A], flip = source, sum[BYTE_U][BYTE_A] = {{0}}, total = 0;
    for (uint32_t j = 0; j < BYTE_A; j++)
        a[j] = source + j;
    for (uint32_t i = 0; i < BYTE_U; i++)
        u[i] = source + 2 * i;
    for (size_t round = 0; round < rounds; round++)
        for (int i = 0; i < BYTE_U; i++) {
            u[i] ^= flip;
            for (int j = 0; j < BYTE_A; j++)
                sum[i][j] += u[i] * a[j];
        }
    for (int i = 0; i < BYTE_U; i++)
        for (int j = 0; j < BYTE_A; j++)
            total += sum[i][j];
    return (int32_t)(total & INT32_MAX);
}
#endif

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

const mica_probe_kernels VF_VARIANT_SYMBOL(mica_probe_kernels) = {
    .multiply_add = multiply_add,
    .flops_per_round = (size_t)2 * VF_LANES * CHAINS,
    .multiply_bytes = multiply_bytes,
    .byte_ops_per_round = (size_t)2 * (VF_LANES > 1 ? 4 * VF_LANES : 1) * BYTE_U * BYTE_A,
    .copy = copy,
    .read = read};
