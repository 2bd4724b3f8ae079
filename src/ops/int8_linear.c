/* Rows times weight rows, int8. Few rows go by dot products with the weights as they lie, unless these are packed; for
 * more, they are packed first.
 *
 * Scratch: packed weights, unless they are given | for each thread: a tile of x | its sums. */
#include <string.h>

#include "base/parallel.h"
#include "ops/int8_pack.h"

#define FEW        4  /* rows of x that panels do not pay for */
#define TILE       64 /* rows of x at a time */
#define DOTS       64 /* weight rows at a time */
#define BLOCK_SUMS ((size_t)1 << 20)

typedef struct linear_job {
    const mica_int8_kernels *kernels;
    mica_int8_packing packing;
    size_t rows, units, values, quads, panels;
    const int8_t *x, *w;
    char *y;
    const int32_t *bias;
    mica_int8_finish finish;
    int32_t zero; /* of x */
    size_t result_bytes;
    int each; /* unit has a multiplier and a shift, or a factor, of its own */
    const int8_t *packed;
    const int32_t *start;
    char *own; /* of threads */
    size_t own_bytes, tile_bytes;
    size_t panels_at_once;
} linear_job;

/* A tile of x, whose bytes get the offset, then panels. */
static void run_tile(void *work, size_t block, int thread)
{
    const linear_job *job = work;
    size_t groups = mica_div_up(job->panels, job->panels_at_once);
    size_t row = block / groups * TILE, rows = mica_least(TILE, job->rows - row), stride = job->quads * 4;
    size_t width = job->kernels->width, first = block % groups * job->panels_at_once;
    uint8_t *tile = (uint8_t *)job->own + (size_t)thread * job->own_bytes;
    int32_t *sum = (int32_t *)(void *)(tile + job->tile_bytes);
    for (size_t r = 0; r < rows; r++) {
        const int8_t *from = job->x + (row + r) * job->values;
        job->kernels->offset_row(tile + r * stride, from, job->values);
        memset(tile + r * stride + job->values, job->kernels->offset, stride - job->values);
    }
    for (size_t panel = first; panel < mica_least(first + job->panels_at_once, job->panels); panel++) {
        size_t unit = panel * width, units = mica_least(width, job->units - unit);
        job->kernels->product(sum, tile, stride, rows, job->quads,
                              job->packed + panel * mica_int8_panel_bytes(&job->packing, job->kernels),
                              job->start + unit);
        mica_int8_finish f = mica_int8_finish_from(&job->finish, job->each, unit);
        job->kernels->finish_rows(job->y + (row * job->units + unit) * job->result_bytes, job->units, sum,
                                  rows, units, &f, job->each);
    }
}

static void run_dots(void *work, size_t block, int thread)
{
    (void)thread;
    const linear_job *job = work;
    size_t unit = block * DOTS, units = mica_least(DOTS, job->units - unit);
    mica_int8_finish f = mica_int8_finish_from(&job->finish, job->each, unit);
    for (size_t r = 0; r < job->rows; r++) {
        int32_t sum[DOTS];
        job->kernels->dots(sum, job->x + r * job->values, job->w + unit * job->values, job->values, units,
                           job->values, job->bias + unit);
        job->kernels->finish((int8_t *)job->y + r * job->units + unit, sum, units, &f, job->each);
    }
}

static mica_status check(mica_context *ctx, const char *op, const mica_arg *args, linear_job *job)
{
    const mica_tensor *y = args[MICA_INT8_Y].tensor, *x = args[MICA_INT8_X].tensor,
                      *w = args[MICA_INT8_W].tensor;
    MICA_TRY(mica_check_rank(ctx, op, "x", x, 1, MICA_MAX_RANK));
    MICA_TRY(mica_check_rank(ctx, op, "w", w, 2, 2));
    mica_index last = x->dim[x->rank - 1], dims[MICA_MAX_RANK];
    if (w->dim[1] != last)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: x is %s, w is %s: rows of %td values against rows of %td",
                         op, MICA_SHAPE(x), MICA_SHAPE(w), last, w->dim[1]);
    for (int k = 0; k < x->rank; k++)
        dims[k] = x->dim[k];
    dims[x->rank - 1] = w->dim[0];
    MICA_TRY(mica_check_shape(ctx, op, "y", y, x->rank, dims, "x", x));
    MICA_TRY(mica_int8_check_channels(ctx, op, args, w->dim[0], (double)last));
    job->units = (size_t)w->dim[0];
    job->values = (size_t)last;
    job->rows = 1;
    for (int k = 0; k + 1 < x->rank; k++)
        job->rows *= (size_t)x->dim[k];
    job->packing = mica_int8_packing_of(job->kernels, w, 1);
    MICA_TRY(mica_int8_check_packed(ctx, op, args[MICA_INT8_PACKED].tensor, &job->packing));
    job->quads = job->packing.quads;
    job->panels = mica_div_up(job->units, job->kernels->width);
    job->each = mica_int8_each(args);
    return MICA_OK;
}

static void run_panels(mica_context *ctx, linear_job *job, const mica_contiguous *dense, char *scratch,
                       double sums)
{
    job->packed = dense->data[MICA_INT8_PACKED];
    if (job->packed == NULL) {
        mica_int8_pack_into(ctx, &job->packing, scratch, job->w, job->bias, job->zero);
        job->packed = (const int8_t *)scratch;
        scratch += mica_align_up(job->packing.bytes);
    }
    job->start = (const int32_t *)(const void *)(job->packed + job->packing.start_at);
    job->own = scratch;
    job->panels_at_once = BLOCK_SUMS / (TILE * job->kernels->width * (job->values + 1)) + 1;
    mica_parallel_sums(ctx, sums,
                       mica_div_up(job->rows, TILE) * mica_div_up(job->panels, job->panels_at_once), run_tile,
                       job);
}

mica_status mica_int8_linear_of(mica_context *ctx, const char *op, const mica_arg args[MICA_INT8_ARGS],
                                mica_int8_finish finish, int32_t zero)
{
    linear_job job = {.kernels = MICA_FAMILY(ctx->kernels, int8), .finish = finish, .zero = zero};
    const mica_tensor *packed = args[MICA_INT8_PACKED].tensor;
    MICA_TRY(check(ctx, op, args, &job));
    double sums = (double)job.rows * (double)job.units * (double)job.values;
    mica_count_flops(ctx, 2.0 * sums);
    mica_arg used[MICA_INT8_ARGS];
    mica_contiguous dense;
    mica_int8_read_args(used, args);
    mica_contiguous_plan(&dense, used, MICA_INT8_ARGS);
    size_t more = 0;
    bool panels = packed != NULL || job.rows > FEW || finish.kind != MICA_INT8_SHIFTED;
    if (panels) {
        job.tile_bytes = mica_align_up(TILE * job.quads * 4);
        job.own_bytes = job.tile_bytes + mica_align_up(TILE * job.kernels->width * sizeof(int32_t));
        more = (packed != NULL ? 0 : mica_align_up(job.packing.bytes)) + (size_t)ctx->threads * job.own_bytes;
    }
    void *scratch;
    MICA_START(ctx, op, dense.bytes + more, &scratch);
    scratch = mica_contiguous_load(&dense, scratch);
    job.y = dense.data[MICA_INT8_Y];
    job.x = dense.data[MICA_INT8_X];
    job.w = dense.data[MICA_INT8_W];
    job.bias = dense.data[MICA_INT8_BIAS];
    job.result_bytes = mica_int8_result_bytes(finish.kind);
    MICA_TRY(mica_int8_take_factors(ctx, op, args, &dense, &job.finish));
    if (job.rows == 0 || job.units == 0)
        return MICA_OK;
    if (panels)
        run_panels(ctx, &job, &dense, scratch, sums);
    else
        mica_parallel_sums(ctx, sums, mica_div_up(job.units, DOTS), run_dots, &job);
    mica_contiguous_store(&dense);
    return MICA_OK;
}

mica_status mica_int8_linear(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                             const mica_int8_weights *weights, const mica_int8_limits *opts)
{
    const char *op = "int8_linear";
    mica_arg args[MICA_INT8_ARGS];
    int32_t limit[2];
    MICA_TRY(mica_int8_check_weights(ctx, op, args, y, x, weights));
    MICA_TRY(
        mica_int8_check_limits(ctx, op, opts != NULL ? opts->low : 0, opts != NULL ? opts->high : 0, limit));
    return mica_int8_linear_of(ctx, op, args, (mica_int8_finish){.low = limit[0], .high = limit[1]}, 0);
}
