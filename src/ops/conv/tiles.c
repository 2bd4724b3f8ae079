/* A convolution's image in register tiles, without packing: product.h. */
#include "base/parallel.h"
#include "ops/conv/cost.h"
#include "ops/conv/product.h"

/* Taps of a window, for tiles of many and of few output channels: these want little copied. */
#define FEW_CHANNELS 2
#define DEEP         128
#define DEEP_FEW     32
/* Taps and pixels from which rows that fill vectors badly are worth tiles by vectors of output channels. */
#define ACROSS_TAPS   ((size_t)48)
#define ACROSS_PIXELS ((size_t)8)
/* Multiply-adds of a block of tiles: half of all, within these. */
#define PARTS      2
#define LEAST_WORK ((size_t)1 << 16)
#define MOST_WORK  ((size_t)1 << 20)

/* The parts of the scratch. */
typedef struct job {
    const mica_conv_product *p;
    float *panels;
    size_t group_floats; /* of panels */
    ptrdiff_t *offset;
    char *windows;
} job;

/* Of panels for either kind of tiles. */
static size_t panel_floats(const mica_conv_product *p)
{
    const mica_tiles_kernels *tiles = MICA_FAMILY(p->kernels, tiles);
    return mica_round_up(p->m, mica_most(tiles->channels, tiles->lanes)) * p->k;
}

/* Whether vectors of output channels are fuller than those of pixels of a row, which are not full enough. */
static bool goes_across(const mica_context *ctx, const mica_conv_product *p)
{
    size_t lanes = MICA_FAMILY(ctx->kernels, tiles)->lanes;
    return mica_conv_fills_badly(p->in.columns.count, lanes) && !mica_conv_fills_badly(p->m, lanes) &&
           !mica_conv_by_cost(p->channels, p->m) && !p->means && p->k >= ACROSS_TAPS &&
           p->pixels >= ACROSS_PIXELS && p->in.columns.count > 1;
}

static mica_conv_grid_aim aim_of(const mica_conv_product *p, size_t work)
{
    return (mica_conv_grid_aim){.channels = p->channels,
                                .m = p->m,
                                .deep = p->m > FEW_CHANNELS ? DEEP : DEEP_FEW,
                                .work = work,
                                .any_columns = p->means};
}

static bool fits(const mica_context *ctx, mica_conv_product *p)
{
    size_t work = p->images * p->groups * p->m * p->k * p->pixels / PARTS;
    work = mica_least(mica_most(work, LEAST_WORK), MOST_WORK);
    if (p->pool != NULL) /* whole images: what is pooled stays where it was made */
        work = MOST_WORK;
    mica_conv_grid_aim aim = aim_of(p, work);
    p->channel_lanes = goes_across(ctx, p);
    aim.any_columns |= p->channel_lanes;
    return mica_conv_grid_plan(&p->grid, &p->in, &aim, MICA_FAMILY(ctx->kernels, tiles));
}

bool mica_conv_tiles_most(const mica_context *ctx, const mica_conv_product *p, mica_conv_grid *g,
                          mica_conv_extent *up_to)
{
    mica_conv_grid_aim aim = aim_of(p, LEAST_WORK);
    return mica_conv_grid_most(g, &p->in, &aim, MICA_FAMILY(ctx->kernels, tiles), up_to);
}

size_t mica_conv_tiles_bytes(const mica_context *ctx, const mica_conv_product *p, const mica_conv_grid *most)
{
    return mica_align_up(p->groups * panel_floats(p) * sizeof(float)) + most->offset_bytes +
           most->window_bytes * (size_t)ctx->threads;
}

static size_t scratch(const mica_context *ctx, const mica_conv_product *p, mica_conv_extent *up_to)
{
    mica_conv_grid most;
    return mica_conv_tiles_most(ctx, p, &most, up_to) ? mica_conv_tiles_bytes(ctx, p, &most) : 0;
}

static size_t taken(const mica_context *ctx, const mica_conv_product *p)
{
    return mica_conv_tiles_bytes(ctx, p, &p->grid);
}

/* All of an image, if it is one block. */
static size_t stage_floats(const mica_conv_product *p)
{
    return p->grid.down * p->grid.across == 1 ? p->m * p->pixels : 0;
}

/* Channels of a panel. */
static size_t panel_width(const mica_conv_product *p)
{
    const mica_tiles_kernels *tiles = MICA_FAMILY(p->kernels, tiles);
    return p->channel_lanes ? tiles->lanes : tiles->channels;
}

/* All panels of one group. */
static void pack_group(const job *j, size_t group)
{
    const mica_conv_product *p = j->p;
    mica_conv_weights w = p->w;
    w.taps.data += (ptrdiff_t)group * w.group_stride;
    size_t width = panel_width(p);
    float *panel = j->panels + group * j->group_floats;
    for (size_t o = 0; o < p->m; o += width, panel += width * p->k)
        mica_conv_pack_weights(&w, panel, width, o, mica_least(width, p->m - o), 0, p->k);
}

static void tile_block(void *work, size_t number, int thread)
{
    const job *j = work;
    const mica_conv_product *p = j->p;
    const mica_tiles_kernels *tiles = MICA_FAMILY(p->kernels, tiles);
    size_t blocks = p->grid.down * p->grid.across, width = panel_width(p);
    size_t group = number / blocks % p->groups, image = number / blocks / p->groups;
    float *window = (float *)(void *)(j->windows + (size_t)thread * p->grid.window_bytes);
    mica_conv_patches in = p->in;
    in.data += (ptrdiff_t)image * in.image_stride + (ptrdiff_t)(group * p->channels) * in.channel_stride;
    const float *panels = j->panels + group * j->group_floats;
    mica_conv_planes out = p->out;
    float *stage = p->pool != NULL ? (float *)(void *)(p->stage + (size_t)thread * p->stage_bytes) : NULL;
    mica_conv_block b = {0};
    for (size_t c = 0; c < p->channels; c += p->grid.window.channels) {
        b = mica_conv_grid_block(&p->grid, &in, number % blocks, c, window, j->offset);
        tiles->load(window, &p->grid.window, &in, &b);
        const float *bias = p->bias != NULL && c == 0 ? p->bias + group * p->m : NULL;
        if (p->totals != NULL) {
            tiles->totals(p->totals + number * p->m, &b, panels, tiles->channels * p->k, bias, p->m,
                          &p->ending);
            return;
        }
        out.data = stage != NULL ? stage
                                 : p->out.data + (ptrdiff_t)image * out.image_stride +
                                       (ptrdiff_t)(group * p->m) * out.channel_stride +
                                       (ptrdiff_t)b.i * out.row_stride + (ptrdiff_t)b.j * out.column_stride;
        (p->channel_lanes ? tiles->across : tiles->image)(&out, &b, panels, width * p->k, bias, p->m,
                                                          p->accumulate || c > 0);
        in.data += (ptrdiff_t)b.channels * in.channel_stride;
        panels += b.channels * b.taps * width;
    }
    if (p->pool != NULL)
        mica_conv_pool_stage(p, stage, image, group * p->m, p->m);
    for (size_t i = 0; i < p->m && p->pool == NULL; i++)
        mica_conv_finish_plane(p, out.data + (ptrdiff_t)i * out.channel_stride, b.rows, b.columns);
}

static void run(mica_context *ctx, mica_conv_product *p)
{
    mica_conv_join_taps(&p->w);
    job j = {.p = p, .panels = (float *)(void *)p->scratch, .group_floats = panel_floats(p)};
    char *rest = p->scratch + mica_align_up(p->groups * j.group_floats * sizeof(float));
    j.offset = (ptrdiff_t *)(void *)rest;
    j.windows = rest + p->grid.offset_bytes;
    mica_conv_grid_offsets(j.offset, &p->grid, &p->in);
    for (size_t group = 0; group < p->groups; group++)
        pack_group(&j, group);
    size_t planes = p->images * p->groups;
    double sums = (double)(planes * p->m * p->pixels) * (double)p->k;
    mica_parallel_sums(ctx, sums, planes * p->grid.down * p->grid.across, tile_block, &j);
}

static double cost(const mica_context *ctx, const mica_conv_product *p)
{
    const mica_conv_costs *all = mica_conv_costs_of(ctx->kernels);
    double images = (double)(p->images * p->groups), weights = (double)(p->m * p->k);
    /* A row's last vector overlaps the one before it. */
    size_t columns = mica_most(p->in.columns.count, mica_conv_cost_lanes(ctx->kernels));
    return images * (double)(p->in.rows.count * columns) *
               (weights * all->tiles.sum + (double)p->m * all->tiles.out) +
           images * (double)(p->channels * p->in.rows.image * p->in.columns.image) * all->tiles.in +
           (double)p->groups * weights * all->tiles.weight;
}

const mica_conv_path mica_conv_tiles_path = {"tiles", fits, cost, scratch, taken, run, true, stage_floats};
