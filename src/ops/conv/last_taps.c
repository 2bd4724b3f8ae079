/* A depthwise convolution's image channels last: last.h. */
#include "base/parallel.h"
#include "ops/conv/prepare.h"

/* Multiply-adds of a block of rows, about. */
#define BLOCK_WORK ((size_t)131072)

static bool fits(const mica_context *ctx, mica_conv_product *p)
{
    (void)ctx;
    return p->narrow && p->m == 1 && p->channels == 1 && !p->means &&
           mica_conv_is_last(p->groups, p->out.channel_stride, p->out.column_stride) &&
           mica_conv_is_last(p->groups, p->in.channel_stride, p->in.column_stride);
}

/* ---- Weights: [taps, channels], these up to whole vectors ---- */

static size_t tap_stride(const mica_conv_product *p)
{
    return mica_round_up(p->groups, MICA_FAMILY(p->kernels, last_taps)->lanes);
}

size_t mica_conv_last_taps_floats(const mica_context *ctx, const mica_conv_product *p)
{
    (void)ctx;
    return tap_stride(p) * p->in.rows.taps * p->in.columns.taps;
}

void mica_conv_last_taps_prepare(mica_context *ctx, const mica_conv_product *p, float *to)
{
    (void)ctx;
    size_t stride = tap_stride(p), across = p->in.columns.taps;
    const mica_conv_weights *w = &p->w;
    for (size_t t = 0; t < p->in.rows.taps; t++)
        for (size_t u = 0; u < across; u++)
            w->gemm->pack(to + (t * across + u) * stride, stride,
                          w->taps.data + (ptrdiff_t)t * w->taps.row_stride +
                              (ptrdiff_t)u * w->taps.column_stride,
                          w->group_stride, 1, p->groups, 1);
}

static size_t taken(const mica_context *ctx, const mica_conv_product *p)
{
    return p->prepared != NULL ? 0 : mica_align_up(mica_conv_last_taps_floats(ctx, p) * sizeof(float));
}

static size_t scratch(const mica_context *ctx, const mica_conv_product *p, mica_conv_extent *up_to)
{
    mica_conv_product planned = *p;
    if (!fits(ctx, &planned))
        return 0;
    mica_conv_extent_clear(up_to);
    return taken(ctx, p);
}

/* ---- Running ---- */

typedef struct job {
    const mica_conv_product *p;
    const float *taps;
    size_t stride; /* of taps */
    size_t band;   /* rows of a block: of all images, one below the other */
    mica_last_end end;
    bool finishes;
} job;

static void finish_row(const mica_conv_product *p, float *at, size_t columns)
{
    size_t n = p->groups;
    if (p->out.column_stride == (ptrdiff_t)n) {
        n *= columns;
        columns = 1;
    }
    for (size_t j = 0; j < columns; j++, at += p->out.column_stride)
        p->finish(at, (const float *const[]){at}, n, &p->slope);
}

static void block(void *work, size_t number, int thread)
{
    (void)thread;
    const job *j = work;
    const mica_conv_product *p = j->p;
    size_t rows = p->in.rows.count, end = mica_least((number + 1) * j->band, p->images * rows);
    mica_conv_patches in = p->in;
    mica_last_row r = {.in = &in,
                       .count = p->in.columns.count,
                       .channels = p->groups,
                       .taps = j->taps,
                       .tap_stride = j->stride,
                       .bias = p->bias,
                       .out_stride = p->out.column_stride,
                       .end = j->end};
    for (size_t row = number * j->band; row < end; row++) {
        ptrdiff_t image = (ptrdiff_t)(row / rows);
        in.data = p->in.data + image * p->in.image_stride;
        r.i = row % rows;
        r.out = p->out.data + image * p->out.image_stride + (ptrdiff_t)r.i * p->out.row_stride;
        MICA_FAMILY(p->kernels, last_taps)->row(&r);
        if (j->finishes)
            finish_row(p, r.out, r.count);
    }
}

static void run(mica_context *ctx, mica_conv_product *p)
{
    job j = {.p = p, .taps = p->prepared, .stride = tap_stride(p)};
    j.end = mica_conv_last_end(p, &j.finishes);
    if (j.taps == NULL) {
        mica_conv_last_taps_prepare(ctx, p, (float *)(void *)p->scratch);
        j.taps = (float *)(void *)p->scratch;
    }
    size_t rows = p->images * p->in.rows.count, work = p->in.columns.count * p->groups * p->k;
    j.band = mica_most(1, mica_least(rows, BLOCK_WORK / mica_most(1, work)));
    mica_parallel_sums(ctx, (double)rows * (double)work, mica_div_up(rows, j.band), block, &j);
}

const mica_conv_path mica_conv_last_taps_path = {"last taps", fits, NULL, scratch, taken, run, true, NULL};
