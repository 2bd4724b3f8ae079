/* Depthwise convolutions: the gradient by the weights, in parts of about so many pixels, which are added up in order.
 *
 *   scratch:  [ for each part, if there are several: taps of all channels ]
 */
#include <string.h>

#include "base/parallel.h"
#include "ops/conv/depthwise.h"
#include "ops/conv/weight.h"

#define PART_PIXELS 4096
#define PARTS       64
/* Lanes of the widest vector. */
#define MOST_LANES 16

static size_t parts_of(size_t pixels) { return mica_most(1, mica_least(PARTS, pixels / PART_PIXELS)); }

static bool is_depthwise(const mica_conv *c)
{
    return c->narrow_channels == 1 && c->wide_channels == 1 && c->groups > 1;
}

typedef struct job {
    const mica_kernels *kernels;
    const mica_conv *c;
    mica_conv_patches wide;
    size_t taps, parts, some; /* channels of a block */
    float *sums;              /* [parts, channels, taps], or NULL */
    mica_lanes_plan lanes;
    mica_strip_shape strip;
} job;

/* ---- The way ---- */

static bool lanes_plan(const mica_context *ctx, const mica_conv *c, const mica_conv_patches *wide,
                       mica_conv_lanes *l)
{
    size_t lanes = MICA_FAMILY(ctx->kernels, lanes)->lanes;
    return lanes > 1 && lanes <= MOST_LANES && 4 * c->groups >= lanes &&
           mica_conv_lanes_begin(l, wide, &c->narrow, c->batch, c->rows.narrow, c->columns.narrow) &&
           mica_conv_lanes_add(l, wide, 0, 0, &c->weight, 0) && mica_conv_lanes_end(l);
}

static bool strips_plan(const mica_context *ctx, const mica_conv *c, const mica_conv_patches *wide,
                        mica_strip_shape *s)
{
    size_t lanes = MICA_FAMILY(ctx->kernels, strips)->lanes;
    return lanes > 1 && lanes <= MOST_LANES &&
           mica_conv_strip_shape(s, wide, c->narrow.row_stride, c->narrow.column_stride);
}

/* Plans it one way or the other; false where there is none. */
static bool plan(const mica_context *ctx, const mica_conv *c, job *j, bool *by_lanes)
{
    mica_conv_lanes l;
    if (!is_depthwise(c))
        return false;
    j->wide = mica_conv_patches_of(c, ctx->kernels);
    bool strips = strips_plan(ctx, c, &j->wide, &j->strip);
    bool narrow = mica_conv_is_narrow(MICA_FAMILY(ctx->kernels, lanes)->lanes, c->columns.narrow, c->groups);
    *by_lanes = (narrow || !strips) && lanes_plan(ctx, c, &j->wide, &l);
    if (*by_lanes)
        j->lanes = l.plan;
    return *by_lanes || strips;
}

static bool fits(const mica_context *ctx, const mica_conv *c)
{
    job j;
    bool by_lanes;
    return plan(ctx, c, &j, &by_lanes);
}

static size_t bytes_of(const mica_conv *c, size_t parts)
{
    return parts > 1 ? mica_align_up(parts * c->groups * c->rows.taps * c->columns.taps * sizeof(float)) : 0;
}

static size_t scratch(const mica_context *ctx, const mica_conv *c, mica_conv_extent *up_to)
{
    (void)ctx;
    return is_depthwise(c) ? bytes_of(c, parts_of(mica_conv_extent_pixels(up_to))) : 0;
}

/* ---- Sums ---- */

/* The taps of a channel into their places. */
static void place_taps(const mica_conv *c, const float *taps, size_t channel)
{
    float *to = c->weight.data + (ptrdiff_t)channel * c->weight_stride;
    for (size_t t = 0; t < c->rows.taps; t++, to += c->weight.row_stride)
        for (size_t u = 0; u < c->columns.taps; u++) {
            float *place = to + (ptrdiff_t)u * c->weight.column_stride, tap = *taps++;
            *place = c->accumulate ? *place + tap : tap;
        }
}

/* The same, or into the part's sums. */
static void leave(const job *j, const float *taps, size_t part, size_t channel)
{
    if (j->sums == NULL)
        place_taps(j->c, taps, channel);
    else
        memcpy(j->sums + (part * j->c->groups + channel) * j->taps, taps, j->taps * sizeof *taps);
}

static void add_parts(void *work, size_t channel, int thread)
{
    (void)thread;
    const job *j = work;
    float taps[MICA_LANES_TAPS];
    for (size_t k = 0; k < j->taps; k++) {
        double sum = 0.0;
        for (size_t part = 0; part < j->parts; part++)
            sum += (double)j->sums[(part * j->c->groups + channel) * j->taps + k];
        taps[k] = (float)sum;
    }
    place_taps(j->c, taps, channel);
}

/* Number `part` of as many parts of n: from here on. */
static size_t part_begin(const job *j, size_t part, size_t n) { return part * n / j->parts; }

static void lanes_block(void *work, size_t block, int thread)
{
    (void)thread;
    const job *j = work;
    const mica_conv *c = j->c;
    const mica_lanes_kernels *kernels = MICA_FAMILY(j->kernels, lanes);
    size_t part = block % j->parts, channel = block / j->parts * j->some,
           end = mica_least(channel + j->some, c->groups), units = c->batch * j->lanes.bands;
    float sums[MOST_LANES * MICA_LANES_TAPS];
    for (; channel < end; channel += kernels->lanes) {
        size_t n = mica_least(kernels->lanes, end - channel);
        kernels->gradient(&j->lanes, sums, c->narrow.data + (ptrdiff_t)channel * c->narrow.channel_stride,
                          c->wide.data + (ptrdiff_t)channel * c->wide.channel_stride, n,
                          part_begin(j, part, units), part_begin(j, part + 1, units));
        for (size_t i = 0; i < n; i++)
            leave(j, sums + i * j->taps, part, channel + i);
    }
}

/* Rows begin .. end - 1, counted over all images, of one channel. */
static void strips_rows(const job *j, float *sums, size_t channel, size_t begin, size_t end)
{
    const mica_conv *c = j->c;
    for (size_t row = begin, count; row < end; row += count) {
        size_t image = row / j->strip.rows, first = row % j->strip.rows;
        count = mica_least(end - row, j->strip.rows - first);
        const float *dy = c->narrow.data + (ptrdiff_t)image * c->narrow.image_stride +
                          (ptrdiff_t)channel * c->narrow.channel_stride;
        const float *x = c->wide.data + (ptrdiff_t)image * c->wide.image_stride +
                         (ptrdiff_t)channel * c->wide.channel_stride;
        MICA_FAMILY(j->kernels, strips)->gradient(sums, dy, x, &j->strip, first, count);
    }
}

static void strips_block(void *work, size_t block, int thread)
{
    (void)thread;
    const job *j = work;
    size_t part = block % j->parts, channel = block / j->parts * j->some,
           end = mica_least(channel + j->some, j->c->groups), rows = j->c->batch * j->strip.rows;
    for (; channel < end; channel++) {
        float sums[MICA_STRIPS_TAPS * MOST_LANES], taps[MICA_STRIPS_TAPS];
        memset(sums, 0, j->taps * MICA_FAMILY(j->kernels, strips)->lanes * sizeof *sums);
        strips_rows(j, sums, channel, part_begin(j, part, rows), part_begin(j, part + 1, rows));
        MICA_FAMILY(j->kernels, strips)->fold(taps, sums, j->taps);
        leave(j, taps, part, channel);
    }
}

static void run(mica_context *ctx, const mica_conv *c, void *scratch_memory)
{
    job j = {.kernels = ctx->kernels, .c = c, .taps = c->rows.taps * c->columns.taps};
    bool by_lanes;
    if (!plan(ctx, c, &j, &by_lanes))
        return;
    size_t pixels = c->batch * c->rows.narrow * c->columns.narrow;
    j.parts = parts_of(pixels);
    j.sums = j.parts > 1 ? scratch_memory : NULL;
    size_t lanes = by_lanes ? MICA_FAMILY(ctx->kernels, lanes)->lanes : 1;
    size_t work = by_lanes ? c->batch * j.lanes.bands * mica_conv_lanes_work(&j.lanes) : pixels * j.taps;
    j.some = lanes * mica_most(1, MICA_DEPTHWISE_WORK / mica_most(1, work / j.parts * lanes));
    mica_parallel_sums(ctx, (double)work * (double)c->groups, mica_div_up(c->groups, j.some) * j.parts,
                       by_lanes ? lanes_block : strips_block, &j);
    if (j.parts > 1)
        mica_parallel_sums(ctx, (double)(j.parts * j.taps) * (double)c->groups, c->groups, add_parts, &j);
}

const mica_conv_weight_path mica_conv_weight_depthwise_path = {"depthwise", fits, NULL, scratch, run};
