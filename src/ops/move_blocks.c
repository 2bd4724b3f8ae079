/* Copies from and into block-quantized tensors.
 *
 * The last axis carries the blocks, so it stays the last: rows along it are walked in row-major order, whatever the
 * layout of the axes before it, and each is cut into pieces of whole blocks. The plain side of a copy, if there is
 * one, may have any stride along that axis. */
#include "base/parallel.h"
#include "ops/move.h"
#include "tensor/tensor.h"

#define BLOCK ((mica_index)16384) /* elements in a block of parallel work; a multiple of MICA_MAX_BLOCK */

_Static_assert(BLOCK % MICA_MAX_BLOCK == 0, "pieces of work would cut blocks");

typedef struct blocks_job {
    mica_tensor dst, src; /* of the same shape: src has stride 0 where it is broadcast */
    const mica_convert_kernels *convert;
    mica_index rows, rows_per_block;
    mica_index piece, pieces; /* elements of a row that a block takes; such pieces in a row */
} blocks_job;

/* n elements of a line, where the plain side may have any stride: a few at a time through a buffer. */
static void move_line(const blocks_job *job, mica_line dst, mica_line src, mica_index n)
{
    if (dst.stride == 1 && src.stride == 1) {
        MICA_KERNEL_OF(job->convert, convert, run)(dst.data, dst.dtype, src.data, src.dtype, (size_t)n);
        return;
    }
    float values[MICA_MAX_BLOCK];
    mica_line stage = {values, MICA_F32, 1};
    for (mica_index i = 0; i < n; i += MICA_MAX_BLOCK) {
        mica_index some = mica_least_index(n - i, MICA_MAX_BLOCK);
        mica_line to = dst, from = src;
        to.data = (char *)dst.data + mica_offset_bytes(dst.dtype, i * dst.stride);
        from.data = (char *)src.data + mica_offset_bytes(src.dtype, i * src.stride);
        mica_move_line(job->convert, stage, from, some);
        mica_move_line(job->convert, to, stage, some);
    }
}

static mica_line line_at(const mica_tensor *t, mica_index row, mica_index column)
{
    int last = t->rank - 1;
    mica_index offset = column * t->stride[last];
    for (int k = last - 1; k >= 0; k--) {
        offset += row % t->dim[k] * t->stride[k];
        row /= t->dim[k];
    }
    return (mica_line){mica_element(t, offset), t->dtype, t->stride[last]};
}

static void move_some(void *work, size_t block, int thread)
{
    (void)thread;
    const blocks_job *job = work;
    mica_index column = (mica_index)block % job->pieces * job->piece;
    mica_index n = mica_least_index(job->piece, job->dst.dim[job->dst.rank - 1] - column);
    mica_index row = (mica_index)block / job->pieces * job->rows_per_block;
    mica_index end = mica_least_index(row + job->rows_per_block, job->rows);
    for (; row < end; row++)
        move_line(job, line_at(&job->dst, row, column), line_at(&job->src, row, column), n);
}

/* src as if it had dst's shape. */
static mica_tensor broadcast(const mica_tensor *src, const mica_tensor *dst)
{
    mica_tensor out = *dst;
    out.data = src->data;
    out.dtype = src->dtype;
    int missing = dst->rank - src->rank;
    for (int k = 0; k < dst->rank; k++) {
        bool stays = k < missing || (src->dim[k - missing] == 1 && dst->dim[k] != 1);
        out.stride[k] = stays ? 0 : src->stride[k - missing];
    }
    return out;
}

/* Makes one long row of two tensors that lie contiguous. */
static void join_rows(mica_tensor *a, mica_tensor *b)
{
    if (!mica_tensor_contiguous(a) || !mica_tensor_contiguous(b))
        return;
    mica_index count = (mica_index)mica_tensor_count(a);
    a->rank = b->rank = 1;
    a->dim[0] = b->dim[0] = count;
    a->stride[0] = b->stride[0] = 1;
}

void mica_move_blocks(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src)
{
    mica_index count = (mica_index)mica_tensor_count(dst);
    if (count == 0)
        return;
    blocks_job job = {.dst = *dst, .src = broadcast(src, dst), .convert = ctx->kernels->convert};
    join_rows(&job.dst, &job.src);
    mica_index length = job.dst.dim[job.dst.rank - 1];
    job.rows = count / length;
    job.piece = mica_least_index(length, BLOCK);
    job.pieces = (length + job.piece - 1) / job.piece;
    job.rows_per_block = BLOCK / job.piece;
    size_t groups = mica_div_up((size_t)job.rows, (size_t)job.rows_per_block);
    mica_parallel(ctx, groups * (size_t)job.pieces, move_some, &job);
}
