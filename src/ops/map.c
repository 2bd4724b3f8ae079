/* The element-wise engine: reduces any layout to the contiguous runs that kernels take. */
#include <string.h>

#include "base/parallel.h"
#include "ops/walk.h"

/* Elements that are staged at a time where an operand does not lie contiguously: all buffers stay in the
 * first cache. */
#if defined(MICA_SMALL) /* on the stack, as all stages are */
#define STAGE 32
#else
#define STAGE 512
#endif
/* Elements in one block of parallel work, where each is little work and where it is much; a smaller job is not worth
 * waking a thread for. */
#define BLOCK      ((size_t)16384)
#define BLOCK_MUCH ((size_t)8192)
/* Rows shorter than this are staged several at a time. */
#define SHORT_ROW 32

typedef struct map_job {
    mica_walk walk;
    size_t block; /* elements in one */
    mica_map_fn *fn;
    const void *params;
} map_job;

/* n elements of an operand from the cursor on, which must not leave its row, as floats. */
static void load_run(float *out, const mica_walk *w, int operand, const mica_walk_place *c, mica_index n)
{
    mica_index offset = mica_walk_offset(w, c, operand), stride = w->stride[operand][w->rank - 1];
    if (w->dtype[operand] == MICA_U8 || w->dtype[operand] == MICA_BOOL) {
        const uint8_t *p = (const uint8_t *)w->data[operand] + offset;
        for (mica_index i = 0; i < n; i++)
            out[i] = (float)p[i * stride];
        return;
    }
    const float *p = (const float *)(const void *)w->data[operand] + offset;
#if !defined(MICA_SMALL) /* loops that compilers make vectors of */
    if (stride == 0) {
        const float all = p[0];
        for (mica_index i = 0; i < n; i++)
            out[i] = all;
        return;
    }
    if (stride == 1) {
        memcpy(out, p, (size_t)n * sizeof *out);
        return;
    }
#endif
    for (mica_index i = 0; i < n; i++)
        out[i] = p[i * stride];
}

static void store_run(const float *in, const mica_walk *w, const mica_walk_place *c, mica_index n)
{
    mica_index offset = mica_walk_offset(w, c, 0), stride = w->stride[0][w->rank - 1];
    if (w->dtype[0] == MICA_U8 || w->dtype[0] == MICA_BOOL) {
        uint8_t *p = (uint8_t *)w->data[0] + offset;
        for (mica_index i = 0; i < n; i++)
            p[i * stride] = (uint8_t)in[i];
        return;
    }
    float *p = (float *)(void *)w->data[0] + offset;
    for (mica_index i = 0; i < n; i++)
        p[i * stride] = in[i];
}

/* Whether a kernel can work on the operand where it lies. */
static bool direct(const mica_walk *w, int operand)
{
    return w->dtype[operand] == MICA_F32 && w->stride[operand][w->rank - 1] == 1;
}

static float *direct_at(const mica_walk *w, int operand, const mica_walk_place *c)
{
    return (float *)(void *)w->data[operand] + mica_walk_offset(w, c, operand);
}

#if !defined(MICA_SMALL)
/* What the stage of an operand holds. */
typedef struct staged {
    const void *from; /* NULL: nothing that could be used again */
    mica_index count;
} staged;

/* Whether the stage has n elements or more of what lies here already; it has them from now on. */
static bool holds(staged *held, const mica_walk *w, int operand, const mica_walk_place *c, mica_index n)
{
    const void *from = w->data[operand] +
                       mica_walk_offset(w, c, operand) * (mica_index)mica_dtype_bytes(w->dtype[operand]);
    if (held->from == from && held->count >= n)
        return true;
    *held = (staged){from, n};
    return false;
}
#endif

/* Long rows: a row at a time, or STAGE elements of it where an operand is staged. */
static void map_rows(const map_job *job, size_t begin, size_t end)
{
    const mica_walk *w = &job->walk;
    float stage[MICA_WALK_OPERANDS][STAGE];
#if !defined(MICA_SMALL)
    staged held[MICA_WALK_OPERANDS] = {{NULL, 0}};
#endif
    mica_index most = PTRDIFF_MAX;
    for (int k = 0; k < w->operands; k++)
        if (!direct(w, k))
            most = STAGE;

    mica_walk_place c = mica_walk_at(w, begin);
    int last = w->rank - 1;
    for (size_t position = begin; position < end;) {
        mica_index n = mica_least_index(w->dim[last] - c.index[last],
                                        mica_least_index((mica_index)(end - position), most));
        const float *source[MICA_WALK_OPERANDS];
        for (int k = 1; k < w->operands; k++) {
            source[k - 1] = direct(w, k) ? direct_at(w, k, &c) : stage[k];
            if (direct(w, k))
                continue;
#if !defined(MICA_SMALL)
            if (w->stride[k][last] == 0 && holds(&held[k], w, k, &c, n)) /* one number */
                continue;
#endif
            load_run(stage[k], w, k, &c, n);
        }
        job->fn(direct(w, 0) ? direct_at(w, 0, &c) : stage[0], source, (size_t)n, job->params);
        if (!direct(w, 0))
            store_run(stage[0], w, &c, n);
        position += (size_t)n;
        mica_walk_advance(w, &c, n);
    }
}

/* Short rows: everything is staged, so that the kernel still sees long runs. */
static void map_short_rows(const map_job *job, size_t begin, size_t end)
{
    const mica_walk *w = &job->walk;
    float stage[MICA_WALK_OPERANDS][STAGE];
    int last = w->rank - 1;
    mica_walk_place c = mica_walk_at(w, begin);
    for (size_t position = begin; position < end;) {
        mica_index n = mica_least_index((mica_index)(end - position), STAGE), run;
        mica_walk_place start = c;
        for (mica_index done = 0; done < n; done += run) {
            run = mica_least_index(w->dim[last] - c.index[last], n - done);
            for (int k = 1; k < w->operands; k++)
                load_run(stage[k] + done, w, k, &c, run);
            mica_walk_advance(w, &c, run);
        }
        const float *source[MICA_WALK_OPERANDS];
        for (int k = 1; k < w->operands; k++)
            source[k - 1] = stage[k];
        job->fn(stage[0], source, (size_t)n, job->params);
        c = start;
        for (mica_index done = 0; done < n; done += run) {
            run = mica_least_index(w->dim[last] - c.index[last], n - done);
            store_run(stage[0] + done, w, &c, run);
            mica_walk_advance(w, &c, run);
        }
        position += (size_t)n;
    }
}

#if !defined(MICA_SMALL)
/* Whether rows of the last two axes lie one behind the other, where a kernel can work on them. */
static bool direct_plane(const mica_walk *w, int operand)
{
    int last = w->rank - 1;
    return direct(w, operand) && w->stride[operand][last - 1] == w->dim[last];
}

/* Whether it is worth while to take several rows at a time: a stage has room for them, there are as many, and a row
 * that is met again and again need not be staged again. */
static bool takes_many_rows(const mica_walk *w)
{
    int last = w->rank - 1;
    if (last == 0 || w->dim[last] > STAGE / 2 || w->dim[last] * w->dim[last - 1] < STAGE / 2)
        return false;
    if (w->dim[last] < SHORT_ROW)
        return true;
    bool repeats = false;
    for (int k = 1; k < w->operands; k++)
        repeats = repeats || w->stride[k][last - 1] == 0;
    return repeats && direct_plane(w, 0);
}

/* n elements from the cursor on, of whole rows but for the last, as floats. */
static void load_rows(float *out, staged *held, const mica_walk *w, int operand, const mica_walk_place *at,
                      mica_index n)
{
    int last = w->rank - 1;
    mica_walk_place c = *at;
    mica_index row = w->dim[last] - c.index[last], done = mica_least_index(row, n);
    bool again = w->stride[operand][last - 1] == 0;
    if (again && holds(held, w, operand, &c, n))
        return;
    load_run(out, w, operand, &c, done);
    while (done < n && again) { /* what is there, once more */
        mica_index run = mica_least_index(done, n - done);
        memcpy(out + done, out, (size_t)run * sizeof *out);
        done += run;
    }
    for (mica_index run; done < n; done += run) {
        c.index[last - 1]++;
        run = mica_least_index(row, n - done);
        load_run(out + done, w, operand, &c, run);
    }
}

static void store_rows(const float *in, const mica_walk *w, const mica_walk_place *at, mica_index n)
{
    int last = w->rank - 1;
    mica_walk_place c = *at;
    for (mica_index done = 0, run; done < n; done += run, c.index[last - 1]++) {
        run = mica_least_index(w->dim[last] - c.index[last], n - done);
        store_run(in + done, w, &c, run);
    }
}

/* Rows of the last two axes, several at a time: operands that lie so are worked on where they are. */
static void map_many_rows(const map_job *job, size_t begin, size_t end)
{
    const mica_walk *w = &job->walk;
    float stage[MICA_WALK_OPERANDS][STAGE];
    staged held[MICA_WALK_OPERANDS] = {{NULL, 0}};
    int last = w->rank - 1;
    mica_index row = w->dim[last], most = STAGE / row * row;
    mica_walk_place c = mica_walk_at(w, begin);
    for (size_t position = begin; position < end;) {
        mica_index left = c.index[last] > 0 ? row - c.index[last]
                                            : (w->dim[last - 1] - c.index[last - 1]) * row;
        mica_index n = mica_least_index(mica_least_index(left, most), (mica_index)(end - position));
        const float *source[MICA_WALK_OPERANDS];
        for (int k = 1; k < w->operands; k++) {
            source[k - 1] = direct_plane(w, k) ? direct_at(w, k, &c) : stage[k];
            if (!direct_plane(w, k))
                load_rows(stage[k], &held[k], w, k, &c, n);
        }
        job->fn(direct_plane(w, 0) ? direct_at(w, 0, &c) : stage[0], source, (size_t)n, job->params);
        if (!direct_plane(w, 0))
            store_rows(stage[0], w, &c, n);
        position += (size_t)n;
        if (position == end)
            return;
        c.index[last - 1] += n / row;
        mica_walk_advance(w, &c, n % row);
        for (int i = last - 1; i > 0 && c.index[i] == w->dim[i]; i--) {
            c.index[i] = 0;
            c.index[i - 1]++;
        }
    }
}
#endif

static void map_block(void *work, size_t block, int thread)
{
    (void)thread;
    const map_job *job = work;
    size_t begin = block * job->block, end = begin + job->block;
    if (end > job->walk.count)
        end = job->walk.count;
#if !defined(MICA_SMALL)
    if (takes_many_rows(&job->walk)) {
        map_many_rows(job, begin, end);
        return;
    }
#endif
    if (job->walk.rank > 1 && job->walk.dim[job->walk.rank - 1] < SHORT_ROW)
        map_short_rows(job, begin, end);
    else
        map_rows(job, begin, end);
}

static void run(mica_context *ctx, mica_map_fn *fn, const void *params, size_t block,
                const mica_tensor *const *operands, int count)
{
    map_job job;
    job.fn = fn;
    job.params = params;
    mica_walk_init(&job.walk, operands, count);
    job.block = mica_block_elements(ctx, job.walk.count, block);
    mica_parallel(ctx, mica_div_up(job.walk.count, job.block), map_block, &job);
}

void mica_map_run(mica_context *ctx, mica_map_fn *fn, const void *params, const mica_tensor *dst,
                  const mica_tensor *const *sources, int count)
{
    const mica_tensor *operands[MICA_WALK_OPERANDS] = {dst};
    for (int k = 0; k < count; k++)
        operands[k + 1] = sources[k];
    run(ctx, fn, params, BLOCK, operands, count + 1);
}

mica_status mica_map_check(mica_context *ctx, const char *op, const mica_arg *args, int count)
{
    MICA_TRY(mica_check_args(ctx, op, args, count));
    for (int k = 1; k < count; k++)
        MICA_TRY(mica_check_broadcast(ctx, op, args[k].name, args[k].tensor, args[0].name, args[0].tensor));
    return MICA_OK;
}

/* Whether args[k] is laid out as args[0], contiguously, and is either exactly it, where it may be, or apart
 * from it. */
static bool alike(const mica_arg *args, int k, size_t bytes)
{
    const mica_tensor *dst = args[0].tensor, *t = args[k].tensor;
    if (t == NULL || t->dtype != MICA_F32 || t->data == NULL || t->rank != dst->rank)
        return false;
    for (int i = 0; i < dst->rank; i++)
        if (t->dim[i] != dst->dim[i] || t->stride[i] != dst->stride[i])
            return false;
    if (t->data == dst->data)
        return args[k].flags & MICA_ARG_IN_PLACE;
    uintptr_t d = (uintptr_t)dst->data, s = (uintptr_t)t->data;
    return d < s ? s - d >= bytes : d - s >= bytes;
}

/* The call that is met most often, and whose checks would otherwise take longer than its work: few elements,
 * everything f32, contiguous and of one shape. Returns how many elements; 0 if it is not such a call, which
 * also goes for every call that must fail. */
static size_t simple_count(const mica_context *ctx, const mica_arg *args, int count, size_t block)
{
    const mica_tensor *dst = args[0].tensor;
    if (ctx->measuring || dst == NULL || dst->dtype != MICA_F32 || dst->data == NULL ||
        (unsigned)dst->rank > MICA_MAX_RANK)
        return 0;
    mica_index elements = 1, most = (mica_index)(ctx->threads > 1 ? block : BLOCK);
    for (int i = dst->rank - 1; i >= 0; i--) {
        if (dst->stride[i] != elements || dst->dim[i] < 1 || dst->dim[i] > most)
            return 0;
        elements *= dst->dim[i];
        if (elements > most)
            return 0;
    }
    for (int k = 1; k < count; k++)
        if (!alike(args, k, (size_t)elements * sizeof(float)))
            return 0;
    return (size_t)elements;
}

static mica_status map_op(mica_context *ctx, const char *op, mica_map_fn *fn, const void *params,
                          const mica_arg *args, int count, size_t block)
{
    size_t simple = simple_count(ctx, args, count, block);
    if (simple > 0) {
        const float *data[MICA_WALK_OPERANDS];
        for (int k = 1; k < count; k++)
            data[k - 1] = args[k].tensor->data;
        fn(args[0].tensor->data, data, simple, params);
        return MICA_OK;
    }
    MICA_TRY(mica_map_check(ctx, op, args, count));
    MICA_START(ctx, op, 0, NULL);
    const mica_tensor *operands[MICA_WALK_OPERANDS];
    for (int k = 0; k < count; k++)
        operands[k] = args[k].tensor;
    run(ctx, fn, params, block, operands, count);
    return MICA_OK;
}

mica_status mica_map_op(mica_context *ctx, const char *op, mica_map_fn *fn, const void *params,
                        const mica_arg *args, int count)
{
    return map_op(ctx, op, fn, params, args, count, BLOCK);
}

mica_status mica_map_op_much(mica_context *ctx, const char *op, mica_map_fn *fn, const void *params,
                             const mica_arg *args, int count)
{
    return map_op(ctx, op, fn, params, args, count, BLOCK_MUCH);
}

void mica_map_run_here(mica_map_fn *fn, const void *params, const mica_arg *args, int count)
{
    const mica_tensor *operands[MICA_WALK_OPERANDS];
    for (int k = 0; k < count; k++)
        operands[k] = args[k].tensor;
    map_job job;
    job.block = BLOCK;
    job.fn = fn;
    job.params = params;
    mica_walk_init(&job.walk, operands, count);
    for (size_t block = 0; block < mica_div_up(job.walk.count, BLOCK); block++)
        map_block(&job, block, 0);
}
