/* Winograd's transforms; compiled once per instruction set. */
#include "kernel/winograd.h"

#include "kernel/conv_rows.h"

enum { TILE = MICA_WINOGRAD_TILE, SIDE = 6, TAPS = 3 };

/* The points' powers; p = 3/4, q = 3/2. */
#define P    0.75f
#define Q    1.5f
#define PP   (P * P)
#define QQ   (Q * Q)
#define PPP  (P * PP)
#define QQQ  (Q * QQ)
#define PPQQ (PP * QQ)
/* What G divides by: products of the differences of the points. */
#define OVER_0 (1.0f / PPQQ)
#define OVER_P (1.0f / (2.0f * PP * (PP - QQ)))
#define OVER_Q (1.0f / (2.0f * QQ * (QQ - PP)))

/* ---- In one dimension ---- */

/* BT: the coefficients of the product of (x - point) over all points but one. */
VF_INLINE void input_line(vf *f, const vf *x)
{
    vf even_p = vf_fma(vf_set1(-QQ), x[2], x[4]),
       odd_p = vf_mul(vf_set1(P), vf_fma(vf_set1(-QQ), x[1], x[3]));
    vf even_q = vf_fma(vf_set1(-PP), x[2], x[4]),
       odd_q = vf_mul(vf_set1(Q), vf_fma(vf_set1(-PP), x[1], x[3]));
    f[0] = vf_fma(vf_set1(PPQQ), x[0], vf_fma(vf_set1(-(PP + QQ)), x[2], x[4]));
    f[1] = vf_add(even_p, odd_p);
    f[2] = vf_sub(even_p, odd_p);
    f[3] = vf_add(even_q, odd_q);
    f[4] = vf_sub(even_q, odd_q);
    f[5] = vf_fma(vf_set1(PPQQ), x[1], vf_fma(vf_set1(-(PP + QQ)), x[3], x[5]));
}

/* AT: powers of the points. */
VF_INLINE void output_line(vf *y, const vf *f)
{
    vf even_p = vf_add(f[1], f[2]), odd_p = vf_sub(f[1], f[2]);
    vf even_q = vf_add(f[3], f[4]), odd_q = vf_sub(f[3], f[4]);
    y[0] = vf_add(f[0], vf_add(even_p, even_q));
    y[1] = vf_fma(vf_set1(P), odd_p, vf_mul(vf_set1(Q), odd_q));
    y[2] = vf_fma(vf_set1(PP), even_p, vf_mul(vf_set1(QQ), even_q));
    y[3] = vf_add(f[5], vf_fma(vf_set1(PPP), odd_p, vf_mul(vf_set1(QQQ), odd_q)));
}

/* A: AT in reverse. */
VF_INLINE void gradient_line(vf *f, const vf *dy)
{
    vf even_p = vf_fma(vf_set1(PP), dy[2], dy[0]),
       odd_p = vf_fma(vf_set1(PPP), dy[3], vf_mul(vf_set1(P), dy[1]));
    vf even_q = vf_fma(vf_set1(QQ), dy[2], dy[0]),
       odd_q = vf_fma(vf_set1(QQQ), dy[3], vf_mul(vf_set1(Q), dy[1]));
    f[0] = dy[0];
    f[1] = vf_add(even_p, odd_p);
    f[2] = vf_sub(even_p, odd_p);
    f[3] = vf_add(even_q, odd_q);
    f[4] = vf_sub(even_q, odd_q);
    f[5] = dy[3];
}

/* G */
VF_INLINE void kernel_line(vf *f, const vf *w)
{
    vf even_p = vf_fma(vf_set1(PP), w[2], w[0]), odd_p = vf_mul(vf_set1(P), w[1]);
    vf even_q = vf_fma(vf_set1(QQ), w[2], w[0]), odd_q = vf_mul(vf_set1(Q), w[1]);
    f[0] = vf_mul(vf_set1(OVER_0), w[0]);
    f[1] = vf_mul(vf_set1(OVER_P), vf_add(even_p, odd_p));
    f[2] = vf_mul(vf_set1(OVER_P), vf_sub(even_p, odd_p));
    f[3] = vf_mul(vf_set1(OVER_Q), vf_add(even_q, odd_q));
    f[4] = vf_mul(vf_set1(OVER_Q), vf_sub(even_q, odd_q));
    f[5] = w[2];
}

/* GT: G in reverse. */
VF_INLINE void kernel_line_back(vf *w, const vf *f)
{
    vf even_p = vf_mul(vf_set1(OVER_P), vf_add(f[1], f[2])),
       odd_p = vf_mul(vf_set1(OVER_P), vf_sub(f[1], f[2]));
    vf even_q = vf_mul(vf_set1(OVER_Q), vf_add(f[3], f[4])),
       odd_q = vf_mul(vf_set1(OVER_Q), vf_sub(f[3], f[4]));
    w[0] = vf_fma(vf_set1(OVER_0), f[0], vf_add(even_p, even_q));
    w[1] = vf_fma(vf_set1(P), odd_p, vf_mul(vf_set1(Q), odd_q));
    w[2] = vf_add(f[5], vf_fma(vf_set1(PP), even_p, vf_mul(vf_set1(QQ), even_q)));
}

/* ---- Pixels to frequencies ---- */

/* A row of a run with the pixels right of it, up to whole vectors of tiles. */
#define ROW (TILE * (MICA_WINOGRAD_RUN + VF_LANES) + 2 * VF_LANES)

/* Rows of pixels, down which columns are transformed. */
typedef struct row_set {
    const float *first[SIDE]; /* pixels from `low` on */
    ptrdiff_t inside[SIDE];   /* all bits, or none: that row is zeros, whatever the channel */
    size_t low, high;         /* positions that are pixels: zeros around them */
} row_set;

/* `count` positions from `at` on, at most ROW. */
VF_INLINE void find_rows(row_set *r, const mica_winograd_plane *p, position at, size_t count, size_t taken)
{
    static const float nothing[ROW];
    mica_conv_axis axis = {.image = (size_t)p->columns, .count = count, .taps = 1, .scale = 1, .step = 1};
    r->low = clip(&axis, at.column, count, &r->high);
    for (size_t i = 0; i < taken; i++, at.row++) {
        bool there = at.row >= 0 && at.row < p->rows;
        r->inside[i] = there ? -1 : 0;
        r->first[i] = there ? p->data + at.row * p->row_stride + at.column + (ptrdiff_t)r->low : nothing;
    }
}

/* A vector of each row, of which n lanes are pixels, to a vector of each frequency; the other lanes become zeros. */
VF_INLINE void transform_vector(float *const *to, const float *const *from, size_t x, size_t n, bool gradient)
{
    const size_t taken = gradient ? TILE : SIDE;
    vf in[SIDE], out[SIDE];
#pragma GCC unroll 6
    for (size_t i = 0; i < taken; i++)
        in[i] = n == VF_LANES ? vf_load(from[i] + x) : vf_load_tail(from[i] + x, n);
    if (gradient)
        gradient_line(out, in);
    else
        input_line(out, in);
#pragma GCC unroll 6
    for (size_t f = 0; f < SIDE; f++)
        vf_store(to[f] + x, out[f]);
}

/* Down the columns first: vectors of pixels as they lie, `skip` behind those that were found. lines
 * [SIDE][stride], with zeros up to `end`; up to a vector more is written. */
VF_INLINE void transform_columns(float *lines, size_t stride, const row_set *r, ptrdiff_t skip, size_t end,
                                 bool gradient)
{
    const float *from[SIDE];
    float *to[SIDE];
    size_t count = r->high - r->low, whole = count / VF_LANES * VF_LANES;
    size_t covered = whole + (whole < count ? VF_LANES : 0);
#pragma GCC unroll 6
    for (size_t i = 0; i < SIDE; i++) {
        if (i < TILE || !gradient)
            from[i] = r->first[i] + (skip & r->inside[i]);
        to[i] = lines + i * stride + r->low;
    }
    if (r->low > VF_LANES)
        for (size_t f = 0; f < SIDE; f++)
            zero(lines + f * stride, r->low);
    else if (r->low > 0) /* one vector, most of it pixels afterwards */
#pragma GCC unroll 6
        for (size_t f = 0; f < SIDE; f++)
            vf_store(lines + f * stride, vf_zero());
    for (size_t x = 0; x < whole; x += VF_LANES)
        transform_vector(to, from, x, VF_LANES, gradient);
    if (whole < count)
        transform_vector(to, from, whole, count - whole, gradient);
    for (size_t x = covered; r->low + x < end; x += VF_LANES)
#pragma GCC unroll 6
        for (size_t f = 0; f < SIDE; f++)
            vf_store(to[f] + x, vf_zero());
}

/* Every fourth float: first, second, ... of VF_LANES tiles. */
VF_INLINE void unzip_tiles(vf *x, const float *line)
{
    vf even[2], odd[2];
    vf_unzip(vf_load(line), vf_load(line + VF_LANES), &even[0], &odd[0]);
    vf_unzip(vf_load(line + 2 * VF_LANES), vf_load(line + 3 * VF_LANES), &even[1], &odd[1]);
    vf_unzip(even[0], even[1], &x[0], &x[2]);
    vf_unzip(odd[0], odd[1], &x[1], &x[3]);
}

VF_INLINE void transform(float *f, size_t stride, size_t room, const mica_winograd_plane *p,
                         const mica_winograd_run *run, bool gradient)
{
    float lines[SIDE][ROW];
    size_t count = TILE * run->tiles + (gradient ? 0 : SIDE - TILE);
    size_t end = TILE * ((run->tiles + VF_LANES - 1) / VF_LANES * VF_LANES + 1); /* that will be read */
    if (run->flat) {
        mica_conv_axis axis = {.image = (size_t)p->columns, .count = end, .taps = 1, .scale = 1, .step = 1};
        copy_clipped(lines[0], p->data + run->row * p->row_stride, 1, &axis, run->column, end);
    } else {
        row_set r;
        find_rows(&r, p, (position){run->row, run->column}, count, gradient ? TILE : SIDE);
        transform_columns(lines[0], ROW, &r, 0, end, gradient);
    }
    for (size_t r = 0; r < (run->flat ? 1 : SIDE); r++)
        for (size_t t = 0; t < run->tiles; t += VF_LANES) {
            vf x[2 * TILE], out[SIDE];
            unzip_tiles(x, lines[r] + TILE * t);
            if (gradient) {
                gradient_line(out, x);
            } else {
                unzip_tiles(x + TILE, lines[r] + TILE * t + TILE);
                input_line(out, x);
            }
            for (size_t s = 0; s < SIDE; s++) {
                float *to = f + (r * SIDE + s) * stride + t;
                if (room - t >= VF_LANES)
                    vf_store(to, out[s]);
                else
                    vf_store_tail(to, out[s], room - t);
            }
        }
}

static void input(float *f, size_t stride, size_t room, const mica_winograd_plane *x,
                  const mica_winograd_run *run)
{
    transform(f, stride, room, x, run, false);
}

static void gradient(float *f, size_t stride, size_t room, const mica_winograd_plane *dy,
                     const mica_winograd_run *run)
{
    transform(f, stride, room, dy, run, true);
}

/* ---- Frequencies to pixels ---- */

VF_INLINE void zip_tiles(float *line, const vf *y)
{
    vf a[2], b[2], z[4];
    vf_zip(y[0], y[2], &a[0], &a[1]);
    vf_zip(y[1], y[3], &b[0], &b[1]);
    vf_zip(a[0], b[0], &z[0], &z[1]);
    vf_zip(a[1], b[1], &z[2], &z[3]);
    for (size_t i = 0; i < 4; i++)
        vf_store(line + i * VF_LANES, z[i]);
}

static void leave_row(float *y, const float *line, size_t n, float bias, bool accumulate)
{
    for (size_t x = 0; x < n; x += VF_LANES) {
        size_t lanes = least(n - x, VF_LANES);
        vf v = vf_add(vf_load(line + x), vf_set1(bias));
        if (accumulate)
            v = vf_add(v, vf_load_tail(y + x, lanes));
        if (lanes == VF_LANES)
            vf_store(y + x, v);
        else
            vf_store_tail(y + x, v, lanes);
    }
}

/* The columns of tiles t on: half[i][s] from frequencies (., s). */
VF_INLINE void output_columns(vf half[TILE][SIDE], const float *f, size_t stride)
{
    for (size_t s = 0; s < SIDE; s++) {
        vf in[SIDE], out[TILE];
        for (size_t r = 0; r < SIDE; r++)
            in[r] = vf_load(f + (r * SIDE + s) * stride);
        output_line(out, in);
        for (size_t i = 0; i < TILE; i++)
            half[i][s] = out[i];
    }
}

static void output(const mica_winograd_plane *y, const mica_winograd_run *run, const float *f, size_t stride,
                   float bias, bool accumulate)
{
    float lines[TILE][ROW];
    size_t high = run->flat ? 1 : TILE;
    for (size_t t = 0; t < run->tiles; t += VF_LANES) {
        vf half[TILE][SIDE], out[TILE];
        if (run->flat)
            for (size_t s = 0; s < SIDE; s++)
                half[0][s] = vf_load(f + s * stride + t);
        else
            output_columns(half, f + t, stride);
        for (size_t i = 0; i < high; i++) {
            output_line(out, half[i]);
            zip_tiles(lines[i] + TILE * t, out);
        }
    }
    size_t rows = least(high, (size_t)(y->rows - run->row));
    size_t columns = least(TILE * run->tiles, (size_t)(y->columns - run->column));
    for (size_t i = 0; i < rows; i++)
        leave_row(y->data + (run->row + (ptrdiff_t)i) * y->row_stride + run->column, lines[i], columns, bias,
                  accumulate);
}

/* ---- Down the columns alone ---- */

/* Positions, and lines, that are done at a time. */
#define PIECE (ROW / VF_LANES * VF_LANES)
#define SOME  8

/* Positions x .. x + PIECE - 1 of lines first .. first + n - 1. */
VF_INLINE void transform_piece(float *f, size_t stride, const mica_winograd_lines *l, size_t first, size_t n,
                               size_t x, bool gradient)
{
    row_set rows[SOME];
    size_t begin[SOME], count[SOME], shared = l->count - l->pitch;
    for (size_t i = 0; i < n; i++) {
        size_t line = first + i, end = line + 1 == l->lines ? l->last : l->count;
        begin[i] = x > 0 ? x : line == 0 ? l->begin : shared;
        count[i] = begin[i] < end ? least(end, x + PIECE) - begin[i] : 0;
        position at = {l->row + (ptrdiff_t)(line * TILE), l->column + (ptrdiff_t)begin[i]};
        find_rows(&rows[i], &l->plane, at, count[i], gradient ? TILE : SIDE);
    }
    for (size_t c = 0; c < l->channels; c++)
        for (size_t i = 0; i < n; i++)
            transform_columns(f + c * l->room + (first + i) * l->pitch + begin[i], stride, &rows[i],
                              (ptrdiff_t)c * l->channel_stride, count[i], gradient);
}

/* What a line writes past its end the next one overwrites: so lines of several pieces go one by one. */
VF_INLINE void transform_lines(float *f, size_t stride, const mica_winograd_lines *l, bool gradient)
{
    size_t most = l->last > l->count ? l->last : l->count, some = most > PIECE ? 1 : SOME;
    for (size_t first = 0; first < l->lines; first += some)
        for (size_t x = 0; x < most; x += PIECE)
            transform_piece(f, stride, l, first, least(l->lines - first, some), x, gradient);
}

static void input_lines(float *f, size_t stride, const mica_winograd_lines *lines)
{
    transform_lines(f, stride, lines, false);
}

static void gradient_lines(float *f, size_t stride, const mica_winograd_lines *lines)
{
    transform_lines(f, stride, lines, true);
}

/* `lanes` pixels of some rows, four at most. */
VF_INLINE void output_vector(float *y, ptrdiff_t row_stride, size_t rows, const float *f, size_t stride,
                             vf bias, size_t lanes, bool accumulate)
{
    vf in[SIDE], out[TILE];
#pragma GCC unroll 6
    for (size_t s = 0; s < SIDE; s++)
        in[s] = vf_load(f + s * stride);
    output_line(out, in);
#pragma GCC unroll 4
    for (size_t i = 0; i < TILE; i++, y += row_stride) {
        if (i == rows)
            return;
        vf v = vf_add(out[i], bias);
        if (lanes == VF_LANES)
            vf_store(y, accumulate ? vf_add(v, vf_load(y)) : v);
        else
            vf_store_tail(y, accumulate ? vf_add(v, vf_load_tail(y, lanes)) : v, lanes);
    }
}

/* One line of one channel. */
VF_INLINE void output_rows(float *y, const mica_winograd_plane *p, size_t rows, const float *f, size_t stride,
                           float bias, bool accumulate)
{
    size_t columns = (size_t)p->columns, whole = columns / VF_LANES * VF_LANES, last = columns - whole;
    vf shift = vf_set1(bias);
    for (size_t x = 0; x < whole; x += VF_LANES)
        output_vector(y + x, p->row_stride, rows, f + x, stride, shift, VF_LANES, accumulate);
    if (last == 0)
        return;
    if (whole > 0 && !accumulate) /* lies over the one before it */
        output_vector(y + columns - VF_LANES, p->row_stride, rows, f + columns - VF_LANES, stride, shift,
                      VF_LANES, accumulate);
    else
        output_vector(y + whole, p->row_stride, rows, f + whole, stride, shift, last, accumulate);
}

static void output_lines(const mica_winograd_lines *l, const float *f, size_t stride, const float *bias,
                         bool accumulate)
{
    for (size_t c = 0; c < l->channels; c++)
        for (size_t i = 0; i < l->lines; i++) {
            ptrdiff_t row = l->row + (ptrdiff_t)(i * TILE);
            float *y = l->plane.data + (ptrdiff_t)c * l->channel_stride + row * l->plane.row_stride;
            const float *from = f + c * l->room + i * l->pitch;
            float shift = bias != NULL ? bias[c] : 0.0f;
            if (l->plane.rows - row >= TILE && !accumulate)
                output_rows(y, &l->plane, TILE, from, stride, shift, false);
            else
                output_rows(y, &l->plane, least(TILE, (size_t)(l->plane.rows - row)), from, stride, shift,
                            accumulate);
        }
}

/* n is a multiple of VF_LANES. */
static void sums_back(float *w, size_t w_stride, const float *f, size_t stride, size_t n)
{
    for (size_t x = 0; x < n; x += VF_LANES) {
        vf in[SIDE], out[TAPS];
        for (size_t s = 0; s < SIDE; s++)
            in[s] = vf_load(f + s * stride + x);
        kernel_line_back(out, in);
        for (size_t t = 0; t < TAPS; t++)
            vf_store(w + t * w_stride + x, out[t]);
    }
}

/* ---- Kernels ---- */

/* Lanes from p on, `stride` apart. */
VF_INLINE vf load_lanes(const float *p, ptrdiff_t stride, size_t n)
{
    if (n == VF_LANES)
        return vf_gather(p, stride);
    float lane[VF_LANES] = {0};
    for (size_t i = 0; i < n; i++)
        lane[i] = p[(ptrdiff_t)i * stride];
    return vf_load(lane);
}

VF_INLINE void store_lanes(float *to, size_t step, vf v, size_t n)
{
    if (step == 1 && n == VF_LANES) {
        vf_store(to, v);
        return;
    }
    float lane[VF_LANES];
    vf_store(lane, v);
    for (size_t i = 0; i < n; i++)
        to[i * step] = lane[i];
}

static void kernels(float *f, size_t stride, size_t step, const float *w, ptrdiff_t w_stride,
                    ptrdiff_t row_stride, ptrdiff_t column_stride, size_t count)
{
    const ptrdiff_t rows = row_stride == 0 ? 1 : TAPS;
    for (size_t k = 0; k < count; k += VF_LANES, w += VF_LANES * w_stride) {
        size_t n = least(count - k, VF_LANES);
        vf half[TAPS][SIDE];
        for (ptrdiff_t t = 0; t < rows; t++) {
            vf taps[TAPS];
            for (ptrdiff_t u = 0; u < TAPS; u++)
                taps[u] = load_lanes(w + t * row_stride + u * column_stride, w_stride, n);
            kernel_line(half[t], taps);
        }
        for (size_t s = 0; s < SIDE; s++) {
            float *to = f + s * stride + k * step;
            if (rows == 1) {
                store_lanes(to, step, half[0][s], n);
                continue;
            }
            vf out[SIDE], in[TAPS] = {half[0][s], half[1][s], half[2][s]};
            kernel_line(out, in);
            for (size_t r = 0; r < SIDE; r++)
                store_lanes(to + r * SIDE * stride, step, out[r], n);
        }
    }
}

/* Kernels of so many output channels, at the most, are transformed before they are turned. */
#define PANEL_CHANNELS 8

/* Turns VF_LANES channels of one frequency, of up to a vector of output channels: rows of the panel are `width` apart.
 * A store that runs over its row is put right by that of the next one; the last row takes care. */
VF_INLINE void turn_lanes(float *panel, size_t width, const float *from, size_t count, size_t n)
{
    vf square[VF_LANES];
#pragma GCC unroll 16
    for (size_t i = 0; i < VF_LANES; i++)
        square[i] = i < count ? vf_load(from + i * VF_LANES) : vf_zero();
    vf_transpose(square);
    for (size_t i = 0; i + 1 < n; i++)
        vf_store(panel + i * width, square[i]);
    vf_store_tail(panel + (n - 1) * width, square[n - 1], least(count, VF_LANES));
}

static void panel(float *f, size_t stride, size_t width, const float *w, ptrdiff_t vector_stride,
                  ptrdiff_t w_stride, ptrdiff_t row_stride, ptrdiff_t column_stride, size_t vectors,
                  size_t count)
{
    const size_t frequencies = row_stride == 0 ? SIDE : SIDE * SIDE;
    const size_t some = least(PANEL_CHANNELS, VF_LANES);
    float turned[SIDE * SIDE * PANEL_CHANNELS * VF_LANES];
    for (size_t k = 0; k < count; k += VF_LANES)
        for (size_t o = 0; o < vectors; o += some) {
            size_t m = least(vectors - o, some), n = least(count - k, VF_LANES);
            for (size_t i = 0; i < m; i++)
                kernels(turned + i * VF_LANES, PANEL_CHANNELS * VF_LANES, 1,
                        w + (ptrdiff_t)(o + i) * vector_stride + (ptrdiff_t)k * w_stride, w_stride,
                        row_stride, column_stride, n);
            for (size_t s = 0; s < frequencies; s++)
                turn_lanes(f + s * stride + k * width + o, width, turned + s * PANEL_CHANNELS * VF_LANES, m,
                           n);
        }
}

static void kernels_back(float *w, ptrdiff_t w_stride, ptrdiff_t row_stride, ptrdiff_t column_stride,
                         const float *f, size_t stride, size_t count, bool accumulate)
{
    const ptrdiff_t rows = row_stride == 0 ? 1 : TAPS;
    for (size_t k = 0; k < count; k += VF_LANES, w += VF_LANES * w_stride) {
        size_t n = least(count - k, VF_LANES);
        vf half[TAPS][SIDE];
        for (size_t s = 0; s < SIDE; s++) {
            vf in[SIDE], out[TAPS];
            for (size_t r = 0; r < (rows == 1 ? 1 : SIDE); r++)
                in[r] = vf_load_tail(f + (r * SIDE + s) * stride + k, n);
            if (rows == 1)
                out[0] = in[0];
            else
                kernel_line_back(out, in);
            for (ptrdiff_t t = 0; t < rows; t++)
                half[t][s] = out[t];
        }
        for (ptrdiff_t t = 0; t < rows; t++) {
            vf out[TAPS];
            kernel_line_back(out, half[t]);
            for (ptrdiff_t u = 0; u < TAPS; u++) {
                float lane[VF_LANES], *to = w + t * row_stride + u * column_stride;
                vf_store(lane, out[u]);
                for (size_t i = 0; i < n; i++, to += w_stride)
                    *to = accumulate ? *to + lane[i] : lane[i];
            }
        }
    }
}

const mica_winograd_kernels VF_SYMBOL(mica_winograd_kernels) = {
    .input = input,
    .gradient = gradient,
    .output = output,
    .input_lines = input_lines,
    .gradient_lines = gradient_lines,
    .output_lines = output_lines,
    .sums_back = sums_back,
    .kernels = kernels,
    .panel = panel,
    .kernels_back = kernels_back,
};
