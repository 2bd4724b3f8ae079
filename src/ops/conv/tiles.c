/* A convolution's image in register tiles, without packing: conv_product.h. */
#include "base/parallel.h"
#include "ops/conv/product.h"

/* The parts of the scratch. */
typedef struct job {
    const mica_conv_product *p;
    float *panels;
    size_t group_floats; /* of panels */
    ptrdiff_t *offset;
    char *windows;
} job;

static size_t panel_floats(const mica_conv_product *p)
{
    return mica_round_up(p->m, p->kernels->tiles->channels) * p->k;
}

size_t mica_conv_tiles_bytes(const mica_context *ctx, const mica_conv_product *p)
{
    return mica_align_up(p->groups * panel_floats(p) * sizeof(float)) + p->grid.offset_bytes +
           p->grid.window_bytes * (size_t)ctx->threads;
}

/* All panels of one group. */
static void pack_group(const job *j, size_t group)
{
    const mica_conv_product *p = j->p;
    mica_conv_weights w = p->w;
    w.taps.data += (ptrdiff_t)group * w.group_stride;
    size_t width = p->kernels->tiles->channels;
    float *panel = j->panels + group * j->group_floats;
    for (size_t o = 0; o < p->m; o += width, panel += width * p->k)
        mica_conv_pack_weights(&w, panel, width, o, mica_least(width, p->m - o), 0, p->k);
}

static void tile_block(void *work, size_t number, int thread)
{
    const job *j = work;
    const mica_conv_product *p = j->p;
    const mica_tiles_kernels *tiles = p->kernels->tiles;
    size_t blocks = p->grid.down * p->grid.across;
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
        tiles->image(&out, &b, panels, tiles->channels * p->k, bias, p->m, p->accumulate || c > 0);
        in.data += (ptrdiff_t)b.channels * in.channel_stride;
        panels += b.channels * b.taps * tiles->channels;
    }
    if (p->pool != NULL)
        mica_conv_pool_stage(p, stage, image, group * p->m, p->m);
    for (size_t i = 0; i < p->m && p->pool == NULL; i++)
        mica_conv_finish_plane(p, out.data + (ptrdiff_t)i * out.channel_stride, b.rows, b.columns);
}

void mica_conv_tiles_run(mica_context *ctx, const mica_conv_product *p)
{
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
