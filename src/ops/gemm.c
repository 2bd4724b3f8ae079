/* The blocked matrix product.
 *
 * For each run of k, and each GEMM_N columns: B's panels go to the room that all threads share, packed by the blocks
 * of the first rows on their way; a block of A, which its rows of c need and nobody else, goes to its thread's own
 * room, where the second cache keeps it. */
#include "ops/gemm.h"

#include <assert.h>

#include "base/parallel.h"
#include "ops/gemm_vector.h"

/* Blocking, in elements. A panel of B (GEMM_K x one tile's columns) stays in the first cache while a block of
 * A (as many rows as most_rows() gives x GEMM_K) stays in the second. MICA_GEMM_RUN decides in which order a sum is
 * made, so it is the same everywhere. */
#define GEMM_K MICA_GEMM_RUN
#define GEMM_N 1024
/* Up to so many columns of the product, any number where rows are near and B is packed already, or with so few
 * elements, A is read as it lies. */
#define READ_N      512
#define NEAR_ROWS   512
#define READ_FLOATS ((size_t)16384)
/* Up to so many columns for each step of k, a larger A that lies the wrong way is worth turning the product for. */
#define TURN_COLUMNS 2
/* Rows of B within so many floats are read as they lie: the first cache has them all. */
#define NEAR_FLOATS ((size_t)4096)
/* For several threads a product is cut into so many blocks for each, as long as they keep that many
 * multiply-adds, and a panel of B that many tiles to be used for. */
#define BLOCKS_EACH 2
#define BLOCK_SUMS  ((size_t)1 << 20)
#define LEAST_TILES 4

/* A thread's block of A. */
typedef struct a_room {
    size_t held; /* which block it is, counted from 1 over all steps of k; 0: none */
    _Alignas(MICA_ALIGN) float panels[];
} a_room;

/* One step of the product: all rows, columns n0 .. n0 + n, over k0 .. k0 + k. */
typedef struct step {
    mica_gemm g;
    bool turned; /* g is the product's transpose: its c is what was asked for, with rows as columns */
    const mica_gemm_kernels *kernels;
    size_t threads;
    size_t most_rows; /* of a block of A */
    char *a_rooms;    /* one of a_bytes for each thread */
    size_t a_bytes;
    float *b_room;
    size_t n0, n, k0, k;
    size_t block_m, block_n;     /* block_m of a packed A, and block_n: multiples of the tile */
    size_t first_row, row_count; /* the rows of blocks that run now */
    bool a_packed;               /* otherwise A is read as it lies */
    bool b_packed;               /* B's panels are there */
    bool b_alone;                /* every block packs the panels that it uses, for itself */
} step;

/* ---- Packing ---- */

/* The panels of a matrix that is packed already; NULL if it is not. */
static const float *packed_of(const mica_gemm_operand *o)
{
#if defined(MICA_SMALL)
    (void)o;
    return NULL; /* none ever is */
#else
    return o->packed;
#endif
}

/* Where those of this step begin that hold vector number `first` of the matrix, and the ones behind it. */
static const float *panels_at(const step *s, const mica_gemm_operand *o, size_t width, size_t vectors,
                              size_t first)
{
    return packed_of(o) + s->k0 * mica_round_up(vectors, width) + first * s->k;
}

/* Packs the panel of a matrix whose vectors are number `first` and those behind it, up to `end`. */
static void pack_panel(const step *s, const mica_gemm_operand *from, float *to, size_t width, size_t first,
                       size_t end)
{
    size_t vectors = mica_least(end - first, width);
    if (from->pack != NULL)
        from->pack(from->source, to, width, first, vectors, s->k0, s->k);
    else
        s->kernels->pack(to, width,
                         from->data + (ptrdiff_t)first * from->vector_stride +
                             (ptrdiff_t)s->k0 * from->k_stride,
                         from->vector_stride, from->k_stride, vectors, s->k);
}

/* A block of A takes up to half of the second cache: panels of B pass through it, and tiles of c. But it has at least
 * LEAST_TILES. */
static size_t most_rows(const mica_context *ctx, size_t k)
{
    size_t rows = ctx->second_cache / 2 / (mica_least(k, GEMM_K) * sizeof(float)),
           tile = MICA_FAMILY(ctx->kernels, gemm)->tile_rows;
    return mica_most(rows / tile, LEAST_TILES) * tile;
}

/* Room for any such block of so many rows: it grows with each of its numbers, though a larger k makes lower blocks. */
static size_t a_room_bytes(const mica_context *ctx, size_t m, size_t k)
{
    size_t tile = MICA_FAMILY(ctx->kernels, gemm)->tile_rows, steps = mica_least(k, GEMM_K);
    size_t most = mica_most(ctx->second_cache / 2, LEAST_TILES * tile * steps * sizeof(float));
    return mica_align_up(sizeof(a_room) + mica_least(mica_round_up(m, tile) * steps * sizeof(float), most));
}

static a_room *a_room_of(const step *s, size_t thread)
{
    return (a_room *)(s->a_rooms + thread * s->a_bytes);
}

/* The panels of rows i .. end of A, a whole block, in the thread's room. It may still have them: from the block of c
 * before, or the columns before. */
static const float *packed_block(const step *s, size_t i, size_t end, int thread)
{
    size_t width = s->kernels->tile_rows, number = s->k0 / GEMM_K * s->g.m + i + 1;
    if (packed_of(&s->g.a) != NULL)
        return panels_at(s, &s->g.a, width, s->g.m, i);
    a_room *room = a_room_of(s, (size_t)thread);
    if (room->held != number)
        for (size_t row = i; row < end; row += width)
            pack_panel(s, &s->g.a, room->panels + (row - i) * s->k, width, row, end);
    room->held = number;
    return room->panels;
}

/* ---- Multiplying ---- */

/* The strip of rows i .. end at column j of the step, but for a and b. */
static mica_gemm_strip strip_at(const step *s, size_t i, size_t end, size_t j)
{
    const mica_gemm *g = &s->g;
    bool first = s->k0 == 0, last = s->k0 + s->k == g->k;
    ptrdiff_t row = (ptrdiff_t)i, column = (ptrdiff_t)(s->n0 + j);
    float *c = g->c + row * g->row_stride + column * g->column_stride;
    return (mica_gemm_strip){
        .rows = end - i,
        .columns = mica_least(s->n - j, s->kernels->tile_columns),
        .k = s->k,
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

/* Points the strip at its rows of A: packed ones if `panels` is not NULL. */
static void set_rows(const step *s, mica_gemm_strip *t, size_t i, const float *panels)
{
    const mica_gemm_operand *a = &s->g.a;
    t->a_packed = panels != NULL;
    t->a = panels != NULL ? panels
                          : a->data + (ptrdiff_t)i * a->vector_stride + (ptrdiff_t)s->k0 * a->k_stride;
    t->a_row_stride = a->vector_stride;
    t->a_k_stride = a->k_stride;
}

/* What is read behind the strip: see mica_gemm_ahead. */
static void ask_ahead(mica_gemm_strip *t, const float *from, size_t runs, size_t floats, ptrdiff_t stride)
{
#if defined(MICA_SMALL)
    (void)t, (void)from, (void)runs, (void)floats, (void)stride; /* memory is near */
#else
    t->ahead = (mica_gemm_ahead){from, runs, floats, stride};
#endif
}

/* Points the strip at its panel of B, which is packed now, or by the strip's own first tile, if it is not there. */
static void set_panel(const step *s, mica_gemm_strip *t, size_t j, int thread)
{
    const mica_gemm_operand *b = &s->g.b;
    size_t width = s->kernels->tile_columns, floats = width * s->k;
    bool whole = b->pack == NULL && b->vector_stride == 1 && t->columns == width;
    bool near = whole && s->k * (size_t)b->k_stride <= NEAR_FLOATS;
    if (packed_of(b) != NULL) {
        t->b = panels_at(s, b, width, s->g.n, s->n0 + j);
        t->b_stride = (ptrdiff_t)width;
        if (s->n0 + j + width < s->g.n || s->k0 + 2 * s->k <= s->g.k) /* the next panel lies behind it */
            ask_ahead(t, t->b + floats, 1, floats, 0);
        return;
    }
    float *panel = s->b_room + (s->b_alone ? (size_t)thread * floats : j * s->k);
    t->b = panel;
    t->b_stride = (ptrdiff_t)width;
    if (near || (whole && !s->b_packed && t->rows >= 2 * s->kernels->tile_rows)) {
        t->b = b->data + (ptrdiff_t)(s->n0 + j) + (ptrdiff_t)s->k0 * b->k_stride;
        t->b_stride = b->k_stride;
        t->b_panel = near ? NULL : panel;
        if (!near && s->n0 + j + 2 * width <= s->g.n)
            ask_ahead(t, t->b + width, s->k, width, b->k_stride);
    } else if (!s->b_packed) {
        pack_panel(s, b, panel, width, s->n0 + j, s->n0 + s->n);
    }
}

/* Rows i and behind of A, which the next block packs. */
static void ask_rows(const step *s, mica_gemm_strip *t, size_t i)
{
    const mica_gemm_operand *a = &s->g.a;
    if (i < s->g.m && a->pack == NULL && a->k_stride == 1 && packed_of(a) == NULL)
        ask_ahead(t, a->data + (ptrdiff_t)i * a->vector_stride + (ptrdiff_t)s->k0,
                  mica_least(s->block_m, s->g.m - i), s->k, a->vector_stride);
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
    const step *s = work;
    size_t width = s->kernels->tile_columns;
    size_t i = (s->first_row + block % s->row_count) * s->block_m, j0 = block / s->row_count * s->block_n;
    size_t end = mica_least(i + s->block_m, s->g.m), j1 = mica_least(j0 + s->block_n, s->n);
    const float *panels = s->a_packed ? packed_block(s, i, end, thread) : NULL;
    for (size_t j = j0; j < j1; j += width) {
        mica_gemm_strip t = strip_at(s, i, end, j);
        set_rows(s, &t, i, panels);
        set_panel(s, &t, j, thread);
        if (s->a_packed && j + width >= j1)
            ask_rows(s, &t, end);
        s->kernels->strip(&t);
    }
    if (s->g.finish != NULL && s->k0 + s->k == s->g.k)
        finish_block(s, i, end - i, s->n0 + j0, j1 - j0);
}

/* `count` rows of blocks from `first` on, by all threads. */
static void run_rows(mica_context *crew, step *s, size_t first, size_t count)
{
    size_t rows = mica_least(count * s->block_m, s->g.m), blocks = count * mica_div_up(s->n, s->block_n);
    s->first_row = first;
    s->row_count = count;
    mica_parallel_sums(crew, (double)rows * (double)s->n * (double)s->k, blocks, multiply_block, s);
}

/* The first rows pack B for all others. Not so where one block could have all rows: the scratch has no room for
 * more than a panel each; nor where the first rows would keep few threads busy, as in a product of few columns:
 * then every block packs for itself. */
static void run_step(mica_context *crew, step *s)
{
    size_t blocks_m = mica_div_up(s->g.m, s->block_m), blocks_n = mica_div_up(s->n, s->block_n);
    s->b_packed = packed_of(&s->g.b) != NULL;
    s->b_alone = s->b_packed || s->g.m <= s->most_rows || blocks_n < s->threads;
    if (s->b_alone) {
        run_rows(crew, s, 0, blocks_m);
        return;
    }
    run_rows(crew, s, 0, 1);
    s->b_packed = true;
    run_rows(crew, s, 1, blocks_m - 1);
}

/* ---- The plan ---- */

/* Panels of B in the scratch: all of a step, or one for each thread. */
static size_t b_room_bytes(const mica_gemm_kernels *kernels, size_t panels, size_t k)
{
    return mica_align_up(panels * kernels->tile_columns * mica_least(k, GEMM_K) * sizeof(float));
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

/* What the layout alone says of computing the transpose instead. */
typedef enum turning { NEVER, BY_SIZE, ALWAYS } turning;

static turning may_turn(const mica_gemm *g)
{
    if (packed_of(&g->a) != NULL || packed_of(&g->b) != NULL)
        return NEVER; /* they are packed for their sides */
    if (g->column_stride != 1)
        return g->row_stride == 1 ? ALWAYS : NEVER;
    bool turned_b = g->b.pack == NULL && g->b.vector_stride != 1;
    /* With both strides 1, as of a single column, rows are taken as contiguous: those of a longer k are. */
    bool turned_a = g->a.pack == NULL && g->a.vector_stride == 1 && g->a.k_stride != 1;
    return turned_b || turned_a ? BY_SIZE : NEVER;
}

/* Whether the transpose is less work. Its cost is that tiles of c are turned on their way out.
 *
 * - c's columns are contiguous: then there is no such cost;
 * - B would have to be turned, and is so much larger than A that turning A is less;
 * - A would have to be packed, and is larger than B: B's part is packed along the way. */
static bool turns(const mica_gemm *g)
{
    turning may = may_turn(g);
    if (may != BY_SIZE)
        return may == ALWAYS;
    if (g->b.pack == NULL && g->b.vector_stride != 1)
        return g->n > 2 * g->m;
    return g->m > g->n && g->n <= TURN_COLUMNS * mica_least(g->k, GEMM_K);
}

/* Whether the left side, of m rows, is read as it lies for n columns: where its rows are contiguous, and each is
 * used too little to be worth packing, or all of them stay in the cache. */
static bool reads(const mica_gemm_operand *left, const mica_gemm_operand *right, size_t m, size_t n, size_t k)
{
    bool near = left->vector_stride <= NEAR_ROWS && packed_of(right) != NULL;
    return packed_of(left) == NULL && left->pack == NULL && left->k_stride == 1 &&
           (n <= READ_N || near || m * mica_least(k, GEMM_K) <= READ_FLOATS);
}

/* Cuts a step into blocks that the caches hold, and for several threads into so many that each finds
 * something to do. Where there are several rows of blocks a thread keeps to columns of its own, whose panels
 * it has packed: they need not come from another core. A small product is cut by rows: parts of a short row of c
 * that two cores write are fetched by each other's prefetchers. The sums are the same however it is cut. */
static void cut(step *s)
{
    size_t rows = s->kernels->tile_rows, columns = s->kernels->tile_columns, m = s->g.m;
    size_t parts_m = mica_div_up(m, s->most_rows);
    size_t parts_n = parts_m > 1 ? mica_least(s->threads, mica_div_up(s->n, columns)) : 1;
    assert(s->threads > 0);
    size_t sums = m * s->n * s->k, least = mica_least(sums / s->threads, BLOCK_SUMS);
    bool rows_first = sums / s->threads <= BLOCK_SUMS;
    while (s->threads > 1 && parts_m * parts_n < BLOCKS_EACH * s->threads &&
           sums / (parts_m * parts_n) > least) {
        bool more_rows = m / parts_m >= LEAST_TILES * rows, more_columns = s->n / parts_n >= 2 * columns;
        if (more_columns && (rows_first ? !more_rows : parts_m == 1))
            parts_n *= 2;
        else if (more_rows)
            parts_m *= 2;
        else
            break;
    }
    s->block_m = mica_round_up(mica_div_up(m, parts_m), s->a_packed ? rows : 1);
    s->block_n = mica_round_up(mica_div_up(s->n, parts_n), columns);
}

static void run_steps(mica_context *crew, step *s)
{
    const mica_gemm *g = &s->g;
    size_t columns = s->kernels->tile_columns;
    for (size_t thread = 0; s->a_packed && packed_of(&g->a) == NULL && thread < s->threads; thread++)
        a_room_of(s, thread)->held = 0;
    for (s->k0 = 0; s->k0 < g->k; s->k0 += s->k) {
        s->k = mica_least(g->k - s->k0, GEMM_K);
        for (s->n0 = 0; s->n0 < g->n; s->n0 += s->n) {
            s->n = mica_least(g->n - s->n0, GEMM_N / columns * columns);
            cut(s);
            run_step(crew, s);
        }
    }
}

/* The finishing function for all of c, whose rows are contiguous. */
static void finish_all(const mica_gemm *g)
{
    float *c = g->c;
    for (size_t i = 0; g->finish != NULL && i < g->m; i++, c += g->row_stride)
        g->finish(c, (const float *const[]){c}, g->n, g->finish_params);
}

/* With all threads, or without a crew on this one alone. */
static void run(const mica_context *ctx, mica_context *crew, const mica_gemm *given, void *scratch)
{
    if (given->m == 0 || given->n == 0)
        return;
    const mica_gemm_kernels *kernels = MICA_FAMILY(ctx->kernels, gemm);
    mica_gemm g = *given;
    if (g.from == NULL) {
        g.from = g.c;
        g.from_row_stride = g.row_stride;
        g.from_column_stride = g.column_stride;
    }
    bool turned = turns(&g);
    if (turned)
        g = transpose(&g);
    if (mica_gemm_vector_run(crew, kernels, &g)) {
        finish_all(given);
        return;
    }
    step s = {.g = g,
              .turned = turned,
              .kernels = kernels,
              .threads = crew != NULL ? (size_t)crew->threads : 1,
              .a_rooms = scratch};
    s.most_rows = most_rows(ctx, s.g.k);
    s.a_bytes = a_room_bytes(ctx, s.g.m, s.g.k);
    s.a_packed = !reads(&s.g.a, &s.g.b, s.g.m, s.g.n, s.g.k);
    s.b_room = (float *)a_room_of(&s, s.a_packed && packed_of(&s.g.a) == NULL ? s.threads : 0);
    run_steps(crew, &s);
}

/* ---- What others call ---- */

/* Of a product that is not turned any more, by so many threads. Grows with each of its numbers. Room for panels of A,
 * and of B, only where they are packed in it. */
static size_t scratch_bytes(const mica_context *ctx, size_t threads, size_t m, size_t n, size_t k,
                            bool a_packed, bool b_packed)
{
    const mica_gemm_kernels *kernels = MICA_FAMILY(ctx->kernels, gemm);
    size_t panels = m > most_rows(ctx, k) ? mica_div_up(mica_least(n, GEMM_N), kernels->tile_columns) : 0;
    return (a_packed ? threads * a_room_bytes(ctx, m, k) : 0) +
           (b_packed ? b_room_bytes(kernels, mica_most(panels, threads), k) : 0);
}

static size_t scratch_of(const mica_context *ctx, const mica_gemm *g, size_t threads)
{
    if (g->m == 0 || g->n == 0 || g->k == 0)
        return 0;
    turning may = may_turn(g);
    size_t straight = 0, turned = 0;
    if (may != ALWAYS)
        straight = scratch_bytes(ctx, threads, g->m, g->n, g->k,
                                 packed_of(&g->a) == NULL && !reads(&g->a, &g->b, g->m, g->n, g->k),
                                 packed_of(&g->b) == NULL);
    if (may != NEVER)
        turned = scratch_bytes(ctx, threads, g->n, g->m, g->k, !reads(&g->b, &g->a, g->n, g->m, g->k), true);
    return mica_most(straight, turned);
}

size_t mica_gemm_scratch(const mica_context *ctx, const mica_gemm *g)
{
    return scratch_of(ctx, g, (size_t)ctx->threads);
}

size_t mica_gemm_serial_scratch(const mica_context *ctx, const mica_gemm *g) { return scratch_of(ctx, g, 1); }

/* The panels of a whole step of B are there where A has more rows than a block; then a small product has few
 * columns, of little depth. */
size_t mica_gemm_each_scratch(const mica_context *ctx, const mica_gemm *g)
{
    const mica_gemm_kernels *kernels = MICA_FAMILY(ctx->kernels, gemm);
    size_t k = mica_least(mica_most(g->k, 1), GEMM_K);
    size_t few = (MICA_GEMM_SMALL / most_rows(ctx, k) + kernels->tile_columns * k) * sizeof(float);
    size_t block = a_room_bytes(ctx, mica_most(g->m, g->n), k);
    return mica_least(mica_gemm_serial_scratch(ctx, g), block + mica_align_up(few));
}

size_t mica_gemm_batch_scratch(const mica_context *ctx, const mica_gemm *g, size_t count)
{
    size_t one = count > 0 ? mica_gemm_scratch(ctx, g) : 0;
    return count > 1 ? mica_most(one, mica_gemm_each_scratch(ctx, g) * (size_t)ctx->threads) : one;
}

size_t mica_gemm_most_scratch(const mica_context *ctx, size_t m, size_t n, size_t k)
{
    if (m == 0 || n == 0 || k == 0)
        return 0;
    size_t threads = (size_t)ctx->threads;
    return mica_most(scratch_bytes(ctx, threads, m, n, k, true, true),
                     scratch_bytes(ctx, threads, n, m, k, true, true));
}

void mica_gemm_run(mica_context *ctx, const mica_gemm *g, void *scratch) { run(ctx, ctx, g, scratch); }

void mica_gemm_run_serial(const mica_context *ctx, const mica_gemm *g, void *scratch)
{
    run(ctx, NULL, g, scratch);
}

#if !defined(MICA_SMALL)
/* ---- Packing once ---- */

typedef struct packing {
    step s; /* its kernels; each block sets a run of k */
    const mica_gemm_operand *from;
    float *panels;
    size_t width, vectors, k;
} packing;

static size_t packing_width(const mica_context *ctx, bool left)
{
    const mica_gemm_kernels *kernels = MICA_FAMILY(ctx->kernels, gemm);
    return left ? kernels->tile_rows : kernels->tile_columns;
}

size_t mica_gemm_packed_floats(const mica_context *ctx, size_t vectors, size_t k, bool left)
{
    return mica_round_up(vectors, packing_width(ctx, left)) * k;
}

/* One panel. */
static void pack_block(void *work, size_t block, int thread)
{
    (void)thread;
    const packing *p = work;
    size_t count = mica_div_up(p->vectors, p->width), first = block % count * p->width;
    step s = p->s;
    s.k0 = block / count * GEMM_K;
    s.k = mica_least(p->k - s.k0, GEMM_K);
    pack_panel(&s, p->from, p->panels + s.k0 * count * p->width + first * s.k, p->width, first, p->vectors);
}

void mica_gemm_pack(mica_context *ctx, float *panels, const mica_gemm_operand *from, size_t vectors, size_t k,
                    bool left)
{
    packing p = {.s = {.kernels = MICA_FAMILY(ctx->kernels, gemm)},
                 .from = from,
                 .panels = panels,
                 .width = packing_width(ctx, left),
                 .vectors = vectors,
                 .k = k};
    mica_parallel(ctx, mica_div_up(vectors, p.width) * mica_div_up(k, GEMM_K), pack_block, &p);
}

#endif
