/* The dot product of two tensors of any layout. */
#include <mica/ops/reduce.h>

#include "base/parallel.h"
#include "ops/check.h"
#include "ops/walk.h"

#define STAGE      512
#define BLOCK      ((size_t)65536)
#define MOST_PARTS 64

typedef struct dot_job {
    mica_walk walk; /* a, b */
    double (*dot)(const float *a, const float *b, size_t n);
    size_t part; /* elements of one */
    double partial[MOST_PARTS];
} dot_job;

/* n elements from the cursor on: where they lie if they lie contiguously, else gathered. */
static const float *run_of(const mica_walk *w, int operand, const mica_walk_place *c, float *stage, size_t n)
{
    const float *from = (const float *)(const void *)w->data[operand] + mica_walk_offset(w, c, operand);
    mica_index stride = w->stride[operand][w->rank - 1];
    if (stride == 1)
        return from;
    for (size_t i = 0; i < n; i++)
        stage[i] = from[(mica_index)i * stride];
    return stage;
}

static void dot_block(void *work, size_t block, int thread)
{
    (void)thread;
    dot_job *job = work;
    const mica_walk *w = &job->walk;
    int last = w->rank - 1;
    size_t begin = block * job->part;
    size_t end = w->count - begin < job->part ? w->count : begin + job->part;
    size_t most = w->stride[0][last] == 1 && w->stride[1][last] == 1 ? w->count : STAGE;
    float stage[2][STAGE];
    double sum = 0.0;
    mica_walk_place c = mica_walk_at(w, begin);
    for (size_t position = begin, n; position < end; position += n) {
        n = (size_t)(w->dim[last] - c.index[last]);
        n = n < end - position ? n : end - position;
        n = n < most ? n : most;
        sum += job->dot(run_of(w, 0, &c, stage[0], n), run_of(w, 1, &c, stage[1], n), n);
        mica_walk_advance(w, &c, (mica_index)n);
    }
    job->partial[block] = sum;
}

mica_status mica_dot(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a, const mica_tensor *b)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, 0}, {"a", a, 0, 0}, {"b", b, 0, 0}};
    MICA_TRY(mica_check_args(ctx, "dot", args, 3));
    MICA_TRY(mica_check_same_shape(ctx, "dot", "b", b, "a", a));
    if (mica_tensor_count(dst) != 1)
        return mica_fail(ctx, MICA_ERR_SHAPE, "dot: dst is %s, expected one element for a %s",
                         MICA_SHAPE(dst), MICA_SHAPE(a));
    MICA_START(ctx, "dot", 0, NULL);
    dot_job job = {.dot = MICA_KERNEL(ctx->kernels, reduce, dot)};
    mica_walk_init(&job.walk, (const mica_tensor *[]){a, b}, 2);
    size_t count = job.walk.count;
    job.part = count > BLOCK * MOST_PARTS ? mica_div_up(count, MOST_PARTS) : BLOCK;
    size_t parts = mica_div_up(count, job.part);
    mica_parallel(ctx, parts, dot_block, &job);
    double sum = 0.0;
    for (size_t i = 0; i < parts; i++)
        sum += job.partial[i];
    *(float *)dst->data = (float)sum;
    return MICA_OK;
}
