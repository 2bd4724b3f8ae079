/* Recurrent cells; compiled once per instruction set. The formulas are PyTorch's. */
#include "kernel/recurrent.h"
#include "kernel/vec.h"
#include "kernel/vmath.h"

/* n is VF_LANES, a constant where this is inlined, or less at the end of a row. */
VF_INLINE vf load(const float *p, size_t n) { return n == VF_LANES ? vf_load(p) : vf_load_tail(p, n); }

VF_INLINE vf load_or_zero(const float *p, size_t j, size_t n)
{
    return p != NULL ? load(p + j, n) : vf_zero();
}

VF_INLINE void store(float *p, vf v, size_t n)
{
    if (n == VF_LANES)
        vf_store(p, v);
    else
        vf_store_tail(p, v, n);
}

VF_INLINE float *row_of(const mica_cell_rows *rows, size_t row)
{
    return rows->data != NULL ? rows->data + (ptrdiff_t)row * rows->stride : NULL;
}

VF_INLINE vf one(void) { return vf_set1(1.0f); }
/* The derivatives of sigmoid and tanh by what they gave; (1 - y) (1 + y) does not cancel near 1. */
VF_INLINE vf sigmoid_slope(vf y) { return vf_mul(y, vf_sub(one(), y)); }
VF_INLINE vf tanh_slope(vf y) { return vf_mul(vf_sub(one(), y), vf_add(one(), y)); }

/* The pointers of one row. */
typedef struct cell_row {
    size_t hidden;
    bool relu;
    float *gates, *h, *h_again, *c, *dgates, *dhidden, *dh, *dc, *sums;
    const float *from_hidden, *before, *c_before, *dy;
} cell_row;

/* A kernel is a loop over rows around what it does with the n units from j on, which is inlined. */
typedef void cell_part(const cell_row *row, size_t j, size_t n);

VF_INLINE void each_row(const mica_cell_step *s, size_t row, size_t rows, size_t unit, size_t units,
                        cell_part *part)
{
    for (size_t i = row; i < row + rows; i++) {
        cell_row at = {
            .hidden = s->hidden,
            .relu = s->relu,
            .gates = row_of(&s->gates, i),
            .h = row_of(&s->h, i),
#if !defined(MICA_SMALL)
            .h_again = row_of(&s->h_again, i),
#endif
            .c = row_of(&s->c, i),
            .dgates = row_of(&s->dgates, i),
            .dhidden = row_of(&s->dhidden, i),
            .dh = row_of(&s->dh, i),
            .dc = row_of(&s->dc, i),
            .sums = row_of(&s->sums, i / MICA_CELL_GROUP),
            .from_hidden = row_of(&s->from_hidden, i),
            .before = row_of(&s->before, i),
            .c_before = row_of(&s->c_before, i),
            .dy = row_of(&s->dy, i)
        };
        size_t j = unit, end = unit + units;
        for (; j + VF_LANES <= end; j += VF_LANES)
            part(&at, j, VF_LANES);
        if (j < end)
            part(&at, j, end - j);
    }
}

VF_INLINE void put_h(const cell_row *s, size_t j, vf h, size_t n)
{
    store(s->h + j, h, n);
#if !defined(MICA_SMALL)
    if (s->h_again != NULL)
        store(s->h_again + j, h, n);
#endif
}

/* Block k of dgates, and what is added up of it. */
VF_INLINE void put_dgate(const cell_row *s, size_t k, size_t j, vf d, size_t n)
{
    size_t at = k * s->hidden + j;
    store(s->dgates + at, d, n);
    if (s->sums != NULL)
        store(s->sums + at, vf_add(load(s->sums + at, n), d), n);
}

/* Block k of dhidden. */
VF_INLINE void put_dhidden(const cell_row *s, size_t k, size_t j, vf d, size_t n)
{
    if (s->dhidden != NULL)
        store(s->dhidden + k * s->hidden + j, d, n);
}

/* Of both, where they are the same. */
VF_INLINE void put_gradient(const cell_row *s, size_t k, size_t j, vf d, size_t n)
{
    put_dgate(s, k, j, d, n);
    put_dhidden(s, k, j, d, n);
}

/* ---- LSTM ---- */

VF_INLINE void lstm_part(const cell_row *s, size_t j, size_t n)
{
    float *at[4];
    for (size_t k = 0; k < 4; k++)
        at[k] = s->gates + k * s->hidden + j;
    vf i = vf_sigmoid(load(at[0], n)), f = vf_sigmoid(load(at[1], n));
    vf g = vf_tanh(load(at[2], n)), o = vf_sigmoid(load(at[3], n));
    vf c = vf_fma(f, load_or_zero(s->c_before, j, n), vf_mul(i, g));
    store(at[0], i, n);
    store(at[1], f, n);
    store(at[2], g, n);
    store(at[3], o, n);
    store(s->c + j, c, n);
}

VF_INLINE void lstm_output_part(const cell_row *s, size_t j, size_t n)
{
    vf o = load(s->gates + 3 * s->hidden + j, n);
    put_h(s, j, vf_mul(o, vf_tanh(load(s->c + j, n))), n);
}

#if !defined(MICA_SMALL)

/* 1 + e^-x, of which sigmoid(x) is the inverse. From 2^62 on it stays there: products with a tanh's bottom are
 * numbers. */
VF_INLINE vf sigmoid_bottom(vf x)
{
    vi n;
    vf q = vmath_expm1_reduced(vmath_at_least(vmath_at_most(vf_neg(x), 43.0f), -87.0f), &n);
    vf unit = vf_pow2i(n);
    return vf_fma(q, unit, vf_add(one(), unit));
}

/* tanh(x) = *top / *bottom; bottom is from 0.7 to 2.5. */
VF_INLINE void tanh_parts(vf x, vf *top, vf *bottom)
{
    vi n;
    vf a = vmath_at_most(vf_abs(x), 9.1f); /* beyond: 1 */
    vf q = vmath_expm1_reduced(vf_add(a, a), &n);
    vf inverse = vf_pow2i(vi_sub(vi_set1(0), n));
    vf t = vf_add(q, vf_sub(one(), inverse));
    *bottom = vf_fma(vf_set1(2.0f), inverse, t);
    *top = vf_copysign(t, x);
}

/* Where nobody reads the gates: three divisions instead of five. What it divides by in the end is left in the place of
 * o. */
VF_INLINE void lstm_plain_part(const cell_row *s, size_t j, size_t n)
{
    float *gates = s->gates + j;
    size_t hidden = s->hidden;
    vf i = sigmoid_bottom(load(gates, n)), f = sigmoid_bottom(load(gates + hidden, n));
    vf o = sigmoid_bottom(load(gates + 3 * hidden, n)), top, bottom;
    tanh_parts(load(gates + 2 * hidden, n), &top, &bottom);
    vf c = vf_add(vf_div(load_or_zero(s->c_before, j, n), f), vf_div(top, vf_mul(i, bottom)));
    store(gates + 3 * hidden, o, n);
    store(s->c + j, c, n);
}

VF_INLINE void lstm_plain_output_part(const cell_row *s, size_t j, size_t n)
{
    vf top, bottom;
    tanh_parts(load(s->c + j, n), &top, &bottom);
    store(s->h + j, vf_div(top, vf_mul(load(s->gates + 3 * s->hidden + j, n), bottom)), n);
}

#endif

/* dc += dh o (1 - tanh(c)^2);  di = dc g,  df = dc c',  dg = dc i,  do = dh tanh(c);  dc' = dc f */
VF_INLINE void lstm_backward_part(const cell_row *s, size_t j, size_t n)
{
    size_t hidden = s->hidden;
    const float *gates = s->gates + j;
    vf i = load(gates, n), f = load(gates + hidden, n);
    vf g = load(gates + 2 * hidden, n), o = load(gates + 3 * hidden, n);
    vf dh = vf_add(load(s->dh + j, n), load_or_zero(s->dy, j, n));
    vf squashed = vf_tanh(load(s->c + j, n));
    vf dc = vf_fma(vf_mul(dh, o), tanh_slope(squashed), load(s->dc + j, n));
    put_gradient(s, 0, j, vf_mul(vf_mul(dc, g), sigmoid_slope(i)), n);
    put_gradient(s, 1, j, vf_mul(vf_mul(dc, load_or_zero(s->c_before, j, n)), sigmoid_slope(f)), n);
    put_gradient(s, 2, j, vf_mul(vf_mul(dc, i), tanh_slope(g)), n);
    put_gradient(s, 3, j, vf_mul(vf_mul(dh, squashed), sigmoid_slope(o)), n);
    store(s->dc + j, vf_mul(dc, f), n);
}

/* ---- GRU ---- */

VF_INLINE void gru_part(const cell_row *s, size_t j, size_t n)
{
    size_t hidden = s->hidden;
    float *gates = s->gates + j;
    const float *from = s->from_hidden + j;
    vf r = vf_sigmoid(vf_add(load(gates, n), load(from, n)));
    vf z = vf_sigmoid(vf_add(load(gates + hidden, n), load(from + hidden, n)));
    vf m = load(from + 2 * hidden, n);
    vf new = vf_tanh(vf_fma(r, m, load(gates + 2 * hidden, n)));
    store(gates, r, n);
    store(gates + hidden, z, n);
    store(gates + 2 * hidden, new, n);
    store(gates + 3 * hidden, m, n);
    /* (1 - z) n + z h' = n + z (h' - n) */
    store(s->h + j, vf_fma(z, vf_sub(load_or_zero(s->before, j, n), new), new), n);
}

/* dz = dh (h' - n),  da = dh (1 - z) (1 - n^2) is n's,  dr = da m,  dm = da r;  dh' = dh z and the products */
VF_INLINE void gru_backward_part(const cell_row *s, size_t j, size_t n)
{
    size_t hidden = s->hidden;
    const float *gates = s->gates + j;
    vf r = load(gates, n), z = load(gates + hidden, n);
    vf new = load(gates + 2 * hidden, n), m = load(gates + 3 * hidden, n);
    vf dh = vf_add(load(s->dh + j, n), load_or_zero(s->dy, j, n));
    vf dnew = vf_mul(vf_mul(dh, vf_sub(one(), z)), tanh_slope(new));
    vf dz = vf_mul(vf_mul(dh, vf_sub(load_or_zero(s->before, j, n), new)), sigmoid_slope(z));
    vf dr = vf_mul(vf_mul(dnew, m), sigmoid_slope(r)), dm = vf_mul(dnew, r);
    put_gradient(s, 0, j, dr, n);
    put_gradient(s, 1, j, dz, n);
    put_dgate(s, 2, j, dnew, n);
    put_dgate(s, 3, j, dm, n);
    put_dhidden(s, 2, j, dm, n);
    store(s->dh + j, vf_mul(dh, z), n);
}

/* ---- RNN ---- */

VF_INLINE void rnn_part(const cell_row *s, size_t j, size_t n)
{
    vf a = load(s->gates + j, n);
    put_h(s, j, s->relu ? vf_max(vf_zero(), a) : vf_tanh(a), n);
}

/* da = dh (1 - h^2), or dh where h > 0 */
VF_INLINE void rnn_backward_part(const cell_row *s, size_t j, size_t n)
{
    vf h = load(s->h + j, n), dh = vf_add(load(s->dh + j, n), load_or_zero(s->dy, j, n));
    vf da = s->relu ? vf_select(vf_le(h, vf_zero()), vf_zero(), dh) : vf_mul(dh, tanh_slope(h));
    put_gradient(s, 0, j, da, n);
}

/* ---- The table ---- */

/* In two passes, since a tanh that waits for the gates would keep the next ones from beginning: 12.6 against
 * 9.3 us for 16 rows of 256 units. */
static void lstm(const mica_cell_step *s, size_t row, size_t rows, size_t unit, size_t units)
{
    each_row(s, row, rows, unit, units, lstm_part);
    each_row(s, row, rows, unit, units, lstm_output_part);
}

#if !defined(MICA_SMALL)
static void lstm_plain(const mica_cell_step *s, size_t row, size_t rows, size_t unit, size_t units)
{
    each_row(s, row, rows, unit, units, lstm_plain_part);
    each_row(s, row, rows, unit, units, lstm_plain_output_part);
}
#endif

#define CELL_KERNEL(name)                                                                         \
    static void name(const mica_cell_step *s, size_t row, size_t rows, size_t unit, size_t units) \
    {                                                                                             \
        each_row(s, row, rows, unit, units, name##_part);                                         \
    }
CELL_KERNEL(gru)
CELL_KERNEL(rnn)
CELL_KERNEL(lstm_backward)
CELL_KERNEL(gru_backward)
CELL_KERNEL(rnn_backward)

const mica_recurrent_kernels VF_SYMBOL(mica_recurrent_kernels) = {.lstm = lstm,
#if !defined(MICA_SMALL)
                                                                  .lstm_plain = lstm_plain,
#endif
                                                                  .gru = gru,
                                                                  .rnn = rnn,
                                                                  .lstm_backward = lstm_backward,
                                                                  .gru_backward = gru_backward,
                                                                  .rnn_backward = rnn_backward};
