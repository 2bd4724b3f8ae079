/* Computing an image with Winograd's algorithm along the columns alone. */
#include "ops/conv/columns.h"

#include <stdint.h>
#include <string.h>

#include "base/parallel.h"
#include "kernel/conv_window.h"
#include "ops/conv/cost.h"
#include "ops/conv/product.h"

enum { FREQUENCIES = MICA_CONV_LINE_FREQUENCIES, ROWS = MICA_WINOGRAD_TILE };

/* ---- Lines ---- */

/* Floats of one frequency of a block's inputs; multiply-adds of a block. */
#define INPUT_FLOATS ((size_t)4096)
#define BLOCK_WORK   ((size_t)9 << 16)
/* Positions that a block has, however much work that is: some register tiles. */
#define BLOCK_POSITIONS 96
/* Taps of a frequency, and channels on the other side, below which the transforms cost more than they save. */
#define LEAST_TAPS     12
#define LEAST_CHANNELS 4
/* Pixels of all images below which transforming the weights does. */
#define LEAST_PIXELS 128

static bool three_rows(const mica_conv_axis *a)
{
    return a->taps == 3 && a->scale == 1 && (a->step == 1 || a->step == -1);
}

/* What does not change with the sizes of images: taps, layout and channels. */
static bool lines_suit(const mica_context *ctx, const mica_conv_patches *in, size_t channels, size_t m)
{
    return !ctx->no_winograd && three_rows(&in->rows) && in->columns.scale == 1 && in->column_stride == 1 &&
           channels * in->columns.taps >= LEAST_TAPS && m >= LEAST_CHANNELS;
}

/* Positions of a block that has as much work as threads can share, or some register tiles and up to a line more. */
static size_t worth(const mica_conv_axis *columns, size_t channels, size_t m)
{
    return BLOCK_WORK / (FREQUENCIES * channels * columns->taps * m);
}

bool mica_conv_lines_plan(const mica_context *ctx, mica_conv_lines *l, const mica_conv_patches *in,
                          size_t images, size_t channels, size_t m)
{
    const mica_conv_axis *rows = &in->rows, *columns = &in->columns;
    if (!lines_suit(ctx, in, channels, m) || images * rows->count * columns->count < LEAST_PIXELS)
        return false;
    *l = (mica_conv_lines){.channels = channels,
                           .columns = columns->count,
                           .down = mica_div_up(rows->count, ROWS),
                           .span = mica_conv_span(columns, columns->count),
                           .row = rows->base + mica_conv_lowest(rows),
                           .column = columns->base + mica_conv_lowest(columns)};
    l->all = images * l->down;
    /* Zeros at both ends of a line are needed once. */
    ptrdiff_t right = l->column + (ptrdiff_t)l->span - (ptrdiff_t)columns->image;
    ptrdiff_t zeros = mica_least_index(mica_least_index(-l->column, right), mica_conv_reach(columns));
    l->pitch = l->span - (zeros > 0 ? (size_t)zeros : 0);
    size_t fit = INPUT_FLOATS / channels / l->pitch;
    if (fit == 0)
        return false;
    size_t few = mica_div_up(BLOCK_POSITIONS, l->pitch);
    fit = mica_least(fit, mica_most(few, worth(columns, channels, m) / l->pitch));
    mica_conv_lines_cut(l, l->all, fit * l->pitch, MICA_FAMILY(ctx->kernels, tiles)->lanes);
    return true;
}

size_t mica_conv_lines_most(const mica_context *ctx, const mica_conv_patches *in, size_t channels, size_t m,
                            size_t positions, mica_conv_extent *up_to)
{
    if (!lines_suit(ctx, in, channels, m) || mica_conv_extent_pixels(up_to) < LEAST_PIXELS)
        return 0;
    /* A line's pitch is at most its span, and the span at most a reach more than the pitch. */
    const mica_conv_axis *columns = &in->columns;
    size_t span = mica_conv_span(columns, up_to->columns), first = INPUT_FLOATS / channels;
    size_t lines = up_to->images * mica_div_up(up_to->rows, ROWS),
           lanes = MICA_FAMILY(ctx->kernels, tiles)->lanes;
    size_t fit = mica_most(BLOCK_POSITIONS - 1 + span, worth(columns, channels, m));
    fit = mica_least(mica_least(fit, first), mica_most(positions, span));
    fit = mica_least(fit, lines * span);
    if (span <= first)
        up_to->pixels = mica_least(up_to->pixels, LEAST_PIXELS - 1);
    return mica_round_up(fit + (size_t)mica_conv_reach(columns) + lanes - 1, lanes) + lanes;
}

void mica_conv_lines_cut(mica_conv_lines *l, size_t count, size_t positions, size_t lanes)
{
    l->most = mica_most(1, mica_least(positions / l->pitch, l->all));
    l->block = mica_div_up(count, mica_most(1, mica_div_up(count, l->most)));
    l->room = mica_conv_lines_end(l, l->most, lanes) + lanes; /* a vector may be written past it */
}

size_t mica_conv_lines_end(const mica_conv_lines *l, size_t count, size_t lanes)
{
    return mica_round_up((count - 1) * l->pitch + l->span + lanes - 1, lanes);
}

mica_conv_block mica_conv_lines_block(const mica_conv_lines *l, const mica_conv_axis *columns, size_t count,
                                      size_t lanes, const ptrdiff_t *offset)
{
    return (mica_conv_block){.rows = 1,
                             .columns = mica_round_up((count - 1) * l->pitch + l->columns, lanes),
                             .offset = offset,
                             .channels = l->channels,
                             .taps = columns->taps};
}

void mica_conv_lines_offsets(ptrdiff_t *offset, const mica_conv_lines *l, const mica_conv_axis *columns)
{
    for (size_t c = 0; c < l->channels; c++)
        for (size_t u = 0; u < columns->taps; u++)
            *offset++ = (ptrdiff_t)(c * l->room) + (ptrdiff_t)u * columns->step - mica_conv_lowest(columns);
}

mica_winograd_lines mica_conv_lines_at(const mica_conv_lines *l, size_t first, size_t most,
                                       const mica_conv_planes *from, size_t rows, size_t columns)
{
    size_t image = first / l->down, line = first % l->down;
    return (mica_winograd_lines){.plane = {from->data + (ptrdiff_t)image * from->image_stride,
                                           (ptrdiff_t)rows, (ptrdiff_t)columns, from->row_stride},
                                 .channel_stride = from->channel_stride,
                                 .row = (ptrdiff_t)(line * ROWS),
                                 .lines = mica_least(l->down - line, most),
                                 .pitch = l->pitch,
                                 .room = l->room};
}

void mica_conv_lines_load(float *inputs, const mica_conv_lines *l, const mica_conv_patches *in, size_t first,
                          size_t count, const mica_kernels *kernels)
{
    mica_conv_planes from = {(float *)in->data, in->image_stride, in->channel_stride, in->row_stride, 1};
    size_t end = mica_conv_lines_end(l, count, MICA_FAMILY(kernels, tiles)->lanes);
    for (size_t done = 0, n; done < count; done += n) {
        mica_winograd_lines some = mica_conv_lines_at(l, first + done, count - done, &from, in->rows.image,
                                                      in->columns.image);
        n = some.lines;
        some.channels = l->channels;
        some.row += l->row;
        some.column = l->column;
        some.begin = done == 0 ? 0 : l->span - l->pitch;
        some.count = l->span;
        some.last = done + n < count ? l->span : end - (count - 1) * l->pitch;
        MICA_FAMILY(kernels, winograd)->input_lines(inputs + done * l->pitch, l->channels * l->room, &some);
    }
}

/* ---- The plan ---- */

/* Bytes of transformed weights at most. */
#define WEIGHT_BYTES ((size_t)1536 << 10)

/* All but the bytes of lines, which follow from their room; false if this is not for lines, or has too many weights. */
static bool set_weights(const mica_context *ctx, const mica_conv_product *p, mica_conv_columns *w)
{
    if (p->groups != 1 || p->out.column_stride != 1 || !lines_suit(ctx, &p->in, p->channels, p->m))
        return false;
    size_t tile = MICA_FAMILY(ctx->kernels, tiles)->channels, taps = p->channels * p->in.columns.taps;
    w->weight_bytes = mica_align_up(FREQUENCIES * taps * mica_round_up(p->m, tile) * sizeof(float));
    w->some = mica_least(4 * tile, mica_round_up(p->m, tile));
    w->offset_bytes = mica_align_up(taps * sizeof(ptrdiff_t));
    return w->weight_bytes <= WEIGHT_BYTES;
}

static void set_lines(const mica_conv_product *p, mica_conv_columns *w, size_t room)
{
    w->input_bytes = mica_align_up(FREQUENCIES * p->channels * room * sizeof(float));
    w->output_bytes = mica_align_up(FREQUENCIES * w->some * room * sizeof(float));
}

static size_t bytes_of(const mica_context *ctx, const mica_conv_columns *w)
{
    return w->weight_bytes + w->offset_bytes + (w->input_bytes + w->output_bytes) * (size_t)ctx->threads;
}

static bool fits(const mica_context *ctx, mica_conv_product *p)
{
    mica_conv_columns *w = &p->columns;
    if (!set_weights(ctx, p, w) ||
        !mica_conv_lines_plan(ctx, &w->lines, &p->in, p->images, p->channels, p->m))
        return false;
    if (p->pool != NULL && w->lines.most >= w->lines.down) /* whole images */
        w->lines.block = mica_most(1, w->lines.block / w->lines.down) * w->lines.down;
    set_lines(p, w, w->lines.room);
    return true;
}

static size_t scratch(const mica_context *ctx, const mica_conv_product *p, mica_conv_extent *up_to)
{
    mica_conv_columns w;
    if (!set_weights(ctx, p, &w))
        return 0;
    size_t room = mica_conv_lines_most(ctx, &p->in, p->channels, p->m, SIZE_MAX, up_to);
    if (room == 0)
        return 0;
    set_lines(p, &w, room);
    return bytes_of(ctx, &w);
}

static size_t taken(const mica_context *ctx, const mica_conv_product *p)
{
    return bytes_of(ctx, &p->columns);
}

/* A round of channels of an image, if blocks have whole ones. */
static size_t stage_floats(const mica_conv_product *p)
{
    return p->columns.lines.block % p->columns.lines.down == 0 ? p->columns.some * p->pixels : 0;
}

/* ---- The run ---- */

typedef struct job {
    const mica_conv_product *p;
    float *weights; /* panels [m / tile, 6, taps, tile] */
    ptrdiff_t *offset;
    char *own; /* of each thread */
} job;

/* The weights of one tile of output channels from o on. */
static void weigh(const job *j, size_t o)
{
    const mica_conv_product *p = j->p;
    size_t tile = MICA_FAMILY(p->kernels, tiles)->channels, across = p->in.columns.taps,
           panel = p->channels * across * tile;
    float *panels = j->weights + o / tile * FREQUENCIES * panel;
    if (o + tile > p->m)
        memset(panels, 0, FREQUENCIES * panel * sizeof *panels);
    /* Rows that run backwards, as in the gradient by the input, are turned around. */
    bool backwards = p->in.rows.step < 0;
    ptrdiff_t row_stride = backwards ? -p->w.taps.row_stride : p->w.taps.row_stride;
    const float *taps = p->w.taps.data + (backwards ? 2 * p->w.taps.row_stride : 0);
    for (size_t i = 0; i < mica_least(tile, p->m - o); i++)
        for (size_t u = 0; u < across; u++)
            MICA_FAMILY(p->kernels, winograd)
                ->kernels(panels + u * tile + i, panel, across * tile,
                          taps + (ptrdiff_t)(o + i) * p->w.vector_stride +
                              (ptrdiff_t)u * p->w.taps.column_stride,
                          p->w.taps.channel_stride, 0, row_stride, p->channels);
}

/* Lines of m output channels from o on to their places; returns how many: those of one image. */
static size_t leave(const mica_conv_product *p, const float *outputs, float *stage, size_t o, size_t m,
                    size_t first, size_t most)
{
    const mica_conv_lines *l = &p->columns.lines;
    mica_conv_planes out = p->out;
    if (stage != NULL) {
        out.data = stage;
        out.image_stride = 0;
    } else {
        out.data += (ptrdiff_t)o * out.channel_stride;
    }
    mica_winograd_lines some = mica_conv_lines_at(l, first, most, &out, p->in.rows.count, l->columns);
    some.channels = m;
    MICA_FAMILY(p->kernels, winograd)
        ->output_lines(&some, outputs, p->columns.some * l->room, p->bias != NULL ? p->bias + o : NULL,
                       p->accumulate);
    if (stage != NULL) {
        mica_conv_pool_stage(p, stage, first / l->down, o, m);
        return some.lines;
    }
    size_t rows = mica_least(some.lines * ROWS, p->in.rows.count - (size_t)some.row);
    for (size_t i = 0; i < m && p->finish != NULL; i++)
        mica_conv_finish_plane(
            p, some.plane.data + (ptrdiff_t)i * some.channel_stride + some.row * some.plane.row_stride, rows,
            l->columns);
    return some.lines;
}

static void line_block(void *work, size_t number, int thread)
{
    const job *j = work;
    const mica_conv_product *p = j->p;
    const mica_conv_columns *w = &p->columns;
    const mica_conv_lines *l = &w->lines;
    const mica_tiles_kernels *tiles = MICA_FAMILY(p->kernels, tiles);
    char *own = j->own + (size_t)thread * (w->input_bytes + w->output_bytes);
    float *inputs = (float *)(void *)own, *outputs = (float *)(void *)(own + w->input_bytes);
    float *stage = p->pool != NULL ? (float *)(void *)(p->stage + (size_t)thread * p->stage_bytes) : NULL;
    size_t first = number * l->block, count = mica_least(l->block, l->all - first);
    size_t panel = p->channels * p->in.columns.taps * tiles->channels;
    mica_conv_lines_load(inputs, l, &p->in, first, count, p->kernels);
    mica_conv_block b = mica_conv_lines_block(l, &p->in.columns, count, tiles->lanes, j->offset);
    for (size_t o = 0; o < p->m; o += w->some) {
        size_t m = mica_least(w->some, p->m - o);
        const float *panels = j->weights + o / tiles->channels * FREQUENCIES * panel;
        for (size_t f = 0; f < FREQUENCIES; f++) {
            mica_conv_planes out = {.data = outputs + f * w->some * l->room,
                                    .channel_stride = (ptrdiff_t)l->room,
                                    .column_stride = 1};
            b.window = inputs + f * p->channels * l->room;
            tiles->image(&out, &b, panels + f * panel, FREQUENCIES * panel, NULL, m, false);
        }
        for (size_t done = 0; done < count;)
            done += leave(p, outputs + done * l->pitch, stage, o, m, first + done, count - done);
    }
}

static void run(mica_context *ctx, mica_conv_product *p)
{
    const mica_conv_columns *w = &p->columns;
    job j = {.p = p,
             .weights = (float *)(void *)p->scratch,
             .offset = (ptrdiff_t *)(void *)(p->scratch + w->weight_bytes),
             .own = p->scratch + w->weight_bytes + w->offset_bytes};
    mica_conv_lines_offsets(j.offset, &w->lines, &p->in.columns);
    for (size_t o = 0; o < p->m; o += MICA_FAMILY(p->kernels, tiles)->channels)
        weigh(&j, o);
    double sums = (double)(p->images * p->m * p->pixels) * (double)p->k;
    mica_parallel_sums(ctx, sums / 2, mica_div_up(w->lines.all, w->lines.block), line_block, &j);
}

static double cost(const mica_context *ctx, const mica_conv_product *p)
{
    size_t lanes = mica_conv_cost_lanes(ctx->kernels);
    const mica_conv_transform_costs *c = &mica_conv_costs_of(ctx->kernels)->columns;
    const mica_conv_lines *l = &p->columns.lines;
    double blocks = (double)mica_div_up(l->all, l->block), pairs = (double)(p->channels * p->m);
    double positions = blocks * (double)mica_round_up((l->block - 1) * l->pitch + l->columns, lanes);
    return pairs * (double)p->in.columns.taps *
               (FREQUENCIES * (positions * c->sum + blocks * c->begin) + c->weight) +
           positions * ((double)p->channels * c->in + (double)p->m * c->out);
}

const mica_conv_path mica_conv_columns_path = {"columns", fits, cost,         scratch, taken,
                                               run,       true, stage_floats, false};
