/* Rows times weights of f32, f16 or bf16.
 *
 * Weights are read as they lie where their bandwidth is the bound, or where converting them hides behind the
 * multiplications: some rows at a time, which the second cache keeps along with a block of weights. Otherwise a block
 * becomes panels of floats in the thread's room. Either way gives the same bits. */
#include "ops/linear_rows.h"

#include "base/parallel.h"
#include "kernel/kernels.h"

/* Weights in one block of parallel work; in panels, also how many rows of them. */
#define BLOCK_WEIGHTS ((size_t)65536)
#define PANEL_ROWS    ((size_t)32)
/* Rows of x that a block of weights as they lie is multiplied with at a time, within limits as many as have so many
 * elements. */
#define CHUNK       ((size_t)98304)
#define LEAST_CHUNK ((size_t)24)
#define MOST_CHUNK  ((size_t)48)
/* Where blocks are less than so many for each thread, they are made smaller. */
#define BLOCKS_EACH 4

typedef struct float_job {
    mica_rows_product product; /* the whole */
    const mica_rows_kernels *kernels;
    mica_dtype dtype;
    bool direct;
    size_t block_rows, block_units; /* the latter a multiple of what kernels take at once */
    size_t unit_blocks;
    size_t chunk_rows; /* of weights as they lie */
    char *rooms;
    size_t room_bytes; /* of each thread */
} float_job;

/* Rows of weights in a block, at most: as many as fit in, a multiple of what kernels take at once. */
static size_t fitting_units(const mica_rows_kernels *kernels, size_t k)
{
    size_t units = BLOCK_WEIGHTS / mica_round_up(mica_most(k, 1), kernels->lanes);
    return mica_most(units / kernels->group_units, 1) * kernels->group_units;
}

/* A thread's room, never less for larger sizes. Of weights read as they lie, only the last ones, too few to be taken at
 * once, go there. */
static size_t room_bytes(const mica_rows_kernels *kernels, size_t units, size_t k, bool direct)
{
    size_t length = mica_round_up(k, kernels->lanes), group = kernels->group_units;
    size_t rows = mica_round_up(mica_least(units, direct ? group : PANEL_ROWS), kernels->panel_units);
    return mica_align_up(mica_least(rows * length, mica_most(group * length, BLOCK_WEIGHTS)) * sizeof(float));
}

static float_job plan(const mica_context *ctx, const mica_linear_rows_call *c)
{
    const mica_rows_kernels *kernels = MICA_FAMILY(ctx->kernels, rows);
    float_job job = {.kernels = kernels, .dtype = c->w_dtype};
    job.product = (mica_rows_product){.rows = c->rows,
                                      .units = c->units,
                                      .k = c->width,
                                      .y = c->y,
                                      .y_stride = c->y_stride,
                                      .x = c->x,
                                      .x_stride = c->x_stride,
                                      .w = c->w,
                                      .w_stride = c->w_stride,
                                      .bias = c->bias};
    job.direct = c->rows <= kernels->direct_rows;
    size_t wanted = BLOCKS_EACH * (size_t)ctx->threads; /* blocks, if there are several threads */
    size_t share = mica_round_up(mica_most(c->units / wanted, 1), kernels->group_units);
    job.block_units = mica_least(fitting_units(kernels, c->width), job.direct ? share : PANEL_ROWS);
    job.unit_blocks = mica_div_up(c->units, job.block_units);
    size_t most_chunk = CHUNK / mica_most(c->width, 1) / kernels->tile_rows * kernels->tile_rows;
    job.chunk_rows = mica_least(mica_most(most_chunk, LEAST_CHUNK), MOST_CHUNK);
    job.block_rows = c->rows;
    if (ctx->threads > 1 && job.unit_blocks > 0 && job.unit_blocks < wanted) {
        size_t parts = mica_div_up(wanted, job.unit_blocks);
        job.block_rows = mica_round_up(mica_div_up(c->rows, parts),
                                       job.direct ? job.chunk_rows : 2 * MOST_CHUNK);
    }
    job.room_bytes = room_bytes(kernels, c->units, c->width, job.direct);
    return job;
}

size_t mica_linear_rows_float_scratch(const mica_context *ctx, const mica_linear_rows_call *call)
{
    return (size_t)ctx->threads * plan(ctx, call).room_bytes;
}

/* p without its first rows and units, and at most so many of them. */
static mica_rows_product part_of(const float_job *job, const mica_rows_product *p, size_t row, size_t rows,
                                 size_t unit, size_t units)
{
    mica_rows_product part = *p;
    part.rows = mica_least(rows, p->rows - row);
    part.units = mica_least(units, p->units - unit);
    part.y += (ptrdiff_t)row * p->y_stride + (ptrdiff_t)unit;
    part.x += (ptrdiff_t)row * p->x_stride;
    part.w = (const char *)p->w + (ptrdiff_t)unit * p->w_stride * (ptrdiff_t)mica_dtype_bytes(job->dtype);
    part.bias = p->bias != NULL ? p->bias + unit : NULL;
    return part;
}

static void multiply_panels(const float_job *job, mica_rows_product p, int thread)
{
    float *room = (float *)(void *)(job->rooms + (size_t)thread * job->room_bytes);
    job->kernels->unpack[job->dtype](room, p.w, p.w_stride, p.units, p.k);
    p.w = room;
    job->kernels->panels(&p);
}

static void multiply_block(void *work, size_t block, int thread)
{
    const float_job *job = work;
    size_t row = block / job->unit_blocks * job->block_rows;
    size_t unit = block % job->unit_blocks * job->block_units;
    mica_rows_product p = part_of(job, &job->product, row, job->block_rows, unit, job->block_units);
    if (!job->direct) {
        multiply_panels(job, p, thread);
        return;
    }
    size_t rest = p.units % job->kernels->group_units, whole = p.units - rest;
    for (size_t i = 0; i < p.rows; i += job->chunk_rows) {
        mica_rows_product chunk = part_of(job, &p, i, job->chunk_rows, 0, whole);
        job->kernels->direct[job->dtype](&chunk);
    }
    if (rest > 0)
        multiply_panels(job, part_of(job, &p, 0, p.rows, whole, rest), thread);
}

void mica_linear_rows_float(mica_context *ctx, const mica_linear_rows_call *call, void *scratch)
{
    float_job job = plan(ctx, call);
    job.rooms = scratch;
    double sums = (double)call->rows * (double)call->units * (double)call->width;
    mica_parallel_sums(ctx, sums, job.unit_blocks * mica_div_up(call->rows, job.block_rows), multiply_block,
                       &job);
}
