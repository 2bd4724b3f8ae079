/* The engine of reductions. */
#include "ops/reduce.h"

#include <assert.h>

#include "base/parallel.h"

/* Outputs that are made side by side, at most. */
#if defined(MICA_SMALL)
#define WIDTH 16
#else
#define WIDTH 256
#endif
/* Elements that are gathered at a time where they do not lie contiguously. */
#if defined(MICA_SMALL)
#define STAGE 128
#else
#define STAGE 512
#endif
/* Contiguous runs shorter than this are gathered too. */
#define SHORT_RUN 32
/* Elements in one block of parallel work, about. */
#define BLOCK ((size_t)32768)
/* Parts that the elements of few outputs are cut into: bounds the scratch. */
#define MOST_PARTS 64

typedef struct reduce_job {
    const mica_reduce_program *program;
    mica_walk kept;    /* operand 0: a, operand 1: dst */
    mica_walk reduced; /* operand 0: a, its data only an offset from a's */
    mica_index offset; /* of the first reduced element, in elements */
    bool columns;
    size_t width;  /* outputs of a chunk */
    size_t panels; /* columns only: chunks along the last kept axis */
    size_t chunks;
    size_t parts;    /* of the reduced elements */
    double *partial; /* [chunks][parts][width], where parts > 1 */
    double *acc;     /* [phases][chunks * width], where parts > 1 */
    float *shift;    /* [chunks * width] */
    int phase;
} reduce_job;

/* The outputs of a chunk: how many, and where the first is. */
static size_t chunk_outputs(const reduce_job *job, size_t chunk, size_t *first)
{
    if (!job->columns) {
        *first = chunk * job->width;
        size_t rest = job->kept.count - *first;
        return rest < job->width ? rest : job->width;
    }
    size_t row = (size_t)job->kept.dim[job->kept.rank - 1], column = chunk % job->panels * job->width;
    *first = chunk / job->panels * row + column;
    return row - column < job->width ? row - column : job->width;
}

/* Reduces positions begin to end of the reduced axes, from x on, into one output. */
static void reduce_row(const reduce_job *job, const mica_reduce_kernel *kernel, const float *x, size_t begin,
                       size_t end, float shift, double *acc)
{
    const mica_walk *w = &job->reduced;
    int last = w->rank - 1;
    mica_index stride = w->stride[0][last];
    bool direct = stride == 1 && (w->rank == 1 || w->dim[last] >= SHORT_RUN);
    float stage[STAGE];
    size_t staged = 0;
    mica_walk_place c = mica_walk_at(w, begin);
    for (size_t position = begin; position < end;) {
        size_t n = (size_t)(w->dim[last] - c.index[last]);
        n = n < end - position ? n : end - position;
        const float *from = x + mica_walk_offset(w, &c, 0);
        if (direct) {
            kernel->row(acc, from, n, shift);
        } else {
            n = n < STAGE - staged ? n : STAGE - staged;
            for (size_t i = 0; i < n; i++)
                stage[staged + i] = from[(mica_index)i * stride];
            staged += n;
            if (staged == STAGE || position + n == end) {
                kernel->row(acc, stage, staged, shift);
                staged = 0;
            }
        }
        position += n;
        mica_walk_advance(w, &c, (mica_index)n);
    }
}

/* The same for outputs side by side, whose elements are `step` apart. */
static void reduce_columns(const reduce_job *job, const mica_reduce_kernel *kernel, const float *x,
                           mica_index step, size_t outputs, size_t begin, size_t end, const float *shift,
                           double *acc)
{
    const mica_walk *w = &job->reduced;
    int last = w->rank - 1;
    float stage[WIDTH];
    mica_walk_place c = mica_walk_at(w, begin);
    for (size_t position = begin; position < end;) {
        size_t n = (size_t)(w->dim[last] - c.index[last]);
        n = n < end - position ? n : end - position;
        const float *from = x + mica_walk_offset(w, &c, 0);
        if (step == 1) {
            kernel->columns(acc, from, w->stride[0][last], n, outputs, shift);
        } else {
            n = 1;
            for (size_t i = 0; i < outputs; i++)
                stage[i] = from[(mica_index)i * step];
            kernel->columns(acc, stage, 0, 1, outputs, shift);
        }
        position += n;
        mica_walk_advance(w, &c, (mica_index)n);
    }
}

/* One phase of one part of one chunk. */
static void reduce_part(const reduce_job *job, int phase, size_t chunk, size_t part, const float *shift,
                        double *acc)
{
    const mica_reduce_kernel *kernel = job->program->kernel[phase];
    size_t first, outputs = chunk_outputs(job, chunk, &first), count = job->reduced.count;
    size_t begin = count / job->parts * part + (part < count % job->parts ? part : count % job->parts);
    size_t end = begin + count / job->parts + (part < count % job->parts ? 1 : 0);
    for (size_t i = 0; i < outputs; i++)
        acc[i] = kernel->start;
    if (begin == end)
        return;
    const float *data = (const float *)(const void *)job->kept.data[0] + job->offset;
    mica_walk_place c = mica_walk_at(&job->kept, first);
    if (job->columns) {
        reduce_columns(job, kernel, data + mica_walk_offset(&job->kept, &c, 0),
                       job->kept.stride[0][job->kept.rank - 1], outputs, begin, end, shift, acc);
        return;
    }
    for (size_t i = 0; i < outputs; i++) {
        const float *x = data + mica_walk_offset(&job->kept, &c, 0);
        reduce_row(job, kernel, x, begin, end, shift[i], &acc[i]);
        mica_walk_advance(&job->kept, &c, 1);
    }
}

static void means(const reduce_job *job, float *shift, const double *acc, size_t outputs)
{
    for (size_t i = 0; i < outputs; i++)
        shift[i] = (float)(acc[i] / (double)job->reduced.count);
}

/* acc[phase * stride + i] for output i of a chunk. */
static void finish_chunk(const reduce_job *job, size_t chunk, const double *acc, size_t stride)
{
    const mica_walk *w = &job->kept;
    const mica_reduce_program *program = job->program;
    int last = w->rank - 1;
    size_t first, outputs = chunk_outputs(job, chunk, &first);
    mica_walk_place c = mica_walk_at(w, first);
    for (size_t i = 0, n; i < outputs; i += n) { /* what is left of a row of outputs */
        n = (size_t)(w->dim[last] - c.index[last]);
        n = n < outputs - i ? n : outputs - i;
        float *dst = (float *)(void *)w->data[1] + mica_walk_offset(w, &c, 1);
        for (size_t j = 0; j < n; j++) {
            double of_output[MICA_REDUCE_PHASES] = {acc[i + j]};
            for (int phase = 1; phase < program->phases; phase++)
                of_output[phase] = acc[(size_t)phase * stride + i + j];
            double result = program->finish == NULL
                                ? of_output[0]
                                : program->finish(of_output, (double)job->reduced.count, program->param);
            dst[(mica_index)j * w->stride[1][last]] = (float)result;
        }
        mica_walk_advance(w, &c, (mica_index)n);
    }
}

/* A chunk from beginning to end. */
static void whole_block(void *work, size_t block, int thread)
{
    (void)thread;
    const reduce_job *job = work;
    double acc[MICA_REDUCE_PHASES * WIDTH];
    float shift[WIDTH] = {0};
    size_t first, outputs = chunk_outputs(job, block, &first);
    for (int phase = 0; phase < job->program->phases; phase++) {
        reduce_part(job, phase, block, 0, shift, acc + phase * WIDTH);
        if (phase == 0 && job->program->phases > 1)
            means(job, shift, acc, outputs);
    }
    finish_chunk(job, block, acc, WIDTH);
}

static void part_block(void *work, size_t block, int thread)
{
    (void)thread;
    const reduce_job *job = work;
    size_t chunk = block / job->parts;
    reduce_part(job, job->phase, chunk, block % job->parts, job->shift + chunk * job->width,
                job->partial + block * job->width);
}

/* The partial results of a phase into acc, in the order of the parts. */
static void fold_parts(reduce_job *job, double *acc)
{
    double (*fold)(double, double) = job->program->kernel[job->phase]->fold;
    for (size_t chunk = 0; chunk < job->chunks; chunk++) {
        const double *partial = job->partial + chunk * job->parts * job->width;
        size_t first, outputs = chunk_outputs(job, chunk, &first);
        for (size_t i = 0; i < outputs; i++) {
            double *to = &acc[chunk * job->width + i];
            *to = partial[i];
            for (size_t part = 1; part < job->parts; part++)
                *to = fold(*to, partial[part * job->width + i]);
        }
    }
}

static void run_in_parts(mica_context *ctx, reduce_job *job)
{
    size_t all = job->chunks * job->width;
    for (size_t i = 0; i < all * MICA_REDUCE_PHASES; i++)
        job->acc[i] = 0.0;
    for (size_t i = 0; i < all; i++)
        job->shift[i] = 0.0f;
    for (job->phase = 0; job->phase < job->program->phases; job->phase++) {
        mica_parallel(ctx, job->chunks * job->parts, part_block, job);
        fold_parts(job, job->acc + (size_t)job->phase * all);
        if (job->phase == 0 && job->program->phases > 1)
            means(job, job->shift, job->acc, all);
    }
    for (size_t chunk = 0; chunk < job->chunks; chunk++)
        finish_chunk(job, chunk, job->acc + chunk * job->width, all);
}

static mica_index magnitude(mica_index stride) { return stride < 0 ? -stride : stride; }

/* Chooses rows or columns, and cuts the work. */
static void job_cut(reduce_job *job)
{
    size_t outputs = job->kept.count, count = job->reduced.count;
    mica_index kept_step = magnitude(job->kept.stride[0][job->kept.rank - 1]);
    job->columns = outputs > 1 && count > 0 &&
                   (count == 1 || kept_step < magnitude(job->reduced.stride[0][job->reduced.rank - 1]));
    size_t width = BLOCK / (count > 0 ? count : 1);
    width = width < 1 ? 1 : width;
    if (job->columns) {
        size_t row = (size_t)job->kept.dim[job->kept.rank - 1];
        job->width = row < WIDTH ? row : WIDTH;
        job->panels = mica_div_up(row, job->width);
        job->chunks = outputs / row * job->panels;
    } else {
        job->width = width < WIDTH ? width : WIDTH;
        job->chunks = mica_div_up(outputs, job->width);
    }
    size_t blocks = mica_div_up(job->width * count, BLOCK), most = MOST_PARTS / job->chunks;
    job->parts = blocks < most ? blocks : most;
    if (job->parts < 1)
        job->parts = 1;
}

/* Bytes of scratch where there are several parts: results of all parts, and of all phases. */
static size_t parts_bytes(size_t all, size_t partial)
{
    return (partial + all * MICA_REDUCE_PHASES) * sizeof(double) + all * sizeof(float);
}

/* What so many outputs of so many elements each take, and all smaller reductions. Of fewer outputs each may have more
 * parts, and they may be cut into columns instead of rows: so this is what any of them takes at most, whose chunks
 * are at most WIDTH outputs wide, and twice as many as there are outputs in all. */
static size_t most_bytes(size_t outputs, size_t count)
{
    size_t width = outputs < WIDTH ? outputs : WIDTH, blocks = mica_div_up(width * count, BLOCK);
    if (blocks < 2)
        return 0;
    size_t all = mica_least(width * (MOST_PARTS / 2), 2 * outputs);
    return parts_bytes(all, mica_least(width * MOST_PARTS, all * blocks));
}

mica_status mica_reduce_run(mica_context *ctx, const char *op, const mica_reduce_program *program,
                            const mica_tensor *kept, const mica_tensor *a, unsigned mask)
{
    reduce_job job = {.program = program};
    mica_tensor kept_part = mica_reduce_part(a, ~mask), reduced_part = mica_reduce_part(a, mask);
    mica_walk_init(&job.kept, (const mica_tensor *[]){&kept_part, kept}, 2);
    mica_walk_init(&job.reduced, (const mica_tensor *[]){&reduced_part}, 1);
    if (job.kept.count == 0) {
        MICA_START(ctx, op, 0, NULL);
        return MICA_OK;
    }
    job_cut(&job);
    size_t all = job.chunks * job.width, partial = all * job.parts;
    void *scratch;
    MICA_START(ctx, op, most_bytes(job.kept.count, job.reduced.count), &scratch);
    assert(job.parts == 1 || parts_bytes(all, partial) <= most_bytes(job.kept.count, job.reduced.count));
    job.offset = (job.reduced.data[0] - (char *)a->data) / (mica_index)sizeof(float);
    if (job.parts > 1) {
        job.partial = scratch;
        job.acc = job.partial + partial;
        job.shift = (void *)(job.acc + all * MICA_REDUCE_PHASES);
        run_in_parts(ctx, &job);
    } else {
        mica_parallel(ctx, job.chunks, whole_block, &job);
    }
    return MICA_OK;
}
