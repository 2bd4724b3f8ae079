/* Convolution without packing; compiled once per instruction set.
 *
 * The matrix product's register tile with another right-hand side: tap p of a vector of pixels is an
 * unaligned load from the window, `offset[p]` from the start of the vector. So only the window is copied,
 * and several output channels share each load. */
#include "kernel/conv_rows.h"
#include "kernel/sum_loop.h"
#include "kernel/tiles_across.h"

#include <math.h>

/* A tile's channels x vectors of sums, with room for a row of vectors and a broadcast weight. */
#if VF_REGISTERS >= 32
#define TILE_CHANNELS 8
#else
#define TILE_CHANNELS 4
#endif
#define TILE_VECTORS MICA_TILES_VECTORS
#define TILE_TAPS    MICA_TILES_TAPS
/* Of the last strips of a block. */
#define REST_VECTORS 2
/* With one or two channels more vectors keep the multipliers busy. */
#define TWO_VECTORS  6
#define ONE_VECTORS  8
#define MOST_VECTORS 8
/* How far ahead weights are prefetched, in floats: broadcast one by one, they are no stream to a prefetcher. */
#define PANEL_AHEAD 1024
/* Strips that one list has: a multiple of all of these. Pixels of a short one fit the first cache beside a window. */
#define LIST       120
#define SHORT_LIST 48

static void load(float *window, const mica_conv_window *w, const mica_conv_patches *in,
                 const mica_conv_block *b)
{
    position at = {(ptrdiff_t)b->i * in->rows.scale + in->rows.base + mica_conv_lowest(&in->rows),
                   (ptrdiff_t)b->j * in->columns.scale + in->columns.base + mica_conv_lowest(&in->columns)};
    size_t rows = mica_conv_span(&in->rows, b->rows);
    for (size_t c = 0; c < b->channels; c++)
        for (size_t f = 0; f < mica_conv_residues(&in->columns); f++)
            stage_rows(window + c * w->channel_stride + f * w->run, (ptrdiff_t)w->row_stride, w->run, in,
                       in->data + (ptrdiff_t)c * in->channel_stride,
                       (position){at.row, at.column + (ptrdiff_t)f}, rows);
}

/* ---- Images ---- */

/* A vector of pixels: where its window begins, where it goes, how many lanes of it count. */
typedef struct strip {
    const float *from;
    ptrdiff_t to;
    size_t lanes;
} strip;

/* Strips of a block, from row i and column j on; returns how many, at most `most`, and where the next begins.
 * The last of a row ends with the row and may lie over the one before it, which is then made twice; where
 * sums are added to what is there it must not. */
static size_t list_strips(strip *s, size_t most, const mica_conv_block *b, const mica_conv_planes *out,
                          bool overlap, size_t *row, size_t *column)
{
    size_t i = *row, from = *column, count = 0;
    for (; count < most && i < b->rows; count++) {
        size_t j = from, lanes = least(b->columns - j, VF_LANES);
        if (overlap && lanes < VF_LANES && b->columns >= VF_LANES) {
            j = b->columns - VF_LANES;
            lanes = VF_LANES;
        }
        s[count] = (strip){b->window + (ptrdiff_t)i * b->row_step + (ptrdiff_t)j,
                           (ptrdiff_t)i * out->row_stride + (ptrdiff_t)j * out->column_stride, lanes};
        from += VF_LANES;
        if (from >= b->columns) {
            from = 0;
            i++;
        }
    }
    *row = i;
    *column = from;
    return count;
}

static void store_part(float *to, ptrdiff_t stride, vf v, size_t n, bool accumulate)
{
    if (stride == 1) {
        vf_store_tail(to, accumulate ? vf_add(v, vf_load_tail(to, n)) : v, n);
        return;
    }
    float lane[VF_LANES];
    vf_store(lane, v);
    for (size_t x = 0; x < n; x++, to += stride)
        *to = accumulate ? *to + lane[x] : lane[x];
}

/* What the tiles of a block and some channels share. */
typedef struct work {
    const ptrdiff_t *offset, *end; /* of all taps */
    const float *panel;
    mica_conv_planes out; /* at the first of the channels */
    float bias[TILE_CHANNELS];
    size_t channels;
    bool accumulate;
    bool plain; /* whole vectors, side by side, not added to what is there; of totals: whole vectors */

    /* Where only the totals are wanted: a vector for each of the channels, or NULL. */
    float *totals;
    float low, high;
    bool bounded; /* by these */
} work;

/* Some of a tile's sums, in any way. */
static void leave_part(const work *w, const strip *s, size_t count, const float *sums, size_t vectors)
{
    for (size_t i = 0; i < w->channels; i++) {
        float *plane = w->out.data + (ptrdiff_t)i * w->out.channel_stride;
        for (size_t v = 0; v < count; v++) {
            float *to = plane + s[v].to;
            vf sum = vf_load(sums + (i * vectors + v) * VF_LANES);
            if (s[v].lanes < VF_LANES || w->out.column_stride != 1)
                store_part(to, w->out.column_stride, sum, s[v].lanes, w->accumulate);
            else
                vf_store(to, w->accumulate ? vf_add(sum, vf_load(to)) : sum);
        }
    }
}

/* Sums leave the tile. */
VF_INLINE void leave(const work *w, const strip *s, size_t count, vf sum[TILE_CHANNELS][MOST_VECTORS],
                     size_t channels, size_t vectors)
{
    float part[TILE_CHANNELS * MOST_VECTORS * VF_LANES], *to[MOST_VECTORS];
    bool plain = w->plain && count == vectors && w->channels == channels;
    ptrdiff_t step = plain ? w->out.channel_stride : (ptrdiff_t)(vectors * VF_LANES);
#pragma GCC unroll 8
    for (size_t v = 0; v < vectors; v++)
        to[v] = plain ? w->out.data + s[v].to : part + v * VF_LANES;
#pragma GCC unroll 8
    for (size_t i = 0; i < channels; i++)
#pragma GCC unroll 8
        for (size_t v = 0; v < vectors; v++)
            vf_store(to[v] + (ptrdiff_t)i * step, sum[i][v]);
    if (!plain)
        leave_part(w, s, count, part, vectors);
}

/* Sums are held within their bounds and added up, those past the end of their row left out. */
VF_INLINE void add_up(const work *w, const strip *s, size_t count, vf sum[TILE_CHANNELS][MOST_VECTORS],
                      size_t channels, size_t vectors)
{
    vf low = vf_set1(w->low), high = vf_set1(w->high);
#pragma GCC unroll 8
    for (size_t v = 0; v < vectors; v++) {
        vm inside = vm_first(v < count ? s[v].lanes : 0);
#pragma GCC unroll 8
        for (size_t i = 0; i < channels; i++) {
            if (w->bounded)
                sum[i][v] = vf_min(high, vf_max(low, sum[i][v]));
            if (!w->plain || v >= count)
                sum[i][v] = vf_select(inside, sum[i][v], vf_zero());
        }
    }
#pragma GCC unroll 8
    for (size_t i = 0; i < channels; i++) {
        vf total = sum[i][0];
#pragma GCC unroll 8
        for (size_t v = 1; v < vectors; v++)
            total = vf_add(total, sum[i][v]);
        vf_store(w->totals + i * VF_LANES, vf_add(vf_load(w->totals + i * VF_LANES), total));
    }
}

/* One tile of channels x vectors, constants where this is inlined. Of its strips the first `count` are there. */
VF_INLINE void tile(const work *w, const strip *s, size_t count, size_t channels, size_t vectors, bool total)
{
    vf sum[TILE_CHANNELS][MOST_VECTORS];
    const float *from[MOST_VECTORS], *panel = w->panel;
#pragma GCC unroll 8
    for (size_t v = 0; v < vectors; v++) {
        from[v] = s[v < count ? v : 0].from;
#pragma GCC unroll 8
        for (size_t i = 0; i < channels; i++)
            sum[i][v] = vf_set1(w->bias[i]);
    }
    const ptrdiff_t *end = w->end;
    for (const ptrdiff_t *offset = w->offset; offset < end; panel += TILE_CHANNELS, offset++) {
        vf x[MOST_VECTORS];
        if (channels == TILE_CHANNELS)
            __builtin_prefetch(panel + PANEL_AHEAD, 0, 3);
#pragma GCC unroll 8
        for (size_t v = 0; v < vectors; v++)
            x[v] = vf_load(from[v] + *offset);
#pragma GCC unroll 8
        for (size_t i = 0; i < channels; i++) {
            vf weight = vf_set1(panel[i]);
#pragma GCC unroll 8
            for (size_t v = 0; v < vectors; v++)
                sum[i][v] = vf_fma(weight, x[v], sum[i][v]);
        }
    }
    if (total)
        add_up(w, s, count, sum, channels, vectors);
    else
        leave(w, s, count, sum, channels, vectors);
}

typedef void tiles_fn(const work *w, const strip *s, size_t count);

/* All strips of a list: functions of their own, then all pointers stay in registers. */
#define TILES(name, channels, vectors, total)                                               \
    __attribute__((noinline)) static void name(const work *w, const strip *s, size_t count) \
    {                                                                                       \
        for (; count > (vectors); count -= (vectors), s += (vectors))                       \
            tile(w, s, vectors, channels, vectors, total);                                  \
        tile(w, s, count, channels, vectors, total);                                        \
    }
TILES(image_of_many, TILE_CHANNELS, TILE_VECTORS, false)
TILES(image_of_rest, TILE_CHANNELS, REST_VECTORS, false)
TILES(image_of_single, TILE_CHANNELS, 1, false)
TILES(image_of_two, 2, TWO_VECTORS, false)
TILES(image_of_one, 1, ONE_VECTORS, false)
TILES(totals_of_many, TILE_CHANNELS, TILE_VECTORS, true)
TILES(totals_of_rest, TILE_CHANNELS, REST_VECTORS, true)
TILES(totals_of_two, 2, TWO_VECTORS, true)
TILES(totals_of_one, 1, ONE_VECTORS, true)

static void tiles(const work *w, const strip *s, size_t count)
{
    bool total = w->totals != NULL;
    if (w->channels <= 2) {
        tiles_fn *one = total ? totals_of_one : image_of_one, *two = total ? totals_of_two : image_of_two;
        (w->channels == 1 ? one : two)(w, s, count);
        return;
    }
    /* The last ones by two: four are 2 + 2, not 3 + 1. */
    size_t over = count % TILE_VECTORS, rest = over == 1 && count > 1 ? 2 * REST_VECTORS : over;
    if (count > rest)
        (total ? totals_of_many : image_of_many)(w, s, count - rest);
    if (rest > 0)
        (total ? totals_of_rest : rest == 1 ? image_of_single : image_of_rest)(w, s + (count - rest), rest);
}

/* Channels o .. of m. */
static void set_channels(work *w, const float *bias, size_t o, size_t m)
{
    w->channels = least(m - o, TILE_CHANNELS);
    for (size_t i = 0; i < w->channels && bias != NULL; i++)
        w->bias[i] = bias[o + i];
}

static void image(const mica_conv_planes *out, const mica_conv_block *b, const float *panels,
                  size_t panel_stride, const float *bias, size_t m, bool accumulate)
{
    strip s[LIST];
    size_t row = 0, column = 0;
    bool plain = out->column_stride == 1 && !accumulate && b->columns >= VF_LANES;
    for (size_t count; (count = list_strips(s, LIST, b, out, !accumulate, &row, &column)) > 0;) {
        work w = {.offset = b->offset,
                  .end = b->offset + b->channels * b->taps,
                  .panel = panels,
                  .out = *out,
                  .accumulate = accumulate,
                  .plain = plain};
        for (size_t o = 0; o < m; o += TILE_CHANNELS, w.panel += panel_stride) {
            w.out.data = out->data + (ptrdiff_t)o * out->channel_stride;
            set_channels(&w, bias, o, m);
            tiles(&w, s, count);
        }
    }
}

/* In registers: in single precision over one list of strips, in double over these. */
static void totals_within(double *to, const mica_conv_block *b, const float *panels, size_t panel_stride,
                          const float *bias, size_t m, float low, float high)
{
    static const mica_conv_planes nowhere;
    strip s[LIST];
    float sums[TILE_CHANNELS * VF_LANES];
    size_t row = 0, column = 0;
    for (size_t count; (count = list_strips(s, LIST, b, &nowhere, false, &row, &column)) > 0;) {
        work w = {.offset = b->offset,
                  .end = b->offset + b->channels * b->taps,
                  .panel = panels,
                  .plain = b->columns % VF_LANES == 0,
                  .totals = sums,
                  .low = low,
                  .high = high,
                  .bounded = low > -INFINITY || high < INFINITY};
        for (size_t o = 0; o < m; o += TILE_CHANNELS, w.panel += panel_stride) {
            zero(sums, TILE_CHANNELS * VF_LANES);
            set_channels(&w, bias, o, m);
            tiles(&w, s, count);
            for (size_t i = 0; i < w.channels; i++)
                to[o + i] += (double)vf_sum(vf_load(sums + i * VF_LANES));
        }
    }
}

/* Through a map: pixels lie side by side in the first cache, of some channels and one short list at a time. What the
 * last strip of a row writes too much, the next overwrites. */
static void totals_mapped(double *to, const mica_conv_block *b, const float *panels, size_t panel_stride,
                          const float *bias, size_t m, const mica_conv_finish *finish)
{
    enum { ROOM = (SHORT_LIST + 1) * VF_LANES };
    const mica_conv_planes side_by_side = {.row_stride = (ptrdiff_t)b->columns, .column_stride = 1};
    strip s[SHORT_LIST];
    _Alignas(64) float pixels[TILE_CHANNELS * ROOM];
    size_t row = 0, column = 0;
    for (size_t count; (count = list_strips(s, SHORT_LIST, b, &side_by_side, false, &row, &column)) > 0;) {
        work w = {.offset = b->offset,
                  .end = b->offset + b->channels * b->taps,
                  .panel = panels,
                  .out = {.data = pixels, .channel_stride = ROOM, .column_stride = 1},
                  .plain = true};
        ptrdiff_t first = s[0].to;
        for (size_t i = 0; i < count; i++)
            s[i].to -= first;
        size_t n = (size_t)s[count - 1].to + s[count - 1].lanes;
        for (size_t o = 0; o < m; o += TILE_CHANNELS, w.panel += panel_stride) {
            set_channels(&w, bias, o, m);
            tiles(&w, s, count);
            for (size_t i = 0; i < w.channels; i++) {
                float *x = pixels + i * ROOM;
                finish->map(x, (const float *const[]){x}, n, &finish->slope);
                to[o + i] += sum_run(x, x, n, 0.0f, term_value);
            }
        }
    }
}

static void totals(double *to, const mica_conv_block *b, const float *panels, size_t panel_stride,
                   const float *bias, size_t m, const mica_conv_finish *finish)
{
    for (size_t o = 0; o < m; o++)
        to[o] = 0.0;
    if (finish->map != NULL)
        totals_mapped(to, b, panels, panel_stride, bias, m, finish);
    else
        totals_within(to, b, panels, panel_stride, bias, m, finish->low, finish->high);
}

/* ---- Gradients of taps ---- */

/* The same tile the other way: channels of dy by taps, lane by lane over pixels. Where only the first n lanes count
 * the others are left out, also of what the taps meet there, or an infinity would give NaN. */
VF_INLINE void dot_vector(vf sum[TILE_CHANNELS][TILE_TAPS], const float *const *x, const float *dy,
                          ptrdiff_t channel_stride, size_t j, bool whole, size_t n)
{
    vf met[TILE_TAPS];
#pragma GCC unroll 3
    for (size_t p = 0; p < TILE_TAPS; p++)
        met[p] = whole ? vf_load(x[p] + j) : vf_load_tail(x[p] + j, n);
#pragma GCC unroll 8
    for (size_t i = 0; i < TILE_CHANNELS; i++) {
        const float *from = dy + (ptrdiff_t)i * channel_stride + j;
        vf d = vf_keep(whole ? vf_load(from) : vf_load_tail(from, n));
#pragma GCC unroll 3
        for (size_t p = 0; p < TILE_TAPS; p++)
            sum[i][p] = vf_fma(d, met[p], sum[i][p]);
    }
}

/* dy: TILE_CHANNELS channels. */
static void dot_tile(float *sums, const mica_conv_block *b, const mica_conv_planes *dy,
                     const ptrdiff_t *offset)
{
    vf sum[TILE_CHANNELS][TILE_TAPS];
#pragma GCC unroll 8
    for (size_t i = 0; i < TILE_CHANNELS; i++)
#pragma GCC unroll 3
        for (size_t p = 0; p < TILE_TAPS; p++)
            sum[i][p] = vf_load(sums + (i * TILE_TAPS + p) * VF_LANES);
    const float *x[TILE_TAPS], *d = dy->data;
    for (size_t p = 0; p < TILE_TAPS; p++)
        x[p] = b->window + offset[p];
    size_t tail = b->columns % VF_LANES, whole = b->columns - tail;
    ptrdiff_t channel_stride = dy->channel_stride, row_stride = dy->row_stride, row_step = b->row_step;
    for (size_t row = b->rows; row > 0; row--, d += row_stride) {
        for (size_t j = 0; j < whole; j += VF_LANES)
            dot_vector(sum, x, d, channel_stride, j, true, 0);
        if (tail > 0)
            dot_vector(sum, x, d, channel_stride, whole, false, tail);
        for (size_t p = 0; p < TILE_TAPS; p++)
            x[p] += row_step;
    }
#pragma GCC unroll 8
    for (size_t i = 0; i < TILE_CHANNELS; i++)
#pragma GCC unroll 3
        for (size_t p = 0; p < TILE_TAPS; p++)
            vf_store(sums + (i * TILE_TAPS + p) * VF_LANES, sum[i][p]);
}

/* Taps from which rows that end within a vector are worth a copy that does not: these read it again and again. */
#define STAGE_TAPS 18

/* TILE_CHANNELS channels of dy, of which m are there: rows up to whole vectors, with zeros. */
static mica_conv_planes stage_dy(float *stage, const mica_conv_planes *dy, const mica_conv_block *b, size_t m)
{
    size_t columns = (b->columns + VF_LANES - 1) / VF_LANES * VF_LANES;
    mica_conv_planes staged = {.data = stage,
                               .channel_stride = (ptrdiff_t)(b->rows * columns),
                               .row_stride = (ptrdiff_t)columns,
                               .column_stride = 1};
    for (size_t i = 0; i < TILE_CHANNELS; i++) {
        const float *from = dy->data + (ptrdiff_t)i * dy->channel_stride;
        for (size_t row = 0; row < b->rows; row++, stage += columns, from += dy->row_stride) {
            zero(stage + columns - VF_LANES, VF_LANES);
            if (i < m)
                copy(stage, from, dy->column_stride, b->columns);
            else
                zero(stage, columns);
        }
    }
    return staged;
}

static void gradient(float *sums, const mica_conv_block *b, const mica_conv_planes *dy, size_t m,
                     float *stage)
{
    size_t k = b->channels * b->taps;
    mica_conv_planes some = *dy;
    for (size_t o = 0; o < m; o += TILE_CHANNELS, some.data += TILE_CHANNELS * dy->channel_stride) {
        bool ready = dy->column_stride == 1 && o + TILE_CHANNELS <= m &&
                     (b->columns % VF_LANES == 0 || k <= STAGE_TAPS);
        mica_conv_planes from = ready ? some : stage_dy(stage, &some, b, m - o);
        for (size_t p = 0; p < k; p += TILE_TAPS, sums += TILE_CHANNELS * TILE_TAPS * VF_LANES) {
            /* Past the last tap, that one again: its sums are not used. */
            ptrdiff_t offset[TILE_TAPS];
            for (size_t x = 0; x < TILE_TAPS; x++)
                offset[x] = b->offset[least(p + x, k - 1)];
            dot_tile(sums, b, &from, offset);
        }
    }
}

static void fold(float *dst, const float *sums, size_t parts, size_t part_stride, size_t o, size_t k)
{
    size_t tiles = (k + TILE_TAPS - 1) / TILE_TAPS;
    sums += (o / TILE_CHANNELS * tiles * TILE_CHANNELS + o % TILE_CHANNELS) * TILE_TAPS * VF_LANES;
    for (size_t p = 0; p < k; p += TILE_TAPS, sums += TILE_CHANNELS * TILE_TAPS * VF_LANES)
#pragma GCC unroll 3
        for (size_t x = 0; x < TILE_TAPS; x++) {
            if (p + x == k)
                return;
            vf sum = vf_load(sums + x * VF_LANES);
            for (size_t part = 1; part < parts; part++)
                sum = vf_add(sum, vf_load(sums + part * part_stride + x * VF_LANES));
            dst[p + x] = vf_sum(sum);
        }
}

const mica_tiles_kernels VF_SYMBOL(mica_tiles_kernels) = {
    .lanes = VF_LANES,
    .channels = TILE_CHANNELS,
    .load = load,
    .image = image,
    .across = across,
    .totals = totals,
    .gradient = gradient,
    .fold = fold,
};
