/* Convolution of int8 images into images with channels last; x may have them last too, or not.
 *
 * What some rows of output see of an image becomes a window of bytes with the kernels' offset, padding included, whose
 * pixels have their channels side by side, in whole quads. A tap is then a fixed distance from a pixel, and a quad lies
 * ready. Where quads are taps in a row (few channels), a window is planes of rows instead; of a depthwise convolution,
 * it has a part of the channels. Positions that no tap meets, as those between the pixels of a kernel of 1 x 1, are
 * left out.
 *
 * Scratch: packed weights, unless they are given | distances of quads | for each thread: window | a row. */
#include "ops/int8_last.h"

#include <string.h>

#include "base/parallel.h"
#include "ops/int8_conv.h"

#if !defined(MICA_SMALL)

#define WINDOW      ((size_t)48 << 10) /* bytes, unless one row takes more */
#define DEEP_WINDOW ((size_t)96 << 10)
#define DEEP_PANELS ((size_t)4) /* of a depthwise convolution, at most, in a window */
#define UNITS       ((size_t)3) /* of it, for each thread, at least */
#define DEEP_COST   8.0         /* of a product of it, in products */

/* Window positions from one result to the next; input positions from one window position to the next. */
static mica_index hop(const mica_int8_dim *d) { return d->taps == 1 ? 1 : d->stride; }
static mica_index skip(const mica_int8_dim *d) { return d->taps == 1 ? d->stride : 1; }
static mica_index seen(const mica_int8_dim *d, mica_index made)
{
    return (made - 1) * hop(d) + mica_int8_span(d);
}

static bool slides(const mica_int8_job *job) { return job->packing.slides && !job->packing.depthwise; }

bool mica_int8_last_takes(const mica_int8_job *job, const mica_tensor *y, const mica_tensor *x)
{
    const mica_int8_packing *p = &job->packing;
    if (job->pool != 1 || (!p->panels && !p->depthwise) || (slides(job) && job->dim[1].dilation != 1))
        return false;
    /* By strides, which tell the same of one pixel: a smaller call goes the same way, and takes no more scratch. */
    return mica_channels_last(y) && mica_is_dense_channels_last(y) &&
           !(mica_tensor_contiguous(y) && mica_tensor_contiguous(x));
}

/* ---- Sizes ---- */

/* Channels of a window of a depthwise convolution: a number that weights alone decide. */
static size_t deep_channels(const mica_int8_job *job)
{
    size_t panels = mica_div_up(job->packing.groups, job->kernels->deep);
    size_t at_once = mica_div_up(panels, mica_div_up(panels, DEEP_PANELS));
    return mica_least(at_once * job->kernels->deep, job->packing.groups);
}

static size_t pixel_bytes(const mica_int8_job *job)
{
    return slides(job) ? 1 : job->packing.depthwise ? deep_channels(job) : 4 * job->packing.planes;
}

/* Of a plane where quads are taps in a row: up to three bytes are read behind a tap. */
static size_t row_bytes(const mica_int8_job *job)
{
    const mica_int8_dim *d = &job->dim[1];
    return (size_t)seen(d, d->made) * pixel_bytes(job) + (slides(job) ? 4 : 0);
}

static size_t window_of(const mica_int8_job *job, mica_index rows)
{
    return (size_t)seen(&job->dim[0], rows) * row_bytes(job) * (slides(job) ? job->packing.in : 1);
}

static size_t limit_of(const mica_int8_job *job) { return job->packing.depthwise ? DEEP_WINDOW : WINDOW; }

static size_t scratch_of(const mica_context *ctx, mica_int8_job *job, bool packed)
{
    size_t one = window_of(job, 1), all = window_of(job, job->dim[0].made), limit = limit_of(job);
    job->window_bytes = mica_align_up(mica_least(all, limit > one ? limit : one) + MICA_INT8_SLACK);
    job->own_bytes = job->window_bytes + mica_align_up(4 * (size_t)job->dim[1].in + MICA_INT8_SLACK);
    return (packed ? 0 : mica_align_up(job->packing.most)) +
           mica_align_up(job->packing.quads * sizeof(int32_t)) + (size_t)ctx->threads * job->own_bytes;
}

/* As many rows as fit into the limit, about the same at a time; then parts of the channels, so that there is enough to
 * divide among threads: each makes the window again. */
static void set_units(const mica_context *ctx, mica_int8_job *job)
{
    const mica_int8_dim *d = &job->dim[0];
    const mica_int8_packing *p = &job->packing;
    size_t row = window_of(job, 1) / (size_t)mica_int8_span(d);
    mica_index fit = (mica_index)(limit_of(job) / (row + 1)) - (mica_int8_span(d) - 1);
    fit = fit > 0 ? (fit + hop(d) - 1) / hop(d) : 1;
    job->tiles = mica_div_up((size_t)d->made, (size_t)fit);
    job->rows = (mica_index)mica_most(1, mica_div_up((size_t)d->made, job->tiles));
    while (job->rows > 1 && window_of(job, job->rows) > limit_of(job))
        job->rows--;
    if (p->depthwise && ctx->threads > 1) { /* channels are not divided further */
        size_t parts = mica_div_up(p->groups, deep_channels(job)) * job->batch,
               tiles = mica_div_up((size_t)ctx->threads * UNITS, parts);
        mica_index few = (mica_index)mica_most(1, mica_div_up((size_t)d->made, tiles));
        job->rows = few < job->rows ? few : job->rows;
    }
    job->tiles = mica_div_up((size_t)d->made, (size_t)job->rows);
    job->phase_rows = seen(d, job->rows);
    size_t pixels = (size_t)(job->rows * job->dim[1].made), channels = p->depthwise ? p->groups : p->out;
    double sums = (double)channels * (double)p->values * (double)pixels * (p->depthwise ? DEEP_COST : 1.0);
    if (p->depthwise) {
        job->part = deep_channels(job);
    } else {
        size_t panels = mica_div_up(channels, job->kernels->panel),
               wanted = ctx->threads > 1 ? (size_t)(sums / (4.0 * MICA_INT8_BLOCK_SUMS)) : 1;
        wanted = mica_least(wanted, panels);
        job->part = mica_div_up(panels, wanted > 1 ? wanted : 1) * job->kernels->panel;
    }
    job->parts = mica_div_up(channels, job->part);
    job->units_at_once = (size_t)(MICA_INT8_BLOCK_SUMS * (double)job->parts / (sums + 1.0)) + 1;
}

static void set_distances(mica_int8_job *job)
{
    const mica_int8_dim *rows = &job->dim[0], *columns = &job->dim[1];
    size_t pixel = pixel_bytes(job), row = row_bytes(job), every = slides(job) ? 4 : 1;
    int32_t *at = job->at;
    for (size_t k = 0; k < job->packing.planes; k++)
        for (size_t t = 0; t < (size_t)rows->taps; t++)
            for (size_t u = 0; u < (size_t)columns->taps; u += every) {
                size_t place = t * (size_t)rows->dilation * row + u * (size_t)columns->dilation * pixel;
                *at++ = (int32_t)(place + k * (slides(job) ? (size_t)job->phase_rows * row : 4));
            }
}

/* ---- Windows ---- */

/* Positions of a row of a window that lie inside the image: from *first to *end - 1. */
static void inside(const mica_int8_dim *d, mica_index *first, mica_index *end)
{
    mica_index all = seen(d, d->made), every = skip(d);
    *first = (d->pad + every - 1) / every;
    *end = (d->pad + d->in + every - 1) / every;
    *first = *first < all ? *first : all;
    *end = *end < all ? *end : all;
    *end = *end > *first ? *end : *first;
}

/* Some channels of pixels with channels last: `count` of `channels`, to pixels of `pixel` bytes. */
static void row_of_last(const mica_int8_job *job, uint8_t *to, size_t pixel, const int8_t *from,
                        size_t channels, size_t count, size_t pixels, size_t every)
{
    if (every == 1 && channels == pixel) {
        job->kernels->offset_row(to, from, pixels * pixel);
        return;
    }
    for (size_t i = 0; i < pixels; i++, to += pixel, from += every * channels) {
        job->kernels->offset_row(to, from, count);
        for (size_t k = count; k < pixel; k++) /* these have weights of 0 */
            to[k] = job->pad;
    }
}

/* Planes, `size` bytes apart, to pixels. */
static void row_of_planes(const mica_int8_job *job, uint8_t *to, size_t pixel, const int8_t *from,
                          size_t size, size_t count, size_t pixels, size_t every, uint32_t *room)
{
    bool direct = every == 1 && pixel == 4;
    for (size_t c = 0; c < count; c += 4) {
        const int8_t *plane[4];
        for (size_t k = 0; k < 4; k++)
            plane[k] = from + mica_least(c + k, count - 1) * size;
        uint32_t *quads = direct ? (uint32_t *)(void *)to : room;
        job->kernels->quads_of_planes(quads, plane, (pixels - 1) * every + 1);
        size_t bytes = mica_least(4, pixel - c);
        for (size_t i = 0; i < pixels && !direct; i++)
            memcpy(to + i * pixel + c, quads + i * every, bytes);
    }
}

/* A row of an image, its channels from the first to the last that a window has. */
static void make_row(const mica_int8_job *job, uint8_t *to, const int8_t *image, mica_index row,
                     size_t channel, size_t count, uint32_t *room)
{
    const mica_int8_dim *d = &job->dim[1];
    const mica_int8_packing *p = &job->packing;
    size_t pixel = p->depthwise ? count : pixel_bytes(job), channels = p->groups * p->in;
    size_t size = (size_t)(job->dim[0].in * d->in), all = (size_t)seen(d, d->made) * pixel;
    mica_index first, end;
    inside(d, &first, &end);
    if (row < 0 || row >= job->dim[0].in || first == end) {
        memset(to, job->pad, all);
        return;
    }
    memset(to, job->pad, (size_t)first * pixel);
    memset(to + (size_t)end * pixel, job->pad, all - (size_t)end * pixel);
    size_t at = (size_t)(first * skip(d) - d->pad), pixels = (size_t)(end - first);
    uint8_t *inner = to + (size_t)first * pixel;
    if (job->x_last)
        row_of_last(job, inner, pixel, image + ((size_t)(row * d->in) + at) * channels + channel, channels,
                    count, pixels, (size_t)skip(d));
    else
        row_of_planes(job, inner, pixel, image + channel * size + (size_t)(row * d->in) + at, size, count,
                      pixels, (size_t)skip(d), room);
}

/* A row of one plane, whose neighbours are quads. */
static void make_plane_row(const mica_int8_job *job, uint8_t *to, const int8_t *image, mica_index row,
                           size_t channel)
{
    const mica_int8_dim *d = &job->dim[1];
    size_t channels = job->packing.in, size = (size_t)(job->dim[0].in * d->in);
    mica_index first, end;
    inside(d, &first, &end);
    memset(to, job->pad, row_bytes(job));
    if (row < 0 || row >= job->dim[0].in || first == end)
        return;
    size_t at = (size_t)(row * d->in + first - d->pad), pixels = (size_t)(end - first);
    if (!job->x_last) {
        job->kernels->offset_row(to + first, image + channel * size + at, pixels);
        return;
    }
    const int8_t *from = image + at * channels + channel;
    for (size_t i = 0; i < pixels; i++)
        to[(size_t)first + i] = (uint8_t)((uint8_t)from[i * channels] ^ job->kernels->offset);
}

static void make_window(const mica_int8_job *job, uint8_t *to, const int8_t *image, mica_index first,
                        mica_index rows, size_t channel, size_t count)
{
    const mica_int8_dim *d = &job->dim[0];
    uint32_t *room = (uint32_t *)(void *)(to + job->window_bytes);
    size_t row = job->packing.depthwise ? (size_t)seen(&job->dim[1], job->dim[1].made) * count
                                        : row_bytes(job);
    for (mica_index r = 0; r < seen(d, rows); r++) {
        mica_index at = (first * hop(d) + r) * skip(d) - d->pad;
        if (!slides(job)) {
            make_row(job, to + (size_t)r * row, image, at, channel, count, room);
            continue;
        }
        for (size_t c = 0; c < job->packing.in; c++)
            make_plane_row(job, to + (c * (size_t)job->phase_rows + (size_t)r) * row, image, at, c);
    }
}

/* ---- Units ---- */

static void run_depthwise(const mica_int8_job *job, const uint8_t *window, char *y, mica_index rows,
                          size_t channel, size_t count)
{
    const mica_int8_packing *p = &job->packing;
    const mica_int8_dim *down = &job->dim[0], *across = &job->dim[1];
    size_t deep = job->kernels->deep, row = (size_t)seen(across, across->made) * count;
    mica_int8_deep t = {.row = row,
                        .column = count,
                        .step = {(size_t)hop(down) * row, (size_t)hop(across) * count},
                        .taps = {p->taps[0], p->taps[1]},
                        .dilation = {(size_t)down->dilation, (size_t)across->dilation},
                        .made = {(size_t)rows, (size_t)across->made},
                        .y_column = p->groups * job->size};
    t.y_row = t.y_column * (size_t)across->made;
    for (size_t c = 0; c < count; c += deep) {
        size_t panel = (channel + c) / deep;
        t.x = window + c;
        t.w = job->w + p->deep_at + panel * mica_int8_deep_bytes(p, job->kernels);
        t.start = job->start + channel + c;
        t.y = y + (channel + c) * job->size;
        mica_int8_finish f = mica_int8_finish_from(&job->finish, job->each, channel + c);
        job->kernels->depthwise(&t, mica_least(deep, count - c), &f, job->each);
    }
}

static void run_panels(const mica_int8_job *job, const uint8_t *window, char *y, mica_index rows,
                       size_t channel, size_t end)
{
    const mica_int8_packing *p = &job->packing;
    const mica_int8_dim *down = &job->dim[0], *across = &job->dim[1];
    bool flat = p->taps[0] == 1 && p->taps[1] == 1;
    mica_int8_last t = {.x = window,
                        .step = (size_t)hop(across) * pixel_bytes(job),
                        .x_row = (size_t)hop(down) * row_bytes(job),
                        .rows = (size_t)(flat ? 1 : rows),
                        .pixels = (size_t)(flat ? rows * across->made : across->made),
                        .at = job->at,
                        .quads = p->quads,
                        .stride = p->out * job->size,
                        .y_row = (size_t)across->made * p->out * job->size};
    size_t apart;
    for (size_t c = channel; c < end; c += job->kernels->panel) {
        t.w = job->w + mica_int8_channel_at(p, job->kernels, c, &apart);
        t.start = job->start + c;
        t.y = y + c * job->size;
        mica_int8_finish f = mica_int8_finish_from(&job->finish, job->each, c);
        job->kernels->last(&t, mica_least(job->kernels->panel, end - c), &f, job->each);
    }
}

static void run_unit(const mica_int8_job *job, size_t unit, char *room)
{
    const mica_int8_packing *p = &job->packing;
    const mica_int8_dim *down = &job->dim[0], *across = &job->dim[1];
    size_t part = unit % job->parts, tile = unit / job->parts % job->tiles,
           image = unit / job->parts / job->tiles;
    size_t in = p->groups * p->in, out = p->groups * p->out;
    size_t channel = part * job->part, end = mica_least(channel + job->part, out);
    mica_index first = (mica_index)tile * job->rows,
               rows = down->made - first < job->rows ? down->made - first : job->rows;
    const int8_t *x = job->x + image * in * (size_t)(down->in * across->in);
    char *y = job->y + (image * (size_t)down->made + (size_t)first) * (size_t)across->made * out * job->size;
    if (p->depthwise) {
        make_window(job, (uint8_t *)room, x, first, rows, channel, end - channel);
        run_depthwise(job, (const uint8_t *)room, y, rows, channel, end - channel);
    } else {
        make_window(job, (uint8_t *)room, x, first, rows, 0, in);
        run_panels(job, (const uint8_t *)room, y, rows, channel, end);
    }
}

static void run_units(void *work, size_t block, int thread)
{
    const mica_int8_job *job = work;
    size_t all = job->batch * job->tiles * job->parts;
    size_t end = mica_least((block + 1) * job->units_at_once, all);
    for (size_t unit = block * job->units_at_once; unit < end; unit++)
        run_unit(job, unit, job->own + (size_t)thread * job->own_bytes);
}

mica_status mica_int8_last_run(mica_context *ctx, const char *op, mica_int8_job *job, const mica_arg *args,
                               double sums, size_t planar)
{
    const mica_tensor *y = args[MICA_INT8_Y].tensor, *x = args[MICA_INT8_X].tensor;
    bool packed = args[MICA_INT8_PACKED].tensor != NULL, empty = mica_tensor_count(y) == 0;
    mica_arg used[MICA_INT8_ARGS];
    mica_contiguous dense;
    void *scratch;
    mica_int8_read_args(used, args);
    used[MICA_INT8_Y].tensor = NULL;
    job->x_last = mica_is_dense_channels_last(x) && !mica_tensor_contiguous(x);
    if (job->x_last)
        used[MICA_INT8_X].tensor = NULL;
    mica_contiguous_plan(&dense, used, MICA_INT8_ARGS);
    size_t own = empty ? 0 : scratch_of(ctx, job, packed),
           tiled = empty ? 0 : mica_int8_tiled_scratch(ctx, job);
    MICA_START(ctx, op, dense.bytes + mica_most(mica_most(own, planar), tiled), &scratch);
    char *rest = mica_contiguous_load(&dense, scratch);
    MICA_TRY(mica_int8_take_factors(ctx, op, args, &dense, &job->finish));
    if (empty)
        return MICA_OK;
    job->y = y->data;
    job->x = job->x_last ? x->data : dense.data[MICA_INT8_X];
    job->w = dense.data[MICA_INT8_PACKED];
    if (!packed) {
        mica_int8_pack_into(ctx, &job->packing, rest, dense.data[MICA_INT8_W], dense.data[MICA_INT8_BIAS],
                            job->zero);
        job->w = (const int8_t *)rest;
        rest += mica_align_up(job->packing.bytes);
    }
    if (mica_int8_tiled_takes(job)) {
        mica_int8_tiled_run(ctx, job, rest, sums);
        return MICA_OK;
    }
    job->start = (const int32_t *)(const void *)(job->w + job->packing.start_at);
    job->at = (int32_t *)(void *)rest;
    job->own = rest + mica_align_up(job->packing.quads * sizeof(int32_t));
    set_units(ctx, job);
    if (!job->packing.depthwise)
        set_distances(job);
    mica_parallel_sums(ctx, sums * (job->packing.depthwise ? DEEP_COST : 1.0),
                       mica_div_up(job->batch * job->tiles * job->parts, job->units_at_once), run_units, job);
    return MICA_OK;
}

/* Nanoseconds, of what was measured on one core with VNNI: only ratios count. */
#define PRODUCT        0.0045 /* in sums of many; planes take a quarter more */
#define RESULT         0.1
#define DEEP_RESULT    0.25
#define DEEP_OF_PLANES 0.5
#define TURNED         1.0 /* a byte that is copied into the other layout */

double mica_int8_conv_time(const mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                           const mica_tensor *w, const mica_int8_conv_opts *o)
{
    mica_int8_job job = {.kernels = MICA_FAMILY(ctx->kernels, int8), .pool = o->pool == 2 ? 2 : 1};
    size_t groups = o->groups > 0 ? (size_t)o->groups : 1;
    job.packing = mica_int8_packing_of(job.kernels, w, groups);
    job.dim[1].dilation = o->dilation[1] != 0 ? o->dilation[1] : 1;
    double results = (double)mica_tensor_count(y), read = (double)mica_tensor_count(x);
    double products = results * (double)job.packing.values * (double)(job.pool * job.pool);
    bool deep = job.packing.depthwise;
    if (mica_int8_last_takes(&job, y, x)) {
        bool turns = mica_tensor_contiguous(x) && x->dim[1] > 4;
        return products * PRODUCT + results * (deep ? DEEP_RESULT : RESULT) + (turns ? TURNED * read : 0.0);
    }
    double copied = (mica_tensor_contiguous(x) ? 0.0 : read) + (mica_tensor_contiguous(y) ? 0.0 : results);
    return 1.25 * (products * PRODUCT + results * (deep ? DEEP_OF_PLANES : RESULT)) + TURNED * copied;
}

#endif
