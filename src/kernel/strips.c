/* Depthwise convolutions of wide planes; compiled once per instruction set.
 *
 * A strip is a vector of columns by several rows of results. Each row that it reads is loaded once, shifted for each
 * column of taps, and goes into all rows of results that it meets. At the borders of a plane loads are masked, and rows
 * outside of it are left out, so that nothing is copied. */
#include "kernel/depthwise.h"

#include "kernel/kernels.h"
#include "kernel/vec.h"

#define TAPS 5 /* the most, along an axis */
#define ROWS 4 /* the most, of a strip */
#define BAND \
    32 /* rows of strips one below the other, before those beside them: what they read stays in the cache */

/* Rows of results, and of taps, of a strip's gradient, whose sums must fit into the registers. */
#define DOT_ROWS   (VF_REGISTERS >= 32 ? 4 : 2)
#define DOT_TAPS_5 (VF_REGISTERS >= 32 ? 5 : 1)

typedef mica_strip_shape shape;

/* Where a strip reads: `at` is the column of its first pixel's first tap. */
typedef struct strip {
    const float *in; /* row 0, that column */
    ptrdiff_t row;   /* that its first row's first tap meets */
    size_t n;        /* pixels */
    bool inner;      /* whole vectors within the plane */
    vm mask[TAPS + 1], more[TAPS + 1];
} strip;

/* Which of VF_LANES elements from `at` on lie within the plane, and among the first `n`. */
static vm within(ptrdiff_t at, ptrdiff_t width, ptrdiff_t n)
{
    ptrdiff_t end = width - at < n ? width - at : n;
    end = end < 0 ? 0 : (end > VF_LANES ? VF_LANES : end);
    ptrdiff_t begin = at >= 0 ? 0 : (-at > VF_LANES ? VF_LANES : -at);
    return vm_and(vm_first((size_t)end), vm_not(vm_first((size_t)begin)));
}

VF_INLINE strip strip_at(const shape *s, const float *in, size_t column, size_t taps, size_t scale)
{
    ptrdiff_t at = (ptrdiff_t)(column * scale) + s->base[1], width = (ptrdiff_t)s->width;
    size_t left = s->columns - column;
    strip p = {.in = in + at, .n = left < VF_LANES ? left : VF_LANES};
    ptrdiff_t reach = (ptrdiff_t)(scale == 1 ? VF_LANES + taps - 1 : 2 * VF_LANES + taps - 1);
    p.inner = p.n == VF_LANES && at >= 0 && at + reach <= width;
    if (p.inner)
        return p;
    for (size_t u = 0; u < taps; u += scale) {
        ptrdiff_t here = at + (ptrdiff_t)u, all = (ptrdiff_t)(p.n * scale);
        p.mask[u] = within(here, width, all);
        if (scale == 2)
            p.more[u] = within(here + VF_LANES, width, all - VF_LANES);
    }
    return p;
}

/* What each of the columns of taps meets in a row. */
VF_INLINE void load_row(vf *x, const strip *p, const float *row, size_t taps, size_t scale, bool inner)
{
#pragma GCC unroll 5
    for (size_t u = 0; u < taps; u += scale) {
        vf a = inner ? vf_load(row + u) : vf_load_where(row + u, p->mask[u]);
        if (scale == 1) {
            x[u] = a;
            continue;
        }
        vf b = inner ? vf_load(row + u + VF_LANES) : vf_load_where(row + u + VF_LANES, p->more[u]);
        vf_unzip(a, b, &x[u], &x[u + 1]);
    }
}

/* ---- Images ---- */

/* Row r of those that a strip of so many rows reads, for all taps that meet it. */
VF_INLINE void add_row(vf *sum, const shape *s, const strip *p, const vf *taps, size_t r, size_t count,
                       size_t scale, size_t rows, bool inner)
{
    ptrdiff_t at = p->row + (ptrdiff_t)r;
    if (r >= (rows - 1) * scale + count || at < 0 || at >= (ptrdiff_t)s->height)
        return;
    vf x[TAPS + 1];
    load_row(x, p, p->in + at * s->in_stride, count, scale, inner);
#pragma GCC unroll 4
    for (size_t i = 0; i < rows; i++) {
        if (i * scale > r || r - i * scale >= count)
            continue;
        const vf *tap = taps + (r - i * scale) * count;
#pragma GCC unroll 5
        for (size_t u = 0; u < count; u++)
            sum[i] = vf_fma(tap[u], x[u], sum[i]);
    }
}

VF_INLINE void sum_strip(float *out, const shape *s, const strip *p, const vf *taps, float bias,
                         bool accumulate, size_t count, size_t scale, size_t rows, bool inner)
{
    vf sum[ROWS];
#pragma GCC unroll 4
    for (size_t i = 0; i < rows; i++) {
        sum[i] = vf_set1(bias);
        if (accumulate)
            sum[i] = vf_add(sum[i], vf_load_tail(out + (ptrdiff_t)i * s->out_stride, p->n));
    }
#pragma GCC unroll 11
    for (size_t r = 0; r < (ROWS - 1) * 2 + TAPS; r++)
        add_row(sum, s, p, taps, r, count, scale, rows, inner);
#pragma GCC unroll 4
    for (size_t i = 0; i < rows; i++) {
        if (inner)
            vf_store(out + (ptrdiff_t)i * s->out_stride, sum[i]);
        else
            vf_store_tail(out + (ptrdiff_t)i * s->out_stride, sum[i], p->n);
    }
}

/* What a call makes. */
typedef struct job {
    float *out;
    const float *in, *taps;
    float bias;
    bool accumulate;
} job;

/* All rows of a column of strips. */
VF_INLINE void sum_column(const job *j, const shape *s, strip *p, float *out, const vf *taps, size_t first,
                          size_t end, size_t count, size_t scale, bool inner)
{
    while (first < end) {
        size_t rows = end - first >= ROWS ? ROWS : (end - first >= 2 ? 2 : 1);
        p->row = (ptrdiff_t)(first * scale) + s->base[0];
        if (rows == ROWS)
            sum_strip(out, s, p, taps, j->bias, j->accumulate, count, scale, ROWS, inner);
        else if (rows == 2)
            sum_strip(out, s, p, taps, j->bias, j->accumulate, count, scale, 2, inner);
        else
            sum_strip(out, s, p, taps, j->bias, j->accumulate, count, scale, 1, inner);
        out += (ptrdiff_t)rows * s->out_stride;
        first += rows;
    }
}

VF_INLINE void sum_plane(const job *j, const shape *s, size_t first, size_t end, size_t count, size_t scale)
{
    vf taps[MICA_STRIPS_TAPS];
#pragma GCC unroll 25
    for (size_t k = 0; k < count * count; k++) /* nine have registers of their own where there are enough */
        taps[k] = count == 3 ? vf_keep(vf_set1(j->taps[k])) : vf_set1(j->taps[k]);
    for (size_t last; first < end; first = last) {
        last = end - first > BAND ? first + BAND : end;
        for (size_t column = 0; column < s->columns; column += VF_LANES) {
            strip p = strip_at(s, j->in, column, count, scale);
            float *out = j->out + (ptrdiff_t)first * s->out_stride + (ptrdiff_t)column;
            if (p.inner)
                sum_column(j, s, &p, out, taps, first, last, count, scale, true);
            else
                sum_column(j, s, &p, out, taps, first, last, count, scale, false);
        }
    }
}

/* Each on its own has all registers to itself. Three by three keep a copy of the shape, which stores cannot change; for
 * five by five that takes registers that taps need (10 % where there are sixteen). */
static __attribute__((noinline)) void sum_plane_3(const job *j, const shape *of, size_t first, size_t end)
{
    const shape own = *of;
    sum_plane(j, &own, first, end, 3, 1);
}
static __attribute__((noinline)) void sum_plane_3_by_2(const job *j, const shape *of, size_t first,
                                                       size_t end)
{
    const shape own = *of;
    sum_plane(j, &own, first, end, 3, 2);
}
static __attribute__((noinline)) void sum_plane_5(const job *j, const shape *s, size_t first, size_t end)
{
    sum_plane(j, s, first, end, 5, 1);
}
static __attribute__((noinline)) void sum_plane_5_by_2(const job *j, const shape *s, size_t first, size_t end)
{
    sum_plane(j, s, first, end, 5, 2);
}

static void image(float *out, const float *in, const float *taps, float bias, const shape *s, size_t first,
                  size_t count, bool accumulate)
{
    job j = {out, in, taps, bias, accumulate};
    if (s->taps == 3)
        (s->scale == 1 ? sum_plane_3 : sum_plane_3_by_2)(&j, s, first, first + count);
    else
        (s->scale == 1 ? sum_plane_5 : sum_plane_5_by_2)(&j, s, first, first + count);
}

/* ---- Gradients of taps ---- */

/* Row r of those that a strip reads, against all rows of dy that meet it by rows of taps 0 .. down - 1. */
VF_INLINE void dot_row(vf *sum, const vf *y, const shape *s, const strip *p, size_t r, size_t down,
                       size_t count, size_t scale, size_t rows, bool inner)
{
    ptrdiff_t at = p->row + (ptrdiff_t)r;
    if (r >= (rows - 1) * scale + down || at < 0 || at >= (ptrdiff_t)s->height)
        return;
    vf x[TAPS + 1];
    load_row(x, p, p->in + at * s->in_stride, count, scale, inner);
#pragma GCC unroll 4
    for (size_t i = 0; i < rows; i++) {
        if (i * scale > r || r - i * scale >= down)
            continue;
#pragma GCC unroll 5
        for (size_t u = 0; u < count; u++)
            sum[(r - i * scale) * count + u] = vf_fma(y[i], x[u], sum[(r - i * scale) * count + u]);
    }
}

VF_INLINE void dot_strip(vf *sum, const float *dy, const shape *s, const strip *p, size_t down, size_t count,
                         size_t scale, size_t rows, bool inner)
{
    vf y[DOT_ROWS];
#pragma GCC unroll 4
    for (size_t i = 0; i < rows; i++) {
        const float *from = dy + (ptrdiff_t)i * s->out_stride;
        y[i] = vf_keep(inner ? vf_load(from) : vf_load_tail(from, p->n));
    }
#pragma GCC unroll 11
    for (size_t r = 0; r < (DOT_ROWS - 1) * 2 + TAPS; r++)
        dot_row(sum, y, s, p, r, down, count, scale, rows, inner);
}

VF_INLINE void dot_column(vf *sum, const float *dy, const shape *s, strip *p, size_t first, size_t end,
                          size_t tap, size_t down, size_t count, size_t scale, bool inner)
{
    while (first < end) {
        size_t rows = end - first >= DOT_ROWS ? DOT_ROWS : 1;
        p->row = (ptrdiff_t)(first * scale + tap) + s->base[0];
        if (rows == DOT_ROWS)
            dot_strip(sum, dy, s, p, down, count, scale, DOT_ROWS, inner);
        else
            dot_strip(sum, dy, s, p, down, count, scale, 1, inner);
        dy += (ptrdiff_t)rows * s->out_stride;
        first += rows;
    }
}

/* Rows of taps from `tap` on, `down` of them, over the rows of dy. */
VF_INLINE void dot_plane(float *sums, const float *dy, const float *in, const shape *s, size_t first,
                         size_t end, size_t tap, size_t down, size_t count, size_t scale)
{
    vf sum[MICA_STRIPS_TAPS];
#pragma GCC unroll 25
    for (size_t k = 0; k < down * count; k++)
        sum[k] = vf_load(sums + (tap * count + k) * VF_LANES);
    for (size_t last; first < end; first = last) {
        last = end - first > BAND ? first + BAND : end;
        for (size_t column = 0; column < s->columns; column += VF_LANES) {
            strip p = strip_at(s, in, column, count, scale);
            const float *from = dy + (ptrdiff_t)first * s->out_stride + (ptrdiff_t)column;
            if (p.inner)
                dot_column(sum, from, s, &p, first, last, tap, down, count, scale, true);
            else
                dot_column(sum, from, s, &p, first, last, tap, down, count, scale, false);
        }
    }
#pragma GCC unroll 25
    for (size_t k = 0; k < down * count; k++)
        vf_store(sums + (tap * count + k) * VF_LANES, sum[k]);
}

static void dot_plane_3(float *sums, const float *dy, const float *in, const shape *s, size_t first,
                        size_t end)
{
    dot_plane(sums, dy, in, s, first, end, 0, 3, 3, 1);
}
static void dot_plane_3_by_2(float *sums, const float *dy, const float *in, const shape *s, size_t first,
                             size_t end)
{
    dot_plane(sums, dy, in, s, first, end, 0, 3, 3, 2);
}
static void dot_plane_5(float *sums, const float *dy, const float *in, const shape *s, size_t first,
                        size_t end)
{
    for (size_t tap = 0; tap < 5; tap += DOT_TAPS_5)
        dot_plane(sums, dy, in, s, first, end, tap, DOT_TAPS_5, 5, 1);
}
static void dot_plane_5_by_2(float *sums, const float *dy, const float *in, const shape *s, size_t first,
                             size_t end)
{
    for (size_t tap = 0; tap < 5; tap += DOT_TAPS_5)
        dot_plane(sums, dy, in, s, first, end, tap, DOT_TAPS_5, 5, 2);
}

static void gradient(float *sums, const float *dy, const float *in, const shape *s, size_t first,
                     size_t count)
{
    if (s->taps == 3)
        (s->scale == 1 ? dot_plane_3 : dot_plane_3_by_2)(sums, dy, in, s, first, first + count);
    else
        (s->scale == 1 ? dot_plane_5 : dot_plane_5_by_2)(sums, dy, in, s, first, first + count);
}

static void fold(float *dst, const float *sums, size_t taps)
{
    for (size_t k = 0; k < taps; k += VF_LANES) {
        size_t n = taps - k < VF_LANES ? taps - k : VF_LANES;
        vf rows[VF_LANES];
        for (size_t i = 0; i < VF_LANES; i++)
            rows[i] = i < n ? vf_load(sums + (k + i) * VF_LANES) : vf_zero();
        vf_store_tail(dst + k, vf_sums(rows), n);
    }
}

const mica_strips_kernels VF_SYMBOL(mica_strips_kernels) = {
    .lanes = VF_LANES, .image = image, .gradient = gradient, .fold = fold};
