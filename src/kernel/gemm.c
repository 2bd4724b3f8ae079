/* Matrix product kernels; compiled once per instruction set. */
#include "kernel/gemm.h"

#include <stdint.h>

#include "base/size.h"
#include "kernel/gemm_dots.h"
#include "kernel/gemm_pack.h"
#include "kernel/lines.h"
#include "kernel/vec.h"

/* The register tile: TILE_ROWS x TILE_VECTORS accumulators, with room left for a row of B and a broadcast of
 * A. */
#if VF_REGISTERS >= 32 && VF_LANES >= 16
#define TILE_ROWS    14
#define TILE_VECTORS 2
#elif VF_REGISTERS >= 32
#define TILE_ROWS    8
#define TILE_VECTORS 3
#elif VF_LANES > 1
#define TILE_ROWS    6
#define TILE_VECTORS 2
#elif defined(MICA_SMALL)
#define TILE_ROWS    2
#define TILE_VECTORS 2
#else
#define TILE_ROWS    4
#define TILE_VECTORS 2
#endif
#if defined(MICA_SMALL)
#define UNROLL_K
#else
#define UNROLL_K _Pragma("GCC unroll 4")
#endif
#define TILE_COLUMNS (TILE_VECTORS * VF_LANES)
/* Tiles that ask for what comes next do so a cache line in each step of k. */
#define LINE_BYTES 64
#define ASKS_AHEAD (VF_LANES >= 8)
/* Rows of B that a tile copies lie so far apart that the hardware does not foresee them: where a vector is a line, each
 * is asked for so many steps of k before it is read. The second cache takes them: rows a multiple of 4 KiB apart would
 * meet in one set of the first. */
#define COPY_AHEAD 32

#include "kernel/gemm_vector.h"

/* What has not been asked for: from `next` to the `end` of a run, and the runs behind it. Addresses are numbers, as the
 * last tile may step over the end of it all. */
typedef struct asking {
    uintptr_t next, end;
    uintptr_t stride, gap; /* from a run's beginning and from its end to the next one's beginning */
    size_t lines;          /* in all */
} asking;

/* Row i of a strip. */
typedef struct place {
    size_t i;
    const float *a;
    float *c;
    const float *from;
} place;

/* ---- A tile's end: from the sums to c ---- */

/* alpha * sum + beta * from + bias of n contiguous elements; n is a constant where this is inlined, but at edges. */
VF_INLINE void finish_run(const mica_gemm_strip *s, float *c, const float *from, vf sum, vf bias, size_t n)
{
    vf v = vf_fma(sum, vf_set1(s->alpha), bias);
    if (s->beta != 0.0f)
        v = vf_fma(vf_set1(s->beta), n == VF_LANES ? vf_load(from) : vf_load_tail(from, n), v);
    if (n == VF_LANES)
        vf_store(c, v);
    else
        vf_store_tail(c, v, n);
}

/* Contiguous rows of c. `sum` is `rows` rows of sums, as for the two that follow. */
static void finish_rows(const mica_gemm_strip *s, const place *at, const float *sum, size_t rows)
{
    for (size_t i = 0; i < rows; i++, sum += TILE_COLUMNS) {
        float *c = at->c + (ptrdiff_t)i * s->row_stride;
        const float *from = at->from + (ptrdiff_t)i * s->from_row_stride;
        vf row_bias = vf_set1(s->row_bias != NULL ? s->row_bias[at->i + i] : 0.0f);
        for (size_t j = 0; j < s->columns; j += VF_LANES) {
            size_t n = s->columns - j < VF_LANES ? s->columns - j : VF_LANES;
            vf bias = row_bias;
            if (s->column_bias != NULL)
                bias = vf_add(bias, vf_load_tail(s->column_bias + j, n));
            finish_run(s, c + j, from + j, vf_load(sum + j), bias, n);
        }
    }
}

/* Contiguous columns of c: squares of the sums are turned in registers. */
VF_INLINE void finish_square(const mica_gemm_strip *s, const place *at, const float *sum, size_t i, size_t n,
                             size_t j)
{
    vf square[VF_LANES],
        row_bias = s->row_bias != NULL ? vf_load_tail(s->row_bias + at->i + i, n) : vf_zero();
#pragma GCC unroll 16
    for (size_t r = 0; r < VF_LANES; r++)
        square[r] = r < n ? vf_load(sum + (i + r) * TILE_COLUMNS + j) : vf_zero();
    vf_transpose(square);
#pragma GCC unroll 16
    for (size_t x = 0; x < VF_LANES; x++) {
        if (j + x >= s->columns)
            return;
        ptrdiff_t column = (ptrdiff_t)(j + x);
        vf bias = s->column_bias != NULL ? vf_add(row_bias, vf_set1(s->column_bias[column])) : row_bias;
        finish_run(s, at->c + column * s->column_stride + i, at->from + column * s->from_column_stride + i,
                   square[x], bias, n);
    }
}

static void finish_columns(const mica_gemm_strip *s, const place *at, const float *sum, size_t rows)
{
    for (size_t j = 0; j < s->columns; j += VF_LANES) {
        size_t i = 0;
        for (; i + VF_LANES <= rows; i += VF_LANES)
            finish_square(s, at, sum, i, VF_LANES, j);
        if (i < rows)
            finish_square(s, at, sum, i, rows - i, j);
    }
}

/* Any strides. */
static void finish_any(const mica_gemm_strip *s, const place *at, const float *sum, size_t rows)
{
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < s->columns; j++) {
            ptrdiff_t row = (ptrdiff_t)i, column = (ptrdiff_t)j;
            float v = sum[i * TILE_COLUMNS + j] * s->alpha +
                      (s->row_bias != NULL ? s->row_bias[at->i + i] : 0.0f) +
                      (s->column_bias != NULL ? s->column_bias[j] : 0.0f);
            if (s->beta != 0.0f)
                v += s->beta * at->from[row * s->from_row_stride + column * s->from_column_stride];
            at->c[row * s->row_stride + column * s->column_stride] = v;
        }
    }
}

static void finish(const mica_gemm_strip *s, const place *at, const float *sum, size_t rows)
{
    if (s->column_stride == 1 && s->from_column_stride == 1)
        finish_rows(s, at, sum, rows);
    else if (s->row_stride == 1 && s->from_row_stride == 1)
        finish_columns(s, at, sum, rows);
    else
        finish_any(s, at, sum, rows);
}

/* Where vectors are wide, a strip of so few columns that one of them has them all is common: a batch of 16 times
 * weights as they lie. Its tiles are narrow: one vector wide. */
#define NARROW_TILES (VF_LANES >= 16 && TILE_VECTORS == 2)

static bool is_narrow(const mica_gemm_strip *s) { return NARROW_TILES && s->columns <= VF_LANES; }

/* Whether tiles are whole rows of c. */
static bool is_plain(const mica_gemm_strip *s)
{
    return s->columns == (is_narrow(s) ? VF_LANES : TILE_COLUMNS) && s->column_stride == 1 &&
           (s->beta == 0.0f || s->from_column_stride == 1);
}

/* ---- The tile ---- */

typedef struct sums {
    vf at[TILE_ROWS][TILE_VECTORS];
} sums;

/* sum += one column of A times one row of B, which is also copied where panel is not NULL. `rows`, `vectors`, and
 * whether it is, are constants where this is inlined. */
VF_INLINE void step(sums *sum, const lines *a, const float *b, float *panel, size_t rows, size_t vectors)
{
    vf row[TILE_VECTORS];
#pragma GCC unroll 4
    for (size_t j = 0; j < vectors; j++) {
        row[j] = vf_load(b + j * VF_LANES);
        if (panel != NULL)
            vf_store(panel + j * VF_LANES, row[j]);
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < rows; i++) {
        vf broadcast = vf_set1(lines_get(a, i));
#pragma GCC unroll 4
        for (size_t j = 0; j < vectors; j++)
            sum->at[i][j] = vf_fma(broadcast, row[j], sum->at[i][j]);
    }
}

/* Whole rows of c, straight from registers. Whether there is a bias is a constant where this is inlined. */
VF_INLINE void store_plain(const mica_gemm_strip *s, const place *at, const sums *sum, size_t rows,
                           size_t vectors, bool biased)
{
    vf alpha = vf_set1(s->alpha), beta = vf_set1(s->beta);
#pragma GCC unroll 16
    for (size_t i = 0; i < rows; i++) {
        float *to = at->c + (ptrdiff_t)i * s->row_stride;
        const float *from = at->from + (ptrdiff_t)i * s->from_row_stride;
        vf row_bias = vf_set1(biased && s->row_bias != NULL ? s->row_bias[at->i + i] : 0.0f);
#pragma GCC unroll 4
        for (size_t j = 0; j < vectors; j++) {
            vf bias = row_bias;
            if (biased && s->column_bias != NULL)
                bias = vf_add(bias, vf_load(s->column_bias + j * VF_LANES));
            vf v = biased ? vf_fma(sum->at[i][j], alpha, bias) : vf_mul(sum->at[i][j], alpha);
            if (s->beta != 0.0f)
                v = vf_fma(beta, vf_load(from + j * VF_LANES), v);
            vf_store(to + j * VF_LANES, v);
        }
    }
}

/* The same where there is nothing to do but store. */
VF_INLINE void store_sums(const mica_gemm_strip *s, const place *at, const sums *sum, size_t rows,
                          size_t vectors)
{
#pragma GCC unroll 16
    for (size_t i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (size_t j = 0; j < vectors; j++)
            vf_store(at->c + (ptrdiff_t)i * s->row_stride + j * VF_LANES, sum->at[i][j]);
}

/* Whether the sums are stored as they are. Built small, this is no case of its own. */
static bool is_bare(const mica_gemm_strip *s)
{
#if defined(MICA_SMALL)
    (void)s;
    return false;
#else
    return s->alpha == 1.0f && s->beta == 0.0f && s->row_bias == NULL && s->column_bias == NULL;
#endif
}

VF_INLINE void ask(asking *ahead)
{
    const void *line = (const void *)ahead->next; /* NOLINT(performance-no-int-to-ptr): it is not read by */
    __builtin_prefetch(line, 0, 2);
    ahead->next += LINE_BYTES;
    if (ahead->next == ahead->end) {
        ahead->next += ahead->gap;
        ahead->end += ahead->stride;
    }
}

/* `rows` rows of `vectors` from a place on, to c if the strip is plain, or else to the stage. What is not NULL in
 * `given` is asked for along the way. */
VF_UNROLLED void tile_of(const mica_gemm_strip *s, const place *at, size_t rows, size_t vectors, float *stage,
                         bool copies, asking *given)
{
    sums sum;
#pragma GCC unroll 16
    for (size_t i = 0; i < rows; i++) {
        /* c is needed when the sums are there: they take long enough for it to come. */
        if (stage == NULL)
            __builtin_prefetch(at->c + (ptrdiff_t)i * s->row_stride);
#pragma GCC unroll 4
        for (size_t j = 0; j < vectors; j++)
            sum.at[i][j] = vf_zero();
    }
    lines a = lines_at(at->a, s->a_row_stride, s->a_k_stride);
    const float *b = s->b;
    float *panel = s->b_panel;
    asking ahead = given != NULL ? *given : (asking){.lines = 0};
    ptrdiff_t b_k = s->b_stride;
    UNROLL_K
    for (size_t p = s->k; p > 0; p--, b += b_k) {
        lines_forget(&a);
        step(&sum, &a, b, copies ? panel : NULL, rows, vectors);
        lines_step(&a);
        if (copies)
            panel += TILE_COLUMNS;
        if (copies && VF_LANES * sizeof(float) >= LINE_BYTES && p > COPY_AHEAD)
            for (size_t j = 0; j < vectors; j++)
                __builtin_prefetch(b + COPY_AHEAD * b_k + j * VF_LANES, 0, 2);
        if (given != NULL)
            ask(&ahead);
    }
    if (given != NULL) {
        *given = ahead;
        given->lines -= mica_least(given->lines, s->k);
    }
    if (stage == NULL) {
        if (is_bare(s))
            store_sums(s, at, &sum, rows, vectors);
        else if (s->row_bias == NULL && s->column_bias == NULL)
            store_plain(s, at, &sum, rows, vectors, false);
        else
            store_plain(s, at, &sum, rows, vectors, true);
        return;
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (size_t j = 0; j < vectors; j++)
            vf_store(stage + i * TILE_COLUMNS + j * VF_LANES, sum.at[i][j]);
}

/* One case for each number of rows: nothing is computed in vain, and no row that is not there is read. */
#define TILE_CASE(n)                                    \
    case n:                                             \
        tile_of(s, at, n, vectors, stage, false, NULL); \
        break;

VF_INLINE void tile_of_any(const mica_gemm_strip *s, const place *at, size_t rows, size_t vectors,
                           float *stage)
{
    switch (rows) {
        TILE_CASE(1)
#if TILE_ROWS > 2
        TILE_CASE(2)
        TILE_CASE(3)
#endif
#if TILE_ROWS > 4
        TILE_CASE(4)
        TILE_CASE(5)
#endif
#if TILE_ROWS > 6
        TILE_CASE(6)
        TILE_CASE(7)
#endif
#if TILE_ROWS > 8
        TILE_CASE(8)
        TILE_CASE(9)
        TILE_CASE(10)
        TILE_CASE(11)
        TILE_CASE(12)
        TILE_CASE(13)
#endif
    default:
        tile_of(s, at, TILE_ROWS, vectors, stage, false, NULL);
    }
}

LINES_ALONE static void tile(const mica_gemm_strip *s, const place *at, size_t rows, float *stage)
{
    tile_of_any(s, at, rows, TILE_VECTORS, stage);
}

#if NARROW_TILES
LINES_ALONE static void narrow_tile(const mica_gemm_strip *s, const place *at, size_t rows, float *stage)
{
    tile_of_any(s, at, rows, 1, stage);
}
#endif

/* ---- The strip ---- */

/* Rows of sums that wait to be finished together. */
#define STAGE_ROWS ((size_t)8 * TILE_ROWS)

static void advance(const mica_gemm_strip *s, place *at, size_t rows)
{
    at->i += rows;
    at->a += s->a_packed ? (ptrdiff_t)(TILE_ROWS * s->k) : (ptrdiff_t)rows * s->a_row_stride;
    at->c += (ptrdiff_t)rows * s->row_stride;
    at->from += (ptrdiff_t)rows * s->from_row_stride;
}

/* Asks for what a stage will be added to, or written over, when its sums are there: they take long enough for it to
 * come. */
static void prefetch_stage(const mica_gemm_strip *s, const place *at)
{
    enum { LINE = 64 / sizeof(float) };
    bool reads = s->beta != 0.0f, turned = s->column_stride != 1;
    const float *c = reads ? at->from : at->c;
    ptrdiff_t row = reads ? s->from_row_stride : s->row_stride;
    ptrdiff_t column = reads ? s->from_column_stride : s->column_stride;
    size_t rows = s->rows - at->i < STAGE_ROWS ? s->rows - at->i : STAGE_ROWS;
    size_t runs = turned ? s->columns : rows, length = turned ? rows : s->columns;
    for (size_t i = 0; i < runs; i++, c += turned ? column : row)
        for (size_t j = 0; j < length; j += LINE)
            __builtin_prefetch(c + j);
}

/* Rows of A that lie a multiple of so many floats apart meet in one set of the first cache, which has not room for all
 * of a high tile: each turn would fetch them again. Tiles of fewer rows still keep the multipliers busy. */
#define CROWDED_FLOATS 1024
#define CROWDED_ROWS   (TILE_ROWS < 10 ? TILE_ROWS : 10)

static bool is_crowded(const mica_gemm_strip *s)
{
    return CROWDED_ROWS < TILE_ROWS && !s->a_packed && s->a_row_stride % CROWDED_FLOATS == 0;
}

/* How many of `left` rows the next tile takes. At the end two tiles of about the same height are better than a whole
 * one and a rest of few rows, whose sums wait for each other; packed panels have no choice. */
static size_t next_rows(const mica_gemm_strip *s, size_t left)
{
    if (is_crowded(s)) {
        size_t tiles = (left + CROWDED_ROWS - 1) / CROWDED_ROWS;
        return (left + tiles - 1) / tiles;
    }
    if (left <= TILE_ROWS)
        return left;
    return s->a_packed || left >= 2 * TILE_ROWS ? TILE_ROWS : (left + 1) / 2;
}

static asking begin_asking(const mica_gemm_strip *s)
{
#if ASKS_AHEAD
    const mica_gemm_ahead *ahead = &s->ahead;
    size_t count = (ahead->floats * sizeof(float) + LINE_BYTES - 1) / LINE_BYTES, length = count * LINE_BYTES;
    uintptr_t from = (uintptr_t)ahead->from, stride = (uintptr_t)ahead->stride * sizeof(float);
    if (ahead->from != NULL)
        return (asking){from, from + length, stride, stride - length, count * ahead->runs};
#else
    (void)s;
#endif
    return (asking){.lines = 0};
}

static void strip(const mica_gemm_strip *given)
{
    mica_gemm_strip s = *given;
    float room[STAGE_ROWS * TILE_COLUMNS], *stage = is_plain(&s) ? NULL : room;
    place at = {.a = s.a, .c = s.c, .from = s.from}, begin = at;
    asking ahead = begin_asking(&s);
    if (s.a_packed) {
        s.a_row_stride = 1;
        s.a_k_stride = TILE_ROWS;
    }
    while (at.i < s.rows) {
        bool copies = at.i == 0 && s.b_panel != NULL && s.rows >= 2 * TILE_ROWS;
        size_t rows = copies ? TILE_ROWS : next_rows(&s, s.rows - at.i);
        float *to = stage != NULL ? stage + (at.i - begin.i) * TILE_COLUMNS : NULL;
        if (to == room)
            prefetch_stage(&s, &at);
        if (copies) {
            tile_of(&s, &at, TILE_ROWS, TILE_VECTORS, to, true, NULL);
            s.b = s.b_panel;
            s.b_stride = TILE_COLUMNS;
#if NARROW_TILES
        } else if (is_narrow(&s)) {
            narrow_tile(&s, &at, rows, to);
#endif
        } else if (ASKS_AHEAD && rows == TILE_ROWS && to == NULL && ahead.lines > 0) {
            tile_of(&s, &at, TILE_ROWS, TILE_VECTORS, NULL, false, &ahead);
        } else if (ASKS_AHEAD && CROWDED_ROWS < TILE_ROWS && rows == CROWDED_ROWS && to == NULL &&
                   ahead.lines > 0) {
            tile_of(&s, &at, CROWDED_ROWS, TILE_VECTORS, NULL, false, &ahead);
        } else if (rows == TILE_ROWS && to == NULL) {
            tile_of(&s, &at, TILE_ROWS, TILE_VECTORS, NULL, false, NULL);
        } else {
            tile(&s, &at, rows, to);
        }
        advance(&s, &at, rows);
        bool full = at.i - begin.i + TILE_ROWS > STAGE_ROWS || at.i == s.rows;
        if (stage != NULL && full) {
            finish(&s, &begin, stage, at.i - begin.i);
            begin = at;
        }
    }
}

const mica_gemm_kernels VF_SYMBOL(mica_gemm_kernels) = {
    .tile_rows = TILE_ROWS,
    .tile_columns = TILE_COLUMNS,
    .strip = strip,
    .pack = pack,
    .rows_times_vector = rows_times_vector,
    .vector_times_rows = vector_times_rows,
#if !defined(MICA_SMALL)
    .row_times_panels = row_times_panels,
#if HAS_DOTS
    .dots = dots,
#endif
#endif
    .outer = outer,
};
