/* Rotary positions of rows of tokens: the angles of any positions, and turning by them. */
#include <mica/ops/text.h>

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "ops/contiguous.h"

#define BLOCK ((size_t)16384) /* elements in one block of parallel work */

/* ---- Angles ---- */

typedef struct angles_job {
    const mica_tensor *table, *positions, *frequency;
    double magnitude;
} angles_job;

static void angles_row(void *work, size_t row, int thread)
{
    (void)thread;
    const angles_job *job = work;
    const mica_tensor *table = job->table;
    mica_index half = table->dim[1] / 2, step = table->stride[1];
    int32_t position = ((const int32_t *)job->positions->data)[(mica_index)row * job->positions->stride[0]];
    float *cosine = (float *)table->data + (mica_index)row * table->stride[0], *sine = cosine + half * step;
    for (mica_index i = 0; i < half; i++) {
        double frequency = (double)((const float *)job->frequency->data)[i * job->frequency->stride[0]];
        double angle = (double)position * frequency;
        cosine[i * step] = (float)(job->magnitude * cos(angle));
        sine[i * step] = (float)(job->magnitude * sin(angle));
    }
}

mica_status mica_rotary_angles(mica_context *ctx, const mica_tensor *table, const mica_tensor *positions,
                               const mica_tensor *frequency, const mica_rotary_angles_opts *opts)
{
    const char *op = "rotary_angles";
    mica_arg args[] = {{"table", table, MICA_ARG_OUT, 0},
                       {"positions", positions, 0, MICA_DTYPE_BIT(MICA_I32)},
                       {"frequency", frequency, 0, 0}};
    MICA_TRY(mica_check_args(ctx, op, args, 3));
    MICA_TRY(mica_check_rank(ctx, op, "positions", positions, 1, 1));
    MICA_TRY(mica_check_rank(ctx, op, "frequency", frequency, 1, 1));
    mica_index dims[] = {positions->dim[0], 2 * frequency->dim[0]};
    if (table->rank != 2 || table->dim[0] != dims[0] || table->dim[1] != dims[1])
        return mica_fail(ctx, MICA_ERR_SHAPE,
                         "%s: table is %s; expected [%td, %td], as positions is %s and frequency is %s", op,
                         MICA_SHAPE(table), dims[0], dims[1], MICA_SHAPE(positions), MICA_SHAPE(frequency));
    MICA_START(ctx, op, 0, NULL);
    float magnitude = opts != NULL && opts->magnitude != 0.0f ? opts->magnitude : 1.0f;
    angles_job job = {table, positions, frequency, (double)magnitude};
    mica_parallel_sums(ctx, 50.0 * (double)dims[0] * (double)dims[1], (size_t)dims[0], angles_row, &job);
    return MICA_OK;
}

/* ---- Turning ---- */

typedef struct rows_job {
    const mica_tensor *y, *x, *table;
    mica_rotary_fn *turn;
    size_t heads, width, turned;
    size_t rows, per_block;
} rows_job;

static void turn_rows(void *work, size_t block, int thread)
{
    (void)thread;
    const rows_job *job = work;
    size_t end = mica_least((block + 1) * job->per_block, job->rows), rest = job->width - job->turned;
    for (size_t row = block * job->per_block; row < end; row++) {
        float *y = (float *)job->y->data + (mica_index)row * job->y->stride[0];
        const float *x = (const float *)job->x->data + (mica_index)row * job->x->stride[0];
        const float *turn = (const float *)job->table->data + (mica_index)row * job->table->stride[0];
        for (size_t h = 0; h < job->heads; h++, x += job->width, y += job->width) {
            job->turn(y, x, turn, job->turned / 2, 1.0f);
            if (y != x)
                memcpy(y + job->turned, x + job->turned, rest * sizeof *y);
        }
    }
}

mica_status mica_rotary_rows(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                             const mica_tensor *table, const mica_rotary_rows_opts *opts)
{
    const char *op = "rotary_rows";
    mica_rotary_rows_opts how = opts != NULL ? *opts : (mica_rotary_rows_opts){0};
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, 0}, {"x", x, MICA_ARG_IN_PLACE, 0}, {"table", table, 0, 0}};
    mica_index heads = how.heads != 0 ? how.heads : 1;
    MICA_TRY(mica_check_args(ctx, op, args, 3));
    MICA_TRY(mica_check_rank(ctx, op, "x", x, 2, 2));
    MICA_TRY(mica_check_same_shape(ctx, op, "y", y, "x", x));
    if (heads < 1 || x->dim[1] % heads != 0 || table->rank != 2 || table->dim[0] != x->dim[0] ||
        table->dim[1] % 2 != 0 || table->dim[1] > x->dim[1] / heads)
        return mica_fail(
            ctx, MICA_ERR_SHAPE,
            "%s: x is %s, of %td heads, and table is %s; expected heads of one width, and a row of an "
            "even number of columns, at most that width, for each row of x",
            op, MICA_SHAPE(x), heads, MICA_SHAPE(table));
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan_rows(&dense, args, 3);
    MICA_START(ctx, op, dense.bytes, &scratch);
    (void)mica_contiguous_load(&dense, scratch);
    rows_job job = {.y = mica_contiguous_tensor(&dense, 0),
                    .x = mica_contiguous_tensor(&dense, 1),
                    .table = mica_contiguous_tensor(&dense, 2),
                    .turn = how.interleaved ? MICA_FAMILY(ctx->kernels, rotary)->pairs
                                            : MICA_FAMILY(ctx->kernels, rotary)->halves,
                    .heads = (size_t)heads,
                    .width = (size_t)(x->dim[1] / heads),
                    .turned = (size_t)table->dim[1],
                    .rows = (size_t)x->dim[0]};
    job.per_block = mica_most(1, BLOCK / mica_most(1, (size_t)x->dim[1]));
    mica_parallel_sums(ctx, (double)mica_tensor_count(x), mica_div_up(job.rows, job.per_block), turn_rows,
                       &job);
    mica_contiguous_store(&dense);
    return MICA_OK;
}
