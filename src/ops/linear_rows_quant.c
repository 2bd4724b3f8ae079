/* Rows times block-quantized weights: rows of x become tiles of bytes, then each panel of weight rows is unpacked once
 * and multiplied by all tiles. A single row goes without panels, where the kernels know how.
 *
 * Scratch: the tiles | a panel for each thread: bytes, scales, least values. */
#include "ops/linear_rows.h"

#include "base/parallel.h"
#include "kernel/kernels.h"
#include "tensor/tensor.h"

#define BLOCK_SUMS ((size_t)1 << 18) /* multiply-adds in a block of parallel work, about */

typedef struct quant_job {
    const mica_linear_rows_call *call;
    const mica_quant_kernels *kernels;
    const mica_quant_type *type;
    size_t blocks;   /* of 32 values in a row */
    size_t row_size; /* bytes of a row in a tile */
    mica_index w_row_bytes;
    uint8_t *tiles;
    char *panels;
    size_t panel_bytes, scale_bytes; /* of a thread's panel; of the scales of one */
    size_t tiles_at_once, panels_at_once;
} quant_job;

static void plan(quant_job *job, const mica_context *ctx, const mica_linear_rows_call *call)
{
    /* Few weight rows do not fill a panel. Those of one row do the same sums. */
    const mica_quant_kernels *kernels = MICA_FAMILY(ctx->kernels, quant);
    if (call->units < kernels->width)
        kernels = mica_kernels_scalar.quant;
    const mica_quant_type *type = &kernels->type[call->w_dtype];
    size_t blocks = call->width / MICA_QUANT_BLOCK;
    *job = (quant_job){.call = call,
                       .kernels = kernels,
                       .type = type,
                       .blocks = blocks,
                       .row_size = blocks * mica_quant_tile_bytes(1, type->group),
                       .w_row_bytes = mica_offset_bytes(call->w_dtype, call->w_stride)};
    size_t groups = blocks * (size_t)(MICA_QUANT_BLOCK / type->group);
    job->scale_bytes = mica_align_up(groups * kernels->width * sizeof(float));
    if (call->rows > 1 || call->units % kernels->width > 0 || kernels->vector[call->w_dtype] == NULL)
        job->panel_bytes = mica_align_up(call->width * kernels->width) + 2 * job->scale_bytes;
}

size_t mica_linear_rows_quant_scratch(const mica_context *ctx, const mica_linear_rows_call *call)
{
    quant_job job;
    plan(&job, ctx, call);
    return mica_align_up(call->rows * job.row_size) + (size_t)ctx->threads * job.panel_bytes;
}

static uint8_t *tile_at(const quant_job *job, size_t tile)
{
    return job->tiles + tile * job->kernels->tile * job->row_size;
}

static size_t tile_rows(const quant_job *job, size_t tile)
{
    return mica_least(job->kernels->tile, job->call->rows - tile * job->kernels->tile);
}

static void round_tiles(void *work, size_t block, int thread)
{
    (void)thread;
    const quant_job *job = work;
    const mica_linear_rows_call *c = job->call;
    size_t tiles = mica_div_up(c->rows, job->kernels->tile), end = (block + 1) * job->tiles_at_once;
    for (size_t tile = block * job->tiles_at_once; tile < mica_least(end, tiles); tile++)
        job->kernels->round(tile_at(job, tile), c->x + (mica_index)(tile * job->kernels->tile) * c->x_stride,
                            c->x_stride, tile_rows(job, tile), job->blocks, job->type);
}

static const uint8_t *weight_row(const quant_job *job, size_t row)
{
    return (const uint8_t *)job->call->w + (mica_index)row * job->w_row_bytes;
}

/* One panel of weight rows, by all rows of x. The last one may begin within that before it: it has as many rows. */
static void run_panel(const quant_job *job, size_t panel, const mica_quant_panel *room)
{
    const mica_linear_rows_call *c = job->call;
    const mica_quant_kernels *kernels = job->kernels;
    size_t first = mica_least(panel * kernels->width, c->units - kernels->width);
    mica_quant_product p = {.panel = *room,
                            .blocks = job->blocks,
                            .skip = panel * kernels->width - first,
                            .bias = c->bias != NULL ? c->bias + first : NULL,
                            .y_stride = c->y_stride};
    kernels->unpack[c->w_dtype](room, weight_row(job, first), job->w_row_bytes, job->blocks);
    for (size_t tile = 0; tile * kernels->tile < c->rows; tile++) {
        p.tile = tile_at(job, tile);
        p.rows = tile_rows(job, tile);
        p.y = c->y + (mica_index)(tile * kernels->tile) * c->y_stride + first;
        kernels->product(&p, job->type);
    }
}

/* Panels first to end - 1 by the only row of x, as far as they are whole; returns the panel after these. */
static size_t run_vector(const quant_job *job, size_t first, size_t end)
{
    const mica_linear_rows_call *c = job->call;
    const mica_quant_kernels *kernels = job->kernels;
    end = mica_least(end, c->units / kernels->width);
    if (c->rows > 1 || kernels->vector[c->w_dtype] == NULL || first >= end)
        return first;
    size_t row = first * kernels->width;
    mica_quant_product p = {.tile = job->tiles,
                            .rows = 1,
                            .blocks = job->blocks,
                            .bias = c->bias != NULL ? c->bias + row : NULL,
                            .y = c->y + row};
    kernels->vector[c->w_dtype](&p, weight_row(job, row), job->w_row_bytes, end - first);
    return end;
}

static void run_panels(void *work, size_t block, int thread)
{
    const quant_job *job = work;
    char *room = job->panels + (size_t)thread * job->panel_bytes;
    mica_quant_panel panel = {.scale = (float *)(void *)room,
                              .least = (float *)(void *)(room + job->scale_bytes),
                              .u = (uint8_t *)room + 2 * job->scale_bytes};
    size_t panels = mica_div_up(job->call->units, job->kernels->width);
    size_t end = mica_least((block + 1) * job->panels_at_once, panels);
    for (size_t k = run_vector(job, block * job->panels_at_once, end); k < end; k++)
        run_panel(job, k, &panel);
}

void mica_linear_rows_quant(mica_context *ctx, const mica_linear_rows_call *call, void *scratch)
{
    quant_job job;
    plan(&job, ctx, call);
    job.tiles = scratch;
    job.panels = (char *)scratch + mica_align_up(call->rows * job.row_size);
    size_t tile_sums = call->width * mica_least(call->rows, job.kernels->tile) + 1;
    size_t panel_sums = call->width * call->rows * job.kernels->width + 1;
    job.tiles_at_once = BLOCK_SUMS / tile_sums + 1;
    job.panels_at_once = BLOCK_SUMS / panel_sums + 1;
    double values = (double)call->rows * (double)call->width;
    size_t tiles = mica_div_up(call->rows, job.kernels->tile),
           panels = mica_div_up(call->units, job.kernels->width);
    mica_parallel_sums(ctx, values, mica_div_up(tiles, job.tiles_at_once), round_tiles, &job);
    mica_parallel_sums(ctx, values * (double)call->units, mica_div_up(panels, job.panels_at_once), run_panels,
                       &job);
}
