/* Depthwise convolutions of narrow planes; compiled once per instruction set.
 *
 * As many channels as there are lanes are transposed into a window, in which a vector is one pixel of each; sums over
 * taps are then plain, with no lane in vain, and no sum across lanes where taps are what is wanted. */
#include "kernel/depthwise.h"

#include "kernel/kernels.h"
#include "kernel/vec.h"

/* Pixels of a row, and taps, whose sums stay in registers. */
#define PIXELS 8
#define DOTS   9
/* Elements at the end that are brought into lanes one by one rather than by a block of them: 7 x 7 has one. */
#define FEW 1

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* What a call works with: vectors, each a multiple of VF_LANES floats behind the other. */
typedef struct stage {
    float *window, *band, *taps;
    uint16_t place[MICA_LANES_WINDOW]; /* of a pixel read, counted from the first row within the image */
} stage;

#define STAGE_FLOATS ((MICA_LANES_WINDOW + MICA_LANES_BAND + MICA_LANES_TAPS + 1) * VF_LANES)

static void open_stage(stage *s, float *memory, const mica_lanes_plan *p)
{
    uintptr_t past = (uintptr_t)memory % (VF_LANES * sizeof(float));
    s->window = memory + (VF_LANES - past / sizeof(float));
    s->band = s->window + MICA_LANES_WINDOW * VF_LANES;
    s->taps = s->band + MICA_LANES_BAND * VF_LANES;
    size_t rows = (p->band - 1) * p->scale[0] + p->window_reach;
    for (size_t i = 0; i < rows * p->window_width; i++)
        vf_store(s->window + i * VF_LANES, vf_zero());
    size_t place = (size_t)-p->low[1], pixel = 0;
    for (size_t r = 0; r < least(rows, p->height); r++, place += p->window_width)
        for (size_t c = 0; c < p->width; c++)
            s->place[pixel++] = (uint16_t)(place + c);
}

/* ---- Channels into lanes and back ---- */

/* VF_LANES elements, or fewer, of each channel become one vector each. */
VF_INLINE void load_block(vf *v, const float *src, ptrdiff_t stride, size_t channels, size_t n)
{
    if (channels == VF_LANES && n == VF_LANES) {
#pragma GCC unroll 16
        for (ptrdiff_t c = 0; c < VF_LANES; c++)
            v[c] = vf_load(src + c * stride);
    } else {
        for (size_t c = 0; c < VF_LANES; c++)
            v[c] = c < channels ? vf_load_tail(src + (ptrdiff_t)c * stride, n) : vf_zero();
    }
    vf_transpose(v);
}

/* n elements of each channel, `stride` apart, to dst, or to places of it. */
static void load_lanes(float *dst, const uint16_t *place, const float *src, ptrdiff_t stride, size_t channels,
                       size_t n)
{
    for (size_t at = 0; at < n; at += VF_LANES) {
        vf v[VF_LANES];
        if (n - at <= FEW && channels == VF_LANES) {
            for (size_t i = at; i < n; i++)
                vf_store(dst + (place != NULL ? place[i] : i) * VF_LANES, vf_gather(src + i, stride));
            return;
        }
        if (at + VF_LANES > n && n >= VF_LANES)
            at = n - VF_LANES; /* the last block lies over the one before it */
        size_t some = least(n - at, VF_LANES);
        load_block(v, src + at, stride, channels, some);
        if (some == VF_LANES && place != NULL) {
#pragma GCC unroll 16
            for (size_t i = 0; i < VF_LANES; i++)
                vf_store(dst + place[at + i] * (size_t)VF_LANES, v[i]);
        } else {
            for (size_t i = 0; i < some; i++)
                vf_store(dst + (place != NULL ? place[at + i] : at + i) * VF_LANES, v[i]);
        }
    }
}

VF_INLINE void store_block(float *dst, ptrdiff_t stride, const float *src, size_t channels, size_t n,
                           bool add)
{
    vf v[VF_LANES];
#pragma GCC unroll 16
    for (size_t i = 0; i < VF_LANES; i++)
        v[i] = vf_load(src + i * VF_LANES);
    vf_transpose(v);
    if (channels == VF_LANES && n == VF_LANES && !add) {
#pragma GCC unroll 16
        for (ptrdiff_t c = 0; c < VF_LANES; c++)
            vf_store(dst + c * stride, v[c]);
        return;
    }
    for (size_t c = 0; c < channels; c++, dst += stride)
        vf_store_tail(dst, add ? vf_add(vf_load_tail(dst, n), v[c]) : v[c], n);
}

/* n vectors back to as many elements of each channel. What lies behind them in src is read, and counts for nothing. */
static void store_lanes(float *dst, ptrdiff_t stride, const float *src, size_t channels, size_t n, bool add)
{
    for (size_t at = 0; at < n; at += VF_LANES) {
        if (n - at <= FEW && channels == VF_LANES && !add) {
            for (size_t i = at; i < n; i++)
                vf_scatter(dst + i, stride, vf_load(src + i * VF_LANES));
            return;
        }
        if (at + VF_LANES > n && n >= VF_LANES && !add)
            at = n - VF_LANES;
        store_block(dst + at, stride, src + at * VF_LANES, channels, least(n - at, VF_LANES), add);
    }
}

/* The taps of each channel as vectors. */
static void load_taps(float *dst, const mica_lanes_plan *p, const float *taps, size_t channels)
{
    bool run = true;
    for (size_t k = 0; k < p->taps; k++)
        run = run && p->tap_offset[k] == (ptrdiff_t)k;
    if (run) {
        load_lanes(dst, NULL, taps, p->tap_channel, channels, p->taps);
        return;
    }
    for (size_t k = 0; k < p->taps; k++)
        for (size_t c = 0; c < VF_LANES; c++)
            dst[k * VF_LANES + c] = c < channels ? taps[(ptrdiff_t)c * p->tap_channel + p->tap_offset[k]]
                                                 : 0.0f;
}

/* ---- Bands ---- */

/* A band: positions in rows first .. first + count - 1 of the phases. */
typedef struct band {
    size_t image, first, count;
} band;

static band band_of(const mica_lanes_plan *p, size_t unit)
{
    size_t positions = (p->out_height + p->spread[0] - 1) / p->spread[0], first = unit % p->bands * p->band;
    return (band){unit / p->bands, first, least(p->band, positions - first)};
}

/* What is written of it: so many pixels, from this row on. */
static size_t band_pixels(const mica_lanes_plan *p, const band *b, size_t *row)
{
    *row = b->first * p->spread[0];
    return (least((b->first + b->count) * p->spread[0], p->out_height) - *row) * p->out_width;
}

/* The window of a band. Rows that lie outside of the image are the same for all, and zeros from the start, if there is
 * one band. */
static void load_window(stage *s, const mica_lanes_plan *p, const band *b, const float *in, size_t channels)
{
    ptrdiff_t top = (ptrdiff_t)(b->first * p->scale[0]) + p->low[0], height = (ptrdiff_t)p->height;
    ptrdiff_t rows = (ptrdiff_t)((b->count - 1) * p->scale[0] + p->window_reach);
    ptrdiff_t begin = top < 0 ? -top : 0, end = height - top < rows ? height - top : rows;
    size_t row = p->window_width * VF_LANES;
    if (begin > rows)
        begin = rows;
    if (end < begin)
        end = begin;
    if (p->bands > 1) {
        for (size_t i = 0; i < (size_t)begin * p->window_width; i++)
            vf_store(s->window + i * VF_LANES, vf_zero());
        for (size_t i = (size_t)end * p->window_width; i < (size_t)rows * p->window_width; i++)
            vf_store(s->window + i * VF_LANES, vf_zero());
    }
    if (end > begin)
        load_lanes(s->window + (size_t)begin * row, s->place,
                   in + (ptrdiff_t)b->image * p->in_image + (top + begin) * (ptrdiff_t)p->width,
                   p->in_channel, channels, (size_t)(end - begin) * p->width);
}

/* ---- Images ---- */

/* A run of results: n of them, y_step apart, of what lies x_step apart. */
typedef struct run {
    float *y;
    const float *x, *taps;
    const size_t *offset;
    size_t count, y_step, x_step;
    vf start;
} run;

VF_INLINE void sum_some(const run *r, size_t x_step, size_t n)
{
    vf s[PIXELS];
#pragma GCC unroll 8
    for (size_t i = 0; i < n; i++)
        s[i] = r->start;
    for (size_t k = 0; k < r->count; k++) {
        const float *x = r->x + r->offset[k] * VF_LANES;
        vf tap = vf_keep(vf_load(r->taps + k * VF_LANES));
#pragma GCC unroll 8
        for (size_t i = 0; i < n; i++)
            s[i] = vf_fma(tap, vf_load(x + i * x_step), s[i]);
    }
#pragma GCC unroll 8
    for (size_t i = 0; i < n; i++)
        vf_store(r->y + i * r->y_step, s[i]);
}

VF_INLINE void sum_count(const run *r, size_t x_step, size_t n)
{
    switch (n) {
    case 1:
        sum_some(r, x_step, 1);
        break;
    case 2:
        sum_some(r, x_step, 2);
        break;
    case 3:
        sum_some(r, x_step, 3);
        break;
    case 4:
        sum_some(r, x_step, 4);
        break;
    case 5:
        sum_some(r, x_step, 5);
        break;
    case 6:
        sum_some(r, x_step, 6);
        break;
    case 7:
        sum_some(r, x_step, 7);
        break;
    default:
        sum_some(r, x_step, 8);
        break;
    }
}

/* A row of a phase, in runs of about the same length. */
static void sum_row(run r, size_t columns)
{
    size_t some = (columns + PIXELS - 1) / PIXELS;
    some = (columns + some - 1) / some;
    for (size_t j = 0; j < columns; j += some) {
        size_t n = least(some, columns - j);
        if (r.x_step == VF_LANES)
            sum_count(&r, VF_LANES, n);
        else if (r.x_step == 2 * VF_LANES)
            sum_count(&r, 2 * VF_LANES, n);
        else
            sum_count(&r, r.x_step, n);
        r.x += n * r.x_step;
        r.y += n * r.y_step;
    }
}

static void sum_band(const stage *s, const mica_lanes_plan *p, const band *b, vf bias)
{
    for (size_t f = 0; f < p->phases; f++) {
        const mica_lanes_phase *phase = &p->phase[f];
        run r = {.taps = s->taps + phase->first_tap * VF_LANES,
                 .offset = p->offset + phase->first_tap,
                 .count = phase->taps,
                 .y_step = p->spread[1] * VF_LANES,
                 .x_step = p->scale[1] * VF_LANES,
                 .start = bias};
        size_t rows = b->first < phase->rows ? least(b->count, phase->rows - b->first) : 0;
        for (size_t i = 0; i < rows && phase->columns > 0; i++) {
            r.x = s->window + i * p->scale[0] * p->window_width * VF_LANES;
            r.y = s->band + ((i * p->spread[0] + phase->row) * p->out_width + phase->column) * VF_LANES;
            sum_row(r, phase->columns);
        }
    }
}

/* The activation, before the sums leave the cache; of sums that are added to others it comes after that. */
static void finish_band(const mica_lanes_plan *p, float *sums, size_t n)
{
    if (p->finish != NULL && !p->accumulate)
        p->finish(sums, (const float *const[]){sums}, n * VF_LANES, &p->slope);
}

static void finish_sum(const mica_lanes_plan *p, float *out, size_t channels, size_t n)
{
    if (p->finish != NULL && p->accumulate)
        for (size_t c = 0; c < channels; c++, out += p->out_channel)
            p->finish(out, (const float *const[]){out}, n, &p->slope);
}

static void image(const mica_lanes_plan *p, float *out, const float *in, const float *taps, const float *bias,
                  size_t channels, size_t begin, size_t end)
{
    float memory[STAGE_FLOATS];
    stage s;
    open_stage(&s, memory, p);
    for (size_t first = 0; first < channels; first += VF_LANES) {
        ptrdiff_t channel = (ptrdiff_t)first;
        size_t some = least(channels - first, VF_LANES);
        load_taps(s.taps, p, taps + channel * p->tap_channel, some);
        vf start = bias != NULL ? vf_load_tail(bias + first, some) : vf_zero();
        for (size_t unit = begin; unit < end; unit++) {
            band b = band_of(p, unit);
            size_t row, pixels = band_pixels(p, &b, &row);
            float *to = out + channel * p->out_channel + (ptrdiff_t)b.image * p->out_image +
                        (ptrdiff_t)(row * p->out_width);
            load_window(&s, p, &b, in + channel * p->in_channel, some);
            sum_band(&s, p, &b, start);
            finish_band(p, s.band, pixels);
            store_lanes(to, p->out_channel, s.band, some, pixels, p->accumulate);
            finish_sum(p, to, some, pixels);
        }
    }
}

/* ---- Gradients of taps ---- */

/* sums[k] += dy * what tap k meets, over a band. */
VF_INLINE void dot_some(float *sums, const stage *s, const mica_lanes_plan *p, size_t rows,
                        const size_t *offset, size_t step, size_t n)
{
    vf sum[DOTS];
    const float *dy = s->band;
#pragma GCC unroll 9
    for (size_t k = 0; k < n; k++)
        sum[k] = vf_load(sums + k * VF_LANES);
    for (size_t i = 0; i < rows; i++) {
        const float *x = s->window + i * p->scale[0] * p->window_width * VF_LANES;
        for (size_t j = 0; j < p->out_width; j++, x += step, dy += VF_LANES) {
            vf y = vf_keep(vf_load(dy));
#pragma GCC unroll 9
            for (size_t k = 0; k < n; k++)
                sum[k] = vf_fma(y, vf_load(x + offset[k] * VF_LANES), sum[k]);
        }
    }
#pragma GCC unroll 9
    for (size_t k = 0; k < n; k++)
        vf_store(sums + k * VF_LANES, sum[k]);
}

static void dot_band(float *sums, const stage *s, const mica_lanes_plan *p, size_t rows)
{
    size_t step = p->scale[1] * VF_LANES, k = 0;
    for (; k + DOTS <= p->taps; k += DOTS)
        dot_some(sums + k * VF_LANES, s, p, rows, p->offset + k, step, DOTS);
    for (; k + 5 <= p->taps; k += 5)
        dot_some(sums + k * VF_LANES, s, p, rows, p->offset + k, step, 5);
    for (; k + 2 <= p->taps; k += 2)
        dot_some(sums + k * VF_LANES, s, p, rows, p->offset + k, step, 2);
    if (k < p->taps)
        dot_some(sums + k * VF_LANES, s, p, rows, p->offset + k, step, 1);
}

static void gradient(const mica_lanes_plan *p, float *sums, const float *dy, const float *in, size_t channels,
                     size_t begin, size_t end)
{
    float memory[STAGE_FLOATS];
    stage s;
    open_stage(&s, memory, p);
    for (size_t k = 0; k < p->taps; k++)
        vf_store(s.taps + k * VF_LANES, vf_zero());
    for (size_t unit = begin; unit < end; unit++) {
        band b = band_of(p, unit);
        size_t row, pixels = band_pixels(p, &b, &row);
        load_window(&s, p, &b, in, channels);
        load_lanes(s.band, NULL, dy + (ptrdiff_t)b.image * p->out_image + (ptrdiff_t)(row * p->out_width),
                   p->out_channel, channels, pixels);
        dot_band(s.taps, &s, p, b.count);
    }
    for (size_t c = 0; c < channels; c++)
        for (size_t k = 0; k < p->taps; k++)
            sums[c * p->taps + k] = s.taps[k * VF_LANES + c];
}

const mica_lanes_kernels VF_SYMBOL(mica_lanes_kernels) = {
    .lanes = VF_LANES, .image = image, .gradient = gradient};
