/* Convolution: the gradient by a kernel of three rows and few channels, by Winograd's transforms down the
 * columns alone: columns.h.
 *
 *   dw[., u] = GT [ sum over lines of (A dy) * (BT x, u to the right) ]
 *
 * All (narrow channel, wide channel, u) have a vector of sums for each of six frequencies, in register tiles.
 * Narrow channels are cut into chunks whose sums the second cache keeps, lines into parts; a part's sums are
 * transformed back to three rows of taps and folded, and parts added in order.
 *
 *   scratch:  [ taps: parts x 3 x narrow channels x k | offsets | for each thread, or block of work if there are fewer:
 *               sums and lines of both images of six frequencies, and some channels of the narrow one ]
 */
#include <string.h>

#include "base/parallel.h"
#include "kernel/conv_window.h"
#include "ops/conv/columns.h"
#include "ops/conv/cost.h"
#include "ops/conv/weight.h"

enum { FREQUENCIES = MICA_CONV_LINE_FREQUENCIES, ROWS = MICA_WINOGRAD_TILE, TAPS = 3 };

/* Sums of a chunk of one frequency, a vector each, and floats of all parts' taps; blocks of work, and
 * multiply-adds of one. */
#define CHUNK_SUMS  ((size_t)1024)
#define MOST_FLOATS ((size_t)262144)
#define MOST_BLOCKS 8
/* Tiles of channels that a chunk must have. */
#define LEAST_TILES 2
#define BLOCK_WORK  ((size_t)1 << 20)
/* Positions that are transformed at a time. */
#define BLOCK_POSITIONS 120
/* Bytes that all threads take for a block each: for many of them, chunks have fewer channels. */
#define OWN_BYTES ((size_t)1 << 20)

typedef struct job {
    const mica_context *ctx;
    const mica_kernels *kernels;
    const mica_conv *conv;
    mica_conv_patches wide;
    mica_conv_lines lines;
    size_t k;                 /* taps of a row of a narrow channel */
    size_t channel_floats;    /* of their sums of one frequency, up to whole tiles */
    size_t parts, part_lines; /* lines are cut into parts */
    size_t chunks, chunk;     /* and narrow channels into chunks, of whole tiles */
    float *taps;              /* [parts, 3, narrow channels, k] */
    ptrdiff_t *offset;
    char *own; /* of each thread */
    size_t sum_bytes, wide_bytes, narrow_bytes, stage_bytes, own_bytes;
} job;

/* Lines first .. first + count - 1 of m narrow channels from o on: narrow [6, chunk, room]. */
static void load_narrow(float *narrow, const job *j, size_t o, size_t m, size_t first, size_t count)
{
    const mica_conv *c = j->conv;
    const mica_conv_lines *l = &j->lines;
    size_t end = mica_conv_lines_end(l, count, MICA_FAMILY(j->kernels, tiles)->lanes);
    for (size_t done = 0, n; done < count; done += n) {
        mica_winograd_lines some = mica_conv_lines_at(l, first + done, count - done, &c->narrow,
                                                      c->rows.narrow, c->columns.narrow);
        n = some.lines;
        some.plane.data += (ptrdiff_t)o * some.channel_stride;
        some.channels = m;
        some.count = l->pitch;
        some.last = done + n < count ? l->pitch : end - (count - 1) * l->pitch;
        MICA_FAMILY(j->kernels, winograd)
            ->gradient_lines(narrow + done * l->pitch, j->chunk * l->room, &some);
    }
}

/* Row t of the taps of one narrow channel, of one part. */
static float *taps_of(const job *j, size_t part, size_t t, size_t channel)
{
    return j->taps + ((part * TAPS + t) * j->conv->narrow_channels + channel) * j->k;
}

/* One part and chunk. */
static void sum_block(void *work, size_t block, int thread)
{
    const job *j = work;
    const mica_conv_lines *l = &j->lines;
    const mica_tiles_kernels *tiles = MICA_FAMILY(j->kernels, tiles);
    size_t part = block / j->chunks, o = block % j->chunks * j->chunk;
    size_t m = mica_least(j->chunk, j->conv->narrow_channels - o);
    char *own = j->own + mica_conv_part(j->ctx, j->parts * j->chunks, block, thread) * j->own_bytes;
    float *sums = (float *)(void *)own, *wide = (float *)(void *)(own += j->sum_bytes);
    float *narrow = (float *)(void *)(own += j->wide_bytes),
          *stage = (float *)(void *)(own + j->narrow_bytes);
    size_t floats = mica_round_up(m, tiles->channels) * j->channel_floats;
    memset(sums, 0, FREQUENCIES * floats * sizeof *sums);
    size_t end = mica_least((part + 1) * j->part_lines, l->all);
    for (size_t first = part * j->part_lines, count; first < end; first += count) {
        count = mica_least(l->block, end - first);
        mica_conv_lines_load(wide, l, &j->wide, first, count, j->kernels);
        load_narrow(narrow, j, o, m, first, count);
        mica_conv_block b = mica_conv_lines_block(l, &j->wide.columns, count, tiles->lanes, j->offset);
        for (size_t f = 0; f < FREQUENCIES; f++) {
            mica_conv_planes dy = {.data = narrow + f * j->chunk * l->room,
                                   .channel_stride = (ptrdiff_t)l->room,
                                   .column_stride = 1};
            b.window = wide + f * l->channels * l->room;
            tiles->gradient(sums + f * floats, &b, &dy, m, stage);
        }
    }
    MICA_FAMILY(j->kernels, winograd)->sums_back(sums, floats, sums, floats, floats);
    for (size_t t = 0; t < TAPS; t++)
        for (size_t i = 0; i < m; i++)
            tiles->fold(taps_of(j, part, t, o + i), sums + t * floats, 1, 0, i, j->k);
}

/* Adds the parts of one narrow channel and puts them in their places. */
static void leave_block(void *work, size_t channel, int thread)
{
    (void)thread;
    const job *j = work;
    const mica_conv *c = j->conv;
    for (size_t t = 0; t < TAPS; t++) {
        float *row = taps_of(j, 0, t, channel);
        for (size_t part = 1; part < j->parts; part++)
            MICA_KERNEL(j->kernels, conv, add)(row, 1, taps_of(j, part, t, channel), 1, j->k);
        for (size_t w = 0; w < c->wide_channels; w++) {
            float *to = mica_conv_tap_place(c, channel, (w * TAPS + t) * c->columns.taps);
            for (size_t u = 0; u < c->columns.taps; u++, to += c->weight.column_stride, row++)
                *to = c->accumulate ? *to + *row : *row;
        }
    }
}

/* ---- The plan ---- */

/* Channels of about one size for each chunk. */
static void set_chunk(job *j, size_t most)
{
    size_t m = j->conv->narrow_channels, tile = MICA_FAMILY(j->kernels, tiles)->channels;
    j->chunk = mica_round_up(mica_div_up(m, mica_div_up(m, most)), tile);
    j->chunks = mica_div_up(m, j->chunk);
}

/* The largest chunk whose sums the second cache keeps. */
static size_t most_chunk(const job *j)
{
    size_t tile = MICA_FAMILY(j->kernels, tiles)->channels;
    return mica_most(1, CHUNK_SUMS * MICA_FAMILY(j->kernels, tiles)->lanes / (tile * j->channel_floats)) *
           tile;
}

/* How many parts so many positions of lines are worth, by the largest chunk: it decides in which order sums are made,
 * so it does not depend on the number of threads. */
static size_t most_parts(job *j, size_t positions)
{
    size_t m = j->conv->narrow_channels;
    set_chunk(j, most_chunk(j));
    size_t work = FREQUENCIES * j->k * mica_least(m, j->chunk) * positions;
    size_t most = mica_least(MOST_BLOCKS / j->chunks, MOST_FLOATS / (TAPS * m * j->k));
    return mica_most(1, mica_least(most, work / BLOCK_WORK));
}

/* Bytes of one block of work whose lines of a channel take so many floats. */
static void set_own(job *j, size_t room)
{
    size_t tile = MICA_FAMILY(j->kernels, tiles)->channels, chunk = FREQUENCIES * j->chunk * sizeof(float);
    j->sum_bytes = mica_align_up(chunk * j->channel_floats);
    j->wide_bytes = mica_align_up(FREQUENCIES * j->conv->wide_channels * room * sizeof(float));
    j->narrow_bytes = mica_align_up(chunk * room);
    j->stage_bytes = mica_align_up(tile * room * sizeof(float));
    j->own_bytes = j->sum_bytes + j->wide_bytes + j->narrow_bytes + j->stage_bytes;
}

/* Bytes of all blocks of work at a time, of so many parts. For many threads chunks become smaller: each makes its own
 * transforms of the wide image, which is more work, but the sums are the same. */
static size_t set_threads(job *j, size_t parts, size_t room)
{
    size_t tile = MICA_FAMILY(j->kernels, tiles)->channels;
    set_chunk(j, most_chunk(j));
    set_own(j, room);
    size_t bytes = j->own_bytes * mica_conv_parts(j->ctx, parts * j->chunks);
    size_t large = mica_least(bytes, OWN_BYTES); /* what fewer threads may take, with larger chunks */
    while (bytes > OWN_BYTES && j->chunk > tile) {
        set_chunk(j, j->chunk - tile);
        set_own(j, room);
        bytes = j->own_bytes * mica_conv_parts(j->ctx, parts * j->chunks);
    }
    return mica_most(bytes, large);
}

static size_t taps_bytes(const job *j, size_t parts)
{
    return mica_align_up(parts * TAPS * j->conv->narrow_channels * j->k * sizeof(float));
}

static size_t offset_bytes(const job *j) { return mica_align_up(j->k * sizeof(ptrdiff_t)); }

/* What does not change with the sizes of images; false if that is not for this path. */
static bool begin(const mica_context *ctx, job *j, const mica_conv *c)
{
    const mica_tiles_kernels *tiles = MICA_FAMILY(ctx->kernels, tiles);
    *j = (job){.ctx = ctx,
               .kernels = ctx->kernels,
               .conv = c,
               .wide = mica_conv_patches_of(c, ctx->kernels),
               .k = c->wide_channels * c->columns.taps};
    j->channel_floats = mica_round_up(j->k, MICA_TILES_TAPS) * tiles->lanes;
    return c->groups == 1 && c->narrow.column_stride == 1 &&
           LEAST_TILES * tiles->channels * j->channel_floats <= CHUNK_SUMS * tiles->lanes;
}

static bool cut_lines(job *j)
{
    const mica_conv *c = j->conv;
    return mica_conv_lines_plan(j->ctx, &j->lines, &j->wide, c->batch, c->wide_channels, c->narrow_channels);
}

static bool fits(const mica_context *ctx, const mica_conv *c)
{
    job j;
    return begin(ctx, &j, c) && cut_lines(&j);
}

static size_t scratch(const mica_context *ctx, const mica_conv *c, mica_conv_extent *up_to)
{
    job j;
    if (!begin(ctx, &j, c))
        return 0;
    size_t lines = up_to->images * mica_div_up(up_to->rows, ROWS);
    size_t span = mica_conv_span(&j.wide.columns, up_to->columns);
    size_t room = mica_conv_lines_most(ctx, &j.wide, c->wide_channels, c->narrow_channels, BLOCK_POSITIONS,
                                       up_to);
    if (room == 0)
        return 0;
    size_t parts = most_parts(&j, lines * span);
    return taps_bytes(&j, parts) + offset_bytes(&j) + set_threads(&j, parts, room);
}

static void run(mica_context *ctx, const mica_conv *c, void *scratch)
{
    job j;
    (void)begin(ctx, &j, c);
    (void)cut_lines(&j);
    mica_conv_lines *l = &j.lines;
    j.part_lines = mica_most(1, mica_div_up(l->all, most_parts(&j, l->pitch * l->all)));
    j.parts = mica_div_up(l->all, j.part_lines);
    mica_conv_lines_cut(l, j.part_lines, mica_least(l->most * l->pitch, BLOCK_POSITIONS),
                        MICA_FAMILY(j.kernels, tiles)->lanes);
    (void)set_threads(&j, j.parts, l->room);
    j.taps = scratch;
    j.offset = (ptrdiff_t *)(void *)((char *)scratch + taps_bytes(&j, j.parts));
    j.own = (char *)j.offset + offset_bytes(&j);
    mica_conv_lines_offsets(j.offset, l, &j.wide.columns);
    double products = (double)(c->batch * c->rows.narrow * c->columns.narrow) *
                      (double)(c->narrow_channels * j.k);
    mica_parallel_sums(ctx, TAPS * products / 2, j.parts * j.chunks, sum_block, &j);
    mica_parallel_sums(ctx, (double)(j.parts * TAPS * c->narrow_channels * j.k), c->narrow_channels,
                       leave_block, &j);
}

static double cost(const mica_context *ctx, const mica_conv *c)
{
    const mica_conv_costs *all = mica_conv_costs_of(ctx->kernels);
    job j;
    (void)begin(ctx, &j, c);
    (void)cut_lines(&j);
    set_chunk(&j, most_chunk(&j));
    double positions = (double)(j.lines.all * j.lines.pitch), weights = (double)(j.k * c->narrow_channels);
    return positions * (FREQUENCIES * weights * all->weight_columns.sum +
                        (double)(c->wide_channels * j.chunks) * all->weight_columns.in) +
           weights * all->weight_columns.back;
}

const mica_conv_weight_path mica_conv_weight_columns_path = {"columns", fits, cost, scratch, run};
