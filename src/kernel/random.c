/* Random kernels; compiled once per instruction set. base/philox.h shows the layout of positions in groups. */
#include "kernel/kernels.h"
#include "kernel/random.h"
#include "base/philox.h"
#include "kernel/vmath.h"

#define GROUP   MICA_RANDOM_GROUP
#define ROW     MICA_RANDOM_BLOCKS /* positions with the same word of their blocks */
#define VECTORS (ROW / VF_LANES)

_Static_assert(ROW % VF_LANES == 0, "a row of a group is a whole number of vectors");

/* The key of each round, which all groups share. */
typedef struct round_keys {
    int32_t low[MICA_PHILOX_ROUNDS], high[MICA_PHILOX_ROUNDS];
} round_keys;

static round_keys keys_of(const mica_random *from)
{
    round_keys keys;
    uint32_t low = (uint32_t)from->seed, high = (uint32_t)(from->seed >> 32);
    for (int round = 0; round < MICA_PHILOX_ROUNDS; round++) {
        keys.low[round] = (int32_t)low;
        keys.high[round] = (int32_t)high;
        low += MICA_PHILOX_WEYL_0;
        high += MICA_PHILOX_WEYL_1;
    }
    return keys;
}

/* The 64 words of a group. All its blocks go through the rounds together, since one alone would wait for its
 * multiplications; in plain C there are too many for the registers, and they go one after the other. */
#define AT_ONCE (VECTORS <= 4 ? VECTORS : 1)

VF_INLINE void make_group(int32_t words[GROUP], const mica_random *from, const round_keys *keys,
                          uint64_t group, uint64_t domain)
{
    uint64_t block = group * MICA_RANDOM_BLOCKS | domain;
    const vi m0 = vi_set1((int32_t)MICA_PHILOX_MULTIPLIER_0), m1 = vi_set1((int32_t)MICA_PHILOX_MULTIPLIER_1);
    for (size_t first = 0; first < ROW; first += AT_ONCE * VF_LANES) {
        vi c0[AT_ONCE], c1[AT_ONCE], c2[AT_ONCE], c3[AT_ONCE];
#pragma GCC unroll 4
        for (size_t v = 0; v < AT_ONCE; v++) {
            /* Groups are aligned: adding a lane's number never carries. */
            c0[v] = vi_add(vi_set1((int32_t)((uint32_t)block + (uint32_t)(first + v * VF_LANES))), vi_iota());
            c1[v] = vi_set1((int32_t)(block >> 32));
            c2[v] = vi_set1((int32_t)from->stream);
            c3[v] = vi_set1((int32_t)(from->stream >> 32));
        }
#pragma GCC unroll 10
        for (int round = 0; round < MICA_PHILOX_ROUNDS; round++) {
            const vi low = vi_set1(keys->low[round]), high = vi_set1(keys->high[round]);
#pragma GCC unroll 4
            for (size_t v = 0; v < AT_ONCE; v++) {
                vi high0 = vi_mulhi_u(m0, c0[v]), low0 = vi_mul(m0, c0[v]);
                vi high1 = vi_mulhi_u(m1, c2[v]), low1 = vi_mul(m1, c2[v]);
                c0[v] = vi_xor(high1, vi_xor(c1[v], low));
                c1[v] = low1;
                c2[v] = vi_xor(high0, vi_xor(c3[v], high));
                c3[v] = low0;
            }
        }
#pragma GCC unroll 4
        for (size_t v = 0; v < AT_ONCE; v++) {
            int32_t *to = words + first + v * VF_LANES;
            vi_store(to + 0 * ROW, c0[v]);
            vi_store(to + 1 * ROW, c1[v]);
            vi_store(to + 2 * ROW, c2[v]);
            vi_store(to + 3 * ROW, c3[v]);
        }
    }
}

/* ---- Whole groups ---- */

VF_INLINE void uniform_group(float out[GROUP], const mica_random *from, const round_keys *keys,
                             uint64_t group)
{
    int32_t words[GROUP];
    make_group(words, from, keys, group, 0);
    for (size_t i = 0; i < GROUP; i += VF_LANES)
        vf_store(out + i, vf_mul(vf_from_vi(vi_shr(vi_load(words + i), 8)), vf_set1(0x1p-24f)));
}

/* sin and cos of `turns` whole turns, 0 <= turns < 1. In turns the reduction to an eighth is exact. */
VF_INLINE vf sin_cos_turns(vf turns, vf *cosine)
{
    vf quarters = vf_mul(turns, vf_set1(4.0f)), nearest = vf_round(quarters);
    vf x = vf_mul(vf_sub(quarters, nearest), vf_set1(1.57079633f)); /* |x| <= pi / 4 */
    vf xx = vf_mul(x, x);
    /* Taylor: the first terms left out are below 2^-28. */
    vf s = vf_fma(xx, vf_set1(1.0f / 362880), vf_set1(-1.0f / 5040));
    s = vf_fma(xx, s, vf_set1(1.0f / 120));
    s = vf_fma(xx, s, vf_set1(-1.0f / 6));
    s = vf_fma(vf_mul(xx, s), x, x);
    vf c = vf_fma(xx, vf_set1(-1.0f / 3628800), vf_set1(1.0f / 40320));
    c = vf_fma(xx, c, vf_set1(-1.0f / 720));
    c = vf_fma(xx, c, vf_set1(1.0f / 24));
    c = vf_fma(xx, c, vf_set1(-0.5f));
    c = vf_fma(xx, c, vf_set1(1.0f));
    /* The quadrant swaps the two and sets their signs. */
    vi quadrant = vi_from_vf(nearest);
    vm odd = vi_eq(vi_and(quadrant, vi_set1(1)), vi_set1(1));
    vi sine_sign = vi_shl(vi_and(quadrant, vi_set1(2)), 30);
    vi cosine_sign = vi_shl(vi_and(vi_add(quadrant, vi_set1(1)), vi_set1(2)), 30);
    *cosine = vf_of_bits(vi_xor(vf_bits(vf_select(odd, s, c)), cosine_sign));
    return vf_of_bits(vi_xor(vf_bits(vf_select(odd, c, s)), sine_sign));
}

/* Box and Muller: sqrt(-2 log u) * (cos a, sin a) for u uniform in (0, 1] and a uniform angle. */
VF_INLINE void normal_group(float out[GROUP], const mica_random *from, const round_keys *keys, uint64_t group)
{
    int32_t words[GROUP];
    make_group(words, from, keys, group, MICA_RANDOM_NORMAL);
    for (size_t row = 0; row < GROUP; row += 2 * ROW) {
        for (size_t i = row; i < row + ROW; i += VF_LANES) {
            /* 31 bits rounded to a float, and never 0. The product is exact: any set gives the same u. */
            vf u = vf_fma(vf_from_vi(vi_shr(vi_load(words + i), 1)), vf_set1(0x1p-31f), vf_set1(0x1p-32f));
            vf turns = vf_mul(vf_from_vi(vi_shr(vi_load(words + i + ROW), 8)), vf_set1(0x1p-24f));
            vf radius = vf_sqrt(vf_mul(vf_set1(-2.0f), vf_log(u)));
            vf cosine, sine = sin_cos_turns(turns, &cosine);
            vf_store(out + i, vf_mul(radius, cosine));
            vf_store(out + i + ROW, vf_mul(radius, sine));
        }
    }
}

/* The halves of a group's words decide about 64 elements: those below `kept` keep theirs. mask may be NULL. */
VF_INLINE void dropout_half(float *y, uint8_t *mask, const float *x, const int32_t words[GROUP], bool upper,
                            int32_t kept)
{
    const vf scale = vf_set1(MICA_DROPOUT_CHANCES / (float)kept);
    for (size_t i = 0; i < GROUP; i += 4 * VF_LANES) {
        vm keep[4];
        for (size_t k = 0; k < 4; k++) {
            size_t at = i + k * VF_LANES;
            vi word = vi_load(words + at), half = upper ? vi_shr(word, 16) : vi_and(word, vi_set1(0xffff));
            keep[k] = vi_gt(vi_set1(kept), half);
            vf_store(y + at, vf_select(keep[k], vf_mul(vf_load(x + at), scale), vf_zero()));
        }
        if (mask != NULL)
            vm_store_bytes(mask + i, keep);
    }
}

static void dropout_group(float y[2 * GROUP], uint8_t *mask, const float x[2 * GROUP],
                          const int32_t words[GROUP], int32_t kept)
{
    dropout_half(y, mask, x, words, false, kept);
    dropout_half(y + GROUP, mask != NULL ? mask + GROUP : NULL, x + GROUP, words, true, kept);
}

/* ---- Fills: whole groups in place, the ends by way of a spare group ---- */

/* The part of a fill that lies in one group of `size` positions: its elements from `done` on are the group's
 * from `skip` on. */
typedef struct part {
    uint64_t group;
    size_t skip, count;
} part;

static part next_part(const mica_random *from, size_t done, size_t n, size_t size)
{
    uint64_t position = from->position + done;
    size_t skip = (size_t)(position % size), left = n - done;
    return (part){position / size, skip, left < size - skip ? left : size - skip};
}

VF_INLINE void fill(float *dst, size_t n, const mica_random *from,
                    void (*make)(float *out, const mica_random *from, const round_keys *keys, uint64_t group))
{
    float spare[GROUP];
    round_keys keys = keys_of(from);
    for (size_t done = 0; done < n;) {
        part p = next_part(from, done, n, GROUP);
        bool whole = p.count == GROUP;
        make(whole ? dst + done : spare, from, &keys, p.group);
        if (!whole)
            memcpy(dst + done, spare + p.skip, p.count * sizeof *dst);
        done += p.count;
    }
}

static void random_uniform(float *dst, size_t n, const mica_random *from)
{
    fill(dst, n, from, uniform_group);
}

static void random_normal(float *dst, size_t n, const mica_random *from) { fill(dst, n, from, normal_group); }

/* With up, x = min(from + by x, to), else the larger of the two. */
static void random_spread(float *x, size_t n, float from, float by, float to, bool up)
{
    const vf start = vf_set1(from), factor = vf_set1(by), end = vf_set1(to);
    for (size_t i = 0; i < n; i += VF_LANES) {
        size_t lanes = n - i < VF_LANES ? n - i : VF_LANES;
        vf u = lanes == VF_LANES ? vf_load(x + i) : vf_load_tail(x + i, lanes);
        vf y = vf_add(start, vf_mul(factor, u)); /* two roundings, as everywhere */
        vf_store_tail(x + i, up ? vf_min(end, y) : vf_max(end, y), lanes);
    }
}

static void random_dropout(float *dst, uint8_t *mask, const float *x, size_t n, int32_t kept,
                           const mica_random *from)
{
    float spare[2 * GROUP] = {0};
    uint8_t spare_mask[2 * GROUP];
    int32_t words[GROUP];
    const round_keys keys = keys_of(from);
    for (size_t done = 0; done < n;) {
        part p = next_part(from, done, n, 2 * GROUP);
        make_group(words, from, &keys, p.group, MICA_RANDOM_HALVES);
        if (p.count == 2 * GROUP) {
            dropout_group(dst + done, mask != NULL ? mask + done : NULL, x + done, words, kept);
        } else {
            memcpy(spare + p.skip, x + done, p.count * sizeof *x);
            dropout_group(spare, spare_mask, spare, words, kept);
            memcpy(dst + done, spare + p.skip, p.count * sizeof *dst);
            if (mask != NULL)
                memcpy(mask + done, spare_mask + p.skip, p.count);
        }
        done += p.count;
    }
}

static void random_dropout_backward(float *dx, const float *dy, const uint8_t *mask, size_t n, int32_t kept)
{
    const vf scale = vf_set1(MICA_DROPOUT_CHANCES / (float)kept);
    int32_t wide[GROUP];
    size_t done = 0;
    for (; done + GROUP <= n; done += GROUP) {
        for (size_t i = 0; i < GROUP; i++)
            wide[i] = mask[done + i];
        for (size_t i = 0; i < GROUP; i += VF_LANES) {
            vf scaled = vf_mul(vf_load(dy + done + i), scale);
            vf_store(dx + done + i, vf_select(vi_gt(vi_load(wide + i), vi_set1(0)), scaled, vf_zero()));
        }
    }
    for (; done < n; done++) {
        vf scaled = vf_mul(vf_load_tail(dy + done, 1), scale);
        vf_store_tail(dx + done, mask[done] != 0 ? scaled : vf_zero(), 1);
    }
}

const mica_random_kernels VF_SYMBOL(mica_random_kernels) = {
    .uniform = random_uniform,
    .normal = random_normal,
    .spread = random_spread,
    .dropout = random_dropout,
    .dropout_backward = random_dropout_backward,
};

MICA_KERNEL_SYMBOL(random, uniform, random_uniform)
MICA_KERNEL_SYMBOL(random, normal, random_normal)
MICA_KERNEL_SYMBOL(random, spread, random_spread)
MICA_KERNEL_SYMBOL(random, dropout, random_dropout)
MICA_KERNEL_SYMBOL(random, dropout_backward, random_dropout_backward)
