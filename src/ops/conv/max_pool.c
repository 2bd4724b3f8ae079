/* Convolution fused with max pooling, whose image is never stored as a whole.
 *
 * A thread that makes all of an image does so on a stage of its own, which its caches keep, and pools that.
 * Otherwise some images are made at a time.
 *
 *   scratch:  [ bias, if it is strided | for each thread: a stage | the product's ]
 */
#include "base/parallel.h"
#include "base/size.h"
#include "ops/conv/product.h"

/* Floats of a stage at most. */
#define STAGE_FLOATS ((size_t)32768)

/* Floats of the stage that a planned product wants for each thread; 0 if it cannot end that way: no thread has all of
 * an image at a time. */
static size_t stage_floats(const mica_conv_product *p)
{
    size_t floats = p->path->stage != NULL ? p->path->stage(p) : 0;
    return floats <= STAGE_FLOATS ? floats : 0;
}

/* Planes of some image to windows from number `first` on. */
static void pool_planes(const mica_conv_product *p, const mica_conv_pooling *pool, const float *planes,
                        size_t first, size_t count)
{
    size_t rows = (size_t)pool->shape.out[0], windows = rows * (size_t)pool->shape.out[1];
    float *y = pool->y + first * windows;
    MICA_KERNEL(p->kernels, pool, max)
    (y, pool->indices != NULL ? pool->indices + first * windows : NULL, planes, 0, count * rows,
     &pool->shape);
    if (p->finish != NULL)
        p->finish(y, (const float *const[]){y}, count * windows, &p->slope);
}

void mica_conv_pool_stage(const mica_conv_product *p, const float *stage, size_t image, size_t channel,
                          size_t m)
{
    pool_planes(p, p->pool, stage, image * p->groups * p->m + channel, m);
}

/* ---- Some images at a time ---- */

/* Planes of a block. */
#define SOME_PLANES 8

typedef struct job {
    const mica_conv_product *p; /* its end */
    const mica_conv_pooling *pool;
    const float *planes;
    size_t first, count;
} job;

static void pool_block(void *work, size_t block, int thread)
{
    (void)thread;
    const job *j = work;
    size_t at = block * SOME_PLANES;
    pool_planes(j->p, j->pool, j->planes + at * j->p->pixels, j->first + at,
                mica_least(SOME_PLANES, j->count - at));
}

/* A mica_conv_planes_fn */
static void pool_some(mica_context *ctx, void *user, const float *planes, size_t first, size_t count)
{
    job *j = user;
    j->planes = planes;
    j->first = first;
    j->count = count;
    mica_parallel_sums(ctx, 8.0 * (double)(count * j->p->pixels), mica_div_up(count, SOME_PLANES), pool_block,
                       j);
}

/* ---- The operation ---- */

static mica_conv_pooling pooling_of(const mica_conv *c)
{
    const mica_pooling_opts *o = c->pool;
    mica_conv_pooling pool = {.y = c->narrow.data, .indices = c->picks};
    size_t sizes[2] = {c->rows.narrow, c->columns.narrow};
    for (int d = 0; d < 2; d++) {
        mica_pool_shape *s = &pool.shape;
        s->in[d] = (mica_index)sizes[d];
        s->out[d] = mica_pooling_size(s->in[d], d, o);
        s->kernel[d] = o->kernel[d];
        s->stride[d] = o->stride[d] > 0 ? o->stride[d] : o->kernel[d];
        s->pad[d] = o->pad[d];
        s->dilation[d] = o->dilation[d] > 0 ? o->dilation[d] : 1;
    }
    return pool;
}

/* The most of both ways, for this size or a smaller one that can follow. */
static size_t scratch_bytes(const mica_context *ctx, const mica_conv *c, const mica_conv_product *p)
{
    mica_conv_extent all = mica_conv_extent_of(c->batch, c->rows.narrow, c->columns.narrow);
    if (all.pixels == 0 || p->m == 0)
        return 0;
    size_t bias = mica_conv_bias_bytes(c, p->groups * p->m);
    if (ctx->one_size)
        return stage_floats(p) == 0
                   ? mica_conv_by_images_bytes(ctx, c)
                   : bias + mica_align_up(stage_floats(p) * sizeof(float)) * (size_t)ctx->threads +
                         mica_conv_product_bytes(ctx, p);
    /* A round of channels may be filled up to whole tiles. */
    size_t floats = mica_round_up(p->m, MICA_FAMILY(p->kernels, tiles)->channels) *
                    mica_conv_extent_image(&all);
    size_t stage = mica_align_up(mica_least(floats, STAGE_FLOATS) * sizeof(float));
    mica_conv_extent some;
    size_t images = mica_conv_some_bytes(c, &all, &some);
    return bias + mica_most(stage * (size_t)ctx->threads, images) + mica_conv_product_bytes(ctx, p);
}

mica_status mica_conv_pool(mica_context *ctx, const mica_conv *c)
{
    mica_conv_pooling pool = pooling_of(c);
    mica_conv_product p = mica_conv_images_product(ctx, c, 0, c->batch);
    p.pool = &pool;
    mica_conv_product_plan(ctx, &p);
    size_t floats = stage_floats(&p), channels = p.groups * p.m;
    void *scratch;
    MICA_START(ctx, c->op, scratch_bytes(ctx, c, &p), &scratch);
    if (floats == 0) {
        mica_conv_by_images(ctx, c, pool_some, &(job){.p = &p, .pool = &pool}, scratch);
        return MICA_OK;
    }
    p.stage_bytes = mica_align_up(floats * sizeof(float));
    p.bias = mica_conv_load_bias(c, channels, scratch);
    p.stage = (char *)scratch + mica_conv_bias_bytes(c, channels);
    p.scratch = p.stage + p.stage_bytes * (size_t)ctx->threads;
    mica_conv_product_run(ctx, &p);
    return MICA_OK;
}
