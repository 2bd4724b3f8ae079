/* Convolution of int8 images. What some rows of output see of an image becomes a window of quads (kernel/int8.h),
 * which all channels are made from; the columns of a whole image never exist. With max pooling behind it, the four
 * sums of a window of 2 x 2 stay in registers, and the largest alone becomes a byte.
 *
 * A window, for steps (strides, twice that with pooling) SH and SW:
 *
 *     [planes of quads][SH][SW][rows of a phase][pitch]        quads
 *
 * Row r, column c of what is seen, padding included, is in phase (r % SH, c % SW) at (r / SH, c / SW): so
 * neighbouring pixels read neighbouring quads, whatever the stride. Pixels count on over the ends of rows, `pitch`
 * from one row to the next; the few that are none are made, and left out when rows go to y.
 *
 * Scratch: packed weights, unless they are given | distances of taps | for each thread: window | results | rows. */
#include <string.h>

#include "base/parallel.h"
#include "ops/int8_conv.h"

#define WINDOW   ((size_t)48 << 10)      /* bytes, unless one row takes more */
#define MOST     ((mica_index)INT32_MAX) /* of a size or an option: no sum of products of two overflows */
#define CHANNELS ((size_t)8)             /* the most of a block */
#define FEWEST   ((size_t)64)            /* channels for which making the window again pays */
#define AHEAD    ((mica_index)32)        /* quads that are written behind a row, and bytes that are read */
#if defined(MICA_SMALL)
#define ROWS 1 /* that are made at a time */
#else
#define ROWS 8
#endif

/* ---- Sizes ---- */

/* Positions along a dimension that so many outputs see. */
static mica_index seen(const mica_int8_dim *d, mica_index made, mica_index pool)
{
    return (made - 1) * d->step + (pool - 1) * d->stride + mica_int8_span(d);
}

static mica_index pitch_of(const mica_int8_job *job)
{
    const mica_int8_dim *d = &job->dim[1];
    return (seen(d, d->made, job->pool) + d->step - 1) / (d->step > 0 ? d->step : 1);
}

static mica_index phase_rows_of(const mica_int8_job *job, mica_index rows)
{
    const mica_int8_dim *d = &job->dim[0];
    return (seen(d, rows, job->pool) + d->step - 1) / (d->step > 0 ? d->step : 1);
}

/* At least one, even of no channels. */
static size_t quad_planes(const mica_int8_job *job)
{
    return mica_most(1, job->packing.planes * (size_t)(job->dim[0].step * job->dim[1].step));
}

static size_t window_of(const mica_int8_job *job, mica_index rows)
{
    return quad_planes(job) * (size_t)(phase_rows_of(job, rows) * pitch_of(job)) * 4;
}

/* As many rows as fit into the limit, at least one, and about the same at a time: the more pixels, the fewer vectors
 * are not full, and the less often weights are read. Where that leaves little to divide among threads, channels are
 * divided: each part makes the window again. All that follows is enough for smaller images too: a window of theirs has
 * one row, or is no larger than the limit, or than that of a whole image. */
static void set_rows(const mica_context *ctx, mica_int8_job *job)
{
    const mica_int8_dim *d = &job->dim[0];
    const mica_int8_packing *p = &job->packing;
    job->pitch = pitch_of(job);
    size_t row_bytes = quad_planes(job) * (size_t)job->pitch * 4;
    mica_index fit = (mica_index)(WINDOW / row_bytes) - (phase_rows_of(job, 1) - 1);
    job->tiles = mica_div_up((size_t)d->made, fit > 1 ? (size_t)fit : 1);
    job->rows = (mica_index)mica_div_up((size_t)d->made, job->tiles);
    job->tiles = mica_div_up((size_t)d->made, (size_t)job->rows);
    job->phase_rows = phase_rows_of(job, job->rows);
    double sums = (double)p->out * (double)p->values * (double)job->pool * (double)job->dim[1].out *
                  (double)job->rows;
    size_t blocks = mica_div_up(p->out, job->kernels->block), most = blocks * job->kernels->block / FEWEST,
           wanted = ctx->threads > 1 ? (size_t)(sums / (4.0 * MICA_INT8_BLOCK_SUMS)) : 1;
    job->parts = mica_least(wanted, most) > 1 ? mica_least(wanted, most) : 1;
    job->part = mica_div_up(blocks, job->parts) * job->kernels->block;
    job->parts = mica_div_up(p->out, job->part);
    job->units_at_once = (size_t)(MICA_INT8_BLOCK_SUMS * (double)job->parts / (sums + 1.0)) + 1;
}

/* Quads of a row before they are spread, and bytes of a row before they are quads; with what is written or read behind
 * them. */
static mica_index quads_row(mica_index columns) { return columns + AHEAD; }
static mica_index bytes_row(const mica_int8_job *job, mica_index columns)
{
    return columns + 3 * job->dim[1].dilation + AHEAD;
}

static size_t scratch_of(const mica_context *ctx, mica_int8_job *job, bool packed)
{
    const mica_int8_dim *d = &job->dim[0];
    size_t one = window_of(job, 1), all = window_of(job, d->made), limit = WINDOW > one ? WINDOW : one;
    size_t pixels = limit / (4 * quad_planes(job)), pitch = (size_t)pitch_of(job);
    pixels = mica_least(pixels > pitch ? pixels : pitch, (size_t)d->made * pitch);
    job->window_bytes = mica_align_up(mica_least(all, limit) + MICA_INT8_SLACK);
    job->result_bytes = mica_align_up(CHANNELS * (pixels + MICA_INT8_SLACK) * job->size);
    mica_index columns = job->dim[1].step * pitch_of(job);
    size_t row = (size_t)(4 * quads_row(columns) + bytes_row(job, columns));
    job->own_bytes = job->window_bytes + job->result_bytes + mica_align_up(ROWS * row);
    return (packed ? 0 : mica_align_up(job->packing.most)) +
           mica_align_up(4 * job->packing.quads * sizeof(int32_t)) + (size_t)ctx->threads * job->own_bytes;
}

/* ---- Windows ---- */

static void fill_quads(uint32_t *to, mica_index count, uint8_t byte)
{
    if (count > 0)
        memset(to, byte, (size_t)count * 4);
}

/* A row of one channel, between padding that is there already, of which `columns` quads can be made. */
static void make_slide(const mica_int8_job *job, uint8_t *bytes, const int8_t *row, mica_index columns)
{
    const mica_int8_dim *d = &job->dim[1];
    mica_index room = columns + 3 * d->dilation + AHEAD - d->pad;
    mica_index inside = d->in < room ? d->in : room;
    if (inside > 0)
        job->kernels->offset_row(bytes + d->pad, row, (size_t)inside);
}

/* One row of quads, `columns` of them: padding, the image, padding. */
static void make_row(const mica_int8_job *job, uint32_t *to, const uint8_t *bytes, const int8_t *const row[4],
                     mica_index columns)
{
    const mica_int8_dim *d = &job->dim[1];
    if (job->packing.slides) {
        job->kernels->quads_of_row(to, bytes, (size_t)d->dilation, (size_t)columns);
        return;
    }
    mica_index before = d->pad < columns ? d->pad : columns,
               inside = d->in < columns - before ? d->in : columns - before;
    fill_quads(to, before, job->pad);
    job->kernels->quads_of_planes(to + before, row, (size_t)inside);
    fill_quads(to + before + inside, columns - before - inside, job->pad);
}

/* Whether any tap meets this row phase. */
static bool phase_is_met(const mica_int8_job *job, mica_index phase)
{
    const mica_int8_dim *d = &job->dim[0];
    for (mica_index p = 0; p < job->pool; p++)
        for (mica_index t = 0; t < d->taps && t <= d->step; t++)
            if ((t * d->dilation + p * d->stride) % d->step == phase)
                return true;
    return d->taps > d->step;
}

/* One plane, of bytes: padding, the image, padding. */
static void make_bytes(const mica_int8_job *job, uint8_t *window, const int8_t *image, mica_index first,
                       mica_index rows)
{
    const mica_int8_dim *d = &job->dim[0], *columns = &job->dim[1];
    mica_index room = job->pitch - columns->pad, inside = columns->in < room ? columns->in : room;
    mica_index height = phase_rows_of(job, rows);
    for (mica_index phase = 0; phase < d->step; phase++) {
        uint8_t *to = window + phase * job->phase_rows * job->pitch;
        for (mica_index r = 0; r < height; r++, to += job->pitch) {
            mica_index at = (first + r) * d->step + phase - d->pad;
            memset(to, job->pad, (size_t)job->pitch);
            if (at >= 0 && at < d->in && inside > 0)
                job->kernels->offset_row(to + columns->pad, image + at * columns->in, (size_t)inside);
        }
    }
}

/* Rows of a phase: up to ROWS of them, from row `at` of the image on. Each step is taken for all of them before the
 * next one, which reads what it stored in vectors of another size: a processor waits less for that if it was a while
 * ago. In the order of memory: what is written behind a row is written again. */
static void make_rows(const mica_int8_job *job, uint32_t *to, char *room, const int8_t *const plane[4],
                      mica_index at, mica_index count)
{
    mica_index columns = seen(&job->dim[1], job->dim[1].made, job->pool), step = job->dim[1].step;
    uint32_t *quads = (uint32_t *)(void *)room;
    uint8_t *bytes = (uint8_t *)(quads + ROWS * quads_row(columns));
    bool in_image[ROWS];
    const int8_t *row[ROWS][4];
    for (mica_index i = 0; i < count; i++, at += job->dim[0].step) {
        in_image[i] = at >= 0 && at < job->dim[0].in;
        for (int k = 0; k < 4 && in_image[i]; k++)
            row[i][k] = plane[k] + at * job->dim[1].in;
        if (in_image[i] && job->packing.slides)
            make_slide(job, bytes + i * bytes_row(job, columns), row[i][0], columns);
    }
    for (mica_index i = 0; i < count; i++)
        if (in_image[i])
            make_row(job, step == 1 ? to + i * job->pitch : quads + i * quads_row(columns),
                     bytes + i * bytes_row(job, columns), row[i], columns);
        else
            for (mica_index k = 0; k < step; k++)
                fill_quads(to + k * job->phase_rows * job->pitch + i * job->pitch, job->pitch, job->pad);
    for (mica_index i = 0; i < count && step > 1; i++)
        if (in_image[i])
            job->kernels->spread(to + i * job->pitch, (size_t)(job->phase_rows * job->pitch),
                                 quads + i * quads_row(columns), (size_t)step, (size_t)columns);
}

/* Planes of quads of one step in rows. */
static void make_window(const mica_int8_job *job, char *room, const int8_t *image, mica_index first,
                        mica_index rows)
{
    const mica_int8_dim *d = &job->dim[0];
    mica_index size = d->in * job->dim[1].in, columns = seen(&job->dim[1], job->dim[1].made, job->pool);
    mica_index height = phase_rows_of(job, rows);
    uint32_t *window = (uint32_t *)(void *)room;
    room += job->window_bytes + job->result_bytes;
    if (job->packing.slides) /* padding stays */
        memset(room + ROWS * quads_row(columns) * 4, job->pad, (size_t)(ROWS * bytes_row(job, columns)));
    for (size_t plane = 0; plane < job->packing.planes; plane++) {
        const int8_t *from[4];
        for (size_t k = 0; k < 4; k++) { /* what there is not has weights of 0 */
            size_t channel = job->packing.slides ? plane : mica_least(4 * plane + k, job->packing.in - 1);
            from[k] = image + (mica_index)channel * size;
        }
        for (mica_index phase = 0; phase < d->step; phase++) {
            uint32_t *to = window;
            window += job->dim[1].step * job->phase_rows * job->pitch;
            if (!phase_is_met(job, phase))
                continue;
            for (mica_index r = 0; r < height; r += ROWS, to += ROWS * job->pitch)
                make_rows(job, to, room, from, (first + r) * d->step + phase - d->pad,
                          height - r < ROWS ? height - r : ROWS);
        }
    }
}

/* ---- Tiles ---- */

/* Where taps are in a window: for each of the places whose largest sum counts. */
static void set_distances(mica_int8_job *job)
{
    const mica_int8_dim *rows = &job->dim[0], *columns = &job->dim[1];
    const mica_int8_packing *p = &job->packing;
    mica_index every = p->slides ? 4 : 1, plane = job->phase_rows * job->pitch;
    int32_t *at = job->at;
    for (mica_index i = 0; i < job->pool; i++)
        for (mica_index j = 0; j < job->pool; j++)
            for (size_t k = 0; k < p->planes; k++)
                for (mica_index t = 0; t < rows->taps; t++)
                    for (mica_index u = 0; u < columns->taps; u += every) {
                        mica_index r = i * rows->stride + t * rows->dilation,
                                   c = j * columns->stride + u * columns->dilation;
                        mica_index phase = ((mica_index)k * rows->step + r % rows->step) * columns->step +
                                           c % columns->step;
                        mica_index place = phase * plane + r / rows->step * job->pitch + c / columns->step;
                        *at++ = (int32_t)(job->bytes ? place : 4 * place);
                    }
}

/* Copies of a size that is not known to the compiler, without a call. */
static void copy_bytes(char *to, const char *from, size_t count)
{
    if (count >= 16) {
        for (size_t i = 0; i + 16 <= count; i += 16)
            memcpy(to + i, from + i, 16);
        memcpy(to + count - 16, from + count - 16, 16);
    } else if (count >= 8) {
        memcpy(to, from, 8);
        memcpy(to + count - 8, from + count - 8, 8);
    } else if (count >= 4) {
        memcpy(to, from, 4);
        memcpy(to + count - 4, from + count - 4, 4);
    } else {
        for (size_t i = 0; i < count; i++)
            to[i] = from[i];
    }
}

/* Rows of `row` bytes, `pitch` apart, side by side. Short ones write into those that follow, which are copied later. */
static void copy_rows(char *to, const char *from, size_t row, size_t pitch, size_t rows)
{
    if (row == pitch) {
        memcpy(to, from, rows * row);
        return;
    }
    size_t wide = row > 0 && row <= 16 && rows * row >= 16 ? (rows * row - 16) / row + 1 : 0;
    for (size_t r = 0; r < wide; r++, to += row, from += pitch)
        memcpy(to, from, 16);
    for (size_t r = wide; r < rows; r++, to += row, from += pitch)
        copy_bytes(to, from, row);
}

/* Rows of an image: a part of the channels of a group. */
static void run_unit(const mica_int8_job *job, size_t unit, char *room)
{
    const mica_int8_packing *p = &job->packing;
    const mica_int8_dim *rows = &job->dim[0], *columns = &job->dim[1];
    size_t part = unit % job->parts, tile = unit / job->parts % job->tiles,
           group = unit / job->parts / job->tiles % p->groups,
           image = unit / job->parts / job->tiles / p->groups;
    size_t end = mica_least((part + 1) * job->part, p->out);
    mica_index first = (mica_index)tile * job->rows,
               count = rows->made - first < job->rows ? rows->made - first : job->rows;
    const int8_t *from = job->x + (mica_index)((image * p->groups + group) * p->in) * rows->in * columns->in;
    if (job->bytes)
        make_bytes(job, (uint8_t *)room, from, first, count);
    else
        make_window(job, room, from, first, count);
    char *result = room + job->window_bytes;
    size_t pixels = (size_t)((count - 1) * job->pitch + columns->made), lanes = job->kernels->lanes;
    mica_int8_tile t = {.x = (const uint8_t *)room,
                        .at = job->at,
                        .quads = p->quads,
                        .phases = (size_t)(job->pool * job->pool),
                        .vectors = mica_div_up(pixels, lanes),
                        .bytes = job->bytes,
                        .y = result};
    t.stride = t.vectors * lanes;
    for (size_t c = part * job->part, channels; c < end; c += channels) {
        size_t channel = group * p->out + c;
        channels = mica_int8_block(job->kernels, p->out - c);
        t.w = job->w + group * p->out * p->quads * 4 + mica_int8_channel_at(p, job->kernels, c, &t.apart);
        t.start = job->start + channel;
        mica_int8_finish f = mica_int8_finish_from(&job->finish, job->each, channel);
        job->kernels->tile(&t, channels, &f, job->each);
        for (size_t k = 0; k < channels; k++) {
            size_t row = (size_t)columns->made * job->size, pitch = (size_t)job->pitch * job->size;
            char *y = job->y +
                      ((image * p->groups * p->out + channel + k) * (size_t)rows->made + (size_t)first) * row;
            copy_rows(y, result + k * t.stride * job->size, row, pitch, (size_t)count);
        }
    }
}

static void run_units(void *work, size_t block, int thread)
{
    const mica_int8_job *job = work;
    size_t all = job->batch * job->packing.groups * job->tiles * job->parts;
    size_t end = mica_least((block + 1) * job->units_at_once, all);
    for (size_t unit = block * job->units_at_once; unit < end; unit++)
        run_unit(job, unit, job->own + (size_t)thread * job->own_bytes);
}

/* ---- Checks ---- */

static mica_status check_dim(mica_context *ctx, const char *op, mica_int8_dim *d, const mica_arg *args,
                             const mica_int8_conv_opts *o, int k)
{
    mica_index pool = o->pool == 2 ? 2 : 1;
    const mica_tensor *x = args[MICA_INT8_X].tensor, *w = args[MICA_INT8_W].tensor;
    *d = (mica_int8_dim){.in = x->dim[2 + k],
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
    d->made = d->out / pool;
    d->step = d->stride * pool;
    if (d->made < 1)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: windows of 2 x 2 do not fit what is made of x %s", op,
                         MICA_SHAPE(x));
    return MICA_OK;
}

static mica_status check(mica_context *ctx, const char *op, mica_int8_job *job, const mica_arg *args,
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
    if (o->pool < 0 || o->pool > 2)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: pool is %d: expected 0, 1 or 2", op, o->pool);
    job->pool = o->pool == 2 ? 2 : 1;
    for (int k = 0; k < 2; k++)
        MICA_TRY(check_dim(ctx, op, &job->dim[k], args, o, k));
    mica_index dims[] = {x->dim[0], w->dim[0], job->dim[0].made, job->dim[1].made};
    MICA_TRY(mica_check_shape(ctx, op, "y", y, 4, dims, "x", x));
    MICA_TRY(mica_int8_check_channels(ctx, op, args, w->dim[0],
                                      (double)w->dim[1] * (double)w->dim[2] * (double)w->dim[3]));
    job->batch = (size_t)x->dim[0];
    job->packing = mica_int8_packing_of(job->kernels, w, (size_t)groups);
#if !defined(MICA_SMALL)
    mica_int8_take_tiles(job, args[MICA_INT8_PACKED].tensor);
#endif
    MICA_TRY(mica_int8_check_packed(ctx, op, args[MICA_INT8_PACKED].tensor, &job->packing));
    job->each = mica_int8_each(args);
    double quads = (double)job->packing.planes * (double)job->dim[0].step * (double)job->dim[1].step *
                   (double)phase_rows_of(job, 1) * (double)pitch_of(job);
    if (mica_tensor_count(y) > 0 && 4.0 * quads > (double)MOST)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: x is %s: a row that is too long", op, MICA_SHAPE(x));
    return MICA_OK;
}

mica_status mica_int8_conv_of(mica_context *ctx, const char *op, const mica_arg args[MICA_INT8_ARGS],
                              const mica_int8_conv_opts *windows, mica_int8_finish finish, int32_t zero)
{
    const mica_tensor *y = args[MICA_INT8_Y].tensor;
    mica_int8_job job = {.kernels = MICA_FAMILY(ctx->kernels, int8),
                         .finish = finish,
                         .zero = zero,
                         .size = mica_int8_result_bytes(finish.kind)};
    job.pad = (uint8_t)((uint8_t)zero ^ job.kernels->offset);
    MICA_TRY(check(ctx, op, &job, args, windows));
    bool packed = args[MICA_INT8_PACKED].tensor != NULL, empty = mica_tensor_count(y) == 0;
    double sums = (double)mica_tensor_count(y) * (double)(job.pool * job.pool) * (double)job.packing.values;
    mica_count_flops(ctx, 2.0 * sums);
#if !defined(MICA_SMALL)
    if (mica_int8_last_takes(&job, y, args[MICA_INT8_X].tensor))
        return mica_int8_last_run(ctx, op, &job, args, sums, empty ? 0 : scratch_of(ctx, &job, packed));
#endif
    mica_arg used[MICA_INT8_ARGS];
    mica_contiguous dense;
    void *scratch;
    mica_int8_read_args(used, args);
    mica_contiguous_plan(&dense, used, MICA_INT8_ARGS);
    MICA_START(ctx, op, dense.bytes + (empty ? 0 : scratch_of(ctx, &job, packed)), &scratch);
    char *rest = mica_contiguous_load(&dense, scratch);
    job.y = dense.data[MICA_INT8_Y];
    job.x = dense.data[MICA_INT8_X];
    MICA_TRY(mica_int8_take_factors(ctx, op, args, &dense, &job.finish));
    if (empty)
        return MICA_OK;
    if (!packed) {
        mica_int8_pack_into(ctx, &job.packing, rest, dense.data[MICA_INT8_W], dense.data[MICA_INT8_BIAS],
                            zero);
        dense.data[MICA_INT8_PACKED] = rest;
        rest += mica_align_up(job.packing.bytes);
    }
    job.w = dense.data[MICA_INT8_PACKED];
    job.start = (const int32_t *)(const void *)(job.w + job.packing.start_at);
    job.at = (int32_t *)(void *)rest;
    job.own = rest + mica_align_up(4 * job.packing.quads * sizeof(int32_t));
    job.bytes = job.packing.slides && job.packing.in == 1 && job.packing.out == 1 && job.dim[1].step == 1 &&
                job.dim[1].dilation == 1 && job.pool == 1;
    set_rows(ctx, &job);
    set_distances(&job);
    mica_parallel_sums(ctx, sums,
                       mica_div_up(job.batch * job.packing.groups * job.tiles * job.parts, job.units_at_once),
                       run_units, &job);
    mica_contiguous_store(&dense);
    return MICA_OK;
}

mica_status mica_int8_conv2d(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                             const mica_int8_weights *weights, const mica_int8_conv_opts *opts)
{
    const char *op = "int8_conv2d";
    static const mica_int8_conv_opts none = {0};
    opts = opts != NULL ? opts : &none;
    mica_arg args[MICA_INT8_ARGS];
    int32_t limit[2];
    MICA_TRY(mica_int8_check_weights(ctx, op, args, y, x, weights));
    MICA_TRY(mica_int8_check_limits(ctx, op, opts->low, opts->high, limit));
    return mica_int8_conv_of(ctx, op, args, opts, (mica_int8_finish){.low = limit[0], .high = limit[1]}, 0);
}
