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

/* The pointers of one row, forward and backward. */
typedef struct step_row {
    size_t hidden;
    float *gates, *h, *c;
    const float *from_hidden, *before, *c_before;
    bool relu;
} step_row;

typedef struct back_row {
    size_t hidden;
    float *dgates, *dhidden, *dh, *dc;
    const float *dy, *gates, *h, *c, *before, *c_before;
    bool relu;
} back_row;

/* A kernel is a loop over rows around what it does with the n elements from j on, which is inlined. */
typedef void step_part(const step_row *row, size_t j, size_t n);
typedef void back_part(const back_row *row, size_t j, size_t n);

VF_INLINE void step_rows(const mica_cell_step *s, size_t begin, size_t end, step_part *part)
{
    for (size_t i = begin; i < end; i++) {
        step_row row = {.hidden = s->hidden,
                        .gates = row_of(&s->gates, i),
                        .h = row_of(&s->h, i),
                        .c = row_of(&s->c, i),
                        .from_hidden = row_of(&s->from_hidden, i),
                        .before = row_of(&s->before, i),
                        .c_before = row_of(&s->c_before, i),
                        .relu = s->relu};
        size_t j = 0;
        for (; j + VF_LANES <= s->hidden; j += VF_LANES)
            part(&row, j, VF_LANES);
        if (j < s->hidden)
            part(&row, j, s->hidden - j);
    }
}

VF_INLINE void back_rows(const mica_cell_back *s, size_t begin, size_t end, back_part *part)
{
    for (size_t i = begin; i < end; i++) {
        back_row row = {.hidden = s->hidden,
                        .dgates = row_of(&s->dgates, i),
                        .dhidden = row_of(&s->dhidden, i),
                        .dh = row_of(&s->dh, i),
                        .dc = row_of(&s->dc, i),
                        .dy = row_of(&s->dy, i),
                        .gates = row_of(&s->gates, i),
                        .h = row_of(&s->h, i),
                        .c = row_of(&s->c, i),
                        .before = row_of(&s->before, i),
                        .c_before = row_of(&s->c_before, i),
                        .relu = s->relu};
        size_t j = 0;
        for (; j + VF_LANES <= s->hidden; j += VF_LANES)
            part(&row, j, VF_LANES);
        if (j < s->hidden)
            part(&row, j, s->hidden - j);
    }
}

/* ---- LSTM ---- */

VF_INLINE void lstm_part(const step_row *s, size_t j, size_t n)
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
    store(s->h + j, vf_mul(o, vf_tanh(c)), n);
}

static void lstm(const mica_cell_step *s, size_t begin, size_t end) { step_rows(s, begin, end, lstm_part); }

/* dc += dh o (1 - tanh(c)^2);  di = dc g,  df = dc c',  dg = dc i,  do = dh tanh(c);  dc' = dc f */
VF_INLINE void lstm_backward_part(const back_row *s, size_t j, size_t n)
{
    size_t hidden = s->hidden;
    const float *gates = s->gates + j;
    vf i = load(gates, n), f = load(gates + hidden, n);
    vf g = load(gates + 2 * hidden, n), o = load(gates + 3 * hidden, n);
    vf dh = vf_add(load(s->dh + j, n), load_or_zero(s->dy, j, n));
    vf squashed = vf_tanh(load(s->c + j, n));
    vf dc = vf_fma(vf_mul(dh, o), tanh_slope(squashed), load(s->dc + j, n));
    float *d = s->dgates + j;
    store(d, vf_mul(vf_mul(dc, g), sigmoid_slope(i)), n);
    store(d + hidden, vf_mul(vf_mul(dc, load_or_zero(s->c_before, j, n)), sigmoid_slope(f)), n);
    store(d + 2 * hidden, vf_mul(vf_mul(dc, i), tanh_slope(g)), n);
    store(d + 3 * hidden, vf_mul(vf_mul(dh, squashed), sigmoid_slope(o)), n);
    store(s->dc + j, vf_mul(dc, f), n);
}

static void lstm_backward(const mica_cell_back *s, size_t begin, size_t end)
{
    back_rows(s, begin, end, lstm_backward_part);
}

/* ---- GRU ---- */

VF_INLINE void gru_part(const step_row *s, size_t j, size_t n)
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

static void gru(const mica_cell_step *s, size_t begin, size_t end) { step_rows(s, begin, end, gru_part); }

/* dz = dh (h' - n),  da = dh (1 - z) (1 - n^2) is n's,  dr = da m,  dm = da r;  dh' = dh z and the products */
VF_INLINE void gru_backward_part(const back_row *s, size_t j, size_t n)
{
    size_t hidden = s->hidden;
    const float *gates = s->gates + j;
    vf r = load(gates, n), z = load(gates + hidden, n);
    vf new = load(gates + 2 * hidden, n), m = load(gates + 3 * hidden, n);
    vf dh = vf_add(load(s->dh + j, n), load_or_zero(s->dy, j, n));
    vf dnew = vf_mul(vf_mul(dh, vf_sub(one(), z)), tanh_slope(new));
    vf dz = vf_mul(vf_mul(dh, vf_sub(load_or_zero(s->before, j, n), new)), sigmoid_slope(z));
    vf dr = vf_mul(vf_mul(dnew, m), sigmoid_slope(r)), dm = vf_mul(dnew, r);
    float *d = s->dgates + j, *from = s->dhidden + j;
    store(d, dr, n);
    store(d + hidden, dz, n);
    store(d + 2 * hidden, dnew, n);
    store(d + 3 * hidden, dm, n);
    store(from, dr, n);
    store(from + hidden, dz, n);
    store(from + 2 * hidden, dm, n);
    store(s->dh + j, vf_mul(dh, z), n);
}

static void gru_backward(const mica_cell_back *s, size_t begin, size_t end)
{
    back_rows(s, begin, end, gru_backward_part);
}

/* ---- RNN ---- */

VF_INLINE void rnn_part(const step_row *s, size_t j, size_t n)
{
    vf a = load(s->gates + j, n);
    store(s->h + j, s->relu ? vf_max(vf_zero(), a) : vf_tanh(a), n);
}

static void rnn(const mica_cell_step *s, size_t begin, size_t end) { step_rows(s, begin, end, rnn_part); }

/* da = dh (1 - h^2), or dh where h > 0 */
VF_INLINE void rnn_backward_part(const back_row *s, size_t j, size_t n)
{
    vf h = load(s->h + j, n), dh = vf_add(load(s->dh + j, n), load_or_zero(s->dy, j, n));
    vf da = s->relu ? vf_select(vf_le(h, vf_zero()), vf_zero(), dh) : vf_mul(dh, tanh_slope(h));
    store(s->dgates + j, da, n);
}

static void rnn_backward(const mica_cell_back *s, size_t begin, size_t end)
{
    back_rows(s, begin, end, rnn_backward_part);
}

const mica_recurrent_kernels VF_SYMBOL(mica_recurrent_kernels) = {.lstm = lstm,
                                                                  .gru = gru,
                                                                  .rnn = rnn,
                                                                  .lstm_backward = lstm_backward,
                                                                  .gru_backward = gru_backward,
                                                                  .rnn_backward = rnn_backward};
