/* Convolution kernels; compiled once per instruction set. */
#include "kernel/conv.h"
#include "kernel/vec.h"

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* ---- Rows of pixels ---- */

static void copy_strided(float *dst, const float *src, ptrdiff_t stride, size_t n)
{
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_store(dst + i, vf_gather(src + (ptrdiff_t)i * stride, stride));
    for (; i < n; i++)
        dst[i] = src[(ptrdiff_t)i * stride];
}

VF_INLINE void copy(float *dst, const float *src, ptrdiff_t stride, size_t n)
{
    if (stride != 1) {
        copy_strided(dst, src, stride, n);
        return;
    }
    if (n < VF_LANES) {
        vf_store_tail(dst, vf_load_tail(src, n), n);
        return;
    }
    /* The last vector ends with the run and may lie over the one before it. */
    for (size_t i = 0; i + VF_LANES < n; i += VF_LANES)
        vf_store(dst + i, vf_load(src + i));
    vf_store(dst + n - VF_LANES, vf_load(src + n - VF_LANES));
}

static void zero(float *dst, size_t n)
{
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_store(dst + i, vf_zero());
    for (; i < n; i++)
        dst[i] = 0.0f;
}

/* Whether all of `count` positions from `at` on, `scale` apart, lie inside the image. */
VF_INLINE bool inside(const mica_conv_axis *axis, ptrdiff_t at, size_t count)
{
    return at >= 0 && at + ((ptrdiff_t)count - 1) * axis->scale < (ptrdiff_t)axis->image;
}

/* The part of a run that lies inside the image: positions low .. high - 1 of it. */
static size_t clip(const mica_conv_axis *axis, ptrdiff_t at, size_t count, size_t *high)
{
    ptrdiff_t size = (ptrdiff_t)axis->image, scale = axis->scale;
    size_t low = at >= 0 ? 0 : (size_t)((-at + scale - 1) / scale);
    *high = at >= size ? 0 : least(count, (size_t)((size - 1 - at) / scale) + 1);
    return least(low, *high);
}

/* A run that reaches over a border: zeros there. */
static void copy_clipped(float *dst, const float *row, ptrdiff_t stride, const mica_conv_axis *axis,
                         ptrdiff_t at, size_t count)
{
    size_t high, low = clip(axis, at, count, &high);
    zero(dst, count);
    if (low < high)
        copy(dst + low, row + (at + (ptrdiff_t)low * axis->scale) * stride, axis->scale * stride, high - low);
}

/* ---- Patches ---- */

/* Pixels of a panel that lie in one row of the output. */
typedef struct run {
    size_t at, count;      /* columns of the panel */
    const float *image;    /* channel 0 */
    ptrdiff_t row, column; /* that tap (0, 0) meets at the first of them */
} run;

static size_t find_runs(run *runs, const mica_conv_patches *in, size_t first, size_t count)
{
    first += in->first_pixel;
    size_t j = first % in->columns.count, row = first / in->columns.count, n = 0;
    size_t i = row % in->rows.count;
    const float *image = in->data + (ptrdiff_t)(row / in->rows.count) * in->image_stride;
    for (size_t at = 0; at < count; n++) {
        runs[n] = (run){.at = at,
                        .count = least(count - at, in->columns.count - j),
                        .image = image,
                        .row = (ptrdiff_t)i * in->rows.scale + in->rows.base,
                        .column = (ptrdiff_t)j * in->columns.scale + in->columns.base};
        at += runs[n].count;
        j = 0;
        if (++i == in->rows.count) {
            i = 0;
            image += in->image_stride;
        }
    }
    return n;
}

/* `taps` taps of one kernel row, for one run: what every packed element goes through. `row` is NULL above and
 * below the image. */
VF_INLINE void fill_run(const mica_conv_patches *in, float *dst, size_t stride, const run *r,
                        const float *row, size_t u, size_t taps)
{
    const mica_conv_axis *axis = &in->columns;
    ptrdiff_t at = r->column + (ptrdiff_t)u * axis->step, element = in->column_stride * axis->scale;
    for (size_t x = 0; x < taps; x++, at += axis->step, dst += stride) {
        if (row == NULL)
            zero(dst, r->count);
        else if (inside(axis, at, r->count))
            copy(dst, row + at * in->column_stride, element, r->count);
        else
            copy_clipped(dst, row, in->column_stride, axis, at, r->count);
    }
}

static void fill(const mica_conv_patches *in, float *dst, size_t stride, size_t first, size_t count,
                 size_t k0, size_t k)
{
    run runs[MICA_CONV_PIXELS];
    size_t n = find_runs(runs, in, first, count);
    k0 += in->first_tap;
    size_t u = k0 % in->columns.taps, t = k0 / in->columns.taps % in->rows.taps;
    ptrdiff_t channel = (ptrdiff_t)(k0 / in->columns.taps / in->rows.taps) * in->channel_stride;
    for (size_t p = 0; p < k;) {
        size_t taps = least(in->columns.taps - u, k - p);
        for (size_t i = 0; i < n; i++) {
            ptrdiff_t r = runs[i].row + (ptrdiff_t)t * in->rows.step;
            const float *row = r >= 0 && r < (ptrdiff_t)in->rows.image
                                   ? runs[i].image + channel + r * in->row_stride
                                   : NULL;
            fill_run(in, dst + p * stride + runs[i].at, stride, &runs[i], row, u, taps);
        }
        p += taps;
        u = 0;
        if (++t == in->rows.taps) {
            t = 0;
            channel += in->channel_stride;
        }
    }
}

static void pack(const void *source, float *panel, size_t width, size_t first, size_t count, size_t k0,
                 size_t k)
{
    fill(source, panel, width, first, count, k0, k);
    if (count < width)
        for (size_t p = 0; p < k; p++)
            zero(panel + p * width + count, width - count);
}

static void pack_transposed(const void *source, float *panel, size_t width, size_t first, size_t count,
                            size_t k0, size_t k)
{
    const mica_conv_patches *in = source;
    float stage[MICA_CONV_PIXELS * MICA_CONV_PIXELS];
    for (size_t done = 0; done < k; done += MICA_CONV_PIXELS) {
        size_t pixels = least(k - done, MICA_CONV_PIXELS);
        fill(in, stage, MICA_CONV_PIXELS, k0 + done, pixels, first, count);
        in->gemm->pack(panel + done * width, width, stage, MICA_CONV_PIXELS, 1, count, pixels);
    }
}

/* ---- Direct sums ---- */

/* Pixels and taps that are worked on at a time: what is staged stays in the first cache. */
#define PIXELS 128
#define TAPS   16

/* Pixels j .. j + n - 1 of an output row, as tap u of an image row meets them: where they lie, or staged.
 * NULL if they are all outside. */
VF_INLINE const float *tap_pixels(const mica_conv_patches *in, const float *row, size_t j, size_t n, size_t u,
                                  float *stage)
{
    const mica_conv_axis *axis = &in->columns;
    ptrdiff_t at = (ptrdiff_t)j * axis->scale + axis->base + (ptrdiff_t)u * axis->step;
    ptrdiff_t element = in->column_stride * axis->scale;
    if (inside(axis, at, n)) {
        if (element == 1)
            return row + at;
        copy_strided(stage, row + at * in->column_stride, element, n);
        return stage;
    }
    size_t high, low = clip(axis, at, n, &high);
    if (low >= high)
        return NULL;
    copy_clipped(stage, row, in->column_stride, axis, at, n);
    return stage;
}

/* The image row that tap row t meets at output row i; NULL outside. */
VF_INLINE const float *tap_row(const mica_conv_patches *in, const float *plane, size_t i, size_t t)
{
    ptrdiff_t r = (ptrdiff_t)i * in->rows.scale + in->rows.base + (ptrdiff_t)t * in->rows.step;
    return r >= 0 && r < (ptrdiff_t)in->rows.image ? plane + r * in->row_stride : NULL;
}

/* y[j] += sum over taps of weight * pixel[j]. */
static void add_taps(float *y, const float *const *pixel, const float *weight, size_t taps, size_t n)
{
    size_t j = 0;
    for (; j + 4 * VF_LANES <= n; j += 4 * VF_LANES) {
        vf s0 = vf_load(y + j), s1 = vf_load(y + j + VF_LANES);
        vf s2 = vf_load(y + j + 2 * VF_LANES), s3 = vf_load(y + j + 3 * VF_LANES);
        for (size_t p = 0; p < taps; p++) {
            const float *x = pixel[p] + j;
            vf w = vf_set1(weight[p]);
            s0 = vf_fma(w, vf_load(x), s0);
            s1 = vf_fma(w, vf_load(x + VF_LANES), s1);
            s2 = vf_fma(w, vf_load(x + 2 * VF_LANES), s2);
            s3 = vf_fma(w, vf_load(x + 3 * VF_LANES), s3);
        }
        vf_store(y + j, s0);
        vf_store(y + j + VF_LANES, s1);
        vf_store(y + j + 2 * VF_LANES, s2);
        vf_store(y + j + 3 * VF_LANES, s3);
    }
    for (; j < n; j += VF_LANES) {
        size_t some = least(n - j, VF_LANES);
        vf s = vf_load_tail(y + j, some);
        for (size_t p = 0; p < taps; p++)
            s = vf_fma(vf_set1(weight[p]), vf_load_tail(pixel[p] + j, some), s);
        vf_store_tail(y + j, s, some);
    }
}

/* y[0 .. n - 1], pixels j on of output row i, += all taps of all channels. */
static void direct_run(float *y, const mica_conv_patches *in, const mica_conv_taps *taps, size_t i, size_t j,
                       size_t n)
{
    float stage[TAPS][PIXELS], weight[TAPS];
    const float *pixel[TAPS];
    size_t filled = 0;
    for (size_t c = 0; c < taps->channels; c++) {
        const float *plane = in->data + (ptrdiff_t)c * in->channel_stride;
        for (size_t t = 0; t < in->rows.taps; t++) {
            const float *row = tap_row(in, plane, i, t);
            const float *w = taps->data + (ptrdiff_t)c * taps->channel_stride +
                             (ptrdiff_t)t * taps->row_stride;
            for (size_t u = 0; u < in->columns.taps && row != NULL; u++) {
                pixel[filled] = tap_pixels(in, row, j, n, u, stage[filled]);
                if (pixel[filled] == NULL)
                    continue;
                weight[filled] = w[(ptrdiff_t)u * taps->column_stride];
                if (++filled == TAPS) {
                    add_taps(y, pixel, weight, TAPS, n);
                    filled = 0;
                }
            }
        }
    }
    add_taps(y, pixel, weight, filled, n);
}

static void direct(const mica_conv_planes *out, const mica_conv_patches *in, const mica_conv_taps *taps,
                   size_t first, size_t count, float bias, bool accumulate)
{
    float sums[PIXELS];
    for (size_t i = first; i < first + count; i++) {
        for (size_t j = 0; j < in->columns.count; j += PIXELS) {
            size_t n = least(in->columns.count - j, PIXELS);
            float *place = out->data + (ptrdiff_t)i * out->row_stride + (ptrdiff_t)j * out->column_stride;
            float *y = out->column_stride == 1 ? place : sums;
            for (size_t x = 0; x < n; x++)
                y[x] = accumulate ? bias + place[(ptrdiff_t)x * out->column_stride] : bias;
            direct_run(y, in, taps, i, j, n);
            for (size_t x = 0; x < n && y == sums; x++)
                place[(ptrdiff_t)x * out->column_stride] = sums[x];
        }
    }
}

/* sum += dy[j] * pixel[j], lane by lane. */
VF_INLINE vf dot(vf sum, const float *dy, const float *pixel, size_t n)
{
    vf even = sum, odd = vf_zero();
    size_t j = 0;
    for (; j + 2 * VF_LANES <= n; j += 2 * VF_LANES) {
        even = vf_fma(vf_load(dy + j), vf_load(pixel + j), even);
        odd = vf_fma(vf_load(dy + j + VF_LANES), vf_load(pixel + j + VF_LANES), odd);
    }
    for (; j < n; j += VF_LANES) {
        size_t some = least(n - j, VF_LANES);
        even = vf_fma(vf_load_tail(dy + j, some), vf_load_tail(pixel + j, some), even);
    }
    return vf_add(even, odd);
}

/* Taps k0 .. k0 + k - 1 of one row of dy. */
static void dot_row(vf *sum, const mica_conv_patches *in, const float *plane, const float *dy,
                    ptrdiff_t dy_stride, size_t i, size_t k0, size_t k)
{
    float stage[PIXELS], dy_stage[PIXELS];
    for (size_t j = 0; j < in->columns.count; j += PIXELS) {
        size_t n = least(in->columns.count - j, PIXELS);
        const float *y = dy + (ptrdiff_t)j * dy_stride;
        if (dy_stride != 1) {
            copy_strided(dy_stage, y, dy_stride, n);
            y = dy_stage;
        }
        for (size_t p = 0; p < k; p++) {
            const float *row = tap_row(in, plane, i, (k0 + p) / in->columns.taps);
            const float *pixel = row == NULL ? NULL
                                             : tap_pixels(in, row, j, n, (k0 + p) % in->columns.taps, stage);
            if (pixel != NULL)
                sum[p] = dot(sum[p], y, pixel, n);
        }
    }
}

static void direct_taps(const mica_conv_taps *taps, const mica_conv_patches *in, const mica_conv_planes *dy,
                        size_t images, bool accumulate)
{
    size_t all = in->rows.taps * in->columns.taps;
    for (size_t k0 = 0; k0 < all; k0 += TAPS) {
        size_t k = least(all - k0, TAPS);
        vf sum[TAPS];
        for (size_t p = 0; p < TAPS; p++)
            sum[p] = vf_zero();
        for (size_t image = 0; image < images; image++)
            for (size_t i = 0; i < in->rows.count; i++)
                dot_row(sum, in, in->data + (ptrdiff_t)image * in->image_stride,
                        dy->data + (ptrdiff_t)image * dy->image_stride + (ptrdiff_t)i * dy->row_stride,
                        dy->column_stride, i, k0, k);
        for (size_t p = 0; p < k; p++) {
            float *place = taps->data + (ptrdiff_t)((k0 + p) / in->columns.taps) * taps->row_stride +
                           (ptrdiff_t)((k0 + p) % in->columns.taps) * taps->column_stride;
            *place = accumulate ? *place + vf_sum(sum[p]) : vf_sum(sum[p]);
        }
    }
}

/* ---- Sums ---- */

/* In single precision over short blocks, in double over these. */
static double sum_adjacent(const float *x, size_t n)
{
    double total = 0.0;
    for (size_t begin = 0; begin < n; begin += 1024) {
        size_t end = least(n, begin + 1024), i = begin;
        vf even = vf_zero(), odd = vf_zero();
        for (; i + 2 * VF_LANES <= end; i += 2 * VF_LANES) {
            even = vf_add(even, vf_load(x + i));
            odd = vf_add(odd, vf_load(x + i + VF_LANES));
        }
        for (; i < end; i += VF_LANES)
            even = vf_add(even, vf_load_tail(x + i, least(end - i, VF_LANES)));
        total += (double)vf_sum(vf_add(even, odd));
    }
    return total;
}

static double sum(const float *x, ptrdiff_t stride, size_t n)
{
    if (stride == 1)
        return sum_adjacent(x, n);
    double total = 0.0;
    for (size_t i = 0; i < n; i++)
        total += (double)x[(ptrdiff_t)i * stride];
    return total;
}

static void add(float *dst, ptrdiff_t dst_stride, const float *src, ptrdiff_t src_stride, size_t n)
{
    size_t i = 0;
    if (dst_stride == 1 && src_stride == 1)
        for (; i + VF_LANES <= n; i += VF_LANES)
            vf_store(dst + i, vf_add(vf_load(dst + i), vf_load(src + i)));
    for (; i < n; i++)
        dst[(ptrdiff_t)i * dst_stride] += src[(ptrdiff_t)i * src_stride];
}

const mica_conv_kernels VF_SYMBOL(mica_conv_kernels) = {
    .fill = fill,
    .pack = pack,
    .pack_transposed = pack_transposed,
    .direct = direct,
    .direct_taps = direct_taps,
    .sum = sum,
    .add = add,
};
