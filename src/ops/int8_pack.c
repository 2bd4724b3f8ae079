/* Packing weights of int8 products. */
#include "ops/int8_pack.h"

#include <string.h>

#include "base/parallel.h"

static mica_int8_packing packing_of(const mica_int8_kernels *kernels, const mica_tensor *w, size_t groups)
{
    mica_int8_packing p = {.linear = w->rank == 2, .groups = groups, .taps = {1, 1}};
    p.out = (size_t)w->dim[0] / groups;
    p.in = (size_t)w->dim[1];
    for (int k = 2; k < w->rank; k++)
        p.taps[k - w->rank + 2] = (size_t)w->dim[k];
    p.values = p.in * p.taps[0] * p.taps[1];
    if (p.linear) {
        size_t panels = mica_div_up(p.out, kernels->width);
        p.quads = mica_div_up(p.values, 4);
        p.start_at = mica_align_up(panels * mica_int8_panel_bytes(&p, kernels));
        p.bytes = p.start_at + panels * kernels->width * sizeof(int32_t);
        return p;
    }
    size_t by_channels = mica_div_up(p.in, 4) * p.taps[0] * p.taps[1],
           by_taps = p.in * p.taps[0] * mica_div_up(p.taps[1], 4);
    p.slides = by_taps < by_channels;
    p.planes = p.slides ? p.in : mica_div_up(p.in, 4);
    p.quads = p.slides ? by_taps : by_channels;
    size_t channels = groups * p.out;
#if !defined(MICA_SMALL)
    p.panels = groups == 1;
    p.depthwise = groups > 1 && p.in == 1 && p.out == 1;
    if (p.panels)
        channels = mica_div_up(channels, kernels->lanes) * kernels->lanes;
#endif
    p.start_at = mica_align_up(channels * p.quads * 4);
    p.bytes = p.deep_at = p.start_at + channels * sizeof(int32_t);
#if !defined(MICA_SMALL)
    if (p.depthwise) {
        p.deep_at = mica_align_up(p.bytes);
        p.bytes = p.deep_at + mica_div_up(channels, kernels->deep) * mica_int8_deep_bytes(&p, kernels);
    }
#endif
    return p;
}

/* Weights of fewer channels may be depthwise ones, which are packed twice. */
mica_int8_packing mica_int8_packing_of(const mica_int8_kernels *kernels, const mica_tensor *w, size_t groups)
{
    mica_int8_packing p = packing_of(kernels, w, groups);
    p.most = p.bytes;
#if !defined(MICA_SMALL)
    if (groups > 1 && p.out > 0 && p.in > 0 && !p.linear) {
        mica_tensor least = *w;
        least.dim[0] = (mica_index)groups;
        least.dim[1] = 1;
        p.most = mica_most(p.bytes, packing_of(kernels, &least, groups).bytes);
    }
#endif
    return p;
}

size_t mica_int8_channel_at(const mica_int8_packing *p, const mica_int8_kernels *kernels, size_t c,
                            size_t *apart)
{
#if !defined(MICA_SMALL)
    if (p->panels) {
        size_t in_panel = c % kernels->panel, first = c - in_panel;
        size_t left = mica_div_up(p->out - first, kernels->lanes) * kernels->lanes;
        *apart = 4 * mica_least(kernels->panel, left);
        return first * p->quads * 4 + 4 * in_panel;
    }
#endif
    *apart = 4 * mica_int8_block(kernels, p->out - c);
    return c * p->quads * 4;
}

size_t mica_int8_block(const mica_int8_kernels *kernels, size_t left)
{
    return left >= kernels->block ? kernels->block : left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

typedef struct pack_job {
    const mica_int8_packing *p;
    const mica_int8_kernels *kernels;
    const int8_t *w;
    const int32_t *bias;
    int8_t *to;
    int32_t *start;
    int32_t zero;
} pack_job;

static void pack_panel(void *work, size_t panel, int thread)
{
    (void)thread;
    const pack_job *job = work;
    const mica_int8_packing *p = job->p;
    size_t width = job->kernels->width, first = panel * width;
    job->kernels->pack(job->to + panel * mica_int8_panel_bytes(p, job->kernels), job->start + first,
                       job->w + first * p->values, p->values, mica_least(width, p->out - first), p->values,
                       job->bias + first, job->zero);
}

/* A weight of -128 counts as -127. */
static int8_t weight(int8_t w) { return w == INT8_MIN ? -127 : w; }

/* One channel, its quads `apart` bytes from one another. Returns the sum of its weights. */
static int32_t pack_channel(const mica_int8_packing *p, int8_t *to, size_t apart, const int8_t *w)
{
    size_t height = p->taps[0], width = p->taps[1], columns = p->slides ? mica_div_up(width, 4) : width;
    int32_t sum = 0;
    for (size_t plane = 0; plane < p->planes; plane++)
        for (size_t t = 0; t < height; t++)
            for (size_t u = 0; u < columns; u++, to += apart)
                for (size_t k = 0; k < 4; k++) {
                    size_t channel = p->slides ? plane : 4 * plane + k, tap = p->slides ? 4 * u + k : u;
                    bool there = channel < p->in && tap < width;
                    to[k] = (int8_t)(there ? weight(w[(channel * height + t) * width + tap]) : 0);
                    sum += to[k];
                }
    return sum;
}

/* A block of channels of a group. */
static void pack_block(void *work, size_t number, int thread)
{
    (void)thread;
    const pack_job *job = work;
    const mica_int8_packing *p = job->p;
    size_t blocks = mica_div_up(p->out, job->kernels->block), group = number / blocks;
    size_t first = number % blocks * job->kernels->block,
           end = mica_least(first + job->kernels->block, p->out);
    for (size_t c = first, count; c < end; c += count) {
        count = mica_int8_block(job->kernels, end - c);
        size_t channel = group * p->out + c, apart;
        int8_t *to = job->to + group * p->out * p->quads * 4 +
                     mica_int8_channel_at(p, job->kernels, c, &apart);
        for (size_t k = 0; k < count; k++) {
            int32_t sum = pack_channel(p, to + 4 * k, apart, job->w + (channel + k) * p->values);
            uint32_t zero = (uint32_t)(job->kernels->offset + job->zero);
            job->start[channel + k] = (int32_t)((uint32_t)job->bias[channel + k] - zero * (uint32_t)sum);
        }
    }
}

#if !defined(MICA_SMALL)
/* A panel of a depthwise convolution: quads of four rows of a column. */
static void pack_deep(void *work, size_t panel, int thread)
{
    (void)thread;
    const pack_job *job = work;
    const mica_int8_packing *p = job->p;
    size_t deep = job->kernels->deep, first = panel * deep, bytes = mica_int8_deep_bytes(p, job->kernels);
    size_t height = p->taps[0], width = p->taps[1];
    int8_t *to = job->to + p->deep_at + panel * bytes;
    memset(to, 0, bytes);
    for (size_t c = 0; c < deep && first + c < p->groups; c++) {
        const int8_t *w = job->w + (first + c) * p->values;
        int8_t *channel = to + 4 * job->kernels->deep_at(c);
        for (size_t t = 0; t < height; t++)
            for (size_t u = 0; u < width; u++)
                channel[(t / 4 * width + u) * deep * 4 + t % 4] = weight(w[t * width + u]);
    }
}
#endif

void mica_int8_pack_into(mica_context *ctx, const mica_int8_packing *p, void *to, const int8_t *w,
                         const int32_t *bias, int32_t zero)
{
    pack_job job = {.p = p,
                    .kernels = MICA_FAMILY(ctx->kernels, int8),
                    .w = w,
                    .bias = bias,
                    .to = to,
                    .zero = zero,
                    .start = (int32_t *)(void *)((char *)to + p->start_at)};
#if !defined(MICA_SMALL)
    if (p->panels) { /* what is behind the last channel */
        size_t channels = (p->deep_at - p->start_at) / sizeof(int32_t), panel = channels % job.kernels->panel;
        panel = panel > 0 ? panel : mica_least(job.kernels->panel, channels);
        memset(job.to + (channels - panel) * p->quads * 4, 0, panel * p->quads * 4);
        memset(job.start + p->out, 0, (channels - p->out) * sizeof(int32_t));
    }
#endif
    size_t at_once = p->linear ? job.kernels->width : job.kernels->block;
    mica_parallel_sums(ctx, 4.0 * (double)p->start_at, p->groups * mica_div_up(p->out, at_once),
                       p->linear ? pack_panel : pack_block, &job);
#if !defined(MICA_SMALL)
    if (p->depthwise)
        mica_parallel_sums(ctx, 4.0 * (double)(p->bytes - p->deep_at),
                           mica_div_up(p->groups, job.kernels->deep), pack_deep, &job);
    if (p->tiled_at > 0)
        mica_int8_pack_tiles(ctx, p, to, w, bias, zero);
#endif
}

mica_status mica_int8_check_packed(mica_context *ctx, const char *op, const mica_tensor *packed,
                                   const mica_int8_packing *p)
{
    mica_index bytes = (mica_index)p->bytes;
    if (packed == NULL)
        return MICA_OK;
    if (packed->rank != 1 || packed->dim[0] != bytes || !mica_tensor_contiguous(packed))
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: packed is %s: expected [%td], as int8_pack makes it here",
                         op, MICA_SHAPE(packed), bytes);
    if (packed->data != NULL && (uintptr_t)packed->data % sizeof(int32_t) != 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: packed is not aligned to 4 bytes", op);
    return MICA_OK;
}

static mica_status check_shape(mica_context *ctx, const char *op, const mica_tensor *w, mica_index groups)
{
    MICA_TRY(mica_check_rank(ctx, op, "w", w, 2, 4));
    if (groups < 1 || w->dim[0] % groups != 0 || (w->rank == 2 && groups != 1))
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: w is %s, which does not fall into %td groups", op,
                         MICA_SHAPE(w), groups);
    double products = 1.0;
    for (int k = 1; k < w->rank; k++)
        products *= (double)w->dim[k];
    if (products > MICA_INT8_PRODUCTS)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: w is %s: sums of %.0f products, expected at most %d", op,
                         MICA_SHAPE(w), products, MICA_INT8_PRODUCTS);
    return MICA_OK;
}

static mica_int8_packing packing_for(mica_context *ctx, const mica_tensor *w, const mica_int8_pack_opts *opts)
{
    const mica_int8_kernels *kernels = MICA_FAMILY(ctx->kernels, int8);
    size_t groups = opts != NULL && opts->groups != 0 ? (size_t)opts->groups : 1;
    mica_int8_packing p = mica_int8_packing_of(kernels, w, groups);
#if !defined(MICA_SMALL)
    if (opts != NULL && opts->tiled)
        mica_int8_add_tiles(&p, kernels);
#endif
    return p;
}

mica_index mica_int8_packed_bytes(mica_context *ctx, const mica_tensor *w, const mica_int8_pack_opts *opts)
{
    mica_index groups = opts != NULL && opts->groups != 0 ? opts->groups : 1;
    if (w == NULL || check_shape(ctx, "int8_pack", w, groups) != MICA_OK)
        return -1;
    return (mica_index)packing_for(ctx, w, opts).bytes;
}

mica_status mica_int8_pack(mica_context *ctx, const mica_tensor *packed, const mica_tensor *w,
                           const mica_tensor *bias, const mica_int8_pack_opts *opts)
{
    const char *op = "int8_pack";
    mica_arg args[] = {{"packed", packed, MICA_ARG_OUT, MICA_DTYPE_BIT(MICA_U8)},
                       {"w", w, 0, MICA_I8_ONLY},
                       {"bias", bias, 0, MICA_DTYPE_BIT(MICA_I32)}};
    mica_index groups = opts != NULL && opts->groups != 0 ? opts->groups : 1;
    int zero = opts != NULL ? opts->zero : 0;
    MICA_TRY(mica_check_args(ctx, op, args, 3));
    if (zero < INT8_MIN || zero > INT8_MAX)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: zero is %d: expected -128 to 127", op, zero);
    MICA_TRY(check_shape(ctx, op, w, groups));
    MICA_TRY(mica_check_shape(ctx, op, "bias", bias, 1, &w->dim[0], "w", w));
    mica_int8_packing p = packing_for(ctx, w, opts);
    MICA_TRY(mica_check_shape(ctx, op, "packed", packed, 1, (mica_index[]){(mica_index)p.bytes}, "w", w));
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 3);
    MICA_START(ctx, op, dense.bytes + mica_align_up(p.bytes), &scratch);
    scratch = mica_contiguous_load(&dense, scratch);
    memset(scratch, 0, p.bytes);
    mica_int8_pack_into(ctx, &p, scratch, dense.data[1], dense.data[2], zero);
    memcpy(dense.data[0], scratch, p.bytes); /* which may lie anywhere */
    mica_contiguous_store(&dense);
    return MICA_OK;
}
