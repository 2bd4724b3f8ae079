/* Sums of few elements along an axis, by tables: x is [outer, from, inner], the result [outer, to, inner]. */
#include <mica/ops/vision.h>

#include <string.h>

#include "base/parallel.h"
#include "ops/contiguous.h"

/* Elements in a block of parallel work, and of a row that a block of the backward takes. */
#define BLOCK ((size_t)16384)
#define PIECE ((size_t)1024)
/* From here on, rows go through kernels. */
#define ROW ((size_t)16)

typedef struct job {
    const mica_map_kernels *kernels;
    float *out;
    const float *in;
    const int32_t *index;
    const float *weight;
    size_t outer, from, to, inner, taps;
    size_t units, per_block, pieces; /* units of work, those in a block, pieces of a row */
} job;

/* What the table and both shapes must be: `wide` has the elements that the table points to, `narrow` a row for each of
 * its rows. */
static mica_status check(mica_context *ctx, const char *op, job *j, const mica_arg *narrow,
                         const mica_arg *wide, const mica_tensor *index, const mica_tensor *weight, int axis)
{
    const mica_tensor *x = wide->tensor;
    MICA_TRY(mica_check_rank(ctx, op, wide->name, x, 1, MICA_MAX_RANK));
    MICA_TRY(mica_check_axis(ctx, op, axis, wide->name, x, &axis));
    MICA_TRY(mica_check_rank(ctx, op, "index", index, 2, 2));
    MICA_TRY(mica_check_same_shape(ctx, op, "weight", weight, "index", index));
    mica_index dims[MICA_MAX_RANK];
    *j = (job){.kernels = ctx->kernels->map, .outer = 1, .inner = 1};
    for (int k = 0; k < x->rank; k++) {
        dims[k] = k == axis ? index->dim[0] : x->dim[k];
        if (k < axis)
            j->outer *= (size_t)x->dim[k];
        else if (k > axis)
            j->inner *= (size_t)x->dim[k];
    }
    MICA_TRY(mica_check_shape(ctx, op, narrow->name, narrow->tensor, x->rank, dims, wide->name, x));
    j->from = (size_t)x->dim[axis];
    j->to = (size_t)index->dim[0];
    j->taps = (size_t)index->dim[1];
    return MICA_OK;
}

static mica_status check_index(mica_context *ctx, const char *op, const job *j)
{
    for (size_t i = 0; i < j->to * j->taps; i++)
        if (j->index[i] < -1 || (j->index[i] >= 0 && (size_t)j->index[i] >= j->from))
            return mica_fail(ctx, MICA_ERR_INDEX, "%s: index holds %d at element %zu; expected -1 to %zu", op,
                             (int)j->index[i], i, j->from - 1);
    return MICA_OK;
}

/* row[n] = or += w src[n] */
static void put_row(const job *j, float *row, const float *src, float w, size_t n, bool add)
{
    if (n >= ROW && add) {
        MICA_KERNEL_OF(j->kernels, map, add_scaled)(row, (const float *[]){row, src}, n, &w);
    } else if (n >= ROW) {
        MICA_KERNEL_OF(j->kernels, map, scale)(row, (const float *[]){src}, n, &w);
    } else {
        for (size_t i = 0; i < n; i++)
            row[i] = add ? row[i] + w * src[i] : w * src[i];
    }
}

/* Rows of the result. */
static void forward_block(void *work, size_t block, int thread)
{
    (void)thread;
    const job *j = work;
    size_t end = mica_least((block + 1) * j->per_block, j->units);
    for (size_t unit = block * j->per_block; unit < end; unit++) {
        const int32_t *index = j->index + unit % j->to * j->taps;
        const float *weight = j->weight + unit % j->to * j->taps;
        const float *x = j->in + unit / j->to * j->from * j->inner;
        float *row = j->out + unit * j->inner;
        if (j->inner == 1) {
            float sum = 0.0f;
            for (size_t k = 0; k < j->taps; k++)
                if (index[k] >= 0)
                    sum += weight[k] * x[index[k]];
            *row = sum;
            continue;
        }
        bool any = false;
        for (size_t k = 0; k < j->taps; k++) {
            if (index[k] < 0)
                continue;
            put_row(j, row, x + (size_t)index[k] * j->inner, weight[k], j->inner, any);
            any = true;
        }
        if (!any)
            memset(row, 0, j->inner * sizeof *row);
    }
}

/* Pieces of the inner rows, all along the axis: no two blocks meet. */
static void backward_block(void *work, size_t block, int thread)
{
    (void)thread;
    const job *j = work;
    size_t end = mica_least((block + 1) * j->per_block, j->units);
    for (size_t unit = block * j->per_block; unit < end; unit++) {
        size_t outer = unit / j->pieces, first = unit % j->pieces * PIECE,
               n = mica_least(j->inner - first, PIECE);
        float *dx = j->out + outer * j->from * j->inner + first;
        const float *dy = j->in + outer * j->to * j->inner + first;
        for (size_t i = 0; i < j->from; i++)
            memset(dx + i * j->inner, 0, n * sizeof *dx);
        for (size_t i = 0; i < j->to; i++)
            for (size_t k = 0; k < j->taps; k++)
                if (j->index[i * j->taps + k] >= 0)
                    put_row(j, dx + (size_t)j->index[i * j->taps + k] * j->inner, dy + i * j->inner,
                            j->weight[i * j->taps + k], n, true);
    }
}

static mica_status run(mica_context *ctx, const char *op, job *j, const mica_arg *args, bool backward)
{
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 4);
    MICA_START(ctx, op, dense.bytes, &scratch);
    mica_contiguous_load(&dense, scratch);
    j->out = dense.data[0];
    j->in = dense.data[1];
    j->index = dense.data[2];
    j->weight = dense.data[3];
    MICA_TRY(check_index(ctx, op, j));
    j->pieces = mica_div_up(j->inner, PIECE);
    j->units = backward ? j->outer * j->pieces : j->outer * j->to;
    size_t each = backward ? (j->from + j->to) * mica_least(j->inner, PIECE) : j->inner * (j->taps + 1);
    if (j->units == 0 || mica_tensor_count(args[0].tensor) == 0)
        return MICA_OK;
    j->per_block = each < BLOCK ? BLOCK / each : 1;
    mica_parallel(ctx, mica_div_up(j->units, j->per_block), backward ? backward_block : forward_block, j);
    mica_contiguous_store(&dense);
    return MICA_OK;
}

mica_status mica_sum_taps(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x,
                          const mica_tensor *index, const mica_tensor *weight, int axis)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, 0},
                       {"x", x, 0, 0},
                       {"index", index, 0, MICA_DTYPE_BIT(MICA_I32)},
                       {"weight", weight, 0, 0}};
    MICA_TRY(mica_check_args(ctx, "sum_taps", args, 4));
    job j;
    MICA_TRY(check(ctx, "sum_taps", &j, &args[0], &args[1], index, weight, axis));
    return run(ctx, "sum_taps", &j, args, false);
}

mica_status mica_sum_taps_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                   const mica_tensor *index, const mica_tensor *weight, int axis)
{
    mica_arg args[] = {{"dx", dx, MICA_ARG_OUT, 0},
                       {"dy", dy, 0, 0},
                       {"index", index, 0, MICA_DTYPE_BIT(MICA_I32)},
                       {"weight", weight, 0, 0}};
    MICA_TRY(mica_check_args(ctx, "sum_taps_backward", args, 4));
    job j;
    MICA_TRY(check(ctx, "sum_taps_backward", &j, &args[1], &args[0], index, weight, axis));
    return run(ctx, "sum_taps_backward", &j, args, true);
}
