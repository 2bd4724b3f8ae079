/* Pooling of images that lie channels last. */
#include "ops/pooling_last.h"

#include "base/parallel.h"
#include "kernel/kernels.h"

#if !defined(MICA_SMALL)

/* Multiply-adds that a number read is held to be worth: reading bounds it. */
#define READ_WORK 8
/* Numbers read in a block of parallel work, about; channels whose totals are on the stack. */
#define BLOCK  ((size_t)32768)
#define TOTALS ((size_t)256)

/* ---- Windows ---- */

bool mica_pooling_is_last(const mica_tensor *y, const mica_tensor *x)
{
    return x->rank == 4 && mica_channels_last(x) && mica_channels_last(y);
}

typedef struct pool_job {
    const mica_kernels *kernels;
    const mica_tensor *x, *y;
    const mica_pool_shape *shape;
    bool largest;
    size_t rows; /* of results, of a block */
} pool_job;

/* Taps of a window along an axis that lie in the image: how many, the first of them, and where that is. */
static size_t inside(const mica_pool_shape *s, int axis, ptrdiff_t out, ptrdiff_t *at)
{
    ptrdiff_t start = out * s->stride[axis] - s->pad[axis], step = s->dilation[axis], count = s->kernel[axis];
    ptrdiff_t before = start >= 0 ? 0 : (-start + step - 1) / step;
    ptrdiff_t end = start >= s->in[axis] ? 0 : mica_least_index(count, (s->in[axis] - 1 - start) / step + 1);
    *at = start + before * step;
    return end > before ? (size_t)(end - before) : 0;
}

/* How many taps a mean is divided by along an axis: all, those that padding ends included, or those inside. */
static ptrdiff_t divisor(const mica_pool_shape *s, int axis, ptrdiff_t out)
{
    ptrdiff_t start = out * s->stride[axis] - s->pad[axis], end = start + s->kernel[axis], first;
    if (s->exclude_pad)
        return (ptrdiff_t)inside(s, axis, out, &first);
    return mica_least_index(end, s->in[axis] + s->pad[axis]) - start;
}

static void pool_row(const pool_job *j, ptrdiff_t image, ptrdiff_t row)
{
    const mica_pool_shape *s = j->shape;
    const mica_last_pool_kernels *kernels = MICA_FAMILY(j->kernels, last_pool);
    const mica_tensor *x = j->x, *y = j->y;
    ptrdiff_t top, left;
    size_t rows = inside(s, 0, row, &top);
    float *out = (float *)y->data + image * y->stride[0] + row * y->stride[2];
    for (ptrdiff_t column = 0; column < s->out[1]; column++, out += y->stride[3]) {
        size_t columns = inside(s, 1, column, &left);
        mica_last_window w = {.row_stride = s->dilation[0] * x->stride[2],
                              .column_stride = s->dilation[1] * x->stride[3],
                              .rows = columns > 0 ? rows : 0,
                              .columns = columns,
                              .channels = (size_t)x->dim[1]};
        w.in = (const float *)x->data + image * x->stride[0];
        if (w.rows > 0)
            w.in += top * x->stride[2] + left * x->stride[3];
        if (j->largest)
            kernels->max(out, &w);
        else
            kernels->average(out, &w, (float)(divisor(s, 0, row) * divisor(s, 1, column)));
    }
}

static void pool_block(void *work, size_t block, int thread)
{
    (void)thread;
    const pool_job *j = work;
    size_t down = (size_t)j->shape->out[0], all = (size_t)j->x->dim[0] * down;
    for (size_t row = block * j->rows; row < mica_least((block + 1) * j->rows, all); row++)
        pool_row(j, (ptrdiff_t)(row / down), (ptrdiff_t)(row % down));
}

void mica_pooling_last(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                       const mica_pool_shape *s, bool largest)
{
    pool_job j = {.kernels = ctx->kernels, .x = x, .y = y, .shape = s, .largest = largest};
    size_t rows = (size_t)(x->dim[0] * s->out[0]),
           row = (size_t)(s->out[1] * s->kernel[0] * s->kernel[1] * x->dim[1]);
    if (rows * (size_t)s->out[1] == 0)
        return;
    j.rows = mica_most(1, BLOCK / mica_most(1, row));
    mica_parallel_sums(ctx, (double)READ_WORK * (double)rows * (double)row, mica_div_up(rows, j.rows),
                       pool_block, &j);
}

/* ---- Means ---- */

bool mica_means_is_last(const mica_tensor *x)
{
    bool last = mica_channels_last(x);
    for (int i = x->rank - 1; last && i > 2; i--)
        last = x->stride[i - 1] == x->stride[i] * x->dim[i];
    return last;
}

typedef struct means_job {
    const mica_kernels *kernels;
    const mica_tensor *x, *y;
    size_t pixels, some; /* channels of a block */
} means_job;

static void means_block(void *work, size_t block, int thread)
{
    (void)thread;
    const means_job *j = work;
    size_t channels = (size_t)j->x->dim[1], across = mica_div_up(channels, j->some);
    ptrdiff_t image = (ptrdiff_t)(block / across), first = (ptrdiff_t)(block % across * j->some);
    double totals[TOTALS];
    mica_last_window w = {.in = (const float *)j->x->data + image * j->x->stride[0] + first,
                          .column_stride = j->x->stride[j->x->rank - 1],
                          .rows = 1,
                          .columns = j->pixels,
                          .channels = mica_least(j->some, channels - (size_t)first)};
    MICA_FAMILY(j->kernels, last_pool)->totals(totals, &w);
    float *y = (float *)j->y->data + image * j->y->stride[0] + first * j->y->stride[1];
    for (size_t c = 0; c < w.channels; c++)
        y[(ptrdiff_t)c * j->y->stride[1]] = (float)(totals[c] / (double)j->pixels);
}

void mica_means_last(mica_context *ctx, const mica_tensor *y, const mica_tensor *x)
{
    means_job j = {.kernels = ctx->kernels, .x = x, .y = y, .pixels = 1};
    for (int i = 2; i < x->rank; i++)
        j.pixels *= (size_t)x->dim[i];
    size_t channels = (size_t)x->dim[1];
    j.some = mica_least(TOTALS, mica_round_up(mica_most(1, BLOCK / mica_most(1, j.pixels)), 64));
    mica_parallel_sums(ctx, (double)READ_WORK * (double)(j.pixels * channels) * (double)x->dim[0],
                       (size_t)x->dim[0] * mica_div_up(channels, j.some), means_block, &j);
}
#endif
