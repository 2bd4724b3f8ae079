/* Convolution of a window of quads: lanes are pixels, so weights are what is repeated, and results of a channel lie
 * side by side. Sums stay in registers for all taps. Part of int8.c. */
#ifndef MICA_SRC_KERNEL_INT8_TILE_H
#define MICA_SRC_KERNEL_INT8_TILE_H

#include "kernel/int8.h"
#include "kernel/vec.h"

#if VF_LANES > 1

/* Pixels of a vector; channels whose sums are in registers, and vectors of each. */
#if VF_REGISTERS >= 32
enum { PIXELS = VF_LANES, BLOCK = 8, VECTORS = 3, FEW_VECTORS = 4, POOLED = 4 };
#else
enum { PIXELS = VF_LANES, BLOCK = 4, VECTORS = 2, FEW_VECTORS = 4, POOLED = 2 };
#endif
enum { PHASES = 4 };

/* Of any kind but MICA_INT8_SHIFTED, to results number `at` and those that follow. */
static void finish_floats(void *y, size_t at, const int32_t *sum, size_t vectors, const mica_int8_finish *f,
                          size_t channel)
{
    if (f->kind == MICA_INT8_SUMS) {
        memcpy((int32_t *)y + at, sum, vectors * VF_LANES * sizeof *sum);
        return;
    }
    vf factor = vf_set1(f->factor[channel]);
    if (f->kind == MICA_INT8_FLOATS) {
        for (size_t v = 0; v < vectors; v++)
            vf_store((float *)y + at + v * VF_LANES, vf_mul(vf_from_vi(vi_load(sum + v * VF_LANES)), factor));
        return;
    }
    vf low = vf_set1((float)(f->low - f->zero)), high = vf_set1((float)(f->high - f->zero));
    vi zero = vi_set1(f->zero);
    for (size_t v = 0; v < vectors; v++) {
        vf r = vf_mul(vf_from_vi(vi_load(sum + v * VF_LANES)), factor);
        vi_store_bytes((int8_t *)y + at + v * VF_LANES,
                       vi_add(vi_from_vf(vf_min(vf_max(r, low), high)), zero));
    }
}

/* Sums of a channel, up to four vectors, to results number `at` and those that follow. From 33 on, a shift needs only
 * the high words of products: the rounding bit lies there. */
VF_INLINE void finish_vectors(void *results, size_t at, const int32_t *sum, size_t vectors,
                              const mica_int8_finish *f, size_t channel)
{
    if (f->kind != MICA_INT8_SHIFTED) {
        finish_floats(results, at, sum, vectors, f, channel);
        return;
    }
    int8_t *y = (int8_t *)results + at;
    int32_t multiplier = f->multiplier[channel];
    int shift = f->shift[channel];
    if (shift < 33) {
        for (size_t i = 0; i < vectors * VF_LANES; i++)
            y[i] = finished(sum[i], multiplier, shift, f->low, f->high);
        return;
    }
    vi factor = vi_set1(multiplier), half = vi_set1((int32_t)1 << (shift - 33));
    vb low = vb_set1((uint8_t)f->low), high = vb_set1((uint8_t)f->high);
    vi four[FEW_VECTORS];
    for (size_t v = 0; v < FEW_VECTORS; v++) { /* behind the last vector, that one again */
        vi s = vi_load(sum + (v < vectors ? v : vectors - 1) * VF_LANES);
        four[v] = vi_sar_by(vi_add(vi_mulhi(s, factor), half), shift - 32);
    }
    vb bytes = vb_limit(vb_pack_lanes(four), low, high);
    if (vectors == FEW_VECTORS) {
        vb_store((uint8_t *)y, bytes);
        return;
    }
    vb_store_part(y, bytes, 0);
    if (vectors > 1)
        vb_store_part(y + VF_LANES, bytes, 1);
    if (vectors > 2)
        vb_store_part(y + 2 * VF_LANES, bytes, 2);
}

/* Channels and vectors are constants. Weights of a quad are `apart` bytes from those of the next. */
VF_INLINE void tile_of(const mica_int8_tile *t, size_t channel, size_t channels, size_t apart, size_t vector,
                       size_t vectors, const mica_int8_finish *f, int each)
{
    vi s[BLOCK][FEW_VECTORS];
    const uint8_t *x = t->x + vector * PIXELS * 4;
    const uint8_t *w = (const uint8_t *)t->w + 4 * channel;
    for (size_t c = 0; c < channels; c++)
        for (size_t v = 0; v < vectors; v++)
            s[c][v] = vi_set1(t->start[channel + c]);
    for (size_t q = 0; q < t->quads; q++, w += apart) {
        const uint8_t *from = x + t->at[q];
        vb pixels[FEW_VECTORS];
        for (size_t v = 0; v < vectors; v++)
            pixels[v] = vb_load(from + v * PIXELS * 4);
        for (size_t c = 0; c < channels; c++) {
            vb four = vb_repeat4(w + 4 * c);
            for (size_t v = 0; v < vectors; v++)
                s[c][v] = vi_dot_wide(s[c][v], pixels[v], four);
        }
    }
    int32_t sum[BLOCK * FEW_VECTORS * VF_LANES]; /* only these leave the registers */
    for (size_t c = 0; c < channels; c++)
        for (size_t v = 0; v < vectors; v++)
            vi_store(sum + (c * vectors + v) * VF_LANES, s[c][v]);
    for (size_t c = 0; c < channels; c++)
        finish_vectors(t->y, (channel + c) * t->stride + vector * PIXELS, sum + c * vectors * VF_LANES,
                       vectors, f, each ? channel + c : 0);
}

VF_INLINE void tiles_of(const mica_int8_tile *t, size_t channels, size_t vectors, const mica_int8_finish *f,
                        int each)
{
    size_t v = 0;
    for (; v + vectors <= t->vectors; v += vectors)
        tile_of(t, 0, channels, t->apart, v, vectors, f, each);
    for (; v + 2 <= t->vectors; v += 2)
        tile_of(t, 0, channels, t->apart, v, 2, f, each);
    if (v < t->vectors)
        tile_of(t, 0, channels, t->apart, v, 1, f, each);
}

/* The largest of four sums, of a pixel at four places: what is made of the largest is the largest that is made. */
VF_INLINE void largest_of(int32_t *sum, size_t apart, const mica_int8_tile *t, size_t channel,
                          size_t channels, size_t vector)
{
    vi s[POOLED][PHASES];
    const uint8_t *x = t->x + vector * PIXELS * 4;
    const uint8_t *w = (const uint8_t *)t->w + 4 * channel;
    for (size_t c = 0; c < channels; c++)
        for (size_t p = 0; p < PHASES; p++)
            s[c][p] = vi_set1(t->start[channel + c]);
    for (size_t q = 0; q < t->quads; q++, w += t->apart) {
        vb pixels[PHASES];
        for (size_t p = 0; p < PHASES; p++)
            pixels[p] = vb_load(x + t->at[p * t->quads + q]);
        for (size_t c = 0; c < channels; c++) {
            vb four = vb_repeat4(w + 4 * c);
            for (size_t p = 0; p < PHASES; p++)
                s[c][p] = vi_dot_wide(s[c][p], pixels[p], four);
        }
    }
    for (size_t c = 0; c < channels; c++)
        vi_store(sum + c * apart, vi_max(vi_max(s[c][0], s[c][1]), vi_max(s[c][2], s[c][3])));
}

/* Channels and vectors are constants. */
VF_INLINE void pooled_vectors(const mica_int8_tile *t, size_t channel, size_t channels, size_t vector,
                              size_t vectors, const mica_int8_finish *f, int each)
{
    int32_t sum[POOLED * FEW_VECTORS * VF_LANES];
    for (size_t v = 0; v < vectors; v++)
        largest_of(sum + v * VF_LANES, FEW_VECTORS * VF_LANES, t, channel, channels, vector + v);
    for (size_t c = 0; c < channels; c++)
        finish_vectors(t->y, (channel + c) * t->stride + vector * PIXELS, sum + c * FEW_VECTORS * VF_LANES,
                       vectors, f, each ? channel + c : 0);
}

VF_INLINE void pooled_of(const mica_int8_tile *t, size_t channel, size_t channels, const mica_int8_finish *f,
                         int each)
{
    size_t v = 0;
    for (; v + FEW_VECTORS <= t->vectors; v += FEW_VECTORS)
        pooled_vectors(t, channel, channels, v, FEW_VECTORS, f, each);
    for (; v + 2 <= t->vectors; v += 2)
        pooled_vectors(t, channel, channels, v, 2, f, each);
    if (v < t->vectors)
        pooled_vectors(t, channel, channels, v, 1, f, each);
}

/* One channel of rows of bytes: quads are made as they are needed, as no other channel needs them. */
VF_INLINE void slides_of(const mica_int8_tile *t, size_t vector, size_t vectors, const mica_int8_finish *f)
{
    vi s[FEW_VECTORS];
    int32_t sum[FEW_VECTORS * VF_LANES];
    const uint8_t *x = t->x + vector * PIXELS;
    for (size_t v = 0; v < vectors; v++)
        s[v] = vi_set1(t->start[0]);
    for (size_t q = 0; q < t->quads; q++) {
        vb four = vb_repeat4((const uint8_t *)t->w + t->apart * q);
        for (size_t v = 0; v < vectors; v++)
            s[v] = vi_dot_wide(s[v], vb_slide(x + t->at[q] + v * PIXELS), four);
    }
    for (size_t v = 0; v < vectors; v++)
        vi_store(sum + v * VF_LANES, s[v]);
    finish_vectors(t->y, vector * PIXELS, sum, vectors, f, 0);
}

static void slides(const mica_int8_tile *t, const mica_int8_finish *f)
{
    size_t v = 0;
    for (; v + FEW_VECTORS <= t->vectors; v += FEW_VECTORS)
        slides_of(t, v, FEW_VECTORS, f);
    for (; v + 2 <= t->vectors; v += 2)
        slides_of(t, v, 2, f);
    if (v < t->vectors)
        slides_of(t, v, 1, f);
}

static void tile(const mica_int8_tile *t, size_t channels, const mica_int8_finish *f, int each)
{
    if (t->bytes) {
        slides(t, f);
        return;
    }
    if (t->phases == PHASES) {
        size_t c = 0;
        for (; c + POOLED <= channels; c += POOLED)
            pooled_of(t, c, POOLED, f, each);
#if VF_REGISTERS >= 32
        for (; c + 2 <= channels; c += 2)
            pooled_of(t, c, 2, f, each);
#endif
        if (c < channels)
            pooled_of(t, c, 1, f, each);
        return;
    }
    switch (channels) {
#if VF_REGISTERS >= 32
    case 8:
        tiles_of(t, 8, VECTORS, f, each);
        break;
    case 4:
        tiles_of(t, 4, FEW_VECTORS, f, each);
        break;
#else
    case 4:
        tiles_of(t, 4, VECTORS, f, each);
        break;
#endif
    case 2:
        tiles_of(t, 2, FEW_VECTORS, f, each);
        break;
    default:
        tiles_of(t, 1, FEW_VECTORS, f, each);
        break;
    }
}

static void quads_of_row(uint32_t *to, const uint8_t *row, size_t step, size_t count)
{
    if (step == 1)
        for (size_t i = 0; i < count; i += VF_LANES)
            vb_store((uint8_t *)(to + i), vb_slide(row + i));
    else
        for (size_t i = 0; i < count; i++)
            to[i] = (uint32_t)row[i] | (uint32_t)row[i + step] << 8 | (uint32_t)row[i + 2 * step] << 16 |
                    (uint32_t)row[i + 3 * step] << 24;
}

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef uint32_t words4 __attribute__((vector_size(16)));

/* Four quads: four bytes of each plane. */
VF_INLINE void four_quads(uint32_t *to, const int8_t *const plane[4], size_t at)
{
    words4 flip = {OFFSET * 0x01010101u, OFFSET * 0x01010101u, OFFSET * 0x01010101u, OFFSET * 0x01010101u};
    words4 v;
    for (int k = 0; k < 4; k++) {
        uint32_t four;
        memcpy(&four, plane[k] + at, sizeof four);
        v[k] = four;
    }
    bytes16 turned = __builtin_shufflevector((bytes16)v, (bytes16)v, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14,
                                             3, 7, 11, 15);
    v = (words4)turned ^ flip;
    memcpy(to + at, &v, sizeof v);
}

static void quads_of_planes(uint32_t *restrict to, const int8_t *const plane[4], size_t count)
{
    const uint8_t *restrict a = (const uint8_t *)plane[0], *restrict b = (const uint8_t *)plane[1],
                            *restrict c = (const uint8_t *)plane[2], *restrict d = (const uint8_t *)plane[3];
    const uint32_t flip = OFFSET * 0x01010101u;
    size_t whole = count / 16 * 16;
    for (size_t i = 0; i < whole; i++)
        to[i] = ((uint32_t)a[i] | (uint32_t)b[i] << 8 | (uint32_t)c[i] << 16 | (uint32_t)d[i] << 24) ^ flip;
    if (count < 4) {
        for (size_t i = whole; i < count; i++)
            to[i] = ((uint32_t)a[i] | (uint32_t)b[i] << 8 | (uint32_t)c[i] << 16 | (uint32_t)d[i] << 24) ^
                    flip;
        return;
    }
    for (size_t i = whole; i + 4 <= count; i += 4)
        four_quads(to, plane, i);
    if (count % 4 != 0)
        four_quads(to, plane, count - 4); /* some of them again */
}

#else

enum { PIXELS = 4, BLOCK = 4, PHASES = 4 };

static void sum_quads(uint32_t sum[PIXELS], const mica_int8_tile *t, const uint8_t *x, const int32_t *at,
                      const int8_t *w, size_t apart)
{
    size_t place = t->bytes ? 1 : 4;
    for (size_t q = 0; q < t->quads; q++, w += apart)
        for (size_t p = 0; p < PIXELS; p++)
            for (size_t k = 0; k < 4; k++)
                sum[p] += (uint32_t)((int8_t)x[at[q] + (ptrdiff_t)(place * p + k)] * w[k]);
}

static void finish_results(void *y, size_t at, const int32_t sum[PIXELS], const mica_int8_finish *f, size_t k)
{
    mica_int8_finish one = *f;
    if (f->kind == MICA_INT8_SUMS) {
        memcpy((int32_t *)y + at, sum, PIXELS * sizeof *sum);
    } else if (f->kind == MICA_INT8_FLOATS) {
        for (size_t p = 0; p < PIXELS; p++)
            ((float *)y)[at + p] = (float)sum[p] * f->factor[k];
    } else if (f->kind == MICA_INT8_AFFINE) {
        one.factor += k;
        finish((int8_t *)y + at, sum, PIXELS, &one, 0);
    } else {
        one.multiplier += k;
        one.shift += k;
        finish((int8_t *)y + at, sum, PIXELS, &one, 0);
    }
}

static void tile(const mica_int8_tile *t, size_t channels, const mica_int8_finish *f, int each)
{
    for (size_t c = 0; c < channels; c++)
        for (size_t v = 0; v < t->vectors; v++) {
            int32_t most[PIXELS] = {0};
            for (size_t phase = 0; phase < t->phases; phase++) {
                uint32_t sum[PIXELS];
                for (size_t p = 0; p < PIXELS; p++)
                    sum[p] = (uint32_t)t->start[c];
                sum_quads(sum, t, t->x + v * PIXELS * (t->bytes ? 1 : 4), t->at + phase * t->quads,
                          t->w + 4 * c, t->apart);
                for (size_t p = 0; p < PIXELS; p++)
                    most[p] = phase > 0 && most[p] > (int32_t)sum[p] ? most[p] : (int32_t)sum[p];
            }
            size_t k = each ? c : 0;
            finish_results(t->y, c * t->stride + v * PIXELS, most, f, k);
        }
}

static void quads_of_row(uint32_t *to, const uint8_t *row, size_t step, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < 4; k++)
            memcpy((uint8_t *)(to + i) + k, row + i + k * step, 1);
}

/* In the order of memory, whatever that of words is. */
static void quads_of_planes(uint32_t *to, const int8_t *const plane[4], size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < 4; k++)
            memcpy((uint8_t *)(to + i) + k, plane[k] + i, 1);
}

#endif

#if VF_LANES > 1

/* Half a vector of AVX-512: rows are short. */
typedef uint32_t some_quads __attribute__((vector_size(VF_LANES == 4 ? 16 : 32)));
enum { SOME_QUADS = sizeof(some_quads) / 4 };

#if VF_LANES == 4
#define EVEN_OF(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define ODD_OF(a, b)  __builtin_shufflevector(a, b, 1, 3, 5, 7)
#else
#define EVEN_OF(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define ODD_OF(a, b)  __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#endif

/* Pairs of quads, the last vector of them partly once more: how many. */
static size_t spread_pairs(uint32_t *restrict even, uint32_t *restrict odd, const uint32_t *restrict row,
                           size_t pairs)
{
    if (pairs < SOME_QUADS)
        return 0;
    for (size_t k = 0; k < pairs; k += SOME_QUADS) {
        size_t at = k + SOME_QUADS <= pairs ? k : pairs - SOME_QUADS;
        some_quads a, b, made;
        memcpy(&a, row + 2 * at, sizeof a);
        memcpy(&b, row + 2 * at + SOME_QUADS, sizeof b);
        made = EVEN_OF(a, b);
        memcpy(even + at, &made, sizeof made);
        made = ODD_OF(a, b);
        memcpy(odd + at, &made, sizeof made);
    }
    return pairs;
}

#else

static size_t spread_pairs(uint32_t *even, uint32_t *odd, const uint32_t *row, size_t pairs)
{
    (void)even, (void)odd, (void)row, (void)pairs;
    return 0;
}

#endif

static void spread(uint32_t *restrict to, size_t plane, const uint32_t *restrict row, size_t step,
                   size_t count)
{
    if (step == 2) {
        uint32_t *restrict odd = to + plane;
        for (size_t k = spread_pairs(to, odd, row, count / 2); k < count / 2; k++) {
            to[k] = row[2 * k];
            odd[k] = row[2 * k + 1];
        }
        if (count % 2 != 0)
            to[count / 2] = row[count - 1];
        return;
    }
    for (size_t phase = 0; phase < step; phase++)
        for (size_t c = phase, k = 0; c < count; c += step, k++)
            to[phase * plane + k] = row[c];
}

/* Behind whole vectors, eight at a time, the last of them once more: rows are short. */
static void offset_row(uint8_t *restrict to, const int8_t *restrict from, size_t count)
{
    const uint64_t flip = OFFSET * 0x0101010101010101u;
    if (count < 8) {
        for (size_t k = 0; k < count; k++)
            to[k] = (uint8_t)((uint8_t)from[k] ^ OFFSET);
        return;
    }
    size_t whole = count / 64 * 64;
    for (size_t k = 0; k < whole; k++)
        to[k] = (uint8_t)((uint8_t)from[k] ^ OFFSET);
    for (size_t k = whole; k < count; k += 8) {
        size_t at = k + 8 <= count ? k : count - 8;
        uint64_t eight;
        memcpy(&eight, from + at, sizeof eight);
        eight ^= flip;
        memcpy(to + at, &eight, sizeof eight);
    }
}

#endif
