/* A convolution's image by sums over taps, one plane at a time: product.h. */
#include "base/parallel.h"
#include "ops/conv/product.h"

/* Multiply-adds in one block of direct work. */
#define DIRECT_WORK ((size_t)262144)

static bool fits(const mica_context *ctx, mica_conv_product *p)
{
    (void)ctx;
    if (p->m > MICA_CONV_DIRECT_CHANNELS)
        return false;
    /* A block reads as many rows more as there are taps: that must stay the smaller part. */
    size_t rows = p->in.rows.count,
           worth = mica_most(4 * p->in.rows.taps + 1, DIRECT_WORK / (p->in.columns.count * p->k + 1));
    p->band = mica_most(1, mica_least(rows, worth));
    return true;
}

static size_t scratch(const mica_context *ctx, const mica_conv_product *p, mica_conv_extent *up_to)
{
    (void)ctx;
    if (p->m <= MICA_CONV_DIRECT_CHANNELS)
        mica_conv_extent_clear(up_to);
    return 0;
}

static size_t taken(const mica_context *ctx, const mica_conv_product *p)
{
    (void)ctx, (void)p;
    return 0;
}

static void direct_block(void *work, size_t block, int thread)
{
    (void)thread;
    const mica_conv_product *p = work;
    size_t bands = mica_div_up(p->in.rows.count, p->band);
    size_t first = block % bands * p->band, plane = block / bands;
    size_t channel = plane % (p->groups * p->m), image = plane / (p->groups * p->m);
    size_t group = channel / p->m;
    mica_conv_planes out = p->out;
    out.data += (ptrdiff_t)image * out.image_stride + (ptrdiff_t)channel * out.channel_stride;
    mica_conv_patches in = p->in;
    in.data += (ptrdiff_t)image * in.image_stride + (ptrdiff_t)(group * p->channels) * in.channel_stride;
    mica_conv_taps taps = p->w.taps;
    taps.data += (ptrdiff_t)group * p->w.group_stride + (ptrdiff_t)(channel % p->m) * p->w.vector_stride;
    MICA_KERNEL(p->kernels, taps, image)
    (&out, &in, &taps, first, mica_least(p->band, in.rows.count - first),
     p->bias != NULL ? p->bias[channel] : 0.0f, p->accumulate);
}

static void run(mica_context *ctx, mica_conv_product *p)
{
    size_t planes = p->images * p->groups * p->m;
    mica_parallel(ctx, planes * mica_div_up(p->in.rows.count, p->band), direct_block, p);
}

const mica_conv_path mica_conv_direct_path = {"direct", fits, NULL, scratch, taken, run, false, NULL, false};
