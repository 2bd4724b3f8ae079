/* The paths for computing an image and the weight gradient, and the choice between them.
 *
 * A new path is a row. Of few channels the first that fits is taken: the rows are in the order of what they gain there,
 * and each says which sizes it leaves to the rows below it. Of many channels the path that costs least is taken
 * (cost.h), and the scratch is enough for each; one without a cost is taken wherever it fits. The last row of a table
 * handles everything else. */
#include <assert.h>
#include <string.h>

#include "base/parallel.h"
#include "ops/conv/probe.h"
#include "ops/conv/product.h"
#include "ops/conv/weight.h"

#define ROWS(table) (sizeof(table) / sizeof(table)[0])

/* Pairs of channels, and channels that are written, from which the cost decides. */
#define MANY_PAIRS    512
#define MANY_CHANNELS 4

bool mica_conv_by_cost(size_t channels, size_t m)
{
#if defined(MICA_SMALL)
    (void)channels, (void)m;
    return false; /* there is one path */
#else
    return channels * m >= MANY_PAIRS && m >= MANY_CHANNELS;
#endif
}

#if !defined(MICA_SMALL)
/* One choice: rows that fit are offered in order. */
typedef struct choice {
    mica_conv_probe *probe; /* or NULL */
    bool note;              /* for it */
    bool many;
    bool any, forced;
    double least;
} choice;

static choice begin_choice(const mica_context *ctx, double work, size_t channels, size_t m)
{
    choice c = {.probe = ctx->conv_probe, .many = mica_conv_by_cost(channels, m)};
    c.note = c.probe != NULL && work >= c.probe->work;
    if (c.note) {
        c.probe->work = work;
        c.probe->fitting = 0;
    }
    return c;
}

/* Whether somebody wants to know what a path costs. */
static bool asks(const choice *c, bool known) { return known && (c->many || c->note); }

/* Whether a path that fits is better than those before it. */
static bool offer(choice *c, const char *name, double cost)
{
    if (c->note && c->probe->fitting < MICA_CONV_MOST_PATHS) {
        c->probe->name[c->probe->fitting] = name;
        c->probe->cost[c->probe->fitting++] = cost;
    }
    bool wanted = c->probe != NULL && c->probe->forced != NULL && strcmp(c->probe->forced, name) == 0;
    bool better = wanted || (!c->forced && (!c->any || (c->many && cost < c->least)));
    c->any = true;
    c->forced |= wanted;
    if (better)
        c->least = cost;
    return better;
}

/* Whether no path below can be taken any more. */
static bool settled(const choice *c) { return c->any && !c->many && c->probe == NULL; }

static void end_choice(const choice *c, const char *name)
{
    if (c->note)
        c->probe->taken = name;
}
#endif

/* ---- Images: forward, and the gradient by the input ---- */

/* Built small, one path does all: the others are large, and are chosen when a step runs. */
static const mica_conv_path *const image_paths[] = {
#if defined(MICA_SMALL)
    &mica_conv_direct_path,
#else
    &mica_conv_last_taps_path, &mica_conv_last_path,     &mica_conv_strips_path, &mica_conv_lanes_path,
    &mica_conv_columns_path,   &mica_conv_winograd_path, &mica_conv_deep_path,   &mica_conv_tiles_path,
    &mica_conv_direct_path,    &mica_conv_products_path, &mica_conv_staged_path,
#endif
};

#if !defined(MICA_SMALL)
/* Whether p, or a smaller one of its kind, may be an image of one column, whose taps lie in that column: the same sums
 * as those of one row, which paths are made for. What is made of whole images goes by rows and columns as they are, and
 * so do depthwise ones, and pixels whose channels lie last. */
static bool may_turn(const mica_conv_product *p)
{
    if (mica_conv_is_last(p->groups * p->m, p->out.channel_stride, p->out.column_stride) ||
        mica_conv_is_last(p->groups * p->channels, p->in.channel_stride, p->in.column_stride))
        return false;
    return p->in.columns.taps == 1 && p->in.columns.base == 0 && p->in.rows.image * p->in.rows.taps > 1 &&
           p->channels * p->m > 1 && !p->means && p->pool == NULL;
}

static void swap_strides(ptrdiff_t *a, ptrdiff_t *b)
{
    ptrdiff_t stride = *a;
    *a = *b;
    *b = stride;
}

/* A column becomes a row. */
static void turn(mica_conv_product *p)
{
    p->in.columns = p->in.rows;
    p->in.rows = (mica_conv_axis){.image = 1, .count = 1, .taps = 1, .scale = 1, .step = 1};
    p->w.columns = p->w.rows;
    p->w.rows = 1;
    swap_strides(&p->in.row_stride, &p->in.column_stride);
    swap_strides(&p->out.row_stride, &p->out.column_stride);
    swap_strides(&p->w.taps.row_stride, &p->w.taps.column_stride);
}
#endif

void mica_conv_product_plan(const mica_context *ctx, mica_conv_product *p)
{
    p->ctx = ctx;
    p->kernels = ctx->kernels;
#if !defined(MICA_SMALL)
    if (may_turn(p) && p->in.columns.image == 1 && p->in.columns.count == 1)
        turn(p);
#endif
    p->k = p->channels * p->in.rows.taps * p->in.columns.taps;
    p->pixels = p->in.rows.count * p->in.columns.count;
#if defined(MICA_SMALL)
    p->path = image_paths[0];
#else
    if (p->wanted != NULL && p->wanted->fits(ctx, p)) { /* what was prepared for it decided long ago */
        p->path = p->wanted;
        return;
    }
    p->path = p->wanted = NULL;
    p->prepared = NULL;
    choice c = begin_choice(ctx, (double)(p->images * p->pixels) * (double)(p->m * p->k), p->channels, p->m);
    for (size_t row = 0; row < ROWS(image_paths) && !settled(&c); row++) {
        const mica_conv_path *path = image_paths[row];
        if (path->fits(ctx, p) &&
            offer(&c, path->name, asks(&c, path->cost != NULL) ? path->cost(ctx, p) : 0.0))
            p->path = path;
    }
    assert(p->path != NULL);
    end_choice(&c, p->path->name);
#endif
    (void)p->path->fits(ctx, p); /* rows below it have left their plans */
}

static size_t most_as_it_lies(const mica_context *ctx, const mica_conv_product *p,
                              const mica_conv_extent *most)
{
    mica_conv_extent left = *most;
    size_t bytes = 0;
    for (size_t row = 0; row < ROWS(image_paths) && mica_conv_extent_pixels(&left) * p->m > 0; row++) {
        bytes = mica_most(bytes, image_paths[row]->scratch(ctx, p, &left));
        if (mica_conv_by_cost(p->channels, p->m) && image_paths[row]->cost != NULL)
            left = *most;
    }
    return bytes;
}

size_t mica_conv_product_most(const mica_context *ctx, const mica_conv_product *p,
                              const mica_conv_extent *most)
{
    size_t bytes = most_as_it_lies(ctx, p, most);
#if !defined(MICA_SMALL)
    if (may_turn(p)) {
        mica_conv_product turned = *p;
        mica_conv_extent column = *most;
        turn(&turned);
        column.columns = most->rows;
        column.rows = 1;
        bytes = mica_most(bytes, most_as_it_lies(ctx, &turned, &column));
    }
#endif
    return bytes;
}

size_t mica_conv_product_bytes(const mica_context *ctx, const mica_conv_product *p)
{
    if (ctx->one_size)
        return p->images * p->pixels * p->m > 0 ? p->path->taken(ctx, p) : 0;
    mica_conv_extent own = mica_conv_extent_of(p->images, p->in.rows.count, p->in.columns.count);
    size_t bytes = mica_conv_product_most(ctx, p, &own);
#if !defined(MICA_SMALL)
    if (p->wanted != NULL) {
        mica_conv_extent left = own;
        bytes = mica_most(bytes, p->wanted->scratch(ctx, p, &left));
    }
#endif
    if (ctx->conv_probe != NULL && own.pixels * p->m > 0)
        bytes = mica_most(bytes, p->path->taken(ctx, p));
    return bytes;
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

#if !defined(MICA_SMALL)
/* Where all planes lie one behind the other, they are finished as one run. */
#define FINISHED_FLOATS ((size_t)16384)

static size_t output_floats(const mica_conv_product *p) { return p->images * p->groups * p->m * p->pixels; }

static bool is_one_run(const mica_conv_product *p)
{
    ptrdiff_t stride, pixels = (ptrdiff_t)p->pixels;
    return mica_conv_pixel_stride(&stride, p->in.rows.count, p->in.columns.count, p->out.row_stride,
                                  p->out.column_stride) &&
           (stride == 1 || pixels == 1) && p->out.channel_stride == pixels &&
           (p->images == 1 || p->out.image_stride == (ptrdiff_t)(p->groups * p->m) * pixels);
}

static void finish_run(void *work, size_t block, int thread)
{
    (void)thread;
    const mica_conv_product *p = work;
    float *at = p->out.data + block * FINISHED_FLOATS;
    size_t n = mica_least(FINISHED_FLOATS, output_floats(p) - block * FINISHED_FLOATS);
    p->finish(at, (const float *const[]){at}, n, &p->slope);
}
#endif

void mica_conv_product_run(mica_context *ctx, mica_conv_product *p)
{
    if (p->images * p->pixels * p->m == 0)
        return;
    p->path->run(ctx, p);
    if (p->finish == NULL || p->path->finishes)
        return;
#if !defined(MICA_SMALL)
    if (is_one_run(p)) {
        mica_parallel(ctx, mica_div_up(output_floats(p), FINISHED_FLOATS), finish_run, p);
        return;
    }
#endif
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

static const mica_conv_weight_path *choose_weight_path(const mica_context *ctx, const mica_conv *conv)
{
#if defined(MICA_SMALL)
    (void)ctx, (void)conv;
    return weight_paths[0];
#else
    const mica_conv_weight_path *path = NULL;
    double work = (double)(conv->batch * conv->rows.narrow * conv->columns.narrow) *
                  (double)(conv->narrow_channels * conv->wide_channels * conv->rows.taps *
                           conv->columns.taps);
    choice c = begin_choice(ctx, work, conv->wide_channels, conv->narrow_channels);
    for (size_t row = 0; row < ROWS(weight_paths) && !settled(&c); row++) {
        const mica_conv_weight_path *next = weight_paths[row];
        if (next->fits(ctx, conv) &&
            offer(&c, next->name, asks(&c, next->cost != NULL) ? next->cost(ctx, conv) : 0.0))
            path = next;
    }
    assert(path != NULL);
    end_choice(&c, path->name);
    return path;
#endif
}

mica_status mica_conv_weight(mica_context *ctx, const mica_conv *c)
{
    bool empty = c->narrow_channels == 0 || c->wide_channels == 0;
    const mica_conv_weight_path *path = empty ? NULL : choose_weight_path(ctx, c);
    /* Of no images at all there is a gradient too: zeros. */
    mica_conv_extent own = mica_conv_extent_of(mica_most(1, c->batch), c->rows.narrow, c->columns.narrow);
    mica_conv_extent left = own;
    size_t bytes = 0;
    for (size_t i = 0; i < ROWS(weight_paths) && left.pixels > 0 && !empty; i++) {
        bytes = mica_most(bytes, weight_paths[i]->scratch(ctx, c, &left));
        if (mica_conv_by_cost(c->wide_channels, c->narrow_channels))
            left = own;
    }
    if (ctx->conv_probe != NULL && !empty)
        bytes = mica_most(bytes, path->scratch(ctx, c, &own));
    void *scratch;
    MICA_START(ctx, c->op, bytes, &scratch);
    if (!empty)
        path->run(ctx, c, scratch);
    return MICA_OK;
}
