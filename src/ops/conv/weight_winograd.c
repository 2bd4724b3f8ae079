/* Convolution: the gradient by weights of three by three taps, by Winograd's transforms.
 *
 *   dw = GT [ sum over tiles of (A dy AT) * (BT x B) ] G
 *
 * Tiles are done in blocks: all threads transform the channels of both images, then make the 36 products, each
 * added to what the blocks before gave. Narrow channels are done in chunks whose sums stay small.
 *
 *   scratch:  [ sums: 36 x chunk x wide channels | wide: 36 x channels x block | narrow: 36 x chunk x block |
 *               for each thread, or frequency if there are fewer: the product's panels ]
 */
#include <stdint.h>

#include "base/parallel.h"
#include "ops/conv/weight.h"
#include "ops/conv/cost.h"
#include "ops/conv/winograd.h"
#include "ops/gemm.h"

/* Bytes of the sums, and narrow channels that these must hold. */
#define SUM_BYTES   ((size_t)1280 << 10)
#define LEAST_CHUNK 32
/* Tiles of a block: a sixth of the frequencies leaves room for more. */
#define BLOCK_TILES 64
#define FLAT_TILES  256
/* How much longer products of a chunk each take than one of all channels. */
#define CHUNKED 1.25
/* With so many wide channels, sums of a useful chunk do not stay small: larger blocks of tiles are added to them less
 * often, at best once. Then the wide channels are transformed once for all chunks. */
#define DEEP_CHANNELS 192
#define DEEP_BYTES    ((size_t)4608 << 10)
#define DEEP_TILES    128

typedef struct job {
    const mica_context *ctx;
    const mica_kernels *kernels;
    const mica_conv *conv;
    mica_conv_tiling tiling;
    mica_conv_frequencies wide, narrow;
    size_t chunk, first, count; /* narrow channels: at most, and those at hand */
    size_t tile, tiles;         /* those at hand */
    size_t done;                /* wide channels whose frequencies are there */
    bool deep;
    float *sums, *wide_room, *narrow_room;
    char *panels;
    size_t panel_bytes;
} job;

/* One channel of either image. */
static void transform_block(void *work, size_t block, int thread)
{
    (void)thread;
    const job *j = work;
    block += j->done;
    bool wide = block < j->conv->wide_channels;
    mica_conv_transform(wide ? j->wide_room : j->narrow_room, wide ? &j->wide : &j->narrow,
                        MICA_FAMILY(j->kernels, winograd), wide ? block : block - j->conv->wide_channels,
                        j->tile, j->tiles);
}

/* m narrow channels of one frequency against all wide ones, over k tiles. */
static mica_gemm product_of(const job *j, size_t m, size_t k)
{
    size_t channels = j->conv->wide_channels;
    ptrdiff_t block = (ptrdiff_t)j->tiling.block;
    return (mica_gemm){.m = m,
                       .n = channels,
                       .k = k,
                       .a = {.vector_stride = block, .k_stride = 1},
                       .b = {.vector_stride = block, .k_stride = 1},
                       .row_stride = (ptrdiff_t)channels,
                       .column_stride = 1,
                       .alpha = 1.0f};
}

/* sums[f] (+)= narrow[f] x wide[f], transposed. */
static void multiply_block(void *work, size_t f, int thread)
{
    const job *j = work;
    size_t channels = j->conv->wide_channels;
    mica_gemm g = product_of(j, j->count, j->tiles);
    g.a.data = j->narrow_room + f * j->narrow.stride;
    g.b.data = j->wide_room + f * j->wide.stride;
    g.c = j->sums + f * j->chunk * channels;
    g.beta = j->tile > 0 ? 1.0f : 0.0f;
    size_t part = mica_conv_part(j->ctx, j->tiling.frequencies, f, thread);
    mica_gemm_run_serial(j->ctx, &g, j->panels + part * j->panel_bytes);
}

/* The taps of one narrow channel. */
static void leave_block(void *work, size_t channel, int thread)
{
    (void)thread;
    const job *j = work;
    const mica_conv *c = j->conv;
    MICA_FAMILY(j->kernels, winograd)
        ->kernels_back(c->weight.data + (ptrdiff_t)(j->first + channel) * c->weight_stride,
                       c->weight.channel_stride, j->tiling.flat ? 0 : c->weight.row_stride,
                       c->weight.column_stride, j->sums + channel * c->wide_channels,
                       j->chunk * c->wide_channels, c->wide_channels, c->accumulate);
}

static void run_chunk(mica_context *ctx, job *j)
{
    const mica_conv *c = j->conv;
    j->narrow.plane.data = c->narrow.data + (ptrdiff_t)j->first * c->narrow.channel_stride;
    for (j->tile = 0; j->tile < j->tiling.all; j->tile += j->tiles) {
        j->tiles = mica_least(j->tiling.block, j->tiling.all - j->tile);
        mica_parallel(ctx, c->wide_channels - j->done + j->count, transform_block, j);
        mica_parallel(ctx, j->tiling.frequencies, multiply_block, j);
    }
    mica_parallel(ctx, j->count, leave_block, j);
    j->done = j->tiling.all <= j->tiling.block ? c->wide_channels : 0;
}

static mica_conv_frequencies frequencies_of(const job *j, const mica_conv_planes *p, size_t rows,
                                            size_t columns, size_t channels)
{
    return (mica_conv_frequencies){.tiling = &j->tiling,
                                   .plane = {p->data, (ptrdiff_t)rows, (ptrdiff_t)columns, p->row_stride},
                                   .image_stride = p->image_stride,
                                   .channel_stride = p->channel_stride,
                                   .stride = mica_conv_frequency_stride(channels * j->tiling.block)};
}

/* ---- The plan ---- */

static size_t block_tiles(const job *j, const mica_conv_patches *in)
{
    return in->rows.taps == 1 ? FLAT_TILES : j->deep ? DEEP_TILES : BLOCK_TILES;
}

/* What does not change with the sizes of images; false if that is not for this path. */
static bool begin(const mica_context *ctx, job *j, const mica_conv *c, mica_conv_patches *in)
{
    *in = mica_conv_patches_of(c, ctx->kernels);
    *j = (job){.ctx = ctx, .kernels = ctx->kernels, .conv = c};
    if (c->groups != 1 || c->narrow.column_stride != 1 ||
        !mica_conv_winograd_suits(ctx, in, c->wide_channels, c->narrow_channels))
        return false;
    size_t frequencies = in->rows.taps == 1 ? MICA_WINOGRAD_FLAT_FREQUENCIES : MICA_WINOGRAD_FREQUENCIES;
    j->deep = in->rows.taps > 1 && c->wide_channels >= DEEP_CHANNELS;
    j->chunk = mica_least(c->narrow_channels, (j->deep ? DEEP_BYTES : SUM_BYTES) /
                                                  (frequencies * c->wide_channels * sizeof(float)));
    return j->chunk == c->narrow_channels || j->chunk >= LEAST_CHUNK;
}

/* The parts of the scratch, from `at` on; their bytes. */
static size_t lay_out(job *j, char *at)
{
    size_t channels = j->conv->wide_channels, number = j->tiling.frequencies * sizeof(float);
    size_t sums = mica_align_up(j->chunk * channels * number);
    size_t wide = mica_align_up(mica_conv_frequency_stride(channels * j->tiling.block) * number);
    size_t narrow = mica_align_up(mica_conv_frequency_stride(j->chunk * j->tiling.block) * number);
    mica_gemm g = product_of(j, j->chunk, j->tiling.block);
    j->panel_bytes = mica_gemm_serial_scratch(j->ctx, &g);
    if (at != NULL) {
        j->sums = (float *)(void *)at;
        j->wide_room = (float *)(void *)(at + sums);
        j->narrow_room = (float *)(void *)(at + sums + wide);
        j->panels = at + sums + wide + narrow;
    }
    return sums + wide + narrow + j->panel_bytes * mica_conv_parts(j->ctx, j->tiling.frequencies);
}

static bool fits(const mica_context *ctx, const mica_conv *c)
{
    job j;
    mica_conv_patches in;
    return begin(ctx, &j, c, &in) &&
           mica_conv_winograd_pays(ctx, &in, c->batch, c->wide_channels, c->narrow_channels);
}

static size_t scratch(const mica_context *ctx, const mica_conv *c, mica_conv_extent *up_to)
{
    job j;
    mica_conv_patches in;
    if (!begin(ctx, &j, c, &in))
        return 0;
    j.tiling = mica_conv_tiling_most(ctx, &in, 1, SIZE_MAX, block_tiles(&j, &in), up_to);
    return j.tiling.all > 0 ? lay_out(&j, NULL) : 0;
}

static void run(mica_context *ctx, const mica_conv *c, void *scratch)
{
    job j;
    mica_conv_patches in;
    (void)begin(ctx, &j, c, &in);
    j.tiling = mica_conv_tiling_of(ctx, &in, c->batch, 1, SIZE_MAX, block_tiles(&j, &in));
    (void)lay_out(&j, scratch);
    j.wide = frequencies_of(&j, &c->wide, c->rows.wide, c->columns.wide, c->wide_channels);
    j.wide.row = -c->rows.pad;
    j.wide.column = -c->columns.pad;
    j.narrow = frequencies_of(&j, &c->narrow, c->rows.narrow, c->columns.narrow, j.chunk);
    j.narrow.gradient = true;
    for (; j.first < c->narrow_channels; j.first += j.count) {
        j.count = mica_least(j.chunk, c->narrow_channels - j.first);
        run_chunk(ctx, &j);
    }
}

static double cost(const mica_context *ctx, const mica_conv *c)
{
    size_t lanes = mica_conv_cost_lanes(ctx->kernels);
    const mica_conv_costs *all = mica_conv_costs_of(ctx->kernels);
    job j;
    mica_conv_patches in;
    (void)begin(ctx, &j, c, &in);
    size_t chunk = mica_most(1, j.chunk);
    mica_conv_tiling t = mica_conv_tiling_of(ctx, &in, c->batch, 1, SIZE_MAX, block_tiles(&j, &in));
    size_t chunks = mica_div_up(c->narrow_channels, chunk), blocks = mica_div_up(t.all, t.block);
    double runs = (double)mica_most(c->batch * t.down * mica_div_up(t.across, lanes), blocks);
    double packed = (double)(c->wide_channels * chunks), narrow = (double)c->narrow_channels,
           wide = blocks > 1 ? packed : (double)c->wide_channels,
           pairs = (double)(c->wide_channels * c->narrow_channels);
    double cost = (double)t.frequencies * ((double)t.all * (pairs * all->weight_winograd.sum +
                                                            packed * all->weight_winograd.pack) +
                                           pairs * (double)blocks * all->weight_winograd.add) +
                  (runs * (wide + narrow) * all->weight_winograd.in + pairs * all->weight_winograd.back) *
                      (double)t.frequencies / MICA_WINOGRAD_FREQUENCIES;
    return chunks > 1 && !j.deep ? CHUNKED * cost : cost;
}

const mica_conv_weight_path mica_conv_weight_winograd_path = {"winograd", fits, cost, scratch, run};
