/* Convolution without packing; compiled once per instruction set.
 *
 * The matrix product's register tile, but for where its right side comes from: tap p of a vector of pixels is an
 * unaligned load from the window, `offset[p]` from where the vector begins. So nothing is copied but the window,
 * and several output channels share each load. */
#include "kernel/conv_rows.h"

/* TILE_CHANNELS x TILE_VECTORS sums, with room for a row of vectors and a broadcast weight. */
#if VF_REGISTERS >= 32
#define TILE_CHANNELS 8
#else
#define TILE_CHANNELS 4
#endif
#define TILE_VECTORS 3
#define TILE_TAPS    MICA_TILES_TAPS

static void load(float *window, const mica_conv_window *w, const mica_conv_patches *in,
                 const mica_conv_block *b)
{
    position at = {(ptrdiff_t)b->i * in->rows.scale + in->rows.base + mica_conv_lowest(&in->rows),
                   (ptrdiff_t)b->j * in->columns.scale + in->columns.base + mica_conv_lowest(&in->columns)};
    size_t rows = mica_conv_span(&in->rows, b->rows);
    for (size_t c = 0; c < w->channels; c++)
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

/* Strip number v of a block. The last of a row ends with the row and may lie over the one before it, which is
 * then made twice; where sums are added to what is there it must not. */
VF_INLINE strip strip_of(const mica_conv_block *b, const mica_conv_planes *out, size_t v, size_t strips,
                         bool overlap)
{
    size_t i = v / strips, j = v % strips * VF_LANES, n = least(b->columns - j, VF_LANES);
    if (overlap && n < VF_LANES && b->columns >= VF_LANES) {
        j = b->columns - VF_LANES;
        n = VF_LANES;
    }
    return (strip){b->window + (ptrdiff_t)i * b->row_step + (ptrdiff_t)j,
                   (ptrdiff_t)i * out->row_stride + (ptrdiff_t)j * out->column_stride, n};
}

static void store_part(float *to, ptrdiff_t stride, vf v, size_t n, bool accumulate)
{
    float lane[VF_LANES];
    vf_store(lane, v);
    for (size_t x = 0; x < n; x++, to += stride)
        *to = accumulate ? *to + lane[x] : lane[x];
}

/* How the sums of a tile leave it. */
typedef struct leave {
    const mica_conv_planes *out;
    const float *bias; /* of the tile's channels, or NULL */
    size_t channels;
    bool accumulate;
} leave;

/* One tile of `vectors` strips, a constant where this is inlined. */
VF_INLINE void tile(const leave *l, const strip *s, const mica_conv_block *b, const float *panel,
                    size_t vectors)
{
    vf sum[TILE_CHANNELS][TILE_VECTORS];
#pragma GCC unroll 8
    for (size_t i = 0; i < TILE_CHANNELS; i++) {
        vf bias = vf_set1(l->bias != NULL && i < l->channels ? l->bias[i] : 0.0f);
#pragma GCC unroll 3
        for (size_t v = 0; v < vectors; v++)
            sum[i][v] = bias;
    }
    const float *from[TILE_VECTORS];
#pragma GCC unroll 3
    for (size_t v = 0; v < vectors; v++)
        from[v] = s[v].from;
    const ptrdiff_t *offset = b->offset;
    for (size_t p = b->k; p > 0; p--, panel += TILE_CHANNELS, offset++) {
        vf x[TILE_VECTORS];
#pragma GCC unroll 3
        for (size_t v = 0; v < vectors; v++)
            x[v] = vf_load(from[v] + *offset);
#pragma GCC unroll 8
        for (size_t i = 0; i < TILE_CHANNELS; i++) {
            vf w = vf_set1(panel[i]);
#pragma GCC unroll 3
            for (size_t v = 0; v < vectors; v++)
                sum[i][v] = vf_fma(w, x[v], sum[i][v]);
        }
    }
#pragma GCC unroll 8
    for (size_t i = 0; i < TILE_CHANNELS; i++) {
        if (i >= l->channels)
            break;
        float *plane = l->out->data + (ptrdiff_t)i * l->out->channel_stride;
#pragma GCC unroll 3
        for (size_t v = 0; v < vectors; v++) {
            if (s[v].lanes < VF_LANES || l->out->column_stride != 1)
                store_part(plane + s[v].to, l->out->column_stride, sum[i][v], s[v].lanes, l->accumulate);
            else if (l->accumulate)
                vf_store(plane + s[v].to, vf_add(sum[i][v], vf_load(plane + s[v].to)));
            else
                vf_store(plane + s[v].to, sum[i][v]);
        }
    }
}

static void image(const mica_conv_planes *out, const mica_conv_block *b, const float *panels,
                  const float *bias, size_t m, bool accumulate)
{
    size_t strips = (b->columns + VF_LANES - 1) / VF_LANES, all = strips * b->rows;
    for (size_t o = 0; o < m; o += TILE_CHANNELS, panels += b->k * TILE_CHANNELS) {
        mica_conv_planes planes = *out;
        planes.data += (ptrdiff_t)o * out->channel_stride;
        leave l = {&planes, bias != NULL ? bias + o : NULL, least(m - o, TILE_CHANNELS), accumulate};
        for (size_t v = 0; v < all; v += TILE_VECTORS) {
            strip s[TILE_VECTORS];
            size_t n = least(all - v, TILE_VECTORS);
            for (size_t x = 0; x < n; x++)
                s[x] = strip_of(b, out, v + x, strips, !accumulate);
            if (n == TILE_VECTORS)
                tile(&l, s, b, panels, TILE_VECTORS);
            else if (n == 2)
                tile(&l, s, b, panels, 2);
            else
                tile(&l, s, b, panels, 1);
        }
    }
}

/* ---- Gradients of taps ---- */

/* The same tile the other way: channels of dy by taps, lane by lane over pixels. The first n lanes count. */
VF_INLINE void dot_vector(vf sum[TILE_CHANNELS][TILE_TAPS], const float *x, const ptrdiff_t *offset,
                          const float *const *dy, ptrdiff_t y, size_t n)
{
    vf met[TILE_TAPS];
#pragma GCC unroll 3
    for (size_t p = 0; p < TILE_TAPS; p++)
        met[p] = n == VF_LANES ? vf_load(x + offset[p]) : vf_load_tail(x + offset[p], n);
#pragma GCC unroll 8
    for (size_t i = 0; i < TILE_CHANNELS; i++) {
        vf d = n == VF_LANES ? vf_load(dy[i] + y) : vf_load_tail(dy[i] + y, n);
#pragma GCC unroll 3
        for (size_t p = 0; p < TILE_TAPS; p++)
            sum[i][p] = vf_fma(d, met[p], sum[i][p]);
    }
}

static void dot_tile(float *sums, const mica_conv_block *b, const float *const *dy, ptrdiff_t row_stride,
                     const ptrdiff_t *offset)
{
    vf sum[TILE_CHANNELS][TILE_TAPS];
#pragma GCC unroll 8
    for (size_t i = 0; i < TILE_CHANNELS; i++)
#pragma GCC unroll 3
        for (size_t p = 0; p < TILE_TAPS; p++)
            sum[i][p] = vf_load(sums + (i * TILE_TAPS + p) * VF_LANES);
    for (size_t row = 0; row < b->rows; row++) {
        const float *x = b->window + (ptrdiff_t)row * b->row_step;
        ptrdiff_t y = (ptrdiff_t)row * row_stride;
        size_t j = 0;
        for (; j + VF_LANES <= b->columns; j += VF_LANES, x += VF_LANES, y += VF_LANES)
            dot_vector(sum, x, offset, dy, y, VF_LANES);
        if (j < b->columns)
            dot_vector(sum, x, offset, dy, y, b->columns - j);
    }
#pragma GCC unroll 8
    for (size_t i = 0; i < TILE_CHANNELS; i++)
#pragma GCC unroll 3
        for (size_t p = 0; p < TILE_TAPS; p++)
            vf_store(sums + (i * TILE_TAPS + p) * VF_LANES, sum[i][p]);
}

static void gradient(float *sums, const mica_conv_block *b, const mica_conv_planes *dy, size_t m)
{
    for (size_t o = 0; o < m; o += TILE_CHANNELS) {
        /* Past the last channel and the last tap, that one again: its sums are not used. */
        const float *plane[TILE_CHANNELS];
        for (size_t i = 0; i < TILE_CHANNELS; i++)
            plane[i] = dy->data + (ptrdiff_t)least(o + i, m - 1) * dy->channel_stride;
        for (size_t p = 0; p < b->k; p += TILE_TAPS, sums += TILE_CHANNELS * TILE_TAPS * VF_LANES) {
            ptrdiff_t offset[TILE_TAPS];
            for (size_t x = 0; x < TILE_TAPS; x++)
                offset[x] = b->offset[least(p + x, b->k - 1)];
            dot_tile(sums, b, plane, dy->row_stride, offset);
        }
    }
}

static void fold(float *dst, const float *sums, size_t parts, size_t part_stride, size_t o, size_t k)
{
    size_t tiles = (k + TILE_TAPS - 1) / TILE_TAPS;
    sums += (o / TILE_CHANNELS * tiles * TILE_CHANNELS + o % TILE_CHANNELS) * TILE_TAPS * VF_LANES;
    for (size_t p = 0; p < k; p++) {
        const float *from = sums + (p / TILE_TAPS * TILE_CHANNELS * TILE_TAPS + p % TILE_TAPS) * VF_LANES;
        vf sum = vf_load(from);
        for (size_t part = 1; part < parts; part++)
            sum = vf_add(sum, vf_load(from + part * part_stride));
        dst[p] = vf_sum(sum);
    }
}

const mica_tiles_kernels VF_SYMBOL(mica_tiles_kernels) = {
    .lanes = VF_LANES,
    .channels = TILE_CHANNELS,
    .load = load,
    .image = image,
    .gradient = gradient,
    .fold = fold,
};
