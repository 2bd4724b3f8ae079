/* Convolution kernels; compiled once per instruction set. */
#include "kernel/conv_rows.h"
#include "kernel/kernels.h"

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
            if (row != NULL && p + in->rows.taps * in->columns.taps < k)
                __builtin_prefetch(row + in->channel_stride + runs[i].column * in->column_stride);
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

/* ---- Patches of rows of few pixels: a pixel at a time, and turned in the first cache ---- */

/* Taps of a pixel at a time. */
#define SHORT_TAPS 96

/* Which taps of a pixel lie inside the image. */
typedef struct pixel {
    const float *image;    /* channel 0 */
    ptrdiff_t row, column; /* that tap (0, 0) meets */
    size_t t, t_end, u, u_end;
} pixel;

static size_t taps_inside(const mica_conv_axis *axis, ptrdiff_t at, size_t *end)
{
    size_t low = 0, high = axis->taps;
    while (low < high && !inside(axis, at + (ptrdiff_t)low * axis->step, 1))
        low++;
    while (low < high && !inside(axis, at + (ptrdiff_t)(high - 1) * axis->step, 1))
        high--;
    *end = high;
    return low;
}

static void find_pixels(pixel *pixels, const mica_conv_patches *in, size_t first, size_t count)
{
    first += in->first_pixel;
    size_t j = first % in->columns.count, row = first / in->columns.count, i = row % in->rows.count;
    const float *image = in->data + (ptrdiff_t)(row / in->rows.count) * in->image_stride;
    for (size_t n = 0; n < count; n++) {
        pixel *p = &pixels[n];
        p->image = image;
        p->row = (ptrdiff_t)i * in->rows.scale + in->rows.base;
        p->column = (ptrdiff_t)j * in->columns.scale + in->columns.base;
        p->t = taps_inside(&in->rows, p->row, &p->t_end);
        p->u = taps_inside(&in->columns, p->column, &p->u_end);
        if (++j < in->columns.count)
            continue;
        j = 0;
        if (++i < in->rows.count)
            continue;
        i = 0;
        image += in->image_stride;
    }
}

static const float *tap_at(const mica_conv_patches *in, const pixel *p, size_t channel, size_t t, size_t u)
{
    return p->image + (ptrdiff_t)channel * in->channel_stride +
           (p->row + (ptrdiff_t)t * in->rows.step) * in->row_stride +
           (p->column + (ptrdiff_t)u * in->columns.step) * in->column_stride;
}

/* Taps u .. u + n - 1 of one row of one channel. */
static void fill_taps(float *dst, const mica_conv_patches *in, const pixel *p, size_t channel, size_t t,
                      size_t u, size_t n)
{
    size_t low = u > p->u ? u : p->u, high = least(u + n, p->u_end);
    if (t < p->t || t >= p->t_end || low >= high) {
        zero(dst, n);
        return;
    }
    zero(dst, low - u);
    copy(dst + (low - u), tap_at(in, p, channel, t, low), in->columns.step * in->column_stride, high - low);
    zero(dst + (high - u), u + n - high);
}

/* n taps of a row, of some channels: n is a constant where this is inlined. */
VF_INLINE void copy_taps(float *dst, size_t dst_step, const float *src, ptrdiff_t src_step, ptrdiff_t step,
                         size_t channels, size_t n)
{
#if !defined(MICA_SMALL)
    if (step == 1) {
        for (size_t c = 0; c < channels; c++, dst += dst_step, src += src_step)
            __builtin_memcpy(dst, src, n * sizeof *dst);
        return;
    }
#endif
    for (size_t c = 0; c < channels; c++, dst += dst_step, src += src_step)
        for (size_t u = 0; u < n; u++)
            dst[u] = src[(ptrdiff_t)u * step];
}

/* All taps of some channels. */
static void fill_channels(float *dst, const mica_conv_patches *in, const pixel *p, size_t channel,
                          size_t channels)
{
    size_t across = in->columns.taps, taps = in->rows.taps * across, n = p->u_end - p->u;
    if ((p->t_end - p->t) * n < taps)
        zero(dst, channels * taps);
    ptrdiff_t step = in->columns.step * in->column_stride;
    for (size_t t = p->t; t < p->t_end && n > 0; t++) {
        float *to = dst + t * across + p->u;
        const float *from = tap_at(in, p, channel, t, p->u);
        switch (n) {
        case 1:
            copy_taps(to, taps, from, in->channel_stride, step, channels, 1);
            break;
        case 2:
            copy_taps(to, taps, from, in->channel_stride, step, channels, 2);
            break;
        case 3:
            copy_taps(to, taps, from, in->channel_stride, step, channels, 3);
            break;
        default: /* of any number, one by one */
            for (size_t c = 0; c < channels; c++, to += taps, from += in->channel_stride)
                for (size_t u = 0; u < n; u++)
                    to[u] = from[(ptrdiff_t)u * step];
        }
    }
}

/* Taps k0 .. k0 + k - 1 of a pixel. */
static void fill_pixel(float *dst, const mica_conv_patches *in, const pixel *p, size_t k0, size_t k)
{
    size_t across = in->columns.taps, taps = in->rows.taps * across;
    for (size_t done = 0, n; done < k && taps > 0; done += n) { /* without taps, k is 0 */
        size_t at = k0 + done, channel = at / taps, rest = at % taps;
        if (rest == 0 && k - done >= taps) {
            size_t channels = (k - done) / taps;
            n = channels * taps;
            fill_channels(dst + done, in, p, channel, channels);
        } else {
            n = least(across - rest % across, k - done);
            fill_taps(dst + done, in, p, channel, rest / across, rest % across, n);
        }
    }
}

static void pack_short(const mica_conv_patches *in, float *panel, size_t width, size_t first, size_t count,
                       size_t k0, size_t k)
{
    pixel pixels[MICA_CONV_PIXELS];
    float stage[MICA_CONV_PIXELS * SHORT_TAPS];
    find_pixels(pixels, in, first, count);
    size_t taps = in->rows.taps * in->columns.taps, whole = taps * VF_LANES;
    size_t most = whole > 0 && whole <= SHORT_TAPS ? SHORT_TAPS / whole * whole
                                                   : SHORT_TAPS; /* whole vectors, and channels */
    k0 += in->first_tap;
    for (size_t done = 0, n; done < k; done += n) {
        n = least(k - done, most);
        for (size_t i = 0; i < count; i++)
            fill_pixel(stage + i * SHORT_TAPS, in, &pixels[i], k0 + done, n);
        in->gemm->pack(panel + done * width, width, stage, SHORT_TAPS, 1, count, n);
    }
}

static void pack(const void *source, float *panel, size_t width, size_t first, size_t count, size_t k0,
                 size_t k)
{
    const mica_conv_patches *in = source;
    if (mica_conv_short_rows(&in->columns)) {
        pack_short(in, panel, width, first, count, k0, k);
        return;
    }
    fill(in, panel, width, first, count, k0, k);
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
    .sum = sum,
    .add = add,
};

MICA_KERNEL_SYMBOL(conv, fill, fill)
MICA_KERNEL_SYMBOL(conv, pack, pack)
MICA_KERNEL_SYMBOL(conv, pack_transposed, pack_transposed)
MICA_KERNEL_SYMBOL(conv, sum, sum)
MICA_KERNEL_SYMBOL(conv, add, add)
