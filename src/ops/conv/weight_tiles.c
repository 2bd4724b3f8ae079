/* Convolution: the gradient by weights of few taps, in register tiles.
 *
 * All (narrow channel, tap) pairs have a vector of sums each, over the pixels of all images; lanes are folded at
 * the end. Parts of the batch have sums of their own, added in order; chunks of channels are made apart.
 *
 *   scratch:  [ sums: parts x groups x m x k x lanes, by tiles | offsets of taps | for each thread: a window,
 *             some channels of the narrow image ] */
#include <stdint.h>
#include <string.h>

#include "base/parallel.h"
#include "ops/conv/grid.h"
#include "ops/conv/cost.h"
#include "ops/conv/weight.h"

/* Floats of one part's sums, and of all parts'. */
#define SUM_FLOATS  ((size_t)98304)
#define MOST_FLOATS ((size_t)262144)
/* Multiply-adds of a block of work. */
#define BLOCK_WORK ((size_t)1 << 19)
/* And over which it reads and writes its sums once. */
#define GRID_WORK ((size_t)1 << 20)

/* And parts. */
#define MOST_PARTS 8

typedef struct job {
    const mica_conv *conv;
    mica_conv_patches wide;
    mica_conv_grid grid;               /* windows have all channels */
    size_t k;                          /* taps of them */
    size_t parts, part_images;         /* images are cut into parts */
    size_t chunks, chunk;              /* and narrow channels into chunks, of whole tiles */
    size_t channel_floats;             /* of sums, of one narrow channel */
    size_t chunk_floats, group_floats; /* of sums */
    float *sums;
    ptrdiff_t *offset;
    char *windows;
    size_t thread_bytes;
    const mica_tiles_kernels *kernels;
} job;

/* ---- The plan ---- */

/* What does not change with the sizes of images; false if that is not for this path. */
static bool begin(const mica_context *ctx, job *t, const mica_conv *c)
{
    *t = (job){.conv = c,
               .wide = mica_conv_patches_of(c, ctx->kernels),
               .k = c->wide_channels * c->rows.taps * c->columns.taps,
               .kernels = MICA_FAMILY(ctx->kernels, tiles)};
    t->channel_floats = mica_round_up(t->k, MICA_TILES_TAPS) * t->kernels->lanes;
    t->group_floats = mica_round_up(c->narrow_channels, t->kernels->channels) * t->channel_floats;
    return c->narrow_channels > MICA_CONV_DIRECT_CHANNELS && t->group_floats * c->groups <= SUM_FLOATS;
}

/* Windows have all channels. */
static mica_conv_grid_aim aim_of(const mica_conv *c)
{
    return (mica_conv_grid_aim){
        .channels = c->wide_channels, .m = c->narrow_channels, .deep = SIZE_MAX / 2, .work = GRID_WORK};
}

static bool cut_pixels(job *t)
{
    mica_conv_grid_aim aim = aim_of(t->conv);
    return mica_conv_grid_plan(&t->grid, &t->wide, &aim, t->kernels);
}

static bool fits(const mica_context *ctx, const mica_conv *c)
{
    job t;
    return begin(ctx, &t, c) && cut_pixels(&t);
}

/* Parts at most, and images of one at least, where each is so much work. */
static size_t most_parts(const job *t)
{
    return mica_most(1, mica_least(MOST_PARTS, MOST_FLOATS / (t->group_floats * t->conv->groups)));
}
static size_t least_images(size_t image_work) { return BLOCK_WORK / mica_most(1, image_work) + 1; }

static size_t image_work(const job *t, size_t pixels) { return pixels * t->k * t->conv->narrow_channels; }

/* Cuts the work into parts of images, then chunks of channels, by its size alone. */
static void cut(job *t)
{
    const mica_conv *c = t->conv;
    size_t m = c->narrow_channels, tile = t->kernels->channels;
    size_t work = image_work(t, c->rows.narrow * c->columns.narrow);
    t->part_images = mica_most(mica_div_up(c->batch, most_parts(t)), least_images(work));
    t->parts = mica_most(1, mica_div_up(c->batch, t->part_images));
    size_t part_work = work * mica_least(t->part_images, mica_most(1, c->batch));
    t->chunks = mica_most(1, mica_least(mica_div_up(m, tile), part_work / BLOCK_WORK / 2));
    t->chunk = mica_round_up(mica_div_up(m, t->chunks), tile);
    t->chunks = mica_div_up(m, t->chunk);
    t->chunk_floats = t->chunk * t->channel_floats;
}

/* Floats of a tile's narrow channels: rows of a window, each up to whole vectors. */
static size_t stage_floats(const job *t, size_t rows, size_t columns)
{
    return t->kernels->channels * rows * mica_round_up(columns, t->kernels->lanes);
}

static size_t sum_bytes(const job *t, size_t parts)
{
    return mica_align_up(parts * t->conv->groups * t->group_floats * sizeof(float));
}

/* The windows' place serves for a row of folded sums too. */
static size_t window_bytes(const mica_context *ctx, const job *t)
{
    return mica_most(t->thread_bytes * (size_t)ctx->threads, mica_align_up(t->k * sizeof(float)));
}

static size_t scratch(const mica_context *ctx, const mica_conv *c, mica_conv_extent *up_to)
{
    job t;
    mica_conv_extent most = *up_to;
    mica_conv_grid_aim aim = aim_of(c);
    if (!begin(ctx, &t, c) || !mica_conv_grid_most(&t.grid, &t.wide, &aim, t.kernels, up_to))
        return 0;
    size_t work = image_work(&t, mica_conv_extent_image(&most));
    size_t parts = mica_least(most_parts(&t), mica_div_up(most.images, least_images(work)));
    size_t all_work = image_work(&t, mica_conv_extent_pixels(&most));
    parts = mica_least(parts, mica_div_up(all_work, BLOCK_WORK)); /* a part has more than that */
    /* An output pixel has a place in each channel's window. */
    size_t stage = mica_least(stage_floats(&t, t.grid.window.rows, t.grid.window.columns),
                              t.kernels->channels * (t.grid.window_bytes / sizeof(float) / c->wide_channels));
    t.thread_bytes = t.grid.window_bytes + mica_align_up(stage * sizeof(float));
    return sum_bytes(&t, parts) + t.grid.offset_bytes + window_bytes(ctx, &t);
}

/* ---- The run ---- */

/* One part and chunk of one group. */
static void sum_block(void *work, size_t block, int thread)
{
    const job *t = work;
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
static void fold_channel(const job *t, size_t channel, float *row)
{
    const mica_conv *c = t->conv;
    size_t group = channel / c->narrow_channels;
    t->kernels->fold(row, t->sums + group * t->group_floats, t->parts, c->groups * t->group_floats,
                     channel % c->narrow_channels, t->k);
    for (size_t tap = 0; tap < t->k; tap += c->columns.taps) { /* row by row */
        float *to = mica_conv_tap_place(c, channel, tap);
        for (size_t u = 0; u < c->columns.taps; u++, to += c->weight.column_stride)
            *to = c->accumulate ? *to + row[tap + u] : row[tap + u];
    }
}

static void run(mica_context *ctx, const mica_conv *c, void *scratch)
{
    job t;
    (void)begin(ctx, &t, c);
    (void)cut_pixels(&t);
    cut(&t);
    t.thread_bytes = t.grid.window_bytes +
                     mica_align_up(stage_floats(&t, t.grid.window.rows, t.grid.window.columns) *
                                   sizeof(float));
    t.sums = scratch;
    t.offset = (ptrdiff_t *)(void *)((char *)scratch + sum_bytes(&t, t.parts));
    t.windows = (char *)t.offset + t.grid.offset_bytes;
    mica_conv_grid_offsets(t.offset, &t.grid, &t.wide);
    size_t pixels = c->batch * c->groups * c->narrow_channels * c->rows.narrow * c->columns.narrow;
    mica_parallel_sums(ctx, (double)pixels * (double)t.k, t.parts * c->groups * t.chunks, sum_block, &t);
    for (size_t channel = 0; channel < c->groups * c->narrow_channels; channel++)
        fold_channel(&t, channel, (float *)(void *)t.windows);
}

static double cost(const mica_context *ctx, const mica_conv *c)
{
    size_t lanes = mica_conv_cost_lanes(ctx->kernels);
    const mica_conv_costs *all = mica_conv_costs_of(ctx->kernels);
    double weights = (double)(c->wide_channels * c->rows.taps * c->columns.taps) * (double)c->narrow_channels;
    double images = (double)(c->batch * c->groups);
    return images * (double)(c->rows.narrow * mica_round_up(c->columns.narrow, lanes)) * weights *
               all->weight_tiles.sum +
           images * (double)(c->wide_channels * c->rows.wide * c->columns.wide) * all->weight_tiles.in +
           (double)c->groups * weights * all->weight_tiles.back;
}

const mica_conv_weight_path mica_conv_weight_tiles_path = {"tiles", fits, cost, scratch, run};
