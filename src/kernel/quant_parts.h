/* Blocks of every type in vectors, VF_LANES weight rows at a time; included by quant.c alone. block_decode.h says how
 * each type lies in memory.
 *
 * For each type:
 *
 *     parts_TYPE(w, j, step, part)    step `step` of the block at the source w, of rows j, j + 4, ... (vb_rows): its
 *                                     values as bytes u, 16 in each quarter of a part, in order
 *     scales_TYPE(w, d, m)            scales and least values of all groups of the block, of all rows
 *     STEP_TYPE                       values of a step: those that share most of the bytes that they come from */
#ifndef MICA_SRC_KERNEL_QUANT_PARTS_H
#define MICA_SRC_KERNEL_QUANT_PARTS_H

/* ---- Blocks of 32 values ---- */

enum { STEP_Q4_0 = 32, STEP_Q4_1 = 32, STEP_Q5_0 = 32, STEP_Q5_1 = 32, STEP_Q8_0 = 32, STEP_IQ4_NL = 32 };

VF_INLINE void nibbles(const vb_source *w, int j, size_t at, vb *part)
{
    vb q = vb_rows(w, j, at), low = vb_set1(15);
    part[0] = vb_and(q, low);
    part[1] = vb_and(vb_shift(q, -4), low);
}

VF_INLINE void parts_Q4_0(const vb_source *w, int j, int step, vb *part)
{
    (void)step;
    nibbles(w, j, 2, part);
}
VF_INLINE void scales_Q4_0(const vb_source *w, vf *d, vf *m)
{
    (void)m;
    *d = vi_halfword(vi_words_of_rows(w, 0), false);
}

VF_INLINE void parts_Q4_1(const vb_source *w, int j, int step, vb *part)
{
    (void)step;
    nibbles(w, j, 4, part);
}
VF_INLINE void scales_Q4_1(const vb_source *w, vf *d, vf *m)
{
    vi both = vi_words_of_rows(w, 0);
    *d = vi_halfword(both, false);
    *m = vi_halfword(both, true);
}

/* Sets the fifth bits of 32 values. They are bytes `from` to from + 3 of the block. */
VF_INLINE void fifth_bits(const vb_source *w, int j, int from, vb *part)
{
    static const uint8_t which[16] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
    static const uint8_t bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    vb head = vb_rows(w, j, 0), bit = vb_repeat16(bits), fifth = vb_set1(16);
    vb first = vb_or(vb_repeat16(which), vb_set1((uint8_t)from)); /* from is even */
    vb second = vb_or(vb_repeat16(which), vb_set1((uint8_t)(from + 2)));
    part[0] = vb_or_where(part[0], vb_lookup(head, first), bit, fifth);
    part[1] = vb_or_where(part[1], vb_lookup(head, second), bit, fifth);
}

VF_INLINE void parts_Q5_0(const vb_source *w, int j, int step, vb *part)
{
    (void)step;
    nibbles(w, j, 6, part);
    fifth_bits(w, j, 2, part);
}
VF_INLINE void scales_Q5_0(const vb_source *w, vf *d, vf *m) { scales_Q4_0(w, d, m); }

VF_INLINE void parts_Q5_1(const vb_source *w, int j, int step, vb *part)
{
    (void)step;
    nibbles(w, j, 8, part);
    fifth_bits(w, j, 4, part);
}
VF_INLINE void scales_Q5_1(const vb_source *w, vf *d, vf *m) { scales_Q4_1(w, d, m); }

VF_INLINE void parts_Q8_0(const vb_source *w, int j, int step, vb *part)
{
    (void)step;
    part[0] = vb_xor(vb_rows(w, j, 2), vb_set1(VB_WIDE_OFFSET));
    part[1] = vb_xor(vb_rows(w, j, 18), vb_set1(VB_WIDE_OFFSET));
}
VF_INLINE void scales_Q8_0(const vb_source *w, vf *d, vf *m) { scales_Q4_0(w, d, m); }

VF_INLINE void uneven_parts(const vb_source *w, int j, size_t at, vb *part)
{
    vb table = vb_xor(vb_repeat16((const uint8_t *)uneven), vb_set1(VB_WIDE_OFFSET));
    nibbles(w, j, at, part);
    part[0] = vb_lookup(table, part[0]);
    part[1] = vb_lookup(table, part[1]);
}

VF_INLINE void parts_IQ4_NL(const vb_source *w, int j, int step, vb *part)
{
    (void)step;
    uneven_parts(w, j, 2, part);
}
VF_INLINE void scales_IQ4_NL(const vb_source *w, vf *d, vf *m) { scales_Q4_0(w, d, m); }

/* ---- Blocks of 256 values ---- */

enum { STEP_Q2_K = 128, STEP_Q3_K = 128, STEP_Q4_K = 64, STEP_Q5_K = 64, STEP_Q6_K = 128, STEP_IQ4_XS = 32 };

/* Sixteen bytes of all rows, four of each in a vector. */
VF_INLINE void head_words(const vb_source *w, size_t at, vi *word)
{
    vb v[4];
    for (int j = 0; j < 4; j++)
        v[j] = vb_rows(w, j, at);
    vb_turn_rows(v);
    for (int j = 0; j < 4; j++)
        word[j] = (vi)v[j];
}

/* `bits` bits of each lane from bit `from` on, as a number. */
VF_INLINE vi field(vi v, int from, int bits) { return vi_and(vi_down(v, from), vi_set1((1 << bits) - 1)); }

/* The 2 lowest bits of what both sides of a half hold, then the next: 8 parts. */
VF_INLINE void two_bits(const vb_source *w, int j, size_t at, int half, vb *part)
{
    for (int side = 0; side < 2; side++) {
        vb q = vb_rows(w, j, at + (size_t)(half * 32 + side * 16));
        for (int quarter = 0; quarter < 4; quarter++)
            part[quarter * 2 + side] = vb_and(vb_shift(q, -2 * quarter), vb_set1(3));
    }
}

VF_INLINE void parts_Q2_K(const vb_source *w, int j, int step, vb *part) { two_bits(w, j, 16, step, part); }
VF_INLINE void scales_Q2_K(const vb_source *w, vf *d, vf *m)
{
    vi both = vi_words_of_rows(w, 80), word[4];
    vf scale = vi_halfword(both, false), least = vi_halfword(both, true);
    head_words(w, 0, word);
    for (int g = 0; g < 16; g++) {
        d[g] = vf_mul(scale, vf_from_vi(field(word[g / 4], g % 4 * 8, 4)));
        m[g] = vf_neg(vf_mul(least, vf_from_vi(field(word[g / 4], g % 4 * 8 + 4, 4))));
    }
}

VF_INLINE void parts_Q3_K(const vb_source *w, int j, int step, vb *part)
{
    two_bits(w, j, 32, step, part);
    for (int side = 0; side < 2; side++) {
        vb third = vb_rows(w, j, (size_t)(side * 16));
        for (int quarter = 0; quarter < 4; quarter++) {
            vb *p = &part[quarter * 2 + side];
            *p = vb_or(*p, vb_and(vb_shift(third, 2 - (step * 4 + quarter)), vb_set1(4)));
        }
    }
}
VF_INLINE void scales_Q3_K(const vb_source *w, vf *d, vf *m)
{
    (void)m;
    vf scale = vi_halfword(vi_words_of_rows(w, 106), true);
    vi word[3];
    for (int k = 0; k < 3; k++)
        word[k] = vi_words_of_rows(w, 96 + 4 * (size_t)k);
    for (int g = 0; g < 16; g++) {
        vi low = field(word[g / 4 % 2], g % 4 * 8 + (g < 8 ? 0 : 4), 4);
        vi high = field(word[2], g % 4 * 8 + g / 4 * 2, 2);
        d[g] = vf_mul(scale, vf_from_vi(vi_sub(vi_or(low, vi_shl(high, 4)), vi_set1(32))));
    }
}

/* 32 bytes: their low nibbles, then their high ones. */
VF_INLINE void wide_nibbles(const vb_source *w, int j, size_t at, vb *part)
{
    for (int side = 0; side < 2; side++) {
        vb q = vb_rows(w, j, at + (size_t)(side * 16)), low = vb_set1(15);
        part[side] = vb_and(q, low);
        part[2 + side] = vb_and(vb_shift(q, -4), low);
    }
}

VF_INLINE void parts_Q4_K(const vb_source *w, int j, int step, vb *part)
{
    wide_nibbles(w, j, 16 + (size_t)(step * 32), part);
}
VF_INLINE void scales_Q4_K(const vb_source *w, vf *d, vf *m)
{
    vi word[4];
    head_words(w, 0, word);
    vf scale = vi_halfword(word[0], false), least = vi_halfword(word[0], true);
    for (int g = 0; g < 8; g++) {
        int from = g % 4 * 8;
        vi s = field(word[1], from, 6), l = field(word[2], from, 6);
        if (g >= 4) {
            s = vi_or(field(word[3], from, 4), vi_shl(field(word[1], from + 6, 2), 4));
            l = vi_or(field(word[3], from + 4, 4), vi_shl(field(word[2], from + 6, 2), 4));
        }
        d[g] = vf_mul(scale, vf_from_vi(s));
        m[g] = vf_neg(vf_mul(least, vf_from_vi(l)));
    }
}

VF_INLINE void parts_Q5_K(const vb_source *w, int j, int step, vb *part)
{
    wide_nibbles(w, j, 48 + (size_t)(step * 32), part);
    for (int side = 0; side < 2; side++) {
        vb fifth = vb_rows(w, j, 16 + (size_t)(side * 16));
        for (int k = 0; k < 2; k++)
            part[2 * k + side] = vb_or(part[2 * k + side],
                                       vb_and(vb_shift(fifth, 4 - (2 * step + k)), vb_set1(16)));
    }
}
VF_INLINE void scales_Q5_K(const vb_source *w, vf *d, vf *m) { scales_Q4_K(w, d, m); }

VF_INLINE void parts_Q6_K(const vb_source *w, int j, int step, vb *part)
{
    for (int side = 0; side < 2; side++) {
        size_t low = (size_t)(step * 64 + side * 16), high = 128 + (size_t)(step * 32 + side * 16);
        vb a = vb_rows(w, j, low), b = vb_rows(w, j, low + 32), pairs = vb_rows(w, j, high),
           nibble = vb_set1(15);
        vb from[4] = {a, b, vb_shift(a, -4), vb_shift(b, -4)};
        for (int quarter = 0; quarter < 4; quarter++)
            part[quarter * 2 + side] = vb_or(vb_and(from[quarter], nibble),
                                             vb_and(vb_shift(pairs, 4 - 2 * quarter), vb_set1(48)));
    }
}
VF_INLINE void scales_Q6_K(const vb_source *w, vf *d, vf *m)
{
    (void)m;
    vf scale = vi_halfword(vi_words_of_rows(w, 206), true);
    vi word[4];
    head_words(w, 192, word);
    for (int g = 0; g < 16; g++) {
        vi byte = field(word[g / 4], g % 4 * 8, 8), sign = vi_set1(128);
        d[g] = vf_mul(scale, vf_from_vi(vi_sub(vi_xor(byte, sign), sign)));
    }
}

VF_INLINE void parts_IQ4_XS(const vb_source *w, int j, int step, vb *part)
{
    uneven_parts(w, j, 8 + (size_t)(step * 16), part);
}
VF_INLINE void scales_IQ4_XS(const vb_source *w, vf *d, vf *m)
{
    (void)m;
    vi word[4];
    head_words(w, 0, word);
    vf scale = vi_halfword(word[0], false);
    for (int g = 0; g < 8; g++) {
        vi s = vi_or(field(word[1], g * 4, 4), vi_shl(field(word[0], 16 + g * 2, 2), 4));
        d[g] = vf_mul(scale, vf_from_vi(vi_sub(s, vi_set1(32))));
    }
}

#endif
