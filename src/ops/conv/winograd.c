/* Computing an image with Winograd's algorithm. */
#include <string.h>

#include "base/parallel.h"
#include "ops/conv/cost.h"
#include "ops/conv/prepare.h"

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
        (from->gradient ? kernels->gradient : kernels->input)(f + done, from->stride, block - done, &plane,
                                                              &run);
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
    w->panel_stride = mica_conv_frequency_stride(p->channels * tile);
    w->weight_bytes = mica_align_up(mica_div_up(w->chunk, tile) * frequencies * w->panel_stride *
                                    sizeof(float));
    w->offset_bytes = mica_align_up(p->channels * sizeof(ptrdiff_t));
    return w->chunk == p->m || w->chunk >= LEAST_CHUNK;
}

/* And from the tiles of a block. */
static void set_tiles(const mica_context *ctx, const mica_conv_product *p, mica_conv_winograd *w)
{
    w->input_stride = mica_conv_frequency_stride(p->channels * w->tiling.block);
    w->output_stride = mica_conv_frequency_stride(w->some * w->tiling.block);
    size_t outputs = w->tiling.frequencies * w->output_stride + MICA_FAMILY(ctx->kernels, tiles)->lanes;
    w->input_bytes = mica_align_up(w->tiling.frequencies * w->input_stride * sizeof(float));
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

/* Of tiles that are multiplied block by block, with weights and inputs transformed so many times. */
static double transform_cost(const mica_context *ctx, const mica_conv_product *p,
                             const mica_conv_transform_costs *c, size_t weights, size_t inputs)
{
    const mica_conv_tiling *t = &p->winograd.tiling;
    size_t lanes = mica_conv_cost_lanes(ctx->kernels), blocks = tile_blocks(t);
    double whole = (double)t->frequencies / MICA_WINOGRAD_FREQUENCIES; /* of a transform in two dimensions */
    size_t full = t->all / t->block, rest = t->all % t->block;
    double tiles = (double)(full * mica_round_up(t->block, lanes) + mica_round_up(rest, lanes));
    double runs = (double)mica_most(p->images * t->down * mica_div_up(t->across, lanes), blocks);
    return (double)(p->channels * p->m) *
               ((double)t->frequencies * (tiles * c->sum + (double)blocks * c->begin) +
                (double)weights * whole * c->weight) +
           runs * whole * ((double)(p->channels * inputs) * c->in + (double)p->m * c->out);
}

static double cost(const mica_context *ctx, const mica_conv_product *p)
{
    const mica_conv_costs *all = mica_conv_costs_of(ctx->kernels);
    return transform_cost(ctx, p, &all->winograd, 1, mica_div_up(p->m, p->winograd.chunk));
}

/* ---- The plan of many channels ---- */

/* Bytes of the inputs that are there at a time, if they are more than a vector of tiles, and of a thread's weights. */
#define DEEP_INPUT_BYTES  ((size_t)2560 << 10)
#define DEEP_WEIGHT_BYTES ((size_t)640 << 10)
/* Channels whose inputs are transformed in one block of work. */
#define DEEP_CHANNELS 16
/* Portions of tiles for each thread; weights that a thread may read for each input that is transformed. */
#define PORTIONS     4
#define MOST_WEIGHTS 2

static bool set_deep_weights(const mica_context *ctx, const mica_conv_product *p, mica_conv_winograd *w)
{
    if (p->groups != 1 || p->out.column_stride != 1 ||
        !mica_conv_winograd_suits(ctx, &p->in, p->channels, p->m))
        return false;
    size_t frequencies = p->in.rows.taps == 1 ? MICA_WINOGRAD_FLAT_FREQUENCIES : MICA_WINOGRAD_FREQUENCIES;
    size_t tile = MICA_FAMILY(ctx->kernels, tiles)->channels,
           each = frequencies * p->channels * sizeof(float);
    w->some = mica_least(mica_most(1, DEEP_WEIGHT_BYTES / each / tile), 4) * tile;
    w->panel_stride = mica_conv_frequency_stride(p->channels * tile);
    w->weight_bytes = p->prepared != NULL
                          ? 0
                          : mica_align_up(w->some / tile * frequencies * w->panel_stride * sizeof(float));
    w->offset_bytes = mica_align_up(p->channels * sizeof(ptrdiff_t));
    return true;
}

/* Rounds of output channels. */
static size_t deep_rounds(const mica_conv_product *p, const mica_conv_winograd *w)
{
    return mica_div_up(p->m, w->some);
}

static size_t deep_bytes(const mica_context *ctx, const mica_conv_product *p, const mica_conv_winograd *w)
{
    size_t shared = w->group * w->input_bytes +
                    (w->weight_bytes + w->output_bytes) * mica_conv_parts(ctx, deep_rounds(p, w)),
           apart = p->prepared != NULL
                       ? (w->input_bytes + w->output_bytes) * mica_least(w->tiling.all, (size_t)ctx->threads)
                       : 0;
    return w->offset_bytes + mica_most(shared, apart);
}

static void set_deep_tiles(const mica_context *ctx, const mica_conv_product *p, mica_conv_winograd *w)
{
    set_tiles(ctx, p, w);
    size_t blocks = tile_blocks(&w->tiling);
    size_t most = mica_most(1, DEEP_INPUT_BYTES / w->input_bytes);
    w->group = mica_div_up(blocks, mica_div_up(blocks, most)); /* groups of about one size */
}

/* Blocks of as many tiles as the other way has, or as the inputs have room for, whole vectors of them. */
static mica_conv_tiling deep_tiling(const mica_context *ctx, const mica_conv_product *p,
                                    const mica_conv_extent *e)
{
    mica_conv_tiling t = tiling_of(ctx, p->in.rows.taps == 1, e, p->channels, INPUT_BYTES, BLOCK_TILES);
    size_t lanes = MICA_FAMILY(ctx->kernels, tiles)->lanes;
    size_t room = DEEP_INPUT_BYTES / (t.frequencies * p->channels * sizeof(float)) / lanes * lanes;
    t.block = mica_least(t.block, mica_most(lanes, room));
    return t;
}

static bool deep_fits(const mica_context *ctx, mica_conv_product *p)
{
    mica_conv_winograd *w = &p->winograd;
    if (!set_deep_weights(ctx, p, w) || p->images * p->pixels == 0)
        return false;
    mica_conv_extent all = mica_conv_extent_of(p->images, p->in.rows.count, p->in.columns.count);
    w->tiling = deep_tiling(ctx, p, &all);
    set_deep_tiles(ctx, p, w);
    return true;
}

static size_t deep_scratch(const mica_context *ctx, const mica_conv_product *p, mica_conv_extent *up_to)
{
    mica_conv_winograd w;
    if (!set_deep_weights(ctx, p, &w) || mica_conv_extent_pixels(up_to) == 0)
        return 0;
    w.tiling = deep_tiling(ctx, p, up_to);
    mica_conv_extent_clear(up_to);
    set_tiles(ctx, p, &w);
    /* Groups of fewer blocks, or of smaller ones, take no more. */
    w.group = mica_least(tile_blocks(&w.tiling), mica_most(1, DEEP_INPUT_BYTES / w.input_bytes));
    size_t bytes = deep_bytes(ctx, p, &w);
    return w.group * w.input_bytes < DEEP_INPUT_BYTES && w.group < tile_blocks(&w.tiling)
               ? bytes + DEEP_INPUT_BYTES - w.group * w.input_bytes
               : bytes;
}

static size_t deep_taken(const mica_context *ctx, const mica_conv_product *p)
{
    return deep_bytes(ctx, p, &p->winograd);
}

static double deep_cost(const mica_context *ctx, const mica_conv_product *p)
{
    const mica_conv_costs *all = mica_conv_costs_of(ctx->kernels);
    size_t groups = mica_div_up(tile_blocks(&p->winograd.tiling), p->winograd.group);
    return transform_cost(ctx, p, p->prepared != NULL ? &all->deep_prepared : &all->deep, groups, 1);
}

/* ---- The run ---- */

typedef struct job {
    const mica_conv_product *p;
    mica_conv_taps taps;        /* read forwards */
    mica_conv_frequencies from; /* the inputs */
    float *weights;
    ptrdiff_t *offset;
    char *own;           /* of each thread */
    size_t first, count; /* output channels of this chunk; deep: blocks of this group */
    char *inputs;        /* deep: those blocks */
} job;

/* The panels of one tile of output channels, [36, channels, tile]: up to `count` of them from `channel` on. */
static void weigh(const job *j, float *panels, size_t channel, size_t count)
{
    const mica_conv_product *p = j->p;
    size_t tile = MICA_FAMILY(p->kernels, tiles)->channels, stride = p->winograd.panel_stride;
    if (tile > count)
        memset(panels, 0, p->winograd.tiling.frequencies * stride * sizeof *panels);
    MICA_FAMILY(p->kernels, winograd)
        ->panel(panels, stride, tile, j->taps.data + (ptrdiff_t)channel * p->w.vector_stride,
                p->w.vector_stride, j->taps.channel_stride, j->taps.row_stride, j->taps.column_stride,
                mica_least(tile, count), p->channels);
}

/* Floats of the panels of so many output channels, whole tiles of them. */
static size_t panel_floats(const mica_conv_product *p, size_t channels)
{
    return channels / MICA_FAMILY(p->kernels, tiles)->channels * p->winograd.tiling.frequencies *
           p->winograd.panel_stride;
}

/* The weights of one tile of output channels of the chunk. */
static void weigh_block(void *work, size_t block, int thread)
{
    (void)thread;
    const job *j = work;
    size_t o = block * MICA_FAMILY(j->p->kernels, tiles)->channels;
    weigh(j, j->weights + panel_floats(j->p, o), j->first + o, j->count - o);
}

/* Outputs [36, some, block] of m output channels, whose panels these are, from inputs of `count` tiles. */
static void multiply(const job *j, float *outputs, const float *inputs, const float *panels, size_t m,
                     size_t count)
{
    const mica_conv_product *p = j->p;
    const mica_conv_winograd *w = &p->winograd;
    size_t block = w->tiling.block;
    for (size_t f = 0; f < w->tiling.frequencies; f++) {
        mica_conv_block b = {.rows = 1,
                             .columns = count,
                             .window = inputs + f * w->input_stride,
                             .offset = j->offset,
                             .channels = p->channels,
                             .taps = 1};
        mica_conv_planes out = {
            .data = outputs + f * w->output_stride, .channel_stride = (ptrdiff_t)block, .column_stride = 1};
        MICA_FAMILY(p->kernels, tiles)
            ->image(&out, &b, panels + f * w->panel_stride, w->tiling.frequencies * w->panel_stride, NULL, m,
                    false);
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
            ->output(&y, &run, outputs + done, w->output_stride, p->bias != NULL ? p->bias[channel] : 0.0f,
                     p->accumulate);
        mica_conv_finish_plane(p, y.data + run.row * y.row_stride + run.column,
                               mica_least(run.flat ? 1 : MICA_WINOGRAD_TILE, (size_t)(y.rows - run.row)),
                               mica_least(MICA_WINOGRAD_TILE * run.tiles, (size_t)(y.columns - run.column)));
        done += run.tiles;
    }
}

/* All output channels of the chunk for some tiles, in part number `part` of the scratch. */
static void multiply_tiles(const job *j, size_t part, size_t first, size_t count)
{
    const mica_conv_product *p = j->p;
    const mica_conv_winograd *w = &p->winograd;
    char *own = j->own + part * (w->input_bytes + w->output_bytes);
    float *inputs = (float *)(void *)own, *outputs = (float *)(void *)(own + w->input_bytes);
    for (size_t c = 0; c < p->channels; c++)
        mica_conv_transform(inputs, &j->from, MICA_FAMILY(p->kernels, winograd), c, first, count);
    for (size_t o = 0; o < j->count; o += w->some) {
        size_t m = mica_least(w->some, j->count - o);
        multiply(j, outputs, inputs, j->weights + panel_floats(p, o), m, count);
        for (size_t i = 0; i < m; i++)
            leave(j, outputs + i * w->tiling.block, j->first + o + i, first, count);
    }
}

static void tile_block(void *work, size_t number, int thread)
{
    const job *j = work;
    const mica_conv_tiling *t = &j->p->winograd.tiling;
    size_t first = number * t->block;
    multiply_tiles(j, mica_conv_part(j->p->ctx, tile_blocks(t), number, thread), first,
                   mica_least(t->block, t->all - first));
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

/* All but the parts of the scratch. */
static job job_of(const mica_conv_product *p)
{
    const mica_conv_winograd *w = &p->winograd;
    job j = {.p = p,
             .taps = p->w.taps,
             .from = {.tiling = &w->tiling,
                      .plane = {(float *)p->in.data, (ptrdiff_t)p->in.rows.image,
                                (ptrdiff_t)p->in.columns.image, p->in.row_stride},
                      .image_stride = p->in.image_stride,
                      .channel_stride = p->in.channel_stride,
                      .stride = w->input_stride}};
    read_forwards(&j);
    if (w->tiling.flat)
        j.taps.row_stride = 0;
    return j;
}

static void set_offsets(job *j, char *place)
{
    j->offset = (ptrdiff_t *)(void *)place;
    for (size_t c = 0; c < j->p->channels; c++)
        j->offset[c] = (ptrdiff_t)(c * j->p->winograd.tiling.block);
}

static void run(mica_context *ctx, mica_conv_product *p)
{
    const mica_conv_winograd *w = &p->winograd;
    job j = job_of(p);
    j.weights = (float *)(void *)p->scratch;
    set_offsets(&j, p->scratch + w->weight_bytes);
    j.own = p->scratch + w->weight_bytes + w->offset_bytes;
    for (; j.first < p->m; j.first += j.count) {
        j.count = mica_least(w->chunk, p->m - j.first);
        mica_parallel(ctx, mica_div_up(j.count, MICA_FAMILY(p->kernels, tiles)->channels), weigh_block, &j);
        mica_parallel(ctx, tile_blocks(&w->tiling), tile_block, &j);
    }
}

/* ---- The run of many channels ---- */

static float *block_inputs(const job *j, size_t block)
{
    return (float *)(void *)(j->inputs + block * j->p->winograd.input_bytes);
}

/* First tile of a block of the group, and how many it has. */
static size_t block_tiles(const job *j, size_t block, size_t *count)
{
    const mica_conv_tiling *t = &j->p->winograd.tiling;
    size_t first = (j->first + block) * t->block;
    *count = mica_least(t->block, t->all - first);
    return first;
}

/* Some channels of a block's inputs. */
static void deep_transform(void *work, size_t number, int thread)
{
    (void)thread;
    const job *j = work;
    size_t c = number / j->count * DEEP_CHANNELS, block = number % j->count, count;
    size_t end = mica_least(c + DEEP_CHANNELS, j->p->channels), first = block_tiles(j, block, &count);
    for (; c < end; c++)
        mica_conv_transform(block_inputs(j, block), &j->from, MICA_FAMILY(j->p->kernels, winograd), c, first,
                            count);
}

/* Some output channels of all blocks of the group. */
static void deep_block(void *work, size_t number, int thread)
{
    const job *j = work;
    const mica_conv_product *p = j->p;
    const mica_conv_winograd *w = &p->winograd;
    char *own = j->own + mica_conv_part(p->ctx, deep_rounds(p, w), number, thread) *
                             (w->weight_bytes + w->output_bytes);
    float *own_panels = (float *)(void *)own, *outputs = (float *)(void *)(own + w->weight_bytes);
    size_t o = number * w->some, m = mica_least(w->some, p->m - o),
           tile = MICA_FAMILY(p->kernels, tiles)->channels;
    const float *panels = p->prepared != NULL ? p->prepared + panel_floats(p, o) : own_panels;
    for (size_t i = 0; i < m && p->prepared == NULL; i += tile)
        weigh(j, own_panels + panel_floats(p, i), o + i, m - i);
    for (size_t block = 0, count; block < j->count; block++) {
        size_t first = block_tiles(j, block, &count);
        multiply(j, outputs, block_inputs(j, block), panels, m, count);
        for (size_t i = 0; i < m; i++)
            leave(j, outputs + i * w->tiling.block, o + i, first, count);
    }
}

/* Of threads that share the tiles instead of the output channels: each reads all weights, but none reads inputs that
 * another one has just transformed, which may have to come from far away. Tiles of a portion, whole vectors: a few
 * portions for each thread, if they are blocks. */
static size_t portion_of(const mica_context *ctx, const mica_conv_product *p)
{
    const mica_conv_tiling *t = &p->winograd.tiling;
    size_t each = mica_div_up(t->all, (size_t)ctx->threads);
    return each >= PORTIONS * t->block
               ? mica_round_up(mica_div_up(each, PORTIONS), t->block)
               : mica_least(t->all, mica_round_up(each, MICA_FAMILY(ctx->kernels, tiles)->lanes));
}

/* Whether that pays: a thread reads all weights once per block, at most MOST_WEIGHTS times what it transforms. */
static bool takes_portions(const mica_context *ctx, const mica_conv_product *p)
{
    const mica_conv_tiling *t = &p->winograd.tiling;
    size_t blocks = mica_div_up(mica_div_up(t->all, (size_t)ctx->threads), t->block);
    return p->prepared != NULL && ctx->threads > 1 && t->all > portion_of(ctx, p) &&
           p->m * blocks <= MOST_WEIGHTS * t->all;
}

static void portion_block(void *work, size_t number, int thread)
{
    const job *j = work;
    const mica_conv_tiling *t = &j->p->winograd.tiling;
    size_t portion = portion_of(j->p->ctx, j->p), first = number * portion,
           end = mica_least(first + portion, t->all),
           own = mica_conv_part(j->p->ctx, mica_div_up(t->all, portion), number, thread);
    for (; first < end; first += t->block)
        multiply_tiles(j, own, first, mica_least(t->block, end - first));
}

static void deep_run(mica_context *ctx, mica_conv_product *p)
{
    const mica_conv_winograd *w = &p->winograd;
    job j = job_of(p);
    set_offsets(&j, p->scratch);
    j.inputs = p->scratch + w->offset_bytes;
    size_t blocks = tile_blocks(&w->tiling);
    if (takes_portions(ctx, p)) {
        j.weights = (float *)p->prepared;
        j.count = p->m;
        j.own = j.inputs;
        mica_parallel(ctx, mica_div_up(w->tiling.all, portion_of(ctx, p)), portion_block, &j);
        return;
    }
    j.own = j.inputs + w->group * w->input_bytes;
    for (; j.first < blocks; j.first += j.count) {
        j.count = mica_least(w->group, blocks - j.first);
        mica_parallel(ctx, j.count * mica_div_up(p->channels, DEEP_CHANNELS), deep_transform, &j);
        mica_parallel(ctx, deep_rounds(p, w), deep_block, &j);
    }
}

/* ---- Prepared weights of many channels ---- */

/* The weights of one tile of output channels. */
static void prepare_block(void *work, size_t block, int thread)
{
    (void)thread;
    const job *j = work;
    size_t o = block * MICA_FAMILY(j->p->kernels, tiles)->channels;
    weigh(j, j->weights + panel_floats(j->p, o), o, j->p->m - o);
}

size_t mica_conv_deep_floats(const mica_context *ctx, const mica_conv_product *p)
{
    return panel_floats(p, mica_round_up(p->m, MICA_FAMILY(ctx->kernels, tiles)->channels));
}

void mica_conv_deep_prepare(mica_context *ctx, const mica_conv_product *p, float *to)
{
    job j = job_of(p);
    j.weights = to;
    mica_parallel(ctx, mica_div_up(p->m, MICA_FAMILY(p->kernels, tiles)->channels), prepare_block, &j);
}

const mica_conv_path mica_conv_winograd_path = {"winograd", fits, cost, scratch, taken, run, true, NULL};
const mica_conv_path mica_conv_deep_path = {"deep",     deep_fits, deep_cost, deep_scratch,
                                            deep_taken, deep_run,  true,      NULL};
