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

/* Down the columns first: vectors of pixels as they lie. lines [SIDE][ROW] of `count` pixels from the run's first. */
VF_INLINE void transform_columns(float lines[SIDE][ROW], const mica_winograd_plane *p,
                                 const mica_winograd_run *run, size_t count, bool gradient)
{
    mica_conv_axis axis = {.image = (size_t)p->columns, .count = count, .taps = 1, .scale = 1, .step = 1};
    const size_t taken = gradient ? TILE : SIDE;
    size_t high, low = clip(&axis, run->column, count, &high);
    size_t end = TILE * ((run->tiles + VF_LANES - 1) / VF_LANES * VF_LANES + 1); /* that will be read */
    if (run->flat) {
        copy_clipped(lines[0], p->data + run->row * p->row_stride, 1, &axis, run->column, end);
        return;
    }
    static const float nothing[ROW];
    const float *row[SIDE];
    for (size_t r = 0; r < taken; r++) {
        ptrdiff_t at = run->row + (ptrdiff_t)r;
        bool there = at >= 0 && at < p->rows;
        row[r] = there ? p->data + at * p->row_stride + run->column + (ptrdiff_t)low : nothing;
    }
    for (size_t f = 0; f < SIDE; f++) {
        zero(lines[f], low);
        zero(lines[f] + high, end - high);
    }
    for (size_t x = 0; x < high - low; x += VF_LANES) {
        vf in[SIDE], out[SIDE];
        size_t n = least(high - low - x, VF_LANES);
        for (size_t r = 0; r < taken; r++)
            in[r] = n == VF_LANES ? vf_load(row[r] + x) : vf_load_tail(row[r] + x, n);
        if (gradient)
            gradient_line(out, in);
        else
            input_line(out, in);
        for (size_t f = 0; f < SIDE; f++)
            vf_store(lines[f] + low + x, out[f]); /* lanes past the last pixel are zeros */
    }
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
    transform_columns(lines, p, run, TILE * run->tiles + (gradient ? 0 : SIDE - TILE), gradient);
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
    .kernels = kernels,
    .kernels_back = kernels_back,
};
