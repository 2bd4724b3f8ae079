/* Pooling of images that lie channels last; compiled once per instruction set. */
#include "kernel/last.h"

#include <math.h>

#include "kernel/conv_rows.h"
#include "kernel/kernels.h"

#define VECTORS 4  /* of channels at a time */
#define SHORT   64 /* pixels that are summed in single precision */

typedef mica_last_window window;

VF_INLINE vf load_some(const float *p, size_t n) { return n == VF_LANES ? vf_load(p) : vf_load_tail(p, n); }

/* Folds all pixels, from channel c on, into `vectors` vectors. Of the last n lanes count, of the others all. */
VF_INLINE void fold(vf *sum, const window *w, size_t c, size_t vectors, size_t n, bool largest)
{
    const float *row = w->in + c;
    for (size_t i = 0; i < w->rows; i++, row += w->row_stride) {
        const float *at = row;
        for (size_t j = 0; j < w->columns; j++, at += w->column_stride) {
#pragma GCC unroll 4
            for (size_t v = 0; v < vectors; v++) {
                vf x = load_some(at + v * VF_LANES, v + 1 < vectors ? VF_LANES : n);
                sum[v] = largest ? vf_max_nan(x, sum[v]) : vf_add(sum[v], x);
            }
        }
    }
}

VF_INLINE void pool_some(float *out, const window *w, size_t c, size_t vectors, size_t n, bool largest,
                         float divisor)
{
    vf sum[VECTORS];
#pragma GCC unroll 4
    for (size_t v = 0; v < vectors; v++)
        sum[v] = vf_set1(largest ? -INFINITY : 0.0f);
    fold(sum, w, c, vectors, n, largest);
#pragma GCC unroll 4
    for (size_t v = 0; v < vectors; v++) {
        vf value = largest ? sum[v] : vf_div(sum[v], vf_set1(divisor));
        if (v + 1 < vectors || n == VF_LANES)
            vf_store(out + c + v * VF_LANES, value);
        else
            vf_store_tail(out + c + v * VF_LANES, value, n);
    }
}

VF_INLINE void pool(float *out, const window *w, bool largest, float divisor)
{
    size_t c = 0;
    for (; c + VECTORS * VF_LANES <= w->channels; c += VECTORS * VF_LANES)
        pool_some(out, w, c, VECTORS, VF_LANES, largest, divisor);
    for (; c + VF_LANES <= w->channels; c += VF_LANES)
        pool_some(out, w, c, 1, VF_LANES, largest, divisor);
    if (c < w->channels)
        pool_some(out, w, c, 1, w->channels - c, largest, divisor);
}

static void max(float *out, const window *w) { pool(out, w, true, 1.0f); }
static void average(float *out, const window *w, float divisor) { pool(out, w, false, divisor); }

/* Adds the pixels of a short window to the totals, from channel c on. */
VF_INLINE void add_totals(double *totals, const window *w, size_t c, size_t vectors, size_t n)
{
    vf sum[VECTORS];
    float lanes[VECTORS * VF_LANES];
#pragma GCC unroll 4
    for (size_t v = 0; v < vectors; v++)
        sum[v] = vf_zero();
    fold(sum, w, c, vectors, n, false);
#pragma GCC unroll 4
    for (size_t v = 0; v < vectors; v++)
        vf_store(lanes + v * VF_LANES, sum[v]);
    for (size_t k = 0; k < (vectors - 1) * VF_LANES + n; k++)
        totals[c + k] += (double)lanes[k];
}

static void add_short(double *totals, const window *w)
{
    size_t c = 0;
    for (; c + VECTORS * VF_LANES <= w->channels; c += VECTORS * VF_LANES)
        add_totals(totals, w, c, VECTORS, VF_LANES);
    for (; c < w->channels; c += VF_LANES)
        add_totals(totals, w, c, 1, least(w->channels - c, VF_LANES));
}

static void totals_of(double *totals, const window *w)
{
    for (size_t c = 0; c < w->channels; c++)
        totals[c] = 0.0;
    for (size_t i = 0; i < w->rows; i++)
        for (size_t j = 0; j < w->columns; j += SHORT) {
            window some = *w;
            some.in += (ptrdiff_t)i * w->row_stride + (ptrdiff_t)j * w->column_stride;
            some.rows = 1;
            some.columns = least(w->columns - j, SHORT);
            add_short(totals, &some);
        }
}

const mica_last_pool_kernels VF_SYMBOL(mica_last_pool_kernels) = {
    .max = max, .average = average, .totals = totals_of};
