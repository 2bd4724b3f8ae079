/* Convolution: the gradient by a kernel of three by three taps, by Winograd's transforms.
 *
 *   dw = GT [ sum over tiles of (A dy AT) * (BT x B) ] G
 *
 * Tiles are done in blocks: all threads transform the channels of both images, then make the 36 products, each
 * added to what the blocks before gave. Narrow channels are done in chunks whose sums stay small.
 *
 *   scratch:  [ sums: 36 x chunk x wide channels | wide: 36 x channels x block | narrow: 36 x chunk x block |
 *               for each thread: the product's panels ]
 */
#include <stdint.h>

#include "base/parallel.h"
#include "ops/conv/weight.h"
#include "ops/conv/winograd.h"
#include "ops/gemm.h"

/* Bytes of the sums, and narrow channels that these must hold. */
#define SUM_BYTES   ((size_t)1280 << 10)
#define LEAST_CHUNK 32
/* Tiles of a block: a sixth of the frequencies leaves room for more. */
#define BLOCK_TILES 64
#define FLAT_TILES  256

typedef struct job {
    const mica_context *ctx;
    const mica_kernels *kernels;
    const mica_conv *conv;
    mica_conv_tiling tiling;
    mica_conv_frequencies wide, narrow;
    size_t chunk, first, count; /* narrow channels: at most, and those at hand */
    size_t tile, tiles;         /* those at hand */
    float *sums, *wide_room, *narrow_room;
    char *panels;
    size_t panel_bytes;
} job;

/* One channel of either image. */
static void transform_block(void *work, size_t block, int thread)
{
    (void)thread;
    const job *j = work;
    bool wide = block < j->conv->wide_channels;
    mica_conv_transform(wide ? j->wide_room : j->narrow_room, wide ? &j->wide : &j->narrow,
                        j->kernels->winograd, wide ? block : block - j->conv->wide_channels, j->tile,
                        j->tiles);
}

/* sums[f] (+)= narrow[f] x wide[f], transposed. */
static void multiply_block(void *work, size_t f, int thread)
{
    const job *j = work;
    size_t channels = j->conv->wide_channels, block = j->tiling.block;
    mica_gemm g = {
        .m = j->count,
        .n = channels,
        .k = j->tiles,
        .a = {.data = j->narrow_room + f * j->chunk * block,
              .vector_stride = (ptrdiff_t)block,
              .k_stride = 1},
        .b = {.data = j->wide_room + f * channels * block, .vector_stride = (ptrdiff_t)block, .k_stride = 1},
        .c = j->sums + f * j->chunk * channels,
        .row_stride = (ptrdiff_t)channels,
        .column_stride = 1,
        .alpha = 1.0f,
        .beta = j->tile > 0 ? 1.0f : 0.0f};
    mica_gemm_run_serial(j->ctx, &g, j->panels + (size_t)thread * j->panel_bytes);
}

/* The taps of one narrow channel. */
static void leave_block(void *work, size_t channel, int thread)
{
    (void)thread;
    const job *j = work;
    const mica_conv *c = j->conv;
    j->kernels->winograd->kernels_back(c->kernel.data + (ptrdiff_t)(j->first + channel) * c->kernel_stride,
                                       c->kernel.channel_stride, j->tiling.flat ? 0 : c->kernel.row_stride,
                                       c->kernel.column_stride, j->sums + channel * c->wide_channels,
                                       j->chunk * c->wide_channels, c->wide_channels, c->accumulate);
}

static void run_chunk(mica_context *ctx, job *j)
{
    const mica_conv *c = j->conv;
    j->narrow.plane.data = c->narrow.data + (ptrdiff_t)j->first * c->narrow.channel_stride;
    for (j->tile = 0; j->tile < j->tiling.all; j->tile += j->tiles) {
        j->tiles = mica_least(j->tiling.block, j->tiling.all - j->tile);
        mica_parallel(ctx, c->wide_channels + j->count, transform_block, j);
        mica_parallel(ctx, j->tiling.frequencies, multiply_block, j);
    }
    mica_parallel(ctx, j->count, leave_block, j);
}

static mica_conv_frequencies frequencies_of(const job *j, const mica_conv_planes *p, size_t rows,
                                            size_t columns, size_t channels)
{
    return (mica_conv_frequencies){.tiling = &j->tiling,
                                   .plane = {p->data, (ptrdiff_t)rows, (ptrdiff_t)columns, p->row_stride},
                                   .image_stride = p->image_stride,
                                   .channel_stride = p->channel_stride,
                                   .channels = channels};
}

static mica_status run(mica_context *ctx, job *j)
{
    const mica_conv *c = j->conv;
    size_t channels = c->wide_channels, number = j->tiling.frequencies * sizeof(float);
    size_t sums = mica_align_up(j->chunk * channels * number);
    size_t wide = mica_align_up(channels * j->tiling.block * number);
    size_t narrow = mica_align_up(j->chunk * j->tiling.block * number);
    j->panel_bytes = mica_gemm_most_scratch(ctx, j->chunk, channels, j->tiling.block);
    void *scratch;
    MICA_START(ctx, c->op, sums + wide + narrow + j->panel_bytes * (size_t)ctx->threads, &scratch);
    char *at = scratch;
    j->sums = (float *)(void *)at;
    j->wide_room = (float *)(void *)(at + sums);
    j->narrow_room = (float *)(void *)(at + sums + wide);
    j->panels = at + sums + wide + narrow;
    j->wide = frequencies_of(j, &c->wide, c->rows.wide, c->columns.wide, channels);
    j->wide.row = -c->rows.pad;
    j->wide.column = -c->columns.pad;
    j->narrow = frequencies_of(j, &c->narrow, c->rows.narrow, c->columns.narrow, j->chunk);
    j->narrow.gradient = true;
    for (; j->first < c->narrow_channels; j->first += j->count) {
        j->count = mica_least(j->chunk, c->narrow_channels - j->first);
        run_chunk(ctx, j);
    }
    return MICA_OK;
}

bool mica_conv_kernel_winograd(mica_context *ctx, const mica_conv *c, mica_status *status)
{
    mica_conv_patches in = mica_conv_patches_of(c, ctx->kernels);
    if (c->groups != 1 || c->narrow.column_stride != 1 ||
        !mica_conv_winograd_pays(ctx, &in, c->batch, c->wide_channels, c->narrow_channels))
        return false;
    job j = {.ctx = ctx, .kernels = ctx->kernels, .conv = c};
    j.tiling = mica_conv_tiling_of(ctx, &in, c->batch, 1, SIZE_MAX,
                                   in.rows.taps == 1 ? FLAT_TILES : BLOCK_TILES);
    size_t each = j.tiling.frequencies * c->wide_channels * sizeof(float);
    j.chunk = mica_least(c->narrow_channels, SUM_BYTES / each);
    if (j.chunk < c->narrow_channels && j.chunk < LEAST_CHUNK)
        return false;
    *status = run(ctx, &j);
    return true;
}
