/* Convolution with channels last: lanes are output channels, so the quads of pixels are what is repeated, and results
 * of a pixel lie side by side. Sums stay in registers for all taps. Part of int8.c. */
#ifndef MICA_SRC_KERNEL_INT8_LAST_H
#define MICA_SRC_KERNEL_INT8_LAST_H

#include "kernel/int8.h"
#include "kernel/vec.h"

#if VF_LANES > 1

/* Pixels whose sums are in registers, in two vectors each; results of a depthwise convolution, in four. */
#if VF_REGISTERS >= 32
enum { LAST = 14, DEEP_RESULTS = 4 };
#else
enum { LAST = 4, DEEP_RESULTS = 2 };
#endif
enum { LAST_PANEL = 2 * VF_LANES, DEEP = 4 * VF_LANES };

/* What finishes sums of channels in lanes: numbers for each, whole vectors of them. */
typedef struct lane_ends {
    const mica_int8_finish *f;
    int each;
    bool affine, high; /* by vectors: floats below 2^31, high words; else by finish_row */
    float factor[DEEP];
    int32_t multiplier[DEEP], half[DEEP], down[DEEP];
} lane_ends;

/* `place[c]`: the lane of channel c; NULL: itself. */
static void set_ends(lane_ends *e, const mica_int8_finish *f, size_t channels, size_t lanes, int each,
                     const uint8_t *place)
{
    e->f = f;
    e->each = each;
    e->affine = f->kind == MICA_INT8_AFFINE;
    e->high = f->kind == MICA_INT8_SHIFTED && shifts_are_high(f, channels, each);
    for (size_t c = 0; c < lanes; c++) {
        size_t k = each && c < channels ? c : 0, at = place != NULL ? place[c] : c;
        if (f->kind == MICA_INT8_AFFINE) {
            e->factor[at] = f->factor[k];
            e->affine = e->affine && f->factor[k] <= 0.5f;
        }
        if (!e->high)
            continue;
        e->multiplier[at] = f->multiplier[k];
        e->half[at] = (int32_t)1 << (f->shift[k] - 33);
        e->down[at] = f->shift[k] - 32;
    }
}

/* The same in registers, for as many vectors as there are: results are bytes, which might be anything to compilers. */
typedef struct lane_numbers {
    vf factor[4];
    vi zero, multiplier[4], half[4], down[4];
    vb low, high;
} lane_numbers;

VF_INLINE void load_numbers(lane_numbers *n, const lane_ends *e, size_t vectors)
{
    n->zero = vi_set1(e->f->zero);
    n->low = vb_set1((uint8_t)e->f->low);
    n->high = vb_set1((uint8_t)e->f->high);
    for (size_t v = 0; v < vectors; v++) {
        n->factor[v] = vf_load(e->factor + v * VF_LANES);
        n->multiplier[v] = vi_load(e->multiplier + v * VF_LANES);
        n->half[v] = vi_load(e->half + v * VF_LANES);
        n->down[v] = vi_load(e->down + v * VF_LANES);
    }
}

/* Vector v of sums, not limited yet; `affine` is a constant, else it is by high words. */
VF_INLINE vi ended(const lane_numbers *n, vi sum, size_t v, bool affine)
{
    if (affine)
        return vi_add(vi_from_vf(vf_mul(vf_from_vi(sum), n->factor[v])), n->zero);
    return vi_sar_each(vi_add(vi_mulhi(sum, n->multiplier[v]), n->half[v]), n->down[v]);
}

/* Fewer bytes than a vector has. */
VF_INLINE void copy_few(char *to, const int8_t *from, size_t count)
{
    for (size_t n = DEEP / 2; n > 0; n /= 2)
        if (count & n) {
            memcpy(to, from, n);
            to += n;
            from += n;
        }
}

/* Four vectors of sums of pixels to bytes; `vectors`, of a pixel, and `affine` are constants. */
VF_INLINE vb end_four(const lane_numbers *n, const vi sum[4], size_t vectors, bool affine)
{
    vi four[4];
    for (size_t k = 0; k < 4; k++)
        four[k] = ended(n, sum[k], k % vectors, affine);
    return vb_limit(vb_pack_lanes(four), n->low, n->high);
}

/* Sums of pixels that are still in registers, of whole vectors of channels; `affine` is a constant. */
VF_INLINE void end_pixels(char *y, size_t stride, vi (*sum)[2], size_t pixels, size_t vectors,
                          const lane_ends *e, bool affine)
{
    lane_numbers n;
    load_numbers(&n, e, vectors);
#pragma GCC unroll 14
    for (size_t p = 0; p < pixels; p += 4 / vectors) {
        vi four[4];
        for (size_t k = 0; k < 4; k++) /* behind the last pixel, that one again */
            four[k] = sum[p + k / vectors < pixels ? p + k / vectors : pixels - 1][k % vectors];
        vb bytes = end_four(&n, four, vectors, affine);
        int8_t *to = (int8_t *)y + p * stride;
        size_t there = (pixels - p) * vectors;
        vb_store_part(to, bytes, 0);
        if (there > 1)
            vb_store_part(to + (vectors == 1 ? stride : VF_LANES), bytes, 1);
        if (there > 2)
            vb_store_part(to + (vectors == 1 ? 2 * stride : stride), bytes, 2);
        if (there > 3)
            vb_store_part(to + (vectors == 1 ? 3 * stride : stride + VF_LANES), bytes, 3);
    }
}

/* Any others: sums of pixels, LAST_PANEL apart; what lies behind the last goes nowhere. */
VF_INLINE void end_rows(char *y, size_t stride, const int32_t *sum, size_t pixels, size_t vectors,
                        size_t channels, const lane_ends *e, bool affine)
{
    lane_numbers n;
    load_numbers(&n, e, vectors);
    for (size_t p = 0; p < pixels; p += 4 / vectors) {
        vi four[4];
        int8_t made[4 * VF_LANES];
        for (size_t k = 0; k < 4; k++)
            four[k] = vi_load(sum + (p + k / vectors) * LAST_PANEL + k % vectors * VF_LANES);
        vb_store((uint8_t *)made, end_four(&n, four, vectors, affine));
        for (size_t k = p; k < pixels && k < p + 4 / vectors; k++)
            copy_few(y + k * stride, made + (k - p) * vectors * VF_LANES, channels);
    }
}

static void end_others(char *y, size_t stride, const int32_t *sum, size_t pixels, size_t channels,
                       const lane_ends *e)
{
    size_t vectors = (channels + VF_LANES - 1) / VF_LANES;
    if (!e->affine && !e->high)
        for (size_t p = 0; p < pixels; p++)
            finish_row(y + p * stride, sum + p * LAST_PANEL, channels, e->f, e->each);
    else if (vectors == 2)
        end_rows(y, stride, sum, pixels, 2, channels, e, e->affine);
    else
        end_rows(y, stride, sum, pixels, 1, channels, e, e->affine);
}

/* Pixels and vectors are constants. Every fourth pixel has an address; those of the others need no arithmetic. */
VF_INLINE void last_of(const mica_int8_last *t, size_t pixel, size_t pixels, size_t vectors, size_t channels,
                       const lane_ends *e)
{
    vi s[LAST][2];
    const uint8_t *fourth[(LAST + 3) / 4];
    size_t one = t->step, three = 3 * one;
    for (size_t k = 0; 4 * k < pixels; k++)
        fourth[k] = t->x + (pixel + 4 * k) * one;
    const uint8_t *w = (const uint8_t *)t->w;
#pragma GCC unroll 14
    for (size_t p = 0; p < pixels; p++)
        for (size_t v = 0; v < vectors; v++)
            s[p][v] = vi_load(t->start + v * VF_LANES);
    for (size_t q = 0; q < t->quads; q++, w += 4 * vectors * VF_LANES) {
        ptrdiff_t at = t->at[q];
        vb four[2];
        for (size_t v = 0; v < vectors; v++)
            four[v] = vb_load(w + 4 * v * VF_LANES);
        for (size_t k = 0; 4 * k < pixels; k++) {
            const uint8_t *x = fourth[k] + at;
            for (size_t p = 0; p < 4 && 4 * k + p < pixels; p++) {
                vb quad = vb_repeat4(p == 3 ? x + three : x + p * one);
                for (size_t v = 0; v < vectors; v++)
                    s[4 * k + p][v] = vi_dot_wide(s[4 * k + p][v], quad, four[v]);
            }
        }
    }
    char *y = t->y + pixel * t->stride;
    if (channels == vectors * VF_LANES && e->affine) {
        end_pixels(y, t->stride, s, pixels, vectors, e, true);
        return;
    }
    if (channels == vectors * VF_LANES && e->high) {
        end_pixels(y, t->stride, s, pixels, vectors, e, false);
        return;
    }
    int32_t room[(LAST + 4) * LAST_PANEL];
#pragma GCC unroll 14
    for (size_t p = 0; p < pixels; p++)
        for (size_t v = 0; v < vectors; v++)
            vi_store(room + p * LAST_PANEL + v * VF_LANES, s[p][v]);
    for (size_t p = pixels; p < pixels + 4; p++) /* read, not written */
        for (size_t v = 0; v < vectors; v++)
            vi_store(room + p * LAST_PANEL + v * VF_LANES, s[0][v]);
    end_others(y, t->stride, room, pixels, channels, e);
}

/* Runs of about the same length. */
VF_INLINE void last_vectors(const mica_int8_last *t, size_t vectors, size_t channels, const lane_ends *e)
{
    size_t runs = (t->pixels + LAST - 1) / LAST;
    for (size_t run = 0, pixel = 0; run < runs; run++) {
        size_t pixels = (t->pixels - pixel + runs - run - 1) / (runs - run);
        switch (pixels) {
#define LAST_CASE(n)                                \
    case n:                                         \
        last_of(t, pixel, n, vectors, channels, e); \
        break;
#if VF_REGISTERS >= 32
            LAST_CASE(14)
            LAST_CASE(13)
            LAST_CASE(12)
            LAST_CASE(11)
            LAST_CASE(10)
            LAST_CASE(9)
            LAST_CASE(8)
            LAST_CASE(7)
            LAST_CASE(6)
            LAST_CASE(5)
#endif
            LAST_CASE(4)
            LAST_CASE(3)
            LAST_CASE(2)
            LAST_CASE(1)
#undef LAST_CASE
        default:
            break;
        }
        pixel += pixels;
    }
}

static void last(const mica_int8_last *t, size_t channels, const mica_int8_finish *f, int each)
{
    lane_ends e;
    size_t vectors = (channels + VF_LANES - 1) / VF_LANES;
    set_ends(&e, f, channels, vectors * VF_LANES, each, NULL);
    mica_int8_last row = *t;
    for (size_t r = 0; r < t->rows; r++, row.x += t->x_row, row.y += t->y_row)
        if (vectors == 2)
            last_vectors(&row, 2, channels, &e);
        else
            last_vectors(&row, 1, channels, &e);
}

/* ---- Depthwise: channels are in the order that the halves of bytes, then of words, of four rows interleave to ---- */

static size_t deep_at(size_t c) { return c % 16 / 4 * VF_LANES + c / 16 * 4 + c % 4; }

/* Four vectors of sums to bytes of results; their number and `affine` are constants. */
VF_INLINE void end_deep(char *y, size_t stride, vi (*sum)[4], size_t results, size_t channels,
                        const lane_ends *e, bool affine)
{
    lane_numbers n;
    load_numbers(&n, e, 4);
#pragma GCC unroll 4
    for (size_t r = 0; r < results; r++, y += stride) {
        vi four[4];
        for (size_t v = 0; v < 4; v++)
            four[v] = ended(&n, sum[r][v], v, affine);
        vb bytes = vb_limit(vb_pack_quads(four), n.low, n.high);
        if (channels == DEEP) {
            vb_store((uint8_t *)y, bytes);
            continue;
        }
        int8_t made[DEEP];
        vb_store((uint8_t *)made, bytes);
        copy_few(y, made, channels);
    }
}

VF_INLINE void end_deep_others(char *y, size_t stride, vi (*sum)[4], size_t results, size_t channels,
                               const lane_ends *e)
{
    for (size_t r = 0; r < results; r++) {
        int32_t room[DEEP], order[DEEP];
        for (size_t v = 0; v < 4; v++)
            vi_store(room + v * VF_LANES, sum[r][v]);
        for (size_t c = 0; c < DEEP; c++)
            order[c] = room[deep_at(c)];
        finish_row(y + r * stride, order, channels, e->f, e->each);
    }
}

/* So many results, a constant, from x on; `width` and `stride` are constants too, or those of *t. Columns of taps are
 * read once for all the results that they belong to. */
VF_INLINE void deep_of(const mica_int8_deep *t, const uint8_t *x, char *y, size_t results, size_t width,
                       size_t stride, const int32_t *start, size_t channels, const lane_ends *e)
{
    vi s[DEEP_RESULTS][4];
    for (size_t r = 0; r < results; r++)
        for (size_t v = 0; v < 4; v++)
            s[r][v] = vi_load(start + v * VF_LANES);
    const uint8_t *w = (const uint8_t *)t->w;
    for (size_t first = 0; first < t->taps[0]; first += 4, w += width * 4 * DEEP) {
        const uint8_t *row[4]; /* what there is not has weights of 0 */
        for (size_t k = 0; k < 4; k++)
            row[k] = x + (first + k < t->taps[0] ? first + k : first) * t->dilation[0] * t->row;
#pragma GCC unroll 9
        for (size_t c = 0; c < (results - 1) * stride + width; c++) {
            vb quad[4];
            for (size_t k = 0; k < 4; k++)
                quad[k] = vb_load(row[k] + c * t->dilation[1] * t->column);
            vb_make_quads(quad);
            for (size_t r = 0; r < results; r++) {
                if (c < r * stride || c >= r * stride + width)
                    continue;
                const uint8_t *tap = w + (c - r * stride) * 4 * DEEP;
                for (size_t v = 0; v < 4; v++)
                    s[r][v] = vi_dot_wide(s[r][v], quad[v], vb_load(tap + v * 4 * VF_LANES));
            }
        }
    }
    if (e->affine)
        end_deep(y, t->y_column, s, results, channels, e, true);
    else if (e->high)
        end_deep(y, t->y_column, s, results, channels, e, false);
    else
        end_deep_others(y, t->y_column, s, results, channels, e);
}

VF_INLINE void deep_row(const mica_int8_deep *t, const uint8_t *x, char *y, size_t width, size_t stride,
                        const int32_t *start, size_t channels, const lane_ends *e)
{
    size_t r = 0;
    for (; width > 0 && r + DEEP_RESULTS <= t->made[1]; r += DEEP_RESULTS)
        deep_of(t, x + r * t->step[1], y + r * t->y_column, DEEP_RESULTS, width, stride, start, channels, e);
    for (; r < t->made[1]; r++)
        deep_of(t, x + r * t->step[1], y + r * t->y_column, 1, width > 0 ? width : t->taps[1], 1, start,
                channels, e);
}

static void depthwise(const mica_int8_deep *t, size_t channels, const mica_int8_finish *f, int each)
{
    lane_ends e;
    uint8_t place[DEEP];
    int32_t start[DEEP] = {0};
    for (size_t c = 0; c < DEEP; c++) {
        place[c] = (uint8_t)deep_at(c);
        if (c < channels)
            start[place[c]] = t->start[c];
    }
    set_ends(&e, f, channels, DEEP, each, place);
    size_t stride = t->dilation[1] == 1 ? t->step[1] / t->column : 0;
    for (size_t r = 0; r < t->made[0]; r++) {
        const uint8_t *x = t->x + r * t->step[0];
        char *y = t->y + r * t->y_row;
        if (t->taps[1] == 3 && stride == 1)
            deep_row(t, x, y, 3, 1, start, channels, &e);
        else if (t->taps[1] == 3 && stride == 2)
            deep_row(t, x, y, 3, 2, start, channels, &e);
        else if (t->taps[1] == 5 && stride == 1)
            deep_row(t, x, y, 5, 1, start, channels, &e);
        else
            deep_row(t, x, y, 0, 1, start, channels, &e);
    }
}

/* Whole vectors; the last of them once more, where there is one. */
static void largest_taps(int8_t *y, const int8_t *x, const ptrdiff_t *at, size_t taps, size_t count)
{
    const vb high = vb_set1(INT8_MAX);
    for (size_t k = 0; k < count && count >= DEEP; k += DEEP) {
        size_t c = k + DEEP <= count ? k : count - DEEP;
        vb most = vb_load((const uint8_t *)x + at[0] + c);
        for (size_t t = 1; t < taps; t++)
            most = vb_limit(most, vb_load((const uint8_t *)x + at[t] + c), high);
        vb_store((uint8_t *)y + c, most);
    }
    for (size_t c = 0; c < count && count < DEEP; c++) {
        int8_t most = INT8_MIN;
        for (size_t t = 0; t < taps; t++)
            most = x[at[t] + (ptrdiff_t)c] > most ? x[at[t] + (ptrdiff_t)c] : most;
        y[c] = most;
    }
}

#else

enum { LAST_PANEL = 4, DEEP = 4 };

static void largest_taps(int8_t *y, const int8_t *x, const ptrdiff_t *at, size_t taps, size_t count)
{
    for (size_t c = 0; c < count; c++) {
        int8_t most = INT8_MIN;
        for (size_t t = 0; t < taps; t++)
            most = x[at[t] + (ptrdiff_t)c] > most ? x[at[t] + (ptrdiff_t)c] : most;
        y[c] = most;
    }
}

static void last(const mica_int8_last *t, size_t channels, const mica_int8_finish *f, int each)
{
    for (size_t p = 0; p < t->rows * t->pixels; p++) {
        size_t row = p / t->pixels, pixel = p % t->pixels;
        const uint8_t *x = t->x + row * t->x_row + pixel * t->step;
        uint32_t s[LAST_PANEL];
        int32_t sum[LAST_PANEL];
        for (size_t c = 0; c < channels; c++)
            s[c] = (uint32_t)t->start[c];
        for (size_t q = 0; q < t->quads; q++)
            for (size_t c = 0; c < channels; c++)
                for (size_t k = 0; k < 4; k++)
                    s[c] += (uint32_t)((int8_t)x[t->at[q] + (ptrdiff_t)k] *
                                       t->w[(q * LAST_PANEL + c) * 4 + k]);
        for (size_t c = 0; c < channels; c++)
            sum[c] = (int32_t)s[c];
        finish_row(t->y + row * t->y_row + pixel * t->stride, sum, channels, f, each);
    }
}

static size_t deep_at(size_t c) { return c; }

static void depthwise(const mica_int8_deep *t, size_t channels, const mica_int8_finish *f, int each)
{
    for (size_t i = 0; i < t->made[0]; i++)
        for (size_t j = 0; j < t->made[1]; j++) {
            const uint8_t *x = t->x + i * t->step[0] + j * t->step[1];
            int32_t sum[DEEP];
            for (size_t c = 0; c < channels; c++) {
                uint32_t s = (uint32_t)t->start[c];
                for (size_t k = 0; k < t->taps[0]; k++)
                    for (size_t u = 0; u < t->taps[1]; u++)
                        s += (uint32_t)((int8_t)x[k * t->dilation[0] * t->row +
                                                  u * t->dilation[1] * t->column + c] *
                                        t->w[((k / 4 * t->taps[1] + u) * DEEP + c) * 4 + k % 4]);
                sum[c] = (int32_t)s;
            }
            finish_row(t->y + i * t->y_row + j * t->y_column, sum, channels, f, each);
        }
}

#endif

#endif
