/* Products of bytes, and what int8 operations do to single values; compiled once per instruction set. Sums are unsigned
 * where they may wrap. */
#include "kernel/int8.h"
#include "kernel/vec.h"

#if VF_LANES > 1
#include "kernel/vec_bytes.h"
#endif

/* Weights are -127 to 127: then signs can be moved from one factor to the other. */
VF_INLINE int8_t weight(int8_t w) { return w == INT8_MIN ? -127 : w; }

VF_INLINE int32_t limited(int32_t r, int32_t low, int32_t high)
{
    return r < low ? low : r > high ? high : r;
}

/* ---- Value by value: loops that compilers turn into vectors ---- */

VF_INLINE int8_t finished(int32_t sum, int32_t multiplier, int shift, int32_t low, int32_t high)
{
    int64_t r = ((int64_t)sum * multiplier + ((int64_t)1 << (shift - 1))) >> shift;
    return (int8_t)(r < low ? low : r > high ? high : r);
}

/* Adding 1.5 * 2^23 to a number of less than 2^22 leaves a whole one, rounded half to even, in the low bits. */
#define WHOLE 12582912.0f

VF_INLINE float limited_float(float r, float low, float high)
{
    r = r > low ? r : low; /* a NaN is not above it */
    return r < high ? r : high;
}

/* Limits are those of the result, less zero. */
VF_INLINE int8_t rounded(float r, float low, float high, int32_t zero)
{
    float whole = limited_float(r, low, high) + WHOLE;
    return (int8_t)((int32_t)(whole - WHOLE) + zero);
}

static void finish(int8_t *restrict y, const int32_t *restrict sum, size_t count, const mica_int8_finish *f,
                   int each)
{
    int32_t low = f->low, high = f->high;
    if (f->kind == MICA_INT8_AFFINE) {
        for (size_t i = 0; i < count; i++)
            y[i] = rounded((float)sum[i] * f->factor[each ? i : 0], (float)(low - f->zero),
                           (float)(high - f->zero), f->zero);
        return;
    }
    if (each)
        for (size_t i = 0; i < count; i++)
            y[i] = finished(sum[i], f->multiplier[i], f->shift[i], low, high);
    else
        for (size_t i = 0; i < count; i++)
            y[i] = finished(sum[i], f->multiplier[0], f->shift[0], low, high);
}

static void quantize(int8_t *restrict y, const float *restrict x, size_t count, float factor)
{
    size_t i = 0;
#if VF_LANES > 1
    const vf by = vf_set1(factor), low = vf_set1(-127.0f), high = vf_set1(127.0f);
    for (; i + 4 * VF_LANES <= count; i += 4 * VF_LANES) {
        vi four[4];
        for (size_t k = 0; k < 4; k++) {
            vf r = vf_mul(vf_load(x + i + k * VF_LANES), by);
            four[k] = vi_from_vf(vf_min(vf_select(vf_gt(r, low), r, low), high)); /* a NaN is not above it */
        }
        vb_store((uint8_t *)y + i, vb_pack_lanes(four));
    }
#endif
    for (; i < count; i++)
        y[i] = rounded(x[i] * factor, -127.0f, 127.0f, 0);
}

static void error(float *restrict y, const float *restrict x, size_t count, float scale)
{
    const float factor = 1.0f / scale;
    for (size_t i = 0; i < count; i++) {
        float whole = limited_float(x[i] * factor, -127.0f, 127.0f) + WHOLE;
        y[i] = (whole - WHOLE) * scale - x[i];
    }
}

static void dequantize(float *restrict y, const int8_t *restrict x, size_t count, float scale)
{
    for (size_t i = 0; i < count; i++)
        y[i] = (float)x[i] * scale;
}

static void add(int8_t *y, const int8_t *a, const int8_t *b, size_t count, const int32_t multiplier[2],
                int shift, const int32_t limit[2])
{
    int32_t m0 = multiplier[0], m1 = multiplier[1], half = (int32_t)1 << (shift - 1);
    int32_t low = limit[0], high = limit[1];
    for (size_t i = 0; i < count; i++)
        y[i] = (int8_t)limited((a[i] * m0 + b[i] * m1 + half) >> shift, low, high);
}

static void affine_quantize(int8_t *restrict y, const float *restrict x, size_t count, float scale,
                            int32_t zero)
{
    const float low = (float)(INT8_MIN - zero), high = (float)(INT8_MAX - zero);
    for (size_t i = 0; i < count; i++)
        y[i] = rounded(x[i] / scale, low, high, zero);
}

static void affine_dequantize(float *restrict y, const int8_t *restrict x, size_t count, float scale,
                              int32_t zero)
{
    for (size_t i = 0; i < count; i++)
        y[i] = (float)(x[i] - zero) * scale;
}

#if VF_LANES > 1
/* Whole blocks of four vectors, of factors that keep sums below 2^31: how many values. All steps but the products, and
 * their sum, are exact. y may be a or b. */
static size_t affine_add_blocks(int8_t *y, const int8_t *a, const int8_t *b, size_t count,
                                const float factor[2], const int32_t zero[3], const int32_t limit[2])
{
    enum { AT_ONCE = 4 * VF_LANES };
    const float most = 1e6f;
    if (!(factor[0] <= most && factor[0] >= -most && factor[1] <= most && factor[1] >= -most))
        return 0;
    const vf z0 = vf_set1((float)zero[0]), z1 = vf_set1((float)zero[1]), f0 = vf_set1(factor[0]),
             f1 = vf_set1(factor[1]);
    const vi z2 = vi_set1(zero[2]);
    const vb low = vb_set1((uint8_t)limit[0]), high = vb_set1((uint8_t)limit[1]);
    size_t i = 0;
    for (; i + AT_ONCE <= count; i += AT_ONCE) {
        vi four[4];
        for (size_t k = 0; k < 4; k++) {
            vf from_a = vf_mul(vf_sub(vf_load_i8(a + i + k * VF_LANES), z0), f0),
               from_b = vf_mul(vf_sub(vf_load_i8(b + i + k * VF_LANES), z1), f1);
            four[k] = vi_add(vi_from_vf(vf_add(from_a, from_b)), z2);
        }
        vb_store((uint8_t *)y + i, vb_limit(vb_pack_lanes(four), low, high));
    }
    return i;
}
#endif

static void affine_add(int8_t *y, const int8_t *a, const int8_t *b, size_t count, const float factor[2],
                       const int32_t zero[3], const int32_t limit[2])
{
    const int32_t z0 = zero[0], z1 = zero[1], z2 = zero[2];
    const float f0 = factor[0], f1 = factor[1], low = (float)(limit[0] - z2), high = (float)(limit[1] - z2);
    size_t i = 0;
#if VF_LANES > 1
    i = affine_add_blocks(y, a, b, count, factor, zero, limit);
#endif
    for (; i < count; i++)
        y[i] = rounded((float)(a[i] - z0) * f0 + (float)(b[i] - z1) * f1, low, high, z2);
}

static void tap(int32_t *restrict sum, const int8_t *restrict x, size_t step, size_t count, int w)
{
    int32_t factor = w == INT8_MIN ? -127 : w;
    if (step == 1)
        for (size_t k = 0; k < count; k++)
            sum[k] = (int32_t)((uint32_t)sum[k] + (uint32_t)(x[k] * factor));
    else
        for (size_t k = 0; k < count; k++)
            sum[k] = (int32_t)((uint32_t)sum[k] + (uint32_t)(x[k * step] * factor));
}

static void tap_i32(int32_t *restrict sum, const int32_t *restrict x, size_t step, size_t count, int32_t w)
{
    uint32_t factor = (uint32_t)w;
    if (step == 1)
        for (size_t k = 0; k < count; k++)
            sum[k] = (int32_t)((uint32_t)sum[k] + (uint32_t)x[k] * factor);
    else
        for (size_t k = 0; k < count; k++)
            sum[k] = (int32_t)((uint32_t)sum[k] + (uint32_t)x[k * step] * factor);
}

static void largest(int8_t *restrict y, const int8_t *restrict x, size_t step, size_t count)
{
    if (step == 1)
        for (size_t k = 0; k < count; k++)
            y[k] = y[k] > x[k] ? y[k] : x[k];
    else
        for (size_t k = 0; k < count; k++)
            y[k] = y[k] > x[k * step] ? y[k] : x[k * step];
}

/* ---- Products ---- */

#if VF_LANES > 1
enum { WIDTH = VB_PANEL * VF_LANES, OFFSET = VB_WIDE_OFFSET };
#else
enum { WIDTH = 4, OFFSET = 0 };
#endif

#include "kernel/int8_tile.h"

#if VF_LANES > 1

/* Whether all shifts of a panel need only high words. */
static bool shifts_are_high(const mica_int8_finish *f, size_t count, int each)
{
    uint8_t least = f->shift[0];
    for (size_t u = 1; u < count && each; u++)
        least = f->shift[u] < least ? f->shift[u] : least;
    return least >= 33;
}

/* Whole vectors of channels at a time; what lies behind the last goes nowhere. */
static void finish_high(int8_t *y, size_t stride, const int32_t *sum, size_t rows, size_t count,
                        const mica_int8_finish *f, int each)
{
    int32_t multiplier[WIDTH], half[WIDTH], down[WIDTH];
    for (size_t u = 0; u < WIDTH; u++) {
        size_t k = u < count && each ? u : 0;
        multiplier[u] = f->multiplier[k];
        half[u] = (int32_t)1 << (f->shift[k] - 33);
        down[u] = f->shift[k] - 32;
    }
    vi m[VB_PANEL], h[VB_PANEL], d[VB_PANEL], low = vi_set1(f->low), high = vi_set1(f->high);
    for (int p = 0; p < VB_PANEL; p++) {
        m[p] = vi_load(multiplier + p * VF_LANES);
        h[p] = vi_load(half + p * VF_LANES);
        d[p] = vi_load(down + p * VF_LANES);
    }
    for (size_t r = 0; r < rows; r++, y += stride, sum += WIDTH) {
        int8_t made[WIDTH], *to = count == WIDTH ? y : made;
        for (int p = 0; p < VB_PANEL; p++) {
            vi s = vi_add(vi_mulhi(vi_load(sum + p * VF_LANES), m[p]), h[p]);
            vi_store_bytes(to + p * VF_LANES, vi_min(vi_max(vi_sar_each(s, d[p]), low), high));
        }
        if (count < WIDTH)
            memcpy(y, made, count);
    }
}

static void finish_affine(int8_t *y, size_t stride, const int32_t *sum, size_t rows, size_t count,
                          const mica_int8_finish *f, int each)
{
    float factor[WIDTH];
    for (size_t u = 0; u < WIDTH; u++)
        factor[u] = f->factor[u < count && each ? u : 0];
    vf m[VB_PANEL], low = vf_set1((float)(f->low - f->zero)), high = vf_set1((float)(f->high - f->zero));
    vi zero = vi_set1(f->zero);
    for (int p = 0; p < VB_PANEL; p++)
        m[p] = vf_load(factor + p * VF_LANES);
    for (size_t r = 0; r < rows; r++, y += stride, sum += WIDTH) {
        int8_t made[WIDTH], *to = count == WIDTH ? y : made;
        for (int p = 0; p < VB_PANEL; p++) {
            vf v = vf_mul(vf_from_vi(vi_load(sum + p * VF_LANES)), m[p]);
            vi_store_bytes(to + p * VF_LANES, vi_add(vi_from_vf(vf_min(vf_max(v, low), high)), zero));
        }
        if (count < WIDTH)
            memcpy(y, made, count);
    }
}

#endif

static void finish_row(void *to, const int32_t *sum, size_t count, const mica_int8_finish *f, int each)
{
    if (f->kind == MICA_INT8_SUMS) {
        memcpy(to, sum, count * sizeof *sum);
    } else if (f->kind == MICA_INT8_FLOATS) {
        float *y = to;
        for (size_t u = 0; u < count; u++)
            y[u] = (float)sum[u] * f->factor[each ? u : 0];
    } else {
        finish(to, sum, count, f, each);
    }
}

static void finish_rows(void *y, size_t stride, const int32_t *sum, size_t rows, size_t count,
                        const mica_int8_finish *f, int each)
{
#if VF_LANES > 1
    if (f->kind == MICA_INT8_AFFINE) {
        finish_affine(y, stride, sum, rows, count, f, each);
        return;
    }
    if (f->kind == MICA_INT8_SHIFTED && shifts_are_high(f, count, each)) {
        finish_high(y, stride, sum, rows, count, f, each);
        return;
    }
#endif
    for (size_t r = 0; r < rows; r++)
        finish_row((char *)y + r * stride * mica_int8_result_bytes(f->kind), sum + r * WIDTH, count, f, each);
}

#if !defined(MICA_SMALL)
#include "kernel/int8_last.h"
#include "kernel/int8_pairs.h"
#include "kernel/int8_winograd.h"
#endif

static void pack(int8_t *restrict panel, int32_t *restrict start, const int8_t *restrict w, size_t stride,
                 size_t rows, size_t values, const int32_t *bias, int32_t zero)
{
    size_t quads = (values + 3) / 4;
    memset(panel, 0, quads * WIDTH * 4);
    for (size_t r = 0; r < WIDTH; r++) {
        start[r] = 0;
        if (r >= rows)
            continue;
        const int8_t *from = w + r * stride;
        int8_t *to = panel + r * 4;
        int32_t sum = 0; /* of at most MICA_INT8_PRODUCTS */
        for (size_t k = 0; k < values; k++) {
            int8_t value = weight(from[k]);
            to[k / 4 * (WIDTH * 4) + k % 4] = value;
            sum += value;
        }
        start[r] = (int32_t)((uint32_t)bias[r] - (uint32_t)(OFFSET + zero) * (uint32_t)sum);
    }
}

#if VF_LANES > 1

enum { ROWS = VF_REGISTERS >= 32 ? 8 : 4 };

/* Rows, a constant: their sums stay in registers. */
VF_INLINE void product_rows(int32_t *sum, const uint8_t *x, size_t stride, size_t rows, size_t quads,
                            const int8_t *panel, const int32_t *start)
{
    vi s[ROWS][VB_PANEL];
    for (size_t r = 0; r < rows; r++)
        for (int p = 0; p < VB_PANEL; p++)
            s[r][p] = vi_load(start + p * VF_LANES);
    for (size_t q = 0; q < quads; q++) {
        vb w[VB_PANEL];
        for (int p = 0; p < VB_PANEL; p++)
            w[p] = vb_load((const uint8_t *)panel + (q * VB_PANEL + (size_t)p) * 4 * VF_LANES);
        for (size_t r = 0; r < rows; r++) {
            vb four = vb_repeat4(x + r * stride + 4 * q);
            for (int p = 0; p < VB_PANEL; p++)
                s[r][p] = vi_dot_wide(s[r][p], four, w[p]);
        }
    }
    for (size_t r = 0; r < rows; r++)
        for (int p = 0; p < VB_PANEL; p++)
            vi_store(sum + r * WIDTH + (size_t)p * VF_LANES, s[r][p]);
}

static void product(int32_t *sum, const uint8_t *x, size_t stride, size_t rows, size_t quads,
                    const int8_t *panel, const int32_t *start)
{
    size_t r = 0;
    for (; r + ROWS <= rows; r += ROWS)
        product_rows(sum + r * WIDTH, x + r * stride, stride, ROWS, quads, panel, start);
#if VF_REGISTERS >= 32
    for (; r + ROWS / 2 <= rows; r += ROWS / 2)
        product_rows(sum + r * WIDTH, x + r * stride, stride, ROWS / 2, quads, panel, start);
#endif
    for (; r + 2 <= rows; r += 2)
        product_rows(sum + r * WIDTH, x + r * stride, stride, 2, quads, panel, start);
    for (; r < rows; r++)
        product_rows(sum + r * WIDTH, x + r * stride, stride, 1, quads, panel, start);
}

typedef int8_t signed_bytes __attribute__((vector_size(4 * VF_LANES)));
enum { BYTES = 4 * VF_LANES };

/* weight() of each byte: comparisons give -1. */
VF_INLINE vb weights(vb w)
{
    signed_bytes bytes = (signed_bytes)w, least = (signed_bytes)vb_set1(0x80);
    return (vb)(bytes - (signed_bytes)(bytes == least));
}

VF_INLINE uint32_t across(vi v)
{
    int32_t lane[VF_LANES];
    uint32_t sum = 0;
    vi_store(lane, v);
    for (int i = 0; i < VF_LANES; i++)
        sum += (uint32_t)lane[i];
    return sum;
}

static void dots(int32_t *sum, const int8_t *x, const int8_t *w, size_t stride, size_t rows, size_t values,
                 const int32_t *bias)
{
    size_t whole = values / BYTES * BYTES;
    vb flip = vb_set1(OFFSET);
    for (size_t r = 0; r < rows; r++, w += stride) {
        vi dot = vi_set1(0), more = vi_set1(0);
        for (size_t k = 0; k < whole; k += BYTES) {
            vb weight_bytes = weights(vb_load((const uint8_t *)w + k));
            dot = vi_dot_wide(dot, vb_xor(vb_load((const uint8_t *)x + k), flip), weight_bytes);
            if (OFFSET != 0)
                more = vi_dot_wide(more, flip, weight_bytes);
        }
        uint32_t all = (uint32_t)bias[r] + across(vi_sub(dot, more));
        for (size_t k = whole; k < values; k++)
            all += (uint32_t)(x[k] * weight(w[k]));
        sum[r] = (int32_t)all;
    }
}

#else

static void product(int32_t *restrict sum, const uint8_t *restrict x, size_t stride, size_t rows,
                    size_t quads, const int8_t *restrict panel, const int32_t *restrict start)
{
    for (size_t r = 0; r < rows; r++, x += stride, sum += WIDTH) {
        uint32_t s[WIDTH];
        for (size_t u = 0; u < WIDTH; u++)
            s[u] = (uint32_t)start[u];
        for (size_t q = 0; q < quads; q++)
            for (size_t u = 0; u < WIDTH; u++)
                for (size_t k = 0; k < 4; k++)
                    s[u] += (uint32_t)((int8_t)x[4 * q + k] * panel[(q * WIDTH + u) * 4 + k]);
        for (size_t u = 0; u < WIDTH; u++)
            sum[u] = (int32_t)s[u];
    }
}

static void dots(int32_t *restrict sum, const int8_t *restrict x, const int8_t *restrict w, size_t stride,
                 size_t rows, size_t values, const int32_t *restrict bias)
{
    for (size_t r = 0; r < rows; r++, w += stride) {
        uint32_t all = (uint32_t)bias[r];
        for (size_t k = 0; k < values; k++)
            all += (uint32_t)(x[k] * weight(w[k]));
        sum[r] = (int32_t)all;
    }
}

#endif

const mica_int8_kernels VF_VARIANT_SYMBOL(mica_int8_kernels) = {.width = WIDTH,
                                                                .offset = OFFSET,
                                                                .finish = finish,
                                                                .finish_rows = finish_rows,
                                                                .quantize = quantize,
                                                                .error = error,
                                                                .dequantize = dequantize,
                                                                .add = add,
                                                                .affine_quantize = affine_quantize,
                                                                .affine_dequantize = affine_dequantize,
                                                                .affine_add = affine_add,
                                                                .pack = pack,
                                                                .product = product,
                                                                .dots = dots,
                                                                .lanes = PIXELS,
                                                                .block = BLOCK,
                                                                .tile = tile,
#if !defined(MICA_SMALL)
                                                                .panel = LAST_PANEL,
                                                                .deep = DEEP,
                                                                .last = last,
                                                                .depthwise = depthwise,
                                                                .deep_at = deep_at,
                                                                .largest_of = largest_taps,
                                                                .pairs_rows = PAIRS_ROWS,
                                                                .pairs = pairs_of_rows,
                                                                .less_zero = less_zero,
                                                                .pair_rows = pair_rows,
                                                                .finish_panel = finish_panel,
                                                                TILED_KERNELS
#endif
                                                                    .quads_of_planes = quads_of_planes,
                                                                .quads_of_row = quads_of_row,
                                                                .spread = spread,
                                                                .offset_row = offset_row,
                                                                .tap_i32 = tap_i32,
                                                                .tap = tap,
                                                                .largest = largest};
