/* Pooling of int8 planes. */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "ops/int8.h"
#include "ops/int8_last.h"

#define BLOCK ((size_t)8192) /* values that are read in a block of parallel work, about */
#define ROW   256            /* results at a time */
#define TAPS  16             /* of an output pixel at a time */

typedef struct pool_job {
    const mica_int8_kernels *kernels;
    size_t planes, planes_at_once;
    size_t channels; /* side by side */
    mica_index in[2], out[2], kernel[2], stride[2], pad[2], dilation[2];
    const int8_t *x;
    int8_t *y;
    mica_int8_finish finish;
    int32_t zero; /* of x, in global_block */
} pool_job;

/* Results from `first` to *end - 1 of a row whose tap `t` lies inside; moves both to what is. */
static void inside(const pool_job *job, mica_index t, mica_index *first, mica_index *end)
{
    mica_index shift = t * job->dilation[1] - job->pad[1], stride = job->stride[1];
    mica_index low = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    mica_index high = job->in[1] > shift ? (job->in[1] - shift + stride - 1) / stride : 0;
    *first = *first > low ? *first : low;
    *end = *end < high ? *end : high;
}

/* Part of an output row: with `sum` sums, else maxima. */
static void pool_part(const pool_job *job, const int8_t *plane, mica_index row, mica_index first,
                      mica_index end, int8_t *largest, int32_t *sum)
{
    for (mica_index i = 0; i < job->kernel[0]; i++) {
        mica_index at = row * job->stride[0] - job->pad[0] + i * job->dilation[0];
        if (at < 0 || at >= job->in[0])
            continue;
        for (mica_index j = 0; j < job->kernel[1]; j++) {
            mica_index from = first, to = end;
            inside(job, j, &from, &to);
            if (from >= to)
                continue;
            const int8_t *x = plane + at * job->in[1] + from * job->stride[1] - job->pad[1] +
                              j * job->dilation[1];
            if (sum != NULL)
                job->kernels->tap(sum + (from - first), x, (size_t)job->stride[1], (size_t)(to - from), 1);
            else
                job->kernels->largest(largest + (from - first), x, (size_t)job->stride[1],
                                      (size_t)(to - from));
        }
    }
}

static void pool_block(const pool_job *job, size_t block, bool average)
{
    size_t end = mica_least((block + 1) * job->planes_at_once, job->planes);
    for (size_t p = block * job->planes_at_once; p < end; p++)
        for (mica_index row = 0; row < job->out[0]; row++)
            for (mica_index at = 0; at < job->out[1]; at += ROW) {
                mica_index stop = at + ROW < job->out[1] ? at + ROW : job->out[1];
                const int8_t *plane = job->x + p * (size_t)(job->in[0] * job->in[1]);
                int8_t *y = job->y + (p * (size_t)job->out[0] + (size_t)row) * (size_t)job->out[1] + at;
                int32_t sum[ROW] = {0};
                memset(y, INT8_MIN, (size_t)(stop - at));
                pool_part(job, plane, row, at, stop, y, average ? sum : NULL);
                if (average)
                    job->kernels->finish(y, sum, (size_t)(stop - at), &job->finish, 0);
            }
}

#if !defined(MICA_SMALL)
/* ---- Channels last: a pixel of all of them at a time ---- */

/* Where the taps of an output pixel that lie inside are in an image; how many. At most TAPS from tap *next on, which
 * is moved. */
static size_t find_taps(const pool_job *job, mica_index row, mica_index column, ptrdiff_t at[TAPS],
                        mica_index *next)
{
    size_t found = 0;
    for (mica_index all = job->kernel[0] * job->kernel[1]; *next < all && found < TAPS; ++*next) {
        mica_index i = row * job->stride[0] - job->pad[0] + *next / job->kernel[1] * job->dilation[0],
                   j = column * job->stride[1] - job->pad[1] + *next % job->kernel[1] * job->dilation[1];
        if (i >= 0 && i < job->in[0] && j >= 0 && j < job->in[1])
            at[found++] = (i * job->in[1] + j) * (mica_index)job->channels;
    }
    return found;
}

static void average_pixel(const pool_job *job, const int8_t *image, mica_index row, mica_index column,
                          int8_t *y)
{
    for (size_t c = 0; c < job->channels; c += ROW) {
        int32_t sum[ROW] = {0};
        ptrdiff_t at[TAPS];
        size_t count = mica_least(ROW, job->channels - c), taps;
        for (mica_index next = 0; (taps = find_taps(job, row, column, at, &next)) > 0;)
            for (size_t t = 0; t < taps; t++)
                job->kernels->tap(sum, image + at[t] + c, 1, count, 1);
        job->kernels->finish(y + c, sum, count, &job->finish, 0);
    }
}

static void max_pixel(const pool_job *job, const int8_t *image, mica_index row, mica_index column, int8_t *y)
{
    ptrdiff_t at[TAPS];
    mica_index next = 0;
    size_t taps = find_taps(job, row, column, at, &next);
    if (taps > 0)
        job->kernels->largest_of(y, image, at, taps, job->channels);
    else
        memset(y, INT8_MIN, job->channels);
    while (taps > 0 && (taps = find_taps(job, row, column, at, &next)) > 0)
        for (size_t t = 0; t < taps; t++)
            job->kernels->largest(y, image + at[t], 1, job->channels);
}

/* Where the taps of a window that lies inside are, from its first; how many, 0 if they are too many. */
static size_t inner_taps(const pool_job *job, ptrdiff_t at[TAPS])
{
    size_t taps = 0;
    if (job->kernel[0] > TAPS || job->kernel[1] > TAPS || job->kernel[0] * job->kernel[1] > TAPS)
        return 0;
    for (mica_index i = 0; i < job->kernel[0]; i++)
        for (mica_index j = 0; j < job->kernel[1]; j++)
            at[taps++] = (i * job->dilation[0] * job->in[1] + j * job->dilation[1]) *
                         (mica_index)job->channels;
    return taps;
}

static bool lies_inside(const pool_job *job, int k, mica_index first)
{
    return first >= 0 && first + (job->kernel[k] - 1) * job->dilation[k] < job->in[k];
}

static void max_row(const pool_job *job, const int8_t *image, mica_index row, int8_t *y)
{
    ptrdiff_t at[TAPS];
    mica_index top = row * job->stride[0] - job->pad[0];
    size_t taps = lies_inside(job, 0, top) ? inner_taps(job, at) : 0;
    for (mica_index column = 0; column < job->out[1]; column++, y += job->channels) {
        mica_index left = column * job->stride[1] - job->pad[1];
        if (taps > 0 && lies_inside(job, 1, left))
            job->kernels->largest_of(y, image + (size_t)(top * job->in[1] + left) * job->channels, at, taps,
                                     job->channels);
        else
            max_pixel(job, image, row, column, y);
    }
}

/* A row of output is a unit. */
static void pool_last_block(const pool_job *job, size_t block, bool average)
{
    size_t rows = job->planes / job->channels * (size_t)job->out[0], channels = job->channels;
    size_t end = mica_least((block + 1) * job->planes_at_once, rows);
    for (size_t r = block * job->planes_at_once; r < end; r++) {
        const int8_t *image = job->x + r / (size_t)job->out[0] * (size_t)(job->in[0] * job->in[1]) * channels;
        int8_t *y = job->y + r * (size_t)job->out[1] * channels;
        mica_index row = (mica_index)(r % (size_t)job->out[0]);
        if (!average)
            max_row(job, image, row, y);
        for (mica_index column = 0; column < job->out[1] && average; column++, y += channels)
            average_pixel(job, image, row, column, y);
    }
}

static void max_last_block(void *work, size_t block, int thread)
{
    (void)thread;
    pool_last_block(work, block, false);
}

static void average_last_block(void *work, size_t block, int thread)
{
    (void)thread;
    pool_last_block(work, block, true);
}

/* Some channels of an image. */
static void global_last_block(void *work, size_t block, int thread)
{
    (void)thread;
    const pool_job *job = work;
    size_t blocks = mica_div_up(job->channels, ROW), image = block / blocks, first = block % blocks * ROW;
    size_t channels = mica_least(ROW, job->channels - first), count = (size_t)job->in[1];
    const int8_t *x = job->x + image * count * job->channels + first;
    int32_t sum[ROW];
    for (size_t c = 0; c < channels; c++)
        sum[c] = -(int32_t)count * job->zero;
    for (size_t i = 0; i < count; i++)
        job->kernels->tap(sum, x + i * job->channels, 1, channels, 1);
    job->kernels->finish(job->y + image * job->channels + first, sum, channels, &job->finish, 0);
}
#endif

static void max_block(void *work, size_t block, int thread)
{
    (void)thread;
    pool_block(work, block, false);
}

static void average_block(void *work, size_t block, int thread)
{
    (void)thread;
    pool_block(work, block, true);
}

static void global_block(void *work, size_t block, int thread)
{
    (void)thread;
    const pool_job *job = work;
    size_t end = mica_least((block + 1) * job->planes_at_once, job->planes), count = (size_t)job->in[1];
    for (size_t p = block * job->planes_at_once; p < end; p++) {
        const int8_t *x = job->x + p * count;
        int32_t sum = -(int32_t)count * job->zero;
        for (size_t i = 0; i < count; i++)
            sum += x[i];
        job->kernels->finish(job->y + p, &sum, 1, &job->finish, 0);
    }
}

#if !defined(MICA_SMALL)
/* Both with channels last, and not plain too. */
static mica_status run_last(mica_context *ctx, const char *op, pool_job *job, const mica_arg args[2],
                            mica_block_fn *fn)
{
    void *scratch;
    MICA_START(ctx, op, 0, &scratch);
    (void)scratch;
    job->kernels = MICA_FAMILY(ctx->kernels, int8);
    job->y = args[0].tensor->data;
    job->x = args[1].tensor->data;
    job->channels = (size_t)args[1].tensor->dim[1];
    size_t plane = (size_t)(job->in[0] * job->in[1]), images = job->planes / job->channels, blocks;
    if (fn == global_last_block) {
        blocks = images * mica_div_up(job->channels, ROW);
    } else {
        size_t row = job->channels * (size_t)(job->out[1] * job->kernel[0] * job->kernel[1]);
        job->planes_at_once = BLOCK / row + 1;
        blocks = mica_div_up(images * (size_t)job->out[0], job->planes_at_once);
    }
    mica_parallel_sums(ctx, 16.0 * (double)(job->planes * plane), blocks, fn, job);
    return MICA_OK;
}
#endif

static mica_status run(mica_context *ctx, const char *op, pool_job *job, const mica_arg args[2],
                       mica_block_fn *fn)
{
#if !defined(MICA_SMALL)
    const mica_tensor *to = args[0].tensor, *from = args[1].tensor;
    bool flat = to->rank == 2 && mica_tensor_contiguous(to);
    if (from->rank == 4 && mica_is_dense_channels_last(from) && (mica_is_dense_channels_last(to) || flat) &&
        mica_tensor_count(to) > 0 && !(mica_tensor_contiguous(from) && mica_tensor_contiguous(to)))
        return run_last(ctx, op, job, args,
                        fn == global_block    ? global_last_block
                        : fn == average_block ? average_last_block
                                              : max_last_block);
#endif
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 2);
    MICA_START(ctx, op, dense.bytes, &scratch);
    mica_contiguous_load(&dense, scratch);
    job->kernels = MICA_FAMILY(ctx->kernels, int8);
    job->y = dense.data[0];
    job->x = dense.data[1];
    size_t plane = (size_t)(job->in[0] * job->in[1]);
    job->planes_at_once = BLOCK / (plane > 0 ? plane : 1) + 1;
    if (mica_tensor_count(args[0].tensor) > 0)
        mica_parallel_sums(ctx, 16.0 * (double)(job->planes * plane),
                           mica_div_up(job->planes, job->planes_at_once), fn, job);
    mica_contiguous_store(&dense);
    return MICA_OK;
}

/* Windows over [..., H, W]. */
static mica_status set_windows(mica_context *ctx, const char *op, pool_job *job, const mica_arg args[2],
                               const mica_pooling_opts *opts)
{
    const mica_tensor *y = args[0].tensor, *x = args[1].tensor;
    MICA_TRY(mica_check_args(ctx, op, args, 2));
    MICA_TRY(mica_check_rank(ctx, op, "x", x, 2, MICA_MAX_RANK));
    mica_index want[MICA_MAX_RANK];
    job->planes = 1;
    for (int k = 0; k < x->rank - 2; k++)
        job->planes *= (size_t)(want[k] = x->dim[k]);
    for (int k = 0; k < 2; k++) {
        mica_index size = x->dim[x->rank - 2 + k], made = mica_pooling_size(size, k, opts);
        if (made < 1)
            return mica_fail(ctx, MICA_ERR_SHAPE, "%s: a window of %td does not fit into x %s padded by %td",
                             op, opts->kernel[k], MICA_SHAPE(x), opts->pad[k]);
        job->in[k] = size;
        job->out[k] = want[x->rank - 2 + k] = made;
        job->kernel[k] = opts->kernel[k];
        job->stride[k] = opts->stride[k] != 0 ? opts->stride[k] : opts->kernel[k];
        job->pad[k] = opts->pad[k];
        job->dilation[k] = opts->dilation[k] != 0 ? opts->dilation[k] : 1;
    }
    return mica_check_shape(ctx, op, "y", y, x->rank, want, "x", x);
}

mica_status mica_int8_max_pool2d(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                 const mica_pooling_opts *opts)
{
    const char *op = "int8_max_pool2d";
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, MICA_I8_ONLY}, {"x", x, 0, MICA_I8_ONLY}};
    pool_job job;
    if (opts == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: opts is NULL, but a kernel size is needed", op);
    MICA_TRY(set_windows(ctx, op, &job, args, opts));
    return run(ctx, op, &job, args, max_block);
}

mica_status mica_int8_avg_pool2d(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                 const mica_int8_avg_pool_opts *opts)
{
    const char *op = "int8_avg_pool2d";
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, MICA_I8_ONLY}, {"x", x, 0, MICA_I8_ONLY}};
    pool_job job;
    int32_t limit[2];
    if (opts == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: opts is NULL, but a kernel size is needed", op);
    mica_pooling_opts windows = {.kernel = {opts->kernel[0], opts->kernel[1]},
                                 .stride = {opts->stride[0], opts->stride[1]},
                                 .pad = {opts->pad[0], opts->pad[1]},
                                 .ceil_mode = opts->ceil_mode};
    MICA_TRY(set_windows(ctx, op, &job, args, &windows));
    if ((double)opts->kernel[0] * (double)opts->kernel[1] > MICA_INT8_PRODUCTS)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: windows of %td x %td: expected at most %d values", op,
                         opts->kernel[0], opts->kernel[1], MICA_INT8_PRODUCTS);
    MICA_TRY(mica_int8_check_factor(ctx, op, opts->multiplier, opts->shift));
    MICA_TRY(mica_int8_check_limits(ctx, op, opts->low, opts->high, limit));
    int32_t multiplier = opts->multiplier;
    uint8_t shift = (uint8_t)opts->shift;
    job.finish = (mica_int8_finish){
        .multiplier = &multiplier, .shift = &shift, .low = limit[0], .high = limit[1]};
    return run(ctx, op, &job, args, average_block);
}

/* Planes of all that follows the first two axes. */
static mica_status set_planes(mica_context *ctx, const char *op, pool_job *job, const mica_arg args[2])
{
    const mica_tensor *y = args[0].tensor, *x = args[1].tensor;
    MICA_TRY(mica_check_args(ctx, op, args, 2));
    MICA_TRY(mica_check_rank(ctx, op, "x", x, 2, MICA_MAX_RANK));
    mica_index dims[MICA_MAX_RANK] = {x->dim[0], x->dim[1], 1, 1, 1, 1, 1, 1};
    MICA_TRY(mica_check_shape(ctx, op, "y", y, y->rank == 2 ? 2 : x->rank, dims, "x", x));
    double count = 1.0;
    for (int k = 2; k < x->rank; k++)
        count *= (double)x->dim[k];
    if (count < 1.0 || count > MICA_INT8_PRODUCTS)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: x is %s: sums of %.0f values, expected 1 to %d", op,
                         MICA_SHAPE(x), count, MICA_INT8_PRODUCTS);
    job->planes = (size_t)(x->dim[0] * x->dim[1]);
    job->in[0] = 1;
    job->in[1] = (mica_index)count;
    return MICA_OK;
}

mica_status mica_int8_global_avg_pool(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                      const mica_int8_global_pool_opts *opts)
{
    const char *op = "int8_global_avg_pool";
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, MICA_I8_ONLY}, {"x", x, 0, MICA_I8_ONLY}};
    static const mica_int8_global_pool_opts none = {0};
    opts = opts != NULL ? opts : &none;
    int32_t limit[2];
    pool_job job = {.zero = 0};
    MICA_TRY(set_planes(ctx, op, &job, args));
    MICA_TRY(mica_int8_check_factor(ctx, op, opts->multiplier, opts->shift));
    MICA_TRY(mica_int8_check_limits(ctx, op, opts->low, opts->high, limit));
    int32_t multiplier = opts->multiplier;
    uint8_t shift = (uint8_t)opts->shift;
    job.finish = (mica_int8_finish){
        .multiplier = &multiplier, .shift = &shift, .low = limit[0], .high = limit[1]};
    return run(ctx, op, &job, args, global_block);
}

mica_status mica_affine_global_avg_pool(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                        const mica_affine_pool_opts *opts)
{
    const char *op = "affine_global_avg_pool";
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, MICA_I8_ONLY}, {"x", x, 0, MICA_I8_ONLY}};
    static const mica_affine_pool_opts none = {0};
    opts = opts != NULL ? opts : &none;
    int32_t limit[2];
    pool_job job = {.zero = opts->x_zero};
    MICA_TRY(set_planes(ctx, op, &job, args));
    MICA_TRY(mica_affine_check_zero(ctx, op, opts->x_zero));
    MICA_TRY(mica_affine_check_zero(ctx, op, opts->y_zero));
    MICA_TRY(mica_affine_check_limits(ctx, op, opts->low, opts->high, limit));
    if (!(opts->factor >= 0.0f) || !isfinite(opts->factor))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: factor is %g: expected a finite number >= 0", op,
                         (double)opts->factor);
    float factor = opts->factor / (float)job.in[1];
    job.finish = (mica_int8_finish){
        .kind = MICA_INT8_AFFINE, .factor = &factor, .zero = opts->y_zero, .low = limit[0], .high = limit[1]};
    return run(ctx, op, &job, args, global_block);
}
