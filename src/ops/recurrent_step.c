/* Sequences through their steps, the same forward and backward.
 *
 * They do not need each other. Where there are enough of them, each thread takes its own through all steps,
 * and threads meet only at the end; otherwise they share every step, and a block of work is some units of all
 * sequences.
 *
 * Either way a step goes through W_hh, whose panels are packed once, a tile's columns of units at a time: the
 * product for all gates of these units, then their cell, while what the product wrote is in the first cache. */
#include "base/parallel.h"
#include "ops/recurrent.h"

#include <string.h>

/* Multiply-adds of a block of one sequence. */
#define SINGLE_SUMS ((size_t)32768)
/* Steps of k in one strip: its rows stay in the first cache, and its panel in the second. */
#define STRIP_K 384
/* Where the cell is work of its own, a block has so many units or more. */
#define CELL_UNITS 2048

/* ---- Panels ---- */

/* A panel holds one tile's columns of one run; those of all runs follow one another, as a block takes them. The first
 * unit is a multiple of the width. */
static float *panel_at(const mica_recurrent_product *p, size_t width, size_t unit, size_t run)
{
    return p->panels + (unit * p->runs + run * width) * p->k;
}

size_t mica_recurrent_panels(mica_context *ctx, const mica_recurrent *r, size_t inputs)
{
    size_t units = mica_round_up(r->hidden, MICA_FAMILY(ctx->kernels, gemm)->tile_columns);
    return units * r->blocks * (inputs + r->hidden);
}

/* Packs a tile's columns of units of one run. */
static void pack_units(const mica_recurrent_step *s, float *panel, const mica_gemm_operand *w, size_t k,
                       size_t run, size_t unit)
{
    size_t hidden = s->cell.hidden, width = s->gemm->tile_columns;
    s->gemm->pack(panel, width, w->data + (ptrdiff_t)(run * hidden + unit) * w->vector_stride,
                  w->vector_stride, w->k_stride, mica_least(hidden - unit, width), k);
}

static void pack_block(void *work, size_t block, int thread)
{
    (void)thread;
    const mica_recurrent_step *s = work;
    const mica_recurrent_product *p = &s->product;
    size_t width = s->gemm->tile_columns, unit = block * width;
    for (size_t run = 0; run < p->runs; run++) {
        float *panel = panel_at(p, width, unit, run);
        size_t k = p->k;
#if !defined(MICA_SMALL)
        if (p->inputs > 0)
            pack_units(s, panel, &p->input_weights, p->inputs, run, unit);
        panel += p->inputs * width;
        k -= p->inputs;
#endif
        pack_units(s, panel, &p->weights, k, run, unit);
    }
}

void mica_recurrent_start(mica_context *ctx, const mica_recurrent *r, mica_recurrent_step *s)
{
    s->gemm = MICA_FAMILY(ctx->kernels, gemm);
    s->cell.hidden = r->hidden;
    s->kept = r->kept;
    if (s->product.panels != NULL && s->product.weights.data != NULL)
        mica_parallel(ctx, mica_div_up(r->hidden, s->gemm->tile_columns), pack_block, s);
}

/* ---- Steps ---- */

/* Whether the product is that of [x h']. */
static bool is_joined(const mica_recurrent_step *s)
{
#if defined(MICA_SMALL)
    (void)s;
    return false;
#else
    return s->product.inputs > 0;
#endif
}

/* Terms of the product: zeros add none, but there may be a bias. */
static size_t terms(const mica_recurrent_product *p)
{
#if !defined(MICA_SMALL)
    if (p->inputs_alone)
        return p->inputs;
#endif
    return p->from.data != NULL ? p->k : 0;
}

#if !defined(MICA_SMALL)
/* The same of one sequence: all runs at once, since the panels come from the second cache as fast as it gives them. */
static void multiply_one(const mica_recurrent_step *s, size_t unit, size_t units)
{
    const mica_recurrent_product *p = &s->product;
    size_t width = s->gemm->tile_columns, k = terms(p), hidden = s->cell.hidden;
    ptrdiff_t row = (ptrdiff_t)s->row;
    float *to = p->to.data + row * p->to.stride + unit;
    for (size_t run = 0; p->beta == 0.0f && run < p->runs; run++)
        for (size_t i = 0; i < units; i++)
            to[run * hidden + i] = p->bias != NULL ? p->bias[run * hidden + unit + i] : 0.0f;
    for (size_t k0 = 0; k0 < k; k0 += STRIP_K)
        s->gemm->row_times_panels(to, hidden, panel_at(p, width, unit, 0) + k0 * width, width * p->k,
                                  p->from.data + row * p->from.stride + k0, p->runs,
                                  mica_least(k - k0, STRIP_K), units);
}
#endif

#if !defined(MICA_SMALL)
/* Elements k0 .. k0 + k - 1 of rows of [x h'] and of [W_ih W_hh], those of the latter from `column` on. */
static void set_parts(mica_gemm_dots *d, const mica_recurrent_step *s, size_t column, size_t k0, size_t k)
{
    const mica_recurrent_product *p = &s->product;
    size_t from_x = k0 < p->inputs ? mica_least(p->inputs - k0, k) : 0, from = k0 + from_x - p->inputs;
    const mica_gemm_operand *w_ih = &p->input_weights, *w_hh = &p->weights;
    const mica_gemm_dots_part none = {.k = 0};
    d->part[0] = d->part[1] = none;
    if (from_x > 0)
        d->part[0] = (mica_gemm_dots_part){.a = p->x.data + (ptrdiff_t)s->row * p->x.stride + k0,
                                           .b = w_ih->data + (ptrdiff_t)column * w_ih->vector_stride + k0,
                                           .a_stride = p->x.stride,
                                           .b_stride = w_ih->vector_stride,
                                           .k = from_x};
    if (from_x < k)
        d->part[1] = (mica_gemm_dots_part){.a = p->from.data + (ptrdiff_t)s->row * p->from.stride + from,
                                           .b = w_hh->data + (ptrdiff_t)column * w_hh->vector_stride + from,
                                           .a_stride = p->from.stride,
                                           .b_stride = w_hh->vector_stride,
                                           .k = k - from_x};
}

static void multiply_dots(const mica_recurrent_step *s, size_t unit, size_t units)
{
    const mica_recurrent_product *p = &s->product;
    size_t k = p->inputs + (p->from.data != NULL ? p->k : 0);
    for (size_t run = 0; run < p->runs; run++) {
        size_t column = run * s->cell.hidden + unit, k0 = 0;
        mica_gemm_dots d = {.rows = s->rows,
                            .columns = units,
                            .c = p->to.data + (ptrdiff_t)s->row * p->to.stride + column,
                            .stride = p->to.stride,
                            .bias = p->bias != NULL ? p->bias + column : NULL,
                            .adds = p->beta != 0.0f};
        do {
            set_parts(&d, s, column, k0, mica_least(k - k0, STRIP_K));
            s->gemm->dots(&d);
            d.adds = true;
            k0 += STRIP_K;
        } while (k0 < k);
    }
}
#endif

/* The product for one tile's columns of units. */
static void multiply(const mica_recurrent_step *s, size_t unit, size_t units)
{
    const mica_recurrent_product *p = &s->product;
    size_t width = s->gemm->tile_columns, k = terms(p);
    ptrdiff_t row = (ptrdiff_t)s->row;
#if !defined(MICA_SMALL)
    if (p->dots) {
        multiply_dots(s, unit, units);
        return;
    }
    if (s->rows == 1 && p->runs > 1) {
        multiply_one(s, unit, units);
        return;
    }
#endif
    for (size_t run = 0; run < p->runs; run++) {
        size_t column = run * s->cell.hidden + unit, k0 = 0;
        float *c = p->to.data + row * p->to.stride + column;
        do {
            s->gemm->strip(&(mica_gemm_strip){
                .rows = s->rows,
                .columns = units,
                .k = mica_least(k - k0, STRIP_K),
                .a = p->from.data + row * p->from.stride + k0,
                .a_row_stride = p->from.stride,
                .a_k_stride = 1,
                .b = panel_at(p, width, unit, run) + k0 * width,
                .b_stride = (ptrdiff_t)width,
                .c = c,
                .row_stride = p->to.stride,
                .column_stride = 1,
                .from = c,
                .from_row_stride = p->to.stride,
                .from_column_stride = 1,
                .alpha = 1.0f,
                .beta = k0 == 0 ? p->beta : 1.0f,
                .column_bias = k0 == 0 && p->bias != NULL ? p->bias + column : NULL,
            });
            k0 += STRIP_K;
        } while (k0 < k);
    }
}

/* Asks for n columns of all rows. */
static void fetch(const mica_recurrent_step *s, const mica_cell_rows *from, size_t column, size_t n)
{
    enum { LINE = MICA_ALIGN / sizeof(float), SECOND_CACHE = 2 };
    for (size_t i = s->row; from->data != NULL && i < s->row + s->rows; i++)
        for (size_t j = 0; j < n; j += LINE)
            __builtin_prefetch(from->data + (ptrdiff_t)i * from->stride + column + j, 0, SECOND_CACHE);
}

/* Asks for what the cell will need when the product is done: a few columns of many rows, which no cache expects. */
static void fetch_cell(const mica_recurrent_step *s, size_t unit, size_t units)
{
    for (size_t column = unit; column < s->kept; column += s->cell.hidden)
        fetch(s, &s->cell.gates, column, units);
    fetch(s, &s->cell.c_before, unit, units);
    fetch(s, &s->cell.dy, unit, units);
}

#if !defined(MICA_SMALL)
/* A block's share of the next step's inputs, put where that reads them: whole rows. */
static void copy_inputs(const mica_recurrent_step *s, size_t block)
{
    size_t blocks = mica_div_up(s->cell.hidden, s->gemm->tile_columns);
    size_t first = s->row + s->rows * block / blocks, end = s->row + s->rows * (block + 1) / blocks;
    for (size_t i = first; s->next_x.data != NULL && i < end; i++)
        memcpy(s->next.data + (ptrdiff_t)i * s->next.stride, s->next_x.data + (ptrdiff_t)i * s->next_x.stride,
               s->product.inputs * sizeof(float));
}
#endif

static void fused_block(void *work, size_t block, int thread)
{
    (void)thread;
    const mica_recurrent_step *s = work;
    size_t unit = block * s->gemm->tile_columns;
    size_t units = mica_least(s->cell.hidden - unit, s->gemm->tile_columns);
    if (!is_joined(s)) /* whose gates are only written */
        fetch_cell(s, unit, units);
    if (s->product.to.data != NULL)
        multiply(s, unit, units);
    if (s->kernel != NULL)
        s->kernel(&s->cell, s->row, s->rows, unit, units);
#if !defined(MICA_SMALL)
    copy_inputs(s, block);
#endif
}

#if !defined(MICA_SMALL)
/* ---- One sequence: W_hh as it lies, its rows by the state ---- */

/* Whether a step is that of one sequence, whose product needs no panels. */
static bool is_single(const mica_recurrent_step *s)
{
    const mica_recurrent_product *p = &s->product;
    return s->rows == 1 && s->kernel != NULL && p->to.data != NULL && terms(p) > 0 &&
           p->weights.k_stride == 1;
}

/* Units of a block: no sum depends on them. */
static size_t single_units(const mica_context *ctx, const mica_recurrent_step *s)
{
    const mica_recurrent_product *p = &s->product;
    double sums = (double)s->cell.hidden * ((double)(p->runs * p->k) + MICA_CELL_SUMS);
    if (ctx == NULL || ctx->threads == 1 || sums < MICA_RECURRENT_SHARED_ONE)
        return s->cell.hidden;
    return mica_round_up(mica_div_up(SINGLE_SUMS, p->runs * p->k), MICA_ALIGN / sizeof(float));
}

typedef struct single_job {
    const mica_recurrent_step *s;
    size_t units; /* of a block */
} single_job;

static void single_block(void *work, size_t block, int thread)
{
    (void)thread;
    const single_job *j = work;
    const mica_recurrent_step *s = j->s;
    const mica_recurrent_product *p = &s->product;
    size_t hidden = s->cell.hidden, unit = block * j->units, units = mica_least(hidden - unit, j->units);
    bool all = units == hidden; /* gates follow one another */
    ptrdiff_t row = (ptrdiff_t)s->row;
    for (size_t run = 0; run < (all ? 1 : p->runs); run++) {
        size_t column = run * hidden + unit, count = all ? p->runs * hidden : units;
        float *to = p->to.data + row * p->to.stride + column;
        s->gemm->rows_times_vector(to, 1, p->weights.data + (ptrdiff_t)column * p->weights.vector_stride,
                                   p->weights.vector_stride, p->from.data + row * p->from.stride, count, p->k,
                                   1.0f, p->beta);
        for (size_t i = 0; p->bias != NULL && i < count; i++)
            to[i] += p->bias[column + i];
    }
    s->kernel(&s->cell, s->row, 1, unit, units);
}

#endif

static void multiply_all(mica_context *ctx, const mica_recurrent_step *s)
{
    const mica_recurrent_product *p = &s->product;
    mica_gemm g = {.m = s->rows,
                   .n = p->runs * s->cell.hidden,
                   .k = terms(p),
                   .a = {.data = p->from.data, .vector_stride = p->from.stride, .k_stride = 1},
                   .b = p->weights,
                   .c = p->to.data,
                   .row_stride = p->to.stride,
                   .column_stride = 1,
                   .alpha = 1.0f,
                   .beta = p->beta,
                   .column_bias = p->bias};
    mica_gemm_run(ctx, &g, s->gemm_scratch);
}

static size_t cell_rows(const mica_recurrent_step *s)
{
    return mica_round_up(CELL_UNITS / (s->cell.hidden + 1) + 1, MICA_CELL_GROUP);
}

static void cell_block(void *work, size_t block, int thread)
{
    (void)thread;
    const mica_recurrent_step *s = work;
    size_t rows = cell_rows(s), row = block * rows;
    s->kernel(&s->cell, row, mica_least(s->rows - row, rows), 0, s->cell.hidden);
}

/* Whether a block is some units of all sequences, with their cell. */
static bool is_fused(const mica_recurrent_step *s)
{
#if !defined(MICA_SMALL)
    if (s->product.dots)
        return true;
#endif
    return s->product.panels != NULL;
}

void mica_recurrent_run(mica_context *ctx, mica_recurrent_step *s)
{
    const mica_recurrent_product *p = &s->product;
    if (is_fused(s)) {
        mica_parallel(mica_recurrent_shares(s) ? ctx : NULL,
                      mica_div_up(s->cell.hidden, s->gemm->tile_columns), fused_block, s);
        return;
    }
#if !defined(MICA_SMALL)
    if (is_single(s)) {
        single_job j = {s, single_units(ctx, s)};
        mica_parallel(ctx, mica_div_up(s->cell.hidden, j.units), single_block, &j);
        return;
    }
#endif
    if (p->to.data != NULL)
        multiply_all(ctx, s);
    if (s->kernel != NULL)
        mica_parallel(ctx, mica_div_up(s->rows, cell_rows(s)), cell_block, s);
}

/* ---- Sequences ---- */

typedef struct rows_job {
    mica_recurrent_fn *fn;
    const void *job;
    size_t count, batch; /* sequences of a block, and in all */
} rows_job;

static void rows_block(void *work, size_t block, int thread)
{
    (void)thread;
    const rows_job *j = work;
    size_t row = block * j->count;
    j->fn(NULL, j->job, row, mica_least(j->batch - row, j->count));
}

void mica_recurrent_each(mica_context *ctx, const mica_recurrent *r, size_t least, mica_recurrent_fn *fn,
                         const void *job)
{
    size_t share = mica_div_up(r->batch, (size_t)ctx->threads);
    rows_job j = {.fn = fn, .job = job, .batch = r->batch};
    j.count = mica_least(mica_round_up(share, MICA_CELL_GROUP), MICA_RECURRENT_MOST_ROWS);
    bool fused = mica_recurrent_dots(r) || mica_recurrent_packs(r);
    if (fused && (ctx->threads == 1 || mica_recurrent_enough(r, share, least)))
        mica_parallel(ctx, mica_div_up(j.batch, j.count), rows_block, &j);
    else
        fn(ctx, job, 0, r->batch);
}
