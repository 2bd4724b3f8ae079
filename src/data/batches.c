/* Batches: a shuffle of the samples for each epoch, and copying of rows.
 *
 *     order    the shuffle: positions in the split
 *     part     the samples of the split, ascending; NULL: the whole set
 */
#include <string.h>

#include <mica/data.h>

#include "base/parallel.h"
#include "data/split.h"
#include "data/streams.h"
#include "ops/check.h"
#include "ops/move.h"
#include "kernel/kernels.h"

#define CHUNK      1024  /* elements of a row that are converted at a time */
#define BLOCK_SIZE 32768 /* elements that a thread takes at a time, in whole rows */

struct mica_batches {
    mica_tensor inputs, targets; /* the set's */
    bool has_targets;
    mica_index samples; /* of the part */
    mica_index batch;
    uint64_t seed;
    bool sequential, drop_last;
    mica_cursor cursor;
    mica_index first, rows; /* of the current batch: its position in the epoch, and its size */

    mica_transform transform;
    mica_index raw;         /* elements of a sample of the set */
    mica_index elements;    /* and of what becomes of it */
    float *rows_of_threads; /* [threads, raw + elements]; NULL: there is no transform */

    bool normalize;
    mica_index channels;  /* of factor and offset */
    mica_index per_plane; /* elements of a sample in one channel */
    float *factor;        /* x * factor[c] + offset[c] */
    float *offset;

    int32_t *order; /* [samples] of cursor.epoch; NULL: sequential */
    int32_t *part;  /* [samples] */
    size_t bytes;   /* of the block that this struct begins */
};

/* ---- Making ---- */

static mica_index elements_each(const mica_tensor *samples)
{
    mica_index elements = 1;
    for (int k = 1; k < samples->rank; k++)
        elements *= samples->dim[k];
    return elements;
}

static mica_status check_opts(mica_context *ctx, const mica_dataset *set, const mica_batches_opts *o)
{
    static const char op[] = "batches_create";
    if (set->count > INT32_MAX)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: the data set has %td samples, more than 2^31 - 1", op,
                         set->count);
    if (o->batch < 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: batch is %td", op, o->batch);
    MICA_TRY(mica_split_check(ctx, op, &o->split, set->count));
    if (o->transform.elements < 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: the transform makes %td elements", op,
                         o->transform.elements);
    mica_index raw = elements_each(&set->inputs), takes = o->transform.takes;
    if (o->transform.run != NULL && takes != 0 && takes != raw)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: the transform takes %td elements, inputs are %s: %td each",
                         op, takes, MICA_SHAPE(&set->inputs), raw);
    if (o->transform.run != NULL && o->channels > 1 && o->transform.elements % o->channels != 0)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: channels is %td, the transform makes %td elements", op,
                         o->channels, o->transform.elements);
    bool same_shape = o->transform.run == NULL || o->transform.elements == 0;
    if (o->channels < 0 ||
        (o->channels > 1 && same_shape && (set->inputs.rank < 2 || set->inputs.dim[1] != o->channels)))
        return mica_fail(ctx, MICA_ERR_SHAPE,
                         "%s: channels is %td, inputs are %s: expected the size of their axis 1", op,
                         o->channels, MICA_SHAPE(&set->inputs));
    for (mica_index c = 0; o->deviation != NULL && c < (o->channels > 0 ? o->channels : 1); c++)
        if (!(o->deviation[c] > 0))
            return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: deviation[%td] is %g", op, c,
                             (double)o->deviation[c]);
    return MICA_OK;
}

static void choose_part(int32_t *part, const mica_dataset *set, const mica_data_split *split)
{
    mica_dealing dealing;
    mica_dealing_begin(&dealing, split, set->count);
    for (mica_index i = 0; i < set->count; i++)
        if (mica_dealing_next(&dealing))
            *part++ = (int32_t)i;
}

static void set_order(mica_batches *b)
{
    if (b->sequential)
        return;
    mica_random r = mica_random_stream(b->seed, MICA_STREAM_ORDER + b->cursor.epoch);
    mica_random_permutation_i32(&r, b->order, (int32_t)b->samples);
}

static void set_normalization(mica_batches *b, const mica_batches_opts *o)
{
    float scale = o->scale != 0 ? o->scale : 1;
    b->normalize = scale != 1 || o->mean != NULL || o->deviation != NULL;
    b->per_plane = b->elements / b->channels;
    for (mica_index c = 0; c < b->channels; c++) {
        double deviation = o->deviation != NULL ? (double)o->deviation[c] : 1;
        b->factor[c] = (float)((double)scale / deviation);
        b->offset[c] = o->mean != NULL ? (float)(-(double)o->mean[c] / deviation) : 0;
    }
}

/* One block: [ the struct | factor, offset | order | part | rows of threads ] */
static mica_batches *allocate(mica_context *ctx, const mica_dataset *set, const mica_batches_opts *o,
                              mica_index samples)
{
    size_t channels = (size_t)(o->channels > 0 ? o->channels : 1), count = (size_t)samples;
    size_t factor_at = mica_align_up(sizeof(mica_batches));
    size_t order_at = mica_align_up(factor_at + 2 * channels * sizeof(float));
    size_t part_at = mica_align_up(order_at + (o->sequential ? 0 : count * sizeof(int32_t)));
    size_t rows_at = mica_align_up(part_at + (o->split.part == MICA_PART_ALL ? 0 : count * sizeof(int32_t)));
    mica_index raw = elements_each(&set->inputs),
               elements = o->transform.run != NULL && o->transform.elements > 0 ? o->transform.elements : raw;
    size_t row_bytes = o->transform.run != NULL ? (size_t)(raw + elements) * sizeof(float) : 0;
    size_t bytes = rows_at + (size_t)ctx->threads * row_bytes;
    char *block = mica_allocate(ctx, bytes);
    if (block == NULL)
        return NULL;
    mica_batches *b = (mica_batches *)(void *)block;
    *b = (mica_batches){
        .inputs = set->inputs,
        .targets = set->targets,
        .has_targets = set->has_targets,
        .samples = samples,
        .batch = o->batch > 0 ? o->batch : 32,
        .seed = o->seed,
        .sequential = o->sequential,
        .drop_last = o->drop_last,
        .transform = o->transform,
        .raw = raw,
        .elements = elements,
        .channels = (mica_index)channels,
        .factor = (float *)(void *)(block + factor_at),
        .order = (int32_t *)(void *)(block + order_at),
        .part = o->split.part == MICA_PART_ALL ? NULL : (int32_t *)(void *)(block + part_at),
        .rows_of_threads = row_bytes > 0 ? (float *)(void *)(block + rows_at) : NULL,
        .bytes = bytes,
    };
    b->offset = b->factor + channels;
    return b;
}

mica_status mica_batches_create(mica_context *ctx, mica_batches **out, const mica_dataset *set,
                                const mica_batches_opts *opts)
{
    static const mica_batches_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    if (out == NULL || set == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "batches_create: %s is NULL", out == NULL ? "out" : "set");
    *out = NULL;
    MICA_TRY(check_opts(ctx, set, opts));
    mica_index samples = mica_split_samples(&opts->split, set->count);
    mica_batches *b = allocate(ctx, set, opts, samples);
    if (b == NULL)
        return ctx->status;
    if (b->part != NULL)
        choose_part(b->part, set, &opts->split);
    set_normalization(b, opts);
    set_order(b);
    *out = b;
    return MICA_OK;
}

void mica_batches_destroy(mica_context *ctx, mica_batches *batches)
{
    if (batches != NULL)
        mica_release(ctx, batches, batches->bytes);
}

/* ---- Cursor ---- */

mica_cursor mica_batches_cursor(const mica_batches *batches) { return batches->cursor; }

mica_status mica_batches_seek(mica_context *ctx, mica_batches *batches, mica_cursor cursor)
{
    if (cursor.position > (uint64_t)batches->samples)
        return mica_fail(ctx, MICA_ERR_INDEX, "batches_seek: position %llu of %td samples",
                         (unsigned long long)cursor.position, batches->samples);
    bool another = cursor.epoch != batches->cursor.epoch;
    batches->cursor = cursor;
    if (another)
        set_order(batches);
    batches->rows = 0;
    return MICA_OK;
}

mica_index mica_batches_samples(const mica_batches *batches) { return batches->samples; }

mica_index mica_batches_count(const mica_batches *batches)
{
    mica_index whole = batches->samples / batches->batch;
    return whole + (!batches->drop_last && batches->samples % batches->batch > 0);
}

/* ---- Handing out ---- */

/* The rows of one tensor: dst's row r is the sample at position first + r of the batch. */
typedef struct copy_job {
    const mica_batches *batches;
    const mica_convert_kernels *convert;
    mica_tensor dst, src;
    bool normalize, transforms;
    mica_index first, rows, rows_per_block;
} copy_job;

static mica_tensor row_of(const mica_tensor *t, mica_index row)
{
    mica_tensor out = {.data = mica_element(t, row * t->stride[0]), .dtype = t->dtype, .rank = t->rank - 1};
    memcpy(out.dim, t->dim + 1, sizeof out.dim - sizeof out.dim[0]);
    memcpy(out.stride, t->stride + 1, sizeof out.stride - sizeof out.stride[0]);
    return mica_join_axes(&out);
}

static mica_index sample_at(const mica_batches *b, mica_index row)
{
    mica_index position = b->first + row;
    if (!b->sequential)
        position = b->order[position];
    return b->part != NULL ? b->part[position] : position;
}

/* Elements `position` on of a sample. */
static void normalize(const mica_batches *b, float *x, mica_index position, mica_index n)
{
    for (mica_index i = 0, run; i < n; i += run) {
        mica_index plane = b->channels > 1 ? (position + i) / b->per_plane : 0;
        run = b->channels > 1 ? (plane + 1) * b->per_plane - (position + i) : n;
        run = run < n - i ? run : n - i;
        float factor = b->factor[plane], offset = b->offset[plane];
        for (mica_index k = i; k < i + run; k++)
            x[k] = x[k] * factor + offset;
    }
}

static void copy_row(const copy_job *job, mica_index row)
{
    mica_tensor dst = row_of(&job->dst, row),
                src = row_of(&job->src, sample_at(job->batches, job->first + row));
    _Alignas(MICA_ALIGN) double buffer[CHUNK]; /* room for the largest element type */
    mica_line line = {buffer, job->normalize ? MICA_F32 : src.dtype, 1};
    mica_index count = (mica_index)mica_tensor_count(&src);
    bool in_place = dst.dtype == line.dtype && mica_tensor_contiguous(&dst);
    for (mica_index at = 0, run; at < count; at += run) {
        run = count - at < CHUNK ? count - at : CHUNK;
        if (in_place)
            line.data = mica_element(&dst, at);
        mica_fetch_run(job->convert, line, &src, at, run);
        if (job->normalize)
            normalize(job->batches, line.data, at, run);
        if (!in_place)
            mica_move_run(job->convert, &dst, at, line, run);
    }
}

/* The same through the transform, in rows of this thread's. */
static void transform_row(const copy_job *job, mica_index row, int thread)
{
    const mica_batches *b = job->batches;
    mica_index sample = sample_at(b, job->first + row);
    mica_tensor dst = row_of(&job->dst, row), src = row_of(&job->src, sample);
    float *own = b->rows_of_threads + (mica_index)thread * (b->raw + b->elements), *out = own + b->raw;
    const float *in = own;
    mica_random random = {b->seed, MICA_STREAM_TRANSFORM + b->cursor.epoch, (uint64_t)sample << 32};
    if (src.dtype == MICA_F32 && mica_tensor_contiguous(&src))
        in = src.data;
    else
        mica_fetch_run(job->convert, (mica_line){own, MICA_F32, 1}, &src, 0, b->raw);
    bool in_place = dst.dtype == MICA_F32 && mica_tensor_contiguous(&dst);
    if (in_place)
        out = dst.data;
    b->transform.run(b->transform.user, out, in, random);
    if (b->normalize)
        normalize(b, out, 0, b->elements);
    if (!in_place)
        mica_move_run(job->convert, &dst, 0, (mica_line){out, MICA_F32, 1}, b->elements);
}

static void copy_block(void *work, size_t block, int thread)
{
    const copy_job *job = work;
    mica_index row = (mica_index)block * job->rows_per_block, end = row + job->rows_per_block;
    for (; row < end && row < job->rows; row++) {
        if (job->transforms)
            transform_row(job, row, thread);
        else
            copy_row(job, row);
    }
}

static void copy_rows(mica_context *ctx, const mica_batches *b, const mica_tensor *dst,
                      const mica_tensor *src, mica_index first, mica_index rows)
{
    mica_index elements = elements_each(src);
    bool inputs = src == &b->inputs, transforms = inputs && b->transform.run != NULL;
    copy_job job = {b, ctx->kernels->convert, *dst, *src, b->normalize && inputs, transforms, first, rows, 1};
    elements = transforms && b->elements > elements ? b->elements : elements;
    if (elements == 0)
        return;
    if (elements < BLOCK_SIZE)
        job.rows_per_block = BLOCK_SIZE / elements;
    mica_parallel(ctx, mica_div_up((size_t)rows, (size_t)job.rows_per_block), copy_block, &job);
}

static mica_status check_rows(mica_context *ctx, const char *op, const char *name, const mica_tensor *dst,
                              const mica_tensor *src, mica_index wanted, mica_index rows)
{
    if (dst->rank == 0 || dst->dim[0] < rows || elements_each(dst) != wanted)
        return mica_fail(ctx, MICA_ERR_SHAPE,
                         wanted == elements_each(src)
                             ? "%s: %s are %s, expected at least %td rows for samples of %s without axis 0"
                             : "%s: %s are %s, expected at least %td rows for what the transform makes of %s",
                         op, name, MICA_SHAPE(dst), rows, MICA_SHAPE(src));
    return MICA_OK;
}

static mica_status check_tensors(mica_context *ctx, const char *op, const mica_batches *b,
                                 const mica_tensor *inputs, const mica_tensor *targets, mica_index rows)
{
    mica_arg args[] = {{"inputs", inputs, MICA_ARG_OUT, MICA_DTYPES_ANY},
                       {"targets", targets, MICA_ARG_OUT | MICA_ARG_OPTIONAL, MICA_DTYPES_ANY},
                       {"the data set's inputs", &b->inputs, 0, MICA_DTYPES_ANY},
                       {"the data set's targets", &b->targets, 0, MICA_DTYPES_ANY}};
    MICA_TRY(mica_check_args(ctx, op, args, b->has_targets ? 4 : 3));
    MICA_TRY(check_rows(ctx, op, "inputs", inputs, &b->inputs, b->elements, rows));
    if (targets == NULL)
        return MICA_OK;
    if (!b->has_targets)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: targets are %s, but the data set has none", op,
                         MICA_SHAPE(targets));
    return check_rows(ctx, op, "targets", targets, &b->targets, elements_each(&b->targets), rows);
}

mica_status mica_batches_begin(mica_context *ctx, mica_index *count, mica_batches *batches)
{
    if (count == NULL || batches == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "batches_begin: %s is NULL",
                         count == NULL ? "count" : "batches");
    mica_index left = batches->samples - (mica_index)batches->cursor.position;
    mica_index rows = left < batches->batch ? left : batches->batch;
    if (rows == 0 || (batches->drop_last && rows < batches->batch)) {
        batches->cursor = (mica_cursor){batches->cursor.epoch + 1, 0};
        set_order(batches);
        rows = 0;
    }
    batches->first = (mica_index)batches->cursor.position;
    batches->cursor.position += (uint64_t)rows;
    *count = batches->rows = rows;
    return MICA_OK;
}

mica_status mica_batches_rows(mica_context *ctx, const mica_tensor *inputs, const mica_tensor *targets,
                              mica_index first, mica_index count, const mica_batches *batches)
{
    static const char op[] = "batches_rows";
    if (batches == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: batches is NULL", op);
    if (first < 0 || count < 0 || first > batches->rows || count > batches->rows - first)
        return mica_fail(ctx, MICA_ERR_INDEX, "%s: rows %td to %td of a batch of %td", op, first,
                         first + count - 1, batches->rows);
    MICA_TRY(check_tensors(ctx, op, batches, inputs, targets, count));
    MICA_START(ctx, op, 0, NULL);
    copy_rows(ctx, batches, inputs, &batches->inputs, first, count);
    if (targets != NULL)
        copy_rows(ctx, batches, targets, &batches->targets, first, count);
    return MICA_OK;
}

mica_status mica_batches_next(mica_context *ctx, const mica_tensor *inputs, const mica_tensor *targets,
                              mica_index *count, mica_batches *batches)
{
    if (count == NULL || batches == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "batches_next: %s is NULL",
                         count == NULL ? "count" : "batches");
    *count = 0;
    MICA_TRY(check_tensors(ctx, "batches_next", batches, inputs, targets, batches->batch));
    MICA_START(ctx, "batches_next", 0, NULL);
    MICA_TRY(mica_batches_begin(ctx, count, batches));
    copy_rows(ctx, batches, inputs, &batches->inputs, 0, *count);
    if (targets != NULL)
        copy_rows(ctx, batches, targets, &batches->targets, 0, *count);
    return MICA_OK;
}
