/* Blocks of every type in vectors, VF_LANES weight rows at a time; included by quant.c alone. block_decode.h says how
 * each type lies in memory.
 *
 * Bytes are turned first, so that a vector has four neighbours of every row, and taken apart then: fewer shuffles, as
 * several values share a byte. For each type:
 *
 *     load_TYPE(w, step, raw)        the bytes that step `step` of the block at the source w needs, turned
 *     field_TYPE(raw, step, p, c)    values 4c to 4c + 3 of part p of the step, as bytes u. A part is 16 values
 *     place_TYPE(step, p)            which 16 of the block's values that part is
 *     scales_TYPE(w, d, m)           scales and least values of all groups of the block, of all rows
 *     PARTS_TYPE                     parts of a step
 *     FLUSH_TYPE                     values after which steps begin with later ones: groups up to there are whole */
#ifndef MICA_SRC_KERNEL_QUANT_PARTS_H
#define MICA_SRC_KERNEL_QUANT_PARTS_H

enum { MOST_RAW = 12 };

/* Sixteen bytes of all rows, four of each in a vector. */
VF_INLINE void turned(const vb_source *w, size_t at, vb *raw)
{
    for (int j = 0; j < 4; j++)
        raw[j] = vb_rows(w, j, at);
    vb_turn_rows(raw);
}

VF_INLINE vb nibble(vb v, bool high) { return vb_and(high ? vb_shift(v, -4) : v, vb_set1(15)); }

/* ---- Blocks of 32 values ---- */

enum { PARTS_Q4_0 = 2, PARTS_Q4_1 = 2, PARTS_Q5_0 = 2, PARTS_Q5_1 = 2, PARTS_Q8_0 = 1, PARTS_IQ4_NL = 2 };
enum {
    FLUSH_Q4_0 = 32,
    FLUSH_Q4_1 = 32,
    FLUSH_Q5_0 = 32,
    FLUSH_Q5_1 = 32,
    FLUSH_Q8_0 = 32,
    FLUSH_IQ4_NL = 32
};

/* A field of nibbles: the low ones are part 0. */
#define NIBBLES(code, at)                                             \
    VF_INLINE void load_##code(const vb_source *w, int step, vb *raw) \
    {                                                                 \
        (void)step;                                                   \
        turned(w, at, raw);                                           \
    }                                                                 \
    VF_INLINE vb field_##code(const vb *raw, int step, int p, int c)  \
    {                                                                 \
        (void)step;                                                   \
        return nibble(raw[c], p == 1);                                \
    }                                                                 \
    VF_INLINE int place_##code(int step, int p) { return step * 2 + p; }
NIBBLES(Q4_0, 2)
NIBBLES(Q4_1, 4)

/* One scale, an f16 at the start. */
#define ONE_SCALE(code)                                            \
    VF_INLINE void scales_##code(const vb_source *w, vf *d, vf *m) \
    {                                                              \
        (void)m;                                                   \
        *d = vi_halfword(vi_words_of_rows(w, 0), false);           \
    }
ONE_SCALE(Q4_0)
ONE_SCALE(Q5_0)
ONE_SCALE(Q8_0)
ONE_SCALE(IQ4_NL)

/* And a least value behind it. */
#define TWO_SCALES(code)                                           \
    VF_INLINE void scales_##code(const vb_source *w, vf *d, vf *m) \
    {                                                              \
        vi both = vi_words_of_rows(w, 0);                          \
        *d = vi_halfword(both, false);                             \
        *m = vi_halfword(both, true);                              \
    }
TWO_SCALES(Q4_1)
TWO_SCALES(Q5_1)

/* Nibbles at `at`, and before them four bytes of fifth bits: raw[4]. */
VF_INLINE void load_fifth(const vb_source *w, size_t at, vb *raw)
{
    turned(w, at, raw);
    raw[4] = (vb)vi_words_of_rows(w, at - 4);
}
VF_INLINE vb field_fifth(const vb *raw, int p, int c)
{
    static const uint8_t byte[16] = {0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12};
    static const uint8_t bits[2][4] = {{1, 2, 4, 8}, {16, 32, 64, 128}};
    vb which = vb_or(vb_repeat16(byte), vb_set1((uint8_t)(p * 2 + c / 2)));
    return vb_or_where(nibble(raw[c], p == 1), vb_lookup(raw[4], which), vb_repeat4(bits[c % 2]),
                       vb_set1(16));
}
#define FIFTH(code, at)                                               \
    VF_INLINE void load_##code(const vb_source *w, int step, vb *raw) \
    {                                                                 \
        (void)step;                                                   \
        load_fifth(w, at, raw);                                       \
    }                                                                 \
    VF_INLINE vb field_##code(const vb *raw, int step, int p, int c)  \
    {                                                                 \
        (void)step;                                                   \
        return field_fifth(raw, p, c);                                \
    }                                                                 \
    VF_INLINE int place_##code(int step, int p) { return step * 2 + p; }
FIFTH(Q5_0, 6)
FIFTH(Q5_1, 8)

VF_INLINE void load_Q8_0(const vb_source *w, int step, vb *raw) { turned(w, 2 + 16 * (size_t)step, raw); }
VF_INLINE vb field_Q8_0(const vb *raw, int step, int p, int c)
{
    (void)step;
    (void)p;
    return vb_xor(raw[c], vb_set1(VB_WIDE_OFFSET));
}
VF_INLINE int place_Q8_0(int step, int p) { return step + p; }

VF_INLINE vb field_uneven(const vb *raw, int p, int c)
{
    vb table = vb_xor(vb_repeat16((const uint8_t *)uneven), vb_set1(VB_WIDE_OFFSET));
    return vb_lookup(table, nibble(raw[c], p == 1));
}
#define UNEVEN(code, at)                                              \
    VF_INLINE void load_##code(const vb_source *w, int step, vb *raw) \
    {                                                                 \
        turned(w, (at) + 16 * (size_t)step, raw);                     \
    }                                                                 \
    VF_INLINE vb field_##code(const vb *raw, int step, int p, int c)  \
    {                                                                 \
        (void)step;                                                   \
        return field_uneven(raw, p, c);                               \
    }                                                                 \
    VF_INLINE int place_##code(int step, int p) { return step * 2 + p; }
UNEVEN(IQ4_NL, 2)
UNEVEN(IQ4_XS, 8)

/* ---- Blocks of 256 values ---- */

enum { PARTS_Q2_K = 4, PARTS_Q3_K = 4, PARTS_Q4_K = 2, PARTS_Q5_K = 2, PARTS_Q6_K = 4, PARTS_IQ4_XS = 2 };
enum {
    FLUSH_Q2_K = 128,
    FLUSH_Q3_K = 128,
    FLUSH_Q4_K = 64,
    FLUSH_Q5_K = 64,
    FLUSH_Q6_K = 128,
    FLUSH_IQ4_XS = 32
};

/* `bits` bits of each lane from bit `from` on, as a number. */
VF_INLINE vi number(vi v, int from, int bits) { return vi_and(vi_down(v, from), vi_set1((1 << bits) - 1)); }

VF_INLINE void head_words(const vb_source *w, size_t at, vi *word)
{
    vb raw[4];
    turned(w, at, raw);
    for (int j = 0; j < 4; j++)
        word[j] = (vi)raw[j];
}

/* In Q2_K, Q3_K and Q6_K a step is one side of a half: 16 of the bytes whose pairs of bits are four quarters. */
VF_INLINE int place_in_half(int step, int p) { return step / 2 * 8 + p * 2 + step % 2; }

VF_INLINE void load_Q2_K(const vb_source *w, int step, vb *raw) { turned(w, 16 + 16 * (size_t)step, raw); }
VF_INLINE vb field_Q2_K(const vb *raw, int step, int p, int c)
{
    (void)step;
    return vb_and(vb_shift(raw[c], -2 * p), vb_set1(3));
}
VF_INLINE int place_Q2_K(int step, int p) { return place_in_half(step, p); }
VF_INLINE void scales_Q2_K(const vb_source *w, vf *d, vf *m)
{
    vi both = vi_words_of_rows(w, 80), word[4];
    vf scale = vi_halfword(both, false), least = vf_neg(vi_halfword(both, true));
    head_words(w, 0, word);
    for (int g = 0; g < 16; g++) {
        d[g] = vf_mul(scale, vf_from_vi(number(word[g / 4], g % 4 * 8, 4)));
        m[g] = vf_mul(least, vf_from_vi(number(word[g / 4], g % 4 * 8 + 4, 4)));
    }
}

VF_INLINE void load_Q3_K(const vb_source *w, int step, vb *raw)
{
    turned(w, 32 + 16 * (size_t)step, raw);
    turned(w, 16 * (size_t)(step % 2), raw + 4);
}
VF_INLINE vb field_Q3_K(const vb *raw, int step, int p, int c)
{
    vb low = vb_and(vb_shift(raw[c], -2 * p), vb_set1(3));
    return vb_or(low, vb_and(vb_shift(raw[4 + c], 2 - (step / 2 * 4 + p)), vb_set1(4)));
}
VF_INLINE int place_Q3_K(int step, int p) { return place_in_half(step, p); }
VF_INLINE void scales_Q3_K(const vb_source *w, vf *d, vf *m)
{
    (void)m;
    vf scale = vi_halfword(vi_words_of_rows(w, 106), true);
    vi word[3];
    for (int k = 0; k < 3; k++)
        word[k] = vi_words_of_rows(w, 96 + 4 * (size_t)k);
    for (int g = 0; g < 16; g++) {
        vi low = number(word[g / 4 % 2], g % 4 * 8 + (g < 8 ? 0 : 4), 4);
        vi high = number(word[2], g % 4 * 8 + g / 4 * 2, 2);
        d[g] = vf_mul(scale, vf_from_vi(vi_sub(vi_or(low, vi_shl(high, 4)), vi_set1(32))));
    }
}

VF_INLINE void load_Q4_K(const vb_source *w, int step, vb *raw) { turned(w, 16 + 16 * (size_t)step, raw); }
VF_INLINE vb field_Q4_K(const vb *raw, int step, int p, int c)
{
    (void)step;
    return nibble(raw[c], p == 1);
}
VF_INLINE int place_Q4_K(int step, int p) { return step / 2 * 4 + p * 2 + step % 2; }
VF_INLINE void scales_Q4_K(const vb_source *w, vf *d, vf *m)
{
    vi word[4];
    head_words(w, 0, word);
    vf scale = vi_halfword(word[0], false), least = vf_neg(vi_halfword(word[0], true));
    for (int g = 0; g < 8; g++) {
        int from = g % 4 * 8;
        vi s = number(word[1], from, 6), l = number(word[2], from, 6);
        if (g >= 4) {
            s = vi_or(number(word[3], from, 4), vi_shl(number(word[1], from + 6, 2), 4));
            l = vi_or(number(word[3], from + 4, 4), vi_shl(number(word[2], from + 6, 2), 4));
        }
        d[g] = vf_mul(scale, vf_from_vi(s));
        m[g] = vf_mul(least, vf_from_vi(l));
    }
}

VF_INLINE void load_Q5_K(const vb_source *w, int step, vb *raw)
{
    turned(w, 48 + 16 * (size_t)step, raw);
    turned(w, 16 + 16 * (size_t)(step % 2), raw + 4);
}
VF_INLINE vb field_Q5_K(const vb *raw, int step, int p, int c)
{
    vb fifth = vb_and(vb_shift(raw[4 + c], 4 - (step / 2 * 2 + p)), vb_set1(16));
    return vb_or(nibble(raw[c], p == 1), fifth);
}
VF_INLINE int place_Q5_K(int step, int p) { return place_Q4_K(step, p); }
VF_INLINE void scales_Q5_K(const vb_source *w, vf *d, vf *m) { scales_Q4_K(w, d, m); }

VF_INLINE void load_Q6_K(const vb_source *w, int step, vb *raw)
{
    size_t side = 16 * (size_t)(step % 2), half = (size_t)(step / 2);
    turned(w, half * 64 + side, raw);
    turned(w, half * 64 + 32 + side, raw + 4);
    turned(w, 128 + half * 32 + side, raw + 8);
}
VF_INLINE vb field_Q6_K(const vb *raw, int step, int p, int c)
{
    (void)step;
    vb high = vb_and(vb_shift(raw[8 + c], 4 - 2 * p), vb_set1(48));
    return vb_or(nibble(raw[p % 2 * 4 + c], p >= 2), high);
}
VF_INLINE int place_Q6_K(int step, int p) { return place_in_half(step, p); }
VF_INLINE void scales_Q6_K(const vb_source *w, vf *d, vf *m)
{
    (void)m;
    vf scale = vi_halfword(vi_words_of_rows(w, 206), true);
    vi word[4], sign = vi_set1(128);
    head_words(w, 192, word);
    for (int g = 0; g < 16; g++) {
        vi byte = number(word[g / 4], g % 4 * 8, 8);
        d[g] = vf_mul(scale, vf_from_vi(vi_sub(vi_xor(byte, sign), sign)));
    }
}

VF_INLINE void scales_IQ4_XS(const vb_source *w, vf *d, vf *m)
{
    (void)m;
    vi word[4];
    head_words(w, 0, word);
    vf scale = vi_halfword(word[0], false);
    for (int g = 0; g < 8; g++) {
        vi s = vi_or(number(word[1], g * 4, 4), vi_shl(number(word[0], 16 + g * 2, 2), 4));
        d[g] = vf_mul(scale, vf_from_vi(vi_sub(s, vi_set1(32))));
    }
}

#endif
