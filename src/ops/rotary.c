/* Rotary position embedding. */
#include <mica/ops/rotary.h>

#include <math.h>

#include "base/parallel.h"
#include "ops/check.h"

#define BLOCK ((size_t)16384) /* elements in one block of parallel work */

/* ---- The table ---- */

mica_status mica_rotary_table(mica_context *ctx, const mica_tensor *table, double base)
{
    mica_arg args[] = {{"table", table, MICA_ARG_OUT, 0}};
    MICA_TRY(mica_check_args(ctx, "rotary_table", args, 1));
    MICA_TRY(mica_check_rank(ctx, "rotary_table", "table", table, 2, 2));
    if (table->dim[1] % 2 != 0)
        return mica_fail(ctx, MICA_ERR_SHAPE,
                         "rotary_table: table is %s; expected [%td, %td], an even number of columns",
                         MICA_SHAPE(table), table->dim[0], table->dim[1] + 1);
    MICA_START(ctx, "rotary_table", 0, NULL);
    base = base != 0.0 ? base : 10000.0;
    mica_index half = table->dim[1] / 2;
    for (mica_index p = 0; p < table->dim[0]; p++)
        for (mica_index i = 0; i < half; i++) {
            double angle = (double)p * pow(base, -(double)i / (double)half);
            float *cosine = (float *)table->data + p * table->stride[0] + i * table->stride[1];
            cosine[0] = (float)cos(angle);
            cosine[half * table->stride[1]] = (float)sin(angle);
        }
    return MICA_OK;
}

/* ---- Turning ---- */

typedef struct rotary_job {
    mica_tensor y, x, table;
    mica_rotary_fn *turn; /* NULL: a last axis is not contiguous */
    bool interleaved, in_place;
    mica_index offset;
    float sign;
    size_t rows, per_block;
} rotary_job;

/* One row of any layout. */
static void turn_row(const rotary_job *job, float *y, const float *x, const float *turn)
{
    int last = job->x.rank - 1;
    mica_index xs = job->x.stride[last], ys = job->y.stride[last], ts = job->table.stride[1];
    mica_index n = job->table.dim[1] / 2;
    for (mica_index i = 0; i < n; i++) {
        mica_index a = job->interleaved ? 2 * i : i, b = job->interleaved ? 2 * i + 1 : i + n;
        float first = x[a * xs], second = x[b * xs], cosine = turn[i * ts];
        float sine = job->sign * turn[(i + n) * ts];
        y[a * ys] = first * cosine - second * sine;
        y[b * ys] = second * cosine + first * sine;
    }
}

static void turn_block(void *work, size_t block, int thread)
{
    (void)thread;
    const rotary_job *job = work;
    int last = job->x.rank - 1;
    mica_index turned = job->table.dim[1], length = job->x.dim[last];
    size_t begin = block * job->per_block, end = begin + job->per_block;
    for (size_t row = begin; row < end && row < job->rows; row++) {
        mica_index rest = (mica_index)row, x_at = 0, y_at = 0;
        for (int k = last - 1; k >= 0; k--) {
            mica_index i = rest % job->x.dim[k];
            rest /= job->x.dim[k];
            x_at += i * job->x.stride[k];
            y_at += i * job->y.stride[k];
        }
        float *y = (float *)job->y.data + y_at;
        const float *x = (const float *)job->x.data + x_at;
        mica_index position = job->offset + (mica_index)row % job->x.dim[last - 1];
        const float *turn = (const float *)job->table.data + position * job->table.stride[0];
        if (job->turn != NULL)
            job->turn(y, x, turn, (size_t)turned / 2, job->sign);
        else
            turn_row(job, y, x, turn);
        for (mica_index i = turned; i < length && !job->in_place; i++)
            y[i * job->y.stride[last]] = x[i * job->x.stride[last]];
    }
}

static mica_status rotate(mica_context *ctx, const char *op, const mica_arg *args,
                          const mica_rotary_opts *opts, float sign)
{
    const mica_tensor *y = args[0].tensor, *x = args[1].tensor, *table = args[2].tensor;
    mica_rotary_opts how = opts != NULL ? *opts : (mica_rotary_opts){0};
    MICA_TRY(mica_check_args(ctx, op, args, 3));
    MICA_TRY(mica_check_rank(ctx, op, args[1].name, x, 2, MICA_MAX_RANK));
    MICA_TRY(mica_check_same_shape(ctx, op, args[0].name, y, args[1].name, x));
    MICA_TRY(mica_check_rank(ctx, op, "table", table, 2, 2));
    int last = x->rank - 1;
    mica_index room = table->dim[0] - x->dim[last - 1];
    if (table->dim[1] % 2 != 0 || table->dim[1] > x->dim[last] || how.offset < 0 || how.offset > room)
        return mica_fail(
            ctx, MICA_ERR_SHAPE,
            "%s: %s is %s with its first row at position %td, which does not fit table %s (rows for all positions, an even number of columns)",
            op, args[1].name, MICA_SHAPE(x), how.offset, MICA_SHAPE(table));
    MICA_START(ctx, op, 0, NULL);
    size_t count = mica_tensor_count(x);
    if (count == 0)
        return MICA_OK;
    const mica_rotary_kernels *kernels = MICA_FAMILY(ctx->kernels, rotary);
    bool plain = x->stride[last] == 1 && y->stride[last] == 1 && table->stride[1] == 1;
    rotary_job job = {.y = *y,
                      .x = *x,
                      .table = *table,
                      .turn = !plain            ? NULL
                              : how.interleaved ? kernels->pairs
                                                : kernels->halves,
                      .interleaved = how.interleaved,
                      .in_place = y->data == x->data,
                      .offset = how.offset,
                      .sign = sign,
                      .rows = count / (size_t)x->dim[last]};
    job.per_block = (size_t)x->dim[last] < BLOCK ? BLOCK / (size_t)x->dim[last] : 1;
    mica_parallel(ctx, mica_div_up(job.rows, job.per_block), turn_block, &job);
    return MICA_OK;
}

mica_status mica_rotary(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                        const mica_tensor *table, const mica_rotary_opts *opts)
{
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, 0}, {"x", x, MICA_ARG_IN_PLACE, 0}, {"table", table, 0, 0}};
    return rotate(ctx, "rotary", args, opts, 1.0f);
}

/* A rotation's gradient is turned the other way. */
mica_status mica_rotary_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                 const mica_tensor *table, const mica_rotary_opts *opts)
{
    mica_arg args[] = {{"dx", dx, MICA_ARG_OUT, 0}, {"dy", dy, MICA_ARG_IN_PLACE, 0}, {"table", table, 0, 0}};
    return rotate(ctx, "rotary_backward", args, opts, -1.0f);
}
