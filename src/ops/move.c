/* Elements from any layout into any other.
 *
 *   one contiguous run     memcpy, or one conversion
 *   rows                   line by line, if dst and src are traversed in the same order
 *   tiles                  if src is contiguous along a different axis than dst (a transpose): square tiles
 *                          go through a buffer, so that every cache line is read and written as a whole
 */
#include "ops/move.h"

#include <string.h>

#include "base/parallel.h"
#include "ops/walk.h"
#include "tensor/tensor.h"

#define BLOCK     ((mica_index)16384) /* elements in a block of parallel work */
#define WIDEST    8                   /* bytes of the widest element */
#define SHORT_ROW 16                  /* rows with fewer elements are not worth a call each */
#define LARGE     ((size_t)16 << 20)  /* bytes that had better pass by the cache than through it */
/* Elements of a line that are converted at a time; bytes along a line of a tile, and its lines. All on the stack. */
#if defined(MICA_SMALL)
#define STAGE      32
#define TILE_BYTES 64
#define TILE_LINES 8
#else
#define STAGE      256
#define TILE_BYTES 256
#define TILE_LINES 64
#endif

/* ---- Lines ---- */

/* out[i * out_stride] = in[i * in_stride], for elements of a size, whatever they hold. */
static void carry(void *out, mica_index out_stride, const void *in, mica_index in_stride, mica_index n,
                  size_t bytes)
{
#define CARRY(type)                                       \
    {                                                     \
        type *to = out;                                   \
        const type *from = in;                            \
        if (in_stride == 0 && out_stride == 1) {          \
            type value = n > 0 ? *from : 0;               \
            for (mica_index i = 0; i < n; i++)            \
                to[i] = value;                            \
        } else {                                          \
            for (mica_index i = 0; i < n; i++)            \
                to[i * out_stride] = from[i * in_stride]; \
        }                                                 \
    }
    if (bytes == 4)
        CARRY(uint32_t)
    else if (bytes == 8)
        CARRY(uint64_t)
    else if (bytes == 2)
        CARRY(uint16_t)
    else
        CARRY(uint8_t)
#undef CARRY
}

static mica_line line_at(mica_line line, mica_index i)
{
    line.data = (char *)line.data + i * line.stride * (mica_index)mica_dtype_bytes(line.dtype);
    return line;
}

/* Conversion of what does not lie contiguous: through buffers. */
static void convert_strided(const mica_convert_kernels *convert, mica_line dst, mica_line src, mica_index n)
{
    _Alignas(MICA_ALIGN) char before[STAGE * WIDEST], after[STAGE * WIDEST];
    for (mica_index i = 0; i < n; i += STAGE) {
        mica_index some = mica_least_index(n - i, STAGE);
        mica_line from = line_at(src, i), to = line_at(dst, i);
        if (src.stride != 1) {
            carry(before, 1, from.data, src.stride, some, mica_dtype_bytes(src.dtype));
            from.data = before;
        }
        MICA_KERNEL_OF(convert, convert, run)
        (dst.stride == 1 ? to.data : after, dst.dtype, from.data, src.dtype, (size_t)some);
        if (dst.stride != 1)
            carry(to.data, dst.stride, after, 1, some, mica_dtype_bytes(dst.dtype));
    }
}

void mica_move_line(const mica_convert_kernels *convert, mica_line dst, mica_line src, mica_index n)
{
    if (dst.stride == 1 && src.stride == 1)
        MICA_KERNEL_OF(convert, convert, run)(dst.data, dst.dtype, src.data, src.dtype, (size_t)n);
    else if (src.dtype == dst.dtype)
        carry(dst.data, dst.stride, src.data, src.stride, n, mica_dtype_bytes(dst.dtype));
    else
        convert_strided(convert, dst, src, n);
}

/* ---- Rows ---- */

typedef struct move_job {
    mica_walk walk; /* operand 0: dst, 1: src */
    const mica_convert_kernels *convert;
    mica_index outer;         /* rows, or planes that are cut into tiles */
    mica_index piece, pieces; /* elements of a row that a block takes; such pieces in a row */
    mica_index rows_per_block;
    int across;          /* the axis other than the last along which tiles extend */
    mica_index side;     /* elements along each side of a tile */
    mica_index tiles[2]; /* in a plane, along that axis and the last */
} move_job;

static mica_line operand_line(const mica_walk *w, int operand, mica_index offset)
{
    mica_index bytes = (mica_index)mica_dtype_bytes(w->dtype[operand]);
    return (mica_line){w->data[operand] + offset * bytes, w->dtype[operand], w->stride[operand][w->rank - 1]};
}

/* Where row `row` of the axes before the last begins, skipping axis `skip`, for both operands. */
static void seek(const mica_walk *w, mica_index row, int skip, mica_index *index, mica_index offset[2])
{
    offset[0] = offset[1] = 0;
    for (int k = w->rank - 2; k >= 0; k--) {
        index[k] = k == skip ? 0 : row % w->dim[k];
        row = k == skip ? row : row / w->dim[k];
        offset[0] += index[k] * w->stride[0][k];
        offset[1] += index[k] * w->stride[1][k];
    }
}

static void next_row(const mica_walk *w, mica_index *index, mica_index offset[2])
{
    for (int k = w->rank - 2; k >= 0; k--) {
        offset[0] += w->stride[0][k];
        offset[1] += w->stride[1][k];
        if (++index[k] < w->dim[k])
            return;
        offset[0] -= w->stride[0][k] * w->dim[k];
        offset[1] -= w->stride[1][k] * w->dim[k];
        index[k] = 0;
    }
}

static void move_rows(void *work, size_t block, int thread)
{
    (void)thread;
    const move_job *job = work;
    const mica_walk *w = &job->walk;
    mica_index column = (mica_index)block % job->pieces * job->piece;
    mica_index n = mica_least_index(job->piece, w->dim[w->rank - 1] - column);
    mica_index row = (mica_index)block / job->pieces * job->rows_per_block;
    mica_index end = mica_least_index(row + job->rows_per_block, job->outer);
    mica_index index[MICA_MAX_RANK], offset[2];
    seek(w, row, -1, index, offset);
#if !defined(MICA_SMALL)
    if (w->dtype[0] == w->dtype[1] && w->stride[0][w->rank - 1] == 1 && w->stride[1][w->rank - 1] == 1 &&
        w->data[0] != w->data[1]) { /* short rows are common: some channels of pixels */
        mica_index bytes = (mica_index)mica_dtype_bytes(w->dtype[0]);
        for (; row < end; row++) {
            memcpy(w->data[0] + (offset[0] + column) * bytes, w->data[1] + (offset[1] + column) * bytes,
                   (size_t)(n * bytes));
            next_row(w, index, offset);
        }
    }
#endif
    for (; row < end; row++) {
        mica_line dst = operand_line(w, 0, offset[0]), src = operand_line(w, 1, offset[1]);
        mica_move_line(job->convert, line_at(dst, column), line_at(src, column), n);
        next_row(w, index, offset);
    }
}

/* A walk over many short rows becomes one along the axis outside them, if that is longer. */
static bool turn_short_rows(mica_walk *w)
{
    int last = w->rank - 1;
    if (w->rank < 2 || w->dim[last] >= SHORT_ROW || w->dim[last - 1] <= w->dim[last])
        return false;
    mica_index dim = w->dim[last];
    w->dim[last] = w->dim[last - 1];
    w->dim[last - 1] = dim;
    for (int k = 0; k < 2; k++) {
        mica_index stride = w->stride[k][last];
        w->stride[k][last] = w->stride[k][last - 1];
        w->stride[k][last - 1] = stride;
    }
    return true;
}

static void run_rows(mica_context *ctx, move_job *job)
{
    /* Turned rows interleave in memory: a block takes the same short piece of all, while it is in the cache. */
    mica_index most = turn_short_rows(&job->walk) ? BLOCK / SHORT_ROW : BLOCK;
    mica_index length = job->walk.dim[job->walk.rank - 1];
    job->outer = (mica_index)job->walk.count / length;
    job->piece = mica_least_index(length, most);
    job->pieces = (length + job->piece - 1) / job->piece;
    job->rows_per_block = BLOCK / job->piece;
    size_t groups = mica_div_up((size_t)job->outer, (size_t)job->rows_per_block);
    mica_parallel(ctx, groups * (size_t)job->pieces, move_rows, job);
}

/* ---- One run too large for the cache ---- */

static void move_large(void *work, size_t block, int thread)
{
    (void)thread;
    const move_job *job = work;
    size_t start = block * (size_t)job->piece, count = job->walk.count - start;
    MICA_KERNEL_OF(job->convert, convert, stream)
    ((float *)(void *)job->walk.data[0] + start, (const float *)(const void *)job->walk.data[1] + start,
     count < (size_t)job->piece ? count : (size_t)job->piece);
}

static bool is_large_run(const mica_walk *w)
{
    return w->rank == 1 && w->stride[0][0] == 1 && w->stride[1][0] == 1 && w->dtype[0] == w->dtype[1] &&
           mica_dtype_bytes(w->dtype[0]) == 4 && w->count * 4 >= LARGE && w->data[0] != w->data[1] &&
           ((uintptr_t)w->data[0] | (uintptr_t)w->data[1]) % 4 == 0;
}

/* ---- Tiles ---- */

/* Lines of src into columns of a tile: tile[i][j] is element i of line j. */
static void read_tile(const move_job *job, char *tile, mica_line src, mica_index height, mica_index width)
{
    const mica_walk *w = &job->walk;
    mica_index along = w->stride[1][job->across];
    size_t bytes = mica_dtype_bytes(w->dtype[0]);
    if (along == 1 && src.dtype == w->dtype[0] && bytes == 4) {
        MICA_KERNEL_OF(job->convert, convert, transpose)
        ((uint32_t *)(void *)tile, job->side, src.data, src.stride, width, height);
        return;
    }
    for (mica_index j = 0; j < width; j++) {
        _Alignas(MICA_ALIGN) char buffer[TILE_BYTES];
        mica_line line = {line_at(src, j).data, src.dtype, along}, converted = {buffer, w->dtype[0], 1};
        if (along != 1 || line.dtype != w->dtype[0]) {
            mica_move_line(job->convert, converted, line, height);
            line = converted;
        }
        carry(tile + (size_t)j * bytes, job->side, line.data, 1, height, bytes);
    }
}

/* Reads lines of src along job->across and writes rows of dst along the last axis. */
static void move_tile(const move_job *job, const mica_index corner[2], const mica_index offset[2])
{
    const mica_walk *w = &job->walk;
    int last = w->rank - 1, across = job->across;
    mica_index side = job->side, src_step = w->stride[1][last];
    mica_index height = mica_least_index(side, w->dim[across] - corner[0]),
               width = mica_least_index(side, w->dim[last] - corner[1]);
    size_t bytes = mica_dtype_bytes(w->dtype[0]);
    _Alignas(MICA_ALIGN) char tile[TILE_LINES * TILE_BYTES];

    mica_line src = operand_line(w, 1, offset[1] + corner[0] * w->stride[1][across] + corner[1] * src_step);
    read_tile(job, tile, src, height, width);
    mica_index dst_corner = offset[0] + corner[0] * w->stride[0][across] + corner[1];
    for (mica_index i = 0; i < height; i++)
        memcpy(operand_line(w, 0, dst_corner + i * w->stride[0][across]).data,
               tile + (size_t)(i * side) * bytes, (size_t)width * bytes);
}

/* One row of tiles along the last axis. */
static void move_tiles(void *work, size_t block, int thread)
{
    (void)thread;
    const move_job *job = work;
    mica_index plane = (mica_index)block / job->tiles[0], at = (mica_index)block % job->tiles[0];
    mica_index index[MICA_MAX_RANK], offset[2];
    seek(&job->walk, plane, job->across, index, offset);
    for (mica_index j = 0; j < job->tiles[1]; j++)
        move_tile(job, (mica_index[]){at * job->side, j * job->side}, offset);
}

/* The axis along which src is contiguous while dst is along the last; -1: rows do as well. */
static int find_across(const mica_walk *w)
{
    int last = w->rank - 1;
    mica_index step = w->stride[1][last];
    if (w->stride[0][last] != 1 || (step >= -1 && step <= 1))
        return -1;
    for (int k = 0; k < last; k++)
        if ((w->stride[1][k] == 1 || w->stride[1][k] == -1) && w->dim[k] >= 8)
            return k;
    return -1;
}

static void run_tiles(mica_context *ctx, move_job *job)
{
    const mica_walk *w = &job->walk;
    mica_index height = w->dim[job->across], width = w->dim[w->rank - 1];
    job->outer = (mica_index)w->count / (height * width);
    mica_index bytes = (mica_index)mica_dtype_bytes(w->dtype[0]);
    job->side = mica_least_index(TILE_BYTES / bytes, TILE_LINES);
    job->tiles[0] = (height + job->side - 1) / job->side;
    job->tiles[1] = (width + job->side - 1) / job->side;
    mica_parallel(ctx, (size_t)(job->outer * job->tiles[0]), move_tiles, job);
}

void mica_move(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src)
{
    move_job job = {.convert = ctx->kernels->convert};
    mica_walk_init(&job.walk, (const mica_tensor *[]){dst, src}, 2);
    if (job.walk.count == 0)
        return;
    job.across = find_across(&job.walk);
    if (is_large_run(&job.walk)) {
        job.piece = 16 * BLOCK;
        mica_parallel(ctx, mica_div_up(job.walk.count, (size_t)job.piece), move_large, &job);
    } else if (job.across >= 0)
        run_tiles(ctx, &job);
    else
        run_rows(ctx, &job);
}

/* ---- In row-major order ---- */

mica_tensor mica_join_axes(const mica_tensor *t)
{
    mica_tensor out = {.data = t->data, .dtype = t->dtype};
    for (int k = 0; k < t->rank; k++) {
        if (t->dim[k] == 1)
            continue;
        int last = out.rank - 1;
        bool joins = last >= 0 && out.stride[last] == t->stride[k] * t->dim[k];
        int into = joins ? last : out.rank++;
        out.dim[into] = joins ? out.dim[into] * t->dim[k] : t->dim[k];
        out.stride[into] = t->stride[k];
    }
    if (out.rank == 0) {
        out.rank = 1;
        out.dim[0] = out.stride[0] = 1;
    }
    return out;
}

/* Where element `position` is, and how many follow it in its row, itself included. */
static mica_line find(const mica_tensor *t, mica_index position, mica_index *follow)
{
    int last = t->rank - 1;
    mica_index offset = 0;
    *follow = t->dim[last] - position % t->dim[last];
    for (int k = last; k >= 0; k--) {
        offset += position % t->dim[k] * t->stride[k];
        position /= t->dim[k];
    }
    return (mica_line){mica_element(t, offset), t->dtype, t->stride[last]};
}

void mica_move_run(const mica_convert_kernels *convert, const mica_tensor *dst, mica_index position,
                   mica_line values, mica_index n)
{
    for (mica_index done = 0, run; done < n; done += run) {
        mica_line to = find(dst, position + done, &run);
        run = mica_least_index(run, n - done);
        mica_move_line(convert, to, line_at(values, done), run);
    }
}

void mica_fetch_run(const mica_convert_kernels *convert, mica_line values, const mica_tensor *src,
                    mica_index position, mica_index n)
{
    for (mica_index done = 0, run; done < n; done += run) {
        mica_line from = find(src, position + done, &run);
        run = mica_least_index(run, n - done);
        mica_move_line(convert, line_at(values, done), from, run);
    }
}

typedef struct order_job {
    mica_tensor dst, src; /* joined */
    const mica_convert_kernels *convert;
    mica_index count;
} order_job;

static void move_in_order(void *work, size_t block, int thread)
{
    (void)thread;
    const order_job *job = work;
    mica_index position = (mica_index)block * BLOCK, end = mica_least_index(position + BLOCK, job->count);
    for (mica_index run; position < end; position += run) {
        mica_line src = find(&job->src, position, &run);
        run = mica_least_index(run, end - position);
        mica_move_run(job->convert, &job->dst, position, src, run);
    }
}

void mica_move_in_order(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src)
{
    mica_tensor view;
    if (mica_tensor_refit(&view, src, dst->rank, dst->dim)) {
        mica_move(ctx, dst, &view);
    } else if (mica_tensor_refit(&view, dst, src->rank, src->dim)) {
        mica_move(ctx, &view, src);
    } else {
        order_job job = {mica_join_axes(dst), mica_join_axes(src), ctx->kernels->convert,
                         (mica_index)mica_tensor_count(dst)};
        mica_parallel(ctx, mica_div_up((size_t)job.count, (size_t)BLOCK), move_in_order, &job);
    }
}
