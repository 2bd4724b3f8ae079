/* 3 x 3 convolution of int8 images with stride 1, by tiles of 4 x 4 results: a quarter of the products, each of numbers
 * twice as wide (kernel/int8_winograd.h). Images have their channels last. Weights are packed for tiles in addition to
 * the other way, which small images still take: tiles read 36 numbers of 16 bits for nine bytes of weights.
 *
 * Scratch, for each thread: 36 planes of tiles by channels | 36 planes of sums of a panel | a tile at an edge. */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "ops/int8_conv.h"

#if !defined(MICA_SMALL)

#define POINTS ((size_t)MICA_INT8_POINTS)
#define ROOM   ((size_t)768 << 10) /* bytes of planes of a thread */
#define WHOLE  ((size_t)32) /* channels are a multiple of this: whole panels and vectors of every set */
enum { EDGE = 6, MADE = 4, TAPS = 3, MOST_TILES = 56 };

/* ---- Weights ---- */

typedef struct sections {
    size_t panels, usable_at, w_at, panel_bytes;
} sections;

static sections sections_of(const mica_int8_packing *p, const mica_int8_kernels *kernels)
{
    sections s = {.panels = p->out / kernels->panel};
    s.usable_at = p->tiled_at + p->out * sizeof(int32_t);
    s.w_at = mica_align_up(s.usable_at + s.panels * sizeof(int32_t));
    s.panel_bytes = POINTS * p->in * kernels->panel * sizeof(int16_t);
    return s;
}

void mica_int8_add_tiles(mica_int8_packing *p, const mica_int8_kernels *kernels)
{
    if (kernels->pairs_cost == 0 || p->linear || !p->panels || p->taps[0] != TAPS || p->taps[1] != TAPS ||
        p->in % WHOLE != 0 || p->out % WHOLE != 0 || p->in == 0 || p->out == 0)
        return;
    p->tiled_at = mica_align_up(p->bytes);
    sections s = sections_of(p, kernels);
    p->bytes = p->most = s.w_at + s.panels * s.panel_bytes;
}

typedef struct tiles_job {
    const mica_int8_packing *p;
    const mica_int8_kernels *kernels;
    const int8_t *w;
    const int32_t *bias;
    char *to;
    int32_t zero;
} tiles_job;

/* G w, of three weights `step` apart; see kernel/int8_winograd.h. */
static void spread_three(int *to, size_t to_step, const int *w, size_t step)
{
    int a = w[0], b = w[step], c = w[2 * step];
    to[0] = 6 * a;
    to[to_step] = -4 * (a + b + c);
    to[2 * to_step] = -4 * (a - b + c);
    to[3 * to_step] = a + 2 * b + 4 * c;
    to[4 * to_step] = a - 2 * b + 4 * c;
    to[5 * to_step] = 12 * c;
}

static void spread_weights(int to[EDGE * EDGE], const int8_t *w)
{
    int taps[TAPS * TAPS], down[EDGE * TAPS];
    for (size_t k = 0; k < (size_t)TAPS * TAPS; k++)
        taps[k] = w[k] == INT8_MIN ? -127 : w[k];
    for (size_t c = 0; c < TAPS; c++)
        spread_three(down + c, TAPS, taps + c, TAPS);
    for (size_t r = 0; r < EDGE; r++)
        spread_three(to + r * EDGE, 1, down + r * TAPS, 1);
}

static void pack_panel(void *work, size_t panel, int thread)
{
    (void)thread;
    const tiles_job *job = work;
    const mica_int8_packing *p = job->p;
    size_t width = job->kernels->panel;
    sections s = sections_of(p, job->kernels);
    int32_t *start = (int32_t *)(void *)(job->to + p->tiled_at),
            *usable = (int32_t *)(void *)(job->to + s.usable_at);
    int16_t *to = (int16_t *)(void *)(job->to + s.w_at + panel * s.panel_bytes);
    usable[panel] = 1;
    for (size_t c = panel * width; c < (panel + 1) * width; c++) {
        int32_t sum = 0, size = 0; /* of at most MICA_INT8_PRODUCTS */
        for (size_t k = 0; k < p->values; k++) {
            int32_t one = job->w[c * p->values + k] == INT8_MIN ? -127 : job->w[c * p->values + k];
            sum += one;
            size += one < 0 ? -one : one;
        }
        start[c] = (int32_t)((uint32_t)job->bias[c] - (uint32_t)job->zero * (uint32_t)sum);
        if (size >= MICA_INT8_TILED_SUM / 128)
            usable[panel] = 0;
        for (size_t in = 0; in < p->in; in++) {
            int points[EDGE * EDGE];
            spread_weights(points, job->w + c * p->values + in * TAPS * TAPS);
            for (size_t k = 0; k < POINTS; k++)
                to[((k * (p->in / 2) + in / 2) * width + c % width) * 2 + in % 2] = (int16_t)points[k];
        }
    }
}

void mica_int8_pack_tiles(mica_context *ctx, const mica_int8_packing *p, void *to, const int8_t *w,
                          const int32_t *bias, int32_t zero)
{
    tiles_job job = {p, MICA_FAMILY(ctx->kernels, int8), w, bias, to, zero};
    sections s = sections_of(p, job.kernels);
    mica_parallel_sums(ctx, (double)(s.panels * s.panel_bytes), s.panels, pack_panel, &job);
}

void mica_int8_take_tiles(mica_int8_job *job, const mica_tensor *packed)
{
    mica_int8_packing tiled = job->packing;
    mica_int8_add_tiles(&tiled, job->kernels);
    if (packed != NULL && packed->rank == 1 && packed->dim[0] == (mica_index)tiled.bytes)
        job->packing = tiled;
}

/* ---- Whether it is faster ---- */

/* Measured, in units of a product of vectors: a vector transformed to tiles, and one from them; a byte of weights from
 * a cache that cores share, and one from memory. */
#define TO_TILE     200.0
#define FROM_TILE   220.0
#define WEIGHT_BYTE 0.1
#define FAR_BYTE    0.3
#define FAR         8e6 /* from so many bytes on, weights come from memory */

/* The most tiles of a block. */
static size_t tiles_at_once(const mica_int8_kernels *kernels, const mica_int8_packing *p)
{
    size_t one = POINTS * (p->in * sizeof(int16_t) + kernels->panel * sizeof(int32_t));
    return mica_most(mica_least(ROOM / one, MOST_TILES), kernels->pairs_rows);
}

static bool tiles_pay(const mica_int8_kernels *kernels, const mica_int8_packing *p, size_t batch,
                      mica_index rows, mica_index columns)
{
    double lanes = (double)kernels->panel / 2.0, in = (double)p->in, out = (double)p->out;
    double images = (double)batch, pixels = images * (double)rows * (double)columns;
    double tiles = images * ceil((double)rows / (double)MADE) * ceil((double)columns / (double)MADE);
    double direct = pixels * (double)(TAPS * TAPS) * in / 4.0 * out / lanes;
    double tiled = tiles * (double)POINTS * in / 2.0 * out / lanes * (double)kernels->pairs_cost / 100.0;
    tiled += tiles * (TO_TILE * in / (2.0 * lanes) + FROM_TILE * out / lanes);
    double bytes = (double)(2 * POINTS) * in * out, often = ceil(tiles / (double)tiles_at_once(kernels, p));
    return tiled + often * bytes * (bytes < FAR ? WEIGHT_BYTE : FAR_BYTE) < direct;
}

bool mica_int8_tiles_pay(const mica_context *ctx, const mica_tensor *x, const mica_tensor *w,
                         const mica_int8_conv_opts *o)
{
    const mica_int8_kernels *kernels = MICA_FAMILY(ctx->kernels, int8);
    size_t groups = o->groups > 0 ? (size_t)o->groups : 1;
    if (x->rank != 4 || w->rank != 4 || groups != 1)
        return false;
    for (int k = 0; k < 2; k++)
        if (o->stride[k] > 1 || o->dilation[k] > 1 || w->dim[2 + k] != TAPS)
            return false;
    mica_int8_packing p = mica_int8_packing_of(kernels, w, groups);
    mica_int8_add_tiles(&p, kernels);
    return p.tiled_at > 0 && tiles_pay(kernels, &p, (size_t)x->dim[0], x->dim[2] + 2 * o->pad[0] - TAPS + 1,
                                       x->dim[3] + 2 * o->pad[1] - TAPS + 1);
}

/* ---- Calls ---- */

typedef struct plan {
    const mica_int8_job *job;
    size_t down, across, tiles; /* of an image; of all */
    size_t at_once, blocks;     /* tiles; blocks of them */
    size_t part, parts;         /* panels that are made of a block at once, and how often */
    size_t spread_bytes, sum_bytes, own_bytes;
    sections s;
    char *own;
} plan;

static bool could_take(const mica_int8_job *job)
{
    return job->packing.tiled_at > 0 && job->dim[0].stride == 1 && job->dim[1].stride == 1 &&
           job->dim[0].dilation == 1 && job->dim[1].dilation == 1;
}

static plan plan_of(const mica_int8_job *job)
{
    const mica_int8_packing *p = &job->packing;
    plan n = {.job = job, .s = sections_of(p, job->kernels)};
    n.down = mica_div_up((size_t)job->dim[0].made, MADE);
    n.across = mica_div_up((size_t)job->dim[1].made, MADE);
    n.tiles = job->batch * n.down * n.across;
    n.at_once = mica_least(tiles_at_once(job->kernels, p), n.tiles);
    n.spread_bytes = mica_align_up(POINTS * n.at_once * p->in * sizeof(int16_t));
    n.sum_bytes = mica_align_up(POINTS * n.at_once * job->kernels->panel * sizeof(int32_t));
    n.own_bytes = n.spread_bytes + n.sum_bytes + mica_align_up(POINTS * p->in);
    return n;
}

size_t mica_int8_tiled_scratch(const mica_context *ctx, const mica_int8_job *job)
{
    return could_take(job) ? (size_t)ctx->threads * plan_of(job).own_bytes : 0;
}

bool mica_int8_tiled_takes(const mica_int8_job *job)
{
    const mica_int8_packing *p = &job->packing;
    if (!could_take(job) || !job->x_last ||
        !tiles_pay(job->kernels, p, job->batch, job->dim[0].made, job->dim[1].made))
        return false;
    sections s = sections_of(p, job->kernels);
    const int32_t *usable = (const int32_t *)(const void *)(job->w + s.usable_at);
    for (size_t k = 0; k < s.panels; k++)
        if (usable[k] == 0)
            return false;
    return true;
}

/* Tiles are divided evenly among threads. Where there are too few of them, output channels are divided as well: then
 * each part transforms the tiles again. */
static void divide(const mica_context *ctx, plan *n)
{
    size_t threads = (size_t)ctx->threads, rows = n->job->kernels->pairs_rows;
    n->blocks = mica_div_up(n->tiles, n->at_once);
    n->part = n->s.panels;
    if (threads > 1 && n->tiles >= threads * rows * 3 / 4) {
        n->blocks = mica_div_up(n->blocks, threads) * threads;
    } else if (threads > 1 && n->blocks < threads) {
        n->part = mica_div_up(n->s.panels, mica_div_up(threads, n->blocks));
    }
    n->at_once = mica_div_up(n->tiles, n->blocks);
    n->blocks = mica_div_up(n->tiles, n->at_once);
    n->parts = mica_div_up(n->s.panels, n->part);
}

/* A tile that is not all in the image, padding included, into `to`. */
static void copy_edge(const mica_int8_job *job, int8_t *to, const int8_t *image, mica_index top,
                      mica_index left)
{
    const mica_int8_dim *d = job->dim;
    size_t in = job->packing.in;
    mica_index first = left < 0 ? 0 : left, end = left + EDGE < d[1].in ? left + EDGE : d[1].in;
    memset(to, (uint8_t)job->zero, POINTS * in);
    for (mica_index i = 0; i < EDGE; i++)
        if (top + i >= 0 && top + i < d[0].in && first < end)
            memcpy(to + (size_t)(i * EDGE + first - left) * in,
                   image + (size_t)((top + i) * d[1].in + first) * in, (size_t)(end - first) * in);
}

/* Tile number `tile`, as column k of the planes. */
static void spread_tile(const plan *n, char *own, size_t tile, size_t k, mica_int8_place *place)
{
    const mica_int8_job *job = n->job;
    const mica_int8_dim *d = job->dim;
    size_t in = job->packing.in, of_image = n->down * n->across, image = tile / of_image;
    mica_index row = (mica_index)(tile % of_image / n->across) * MADE,
               column = (mica_index)(tile % n->across) * MADE, top = row - d[0].pad, left = column - d[1].pad;
    const int8_t *x = job->x + image * (size_t)(d[0].in * d[1].in) * in;
    size_t x_row = (size_t)d[1].in * in;
    if (top >= 0 && left >= 0 && top + EDGE <= d[0].in && left + EDGE <= d[1].in) {
        x += (size_t)(top * d[1].in + left) * in;
    } else {
        int8_t *edge = (int8_t *)own + n->spread_bytes + n->sum_bytes;
        copy_edge(job, edge, x, top, left);
        x = edge;
        x_row = EDGE * in;
    }
    job->kernels->to_tile((int16_t *)(void *)own + k * in, n->at_once * in, x, x_row, in, in);
    size_t pixel = (image * (size_t)d[0].made + (size_t)row) * (size_t)d[1].made + (size_t)column;
    *place = (mica_int8_place){job->y + pixel * job->packing.out * job->size,
                               mica_least(MADE, (size_t)(d[0].made - row)),
                               mica_least(MADE, (size_t)(d[1].made - column))};
}

static void run_unit(void *work, size_t unit, int thread)
{
    const plan *n = work;
    const mica_int8_job *job = n->job;
    const mica_int8_packing *p = &job->packing;
    size_t width = job->kernels->panel, first = unit / n->parts * n->at_once;
    size_t tiles = mica_least(n->at_once, n->tiles - first);
    mica_int8_place place[MOST_TILES];
    char *own = n->own + (size_t)thread * n->own_bytes;
    const int16_t *spread = (const int16_t *)(void *)own;
    int32_t *sum = (int32_t *)(void *)(own + n->spread_bytes);
    for (size_t k = 0; k < tiles; k++)
        spread_tile(n, own, first + k, k, &place[k]);
    mica_int8_tiled t = {.sum = sum,
                         .apart = n->at_once * width,
                         .place = place,
                         .tiles = tiles,
                         .y_row = (size_t)job->dim[1].made * p->out * job->size,
                         .y_column = p->out * job->size};
    size_t panel = unit % n->parts * n->part, end = mica_least(panel + n->part, n->s.panels);
    for (; panel < end; panel++) {
        const int16_t *w = (const int16_t *)(const void *)(job->w + n->s.w_at + panel * n->s.panel_bytes);
        for (size_t k = 0; k < POINTS; k++)
            job->kernels->pairs(sum + k * t.apart, spread + k * n->at_once * p->in, p->in, tiles, p->in / 2,
                                w + k * p->in * width);
        t.start = (const int32_t *)(const void *)(job->w + p->tiled_at) + panel * width;
        t.y_at = panel * width * job->size;
        mica_int8_finish f = mica_int8_finish_from(&job->finish, job->each, panel * width);
        job->kernels->from_tiles(&t, &f, job->each);
    }
}

void mica_int8_tiled_run(mica_context *ctx, const mica_int8_job *job, void *scratch, double sums)
{
    plan n = plan_of(job);
    n.own = scratch;
    divide(ctx, &n);
    mica_parallel_sums(ctx, sums, n.blocks * n.parts, run_unit, &n);
}

#endif
