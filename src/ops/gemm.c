/* The blocked matrix product over packed panels. */
#include "ops/gemm.h"

#include "base/parallel.h"

/* Blocking, in elements. A panel of B (GEMM_K x one tile's columns) stays in the first cache while a block of
 * A (BLOCK_M x GEMM_K) stays in the second. All sizes are the same for every number of threads. */
#define GEMM_K  256
#define GEMM_M  1536
#define GEMM_N  2048
#define BLOCK_M 96
#define BLOCK_N 256
/* Panels packed in one block of parallel work. */
#define PACK_PANELS 8

/* One step of the product: rows m0 .. m0 + m, columns n0 .. n0 + n, over k0 .. k0 + k. */
typedef struct step {
    const mica_gemm *g;
    const mica_gemm_kernels *kernels;
    float *a_panels, *b_room;
    const float *b_panels; /* in b_room, or B's own */
    size_t m0, m, n0, n, k0, k;
    size_t block_m, block_n; /* multiples of the tile */
    bool pack_a, pack_b;     /* panels are not there yet */
    bool pack_along;         /* a panel of B is packed just before its one use, while the cache has it */
} step;

/* Packs the panel whose first vector is number `start` of the step's `count`, which begin at `first`. */
static void pack_panel(const step *s, const mica_gemm_operand *from, float *to, size_t width, size_t first,
                       size_t count, size_t start)
{
    size_t vectors = mica_least(count - start, width);
    if (from->pack != NULL)
        from->pack(from->source, to, width, first + start, vectors, s->k0, s->k);
    else
        s->kernels->pack(to, width,
                         from->data + (ptrdiff_t)(first + start) * from->vector_stride +
                             (ptrdiff_t)s->k0 * from->k_stride,
                         from->vector_stride, from->k_stride, vectors, s->k);
}

static size_t a_panels_to_pack(const step *s)
{
    return s->pack_a ? mica_div_up(s->m, s->kernels->tile_rows) : 0;
}

static size_t b_panels_to_pack(const step *s)
{
    return s->pack_b && !s->pack_along ? mica_div_up(s->n, s->kernels->tile_columns) : 0;
}

/* Packs PACK_PANELS panels: those of B come first, then those of A. */
static void pack_block(void *work, size_t block, int thread)
{
    (void)thread;
    const step *s = work;
    size_t b_panels = b_panels_to_pack(s), a_panels = a_panels_to_pack(s);
    size_t end = mica_least((block + 1) * PACK_PANELS, b_panels + a_panels);
    size_t columns = s->kernels->tile_columns, rows = s->kernels->tile_rows;
    for (size_t panel = block * PACK_PANELS; panel < end; panel++) {
        size_t column = panel * columns, row = (panel - b_panels) * rows;
        if (panel < b_panels)
            pack_panel(s, &s->g->b, s->b_room + column * s->k, columns, s->n0, s->n, column);
        else
            pack_panel(s, &s->g->a, s->a_panels + row * s->k, rows, s->m0, s->m, row);
    }
}

/* One tile, at row i and column j of the step, with that panel of B. */
static void run_tile(const step *s, size_t i, size_t j, const float *b)
{
    const mica_gemm *g = s->g;
    bool first = s->k0 == 0, last = s->k0 + s->k == g->k;
    size_t row = s->m0 + i, column = s->n0 + j;
    mica_gemm_tile out = {
        .c = g->c + (ptrdiff_t)row * g->row_stride + (ptrdiff_t)column * g->column_stride,
        .row_stride = g->row_stride,
        .column_stride = g->column_stride,
        .rows = mica_least(s->m - i, s->kernels->tile_rows),
        .columns = mica_least(s->n - j, s->kernels->tile_columns),
        .alpha = g->alpha,
        .beta = first ? g->beta : 1.0f,
        .row_bias = last && g->row_bias != NULL ? g->row_bias + row : NULL,
        .column_bias = last && g->column_bias != NULL ? g->column_bias + column : NULL,
    };
    s->kernels->tile(&out, s->a_panels + i * s->k, b, s->k);
}

/* Applies the finishing function to some rows and columns of c, which were written just now and are still in
 * the cache. */
static void finish_rows(const mica_gemm *g, size_t row, size_t rows, size_t column, size_t columns)
{
    for (size_t i = 0; i < rows; i++) {
        float *c = g->c + (ptrdiff_t)(row + i) * g->row_stride + column;
        g->finish(c, (const float *const[]){c}, columns, g->finish_params);
    }
}

/* Computes one block of c: a panel of B against all panels of a block of A. */
static void multiply_block(void *work, size_t block, int thread)
{
    (void)thread;
    const step *s = work;
    size_t blocks_m = mica_div_up(s->m, s->block_m);
    size_t i0 = block % blocks_m * s->block_m, j0 = block / blocks_m * s->block_n;
    size_t i1 = mica_least(i0 + s->block_m, s->m), j1 = mica_least(j0 + s->block_n, s->n);
    size_t width = s->kernels->tile_columns;
    for (size_t j = j0; j < j1; j += width) {
        float *along = s->b_room + j0 * s->k; /* all of a block's panels in the place of its first */
        if (s->pack_along)
            pack_panel(s, &s->g->b, along, width, s->n0, s->n, j);
        const float *b = s->pack_along ? along : s->b_panels + j * s->k;
        for (size_t i = i0; i < i1; i += s->kernels->tile_rows)
            run_tile(s, i, j, b);
    }
    if (s->g->finish != NULL && s->k0 + s->k == s->g->k)
        finish_rows(s->g, s->m0 + i0, i1 - i0, s->n0 + j0, j1 - j0);
}

/* ctx == NULL: on this thread alone. */
static void each_block(mica_context *ctx, size_t blocks, mica_block_fn *fn, void *work)
{
    if (ctx != NULL) {
        mica_parallel(ctx, blocks, fn, work);
        return;
    }
    for (size_t block = 0; block < blocks; block++)
        fn(work, block, 0);
}

static void run_step(mica_context *ctx, step *s)
{
    size_t panels = a_panels_to_pack(s) + b_panels_to_pack(s);
    each_block(ctx, mica_div_up(panels, PACK_PANELS), pack_block, s);
    each_block(ctx, mica_div_up(s->m, s->block_m) * mica_div_up(s->n, s->block_n), multiply_block, s);
}

/* An empty sum: c = beta * c + bias. */
static void run_without_k(const mica_gemm *g)
{
    for (size_t i = 0; i < g->m; i++) {
        for (size_t j = 0; j < g->n; j++) {
            float *c = g->c + (ptrdiff_t)i * g->row_stride + (ptrdiff_t)j * g->column_stride;
            float bias = (g->row_bias != NULL ? g->row_bias[i] : 0.0f) +
                         (g->column_bias != NULL ? g->column_bias[j] : 0.0f);
            *c = g->beta != 0.0f ? g->beta * *c + bias : bias;
        }
    }
}

/* ---- Matrix times vector: nothing to pack, bound by the memory that the matrix takes ---- */

/* y = alpha * m x + beta * y + bias, where m is `rows` x k. */
typedef struct vector_job {
    const mica_gemm_kernels *kernels;
    const float *m, *x, *bias;
    ptrdiff_t m_row_stride, m_k_stride, x_stride, y_stride;
    float *y;
    size_t rows, k, block_rows;
    float alpha, beta;
} vector_job;

/* Elements of the matrix in one block of parallel work. */
#define VECTOR_BLOCK ((size_t)65536)

static void vector_block(void *work, size_t block, int thread)
{
    (void)thread;
    const vector_job *v = work;
    size_t first = block * v->block_rows, rows = mica_least(v->block_rows, v->rows - first);
    float *y = v->y + (ptrdiff_t)first * v->y_stride;
    const float *m = v->m + (ptrdiff_t)first * v->m_row_stride;
    if (v->m_k_stride == 1 && v->x_stride == 1)
        v->kernels->rows_times_vector(y, v->y_stride, m, v->m_row_stride, v->x, rows, v->k, v->alpha,
                                      v->beta);
    else
        v->kernels->vector_times_rows(y, v->x, v->x_stride, m, v->m_k_stride, v->k, rows, v->alpha, v->beta);
    if (v->bias != NULL)
        for (size_t i = 0; i < rows; i++)
            y[(ptrdiff_t)i * v->y_stride] += v->bias[first + i];
}

/* Whether the product has a single row or column that a vector kernel can take as it lies; fills *v if so. */
static bool as_vector(const mica_gemm *g, const mica_gemm_kernels *kernels, vector_job *v)
{
    if (g->a.pack != NULL || g->b.pack != NULL || g->b.panels != NULL || (g->m != 1 && g->n != 1))
        return false;
    bool column = g->n ==
                  1; /* A times a column; otherwise a row times B, which is B transposed times a column */
    const mica_gemm_operand *matrix = column ? &g->a : &g->b, *vector = column ? &g->b : &g->a;
    if ((column ? g->column_bias : g->row_bias) != NULL)
        return false;
    *v = (vector_job){.kernels = kernels,
                      .m = matrix->data,
                      .x = vector->data,
                      .bias = column ? g->row_bias : g->column_bias,
                      .m_row_stride = matrix->vector_stride,
                      .m_k_stride = matrix->k_stride,
                      .x_stride = vector->k_stride,
                      .y_stride = column ? g->row_stride : g->column_stride,
                      .y = g->c,
                      .rows = column ? g->m : g->n,
                      .k = g->k,
                      .alpha = g->alpha,
                      .beta = g->beta};
    v->block_rows = mica_round_up(VECTOR_BLOCK / g->k + 1, kernels->tile_columns);
    return (v->m_k_stride == 1 && v->x_stride == 1) || (v->m_row_stride == 1 && v->y_stride == 1);
}

/* ---- The whole ---- */

/* Where the panels of A end in the scratch, in floats; those of B follow. */
static size_t a_floats(const mica_gemm_kernels *kernels, size_t m, size_t k)
{
    return mica_align_up(mica_round_up(mica_least(m, GEMM_M), kernels->tile_rows) * mica_least(k, GEMM_K) *
                         sizeof(float)) /
           sizeof(float);
}

static void run(mica_context *ctx, const mica_kernels *kernels, const mica_gemm *g, void *scratch)
{
    if (g->m == 0 || g->n == 0)
        return;
    if (g->k == 0) {
        run_without_k(g);
        if (g->finish != NULL)
            finish_rows(g, 0, g->m, 0, g->n);
        return;
    }
    const mica_gemm_kernels *gemm = kernels->gemm;
    vector_job v;
    if (as_vector(g, gemm, &v)) {
        each_block(ctx, mica_div_up(v.rows, v.block_rows), vector_block, &v);
        if (g->finish != NULL)
            finish_rows(g, 0, g->m, 0, g->n);
        return;
    }
    step s = {.g = g,
              .kernels = gemm,
              .a_panels = scratch,
              .b_room = (float *)scratch + a_floats(gemm, g->m, g->k),
              .pack_b = g->b.panels == NULL,
              .block_m = mica_round_up(BLOCK_M, gemm->tile_rows),
              .block_n = mica_round_up(BLOCK_N, gemm->tile_columns)};
    for (s.m0 = 0; s.m0 < g->m; s.m0 += s.m) {
        s.m = mica_least(g->m - s.m0, GEMM_M / gemm->tile_rows * gemm->tile_rows);
        s.pack_along = s.pack_b && s.m <= s.block_m;
        for (s.k0 = 0; s.k0 < g->k; s.k0 += s.k) {
            s.k = mica_least(g->k - s.k0, GEMM_K);
            for (s.n0 = 0; s.n0 < g->n; s.n0 += s.n) {
                s.n = mica_least(g->n - s.n0, GEMM_N / gemm->tile_columns * gemm->tile_columns);
                s.pack_a = s.n0 == 0;
                s.b_panels = s.pack_b
                                 ? s.b_room
                                 : g->b.panels + s.k0 * mica_round_up(g->n, gemm->tile_columns) + s.n0 * s.k;
                run_step(ctx, &s);
            }
        }
    }
}

size_t mica_gemm_panels_bytes(const mica_context *ctx, size_t n, size_t k)
{
    return mica_align_up(mica_round_up(n, ctx->kernels->gemm->tile_columns) * k * sizeof(float));
}

void mica_gemm_pack_b(mica_context *ctx, float *panels, const mica_gemm_operand *b, size_t n, size_t k)
{
    mica_gemm g = {.n = n, .k = k, .b = *b};
    step s = {.g = &g, .kernels = ctx->kernels->gemm, .n = n, .pack_b = true};
    for (; s.k0 < k; s.k0 += s.k) {
        s.k = mica_least(k - s.k0, GEMM_K);
        s.b_room = panels + s.k0 * mica_round_up(n, s.kernels->tile_columns);
        each_block(ctx, mica_div_up(b_panels_to_pack(&s), PACK_PANELS), pack_block, &s);
    }
}

size_t mica_gemm_scratch(const mica_context *ctx, size_t m, size_t n, size_t k)
{
    const mica_gemm_kernels *gemm = ctx->kernels->gemm;
    if (m == 0 || n == 0 || k == 0)
        return 0;
    size_t b_floats = mica_round_up(mica_least(n, GEMM_N), gemm->tile_columns) * mica_least(k, GEMM_K);
    return mica_align_up((a_floats(gemm, m, k) + b_floats) * sizeof(float));
}

void mica_gemm_run(mica_context *ctx, const mica_gemm *g, void *scratch)
{
    run(g->m * g->n * g->k >= MICA_GEMM_SMALL ? ctx : NULL, ctx->kernels, g, scratch);
}

void mica_gemm_run_serial(const mica_kernels *kernels, const mica_gemm *g, void *scratch)
{
    run(NULL, kernels, g, scratch);
}
