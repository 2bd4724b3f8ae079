/* Attention kernels; compiled once per instruction set. */
#include "kernel/attention.h"
#include "kernel/vmath.h"

/* ---- Products: a register tile of ROWS x up to 3 vectors ---- */

#if VF_REGISTERS >= 32
#define ROWS 8
#else
#define ROWS 4
#endif

/* One tile. rows, vectors and whole are constants where this is inlined; without `whole` only the first
 * `lanes` of the last vector exist. */
VF_INLINE void tile(float *c, ptrdiff_t c_stride, const mica_matrix *a, ptrdiff_t row, const float *b,
                    ptrdiff_t b_stride, size_t k, bool add, size_t rows, size_t vectors, bool whole,
                    size_t lanes)
{
    vf sum[ROWS][3];
#pragma GCC unroll 8
    for (size_t i = 0; i < rows; i++)
#pragma GCC unroll 3
        for (size_t j = 0; j < vectors; j++)
            sum[i][j] = vf_zero();
    const float *from = a->data + row * a->row;
    for (size_t p = 0; p < k; p++, from += a->column, b += b_stride) {
        vf line[3];
#pragma GCC unroll 3
        for (size_t j = 0; j < vectors; j++)
            line[j] = whole ? vf_load(b + j * VF_LANES) : vf_load_tail(b + j * VF_LANES, lanes);
#pragma GCC unroll 8
        for (size_t i = 0; i < rows; i++) {
            vf factor = vf_set1(from[(ptrdiff_t)i * a->row]);
#pragma GCC unroll 3
            for (size_t j = 0; j < vectors; j++)
                sum[i][j] = vf_fma(factor, line[j], sum[i][j]);
        }
    }
    c += row * c_stride;
#pragma GCC unroll 8
    for (size_t i = 0; i < rows; i++) {
#pragma GCC unroll 3
        for (size_t j = 0; j < vectors; j++) {
            float *to = c + (ptrdiff_t)i * c_stride + j * VF_LANES;
            vf old = !add ? vf_zero() : whole ? vf_load(to) : vf_load_tail(to, lanes);
            vf_store_tail(to, vf_add(sum[i][j], old), whole ? VF_LANES : lanes);
        }
    }
}

/* Some columns of c, all rows. */
VF_INLINE void strip(float *c, ptrdiff_t c_stride, const mica_matrix *a, const float *b, ptrdiff_t b_stride,
                     size_t m, size_t k, bool add, size_t vectors, bool whole, size_t lanes)
{
    ptrdiff_t i = 0, rows = (ptrdiff_t)m;
    for (; i + ROWS <= rows; i += ROWS)
        tile(c, c_stride, a, i, b, b_stride, k, add, ROWS, vectors, whole, lanes);
    for (; i + 2 <= rows; i += 2)
        tile(c, c_stride, a, i, b, b_stride, k, add, 2, vectors, whole, lanes);
    if (i < rows)
        tile(c, c_stride, a, i, b, b_stride, k, add, 1, vectors, whole, lanes);
}

static void product(float *c, ptrdiff_t c_stride, const mica_matrix *a, const float *b, ptrdiff_t b_stride,
                    size_t m, size_t n, size_t k, bool add)
{
    size_t j = 0;
    for (; j + 3 * VF_LANES <= n; j += 3 * VF_LANES)
        strip(c + j, c_stride, a, b + j, b_stride, m, k, add, 3, true, VF_LANES);
    if (j + 2 * VF_LANES <= n) {
        strip(c + j, c_stride, a, b + j, b_stride, m, k, add, 2, true, VF_LANES);
        j += 2 * VF_LANES;
    }
    if (j + VF_LANES <= n) {
        strip(c + j, c_stride, a, b + j, b_stride, m, k, add, 1, true, VF_LANES);
        j += VF_LANES;
    }
    if (j < n)
        strip(c + j, c_stride, a, b + j, b_stride, m, k, add, 1, false, n - j);
}

/* ---- Scores ---- */

static size_t lanes_left(size_t n, size_t i) { return n - i < VF_LANES ? n - i : VF_LANES; }
VF_INLINE vf load(const float *p, size_t left)
{
    return left == VF_LANES ? vf_load(p) : vf_load_tail(p, left);
}

/* Adds the mask to n scaled scores, or hides what it hides. */
static void mask_row(float *s, size_t n, const mica_score_rule *rule, ptrdiff_t row)
{
    ptrdiff_t at = row * rule->mask_row;
    if (rule->add != NULL)
        for (size_t j = 0; j < n; j++, at += rule->mask_column)
            s[j] += rule->add[at];
    else
        for (size_t j = 0; j < n; j++, at += rule->mask_column)
            s[j] = rule->keep[at] != 0 ? s[j] : -INFINITY;
}

static void scores(float *s, ptrdiff_t stride, size_t rows, size_t n, const mica_score_rule *rule)
{
    vf scale = vf_set1(rule->scale);
    for (size_t i = 0; i < rows; i++, s += stride) {
        ptrdiff_t sees = rule->visible + (ptrdiff_t)i * rule->step;
        size_t visible = sees < 0 ? 0 : (size_t)sees < n ? (size_t)sees : n;
        for (size_t j = 0; j < visible; j += VF_LANES) {
            size_t left = lanes_left(visible, j);
            vf_store_tail(s + j, vf_mul(load(s + j, left), scale), left);
        }
        if (rule->add != NULL || rule->keep != NULL)
            mask_row(s, visible, rule, (ptrdiff_t)i);
        for (size_t j = visible; j < n; j++)
            s[j] = -INFINITY;
    }
}

/* ---- Softmax ---- */

static float first_lane(vf v)
{
    float lanes[VF_LANES];
    vf_store(lanes, v);
    return lanes[0];
}

static float largest_of(const float *s, size_t n, float so_far)
{
    vf most = vf_set1(so_far);
    size_t j = 0;
    for (; j + VF_LANES <= n; j += VF_LANES)
        most = vf_max_nan(most, vf_load(s + j));
    float best = vf_hmax(most);
    for (; j < n; j++)
        if (s[j] > best || s[j] != s[j])
            best = s[j];
    return best;
}

/* s = e^(s - m); returns their sum. */
static float exponentials(float *s, size_t n, float largest)
{
    vf m = vf_set1(largest), sum = vf_zero();
    for (size_t j = 0; j < n; j += VF_LANES) {
        size_t left = lanes_left(n, j);
        vf e = vf_exp(vf_sub(load(s + j, left), m));
        sum = vf_add(sum, left == VF_LANES ? e : vf_select(vm_first(left), e, vf_zero()));
        vf_store_tail(s + j, e, left);
    }
    return vf_sum(sum);
}

static void scale_row(float *y, const float *x, size_t n, float by)
{
    vf factor = vf_set1(by);
    for (size_t j = 0; j < n; j += VF_LANES) {
        size_t left = lanes_left(n, j);
        vf_store_tail(y + j, vf_mul(load(x + j, left), factor), left);
    }
}

static void softmax_step(float *s, ptrdiff_t stride, size_t rows, size_t n, float *largest, float *sum,
                         float *out, ptrdiff_t out_stride, size_t d)
{
    for (size_t i = 0; i < rows; i++, s += stride, out += out_stride) {
        float m = largest_of(s, n, largest[i]);
        if (m == -INFINITY) { /* no key seen so far */
            memset(s, 0, n * sizeof *s);
            continue;
        }
        float rescale = first_lane(vf_exp(vf_set1(largest[i] - m)));
        if (rescale != 1.0f)
            scale_row(out, out, d, rescale);
        sum[i] = sum[i] * rescale + exponentials(s, n, m);
        largest[i] = m;
    }
}

static void softmax_end(float *y, ptrdiff_t y_stride, float *lse, ptrdiff_t lse_stride, const float *acc,
                        ptrdiff_t acc_stride, size_t rows, size_t d, const float *largest, const float *sum)
{
    for (size_t i = 0; i < rows; i++, y += y_stride, acc += acc_stride) {
        bool none = largest[i] == -INFINITY;
        scale_row(y, acc, d, none ? 0.0f : 1.0f / sum[i]);
        if (lse != NULL)
            lse[(ptrdiff_t)i * lse_stride] = none ? -INFINITY
                                                  : largest[i] + first_lane(vf_log(vf_set1(sum[i])));
    }
}

static void softmax_backward(float *s, float *dp, ptrdiff_t stride, size_t rows, size_t n, const float *lse,
                             const float *delta, float scale)
{
    vf by = vf_set1(scale);
    for (size_t i = 0; i < rows; i++, s += stride, dp += stride) {
        if (lse[i] == -INFINITY) {
            memset(s, 0, n * sizeof *s);
            memset(dp, 0, n * sizeof *dp);
            continue;
        }
        vf m = vf_set1(lse[i]), shift = vf_set1(delta[i]);
        for (size_t j = 0; j < n; j += VF_LANES) {
            size_t left = lanes_left(n, j);
            vf p = vf_exp(vf_sub(load(s + j, left), m));
            vf ds = vf_mul(vf_mul(p, vf_sub(load(dp + j, left), shift)), by);
            vf_store_tail(s + j, p, left);
            vf_store_tail(dp + j, ds, left);
        }
    }
}

static float dot(const float *a, const float *b, size_t n)
{
    vf sum = vf_zero();
    for (size_t j = 0; j < n; j += VF_LANES) {
        size_t left = lanes_left(n, j);
        sum = vf_fma(load(a + j, left), load(b + j, left), sum);
    }
    return vf_sum(sum);
}

const mica_attention_kernels VF_SYMBOL(mica_attention_kernels) = {
    .product = product,
    .scores = scores,
    .softmax_step = softmax_step,
    .softmax_end = softmax_end,
    .softmax_backward = softmax_backward,
    .dot = dot,
};
