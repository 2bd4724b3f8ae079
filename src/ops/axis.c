/* The engine of operations along one axis. */
#include "ops/axis.h"

#include "base/parallel.h"
#include "ops/walk.h"

/* Elements in one block of parallel work, about. */
#define BLOCK 8192
/* Panels are at least this many columns wide, where there are as many: two cache lines. */
#define PANEL_COLUMNS 32

typedef struct axis_job {
    const mica_axis_kernel *kernel;
    float param;
    mica_walk walk; /* over all axes but the one; a position is a line */
    mica_index n;   /* elements of a line */
    mica_index stride[MICA_WALK_OPERANDS];
    size_t units; /* lines, or panels */
    size_t units_per_block;
    mica_index columns; /* of a panel */
    size_t panels;      /* in a row of lines */
    float *scratch;     /* per thread and operand, one line */
} axis_job;

static float *at(const axis_job *job, int operand, const mica_walk_place *c)
{
    return (float *)(void *)job->walk.data[operand] + mica_walk_offset(&job->walk, c, operand);
}

static size_t block_end(const axis_job *job, size_t begin)
{
    return mica_least(begin + job->units_per_block, job->units);
}

static void line_block(void *work, size_t block, int thread)
{
    (void)thread;
    const axis_job *job = work;
    size_t begin = block * job->units_per_block;
    mica_walk_place c = mica_walk_at(&job->walk, begin);
    for (size_t i = begin; i < block_end(job, begin); i++) {
        const float *source[MICA_WALK_OPERANDS];
        for (int k = 1; k < job->walk.operands; k++)
            source[k - 1] = at(job, k, &c);
        job->kernel->line(at(job, 0, &c), source, (size_t)job->n, job->param);
        mica_walk_advance(&job->walk, &c, 1);
    }
}

static void panel_block(void *work, size_t block, int thread)
{
    (void)thread;
    const axis_job *job = work;
    size_t begin = block * job->units_per_block;
    int last = job->walk.rank - 1;
    for (size_t i = begin; i < block_end(job, begin); i++) {
        mica_index first = (mica_index)(i % job->panels) * job->columns, width = job->walk.dim[last];
        mica_walk_place c = mica_walk_at(&job->walk, i / job->panels * (size_t)width + (size_t)first);
        mica_index columns = width - first < job->columns ? width - first : job->columns;
        const float *source[MICA_WALK_OPERANDS];
        for (int k = 1; k < job->walk.operands; k++)
            source[k - 1] = at(job, k, &c);
        job->kernel->panel(at(job, 0, &c), source, job->stride, (size_t)job->n, (size_t)columns, job->param);
    }
}

static void staged_block(void *work, size_t block, int thread)
{
    const axis_job *job = work;
    size_t begin = block * job->units_per_block;
    mica_walk_place c = mica_walk_at(&job->walk, begin);
    float *line[MICA_WALK_OPERANDS];
    for (int k = 0; k < job->walk.operands; k++)
        line[k] = job->scratch + (thread * job->walk.operands + k) * job->n;
    for (size_t i = begin; i < block_end(job, begin); i++) {
        for (int k = 1; k < job->walk.operands; k++) {
            const float *from = at(job, k, &c);
            for (mica_index j = 0; j < job->n; j++)
                line[k][j] = from[j * job->stride[k]];
        }
        job->kernel->line(line[0], (const float *const *)(line + 1), (size_t)job->n, job->param);
        float *to = at(job, 0, &c);
        for (mica_index j = 0; j < job->n; j++)
            to[j * job->stride[0]] = line[0][j];
        mica_walk_advance(&job->walk, &c, 1);
    }
}

/* The tensor without its axis: one position per line. */
static mica_tensor without_axis(const mica_tensor *t, int axis)
{
    mica_tensor lines = *t;
    lines.rank--;
    for (int i = axis; i < lines.rank; i++) {
        lines.dim[i] = t->dim[i + 1];
        lines.stride[i] = t->stride[i + 1];
    }
    return lines;
}

static void job_init(axis_job *job, const mica_arg *args, int count, int axis)
{
    mica_tensor lines[MICA_WALK_OPERANDS];
    const mica_tensor *operands[MICA_WALK_OPERANDS];
    for (int k = 0; k < count; k++) {
        lines[k] = without_axis(args[k].tensor, axis);
        operands[k] = &lines[k];
        job->stride[k] = args[k].tensor->stride[axis];
    }
    mica_walk_init(&job->walk, operands, count);
    job->n = args[0].tensor->dim[axis];
    job->units = job->walk.count;
    job->units_per_block = (size_t)(job->n < BLOCK ? BLOCK / (job->n > 0 ? job->n : 1) : 1);
}

static bool lies_in_lines(const axis_job *job)
{
    for (int k = 0; k < job->walk.operands; k++)
        if (job->stride[k] != 1 && job->n > 1)
            return false;
    return true;
}

static bool lies_in_panels(const axis_job *job)
{
    int last = job->walk.rank - 1;
    for (int k = 0; k < job->walk.operands; k++)
        if (job->walk.stride[k][last] != 1)
            return false;
    return true;
}

static void cut_panels(axis_job *job)
{
    mica_index width = job->walk.dim[job->walk.rank - 1];
    mica_index columns = (mica_index)job->units_per_block / PANEL_COLUMNS * PANEL_COLUMNS;
    columns = columns < PANEL_COLUMNS ? PANEL_COLUMNS : columns;
    job->columns = columns < width ? columns : width;
    job->panels = mica_div_up((size_t)width, (size_t)job->columns);
    job->units = job->walk.count / (size_t)width * job->panels;
    job->units_per_block = mica_div_up(job->units_per_block, (size_t)job->columns);
}

mica_status mica_axis_op(mica_context *ctx, const char *op, const mica_axis_kernel *kernel, float param,
                         const mica_arg *args, int count, int axis)
{
    MICA_TRY(mica_check_args(ctx, op, args, count));
    for (int k = 1; k < count; k++)
        MICA_TRY(mica_check_same_shape(ctx, op, args[k].name, args[k].tensor, args[0].name, args[0].tensor));
    MICA_TRY(mica_check_axis(ctx, op, axis, args[0].name, args[0].tensor, &axis));

    axis_job job;
    job_init(&job, args, count, axis);
    job.kernel = kernel;
    job.param = param;
    bool empty = job.walk.count == 0 || job.n == 0;
    bool staged = !empty && !lies_in_lines(&job) && !lies_in_panels(&job);
    size_t scratch = staged ? (size_t)ctx->threads * (size_t)count * (size_t)job.n * sizeof(float) : 0;
    void *block;
    MICA_START(ctx, op, scratch, &block);
    if (empty)
        return MICA_OK;
    job.scratch = block;
    mica_block_fn *fn = staged ? staged_block : line_block;
    if (!staged && !lies_in_lines(&job)) {
        cut_panels(&job);
        fn = panel_block;
    }
    mica_parallel(ctx, mica_div_up(job.units, job.units_per_block), fn, &job);
    return MICA_OK;
}
