/* Convolution of int8 images. Patches of a tile of pixels become rows, which panels of weights are multiplied with; the
 * columns of a whole image never exist. Groups of few output channels (depthwise) go tap by tap along the rows instead.
 *
 * Scratch of panels: panels of all weights | what their sums start at | for each thread: patches | sums | results |
 * a window of the image.
 * Scratch of taps: for each thread, a row of sums. */
#include <string.h>

#include "base/parallel.h"
#include "ops/int8.h"

#define FEW        4  /* output channels of a group that panels do not pay for */
#define TILE       64 /* pixels at a time */
#define BLOCK_SUMS ((size_t)1 << 18)
#define MOST       ((mica_index)INT32_MAX) /* of a size or an option: no sum of products of two overflows */

/* Output position i meets input position i * stride - pad + t * dilation by tap t. */
typedef struct conv_dim {
    mica_index in, out, taps, stride, pad, dilation;
} conv_dim;

typedef struct conv_job {
    const mica_int8_kernels *kernels;
    size_t batch, groups, in, out; /* channels of a group */
    conv_dim dim[2];
    size_t pixels, values, quads, panels; /* of an output plane; of a patch; of a group */
    const int8_t *x, *w;
    int8_t *y;
    const int32_t *bias;
    mica_int8_finish finish;
    int each;
    int8_t *packed;
    int32_t *start;
    char *own; /* of threads */
    size_t own_bytes, patch_bytes, sum_bytes;
    size_t rows_at_once;
} conv_job;

/* ---- Panels ---- */

static size_t panel_bytes(const conv_job *job) { return job->quads * job->kernels->width * 4; }

static void pack_panel(void *work, size_t block, int thread)
{
    (void)thread;
    const conv_job *job = work;
    size_t width = job->kernels->width, first = block % job->panels * width;
    size_t channel = block / job->panels * job->out + first;
    job->kernels->pack(job->packed + block * panel_bytes(job), job->start + block * width,
                       job->w + channel * job->values, job->values, mica_least(width, job->out - first),
                       job->values, job->bias + channel);
}

/* What a tile of pixels sees of the planes of a group: rows of it with their padding, as bytes of products. */
typedef struct window {
    uint8_t *at;
    mica_index first_row, rows, columns; /* of output; of it */
} window;

static mica_index span_of(const conv_dim *d) { return (d->taps - 1) * d->dilation + 1; }

/* Bytes as products want them. */
static void copy_row(uint8_t *restrict to, const int8_t *restrict from, size_t count, uint8_t offset)
{
    for (size_t k = 0; k < count; k++)
        to[k] = (uint8_t)((uint8_t)from[k] ^ offset);
}

static window make_window(const conv_job *job, uint8_t *room, const int8_t *planes, size_t pixel,
                          size_t pixels)
{
    const conv_dim *rows = &job->dim[0], *columns = &job->dim[1];
    uint8_t offset = job->kernels->offset;
    mica_index first = (mica_index)pixel / columns->out,
               last = (mica_index)(pixel + pixels - 1) / columns->out;
    window w = {.at = room,
                .first_row = first,
                .rows = (last - first) * rows->stride + span_of(rows),
                .columns = (columns->out - 1) * columns->stride + span_of(columns)};
    mica_index inside = columns->in < w.columns - columns->pad ? columns->in : w.columns - columns->pad;
    for (size_t c = 0; c < job->in; c++, planes += rows->in * columns->in)
        for (mica_index i = 0; i < w.rows; i++, room += w.columns) {
            mica_index at = first * rows->stride - rows->pad + i;
            memset(room, offset, (size_t)w.columns);
            if (at >= 0 && at < rows->in && inside > 0)
                copy_row(room + columns->pad, planes + at * columns->in, (size_t)inside, offset);
        }
    return w;
}

/* Bytes that may be read and written behind a row of taps: a row is copied in one go, before what follows it. */
enum { AHEAD = 8 };

/* The patch of an output pixel. */
static void make_patch(const conv_job *job, uint8_t *to, const window *w, size_t pixel)
{
    const conv_dim *rows = &job->dim[0], *columns = &job->dim[1];
    const uint8_t *from = w->at +
                          ((mica_index)pixel / columns->out - w->first_row) * rows->stride * w->columns +
                          (mica_index)pixel % columns->out * columns->stride;
    mica_index plane = w->rows * w->columns, step = rows->dilation * w->columns, taps = columns->taps,
               apart = columns->dilation, height = rows->taps;
    bool short_rows = apart == 1 && taps <= AHEAD;
    size_t channels = job->in; /* all in variables: bytes that are written may be anything, for a compiler */
    uint8_t *end = to + job->values;
    for (size_t c = 0; c < channels; c++, from += plane) {
        const uint8_t *row = from;
        for (mica_index t = 0; t < height; t++, to += taps, row += step)
            if (short_rows)
                memcpy(to, row, AHEAD);
            else
                for (mica_index u = 0; u < taps; u++)
                    to[u] = row[u * apart];
    }
    memset(end, job->kernels->offset, job->quads * 4 - job->values);
}

/* Results [pixels][width] to planes. */
static void store_results(int8_t *restrict y, size_t plane, const int8_t *restrict result, size_t width,
                          size_t channels, size_t pixels)
{
    for (size_t u = 0; u < channels; u++, y += plane)
        for (size_t r = 0; r < pixels; r++)
            y[r] = result[r * width + u];
}

static void run_tile(void *work, size_t block, int thread)
{
    const conv_job *job = work;
    size_t width = job->kernels->width, tiles = mica_div_up(job->pixels, TILE);
    size_t pixel = block % tiles * TILE, pixels = mica_least(TILE, job->pixels - pixel);
    size_t group = block / tiles % job->groups, image = block / tiles / job->groups;
    uint8_t *patches = (uint8_t *)job->own + (size_t)thread * job->own_bytes;
    int32_t *sum = (int32_t *)(void *)(patches + job->patch_bytes);
    int8_t *result = (int8_t *)sum + job->sum_bytes;
    const int8_t *planes = job->x + (image * job->groups + group) * job->in *
                                        (size_t)(job->dim[0].in * job->dim[1].in);
    window seen = make_window(job, (uint8_t *)result + mica_align_up(TILE * width), planes, pixel, pixels);
    for (size_t r = 0; r < pixels; r++)
        make_patch(job, patches + r * job->quads * 4, &seen, pixel + r);
    for (size_t p = 0; p < job->panels; p++) {
        size_t channel = group * job->out + p * width, channels = mica_least(width, job->out - p * width);
        size_t panel = group * job->panels + p;
        job->kernels->product(sum, patches, job->quads * 4, pixels, job->quads,
                              job->packed + panel * panel_bytes(job), job->start + panel * width);
        mica_int8_finish f = mica_int8_finish_from(&job->finish, job->each, channel);
        job->kernels->finish_rows(result, sum, pixels, channels, &f, job->each);
        store_results(job->y + (image * job->groups * job->out + channel) * job->pixels + pixel, job->pixels,
                      result, width, channels, pixels);
    }
}

static void run_panels(mica_context *ctx, conv_job *job, char *scratch, double sums)
{
    size_t panels = job->groups * job->panels;
    job->packed = (int8_t *)scratch;
    job->start = (int32_t *)(void *)(scratch + mica_align_up(panels * panel_bytes(job)));
    job->own = (char *)job->start + mica_align_up(panels * job->kernels->width * sizeof(int32_t));
    mica_parallel_sums(ctx, (double)panels * (double)panel_bytes(job), panels, pack_panel, job);
    mica_parallel_sums(ctx, sums, job->batch * job->groups * mica_div_up(job->pixels, TILE), run_tile, job);
}

/* ---- Taps ---- */

/* Output positions, from *first to *end - 1, that a tap meets inside. */
static void inside(const conv_dim *d, mica_index tap, mica_index *first, mica_index *end)
{
    mica_index shift = tap * d->dilation - d->pad; /* i * stride + shift is 0 to in - 1 */
    *first = shift >= 0 ? 0 : (-shift + d->stride - 1) / d->stride;
    *end = d->in > shift ? (d->in - shift + d->stride - 1) / d->stride : 0;
    *end = *end < d->out ? *end : d->out;
}

/* One row of an output plane. */
static void run_row(const conv_job *job, int32_t *sum, size_t image, size_t channel, mica_index i)
{
    const conv_dim *rows = &job->dim[0], *columns = &job->dim[1];
    const int8_t *w = job->w + channel * job->values;
    const int8_t *plane = job->x + (image * job->groups + channel / job->out) * job->in *
                                       (size_t)(rows->in * columns->in);
    for (mica_index k = 0; k < columns->out; k++)
        sum[k] = job->bias[channel];
    for (size_t c = 0; c < job->in; c++, plane += rows->in * columns->in)
        for (mica_index t = 0; t < rows->taps; t++, w += columns->taps) {
            mica_index at = i * rows->stride - rows->pad + t * rows->dilation;
            if (at < 0 || at >= rows->in)
                continue;
            for (mica_index u = 0; u < columns->taps; u++) {
                mica_index first, end;
                inside(columns, u, &first, &end);
                if (first < end)
                    job->kernels->tap(sum + first,
                                      plane + at * columns->in + first * columns->stride - columns->pad +
                                          u * columns->dilation,
                                      (size_t)columns->stride, (size_t)(end - first), w[u]);
            }
        }
}

static void run_rows(void *work, size_t block, int thread)
{
    const conv_job *job = work;
    size_t height = (size_t)job->dim[0].out, width = (size_t)job->dim[1].out;
    size_t channels = job->groups * job->out, all = job->batch * channels * height;
    int32_t *sum = (int32_t *)(void *)(job->own + (size_t)thread * job->own_bytes);
    for (size_t row = block * job->rows_at_once; row < mica_least((block + 1) * job->rows_at_once, all);
         row++) {
        size_t channel = row / height % channels;
        run_row(job, sum, row / height / channels, channel, (mica_index)(row % height));
        mica_int8_finish f = mica_int8_finish_from(&job->finish, job->each, channel);
        job->kernels->finish(job->y + row * width, sum, width, &f, 0);
    }
}

static void run_taps(mica_context *ctx, conv_job *job, char *scratch, double sums)
{
    size_t row_sums = job->values * (size_t)job->dim[1].out + 1;
    job->own = scratch;
    job->rows_at_once = BLOCK_SUMS / row_sums + 1;
    size_t rows = job->batch * job->groups * job->out * (size_t)job->dim[0].out;
    mica_parallel_sums(ctx, sums, mica_div_up(rows, job->rows_at_once), run_rows, job);
}

/* ---- Checks ---- */

static mica_status check_dim(mica_context *ctx, const char *op, conv_dim *d, const mica_arg *args,
                             const mica_int8_conv_opts *o, int k)
{
    const mica_tensor *x = args[MICA_INT8_X].tensor, *w = args[MICA_INT8_W].tensor;
    *d = (conv_dim){.in = x->dim[2 + k],
                    .taps = w->dim[2 + k],
                    .stride = o->stride[k] != 0 ? o->stride[k] : 1,
                    .pad = o->pad[k],
                    .dilation = o->dilation[k] != 0 ? o->dilation[k] : 1};
    if (d->stride < 1 || d->pad < 0 || d->dilation < 1 || d->stride > MOST || d->pad > MOST ||
        d->dilation > MOST || d->in > MOST || d->taps > MOST || d->taps < 1)
        return mica_fail(
            ctx, MICA_ERR_ARGUMENT,
            "%s: kernel %td, stride %td, pad %td, dilation %td along the %s: expected 1, 1, 0, 1 or "
            "more, and less than 2^31",
            op, d->taps, d->stride, d->pad, d->dilation, k == 0 ? "height" : "width");
    mica_index span = d->dilation * (d->taps - 1) + 1, padded = d->in + 2 * d->pad;
    if (padded < span)
        return mica_fail(ctx, MICA_ERR_SHAPE,
                         "%s: x is %s, w is %s: the kernel spans %td in dimension %d, expected "
                         "at most %td",
                         op, MICA_SHAPE(x), MICA_SHAPE(w), span, 2 + k, padded);
    d->out = (padded - span) / d->stride + 1;
    return MICA_OK;
}

static mica_status check(mica_context *ctx, const char *op, conv_job *job, const mica_arg *args,
                         const mica_int8_conv_opts *o)
{
    const mica_tensor *y = args[MICA_INT8_Y].tensor, *x = args[MICA_INT8_X].tensor,
                      *w = args[MICA_INT8_W].tensor;
    MICA_TRY(mica_check_rank(ctx, op, "x", x, 4, 4));
    MICA_TRY(mica_check_rank(ctx, op, "w", w, 4, 4));
    mica_index groups = o->groups != 0 ? o->groups : 1, channels = x->dim[1];
    if (groups < 1 || channels % groups != 0 || w->dim[0] % groups != 0 || w->dim[1] != channels / groups)
        return mica_fail(ctx, MICA_ERR_SHAPE,
                         "%s: x is %s, w is %s: the channels do not match for %td groups", op, MICA_SHAPE(x),
                         MICA_SHAPE(w), groups);
    for (int k = 0; k < 2; k++)
        MICA_TRY(check_dim(ctx, op, &job->dim[k], args, o, k));
    mica_index dims[] = {x->dim[0], w->dim[0], job->dim[0].out, job->dim[1].out};
    MICA_TRY(mica_check_shape(ctx, op, "y", y, 4, dims, "x", x));
    MICA_TRY(mica_int8_check_channels(ctx, op, args, w->dim[0],
                                      (double)w->dim[1] * (double)w->dim[2] * (double)w->dim[3]));
    job->batch = (size_t)x->dim[0];
    job->groups = (size_t)groups;
    job->in = (size_t)w->dim[1];
    job->out = (size_t)(w->dim[0] / groups);
    job->pixels = (size_t)(job->dim[0].out * job->dim[1].out);
    job->values = (size_t)(w->dim[1] * w->dim[2] * w->dim[3]);
    job->quads = mica_div_up(job->values, 4);
    job->panels = mica_div_up(job->out, job->kernels->width);
    job->each = args[MICA_INT8_MULTIPLIER].tensor->dim[0] > 1;
    return MICA_OK;
}

/* The most that a window takes, for an image of this width or any smaller one: with W columns of output, a tile lies in
 * TILE / W + 2 rows at most, and what depends on W as 1 / W is largest for W = 1. */
static size_t window_bytes(const conv_job *job)
{
    const conv_dim *rows = &job->dim[0], *columns = &job->dim[1];
    size_t stride[2] = {(size_t)rows->stride, (size_t)columns->stride}, width = (size_t)columns->out,
           span[2] = {(size_t)span_of(rows), (size_t)span_of(columns)};
    size_t most = TILE * stride[0] * (stride[1] + span[1]) +
                  (2 * stride[0] + span[0]) * (width * stride[1] + span[1]);
    return mica_align_up(job->in * most + AHEAD);
}

static size_t scratch_of(const mica_context *ctx, conv_job *job)
{
    size_t width = job->kernels->width, panels = job->groups * job->panels;
    if (job->out < FEW) {
        job->own_bytes = mica_align_up((size_t)job->dim[1].out * sizeof(int32_t));
        return (size_t)ctx->threads * job->own_bytes;
    }
    job->patch_bytes = mica_align_up(TILE * job->quads * 4 + AHEAD);
    job->sum_bytes = mica_align_up(TILE * width * sizeof(int32_t));
    job->own_bytes = job->patch_bytes + job->sum_bytes + mica_align_up(TILE * width) + window_bytes(job);
    return mica_align_up(panels * panel_bytes(job)) + mica_align_up(panels * width * sizeof(int32_t)) +
           (size_t)ctx->threads * job->own_bytes;
}

mica_status mica_int8_conv2d(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                             const mica_int8_weights *weights, const mica_int8_conv_opts *opts)
{
    const char *op = "int8_conv2d";
    static const mica_int8_conv_opts none = {0};
    opts = opts != NULL ? opts : &none;
    mica_arg args[MICA_INT8_ARGS];
    conv_job job = {.kernels = MICA_FAMILY(ctx->kernels, int8)};
    int32_t limit[2];
    MICA_TRY(mica_int8_check_weights(ctx, op, args, y, x, weights));
    MICA_TRY(check(ctx, op, &job, args, opts));
    MICA_TRY(mica_int8_check_limits(ctx, op, opts->low, opts->high, limit));
    double sums = (double)mica_tensor_count(y) * (double)job.values;
    mica_count_flops(ctx, 2.0 * sums);
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, MICA_INT8_ARGS);
    MICA_START(ctx, op, dense.bytes + scratch_of(ctx, &job), &scratch);
    scratch = mica_contiguous_load(&dense, scratch);
    job.y = dense.data[MICA_INT8_Y];
    job.x = dense.data[MICA_INT8_X];
    job.w = dense.data[MICA_INT8_W];
    job.bias = dense.data[MICA_INT8_BIAS];
    job.finish = (mica_int8_finish){dense.data[MICA_INT8_MULTIPLIER], dense.data[MICA_INT8_SHIFT], limit[0],
                                    limit[1]};
    MICA_TRY(mica_int8_check_factors(ctx, op, job.finish.multiplier, job.finish.shift,
                                     (size_t)args[MICA_INT8_SHIFT].tensor->dim[0]));
    if (mica_tensor_count(y) == 0)
        return MICA_OK;
    if (job.out < FEW)
        run_taps(ctx, &job, scratch, sums);
    else
        run_panels(ctx, &job, scratch, sums);
    mica_contiguous_store(&dense);
    return MICA_OK;
}
