/* Normalization kernels; compiled once per instruction set.
 *
 * Mean and variance come from one pass over memory: a chunk that fits the first cache is summed, then its
 * distances from that mean are, and chunks are combined as in Chan et al. Subtracting the mean first avoids the
 * cancellation of a sum of squares, and the sum of the distances corrects for the rounding of the
 * mean. */
#include "kernel/norm.h"
#include "kernel/vec.h"

#define CHUNK ((size_t)4096)

/* ---- Moments ---- */

static float sum_of(const float *x, size_t n)
{
    vf a = vf_zero(), b = vf_zero(), c = vf_zero(), d = vf_zero();
    size_t i = 0;
    for (; i + 4 * VF_LANES <= n; i += 4 * VF_LANES) {
        a = vf_add(a, vf_load(x + i));
        b = vf_add(b, vf_load(x + i + VF_LANES));
        c = vf_add(c, vf_load(x + i + 2 * VF_LANES));
        d = vf_add(d, vf_load(x + i + 3 * VF_LANES));
    }
    for (; i + VF_LANES <= n; i += VF_LANES)
        a = vf_add(a, vf_load(x + i));
    if (i < n)
        b = vf_add(b, vf_load_tail(x + i, n - i));
    return vf_sum(vf_add(vf_add(a, b), vf_add(c, d)));
}

/* The sums of the distances from `mean`, and of their squares. */
static void distances(float *sum, float *squares, const float *x, size_t n, float mean)
{
    vf m = vf_set1(mean), s[4], q[4];
    for (size_t k = 0; k < 4; k++)
        s[k] = q[k] = vf_zero();
    size_t i = 0;
    for (; i + 4 * VF_LANES <= n; i += 4 * VF_LANES) {
        for (size_t k = 0; k < 4; k++) {
            vf apart = vf_sub(vf_load(x + i + k * VF_LANES), m);
            s[k] = vf_add(s[k], apart);
            q[k] = vf_fma(apart, apart, q[k]);
        }
    }
    for (; i < n; i += VF_LANES) {
        size_t left = n - i < VF_LANES ? n - i : VF_LANES;
        vf apart = vf_select(vm_first(left), vf_sub(vf_load_tail(x + i, left), m), vf_zero());
        s[0] = vf_add(s[0], apart);
        q[0] = vf_fma(apart, apart, q[0]);
    }
    *sum = vf_sum(vf_add(vf_add(s[0], s[1]), vf_add(s[2], s[3])));
    *squares = vf_sum(vf_add(vf_add(q[0], q[1]), vf_add(q[2], q[3])));
}

static mica_moments chunk_moments(const float *x, size_t n)
{
    float count = (float)n, mean = sum_of(x, n) / count, sum, squares;
    distances(&sum, &squares, x, n, mean);
    float shift = sum / count;
    return (mica_moments){count, mean + shift, squares - shift * sum};
}

static void norm_moments(mica_moments *all, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += CHUNK) {
        mica_moments part = chunk_moments(x + i, n - i < CHUNK ? n - i : CHUNK);
        if (all->count == 0.0f) {
            *all = part;
            continue;
        }
        float count = all->count + part.count, apart = part.mean - all->mean;
        all->m2 += part.m2 + apart * apart * (all->count * part.count / count);
        all->mean += apart * (part.count / count);
        all->count = count;
    }
}

static float sum_of_squares(const float *x, size_t n)
{
    float total = 0.0f;
    for (size_t i = 0; i < n; i += CHUNK) {
        float sum, squares;
        distances(&sum, &squares, x + i, n - i < CHUNK ? n - i : CHUNK, 0.0f);
        total += squares;
    }
    return total;
}

/* ---- Rows: layer and RMS norm ---- */

static void add_rows(float *dst, const float *a, const float *b, size_t n)
{
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_store(dst + i, vf_add(vf_load(a + i), vf_load(b + i)));
    if (i < n)
        vf_store_tail(dst + i, vf_add(vf_load_tail(a + i, n - i), vf_load_tail(b + i, n - i)), n - i);
}

/* y = (x - mean) * rstd * gamma + beta */
VF_INLINE vf affine(vf x, vf mean, vf rstd, vf gamma, vf beta)
{
    return vf_fma(vf_mul(vf_sub(x, mean), rstd), gamma, beta);
}

/* What is normalised: x, or x + residual, which lies in y for a moment where the sum has no other place. */
static const float *row_of(const mica_norm_rows *a, size_t row)
{
    if (a->residual == NULL)
        return a->x + row * a->n;
    return a->sum != NULL ? a->sum + row * a->n : a->y + row * a->n;
}

static void measure_row(const mica_norm_rows *a, size_t row, float *mean, float *rstd)
{
    size_t n = a->n;
    const float *x = row_of(a, row);
    if (a->residual != NULL)
        add_rows((a->sum != NULL ? a->sum : a->y) + row * n, a->x + row * n, a->residual + row * n, n);
    mica_moments m = {0};
    float squares;
    if (a->centred) {
        norm_moments(&m, x, n);
        squares = m.m2;
    } else {
        squares = sum_of_squares(x, n);
    }
    float variance = n > 0 ? squares / (float)n : 0.0f;
    *mean = m.mean;
    *rstd = 1.0f / sqrtf(variance + a->eps);
}

/* Short rows are measured some at a time: what a row's sums end in, a division and a root one after the other, is
 * then done beside the next row's sums. They are also scaled together, as they share gamma and beta. */
#define ROWS_AT_ONCE 4

VF_INLINE vf load(const float *p, size_t lanes)
{
    return lanes == VF_LANES ? vf_load(p) : vf_load_tail(p, lanes);
}

/* `lanes` elements of `rows` rows that are n apart. */
VF_INLINE void apply_lanes(float *y, const float *x, size_t n, size_t lanes, size_t rows, const vf *mean,
                           const vf *rstd, vf gamma, vf beta)
{
    vf done[ROWS_AT_ONCE];
    for (size_t k = 0; k < rows; k++)
        done[k] = affine(load(x + k * n, lanes), mean[k], rstd[k], gamma, beta);
    for (size_t k = 0; k < rows; k++)
        vf_store_tail(y + k * n, done[k], lanes);
}

/* How many rows, and whether gamma and beta are given, are constants, so that each case has a loop of its own. */
VF_INLINE void apply_rows(const mica_norm_rows *a, size_t row, size_t rows, const float *mean,
                          const float *rstd, bool has_gamma, bool has_beta)
{
    const float *x = row_of(a, row), *gamma = a->gamma, *beta = a->beta;
    const size_t n = a->n;
    float *y = a->y + row * n;
    vf m[ROWS_AT_ONCE], r[ROWS_AT_ONCE], one = vf_set1(1.0f), zero = vf_zero();
    for (size_t k = 0; k < rows; k++)
        m[k] = vf_set1(mean[k]), r[k] = vf_set1(rstd[k]);
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        apply_lanes(y + i, x + i, n, VF_LANES, rows, m, r, has_gamma ? vf_load(gamma + i) : one,
                    has_beta ? vf_load(beta + i) : zero);
    if (i < n)
        apply_lanes(y + i, x + i, n, n - i, rows, m, r, has_gamma ? vf_load_tail(gamma + i, n - i) : one,
                    has_beta ? vf_load_tail(beta + i, n - i) : zero);
}

VF_INLINE void scale_some(const mica_norm_rows *a, size_t row, size_t count, const float *mean,
                          const float *rstd, bool has_gamma, bool has_beta)
{
    if (count == ROWS_AT_ONCE)
        apply_rows(a, row, ROWS_AT_ONCE, mean, rstd, has_gamma, has_beta);
    else
        for (size_t k = 0; k < count; k++)
            apply_rows(a, row + k, 1, mean + k, rstd + k, has_gamma, has_beta);
}

static void scale_rows(const mica_norm_rows *a, size_t row, size_t count, const float *mean,
                       const float *rstd)
{
    if (a->gamma != NULL && a->beta != NULL)
        scale_some(a, row, count, mean, rstd, true, true);
    else if (a->gamma != NULL)
        scale_some(a, row, count, mean, rstd, true, false);
    else if (a->beta != NULL)
        scale_some(a, row, count, mean, rstd, false, true);
    else
        scale_some(a, row, count, mean, rstd, false, false);
    if (a->mean != NULL)
        memcpy(a->mean + row, mean, count * sizeof *mean);
    if (a->rstd != NULL)
        memcpy(a->rstd + row, rstd, count * sizeof *rstd);
}

static void norm_rows(const mica_norm_rows *a, size_t begin, size_t end)
{
    size_t step = a->n <= 1024 ? ROWS_AT_ONCE : 1;
    for (size_t row = begin; row < end; row += step) {
        float mean[ROWS_AT_ONCE], rstd[ROWS_AT_ONCE];
        size_t count = end - row < step ? end - row : step;
        for (size_t k = 0; k < count; k++)
            measure_row(a, row + k, &mean[k], &rstd[k]);
        scale_rows(a, row, count, mean, rstd);
    }
}

/* The sums of g = gamma dy and of g h over a row, h = (x - mean) rstd; and dgamma += dy h, dbeta += dy. */
VF_INLINE void row_sums(float *sum_g, float *sum_gh, const mica_norm_rows_backward *a, const float *dy,
                        const float *x, float mean, float rstd, bool has_gamma, bool wants_gamma,
                        bool wants_beta)
{
    vf m = vf_set1(mean), r = vf_set1(rstd), s = vf_zero(), q = vf_zero();
    for (size_t i = 0; i < a->n; i += VF_LANES) {
        size_t left = a->n - i < VF_LANES ? a->n - i : VF_LANES;
        bool whole = left == VF_LANES;
        vf d = whole ? vf_load(dy + i) : vf_load_tail(dy + i, left);
        vf h = vf_mul(vf_sub(whole ? vf_load(x + i) : vf_load_tail(x + i, left), m), r);
        vf g = d;
        if (has_gamma)
            g = vf_mul(d, whole ? vf_load(a->gamma + i) : vf_load_tail(a->gamma + i, left));
        s = vf_add(s, g);
        q = vf_fma(g, h, q);
        if (wants_gamma) {
            vf old = whole ? vf_load(a->dgamma + i) : vf_load_tail(a->dgamma + i, left);
            vf_store_tail(a->dgamma + i, vf_fma(d, h, old), left);
        }
        if (wants_beta) {
            vf old = whole ? vf_load(a->dbeta + i) : vf_load_tail(a->dbeta + i, left);
            vf_store_tail(a->dbeta + i, vf_add(d, old), left);
        }
    }
    *sum_g = vf_sum(s);
    *sum_gh = vf_sum(q);
}

/* dx = rstd (g - mean of g - h * mean of (g h)) */
VF_INLINE void row_dx(float *dx, const mica_norm_rows_backward *a, const float *dy, const float *x,
                      float mean, float rstd, float mean_g, float mean_gh, bool has_gamma)
{
    vf m = vf_set1(mean), r = vf_set1(rstd), c1 = vf_set1(mean_g), c2 = vf_set1(mean_gh);
    for (size_t i = 0; i < a->n; i += VF_LANES) {
        size_t left = a->n - i < VF_LANES ? a->n - i : VF_LANES;
        bool whole = left == VF_LANES;
        vf g = whole ? vf_load(dy + i) : vf_load_tail(dy + i, left);
        if (has_gamma)
            g = vf_mul(g, whole ? vf_load(a->gamma + i) : vf_load_tail(a->gamma + i, left));
        vf h = vf_mul(vf_sub(whole ? vf_load(x + i) : vf_load_tail(x + i, left), m), r);
        vf_store_tail(dx + i, vf_mul(r, vf_fnma(h, c2, vf_sub(g, c1))), left);
    }
}

static void row_backward(const mica_norm_rows_backward *a, size_t row)
{
    const float *dy = a->dy + row * a->n, *x = a->x + row * a->n;
    float mean = a->mean != NULL ? a->mean[row] : 0.0f, rstd = a->rstd[row], sum_g, sum_gh;
    if (a->gamma != NULL && a->dgamma != NULL && a->dbeta != NULL)
        row_sums(&sum_g, &sum_gh, a, dy, x, mean, rstd, true, true, true);
    else if (a->gamma != NULL && a->dgamma != NULL)
        row_sums(&sum_g, &sum_gh, a, dy, x, mean, rstd, true, true, false);
    else
        row_sums(&sum_g, &sum_gh, a, dy, x, mean, rstd, a->gamma != NULL, a->dgamma != NULL,
                 a->dbeta != NULL);
    if (a->dx == NULL)
        return;
    float count = (float)a->n, mean_g = a->mean != NULL ? sum_g / count : 0.0f;
    if (a->gamma != NULL)
        row_dx(a->dx + row * a->n, a, dy, x, mean, rstd, mean_g, sum_gh / count, true);
    else
        row_dx(a->dx + row * a->n, a, dy, x, mean, rstd, mean_g, sum_gh / count, false);
}

static void norm_rows_backward(const mica_norm_rows_backward *a, size_t begin, size_t end)
{
    for (size_t row = begin; row < end; row++)
        row_backward(a, row);
}

/* ---- Segments: batch, group and instance norm ---- */

static void norm_apply(float *y, const float *x, size_t n, float mean, float scale, float shift)
{
    vf m = vf_set1(mean), k = vf_set1(scale), c = vf_set1(shift);
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_store(y + i, vf_fma(vf_sub(vf_load(x + i), m), k, c));
    if (i < n)
        vf_store_tail(y + i, vf_fma(vf_sub(vf_load_tail(x + i, n - i), m), k, c), n - i);
}

static void chunk_sums(float sums[2], const float *dy, const float *x, size_t n, vf m)
{
    vf s0 = vf_zero(), s1 = vf_zero(), q0 = vf_zero(), q1 = vf_zero();
    size_t i = 0;
    for (; i + 2 * VF_LANES <= n; i += 2 * VF_LANES) {
        vf a = vf_load(dy + i), b = vf_load(dy + i + VF_LANES);
        s0 = vf_add(s0, a);
        s1 = vf_add(s1, b);
        q0 = vf_fma(a, vf_sub(vf_load(x + i), m), q0);
        q1 = vf_fma(b, vf_sub(vf_load(x + i + VF_LANES), m), q1);
    }
    for (; i < n; i += VF_LANES) {
        size_t left = n - i < VF_LANES ? n - i : VF_LANES;
        vf a = vf_load_tail(dy + i, left);
        s0 = vf_add(s0, a);
        q0 = vf_fma(a, vf_select(vm_first(left), vf_sub(vf_load_tail(x + i, left), m), vf_zero()), q0);
    }
    sums[0] += vf_sum(vf_add(s0, s1));
    sums[1] += vf_sum(vf_add(q0, q1));
}

static void norm_sums(float sums[2], const float *dy, const float *x, size_t n, float mean)
{
    vf m = vf_set1(mean);
    for (size_t i = 0; i < n; i += CHUNK)
        chunk_sums(sums, dy + i, x + i, n - i < CHUNK ? n - i : CHUNK, m);
}

static void norm_apply_backward(float *dx, const float *dy, const float *x, size_t n, float mean, float by_dy,
                                float by_x, float constant)
{
    vf m = vf_set1(mean), p = vf_set1(by_dy), q = vf_set1(by_x), c = vf_set1(constant);
    for (size_t i = 0; i < n; i += VF_LANES) {
        size_t left = n - i < VF_LANES ? n - i : VF_LANES;
        bool whole = left == VF_LANES;
        vf d = whole ? vf_load(dy + i) : vf_load_tail(dy + i, left);
        vf apart = vf_sub(whole ? vf_load(x + i) : vf_load_tail(x + i, left), m);
        vf_store_tail(dx + i, vf_fma(p, d, vf_fma(q, apart, c)), left);
    }
}

/* ---- Columns: WIDE vectors of them at a time, so that whole cache lines are used ---- */

#define WIDE 4

/* Two passes over the rows of some columns, as for a chunk. `vectors` is a constant where this is inlined. */
VF_INLINE void moments_of_columns(float *mean, float *m2, const float *x, size_t rows, size_t stride,
                                  size_t vectors, size_t lanes)
{
    vf count = vf_set1((float)rows), sum[WIDE], squares[WIDE], centre[WIDE];
    for (size_t k = 0; k < vectors; k++)
        sum[k] = squares[k] = vf_zero();
    for (size_t r = 0; r < rows; r++)
        for (size_t k = 0; k < vectors; k++)
            sum[k] = vf_add(sum[k], load(x + r * stride + k * VF_LANES, lanes));
    for (size_t k = 0; k < vectors; k++) {
        centre[k] = vf_div(sum[k], count);
        sum[k] = vf_zero();
    }
    for (size_t r = 0; r < rows; r++) {
        for (size_t k = 0; k < vectors; k++) {
            vf apart = vf_sub(load(x + r * stride + k * VF_LANES, lanes), centre[k]);
            sum[k] = vf_add(sum[k], apart);
            squares[k] = vf_fma(apart, apart, squares[k]);
        }
    }
    for (size_t k = 0; k < vectors; k++) {
        vf shift = vf_div(sum[k], count);
        vf_store_tail(mean + k * VF_LANES, vf_add(centre[k], shift), lanes);
        vf_store_tail(m2 + k * VF_LANES, vf_fnma(shift, sum[k], squares[k]), lanes);
    }
}

static void column_moments(float *mean, float *m2, const float *x, size_t rows, size_t stride, size_t n)
{
    size_t c = 0;
    for (; c + WIDE * VF_LANES <= n; c += WIDE * VF_LANES)
        moments_of_columns(mean + c, m2 + c, x + c, rows, stride, WIDE, VF_LANES);
    for (; c < n; c += VF_LANES)
        moments_of_columns(mean + c, m2 + c, x + c, rows, stride, 1, n - c < VF_LANES ? n - c : VF_LANES);
}

static void column_apply(float *y, const float *x, size_t n, const float *mean, const float *scale,
                         const float *shift)
{
    for (size_t i = 0; i < n; i += VF_LANES) {
        size_t left = n - i < VF_LANES ? n - i : VF_LANES;
        vf apart = vf_sub(load(x + i, left), load(mean + i, left));
        vf_store_tail(y + i, vf_fma(apart, load(scale + i, left), load(shift + i, left)), left);
    }
}

VF_INLINE void sums_of_columns(float *sum_dy, float *sum_dy_x, const float *dy, const float *x, size_t rows,
                               size_t stride, const float *mean, size_t vectors, size_t lanes)
{
    vf m[WIDE], s[WIDE], q[WIDE];
    for (size_t k = 0; k < vectors; k++) {
        m[k] = load(mean + k * VF_LANES, lanes);
        s[k] = q[k] = vf_zero();
    }
    for (size_t r = 0; r < rows; r++) {
        for (size_t k = 0; k < vectors; k++) {
            size_t at = r * stride + k * VF_LANES;
            vf d = load(dy + at, lanes);
            s[k] = vf_add(s[k], d);
            q[k] = vf_fma(d, vf_sub(load(x + at, lanes), m[k]), q[k]);
        }
    }
    for (size_t k = 0; k < vectors; k++) {
        vf_store_tail(sum_dy + k * VF_LANES, s[k], lanes);
        vf_store_tail(sum_dy_x + k * VF_LANES, q[k], lanes);
    }
}

static void column_sums(float *sum_dy, float *sum_dy_x, const float *dy, const float *x, size_t rows,
                        size_t stride, size_t n, const float *mean)
{
    size_t c = 0;
    for (; c + WIDE * VF_LANES <= n; c += WIDE * VF_LANES)
        sums_of_columns(sum_dy + c, sum_dy_x + c, dy + c, x + c, rows, stride, mean + c, WIDE, VF_LANES);
    for (; c < n; c += VF_LANES)
        sums_of_columns(sum_dy + c, sum_dy_x + c, dy + c, x + c, rows, stride, mean + c, 1,
                        n - c < VF_LANES ? n - c : VF_LANES);
}

static void column_apply_backward(float *dx, const float *dy, const float *x, size_t n, const float *mean,
                                  const float *by_dy, const float *by_x, const float *constant)
{
    for (size_t i = 0; i < n; i += VF_LANES) {
        size_t left = n - i < VF_LANES ? n - i : VF_LANES;
        vf apart = vf_sub(load(x + i, left), load(mean + i, left));
        vf rest = vf_fma(load(by_x + i, left), apart, load(constant + i, left));
        vf_store_tail(dx + i, vf_fma(load(by_dy + i, left), load(dy + i, left), rest), left);
    }
}

static void norm_add(float *dst, const float *src, size_t n) { add_rows(dst, dst, src, n); }

const mica_norm_kernels VF_SYMBOL(mica_norm_kernels) = {
    .rows = norm_rows,
    .rows_backward = norm_rows_backward,
    .moments = norm_moments,
    .apply = norm_apply,
    .sums = norm_sums,
    .apply_backward = norm_apply_backward,
    .column_moments = column_moments,
    .column_apply = column_apply,
    .column_sums = column_sums,
    .column_apply_backward = column_apply_backward,
    .add = norm_add,
};
