/* Products with block-quantized weights in vectors, VF_LANES weight rows at a time; included by quant.c alone. */
#ifndef MICA_SRC_KERNEL_QUANT_VECTOR_H
#define MICA_SRC_KERNEL_QUANT_VECTOR_H

typedef void load_fn(const vb_source *w, int step, vb *raw);
typedef vb field_fn(const vb *raw, int step, int p, int c);
typedef int place_fn(int step, int p);
typedef void scales_fn(const vb_source *w, vf *d, vf *m);

/* A type; all constants once inlined. */
typedef struct shape {
    load_fn *load;
    field_fn *field;
    place_fn *place;
    scales_fn *scales;
    size_t bytes;                    /* of a block */
    int values, parts, flush, group; /* of a block; the others as in quant_parts.h */
    bool wide, least;
} shape;

/* Steps of a block become constants: shifts depend on them. */
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define UNROLL _Pragma("GCC unroll 16")
#else
#define UNROLL
#endif

enum { PART = 16, MOST_GROUPS = 16, MOST_FLUSHED = 8 };

VF_INLINE int32_t int_at(const uint8_t *p)
{
    int32_t value;
    memcpy(&value, p, sizeof value);
    return value;
}
VF_INLINE float float_at(const uint8_t *p)
{
    float value;
    memcpy(&value, p, sizeof value);
    return value;
}

/* The next group of y: `dot` without its offset, or with its least values. */
VF_INLINE vf add_group(vf y, vi dot, vf scale, vf least, float d, const uint8_t *more, bool has_least)
{
    y = vf_fma(vf_from_vi(dot), vf_mul(scale, vf_set1(d)), y);
    return has_least ? vf_fma(least, vf_set1(float_at(more)), y) : y;
}

/* ---- One row of x times weights as they lie ---- */

/* Weights are read VF_LANES rows at a time, which no hardware foresees: so memory is asked for in the order in which it
 * lies, into the second cache, well before its rows are due, and a little at a time. */
#define AHEAD 8192

/* Lines that begin within bytes `from` to `end`. */
VF_INLINE void fetch(const uint8_t *p, size_t from, size_t end)
{
    for (size_t i = (from + 63) / 64 * 64; i < end; i += 64)
        __builtin_prefetch(p + i, 0, 2);
    __asm__ volatile("" ::: "memory"); /* compilers would ask for a whole block at once */
}

/* The groups of one flush of a block, by x at its start, which is a tile of one row. */
VF_INLINE vf vector_flush(const shape *s, const vb_source *w, int flush, const uint8_t *x, const vf *d,
                          const vf *m, const uint8_t *ahead, vf y)
{
    size_t record = mica_quant_tile_bytes(1, s->group);
    int groups = s->flush / s->group, in_block = MICA_QUANT_BLOCK / s->group;
    int steps = s->flush / (s->parts * PART);
    vi sum[MOST_FLUSHED];
    for (int g = 0; g < groups; g++) {
        const uint8_t *own = x + (size_t)(g / in_block) * record + MICA_QUANT_BLOCK + sizeof(float);
        sum[g] = vi_set1(s->least ? 0 : int_at(own + sizeof(float) * (size_t)(g % in_block)));
    }
    UNROLL for (int i = 0; i < steps; i++)
    {
        int step = flush * steps + i;
        vb raw[MOST_RAW];
        s->load(w, step, raw);
        for (int p = 0; p < s->parts; p++) {
            size_t pieces = (size_t)(s->values / PART), piece = (size_t)step * (size_t)s->parts + (size_t)p;
            fetch(ahead, piece * s->bytes * VF_LANES / pieces, (piece + 1) * s->bytes * VF_LANES / pieces);
            int place = s->place(step, p) - flush * s->flush / PART, g = place * PART / s->group;
            const uint8_t *a = x + (size_t)(place / 2) * record + (size_t)(place % 2 * PART);
            for (int c = 0; c < 4; c++) {
                vb u = s->field(raw, step, p, c), four = vb_repeat4(a + 4 * c);
                sum[g] = s->wide ? vi_dot_wide(sum[g], u, four) : vi_dot(sum[g], u, four);
            }
        }
    }
    for (int g = 0; g < groups; g++) {
        const uint8_t *scale = x + (size_t)(g / in_block) * record + MICA_QUANT_BLOCK;
        const uint8_t *more = scale + sizeof(float) * (size_t)(1 + g % in_block);
        int group = flush * groups + g;
        y = add_group(y, sum[g], d[group], m[group], float_at(scale), more, s->least);
    }
    return y;
}

VF_INLINE vf vector_panel(const shape *s, const uint8_t *x, const uint8_t *weights, ptrdiff_t row_bytes,
                          size_t blocks)
{
    size_t record = mica_quant_tile_bytes(1, s->group);
    vb_source w = vb_source_at(weights, row_bytes);
    const uint8_t *ahead = weights + VF_LANES * row_bytes + AHEAD;
    vf y = vf_zero();
    for (size_t i = 0; i < blocks; i++, ahead += s->bytes * VF_LANES) {
        vf d[MOST_GROUPS], m[MOST_GROUPS];
        s->scales(&w, d, m);
        UNROLL for (int flush = 0; flush < s->values / s->flush; flush++)
        {
            y = vector_flush(s, &w, flush, x, d, m, ahead, y);
            x += record * (size_t)(s->flush / MICA_QUANT_BLOCK);
        }
        vb_source_move(&w, s->bytes);
    }
    return y;
}

VF_INLINE void vector_rows(const mica_quant_product *p, const uint8_t *w, ptrdiff_t row_bytes, size_t panels,
                           shape s)
{
    size_t blocks = p->blocks * MICA_QUANT_BLOCK / (size_t)s.values;
    for (size_t i = 0; i < panels * VB_PANEL; i++) {
        vf y = vector_panel(&s, p->tile, w + (ptrdiff_t)(i * VF_LANES) * row_bytes, row_bytes, blocks);
        if (p->bias != NULL)
            y = vf_add(y, vf_load(p->bias + i * VF_LANES));
        vf_store(p->y + i * VF_LANES, y);
    }
}

/* ---- Panels ---- */

VF_INLINE void unpack_step(const shape *s, const vb_source *w, int step, uint8_t *u)
{
    vb raw[MOST_RAW];
    s->load(w, step, raw);
    for (int p = 0; p < s->parts; p++)
        for (int c = 0; c < 4; c++)
            vb_store(u + (size_t)(s->place(step, p) * 4 + c) * 4 * VF_LANES, s->field(raw, step, p, c));
}

VF_INLINE void unpack_rows(const mica_quant_panel *panel, const uint8_t *weights, ptrdiff_t row_bytes,
                           size_t blocks, shape s)
{
    vb_source w = vb_source_at(weights, row_bytes);
    size_t groups = (size_t)(s.values / s.group);
    uint8_t *u = panel->u;
    for (size_t i = 0; i < blocks * MICA_QUANT_BLOCK / (size_t)s.values; i++) {
        vf d[MOST_GROUPS], m[MOST_GROUPS];
        s.scales(&w, d, m);
        for (size_t g = 0; g < groups; g++) {
            vf_store(panel->scale + (i * groups + g) * VF_LANES, d[g]);
            if (s.least)
                vf_store(panel->least + (i * groups + g) * VF_LANES, m[g]);
        }
        UNROLL for (int step = 0; step < s.values / (s.parts * PART); step++) unpack_step(&s, &w, step, u);
        u += s.values * VF_LANES;
        vb_source_move(&w, s.bytes);
    }
}

/* ---- Tiles times panels ---- */

/* 32 values of a tile of `rows` rows, a constant, times those of a panel; `apart`: blocks of a row. */
VF_INLINE void product_block(vf y[][VB_PANEL], const mica_quant_panel *at, const uint8_t *x, size_t rows,
                             size_t apart, const mica_quant_type *type)
{
    const uint8_t *scales = x + rows * MICA_QUANT_BLOCK, *more = scales + rows * sizeof(float);
    int per_group = type->group / 4, groups = MICA_QUANT_BLOCK / type->group;
    for (int g = 0; g < groups; g++) {
        vi sum[VB_TILE][VB_PANEL];
        for (size_t r = 0; r < rows; r++)
            for (int s = 0; s < VB_PANEL; s++)
                sum[r][s] = vi_set1(type->least ? 0 : int_at(more + ((size_t)g * rows + r) * sizeof(float)));
        for (int k = g * per_group; k < (g + 1) * per_group; k++) {
            vb w[VB_PANEL];
            for (int s = 0; s < VB_PANEL; s++)
                w[s] = vb_load(at->u + ((size_t)s * apart * MICA_QUANT_BLOCK + (size_t)k * 4) * VF_LANES);
            for (size_t r = 0; r < rows; r++) {
                vb four = vb_repeat4(x + r * MICA_QUANT_BLOCK + (size_t)k * 4);
                for (int s = 0; s < VB_PANEL; s++)
                    sum[r][s] = type->wide ? vi_dot_wide(sum[r][s], w[s], four)
                                           : vi_dot(sum[r][s], w[s], four);
            }
        }
        for (int s = 0; s < VB_PANEL; s++) {
            size_t place = ((size_t)s * apart * (size_t)groups + (size_t)g) * VF_LANES;
            vf d = vf_load(at->scale + place), m = type->least ? vf_load(at->least + place) : vf_zero();
            for (size_t r = 0; r < rows; r++)
                y[r][s] = add_group(y[r][s], sum[r][s], d, m, float_at(scales + r * sizeof(float)),
                                    more + ((size_t)g * rows + r) * sizeof(float), type->least);
        }
    }
}

/* One vector of results, but for the first `skip` of them. */
VF_INLINE void store_results(float *y, vf sum, const float *bias, size_t skip)
{
    if (bias != NULL)
        sum = vf_add(sum, vf_load(bias));
    if (skip == 0) {
        vf_store(y, sum);
        return;
    }
    float all[VF_LANES];
    vf_store(all, sum);
    for (size_t i = skip; i < VF_LANES; i++)
        y[i] = all[i];
}

VF_INLINE void product_rows(const mica_quant_product *p, size_t rows, mica_quant_type type)
{
    vf y[VB_TILE][VB_PANEL];
    for (size_t r = 0; r < rows; r++)
        for (int s = 0; s < VB_PANEL; s++)
            y[r][s] = vf_zero();
    size_t record = mica_quant_tile_bytes(rows, type.group);
    mica_quant_panel at = p->panel;
    for (size_t b = 0; b < p->blocks; b++) {
        product_block(y, &at, p->tile + b * record, rows, p->blocks, &type);
        at.u += MICA_QUANT_BLOCK * VF_LANES;
        at.scale += MICA_QUANT_BLOCK / type.group * VF_LANES;
        at.least += MICA_QUANT_BLOCK / type.group * VF_LANES;
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t s = 0; s < VB_PANEL; s++) {
            size_t first = s * VF_LANES, skip = p->skip > first ? p->skip - first : 0;
            store_results(p->y + (ptrdiff_t)r * p->y_stride + first, y[r][s],
                          p->bias != NULL ? p->bias + first : NULL, skip);
        }
}

/* Every number of rows is a kernel of its own, so that sums stay in registers. */
VF_INLINE void product_of(const mica_quant_product *p, mica_quant_type type)
{
    switch (p->rows) {
    case 1:
        product_rows(p, 1, type);
        break;
    case 2:
        product_rows(p, 2, type);
        break;
    case 3:
        product_rows(p, 3, type);
        break;
#if VB_TILE > 4
    case 4:
        product_rows(p, 4, type);
        break;
    case 5:
        product_rows(p, 5, type);
        break;
#endif
#if VB_TILE > 6
    case 6:
        product_rows(p, 6, type);
        break;
    case 7:
        product_rows(p, 7, type);
        break;
#endif
    default:
        product_rows(p, VB_TILE, type);
    }
}

#define PRODUCT(name, ...) \
    static void product_##name(const mica_quant_product *p) { product_of(p, (mica_quant_type){__VA_ARGS__}); }
PRODUCT(offset_32, 32, 0, false, false)
PRODUCT(wide_32, 32, 0, false, true)
PRODUCT(least_32, 32, 0, true, false)
PRODUCT(offset_16, 16, 0, false, false)
PRODUCT(least_16, 16, 0, true, false)

static void product(const mica_quant_product *p, const mica_quant_type *type)
{
    if (type->wide)
        product_wide_32(p);
    else if (type->group == 32)
        (type->least ? product_least_32 : product_offset_32)(p);
    else
        (type->least ? product_least_16 : product_offset_16)(p);
}

/* ---- For each type ---- */

#define SHAPE(code, bytes, block)                                                               \
    (shape)                                                                                     \
    {                                                                                           \
        load_##code, field_##code, place_##code, scales_##code, (bytes), (block), PARTS_##code, \
            FLUSH_##code, GROUP_##code, WIDE_##code, LEAST_##code,                              \
    }
#define VECTOR_KERNELS(code, name, bytes, block, type)                                                   \
    static void vector_##code(const mica_quant_product *p, const uint8_t *w, ptrdiff_t row_bytes,        \
                              size_t panels)                                                             \
    {                                                                                                    \
        vector_rows(p, w, row_bytes, panels, SHAPE(code, bytes, block));                                 \
    }                                                                                                    \
    static void unpack_##code(const mica_quant_panel *panel, const uint8_t *w, ptrdiff_t row_bytes,      \
                              size_t blocks)                                                             \
    {                                                                                                    \
        for (size_t s = 0; s < VB_PANEL; s++)                                                            \
            unpack_rows(&(mica_quant_panel){panel->u + s * blocks * MICA_QUANT_BLOCK * VF_LANES,         \
                                            panel->scale + s * blocks * (32 / GROUP_##code) * VF_LANES,  \
                                            panel->least + s * blocks * (32 / GROUP_##code) * VF_LANES}, \
                        w + (ptrdiff_t)(s * VF_LANES) * row_bytes, row_bytes, blocks,                    \
                        SHAPE(code, bytes, block));                                                      \
    }
MICA_DTYPE_BLOCK_LIST(VECTOR_KERNELS)

#endif
