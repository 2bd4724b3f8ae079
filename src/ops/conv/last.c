/* A convolution's image channels last: last.h. */
#include "ops/conv/last.h"

#include <math.h>

#include "base/parallel.h"
#include "ops/conv/cost.h"
#include "ops/conv/prepare.h"

/* Floats of what a block reads and writes: so many that the first cache has most of them. Where the weights are more
 * than the second cache should hold, more of them, as the weights are then read for each block. */
#define BLOCK_FLOATS ((size_t)12288)
#define MANY_FLOATS  ((size_t)163840)
#define MANY_WEIGHTS ((size_t)131072)
/* Blocks to cut a product into, if each has so many multiply-adds: by channels too, where there are few pixels. */
#define LEAST_BLOCKS 16
#define LEAST_SUMS   ((size_t)131072)
/* Patches that are made once for several blocks of channels: of so many pixels at most. */
#define SHARED_BYTES ((size_t)1 << 20)
/* Pixels so far apart, or a multiple of it, meet in the same few sets of the first cache. */
#define BAD_STRIDE 512
#define LINE       16
#define SHORT_ROW  4 /* times the taps across */

static bool writes_last(const mica_conv_product *p)
{
    return p->narrow && !p->means &&
           mica_conv_is_last(p->groups * p->m, p->out.channel_stride, p->out.column_stride) &&
           (p->groups == 1 || p->m > MICA_CONV_DIRECT_CHANNELS);
}

static bool reads_last(const mica_conv_product *p)
{
    return mica_conv_is_last(p->groups * p->channels, p->in.channel_stride, p->in.column_stride);
}

/* A single plane is in either layout, and its patches are made in either way. Rows of few pixels that lie apart are
 * better gone through pixel by pixel. */
static bool may_be_short(const mica_conv_product *p)
{
    return p->groups * p->channels == 1 && p->in.column_stride == 1 && p->in.columns.scale > 1;
}

static bool is_planar(const mica_conv_product *p)
{
    return !reads_last(p) && !(may_be_short(p) && p->in.columns.count <= SHORT_ROW * p->in.columns.taps);
}

static bool is_single(const mica_conv_axis *axis)
{
    return axis->taps == 1 && axis->scale == 1 && axis->base == 0 && axis->image >= axis->count;
}

/* How many pixels lie at one stride, one behind the other. */
static size_t run_of(const mica_conv_product *p, ptrdiff_t *stride, ptrdiff_t image_stride,
                     ptrdiff_t row_stride, ptrdiff_t column_stride)
{
    size_t rows = p->in.rows.count, columns = p->in.columns.count;
    if (!mica_conv_pixel_stride(stride, rows, columns, row_stride, column_stride)) {
        *stride = column_stride;
        return columns;
    }
    bool all = p->images == 1 || image_stride == (ptrdiff_t)p->pixels * *stride;
    return all ? p->images * p->pixels : p->pixels;
}

/* ---- The plan ---- */

static const mica_last_kernels *kernels_of(const mica_context *ctx)
{
    return MICA_FAMILY(ctx->kernels, last);
}

/* From one pixel of the patches to the next. */
static size_t patch_stride(size_t k)
{
    size_t lines = mica_div_up(k, LINE);
    return (lines % 2 == 0 ? lines + 1 : lines) * LINE;
}

/* Pixels of a block at most, by what does not change from step to step: whole units, but for a run that is one
 * block. */
static size_t most_pixels(const mica_conv_product *p, size_t unit)
{
    size_t each = p->k + p->m, floats = p->m * p->k >= MANY_WEIGHTS ? MANY_FLOATS : BLOCK_FLOATS;
    return mica_most(unit, floats / mica_most(1, each));
}

static size_t block_pixels(size_t run, size_t most, size_t unit)
{
    if (run <= most)
        return run;
    size_t units = (run + unit - 1) / unit, at_once = mica_most(1, most / unit),
           blocks = mica_most(1, (units + at_once - 1) / at_once);
    return (units + blocks - 1) / blocks * unit;
}

/* Bytes of the patches of so many pixels, with shorter rows, too. */
static size_t patches_of(const mica_conv_product *p, size_t pixels)
{
    size_t each = p->last.planar && !may_be_short(p) ? p->k : patch_stride(p->k);
    return p->last.direct ? 0 : mica_align_up(pixels * each * sizeof(float));
}

/* Blocks of pixels, of all runs and groups. */
static size_t pixel_blocks(const mica_conv_product *p)
{
    const mica_conv_last *l = &p->last;
    return mica_div_up(l->run, l->block) * mica_div_up(p->images * p->pixels, l->run) * p->groups;
}

static size_t group_floats(const mica_conv_product *p, size_t lanes)
{
    return mica_round_up(p->m, lanes) * p->k;
}

static bool is_direct(const mica_conv_product *p)
{
    return reads_last(p) && is_single(&p->in.rows) && is_single(&p->in.columns) &&
           p->in.column_stride % BAD_STRIDE != 0;
}

static bool fits(const mica_context *ctx, mica_conv_product *p)
{
    if (!writes_last(p))
        return false;
    const mica_last_kernels *kernels = kernels_of(ctx);
    mica_conv_last *l = &p->last;
    *l = (mica_conv_last){.direct = is_direct(p), .planar = is_planar(p)};
    l->run = run_of(p, &l->pixel, p->out.image_stride, p->out.row_stride, p->out.column_stride);
    if (l->direct) {
        ptrdiff_t stride;
        l->run = mica_least(l->run,
                            run_of(p, &stride, p->in.image_stride, p->in.row_stride, p->in.column_stride));
    }
    l->run = mica_most(1, l->run);
    /* Patches of planes come so many at a time. */
    size_t unit = l->planar ? MICA_CONV_PIXELS : mica_most(1, kernels->tile);
    size_t most = most_pixels(p, unit);
    l->block = mica_most(1, block_pixels(l->run, most, unit));
    size_t blocks = pixel_blocks(p);
    size_t wanted = mica_least(LEAST_BLOCKS, p->images * p->pixels * p->groups * p->m * p->k / LEAST_SUMS);
    size_t across = mica_most(1, mica_div_up(wanted, mica_most(1, blocks)));
    l->some = mica_most(kernels->width, mica_round_up(mica_div_up(p->m, across), kernels->width));
    l->weight_bytes = mica_align_up(p->groups * group_floats(p, kernels->lanes) * sizeof(float));
    l->patch_bytes = patches_of(p, most);
    l->shared = !l->direct && l->some < p->m && blocks * patches_of(p, l->block) <= SHARED_BYTES;
    return true;
}

/* Patches of blocks, of which each thread has one at a time, or all are there. */
static size_t patch_bytes(const mica_context *ctx, const mica_conv_product *p, size_t blocks, size_t shared)
{
    return mica_most(p->last.patch_bytes * mica_conv_parts(ctx, blocks), shared);
}

static size_t own_weights(const mica_conv_product *p)
{
    return p->prepared != NULL ? 0 : p->last.weight_bytes;
}

/* Blocks are never more than pixels x panels, and those whose patches are shared never more than pixels. */
static size_t scratch(const mica_context *ctx, const mica_conv_product *p, mica_conv_extent *up_to)
{
    mica_conv_product planned = *p;
    if (!fits(ctx, &planned))
        return 0;
    const mica_last_kernels *kernels = kernels_of(ctx);
    size_t pixels = mica_conv_extent_pixels(up_to) * p->groups, panels = mica_div_up(p->m, kernels->width);
    size_t most = panels > 1 ? mica_least(SHARED_BYTES, 2 * pixels * patches_of(&planned, 1)) : 0;
    mica_conv_extent_clear(up_to);
    return own_weights(&planned) + patch_bytes(ctx, &planned, pixels * panels, most);
}

static size_t taken(const mica_context *ctx, const mica_conv_product *p)
{
    const mica_conv_last *l = &p->last;
    size_t blocks = pixel_blocks(p), all = l->shared ? blocks * patches_of(p, l->block) : 0;
    return own_weights(p) + (l->shared ? all : patch_bytes(ctx, p, blocks * mica_div_up(p->m, l->some), 0));
}

/* ---- Weights ---- */

typedef struct pack_job {
    const mica_conv_product *p;
    float *to;
} pack_job;

/* Taps are the slower index of k where what is read lies channels last, the faster one otherwise. */
static void pack_panel(void *work, size_t number, int thread)
{
    (void)thread;
    const pack_job *j = work;
    const mica_conv_product *p = j->p;
    const mica_last_kernels *kernels = MICA_FAMILY(p->kernels, last);
    size_t panels = mica_div_up(p->m, kernels->width), group = number / panels;
    size_t first = number % panels * kernels->width, count = mica_least(kernels->width, p->m - first);
    size_t width = mica_round_up(count, kernels->lanes);
    float *panel = j->to + group * group_floats(p, kernels->lanes) + first * p->k;
    mica_conv_weights w = p->w;
    w.taps.data += (ptrdiff_t)group * w.group_stride;
    if (p->last.planar) {
        mica_conv_join_taps(&w);
        mica_conv_pack_weights(&w, panel, width, first, count, 0, p->k);
        return;
    }
    for (size_t t = 0; t < w.rows; t++)
        for (size_t u = 0; u < w.columns; u++, panel += p->channels * width)
            w.gemm->pack(panel, width,
                         w.taps.data + (ptrdiff_t)first * w.vector_stride + (ptrdiff_t)t * w.taps.row_stride +
                             (ptrdiff_t)u * w.taps.column_stride,
                         w.vector_stride, w.taps.channel_stride, count, p->channels);
}

static size_t panels_of(const mica_conv_product *p)
{
    return mica_div_up(p->m, MICA_FAMILY(p->kernels, last)->width) * p->groups;
}

/* ---- Running ---- */

typedef struct job {
    const mica_conv_product *p;
    const float *weights;
    char *patches;
    mica_last_end end;
    bool finishes; /* by a map, after the sums */
    size_t down, runs, across, blocks;
} job;

/* The pixels of a block: of which group, how many from which on; and its number, whatever its channels. */
typedef struct place {
    size_t group, first, pixels, number;
} place;

static place place_at(const job *j, size_t group, size_t run, size_t in_run)
{
    const mica_conv_last *l = &j->p->last;
    return (place){.group = group,
                   .first = run * l->run + in_run * l->block,
                   .pixels = mica_least(l->block, l->run - in_run * l->block),
                   .number = (group * j->runs + run) * j->down + in_run};
}

/* The image's planes of a group. */
static mica_conv_patches group_of(const mica_conv_product *p, size_t group)
{
    mica_conv_patches in = p->in;
    in.data += (ptrdiff_t)(group * p->channels) * in.channel_stride;
    return in;
}

/* Of up to MICA_CONV_PIXELS pixels of a block from number n of it on. */
static void make_some_patches(const mica_conv_product *p, float *patches, const place *at, size_t n)
{
    mica_conv_patches in = group_of(p, at->group);
    size_t count = mica_least(MICA_CONV_PIXELS, at->pixels - n), stride = patch_stride(p->k);
    if (p->last.planar)
        MICA_KERNEL(p->kernels, conv, fill)
    (&in, patches + n, at->pixels, at->first + n, count, 0, p->k);
    else MICA_FAMILY(p->kernels, last)
        ->patches(patches + n * stride, stride, &in, p->channels, at->first + n, count);
}

static void make_patches(const mica_conv_product *p, float *patches, const place *at)
{
    for (size_t n = 0; n < at->pixels; n += MICA_CONV_PIXELS)
        make_some_patches(p, patches, at, n);
}

static float *shared_patches(const job *j, const place *at)
{
    return (float *)(void *)(j->patches + at->number * patches_of(j->p, j->p->last.block));
}

/* Parts of the patches of a block. */
static size_t patch_parts(const mica_conv_last *l) { return mica_div_up(l->block, MICA_CONV_PIXELS); }

static void patches_block(void *work, size_t number, int thread)
{
    (void)thread;
    const job *j = work;
    size_t parts = patch_parts(&j->p->last), n = number % parts * MICA_CONV_PIXELS, rest = number / parts;
    place at = place_at(j, rest / j->down / j->runs, rest / j->down % j->runs, rest % j->down);
    if (n < at.pixels)
        make_some_patches(j->p, shared_patches(j, &at), &at, n);
}

/* What is read: where the pixels lie, or their patches. */
static void set_input(const job *j, mica_last_product *b, const place *at, const float *patches)
{
    const mica_conv_product *p = j->p;
    b->in = patches;
    b->k_stride = p->last.planar ? (ptrdiff_t)at->pixels : 1;
    b->pixel_stride = p->last.planar ? 1 : (ptrdiff_t)patch_stride(p->k);
    if (!p->last.direct)
        return;
    mica_conv_patches in = group_of(p, at->group);
    size_t columns = p->in.columns.count, rows = p->in.rows.count;
    b->in = in.data + (ptrdiff_t)(at->first / columns / rows) * in.image_stride +
            (ptrdiff_t)(at->first / columns % rows) * in.row_stride +
            (ptrdiff_t)(at->first % columns) * in.column_stride;
    b->k_stride = 1;
    b->pixel_stride = columns == 1 ? in.row_stride : in.column_stride;
}

static void finish(const mica_conv_product *p, const mica_last_product *b)
{
    size_t rows = b->pixels, columns = b->m;
    if (b->out_stride == (ptrdiff_t)columns) {
        columns *= rows;
        rows = 1;
    }
    for (size_t i = 0; i < rows; i++) {
        float *at = b->out + (ptrdiff_t)i * b->out_stride;
        p->finish(at, (const float *const[]){at}, columns, &p->slope);
    }
}

/* Channels, then pixels of a run, then runs, then groups: a thread has all channels of its pixels, as it has where an
 * operation on rows of pixels or on single elements made them, or reads them next. */
static void block(void *work, size_t number, int thread)
{
    const job *j = work;
    const mica_conv_product *p = j->p;
    const mica_conv_last *l = &p->last;
    size_t part = number % j->across, rest = number / j->across, columns = p->in.columns.count;
    place at = place_at(j, rest / j->down / j->runs, rest / j->down % j->runs, rest % j->down);
    size_t o = part * l->some, channel = at.group * p->m + o;
    float *patches = NULL;
    if (l->shared) {
        patches = shared_patches(j, &at);
    } else if (!l->direct) {
        patches = (float *)(void *)(j->patches +
                                    mica_conv_part(p->ctx, j->blocks, number, thread) * l->patch_bytes);
        make_patches(p, patches, &at);
    }
    mica_last_product b = {
        .pixels = at.pixels,
        .k = p->k,
        .m = mica_least(l->some, p->m - o),
        .panels = j->weights + at.group * group_floats(p, MICA_FAMILY(p->kernels, last)->lanes) + o * p->k,
        .bias = p->bias != NULL ? p->bias + channel : NULL,
        .out = p->out.data + channel,
        .out_stride = l->pixel,
        .end = j->end};
    b.out += (ptrdiff_t)(at.first / columns / p->in.rows.count) * p->out.image_stride +
             (ptrdiff_t)(at.first / columns % p->in.rows.count) * p->out.row_stride +
             (ptrdiff_t)(at.first % columns) * p->out.column_stride;
    set_input(j, &b, &at, patches);
    MICA_FAMILY(p->kernels, last)->image(&b);
    if (j->finishes)
        finish(p, &b);
}

static void run(mica_context *ctx, mica_conv_product *p)
{
    const mica_conv_last *l = &p->last;
    job j = {.p = p,
             .weights = p->prepared,
             .patches = p->scratch,
             .down = mica_div_up(l->run, l->block),
             .runs = p->images * p->pixels / l->run,
             .across = mica_div_up(p->m, l->some)};
    j.end = mica_conv_last_end(p, &j.finishes);
    if (j.weights == NULL) {
        pack_job pack = {p, (float *)(void *)p->scratch};
        mica_parallel_sums(ctx, 8.0 * (double)(p->groups * p->m * p->k), panels_of(p), pack_panel, &pack);
        j.weights = pack.to;
        j.patches += l->weight_bytes;
    }
    size_t blocks = j.down * j.runs * p->groups;
    if (l->shared)
        mica_parallel_sums(ctx, 8.0 * (double)(p->images * p->pixels * p->groups * p->k),
                           blocks * patch_parts(l), patches_block, &j);
    j.blocks = blocks * j.across;
    mica_parallel_sums(ctx, (double)(p->images * p->pixels * p->groups) * (double)(p->m * p->k), j.blocks,
                       block, &j);
}

const mica_conv_path mica_conv_last_path = {"last", fits, NULL, scratch, taken, run, true, NULL};

/* ---- What both paths share ---- */

mica_last_end mica_conv_last_end(const mica_conv_product *p, bool *finishes)
{
    const mica_activation_kernels *known = MICA_FAMILY(p->kernels, activation);
    mica_last_end end = {.accumulate = p->accumulate, .low = 0.0f, .high = INFINITY};
    end.bounded = p->finish != NULL && (p->finish == known->relu || p->finish == known->relu6);
    if (end.bounded && p->finish == known->relu6)
        end.high = 6.0f;
    *finishes = p->finish != NULL && !end.bounded;
    return end;
}

size_t mica_conv_last_floats(const mica_context *ctx, const mica_conv_product *p)
{
    return p->groups * group_floats(p, kernels_of(ctx)->lanes);
}

void mica_conv_last_prepare(mica_context *ctx, const mica_conv_product *p, float *to)
{
    pack_job pack = {p, to};
    mica_parallel(ctx, panels_of(p), pack_panel, &pack);
}
