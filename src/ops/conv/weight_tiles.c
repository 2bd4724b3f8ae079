/* Convolution: the gradient by a kernel of few taps, in register tiles.
 *
 * All (narrow channel, tap) pairs have a vector of sums each, over the pixels of all images; lanes are folded at
 * the end. Parts of the batch have sums of their own, added in order; chunks of channels are made apart. */
#include <stdint.h>
#include <string.h>

#include "base/parallel.h"
#include "ops/conv/weight.h"

/* Floats of one part's sums, and of all parts'. */
#define SUM_FLOATS  ((size_t)98304)
#define MOST_FLOATS ((size_t)262144)
/* Multiply-adds of a block of work. */
#define BLOCK_WORK ((size_t)1 << 19)
/* And over which it reads and writes its sums once. */
#define GRID_WORK ((size_t)1 << 20)

/* Cuts the work into parts of images, then chunks of channels, by its size alone. */
static void cut(mica_conv_kernel_tiles *t, size_t part_floats)
{
    const mica_conv *c = t->conv;
    size_t m = c->narrow_channels, tile = t->kernels->channels;
    size_t image_work = c->rows.narrow * c->columns.narrow * t->k * m;
    size_t most = mica_most(1, mica_least(8, MOST_FLOATS / part_floats));
    t->part_images = mica_most(mica_div_up(c->batch, most), BLOCK_WORK / image_work + 1);
    t->parts = mica_most(1, mica_div_up(c->batch, t->part_images));
    size_t part_work = image_work * mica_least(t->part_images, mica_most(1, c->batch));
    t->chunks = mica_most(1, mica_least(mica_div_up(m, tile), part_work / BLOCK_WORK / 2));
    t->chunk = mica_round_up(mica_div_up(m, t->chunks), tile);
    t->chunks = mica_div_up(m, t->chunk);
}

bool mica_conv_kernel_tiles_plan(const mica_context *ctx, mica_conv_kernel_tiles *t, const mica_conv *c)
{
    *t = (mica_conv_kernel_tiles){
        .conv = c, .wide = mica_conv_patches_of(c, ctx->kernels), .kernels = ctx->kernels->tiles};
    size_t m = c->narrow_channels;
    if (m <= MICA_CONV_DIRECT_CHANNELS ||
        !mica_conv_grid_plan(&t->grid, &t->wide, c->wide_channels, m, SIZE_MAX / 2, GRID_WORK, t->kernels))
        return false;
    t->k = c->wide_channels * t->grid.taps;
    size_t padded = mica_round_up(t->k, MICA_TILES_TAPS) * t->kernels->lanes;
    t->group_floats = mica_round_up(m, t->kernels->channels) * padded;
    if (t->group_floats * c->groups > SUM_FLOATS)
        return false;
    cut(t, t->group_floats * c->groups);
    t->chunk_floats = t->chunk * padded;
    size_t row = mica_round_up(t->grid.window.columns, t->kernels->lanes);
    t->thread_bytes = t->grid.window_bytes +
                      mica_align_up(t->kernels->channels * t->grid.window.rows * row * sizeof(float));
    return true;
}

/* One part and chunk of one group. */
static void sum_block(void *work, size_t block, int thread)
{
    const mica_conv_kernel_tiles *t = work;
    const mica_conv *c = t->conv;
    size_t chunk = block % t->chunks, group = block / t->chunks % c->groups,
           part = block / t->chunks / c->groups;
    size_t first = chunk * t->chunk, m = mica_least(t->chunk, c->narrow_channels - first);
    float *sums = t->sums + (part * c->groups + group) * t->group_floats + chunk * t->chunk_floats;
    char *own = t->windows + (size_t)thread * t->thread_bytes;
    float *window = (float *)(void *)own, *stage = (float *)(void *)(own + t->grid.window_bytes);
    memset(sums, 0, mica_least(t->chunk_floats, t->group_floats - chunk * t->chunk_floats) * sizeof *sums);
    size_t end = mica_least((part + 1) * t->part_images, c->batch);
    for (size_t image = part * t->part_images; image < end; image++) {
        mica_conv_patches in = t->wide;
        in.data += (ptrdiff_t)image * in.image_stride +
                   (ptrdiff_t)(group * c->wide_channels) * in.channel_stride;
        for (size_t number = 0; number < t->grid.down * t->grid.across; number++) {
            mica_conv_block b = mica_conv_grid_block(&t->grid, &in, number, 0, window, t->offset);
            t->kernels->load(window, &t->grid.window, &in, &b);
            mica_conv_planes dy = c->narrow;
            dy.data += (ptrdiff_t)image * dy.image_stride +
                       (ptrdiff_t)(group * c->narrow_channels + first) * dy.channel_stride +
                       (ptrdiff_t)b.i * dy.row_stride + (ptrdiff_t)b.j * dy.column_stride;
            t->kernels->gradient(sums, &b, &dy, m, stage);
        }
    }
}

/* Folds one narrow channel's sums and puts them in their places. */
static void fold_channel(const mica_conv_kernel_tiles *t, size_t channel, float *row)
{
    const mica_conv *c = t->conv;
    size_t group = channel / c->narrow_channels;
    t->kernels->fold(row, t->sums + group * t->group_floats, t->parts, c->groups * t->group_floats,
                     channel % c->narrow_channels, t->k);
    for (size_t tap = 0; tap < t->k; tap += c->columns.taps) { /* row by row */
        float *to = mica_conv_tap_place(c, channel, tap);
        for (size_t u = 0; u < c->columns.taps; u++, to += c->kernel.column_stride)
            *to = c->accumulate ? *to + row[tap + u] : row[tap + u];
    }
}

mica_status mica_conv_kernel_tiles_run(mica_context *ctx, mica_conv_kernel_tiles *t)
{
    const mica_conv *c = t->conv;
    size_t sums = mica_align_up(t->parts * c->groups * t->group_floats * sizeof(float));
    size_t windows = mica_most(t->thread_bytes * (size_t)ctx->threads, t->k * sizeof(float));
    void *scratch;
    MICA_START(ctx, c->op, sums + t->grid.offset_bytes + windows, &scratch);
    t->sums = scratch;
    t->offset = (ptrdiff_t *)(void *)((char *)scratch + sums);
    t->windows = (char *)scratch + sums + t->grid.offset_bytes;
    mica_conv_grid_offsets(t->offset, &t->grid, &t->wide);
    size_t pixels = c->batch * c->groups * c->narrow_channels * c->rows.narrow * c->columns.narrow;
    mica_parallel_sums(ctx, (double)pixels * (double)t->k, t->parts * c->groups * t->chunks, sum_block, t);
    for (size_t channel = 0; channel < c->groups * c->narrow_channels; channel++)
        fold_channel(t, channel, (float *)(void *)t->windows);
    return MICA_OK;
}
