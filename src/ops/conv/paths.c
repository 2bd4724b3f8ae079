/* The paths for computing an image and the weight gradient, and the choice between them.
 *
 * A new path is a row. Rows are tried in order; the last row of a table handles everything else. */
#include <assert.h>

#include "base/parallel.h"
#include "ops/conv/product.h"
#include "ops/conv/weight.h"

#define ROWS(table) (sizeof(table) / sizeof(table)[0])

/* ---- Images: forward, and the gradient by the input ---- */

/* Built small, one path does all: the others are large, and are chosen when a step runs. */
static const mica_conv_path *const image_paths[] = {
#if defined(MICA_SMALL)
    &mica_conv_direct_path,
#else
    &mica_conv_strips_path, &mica_conv_lanes_path,  &mica_conv_columns_path,  &mica_conv_winograd_path,
    &mica_conv_tiles_path,  &mica_conv_direct_path, &mica_conv_products_path, &mica_conv_staged_path,
#endif
};

void mica_conv_product_plan(const mica_context *ctx, mica_conv_product *p)
{
    p->ctx = ctx;
    p->kernels = ctx->kernels;
    p->k = p->channels * p->in.rows.taps * p->in.columns.taps;
    p->pixels = p->in.rows.count * p->in.columns.count;
    size_t row = 0;
    while (!image_paths[row]->fits(ctx, p)) {
        row++;
        assert(row < ROWS(image_paths));
    }
    p->path = image_paths[row];
}

size_t mica_conv_product_most(const mica_context *ctx, const mica_conv_product *p,
                              const mica_conv_extent *most)
{
    mica_conv_extent left = *most;
    size_t bytes = 0;
    for (size_t row = 0; row < ROWS(image_paths) && mica_conv_extent_pixels(&left) * p->m > 0; row++)
        bytes = mica_most(bytes, image_paths[row]->scratch(ctx, p, &left));
    return bytes;
}

size_t mica_conv_product_bytes(const mica_context *ctx, const mica_conv_product *p)
{
    if (ctx->one_size)
        return p->images * p->pixels * p->m > 0 ? p->path->taken(ctx, p) : 0;
    mica_conv_extent own = mica_conv_extent_of(p->images, p->in.rows.count, p->in.columns.count);
    return mica_conv_product_most(ctx, p, &own);
}

static void finish_block(void *work, size_t plane, int thread)
{
    (void)thread;
    const mica_conv_product *p = work;
    size_t channels = p->groups * p->m;
    mica_conv_finish_plane(p,
                           p->out.data + (ptrdiff_t)(plane / channels) * p->out.image_stride +
                               (ptrdiff_t)(plane % channels) * p->out.channel_stride,
                           p->in.rows.count, p->in.columns.count);
}

void mica_conv_product_run(mica_context *ctx, mica_conv_product *p)
{
    if (p->images * p->pixels * p->m == 0)
        return;
    p->path->run(ctx, p);
    if (p->finish != NULL && !p->path->finishes)
        mica_parallel(ctx, p->images * p->groups * p->m, finish_block, p);
}

/* ---- The gradient by the weights ---- */

static const mica_conv_weight_path *const weight_paths[] = {
#if defined(MICA_SMALL)
    &mica_conv_weight_direct_path,
#else
    &mica_conv_weight_columns_path,   &mica_conv_weight_winograd_path, &mica_conv_weight_tiles_path,
    &mica_conv_weight_depthwise_path, &mica_conv_weight_direct_path,   &mica_conv_weight_products_path,
#endif
};

mica_status mica_conv_weight(mica_context *ctx, const mica_conv *c)
{
    /* Of no images at all there is a gradient too: zeros. */
    mica_conv_extent left = mica_conv_extent_of(mica_most(1, c->batch), c->rows.narrow, c->columns.narrow);
    size_t bytes = 0, row = 0;
    bool empty = c->narrow_channels == 0 || c->wide_channels == 0;
    for (size_t i = 0; i < ROWS(weight_paths) && left.pixels > 0 && !empty; i++)
        bytes = mica_most(bytes, weight_paths[i]->scratch(ctx, c, &left));
    void *scratch;
    MICA_START(ctx, c->op, bytes, &scratch);
    if (empty)
        return MICA_OK;
    while (!weight_paths[row]->fits(ctx, c)) {
        row++;
        assert(row < ROWS(weight_paths));
    }
    weight_paths[row]->run(ctx, c, scratch);
    return MICA_OK;
}
