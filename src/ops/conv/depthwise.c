/* Depthwise convolutions that make an image: product.h. Narrow planes go by lanes, others by strips. */
#include "ops/conv/depthwise.h"

#include "base/parallel.h"

/* What it takes, in multiply-adds, to bring an element into a lane or back. */
#define TRANSPOSE_WORK 6

/* Means have a path that never stores the image. */
static bool is_depthwise(const mica_conv_product *p)
{
    return p->m == 1 && p->channels == 1 && p->groups > 1 && !p->means;
}

/* ---- Plans of lanes ---- */

bool mica_conv_lanes_begin(mica_conv_lanes *l, const mica_conv_patches *in, const mica_conv_planes *out,
                           size_t images, size_t out_height, size_t out_width)
{
    ptrdiff_t in_step, out_step;
    if (!mica_conv_pixel_stride(&in_step, in->rows.image, in->columns.image, in->row_stride,
                                in->column_stride) ||
        !mica_conv_pixel_stride(&out_step, out_height, out_width, out->row_stride, out->column_stride) ||
        in_step != 1 || out_step != 1)
        return false;
    l->plan = (mica_lanes_plan){.images = images,
                                .height = in->rows.image,
                                .width = in->columns.image,
                                .out_height = out_height,
                                .out_width = out_width,
                                .in_image = in->image_stride,
                                .in_channel = in->channel_stride,
                                .out_image = out->image_stride,
                                .out_channel = out->channel_stride,
                                .scale = {(size_t)in->rows.scale, (size_t)in->columns.scale},
                                .spread = {1, 1}};
    return true;
}

bool mica_conv_lanes_add(mica_conv_lanes *l, const mica_conv_patches *in, size_t row, size_t column,
                         const mica_conv_taps *taps, ptrdiff_t first)
{
    mica_lanes_plan *p = &l->plan;
    size_t down = in->rows.taps, across = in->columns.taps;
    if (p->phases == MICA_LANES_PHASES || down > MICA_LANES_TAPS || across > MICA_LANES_TAPS ||
        down * across > MICA_LANES_TAPS - p->taps)
        return false;
    p->phase[p->phases++] = (mica_lanes_phase){in->rows.count, in->columns.count, row,
                                               column,         p->taps,           down * across};
    for (size_t t = 0; t < down; t++)
        for (size_t u = 0; u < across; u++) {
            l->met[p->taps][0] = in->rows.base + (ptrdiff_t)t * in->rows.step;
            l->met[p->taps][1] = in->columns.base + (ptrdiff_t)u * in->columns.step;
            p->tap_offset[p->taps++] = first + (ptrdiff_t)t * taps->row_stride +
                                       (ptrdiff_t)u * taps->column_stride;
        }
    return true;
}

bool mica_conv_lanes_end(mica_conv_lanes *l)
{
    mica_lanes_plan *p = &l->plan;
    if (p->taps == 0 || p->out_height == 0 || p->out_width == 0 || p->height == 0 || p->width == 0)
        return false;
    ptrdiff_t low[2] = {l->met[0][0], l->met[0][1]}, high[2] = {l->met[0][0], l->met[0][1]};
    for (size_t k = 0; k < p->taps; k++)
        for (int d = 0; d < 2; d++) {
            low[d] = l->met[k][d] < low[d] ? l->met[k][d] : low[d];
            high[d] = l->met[k][d] > high[d] ? l->met[k][d] : high[d];
        }
    size_t columns = 0;
    for (size_t f = 0; f < p->phases; f++)
        columns = mica_most(columns, p->phase[f].columns);
    ptrdiff_t end = (ptrdiff_t)((mica_most(columns, 1) - 1) * p->scale[1]) + high[1] + 1;
    low[1] = low[1] < 0 ? low[1] : 0;
    end = end > (ptrdiff_t)p->width ? end : (ptrdiff_t)p->width;
    p->low[0] = low[0];
    p->low[1] = low[1];
    p->window_width = (size_t)(end - low[1]);
    p->window_reach = (size_t)(high[0] - low[0] + 1);
    size_t rows = MICA_LANES_WINDOW / p->window_width, out = p->out_width * p->spread[0];
    if (rows < p->window_reach || out > MICA_LANES_BAND)
        return false;
    for (size_t k = 0; k < p->taps; k++)
        p->offset[k] = (size_t)(l->met[k][0] - low[0]) * p->window_width + (size_t)(l->met[k][1] - low[1]);
    size_t positions = mica_div_up(p->out_height, p->spread[0]);
    size_t most = mica_least((rows - p->window_reach) / p->scale[0] + 1, MICA_LANES_BAND / out);
    p->bands = mica_div_up(positions, most);
    p->band = mica_div_up(positions, p->bands);
    p->bands = mica_div_up(positions, p->band);
    return true;
}

size_t mica_conv_lanes_work(const mica_lanes_plan *p)
{
    size_t read = p->band * p->scale[0] * p->width, written = p->band * p->spread[0] * p->out_width;
    return (read + written) * TRANSPOSE_WORK + written * p->taps / p->phases;
}

/* ---- Images by lanes ---- */

/* Blocks are some bands of some images of one group of channels as wide as a vector, or several groups. */
typedef struct lanes_job {
    const mica_lanes_plan *plan;
    mica_conv_lanes_image image;
    size_t lanes, some; /* groups of channels */
    size_t units, each; /* of a group; of a block */
} lanes_job;

static void lanes_block(void *work, size_t block, int thread)
{
    (void)thread;
    const lanes_job *j = work;
    const mica_lanes_plan *p = j->plan;
    size_t parts = mica_div_up(j->units, j->each), begin = block % parts * j->each;
    size_t channel = block / parts * j->some * j->lanes,
           end = mica_least(channel + j->some * j->lanes, j->image.channels);
    ptrdiff_t c = (ptrdiff_t)channel;
    MICA_FAMILY(j->image.kernels, lanes)
        ->image(p, j->image.out + c * p->out_channel, j->image.in + c * p->in_channel,
                j->image.taps + c * p->tap_channel, j->image.bias != NULL ? j->image.bias + c : NULL,
                end - channel, begin, mica_least(begin + j->each, j->units));
}

void mica_conv_lanes_run(mica_context *ctx, const mica_lanes_plan *plan, const mica_conv_lanes_image *image)
{
    lanes_job j = {.plan = plan,
                   .image = *image,
                   .lanes = MICA_FAMILY(image->kernels, lanes)->lanes,
                   .units = plan->images * plan->bands};
    if (j.units == 0)
        return;
    size_t unit = mica_most(1, mica_conv_lanes_work(plan) * j.lanes);
    j.each = mica_least(j.units, mica_most(1, MICA_DEPTHWISE_WORK / unit));
    j.some = j.each == j.units ? mica_most(1, MICA_DEPTHWISE_WORK / (unit * j.units)) : 1;
    size_t blocks = mica_div_up(image->channels, j.lanes * j.some) * mica_div_up(j.units, j.each);
    double sums = (double)unit * (double)j.units * (double)image->channels / (double)j.lanes;
    mica_parallel_sums(ctx, sums, blocks, lanes_block, &j);
}

static bool lanes_plan(const mica_context *ctx, const mica_conv_product *p, mica_conv_lanes *l)
{
    if (!is_depthwise(p) || 4 * p->groups < MICA_FAMILY(ctx->kernels, lanes)->lanes ||
        MICA_FAMILY(ctx->kernels, lanes)->lanes == 1 ||
        !mica_conv_lanes_begin(l, &p->in, &p->out, p->images, p->in.rows.count, p->in.columns.count))
        return false;
    l->plan.tap_channel = p->w.group_stride;
    l->plan.accumulate = p->accumulate;
    l->plan.finish = p->finish;
    l->plan.slope = p->slope;
    return mica_conv_lanes_add(l, &p->in, 0, 0, &p->w.taps, 0) && mica_conv_lanes_end(l);
}

static bool lanes_fit(const mica_context *ctx, mica_conv_product *p)
{
    mica_conv_lanes l;
    return lanes_plan(ctx, p, &l);
}

static void lanes_run(mica_context *ctx, mica_conv_product *p)
{
    mica_conv_lanes l;
    if (lanes_plan(ctx, p, &l))
        mica_conv_lanes_run(ctx, &l.plan,
                            &(mica_conv_lanes_image){.kernels = p->kernels,
                                                     .out = p->out.data,
                                                     .in = p->in.data,
                                                     .taps = p->w.taps.data,
                                                     .bias = p->bias,
                                                     .channels = p->groups});
}

/* ---- Images by strips ---- */

bool mica_conv_strip_shape(mica_strip_shape *s, const mica_conv_patches *in, ptrdiff_t out_stride,
                           ptrdiff_t out_column_stride)
{
    const mica_conv_axis *axis[2] = {&in->rows, &in->columns};
    for (int d = 0; d < 2; d++) {
        if ((axis[d]->taps != 3 && axis[d]->taps != 5) || (axis[d]->step != 1 && axis[d]->step != -1) ||
            axis[d]->scale > 2)
            return false;
        s->base[d] = axis[d]->base - (axis[d]->step < 0 ? (ptrdiff_t)axis[d]->taps - 1 : 0);
    }
    s->taps = in->rows.taps;
    s->scale = (size_t)in->rows.scale;
    s->height = in->rows.image;
    s->width = in->columns.image;
    s->rows = in->rows.count;
    s->columns = in->columns.count;
    s->in_stride = in->row_stride;
    s->out_stride = out_stride;
    return in->columns.taps == s->taps && in->columns.scale == in->rows.scale && in->column_stride == 1 &&
           out_column_stride == 1;
}

/* Blocks are bands of rows of a plane, or several planes. */
typedef struct strips_job {
    const mica_conv_product *p;
    mica_strip_shape shape;
    size_t band, some; /* rows; planes */
} strips_job;

static void strips_plane(const strips_job *j, size_t plane, size_t first, size_t count)
{
    const mica_conv_product *p = j->p;
    size_t image = plane / p->groups, channel = plane % p->groups, n = j->shape.taps;
    float *out = p->out.data + (ptrdiff_t)image * p->out.image_stride +
                 (ptrdiff_t)channel * p->out.channel_stride;
    const float *in = p->in.data + (ptrdiff_t)image * p->in.image_stride +
                      (ptrdiff_t)channel * p->in.channel_stride;
    const float *taps = p->w.taps.data + (ptrdiff_t)channel * p->w.group_stride;
    float tap[MICA_STRIPS_TAPS];
    for (size_t t = 0; t < n; t++)
        for (size_t u = 0; u < n; u++) {
            size_t row = p->in.rows.step > 0 ? t : n - 1 - t, column = p->in.columns.step > 0 ? u : n - 1 - u;
            tap[row * n + column] =
                taps[(ptrdiff_t)t * p->w.taps.row_stride + (ptrdiff_t)u * p->w.taps.column_stride];
        }
    MICA_FAMILY(p->kernels, strips)
        ->image(out, in, tap, p->bias != NULL ? p->bias[channel] : 0.0f, &j->shape, first, count,
                p->accumulate);
    mica_conv_finish_plane(p, out + (ptrdiff_t)first * p->out.row_stride, count, j->shape.columns);
}

static void strips_block(void *work, size_t block, int thread)
{
    (void)thread;
    const strips_job *j = work;
    size_t bands = mica_div_up(j->shape.rows, j->band), planes = j->p->images * j->p->groups;
    size_t first = block % bands * j->band, plane = block / bands * j->some,
           end = mica_least(plane + j->some, planes);
    for (; plane < end; plane++)
        strips_plane(j, plane, first, mica_least(j->band, j->shape.rows - first));
}

/* Whether it can go by strips, whatever its sizes. */
static bool has_strips(const mica_context *ctx, const mica_conv_product *p)
{
    mica_strip_shape s;
    return is_depthwise(p) && MICA_FAMILY(ctx->kernels, strips)->lanes > 1 &&
           mica_conv_strip_shape(&s, &p->in, p->out.row_stride, p->out.column_stride);
}

static bool strips_fit(const mica_context *ctx, mica_conv_product *p)
{
    size_t lanes = MICA_FAMILY(ctx->kernels, strips)->lanes;
    return has_strips(ctx, p) &&
           (!mica_conv_is_narrow(lanes, p->in.columns.count, p->groups) || !lanes_fit(ctx, p));
}

static void strips_run(mica_context *ctx, mica_conv_product *p)
{
    strips_job j = {.p = p};
    if (!mica_conv_strip_shape(&j.shape, &p->in, p->out.row_stride, p->out.column_stride))
        return;
    size_t row = j.shape.columns * p->k, planes = p->images * p->groups;
    j.band = mica_least(j.shape.rows, mica_round_up(mica_div_up(MICA_DEPTHWISE_WORK, row), 4));
    j.some = j.band == j.shape.rows ? mica_most(1, MICA_DEPTHWISE_WORK / (row * j.band)) : 1;
    mica_parallel_sums(ctx, (double)planes * (double)p->pixels * (double)p->k,
                       mica_div_up(planes, j.some) * mica_div_up(j.shape.rows, j.band), strips_block, &j);
}

/* ---- Rows of the table ---- */

/* Neither takes any. Where there are strips, all sizes go one of these ways. */
static size_t scratch(const mica_context *ctx, const mica_conv_product *p, mica_conv_extent *up_to)
{
    if (has_strips(ctx, p))
        mica_conv_extent_clear(up_to);
    return 0;
}

static size_t taken(const mica_context *ctx, const mica_conv_product *p)
{
    (void)ctx, (void)p;
    return 0;
}

const mica_conv_path mica_conv_strips_path = {"strips",   strips_fit, NULL, scratch, taken,
                                              strips_run, true,       NULL, false};
const mica_conv_path mica_conv_lanes_path = {"lanes",   lanes_fit, NULL, scratch, taken,
                                             lanes_run, true,      NULL, false};
