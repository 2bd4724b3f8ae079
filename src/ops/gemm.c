/* The blocked matrix product. */
#include "ops/gemm.h"

#include "base/parallel.h"
#include "ops/gemm_vector.h"

/* Blocking, in elements. A panel of B (GEMM_K x one tile's columns) stays in the first cache while a block of
 * A (BLOCK_M x GEMM_K) stays in the second. All sizes are the same for every number of threads. */
#define GEMM_K  256
#define GEMM_M  1536
#define GEMM_N  2048
#define BLOCK_M 144
#define BLOCK_N 256
/* Up to so many columns of the product, or with so few elements, A is read as it lies. */
#define READ_N      384
#define READ_FLOATS ((size_t)16384)
/* Up to so many columns for each step of k, a larger A that lies the wrong way is worth turning the product for. */
#define TURN_COLUMNS 2
/* Rows of B within so many floats are read as they lie: the first cache has them all. */
#define NEAR_FLOATS ((size_t)4096)
/* Panels packed in one block of parallel work. */
#define PACK_PANELS 8
/* Up to so many rows of blocks each packs its own panels of B. */
#define ALONG_BLOCKS 2
/* For several threads a product is cut into so many blocks for each, as long as they keep that many multiply-adds. */
#define BLOCKS_EACH 8
#define BLOCK_SUMS  ((size_t)1 << 19)

/* One step of the product: rows m0 .. m0 + m, columns n0 .. n0 + n, over k0 .. k0 + k. */
typedef struct step {
    mica_gemm g;
    bool turned; /* g is the product's transpose: its c is what was asked for, with rows as columns */
    const mica_gemm_kernels *kernels;
    size_t threads;
    float *a_panels, *b_room;
    const float *b_panels; /* in b_room, or B's own */
    size_t m0, m, n0, n, k0, k;
    size_t block_m, block_n; /* multiples of the tile */
    bool a_packed;           /* otherwise A is read as it lies */
    bool pack_a, pack_b;     /* panels are not there yet */
    bool pack_along;         /* a panel of B is packed by the block that uses it */
} step;

/* ---- Packing ---- */

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
            pack_panel(s, &s->g.b, s->b_room + column * s->k, columns, s->n0, s->n, column);
        else
            pack_panel(s, &s->g.a, s->a_panels + row * s->k, rows, s->m0, s->m, row);
    }
}

/* ---- Multiplying ---- */

/* The strip at row i and column j of the step, but for b. */
static mica_gemm_strip strip_at(const step *s, size_t i, size_t rows, size_t j)
{
    const mica_gemm *g = &s->g;
    bool first = s->k0 == 0, last = s->k0 + s->k == g->k;
    ptrdiff_t row = (ptrdiff_t)(s->m0 + i), column = (ptrdiff_t)(s->n0 + j);
    float *c = g->c + row * g->row_stride + column * g->column_stride;
    return (mica_gemm_strip){
        .rows = rows,
        .columns = mica_least(s->n - j, s->kernels->tile_columns),
        .k = s->k,
        .a = s->a_packed ? s->a_panels + i * s->k
                         : g->a.data + row * g->a.vector_stride + (ptrdiff_t)s->k0 * g->a.k_stride,
        .a_row_stride = g->a.vector_stride,
        .a_k_stride = g->a.k_stride,
        .a_packed = s->a_packed,
        .c = c,
        .row_stride = g->row_stride,
        .column_stride = g->column_stride,
        .from = first ? g->from + row * g->from_row_stride + column * g->from_column_stride : c,
        .from_row_stride = first ? g->from_row_stride : g->row_stride,
        .from_column_stride = first ? g->from_column_stride : g->column_stride,
        .alpha = g->alpha,
        .beta = first ? g->beta : 1.0f,
        .row_bias = last && g->row_bias != NULL ? g->row_bias + row : NULL,
        .column_bias = last && g->column_bias != NULL ? g->column_bias + column : NULL,
    };
}

/* Points the strip at its panel of B, which is packed into `along`, at once or by the strip's own first tile, if
 * it is not there. */
static void set_panel(const step *s, mica_gemm_strip *t, size_t j, float *along)
{
    const mica_gemm_operand *b = &s->g.b;
    size_t width = s->kernels->tile_columns;
    t->b_stride = (ptrdiff_t)width;
    if (!s->pack_along) {
        t->b = s->b_panels + j * s->k;
    } else if (b->pack == NULL && b->vector_stride == 1 && t->columns == width) {
        t->b = b->data + (ptrdiff_t)(s->n0 + j) + (ptrdiff_t)s->k0 * b->k_stride;
        t->b_stride = b->k_stride;
        t->b_panel = s->k * (size_t)b->k_stride <= NEAR_FLOATS ? NULL : along;
    } else {
        pack_panel(s, b, along, width, s->n0, s->n, j);
        t->b = along;
    }
}

/* Applies the finishing function to a block of c, which was written just now and is still in the cache. */
static void finish_block(const step *s, size_t row, size_t rows, size_t column, size_t columns)
{
    const mica_gemm *g = &s->g;
    float *c = g->c + (ptrdiff_t)row * g->row_stride + (ptrdiff_t)column * g->column_stride;
    size_t runs = s->turned ? columns : rows, length = s->turned ? rows : columns;
    for (size_t i = 0; i < runs; i++, c += s->turned ? g->column_stride : g->row_stride)
        g->finish(c, (const float *const[]){c}, length, g->finish_params);
}

/* Computes one block of c: strip by strip, each a panel of B against all rows of a block of A. */
static void multiply_block(void *work, size_t block, int thread)
{
    (void)thread;
    const step *s = work;
    size_t blocks_m = mica_div_up(s->m, s->block_m);
    size_t width = s->kernels->tile_columns;
    size_t i0 = block % blocks_m * s->block_m, j0 = block / blocks_m * s->block_n;
    size_t i1 = mica_least(i0 + s->block_m, s->m), j1 = mica_least(j0 + s->block_n, s->n);
    float *along = s->b_room + block * width * s->k;
    for (size_t j = j0; j < j1; j += width) {
        mica_gemm_strip t = strip_at(s, i0, i1 - i0, j);
        set_panel(s, &t, j, along);
        s->kernels->strip(&t);
    }
    if (s->g.finish != NULL && s->k0 + s->k == s->g.k)
        finish_block(s, s->m0 + i0, i1 - i0, s->n0 + j0, j1 - j0);
}

static void run_step(mica_context *ctx, step *s)
{
    size_t panels = a_panels_to_pack(s) + b_panels_to_pack(s);
    size_t blocks = mica_div_up(s->m, s->block_m) * mica_div_up(s->n, s->block_n);
    double sums = (double)s->m * (double)s->n * (double)s->k;
    mica_parallel_sums(ctx, sums, mica_div_up(panels, PACK_PANELS), pack_block, s);
    mica_parallel_sums(ctx, sums, blocks, multiply_block, s);
}

/* ---- The plan ---- */

/* Where the panels of A end in the scratch, in floats; those of B follow. */
static size_t a_floats(const mica_gemm_kernels *kernels, size_t m, size_t k)
{
    return mica_align_up(mica_round_up(mica_least(m, GEMM_M), kernels->tile_rows) * mica_least(k, GEMM_K) *
                         sizeof(float)) /
           sizeof(float);
}

static size_t b_floats(const mica_gemm_kernels *kernels, size_t n, size_t k)
{
    return mica_round_up(mica_least(n, GEMM_N), kernels->tile_columns) * mica_least(k, GEMM_K);
}

/* cT = bT aT */
static mica_gemm transpose(const mica_gemm *g)
{
    mica_gemm t = *g;
    t.m = g->n;
    t.n = g->m;
    t.a = g->b;
    t.b = g->a;
    t.row_stride = g->column_stride;
    t.column_stride = g->row_stride;
    t.from_row_stride = g->from_column_stride;
    t.from_column_stride = g->from_row_stride;
    t.row_bias = g->column_bias;
    t.column_bias = g->row_bias;
    return t;
}

/* Whether the transpose is less work. Its cost is that tiles of c are turned on their way out.
 *
 * - c's columns are contiguous: then there is no such cost;
 * - B would have to be turned, and is so much larger than A that turning A is less;
 * - A would have to be packed, and is larger than B: B's part is packed along the way. */
static bool turns(const mica_gemm *g)
{
    const mica_gemm_operand *a = &g->a, *b = &g->b;
    if (b->panels != NULL)
        return false;
    if (g->column_stride != 1)
        return g->row_stride == 1;
    if (b->pack == NULL && b->vector_stride != 1)
        return g->n > 2 * g->m;
    return a->pack == NULL && a->vector_stride == 1 && g->m > g->n &&
           g->n <= TURN_COLUMNS * mica_least(g->k, GEMM_K);
}

/* Whether A is read as it lies: where its rows are contiguous, and each is used too little to be worth packing, or
 * all of them stay in the cache. */
static bool reads_a(const mica_gemm *g)
{
    return g->b.panels == NULL && g->a.pack == NULL && g->a.k_stride == 1 &&
           (g->n <= READ_N || g->m * mica_least(g->k, GEMM_K) <= READ_FLOATS);
}

/* Cuts a step into blocks that the caches hold, and for several threads into so many that each finds something to do.
 * The sums are the same however it is cut. */
static void cut(step *s)
{
    size_t rows = s->kernels->tile_rows, columns = s->kernels->tile_columns;
    size_t parts_m = mica_div_up(s->m, BLOCK_M), parts_n = 1;
    size_t sums = s->m * s->n * s->k, least = mica_least(sums / s->threads, BLOCK_SUMS);
    if (parts_m > 1)
        parts_n = mica_div_up(s->n, BLOCK_N);
    while (s->threads > 1 && parts_m * parts_n < BLOCKS_EACH * s->threads &&
           sums / (parts_m * parts_n) > least) {
        size_t m = s->m / parts_m, n = s->n / parts_n;
        if (n >= 2 * columns)
            parts_n *= 2;
        else if (m >= 2 * rows)
            parts_m *= 2;
        else
            break;
    }
    s->block_m = mica_round_up(mica_div_up(s->m, parts_m), s->a_packed ? rows : 1);
    s->block_n = mica_round_up(mica_div_up(s->n, parts_n), columns);
}

/* Whether each block packs the panels of B that it uses, instead of all blocks sharing them. That saves a round
 * of all threads; but if there are several rows of blocks, packing must cost no more than the reading, and each
 * block needs a panel's room. */
static bool packs_along(const step *s)
{
    const mica_gemm_operand *b = &s->g.b;
    size_t blocks_m = mica_div_up(s->m, s->block_m), blocks_n = mica_div_up(s->n, s->block_n);
    size_t panels = mica_div_up(s->n, s->kernels->tile_columns);
    return blocks_m == 1 || (blocks_m <= ALONG_BLOCKS && b->pack == NULL && b->vector_stride == 1 &&
                             blocks_m * blocks_n <= panels);
}

static void run_steps(mica_context *ctx, step *s)
{
    const mica_gemm *g = &s->g;
    size_t rows = s->kernels->tile_rows, columns = s->kernels->tile_columns;
    for (s->m0 = 0; s->m0 < g->m; s->m0 += s->m) {
        s->m = mica_least(g->m - s->m0, GEMM_M / rows * rows);
        for (s->k0 = 0; s->k0 < g->k; s->k0 += s->k) {
            s->k = mica_least(g->k - s->k0, GEMM_K);
            for (s->n0 = 0; s->n0 < g->n; s->n0 += s->n) {
                s->n = mica_least(g->n - s->n0, GEMM_N / columns * columns);
                cut(s);
                s->pack_a = s->a_packed && s->n0 == 0;
                s->pack_along = s->pack_b && packs_along(s);
                s->b_panels = s->pack_b ? s->b_room
                                        : g->b.panels + s->k0 * mica_round_up(g->n, columns) + s->n0 * s->k;
                run_step(ctx, s);
            }
        }
    }
}

static void run(mica_context *ctx, const mica_kernels *kernels, const mica_gemm *given, void *scratch)
{
    if (given->m == 0 || given->n == 0)
        return;
    const mica_gemm_kernels *gemm = kernels->gemm;
    step s = {.g = *given, .kernels = gemm, .threads = ctx != NULL ? (size_t)ctx->threads : 1};
    if (given->from == NULL) {
        s.g.from = given->c;
        s.g.from_row_stride = given->row_stride;
        s.g.from_column_stride = given->column_stride;
    }
    if (mica_gemm_vector_run(ctx, gemm, &s.g)) {
        if (given->finish != NULL)
            finish_block(&s, 0, given->m, 0, given->n);
        return;
    }
    s.turned = turns(given);
    if (s.turned)
        s.g = transpose(&s.g);
    s.a_packed = !reads_a(&s.g);
    s.pack_b = s.g.b.panels == NULL;
    s.a_panels = scratch;
    s.b_room = (float *)scratch + a_floats(gemm, s.g.m, s.g.k);
    run_steps(ctx, &s);
}

/* ---- What others call ---- */

size_t mica_gemm_panels_bytes(const mica_context *ctx, size_t n, size_t k)
{
    return mica_align_up(mica_round_up(n, ctx->kernels->gemm->tile_columns) * k * sizeof(float));
}

void mica_gemm_pack_b(mica_context *ctx, float *panels, const mica_gemm_operand *b, size_t n, size_t k)
{
    step s = {.g = {.n = n, .k = k, .b = *b}, .kernels = ctx->kernels->gemm, .n = n, .pack_b = true};
    for (; s.k0 < k; s.k0 += s.k) {
        s.k = mica_least(k - s.k0, GEMM_K);
        s.b_room = panels + s.k0 * mica_round_up(n, s.kernels->tile_columns);
        mica_parallel(ctx, mica_div_up(b_panels_to_pack(&s), PACK_PANELS), pack_block, &s);
    }
}

size_t mica_gemm_scratch(const mica_context *ctx, size_t m, size_t n, size_t k)
{
    const mica_gemm_kernels *gemm = ctx->kernels->gemm;
    if (m == 0 || n == 0 || k == 0)
        return 0;
    size_t straight = a_floats(gemm, m, k) + b_floats(gemm, n, k);
    size_t turned = a_floats(gemm, n, k) + b_floats(gemm, m, k);
    return mica_align_up(mica_most(straight, turned) * sizeof(float));
}

void mica_gemm_run(mica_context *ctx, const mica_gemm *g, void *scratch)
{
    run(ctx, ctx->kernels, g, scratch);
}

void mica_gemm_run_serial(const mica_kernels *kernels, const mica_gemm *g, void *scratch)
{
    run(NULL, kernels, g, scratch);
}
