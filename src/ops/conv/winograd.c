/* Computing an image with Winograd's algorithm. */
#include <string.h>

#include "base/parallel.h"
#include "ops/conv/product.h"

/* Tiles of a block at most, so that there are several blocks for each thread. */
#define BLOCK_TILES 64
/* Bytes of a block's inputs, and of transformed weights; output channels that weights of this size must have. */
#define INPUT_BYTES  ((size_t)262144)
#define WEIGHT_BYTES ((size_t)1536 << 10)
#define LEAST_CHUNK  32

/* Channels of either side, pairs of them, and tiles, below which the transforms cost more than they save. */
#define LEAST_CHANNELS 16
#define LEAST_PAIRS    512
#define LEAST_TILES    32

/* ---- Tiles ---- */

/* Of so many output pixels. */
static mica_conv_tiling tiling_of(const mica_context *ctx, bool flat, const mica_conv_extent *e,
                                  size_t channels, size_t bytes, size_t most)
{
    mica_conv_tiling t = {.flat = flat,
                          .frequencies = flat ? MICA_WINOGRAD_FLAT_FREQUENCIES : MICA_WINOGRAD_FREQUENCIES,
                          .down = flat ? e->rows : mica_div_up(e->rows, MICA_WINOGRAD_TILE),
                          .across = mica_div_up(e->columns, MICA_WINOGRAD_TILE)};
    t.all = e->images * t.down * t.across;
    size_t unit = MICA_TILES_VECTORS * MICA_FAMILY(ctx->kernels, tiles)->lanes;
    size_t units = mica_least(bytes / (t.frequencies * channels * sizeof(float)), most) / unit;
    t.block = mica_least(mica_most(1, units) * unit, t.all);
    return t;
}

mica_conv_tiling mica_conv_tiling_of(const mica_context *ctx, const mica_conv_patches *in, size_t images,
                                     size_t channels, size_t bytes, size_t most)
{
    mica_conv_extent all = mica_conv_extent_of(images, in->rows.count, in->columns.count);
    return tiling_of(ctx, in->rows.taps == 1, &all, channels, bytes, most);
}

mica_conv_tiling mica_conv_tiling_most(const mica_context *ctx, const mica_conv_patches *in, size_t channels,
                                       size_t bytes, size_t most, mica_conv_extent *up_to)
{
    mica_conv_tiling t = tiling_of(ctx, in->rows.taps == 1, up_to, channels, bytes, most);
    size_t tile = MICA_WINOGRAD_TILE * (t.flat ? 1 : MICA_WINOGRAD_TILE);
    if (t.all < LEAST_TILES)
        t.all = 0;
    up_to->pixels = mica_least(up_to->pixels, (LEAST_TILES - 1) * tile);
    return t;
}

mica_winograd_run mica_conv_run_at(const mica_conv_tiling *t, size_t first, size_t most, size_t *image)
{
    size_t across = first % t->across, line = first / t->across;
    *image = line / t->down;
    return (mica_winograd_run){.flat = t->flat,
                               .row = (ptrdiff_t)(line % t->down * (t->flat ? 1 : MICA_WINOGRAD_TILE)),
                               .column = (ptrdiff_t)(across * MICA_WINOGRAD_TILE),
                               .tiles = mica_least(mica_least(most, t->across - across), MICA_WINOGRAD_RUN)};
}

void mica_conv_transform(float *f, const mica_conv_frequencies *from, const mica_winograd_kernels *kernels,
                         size_t c, size_t first, size_t count)
{
    size_t block = from->tiling->block, image;
    f += c * block;
    for (size_t done = 0; done < count;) {
        mica_winograd_run run = mica_conv_run_at(from->tiling, first + done, count - done, &image);
        mica_winograd_plane plane = from->plane;
        plane.data += (ptrdiff_t)image * from->image_stride + (ptrdiff_t)c * from->channel_stride;
        run.row += from->row;
        run.column += from->column;
        (from->gradient ? kernels->gradient : kernels->input)(f + done, from->channels * block, block - done,
                                                              &plane, &run);
        done += run.tiles;
    }
}

/* ---- The plan ---- */

static bool three_taps(const mica_conv_axis *a)
{
    return a->taps == 3 && a->scale == 1 && (a->step == 1 || a->step == -1);
}

/* No row is read but the output's own. */
static bool one_tap(const mica_conv_axis *a)
{
    return a->taps == 1 && a->scale == 1 && a->base == 0 && a->image == a->count;
}

bool mica_conv_winograd_suits(const mica_context *ctx, const mica_conv_patches *in, size_t channels, size_t m)
{
    return !ctx->no_winograd && (one_tap(&in->rows) || three_taps(&in->rows)) && three_taps(&in->columns) &&
           in->column_stride == 1 && channels >= LEAST_CHANNELS && m >= LEAST_CHANNELS &&
           channels * m >= LEAST_PAIRS;
}

bool mica_conv_winograd_pays(const mica_context *ctx, const mica_conv_patches *in, size_t images,
                             size_t channels, size_t m)
{
    size_t tiles = mica_div_up(in->rows.count, one_tap(&in->rows) ? 1 : MICA_WINOGRAD_TILE) *
                   mica_div_up(in->columns.count, MICA_WINOGRAD_TILE);
    return mica_conv_winograd_suits(ctx, in, channels, m) && images * tiles >= LEAST_TILES;
}

/* What follows from the channels, the taps and the layout; false if they are not for it. */
static bool set_weights(const mica_context *ctx, const mica_conv_product *p, mica_conv_winograd *w)
{
    if (p->groups != 1 || p->out.column_stride != 1 ||
        !mica_conv_winograd_suits(ctx, &p->in, p->channels, p->m))
        return false;
    size_t frequencies = p->in.rows.taps == 1 ? MICA_WINOGRAD_FLAT_FREQUENCIES : MICA_WINOGRAD_FREQUENCIES;
    size_t tile = MICA_FAMILY(ctx->kernels, tiles)->channels,
           each = frequencies * p->channels * sizeof(float);
    w->chunk = mica_least(p->m, WEIGHT_BYTES / each / tile * tile);
    w->some = 4 * tile;
    w->weight_bytes = mica_align_up(mica_round_up(w->chunk, tile) * each);
    w->offset_bytes = mica_align_up(p->channels * sizeof(ptrdiff_t));
    return w->chunk == p->m || w->chunk >= LEAST_CHUNK;
}

/* And from the tiles of a block. */
static void set_tiles(const mica_context *ctx, const mica_conv_product *p, mica_conv_winograd *w)
{
    size_t inputs = w->tiling.frequencies * p->channels * w->tiling.block;
    size_t outputs = w->tiling.frequencies * w->some * w->tiling.block +
                     MICA_FAMILY(ctx->kernels, tiles)->lanes;
    w->input_bytes = mica_align_up(inputs * sizeof(float));
    w->output_bytes = mica_align_up(outputs * sizeof(float));
}

static size_t tile_blocks(const mica_conv_tiling *t) { return mica_div_up(t->all, t->block); }

static size_t bytes_of(const mica_context *ctx, const mica_conv_winograd *w)
{
    return w->weight_bytes + w->offset_bytes +
           (w->input_bytes + w->output_bytes) * mica_conv_parts(ctx, tile_blocks(&w->tiling));
}

static bool fits(const mica_context *ctx, mica_conv_product *p)
{
    mica_conv_winograd *w = &p->winograd;
    if (!set_weights(ctx, p, w) || !mica_conv_winograd_pays(ctx, &p->in, p->images, p->channels, p->m))
        return false;
    w->tiling = mica_conv_tiling_of(ctx, &p->in, p->images, p->channels, INPUT_BYTES, BLOCK_TILES);
    set_tiles(ctx, p, w);
    return true;
}

static size_t scratch(const mica_context *ctx, const mica_conv_product *p, mica_conv_extent *up_to)
{
    mica_conv_winograd w;
    if (!set_weights(ctx, p, &w))
        return 0;
    w.tiling = mica_conv_tiling_most(ctx, &p->in, p->channels, INPUT_BYTES, BLOCK_TILES, up_to);
    if (w.tiling.all == 0)
        return 0;
    set_tiles(ctx, p, &w);
    return bytes_of(ctx, &w);
}

static size_t taken(const mica_context *ctx, const mica_conv_product *p)
{
    return bytes_of(ctx, &p->winograd);
}

/* ---- The run ---- */

typedef struct job {
    const mica_conv_product *p;
    mica_conv_taps taps;        /* read forwards */
    mica_conv_frequencies from; /* the inputs */
    float *weights;
    ptrdiff_t *offset;
    char *own;           /* of each thread */
    size_t first, count; /* output channels of this chunk */
} job;

/* Where the panels of output channel `o` of the chunk begin: [36, channels, tile]. */
static float *panels_of(const job *j, size_t o)
{
    return j->weights + o * j->p->winograd.tiling.frequencies * j->p->channels;
}

/* The weights of one tile of output channels. */
static void weigh_block(void *work, size_t block, int thread)
{
    (void)thread;
    const job *j = work;
    const mica_conv_product *p = j->p;
    size_t tile = MICA_FAMILY(p->kernels, tiles)->channels, o = block * tile;
    float *panels = panels_of(j, o);
    if (o + tile > j->count)
        memset(panels, 0, tile * p->winograd.tiling.frequencies * p->channels * sizeof *panels);
    for (size_t i = 0; i < mica_least(tile, j->count - o); i++)
        MICA_FAMILY(p->kernels, winograd)
            ->kernels(panels + i, p->channels * tile, tile,
                      j->taps.data + (ptrdiff_t)(j->first + o + i) * p->w.vector_stride,
                      j->taps.channel_stride, j->taps.row_stride, j->taps.column_stride, p->channels);
}

/* Outputs [36, some, block] of output channels o .. o + m - 1, from inputs of `count` tiles. */
static void multiply(const job *j, float *outputs, const float *inputs, size_t o, size_t m, size_t count)
{
    const mica_conv_product *p = j->p;
    const mica_conv_winograd *w = &p->winograd;
    size_t block = w->tiling.block, tile = MICA_FAMILY(p->kernels, tiles)->channels,
           panel = p->channels * tile;
    for (size_t f = 0; f < w->tiling.frequencies; f++) {
        mica_conv_block b = {.rows = 1,
                             .columns = count,
                             .window = inputs + f * p->channels * block,
                             .offset = j->offset,
                             .channels = p->channels,
                             .taps = 1};
        mica_conv_planes out = {
            .data = outputs + f * w->some * block, .channel_stride = (ptrdiff_t)block, .column_stride = 1};
        MICA_FAMILY(p->kernels, tiles)
            ->image(&out, &b, panels_of(j, o) + f * panel, w->tiling.frequencies * panel, NULL, m, false);
    }
}

/* Those of one channel to their places. */
static void leave(const job *j, const float *outputs, size_t channel, size_t first, size_t count)
{
    const mica_conv_product *p = j->p;
    const mica_conv_winograd *w = &p->winograd;
    size_t image;
    for (size_t done = 0; done < count;) {
        mica_winograd_run run = mica_conv_run_at(&w->tiling, first + done, count - done, &image);
        mica_winograd_plane y = {
            p->out.data + (ptrdiff_t)image * p->out.image_stride + (ptrdiff_t)channel * p->out.channel_stride,
            (ptrdiff_t)p->in.rows.count, (ptrdiff_t)p->in.columns.count, p->out.row_stride};
        MICA_FAMILY(p->kernels, winograd)
            ->output(&y, &run, outputs + done, w->some * w->tiling.block,
                     p->bias != NULL ? p->bias[channel] : 0.0f, p->accumulate);
        mica_conv_finish_plane(p, y.data + run.row * y.row_stride + run.column,
                               mica_least(run.flat ? 1 : MICA_WINOGRAD_TILE, (size_t)(y.rows - run.row)),
                               mica_least(MICA_WINOGRAD_TILE * run.tiles, (size_t)(y.columns - run.column)));
        done += run.tiles;
    }
}

static void tile_block(void *work, size_t number, int thread)
{
    const job *j = work;
    const mica_conv_product *p = j->p;
    const mica_conv_winograd *w = &p->winograd;
    char *own = j->own + mica_conv_part(p->ctx, tile_blocks(&w->tiling), number, thread) *
                             (w->input_bytes + w->output_bytes);
    float *inputs = (float *)(void *)own, *outputs = (float *)(void *)(own + w->input_bytes);
    size_t first = number * w->tiling.block, count = mica_least(w->tiling.block, w->tiling.all - first);
    for (size_t c = 0; c < p->channels; c++)
        mica_conv_transform(inputs, &j->from, MICA_FAMILY(p->kernels, winograd), c, first, count);
    for (size_t o = 0; o < j->count; o += w->some) {
        size_t m = mica_least(w->some, j->count - o);
        multiply(j, outputs, inputs, o, m, count);
        for (size_t i = 0; i < m; i++)
            leave(j, outputs + i * w->tiling.block, j->first + o + i, first, count);
    }
}

/* Taps and patches that run backwards, as in the gradient by the input, turned around. */
static void read_forwards(job *j)
{
    const mica_conv_product *p = j->p;
    const mica_conv_axis *axis[2] = {&p->in.rows, &p->in.columns};
    ptrdiff_t *stride[2] = {&j->taps.row_stride, &j->taps.column_stride};
    ptrdiff_t *base[2] = {&j->from.row, &j->from.column};
    for (int d = 0; d < 2; d++) {
        *base[d] = axis[d]->base;
        if (axis[d]->step > 0)
            continue;
        ptrdiff_t last = (ptrdiff_t)axis[d]->taps - 1;
        *base[d] -= last;
        j->taps.data += last * *stride[d];
        *stride[d] = -*stride[d];
    }
}

static void run(mica_context *ctx, mica_conv_product *p)
{
    const mica_conv_winograd *w = &p->winograd;
    job j = {.p = p,
             .taps = p->w.taps,
             .from = {.tiling = &w->tiling,
                      .plane = {(float *)p->in.data, (ptrdiff_t)p->in.rows.image,
                                (ptrdiff_t)p->in.columns.image, p->in.row_stride},
                      .image_stride = p->in.image_stride,
                      .channel_stride = p->in.channel_stride,
                      .channels = p->channels},
             .weights = (float *)(void *)p->scratch,
             .offset = (ptrdiff_t *)(void *)(p->scratch + w->weight_bytes),
             .own = p->scratch + w->weight_bytes + w->offset_bytes};
    read_forwards(&j);
    if (w->tiling.flat)
        j.taps.row_stride = 0;
    for (size_t c = 0; c < p->channels; c++)
        j.offset[c] = (ptrdiff_t)(c * w->tiling.block);
    for (; j.first < p->m; j.first += j.count) {
        j.count = mica_least(w->chunk, p->m - j.first);
        mica_parallel(ctx, mica_div_up(j.count, MICA_FAMILY(p->kernels, tiles)->channels), weigh_block, &j);
        mica_parallel(ctx, tile_blocks(&w->tiling), tile_block, &j);
    }
}

const mica_conv_path mica_conv_winograd_path = {"winograd", fits, scratch, taken, run, true, NULL};
